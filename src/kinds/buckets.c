/* buckets.c - slots, locks, and making room by moving entries. */
#include "buckets.h"

#include "../base/locks.h"

struct table table_make(uint8_t *body, uint64_t nbuckets, unsigned width, unsigned tail_shift)
{
    return (struct table){ .body = body,
                           .nbuckets = nbuckets,
                           .width = width,
                           .tail_shift = tail_shift,
                           .search_most = SEARCH_MOST,
                           .ones = width <= NARROW_MAX ? cuckoo_lanes(width) : 0,
                           .straddles = 8 * LINE_NBYTES % (BUCKET_SLOTS * width) != 0 };
}

/* ---- Slots ----------------------------------------------------------------------------- */

uint32_t table_get(const struct table *t, uint64_t bucket, unsigned slot)
{
    if (t->width > NARROW_MAX)
        return cuckoo_slot(t->body, bucket, slot, t->width);
    uint64_t slots = cuckoo_load_bucket(t->body, bucket, t->width) >> slot * t->width;
    return (uint32_t)(slots & ((UINT64_C(1) << t->width) - 1));
}

void table_get_all(const struct table *t, uint64_t bucket, uint32_t entry[BUCKET_SLOTS])
{
    uint32_t mask = (uint32_t)((UINT64_C(1) << t->width) - 1);
    if (t->width <= NARROW_MAX) {
        uint64_t slots = cuckoo_load_bucket(t->body, bucket, t->width);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
            entry[slot] = (uint32_t)(slots >> slot * t->width) & mask;
    } else {
        unsigned __int128 slots = cuckoo_load_wide_bucket(t->body, bucket, t->width);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++, slots >>= t->width)
            entry[slot] = (uint32_t)slots & mask;
    }
}

/* The one writer of these buckets changes a slot. */
static void slot_set(const struct table *t, uint64_t bucket, unsigned slot, uint32_t entry)
{
    if (t->versions)
        cuckoo_change_slot(t->body, bucket, slot, t->width, table_get(t, bucket, slot) ^ entry);
    else if (t->width <= NARROW_MAX)
        cuckoo_set_narrow_slot(t->body, bucket, slot, t->width, entry);
    else
        cuckoo_set_slot(t->body, bucket, slot, t->width, entry);
}

/* The first of four lanes of t->width bits that equals the entry, or BUCKET_SLOTS: the lowest
 * lane that a subtraction of one in each lane turns over is a zero of the difference. */
static unsigned lanes_find(const struct table *t, uint64_t word, uint32_t entry)
{
    uint64_t difference = word ^ entry * t->ones;
    uint64_t zero = (difference - t->ones) & ~difference & t->ones << (t->width - 1);
    uint64_t lowest = zero & -zero;
    if (!zero)
        return BUCKET_SLOTS;
    return (unsigned)(lowest >> t->width != 0) + (unsigned)(lowest >> 2 * t->width != 0) +
           (unsigned)(lowest >> 3 * t->width != 0);
}

/* The same for slots of up to 32 bits. */
static unsigned wide_lanes_find(const struct table *t, uint64_t bucket, uint32_t entry)
{
    unsigned w = t->width;
    unsigned __int128 one = 1, ones = one | one << w | one << 2 * w | one << 3 * w;
    unsigned __int128 difference =
        cuckoo_load_wide_bucket(t->body, bucket, w) ^ (unsigned __int128)entry * ones;
    unsigned __int128 zero = (difference - ones) & ~difference & ones << (w - 1);
    unsigned __int128 lowest = zero & -zero;
    if (!zero)
        return BUCKET_SLOTS;
    return (unsigned)(lowest >> w != 0) + (unsigned)(lowest >> 2 * w != 0) +
           (unsigned)(lowest >> 3 * w != 0);
}

unsigned table_find(const struct table *t, uint64_t bucket, uint32_t entry)
{
    if (t->width <= NARROW_MAX)
        return lanes_find(t, cuckoo_load_bucket(t->body, bucket, t->width), entry);
    return wide_lanes_find(t, bucket, entry);
}

/* ---- Many threads ---------------------------------------------------------------------- */

void table_lock(const struct table *t, uint64_t a, uint64_t b)
{
    if (!t->locks)
        return;
    uint8_t *lock = table_lock_of(t, a), *other = table_lock_of(t, b);
    lock_take(lock < other ? lock : other);
    if (lock != other)
        lock_take(lock < other ? other : lock);
}

void table_unlock(const struct table *t, uint64_t a, uint64_t b)
{
    if (!t->locks)
        return;
    lock_release(table_lock_of(t, a));
    if (table_lock_of(t, a) != table_lock_of(t, b))
        lock_release(table_lock_of(t, b));
}

void table_clear(const struct table *t, uint64_t bucket, unsigned slot, uint64_t other)
{
    if (t->versions)
        __atomic_fetch_add(table_version(t, bucket, other), 1, __ATOMIC_ACQ_REL);
    slot_set(t, bucket, slot, 0);
}

/* ---- Making room ----------------------------------------------------------------------- */

/* The buckets that the search reached, in order: the two of the pair, and then those that the
 * entries of each lead to, four by four. */
struct search {
    uint64_t bucket[SEARCH_MOST];
    unsigned end; /* the step whose bucket has a free slot */
    unsigned free_slot;
};

enum { FIRST_STEPS = 2 };

/* The step, and the slot of its bucket, whose entry led to a step behind the first. */
static unsigned parent_of(unsigned at)
{
    return (at - FIRST_STEPS) / BUCKET_SLOTS;
}

static unsigned slot_of(unsigned at)
{
    return (at - FIRST_STEPS) % BUCKET_SLOTS;
}

static bool ends_at(const struct table *t, struct search *s, unsigned at)
{
    s->end = at;
    s->free_slot = table_find(t, s->bucket[at], 0);
    return s->free_slot < BUCKET_SLOTS;
}

/* Goes on from a step to the four that its entries lead to.  Returns how many steps there are.
 */
static unsigned branch(const struct table *t, struct search *s, unsigned at, unsigned count)
{
    uint32_t entry[BUCKET_SLOTS];
    table_get_all(t, s->bucket[at], entry);
    for (unsigned slot = 0; slot < BUCKET_SLOTS && count < t->search_most; slot++) {
        uint64_t other = table_other(t, s->bucket[at], entry[slot]);
        table_prefetch(t, other);
        s->bucket[count++] = other;
    }
    return count;
}

/* Buckets are on their way into the cache while so many others are looked at. */
enum { SEARCH_AHEAD = 8 };

/* Looks for the nearest bucket with a free slot, breadth first: the steps are its own queue.  A
 * bucket is looked at SEARCH_AHEAD steps after it was queued, long before its own entries are
 * followed: three of four never are.  The search is bounded, since crafted keys can make all
 * roads lead back. */
static bool find_path(const struct table *t, const struct pair *pair, struct search *s)
{
    s->bucket[0] = pair->first;
    s->bucket[1] = pair->second;
    unsigned count = FIRST_STEPS, looked = 0;
    for (unsigned at = 0; at < count; at++) {
        for (; looked <= at || looked + SEARCH_AHEAD < count; looked++)
            if (ends_at(t, s, looked))
                return true;
        count = branch(t, s, at, count);
    }
    return false;
}

/* Moves the entry in a slot to a free slot of its other bucket.  false: it, or the free slot,
 * is not there any more: another thread was quicker. */
static bool move_entry(const struct table *t, uint64_t from, unsigned slot, uint64_t to,
                       unsigned free_slot)
{
    table_lock(t, from, to);
    uint32_t entry = table_get(t, from, slot);
    bool as_planned =
        entry && table_get(t, to, free_slot) == 0 && table_other(t, from, entry) == to;
    if (as_planned) {
        slot_set(t, to, free_slot, entry);
        table_clear(t, from, slot, to);
    }
    table_unlock(t, from, to);
    return as_planned;
}

/* Other threads have written most of the locks and versions last: all of a path's are fetched
 * from their caches at once. */
static ALWAYS_INLINE void prefetch_path(const struct table *t, const struct search *s)
{
    for (unsigned at = s->end; t->locks && at >= FIRST_STEPS; at = parent_of(at)) {
        uint64_t to = s->bucket[at], from = s->bucket[parent_of(at)];
        __builtin_prefetch(table_lock_of(t, to), 1, 3);
        __builtin_prefetch(table_lock_of(t, from), 1, 3);
        __builtin_prefetch(table_version(t, from, to), 1, 3);
    }
}

/* Moves entries along a path into the free slot at its end, the last one first, so that no
 * entry is ever absent; then one of the new entry's buckets has a free slot, unless other
 * threads came between.  No bucket is twice on a path: the search would have found the end from
 * the first time on. */
bool table_make_room(const struct table *t, const struct pair *pair)
{
    struct search s;
    if (!find_path(t, pair, &s))
        return false;
    prefetch_path(t, &s);
    for (unsigned at = s.end; at >= FIRST_STEPS; at = parent_of(at)) {
        uint64_t to = s.bucket[at], from = s.bucket[parent_of(at)];
        if (!move_entry(t, from, slot_of(at), to, s.free_slot))
            break;
        s.free_slot = slot_of(at);
    }
    return true;
}

/* The emptier keeps both from filling up early: slots are taken in order, so that is the one
 * with the lower free slot. */
bool table_put(const struct table *t, const struct pair *pair, uint32_t entry)
{
    unsigned in_first = table_find(t, pair->first, 0);
    unsigned in_second = table_find(t, pair->second, 0);
    if (in_first == BUCKET_SLOTS && in_second == BUCKET_SLOTS)
        return false;
    bool to_first = in_first <= in_second; /* no branch: it would be a toss-up */
    slot_set(t, to_first ? pair->first : pair->second, to_first ? in_first : in_second, entry);
    return true;
}
