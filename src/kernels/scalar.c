/* scalar.c - the kernels in plain C: the reference that all others must equal. */
#include "layout.h"

#define PREFETCH(address) __builtin_prefetch((address), 0, 3)

/* Functions that only prefetch must be inlined by force: gcc takes them for pure functions
 * whose result nobody uses, and drops the call. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Calls with a constant unroll the walk over a key's bits, and turn shifts by a variable into
 * shifts by a number: a third faster. */
/* clang-format off */
#define CALL_WITH_CONSTANT(n, call)                                              \
    switch (n) {                                                                 \
    case  1: return call( 1); case  2: return call( 2); case  3: return call( 3); \
    case  4: return call( 4); case  5: return call( 5); case  6: return call( 6); \
    case  7: return call( 7); case  8: return call( 8); case  9: return call( 9); \
    case 10: return call(10); case 11: return call(11); case 12: return call(12); \
    case 13: return call(13); case 14: return call(14); case 15: return call(15); \
    default: return call(16);                                                    \
    }
/* clang-format on */

/* ---- blocked ----------------------------------------------------------------------- */

static ALWAYS_INLINE void prefetch_lines(const uint8_t *body, uint64_t part_lines,
                                         unsigned parts, struct keyhash key)
{
    for (unsigned part = 0; part < parts; part++) {
        PREFETCH(body + blocked_line_offset(key, part_lines));
        body += part_lines * LINE_NBYTES;
        key = blocked_next_part(key);
    }
}

/* Looks at every bit, with no branch to mispredict.  Returns how many are not set.  The
 * comparison lets gcc set the bit by one instruction (bts), where a shift by a variable takes
 * three: a fifth faster. */
static inline uint32_t line_misses(const uint8_t *line, uint64_t mark, unsigned bits)
{
    struct blocked_walk walk = blocked_walk_start(mark);
    uint32_t misses = 0;
    for (unsigned i = 0; i < bits; i++) {
        uint32_t word = load32(line + sizeof(uint32_t) * walk.word);
        misses += (word | UINT32_C(1) << blocked_bit(walk.factor, i)) > word;
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return misses;
}

/* Returns how many bits were not set before. */
static inline uint32_t line_set(uint8_t *line, uint64_t mark, unsigned bits)
{
    struct blocked_walk walk = blocked_walk_start(mark);
    uint32_t misses = 0;
    for (unsigned i = 0; i < bits; i++) {
        uint8_t *at = line + sizeof(uint32_t) * walk.word;
        uint32_t word = load32(at);
        uint32_t with = word | UINT32_C(1) << blocked_bit(walk.factor, i);
        misses += with > word;
        store32(at, with);
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return misses;
}

static void blocked_prefetch(const uint8_t *body, uint64_t part_lines, unsigned parts,
                             const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_lines(body, part_lines, parts, keys[i]);
}

static ALWAYS_INLINE size_t contains_in_parts(const uint8_t *body, uint64_t part_lines,
                                              unsigned parts, unsigned bits,
                                              const struct keyhash *keys,
                                              const struct keyhash *ahead, size_t n,
                                              bool *answer)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, part_lines, parts, ahead[i]);
        struct keyhash key = keys[i];
        const uint8_t *part_body = body;
        uint32_t misses = 0;
        for (unsigned part = 0; part < parts; part++) {
            misses |=
                line_misses(part_body + blocked_line_offset(key, part_lines), key.mark, bits);
            part_body += part_lines * LINE_NBYTES;
            key = blocked_next_part(key);
        }
        answer[i] = !misses;
        found += !misses;
    }
    return found;
}

static size_t blocked_contains(const uint8_t *body, uint64_t part_lines, unsigned parts,
                               unsigned bits, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer)
{
#define IN_ONE(b)   contains_in_parts(body, part_lines, 1, b, keys, ahead, n, answer)
#define IN_PARTS(b) contains_in_parts(body, part_lines, parts, b, keys, ahead, n, answer)
    if (parts == 1)
        CALL_WITH_CONSTANT(bits, IN_ONE)
    CALL_WITH_CONSTANT(bits, IN_PARTS)
}

static ALWAYS_INLINE size_t add_in_parts(uint8_t *body, uint64_t part_lines, unsigned parts,
                                         unsigned bits, const struct keyhash *keys,
                                         const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t fresh = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, part_lines, parts, ahead[i]);
        struct keyhash key = keys[i];
        uint8_t *part_body = body;
        uint32_t misses = 0;
        for (unsigned part = 0; part < parts; part++) {
            misses |=
                line_set(part_body + blocked_line_offset(key, part_lines), key.mark, bits);
            part_body += part_lines * LINE_NBYTES;
            key = blocked_next_part(key);
        }
        answer[i] = !misses;
        fresh += misses != 0;
    }
    return fresh;
}

static size_t blocked_add(uint8_t *body, uint64_t part_lines, unsigned parts, unsigned bits,
                          const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                          bool *answer)
{
#define TO_ONE(b)   add_in_parts(body, part_lines, 1, b, keys, ahead, n, answer)
#define TO_PARTS(b) add_in_parts(body, part_lines, parts, b, keys, ahead, n, answer)
    if (parts == 1)
        CALL_WITH_CONSTANT(bits, TO_ONE)
    CALL_WITH_CONSTANT(bits, TO_PARTS)
}

/* ---- bloom ------------------------------------------------------------------------- */

static ALWAYS_INLINE void prefetch_bits(const uint8_t *body, uint64_t nbits, unsigned bits,
                                        struct keyhash key)
{
    for (unsigned i = 0; i < bits; i++) {
        PREFETCH(body + (scale64(key.place, nbits) >> 3));
        key.place = bloom_next_place(key.place, key.mark);
    }
}

static void bloom_prefetch(const uint8_t *body, uint64_t nbits, unsigned bits,
                           const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_bits(body, nbits, bits, keys[i]);
}

static size_t bloom_contains(const uint8_t *body, uint64_t nbits, unsigned bits,
                             const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                             bool *answer)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_bits(body, nbits, bits, ahead[i]);
        uint64_t place = keys[i].place;
        unsigned hits = 0;
        for (unsigned b = 0; b < bits; b++) {
            uint64_t bit = scale64(place, nbits);
            hits += (unsigned)body[bit >> 3] >> (bit & 7) & 1;
            place = bloom_next_place(place, keys[i].mark);
        }
        answer[i] = hits == bits;
        found += hits == bits;
    }
    return found;
}

static size_t bloom_add(uint8_t *body, uint64_t nbits, unsigned bits,
                        const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                        bool *answer)
{
    size_t fresh = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_bits(body, nbits, bits, ahead[i]);
        uint64_t place = keys[i].place;
        unsigned misses = 0;
        for (unsigned b = 0; b < bits; b++) {
            uint64_t bit = scale64(place, nbits);
            unsigned byte = body[bit >> 3];
            unsigned mask = 1U << (bit & 7);
            misses |= ~byte & mask;
            body[bit >> 3] = (uint8_t)(byte | mask);
            place = bloom_next_place(place, keys[i].mark);
        }
        answer[i] = !misses;
        fresh += misses != 0;
    }
    return fresh;
}

/* ---- cuckoo ------------------------------------------------------------------------ */

/* A bucket may straddle two cache lines, unless it divides one: both its first and its last
 * byte are fetched. */
static ALWAYS_INLINE void prefetch_bucket(const uint8_t *body, uint64_t bucket, unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    PREFETCH(body + (bit >> 3));
    if (8 * LINE_NBYTES % (BUCKET_SLOTS * width) != 0)
        PREFETCH(body + ((bit + BUCKET_SLOTS * width - 1) >> 3));
}

static ALWAYS_INLINE void prefetch_buckets(const uint8_t *body, uint64_t nbuckets,
                                           unsigned width, struct keyhash key)
{
    uint32_t fingerprint = cuckoo_fingerprint(key.mark, width);
    uint64_t bucket = scale64(key.place, nbuckets);
    prefetch_bucket(body, bucket, width);
    prefetch_bucket(body, cuckoo_other_bucket(bucket, fingerprint, nbuckets), width);
}

static void cuckoo_prefetch(const uint8_t *body, uint64_t nbuckets, unsigned width,
                            const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_buckets(body, nbuckets, width, keys[i]);
}

/* The four lanes of a bucket at once: nonzero if one of them equals the fingerprint, which
 * 'copies' holds in each lane.  Bits above the lanes only borrow upwards. */
static inline uint64_t lanes_match(uint64_t bucket, uint64_t copies, uint64_t ones,
                                   unsigned width)
{
    uint64_t difference = bucket ^ copies;
    return (difference - ones) & ~difference & (ones << (width - 1));
}

static ALWAYS_INLINE size_t contains_narrow(const uint8_t *body, uint64_t nbuckets,
                                            unsigned width, const struct keyhash *keys,
                                            const struct keyhash *ahead, size_t n, bool *answer)
{
    uint64_t ones = cuckoo_lanes(width);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_buckets(body, nbuckets, width, ahead[i]);
        uint32_t fingerprint = cuckoo_fingerprint(keys[i].mark, width);
        uint64_t first = scale64(keys[i].place, nbuckets);
        uint64_t second = cuckoo_other_bucket(first, fingerprint, nbuckets);
        uint64_t copies = fingerprint * ones;
        bool here =
            (lanes_match(cuckoo_load_bucket(body, first, width), copies, ones, width) |
             lanes_match(cuckoo_load_bucket(body, second, width), copies, ones, width)) != 0;
        answer[i] = here;
        found += here;
    }
    return found;
}

static ALWAYS_INLINE unsigned __int128 wide_lanes_match(unsigned __int128 bucket,
                                                        unsigned __int128 copies,
                                                        unsigned __int128 ones, unsigned width)
{
    unsigned __int128 difference = bucket ^ copies;
    return (difference - ones) & ~difference & (ones << (width - 1));
}

static ALWAYS_INLINE size_t contains_wide(const uint8_t *body, uint64_t nbuckets,
                                          unsigned width, const struct keyhash *keys,
                                          const struct keyhash *ahead, size_t n, bool *answer)
{
    unsigned __int128 one = 1;
    unsigned __int128 ones = one | one << width | one << 2 * width | one << 3 * width;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_buckets(body, nbuckets, width, ahead[i]);
        uint32_t fingerprint = cuckoo_fingerprint(keys[i].mark, width);
        uint64_t first = scale64(keys[i].place, nbuckets);
        uint64_t second = cuckoo_other_bucket(first, fingerprint, nbuckets);
        unsigned __int128 copies = fingerprint * ones;
        unsigned __int128 there = cuckoo_load_wide_bucket(body, first, width);
        unsigned __int128 other = cuckoo_load_wide_bucket(body, second, width);
        bool here = (wide_lanes_match(there, copies, ones, width) |
                     wide_lanes_match(other, copies, ones, width)) != 0;
        answer[i] = here;
        found += here;
    }
    return found;
}

static size_t cuckoo_contains(const uint8_t *body, uint64_t nbuckets, unsigned width,
                              const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                              bool *answer)
{
#define IN_NARROW(w) contains_narrow(body, nbuckets, w, keys, ahead, n, answer)
#define IN_WIDE(w)   contains_wide(body, nbuckets, 16 + (w), keys, ahead, n, answer)
    if (width <= 16)
        CALL_WITH_CONSTANT(width, IN_NARROW)
    CALL_WITH_CONSTANT(width - 16, IN_WIDE)
}

const struct kernels kernels_scalar = {
    .name = "scalar",
    .blocked_prefetch = blocked_prefetch,
    .blocked_contains = blocked_contains,
    .blocked_add = blocked_add,
    .bloom_prefetch = bloom_prefetch,
    .bloom_contains = bloom_contains,
    .bloom_add = bloom_add,
    .cuckoo_prefetch = cuckoo_prefetch,
    .cuckoo_contains = cuckoo_contains,
};
