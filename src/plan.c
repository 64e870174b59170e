/* plan.c - needs, capacity and rate to kind and geometry. */
#include "plan.h"

#include <math.h>
#include <string.h>

#include "bytes.h"

bool plan_in_range(uint64_t capacity, double fpr)
{
    return capacity >= 1 && capacity <= PERHAPS_CAPACITY_MAX && fpr >= PERHAPS_FPR_MIN &&
           fpr < 1; /* false for NaN */
}

uint64_t plan_smallest(uint64_t most, bool (*fits)(void *context, uint64_t value),
                       void *context)
{
    uint64_t good = 1;
    while (good < most && !fits(context, good))
        good = good > most / 2 ? most : 2 * good;
    if (!fits(context, good))
        return 0;
    return plan_smallest_from(good / 2 + 1, good, fits, context);
}

uint64_t plan_smallest_from(uint64_t least, uint64_t good,
                            bool (*fits)(void *context, uint64_t value), void *context)
{
    uint64_t bad = least - 1;
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

uint64_t plan_one_mark_limit(double cells, double fpr)
{
    return (uint64_t)fmin(floor(cells * fpr), 0x1p62);
}

bool plan_one_mark_fits(double cells, uint64_t capacity, double fpr)
{
    struct occupancy share = plan_occupancy(cells, (double)capacity);
    double used = cells * (share.mean + PLAN_DEVIATIONS * sqrt(share.variance));
    return fmin(used, (double)capacity) <= (double)plan_one_mark_limit(cells, fpr);
}

/* How many keys are taken for present, of 'capacity', is over by so many at most, and under by
 * as many: the rate rises at least as the keys do, so half of the last rate is its mean. */
static double missing_slack(uint64_t capacity, double fpr)
{
    double most = (double)capacity * fpr / 2;
    return fmin(most, (PLAN_DEVIATIONS + 1) * sqrt(most));
}

double plan_keys_at_limit(uint64_t capacity, double fpr)
{
    return (double)capacity + missing_slack(capacity, fpr) / (1 - fpr);
}

/* The integral of the rate over the keys, by Simpson's rule. */
static double missing_keys(double keys, double (*rate)(void *context, double keys),
                           void *context)
{
    enum { INTERVALS = 16 };
    double sum = 0;
    for (int i = 0; i <= INTERVALS; i++) {
        double weight = i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2;
        sum += weight * rate(context, floor(keys * i / (double)INTERVALS));
    }
    return sum * keys / (double)INTERVALS / 3;
}

double plan_keys_within(double fpr, double most, double (*rate)(void *context, double keys),
                        void *context)
{
    double good = 0, bad = ceil(most); /* whole numbers, so that the middle is between them */
    if (rate(context, most) <= fpr)
        return most;
    while (bad - good > 1 && bad - good > 1e-9 * bad) {
        double middle = floor(good + (bad - good) / 2);
        if (rate(context, middle) <= fpr)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

uint64_t plan_key_limit(const struct geometry *g, double (*rate)(void *context, double keys),
                        void *context)
{
    double planned = plan_keys_at_limit(g->capacity, g->fpr);
    double keys = plan_keys_within(g->fpr, planned, rate, context);
    if (keys < planned)
        return (uint64_t)fmax(keys - missing_keys(keys, rate, context), 0);
    double missing = missing_keys((double)g->capacity, rate, context);
    double slack = missing_slack(g->capacity, g->fpr);
    return g->capacity - (uint64_t)fmax(missing - slack, 0);
}

/* PERHAPS_CAN_BUILD is what the caller promises, not what the kind must have: a kind that also
 * takes later keys serves it. */
static bool meets(const struct filter_kind *kind, unsigned needs)
{
    return !(needs & ~(unsigned)PERHAPS_CAN_BUILD & ~kind->about.abilities);
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
    const unsigned known = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT | PERHAPS_CAN_GROW |
                           PERHAPS_CAN_BUILD | PERHAPS_CAN_MERGE | PERHAPS_CAN_SHARE |
                           PERHAPS_CAN_FORGET | PERHAPS_CAN_THREADS;
    if (!plan_in_range(options->capacity, options->fpr) || (options->needs & ~known) ||
        (unsigned)options->preference > PERHAPS_PREFER_COMPACT || !is_unused(options->reserved))
        return PERHAPS_ERR_ARGUMENT;
    unsigned needs = options->needs | (options->shared ? PERHAPS_CAN_THREADS : 0U);
    if (!options->kind)
        return plan_any(options, needs, kind, g, why);
    *kind = kind_by_name(options->kind);
    if (!*kind)
        return PERHAPS_ERR_ARGUMENT;
    return meets(*kind, needs & ~(*kind)->lent) ? plan_kind(options, *kind, g, why)
                                                : PERHAPS_ERR_UNSUPPORTED;
}

void plan_describe(const struct filter_kind *kind, const struct geometry *g, double predicted,
                   struct perhaps_plan *plan)
{
    uint64_t nbytes = g->body_nbytes + g->extra_nbytes;
    *plan = (struct perhaps_plan){
        .kind = kind->about.name,
        .base = kind->base ? kind->base(g)->about.name : NULL,
        .capacity = g->capacity,
        .fpr = g->fpr,
        .fpr_predicted = predicted,
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

int perhaps_plan_for(const struct perhaps_options *options, struct perhaps_plan *plan)
{
    const struct filter_kind *kind;
    struct geometry g;
    char why[WHY_NBYTES] = "";
    int error = plan_choose(options, &kind, &g, why);
    if (error) {
        *plan = (struct perhaps_plan){ 0 };
        return error;
    }
    plan_describe(kind, &g, kind->predict(&g, (double)g.capacity), plan);
    if (kind->explain)
        kind->explain(&g, why);
    memcpy(plan->why, why, sizeof plan->why);
    return 0;
}
