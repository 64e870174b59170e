/* stress.c - ./dev stress [SECONDS]: for each kind, eight threads work for so many seconds on
 * shared filters of all sizes.  Every key that a thread has added must be found by all threads,
 * and every copy must be counted.  It prints what it did and fails at the first error.  Each
 * run draws another seed, unless PERHAPS_TEST_SEED is set. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "crew.h"
#include <perhaps_sets.h>

enum { WRITERS = 5, READERS = 3, KEYS_MOST = 1 << 19 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns options for anything from a few keys, where all threads meet in one line, to a filter
 * that no cache holds.  The rates give slots of all widths.  Half of the kinds with removals
 * get such a high rate that they can be filled to the last slot. */
static struct perhaps_options random_options(const struct perhaps_kind *kind, struct rng *rng)
{
    uint64_t most = UINT64_C(1) << (3 + rng_below(rng, SANITIZED ? 10 : 16));
    struct perhaps_options options = options_for(kind, 1 + rng_below(rng, most), 0.2, 0);
    options.shared = true;
    for (uint64_t n = rng_below(rng, 8); n > 0; n--)
        options.fpr /= 10;
    if (removes(kind) && rng_below(rng, 2))
        options.fpr = 0.9;
    options.hashing.seed = 1 + rng_below(rng, UINT64_MAX);
    return options;
}

/* Returns whether one thread makes the same filter of the same keys.  Also true if one thread
 * cannot: which keys are counted, and so when a filter is full, depends on their order. */
static bool same_as_alone(const struct perhaps_options *options, const struct crew *crew)
{
    perhaps_filter *alone;
    struct perhaps_options plain = *options;
    plain.shared = false;
    int error = perhaps_create(&plain, &alone);
    for (size_t key = 0; key < crew->keys.count && !error; key++)
        if (crew_copies(crew, key))
            error = perhaps_add(alone, key_at(&crew->keys, key), crew->keys.key_nbytes);
    bool same = error == PERHAPS_ERR_FULL || (!error && perhaps_equal(alone, crew->f));
    perhaps_free(alone);
    return same;
}

/* Returns the number of operations, or 0 if something was wrong. */
static uint64_t run_round(const struct perhaps_kind *kind, uint64_t seed)
{
    struct rng rng = { seed };
    struct perhaps_options options = random_options(kind, &rng);
    bool churn = removes(kind);
    uint64_t times = grows(kind) ? 1 + rng_below(&rng, 200) : churn ? 2 : 1;
    uint64_t nkeys = options.capacity * times % KEYS_MOST + WRITERS;
    struct crew crew = { .writers = WRITERS,
                         .readers = READERS,
                         .churn = churn,
                         .steps = SANITIZED ? 1000 : 5000,
                         .seed = seed };
    if (perhaps_create(&options, &crew.f))
        return 1; /* the kind cannot reach this rate: nothing to test */
    crew.keys = make_keys(RANDOM_KEYS, seed, 0, nkeys);
    bool right = crew_run(&crew);
    if (right && !churn && !has_parts(kind) && !crew.refused &&
        !same_as_alone(&options, &crew)) {
        snprintf(crew.complaint, sizeof crew.complaint, "not what one thread makes of it");
        right = false;
    }
    if (!right)
        printf("%s, %" PRIu64 " keys, fpr %g, round seed %" PRIu64 ": %s\n", kind->name,
               options.capacity, options.fpr, seed, crew.complaint);
    crew_end(&crew);
    free_keys(&crew.keys);
    perhaps_free(crew.f);
    return right ? crew.operations : 0;
}

static bool run_kind(const struct perhaps_kind *kind, double seconds)
{
    struct rng rng = rng_for(kind->name);
    double end = now() + seconds;
    uint64_t operations = 0, rounds = 0, done = 1;
    for (; done && now() < end; rounds++)
        operations += done = run_round(kind, rng_next(&rng));
    printf("%-8s %12" PRIu64 " operations in %" PRIu64 " rounds%s\n", kind->name, operations,
           rounds, done ? "" : ": FAILED");
    fflush(stdout);
    return done;
}

int main(int argc, char **argv)
{
    setenv("PERHAPS_TEST_SEED", "fresh", false);
    double seconds = argc > 1 ? atof(argv[1]) : 60;
    const char *only = argc > 2 ? argv[2] : NULL;
    bool right = true;
    if (seconds <= 0) {
        fprintf(stderr, "usage: stress [SECONDS [KIND]]\n");
        return 2;
    }
    EACH_KIND(kind, any_kind)
        if (takes_threads(kind) && (!only || !strcmp(only, kind->name)))
            right &= run_kind(kind, seconds);
    return right ? 0 : 1;
}
