/* owners.c - adds for many writers: regions of a body, and what waits for their locks. */
#include "owners.h"

#include <string.h>

/* How many regions ahead lines are prefetched. */
enum { FETCH_AHEAD = 3 };

/* After so many batches in a row of one thread it is taken to be alone. */
enum { ALONE_BATCHES = 16 };

/* A body of fewer places than regions has a single one. */
void owners_divide(struct owners *owners, uint64_t places)
{
    owners->factor = places < REGIONS ? 0 : UINT64_MAX / places * REGIONS;
}

void owners_wait(struct owners *owners, uint64_t region)
{
    for (unsigned tries = 1; !owners_try(owners, region); tries++)
        lock_wait(tries);
}

void owners_settle(const perhaps_filter *f)
{
    struct owners *owners = f->body.writers;
    for (uint64_t i = 0; i < REGIONS; i++) {
        uint8_t *apart = &owners->region[i].apart;
        if (!__atomic_load_n(apart, __ATOMIC_RELAXED))
            continue;
        owners_take(owners, i);
        counter_add(f, &f->counters->keys, __atomic_load_n(apart, __ATOMIC_RELAXED));
        __atomic_store_n(apart, 0, __ATOMIC_RELAXED);
        owners_release(owners, i);
    }
}

/* ---- Alone ------------------------------------------------------------------------------- */

/* Notes that this thread begins a batch, and returns whether it seems to be alone.  Threads
 * that begin at once may lose each other's notes, which only costs them time. */
static bool seems_alone(struct owners *owners)
{
    const uintptr_t self = thread_self();
    unsigned batches = __atomic_load_n(&owners->batches, __ATOMIC_RELAXED);
    if (__atomic_load_n(&owners->latest, __ATOMIC_RELAXED) != self) {
        __atomic_store_n(&owners->latest, self, __ATOMIC_RELAXED);
        batches = 0;
    }
    if (batches >= ALONE_BATCHES)
        return true;
    __atomic_store_n(&owners->batches, batches + 1, __ATOMIC_RELAXED);
    return false;
}

/* Takes all regions, if nobody has one. */
static bool take_all(struct owners *owners)
{
    if (!lock_try(&owners->all))
        return false;
    for (unsigned i = 0; i < REGIONS; i++)
        if (__atomic_load_n(&owners->region[i].lock, __ATOMIC_SEQ_CST)) {
            lock_release(&owners->all);
            return false;
        }
    return true;
}

bool owners_add_alone(perhaps_filter *f, const struct keyhash *keys, size_t n, bool *answer)
{
    struct owners *owners = f->body.writers;
    if (!seems_alone(owners))
        return false;
    if (!take_all(owners)) {
        __atomic_store_n(&owners->batches, 0, __ATOMIC_RELAXED);
        return false;
    }
    loops_add_in_steps(f, keys, n, answer);
    lock_release(&owners->all);
    return true;
}

/* ---- Sorted ------------------------------------------------------------------------------ */

void waiting_begin(struct waiting *w, perhaps_filter *f, found_adder *add, size_t n,
                   bool *answer)
{
    w->owners = f->body.writers;
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

/* Prefetches all that adding to a region needs.  The lock probably lies in another core's
 * cache. */
static ALWAYS_INLINE void fetch_waiting(const struct waiting *w, uint64_t region)
{
    __builtin_prefetch(&w->owners->region[region].lock, 1, 3);
    for (const struct found *at = w->found[region]; at < w->next[region]; at++)
        PREFETCH(w->body->bytes + at->offset);
}

void waiting_flush(struct waiting *w, uint64_t region)
{
    fetch_waiting(w, region);
    owners_take(w->owners, region);
    add_waiting(w, region);
    owners_release(w->owners, region);
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
        if (i + FETCH_AHEAD < REGIONS)
            fetch_waiting(w, (region + FETCH_AHEAD) % REGIONS);
        if (w->next[region] == w->found[region])
            continue;
        if (owners_try(w->owners, region)) {
            add_waiting(w, region);
            owners_release(w->owners, region);
        } else {
            pending |= UINT32_C(1) << region;
        }
    }
    for (; pending; pending &= pending - 1)
        waiting_flush(w, (uint64_t)__builtin_ctz(pending));
}
