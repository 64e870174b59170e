/* sizing.c - how many cells a filter needs to keep the fpr that was asked. */
#include "sizing.h"
#include <perhaps_plan.h>

#include <math.h>

bool sizing_in_range(uint64_t capacity, double fpr)
{
    return capacity >= 1 && capacity <= PERHAPS_CAPACITY_MAX && fpr >= PERHAPS_FPR_MIN &&
           fpr < 1; /* an fpr that is NaN fails these comparisons, too */
}

uint64_t sizing_smallest(uint64_t most, bool (*fits)(void *context, uint64_t value),
                         void *context)
{
    uint64_t good = 1;
    while (good < most && !fits(context, good))
        good = good > most / 2 ? most : 2 * good;
    if (!fits(context, good))
        return 0;
    return sizing_smallest_from(good / 2 + 1, good, fits, context);
}

uint64_t sizing_smallest_from(uint64_t least, uint64_t good,
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

/* Balls in bins.  The mean is exact; the variance is that of the number of empty bins in its
 * Poisson limit. */
struct occupancy sizing_occupancy(double cells, double picks)
{
    if (cells <= 1)
        return (struct occupancy){ .mean = picks > 0 ? 1 : 0 };
    double empty = exp(picks * log1p(-1 / cells));
    double variance = (empty - (1 + picks / cells) * empty * empty) / cells;
    return (struct occupancy){ .mean = 1 - empty, .variance = fmax(variance, 0) };
}

/* The inverse of load = 1 - exp(-keys * picks / cells). */
double sizing_keys_from_load(double cells, double picks, double load)
{
    return -log1p(-load) * cells / picks;
}

uint64_t sizing_one_cell_limit(double cells, double fpr)
{
    return (uint64_t)fmin(floor(cells * fpr), 0x1p62);
}

bool sizing_one_cell_fits(double cells, uint64_t capacity, double fpr)
{
    struct occupancy share = sizing_occupancy(cells, (double)capacity);
    double used = cells * (share.mean + SIZING_DEVIATIONS * sqrt(share.variance));
    return fmin(used, (double)capacity) <= (double)sizing_one_cell_limit(cells, fpr);
}

/* Of 'capacity' different keys, some are taken for present when they are added.  Returns by how
 * many their number differs from its expectation at most, in either direction.  The fpr rises
 * at least in proportion to the keys, so its mean over all adds is at most half of the last
 * one: at most capacity * fpr / 2 keys are expected to be taken for present.  One deviation
 * more than elsewhere, since few keys are, and a small number has a longer tail than the normal
 * distribution that SIZING_DEVIATIONS is made for. */
static double missing_slack(uint64_t capacity, double fpr)
{
    double most = (double)capacity * fpr / 2;
    return fmin(most, (SIZING_DEVIATIONS + 1) * sqrt(most));
}

double sizing_keys_at_limit(uint64_t capacity, double fpr)
{
    return (double)capacity + missing_slack(capacity, fpr) / (1 - fpr);
}

/* The integral of the fpr over the keys, by Simpson's rule. */
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

/* The fpr rises with the keys: so at most the last one, for each key, is taken off. */
double sizing_counted(double keys, double (*rate)(void *context, double keys), void *context)
{
    const double hardly_any = 0.25;
    if (keys * rate(context, keys) < hardly_any)
        return keys;
    return keys - missing_keys(keys, rate, context);
}

double sizing_keys_within(double fpr, double most, double (*rate)(void *context, double keys),
                          void *context)
{
    double good = 0, bad = ceil(most); /* whole numbers, so that 'middle' lies between them */
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

uint64_t sizing_key_limit(uint64_t capacity, double fpr,
                          double (*rate)(void *context, double keys), void *context)
{
    /* A geometry that plan() chose keeps the fpr with this many keys; another one may not. */
    double planned = sizing_keys_at_limit(capacity, fpr);
    double keys = sizing_keys_within(fpr, planned, rate, context);
    if (keys < planned)
        return (uint64_t)fmax(keys - missing_keys(keys, rate, context), 0);
    double slack = missing_slack(capacity, fpr);
    if (slack >= (double)capacity * fpr / 2) /* and no more are missing */
        return capacity;
    double missing = missing_keys((double)capacity, rate, context);
    return capacity - (uint64_t)fmax(missing - slack, 0);
}
