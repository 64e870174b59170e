/* bucket_pair.h - looks for an entry in its two buckets, and adds one: for the loops of cuckoo
 * and elastic filters. */
#ifndef BUCKET_PAIR_H
#define BUCKET_PAIR_H

#include "buckets.h"

#if defined(__x86_64__)
/* How to spread four slots of 17 to 32 bits to 64 bits each: which bytes each slot lies in (for
 * a byte shuffle; -1 gives a zero), and by how many bits to shift these right.  The second row
 * of a width is for buckets that begin in the middle of a byte. */
struct spreading {
    int8_t byte[32];
    uint64_t bit[4];
};
extern const struct spreading spreadings[WIDTH_MAX - NARROW_MAX][2];
#endif

/* Prefetches the first and the last byte of a bucket: it may straddle two cache lines, unless
 * its size divides that of a line.  Loops for any width do not check that: it would take more
 * than the prefetch. */
static ALWAYS_INLINE void prefetch_bucket(const uint8_t *body, uint64_t bucket, unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    PREFETCH(body + bucket_byte(bucket, width));
    if (!__builtin_constant_p(width) || 8 * LINE_NBYTES % (BUCKET_SLOTS * width) != 0)
        PREFETCH(body + ((bit + BUCKET_SLOTS * width - 1) >> 3));
}

static ALWAYS_INLINE void prefetch_buckets(const uint8_t *body, uint64_t nbuckets,
                                           unsigned width, struct keyhash key)
{
    struct entry e = cuckoo_entry(key, nbuckets, width);
    prefetch_bucket(body, e.first, width);
    prefetch_bucket(body, e.second, width);
}

/* Compares the four lanes of a bucket with a fingerprint at once.  'copies' holds the
 * fingerprint in each lane, 'ones' a one.  Returns nonzero if at least one lane equals it: a
 * zero lane of the difference is one whose top bit a subtraction of one sets.  Bits above the
 * lanes may be anything, since a subtraction borrows upwards only. */
static inline uint64_t lanes_match(uint64_t bucket, uint64_t copies, uint64_t ones,
                                   unsigned width)
{
    uint64_t difference = bucket ^ copies;
    return (difference - ones) & ~difference & (ones << (width - 1));
}

/* For slots of up to 16 bits: a bucket is one word of 64 bits. */
static ALWAYS_INLINE bool narrow_has(const uint8_t *body, unsigned width, struct entry e)
{
    uint64_t ones = cuckoo_lanes(width), copies = e.fingerprint * ones;
    return (lanes_match(cuckoo_load_bucket(body, e.first, width), copies, ones, width) |
            lanes_match(cuckoo_load_bucket(body, e.second, width), copies, ones, width)) != 0;
}

/* The same for slots of 17 to 32 bits: a bucket is one word of 128 bits. */
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

/* Returns whether the fingerprint of an entry lies in one of its two buckets. */
static ALWAYS_INLINE bool bucket_pair_has(const uint8_t *body, unsigned width, struct entry e)
{
    return width <= NARROW_MAX ? narrow_has(body, width, e) : wide_has(body, width, e);
}

/* The same while other threads write.  An entry that was not found may have moved between the
 * two buckets meanwhile.  Then the version of the pair has changed, and the reader looks again;
 * it never waits for a lock. */
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

/* ---- Adding while no other thread writes ------------------------------------------------- */

/* Returns the top bit of the first empty lane of a bucket; 0 if the bucket is full. */
static ALWAYS_INLINE uint64_t narrow_free(const uint8_t *body, uint64_t bucket, unsigned width)
{
    uint64_t slots = cuckoo_load_bucket(body, bucket, width);
    uint64_t empty = lanes_match(slots, 0, cuckoo_lanes(width), width);
    return empty & -empty;
}

/* Puts an entry into the emptier of its two buckets, as table_put() does, with slots of up to
 * 16 bits.  There is no branch on which bucket is the emptier. */
static ALWAYS_INLINE bool narrow_put(uint8_t *body, unsigned width, struct entry e)
{
    uint64_t in_first = narrow_free(body, e.first, width);
    uint64_t in_second = narrow_free(body, e.second, width);
    if (!(in_first | in_second))
        return false;
    bool to_first = in_first - 1 <= in_second - 1; /* 0 becomes the largest number */
    uint64_t lane = to_first ? in_first : in_second;
    uint64_t bucket = to_first ? e.first : e.second, bit = bucket * (BUCKET_SLOTS * width);
    uint8_t *at = body + bucket_byte(bucket, width);
    store64(at, load64(at) | e.fingerprint * (lane >> (width - 1)) << (bit & 7));
    return true;
}

#endif
