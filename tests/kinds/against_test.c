/* against_test.c - proves that a filter against others makes no error on either list, and takes
 * the bits that the documentation says, with groups and without. */
#include "support.h"
#include <perhaps.h>
#include <perhaps_sets.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options of such a filter, whose seed is that of the tests. */
static struct perhaps_options against(double fpr)
{
    return (struct perhaps_options){ .fpr = fpr,
                                     .kind = "against",
                                     .hashing = { .seed = test_seed() } };
}

/* ---- Against others -------------------------------------------------------------------- */

/* No error on either list; a key of both is listed. */
static void try_against(size_t nlisted, size_t nothers, uint64_t expected)
{
    struct perhaps_options options = against(0.5);
    struct path path = temp_path("against");
    options.against.others = expected;
    scene("%zu against %zu", nlisted, nothers);
    scoped_keys all = make_keys(SEQUENTIAL_KEYS, 9, 0, nlisted + nothers);
    struct perhaps_keys listed = some_keys(&all, 0, nlisted),
                        others = some_keys(&all, nlisted, nothers),
                        both = some_keys(&all, nlisted / 2, nlisted - nlisted / 2);
    scoped_builder *builder =
        builder_of(&options, &(struct perhaps_build_options){ .threads = 2 });
    expect_success(perhaps_builder_add_many(builder, &listed));
    expect_success(perhaps_builder_add_others(builder, &others));
    expect_success(perhaps_builder_add_others(builder, &both));
    expect_error(perhaps_builder_add_many(builder, &listed), PERHAPS_ERR_ARGUMENT);
    expect_error(perhaps_builder_add_values(builder, &listed, NULL), PERHAPS_ERR_UNSUPPORTED);
    expect_success(perhaps_builder_save(builder, path.text));
    for (unsigned way = 0; way < 2; way++) {
        scoped_filter *f = open_file(path.text, ways_to_open[way]);
        expect_all_found(f, &listed);
        expect(perhaps_contains_many(f, &others, NULL) == 0);
        expect(stats_of(f).keys == nlisted && stats_of(f).parts == 2);
        for (size_t i = 0; i < nlisted + nothers; i += 1 + (nlisted + nothers) / 100)
            expect(perhaps_contains(f, key_at(&all, i), all.key_nbytes) == (i < nlisted));
        double ratio = (double)nothers / (double)nlisted;
        if (nlisted > 10000 && expected == nothers && ratio > 1.4)
            expect(stats_of(f).bits_per_key <= log2(ratio) + 2.3);
    }
}

TEST(test_against)
{
    try_against(1, 1000, 1000);
    try_against(1000, 100000, 100000);
    try_against(many(80000), many(9000000), many(9000000));
    try_against(20000, 20000, 20000);
    try_against(5000, 50000, 0);
    try_against(5000, 100, 1000000);
}

/* Two keys on different sides with the same hash would be an error: it has 128 bits. */
TEST(test_hash_against)
{
    struct perhaps_options options = against(0.5);
    options.hashing.seed = 0;
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, 100);
    scoped_filter *f = built_filter(&options, &keys);
    expect(perhaps_hash_of(f) == PERHAPS_HASH_XXH3);
}

/* ---- Groups ---------------------------------------------------------------------------- */

enum { GROUP_NBYTES = 4, GROUPED_NBYTES = 12 };

/* The keys of both sides, by group: the listed ones of all groups, then the others. */
struct grouped {
    struct perhaps_keys all;
    size_t nlisted;
    double bound; /* of the bits that tell which are listed */
};

static size_t write_group(uint8_t *keys, size_t at, uint32_t group, size_t first, size_t end)
{
    for (uint64_t i = first; i < end; i++, at++) {
        memcpy(keys + at * GROUPED_NBYTES, &group, sizeof group);
        memcpy(keys + at * GROUPED_NBYTES + GROUP_NBYTES, &i, sizeof i);
    }
    return at;
}

/* Returns log2 of how many sets of k out of n there are. */
static double log2_choose(double n, double k)
{
    return (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)) / log(2);
}

/* Makes keys of groups with these sizes, of which so many are listed. */
static struct grouped make_groups(const size_t *size, const size_t *listed, size_t ngroups)
{
    struct grouped made = { .bound = 0 };
    size_t n = 0, at = 0;
    for (size_t g = 0; g < ngroups; g++) {
        n += size[g];
        made.nlisted += listed[g];
        made.bound += log2_choose((double)size[g], (double)listed[g]);
    }
    uint8_t *keys = malloc(n * GROUPED_NBYTES + 1);
    expect(keys != NULL);
    for (size_t g = 0; g < ngroups; g++)
        at = write_group(keys, at, (uint32_t)g, 0, listed[g]);
    for (size_t g = 0; g < ngroups; g++)
        at = write_group(keys, at, (uint32_t)g, listed[g], size[g]);
    made.all = perhaps_keys_packed(keys, GROUPED_NBYTES, n);
    return made;
}

/* Builds the filter; gives some listed keys again, as others. */
static perhaps_filter *build_groups(const struct grouped *made, struct perhaps_options options,
                                    const struct perhaps_build_options *how)
{
    const size_t n = made->nlisted;
    const struct perhaps_keys listed = some_keys(&made->all, 0, n),
                              others = some_keys(&made->all, n, made->all.count - n),
                              both = some_keys(&made->all, n / 2, n / 100);
    perhaps_filter *f;
    scoped_builder *builder = builder_of(&options, how);
    expect_success(perhaps_builder_add_many(builder, &listed));
    expect_success(perhaps_builder_add_others(builder, &others));
    expect_success(perhaps_builder_add_others(builder, &both));
    expect_error(perhaps_builder_add_many(builder, &listed), PERHAPS_ERR_ARGUMENT);
    expect_success(perhaps_builder_finish(builder, &f));
    return f;
}

/* No error on either list, whether asked together or one by one. */
static void expect_exact(const perhaps_filter *f, const struct grouped *made)
{
    const size_t n = made->nlisted, count = made->all.count;
    const struct perhaps_keys listed = some_keys(&made->all, 0, n),
                              others = some_keys(&made->all, n, count - n);
    expect_all_found(f, &listed);
    expect(perhaps_contains_many(f, &others, NULL) == 0);
    expect(stats_of(f).keys == n);
    for (size_t i = 0; i < count; i += 1 + count / 100)
        expect(perhaps_contains(f, key_at(&made->all, i), made->all.key_nbytes) == (i < n));
}

/* Draws how many keys of a group are listed: none, all, few or nearly all. */
static size_t draw_listed(struct rng *rng, size_t size)
{
    const size_t few = rng_below(rng, 1 + size / (1 + rng_below(rng, 200)));
    switch (rng_below(rng, 5)) {
    case 0:
        return 0;
    case 1:
        return size;
    case 2:
        return size - few;
    default:
        return few;
    }
}

TEST(test_groups)
{
    const double fprs[] = { 0.999, 0.6, 0.5, 0.03, 1e-5 };
    struct rng rng = rng_for(__func__);
    size_t size[300], listed[300];
    for (unsigned turn = 0; turn < many(60); turn++) {
        const double fpr = fprs[turn % 5];
        const size_t ngroups = rng_below(&rng, turn % 3 ? 300 : 10);
        const size_t most = 40000 / (ngroups + 1);
        const struct perhaps_build_options how = { .memory_nbytes = (uint64_t)1 << 20,
                                                   .threads = 1 + turn % 2 };
        struct perhaps_options options = against(fpr);
        struct path path = temp_path("groups");
        scene("turn %u: %zu groups at %g", turn, ngroups, fpr);
        options.against.group_nbytes = GROUP_NBYTES;
        for (size_t g = 0; g < ngroups; g++) {
            size[g] = rng_below(&rng, 1 + most);
            listed[g] = draw_listed(&rng, size[g]);
        }
        struct grouped made = make_groups(size, listed, ngroups);
        scoped_keys strangers = make_keys(RANDOM_KEYS, 9, 0, 2000);
        scoped_filter *f = build_groups(&made, options, &how);
        expect_exact(f, &made);
        double found = (double)perhaps_contains_many(f, &strangers, NULL), n = 2000;
        expect(fpr > 0.5 || found <= n * fpr + DEVIATIONS * sqrt(n * fpr) + DEVIATIONS);
        expect_success(perhaps_save(f, path.text));
        for (unsigned way = 0; way < 2; way++) {
            scoped_filter *opened = open_file(path.text, ways_to_open[way]);
            expect(perhaps_equal(f, opened));
            expect_exact(opened, &made);
        }
        scoped_filter *checked =
            open_file(path.text, &(struct perhaps_open_options){ .check = true });
        expect_exact(checked, &made);
        expect_success(perhaps_clear(f));
        expect(perhaps_contains_many(f, &made.all, NULL) == 0);
        free((void *)made.all.packed);
    }
}

/* Revoked certificates, by issuer, a hundredth of what there are: some issuers revoked hardly
 * any, some small ones nearly all.  That takes at most 0.9 bits a key more than must be. */
TEST(test_groups_of_certificates)
{
    enum { ISSUERS = 80 };
    struct perhaps_options options = against(0.999);
    size_t size[ISSUERS], listed[ISSUERS];
    for (unsigned g = 0; g < ISSUERS; g++) {
        const double all = 5.5e6 / pow(g + 3, 1.3);
        const double rate = 0.003 * pow(10, sin(7 * g)); /* from .03 % to 3 % */
        const bool nearly_all = g >= 20 && g % 4 == 0, none = g % 7 == 3;
        size[g] = (size_t)(nearly_all ? all / 30 : all);
        listed[g] = none ? 0 : nearly_all ? size[g] - g / 4 : (size_t)((double)size[g] * rate);
    }
    struct grouped made = make_groups(size, listed, ISSUERS);
    const double n = (double)made.nlisted, m = (double)made.all.count;
    options.against.others = (uint64_t)(m - n);
    scoped_filter *whole = build_groups(&made, options, NULL);
    options.against.group_nbytes = GROUP_NBYTES;
    scoped_filter *grouped = build_groups(&made, options, NULL);
    expect_exact(grouped, &made);
    const double bits = stats_of(grouped).bits_per_key, without = stats_of(whole).bits_per_key;
    printf("%.0f of %.0f: %.2f bits a key by group, %.2f without; at least %.2f and %.2f\n", n,
           m, bits, without, made.bound / n, log2_choose(m, n) / n);
    expect(bits < made.bound / n + 0.9 && bits <= 7.0 && bits < 0.8 * without);
    free((void *)made.all.packed);
}

/* Where groups tell nothing they cost nothing: each key is one, or all are of a few. */
TEST(test_useless_groups)
{
    enum { LISTED = 20000, OTHERS = 200000 };
    scoped_keys all = make_keys(SEQUENTIAL_KEYS, GROUPED_NBYTES, 0, LISTED + OTHERS);
    struct grouped made = { .all = all, .nlisted = LISTED };
    struct perhaps_options options = against(0.5);
    options.against.others = OTHERS;
    scoped_filter *whole = build_groups(&made, options, NULL);
    for (unsigned nbytes = 1; nbytes <= 255; nbytes += nbytes < 8 ? 1 : 120) {
        options.against.group_nbytes = nbytes;
        scoped_filter *f = build_groups(&made, options, NULL);
        expect_exact(f, &made);
        expect(stats_of(f).bits_per_key < 1.03 * stats_of(whole).bits_per_key);
    }
}

/* Keys have no groups under another hash. */
TEST(test_wrong_groups)
{
    struct perhaps_options options = against(0.5);
    perhaps_builder *builder;
    options.against.group_nbytes = 256;
    expect_error(perhaps_builder_create(&options, NULL, &builder), PERHAPS_ERR_ARGUMENT);
    options.against.group_nbytes = 1;
    options.hashing.hash = PERHAPS_HASH_SIP;
    expect_error(perhaps_builder_create(&options, NULL, &builder), PERHAPS_ERR_ARGUMENT);
    options.against.group_nbytes = 0;
    options.hashing.hash = PERHAPS_HASH_GROUPED;
    expect_error(perhaps_builder_create(&options, NULL, &builder), PERHAPS_ERR_ARGUMENT);
    options.kind = "ribbon";
    expect_error(perhaps_builder_create(&options, NULL, &builder), PERHAPS_ERR_ARGUMENT);
}

/* ---- Memory that fails ----------------------------------------------------------------- */

/* Fails one allocation after the other. */
TEST(test_failing_memory)
{
    struct ledger ledger = { 0 };
    struct perhaps_options options = against(0.9);
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 20, .threads = 1 };
    const size_t size[] = { 3000, 30000, 8000, 500 }, listed[] = { 100, 500, 7000, 500 };
    struct grouped made = make_groups(size, listed, 4);
    const struct perhaps_keys in = some_keys(&made.all, 0, made.nlisted),
                              others = some_keys(&made.all, made.nlisted,
                                                 made.all.count - made.nlisted);
    options.against.group_nbytes = GROUP_NBYTES;
    perhaps_filter *f = build_in_want(options, &how, &ledger, &in, &others);
    expect_exact(f, &made);
    perhaps_free(f);
    expect(!ledger.live && !ledger.live_nbytes);
    free((void *)made.all.packed);
}
