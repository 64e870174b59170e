/* layout.h - where the bits of a key lie, for each kind: shared by its kernels and its file.
 * What stands here is part of the file format (doc/FORMAT.md). */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "../base/bytes.h"
#include "kernels.h"

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

enum { PART_LINES, PARTS, LINE_BITS, TOGETHER }; /* its fields */
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

/* The first of its lines if they lie together, one behind the other: in a block of as many as a
 * key has.  Their marks are those of the parts. */
static inline uint64_t blocked_block_offset(struct keyhash key, uint64_t blocks,
                                            uint64_t block_lines)
{
    return scale64(key.place, blocks) * block_lines * LINE_NBYTES;
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

/* Four slots of up to 32 bits.  It may reach 8 bytes beyond the last bucket:
 * the body has room. */
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

/* Sets the slots of an empty bucket, of up to 16 bits each. */
static inline void cuckoo_fill_bucket(uint8_t *body, uint64_t bucket, unsigned width,
                                      uint64_t slots)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    uint8_t *at = body + (bit >> 3);
    store64(at, load64(at) | slots << (bit & 7));
}

/* For one thread; of up to 16 bits, without touching what lies behind a bucket of 64. */
static inline void cuckoo_set_narrow_slot(uint8_t *body, uint64_t bucket, unsigned slot,
                                          unsigned width, uint32_t fingerprint)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    uint8_t *at = body + (bit >> 3);
    unsigned shift = (unsigned)(bit & 7) + slot * width;
    uint64_t mask = ((UINT64_C(1) << width) - 1) << shift;
    store64(at, (load64(at) & ~mask) | (uint64_t)fingerprint << shift);
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

/* ---- elastic ----------------------------------------------------------------------- */

enum { SLOT_BITS, FPR_UNTIL, SEGMENTS }; /* its fields */
enum {
    SLOT_MIN = 12,
    SLOT_MAX = 32,
    TAIL_BITS = 6,
    BASES = 16,
    SEGMENT_BUCKETS = 512,
    SEGMENT_SLOTS = SEGMENT_BUCKETS * BUCKET_SLOTS,
    DEPTH_MAX = 31,
};

/* Where a key lies.  Its place chooses the base, and within a segment the bucket; of its mark
 * the first bits choose the segment, and those that follow are stored.
 *
 * Base i has the share (2^((i+1)/16) - 2^(i/16)) of all keys, so that no two bases fill their
 * segments at the same time: these are the lower ends, in units of 2^-32. */
static const uint64_t elastic_bounds[BASES + 1] = {
    0x00000000, 0x0b5586cf, 0x172b83c7, 0x2387a6e7, 0x306fe0a3,  0x3dea64c1,
    0x4bfdad53, 0x5ab07dd4, 0x6a09e667, 0x7a11473e, 0x8ace5422,  0x9c49182a,
    0xae89f995, 0xc199bdd8, 0xd5818dcf, 0xea4afa2a, 0x100000000,
};

static inline unsigned elastic_base(uint64_t place)
{
    /* of each 32nd of the range, the base that its lower end belongs to: one more at most */
    static const uint8_t guess[32] = { 0,  0,  1,  2,  2,  3,  3,  4,  5,  5,  6,
                                       6,  7,  7,  8,  8,  9,  9,  10, 10, 11, 11,
                                       12, 12, 12, 13, 13, 14, 14, 14, 15, 15 };
    unsigned base = guess[place >> 59];
    return base + (place >> 32 >= elastic_bounds[base + 1]);
}

static inline uint64_t elastic_bucket(uint64_t place)
{
    return place % SEGMENT_BUCKETS;
}

static inline uint32_t elastic_tail(uint64_t place)
{
    return (uint32_t)(place / SEGMENT_BUCKETS) % (1U << TAIL_BITS);
}

/* The other bucket of a tail that lies in 'bucket': as cuckoo_other_bucket() has it, whose sums
 * for so many buckets these are. */
static inline uint64_t elastic_other_bucket(uint64_t bucket, uint32_t tail)
{
    static const uint16_t sums[1U << TAIL_BITS] = {
        /* clang-format off */
          1, 183,  97,  43, 267,  27, 331,   9,  95,  27,  53, 131, 489, 177,  17, 433,
         17,  21, 297, 121, 179,   5, 507, 381,  25, 439, 355, 107, 373, 479, 353, 337,
        373,  19, 289, 295, 155, 327, 489, 109, 431,  55, 255, 487, 327, 165, 249,  21,
        391, 461, 367, 277, 269,  29, 457, 337, 307, 371, 179, 199,  21, 433, 161, 335,
        /* clang-format on */
    };
    return (sums[tail] - bucket) % SEGMENT_BUCKETS;
}

/* The bits of a slot below the tail: head bits, a one, and zeros. */
static inline unsigned elastic_field_bits(unsigned slot_bits)
{
    return slot_bits - TAIL_BITS;
}

/* What a key would have in a slot of a segment at this depth: all the head bits there are. */
static inline uint32_t elastic_entry(struct keyhash key, unsigned depth, unsigned slot_bits)
{
    unsigned field_bits = elastic_field_bits(slot_bits);
    uint32_t head = (uint32_t)(key.mark << depth >> (65 - field_bits));
    return elastic_tail(key.place) << field_bits | head << 1 | 1;
}

/* Whether an entry (0: none) can be that of a key which would have 'full': the tails are the
 * same, and the head bits as far as the entry has any. */
static inline bool elastic_matches(uint32_t entry, uint32_t full)
{
    return (entry ^ full) < 2 * (entry & -entry);
}

/* Of one base: which segment the next 'depth' bits of a mark lead to.  An entry is the address
 * of the segment, which is a multiple of 64, and the segment's own depth. */
struct directory {
    unsigned depth;
    unsigned room; /* the depth that there is memory for */
    uint8_t *entry[];
};

static inline uint64_t directory_index(uint64_t mark, unsigned depth)
{
    return mark >> 1 >> (63 - depth);
}

/* Tells the versions of one segment's buckets from another's. */
static inline uint64_t segment_salt(const uint8_t *segment)
{
    return (uint64_t)((uintptr_t)segment * (uintptr_t)ODD_GOLDEN >> 32);
}

static inline unsigned directory_depth(const uint8_t *entry)
{
    return (unsigned)((uintptr_t)entry % LINE_NBYTES);
}

static inline uint8_t *directory_segment(uint8_t *entry)
{
    return entry - directory_depth(entry);
}

#endif
