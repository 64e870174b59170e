/* fuse_test.c - proves what only src/kinds/fuse*.c promise: that a filter of any number of keys
 * is built, also of keys that were chosen to prevent it; that slots of each width keep the
 * rate; that several shards, several threads and little memory change nothing but the time;
 * that failing memory leaves nothing behind; and that geometries from files are refused or
 * safe. */
#include "pile/pile.h"
#include "support.h"
#include <perhaps_build.h>
#include <perhaps_sets.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "filter/filter.h"
#include "kinds/built/fuse.h"
#include "kinds/kinds.h"

/* Rates at which a slot has each of its widths, with few keys. */
static const double rates[] = { 0x1p-8, 0x1p-12, 0x1p-16, 0x1.0001p-32 };
enum { WIDTHS = sizeof rates / sizeof *rates };
static const unsigned widths[WIDTHS] = { 8, 12, 16, 32 };

static struct perhaps_options fuse_options(uint64_t keys, double fpr)
{
    return options_for(&kind_fuse.about, keys, fpr * 1.0001, test_seed());
}

/* Builds a filter of n keys, in 'threads' threads and with so much memory. */
static perhaps_filter *build_how(const struct perhaps_options *options,
                                 const struct perhaps_keys *keys, unsigned threads,
                                 uint64_t memory_nbytes)
{
    const struct perhaps_build_options how = { .threads = threads,
                                               .memory_nbytes = memory_nbytes };
    perhaps_builder *builder;
    perhaps_filter *f;
    expect_success(perhaps_builder_create(options, &how, &builder));
    expect_success(perhaps_builder_add_many(builder, keys));
    expect_success(perhaps_builder_finish(builder, &f));
    perhaps_builder_free(builder);
    return f;
}

/* Builds a filter of the first n keys, and looks for them. */
static void check_size(const struct perhaps_keys *all, size_t n)
{
    struct perhaps_options options = fuse_options(n ? n : 1, rates[n % WIDTHS]);
    struct perhaps_keys keys = some_keys(all, 0, n);
    scene("%zu keys", n);
    scoped_filter *f = built_filter(&options, &keys);
    expect(f->geometry.field[SLOT_BITS] == widths[n % WIDTHS]);
    expect(stats_of(f).keys == n);
    expect_all_found(f, &keys);
}

/* Each number of keys up to 3000; then some, up to 100,000 ('./dev stress static' tries each of
 * them). */
TEST(test_each_size)
{
    enum { FEW = 3000, MOST = 100000 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, MOST);
    const size_t step = many(10) < 10 ? 15013 : 1009;
    for (size_t n = 0; n <= FEW; n += many(10) < 10 ? 7 : 1)
        check_size(&keys, n);
    for (size_t n = FEW; n <= MOST; n += step)
        check_size(&keys, n);
}

/* Keys that are not there are found as often as slots of this width promise. */
TEST(test_rate)
{
    enum { KEYS = 50000, BATCH = 1000 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, KEYS);
    for (unsigned w = 0; w < WIDTHS; w++) {
        struct perhaps_options options = fuse_options(KEYS, rates[w]);
        scoped_filter *f = built_filter(&options, &keys);
        const double asked = many(4000000), mean = asked * exp2(-(double)widths[w]);
        bool answer[BATCH];
        double found = 0;
        scene("%u bits", widths[w]);
        expect(f->geometry.field[SLOT_BITS] == widths[w]);
        for (size_t at = 0; at < (size_t)asked; at += BATCH) {
            scoped_keys others = make_keys(RANDOM_KEYS, test_seed(), KEYS + at, BATCH);
            found += (double)perhaps_contains_many(f, &others, answer);
        }
        expect(fabs(found - mean) <= DEVIATIONS * sqrt(mean) + DEVIATIONS);
    }
}

/* Sets a geometry of several shards, each for its share of the keys. */
static void divide(struct geometry *g, unsigned shard_bits)
{
    struct geometry shard = { .capacity = (g->capacity >> shard_bits) * 5 / 4 + 100,
                              .fpr = g->fpr };
    char why[WHY_NBYTES];
    struct perhaps_options options = { .fpr = g->fpr };
    expect_success(kind_fuse.plan(&shard, &options, why));
    memcpy(g->field, shard.field, sizeof g->field);
    g->field[SHARD_BITS] = shard_bits;
    expect_success(geometry_check(&kind_fuse, g));
}

/* A body that is written to memory. */
struct written {
    perhaps_filter *f;
    uint64_t nbytes;
};

static int write_body(void *context, const uint8_t *bytes, uint64_t nbytes)
{
    struct written *written = context;
    memcpy(written->f->body.bytes + written->nbytes, bytes, nbytes);
    written->nbytes += nbytes;
    return 0;
}

static int no_progress(void *context, uint64_t nkeys)
{
    (void)context;
    (void)nkeys;
    return 0;
}

/* Builds a filter of several shards, which usually only large ones have. */
static perhaps_filter *divided(const struct perhaps_keys *keys, double fpr, unsigned shard_bits,
                               unsigned threads, uint64_t memory_nbytes)
{
    struct geometry g = { .capacity = keys->count, .fpr = fpr };
    struct perhaps_hashing hashing = { .hash = PERHAPS_HASH_XXH3_64, .seed = test_seed() };
    struct perhaps_allocator allocator = allocator_or_system(NULL);
    struct hasher hasher;
    struct pile pile;
    struct written written = { 0 };
    divide(&g, shard_bits);
    expect_success(hasher_create(&hasher, &hashing));
    expect_success(filter_make(&kind_fuse, &g, &hasher, &allocator, true, false, &written.f));
    pile_begin(&pile, &(struct pile_options){ .words = 1,
                                              .memory_nbytes = memory_nbytes,
                                              .threads = threads,
                                              .allocator = allocator });
    for (size_t i = 0; i < keys->count; i++) {
        struct keyhash hash;
        expect(hasher_one(&hasher, key_at(keys, i), keys->key_nbytes, &hash));
        expect_success(pile_add(&pile, &hash.place, 1));
    }
    expect_success(pile_settle(&pile));
    struct building building = { .g = &written.f->geometry,
                                 .pile = &pile,
                                 .mark_factor = keyhash_from_64(1).mark,
                                 .cpu = written.f->cpu,
                                 .threads = threads,
                                 .write = write_body,
                                 .progress = no_progress,
                                 .context = &written };
    expect_success(kind_fuse.builds->build(&building));
    expect(written.nbytes == g.body_nbytes && building.keys == keys->count);
    written.f->counters->keys = building.keys;
    filter_bind(written.f);
    pile_end(&pile);
    return written.f;
}

/* Shards that are solved by several threads, from memory or from a file, are the same. */
TEST(test_shards)
{
    enum { KEYS = 200000 };
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, test_seed(), 0, many(KEYS));
    for (unsigned bits = 0; bits <= 6; bits += 3)
        for (unsigned w = 0; w < WIDTHS; w++) {
            scene("%u shards of %u bits", 1U << bits, widths[w]);
            double fpr = rates[w] * 1.0001;
            scoped_filter *one = divided(&keys, fpr, bits, 1, UINT64_C(1) << 30);
            scoped_filter *four = divided(&keys, fpr, bits, 4, UINT64_C(1) << 30);
            scoped_filter *small = divided(&keys, fpr, bits, 2, UINT64_C(1) << 20);
            expect_all_found(one, &keys);
            expect(perhaps_equal(one, four) && perhaps_equal(one, small));
        }
}

/* The same keys in another order, again and again, in other threads and with little memory,
 * make the same filter. */
TEST(test_same_filter)
{
    enum { KEYS = 300000 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, many(KEYS));
    struct perhaps_options options = fuse_options(keys.count, 0.001);
    scoped_filter *f = built_filter(&options, &keys);
    scoped_filter *small = build_how(&options, &keys, 2, UINT64_C(1) << 20);
    perhaps_builder *builder;
    perhaps_filter *other;
    expect_success(perhaps_builder_create(&options, NULL, &builder));
    for (size_t at = keys.count; at > 0;) {
        size_t n = at < 1000 ? at : 1000;
        struct perhaps_keys some = some_keys(&keys, at -= n, n);
        expect_success(perhaps_builder_add_many(builder, &some));
        expect_success(perhaps_builder_add_many(builder, &some));
    }
    expect_success(perhaps_builder_finish(builder, &other));
    perhaps_builder_free(builder);
    expect_all_found(f, &keys);
    expect(perhaps_equal(f, small));
    expect(perhaps_equal(f, other));
    perhaps_free(other);
}

/* Loops of this CPU, for one key and for many, answer as the words of doc/FORMAT.md say. */
TEST(test_loops)
{
    enum { KEYS = 5000, ASKED = 20000 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, ASKED);
    struct perhaps_keys first = some_keys(&keys, 0, KEYS);
    for (unsigned w = 0; w < WIDTHS; w++) {
        struct geometry g = { .capacity = KEYS, .fpr = rates[w] * 1.0001 };
        scoped_filter *f = divided(&first, g.fpr, 2, 1, UINT64_C(1) << 30);
        const uint64_t *field = f->geometry.field, bits = field[SLOT_BITS];
        const uint64_t segment = UINT64_C(1) << field[SEGMENT_BITS];
        const uint64_t slots = (field[SEGMENTS] + 2) * segment;
        bool answer[ASKED];
        scene("%u bits", widths[w]);
        perhaps_contains_many(f, &keys, answer);
        for (size_t i = 0; i < ASKED; i++) {
            struct keyhash hash;
            expect(hasher_one(&f->hasher, key_at(&keys, i), keys.key_nbytes, &hash));
            uint64_t shard = hash.place >> 62;
            unsigned salt = f->body.bytes[4 * slots * bits / 8 + shard];
            uint64_t x = salt ? hash.place >> salt | hash.place << (64 - salt) : hash.place;
            unsigned __int128 product = (unsigned __int128)x * ODD_GOLDEN;
            uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
            uint64_t at = scale64(low, field[SEGMENTS] * segment);
            uint64_t begin = at / segment * segment, within = at % segment;
            uint64_t slot[3] = { at, begin + segment + (within ^ high % segment),
                                 begin + 2 * segment + (within ^ (high >> 18) % segment) };
            uint64_t sum = low;
            for (int k = 0; k < 3; k++) {
                uint64_t bit = (shard * slots + slot[k]) * bits, word = 0;
                for (uint64_t j = 0; j < bits; j++)
                    word |= (uint64_t)(f->body.bytes[(bit + j) / 8] >> (bit + j) % 8 & 1) << j;
                sum ^= word;
            }
            bool wanted = !(sum & ((UINT64_C(1) << bits) - 1));
            expect(answer[i] == wanted && (wanted || i >= KEYS));
            expect(perhaps_contains(f, key_at(&keys, i), keys.key_nbytes) == wanted);
        }
    }
}

/* Builds a filter of n keys of 16 bytes that are their own hashes. */
static void check_crafted(const char *what, size_t n, uint64_t *hashes)
{
    struct perhaps_options options = fuse_options(n, 0.001);
    const struct perhaps_keys keys = perhaps_keys_packed(hashes, 16, n);
    options.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_NONE };
    scene("%s", what);
    scoped_filter *f = built_filter(&options, &keys);
    expect_all_found(f, &keys);
}

/* Keys that somebody chose so that they meet. */
TEST(test_crafted)
{
    enum { KEYS = 50000 };
    static uint64_t hashes[2 * KEYS];
    struct rng rng = rng_for(__func__);
    for (size_t i = 0; i < KEYS; i++) {
        hashes[2 * i] = 42;
        hashes[2 * i + 1] = rng_next(&rng);
    }
    check_crafted("one place", KEYS, hashes);
    for (size_t i = 0; i < KEYS; i++)
        hashes[2 * i] = rng_next(&rng) >> 12;
    check_crafted("the same highest bits", KEYS, hashes);
    for (size_t i = 0; i < KEYS; i++)
        hashes[2 * i] = i;
    check_crafted("one after the other", KEYS, hashes);
    for (size_t i = 0; i < KEYS; i++)
        hashes[2 * i] = (uint64_t)i << 48;
    check_crafted("few highest bits", KEYS, hashes);
    for (size_t i = 0; i < KEYS; i++)
        hashes[2 * i] = rng_next(&rng) & UINT64_C(0xffff);
    check_crafted("few places", KEYS, hashes);
}

/* Fails the first allocation, then the second, and so on until the filter is built. */
TEST(test_failing_memory)
{
    struct ledger ledger = { 0 };
    const struct perhaps_allocator allocator = ledger_allocator(&ledger);
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 1000);
    struct perhaps_options options = fuse_options(keys.count, 0.001);
    int error = PERHAPS_ERR_MEMORY;
    options.allocator = &allocator;
    for (uint64_t number = 1; error; number++) {
        perhaps_builder *builder;
        perhaps_filter *f = NULL;
        scene("allocation %d fails", (int)number);
        ledger.fail_at = ledger.calls + number;
        error = perhaps_builder_create(&options, NULL, &builder);
        if (!error)
            error = perhaps_builder_add_many(builder, &keys);
        if (!error)
            error = perhaps_builder_finish(builder, &f);
        ledger.fail_at = 0;
        expect(!error || (error == PERHAPS_ERR_MEMORY && !f));
        perhaps_builder_free(builder);
        if (!error)
            expect_all_found(f, &keys);
        perhaps_free(f);
        expect(ledger.live == 0 && ledger.live_nbytes == 0);
    }
}

/* A large set whose keys are all in one shard gets fewer shards, and more slots if it must. */
TEST(test_enlarge)
{
    struct geometry g = { .capacity = UINT64_C(1) << 30, .fpr = 0.01 };
    const struct perhaps_options options = { .fpr = 0.01 };
    char why[WHY_NBYTES];
    expect_success(geometry_plan(&kind_fuse, &options, &g, why));
    expect(g.field[SHARD_BITS] > 0);
    for (uint64_t bits = g.field[SHARD_BITS]; bits-- > 0;) {
        expect_success(kind_fuse.builds->enlarge(&g));
        expect(g.field[SHARD_BITS] == bits);
    }
    uint64_t before = g.body_nbytes;
    expect_success(kind_fuse.builds->enlarge(&g));
    expect(g.body_nbytes > before + before / 3);
}

/* Large sets take at most 8.94 bits a key, 8.9 in the mean, at slots of 8 bits. */
TEST(test_bits)
{
    const struct perhaps_options options = { .fpr = 0.004 };
    char why[WHY_NBYTES];
    for (uint64_t keys = 8000000; keys >> 40 == 0; keys += keys / 57) {
        struct geometry g = { .capacity = keys, .fpr = 0.004 };
        scene("%llu keys", (unsigned long long)keys);
        expect_success(geometry_plan(&kind_fuse, &options, &g, why));
        expect((double)g.body_nbytes * 8 <= 8.94 * (double)keys);
    }
}

/* Rates that no width reaches, values, and geometries that no plan makes are refused. */
TEST(test_limits)
{
    struct perhaps_options options = fuse_options(1000, 0x1p-33);
    struct perhaps_plan plan;
    expect_error(perhaps_plan_for(&options, &plan), PERHAPS_ERR_LIMIT);
    options = fuse_options(1000, 0.01);
    options.ribbon.value_bits = 4;
    expect_error(perhaps_plan_for(&options, &plan), PERHAPS_ERR_UNSUPPORTED);
    static const uint64_t wrong[][4] = {
        { 9, 0, 8, 10 }, { 0, 0, 8, 10 }, { 8, 13, 8, 10 },        { 8, 0, 2, 10 },
        { 8, 0, 19, 1 }, { 8, 0, 8, 0 },  { 8, 0, 8, UINT64_MAX }, { 8, 0, 18, 1 << 14 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct geometry g = { .capacity = 1000, .fpr = 0.01 };
        memcpy(g.field, wrong[i], sizeof wrong[i]);
        expect_error(kind_fuse.set_geometry(&g), PERHAPS_ERR_LIMIT);
    }
}
