/* compare_test.c - proves that perhaps_compare() finds how many keys two filters have in
 * common, and that its errors say how far off it is: not more, and not less. */
#include "support.h"
#include <perhaps.h>

#include <math.h>
#include <string.h>

#include "filter/filter.h"
#include "kinds/kinds.h"

enum { CAPACITY = 20000 };

static bool compares(const struct perhaps_kind *kind)
{
    return kind_by_name(kind->name)->compares != NULL;
}

static bool compares_not(const struct perhaps_kind *kind)
{
    return !compares(kind);
}

/* Compares estimates, to the last bit. */
static bool same(const void *a, const void *b, size_t nbytes)
{
    return memcmp(a, b, nbytes) == 0;
}

/* The sizes of two sets, and of their intersection. */
struct sets {
    size_t a, b, both;
};

static double either_of(struct sets sets)
{
    return (double)(sets.a + sets.b - sets.both);
}

/* Adds the keys of two such sets to two filters. */
static void fill_both(perhaps_filter *a, perhaps_filter *b, const struct perhaps_keys *keys,
                      struct sets sets)
{
    struct perhaps_keys of_a = some_keys(keys, 0, sets.a);
    struct perhaps_keys of_b = some_keys(keys, sets.a - sets.both, sets.b);
    fill(a, &of_a);
    fill(b, &of_b);
}

static struct perhaps_comparison comparison_of(const perhaps_filter *a, const perhaps_filter *b)
{
    struct perhaps_comparison c;
    expect_success(perhaps_compare(a, b, &c));
    return c;
}

/* Expects that the estimate is within so many standard errors of the truth.  Few keys meet by
 * chance in some of the filters, and such small numbers have a longer tail than a normal
 * distribution: by Bernstein's bound, 17 of them more happen less than once in 10^10 times. */
static void expect_near(struct perhaps_estimate estimate, double truth, double unit)
{
    double off = fabs(estimate.value - truth);
    expect(isfinite(estimate.error) && estimate.error >= 0);
    expect(off <= DEVIATIONS * estimate.error + 17 * unit);
}

static void expect_true(const struct perhaps_comparison *c, struct sets sets)
{
    double a = (double)sets.a, b = (double)sets.b, both = (double)sets.both;
    expect_near(c->a, a, 1);
    expect_near(c->b, b, 1);
    expect_near(c->either, either_of(sets), 1);
    expect_near(c->both, both, 1);
    expect_near(c->a_in_b, both / a, 1 / a);
    expect_near(c->b_in_a, both / b, 1 / b);
    expect_near(c->jaccard, both / either_of(sets), 1 / either_of(sets));
    expect(c->both.error < 0.1 * either_of(sets));
}

/* Expects what is true of all numbers, whatever the bodies are. */
static void expect_sane(const struct perhaps_comparison *c)
{
    const struct perhaps_estimate each[] = { c->a,      c->b,      c->either, c->both,
                                             c->a_in_b, c->b_in_a, c->jaccard };
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        expect(each[i].value >= 0 && isfinite(each[i].value) && each[i].error >= 0);
    expect(c->both.value <= c->a.value && c->both.value <= c->b.value);
    expect(c->a_in_b.value <= 1 && c->b_in_a.value <= 1 && c->jaccard.value <= 1);
    for (size_t i = 0; i < PERHAPS_RESERVED; i++)
        expect(c->reserved[i] == 0);
}

static void expect_refused(const perhaps_filter *a, const perhaps_filter *b, int wanted)
{
    struct perhaps_comparison c, before;
    memset(&c, 0x5a, sizeof c);
    before = c;
    expect_error(perhaps_compare(a, b, &c), wanted);
    expect(same(&c, &before, sizeof c));
}

/* ---- Estimates -------------------------------------------------------------------------- */

TEST_EACH(test_sets, compares)
{
    static const struct sets each[] = {
        { CAPACITY, CAPACITY, 0 },
        { CAPACITY, CAPACITY, CAPACITY / 2 },
        { CAPACITY, CAPACITY, CAPACITY },
        { CAPACITY, CAPACITY / 4, CAPACITY / 4 },
        { CAPACITY / 8, CAPACITY, 1000 },
        { CAPACITY / 4, CAPACITY / 4, 0 },
        { CAPACITY, 200, 100 },
        { CAPACITY, CAPACITY, CAPACITY - 50 },
        { CAPACITY / 8, CAPACITY / 8, 50 },
    };
    static const double rates[] = { 0.4, 0.05, 1e-5 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2 * CAPACITY);
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        scoped_filter *empty = make_filter(kind, CAPACITY, rates[r], test_seed());
        for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
            scene("%s, fpr %g, sets %zu", kind->name, rates[r], i);
            scoped_filter *a = clone_of(empty), *b = clone_of(empty);
            fill_both(a, b, &keys, each[i]);
            struct perhaps_comparison c = comparison_of(a, b), turned = comparison_of(b, a);
            expect_true(&c, each[i]);
            expect_sane(&c);
            expect(c.a.value == turned.b.value && c.a_in_b.value == turned.b_in_a.value);
            expect(c.both.value == turned.both.value);
            expect(fabs(c.a_in_b.error - turned.b_in_a.error) < 1e-6);
        }
    }
}

/* The same bits: nothing is uncertain but the size.  A subset is found to be one. */
TEST_EACH(test_the_same, compares)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY);
    scoped_filter *a = full_filter(kind, CAPACITY, 0.01, &keys), *b = clone_of(a);
    struct perhaps_comparison c = comparison_of(a, b);
    expect(c.jaccard.value == 1 && c.a_in_b.value == 1 && c.b_in_a.value == 1);
    expect(c.jaccard.error < 1e-6 && c.a_in_b.error < 1e-6 && c.b_in_a.error < 1e-6);
    expect(c.a.value == c.b.value && c.a.value == c.either.value && c.a.value == c.both.value);
    c = comparison_of(a, a);
    expect(c.jaccard.value == 1);
    struct perhaps_keys half = some_keys(&keys, 0, CAPACITY / 2);
    scoped_filter *part = full_filter(kind, CAPACITY, 0.01, &half);
    c = comparison_of(part, a);
    expect(c.a_in_b.value == 1 && c.a_in_b.error < 1e-6 && c.b_in_a.error > 0);
}

TEST_EACH(test_nothing, compares)
{
    const struct perhaps_estimate zero = { 0 };
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY);
    scoped_filter *a = full_filter(kind, CAPACITY, 0.01, &keys);
    scoped_filter *none = make_filter(kind, CAPACITY, 0.01, test_seed());
    struct perhaps_comparison c = comparison_of(a, none), empty = { 0 };
    expect_near(c.a, CAPACITY, 1);
    expect(c.either.value == c.a.value);
    expect(same(&c.b, &zero, sizeof zero) && c.both.value == 0 && c.both.error < 1e-6);
    expect(c.b_in_a.value == 0 && c.a_in_b.value == 0 && c.jaccard.value == 0);
    c = comparison_of(none, none);
    expect(same(&c, &empty, sizeof c));
}

/* Copies of a key count once. */
TEST_EACH(test_copies, compares)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 1000);
    scoped_filter *once = full_filter(kind, CAPACITY, 0.001, &keys), *often = clone_of(once);
    for (unsigned copies = 2; copies <= copies_most(kind) / 2 && copies <= 3; copies++)
        fill(often, &keys);
    struct perhaps_comparison c = comparison_of(once, often);
    expect(c.jaccard.value == 1 && c.b.value == c.a.value);
    expect_near(c.a, 1000, 1);
}

/* Bodies of any bytes, such as a file from an enemy has, and bodies without a clear bit. */
TEST_EACH(test_any_bytes, compares)
{
    struct rng rng = rng_for(__func__);
    scoped_filter *a = make_filter(kind, 1000, 0.01, test_seed()), *b = clone_of(a);
    for (unsigned round = 0; round < 8; round++) {
        perhaps_filter *const each[] = { a, b };
        for (unsigned i = 0; i < 2; i++)
            for (uint64_t at = 0; at < a->body.geometry.body_nbytes; at++)
                each[i]->body.bytes[at] = round >> i & 1 ? (uint8_t)rng_next(&rng)
                                          : round & 4    ? 0xff
                                                         : 0;
        struct perhaps_comparison c = comparison_of(a, b);
        expect_sane(&c);
    }
    memset(a->body.bytes, 0xff, a->body.geometry.body_nbytes);
    struct perhaps_comparison c = comparison_of(a, b);
    expect_sane(&c);
    if (folds(kind))
        expect(isinf(c.a.error) && isinf(c.either.error) && isinf(c.both.error) &&
               isinf(c.jaccard.error) && c.a.value > 1000);
}

/* ---- Errors ----------------------------------------------------------------------------- */

/* The difference of estimate and truth in standard errors, over many pairs. */
struct tally {
    double n, sum, squares;
};

static void tally_add(struct tally *t, struct perhaps_estimate estimate, double truth)
{
    double x = (estimate.value - truth) / estimate.error;
    t->n++;
    t->sum += x;
    t->squares += x * x;
}

/* Expects the mean 0 and the standard deviation 1.  The mean of n numbers deviates by 1 /
 * sqrt(n), their variance by sqrt(2 / n); and that has a longer tail above. */
static void expect_calibrated(const struct tally *t)
{
    double mean = t->sum / t->n, variance = t->squares / t->n - mean * mean;
    expect(fabs(mean) < DEVIATIONS / sqrt(t->n));
    expect(variance > 1 - DEVIATIONS * sqrt(2 / t->n));
    expect(variance < 1 + (DEVIATIONS + 3) * sqrt(2 / t->n));
}

/* Compares many pairs of filters, each pair with a seed of its own. */
static void check_calibration(const struct perhaps_kind *kind, double fpr, struct sets sets)
{
    struct rng rng = rng_for(__func__);
    struct tally tally[6] = { { 0 } };
    double a = (double)sets.a, b = (double)sets.b, both = (double)sets.both;
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, sets.a + sets.b);
    scoped_filter *model = make_filter(kind, 2000, fpr, test_seed());
    for (unsigned pair = 0; pair < 400; pair++) {
        struct perhaps_hashing hashing = { .seed = rng_next(&rng) | 1 };
        perhaps_filter *f, *other;
        expect_success(perhaps_create_like(model, &hashing, NULL, &f));
        expect_success(perhaps_create_like(model, &hashing, NULL, &other));
        fill_both(f, other, &keys, sets);
        struct perhaps_comparison c = comparison_of(f, other);
        tally_add(&tally[0], c.a, a);
        tally_add(&tally[1], c.either, either_of(sets));
        tally_add(&tally[2], c.both, both);
        tally_add(&tally[3], c.a_in_b, both / a);
        tally_add(&tally[4], c.b_in_a, both / b);
        tally_add(&tally[5], c.jaccard, both / either_of(sets));
        perhaps_free(f);
        perhaps_free(other);
    }
    for (unsigned i = 0; i < 6; i++) {
        scene("%s, fpr %g, number %u", kind->name, fpr, i);
        expect_calibrated(&tally[i]);
    }
}

/* At a low rate the fingerprints of a cuckoo filter hardly ever meet, and nothing is normal. */
TEST_EACH(test_errors, compares)
{
    check_calibration(kind, 0.02, (struct sets){ 1900, 1900, 950 });
    if (folds(kind))
        check_calibration(kind, 1e-5, (struct sets){ 1900, 1200, 700 });
}

/* ---- Different sizes --------------------------------------------------------------------- */

/* Makes an empty filter like the model with so many lines or bits. */
static perhaps_filter *of_size(const perhaps_filter *model, uint64_t size)
{
    struct geometry g = model->body.geometry;
    perhaps_filter *f;
    g.field[0] = size;
    expect_success(geometry_check(model->kind, &g));
    expect_success(filter_make(model->kind, &g, &model->hasher, NULL, true, false, &f));
    return f;
}

/* The result is, to the last bit, that of the filters that would have had the common size from
 * the beginning. */
TEST_EACH(test_sizes, folds)
{
    static const uint64_t factors[][2] = { { 1, 2 }, { 6, 1 }, { 4, 9 }, { 35, 9 }, { 64, 3 } };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY);
    struct sets sets = { CAPACITY / 2, CAPACITY / 3, CAPACITY / 10 };
    scoped_filter *a = make_filter(kind, CAPACITY, 0.01, test_seed()), *b = clone_of(a);
    scoped_filter *model = clone_of(a);
    fill_both(a, b, &keys, sets);
    struct perhaps_comparison wanted = comparison_of(a, b);
    expect_true(&wanted, sets);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        scene("%s, sizes %zu", kind->name, i);
        uint64_t size = model->body.geometry.field[0];
        scoped_filter *f = of_size(model, size * factors[i][0]);
        scoped_filter *other = of_size(model, size * factors[i][1]);
        fill_both(f, other, &keys, sets);
        struct perhaps_comparison c = comparison_of(f, other);
        expect(same(&c, &wanted, sizeof c));
    }
}

/* Two sizes without a common divisor: all bits of one line would be set, which tells nothing.
 * (Bits are folded by whole lines.) */
TEST_EACH(test_sizes_without_divisor, folds)
{
    uint64_t unit = strcmp(kind->name, "bloom") == 0 ? 512 : 1;
    scoped_filter *model = make_filter(kind, CAPACITY, 0.01, test_seed());
    scoped_filter *f = of_size(model, 1009 * unit), *other = of_size(model, 1013 * unit);
    memset(f->body.bytes, 0xff, 1009 * 64);
    expect_refused(f, other, PERHAPS_ERR_MISMATCH);
    expect_refused(other, f, PERHAPS_ERR_MISMATCH);
}

/* ---- Integers ---------------------------------------------------------------------------- */

static perhaps_filter *range_filter(uint64_t low, uint64_t high)
{
    struct perhaps_options options = { .bitmap = { .low = low, .high = high } };
    return make_with(&options);
}

static void add_integer(perhaps_filter *f, uint64_t n)
{
    struct perhaps_hashed hashed = { { 0 } };
    memcpy(hashed.bytes, &n, sizeof n);
    struct perhaps_keys keys = perhaps_keys_hashed(&hashed, 1);
    fill(f, &keys);
}

/* A bitmap is exact, also where its range ends within a word or a line. */
TEST(test_integers)
{
    static const uint64_t last[] = { 0, 1, 62, 63, 64, 510, 511, 512, 5000, 70000 };
    struct rng rng = rng_for(__func__);
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        double a = 0, b = 0, both = 0;
        uint64_t low = 1000 * i + 1;
        scoped_filter *f = range_filter(low, low + last[i]);
        scoped_filter *other = range_filter(low, low + last[i]);
        scoped_filter *wider = range_filter(low, low + last[i] + 1);
        for (uint64_t n = low; n <= low + last[i]; n++) {
            bool in_a = rng_below(&rng, 2), in_b = rng_below(&rng, 3) == 0;
            if (in_a)
                add_integer(f, n);
            if (in_b)
                add_integer(other, n);
            a += in_a;
            b += in_b;
            both += in_a && in_b;
        }
        memset(f->body.bytes + last[i] / 8 + 1, 0xff, /* what no key has set */
               f->body.geometry.body_nbytes - last[i] / 8 - 1);
        struct perhaps_comparison c = comparison_of(f, other);
        expect_sane(&c);
        expect(c.a.value == a && c.b.value == b && c.both.value == both);
        expect(c.either.value == a + b - both);
        expect(c.a.error == 0 && c.either.error == 0 && c.both.error == 0);
        expect(c.a_in_b.error == 0 && c.b_in_a.error == 0 && c.jaccard.error == 0);
        expect(a == 0 || c.a_in_b.value == both / a);
        expect_refused(f, wider, PERHAPS_ERR_MISMATCH);
    }
}

/* ---- Refusals ---------------------------------------------------------------------------- */

/* Filters of another seed, rate or kind. */
TEST_EACH(test_refusals, compares)
{
    const struct perhaps_kind *first = perhaps_kind_at(0), *second = perhaps_kind_at(1);
    scoped_filter *f = make_filter(kind, CAPACITY, 0.01, test_seed());
    scoped_filter *seed = make_filter(kind, CAPACITY, 0.01, test_seed() ^ 1);
    scoped_filter *rate = make_filter(kind, CAPACITY, 0.00001, test_seed());
    scoped_filter *another = make_filter(strcmp(kind->name, first->name) ? first : second,
                                         CAPACITY, 0.01, test_seed());
    expect_refused(f, seed, PERHAPS_ERR_MISMATCH);
    expect_refused(f, rate, PERHAPS_ERR_MISMATCH);
    expect_refused(f, another, PERHAPS_ERR_MISMATCH);
    expect_refused(another, f, PERHAPS_ERR_MISMATCH);
}

TEST(test_other_kinds)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 100);
    scoped_filter *blocked = make_filter(perhaps_kind_at(0), CAPACITY, 0.01, test_seed());
    EACH_KIND(kind, compares_not) {
        scoped_filter *f = full_filter(kind, 1000, 0.01, &keys);
        expect_refused(f, f, PERHAPS_ERR_UNSUPPORTED);
        expect_refused(blocked, f, PERHAPS_ERR_UNSUPPORTED);
        expect_refused(f, blocked, PERHAPS_ERR_UNSUPPORTED);
    }
}
