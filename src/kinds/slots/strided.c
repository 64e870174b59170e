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
 * would find room up to a load of .90 finds it up to .94, and random walks behind it up to .97
 * (doc/THEORY.md has the figures).
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
#include "../kinds.h"
#include "flat.h"

static const char *const strided_fields[] = { "ncells", "cell_bits", NULL };

/* Eight bits of a fingerprint choose the stride. */
enum { CELL_BITS_MIN = 9 };

static const struct flat_shape strided_shape = { .strided = true,
                                                 .slots = 1,
                                                 .copies = STRIDED_CELLS,
                                                 .behind = STRIDE_MOST,
                                                 .size_most = UINT64_C(1) << 48,
                                                 .width_min = CELL_BITS_MIN,
                                                 .width_small = CELL_BITS_MIN,
                                                 .width_other = 1,
                                                 .load = 0.956,
                                                 .load_compact = 0.965 };

static int strided_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    return flat_plan(&strided_shape, g, options, why);
}

/* It does if the fpr alone takes such wide cells.  Otherwise buckets are as small, and have
 * room for more copies. */
static bool strided_pays(const struct geometry *g)
{
    struct geometry narrower = *g;
    narrower.field[WIDTH]--;
    return (double)g->capacity > flat_distinct_limit(&strided_shape, &narrower);
}

static int strided_set_geometry(struct geometry *g)
{
    return flat_set_geometry(&strided_shape, g);
}

static double strided_predict(const struct geometry *g, double keys)
{
    return flat_predict(&strided_shape, g, keys);
}

static void strided_picking(const struct geometry *g, struct picking *m)
{
    flat_picking(&strided_shape, g, m);
}

static void strided_bind(perhaps_filter *f)
{
    flat_bind(f, &strided_shape);
}

static const struct compares compares = { .picking = strided_picking,
                                          .count = flat_count_picked };

const struct filter_kind kind_strided = {
    .about = { .name = "strided",
               .summary = "cuckoo filter of four cells a key: keys can be removed, fewest bits",
               .abilities = PERHAPS_CAN_REMOVE | PERHAPS_CAN_MERGE },
    .id = 12,
    .field_names = strided_fields,
    .plan = strided_plan,
    .pays = strided_pays,
    .set_geometry = strided_set_geometry,
    .predict = strided_predict,
    .measure = flat_measure,
    .bind = strided_bind,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = flat_reads,
    .answer = flat_answer,
    .add = flat_add,
    .remove = flat_remove,
    .copies_most = STRIDED_CELLS,
    .merge = flat_merge,
    .intersect = flat_intersect,
    .compares = &compares,
};
