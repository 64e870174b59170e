/* together_test.c - proves what is special about blocked filters whose lines of a key lie side
 * by side: fewer bits for a key, hardly more memory, and an fpr that is what was asked, both
 * when it is counted and when it is computed.  What holds for every filter the other tests
 * check, which treat this layout as a kind of its own (kind_to_test()). */
#include "support.h"

#include <math.h>

/* At high rates such a filter needs one line for a key and fewer bits than the usual plan, and
 * at most 3 % more memory. */
TEST(test_thrift)
{
    const double rates[] = { 0.1, 0.01, 0.001 };
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct perhaps_options options = { .capacity = 1000000, .fpr = rates[r] };
        struct perhaps_plan plan, together;
        scene("fpr %g", rates[r]);
        expect_success(perhaps_plan_for(&options, &plan));
        options.blocked.together = true;
        expect_success(perhaps_plan_for(&options, &together));
        expect(together.field[1] == 1 && together.field[3] == 0);
        expect((double)together.body_nbytes <= 1.03 * (double)plan.body_nbytes);
        expect(together.field[2] < plan.field[2] || rates[r] > 0.01);
    }
}

/* ---- Rates ----------------------------------------------------------------------------- */

/* Counts false positives with several seeds.  They must not exceed the asked fpr, and must
 * agree with the fpr that is computed from the bits: within 2 % and the noise of counting. */
static void measure(double fpr, const struct perhaps_keys *members,
                    const struct perhaps_keys *strangers, struct rng *rng)
{
    enum { SEEDS = 4 };
    double found = 0, now = 0, queries = (double)SEEDS * (double)strangers->count;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct perhaps_options options = { .capacity = members->count,
                                           .fpr = fpr,
                                           .blocked.together = true,
                                           .hashing = { .seed = 1 + rng_next(rng) / 2 } };
        scoped_filter *f = make_with(&options);
        fill(f, members);
        expect_all_found(f, members);
        found += (double)perhaps_contains_many(f, strangers, NULL);
        now += stats_of(f).fpr_now / (double)SEEDS;
        scene("fpr %g: of %g queries %g were found, fpr now %g, predicted %g", fpr, queries,
              found, now, stats_of(f).plan.fpr_predicted);
        expect(stats_of(f).plan.fpr_predicted <= fpr && stats_of(f).fpr_now <= fpr);
    }
    double expected = fpr * queries;
    expect(found <= expected + DEVIATIONS * sqrt(expected));
    expect(fabs(found - now * queries) <= 0.02 * expected + DEVIATIONS * sqrt(expected));
}

TEST(test_rates)
{
    const double rates[] = { 0.1, 0.01, 0.001, 1e-4, 1e-6 };
    struct rng rng = rng_for(__func__);
    scoped_keys members = make_keys(RANDOM_KEYS, rng_next(&rng), 0, 50000);
    scoped_keys strangers =
        make_keys(RANDOM_KEYS, rng_next(&rng), members.count, many(5000000));
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        double enough = 20000 / rates[r]; /* for 20,000 false positives with each seed */
        struct perhaps_keys some = some_keys(
            &strangers, 0, enough < (double)strangers.count ? (size_t)enough : strangers.count);
        measure(rates[r], &members, &some, &rng);
    }
}

/* The predicted fpr agrees with the one computed from the bits, more closely than counting
 * could show. */
TEST(test_predicted)
{
    enum { KEYS = SANITIZED ? 50000 : 300000, FILTERS = 10 };
    const double rates[] = { 0.001, 1e-4, 1e-6, 1e-8 };
    struct rng rng = rng_for(__func__);
    scoped_keys keys = make_keys(RANDOM_KEYS, rng_next(&rng), 0, KEYS);
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        double now = 0, predicted = 0;
        for (unsigned seed = 0; seed < FILTERS; seed++) {
            struct perhaps_options options = { .capacity = KEYS,
                                               .fpr = rates[r],
                                               .blocked.together = true,
                                               .hashing = { .seed = 1 + rng_next(&rng) / 2 } };
            scoped_filter *f = make_with(&options);
            fill(f, &keys);
            now += stats_of(f).fpr_now / (double)FILTERS;
            predicted = stats_of(f).plan.fpr_predicted;
        }
        scene("fpr %g: predicted %g, is %g", rates[r], predicted, now);
        /* The plan leaves three standard deviations between the prediction and the rate. */
        double sd = (rates[r] - predicted) / 3 / sqrt(FILTERS);
        expect(fabs(now - predicted) < DEVIATIONS * sd + 0.005 * predicted);
    }
}
