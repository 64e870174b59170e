/* buckets.h - a table of buckets of 4 slots, in which an entry may lie in two of them: what
 * cuckoo filters of every kind share. */
#ifndef BUCKETS_H
#define BUCKETS_H

#include "../kernels/layout.h"

/* How many buckets a search for room looks at, at most. */
enum { SEARCH_MOST = 1024 };

/* What the operations work on, taken apart once per call. */
struct table {
    uint8_t *body;
    uint64_t nbuckets;
    unsigned width;      /* bits a slot */
    unsigned tail_shift; /* what an entry has above these bits gives its other bucket */
    unsigned search_most;
    uint64_t ones;      /* a one in each of four lanes of up to 16 bits */
    bool straddles;     /* a bucket may lie in two cache lines */
    uint32_t *versions; /* CUCKOO_VERSIONS for those who ask meanwhile; NULL: one thread */
    uint64_t salt;      /* tells apart tables with the same versions */
    uint8_t *locks;     /* a power of two; NULL: nobody else writes */
    uint64_t lock_mask;
};

/* For one thread; to be shared, set versions and locks. */
struct table table_make(uint8_t *body, uint64_t nbuckets, unsigned width, unsigned tail_shift);

/* Where an entry may lie. */
struct pair {
    uint64_t first;
    uint64_t second;
};

uint32_t table_get(const struct table *t, uint64_t bucket, unsigned slot);
void table_get_all(const struct table *t, uint64_t bucket, uint32_t entry[BUCKET_SLOTS]);

/* The first slot that holds the entry (0: that is empty), or BUCKET_SLOTS. */
unsigned table_find(const struct table *t, uint64_t bucket, uint32_t entry);

/* Clears a slot of one of the two buckets of its entry. */
void table_clear(const struct table *t, uint64_t bucket, unsigned slot, uint64_t other);

/* Puts an entry into the emptier of its buckets.  false: both are full. */
bool table_put(const struct table *t, const struct pair *pair, uint32_t entry);

/* Moves entries to their other buckets, so that one of the pair gets a free slot (which another
 * thread may then take).  false: there is no way; nothing was changed. */
bool table_make_room(const struct table *t, const struct pair *pair);

/* The other bucket of an entry (in an empty slot's place: any). */
static inline uint64_t table_other(const struct table *t, uint64_t bucket, uint32_t entry)
{
    if (t->tail_shift) /* of a segment */
        return elastic_other_bucket(bucket, entry >> t->tail_shift);
    return cuckoo_other_bucket(bucket, entry, t->nbuckets);
}

/* Of an entry that lies in one of the two buckets: the same from both. */
static inline uint32_t *table_version(const struct table *t, uint64_t a, uint64_t b)
{
    return &t->versions[cuckoo_version(a, b + t->salt)];
}

static inline uint8_t *table_lock_of(const struct table *t, uint64_t bucket)
{
    return &t->locks[bucket & t->lock_mask];
}

/* In the order of the locks, so that no two writers wait for each other. */
void table_lock(const struct table *t, uint64_t a, uint64_t b);
void table_unlock(const struct table *t, uint64_t a, uint64_t b);

/* What a writer will need.  A bucket may straddle two cache lines, unless it divides one. */
static ALWAYS_INLINE void table_prefetch(const struct table *t, uint64_t bucket)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * t->width);
    __builtin_prefetch(t->body + (bit >> 3), 1, 3);
    if (t->straddles)
        __builtin_prefetch(t->body + ((bit + BUCKET_SLOTS * t->width - 1) >> 3), 1, 3);
    if (t->locks)
        __builtin_prefetch(table_lock_of(t, bucket), 1, 3);
}

#endif
