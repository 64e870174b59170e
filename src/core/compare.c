/* compare.c - estimates how many keys two filters have in common.  (The mathematics is in
 * src/base/overlap.c.)
 *
 * Two filters of different sizes are compared in the smaller size that both can be folded to
 * (src/kinds/lines/fold.h): in it each has, bit for bit, what it would have if it had been made
 * so small. */
#include <string.h>

#include "../filter/filter.h"
#include <perhaps.h>

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Finds the factors by which two filters of one kind must be made smaller to get the same
 * fields, and sets *g to such a geometry, as far as a picking depends on it.  Returns false if
 * there are none. */
static bool find_factors(const perhaps_filter *a, const perhaps_filter *b, uint64_t factor[2],
                         struct geometry *g)
{
    const struct folds *folds = a->kind->folds;
    struct geometry other = b->body.geometry;
    *g = a->body.geometry;
    factor[0] = factor[1] = 1;
    if (folds) {
        uint64_t units = folds->units(g), other_units = folds->units(&other);
        uint64_t common = greatest_divisor(units, other_units);
        factor[0] = units / common;
        factor[1] = other_units / common;
        folds->divide(g, factor[0]);
        folds->divide(&other, factor[1]);
    }
    return !memcmp(g->field, other.field, sizeof other.field);
}

int perhaps_compare(const perhaps_filter *a, const perhaps_filter *b,
                    struct perhaps_comparison *result)
{
    struct geometry g;
    struct picking picking = { 0 };
    struct picked picked = { 0 };
    uint64_t factor[2];
    if (!a->kind->compares || !b->kind->compares)
        return PERHAPS_ERR_UNSUPPORTED;
    if (a->kind != b->kind || !hasher_equal(&a->hasher, &b->hasher) ||
        !find_factors(a, b, factor, &g))
        return PERHAPS_ERR_MISMATCH;
    int error = filter_check(a);
    if (!error)
        error = filter_check(b);
    if (error)
        return error;
    a->kind->compares->picking(&g, &picking);
    a->kind->compares->count(a, factor[0], b, factor[1], &picked);
    if (factor[0] * factor[1] > 1 && (double)picked.either >= picking.cells)
        return PERHAPS_ERR_MISMATCH; /* the common size is too small to tell anything */
    overlap_estimate(&picking, &picked, result);
    return 0;
}
