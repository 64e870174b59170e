/* owners.h - many writers on one body, where each region has one owner at a time.
 *
 * A body is divided into regions, each with a lock.  A writer sorts a batch of keys by region.
 * Then it adds the keys of one region after the other, and holds the lock of the region
 * meanwhile, so it can write as if it were alone.  So it takes one lock for a dozen keys or
 * more.  An atomic operation for every bit would make adds three times slower, and a lock for
 * every line would travel between the caches of the cores most of the time.
 *
 * Keys that come one by one are counted by region, under its lock, and not by a counter that
 * all threads would write: owners_settle() adds up what is counted so.
 *
 * A thread that has added the last batches without company takes all regions at once, and adds
 * its next batch without sorting it. */
#ifndef OWNERS_H
#define OWNERS_H

#include "../../base/bytes.h"
#include "../../base/compiler.h"
#include "../../base/locks.h"
#include "../../filter/counters.h"

enum { REGIONS = 32 };

/* A region counts up to so many keys on its own.  All of them together are fewer than half of
 * SHARED_MARGIN, so that no limit is passed. */
enum { APART_MOST = 32 };
_Static_assert(REGIONS *APART_MOST <= SHARED_MARGIN / 2, "what is counted apart");

/* What is written at different times lies in different cache lines. */
struct owners {
    uint64_t factor; /* scale64(place, factor) is the region of a place */
    uint8_t all;     /* a lock: all regions have one owner */
    uint8_t room_after_all[55];
    uintptr_t latest; /* the thread that began the latest batch */
    unsigned batches; /* how many it began, one after the other; a guess is good enough */
    uint8_t room_after_batches[52];
    struct {
        uint8_t lock;
        uint8_t apart; /* keys that it has counted, and the common counter has not */
        uint8_t room[62];
    } region[REGIONS];
};

/* Divides a body of so many places (lines, or bytes) into regions of the same size. */
void owners_divide(struct owners *owners, uint64_t places);

/* Returns the region of a place. */
static inline uint64_t owners_region(const struct owners *owners, uint64_t place)
{
    return scale64(place, owners->factor);
}

/* Takes the lock of a region if it is free and nobody has all regions.  Returns whether it did.
 * Who takes a region looks afterwards whether somebody has all, and who takes all looks
 * afterwards at each region, both in one total order (__ATOMIC_SEQ_CST).  So at least one of
 * two sees the other. */
static inline bool owners_try(struct owners *owners, uint64_t region)
{
    uint8_t *lock = &owners->region[region].lock;
    if (!lock_try(lock))
        return false;
    if (LIKELY(!__atomic_load_n(&owners->all, __ATOMIC_SEQ_CST)))
        return true;
    lock_release(lock);
    __atomic_store_n(&owners->batches, 0, __ATOMIC_RELAXED); /* the other one has company */
    return false;
}

/* Waits for the lock of a region, and takes it.  owners_wait() is for the rare case, and not
 * inlined. */
void owners_wait(struct owners *owners, uint64_t region);
static inline void owners_take(struct owners *owners, uint64_t region)
{
    if (!owners_try(owners, region))
        owners_wait(owners, region);
}

static inline void owners_release(struct owners *owners, uint64_t region)
{
    lock_release(&owners->region[region].lock);
}

/* Counts a key in a region, whose lock is held.  The common counter, or NULL if the key has
 * been counted, gets to know it later. */
static inline void owners_count(struct owners *owners, uint64_t region, uint64_t *count)
{
    uint8_t *apart = &owners->region[region].apart;
    if (!count)
        return;
    const uint8_t keys = (uint8_t)(__atomic_load_n(apart, __ATOMIC_RELAXED) + 1);
    if (keys == APART_MOST)
        __atomic_fetch_add(count, APART_MOST, __ATOMIC_RELAXED);
    __atomic_store_n(apart, keys % APART_MOST, __ATOMIC_RELAXED);
}

/* Adds to the common counter what the regions have counted.  Is 'settle' of a kind. */
void owners_settle(const perhaps_filter *f);

/* Adds a batch of n keys by add() of the loops, if no other thread seems to be adding.  Returns
 * false if it did nothing. */
bool owners_add_alone(perhaps_filter *f, const struct keyhash *keys, size_t n, bool *answer);

/* What a key sets in one place. */
struct found {
    uint64_t offset; /* where in the body its line or byte begins */
    uint64_t mark; /* what to set there.  Its lowest bits tell which key of the batch it is. */
};

enum { FOUND_INDEX = BATCH_MOST - 1 };
_Static_assert((BATCH_MOST & FOUND_INDEX) == 0, "a mask for all indices");

/* Sets all that was found, in its order.  The caller owns the region.  If something was not set
 * before, the answer for its key becomes false. */
typedef void found_adder(const struct body *b, const struct found *found, size_t n,
                         bool *answer);

/* What waits to be set, sorted by region.  512 keys with a line each are 16 a region on the
 * average; more than WAITING_MOST would make the stack frame larger than 16 KiB. */
enum { WAITING_MOST = 28 };

struct waiting {
    struct owners *owners;
    const struct body *body;
    found_adder *add;
    bool *answer;
    struct found *next[REGIONS]; /* the first free element of found[region] */
    struct found *end[REGIONS];  /* the end of found[region] */
    struct found found[REGIONS][WAITING_MOST];
};

/* Begins to sort a batch of n keys, at most BATCH_MOST: sets all answers to true. */
void waiting_begin(struct waiting *w, perhaps_filter *f, found_adder *add, size_t n,
                   bool *answer);

/* Waits for the lock of a region, and adds what waits for it. */
void waiting_flush(struct waiting *w, uint64_t region);

/* Ends a batch: adds all that waits. */
void waiting_end(struct waiting *w);

/* Lets something wait for the lock of its region.  If too much waits, it is added now. */
static ALWAYS_INLINE void waiting_put(struct waiting *w, uint64_t region, struct found found)
{
    struct found *at = w->next[region];
    *at++ = found;
    w->next[region] = at;
    if (at == w->end[region])
        waiting_flush(w, region);
}

#endif
