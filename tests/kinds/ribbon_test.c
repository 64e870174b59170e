/* ribbon_test.c - proves that ribbon filters, which are built once, lose no key and keep their
 * rate at every size, width and number of threads, whatever goes to the disk; and that they
 * keep values. */
#include "build/builder.h"
#include "support.h"
#include <perhaps.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "filter/filter.h"

static struct perhaps_options ribbon(double fpr)
{
    return (struct perhaps_options){ .fpr = fpr,
                                     .kind = "ribbon",
                                     .hashing = { .seed = test_seed() } };
}

/* Fails unless the rate on keys that were not added is what the filter says of itself. */
static void expect_rate(const perhaps_filter *f, uint64_t first, size_t count)
{
    scoped_keys strangers = make_keys(SEQUENTIAL_KEYS, 9, first, count);
    double fpr = stats_of(f).fpr_now, n = (double)count;
    double found = (double)perhaps_contains_many(f, &strangers, NULL);
    expect(fabs(found - n * fpr) <= DEVIATIONS * sqrt(n * fpr * (1 - fpr)) + DEVIATIONS);
}

/* ---- Sizes and widths ------------------------------------------------------------------ */

static void try_size(size_t n, double fpr)
{
    struct perhaps_options options = ribbon(fpr);
    scene("%zu keys at %g", n, fpr);
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, n);
    scoped_filter *f = built_filter(&options, &keys);
    struct perhaps_stats stats = stats_of(f);
    expect(stats.keys == n && stats.fpr_now <= fpr);
    expect_all_found(f, &keys);
    for (size_t i = 0; i < n; i += 1 + n / 50)
        expect(perhaps_contains(f, key_at(&keys, i), keys.key_nbytes));
    expect_rate(f, n, 2000);
}

TEST(test_every_small_size)
{
    for (size_t n = 0; n < many(2200); n++)
        try_size(n, 0.01);
}

TEST(test_sizes)
{
    struct rng rng = rng_for(__func__);
    for (unsigned i = 0; i < many(100); i++)
        try_size(2000 + rng_below(&rng, 98000), pow(0.5, 1 + (double)rng_below(&rng, 31)));
}

TEST(test_every_width)
{
    for (unsigned bits = 1; bits <= 32; bits++)
        try_size(many(60000), 1.01 * pow(0.5, bits));
}

/* The figures that the documentation names, at a size where they hold. */
TEST(test_bits)
{
    struct perhaps_options options = ribbon(0.004);
    struct perhaps_plan plan;
    options.needs = PERHAPS_CAN_BUILD;
    options.capacity = 100000000;
    expect_success(perhaps_plan_for(&options, &plan));
    expect(plan.bits_per_key < 8.035 && plan.fpr_predicted <= 0.004);
    options.capacity = UINT64_C(1) << 45;
    options.fpr = 1e-9;
    expect_error(perhaps_plan_for(&options, &plan), PERHAPS_ERR_LIMIT); /* n / 2^64 is more */
}

/* ---- The builder ----------------------------------------------------------------------- */

/* Gives the keys in pieces of a random size, some of them twice, from a random one on. */
static void give(perhaps_builder *builder, const struct perhaps_keys *keys, struct rng *rng)
{
    size_t turn = rng_below(rng, keys->count);
    for (size_t at = 0; at < keys->count;) {
        size_t first = (at + turn) % keys->count, n = 1 + rng_below(rng, 5000);
        n = n < keys->count - first ? n : keys->count - first;
        n = n < keys->count - at ? n : keys->count - at;
        struct perhaps_keys some = some_keys(keys, first, n);
        expect_success(perhaps_builder_add_many(builder, &some));
        if (rng_below(rng, 4) == 0)
            expect_success(perhaps_builder_add_many(builder, &some));
        at += n;
    }
}

/* Whatever the order of the keys, the number of threads and the memory, the file is the same.
 * */
TEST(test_the_same_file)
{
    struct rng rng = rng_for(__func__);
    struct perhaps_options options = ribbon(0.001);
    struct path path = temp_path("same");
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, many(1500000));
    scoped_filter *plain = built_filter(&options, &keys);
    scoped_bytes wanted = saved_bytes(plain);
    for (unsigned i = 0; i < 4; i++) {
        const struct perhaps_build_options how = { .memory_nbytes = i % 2 ? 1 << 20 : 1 << 28,
                                                   .threads = 1 + i / 2 * 2 };
        scoped_builder *builder = builder_of(&options, &how);
        scene("%u threads, %ju bytes", how.threads, (uintmax_t)how.memory_nbytes);
        give(builder, &keys, &rng);
        expect_success(perhaps_builder_save(builder, path.text));
        expect((builder->pile.spilled_nbytes > 0) == (i % 2));
        scoped_bytes file = read_file(path.text);
        expect_same_bytes(&file, &wanted);
    }
}

enum { GIVERS = 4 };

struct giver {
    perhaps_builder *builder;
    struct perhaps_keys keys;
};

static void *give_all(void *context)
{
    const struct giver *giver = context;
    for (size_t at = 0; at < giver->keys.count; at += 100) {
        struct perhaps_keys some = some_keys(&giver->keys, at, 100);
        if (perhaps_builder_add_many(giver->builder, &some))
            return context;
    }
    return NULL;
}

/* Several threads give keys at once; each makes runs of its own. */
TEST(test_several_threads_give)
{
    struct perhaps_options options = ribbon(0.001);
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 20, .threads = GIVERS };
    const size_t each = 200000;
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, GIVERS * each);
    scoped_filter *wanted = built_filter(&options, &keys);
    scoped_builder *builder = builder_of(&options, &how);
    struct giver giver[GIVERS];
    pthread_t thread[GIVERS];
    for (unsigned i = 0; i < GIVERS; i++) {
        giver[i] = (struct giver){ builder, some_keys(&keys, i * each, each) };
        expect(!pthread_create(&thread[i], NULL, give_all, &giver[i]));
    }
    for (unsigned i = 0; i < GIVERS; i++) {
        void *failed;
        expect(!pthread_join(thread[i], &failed) && !failed);
    }
    expect(perhaps_builder_keys(builder) == keys.count);
    scoped_filter *f = filter_built(builder);
    expect(perhaps_equal(f, wanted));
}

static bool stop_at_once(void *context)
{
    return ++*(unsigned *)context > 0;
}

static void note_progress(void *context, uint64_t done, uint64_t total)
{
    expect(done <= total && total > 0);
    ++*(unsigned *)context;
}

TEST(test_stopped)
{
    struct perhaps_options options = ribbon(0.001);
    unsigned asked = 0;
    struct path path = temp_path("stopped");
    const struct perhaps_build_options how = { .stopped = stop_at_once,
                                               .progress = note_progress,
                                               .context = &asked };
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, 10000);
    scoped_builder *builder = builder_of(&options, &how);
    expect_success(perhaps_builder_add_many(builder, &keys));
    expect_error(perhaps_builder_save(builder, path.text), PERHAPS_ERR_STOPPED);
    expect(asked >= 2 && access(path.text, F_OK));
}

/* A filter whose pages are checked before they are read answers as one whose are not; with a
 * damaged page no key is denied. */
TEST(test_checked)
{
    const double rates[] = { 0.3, 0.004, 1e-4, 1e-9 };
    struct path path = temp_path("checked");
    for (unsigned i = 0; i < 4; i++) {
        struct perhaps_options options = ribbon(rates[i]);
        struct perhaps_verdict verdict;
        scene("checked at %g", rates[i]);
        scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, many(300000));
        scoped_filter *f = built_filter(&options, &keys);
        scoped_bytes file = large_bytes(f);
        write_file(path.text, file.at, file.nbytes);
        scoped_filter *checked = open_file(path.text, &checking);
        expect_all_found(checked, &keys);
        expect_success(perhaps_checked(checked, &verdict));
        perhaps_free(checked);
        checked = NULL; /* Windows writes to no file that is mapped */
        file.at[file.nbytes / 2] ^= 1;
        write_file(path.text, file.at, file.nbytes);
        scoped_filter *damaged = open_file(path.text, &checking);
        expect_all_found(damaged, &keys);
        expect_error(perhaps_checked(damaged, &verdict), PERHAPS_ERR_DAMAGED);
        expect(verdict.damaged == 1);
    }
}

/* No folder, or a file system without room: an error, and no filter. */
TEST(test_no_room_for_the_rest)
{
    struct perhaps_options options = ribbon(0.001);
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 20, .folder = "/no/such" };
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, 200000);
    scoped_builder *builder = builder_of(&options, &how);
    perhaps_filter *f;
    expect_error(perhaps_builder_add_many(builder, &keys), PERHAPS_ERR_IO);
    expect(errno == ENOENT);
    expect_error(perhaps_builder_add_many(builder, &keys), PERHAPS_ERR_IO);
    expect_error(perhaps_builder_finish(builder, &f), PERHAPS_ERR_IO);
    expect(!f);
}

/* Keys that are hashes, and were chosen to meet: the last layer takes them all. */
TEST(test_crafted)
{
    enum { KEYS = 30000 };
    static struct perhaps_hashed hashes[KEYS];
    struct perhaps_options options = ribbon(0.01);
    options.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_NONE };
    for (unsigned way = 0; way < 5; way++) {
        for (uint64_t i = 0; i < KEYS; i++) {
            const uint64_t places[] = { 42, i, i << 52, mix64(i) >> 12, mix64(i) & 0xffff };
            uint64_t place = places[way], mark = way == 1 || way == 2 ? 7 : i * 2;
            memcpy(hashes[i].bytes, &place, 8);
            memcpy(hashes[i].bytes + 8, &mark, 8);
        }
        scene("crafted in way %u", way);
        struct perhaps_keys keys = perhaps_keys_hashed(hashes, KEYS);
        scoped_filter *f = built_filter(&options, &keys);
        expect_all_found(f, &keys);
    }
}

/* ---- What is refused ------------------------------------------------------------------- */

TEST(test_no_key_later)
{
    struct perhaps_options options = ribbon(0.01);
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, 1000);
    scoped_filter *f = built_filter(&options, &keys), *copy = clone_of(f);
    uint32_t value;
    size_t done;
    expect_error(perhaps_add(f, "key", 3), PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_remove(f, "key", 3), PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_merge(f, copy), PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_lookup(f, "key", 3, &value), PERHAPS_ERR_UNSUPPORTED);
    expect(perhaps_equal(f, copy));
    options.capacity = 10;
    options.needs = PERHAPS_CAN_BUILD;
    perhaps_filter *none;
    expect_error(perhaps_create(&options, &none), PERHAPS_ERR_UNSUPPORTED);
    options.needs = 0;
    expect_error(perhaps_create(&options, &none), PERHAPS_ERR_UNSUPPORTED);
}

/* ---- Values ---------------------------------------------------------------------------- */

static uint32_t value_of(size_t i, unsigned bits)
{
    return (uint32_t)(mix64(i) & ((1U << bits) - 1));
}

TEST(test_values)
{
    enum { KEYS = 5000 };
    static uint32_t value[KEYS];
    static bool present[KEYS];
    for (unsigned bits = 1; bits <= 16; bits += 5) {
        struct perhaps_options options = ribbon(0.01);
        options.ribbon.value_bits = bits;
        scene("values of %u bits", bits);
        scoped_keys keys = make_keys(TEXT_KEYS, 9, 0, KEYS),
                    others = make_keys(TEXT_KEYS, 9, KEYS, KEYS);
        scoped_builder *builder = builder_of(&options, NULL);
        for (size_t i = 0; i < KEYS; i++)
            value[i] = value_of(i, bits);
        expect_success(perhaps_builder_add_values(builder, &keys, value));
        value[0] = 1U << bits;
        expect_error(perhaps_builder_add_values(builder, &others, value), PERHAPS_ERR_ARGUMENT);
        scoped_filter *f = filter_built(builder);
        expect_success(perhaps_lookup_many(f, &keys, value, present));
        for (size_t i = 0; i < KEYS; i++) {
            uint32_t single;
            expect(present[i] && value[i] == value_of(i, bits));
            expect_success(perhaps_lookup(f, key_at(&keys, i), keys.key_nbytes, &single));
            expect(single == value[i] &&
                   perhaps_contains(f, key_at(&keys, i), keys.key_nbytes));
        }
        expect_success(perhaps_lookup_many(f, &others, value, present));
        unsigned found = 0;
        for (size_t i = 0; i < KEYS; i++)
            found += present[i];
        const double expected = (double)KEYS * 0.01;
        expect(found < expected + (double)DEVIATIONS * sqrt(expected));
    }
}

TEST(test_two_values)
{
    struct perhaps_options options = ribbon(0.01);
    const struct perhaps_keys key = perhaps_keys_packed("key", 3, 1);
    perhaps_filter *f;
    options.ribbon.value_bits = 4;
    for (uint32_t second = 5; second < 7; second++) {
        scoped_builder *builder = builder_of(&options, NULL);
        expect_success(perhaps_builder_add_values(builder, &key, &(uint32_t){ 5 }));
        expect_success(perhaps_builder_add_values(builder, &key, &second));
        expect_error(perhaps_builder_finish(builder, &f), second == 5 ? 0 : PERHAPS_ERR_VALUES);
        perhaps_free(f);
    }
}

/* ---- Memory that fails ----------------------------------------------------------------- */

/* Fails one allocation after the other of a build that spills, bumps and needs two layers. */
TEST(test_failing_memory)
{
    struct ledger ledger = { 0 };
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 20, .threads = 1 };
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, 60000);
    perhaps_filter *f = build_in_want(ribbon(0.001), &how, &ledger, &keys, NULL);
    expect_all_found(f, &keys);
    perhaps_free(f);
    expect(!ledger.live && !ledger.live_nbytes);
}
