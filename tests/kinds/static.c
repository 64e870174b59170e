/* static.c - proves that a filter of a kind that is built once can be built of every number of
 * keys, denies none of them, and keeps its rate.
 *
 *     static [MOST [KIND [LEAST]]]
 *
 * For each kind it builds a filter of every number of keys from LEAST (0) to MOST at a rate of
 * 2^-8, and of every 101st number at three lower rates, each with another hash seed.  MOST is
 * 300 for ./dev test, and 100,000 for ./dev stress static.  Each filter is asked for all of its
 * keys, and for others, whose false positives are counted over all filters of a rate.  It
 * prints a line for each kind and rate, and fails at the first filter that is not as promised.
 * A long run draws another seed each time, unless PERHAPS_TEST_SEED is set. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support.h"
#include <perhaps_build.h>

/* The keys of which each filter is asked beside its own, and the step of the lower rates. */
enum { STRANGERS = 20000, STEP = 101 };

/* Above a power of two, so that fingerprints of so many bits have room for equal hashes. */
static const double rates[] = { 0x1.0001p-8, 0x1.0001p-12, 0x1.0001p-16, 0x1.0001p-31 };

/* The keys of all filters. */
struct source {
    struct perhaps_keys keys, strangers;
    size_t least; /* the smallest filter has so many keys, and the largest all */
};

/* Of all filters with one rate. */
struct tally {
    uint64_t filters, keys;
    double asked, found; /* of strangers */
    double expected;     /* how many of these are found, by the rates that filters tell */
};

/* Returns the filter of the first n keys, or NULL. */
static perhaps_filter *build(const struct perhaps_options *options,
                             const struct perhaps_keys *keys)
{
    const struct perhaps_build_options how = { .threads = 1 };
    perhaps_builder *builder;
    perhaps_filter *f = NULL;
    int error = perhaps_builder_create(options, &how, &builder);
    if (!error)
        error = perhaps_builder_add_many(builder, keys);
    if (!error)
        error = perhaps_builder_finish(builder, &f);
    if (error)
        printf("%s\n", perhaps_strerror(error));
    perhaps_builder_free(builder);
    return f;
}

/* Returns NULL, or what is wrong with the filter. */
static const char *examine(const perhaps_filter *f, const struct perhaps_keys *keys, double fpr)
{
    struct perhaps_stats stats = stats_of(f);
    if (stats.keys != keys->count)
        return "does not have all keys";
    if (perhaps_contains_many(f, keys, NULL) != keys->count)
        return "denies a key of many";
    for (size_t i = 0; i < keys->count; i += 1 + keys->count / 50)
        if (!perhaps_contains(f, key_at(keys, i), keys->key_nbytes))
            return "denies a key";
    return stats.fpr_now > fpr ? "is over the rate" : NULL;
}

static bool try_size(const struct perhaps_kind *kind, double fpr, size_t n,
                     const struct source *source, struct tally *tally)
{
    uint64_t seed = 1 + mix64(test_seed() + n) / 2;
    struct perhaps_options options = options_for(kind, n ? n : 1, fpr, seed);
    struct perhaps_keys keys = some_keys(&source->keys, 0, n);
    scoped_filter *f = build(&options, &keys);
    const char *problem = f ? examine(f, &keys, fpr) : "is not built";
    if (problem) {
        printf("%s of %zu keys at %g, seed %" PRIu64 ": %s\n", kind->name, n, fpr, seed,
               problem);
        return false;
    }
    tally->filters++;
    tally->keys += n;
    tally->asked += (double)STRANGERS;
    tally->found += (double)perhaps_contains_many(f, &source->strangers, NULL);
    tally->expected += (double)STRANGERS * stats_of(f).fpr_now;
    return true;
}

/* Shows how far it is, on a terminal. */
static void show(const char *kind, double fpr, size_t n, size_t most)
{
    if (isatty(STDERR_FILENO) && n % 500 == 0)
        fprintf(stderr, "\r%s at %g: %zu of %zu\033[K", kind, fpr, n, most);
}

static bool try_rate(const struct perhaps_kind *kind, double fpr, size_t step,
                     const struct source *source)
{
    const size_t most = source->keys.count;
    struct tally tally = { 0 };
    bool right = true;
    for (size_t n = source->least; n <= most && right; n += step) {
        show(kind->name, fpr, n, most);
        right = try_size(kind, fpr, n, source, &tally);
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    double off = fabs(tally.found - tally.expected);
    if (off > DEVIATIONS * sqrt(tally.expected) + DEVIATIONS) {
        printf("%s at %g: the rate is not what the filters say\n", kind->name, fpr);
        right = false;
    }
    printf("%-8s %8.3g %6" PRIu64 " filters, %10" PRIu64
           " keys: %.0f of %.0f others found, %.0f expected\n",
           kind->name, fpr, tally.filters, tally.keys, tally.found, tally.asked,
           tally.expected);
    fflush(stdout);
    return right;
}

int main(int argc, char **argv)
{
    size_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : many(300);
    const char *only = argc > 2 ? argv[2] : NULL;
    bool right = true;
    size_t least = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (most == 0) {
        fprintf(stderr, "usage: static [MOST [KIND [LEAST]]]\n");
        return 2;
    }
    if (argc > 1)
        setenv("PERHAPS_TEST_SEED", "fresh", false);
    if (!has_cpu())
        return CANNOT_TRY;
    struct source source = { .keys = make_keys(SEQUENTIAL_KEYS, test_seed(), 0, most),
                             .strangers =
                                 make_keys(SEQUENTIAL_KEYS, test_seed(), most, STRANGERS),
                             .least = least };
    EACH_KIND(kind, is_built)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
            if (!only || !strcmp(only, kind->name))
                right &= try_rate(kind, rates[r], r ? STEP : 1, &source);
    free_keys(&source.keys);
    free_keys(&source.strangers);
    return right ? 0 : 1;
}
