/* bucket_pair.h - whether an entry is in one of its two buckets: for the loops. */
#ifndef BUCKET_PAIR_H
#define BUCKET_PAIR_H

#include "buckets.h"

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
    struct entry e = cuckoo_entry(key, nbuckets, width);
    prefetch_bucket(body, e.first, width);
    prefetch_bucket(body, e.second, width);
}

/* The four lanes of a bucket at once: nonzero if one of them equals the fingerprint, which
 * 'copies' holds in each lane.  Bits above the lanes only borrow upwards. */
static inline uint64_t lanes_match(uint64_t bucket, uint64_t copies, uint64_t ones,
                                   unsigned width)
{
    uint64_t difference = bucket ^ copies;
    return (difference - ones) & ~difference & (ones << (width - 1));
}

static ALWAYS_INLINE bool narrow_has(const uint8_t *body, unsigned width, struct entry e)
{
    uint64_t ones = cuckoo_lanes(width), copies = e.fingerprint * ones;
    return (lanes_match(cuckoo_load_bucket(body, e.first, width), copies, ones, width) |
            lanes_match(cuckoo_load_bucket(body, e.second, width), copies, ones, width)) != 0;
}

static ALWAYS_INLINE unsigned __int128 wide_lanes_match(unsigned __int128 bucket,
                                                        unsigned __int128 copies,
                                                        unsigned __int128 ones, unsigned width)
{
    unsigned __int128 difference = bucket ^ copies;
    return (difference - ones) & ~difference & (ones << (width - 1));
}

static ALWAYS_INLINE bool wide_has(const uint8_t *body, unsigned width, struct entry e)
{
    unsigned __int128 one = 1;
    unsigned __int128 ones = one | one << width | one << 2 * width | one << 3 * width;
    unsigned __int128 copies = e.fingerprint * ones;
    unsigned __int128 there = cuckoo_load_wide_bucket(body, e.first, width);
    unsigned __int128 other = cuckoo_load_wide_bucket(body, e.second, width);
    return (wide_lanes_match(there, copies, ones, width) |
            wide_lanes_match(other, copies, ones, width)) != 0;
}

static ALWAYS_INLINE bool bucket_pair_has(const uint8_t *body, unsigned width, struct entry e)
{
    return width <= NARROW_MAX ? narrow_has(body, width, e) : wide_has(body, width, e);
}

/* Beside writers: what was not found may have been moved meanwhile; then the version of the two
 * buckets has changed. */
static ALWAYS_INLINE bool has_beside(const uint8_t *body, unsigned width, struct entry e,
                                     const uint32_t *versions)
{
    const uint32_t *version = &versions[cuckoo_version(e.first, e.second)];
    uint32_t before;
    do {
        before = __atomic_load_n(version, __ATOMIC_ACQUIRE);
        if (bucket_pair_has(body, width, e))
            return true;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(version, __ATOMIC_RELAXED) != before);
    return false;
}

#endif
