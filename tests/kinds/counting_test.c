/* counting_test.c - proves what only src/kinds/lines/counting.c promises: counters saturate at
 * 15 and stay there, copies take no room, counts are never too low, and the last line of the
 * body tells how many counters are in use and how many have saturated. */
#include "support.h"
#include <perhaps.h>

#include <stdio.h>
#include <string.h>

#include "filter/filter.h"
#include "kinds/kinds.h"
#include "kinds/lines/lines.h"

static const struct perhaps_kind *counting(void)
{
    return &kind_counting.about;
}

static void add_copies(perhaps_filter *f, const char *key, unsigned copies)
{
    for (unsigned i = 0; i < copies; i++)
        expect_success(perhaps_add(f, key, strlen(key)));
}

/* ---- The last line ---------------------------------------------------------------------- */

static uint8_t *last_line(const perhaps_filter *f)
{
    return f->body.bytes + f->body.geometry.body_nbytes - LINE_NBYTES;
}

/* Compares the last line with what the counters say, one after the other. */
static void check_last_line(const perhaps_filter *f)
{
    uint64_t used = 0, full = 0;
    for (const uint8_t *at = f->body.bytes; at < last_line(f); at++) {
        used += (*at & 15) > 0;
        used += *at >> 4 > 0;
        full += (*at & 15) == 15;
        full += *at >> 4 == 15;
    }
    expect(load64(last_line(f)) == used && load64(last_line(f) + 8) == full);
    expect(stats_of(f).counting.saturated == full && used <= f->body.geometry.cell_limit);
    for (unsigned i = 16; i < LINE_NBYTES; i++)
        expect(last_line(f)[i] == 0);
}

/* ---- Copies ----------------------------------------------------------------------------- */

/* A thousand adds of one key saturate its counters: the count is 15, and stays 15 after any
 * number of removals, since nobody knows how many copies there were. */
TEST(test_saturation)
{
    enum { ADDS = 1000 };
    const double rates[] = { 0.3, 0.01, 1e-6 };
    for (unsigned r = 0; r < 3; r++) {
        scoped_filter *f = make_filter(counting(), 100, rates[r], test_seed());
        scene("fpr %g", rates[r]);
        for (unsigned copies = 0; copies < ADDS; copies++) {
            expect_count(f, "often", copies < 15 ? copies : 15);
            add_copies(f, "often", 1);
        }
        struct perhaps_stats stats = stats_of(f);
        uint64_t counters = stats.plan.field[BANDS] * stats.plan.field[LINE_BITS];
        expect(stats.keys == ADDS && stats.failed_adds == 0 &&
               stats.counting.saturated == counters);
        check_last_line(f);
        for (unsigned i = 0; i < 2 * ADDS; i++)
            expect_success(perhaps_remove(f, "often", 5));
        expect_count(f, "often", 15);
        expect(stats_of(f).keys == 0 && stats_of(f).counting.saturated == counters);
        check_last_line(f);
        expect_success(perhaps_clear(f));
        expect_count(f, "often", 0);
        expect(stats_of(f).counting.saturated == 0);
    }
}

/* Fourteen copies, one below saturation, can all be removed. */
TEST(test_removal)
{
    scoped_filter *f = make_filter(counting(), 100, 1e-6, test_seed());
    add_copies(f, "twin", 14);
    for (unsigned left = 14; left > 0; left--) {
        expect_count(f, "twin", left);
        expect_success(perhaps_remove(f, "twin", 4));
    }
    scoped_filter *before = clone_of(f);
    expect_error(perhaps_remove(f, "twin", 4), PERHAPS_ERR_NOT_FOUND);
    expect(perhaps_equal(f, before) && stats_of(f).load == 0);
    check_last_line(f);
}

/* Random adds and removals: a count is never too low, and at this rate seldom too high. */
TEST(test_counts)
{
    enum { KEYS = 5000, STEPS = 100000 };
    static unsigned copies[KEYS];
    struct rng rng = rng_for(__func__);
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, KEYS);
    scoped_filter *f = make_filter(counting(), KEYS, 1e-4, test_seed());
    uint64_t stored = 0, wrong = 0;
    memset(copies, 0, sizeof copies);
    for (unsigned step = 0; step < STEPS; step++) {
        size_t key = rng_below(&rng, rng_below(&rng, 4) ? KEYS : KEYS / 10);
        if (rng_below(&rng, 2) && copies[key]) {
            expect_success(perhaps_remove(f, key_at(&keys, key), keys.key_nbytes));
            copies[key]--;
            stored--;
        } else {
            expect_success(perhaps_add(f, key_at(&keys, key), keys.key_nbytes));
            copies[key]++;
            stored++;
        }
    }
    for (size_t key = 0; key < KEYS; key++) {
        uint64_t least = copies[key] < 15 ? copies[key] : 15,
                 count = count_of(f, key_at(&keys, key), 8);
        expect(count >= least);
        wrong += count > least;
    }
    expect(wrong < KEYS / 50 && stats_of(f).keys == stored);
    check_last_line(f);
}

/* ---- The limit -------------------------------------------------------------------------- */

/* The limit is one of different keys: a hundred copies of each key find room, but more than a
 * few new keys do not. */
TEST(test_limit)
{
    enum { CAPACITY = 2000 };
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 2 * CAPACITY);
    struct perhaps_keys first = some_keys(&keys, 0, CAPACITY);
    scoped_filter *f = make_filter(counting(), CAPACITY, 0.001, test_seed());
    for (unsigned copies = 0; copies < 100; copies++)
        fill(f, &first);
    struct perhaps_stats stats = stats_of(f);
    expect(stats.keys == 100 * CAPACITY && stats.fpr_now <= 0.001);
    size_t done = 0;
    struct perhaps_keys others = some_keys(&keys, CAPACITY, CAPACITY);
    expect_error(perhaps_add_many(f, &others, &done), PERHAPS_ERR_FULL);
    expect(done < CAPACITY / 10);
    fill(f, &first);
    expect(stats_of(f).fpr_now <= 0.001);
    check_last_line(f);
}

/* A file may hold any numbers in the last line.  The filter believes them, so it may refuse
 * adds too early; but it denies no key and does not crash. */
TEST(test_hostile_last_line)
{
    struct rng rng = rng_for(__func__);
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 600);
    const uint64_t numbers[] = { 0, 1, 17, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX };
    for (unsigned round = 0; round < 200; round++) {
        scoped_filter *f =
            (round % 2 ? shared_filter : make_filter)(counting(), 500, 0.01, test_seed());
        struct perhaps_keys half = some_keys(&keys, 0, 300);
        fill(f, &half);
        for (unsigned i = 0; i < 8; i++)
            store64(last_line(f) + 8 * i, numbers[rng_below(&rng, 6)]);
        uint64_t used = load64(last_line(f));
        scene("%llu counters in use, round %u", (unsigned long long)used, round);
        size_t done, nremoved;
        int error = perhaps_add_many(f, &keys, &done);
        expect(error == (used < 18 ? error : PERHAPS_ERR_FULL));
        expect_all_found(f, &half);
        expect_success(perhaps_remove_many(f, &half, NULL, &nremoved, NULL));
        expect(nremoved == half.count);
        stats_of(f);
        scoped_filter *copy = clone_of(f);
        perhaps_merge(f, copy);
    }
}

/* ---- Union ------------------------------------------------------------------------------ */

/* A union adds up the counters: it equals a filter that got both sets of copies. */
TEST(test_merge)
{
    scoped_filter *f = make_filter(counting(), 1000, 1e-6, test_seed());
    scoped_filter *other = clone_of(f), *both = clone_of(f);
    static const unsigned copies[][2] = { { 0, 3 }, { 3, 0 },  { 5, 9 },  { 7, 7 },
                                          { 7, 8 }, { 9, 12 }, { 15, 0 }, { 15, 40 } };
    enum { KEYS = sizeof copies / sizeof *copies };
    for (unsigned k = 0; k < KEYS; k++) {
        char key[16];
        snprintf(key, sizeof key, "key %u", k);
        add_copies(f, key, copies[k][0]);
        add_copies(other, key, copies[k][1]);
        add_copies(both, key, copies[k][0] + copies[k][1]);
    }
    expect_success(perhaps_merge(f, other));
    expect(perhaps_equal(f, both));
    expect_same_counters(f, both);
    for (unsigned k = 0; k < KEYS; k++) {
        char key[16];
        unsigned sum = copies[k][0] + copies[k][1];
        snprintf(key, sizeof key, "key %u", k);
        expect_count(f, key, sum < 15 ? sum : 15);
    }
    check_last_line(f);
}

/* ---- Threads ---------------------------------------------------------------------------- */

struct worker {
    perhaps_filter *f;
    struct perhaps_keys keys;
    uint64_t seed;
    unsigned refused;
};

/* Adds all keys in rounds 0, 2 and 4 and removes them in rounds 1 and 3, in batches of all
 * sizes: at the end each key is in once. */
static void *add_and_remove(void *context)
{
    struct worker *w = context;
    struct rng rng = { mix64(w->seed) };
    for (unsigned round = 0; round < 5; round++)
        for (size_t at = 0; at < w->keys.count;) {
            size_t left = w->keys.count - at, count = 1 + rng_below(&rng, 300);
            struct perhaps_keys some = some_keys(&w->keys, at, count < left ? count : left);
            size_t done = some.count;
            int error = round % 2 ? perhaps_remove_many(w->f, &some, NULL, &done, NULL)
                                  : perhaps_add_many(w->f, &some, &done);
            w->refused += error || done != some.count;
            at += some.count;
        }
    return NULL;
}

/* Sums do not depend on the order, unless a counter saturates: so the filter equals one that a
 * single thread filled. */
static void check_threads(size_t nkeys)
{
    enum { THREADS = 4 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, nkeys);
    scoped_filter *f = shared_filter(counting(), nkeys, 0.01, test_seed());
    scoped_filter *alone = full_filter(counting(), nkeys, 0.01, &keys);
    struct worker workers[THREADS];
    scene("%zu keys", nkeys);
    for (unsigned t = 0; t < THREADS; t++) {
        size_t first = nkeys / THREADS * t;
        size_t count = t == THREADS - 1 ? nkeys - first : nkeys / THREADS;
        workers[t] =
            (struct worker){ .f = f, .keys = some_keys(&keys, first, count), .seed = t };
    }
    run_threads(THREADS, add_and_remove, workers, sizeof *workers);
    for (unsigned t = 0; t < THREADS; t++)
        expect(workers[t].refused == 0);
    check_last_line(f);
    expect(stats_of(f).keys == nkeys);
    expect_all_found(f, &keys);
    if (!stats_of(f).counting.saturated)
        expect(perhaps_equal(f, alone));
}

/* Filters that are filled to their capacity; the smallest have few lines, on which all threads
 * meet. */
TEST(test_threads)
{
    for (unsigned round = 0; round < (SANITIZED ? 10 : 100); round++)
        check_threads(50 + 13 * round);
    check_threads(SANITIZED ? 20000 : 200000);
}
