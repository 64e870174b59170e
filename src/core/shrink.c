/* shrink.c - makes a smaller filter of one that was planned for more keys than it got.
 *
 * Invariant: the small filter keeps the promise of its own geometry, as one that was planned.
 * Its fpr is computed from all of its bits before anybody gets it, and its capacity is one for
 * which a plan would have accepted its size; or it has more keys than that, and takes no
 * others. */
#include "../base/sizing.h"
#include "../filter/counters.h"
#include "../filter/filter.h"

#include <math.h>

/* Returns the largest divisor of 'units' that is at most 'most'. */
static uint64_t largest_factor(uint64_t units, uint64_t most)
{
    uint64_t best = 1;
    for (uint64_t low = 1; low <= units / low; low++) {
        uint64_t high = units / low;
        if (units % low)
            continue;
        if (low <= most && low > best)
            best = low;
        if (high <= most && high > best)
            best = high;
    }
    return best;
}

static uint64_t different_keys(const perhaps_filter *f)
{
    const struct folds *folds = f->kind->folds;
    return folds->keys ? folds->keys(f) : counter_get(&f->counters->keys);
}

/* Returns a factor that no filter of so many keys exceeds: each key takes -log2(fpr) bits at
 * least.  It only saves time. */
static uint64_t factor_bound(const perhaps_filter *f, double fpr, uint64_t units)
{
    double least = -log2(fpr) * (double)different_keys(f);
    double bound = 8.0 * (double)f->geometry.body_nbytes / fmax(least, 1);
    return bound < (double)units ? (uint64_t)bound : units;
}

/* Sets *small to the geometry of a filter with the keys of f that is smaller by this factor and
 * keeps this fpr.  Its capacity is one that a plan would accept.  If the keys are already more,
 * but the fpr is kept with them, it is their number: then the key limit refuses all others.
 * Returns 0, or PERHAPS_ERR_LIMIT if there is no such geometry. */
static int plan_small(const perhaps_filter *f, double fpr, uint64_t factor,
                      struct geometry *small)
{
    const struct folds *folds = f->kind->folds;
    uint64_t keys = different_keys(f);
    *small = f->geometry;
    small->fpr = fpr;
    folds->divide(small, factor);
    if (f->kind->predict(small, (double)keys) > fpr)
        return PERHAPS_ERR_LIMIT;
    small->capacity = folds->capacity(small);
    if (!folds->keys && keys > small->capacity)
        small->capacity = keys;
    if (!geometry_in_range(f->kind, small->capacity, fpr) || geometry_check(f->kind, small) ||
        !geometry_may_hold(small, counter_get(&f->counters->keys)))
        return PERHAPS_ERR_LIMIT;
    return 0;
}

/* Makes the filter that is smaller by this factor.  Returns 0; PERHAPS_ERR_LIMIT if no such
 * filter can be planned; PERHAPS_ERR_FULL if it would exceed the fpr with its actual bits; or
 * PERHAPS_ERR_MEMORY. */
static int fold_by(const perhaps_filter *f, double fpr, uint64_t factor, perhaps_filter **small)
{
    const struct folds *folds = f->kind->folds;
    struct geometry g;
    int error = plan_small(f, fpr, factor, &g);
    if (!error)
        error = filter_make(f->kind, &g, &f->hasher, &f->allocator, true, f->shared, small);
    if (error)
        return error;
    folds->fold(&g, f->body.bytes, (*small)->body.bytes, g.body_nbytes - folds->tail_nbytes,
                factor);
    if (folds->finish)
        folds->finish(*small);
    *(*small)->counters = *f->counters;
    (*small)->preference = f->preference;
    if (f->kind->measure(*small, UINT64_MAX).fpr <= fpr)
        return 0;
    perhaps_free(*small);
    *small = NULL;
    return PERHAPS_ERR_FULL;
}

/* Makes the smallest filter that there is.  Returns 0; PERHAPS_ERR_LIMIT if none is smaller; or
 * PERHAPS_ERR_MEMORY.  Where the bits are not as their number of keys says, and hardly any
 * factor fits, it soon tries only half of the factor before. */
static int fold_most(const perhaps_filter *f, double fpr, perhaps_filter **small)
{
    enum { TRIES = 4 };
    uint64_t units = f->kind->folds->units(&f->geometry), factor;
    uint64_t most = factor_bound(f, fpr, units);
    for (int tries = 0; (factor = largest_factor(units, most)) > 1;) {
        int error = fold_by(f, fpr, factor, small);
        if (error != PERHAPS_ERR_LIMIT && error != PERHAPS_ERR_FULL)
            return error;
        tries += error == PERHAPS_ERR_FULL;
        most = tries < TRIES ? factor - 1 : factor / 2;
    }
    return PERHAPS_ERR_LIMIT;
}

/* Makes a part smaller, or if that is not possible copies it, and sets *smaller to which of the
 * two it did.  A copy must keep the fpr, too, which may be less than that of the part. */
static int shrink_part(const perhaps_filter *part, double fpr, perhaps_filter **small,
                       bool *smaller)
{
    int error = fold_most(part, fpr, small);
    *smaller = !error;
    if (error == PERHAPS_ERR_LIMIT)
        error = fpr < part->geometry.fpr ? fold_by(part, fpr, 1, small)
                                         : perhaps_clone(part, small);
    return error == PERHAPS_ERR_FULL ? PERHAPS_ERR_LIMIT : error;
}

/* Makes each part smaller on its own.  *small has no parts yet. */
static int shrink_parts(const perhaps_filter *f, double fpr, perhaps_filter *small)
{
    bool any = false;
    for (size_t i = 0; i < f->parts.count; i++) {
        bool smaller;
        perhaps_filter *part;
        double part_fpr = f->kind->composite->part_fpr(f, i, fpr);
        int error = shrink_part(f->parts.part[i], part_fpr, &part, &smaller);
        if (error)
            return error;
        if ((error = filter_adopt(small, part))) {
            perhaps_free(part);
            return error;
        }
        any |= smaller;
    }
    return any ? filter_attach(small) : PERHAPS_ERR_LIMIT;
}

static int shrink_composite(const perhaps_filter *f, double fpr, perhaps_filter **small)
{
    struct geometry g = f->geometry;
    g.fpr = fpr;
    int error = geometry_check(f->kind, &g);
    if (!error)
        error = filter_make(f->kind, &g, &f->hasher, &f->allocator, true, f->shared, small);
    if (error)
        return error;
    memcpy((*small)->body.bytes, f->body.bytes, g.body_nbytes);
    *(*small)->counters = *f->counters;
    (*small)->preference = f->preference;
    error = shrink_parts(f, fpr, *small);
    if (error) {
        perhaps_free(*small);
        *small = NULL;
    }
    return error;
}

int perhaps_shrink(const perhaps_filter *f, double fpr, perhaps_filter **small)
{
    const struct composite *composite = f->kind->composite;
    *small = NULL;
    if (fpr != 0 && !sizing_in_range(1, fpr))
        return PERHAPS_ERR_ARGUMENT;
    double asked = fpr != 0 ? fpr : f->geometry.fpr;
    if (!composite)
        return f->kind->folds ? fold_most(f, asked, small) : PERHAPS_ERR_UNSUPPORTED;
    return composite->part_fpr && f->geometry.base->folds ? shrink_composite(f, asked, small)
                                                          : PERHAPS_ERR_UNSUPPORTED;
}
