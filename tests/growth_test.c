/* growth_test.c - the rate that was asked is kept by filters that have grown a thousandfold,
 * and by windows however much has passed through them: 20 seeds, as fpr_test. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SEEDS = 20,
    BEGIN = 100,
    KEYS = SANITIZED ? 30 * BEGIN : 1000 * BEGIN, /* that it grows to */
    EXPECTED = SANITIZED ? 500 : 3000,
};

static const double rates[] = { 0.01, 0.001 };
enum { RATES = sizeof rates / sizeof *rates };

struct tally {
    double queries;
    double found;
    double seed_variance; /* of 'found' */
    double fpr_now;       /* mean */
};

static struct tally measure(struct perhaps_options *options, struct rng *rng)
{
    size_t queries = (size_t)ceil((double)EXPECTED / options->fpr / (double)SEEDS);
    struct tally tally = { .queries = (double)queries * (double)SEEDS };
    double squares = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        scoped_keys members = make_keys(RANDOM_KEYS, rng_next(rng), 0, KEYS);
        scoped_keys strangers = make_keys(TEXT_KEYS, rng_next(rng), 0, queries);
        options->hashing.seed = 1 + rng_next(rng);
        scoped_filter *f = make_with(options);
        fill(f, &members);
        if (!options->window.keys)
            expect_all_found(f, &members);
        double found = (double)perhaps_contains_many(f, &strangers, NULL);
        tally.found += found;
        squares += found * found;
        tally.fpr_now += stats_of(f).fpr_now / (double)SEEDS;
        expect(stats_of(f).failed_adds == 0);
    }
    double spread = squares - tally.found * tally.found / (double)SEEDS;
    tally.seed_variance = spread * (double)SEEDS / (SEEDS - 1);
    return tally;
}

static void check(const struct perhaps_options *options, const struct tally *t)
{
    double expected = options->fpr * t->queries, noise = sqrt(expected);
    double seeds = fmax(sqrt(t->seed_variance), noise);
    scene("%s over %s at %g: %g of %g found, by the fill %g", options->kind,
          options->base ? options->base : "none", options->fpr, t->found, t->queries,
          t->fpr_now * t->queries);
    printf("%-8s %-8s %8g %12.5g by the fill, %12.5g measured\n", options->kind,
           options->base ? options->base : "", options->fpr, t->fpr_now, t->found / t->queries);
    expect(t->found <= expected + DEVIATIONS * seeds);
    expect(fabs(t->found - t->fpr_now * t->queries) <= 0.02 * expected + DEVIATIONS * noise);
}

static void measure_over(struct perhaps_options *options, struct rng *rng)
{
    for (unsigned r = 0; r < RATES; r++) {
        options->fpr = rates[r];
        struct tally t = measure(options, rng);
        check(options, &t);
    }
}

/* Each kind that never gets full, over each that may be its base. */
TEST(test_grown)
{
    struct rng rng = rng_for(__func__);
    const struct perhaps_kind *base;
    EACH_KIND(kind, in_registry) {
        struct perhaps_options options = options_for(kind, BEGIN, rates[0], 1);
        if (gets_full(kind))
            continue;
        if (forgets(kind)) /* full generations, after a hundred rotations and more */
            options.capacity = options.window.keys = KEYS / 40;
        if (!has_parts(kind))
            measure_over(&options, &rng);
        for (size_t b = 0; has_parts(kind) && (base = perhaps_kind_at(b)); b++) {
            if (!gets_full(base))
                continue;
            options.base = base->name;
            measure_over(&options, &rng);
        }
    }
}

/* Where it begins far too small, what it takes stays within a few times what the same keys take
 * in a filter that was planned for them. */
TEST(test_memory)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, KEYS);
    EACH_KIND(kind, grows) {
        scoped_filter *f = make_filter(kind, BEGIN, 0.01, test_seed());
        scoped_filter *planned = make_filter(kind, KEYS, 0.01, test_seed());
        fill(f, &keys);
        fill(planned, &keys);
        struct perhaps_stats grown = stats_of(f), wanted = stats_of(planned);
        scene("%s: %g bits a key, planned %g", kind->name, grown.bits_per_key,
              wanted.bits_per_key);
        expect(grown.memory_nbytes < 4 * wanted.memory_nbytes);
        expect(!has_parts(kind) || grown.parts > (SANITIZED ? 3 : 5));
        expect(has_parts(kind) || SANITIZED || grown.elastic.segments > 32);
    }
}
