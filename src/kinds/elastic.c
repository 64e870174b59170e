/* elastic.c - a cuckoo filter that grows in place, page by page; after ideas of the taffy
 * cuckoo filter (Apple: Stretching your data with taffy filters, SPE 2022) and of InfiniFilter
 * (Dayan, Bercea, Reviriego, Pagh: InfiniFilter, SIGMOD 2023).  doc/KINDS.md explains it with
 * pictures.
 *
 *   segment = 512 buckets of 4 slots; both buckets of a key lie in one segment
 *   slot    = tail (6 bits) | field: head bits of the key, a one, zeros;  0 = empty
 *
 * The first bits of a key's mark lead to its segment: as many as the segment is deep.  The head
 * bits in a slot are those that follow.  A full segment is split into two: the top bit of each
 * field says to which its entry goes, and is shifted out; bucket and slot stay.
 *
 *   field at depth 3:  b3 b4 b5 b6 1        a later key's field at depth 4:  b4 b5 b6 b7 1
 *   after a split:     b4 b5 b6 1  0        what is asked for there:         b4 b5 b6 b7
 *
 * An entry matches if the tails are the same and its head bits are those of the key.  When they
 * are all spent (field 1 0 0 ..) an entry goes to both halves.  New keys always come with all
 * bits, so half of the entries are as sharp as on the first day, and the rate grows by half of
 * itself each time that the keys double.
 *
 * Memory grows by pages.  'Bases', 16 trees of segments with unequal shares of the keys, see to
 * it that segments are split evenly over time.
 *
 * Limits: slots of 12 to 32 bits; 8 copies of a key; depth 31.
 * Invariant: each entry lies in one of its two buckets,
 * in each segment that its bits lead to. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/sizing.h"
#include "kinds.h"
#include "segments.h"

static const char *const field_names[] = { "slot_bits", "fpr_until", "segments", NULL };

/* Load at which segments are split, measured: see doc/KINDS.md. */
static const double split_load = 0.96;

/* ---- Rate and plan --------------------------------------------------------------------- */

static double base_share(unsigned base)
{
    const double bases = BASES;
    return exp2((base + 1) / bases) - exp2(base / bases);
}

/* How deep the segments of a base are that hold so many keys of it. */
static unsigned depth_for(double keys, double load)
{
    double segments = keys / (load * (double)SEGMENT_SLOTS);
    return segments > 1 ? (unsigned)ceil(log2(segments)) : 0;
}

/* A new filter has room for its capacity without a split.  Segments that are nearly full by
 * then would be, if they came a deviation more. */
static unsigned first_depth(const struct geometry *g, unsigned base)
{
    const double first_load = 0.9;
    return depth_for((double)g->capacity * base_share(base), first_load);
}

/* The chance that one entry with 'head' bits matches an absent key in its segment: one of 64
 * tails, one of 256 pairs of buckets for each, and the head. */
static double match_chance(const struct geometry *g)
{
    unsigned head = elastic_field_bits((unsigned)g->field[SLOT_BITS]) - 1;
    return exp2(-(double)(TAIL_BITS + head)) * 2 / (double)SEGMENT_BUCKETS;
}

/* Each time that a segment is split its entries are half as many and half as sharp: what was in
 * it before counts as much in each half as in the whole.  So a segment that was split d times
 * counts what it holds, and half of what a full one does for each split. */
static double base_rate(const struct geometry *g, unsigned base, double keys)
{
    const double full = split_load * (double)SEGMENT_SLOTS;
    double here = keys * base_share(base);
    unsigned first = first_depth(g, base), depth = depth_for(here, split_load);
    unsigned splits = depth > first ? depth - first : 0;
    double held = here / exp2(depth > first ? depth : first);
    return (held + splits * full / 2) * match_chance(g);
}

static double predict(const struct geometry *g, double keys)
{
    double sum = 0;
    for (unsigned base = 0; base < BASES; base++)
        sum += base_share(base) * base_rate(g, base, keys);
    return -expm1(-sum);
}

/* What a key adds to the rate goes with the share of the keys that its segment has: those of a
 * filter differ by a quarter, and none has more than the mean and a half. */
static bool keeps_rate(const struct geometry *g, double keys)
{
    double more = fmin(SIZING_DEVIATIONS / 4 / sqrt(keys), 0.5);
    return predict(g, keys) * (1 + more) <= g->fpr;
}

static uint64_t usual_limit(uint64_t capacity)
{
    const unsigned doublings = 20;
    return capacity < PERHAPS_CAPACITY_MAX >> doublings ? capacity << doublings
                                                        : PERHAPS_CAPACITY_MAX;
}

static int plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    uint64_t until = options->elastic.fpr_until;
    if (until && (until < g->capacity || until > PERHAPS_CAPACITY_MAX))
        return PERHAPS_ERR_ARGUMENT;
    g->field[FPR_UNTIL] = until ? until : usual_limit(g->capacity);
    g->field[SEGMENTS] = g->extra_nbytes = 0;
    for (unsigned base = 0; base < BASES; base++) {
        g->field[SEGMENTS] += UINT64_C(1) << first_depth(g, base);
        g->extra_nbytes += segments_directory_nbytes(first_depth(g, base));
    }
    for (uint64_t bits = SLOT_MIN; bits <= SLOT_MAX; bits++) {
        g->field[SLOT_BITS] = bits;
        if (!keeps_rate(g, (double)g->field[FPR_UNTIL]) || !keeps_rate(g, (double)g->capacity))
            continue;
        snprintf(why, WHY_NBYTES,
                 "grows in place, page by page, keys can be removed: slots of %u bits, two "
                 "cache lines of one page a key",
                 (unsigned)bits);
        return 0;
    }
    return PERHAPS_ERR_LIMIT;
}

static int set_geometry(struct geometry *g)
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

static int begin(perhaps_filter *f, const struct perhaps_options *options)
{
    (void)options;
    uint8_t *depths = f->body + DEPTHS_OFFSET;
    for (unsigned base = 0; base < BASES; base++) {
        unsigned depth = first_depth(&f->geometry, base);
        memset(depths, (int)depth, (size_t)1 << depth);
        depths += (size_t)1 << depth;
    }
    return 0;
}

static void clear(perhaps_filter *f)
{
    unsigned depth[BASES];
    for (unsigned base = 0; base < BASES; base++)
        depth[base] = first_depth(&f->geometry, base);
    segments_clear(f, depth);
}

static struct fill measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    struct fill fill = segments_measure(f, most_nbytes);
    fill.fpr *= match_chance(&f->geometry);
    return fill;
}

/* ---- Operations ------------------------------------------------------------------------ */

static void prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    elastic_loops[f->cpu].prefetch(segments_directories(f), slot_bits_of(f), keys, n);
}

static size_t contains(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer)
{
    return elastic_loops[f->cpu].contains(segments_directories(f), slot_bits_of(f),
                                          segments_versions(f), keys, ahead, n, answer);
}

/* The entries of the pair that match: how many, and which of them has the most head bits. */
struct matches {
    unsigned count;
    uint32_t longest; /* 0: none */
    uint64_t bucket;  /* where that is */
    unsigned slot;
};

static struct matches find_matches(const struct spot *s)
{
    struct matches m = { 0 };
    const uint64_t buckets[] = { s->pair.first, s->pair.second };
    for (unsigned i = 0; i < 2; i++) {
        uint32_t entry[BUCKET_SLOTS];
        table_get_all(&s->table, buckets[i], entry);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            if (!elastic_matches(entry[slot], s->entry))
                continue;
            m.count++;
            if (m.longest && (m.longest & -m.longest) <= (entry[slot] & -entry[slot]))
                continue;
            m.longest = entry[slot];
            m.bucket = buckets[i];
            m.slot = slot;
        }
    }
    return m;
}

/* With the segment to itself.  PERHAPS_OK, PERHAPS_ERR_FULL if it must be split, or
 * PERHAPS_ERR_COPIES. */
static int insert_here(const struct spot *s, bool unless_present, bool *was_present)
{
    *was_present = unless_present && find_matches(s).count > 0;
    if (*was_present || table_put(&s->table, &s->pair, s->entry))
        return 0;
    if (!table_make_room(&s->table, &s->pair))
        return find_matches(s).count >= PERHAPS_COPIES_MAX ? PERHAPS_ERR_COPIES
                                                           : PERHAPS_ERR_FULL;
    table_put(&s->table, &s->pair, s->entry);
    return 0;
}

static int insert(perhaps_filter *f, const struct keyhash *key, bool unless_present,
                  bool *was_present)
{
    int error;
    do {
        struct spot s = segments_enter(f, key);
        error = insert_here(&s, unless_present, was_present);
        bool split = error == PERHAPS_ERR_FULL;
        if (split)
            error = segments_split(f, &s);
        segments_leave(f, &s);
        if (split && !error)
            continue;
        return error;
    } while (true);
}

/* To ask by a kernel first is quicker; what it has not found nobody else adds meanwhile, or it
 * is looked for again. */
static int add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done)
{
    for (*done = 0; *done < n; ++*done) {
        size_t i = *done;
        answer[i] = false;
        if (unless_present && contains(f, &keys[i], &ahead[i], 1, &answer[i]))
            continue;
        if (!unless_present)
            prefetch(f, &ahead[i], 1);
        int error = insert(f, &keys[i], unless_present && f->shared, &answer[i]);
        if (error)
            return error;
    }
    return 0;
}

/* The longest match: a shorter one may be another key's, and covers, too, what the longer one
 * covered. */
static bool remove_one(perhaps_filter *f, const struct keyhash *key)
{
    struct spot s = segments_enter(f, key);
    struct matches m = find_matches(&s);
    if (m.count) {
        uint64_t other = m.bucket == s.pair.first ? s.pair.second : s.pair.first;
        table_clear(&s.table, m.bucket, m.slot, other);
        if (elastic_is_spent(m.longest, slot_bits_of(f)))
            segments_count_stale(f);
    }
    segments_leave(f, &s);
    return m.count > 0;
}

static size_t remove_(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch(f, &ahead[i], 1);
        answer[i] = remove_one(f, &keys[i]);
        removed += answer[i];
    }
    return removed;
}

/* An entry that is moved meanwhile is found by asking again. */
static uint64_t count(const perhaps_filter *f, const struct keyhash *key)
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
    .begin = begin,
    .attach = segments_attach,
    .detach = segments_detach,
    .next_piece = segments_next_piece,
    .grown = segments_grown,
    .beyond_nbytes = segments_beyond,
};

const struct filter_kind kind_elastic = {
    .about = { .name = "elastic",
               .summary =
                   "cuckoo filter that grows in place: no plan, two cache lines at any size",
               .abilities = PERHAPS_CAN_GROW | PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT |
                            PERHAPS_CAN_THREADS },
    .id = 5,
    .field_names = field_names,
    .plan = plan,
    .set_geometry = set_geometry,
    .clear = clear,
    .grows = &grows,
    .writers_nbytes = segments_writers_nbytes,
    .predict = predict,
    .measure = measure,
    .prefetch = prefetch,
    .contains = contains,
    .reads = segments_reads,
    .add = add,
    .remove = remove_,
    .count = count,
};
