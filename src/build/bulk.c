/* bulk.c - adds a great many keys to a large filter, region by region.
 *
 * A key that is added as it comes needs one line from anywhere in memory.  Here keys wait until
 * there are thousands for each region of the filter, which fits into the cache and the TLB.
 * Then threads add them, each in another region.  No line lies in two regions, and within one
 * the keys keep their order.  So the filter, its count and its errors are those that it would
 * have if the keys were added as they come. */
#include <stdatomic.h>

#include "../base/memory.h"
#include "../filter/counters.h"
#include "builder.h"

enum {
    REGIONS_MOST = 1024,
    LINE_BITS = 6,           /* a line has 64 bytes */
    REGION_NBYTES = 1 << 20, /* at least */
    SHARE = 16,              /* keys that wait take this part of the filter's size */
    ALONE_MOST = 1 << 14,    /* keys for which no other thread is started */
};

/* Below this size memory is fast enough for keys as they come. */
#define WORTHWHILE_NBYTES ((uint64_t)2 << 30)

struct perhaps_bulk {
    perhaps_filter *filter;
    struct keyhash *keys; /* that wait: 'room' for each region; NULL: none ever do */
    uint64_t room, nregions;
    unsigned shift; /* line >> shift is the region of a line */
    unsigned nthreads;
    uint64_t nkeys;             /* how many wait in all */
    atomic_uint_fast64_t added; /* keys that were not there before */
    uint32_t waiting[REGIONS_MOST];
};

static uint64_t keys_nbytes(const struct perhaps_bulk *b)
{
    return b->nregions * b->room * sizeof *b->keys;
}

/* Adds the keys that wait for one region. */
static int add_region(void *context, void *hand, uint64_t region)
{
    struct perhaps_bulk *b = context;
    const struct keyhash *keys = b->keys + region * b->room;
    bool answer[BATCH_MOST];
    (void)hand;
    uint64_t added = 0;
    for (size_t left = b->waiting[region], n; left; left -= n, keys += n) {
        n = left < BATCH_MOST ? left : BATCH_MOST;
        added += n - loops_add_in_steps(b->filter, keys, n, answer);
    }
    b->waiting[region] = 0;
    atomic_fetch_add(&b->added, added);
    return 0;
}

/* Adds all keys that wait. */
static void add_waiting(struct perhaps_bulk *b)
{
    void *hands[THREADS_MOST] = { NULL };
    const struct tasks tasks = { .ntasks = b->nregions, .work = add_region, .context = b };
    if (!b->nkeys)
        return;
    b->added = 0;
    (void)tasks_run(&tasks, hands, b->nkeys <= ALONE_MOST ? 1 : b->nthreads);
    counter_add(b->filter, &b->filter->counters->keys, b->added);
    b->nkeys = 0;
}

/* Returns how many more keys can wait: so many that none of them will be refused. */
static uint64_t room_left(const struct perhaps_bulk *b)
{
    uint64_t keys = b->filter->counters->keys + b->nkeys, most = b->filter->room_until;
    return keys < most ? most - keys : 0;
}

/* Lets up to n keys wait.  Returns how many do: fewer if one is refused, and none if the key
 * limit is near. */
static size_t let_wait(struct perhaps_bulk *b, const struct perhaps_keys *keys, size_t first,
                       size_t n)
{
    const perhaps_filter *f = b->filter;
    struct keyhash hash[BATCH_MOST];
    uint64_t line[BATCH_MOST];
    if (room_left(b) < n)
        add_waiting(b);
    if (room_left(b) < n)
        return 0;
    hasher_run(&f->hasher, keys, first, n, hash);
    n = f->loops->lines(&f->body, hash, n, line);
    for (size_t i = 0; i < n; i++) {
        uint64_t region = line[i] >> b->shift;
        if (b->waiting[region] == b->room)
            add_waiting(b);
        b->keys[region * b->room + b->waiting[region]++] = hash[i];
        b->nkeys++;
    }
    return n;
}

int perhaps_bulk_add(perhaps_bulk *b, const struct perhaps_keys *keys, size_t *done)
{
    size_t at = 0, waiting = 1, added = 0;
    if (!b->keys)
        return perhaps_add_many(b->filter, keys, done);
    const size_t hashable = filter_count_hashable(b->filter, keys);
    for (; at < hashable && waiting; at += waiting) {
        size_t left = hashable - at;
        waiting = let_wait(b, keys, at, left < BATCH_MOST ? left : BATCH_MOST);
    }
    const struct perhaps_keys rest = perhaps_keys_slice(keys, at, keys->count - at);
    int error = 0;
    if (rest.count) { /* near the limit, or one is refused */
        add_waiting(b);
        error = perhaps_add_many(b->filter, &rest, &added);
    }
    if (done)
        *done = at + added;
    return error;
}

/* Plans regions, and makes room for keys that wait, if it is worth while. */
static void divide(struct perhaps_bulk *b, uint64_t memory_nbytes)
{
    const perhaps_filter *f = b->filter;
    const uint64_t nbytes = f->body.geometry.body_nbytes, lines = (nbytes + 63) >> LINE_BITS;
    if (!f->loops->lines || f->shared || f->changer->locked || filter_may_add(f) ||
        (nbytes < WORTHWHILE_NBYTES && !memory_nbytes))
        return;
    while ((lines - 1) >> b->shift >= REGIONS_MOST ||
           (UINT64_C(1) << (b->shift + LINE_BITS)) < REGION_NBYTES)
        b->shift++;
    b->nregions = ((lines - 1) >> b->shift) + 1;
    if (!memory_nbytes) {
        const uint64_t most = memory_by_default();
        memory_nbytes = nbytes / SHARE < most ? nbytes / SHARE : most;
    }
    b->room = memory_nbytes / sizeof *b->keys / b->nregions;
    b->room = b->room < UINT32_MAX ? b->room : UINT32_MAX;
    b->keys = b->room ? allocate(&f->allocator, keys_nbytes(b)) : NULL;
}

int perhaps_bulk_begin(perhaps_filter *f, const struct perhaps_build_options *how,
                       perhaps_bulk **bulk)
{
    perhaps_bulk *b = *bulk = allocate(&f->allocator, sizeof *b);
    if (!b)
        return PERHAPS_ERR_MEMORY;
    b->filter = f;
    divide(b, how ? how->memory_nbytes : 0);
    if (b->keys)
        b->nthreads = threads_or_all(how ? how->threads : 0);
    b->nthreads = b->nthreads < THREADS_MOST ? b->nthreads : THREADS_MOST;
    return 0;
}

void perhaps_bulk_end(perhaps_bulk *b)
{
    if (!b)
        return;
    add_waiting(b);
    const struct perhaps_allocator *allocator = &b->filter->allocator;
    release(allocator, b->keys, keys_nbytes(b));
    release(allocator, b, sizeof *b);
}
