/* sets_test.c - proves that a filter which was made without removal and without counts is a
 * set, of every kind: to add a key that is there changes nothing, however it is added and
 * whatever the filter has been through; its removal and its count are refused by name; and it
 * is never taken for a filter that stores copies. */
#include "support.h"

#include <string.h>
#include <unistd.h>

#include "filter/filter.h"
#include "hostile.h"
#include "kinds/kinds.h"
#include "perhaps_build.h"
#include "perhaps_live.h"

enum { CAPACITY = 500, KEYS = 400, TIMES = 1000, KEY_NBYTES = 8, THREADS = 4 };

/* All that a set must keep. */
struct before {
    perhaps_filter *copy;
    struct perhaps_stats stats;
};

static struct before note(const perhaps_filter *f)
{
    return (struct before){ clone_of(f), stats_of(f) };
}

static void expect_unchanged(const perhaps_filter *f, struct before *before)
{
    struct perhaps_stats now = stats_of(f);
    expect(perhaps_equal(f, before->copy));
    expect_same_counters(f, before->copy);
    expect(now.keys == before->stats.keys && now.parts == before->stats.parts);
    expect(now.memory_nbytes == before->stats.memory_nbytes);
    perhaps_free(before->copy);
}

static bool is_set(const perhaps_filter *f)
{
    return !(perhaps_abilities_of(f) & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT));
}

/* Adds keys that are there, in each way. */
static void add_again(perhaps_filter *f, const struct perhaps_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        const struct perhaps_key key = perhaps_keys_at(keys, i);
        struct perhaps_prepared prepared;
        bool was = false, was_too = false;
        perhaps_prepare(f, key.bytes, key.nbytes, &prepared);
        expect_success(perhaps_add(f, key.bytes, key.nbytes));
        expect_success(perhaps_add_prepared(f, &prepared));
        expect_success(perhaps_add_unless_present(f, key.bytes, key.nbytes, &was));
        expect_success(perhaps_add_unless_present_prepared(f, &prepared, &was_too));
        expect(was && was_too);
    }
    size_t done;
    expect_success(perhaps_add_many(f, keys, &done));
    expect(done == keys->count);
    expect_success(perhaps_add_unless_present_many(f, keys, NULL, NULL));
}

/* Checks that the filter, which has these keys, is a set. */
static void check_set(perhaps_filter *f, const struct perhaps_keys *keys)
{
    const struct perhaps_key key = perhaps_keys_at(keys, 0);
    struct before before = note(f);
    uint64_t count = 1;
    size_t removed, done;
    expect(is_set(f));
    expect_all_found(f, keys);
    add_again(f, keys);
    for (unsigned i = 0; i < TIMES; i++)
        expect_success(perhaps_add(f, key.bytes, key.nbytes));
    expect_error(perhaps_remove(f, key.bytes, key.nbytes), PERHAPS_ERR_SET);
    expect_error(perhaps_remove_many(f, keys, NULL, &removed, &done), PERHAPS_ERR_SET);
    expect(!removed && !done);
    expect_error(perhaps_count(f, key.bytes, key.nbytes, &count), PERHAPS_ERR_SET);
    expect(count == 0);
    expect_unchanged(f, &before);
}

/* ---- Every kind and base ----------------------------------------------------------------- */

/* Calls check() with options for a set of each kind that could store copies, and of each base;
 * chains begin small, so that they grow. */
static void each_set(bool shared, void check(const struct perhaps_options *options))
{
    unsigned count = 0;
    EACH_KIND(kind, any_kind) {
        struct perhaps_options options = options_for(kind, CAPACITY, 1e-6, test_seed());
        if (is_built(kind) || forgets(kind) || (shared && !takes_threads(kind)))
            continue;
        options.shared = shared;
        if (grows(kind))
            options.capacity = CAPACITY / 10;
        for (size_t i = 0; base_to_test(kind, i, &options.base); i++) {
            if (!ask_for_copies(&options, false) ||
                (shared && !takes_threads_over(kind, options.base)))
                continue;
            scene("%s%s of %s", shared ? "shared " : "", kind->name,
                  options.base ? options.base : "nothing");
            check(&options);
            count++;
        }
    }
    expect(count >= 5);
}

static struct perhaps_keys some_keys_made(void)
{
    return make_keys(RANDOM_KEYS, test_seed() + 1, 0, KEYS);
}

/* A key 1,000 times, before there is any other, and then with others. */
static void check_added(const struct perhaps_options *options)
{
    scoped_keys keys = some_keys_made();
    const struct perhaps_keys one = some_keys(&keys, 0, 1);
    scoped_filter *f = make_with(options), *once = clone_of(f);
    uint8_t same[TIMES][KEY_NBYTES];
    for (unsigned i = 0; i < TIMES; i++)
        memcpy(same[i], key_at(&keys, 0), KEY_NBYTES);
    const struct perhaps_keys many_times = perhaps_keys_packed(same, KEY_NBYTES, TIMES);
    expect_success(perhaps_add_many(f, &many_times, NULL));
    expect(stats_of(f).keys == 1);
    check_set(f, &one);
    expect_success(perhaps_add_many(f, &keys, NULL));
    expect_success(perhaps_add_many(once, &keys, NULL));
    expect(perhaps_equal(f, once));
    check_set(f, &keys);
    expect_success(perhaps_clear(f));
    expect_success(perhaps_add_many(f, &many_times, NULL));
    check_set(f, &one);
}

TEST(test_added)
{
    each_set(false, check_added);
    each_set(true, check_added);
}

struct adder {
    perhaps_filter *f;
    const struct perhaps_keys *keys;
    unsigned number;
};

static void *run_adder(void *context)
{
    const struct adder *a = context;
    for (unsigned round = 0; round < 5; round++)
        for (size_t i = 0; i < a->keys->count; i++) {
            struct perhaps_keys one = some_keys(a->keys, i, 1);
            const struct perhaps_key key = perhaps_keys_at(&one, 0);
            expect_success(a->number % 2 ? perhaps_add_many(a->f, &one, NULL)
                                         : perhaps_add(a->f, key.bytes, key.nbytes));
        }
    return NULL;
}

/* Several threads add what is there. */
static void check_threads(const struct perhaps_options *options)
{
    scoped_keys keys = some_keys_made();
    scoped_filter *f = make_with(options);
    struct adder adders[THREADS];
    expect_success(perhaps_add_many(f, &keys, NULL));
    struct before before = note(f);
    for (unsigned i = 0; i < THREADS; i++)
        adders[i] = (struct adder){ f, &keys, i };
    run_threads(THREADS, run_adder, adders, sizeof *adders);
    expect_unchanged(f, &before);
}

TEST(test_threads)
{
    each_set(true, check_threads);
}

/* ---- What a set goes through ------------------------------------------------------------- */

static void check_files(const perhaps_filter *f, const struct perhaps_keys *keys)
{
    struct path path = temp_path("set");
    scoped_bytes bytes = saved_bytes(f);
    perhaps_filter *viewed;
    uint64_t count;
    expect_success(perhaps_save(f, path.text));
    scoped_filter *loaded = open_file(path.text, &load_it),
                  *mapped = open_file(path.text, &map_it);
    expect(perhaps_equal(loaded, f) && perhaps_equal(mapped, f) && is_set(mapped));
    expect_error(perhaps_count(mapped, "key", 3, &count), PERHAPS_ERR_SET);
    check_set(loaded, keys);
    expect_success(perhaps_from_bytes(bytes.at, bytes.nbytes, &load_it, &viewed));
    check_set(viewed, keys);
    perhaps_free(viewed);
    unlink(path.text);
}

/* A live file: what was added twice counts once, also when its journal is done again. */
static void check_live(const perhaps_filter *f, const struct perhaps_keys *keys)
{
    const struct perhaps_open_options live = { .mode = PERHAPS_MODE_JOURNAL };
    struct path path = temp_path("live");
    expect_success(perhaps_save(f, path.text));
    for (unsigned round = 0; round < 3; round++) {
        perhaps_filter *opened = open_file(path.text, &live);
        const uint64_t before = stats_of(opened).keys;
        expect(is_set(opened));
        add_again(opened, keys);
        expect(stats_of(opened).keys == before);
        expect_error(perhaps_remove(opened, key_at(keys, 0), KEY_NBYTES), PERHAPS_ERR_SET);
        expect_success(perhaps_add(opened, &round, sizeof round));
        expect_success(perhaps_add(opened, &round, sizeof round));
        expect(stats_of(opened).keys <= before + 1);
        if (round == 1)
            expect_success(perhaps_checkpoint(opened));
        perhaps_free(opened);
    }
    unlink(journal_of(path).text);
    unlink(path.text);
}

static void check_life(const struct perhaps_options *options)
{
    scoped_keys keys = some_keys_made();
    scoped_filter *f = make_with(options), *empty, *small = NULL;
    expect_success(perhaps_add_many(f, &keys, NULL));
    scoped_filter *copy = clone_of(f);
    check_set(copy, &keys);
    expect_success(perhaps_create_like(f, NULL, NULL, &empty));
    expect_success(perhaps_add_many(empty, &keys, NULL));
    check_set(empty, &keys);
    check_files(f, &keys);
    if (replaces_open_files())
        check_live(f, &keys);
    int error = perhaps_shrink(f, 0.01, &small);
    expect(!error || error == PERHAPS_ERR_UNSUPPORTED || error == PERHAPS_ERR_LIMIT);
    if (!error)
        check_set(small, &keys);
}

TEST(test_life)
{
    each_set(false, check_life);
}

/* A builder makes sets, too. */
static void check_built(const struct perhaps_options *options)
{
    scoped_keys keys = some_keys_made();
    scoped_builder *builder = builder_of(options, NULL);
    expect_success(perhaps_builder_add_many(builder, &keys));
    expect_success(perhaps_builder_add_many(builder, &keys));
    scoped_filter *f = filter_built(builder);
    expect(stats_of(f).keys <= KEYS);
    check_set(f, &keys);
}

TEST(test_built)
{
    each_set(false, check_built);
}

/* ---- Two filters ------------------------------------------------------------------------- */

/* The union of two sets is one, in which what both had counts once. */
static void check_pairs(const struct perhaps_options *options)
{
    scoped_keys keys = some_keys_made();
    const struct perhaps_keys half = some_keys(&keys, 0, 100),
                              other = some_keys(&keys, 50, 100),
                              both = some_keys(&keys, 0, 150),
                              common = some_keys(&keys, 50, 50);
    scoped_filter *a = make_with(options), *b = make_with(options);
    fill(a, &half);
    fill(b, &other);
    int error = perhaps_intersect(a, b);
    if (!error)
        check_set(a, &common);
    perhaps_free(a);
    a = make_with(options);
    fill(a, &half);
    error = perhaps_merge(a, b);
    expect(!error || error == PERHAPS_ERR_UNSUPPORTED ||
           kind_by_name(options->kind)->composite);
    if (!error)
        check_set(a, &both);
    if (!error && !kind_by_name(options->kind)->composite)
        expect(stats_of(a).keys >= 145 && stats_of(a).keys <= 155); /* counting estimates it */
}

TEST(test_pairs)
{
    each_set(false, check_pairs);
}

/* What a set has may be another key's, of which no copy may be removed.  So it is not united
 * with a filter that stores copies, and is no equal of it. */
static void check_unlike(const struct perhaps_options *options)
{
    struct perhaps_options asked = *options;
    struct perhaps_comparison compared;
    char text[PERHAPS_DIFFERENCE_NBYTES];
    uint8_t digest[2][16];
    ask_for_copies(&asked, true);
    scoped_filter *set = make_with(options), *copies = make_with(&asked);
    scoped_filter *like;
    expect(is_set(set) && !is_set(copies) && !perhaps_equal(set, copies));
    expect(perhaps_difference(set, copies, text) && !strcmp(text, "copies none and stored"));
    expect(perhaps_difference(copies, set, text) && !strcmp(text, "copies stored and none"));
    perhaps_digest(set, digest[0]);
    perhaps_digest(copies, digest[1]);
    expect(memcmp(digest[0], digest[1], sizeof digest[0]) != 0);
    for (unsigned way = 0; way < 2; way++) {
        perhaps_filter *f = way ? set : copies, *other = way ? copies : set;
        const struct filter_kind *kind = kind_by_name(options->kind);
        expect_error(perhaps_merge(f, other),
                     kind->merge ? PERHAPS_ERR_MISMATCH : PERHAPS_ERR_UNSUPPORTED);
        expect_error(perhaps_intersect(f, other),
                     kind->intersect ? PERHAPS_ERR_MISMATCH : PERHAPS_ERR_UNSUPPORTED);
        expect_error(perhaps_compare(f, other, &compared),
                     kind->compares ? 0 : PERHAPS_ERR_UNSUPPORTED);
    }
    expect_success(perhaps_create_like(copies, NULL, NULL, &like));
    expect(!is_set(like) && perhaps_equal(like, copies));
    expect_success(perhaps_add(like, "key", 3));
    expect_success(perhaps_add(like, "key", 3));
    expect(stats_of(like).keys == 2);
}

TEST(test_unlike)
{
    each_set(false, check_unlike);
}

/* Kinds that store no copies have nothing to be told apart by. */
TEST_EACH(test_others, any_kind)
{
    struct perhaps_options options = options_for(kind, CAPACITY, 0.01, test_seed());
    if (is_built(kind) || forgets(kind) || ask_for_copies(&options, false))
        return;
    scoped_filter *f = make_with(&options);
    const bool exact = kind_by_name(kind->name)->exact;
    expect_error(perhaps_remove(f, "123", 3),
                 exact ? PERHAPS_ERR_NOT_FOUND : PERHAPS_ERR_UNSUPPORTED);
    expect(is_set(f) != exact);
}

/* A file that says it is a set of a kind that is always one is not taken. */
TEST(test_false_flag)
{
    scoped_filter *f =
        make_filter(&kind_by_name("blocked")->about, CAPACITY, 0.01, test_seed());
    scoped_bytes bytes = saved_bytes(f);
    perhaps_filter *opened;
    bytes.at[AT_FEATURES] |= 4;
    reseal_header(bytes.at, bytes.nbytes);
    expect_error(perhaps_from_bytes(bytes.at, bytes.nbytes, &load_it, &opened),
                 PERHAPS_ERR_DAMAGED);
}
