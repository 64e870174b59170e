/* counters.h - counting in a filter in which other threads may be counting, too.
 *
 * Only the number matters, not its order with other memory accesses, so relaxed atomics do.  A
 * filter that is not shared counts plainly and pays nothing. */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "filter.h"

static inline uint64_t counter_get(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static inline void counter_add(const perhaps_filter *f, uint64_t *counter, uint64_t n)
{
    if (f->shared)
        __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
    else
        *counter += n;
}

/* Subtracts n from a counter, or sets it to 0 if it is less: one from a file may be wrong. */
static inline void counter_take(const perhaps_filter *f, uint64_t *counter, uint64_t n)
{
    uint64_t now = counter_get(counter), then;
    if (n == 0)
        return;
    do
        then = now - (n < now ? n : now);
    while (f->shared && !__atomic_compare_exchange_n(counter, &now, then, true,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (!f->shared)
        *counter = then;
}

/* Counts what threads have counted apart.  To be called before the number of keys is read for
 * more than a look, or written. */
static inline void filter_settle(const perhaps_filter *f)
{
    if (f->body.writers && f->kind->settle)
        f->kind->settle(f);
}

/* ---- Room that is held ------------------------------------------------------------------- */

/* Within this many keys of the limit, keys are added to a shared filter one by one, under
 * f->limit_lock.  Up to half as many may be counted apart. */
enum { SHARED_MARGIN = 4 * BATCH_MOST };

/* Counts up to n keys before they are added, and returns how many it counted.  A filter that is
 * not shared counts as many as may be added without a look at its fpr.  A shared filter counts
 * all n if there is room for them and for 'margin' more; otherwise none. */
static inline size_t reserve_keys(perhaps_filter *f, size_t n, uint64_t margin)
{
    uint64_t *counter = &f->counters->keys;
    uint64_t limit = counter_get(&f->room_until), now = counter_get(counter);
    uint64_t room = now < limit ? limit - now : 0;
    if (!f->shared) {
        n = n < room ? n : (size_t)room;
        *counter = now + n;
        return n;
    }
    while (room >= n + margin) {
        if (__atomic_compare_exchange_n(counter, &now, now + n, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return n;
        room = now < limit ? limit - now : 0;
    }
    return 0;
}

/* To be called when keys were counted that other threads may have counted, too. */
static inline void note_count(perhaps_filter *f)
{
    if (f->shared && !__atomic_load_n(&f->keys_estimated, __ATOMIC_RELAXED) &&
        filter_counts_twice(f))
        __atomic_store_n(&f->keys_estimated, true, __ATOMIC_RELAXED);
}

/* Returns up to how many keys a key of a shared filter may be added without the limit lock. */
static inline uint64_t shared_room_until(const perhaps_filter *f)
{
    uint64_t until = counter_get(&f->room_until);
    return until > SHARED_MARGIN ? until - SHARED_MARGIN : 0;
}

/* Returns what tells of held room; NULL for a filter of one writer, or of several processes. */
static inline struct holding *holding_of(const perhaps_filter *f)
{
    uint8_t *writers = f->body.writers;
    return writers ? (struct holding *)(void *)(writers - HOLDING_NBYTES) : NULL;
}

/* From holding_begin() to holding_end() a thread may hold room that it will give back: keys
 * that it counts and that prove to be there already. */
static inline void holding_begin(perhaps_filter *f)
{
    struct holding *holding = holding_of(f);
    if (holding)
        __atomic_fetch_add(&holding->begun, 1, __ATOMIC_SEQ_CST);
}

static inline void holding_end(perhaps_filter *f)
{
    struct holding *holding = holding_of(f);
    if (holding)
        __atomic_fetch_add(&holding->ended, 1, __ATOMIC_SEQ_CST);
}

/* To be called before a try, and after it failed for want of room: holding_is_over() returns
 * whether no other thread held room at any moment of the try. */
static inline struct holding holding_look(const perhaps_filter *f)
{
    const struct holding *holding = holding_of(f);
    struct holding now = { 0 };
    if (holding) {
        now.ended = __atomic_load_n(&holding->ended, __ATOMIC_SEQ_CST);
        now.begun = __atomic_load_n(&holding->begun, __ATOMIC_SEQ_CST);
    }
    return now;
}

static inline bool holding_is_over(const perhaps_filter *f, struct holding before)
{
    return before.ended == before.begun && holding_look(f).begun == before.begun;
}

#endif
