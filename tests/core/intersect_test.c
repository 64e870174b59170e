/* intersect_test.c - proves that after perhaps_intersect() a filter has all keys that both had,
 * at a rate that neither exceeded; and that it keeps its promise when more keys come. */
#include "support.h"
#include <perhaps.h>

#include <string.h>

#include "filter/filter.h"
#include "kinds/kinds.h"

enum { CAPACITY = 2000 };

static bool intersects(const struct perhaps_kind *kind)
{
    return kind_by_name(kind->name)->intersect != NULL;
}

static bool intersects_not(const struct perhaps_kind *kind)
{
    return !intersects(kind);
}

static bool intersects_copies(const struct perhaps_kind *kind)
{
    return intersects(kind) && removes(kind);
}

static perhaps_filter *filter_of(const struct perhaps_kind *kind,
                                 const struct perhaps_keys *keys, size_t first, size_t count)
{
    struct perhaps_keys part = some_keys(keys, first, count);
    return full_filter(kind, CAPACITY, 0.01, &part);
}

/* Intersects, and checks what is always so. */
static void intersect(perhaps_filter *f, const perhaps_filter *other)
{
    scoped_filter *before = clone_of(f), *other_before = clone_of(other);
    expect_success(perhaps_intersect(f, other));
    expect(perhaps_equal(other, other_before));
    expect_same_counters(other, other_before);
    expect(exact_rate(f) <= exact_rate(before) && exact_rate(f) <= exact_rate(other));
    expect(stats_of(f).keys <= stats_of(before).keys);
    expect(stats_of(f).keys <= stats_of(other).keys);
}

/* ---- What is in ------------------------------------------------------------------------- */

TEST_EACH(test_overlap, intersects)
{
    static const size_t overlaps[] = { 0, 1, CAPACITY / 10, CAPACITY / 2, CAPACITY };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2 * CAPACITY);
    for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
        size_t both = overlaps[i], first = CAPACITY - both;
        struct perhaps_keys common = some_keys(&keys, first, both);
        struct perhaps_keys others = some_keys(&keys, 0, first);
        scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY);
        scoped_filter *other = filter_of(kind, &keys, first, CAPACITY);
        intersect(f, other);
        expect_all_found(f, &common);
        expect(stats_of(f).keys + 150 >= both);
        expect(perhaps_contains_many(f, &others, NULL) <= 100); /* 20 is the mean */
    }
}

/* With itself, with a subset, with nothing. */
TEST_EACH(test_subsets, intersects)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY);
    scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY), *same = clone_of(f);
    scoped_filter *part = filter_of(kind, &keys, 0, CAPACITY / 3), *copy = clone_of(part);
    scoped_filter *none = filter_of(kind, &keys, 0, 0);
    intersect(f, same);
    expect(perhaps_equal(f, same));
    intersect(part, f);
    expect(perhaps_equal(part, copy));
    intersect(f, none);
    expect(stats_of(f).keys == 0 && perhaps_contains_many(f, &keys, NULL) == 0);
    intersect(none, part);
    expect(stats_of(none).keys == 0);
}

/* A filter that lost keys takes others, but never so many that it breaks its promise. */
TEST_EACH(test_later_adds, intersects)
{
    static const double rates[] = { 0.3, 0.01, 1e-4 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 10 * CAPACITY);
    struct rng rng = rng_for(__func__);
    for (unsigned round = 0; round < many(60); round++) {
        uint64_t capacity = 100 + rng_below(&rng, CAPACITY - 100);
        double fpr = rates[round % 3];
        size_t both = (size_t)rng_below(&rng, capacity), done;
        scene("%s, capacity %u, fpr %g, both %zu", kind->name, (unsigned)capacity, fpr, both);
        scoped_filter *f = make_filter(kind, capacity, fpr, rng_next(&rng) | 1);
        scoped_filter *other = clone_of(f);
        struct perhaps_keys of_f = some_keys(&keys, 0, capacity);
        struct perhaps_keys of_other = some_keys(&keys, capacity - both, capacity);
        struct perhaps_keys later = some_keys(&keys, 2 * capacity, 4 * capacity);
        struct perhaps_keys common = some_keys(&keys, capacity - both, both);
        fill(f, &of_f);
        fill(other, &of_other);
        intersect(f, other);
        int error = perhaps_add_many(f, &later, &done);
        expect(error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES);
        expect(exact_rate(f) <= fpr);
        expect_all_found(f, &common);
        expect(done + 150 >= (capacity - both) / 3);
    }
}

/* Adds copies of a key, and returns how many went in: copies of one key share few places, so a
 * filter that is nearly empty may refuse one. */
static unsigned add_copies(perhaps_filter *f, const struct perhaps_keys *keys, size_t key,
                           unsigned wanted)
{
    for (unsigned i = 0; i < wanted; i++) {
        int error = perhaps_add(f, key_at(keys, key), keys->key_nbytes);
        expect(!error || (error == PERHAPS_ERR_FULL && i > 0));
        if (error)
            return i;
    }
    return wanted;
}

/* Of each key as many copies stay as the filter had that had fewer, and can be removed. */
TEST_EACH(test_copies, intersects_copies)
{
    enum { KEYS = 300 };
    struct rng rng = rng_for(__func__);
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, KEYS);
    scoped_filter *f = make_filter(kind, CAPACITY, 1e-4, test_seed()), *other = clone_of(f);
    unsigned copies[KEYS];
    uint64_t sum = 0;
    for (size_t key = 0; key < KEYS; key++) {
        unsigned in_f = add_copies(f, &keys, key, (unsigned)rng_below(&rng, 4));
        unsigned in_other = add_copies(other, &keys, key, (unsigned)rng_below(&rng, 4));
        copies[key] = in_f < in_other ? in_f : in_other;
        sum += copies[key];
    }
    intersect(f, other);
    expect(stats_of(f).keys >= sum && stats_of(f).keys < sum + 200);
    for (size_t key = 0; key < KEYS; key++)
        for (; copies[key]; copies[key]--) {
            expect(!f->counts ||
                   count_of(f, key_at(&keys, key), keys.key_nbytes) >= copies[key]);
            expect_success(perhaps_remove(f, key_at(&keys, key), keys.key_nbytes));
        }
}

/* ---- A model ---------------------------------------------------------------------------- */

enum { UNIVERSE = 600 };

/* Two filters, and how many copies of each key are in each of them. */
struct model {
    perhaps_filter *f[2];
    unsigned copies[2][UNIVERSE];
    struct perhaps_keys keys;
    struct rng rng;
    bool removes;
};

static void model_check(const struct model *m)
{
    for (unsigned i = 0; i < 2; i++)
        for (size_t key = 0; key < UNIVERSE; key++)
            expect(!m->copies[i][key] ||
                   perhaps_contains(m->f[i], key_at(&m->keys, key), m->keys.key_nbytes));
}

static void model_change(struct model *m)
{
    unsigned i = (unsigned)rng_below(&m->rng, 2);
    size_t key = (size_t)rng_below(&m->rng, UNIVERSE);
    const void *bytes = key_at(&m->keys, key);
    unsigned *copies = &m->copies[i][key];
    if (m->removes && *copies && rng_below(&m->rng, 3) == 0) {
        expect_success(perhaps_remove(m->f[i], bytes, m->keys.key_nbytes));
        --*copies;
    } else if (!perhaps_add(m->f[i], bytes, m->keys.key_nbytes)) {
        *copies = m->removes ? *copies + 1 : 1;
    }
}

static void model_intersect(struct model *m)
{
    unsigned i = (unsigned)rng_below(&m->rng, 2);
    intersect(m->f[i], m->f[!i]);
    for (size_t key = 0; key < UNIVERSE; key++)
        if (m->copies[!i][key] < m->copies[i][key])
            m->copies[i][key] = m->copies[!i][key];
}

TEST_EACH(test_model, intersects)
{
    struct model m = { .keys = make_keys(RANDOM_KEYS, test_seed(), 0, UNIVERSE),
                       .rng = rng_for(__func__),
                       .removes = removes(kind) };
    for (unsigned i = 0; i < 2; i++)
        m.f[i] = i && is_able(kind, PERHAPS_CAN_THREADS)
                     ? shared_filter(kind, UNIVERSE, 0.01, test_seed())
                     : make_filter(kind, UNIVERSE, 0.01, test_seed());
    for (unsigned step = 1; step <= many(20000); step++) {
        model_change(&m);
        if (step % 500 == 0) {
            model_intersect(&m);
            model_check(&m);
        }
    }
    for (unsigned i = 0; i < 2; i++)
        perhaps_free(m.f[i]);
    free_keys(&m.keys);
}

/* ---- Integers ---------------------------------------------------------------------------- */

static void change_integer(perhaps_filter *f, uint64_t n)
{
    struct perhaps_hashed hashed = { { 0 } };
    memcpy(hashed.bytes, &n, sizeof n);
    struct perhaps_keys keys = perhaps_keys_hashed(&hashed, 1);
    fill(f, &keys);
}

static bool has_integer(const perhaps_filter *f, uint64_t n)
{
    struct perhaps_hashed hashed = { { 0 } };
    memcpy(hashed.bytes, &n, sizeof n);
    struct perhaps_keys keys = perhaps_keys_hashed(&hashed, 1);
    return perhaps_contains_many(f, &keys, NULL) == 1;
}

/* Multiples of 2 and of 3. */
TEST(test_integers)
{
    struct perhaps_options options = { .bitmap = { .low = 1, .high = 1001 } };
    scoped_filter *f = make_with(&options), *other = make_with(&options);
    for (uint64_t n = 2; n <= 1001; n += 2)
        change_integer(f, n);
    for (uint64_t n = 3; n <= 1001; n += 3)
        change_integer(other, n);
    expect_success(perhaps_intersect(f, other));
    for (uint64_t n = 1; n <= 1001; n++)
        expect(has_integer(f, n) == (n % 6 == 0));
    expect(stats_of(f).keys == 166);
}

/* ---- Refusals and failures --------------------------------------------------------------- */

static void expect_refused(perhaps_filter *f, const perhaps_filter *other, int wanted)
{
    scoped_filter *before = clone_of(f);
    expect_error(perhaps_intersect(f, other), wanted);
    expect(perhaps_equal(f, before));
    expect_same_counters(f, before);
}

/* Filters of another seed, capacity, rate or kind, and a filter with itself. */
TEST_EACH(test_refusals, intersects)
{
    const struct perhaps_kind *first = perhaps_kind_at(0), *second = perhaps_kind_at(1);
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 100);
    scoped_filter *f = filter_of(kind, &keys, 0, 100);
    scoped_filter *seed = make_filter(kind, CAPACITY, 0.01, test_seed() ^ 1);
    scoped_filter *capacity = make_filter(kind, 2 * CAPACITY, 0.01, test_seed());
    scoped_filter *rate = make_filter(kind, CAPACITY, 0.0001, test_seed());
    scoped_filter *another = make_filter(strcmp(kind->name, first->name) ? first : second,
                                         CAPACITY, 0.01, test_seed());
    expect_refused(f, seed, PERHAPS_ERR_MISMATCH);
    expect_refused(f, capacity, PERHAPS_ERR_MISMATCH);
    expect_refused(f, rate, PERHAPS_ERR_MISMATCH);
    expect_refused(f, another, PERHAPS_ERR_MISMATCH);
    expect_refused(f, f, PERHAPS_ERR_ARGUMENT);
}

TEST_EACH(test_other_kinds, intersects_not)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 100);
    scoped_filter *f = full_filter(kind, CAPACITY, 0.01, &keys), *other = clone_of(f);
    expect_refused(f, other, PERHAPS_ERR_UNSUPPORTED);
}

/* It needs no memory, nor does a comparison. */
TEST_EACH(test_no_memory, intersects)
{
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY);
    struct perhaps_options options = options_for(kind, CAPACITY, 0.01, test_seed());
    struct perhaps_comparison comparison;
    options.allocator = &allocator;
    perhaps_filter *f = make_with(&options);
    scoped_filter *other = filter_of(kind, &keys, 0, CAPACITY / 2);
    fill(f, &keys);
    ledger.failing = true;
    expect_success(perhaps_intersect(f, other));
    expect_success(perhaps_compare(f, other, &comparison));
    ledger.failing = false;
    expect(comparison.jaccard.value == 1);
    perhaps_free(f);
    expect(ledger.live == 0);
}

/* A mapped filter is left alone; it may be the other one. */
TEST_EACH(test_mapped, intersects)
{
    struct path path = temp_path("mapped");
    struct perhaps_comparison comparison;
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY);
    scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY);
    scoped_filter *part = filter_of(kind, &keys, 0, CAPACITY / 2);
    expect_success(perhaps_save(part, path.text));
    scoped_filter *mapped = open_file(path.text, &map_it);
    expect_error(perhaps_intersect(mapped, f), PERHAPS_ERR_READ_ONLY);
    intersect(f, mapped);
    expect(perhaps_compare(f, part, &comparison) == 0 && comparison.jaccard.value == 1);
}
