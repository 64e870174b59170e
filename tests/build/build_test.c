/* build_test.c - proves that a builder, which gets all keys before the first query, makes the
 * same filter as adding each key once; that it makes no filter after an error; and that it
 * releases all its memory. */
#include "build/builder.h"
#include "support.h"
#include <perhaps.h>

#include <string.h>

#include "filter/filter.h"
#include "kinds/kinds.h"

enum { KEYS = 1000 };

static bool remembers(const struct perhaps_kind *kind)
{
    return !forgets(kind);
}

/* Each key is given twice, and the filter equals one that got each key once. */
TEST_EACH(test_as_added, any_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct perhaps_options options = options_for(kind, KEYS, 0.001, test_seed());
    ask_for_copies(&options, false);
    scoped_builder *builder = builder_of(&options, NULL);
    scoped_filter *added = make_with(&options);
    expect_success(perhaps_add_unless_present_many(added, &keys, NULL, NULL));
    for (size_t at = 0; at < KEYS; at += 100) {
        struct perhaps_keys some = some_keys(&keys, at, 100);
        expect_success(perhaps_builder_add_many(builder, &some));
        expect_success(perhaps_builder_add_many(builder, &some));
    }
    scoped_filter *f = filter_built(builder);
    expect_all_found(f, &keys);
    /* A window moves a key that comes again to its newest generation. */
    expect(forgets(kind) || perhaps_equal(f, added));
}

static bool can_remove(const struct perhaps_kind *kind)
{
    return remembers(kind) && is_able(kind, PERHAPS_CAN_REMOVE);
}

/* If the options ask for removals, each time that a key is given stores one copy: the key can
 * be removed as often. */
TEST_EACH(test_copies, can_remove)
{
    struct perhaps_options options = options_for(kind, KEYS, 0.001, test_seed());
    const struct perhaps_keys key = perhaps_keys_packed("key", 3, 1);
    options.needs = PERHAPS_CAN_REMOVE;
    scoped_builder *builder = builder_of(&options, NULL);
    for (int i = 0; i < 3; i++)
        expect_success(perhaps_builder_add_many(builder, &key));
    scoped_filter *f = filter_built(builder);
    for (int i = 0; i < 3; i++) {
        expect(perhaps_contains(f, "key", 3));
        expect_success(perhaps_remove(f, "key", 3));
    }
    expect(!perhaps_contains(f, "key", 3));
}

TEST_EACH(test_without_keys, any_kind)
{
    struct perhaps_options options = options_for(kind, KEYS, 0.01, test_seed());
    scoped_builder *builder = builder_of(&options, NULL);
    scoped_filter *f = filter_built(builder), *empty = make_with(&options);
    expect(perhaps_equal(f, empty));
    perhaps_builder_free(builder_of(&options, NULL)); /* a builder may be freed unfinished */
    perhaps_builder_free(NULL);
}

/* ---- A number of keys that nobody knew ------------------------------------------------- */

/* Gives a builder without a capacity all keys twice, in steps from the first or from the last,
 * and returns its filter. */
static perhaps_filter *sized(const struct perhaps_options *options,
                             const struct perhaps_build_options *how,
                             const struct perhaps_keys *keys, bool backwards)
{
    enum { STEP = 100 };
    struct perhaps_options unknown = *options;
    unknown.capacity = 0;
    scoped_builder *builder = builder_of(&unknown, how);
    for (size_t at = 0; at < keys->count; at += STEP) {
        struct perhaps_keys some =
            some_keys(keys, backwards ? keys->count - STEP - at : at, STEP);
        expect_success(perhaps_builder_add_many(builder, &some));
        expect_success(perhaps_builder_add_many(builder, &some));
    }
    return filter_built(builder);
}

/* The filter has room for just the different keys, and is the same in whatever order they came,
 * whether they were put on the disk, and however many threads there were. */
TEST_EACH(test_sized, remembers)
{
    enum { MANY = 60 * KEYS };
    const bool spills = !strcmp(kind->name, "blocked");
    const size_t nkeys = spills ? MANY : KEYS;
    const struct perhaps_build_options little = { .memory_nbytes = 1 << 20, .threads = 1 },
                                       usual = { .threads = 4 };
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, nkeys);
    struct perhaps_options options = options_for(kind, nkeys, 0.001, test_seed());
    ask_for_copies(&options, false);
    if (!takes_any_key(kind)) /* which has its size from its range */
        return;
    scoped_filter *f = sized(&options, &usual, &keys, false);
    scoped_filter *g = sized(&options, &little, &keys, true);
    struct perhaps_stats stats = stats_of(f);
    expect_all_found(f, &keys);
    expect(perhaps_equal(f, g));
    expect(stats.keys <= nkeys && stats.keys >= nkeys - nkeys / 100);
    expect(stats.plan.capacity == nkeys && stats.fpr_now <= 0.001 * 1.02);
}

/* With removals every time that a key is given stores a copy.  Copies share few places, so that
 * a filter may be made a second time, with more room. */
TEST_EACH(test_sized_copies, can_remove)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct perhaps_options options = options_for(kind, KEYS, 0.001, test_seed());
    if (!takes_any_key(kind))
        return;
    options.needs = PERHAPS_CAN_REMOVE;
    scoped_filter *f = sized(&options, NULL, &keys, false);
    expect(stats_of(f).plan.capacity >= 2 * KEYS && stats_of(f).plan.capacity < 4 * KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        const struct perhaps_key key = perhaps_keys_at(&keys, i);
        expect_success(perhaps_remove(f, key.bytes, key.nbytes));
        expect(perhaps_contains(f, key.bytes, key.nbytes));
    }
}

/* Fails each allocation in turn; a caller who stops it gets no filter either. */
TEST_EACH(test_sized_failures, remembers)
{
    struct ledger ledger = { 0 };
    const struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_options options = options_for(kind, 0, 0.01, test_seed());
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 200);
    const struct perhaps_build_options how = { .threads = 1 };
    int error = PERHAPS_ERR_MEMORY;
    options.allocator = &allocator;
    for (uint64_t number = 1; error && takes_any_key(kind); number++) {
        perhaps_builder *builder;
        perhaps_filter *f = NULL;
        scene("%s, allocation %d fails", kind->name, (int)number);
        ledger.fail_at = ledger.calls + number;
        error = perhaps_builder_create(&options, &how, &builder);
        if (!error)
            error = perhaps_builder_add_many(builder, &keys);
        if (!error)
            error = perhaps_builder_finish(builder, &f);
        ledger.fail_at = 0;
        expect(error ? error == PERHAPS_ERR_MEMORY && !f : f != NULL);
        perhaps_builder_free(builder);
        if (f)
            expect_all_found(f, &keys);
        perhaps_free(f);
        expect(ledger.live == 0 && ledger.live_nbytes == 0);
    }
}

/* A builder that leaves room makes a filter that has it, of kinds that take keys later. */
TEST_EACH(test_sized_room, remembers)
{
    const struct perhaps_build_options how = { .leaves_room = true };
    struct perhaps_options options = options_for(kind, 0, 0.01, test_seed());
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 400);
    scoped_filter *f;
    scoped_builder *builder = builder_of(&options, &how);
    expect_success(perhaps_builder_add_many(builder, &keys));
    expect_success(perhaps_builder_finish(builder, &f));
    expect(stats_of(f).plan.capacity == (is_built(kind) ? 400 : 1500));
    expect_all_found(f, &keys);
}

/* Gives 85,000 keys to a builder that has 1 MiB and no file: more than fit there.  Returns what
 * comes of it; a filter has all keys, and keeps its rate. */
static int build_in_memory(const struct perhaps_options *options)
{
    enum { MANY = 85000, STEP = 1000 };
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 20,
                                               .threads = 1,
                                               .in_memory = true };
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, MANY);
    scoped_builder *builder = NULL;
    scoped_filter *f = NULL;
    int error = perhaps_builder_create(options, &how, &builder);
    for (size_t at = 0; at < MANY && !error; at += STEP) {
        const struct perhaps_keys some = some_keys(&keys, at, STEP);
        error = perhaps_builder_add_many(builder, &some);
    }
    if (!error)
        error = perhaps_builder_finish(builder, &f);
    expect(!error == (f != NULL));
    if (error)
        return error;
    struct perhaps_stats stats = stats_of(f);
    expect_all_found(f, &keys);
    expect(perhaps_builder_folded(builder) >= 1 && perhaps_builder_keys(builder) == MANY);
    expect(builder->pile.spilled_nbytes == 0 && !perhaps_builder_folder(builder));
    expect(stats.fpr_now <= options->fpr && stats.plan.capacity >= stats.keys);
    return 0;
}

/* Without a file more keys than the memory has room for go to a large filter that is folded;
 * kinds that cannot be folded refuse them. */
TEST_EACH(test_in_memory, remembers)
{
    struct perhaps_options options = options_for(kind, 0, 0.01, test_seed());
    ask_for_copies(&options, false);
    if (takes_any_key(kind))
        expect(build_in_memory(&options) ==
               (kind_by_name(kind->name)->folds ? 0 : PERHAPS_ERR_FULL));
}

/* The same where each seventh allocation fails in turn. */
TEST(test_in_memory_failures)
{
    struct ledger ledger = { 0 };
    const struct perhaps_allocator allocator = ledger_allocator(&ledger);
    const struct perhaps_options options = { .kind = "blocked",
                                             .fpr = 0.01,
                                             .allocator = &allocator };
    int error = PERHAPS_ERR_MEMORY;
    for (uint64_t number = 1; error; number += 7) {
        scene("allocation %d fails", (int)number);
        ledger.fail_at = ledger.calls + number;
        error = build_in_memory(&options);
        ledger.fail_at = 0;
        expect(!error || error == PERHAPS_ERR_MEMORY);
        expect(ledger.live == 0 && ledger.live_nbytes == 0);
    }
}

/* An allocator that any number of threads may call, and that gives just what it is asked
 * for. */
static void *exactly(void *context, size_t nbytes)
{
    (void)context;
    return malloc(nbytes);
}

static void give_back(void *context, void *memory, size_t nbytes)
{
    (void)context;
    (void)nbytes;
    free(memory);
}

/* Builds with options at their ends and between them. */
static void build_oddly(struct perhaps_options options, struct rng *rng)
{
    static const uint64_t memory[] = { 0, 1, 999, 4097, 65537, (1 << 20) + 1, UINT64_MAX };
    static const unsigned threads[] = { 0, 1, 3, 7, 100 };
    static const struct perhaps_allocator allocator = { .allocate = exactly,
                                                        .release = give_back };
    const uint64_t limit = memory[rng_below(rng, sizeof memory / sizeof *memory)];
    const struct perhaps_build_options how = {
        .memory_nbytes = limit,
        .threads = threads[rng_below(rng, sizeof threads / sizeof *threads)],
        .leaves_room = rng_below(rng, 2),
        .in_memory = rng_below(rng, 2),
    };
    const size_t nkeys = 1 + (size_t)rng_below(rng, 20000);
    const bool known = rng_below(rng, 2), own = rng_below(rng, 2);
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, nkeys);
    scene("%s, %zu keys, %s, memory %llu, threads %u, in memory %d, allocator %d", options.kind,
          nkeys, known ? "known" : "not known", (unsigned long long)limit, how.threads,
          how.in_memory, own);
    options.capacity = known ? nkeys : 0;
    options.allocator = own ? &allocator : NULL;
    scoped_filter *f = NULL;
    scoped_builder *builder = builder_of(&options, &how);
    int error = 0;
    for (size_t at = 0, n; at < nkeys && !error; at += n) {
        n = 1 + (size_t)rng_below(rng, nkeys - at < 700 ? nkeys - at : 700);
        const struct perhaps_keys some = some_keys(&keys, at, n);
        error = perhaps_builder_add_many(builder, &some);
    }
    if (!error)
        error = perhaps_builder_finish(builder, &f);
    expect(!error || (error == PERHAPS_ERR_FULL && how.in_memory));
    if (!error)
        expect_all_found(f, &keys);
}

TEST_EACH(test_odd_options, remembers)
{
    struct rng rng = rng_for(kind->name);
    if (takes_any_key(kind))
        for (unsigned round = 0; round < 20; round++)
            build_oddly(options_for(kind, 0, 0.001, test_seed()), &rng);
}

static bool stop(void *context)
{
    (void)context;
    return true;
}

TEST(test_sized_stopped)
{
    const struct perhaps_options options = { .kind = "blocked", .fpr = 0.01 };
    const struct perhaps_build_options how = { .stopped = stop };
    const struct perhaps_keys key = perhaps_keys_packed("key", 3, 1);
    perhaps_filter *f;
    scoped_builder *builder = builder_of(&options, &how);
    expect_success(perhaps_builder_add_many(builder, &key));
    expect_error(perhaps_builder_finish(builder, &f), PERHAPS_ERR_STOPPED);
    expect(!f);
}

/* Wrong options, and calls after the builder has finished: errors, and no filter. */
TEST(test_errors)
{
    struct perhaps_options options = { .fpr = 0.01 };
    const struct perhaps_keys key = perhaps_keys_packed("key", 3, 1);
    perhaps_builder *builder = (perhaps_builder *)&options;
    scoped_filter *f;
    perhaps_filter *none;
    options.kind = "window"; /* which must know its capacity */
    expect_error(perhaps_builder_create(&options, NULL, &builder), PERHAPS_ERR_ARGUMENT);
    expect(!builder);
    options.kind = "blocked";
    options.capacity = 10;
    options.needs = PERHAPS_CAN_REMOVE;
    expect_error(perhaps_builder_create(&options, NULL, &builder), PERHAPS_ERR_UNSUPPORTED);
    options.needs = 0;
    builder = builder_of(&options, NULL);
    expect_success(perhaps_builder_add_many(builder, &key));
    expect_success(perhaps_builder_finish(builder, &f));
    none = f;
    expect_error(perhaps_builder_finish(builder, &none), PERHAPS_ERR_ARGUMENT);
    expect(!none);
    expect_error(perhaps_builder_add_many(builder, &key), PERHAPS_ERR_ARGUMENT);
    perhaps_builder_free(builder);
    expect(perhaps_contains(f, "key", 3));
}

/* ---- Disk space -------------------------------------------------------------------------- */

/* Gives a builder keys with values if it takes any, and others if those are wanted. */
static void give_all(perhaps_builder *builder, const struct perhaps_keys *keys, bool values,
                     const struct perhaps_keys *others)
{
    static const uint32_t value[200000];
    expect_success(values ? perhaps_builder_add_values(builder, keys, value)
                          : perhaps_builder_add_many(builder, keys));
    if (others->count)
        expect_success(perhaps_builder_add_others(builder, others));
}

/* What is told to go to the disk goes there: exactly if one thread gives the keys and there are
 * no others; else nearly. */
static void compare_spilled(const char *kind, unsigned value_bits, size_t nothers)
{
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, 200000);
    scoped_keys others = make_keys(SEQUENTIAL_KEYS, 9, 1000000, nothers + 1);
    const struct perhaps_keys some_others = some_keys(&others, 0, nothers);
    for (size_t count = 0; count <= keys.count; count += 24571) {
        const struct perhaps_build_options how = { .memory_nbytes = (1 + count % 3) << 20,
                                                   .threads = 1 + count % 2 };
        struct perhaps_options options = { .kind = kind,
                                           .fpr = 0.01,
                                           .against.others = nothers,
                                           .ribbon.value_bits = value_bits,
                                           .hashing.seed = 1 };
        const struct perhaps_keys some = some_keys(&keys, 0, count);
        scoped_filter *f;
        scene("%s, %u bits, %zu keys, %zu others", kind, value_bits, count, nothers);
        scoped_builder *builder = builder_of(&options, &how);
        uint64_t told = perhaps_builder_disk_nbytes(builder, count);
        give_all(builder, &some, value_bits > 0, &some_others);
        expect_success(perhaps_builder_finish(builder, &f));
        uint64_t spilled = builder->pile.spilled_nbytes + builder->others.spilled_nbytes;
        uint64_t apart = told > spilled ? told - spilled : spilled - told;
        expect(apart <= (nothers ? how.memory_nbytes / 8 + spilled / 100 : 0));
        expect(count < 150000 || told > 0);
    }
}

TEST(test_disk)
{
    compare_spilled("ribbon", 0, 0);
    compare_spilled("ribbon", 8, 0);
    compare_spilled("against", 0, 100000);
}

/* A kind that takes keys as they come has no temporary file; a folder that is named is told. */
TEST(test_folder)
{
    struct perhaps_build_options how = { .folder = "/no/such" };
    struct perhaps_options options = { .kind = "ribbon", .fpr = 0.01, .capacity = KEYS };
    perhaps_builder *builder;
    expect_success(perhaps_builder_create(&options, &how, &builder));
    expect(!strcmp(perhaps_builder_folder(builder), "/no/such"));
    expect(perhaps_builder_disk_nbytes(builder, UINT64_C(1) << 48) > UINT64_C(7) << 48);
    perhaps_builder_free(builder);
    options.kind = "blocked";
    expect_success(perhaps_builder_create(&options, &how, &builder));
    expect(!perhaps_builder_folder(builder) && !perhaps_builder_disk_nbytes(builder, 1 << 30));
    perhaps_builder_free(builder);
}

/* After a key was refused the builder keeps its error and makes no filter, since the filter
 * would deny that key. */
TEST_EACH(test_too_many_keys, gets_full)
{
    struct perhaps_options options = options_for(kind, 100, 0.01, test_seed());
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct perhaps_keys one = some_keys(&keys, 0, 1);
    scoped_builder *builder = builder_of(&options, NULL);
    perhaps_filter *f = (perhaps_filter *)&options;
    int error = perhaps_builder_add_many(builder, &keys);
    expect(error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_LAYERS);
    expect_error(perhaps_builder_add_many(builder, &one), error);
    expect_error(perhaps_builder_finish(builder, &f), error);
    expect(!f);
}

/* Creates a builder, gives it the keys and finishes it.  Returns the first error; sets *f to
 * the filter or to NULL. */
static int build(const struct perhaps_options *options, const struct perhaps_keys *keys,
                 perhaps_filter **f)
{
    scoped_builder *builder;
    int error = perhaps_builder_create(options, NULL, &builder);
    *f = NULL;
    if (error) {
        expect(!builder);
        return error;
    }
    error = perhaps_builder_add_many(builder, keys);
    expect(perhaps_builder_finish(builder, f) == error);
    return error;
}

/* Fails the first allocation, then the second, and so on until the builder succeeds. */
TEST_EACH(test_failing_memory, any_kind)
{
    struct ledger ledger = { 0 };
    const struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_options options = options_for(kind, 100, 0.01, test_seed());
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, grows(kind) ? KEYS : 100);
    perhaps_filter *f;
    options.allocator = &allocator;
    for (uint64_t number = 1;; number++) {
        scene("%s, allocation %d fails", kind->name, (int)number);
        ledger.fail_at = ledger.calls + number;
        int error = build(&options, &keys, &f);
        ledger.fail_at = 0;
        if (!error)
            break;
        expect_error(error, PERHAPS_ERR_MEMORY);
        expect(!f && ledger.live == 0 && ledger.live_nbytes == 0);
    }
    expect_all_found(f, &keys);
    perhaps_free(f);
    expect(ledger.live == 0 && ledger.live_nbytes == 0);
}
