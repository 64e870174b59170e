/* capacity_test.c - proves that a filter takes every key up to its capacity, for every kind,
 * size and rate; that beyond its limit it refuses keys and loses none; and that its fpr stays
 * below what was asked as long as it accepts keys. */
#include "support.h"
#include <perhaps_sets.h>

#include <math.h>

static const double rates[] = { 0.3, 0.1, 0.01, 0.001, 1e-4, 1e-6 };
enum { RATES = sizeof rates / sizeof *rates };

/* Fills a filter to its capacity, with another part of the pool and another seed each time. */
static void fill_exactly(const struct perhaps_kind *kind, const struct perhaps_keys *pool,
                         size_t capacity, double fpr, struct rng *rng)
{
    scene("%s, capacity %zu, fpr %g", kind->name, capacity, fpr);
    struct perhaps_keys keys =
        some_keys(pool, rng_below(rng, pool->count - capacity + 1), capacity);
    scoped_filter *f = make_filter(kind, capacity, fpr, 1 + rng_next(rng));
    fill(f, &keys);
    expect_all_found(f, &keys);
    expect(stats_of(f).failed_adds == 0);
}

TEST(test_small_sizes)
{
    struct rng rng = rng_for(__func__);
    scoped_keys pool = make_keys(RANDOM_KEYS, test_seed(), 0, 1000);
    EACH_KIND(kind, any_kind)
        for (size_t capacity = 1; capacity <= 70; capacity++)
            for (unsigned r = 0; r < RATES; r++)
                fill_exactly(kind, &pool, capacity, rates[r], &rng);
}

/* Fifty odd sizes, spread evenly on a logarithmic scale. */
TEST(test_odd_sizes)
{
    enum { SIZES = 50 };
    const double smallest = 71, largest = many(1000 * 1000);
    struct rng rng = rng_for(__func__);
    scoped_keys pool = make_keys(TEXT_KEYS, test_seed(), 0, (size_t)largest * 2);
    EACH_KIND(kind, any_kind)
        for (unsigned s = 0; s < SIZES; s++) {
            double step = s + (double)rng_below(&rng, 1000) / 1000;
            size_t capacity =
                (size_t)(smallest * pow(largest / smallest, step / (double)SIZES));
            fill_exactly(kind, &pool, capacity | 1, rates[s % RATES], &rng);
        }
}

/* Adds keys until ten thousand were refused, from a pool that is far larger than the filter. */
static void check_beyond(const struct perhaps_kind *kind, size_t capacity, double fpr)
{
    scene("%s of %zu at %g, overfilled", kind->name, capacity, fpr);
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 20 * capacity + 30000);
    scoped_filter *f = make_filter(kind, capacity, fpr, test_seed());
    size_t before_first = 0;
    overfill(f, &keys, 10000, &before_first);
    expect(before_first >= capacity);
    struct perhaps_keys first = some_keys(&keys, 0, before_first);
    expect_all_found(f, &first);
}

TEST_EACH(test_beyond_capacity, any_kind)
{
    for (unsigned r = 0; r < RATES && gets_full(kind); r++) {
        check_beyond(kind, 1, rates[r]);
        check_beyond(kind, 3000, rates[r]);
    }
}

/* perhaps_add_unless_present() of a key that is there succeeds even on a full filter, since it
 * changes nothing. */
TEST(test_known_keys_when_full)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 5000);
    EACH_KIND(kind, gets_full) {
        scoped_filter *f = make_filter(kind, 1000, 0.01, test_seed());
        size_t done;
        expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_FULL);
        expect(done >= 1000 && done < keys.count);
        scoped_filter *before = clone_of(f);
        bool was_present[1000] = { 0 };
        struct perhaps_keys known = some_keys(&keys, 0, 1000);
        expect_success(perhaps_add_unless_present_many(f, &known, was_present, NULL));
        for (size_t k = 0; k < known.count; k++)
            expect(was_present[k]);
        expect(perhaps_equal(f, before));
        expect_same_counters(f, before);
    }
}

/* A filter keeps its fpr until it refuses keys; one that grows, and a window, keeps it while
 * four times as many keys come. */
TEST(test_rate_until_full)
{
    enum { CAPACITY = 50000 };
    const double noise = 3 / sqrt(CAPACITY); /* how much the fill differs between seeds */
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 4 * CAPACITY);
    EACH_KIND(kind, any_kind)
        for (unsigned r = 0; r < RATES; r++) {
            scoped_filter *f = make_filter(kind, CAPACITY, rates[r], test_seed());
            scene("%s at %g", kind->name, rates[r]);
            expect_error(perhaps_add_many(f, &keys, NULL), too_many(kind));
            scene("%s at %g, until it is full: %g", kind->name, rates[r], stats_of(f).fpr_now);
            expect(stats_of(f).fpr_now <= rates[r] * (1 + noise));
        }
}

/* Removed keys make room for others: twenty times the same capacity. */
TEST(test_refill)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3000);
    EACH_KIND(kind, removes) {
        scoped_filter *f = make_filter(kind, 1000, 1e-4, test_seed());
        struct perhaps_keys old = some_keys(&keys, 0, 1000), fresh = some_keys(&keys, 0, 0);
        for (size_t round = 0; round < 20; round++) {
            fresh = some_keys(&keys, round % 2 * 1000, 1000);
            fill(f, &fresh);
            expect_all_found(f, &fresh);
            size_t nremoved;
            expect_success(perhaps_remove_many(f, &fresh, NULL, &nremoved, NULL));
            expect(nremoved == fresh.count && stats_of(f).keys == 0);
        }
        expect(perhaps_contains_many(f, &old, NULL) == 0);
    }
}
