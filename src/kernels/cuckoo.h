/* cuckoo.h - the loops that ask cuckoo filters, for any instruction set. */
#ifndef KERNELS_CUCKOO_H
#define KERNELS_CUCKOO_H

#include "layout.h"

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

static void cuckoo_prefetch(const uint8_t *body, const uint64_t *field,
                            const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_buckets(body, field[NBUCKETS], (unsigned)field[WIDTH], keys[i]);
}

/* The four lanes of a bucket at once: nonzero if one of them equals the fingerprint, which
 * 'copies' holds in each lane.  Bits above the lanes only borrow upwards. */
static inline uint64_t lanes_match(uint64_t bucket, uint64_t copies, uint64_t ones,
                                   unsigned width)
{
    uint64_t difference = bucket ^ copies;
    return (difference - ones) & ~difference & (ones << (width - 1));
}

static ALWAYS_INLINE bool narrow_has(const uint8_t *body, uint64_t nbuckets, unsigned width,
                                     struct keyhash key)
{
    uint64_t ones = cuckoo_lanes(width);
    uint32_t fingerprint = cuckoo_fingerprint(key.mark, width);
    uint64_t first = scale64(key.place, nbuckets);
    uint64_t second = cuckoo_other_bucket(first, fingerprint, nbuckets);
    uint64_t copies = fingerprint * ones;
    return (lanes_match(cuckoo_load_bucket(body, first, width), copies, ones, width) |
            lanes_match(cuckoo_load_bucket(body, second, width), copies, ones, width)) != 0;
}

static ALWAYS_INLINE unsigned __int128 wide_lanes_match(unsigned __int128 bucket,
                                                        unsigned __int128 copies,
                                                        unsigned __int128 ones, unsigned width)
{
    unsigned __int128 difference = bucket ^ copies;
    return (difference - ones) & ~difference & (ones << (width - 1));
}

static ALWAYS_INLINE bool wide_has(const uint8_t *body, uint64_t nbuckets, unsigned width,
                                   struct keyhash key)
{
    unsigned __int128 one = 1;
    unsigned __int128 ones = one | one << width | one << 2 * width | one << 3 * width;
    uint32_t fingerprint = cuckoo_fingerprint(key.mark, width);
    uint64_t first = scale64(key.place, nbuckets);
    uint64_t second = cuckoo_other_bucket(first, fingerprint, nbuckets);
    unsigned __int128 copies = fingerprint * ones;
    unsigned __int128 there = cuckoo_load_wide_bucket(body, first, width);
    unsigned __int128 other = cuckoo_load_wide_bucket(body, second, width);
    return (wide_lanes_match(there, copies, ones, width) |
            wide_lanes_match(other, copies, ones, width)) != 0;
}

/* 'has' is narrow_has or wide_has, and is inlined. */
static ALWAYS_INLINE size_t contains_at_width(
    const uint8_t *body, uint64_t nbuckets, unsigned width, const struct keyhash *keys,
    const struct keyhash *ahead, size_t n, bool *answer,
    bool (*has)(const uint8_t *body, uint64_t nbuckets, unsigned width, struct keyhash key))
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_buckets(body, nbuckets, width, ahead[i]);
        answer[i] = has(body, nbuckets, width, keys[i]);
        found += answer[i];
    }
    return found;
}

static size_t cuckoo_contains(const uint8_t *body, const uint64_t *field,
                              const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                              bool *answer)
{
    uint64_t nbuckets = field[NBUCKETS], width = field[WIDTH];
#define IN_NARROW(w) contains_at_width(body, nbuckets, w, keys, ahead, n, answer, narrow_has)
#define IN_WIDE(w)                                                                             \
    contains_at_width(body, nbuckets, NARROW_MAX + (w), keys, ahead, n, answer, wide_has)
    if (width <= NARROW_MAX)
        RETURN_WITH_CONSTANT(width, IN_NARROW)
    RETURN_WITH_CONSTANT(width - NARROW_MAX, IN_WIDE)
}

static bool cuckoo_contains_one(const uint8_t *body, const uint64_t *field, struct keyhash key)
{
    unsigned width = (unsigned)field[WIDTH];
    return width <= NARROW_MAX ? narrow_has(body, field[NBUCKETS], width, key)
                               : wide_has(body, field[NBUCKETS], width, key);
}

#define CUCKOO_LOOPS                                                                           \
    {                                                                                          \
        .prefetch = cuckoo_prefetch, .contains = cuckoo_contains,                              \
        .contains_one = cuckoo_contains_one,                                                   \
    }

#endif
