/* strided.c - cuckoo filter whose keys have four cells instead of two buckets: the fewest bits
 * from which keys can be removed.
 *
 *   body = ncells cells of 'width' bits, cell c beginning at bit width * c; then 8 bytes of
 *          room for the last load; a cell of 0 is empty
 *   cell = fingerprint of width - 1 bits << 1 | which of the two cells of its place it is
 *
 * It comes from the windowed cuckoo filter (Schmitz, Zentgraf, Rahmann: Smaller and More
 * Flexible Cuckoo Filters, arXiv 2505.05847), where an entry lies in one of two windows of two
 * adjacent cells, and tells by a bit in which cell of its window.  A question compares four
 * cells with all bits, where buckets of four compare eight: one bit less for the same rate.
 * Here the two cells of a place lie 1, 2 or 3 cells apart, as the fingerprint says.  Adjacent
 * windows share cells and are full together.  With strides they lead elsewhere: a search that
 * would find room up to a load of .90 finds it up to .94 (doc/THEORY.md has the figures).
 *
 * The second place follows from the first and the fingerprint as in cuckoo.c, and the first
 * cell of a place from any of its cells and the fingerprint.  So an entry can move although its
 * key is not known.  Every add stores a copy.  An add first plans the moves that make room,
 * without writing, and then makes them from the empty cell backwards: a failed add has changed
 * nothing.
 *
 * Limits: 9 to 32 bits a cell; 4 copies of a key (3, if the second cell of one place is the
 * first of the other, which only few cells make probable), so plans take it only where it is
 * improbable that five keys have the same places and fingerprint; one thread.
 * Invariant: each entry lies in one of its four cells. */
#include <math.h>
#include <stdio.h>

#include "../../base/sizing.h"
#include "../kinds.h"
#include "strided.h"

static const char *const field_names[] = { "ncells", "cell_bits", NULL };

/* Eight bits of a fingerprint choose the stride. */
enum { CELL_BITS_MIN = 9 };

/* ---- Rate and plan --------------------------------------------------------------------- */

/* Returns how many different combinations of two places and a fingerprint there are.  An absent
 * key is "perhaps there" if its combination is occupied. */
static double pair_count(const struct geometry *g)
{
    return (double)(g->field[NCELLS] - STRIDE_MOST) / 2 *
           (exp2((double)g->field[WIDTH] - 1) - 1);
}

static double predict(const struct geometry *g, double keys)
{
    return sizing_occupancy(pair_count(g), keys).mean;
}

/* Returns how many entries keep the fpr even if all of them differ. */
static double distinct_limit(const struct geometry *g)
{
    return floor(g->fpr * pair_count(g));
}

/* The load up to which adds are sure to find room; and the slots to spare of small tables,
 * which can be crowded by chance. */
static const double planned_load = 0.9335;

static uint64_t plan_cells(uint64_t capacity)
{
    double cells = (double)capacity / planned_load + 3 * sqrt((double)capacity) + 16;
    return 2 * (uint64_t)ceil(cells / 2) + STRIDE_MOST;
}

/* Returns how many combinations are expected to get five keys or more: one more than fit. */
static double crowded_pairs(const struct geometry *g)
{
    const double fifth = 120; /* 5! */
    double pairs = pair_count(g);
    return pairs * pow((double)g->capacity / pairs, STRIDED_COPIES + 1) / fifth;
}

/* Takes the narrowest cells that keep the fpr and do not crowd any pair of places. */
static int plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    (void)options;
    g->field[NCELLS] = plan_cells(g->capacity);
    for (uint64_t width = CELL_BITS_MIN; width <= WIDTH_MAX; width++) {
        g->field[WIDTH] = width;
        if ((double)g->capacity <= distinct_limit(g) && crowded_pairs(g) < 1e-6) {
            snprintf(why, WHY_NBYTES,
                     "keys can be removed: cells of %u bits, two cache lines a key",
                     (unsigned)width);
            return 0;
        }
    }
    return PERHAPS_ERR_LIMIT;
}

/* It does if the fpr alone takes such wide cells.  Otherwise buckets are as small, and have
 * room for more copies. */
static bool pays(const struct geometry *g)
{
    struct geometry narrower = *g;
    narrower.field[WIDTH]--;
    return (double)g->capacity > distinct_limit(&narrower);
}

static int set_geometry(struct geometry *g)
{
    uint64_t ncells = g->field[NCELLS], width = g->field[WIDTH];
    if (ncells < STRIDE_MOST + 2 || (ncells - STRIDE_MOST) % 2 || ncells > UINT64_C(1) << 48 ||
        width < CELL_BITS_MIN || width > WIDTH_MAX)
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = round_up(ncells / 8 * width + width + sizeof(uint64_t), LINE_NBYTES);
    double limit = distinct_limit(g);
    g->key_limit = limit < (double)ncells ? (uint64_t)limit : ncells;
    return 0;
}

/* Computes both from the number of entries, as if all of them differed: the fpr is a little
 * lower if some are copies. */
static struct fill measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    (void)most_nbytes;
    const struct geometry *g = &f->geometry;
    double keys = (double)f->counters->keys;
    return (struct fill){ .load = keys / (double)g->field[NCELLS], .fpr = predict(g, keys) };
}

/* ---- Operations ------------------------------------------------------------------------ */

static struct strided entry_of(const perhaps_filter *f, const struct keyhash *key)
{
    return strided_of(*key, strided_places(&f->body), (unsigned)f->geometry.field[WIDTH]);
}

static const struct slot_loops *loops_of(const perhaps_filter *f)
{
    return strided_loops(f->cpu, (unsigned)f->geometry.field[WIDTH]);
}

static void bind(perhaps_filter *f)
{
    slot_loops_bind(f, loops_of(f));
}

static void reads(const perhaps_filter *f, struct keyhash key, struct reads *r)
{
    const uint64_t width = f->geometry.field[WIDTH];
    struct strided e = entry_of(f, &key);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bit = e.place[i] * width, end = bit + (e.stride + 1) * width;
        reads_add(r, f->body.bytes + bit / 8, (end + 7) / 8 - bit / 8);
    }
}

static int add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done)
{
    memset(answer, false, n * sizeof *answer);
    return loops_of(f)->add(&f->body, keys, ahead, n, unless_present, answer, done);
}

static size_t remove_(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        f->loops.prefetch(&f->body, &ahead[i], 1);
        struct strided e = entry_of(f, &keys[i]);
        answer[i] = strided_remove(&f->body, &e);
        removed += answer[i];
    }
    return removed;
}

/* Sets *e to the entry in a cell.  Returns false if the cell is empty. */
static bool entry_in(const perhaps_filter *f, uint64_t cell, struct strided *e)
{
    unsigned second;
    uint32_t value = strided_get(f->body.bytes, cell, (unsigned)f->geometry.field[WIDTH]);
    *e = strided_in(cell, value, strided_places(&f->body), &second);
    return value != 0;
}

/* Inserts each entry of the other filter: a cell tells both places of its entry, so no key is
 * needed.  f is a copy (core/merge.c), which the caller drops after a failure. */
static int merge(perhaps_filter *f, const perhaps_filter *other)
{
    for (uint64_t cell = 0; cell < f->geometry.field[NCELLS]; cell++) {
        struct strided e;
        if (!entry_in(other, cell, &e) || (f->is_set && strided_find(&f->body, &e)))
            continue;
        if (f->counters->keys >= f->geometry.key_limit)
            return PERHAPS_ERR_FULL;
        int error = strided_insert(&f->body, &e);
        if (error)
            return error;
        f->counters->keys++;
    }
    return 0;
}

/* ---- Two filters ------------------------------------------------------------------------- */

static unsigned copies_of(const perhaps_filter *f, const struct strided *e)
{
    return (unsigned)__builtin_popcount(strided_find(&f->body, e));
}

/* Keeps of each entry as many copies as the other filter has. */
static void intersect(perhaps_filter *f, const perhaps_filter *other)
{
    uint64_t left = 0;
    for (uint64_t cell = 0; cell < f->geometry.field[NCELLS]; cell++) {
        struct strided e;
        if (!entry_in(f, cell, &e))
            continue;
        if (copies_of(f, &e) > copies_of(other, &e))
            strided_set(f->body.bytes, cell, (unsigned)f->geometry.field[WIDTH], 0);
        else
            left++;
    }
    f->counters->keys = left;
}

static void marking(const struct geometry *g, struct marking *m)
{
    entries_marking(pair_count(g), m);
}

/* Returns whether no copy of an entry lies in a cell before this one. */
static bool is_first_copy(const perhaps_filter *f, const struct strided *e, uint64_t cell)
{
    unsigned found = strided_find(&f->body, e);
    for (unsigned i = 0; i < STRIDED_COPIES; i++)
        if (found >> i & 1 && strided_cell(e, i) < cell)
            return false;
    return true;
}

/* Returns how many different entries a filter has that the other has not. */
static uint64_t count_entries(const perhaps_filter *f, const perhaps_filter *without)
{
    uint64_t count = 0;
    for (uint64_t cell = 0; cell < f->geometry.field[NCELLS]; cell++) {
        struct strided e;
        if (entry_in(f, cell, &e) && is_first_copy(f, &e, cell))
            count += !without || !copies_of(without, &e);
    }
    return count;
}

static void count_marked(const perhaps_filter *a, uint64_t a_factor, const perhaps_filter *b,
                         uint64_t b_factor, struct marked *marked)
{
    (void)a_factor;
    (void)b_factor;
    marked->a = count_entries(a, NULL);
    marked->b = count_entries(b, NULL);
    marked->either = marked->b + count_entries(a, b);
}

static const struct compares compares = { .marking = marking, .count = count_marked };

const struct filter_kind kind_strided = {
    .about = { .name = "strided",
               .summary = "cuckoo filter of four cells a key: keys can be removed, fewest bits",
               .abilities = PERHAPS_CAN_REMOVE | PERHAPS_CAN_MERGE },
    .id = 12,
    .field_names = field_names,
    .plan = plan,
    .pays = pays,
    .set_geometry = set_geometry,
    .predict = predict,
    .measure = measure,
    .bind = bind,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = reads,
    .add = add,
    .remove = remove_,
    .copies_most = STRIDED_COPIES,
    .merge = merge,
    .intersect = intersect,
    .compares = &compares,
};
