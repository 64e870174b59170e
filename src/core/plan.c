/* plan.c - chooses kind and geometry for the needs, the capacity and the fpr of a user. */
#include "plan.h"
#include "../kinds/kinds.h"
#include <perhaps.h>

#include <math.h>
#include <string.h>

#include "../base/bytes.h"
#include "../base/sizing.h"

/* Returns whether the kind meets the needs.  With PERHAPS_CAN_BUILD the caller promises that no
 * key comes later: a kind that takes later keys will do, too, but without that promise no other
 * will. */
static bool meets(const struct filter_kind *kind, unsigned needs)
{
    const unsigned promise = PERHAPS_CAN_BUILD;
    return !(needs & ~promise & ~kind->about.abilities) && (needs & promise || !kind->builds);
}

/* Returns the first kind from *index on that meets the needs and is exact or not, and sets
 * *index to the kind after it; returns NULL if there is none. */
static const struct filter_kind *next_that_meets(unsigned needs, bool exact, size_t *index)
{
    const struct filter_kind *kind;
    while ((kind = kind_by_index((*index)++)))
        if (kind->exact == exact && meets(kind, needs))
            return kind;
    return NULL;
}

/* Plans a filter of this kind; a composite over g->base, or over its usual base if that is
 * NULL. Returns 0 or an error of perhaps_plan_for(). */
static int plan_over(const struct perhaps_options *options, const struct filter_kind *kind,
                     const struct filter_kind *base, struct geometry *g, char *why)
{
    *g = (struct geometry){
        .capacity = options->capacity, .fpr = options->fpr, .base = base, .first = g->first
    };
    return geometry_plan(kind, options, g, why);
}

/* Returns whether a chain over this base comes to a thousand times its capacity and more: each
 * layer has a lower fpr than the one before. */
static bool grows_far(const struct perhaps_options *options, const struct filter_kind *base)
{
    enum { LAYERS = 10 };
    struct perhaps_options layer;
    struct geometry g = { 0 };
    char why[WHY_NBYTES];
    if (perhaps_layer_options(options, LAYERS, &layer))
        return false;
    g.capacity = layer.capacity;
    g.fpr = layer.fpr;
    return !geometry_plan(base, &layer, &g, why);
}

/* Plans a composite over the first base that meets the needs which a composite meets only if
 * its parts do, and that reaches the fpr and the size. */
static int plan_over_any(const struct perhaps_options *options, const struct filter_kind *kind,
                         unsigned needs, struct geometry *g, char *why)
{
    int error = PERHAPS_ERR_UNSUPPORTED;
    const struct filter_kind *base;
    struct geometry part = { 0 }, *first = g->first;
    for (size_t index = 0; (base = next_that_meets(needs, false, &index));) {
        if (base->composite || base->grows)
            continue;
        g->first = first ? first : &part;
        error = plan_over(options, kind, base, g, why);
        if (!error && ((base->pays && !base->pays(g->first)) ||
                       (kind->about.abilities & PERHAPS_CAN_GROW && !grows_far(options, base))))
            error = PERHAPS_ERR_LIMIT;
        if (error != PERHAPS_ERR_LIMIT)
            break;
    }
    g->first = first;
    return error;
}

/* Plans a filter of this kind.  Returns 0 or an error of perhaps_plan_for(). */
static int plan_kind(const struct perhaps_options *options, const struct filter_kind *kind,
                     struct geometry *g, char *why)
{
    if (!kind->composite)
        return plan_over(options, kind, NULL, g, why);
    const unsigned needs = options->needs & kind->composite->inherits;
    const unsigned also = options->shared ? PERHAPS_CAN_THREADS : 0; /* all parts are shared */
    const struct filter_kind *base = options->base ? kind_by_name(options->base) : NULL;
    if (options->base && !base)
        return PERHAPS_ERR_ARGUMENT;
    if (base && !meets(base, needs | also))
        return PERHAPS_ERR_UNSUPPORTED;
    return base || !needs ? plan_over(options, kind, base, g, why)
                          : plan_over_any(options, kind, needs | also, g, why);
}

/* Plans the first kind that meets the needs and reaches the fpr and the size, of those that are
 * built once or of the others. */
static int plan_any_of(const struct perhaps_options *options, unsigned needs, bool built,
                       const struct filter_kind **kind, struct geometry *g, char *why)
{
    int error = PERHAPS_ERR_UNSUPPORTED;
    for (size_t index = 0; (*kind = next_that_meets(needs, plan_is_exact(options), &index));) {
        if (((*kind)->builds != NULL) != built)
            continue;
        error = plan_kind(options, *kind, g, why);
        if (!error && (*kind)->pays && !(*kind)->pays(g))
            error = PERHAPS_ERR_LIMIT;
        if (error != PERHAPS_ERR_LIMIT)
            break;
    }
    return error;
}

/* Returns whether another kind may do what one could not. */
static bool is_not_this_kind(int error)
{
    return error == PERHAPS_ERR_UNSUPPORTED || error == PERHAPS_ERR_LIMIT;
}

/* Plans a composite that meets the needs with the right base. */
static int plan_composite(const struct perhaps_options *options, unsigned needs,
                          const struct filter_kind **kind, struct geometry *g, char *why)
{
    int error = PERHAPS_ERR_UNSUPPORTED;
    for (size_t index = 0; (*kind = kind_by_index(index)); index++) {
        if (!(*kind)->composite || !meets(*kind, needs & ~(*kind)->composite->inherits))
            continue;
        error = plan_kind(options, *kind, g, why);
        if (!is_not_this_kind(error))
            break;
    }
    return error;
}

static int plan_any(const struct perhaps_options *options, unsigned needs,
                    const struct filter_kind **kind, struct geometry *g, char *why)
{
    int error = plan_any_of(options, needs, needs & PERHAPS_CAN_BUILD, kind, g, why);
    if (needs & PERHAPS_CAN_BUILD && is_not_this_kind(error))
        error = plan_any_of(options, needs, false, kind, g, why);
    if (error != PERHAPS_ERR_LIMIT || plan_is_exact(options))
        return error;
    error = plan_composite(options, needs, kind, g, why);
    return error == PERHAPS_ERR_UNSUPPORTED ? PERHAPS_ERR_LIMIT : error;
}

bool plan_is_exact(const struct perhaps_options *options)
{
    const struct filter_kind *named = options->kind ? kind_by_name(options->kind) : NULL;
    return options->kind ? named && named->exact : options->bitmap.high > 0;
}

static bool is_in_range(const struct perhaps_options *options)
{
    bool exact = plan_is_exact(options);
    return sizing_in_range(exact && !options->capacity ? 1 : options->capacity,
                           exact && options->fpr == 0 ? PERHAPS_FPR_MIN : options->fpr);
}

/* A kind that the options name must meet the needs itself, except those that a composite leaves
 * to its base: plan_base() checks these. */
int plan_choose(const struct perhaps_options *options, const struct filter_kind **kind,
                struct geometry *g, char *why)
{
    const unsigned known = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT | PERHAPS_CAN_GROW |
                           PERHAPS_CAN_BUILD | PERHAPS_CAN_MERGE | PERHAPS_CAN_SHARE |
                           PERHAPS_CAN_FORGET | PERHAPS_CAN_THREADS;
    if (!is_in_range(options) || (options->needs & ~known) ||
        (unsigned)options->preference > PERHAPS_PREFER_COMPACT || !is_unused(options->reserved))
        return PERHAPS_ERR_ARGUMENT;
    unsigned needs = options->needs | (options->shared ? PERHAPS_CAN_THREADS : 0U);
    if (!options->kind)
        return plan_any(options, needs, kind, g, why);
    *kind = kind_by_name(options->kind);
    if (!*kind)
        return PERHAPS_ERR_ARGUMENT;
    unsigned inherited = (*kind)->composite ? (*kind)->composite->inherits : 0;
    return meets(*kind, needs & ~inherited) ? plan_kind(options, *kind, g, why)
                                            : PERHAPS_ERR_UNSUPPORTED;
}

bool plan_64_suffices(const struct filter_kind *kind, const struct geometry *g)
{
    const double unknown = 0x1p36, share = 0x1p-16;
    bool grows = kind->grows || kind->composite;
    double n = fmax((double)g->capacity, grows ? unknown : 0);
    return n / 0x1p64 <= share * g->fpr;
}

int plan_hash(const struct filter_kind *kind, const struct geometry *g,
              struct perhaps_hashing *hashing)
{
    if (kind->exact && hashing->hash == PERHAPS_HASH_XXH3)
        hashing->hash = PERHAPS_HASH_INTEGER;
    else if (hashing->hash == PERHAPS_HASH_XXH3 && !hashing->seed && plan_64_suffices(kind, g))
        hashing->hash = PERHAPS_HASH_XXH3_64;
    return kind_takes_hash(kind, hashing->hash) ? 0 : PERHAPS_ERR_ARGUMENT;
}

int perhaps_plan_for(const struct perhaps_options *options, struct perhaps_plan *plan)
{
    const struct filter_kind *kind;
    struct geometry g = { 0 };
    char why[WHY_NBYTES] = "";
    int error = plan_choose(options, &kind, &g, why);
    if (error) {
        *plan = (struct perhaps_plan){ 0 };
        return error;
    }
    geometry_describe(kind, &g, kind->predict(&g, (double)g.capacity), plan);
    if (kind->explain)
        kind->explain(&g, why);
    memcpy(plan->why, why, sizeof plan->why);
    return 0;
}

/* Returns the fpr without all but its first two digits: one that people can write down. */
static double short_fpr(double fpr)
{
    double unit = pow(10, floor(log10(fpr)) - 1);
    return floor(fpr / unit * (1 + 1e-9)) * unit;
}

bool perhaps_plan_cheaper(const struct perhaps_options *options, struct perhaps_plan *plan)
{
    struct perhaps_options stricter = *options;
    struct perhaps_plan tried;
    if (perhaps_plan_for(options, plan))
        return false;
    if (plan_is_exact(options))
        return false; /* its size does not depend on the rate */
    double less = 0.99 * plan->bits_per_key;
    for (int percent = 95; percent >= 10; percent -= 5) {
        stricter.fpr = short_fpr(options->fpr * percent / 100);
        if (perhaps_plan_for(&stricter, &tried) || tried.bits_per_key >= less)
            continue;
        less = tried.bits_per_key;
        *plan = tried;
    }
    return plan->fpr < options->fpr;
}
