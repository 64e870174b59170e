/* plan.c - needs, capacity and rate to kind and geometry. */
#include "plan.h"

#include <math.h>
#include <string.h>

bool plan_in_range(uint64_t capacity, double fpr)
{
    return capacity >= 1 && capacity <= PERHAPS_CAPACITY_MAX && fpr >= PERHAPS_FPR_MIN &&
           fpr < 1; /* false for NaN */
}

bool plan_fits(struct rate rate, double fpr)
{
    return rate.mean + 3 * rate.sd <= fpr;
}

uint64_t plan_smallest(uint64_t most, bool (*fits)(void *context, uint64_t value),
                       void *context)
{
    uint64_t good = 1;
    while (good < most && !fits(context, good))
        good = good > most / 2 ? most : 2 * good;
    if (!fits(context, good))
        return 0;
    uint64_t bad = good / 2;
    while (good - bad > 1) {
        uint64_t middle = bad + (good - bad) / 2;
        if (fits(context, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* Balls in bins; the variance is that of the number of empty bins (its Poisson limit). */
struct occupancy plan_occupancy(double cells, double marks)
{
    if (cells <= 1)
        return (struct occupancy){ .mean = marks > 0 ? 1 : 0 };
    double empty = exp(marks * log1p(-1 / cells));
    double variance = (empty - (1 + marks / cells) * empty * empty) / cells;
    return (struct occupancy){ .mean = 1 - empty, .variance = fmax(variance, 0) };
}

double plan_keys_from_load(double cells, double marks, double load)
{
    return -log1p(-load) * cells / marks;
}

uint64_t plan_key_limit(uint64_t capacity, double (*rate)(const void *context, double keys),
                        const void *context)
{
    enum { INTERVALS = 16 }; /* of Simpson's rule */
    double keys = (double)capacity, sum = 0;
    for (int i = 0; i <= INTERVALS; i++) {
        double weight = i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2;
        sum += weight * rate(context, floor(keys * i / (double)INTERVALS));
    }
    double missing = sum * keys / (double)INTERVALS / 3;
    double slack = 4 * sqrt(missing) + 1;
    return missing > slack ? capacity - (uint64_t)(missing - slack) : capacity;
}

/* PERHAPS_STATIC is what the caller promises, not what the kind must have: a kind that also
 * takes later keys serves it. */
static bool meets(const struct filter_kind *kind, unsigned needs)
{
    return !(needs & ~(unsigned)PERHAPS_STATIC & ~kind->about.abilities);
}

/* The first from *index on; sets it behind that. */
static const struct filter_kind *next_that_meets(unsigned needs, size_t *index)
{
    const struct filter_kind *kind;
    while ((kind = kind_by_index((*index)++)))
        if (meets(kind, needs))
            return kind;
    return NULL;
}

static const struct filter_kind *first_that_meets(unsigned needs)
{
    size_t index = 0;
    return next_that_meets(needs, &index);
}

int plan_base(const struct perhaps_options *options, unsigned lent, const char *usual,
              const struct filter_kind **base)
{
    unsigned needs = options->needs & lent;
    *base = options->base ? kind_by_name(options->base)
            : needs       ? first_that_meets(needs)
                          : kind_by_name(usual);
    if (!*base)
        return PERHAPS_ERR_ARGUMENT;
    return meets(*base, needs) ? 0 : PERHAPS_ERR_UNSUPPORTED;
}

static int plan_kind(const struct perhaps_options *options, const struct filter_kind *kind,
                     struct geometry *g, char *why)
{
    *g = (struct geometry){ .capacity = options->capacity, .fpr = options->fpr };
    int error = kind->plan(g, options, why);
    return error ? error : kind_set_geometry(kind, g);
}

/* The first that meets the needs and reaches the rate and size. */
static int plan_any(const struct perhaps_options *options, unsigned needs,
                    const struct filter_kind **kind, struct geometry *g, char *why)
{
    int error = PERHAPS_ERR_UNSUPPORTED;
    for (size_t index = 0; (*kind = next_that_meets(needs, &index));) {
        error = plan_kind(options, *kind, g, why);
        if (error != PERHAPS_ERR_LIMIT)
            break;
    }
    return error;
}

int plan_choose(const struct perhaps_options *options, const struct filter_kind **kind,
                struct geometry *g, char *why)
{
    const unsigned known = PERHAPS_REMOVE | PERHAPS_COUNT | PERHAPS_GROW | PERHAPS_STATIC |
                           PERHAPS_MERGE | PERHAPS_SHARE | PERHAPS_FORGET | PERHAPS_THREADS;
    if (!plan_in_range(options->capacity, options->fpr) || (options->needs & ~known) ||
        (unsigned)options->preference > PERHAPS_COMPACT)
        return PERHAPS_ERR_ARGUMENT;
    unsigned needs = options->needs | (options->shared ? PERHAPS_THREADS : 0U);
    if (!options->kind)
        return plan_any(options, needs, kind, g, why);
    *kind = kind_by_name(options->kind);
    if (!*kind)
        return PERHAPS_ERR_ARGUMENT;
    return meets(*kind, needs & ~(*kind)->lent) ? plan_kind(options, *kind, g, why)
                                                : PERHAPS_ERR_UNSUPPORTED;
}

void plan_describe(const struct filter_kind *kind, const struct geometry *g,
                   struct perhaps_plan *plan)
{
    uint64_t nbytes = g->body_nbytes + g->extra_nbytes;
    *plan = (struct perhaps_plan){
        .kind = kind->about.name,
        .base = kind->base ? kind->base(g)->about.name : NULL,
        .capacity = g->capacity,
        .fpr = g->fpr,
        .fpr_predicted = kind->predict(g, (double)g->capacity).mean,
        .body_nbytes = nbytes,
        .bits_per_key = 8.0 * (double)nbytes / (double)g->capacity,
        .fpr_until = g->fpr_until ? g->fpr_until : g->capacity,
        .nfields = kind_field_count(kind),
    };
    for (unsigned i = 0; i < plan->nfields; i++) {
        plan->field_name[i] = kind->field_names[i];
        plan->field[i] = g->field[i];
    }
}

int perhaps_plan(const struct perhaps_options *options, struct perhaps_plan *plan)
{
    const struct filter_kind *kind;
    struct geometry g;
    char why[WHY_NBYTES] = "";
    int error = plan_choose(options, &kind, &g, why);
    if (error) {
        *plan = (struct perhaps_plan){ 0 };
        return error;
    }
    plan_describe(kind, &g, plan);
    if (kind->explain)
        kind->explain(&g, why);
    memcpy(plan->why, why, sizeof plan->why);
    return 0;
}
