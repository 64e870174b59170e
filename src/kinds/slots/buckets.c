/* buckets.c - tables of buckets: their slots, their locks, and making room by moving entries.
 *
 * Invariant: an entry lies in one of its two buckets.  A move writes the new place before it
 * clears the old one, so that readers always find the entry in one of them. */
#include "bucket_pair.h"

#include "../../base/locks.h"

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

/* Writes a slot.  In a shared table the caller holds the lock of the bucket; other writers may
 * change other slots in the same words, so the slot is changed atomically. */
static void slot_set(const struct table *t, uint64_t bucket, unsigned slot, uint32_t entry)
{
    if (t->versions)
        cuckoo_change_slot(t->body, bucket, slot, t->width, table_get(t, bucket, slot) ^ entry);
    else if (t->width <= NARROW_MAX)
        cuckoo_set_narrow_slot(t->body, bucket, slot, t->width, entry);
    else
        cuckoo_set_slot(t->body, bucket, slot, t->width, entry);
}

/* Returns the first of four lanes of t->width bits that equals the entry, or BUCKET_SLOTS.  A
 * subtraction of one from each lane of the difference turns over the lanes that are zero, and
 * possibly, by a borrow, lanes above: so the lowest lane that turns over is a true zero. */
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

/* The same for slots of 17 to 32 bits. */
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

/* The version changes first: a reader that misses the entry must see that it has changed. */
void table_clear(const struct table *t, uint64_t bucket, unsigned slot, uint64_t other)
{
    if (t->versions)
        __atomic_fetch_add(table_version(t, bucket, other), 1, __ATOMIC_ACQ_REL);
    slot_set(t, bucket, slot, 0);
}

/* ---- Making room ----------------------------------------------------------------------- */

/* A breadth-first search for a free slot.  Step i of it looks at bucket[i].  The first two
 * steps are the pair of the new entry; then each step has led to four more, the other buckets
 * of its four entries.  So the array is the queue of the search and its tree at once. */
struct search {
    uint64_t bucket[SEARCH_MOST];
    unsigned end;       /* the step whose bucket has a free slot */
    unsigned free_slot; /* that slot */
};

enum { FIRST_STEPS = 2 };

/* Return the step that led to step 'at' (which is not one of the first two), and the slot of
 * the entry in its bucket that did. */
static unsigned parent_of(unsigned at)
{
    return (at - FIRST_STEPS) / BUCKET_SLOTS;
}

static unsigned slot_of(unsigned at)
{
    return (at - FIRST_STEPS) % BUCKET_SLOTS;
}

/* Returns whether the bucket of a step has a free slot, and makes it the end of the search. */
static bool ends_at(const struct table *t, struct search *s, unsigned at)
{
    s->end = at;
    s->free_slot = table_find(t, s->bucket[at], 0);
    return s->free_slot < BUCKET_SLOTS;
}

/* Appends the four steps that the entries of a step lead to, as far as there is room.  Returns
 * how many steps there are then. */
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

/* A bucket is prefetched when it is queued, and comes into the cache while the search looks at
 * this many others. */
enum { SEARCH_AHEAD = 8 };

/* Looks for the nearest bucket with a free slot, breadth first.  Checks a bucket for a free
 * slot SEARCH_AHEAD steps after it was queued, long before it follows the bucket's entries:
 * three of four buckets are never followed.  Returns false if no bucket within
 * t->search_most steps has a free slot.  The bound is needed, since crafted keys can make all
 * paths lead back to the same buckets. */
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

/* Moves the entry in a slot to a free slot of its other bucket.  Returns false, and changes
 * nothing, if another thread has meanwhile moved the entry or taken the free slot. */
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

/* Prefetches all locks and versions of a path at once: most of them lie in the caches of the
 * threads that wrote them last. */
static ALWAYS_INLINE void prefetch_path(const struct table *t, const struct search *s)
{
    for (unsigned at = s->end; t->locks && at >= FIRST_STEPS; at = parent_of(at)) {
        uint64_t to = s->bucket[at], from = s->bucket[parent_of(at)];
        __builtin_prefetch(table_lock_of(t, to), 1, 3);
        __builtin_prefetch(table_lock_of(t, from), 1, 3);
        __builtin_prefetch(table_version(t, from, to), 1, 3);
    }
}

/* Moves the entries along a path towards the free slot at its end, the last one first, so that
 * no entry is ever absent.  Then one bucket of the pair has a free slot, unless another thread
 * has taken it; the caller tries again.  No bucket is twice on a path: the search would have
 * gone on from its first occurrence, which is the shorter way. */
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

/* Taking the emptier bucket keeps both from filling up early.  Slots are taken in order, so the
 * emptier is the one whose first free slot is lower. */
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

/* ---- Entries of cuckoo filters ----------------------------------------------------------- */

static unsigned bucket_count(const struct table *t, uint64_t bucket, uint32_t entry)
{
    unsigned n = 0;
    for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
        n += table_get(t, bucket, slot) == entry;
    return n;
}

unsigned table_copies(const struct table *t, const struct entry *e)
{
    return bucket_count(t, e->first, e->fingerprint) +
           bucket_count(t, e->second, e->fingerprint);
}

/* Tries again if other threads take the room that it has made. */
int table_insert(const struct table *t, const struct entry *e, bool unless_present,
                 bool *was_present)
{
    struct pair pair = { .first = e->first, .second = e->second };
    for (;;) {
        table_lock(t, e->first, e->second);
        *was_present = unless_present && table_copies(t, e) > 0;
        bool done = *was_present || table_put(t, &pair, e->fingerprint);
        table_unlock(t, e->first, e->second);
        if (done)
            return 0;
        if (table_copies(t, e) >= PERHAPS_COPIES_MAX) /* a search would meet nothing else */
            return PERHAPS_ERR_COPIES;
        if (!table_make_room(t, &pair))
            return PERHAPS_ERR_FULL;
    }
}

/* ---- For the loops ----------------------------------------------------------------------- */

#if defined(__x86_64__)
/* 'odd' is 1 for buckets that begin in the middle of a byte. */
/* clang-format off */
#define SLOT_BIT(width, odd, i) ((odd) * 4 + (i) * (width))
#define SLOT_BYTES(width, odd, i) \
    SLOT_BIT(width, odd, i) / 8,     SLOT_BIT(width, odd, i) / 8 + 1, \
    SLOT_BIT(width, odd, i) / 8 + 2, \
    SLOT_BIT(width, odd, i) / 8 + 3, SLOT_BIT(width, odd, i) / 8 + 4, -1, -1, -1
#define SPREADING(width, odd) { \
    { SLOT_BYTES(width, odd, 0), SLOT_BYTES(width, odd, 1), \
      SLOT_BYTES(width, odd, 2), SLOT_BYTES(width, odd, 3) }, \
    { SLOT_BIT(width, odd, 0) % 8, SLOT_BIT(width, odd, 1) % 8, \
      SLOT_BIT(width, odd, 2) % 8, SLOT_BIT(width, odd, 3) % 8 } }
#define OF_WIDTH(width) { SPREADING(width, 0), SPREADING(width, 1) }

const struct spreading spreadings[WIDTH_MAX - NARROW_MAX][2] = {
    OF_WIDTH(17), OF_WIDTH(18), OF_WIDTH(19), OF_WIDTH(20), OF_WIDTH(21), OF_WIDTH(22),
    OF_WIDTH(23), OF_WIDTH(24), OF_WIDTH(25), OF_WIDTH(26), OF_WIDTH(27), OF_WIDTH(28),
    OF_WIDTH(29), OF_WIDTH(30), OF_WIDTH(31), OF_WIDTH(32),
};
/* clang-format on */
#endif

/* ---- Loops ------------------------------------------------------------------------------- */

void slot_loops_bind(perhaps_filter *f, const struct slot_loops *slots)
{
    f->loops = slots->loops;
    if (!f->is_set)
        return;
    f->loops.add_one = slots->add_absent;
    f->loops.add_integer = slots->add_integer_absent;
}
