/* promise.c - proves that no filter refuses a key before it holds 'capacity' keys, and that as
 * long as it accepts keys its fpr, computed from its bits, is at most what was asked.
 *
 *     promise [SEEDS [KIND]]
 *
 * For each kind, rate and capacity it makes SEEDS filters, each with another hash seed, fills
 * them to capacity, and then until they refuse keys.  The promise is for each filter, and not
 * for the mean, so many seeds are tried: 12 by ./dev test, 20,000 by ./dev stress promise.
 * It prints a line for each kind and rate, and fails at the first filter above its rate. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "filter/filter.h"
#include "support.h"

static const double rates[] = { 0.9, 0.5, 0.3, 0.2, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9 };
static const uint64_t capacities[] = { 1,   2,   5,    10,   20,    50,    100,
                                       200, 500, 1000, 2000, 10000, 100000 };
enum {
    RATES = sizeof rates / sizeof *rates,
    CAPACITIES = sizeof capacities / sizeof *capacities
};

/* Of all filters with one rate.  Rates are divided by the asked rate: 1 is the limit. */
struct tally {
    uint64_t filters;
    double worst;      /* highest rate at capacity */
    double worst_full; /* highest rate of a full filter */
};

/* Makes the filter empty and gives it another seed.  That is faster than making a new one. */
static void reseed(perhaps_filter *f, uint64_t seed)
{
    perhaps_clear(f);
    f->hasher.seed = seed;
    for (size_t i = 0; i < f->parts->count; i++)
        reseed(f->parts->part[i], seed);
}

/* Room for the rounding errors of floating-point numbers. */
static const double exact = 1 + 1e-5;

static bool holds(const char *what, const perhaps_filter *f, uint64_t seed, double rate)
{
    if (rate <= exact)
        return true;
    printf("%s of %" PRIu64 " keys at %g, seed %" PRIu64 ": %s, its rate is %.3f of that\n",
           f->kind->about.name, f->body.geometry.capacity, f->body.geometry.fpr, seed, what,
           rate);
    return false;
}

/* Returns the rate of the filter's actual bits, all of which are read. */
static double rate_of(const perhaps_filter *f)
{
    return f->kind->measure(f, UINT64_MAX).fpr / f->body.geometry.fpr;
}

static bool try_seed(perhaps_filter *f, uint64_t seed, const struct perhaps_keys *keys,
                     struct tally *tally)
{
    size_t capacity = (size_t)f->body.geometry.capacity;
    struct perhaps_keys first = some_keys(keys, 0, capacity);
    struct perhaps_keys rest = some_keys(keys, capacity, keys->count - capacity);
    reseed(f, seed);
    if (perhaps_add_many(f, &first, NULL))
        return holds("a key was refused", f, seed, INFINITY);
    double rate = rate_of(f);
    perhaps_add_many(f, &rest, NULL);
    double full = rate_of(f);
    tally->filters++;
    tally->worst = fmax(tally->worst, rate);
    tally->worst_full = fmax(tally->worst_full, full);
    return holds("filled", f, seed, rate) && holds("full", f, seed, full);
}

/* Returns a smaller number for what takes longer: filters with parts, which plan each part, and
 * large filters. */
static uint64_t seeds_for(const struct perhaps_kind *kind, uint64_t capacity, uint64_t seeds)
{
    uint64_t fewer = (has_parts(kind) ? 50U : 1U) * (capacity > 10000 ? 10U : 1U);
    return seeds / fewer + 1;
}

static bool try_rate(const struct perhaps_kind *kind, double fpr, uint64_t seeds,
                     struct rng *rng)
{
    struct tally tally = { 0 };
    bool right = true;
    for (size_t c = 0; c < CAPACITIES && right; c++) {
        uint64_t capacity = capacities[c];
        struct perhaps_options options = options_for(kind, capacity, fpr, 1);
        scoped_filter *f;
        if (grows_in_place(kind))
            options.elastic.fpr_until = 2 * capacity;
        if (perhaps_create(&options, &f))
            continue; /* the kind cannot reach this rate */
        size_t nkeys = grows_in_place(kind) ? 2 * capacity : 3 * capacity + 1000;
        scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 0, 0, nkeys);
        for (uint64_t n = seeds_for(kind, capacity, seeds); n > 0 && right; n--)
            right = try_seed(f, 1 + rng_next(rng) / 2, &keys, &tally);
    }
    printf("%-10s %8g %10" PRIu64 " filters: worst %.3f of it at capacity, %.3f full\n",
           kind->name, fpr, tally.filters, tally.worst, tally.worst_full);
    fflush(stdout);
    return right;
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : many(12);
    const char *only = argc > 2 ? argv[2] : NULL;
    bool right = true;
    if (seeds == 0) {
        fprintf(stderr, "usage: promise [SEEDS [KIND]]\n");
        return 2;
    }
    if (!has_cpu())
        return CANNOT_TRY;
    EACH_KIND(kind, any_kind) {
        struct rng rng = rng_for(kind->name);
        for (size_t r = 0; r < RATES && (!only || !strcmp(only, kind->name)); r++)
            right &= try_rate(kind, rates[r], seeds, &rng);
    }
    return right ? 0 : 1;
}
