/* layout.h - where the bits of a key lie, for each kind: shared by its kernels and its file.
 * What stands here is part of the file format (doc/FORMAT.md). */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "../bytes.h"
#include "../kernels.h"

#define LIKELY(condition) __builtin_expect(condition, true)
#define PREFETCH(address) __builtin_prefetch((address), 0, 3)

/* Functions that only prefetch must be inlined by force: gcc takes them for pure functions
 * whose result nobody uses, and drops the call. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Returns call(n) with a constant, for n from 1 to 16. */
/* clang-format off */
#define RETURN_WITH_CONSTANT(n, call)                                            \
    switch (n) {                                                                 \
    case  1: return call( 1); case  2: return call( 2); case  3: return call( 3); \
    case  4: return call( 4); case  5: return call( 5); case  6: return call( 6); \
    case  7: return call( 7); case  8: return call( 8); case  9: return call( 9); \
    case 10: return call(10); case 11: return call(11); case 12: return call(12); \
    case 13: return call(13); case 14: return call(14); case 15: return call(15); \
    default: return call(16);                                                    \
    }
/* clang-format on */

/* Odd multipliers without structure: 2^64 divided by the golden ratio, and the first digits
 * of pi. */
#define ODD_GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define ODD_PI     UINT64_C(0x243F6A8885A308D3)

/* ---- blocked ----------------------------------------------------------------------- */

enum { PART_LINES, PARTS, LINE_BITS }; /* its fields */
enum { LINE_NBYTES = 64, LINE_WORDS = 16, WORD_NBITS = 32 };

/* The key's line in each part: the n-th from the hash multiplied n times. */
static inline struct keyhash blocked_next_part(struct keyhash key)
{
    return (struct keyhash){ .place = key.place * ODD_GOLDEN, .mark = key.mark * ODD_PI };
}

static inline uint64_t blocked_line_offset(struct keyhash key, uint64_t part_lines)
{
    return scale64(key.place, part_lines) * LINE_NBYTES;
}

/* The bits of a key in a line: an odd stride walks through the 16 words without meeting one
 * twice; one bit in each, by multiplying with a constant of its own. */
struct blocked_walk {
    uint32_t factor;
    unsigned word;
    unsigned stride;
};

static inline struct blocked_walk blocked_walk_start(uint64_t mark)
{
    return (struct blocked_walk){
        .factor = (uint32_t)(mark >> 32),
        .word = (unsigned)(mark >> 28) & 15,
        .stride = ((unsigned)(mark >> 24) & 14) | 1,
    };
}

/* The fractional parts of the square roots of the first 16 primes, made odd. */
static const uint32_t blocked_factors[LINE_WORDS] = {
    0x6A09E667, 0xBB67AE85, 0x3C6EF373, 0xA54FF53B, 0x510E527F, 0x9B05688D,
    0x1F83D9AB, 0x5BE0CD19, 0xCBBB9D5D, 0x629A292B, 0x9159015B, 0x152FECD9,
    0x67332667, 0x8EB44A87, 0xDB0C2E0D, 0x47B5481D,
};

static inline unsigned blocked_bit(uint32_t factor, unsigned i)
{
    return (factor * blocked_factors[i]) >> 27;
}

/* ---- bloom ------------------------------------------------------------------------- */

enum { NBITS, KEY_BITS }; /* its fields */

/* The bits of a key: scale64() of place, then of each next place. */
static inline uint64_t bloom_next_place(uint64_t place, uint64_t mark)
{
    return place * ODD_GOLDEN + mark;
}

/* ---- counting ---------------------------------------------------------------------- */

/* A blocked filter's lines and walks, the fields the same; but a word is 8 counters of 4 bits,
 * and a key has one of them where it would have one of 32 bits. */
enum { COUNTER_NBITS = 4, COUNTER_MAX = 15, WORD_COUNTERS = WORD_NBITS / COUNTER_NBITS };

/* Behind the last line of the last part: how many counters are not zero, how many are at
 * COUNTER_MAX; two of the numbers of one more line. */
enum { COUNTERS_USED, COUNTERS_FULL };

/* Shifts up to 31 that are shifts to a counter. */
enum { COUNTER_SHIFTS = WORD_NBITS - COUNTER_NBITS };

static inline unsigned counting_shift(uint32_t factor, unsigned i)
{
    return blocked_bit(factor, i) & COUNTER_SHIFTS;
}

/* ---- cuckoo ------------------------------------------------------------------------ */

enum { NBUCKETS, WIDTH }; /* its fields */
enum { BUCKET_SLOTS = 4, WIDTH_MIN = 4, WIDTH_MAX = 32, NARROW_MAX = 16 };

/* 1 .. 2^width - 1; 0 is the empty slot. */
static inline uint32_t cuckoo_fingerprint(uint64_t mark, unsigned width)
{
    return (uint32_t)(1 + scale64(mark, (UINT64_C(1) << width) - 1));
}

/* The other bucket of a fingerprint that lies in 'bucket': its own inverse, for any even
 * number of buckets; the sum of the two is odd, so they always differ.  The sum must not be
 * linear in the fingerprint: chains of moves would come back to few buckets, and a filter with
 * short fingerprints would be full too early. */
static inline uint64_t cuckoo_other_bucket(uint64_t bucket, uint32_t fingerprint,
                                           uint64_t nbuckets)
{
    uint64_t mixed = fingerprint * ODD_GOLDEN;
    mixed = (mixed ^ mixed >> 32) * ODD_PI;
    uint64_t sum = 2 * scale64(mixed, nbuckets / 2) + 1;
    return sum - bucket + (sum < bucket ? nbuckets : 0);
}

/* An entry of a key: its fingerprint and its two buckets. */
struct entry {
    uint32_t fingerprint;
    uint64_t first;
    uint64_t second;
};

static ALWAYS_INLINE struct entry cuckoo_entry(struct keyhash key, uint64_t nbuckets,
                                               unsigned width)
{
    struct entry e = { .fingerprint = cuckoo_fingerprint(key.mark, width),
                       .first = scale64(key.place, nbuckets) };
    e.second = cuckoo_other_bucket(e.first, e.fingerprint, nbuckets);
    return e;
}

/* The pair of buckets of an entry has one of so many versions, the same from both sides. */
enum { CUCKOO_VERSIONS = 4096 };

static inline uint64_t cuckoo_version(uint64_t a, uint64_t b)
{
    return (a + b) % CUCKOO_VERSIONS;
}

/* 8 bytes from any address, also beside writers: they may be half old and half new, but no bit
 * of a slot that stays is changed by writers of others. */
static inline uint64_t cuckoo_load(const uint8_t *at)
{
#if THREAD_SANITIZED
    unsigned shift = 8 * (unsigned)((uintptr_t)at & 7);
    const uint64_t *word = (const uint64_t *)(const void *)(at - shift / 8);
    uint64_t low = __atomic_load_n(word, __ATOMIC_RELAXED) >> shift;
    return shift ? low | __atomic_load_n(word + 1, __ATOMIC_RELAXED) << (64 - shift) : low;
#else
    return load64(at);
#endif
}

/* Four slots of up to 16 bits, in the low bits of one unaligned load: a bucket begins at a
 * multiple of 4 bits, and of 8 where it is 64 bits long. */
static inline uint64_t cuckoo_load_bucket(const uint8_t *body, uint64_t bucket, unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    return cuckoo_load(body + (bit >> 3)) >> (bit & 7);
}

/* Four slots of up to 32 bits.  It may reach 8 bytes beyond the last bucket: the body has room.
 */
static inline unsigned __int128 cuckoo_load_wide_bucket(const uint8_t *body, uint64_t bucket,
                                                        unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    unsigned __int128 low = cuckoo_load(body + (bit >> 3));
    unsigned __int128 high = cuckoo_load(body + (bit >> 3) + sizeof(uint64_t));
    return (low | high << 64) >> (bit & 7);
}

/* A one in each of the four lanes of a bucket of slots of up to 16 bits. */
static inline uint64_t cuckoo_lanes(unsigned width)
{
    return UINT64_C(1) | UINT64_C(1) << width | UINT64_C(1) << 2 * width |
           UINT64_C(1) << 3 * width;
}

static inline uint32_t cuckoo_slot(const uint8_t *body, uint64_t bucket, unsigned slot,
                                   unsigned width)
{
    uint64_t bit = (bucket * BUCKET_SLOTS + slot) * width;
    uint64_t mask = (UINT64_C(1) << width) - 1;
    return (uint32_t)(cuckoo_load(body + (bit >> 3)) >> (bit & 7) & mask);
}

/* Flips those bits of a slot that 'change' has, in aligned words, of which other writers may
 * change other slots. */
static inline void cuckoo_change_slot(uint8_t *body, uint64_t bucket, unsigned slot,
                                      unsigned width, uint32_t change)
{
    uint64_t bit = (bucket * BUCKET_SLOTS + slot) * width;
    uint64_t *word = (uint64_t *)(void *)body + (bit >> 6);
    unsigned shift = (unsigned)(bit & 63);
    __atomic_fetch_xor(word, (uint64_t)change << shift, __ATOMIC_RELEASE);
    if (shift + width > 64)
        __atomic_fetch_xor(word + 1, (uint64_t)change >> (64 - shift), __ATOMIC_RELEASE);
}

/* For one thread. */
static inline void cuckoo_set_slot(uint8_t *body, uint64_t bucket, unsigned slot,
                                   unsigned width, uint32_t fingerprint)
{
    uint64_t bit = (bucket * BUCKET_SLOTS + slot) * width;
    uint64_t mask = (UINT64_C(1) << width) - 1;
    uint8_t *at = body + (bit >> 3);
    uint64_t others = load64(at) & ~(mask << (bit & 7));
    store64(at, others | (uint64_t)fingerprint << (bit & 7));
}

#endif
