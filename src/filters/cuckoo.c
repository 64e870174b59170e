/* cuckoo.c - cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher: Cuckoo Filter: Practically
 * Better Than Bloom, CoNEXT 2014).
 *
 *   body   = nbuckets buckets, then 8 bytes of room for the last load
 *   bucket = 4 slots of 'width' bits, bucket b beginning at bit 4 * width * b; 0 = empty
 *
 * An entry is the fingerprint of a key; it lies in one of two buckets, each of which follows
 * from the other and the fingerprint: second = c(fingerprint) - first mod nbuckets.  That is
 * its own inverse for any number of buckets (an XOR needs a power of two), so an entry moves
 * without its key.  c is odd and nbuckets even, so the two buckets always differ.
 *
 * Every add stores a copy: the filter is a multiset, from which what was added can be removed.
 * An add plans the moves that make room (breadth first, without writing) and then commits
 * them from the empty slot backwards: a failed add has changed nothing.
 *
 * Many threads.  Who writes a bucket holds its lock (one of many, taken in order); buckets
 * share words, which are therefore changed atomically.  Before a slot is cleared, by a removal
 * or because its entry has been copied to the other bucket, a version that belongs to the pair
 * of buckets is counted up.  Who asks reads the version, both buckets, and the version again:
 * it can have missed an entry, by reading its new place too early and the old one too late,
 * only if the version has changed, and then asks again.  It never waits. Limits: 4 to 32 bits a
 * fingerprint; 8 copies of a key. Invariant: each entry lies in one of its two buckets. */
#include <math.h>
#include <stdio.h>

#include "../kernels/layout.h"
#include "../locks.h"
#include "../plan.h"
#include "kinds.h"

static const char *const field_names[] = { "nbuckets", "fingerprint_bits", NULL };

/* ---- Rate and plan --------------------------------------------------------------------- */

/* The different (bucket pair, fingerprint) there can be: an absent key is taken for present
 * if its own is occupied. */
static double pair_count(const struct geometry *g)
{
    return (double)g->field[NBUCKETS] / 2 * (exp2((double)g->field[WIDTH]) - 1);
}

static struct rate predict(const struct geometry *g, double keys)
{
    struct occupancy occupied = plan_occupancy(pair_count(g), keys);
    return (struct rate){ .mean = occupied.mean, .sd = sqrt(occupied.variance) };
}

/* Load at which adds are sure to find room: the search reaches .955 at every width (.963 from
 * 7 bits on).  A small table can be crowded by chance, so it gets slots to spare, and
 * fingerprints long enough to spread its keys over all pairs of buckets: of 1.6 million tables
 * for 9 to 33 keys, and 60,000 for 1000 and more, none was full too early. */
static const double planned_load = 0.94;
enum { SMALL_CAPACITY = 10000, SMALL_WIDTH = 8 };

static uint64_t plan_buckets(uint64_t capacity)
{
    double slots = (double)capacity / planned_load + 3 * sqrt((double)capacity) + 16;
    uint64_t pairs = (uint64_t)ceil(slots / (2 * BUCKET_SLOTS));
    return 2 * pairs;
}

/* How many of the pairs are expected to be given nine keys or more, which is one too many. */
static double crowded_pairs(const struct geometry *g)
{
    const double ninth = 362880; /* 9! */
    double pairs = pair_count(g);
    return pairs * pow((double)g->capacity / pairs, PERHAPS_COPIES_MAX + 1) / ninth;
}

static int plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    (void)options;
    g->field[NBUCKETS] = plan_buckets(g->capacity);
    uint64_t least = g->capacity < SMALL_CAPACITY ? SMALL_WIDTH : WIDTH_MIN;
    for (uint64_t width = least; width <= WIDTH_MAX; width++) {
        g->field[WIDTH] = width;
        if (plan_fits(predict(g, (double)g->capacity), g->fpr) && crowded_pairs(g) < 1e-6) {
            snprintf(why, WHY_NBYTES,
                     "keys can be removed: fingerprints of %u bits, two cache lines a key",
                     (unsigned)width);
            return 0;
        }
    }
    return PERHAPS_ERR_LIMIT;
}

static int set_geometry(struct geometry *g)
{
    uint64_t nbuckets = g->field[NBUCKETS];
    uint64_t width = g->field[WIDTH];
    if (nbuckets < 2 || nbuckets % 2 || nbuckets > UINT64_C(1) << 56 || width < WIDTH_MIN ||
        width > WIDTH_MAX)
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = round_up(nbuckets / 2 * width + sizeof(uint64_t), LINE_NBYTES);
    double limit = log1p(-g->fpr) / log1p(-1 / pair_count(g));
    uint64_t slots = nbuckets * BUCKET_SLOTS;
    g->key_limit = limit < (double)slots ? (uint64_t)limit : slots;
    return 0;
}

static struct fill measure(const perhaps_filter *f)
{
    const struct geometry *g = &f->geometry;
    double keys = (double)__atomic_load_n(&f->counters->keys, __ATOMIC_RELAXED);
    return (struct fill){ .load = keys / (double)(g->field[NBUCKETS] * BUCKET_SLOTS),
                          .fpr = predict(g, keys).mean };
}

/* ---- Slots ----------------------------------------------------------------------------- */

/* What the threads of a shared filter need. */
enum { LOCK_BUCKETS = 4, LOCKS_MIN = 64, LOCKS_MAX = 1 << 20 };

struct sync {
    uint32_t version[CUCKOO_VERSIONS];
    uint8_t lock[]; /* a power of two */
};

static uint64_t lock_count(uint64_t nbuckets)
{
    uint64_t n = LOCKS_MIN;
    while (n < LOCKS_MAX && n < nbuckets / LOCK_BUCKETS)
        n *= 2;
    return n;
}

static size_t sync_nbytes(const struct geometry *g)
{
    return sizeof(struct sync) + (size_t)lock_count(g->field[NBUCKETS]);
}

/* What the operations work on, taken apart once per call. */
struct table {
    uint8_t *body;
    uint64_t nbuckets;
    unsigned width;
    uint64_t ones;     /* a one in each of four lanes of up to 16 bits */
    bool straddles;    /* a bucket may lie in two cache lines */
    struct sync *sync; /* NULL: one thread */
    uint64_t lock_mask;
};

static struct table table_of(const perhaps_filter *f)
{
    unsigned width = (unsigned)f->geometry.field[WIDTH];
    uint64_t nbuckets = f->geometry.field[NBUCKETS];
    return (struct table){ .body = f->body,
                           .nbuckets = nbuckets,
                           .width = width,
                           .ones = width <= NARROW_MAX ? cuckoo_lanes(width) : 0,
                           .straddles = 8 * LINE_NBYTES % (BUCKET_SLOTS * width) != 0,
                           .sync = f->sync,
                           .lock_mask = f->sync ? lock_count(nbuckets) - 1 : 0 };
}

static struct entry entry_of(const struct table *t, const struct keyhash *key)
{
    return cuckoo_entry(*key, t->nbuckets, t->width);
}

/* A bucket may straddle two cache lines, unless it divides one. */
static inline __attribute__((always_inline)) void prefetch_bucket(const struct table *t,
                                                                  uint64_t bucket)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * t->width);
    __builtin_prefetch(t->body + (bit >> 3), 1, 3);
    if (t->straddles)
        __builtin_prefetch(t->body + ((bit + BUCKET_SLOTS * t->width - 1) >> 3), 1, 3);
}

static uint32_t slot_get(const struct table *t, uint64_t bucket, unsigned slot)
{
    return cuckoo_slot(t->body, bucket, slot, t->width);
}

/* The one writer of these buckets changes a slot. */
static void slot_set(const struct table *t, uint64_t bucket, unsigned slot, uint32_t entry)
{
    if (t->sync)
        cuckoo_change_slot(t->body, bucket, slot, t->width, slot_get(t, bucket, slot) ^ entry);
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

/* The first slot that holds the entry (0: that is empty), or BUCKET_SLOTS. */
static unsigned bucket_find(const struct table *t, uint64_t bucket, uint32_t entry)
{
    if (t->width <= NARROW_MAX)
        return lanes_find(t, cuckoo_load_bucket(t->body, bucket, t->width), entry);
    unsigned slot = 0;
    while (slot < BUCKET_SLOTS && slot_get(t, bucket, slot) != entry)
        slot++;
    return slot;
}

static unsigned bucket_count(const struct table *t, uint64_t bucket, uint32_t entry)
{
    unsigned n = 0;
    for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
        n += slot_get(t, bucket, slot) == entry;
    return n;
}

static unsigned copies_of(const struct table *t, const struct entry *e)
{
    return bucket_count(t, e->first, e->fingerprint) +
           bucket_count(t, e->second, e->fingerprint);
}

/* ---- Many threads ---------------------------------------------------------------------- */

static uint8_t *lock_of(const struct table *t, uint64_t bucket)
{
    return &t->sync->lock[bucket & t->lock_mask];
}

/* In the order of the locks, so that no two writers wait for each other. */
static void lock_buckets(const struct table *t, uint64_t a, uint64_t b)
{
    if (!t->sync)
        return;
    uint8_t *lock = lock_of(t, a), *other = lock_of(t, b);
    lock_take(lock < other ? lock : other);
    if (lock != other)
        lock_take(lock < other ? other : lock);
}

static void unlock_buckets(const struct table *t, uint64_t a, uint64_t b)
{
    if (!t->sync)
        return;
    lock_release(lock_of(t, a));
    if (lock_of(t, a) != lock_of(t, b))
        lock_release(lock_of(t, b));
}

/* Of an entry that lies in one of the two buckets: the same from both. */
static uint32_t *version_of(const struct table *t, uint64_t a, uint64_t b)
{
    return &t->sync->version[cuckoo_version(a, b)];
}

static void slot_clear(const struct table *t, uint64_t bucket, unsigned slot, uint64_t other)
{
    if (t->sync)
        __atomic_fetch_add(version_of(t, bucket, other), 1, __ATOMIC_ACQ_REL);
    slot_set(t, bucket, slot, 0);
}

/* ---- Making room ----------------------------------------------------------------------- */

/* A bucket that the search reached: by moving the entry in 'slot' of its parent's bucket. */
struct step {
    uint64_t bucket;
    uint16_t parent;
    uint8_t slot;
};

enum { SEARCH_MAX = 1024, NO_PARENT = SEARCH_MAX };

struct search {
    struct step steps[SEARCH_MAX];
    unsigned end; /* the step whose bucket has a free slot */
    unsigned free_slot;
};

/* Looks for the nearest bucket with a free slot, breadth first: the walk of the buckets that
 * 'steps' lists is its own queue, and the prefetch of a bucket is as far ahead as the queue is
 * long.  Bounded, since crafted keys can make all roads lead back. */
static bool find_path(const struct table *t, const struct entry *e, struct search *s)
{
    struct step *steps = s->steps;
    steps[0] = (struct step){ .bucket = e->first, .parent = NO_PARENT };
    steps[1] = (struct step){ .bucket = e->second, .parent = NO_PARENT };
    unsigned count = 2;
    for (unsigned at = 0; at < count; at++) {
        s->end = at;
        s->free_slot = bucket_find(t, steps[at].bucket, 0);
        if (s->free_slot < BUCKET_SLOTS)
            return true;
        for (unsigned slot = 0; slot < BUCKET_SLOTS && count < SEARCH_MAX; slot++) {
            uint32_t entry = slot_get(t, steps[at].bucket, slot);
            uint64_t other = cuckoo_other_bucket(steps[at].bucket, entry, t->nbuckets);
            prefetch_bucket(t, other);
            steps[count++] =
                (struct step){ .bucket = other, .parent = (uint16_t)at, .slot = (uint8_t)slot };
        }
    }
    return false;
}

/* Moves the entry in a slot to a free slot of its other bucket.  false: it, or the free slot,
 * is not there any more: another thread was quicker. */
static bool move_entry(const struct table *t, const struct step *from, unsigned slot,
                       uint64_t to, unsigned free_slot)
{
    lock_buckets(t, from->bucket, to);
    uint32_t entry = slot_get(t, from->bucket, slot);
    bool as_planned = entry && slot_get(t, to, free_slot) == 0 &&
                      cuckoo_other_bucket(from->bucket, entry, t->nbuckets) == to;
    if (as_planned) {
        slot_set(t, to, free_slot, entry);
        slot_clear(t, from->bucket, slot, to);
    }
    unlock_buckets(t, from->bucket, to);
    return as_planned;
}

/* Other threads have written most of the locks and versions last: all of a path's are fetched
 * from their caches at once. */
static inline __attribute__((always_inline)) void prefetch_path(const struct table *t,
                                                                const struct search *s)
{
    const struct step *steps = s->steps;
    for (unsigned at = s->end; t->sync && steps[at].parent != NO_PARENT;) {
        const struct step *to = &steps[at], *from = &steps[to->parent];
        __builtin_prefetch(lock_of(t, to->bucket), 1, 3);
        __builtin_prefetch(lock_of(t, from->bucket), 1, 3);
        __builtin_prefetch(version_of(t, from->bucket, to->bucket), 1, 3);
        at = to->parent;
    }
}

/* Moves entries along a path into the free slot at its end, the last one first, so that no
 * entry is ever absent; then one of the new entry's buckets has a free slot, unless other
 * threads came between.  No bucket is twice on a path: the search would have found the end from
 * the first time on. */
static int make_room(const struct table *t, const struct entry *e)
{
    struct search s;
    if (!find_path(t, e, &s))
        return copies_of(t, e) >= PERHAPS_COPIES_MAX ? PERHAPS_ERR_COPIES : PERHAPS_ERR_FULL;
    prefetch_path(t, &s);
    for (unsigned at = s.end; s.steps[at].parent != NO_PARENT; at = s.steps[at].parent) {
        const struct step *to = &s.steps[at], *from = &s.steps[to->parent];
        if (!move_entry(t, from, to->slot, to->bucket, s.free_slot))
            break;
        s.free_slot = to->slot;
    }
    return 0;
}

/* Puts an entry into the emptier of its buckets, which keeps both from filling up early:
 * slots are taken in order, so that is the one with the lower free slot.  false: both are
 * full. */
static bool put(const struct table *t, const struct entry *e)
{
    unsigned in_first = bucket_find(t, e->first, 0);
    unsigned in_second = bucket_find(t, e->second, 0);
    if (in_first == BUCKET_SLOTS && in_second == BUCKET_SLOTS)
        return false;
    bool to_first = in_first <= in_second; /* no branch: it would be a toss-up */
    slot_set(t, to_first ? e->first : e->second, to_first ? in_first : in_second,
             e->fingerprint);
    return true;
}

/* *was_present is only looked at, and set, with 'unless_present'. */
static int insert(const struct table *t, const struct entry *e, bool unless_present,
                  bool *was_present)
{
    for (;;) {
        lock_buckets(t, e->first, e->second);
        *was_present = unless_present && copies_of(t, e) > 0;
        bool done = *was_present || put(t, e);
        unlock_buckets(t, e->first, e->second);
        if (done)
            return 0;
        int error = make_room(t, e);
        if (error)
            return error;
    }
}

/* ---- Operations ------------------------------------------------------------------------ */

static void bind(perhaps_filter *f)
{
    f->loops = f->kernels->cuckoo;
    if (f->sync)
        f->loops.contains_one = NULL; /* through contains() */
}

static size_t contains(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer)
{
    const struct sync *sync = f->sync;
    if (!sync)
        return filter_contains(f, keys, ahead, n, answer);
    return f->kernels->cuckoo_contains_beside(f->body, f->geometry.field, sync->version, keys,
                                              ahead, n, answer);
}

/* What a writer will need. */
static inline __attribute__((always_inline)) void prefetch_key(const struct table *t,
                                                               const struct keyhash *key)
{
    struct entry e = entry_of(t, key);
    prefetch_bucket(t, e.first);
    prefetch_bucket(t, e.second);
    if (t->sync) {
        __builtin_prefetch(lock_of(t, e.first), 1, 3);
        __builtin_prefetch(lock_of(t, e.second), 1, 3);
    }
}

static int add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done)
{
    struct table t = table_of(f);
    for (*done = 0; *done < n; ++*done) {
        prefetch_key(&t, &ahead[*done]);
        struct entry e = entry_of(&t, &keys[*done]);
        int error = insert(&t, &e, unless_present, &answer[*done]);
        if (error)
            return error;
    }
    return 0;
}

static bool remove_one(const struct table *t, const struct entry *e)
{
    unsigned slot = bucket_find(t, e->first, e->fingerprint);
    if (slot < BUCKET_SLOTS) {
        slot_clear(t, e->first, slot, e->second);
        return true;
    }
    slot = bucket_find(t, e->second, e->fingerprint);
    if (slot < BUCKET_SLOTS)
        slot_clear(t, e->second, slot, e->first);
    return slot < BUCKET_SLOTS;
}

static size_t remove_(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer)
{
    struct table t = table_of(f);
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_key(&t, &ahead[i]);
        struct entry e = entry_of(&t, &keys[i]);
        lock_buckets(&t, e.first, e.second);
        answer[i] = remove_one(&t, &e);
        unlock_buckets(&t, e.first, e.second);
        removed += answer[i];
    }
    return removed;
}

static uint64_t count(const perhaps_filter *f, const struct keyhash *key)
{
    struct table t = table_of(f);
    struct entry e = entry_of(&t, key);
    const uint32_t *version = t.sync ? version_of(&t, e.first, e.second) : NULL;
    uint32_t before = 0;
    uint64_t copies;
    do {
        if (version)
            before = __atomic_load_n(version, __ATOMIC_ACQUIRE);
        copies = copies_of(&t, &e);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (version && __atomic_load_n(version, __ATOMIC_RELAXED) != before);
    return copies;
}

static int merge(perhaps_filter *f, const perhaps_filter *other)
{
    struct table to = table_of(f), from = table_of(other);
    for (uint64_t bucket = 0; bucket < from.nbuckets; bucket++)
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            struct entry e = { .fingerprint = slot_get(&from, bucket, slot), .first = bucket };
            if (!e.fingerprint)
                continue;
            e.second = cuckoo_other_bucket(bucket, e.fingerprint, to.nbuckets);
            if (f->counters->keys >= f->geometry.key_limit)
                return PERHAPS_ERR_FULL;
            bool was_present;
            int error = insert(&to, &e, false, &was_present);
            if (error)
                return error;
            f->counters->keys++;
        }
    return 0;
}

const struct filter_kind kind_cuckoo = {
    .about = { .name = "cuckoo",
               .summary = "cuckoo filter: keys can be removed, copies counted up to 8",
               .abilities = PERHAPS_REMOVE | PERHAPS_COUNT | PERHAPS_MERGE | PERHAPS_THREADS },
    .id = 3,
    .field_names = field_names,
    .plan = plan,
    .set_geometry = set_geometry,
    .predict = predict,
    .measure = measure,
    .bind = bind,
    .sync_nbytes = sync_nbytes,
    .prefetch = filter_prefetch,
    .contains = contains,
    .add = add,
    .remove = remove_,
    .count = count,
    .merge = merge,
};
