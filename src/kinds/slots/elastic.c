/* elastic.c - a cuckoo filter that grows in place, page by page; after ideas of the taffy
 * cuckoo filter (Apple: Stretching your data with taffy filters, SPE 2022) and of InfiniFilter
 * (Dayan, Bercea, Reviriego, Pagh: InfiniFilter, SIGMOD 2023).  doc/THEORY.md explains it with
 * pictures.
 *
 *   segment = 512 buckets of 4 slots; both buckets of a key lie in one segment
 *   slot    = tail (6 bits) | field: head bits of the key, a one, zeros;  0 = empty
 *
 * The first bits of a key's mark lead to its segment; the depth of the segment is the number of
 * these bits.  The bits that follow are the head bits in the slot.  When a segment is full it
 * is split into two: the top bit of each field says to which half the entry goes, and is then
 * shifted out.  The entry keeps its bucket and its slot.
 *
 *   field at depth 3:  b3 b4 b5 b6 1        a later key's field at depth 4:  b4 b5 b6 b7 1
 *   after a split:     b4 b5 b6 1  0        what is asked for there:         b4 b5 b6 b7
 *
 * An entry matches a key if its tail and its head bits are those of the key.  An entry whose
 * head bits are all spent (field 1 0 0 ..) goes to both halves.  New keys always come with all
 * head bits, so half of the entries have all of them, and each time that the number of keys
 * doubles the fpr grows by half of what it was at first.
 *
 * Memory grows page by page.  There are 16 trees of segments, the bases, with unequal shares of
 * the keys.  So the segments of different bases become full at different times, and splits come
 * evenly over time.
 *
 * Limits: slots of 12 to 32 bits; 8 copies of a key, of which 4 are as good as sure to find
 * room; depth 31.
 * Invariant: each entry lies in one of its two buckets, in each segment that its bits lead
 * to. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../base/sizing.h"
#include "../cpu/cpu_loops.h"
#include "../kinds.h"
#include "segments.h"

static const char *const elastic_fields[] = { "slot_bits", "fpr_until", "segments", NULL };

/* The load at which segments are split; measured, see doc/THEORY.md. */
static const double split_load = 0.96;

/* ---- Rate and plan --------------------------------------------------------------------- */

/* Returns the share of all keys that a base gets: the shares grow by 2^(1/16) from base to
 * base. */
static double base_share(unsigned base)
{
    const double bases = BASES;
    return exp2((base + 1) / bases) - exp2(base / bases);
}

/* Returns how deep the segments of a base must be to hold 'keys' keys at this load. */
static unsigned depth_for(double keys, double load)
{
    double segments = keys / (load * (double)SEGMENT_SLOTS);
    return segments > 1 ? (unsigned)ceil(log2(segments)) : 0;
}

/* Returns the depth of a base's segments in a new filter.  The filter must hold its capacity
 * without a split.  It is planned for less than the load of a split, since some segments get
 * more keys than the mean. */
static unsigned first_depth(const struct geometry *g, unsigned base)
{
    const double first_load = 0.9;
    return depth_for((double)g->capacity * base_share(base), first_load);
}

/* Returns the chance that an entry with all its head bits matches an absent key of the same
 * segment: the key has its tail, one of 64, its pair of buckets, one of 256, and its head. */
static double match_chance(const struct geometry *g)
{
    unsigned head = elastic_field_bits((unsigned)g->field[SLOT_BITS]) - 1;
    return exp2(-(double)(TAIL_BITS + head)) * 2 / (double)SEGMENT_BUCKETS;
}

/* Returns the fpr in the segments of a base.  A split leaves each half with half of the
 * entries, and each of these has one head bit less and matches twice as often: so the old
 * entries add as much to the fpr as before.  A segment of d splits therefore has the fpr of the
 * entries that it holds, and for each split half the fpr of a full segment. */
static double base_rate(const struct geometry *g, unsigned base, double keys)
{
    const double full = split_load * (double)SEGMENT_SLOTS;
    double here = keys * base_share(base);
    unsigned first = first_depth(g, base), depth = depth_for(here, split_load);
    unsigned splits = depth > first ? depth - first : 0;
    double held = here / exp2(depth > first ? depth : first);
    return (held + splits * full / 2) * match_chance(g);
}

static double elastic_predict(const struct geometry *g, double keys)
{
    double sum = 0;
    for (unsigned base = 0; base < BASES; base++)
        sum += base_share(base) * base_rate(g, base, keys);
    return -expm1(-sum);
}

/* Checks whether the fpr is kept with 'keys' keys, for all seeds but one in 10^9.  The fpr
 * differs from seed to seed because segments get different shares of the keys.  The shares
 * differ by a quarter, and none is more than one and a half times the mean; these two bound the
 * margin. */
static bool elastic_keeps_rate(const struct geometry *g, double keys)
{
    double more = fmin(SIZING_DEVIATIONS / 4 / sqrt(keys), 0.5);
    return elastic_predict(g, keys) * (1 + more) <= g->fpr;
}

/* Returns up to how many keys the fpr is kept if the options do not say. */
static uint64_t usual_limit(uint64_t capacity)
{
    const unsigned doublings = 20;
    return capacity < PERHAPS_CAPACITY_MAX >> doublings ? capacity << doublings
                                                        : PERHAPS_CAPACITY_MAX;
}

/* Sets how many segments a new filter has, which depends on its capacity alone. */
static void elastic_first(struct geometry *g)
{
    g->field[SEGMENTS] = g->extra_nbytes = 0;
    for (unsigned base = 0; base < BASES; base++) {
        g->field[SEGMENTS] += UINT64_C(1) << first_depth(g, base);
        g->extra_nbytes += segments_directory_nbytes(first_depth(g, base));
    }
}

/* Where copies are stored, slots have so many bits at least.  Copies are inserted at lower
 * loads, and so at greater depths: entries without head bits, which no split parts, would come
 * to fill the buckets of other keys. */
enum { SLOT_MIN_COPIES = 16 };

/* Takes the narrowest slots that keep the fpr.  It must be kept at fpr_until, since the fpr
 * grows with the keys, and at the capacity, since the margin for chance is larger there. */
static int elastic_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    uint64_t until = options->elastic.fpr_until;
    if (until && (until < g->capacity || until > PERHAPS_CAPACITY_MAX))
        return PERHAPS_ERR_ARGUMENT;
    g->field[FPR_UNTIL] = until ? until : usual_limit(g->capacity);
    elastic_first(g);
    const bool copies = options->needs & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT);
    for (uint64_t bits = copies ? SLOT_MIN_COPIES : SLOT_MIN; bits <= SLOT_MAX; bits++) {
        g->field[SLOT_BITS] = bits;
        if (!elastic_keeps_rate(g, (double)g->field[FPR_UNTIL]) ||
            !elastic_keeps_rate(g, (double)g->capacity))
            continue;
        snprintf(why, WHY_NBYTES,
                 "grows in place, keys can be removed: slots of %u bits, some for growth, and "
                 "two cache lines a key at any size; a chain has fewer, and asks each layer",
                 (unsigned)bits);
        return 0;
    }
    return PERHAPS_ERR_LIMIT;
}

static int elastic_set_geometry(struct geometry *g)
{
    uint64_t bits = g->field[SLOT_BITS], segments = g->field[SEGMENTS];
    if (bits < SLOT_MIN || bits > SLOT_MAX || segments < BASES ||
        segments > UINT64_C(1) << (DEPTH_MAX + 4) || g->field[FPR_UNTIL] > PERHAPS_CAPACITY_MAX)
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = segments_body_nbytes(segments, (unsigned)bits);
    g->key_limit = KEYS_UNLIMITED;
    g->fpr_until = g->field[FPR_UNTIL];
    return 0;
}

/* ---- Life ------------------------------------------------------------------------------ */

static int elastic_begin(perhaps_filter *f, const struct perhaps_options *options)
{
    (void)options;
    uint8_t *depths = f->body.bytes + DEPTHS_OFFSET;
    for (unsigned base = 0; base < BASES; base++) {
        unsigned depth = first_depth(&f->body.geometry, base);
        memset(depths, (int)depth, (size_t)1 << depth);
        depths += (size_t)1 << depth;
    }
    return 0;
}

static void elastic_clear(perhaps_filter *f)
{
    unsigned depth[BASES];
    for (unsigned base = 0; base < BASES; base++)
        depth[base] = first_depth(&f->body.geometry, base);
    segments_clear(f, depth);
}

static struct fill elastic_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    struct fill fill = segments_measure(f, most_nbytes);
    fill.fpr *= match_chance(&f->body.geometry);
    return fill;
}

/* ---- Operations ------------------------------------------------------------------------ */

static void elastic_bind(perhaps_filter *f)
{
    f->loops = cpu_loops[f->cpu].elastic;
    f->asks_at_once = !f->body.writers; /* while others write, contains() asks */
}

/* The entries in a key's pair of buckets that match the key. */
struct matches {
    unsigned count;
    uint32_t longest; /* the one with the most head bits; 0: none matches */
    uint64_t at;      /* where 'longest' lies */
};

/* The lowest one of an entry ends its head bits: the lower it is, the more head bits there
 * are. */
static struct matches find_matches(const struct spot *s)
{
    struct matches m = { 0 };
    const uint64_t buckets[] = { s->entry.first, s->entry.second };
    for (unsigned i = 0; i < 2; i++) {
        uint32_t entry[BUCKET_SLOTS];
        bucket_get(s->table.body, buckets[i], s->table.width, entry);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            if (!elastic_matches(entry[slot], s->entry.fingerprint))
                continue;
            m.count++;
            if (m.longest && (m.longest & -m.longest) <= (entry[slot] & -entry[slot]))
                continue;
            m.longest = entry[slot];
            m.at = buckets[i] * BUCKET_SLOTS + slot;
        }
    }
    return m;
}

/* Adds an entry to a segment that no other thread writes.  Returns 0, PERHAPS_ERR_FULL if the
 * segment must be split, or PERHAPS_ERR_COPIES. */
static int insert_in_segment(const struct spot *s, bool unless_present, bool *was_present)
{
    *was_present = unless_present && find_matches(s).count > 0;
    if (*was_present || table_put(&s->table, &s->entry))
        return 0;
    return table_put_by_moves(&s->table, &s->entry);
}

/* Adds a key, and splits its segment as often as needed: all entries may go to the same
 * half. */
static int elastic_insert(perhaps_filter *f, const struct keyhash *key, bool unless_present,
                          bool *was_present)
{
    int error;
    do {
        struct spot s = segments_enter(f, key);
        error = insert_in_segment(&s, unless_present, was_present);
        bool split = error == PERHAPS_ERR_FULL;
        if (split)
            error = segments_split(f, &s, table_copies(&s.table, &s.entry));
        segments_leave(f, &s);
        if (split && !error)
            continue;
        return error;
    } while (true);
}

/* With 'unless_present' the loops look for a key first, since they are fast.  Not so in a
 * shared filter: they may read a segment while another thread makes one for other keys of it,
 * and find by chance what is not there.  A query may err so, but an add that relied on it would
 * lose the key.  There elastic_insert() looks, which has the segment locked. */
static int elastic_add(perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                       size_t *done)
{
    for (*done = 0; *done < n; ++*done) {
        size_t i = *done;
        answer[i] = false;
        if (!unless_present || f->shared)
            loops_prefetch(f, &ahead[i], 1);
        else if (loops_contain(f, &keys[i], &ahead[i], 1, &answer[i]))
            continue;
        int error = elastic_insert(f, &keys[i], unless_present && f->shared, &answer[i]);
        if (error)
            return error;
    }
    return 0;
}

/* Removes the longest match, even if it was added for another key: a shorter match then still
 * stands for that key, so no key is lost (doc/THEORY.md).  Returns whether there was one. */
static bool remove_longest_match(perhaps_filter *f, const struct keyhash *key)
{
    struct spot s = segments_enter(f, key);
    struct matches m = find_matches(&s);
    if (m.count) {
        table_clear(&s.table, m.at);
        if (elastic_is_spent(m.longest, slot_bits_of(f)))
            segments_count_stale(f);
    }
    segments_leave(f, &s);
    return m.count > 0;
}

static size_t elastic_remove(perhaps_filter *f, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        loops_prefetch(f, &ahead[i], 1);
        answer[i] = remove_longest_match(f, &keys[i]);
        removed += answer[i];
    }
    return removed;
}

/* Counts again if another thread has moved an entry or split the segment meanwhile. */
static uint64_t elastic_count(const perhaps_filter *f, const struct keyhash *key)
{
    for (;;) {
        struct spot s = segments_look(f, key);
        uint32_t before = segments_version(&s);
        unsigned copies = find_matches(&s).count;
        if (segments_unchanged(f, &s, before))
            return copies;
    }
}

static const struct grows grows = {
    .first = elastic_first,
    .begin = elastic_begin,
    .attach = segments_attach,
    .detach = segments_detach,
    .next_piece = segments_next_piece,
    .grown = segments_grown,
    .beyond_nbytes = segments_beyond,
    .state_nbytes = segments_state_nbytes,
    .relocate = segments_relocate,
};

const struct filter_kind kind_elastic = {
    .about = { .name = "elastic",
               .summary =
                   "cuckoo filter that grows in place: no plan, two cache lines at any size",
               .abilities = PERHAPS_CAN_GROW | PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT |
                            PERHAPS_CAN_THREADS },
    .id = 5,
    .field_names = elastic_fields,
    .plan = elastic_plan,
    .set_geometry = elastic_set_geometry,
    .clear = elastic_clear,
    .grows = &grows,
    .writers_nbytes = segments_writers_nbytes,
    .predict = elastic_predict,
    .measure = elastic_measure,
    .bind = elastic_bind,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = segments_reads,
    .add = elastic_add,
    .remove = elastic_remove,
    .count = elastic_count,
    .copies_most = PERHAPS_COPIES_MAX,
};
