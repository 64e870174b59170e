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
 * Limits: 4 to 32 bits a fingerprint; 8 copies of a key.
 * Invariant: each entry lies in one of its two buckets. */
#include <math.h>
#include <stdio.h>

#include "../kernels/layout.h"
#include "../plan.h"
#include "kinds.h"

enum { NBUCKETS, WIDTH };
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

static int plan(struct geometry *g, enum perhaps_preference preference, char *why)
{
    (void)preference;
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
    double keys = (double)f->counters.keys;
    return (struct fill){ .load = keys / (double)(g->field[NBUCKETS] * BUCKET_SLOTS),
                          .fpr = predict(g, keys).mean };
}

/* ---- Slots ----------------------------------------------------------------------------- */

/* What the operations work on, taken apart once per call. */
struct table {
    uint8_t *body;
    uint64_t nbuckets;
    unsigned width;
    uint64_t ones; /* a one in each of four lanes of up to 16 bits */
};

static struct table table_of(const perhaps_filter *f)
{
    unsigned width = (unsigned)f->geometry.field[WIDTH];
    return (struct table){ .body = f->body,
                           .nbuckets = f->geometry.field[NBUCKETS],
                           .width = width,
                           .ones = width <= 16 ? cuckoo_lanes(width) : 0 };
}

struct entry {
    uint32_t fingerprint;
    uint64_t first;
    uint64_t second;
};

static struct entry entry_of(const struct table *t, const struct keyhash *key)
{
    struct entry e = { .fingerprint = cuckoo_fingerprint(key->mark, t->width),
                       .first = scale64(key->place, t->nbuckets) };
    e.second = cuckoo_other_bucket(e.first, e.fingerprint, t->nbuckets);
    return e;
}

static uint32_t slot_get(const struct table *t, uint64_t bucket, unsigned slot)
{
    return cuckoo_slot(t->body, bucket, slot, t->width);
}

static void slot_set(const struct table *t, uint64_t bucket, unsigned slot, uint32_t entry)
{
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
    if (t->width <= 16)
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

/* ---- Making room ----------------------------------------------------------------------- */

/* A bucket that the search reached: by moving the entry in 'slot' of its parent's bucket. */
struct step {
    uint64_t bucket;
    uint16_t parent;
    uint8_t slot;
};

enum { SEARCH_MAX = 1024, NO_PARENT = SEARCH_MAX };

/* Moves entries along the path into the free slot at its end, the last one first, so that no
 * entry is ever absent; then the new entry's slot at the path's beginning is free.
 * No bucket is twice on a path: the search would have found the end from the first time on. */
static void commit_path(const struct table *t, const struct step *steps, unsigned at,
                        unsigned free_slot, uint32_t fingerprint)
{
    while (steps[at].parent != NO_PARENT) {
        const struct step *from = &steps[steps[at].parent];
        slot_set(t, steps[at].bucket, free_slot, slot_get(t, from->bucket, steps[at].slot));
        free_slot = steps[at].slot;
        at = steps[at].parent;
    }
    slot_set(t, steps[at].bucket, free_slot, fingerprint);
}

/* Looks for the nearest bucket with a free slot, breadth first: the walk of the buckets that
 * 'steps' lists is its own queue, and the prefetch of a bucket is as far ahead as the queue is
 * long.  Bounded, since crafted keys can make all roads lead back. */
static int make_room(const struct table *t, const struct entry *e)
{
    struct step steps[SEARCH_MAX];
    steps[0] = (struct step){ .bucket = e->first, .parent = NO_PARENT };
    steps[1] = (struct step){ .bucket = e->second, .parent = NO_PARENT };
    unsigned count = 2;
    for (unsigned at = 0; at < count; at++) {
        unsigned free_slot = bucket_find(t, steps[at].bucket, 0);
        if (free_slot < BUCKET_SLOTS) {
            commit_path(t, steps, at, free_slot, e->fingerprint);
            return 0;
        }
        for (unsigned slot = 0; slot < BUCKET_SLOTS && count < SEARCH_MAX; slot++) {
            uint32_t entry = slot_get(t, steps[at].bucket, slot);
            uint64_t other = cuckoo_other_bucket(steps[at].bucket, entry, t->nbuckets);
            __builtin_prefetch(t->body + (other * (BUCKET_SLOTS * t->width) >> 3));
            steps[count++] =
                (struct step){ .bucket = other, .parent = (uint16_t)at, .slot = (uint8_t)slot };
        }
    }
    return copies_of(t, e) >= PERHAPS_COPIES_MAX ? PERHAPS_ERR_COPIES : PERHAPS_ERR_FULL;
}

/* Puts an entry into the emptier of its buckets, which keeps both from filling up early:
 * slots are taken in order, so that is the one with the lower free slot. */
static int insert(const struct table *t, const struct entry *e)
{
    unsigned in_first = bucket_find(t, e->first, 0);
    unsigned in_second = bucket_find(t, e->second, 0);
    if (in_first == BUCKET_SLOTS && in_second == BUCKET_SLOTS)
        return make_room(t, e);
    bool to_first = in_first <= in_second; /* no branch: it would be a toss-up */
    slot_set(t, to_first ? e->first : e->second, to_first ? in_first : in_second,
             e->fingerprint);
    return 0;
}

/* ---- Operations ------------------------------------------------------------------------ */

static void prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    struct table t = table_of(f);
    kernels_choose()->cuckoo_prefetch(t.body, t.nbuckets, t.width, keys, n);
}

static size_t contains(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer)
{
    struct table t = table_of(f);
    return kernels_choose()->cuckoo_contains(t.body, t.nbuckets, t.width, keys, ahead, n,
                                             answer);
}

static int add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done)
{
    struct table t = table_of(f);
    kernels_choose()->cuckoo_prefetch(t.body, t.nbuckets, t.width, ahead, n);
    for (size_t i = 0; i < n; i++) {
        struct entry e = entry_of(&t, &keys[i]);
        *done = i;
        answer[i] = unless_present && copies_of(&t, &e) > 0;
        if (answer[i])
            continue;
        int error = insert(&t, &e);
        if (error)
            return error;
        f->counters.keys++;
    }
    *done = n;
    return 0;
}

static bool remove_one(const struct table *t, const struct entry *e)
{
    const uint64_t buckets[] = { e->first, e->second };
    for (unsigned i = 0; i < 2; i++) {
        unsigned slot = bucket_find(t, buckets[i], e->fingerprint);
        if (slot < BUCKET_SLOTS) {
            slot_set(t, buckets[i], slot, 0);
            return true;
        }
    }
    return false;
}

static size_t remove_(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer)
{
    struct table t = table_of(f);
    kernels_choose()->cuckoo_prefetch(t.body, t.nbuckets, t.width, ahead, n);
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        struct entry e = entry_of(&t, &keys[i]);
        answer[i] = remove_one(&t, &e);
        removed += answer[i];
    }
    f->counters.keys -= removed < f->counters.keys ? removed : f->counters.keys;
    return removed;
}

static uint64_t count(const perhaps_filter *f, const struct keyhash *key)
{
    struct table t = table_of(f);
    struct entry e = entry_of(&t, key);
    return copies_of(&t, &e);
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
            if (f->counters.keys >= f->geometry.key_limit)
                return PERHAPS_ERR_FULL;
            int error = insert(&to, &e);
            if (error)
                return error;
            f->counters.keys++;
        }
    return 0;
}

const struct filter_kind kind_cuckoo = {
    .about = { .name = "cuckoo",
               .summary = "cuckoo filter: keys can be removed, copies counted up to 8",
               .abilities = PERHAPS_REMOVE | PERHAPS_COUNT | PERHAPS_MERGE },
    .id = 3,
    .field_names = field_names,
    .plan = plan,
    .set_geometry = set_geometry,
    .predict = predict,
    .measure = measure,
    .prefetch = prefetch,
    .contains = contains,
    .add = add,
    .remove = remove_,
    .count = count,
    .merge = merge,
};
