/* shrink.c - makes a smaller filter of one that was planned for more keys than it got.
 *
 * Invariant: the small filter keeps the promise of its own geometry, as one that was planned.
 * Its fpr is computed from all of its bits before anybody gets it, and its capacity is one for
 * which a plan would have accepted its size; or it has more keys than that, and takes no
 * others.  Its count is the one that so many keys have in a filter of its size. */
#include "shrink.h"

#include <math.h>

#include "../base/sizing.h"
#include "../filter/counted.h"
#include "../filter/counters.h"

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
    double bound = 8.0 * (double)f->geometry.body_nbytes / fmax(least, 1);
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
    *small = f->geometry;
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

/* A body that is folded. */
struct folding {
    const perhaps_filter *f;  /* the large filter */
    const struct geometry *g; /* of the small filter */
    const struct shrinking *how;
    uint8_t *body;                   /* where the small body goes; NULL: nowhere */
    const struct perhaps_sink *sink; /* takes it; NULL: nobody does */
    bool measures;                   /* adds up the fpr, too */
    struct folded folded;            /* what is in it */
};

/* Reads as many bytes of the large body at once, which are still in the cache when what was
 * made of them is looked at. */
enum { STEP_NBYTES = 1 << 18 };

/* Returns how many bytes of the small body are made at once. */
static uint64_t piece_nbytes(const struct folding *fold, uint64_t factor)
{
    uint64_t unit = fold->f->kind->folds->unit_nbytes(fold->g);
    uint64_t units = STEP_NBYTES / factor / unit;
    return units ? units * unit : unit;
}

static int enter(const struct shrinking *how, const uint8_t **bytes, uint64_t nbytes)
{
    return how->enter ? how->enter(how->context, bytes, nbytes) : 0;
}

/* Makes a piece of the small body at 'to', and gives it to who wants it. */
static int fold_piece(struct folding *fold, uint64_t at, uint8_t *to, uint64_t nbytes,
                      uint64_t factor)
{
    const struct folds *folds = fold->f->kind->folds;
    const uint8_t *from = fold->f->body.bytes + at * factor;
    enum cpu cpu = fold->f->cpu;
    int error = enter(fold->how, &from, nbytes * factor);
    if (error)
        return error;
    folds->fold(fold->g, cpu, from, to, nbytes, factor);
    if (fold->measures)
        folds->look(fold->g, cpu, to, nbytes, &fold->folded);
    if (folds->tail)
        folds->tail(cpu, to, nbytes, fold->folded.tail);
    return fold->sink ? fold->sink->write(fold->sink->context, to, (size_t)nbytes) : 0;
}

/* Folds a body from its first byte to its last.  Returns 0, PERHAPS_ERR_MEMORY, or an error of
 * enter() or the sink. */
static int fold_body(struct folding *fold)
{
    const struct folds *folds = fold->f->kind->folds;
    const struct perhaps_allocator *allocator = &fold->f->allocator;
    uint64_t factor = folds->units(&fold->f->geometry) / folds->units(fold->g);
    uint64_t nbytes = fold->g->body_nbytes - folds->tail_nbytes;
    uint64_t most = piece_nbytes(fold, factor), n;
    uint8_t *piece = fold->body ? NULL : allocate(allocator, most);
    int error = fold->body || piece ? 0 : PERHAPS_ERR_MEMORY;
    for (uint64_t at = 0; at < nbytes && !error; at += n) {
        n = nbytes - at < most ? nbytes - at : most;
        error = fold_piece(fold, at, piece ? piece : fold->body + at, n, factor);
    }
    if (!error && fold->body)
        memcpy(fold->body + nbytes, fold->folded.tail, (size_t)folds->tail_nbytes);
    if (!error && fold->sink && folds->tail_nbytes)
        error = fold->sink->write(fold->sink->context, fold->folded.tail,
                                  (size_t)folds->tail_nbytes);
    release(allocator, piece, most);
    return error;
}

/* Folds a body and measures it.  Returns what fold_body() does; or PERHAPS_ERR_FULL if the
 * small filter exceeds its fpr. */
static int fold_measured(struct folding *fold)
{
    fold->measures = true;
    int error = fold_body(fold);
    bool exceeds = !error && fold->f->kind->folds->rate(fold->g, &fold->folded) > fold->g->fpr;
    return exceeds ? PERHAPS_ERR_FULL : error;
}

/* ---- Choosing ---------------------------------------------------------------------------- */

/* What becomes of a filter. */
struct task {
    const struct shrinking *how;
    bool with_bodies; /* of the small filters */
};

/* Counts the keys of a small filter whose fpr is 'rate', with one mark a key the share of
 * marked cells.  Where some keys were not counted by chance, the number is an estimate. */
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
 * PERHAPS_ERR_MEMORY, or an error of enter() or write(). */
static int fold_by(const struct task *task, const struct large *large, double fpr,
                   uint64_t factor, perhaps_filter **small)
{
    struct geometry g;
    const perhaps_filter *f = large->f;
    int error = plan_small(large, fpr, factor, &g);
    if (!error)
        error = filter_make(f->kind, &g, &f->hasher, &f->allocator, task->with_bodies,
                            f->shared, small);
    if (error)
        return error;
    filter_be_like(*small, f);
    if (task->how->write) { /* the number of keys does not depend on the bits */
        count_small(large, *small, 0);
        error = task->how->write(task->how->context, *small);
    } else {
        struct folding fold = {
            .f = f, .g = &g, .how = task->how, .body = (*small)->body.bytes
        };
        error = fold_measured(&fold);
        if (!error)
            count_small(large, *small, f->kind->folds->rate(&g, &fold.folded));
    }
    if (error) {
        perhaps_free(*small);
        *small = NULL;
    }
    return error;
}

/* Makes the smallest filter that there is.  Returns 0; PERHAPS_ERR_LIMIT if none is smaller; or
 * an error of fold_by().  Where the bits are not as their number of keys says, and hardly any
 * factor fits, it soon tries only half of the factor before; but always the least one. */
static int fold_most(const struct task *task, const struct large *large, double fpr,
                     perhaps_filter **small)
{
    const perhaps_filter *f = large->f;
    uint64_t units = f->kind->folds->units(&f->geometry), factor;
    uint64_t most = factor_bound(large, fpr, units), least = least_factor(units);
    for (int tries = 0; (factor = largest_factor(units, most)) > 1;) {
        int error = fold_by(task, large, fpr, factor, small);
        if (error != PERHAPS_ERR_LIMIT && error != PERHAPS_ERR_FULL)
            return error;
        tries += error == PERHAPS_ERR_FULL;
        most = tries < FOLD_TRIES ? factor - 1 : factor / 2;
        if (most < least && factor > least)
            most = least;
    }
    return PERHAPS_ERR_LIMIT;
}

/* Makes a filter like this one. */
static int copy(const struct task *task, const perhaps_filter *f, perhaps_filter **same)
{
    if (task->with_bodies)
        return perhaps_clone(f, same);
    int error =
        filter_make(f->kind, &f->geometry, &f->hasher, &f->allocator, false, f->shared, same);
    if (error)
        return error;
    filter_be_like(*same, f);
    return 0;
}

/* Returns whether copy() made the filter. */
static bool is_copy(const perhaps_filter *f, const perhaps_filter *small)
{
    return f->geometry.body_nbytes == small->geometry.body_nbytes &&
           f->geometry.fpr <= small->geometry.fpr;
}

/* Makes a part smaller, or if that is not possible copies it, and sets *smaller to which of the
 * two it did.  A copy must keep the fpr, too, which may be less than that of the part. */
static int shrink_part(const struct task *task, const perhaps_filter *part, double fpr,
                       perhaps_filter **small, bool *smaller)
{
    const struct large large = large_of(part);
    int error = fold_most(task, &large, fpr, small);
    *smaller = !error;
    if (error == PERHAPS_ERR_LIMIT)
        error = fpr < part->geometry.fpr ? fold_by(task, &large, fpr, 1, small)
                                         : copy(task, part, small);
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
static int shrink_parts(const struct task *task, const perhaps_filter *f, double fpr,
                        perhaps_filter *small)
{
    bool any = false;
    for (size_t i = 0; i < f->parts.count; i++) {
        bool smaller;
        perhaps_filter *part;
        double part_fpr = f->kind->composite->part_fpr(f, i, fpr);
        int error = shrink_part(task, f->parts.part[i], part_fpr, &part, &smaller);
        if (error)
            return error;
        if ((error = filter_adopt(small, part))) {
            perhaps_free(part);
            return error;
        }
        any |= smaller;
        carry_count(small, f->parts.part[i], part);
    }
    return any ? filter_attach(small) : PERHAPS_ERR_LIMIT;
}

static int shrink_composite(const struct task *task, const perhaps_filter *f, double fpr,
                            perhaps_filter **small)
{
    struct geometry g = f->geometry;
    g.fpr = fpr;
    int error = geometry_check(f->kind, &g);
    if (!error)
        error = filter_make(f->kind, &g, &f->hasher, &f->allocator, true, f->shared, small);
    if (error)
        return error;
    memcpy((*small)->body.bytes, f->body.bytes, g.body_nbytes);
    filter_be_like(*small, f);
    error = shrink_parts(task, f, fpr, *small);
    if (error) {
        perhaps_free(*small);
        *small = NULL;
    }
    return error;
}

static int shrink(const struct task *task, const perhaps_filter *f, perhaps_filter **small)
{
    const struct composite *composite = f->kind->composite;
    double fpr = task->how->fpr;
    *small = NULL;
    if (fpr != 0 && !sizing_in_range(1, fpr))
        return PERHAPS_ERR_ARGUMENT;
    double asked = fpr != 0 ? fpr : f->geometry.fpr;
    if (!composite && !f->kind->folds)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!composite) {
        const struct large large = large_of(f);
        return fold_most(task, &large, asked, small);
    }
    return composite->part_fpr && f->geometry.base->folds
               ? shrink_composite(task, f, asked, small)
               : PERHAPS_ERR_UNSUPPORTED;
}

int perhaps_shrink(const perhaps_filter *f, double fpr, perhaps_filter **small)
{
    const struct shrinking how = { .fpr = fpr };
    int error = filter_check(f);
    if (error) {
        *small = NULL;
        return error;
    }
    return shrink(&(struct task){ &how, true }, f, small);
}

/* ---- Piece by piece ---------------------------------------------------------------------- */

int shrink_plan(const perhaps_filter *f, const struct shrinking *how, perhaps_filter **small)
{
    return shrink(&(struct task){ how, false }, f, small);
}

/* Writes bytes as they are. */
static int write_copy(const perhaps_filter *f, const struct shrinking *how,
                      const struct perhaps_sink *sink)
{
    uint64_t nbytes = f->geometry.body_nbytes, n;
    int error = 0;
    for (uint64_t at = 0; at < nbytes && !error; at += n) {
        n = nbytes - at < STEP_NBYTES ? nbytes - at : STEP_NBYTES;
        const uint8_t *bytes = f->body.bytes + at;
        error = enter(how, &bytes, n);
        if (!error)
            error = sink->write(sink->context, bytes, (size_t)n);
    }
    return error;
}

int shrink_write(const perhaps_filter *f, const perhaps_filter *small,
                 const struct shrinking *how, const struct perhaps_sink *sink)
{
    if (small->body.bytes)
        return sink->write(sink->context, small->body.bytes,
                           (size_t)small->geometry.body_nbytes);
    if (is_copy(f, small))
        return write_copy(f, how, sink);
    struct folding fold = { .f = f, .g = &small->geometry, .how = how, .sink = sink };
    if (!how->write)
        return fold_body(&fold);
    int error = fold_measured(&fold);
    return error ? error : how->end(how->context);
}

/* The least factor makes the largest of the smaller filters.  Its fpr is what its bits say, and
 * at least what is predicted for its keys, since a plan would ask for that, too. */
int shrink_least_fpr(const perhaps_filter *f, const struct shrinking *how, double *fpr)
{
    const struct folds *folds = f->kind->folds;
    uint64_t factor = least_factor(folds->units(&f->geometry));
    struct geometry g = f->geometry;
    *fpr = 0;
    if (factor < 2)
        return 0;
    folds->divide(&g, factor);
    if (geometry_check(f->kind, &g))
        return 0;
    struct folding fold = { .f = f, .g = &g, .how = how, .measures = true };
    int error = fold_body(&fold);
    if (error)
        return error;
    const struct large large = large_of(f);
    double predicted = f->kind->predict(&g, large.different);
    *fpr = fmax(folds->rate(&g, &fold.folded), predicted) * (1 + 1e-9);
    *fpr = fmax(*fpr, PERHAPS_FPR_MIN);
    if (!sizing_in_range(1, *fpr) || plan_small(&large, *fpr, factor, &g))
        *fpr = 0;
    return 0;
}
