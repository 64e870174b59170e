/* owners.c - adds for many writers: regions of a body, and what waits for their locks. */
#include "owners.h"

#include <string.h>

#include "../base/compiler.h"
#include "../base/locks.h"

/* How many regions ahead lines are prefetched. */
enum { FETCH_AHEAD = 3 };

void owners_divide(struct owners *owners, uint64_t range)
{
    unsigned shift = 0;
    while ((range - 1) >> shift >= REGIONS)
        shift++;
    owners->shift = shift;
}

void waiting_begin(struct waiting *w, perhaps_filter *f, found_adder *add, size_t n,
                   bool *answer)
{
    w->owners = f->writers;
    w->body = &f->body;
    w->add = add;
    w->answer = answer;
    for (unsigned i = 0; i < REGIONS; i++) {
        w->next[i] = w->found[i];
        w->end[i] = w->found[i] + WAITING_MOST;
    }
    memset(answer, true, n);
}

/* Adds what waits for a region, whose lock is held. */
static void add_waiting(struct waiting *w, uint64_t region)
{
    struct found *found = w->found[region];
    w->add(w->body, found, (size_t)(w->next[region] - found), w->answer);
    w->next[region] = found;
}

void waiting_flush(struct waiting *w, uint64_t region)
{
    uint8_t *lock = &w->owners->region[region].lock;
    lock_take(lock);
    add_waiting(w, region);
    lock_release(lock);
}

/* Prefetches all that adding to a region needs.  The lock probably lies in another core's
 * cache. */
static ALWAYS_INLINE void fetch_waiting(const struct waiting *w, unsigned region)
{
    __builtin_prefetch(&w->owners->region[region].lock, 1, 3);
    for (const struct found *at = w->found[region]; at < w->next[region]; at++)
        PREFETCH(w->body->bytes + at->offset);
}

/* If another writer holds the lock of a region, the region is left for later. */
void waiting_end(struct waiting *w)
{
    /* Threads should begin with different regions.  The address of 'w' differs from thread to
     * thread, since it lies on their stacks. */
    unsigned first = (unsigned)((uint64_t)(uintptr_t)w * ODD_GOLDEN >> 32) % REGIONS;
    uint32_t pending = 0;
    for (unsigned i = 0; i < FETCH_AHEAD; i++)
        fetch_waiting(w, (first + i) % REGIONS);
    for (unsigned i = 0; i < REGIONS; i++) {
        unsigned region = (first + i) % REGIONS;
        uint8_t *lock = &w->owners->region[region].lock;
        if (i + FETCH_AHEAD < REGIONS)
            fetch_waiting(w, (region + FETCH_AHEAD) % REGIONS);
        if (w->next[region] == w->found[region])
            continue;
        if (lock_try(lock)) {
            add_waiting(w, region);
            lock_release(lock);
        } else {
            pending |= UINT32_C(1) << region;
        }
    }
    for (; pending; pending &= pending - 1)
        waiting_flush(w, (uint64_t)__builtin_ctz(pending));
}
