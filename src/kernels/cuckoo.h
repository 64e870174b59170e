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
    struct entry e = cuckoo_entry(key, nbuckets, width);
    prefetch_bucket(body, e.first, width);
    prefetch_bucket(body, e.second, width);
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

/* 'versions' is NULL where nobody writes. */
static ALWAYS_INLINE size_t contains_at_width(const uint8_t *body, uint64_t nbuckets,
                                              unsigned width, const uint32_t *versions,
                                              const struct keyhash *keys,
                                              const struct keyhash *ahead, size_t n,
                                              bool *answer)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_buckets(body, nbuckets, width, ahead[i]);
        struct entry e = cuckoo_entry(keys[i], nbuckets, width);
        answer[i] =
            versions ? has_beside(body, width, e, versions) : bucket_pair_has(body, width, e);
        found += answer[i];
    }
    return found;
}

static ALWAYS_INLINE size_t contains_at_any_width(const uint8_t *body, const uint64_t *field,
                                                  const uint32_t *versions,
                                                  const struct keyhash *keys,
                                                  const struct keyhash *ahead, size_t n,
                                                  bool *answer)
{
    uint64_t nbuckets = field[NBUCKETS], width = field[WIDTH];
#define IN_NARROW(w) contains_at_width(body, nbuckets, w, versions, keys, ahead, n, answer)
#define IN_WIDE(w)   IN_NARROW(NARROW_MAX + (w))
    if (width <= NARROW_MAX)
        RETURN_WITH_CONSTANT(width, IN_NARROW)
    RETURN_WITH_CONSTANT(width - NARROW_MAX, IN_WIDE)
}

static size_t cuckoo_contains(const uint8_t *body, const uint64_t *field,
                              const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                              bool *answer)
{
    return contains_at_any_width(body, field, NULL, keys, ahead, n, answer);
}

static size_t cuckoo_contains_beside(const uint8_t *body, const uint64_t *field,
                                     const uint32_t *versions, const struct keyhash *keys,
                                     const struct keyhash *ahead, size_t n, bool *answer)
{
    return contains_at_any_width(body, field, versions, keys, ahead, n, answer);
}

static bool cuckoo_contains_one(const uint8_t *body, const uint64_t *field, struct keyhash key)
{
    unsigned width = (unsigned)field[WIDTH];
    return bucket_pair_has(body, width, cuckoo_entry(key, field[NBUCKETS], width));
}

#define CUCKOO_LOOPS                                                                           \
    {                                                                                          \
        .prefetch = cuckoo_prefetch, .contains = cuckoo_contains,                              \
        .contains_one = cuckoo_contains_one,                                                   \
    }

#endif
