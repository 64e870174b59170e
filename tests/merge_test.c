/* merge_test.c - proves that after perhaps_merge() a filter has the keys of both, and that a
 * merge that is refused changes neither of them. */
#include "support.h"

#include <math.h>

enum { CAPACITY = 2000 };

/* Kinds without removals hold a set, so their union is that of the bits.  Kinds with removals
 * hold copies, and those of both filters add up. */
static bool holds_a_set(const struct perhaps_kind *kind)
{
    return !removes(kind);
}

static bool merges_sets(const struct perhaps_kind *kind)
{
    return merges(kind) && holds_a_set(kind);
}

static bool merges_copies(const struct perhaps_kind *kind)
{
    return merges(kind) && !holds_a_set(kind);
}

static perhaps_filter *filter_of(const struct perhaps_kind *kind,
                                 const struct perhaps_keys *keys, size_t first, size_t count)
{
    struct perhaps_keys part = some_keys(keys, first, count);
    perhaps_filter *f = full_filter(kind, CAPACITY, 0.01, &part);
    return f;
}

static void expect_merge_refused(perhaps_filter *f, const perhaps_filter *other, int wanted)
{
    scoped_filter *before = clone_of(f), *other_before = clone_of(other);
    expect_error(perhaps_merge(f, other), wanted);
    expect(perhaps_equal(f, before) && perhaps_equal(other, other_before));
    expect_same_counters(f, before);
}

/* Two halves make a whole.  Bloom kinds estimate the number of keys from the bits; other kinds
 * know it exactly. */
TEST(test_halves)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY);
    EACH_KIND(kind, merges) {
        scoped_filter *all = filter_of(kind, &keys, 0, CAPACITY);
        scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY / 2);
        scoped_filter *rest = filter_of(kind, &keys, CAPACITY / 2, CAPACITY / 2);
        scoped_filter *rest_before = clone_of(rest);
        expect_success(perhaps_merge(f, rest));
        expect_all_found(f, &keys);
        expect(perhaps_equal(rest, rest_before));
        expect(!holds_a_set(kind) || perhaps_equal(f, all));
        double estimate = (double)stats_of(f).keys;
        expect(fabs(estimate / (double)CAPACITY - 1) < (holds_a_set(kind) ? 0.05 : 1e-9));
    }
}

/* Bloom kinds count a key once that was in both. */
TEST(test_overlap)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY / 2);
    EACH_KIND(kind, merges_sets) {
        scoped_filter *f = filter_of(kind, &keys, 0, keys.count * 3 / 4);
        scoped_filter *other = filter_of(kind, &keys, keys.count / 4, keys.count * 3 / 4);
        expect_success(perhaps_merge(f, other));
        expect_all_found(f, &keys);
        expect(fabs((double)stats_of(f).keys / (double)keys.count - 1) < 0.05);
    }
}

/* An empty filter changes nothing, and takes all keys of another one. */
TEST(test_with_nothing)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY);
    EACH_KIND(kind, merges) {
        scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY), *before = clone_of(f);
        scoped_filter *empty = filter_of(kind, &keys, 0, 0);
        expect_success(perhaps_merge(f, empty));
        expect(perhaps_equal(f, before));
        expect_same_counters(f, before);
        expect_success(perhaps_merge(empty, f));
        expect_all_found(empty, &keys);
    }
}

/* The copies of both filters add up: each key can be removed twice, and is gone then. */
TEST(test_copies)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY / 4);
    EACH_KIND(kind, merges_copies) {
        scoped_filter *f = filter_of(kind, &keys, 0, keys.count);
        scoped_filter *other = filter_of(kind, &keys, 0, keys.count);
        size_t nremoved;
        expect_success(perhaps_merge(f, other));
        for (unsigned copies = 2; copies > 0; copies--) {
            expect(stats_of(f).keys == copies * keys.count);
            expect_all_found(f, &keys);
            expect_success(perhaps_remove_many(f, &keys, NULL, &nremoved));
            expect(nremoved == keys.count);
        }
        expect(perhaps_contains_many(f, &keys, NULL) == 0);
    }
}

/* Filters of another seed, capacity, rate or kind, and a filter with itself. */
TEST(test_refusals)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 10);
    const struct perhaps_kind *first = perhaps_kind_at(0);
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = filter_of(kind, &keys, 0, keys.count);
        perhaps_filter *others[] = {
            make_filter(kind, CAPACITY, 0.01, test_seed() ^ 1),
            make_filter(kind, CAPACITY * 2, 0.01, test_seed()),
            make_filter(kind, CAPACITY, 0.0001, test_seed()),
            make_filter(kind != first ? first : perhaps_kind_at(1), CAPACITY, 0.01,
                        test_seed()),
        };
        for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
            expect_merge_refused(f, others[o],
                                 merges(kind) ? PERHAPS_ERR_MISMATCH : PERHAPS_ERR_UNSUPPORTED);
            perhaps_free(others[o]);
        }
        expect_merge_refused(f, f, PERHAPS_ERR_ARGUMENT);
        if (!merges(kind)) {
            scoped_filter *twin = clone_of(f);
            expect_merge_refused(f, twin, PERHAPS_ERR_UNSUPPORTED);
        }
    }
}

/* Each of the two filters keeps the fpr, but their union would not. */
TEST(test_too_much)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2 * CAPACITY);
    EACH_KIND(kind, merges) {
        scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY);
        scoped_filter *other = filter_of(kind, &keys, CAPACITY, CAPACITY);
        expect_merge_refused(f, other, PERHAPS_ERR_FULL);
    }
}
