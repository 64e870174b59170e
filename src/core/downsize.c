/* downsize.c - makes a smaller filter of one that was planned for more keys than it got.
 *
 * Invariant: the small filter keeps the promise of its own geometry, as one that was planned.
 * Its fpr is computed from all of its bits before anybody gets it, and its capacity is one for
 * which a plan would have accepted its size; or it has more keys than that, and takes no
 * others.  Its count is the one that so many keys have in a filter of its size. */
#include "downsize.h"

#include <math.h>

#include "../base/sizing.h"
#include "../filter/counted.h"
#include "../filter/counters.h"
#include <perhaps_sets.h>

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

/* Returns the least divisor of 'units' that is more than 1; or 1, if they are 1. */
static uint64_t least_factor(uint64_t units)
{
    for (uint64_t factor = 2; factor <= units / factor; factor++)
        if (units % factor == 0)
            return factor;
    return units;
}

/* A filter that is made smaller, and how many different keys it has: by its count and, where
 * copies are counted, too, by its cells. */
struct large {
    const perhaps_filter *f;
    double counted, different;
};

static struct large large_of(const perhaps_filter *f)
{
    const struct folds *folds = f->kind->folds;
    const double counted = filter_different(f);
    return (struct large){ f, counted, folds->keys ? (double)folds->keys(f) : counted };
}

/* Returns a factor that no filter of so many keys exceeds: each key takes -log2(fpr) bits at
 * least.  It only saves time. */
static uint64_t factor_bound(const struct large *large, double fpr, uint64_t units)
{
    const perhaps_filter *f = large->f;
    double least = -log2(fpr) * large->different;
    double bound = 8.0 * (double)f->body.geometry.body_nbytes / fmax(least, 1);
    return bound < (double)units ? (uint64_t)bound : units;
}

/* Sets *small to the geometry of a filter with the keys of f that is smaller by this factor and
 * keeps this fpr.  Its capacity is one that a plan would accept.  If the keys are already more,
 * but the fpr is kept with them, it is their number: then the key limit refuses all others.
 * Returns 0, or PERHAPS_ERR_LIMIT if there is no such geometry. */
static int plan_small(const struct large *large, double fpr, uint64_t factor,
                      struct geometry *small)
{
    const perhaps_filter *f = large->f;
    const struct folds *folds = f->kind->folds;
    *small = f->body.geometry;
    small->fpr = fpr;
    folds->divide(small, factor);
    if (f->kind->predict(small, large->different) > fpr)
        return PERHAPS_ERR_LIMIT;
    small->capacity = folds->capacity(small);
    if (!folds->keys && large->different > (double)small->capacity)
        small->capacity = (uint64_t)ceil(large->different);
    if (!geometry_in_range(f->kind, small->capacity, fpr) || geometry_check(f->kind, small) ||
        !(filter_counts_bits(f) || geometry_may_hold(small, counter_get(&f->counters->keys))))
        return PERHAPS_ERR_LIMIT;
    return 0;
}

/* ---- Folding ----------------------------------------------------------------------------- */

/* Reads as many bytes of the large body at once, which are still in the cache when what was
 * made of them is looked at. */
enum { STEP_NBYTES = 1 << 18 };

/* Returns how many bytes of a small body are made at once. */
static uint64_t piece_nbytes(const perhaps_filter *small, uint64_t factor)
{
    uint64_t unit = small->kind->folds->unit_nbytes(&small->body.geometry);
    uint64_t units = STEP_NBYTES / factor / unit;
    return units ? units * unit : unit;
}

static int enter(const struct watcher *watcher, const uint8_t *bytes, uint64_t nbytes)
{
    return watcher ? watcher->enter(watcher->context, bytes, nbytes) : 0;
}

/* Folds the body of a filter, from its first byte to its last, to that of a small one, and sets
 * *rate to the fpr of all its bits.  Returns 0, or an error of enter(). */
static int fold_body(const perhaps_filter *f, const struct watcher *watcher,
                     perhaps_filter *small, double *rate)
{
    const struct folds *folds = f->kind->folds;
    const struct geometry *g = &small->body.geometry;
    const uint8_t *from = f->body.bytes;
    uint8_t *to = small->body.bytes;
    uint64_t factor = folds->units(&f->body.geometry) / folds->units(g), n;
    uint64_t left = g->body_nbytes - folds->tail_nbytes, most = piece_nbytes(small, factor);
    struct folded folded = { 0 };
    for (; left; left -= n, from += n * factor, to += n) {
        n = left < most ? left : most;
        int error = enter(watcher, from, n * factor);
        if (error)
            return error;
        folds->fold(g, f->cpu, from, to, n, factor);
        folds->look(g, f->cpu, to, n, &folded);
        if (folds->tail)
            folds->tail(f->cpu, to, n, folded.tail);
    }
    memcpy(to, folded.tail, (size_t)folds->tail_nbytes);
    *rate = folds->rate(g, &folded);
    return 0;
}

/* Ends a call that has made *small: gives it up after an error, which it returns. */
static int made(perhaps_filter **small, int error)
{
    if (error) {
        perhaps_free(*small);
        *small = NULL;
    }
    return error;
}

/* Makes the filter of this geometry.  Returns 0, PERHAPS_ERR_MEMORY or an error of enter(). */
static int fold_to(const struct geometry *g, const perhaps_filter *f,
                   const struct watcher *watcher, perhaps_filter **small, double *rate)
{
    int error = filter_make(f->kind, g, &f->hasher, &f->allocator, true, f->shared, small);
    if (error)
        return error;
    filter_be_like(*small, f);
    return made(small, fold_body(f, watcher, *small, rate));
}

/* ---- Choosing ---------------------------------------------------------------------------- */

/* Counts the keys of a small filter whose fpr is 'rate', with one cell a key the share of
 * picked cells.  Where some keys were not counted by chance, the number is an estimate. */
static void count_small(const struct large *large, perhaps_filter *small, double rate)
{
    const double different = round(large->counted);
    if (!filter_counts_bits(small))
        return;
    const uint64_t before = small->counters->keys;
    const uint64_t count = filter_count_of(small, large->counted, rate);
    small->counters->keys = count;
    if (different != (double)before || different != (double)count)
        filter_become_estimated(small);
}

/* Makes the filter that is smaller by this factor.  Returns 0; PERHAPS_ERR_LIMIT if no such
 * filter can be planned; PERHAPS_ERR_FULL if it would exceed the fpr with its actual bits;
 * PERHAPS_ERR_MEMORY, or an error of enter(). */
static int fold_by(const struct watcher *watcher, const struct large *large, double fpr,
                   uint64_t factor, perhaps_filter **small)
{
    struct geometry g;
    double rate;
    int error = plan_small(large, fpr, factor, &g);
    if (!error)
        error = fold_to(&g, large->f, watcher, small, &rate);
    if (error)
        return error;
    if (rate > fpr)
        return made(small, PERHAPS_ERR_FULL);
    count_small(large, *small, rate);
    return 0;
}

/* Makes the smallest filter that there is.  Returns 0; PERHAPS_ERR_LIMIT if none is smaller; or
 * an error of fold_by().  Where the bits are not as their number of keys says, and hardly any
 * factor fits, it soon tries only half of the factor before; but always the least one. */
static int fold_most(const struct watcher *watcher, const struct large *large, double fpr,
                     perhaps_filter **small)
{
    const perhaps_filter *f = large->f;
    uint64_t units = f->kind->folds->units(&f->body.geometry), factor;
    uint64_t most = factor_bound(large, fpr, units), least = least_factor(units);
    for (int tries = 0; (factor = largest_factor(units, most)) > 1;) {
        int error = fold_by(watcher, large, fpr, factor, small);
        if (error != PERHAPS_ERR_LIMIT && error != PERHAPS_ERR_FULL)
            return error;
        tries += error == PERHAPS_ERR_FULL;
        most = tries < FOLD_TRIES ? factor - 1 : factor / 2;
        if (most < least && factor > least)
            most = least;
    }
    return PERHAPS_ERR_LIMIT;
}

/* ---- Parts ------------------------------------------------------------------------------- */

/* Makes a filter like this one. */
static int copy(const struct watcher *watcher, const perhaps_filter *f, perhaps_filter **same)
{
    int error = enter(watcher, f->body.bytes, f->body.geometry.body_nbytes);
    return error ? error : perhaps_clone(f, same);
}

/* Makes a part smaller, or if that is not possible copies it, and sets *smaller to which of the
 * two it did.  A copy must keep the fpr, too, which may be less than that of the part. */
static int shrink_part(const struct watcher *watcher, const perhaps_filter *part, double fpr,
                       perhaps_filter **small, bool *smaller)
{
    const struct large large = large_of(part);
    int error = fold_most(watcher, &large, fpr, small);
    *smaller = !error;
    if (error == PERHAPS_ERR_LIMIT)
        error = fpr < part->body.geometry.fpr ? fold_by(watcher, &large, fpr, 1, small)
                                              : copy(watcher, part, small);
    return error == PERHAPS_ERR_FULL ? PERHAPS_ERR_LIMIT : error;
}

/* The count of a composite is the sum of those of its parts, but for what it counts itself: it
 * changes with that of a part. */
static void carry_count(perhaps_filter *f, const perhaps_filter *before,
                        const perhaps_filter *after)
{
    const uint64_t all = f->counters->keys + after->counters->keys;
    const uint64_t was = before->counters->keys;
    f->counters->keys = all - (was < all ? was : all);
}

/* Makes each part smaller on its own.  *small has no parts yet. */
static int shrink_parts(const struct watcher *watcher, const perhaps_filter *f, double fpr,
                        perhaps_filter *small)
{
    bool any = false;
    for (size_t i = 0; i < f->parts->count; i++) {
        bool smaller;
        perhaps_filter *part;
        double part_fpr = f->kind->composite->part_fpr(f, i, fpr);
        int error = shrink_part(watcher, f->parts->part[i], part_fpr, &part, &smaller);
        if (error)
            return error;
        if ((error = filter_adopt(small, part))) {
            perhaps_free(part);
            return error;
        }
        any |= smaller;
        carry_count(small, f->parts->part[i], part);
    }
    return any ? filter_attach(small) : PERHAPS_ERR_LIMIT;
}

static int shrink_composite(const struct watcher *watcher, const perhaps_filter *f, double fpr,
                            perhaps_filter **small)
{
    struct geometry g = f->body.geometry;
    g.fpr = fpr;
    int error = geometry_check(f->kind, &g);
    if (!error)
        error = filter_make(f->kind, &g, &f->hasher, &f->allocator, true, f->shared, small);
    if (error)
        return error;
    memcpy((*small)->body.bytes, f->body.bytes, g.body_nbytes);
    filter_be_like(*small, f);
    return made(small, shrink_parts(watcher, f, fpr, *small));
}

/* ---- All filters ------------------------------------------------------------------------- */

int downsize(const perhaps_filter *f, double fpr, const struct watcher *watcher,
             perhaps_filter **small)
{
    const struct composite *composite = f->kind->composite;
    *small = NULL;
    if (fpr != 0 && !sizing_in_range(1, fpr))
        return PERHAPS_ERR_ARGUMENT;
    double asked = fpr != 0 ? fpr : f->body.geometry.fpr;
    if (!composite && !f->kind->folds)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!composite) {
        const struct large large = large_of(f);
        return fold_most(watcher, &large, asked, small);
    }
    return composite->part_fpr && f->body.geometry.base->folds
               ? shrink_composite(watcher, f, asked, small)
               : PERHAPS_ERR_UNSUPPORTED;
}

int perhaps_shrink(const perhaps_filter *f, double fpr, perhaps_filter **small)
{
    *small = NULL;
    int error = filter_check(f);
    return error ? error : downsize(f, fpr, NULL, small);
}

/* The least factor makes the largest of the smaller filters.  Its fpr is what its bits say, and
 * at least what is predicted for its keys, since a plan would ask for that, too. */
int downsize_least_fpr(const perhaps_filter *f, const struct watcher *watcher, double *fpr)
{
    const struct folds *folds = f->kind->folds;
    uint64_t factor = least_factor(folds->units(&f->body.geometry));
    struct geometry g = f->body.geometry;
    perhaps_filter *small;
    double rate;
    *fpr = 0;
    if (factor < 2)
        return 0;
    folds->divide(&g, factor);
    if (geometry_check(f->kind, &g))
        return 0;
    int error = fold_to(&g, f, watcher, &small, &rate);
    if (error)
        return error;
    perhaps_free(small);
    const struct large large = large_of(f);
    double predicted = f->kind->predict(&g, large.different);
    *fpr = fmax(rate, predicted) * (1 + 1e-9);
    *fpr = fmax(*fpr, PERHAPS_FPR_MIN);
    if (!sizing_in_range(1, *fpr) || plan_small(&large, *fpr, factor, &g))
        *fpr = 0;
    return 0;
}
