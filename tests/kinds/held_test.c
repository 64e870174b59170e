/* held_test.c - proves that what plans look up (held.h) keeps the promise: between the nodes,
 * too, where it is not computed; that hardly any key more would be held; and that it does not
 * depend on what was looked up before, or by whom meanwhile. */
#include "support.h"

#include <math.h>
#include <pthread.h>

#include "kinds/lines/by_load.h"
#include "kinds/lines/held.h"
#include "kinds/lines/lines.h"

static const struct design designs[] = {
    { 0.2, WORD_NBITS, 1 },    { 0.01, WORD_NBITS, 1 },    { 0.001, WORD_NBITS, 1 },
    { 1e-4, WORD_NBITS, 2 },   { 1e-6, WORD_NBITS, 3 },    { 1e-9, WORD_NBITS, 4 },
    { 0.1, WORD_COUNTERS, 1 }, { 1e-3, WORD_COUNTERS, 2 }, { 1e-6, WORD_COUNTERS, 4 },
};
enum { DESIGNS = sizeof designs / sizeof *designs };

/* Computes the bound with so many keys.  The search for it gets nearest to the best one if it
 * begins where those for fewer keys ended. */
static bool keeps(const struct design *d, uint64_t lines, unsigned picks, double keys)
{
    struct by_load_start start = { 0 };
    struct by_load b;
    double margin = 0;
    by_load_lines(&b, picks, d->cells, (double)lines);
    for (unsigned percent = 80; percent <= 100; percent += 2) {
        by_load_set_keys(&b, keys * percent / 100);
        margin = by_load_margin(&b, d->bands, d->fpr, &start);
    }
    return margin >= 1;
}

/* Draws a number of lines, of any size. */
static uint64_t some_lines(struct rng *rng)
{
    return 1 + rng_next(rng) % (UINT64_C(1) << (3 + rng_next(rng) % 24));
}

/* The bound is found to a few per cent, by which about half as many per cent of the keys
 * differ. */
TEST(test_promise_is_kept_between_nodes)
{
    struct rng rng = rng_for("between nodes");
    for (size_t i = 0; i < DESIGNS; i++)
        for (uint64_t tries = many(12); tries > 0; tries--) {
            const uint64_t lines = some_lines(&rng);
            const struct held held = held_by(&designs[i], lines);
            scene("fpr %g, %u cells, %u bands, %llu lines", designs[i].fpr, designs[i].cells,
                  designs[i].bands, (unsigned long long)lines);
            if (!held.picks)
                continue;
            expect(held.picks <= WORDS);
            expect(keeps(&designs[i], lines, held.picks, floor(held.keys * 0.99)));
            expect(!keeps(&designs[i], lines, held.picks, ceil(held.keys * 1.03) + 1));
        }
}

TEST(test_more_lines_hold_more)
{
    for (size_t i = 0; i < DESIGNS; i++) {
        double before = 0;
        for (uint64_t lines = 1; lines < 600; lines += 1 + lines / 40) {
            const struct held held = held_by(&designs[i], lines);
            expect(held.keys >= before);
            before = held.keys;
        }
    }
}

static double needed_keys(void *context, uint64_t band_lines, unsigned picks)
{
    (void)band_lines;
    (void)picks;
    return *(double *)context;
}

TEST(test_fewest_lines)
{
    struct rng rng = rng_for("fewest lines");
    for (size_t i = 0; i < DESIGNS; i++)
        for (uint64_t tries = many(12); tries > 0; tries--) {
            double keys = (double)some_lines(&rng);
            const struct needed needed = { keys, needed_keys, &keys };
            unsigned picks = 0;
            const uint64_t lines = held_fewest_lines(&designs[i], &needed, 1 << 30, &picks);
            expect(lines > 0);
            const struct held held = held_by(&designs[i], lines);
            expect(held.keys >= keys && held.picks == picks);
            if (lines > 1)
                expect(held_by(&designs[i], lines - 1).keys < keys);
            if (lines > 1)
                expect(!held_fewest_lines(&designs[i], &needed, lines - 1, &picks));
        }
}

/* ---- What is remembered ------------------------------------------------------------------ */

enum { ASKED = 24, RATES = 40 };

/* Asks about as many rates as there are, in any order, so that they push each other out of the
 * memory; the answers are summed up. */
static void *ask_many(void *sums)
{
    double *sum = sums;
    for (unsigned i = 0; i < ASKED * RATES; i++) {
        const unsigned rate = i * 7 % RATES;
        const struct design d = { 0.05 + rate * 1e-3, WORD_NBITS, 1 };
        const struct held held = held_by(&d, 1 + i % ASKED);
        sum[rate] += held.keys * held.picks;
    }
    return NULL;
}

TEST(test_answers_do_not_depend_on_others)
{
    enum { THREADS = 4 };
    double sums[THREADS + 1][RATES] = { { 0 } };
    pthread_t thread[THREADS];
    ask_many(sums[THREADS]);
    for (unsigned i = 0; i < THREADS; i++)
        expect(!pthread_create(&thread[i], NULL, ask_many, sums[i]));
    for (unsigned i = 0; i < THREADS; i++)
        expect(!pthread_join(thread[i], NULL));
    for (unsigned i = 0; i < THREADS; i++)
        for (unsigned rate = 0; rate < RATES; rate++)
            expect(sums[i][rate] == sums[THREADS][rate]);
}
