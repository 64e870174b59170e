/* properties_test.c - proves what holds for every kind: a batched call does what the single
 * calls do, a clone equals its original and is independent of it, and a kind refuses what it
 * cannot do.  A new kind in the registry is tested here without a change. */
#include "support.h"
#include <perhaps_sets.h>
#include <perhaps_window.h>

#include <string.h>

#include "perhaps_cluster.h"

/* ---- A batch is its single form, one key after the other ------------------------------- */

enum { ADD, ADD_UNLESS_PRESENT, REMOVE, CONTAINS, OPERATIONS, BATCH_MAX = 1000 };

/* What a call returned. */
struct outcome {
    int error;
    size_t done; /* keys that were added, found or removed */
    bool answer[BATCH_MAX];
};

/* Runs the batched call; 'silently' passes NULL for the outputs that may be NULL. */
static void run_batched(unsigned operation, perhaps_filter *f, const struct perhaps_keys *keys,
                        bool silently, struct outcome *out)
{
    bool *answer = silently ? NULL : out->answer;
    size_t *done = silently ? NULL : &out->done;
    switch (operation) {
    case ADD:
        out->error = perhaps_add_many(f, keys, done);
        break;
    case ADD_UNLESS_PRESENT:
        out->error = perhaps_add_unless_present_many(f, keys, answer, done);
        break;
    case REMOVE:
        out->error = perhaps_remove_many(f, keys, answer, done, NULL);
        break;
    case CONTAINS:
        out->done = perhaps_contains_many(f, keys, answer);
        break;
    }
}

/* Runs the single calls, one key after the other, until the first error. */
static void run_singly(unsigned operation, perhaps_filter *f, const struct perhaps_keys *keys,
                       struct outcome *out)
{
    for (size_t i = 0; i < keys->count && !out->error; i++) {
        const void *key = key_at(keys, i);
        bool *answer = &out->answer[i];
        size_t nbytes = keys->key_nbytes, counts = 1;
        switch (operation) {
        case ADD:
            out->error = perhaps_add(f, key, nbytes);
            break;
        case ADD_UNLESS_PRESENT:
            out->error = perhaps_add_unless_present(f, key, nbytes, answer);
            break;
        case REMOVE:
            out->error = perhaps_remove(f, key, nbytes);
            if (out->error == PERHAPS_ERR_NOT_FOUND)
                out->error = 0;
            else
                *answer = !out->error;
            counts = *answer;
            break;
        case CONTAINS:
            counts = *answer = perhaps_contains(f, key, nbytes);
            break;
        }
        out->done += out->error ? 0 : counts;
    }
}

/* Draws keys, with repeats, from a thousand or from less than nine: so some are in the filter,
 * some are not, and some come more often than copies can be stored. */
static struct perhaps_keys draw_keys(struct rng *rng, size_t count, uint8_t packed[])
{
    uint64_t spread = rng_below(rng, 3) ? 1000 : 1 + rng_below(rng, 8);
    for (size_t i = 0; i < count; i++) {
        uint64_t key = rng_below(rng, spread);
        memcpy(packed + i * sizeof key, &key, sizeof key);
    }
    return perhaps_keys_packed(packed, 8, count);
}

static struct perhaps_keys as_each(const struct perhaps_keys *keys, struct perhaps_key each[])
{
    for (size_t i = 0; i < keys->count; i++)
        each[i] = (struct perhaps_key){ key_at(keys, i), keys->key_nbytes };
    return perhaps_keys_each(each, keys->count);
}

/* Gives the same keys to four filters: one by one, as packed keys, as keys of any length each,
 * and without outputs.  All must give the same answers and end with the same bytes. */
static void compare_batches(const struct perhaps_kind *kind, size_t count, struct rng *rng)
{
    static uint8_t packed[BATCH_MAX * 8];
    static struct perhaps_key each_key[BATCH_MAX];
    scoped_filter *singly = make_filter(kind, 700, 0.01, 1 + rng_next(rng));
    scoped_filter *batched = clone_of(singly), *silent = clone_of(singly);
    scoped_filter *by_each = clone_of(singly);
    for (unsigned round = 0; round < 24; round++) {
        unsigned operation = round < 4 ? round : (unsigned)rng_below(rng, OPERATIONS);
        scene("%s, batches of %zu, round %u, operation %u", kind->name, count, round,
              operation);
        struct perhaps_keys keys = draw_keys(rng, count, packed);
        struct perhaps_keys each = as_each(&keys, each_key);
        struct outcome one = { 0 }, many = { 0 }, eaches = { 0 }, none = { 0 };
        run_singly(operation, singly, &keys, &one);
        run_batched(operation, batched, &keys, false, &many);
        run_batched(operation, by_each, &each, false, &eaches);
        run_batched(operation, silent, &keys, true, &none);
        /* without keys no single call is made, and the kind refuses only the batch */
        expect(one.error == many.error || !count);
        expect(many.error == eaches.error && many.error == none.error);
        expect(one.done == many.done && many.done == eaches.done);
        if (operation == ADD_UNLESS_PRESENT)
            expect(!many.error || !many.answer[many.done]);
        expect(!memcmp(one.answer, many.answer, many.error ? many.done : count));
        expect(!memcmp(one.answer, eaches.answer, many.error ? many.done : count));
        const perhaps_filter *const others[] = { batched, by_each, silent };
        for (unsigned i = 0; i < 3; i++) {
            expect(perhaps_equal(singly, others[i]));
            expect_same_counters(singly, others[i]);
        }
    }
}

TEST(test_batches)
{
    /* around BATCH_STEP and BATCH_RING of filter.h, and several times round the ring */
    const size_t counts[] = { 0, 1, 31, 32, 33, 127, 128, 129, 255, 256, 257, BATCH_MAX };
    struct rng rng = rng_for(__func__);
    EACH_KIND(kind, any_kind)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (unsigned repeat = 0; repeat < 4; repeat++)
                compare_batches(kind, counts[c], &rng);
}

/* ---- Single calls ---------------------------------------------------------------------- */

TEST(test_single_calls)
{
    uint64_t seed = test_seed();
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = make_filter(kind, 100, low_rate(kind), seed);
        expect(!perhaps_contains(f, "key", 3));
        bool was_present = true;
        expect_success(perhaps_add_unless_present(f, "key", 3, &was_present));
        expect(!was_present);
        expect_success(perhaps_add_unless_present(f, "key", 3, &was_present));
        expect(was_present);
        expect_success(perhaps_add_unless_present(f, "key", 3, NULL));
        expect(perhaps_contains(f, "key", 3));
        expect(!perhaps_contains(f, "ke", 2) && !perhaps_contains(f, "key", 4));
        expect(stats_of(f).keys == 1);
    }
}

/* The figures of an empty and of a full filter.  Each key is counted, except for a few that
 * were perhaps there already: less than a tenth.  A small filter of counters may have a
 * load below 0.3. */
TEST(test_stats)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 1000);
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = make_filter(kind, keys.count, 0.01, test_seed());
        struct perhaps_stats empty = stats_of(f);
        expect(empty.keys == 0 && empty.load == 0 && empty.fpr_now == 0);
        expect(empty.bits_per_key == 0 && !empty.failed_adds && !empty.unmatched_removals);
        fill(f, &keys);
        struct perhaps_stats full = stats_of(f);
        expect(!strcmp(full.plan.kind, kind->name) && !strcmp(full.hash, "xxh3"));
        expect(full.plan.capacity == keys.count && full.plan.fpr == 0.01);
        expect(full.keys <= keys.count && full.keys > keys.count * 9 / 10);
        expect(full.load > (gets_full(kind) ? 0.2 : 0.01) && full.load <= 1);
        expect(full.fpr_now > 0 && full.fpr_now <= 0.01);
        expect(full.bits_per_key >= full.plan.bits_per_key);
        expect(!full.mapped && !full.plan.why[0]);
    }
}

/* ---- Copies, equality, clearing -------------------------------------------------------- */

/* A change of the clone does not reach the original, and the clone survives it. */
TEST(test_clone)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 900);
    EACH_KIND(kind, any_kind) {
        perhaps_filter *f = make_filter(kind, 300, 0.001, test_seed());
        size_t done;
        expect_error(perhaps_add_many(f, &keys, &done), too_many(kind));
        scoped_filter *copy = clone_of(f), *witness = clone_of(f);
        expect(perhaps_equal(f, copy));
        expect_same_counters(f, copy);
        expect_success(perhaps_clear(copy));
        expect_success(perhaps_add(copy, "another", 7));
        expect(perhaps_equal(f, witness) && !perhaps_equal(f, copy));
        perhaps_free(f);
        struct perhaps_keys last = some_keys(&keys, done - 300, 300);
        expect_all_found(witness, &last);
    }
}

/* A cleared filter equals a new one and can be filled again. */
TEST(test_clear)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 900);
    EACH_KIND(kind, any_kind) {
        scoped_filter *fresh = make_filter(kind, 300, 0.001, test_seed());
        scoped_filter *f = clone_of(fresh);
        expect_error(perhaps_add_many(f, &keys, NULL), too_many(kind));
        perhaps_remove(f, "none", 4);
        expect_success(perhaps_clear(f));
        expect(perhaps_equal(f, fresh) && perhaps_contains_many(f, &keys, NULL) == 0);
        expect_same_counters(f, fresh);
        struct perhaps_keys first = some_keys(&keys, 0, 300);
        fill(f, &first);
        expect_all_found(f, &first);
    }
}

/* Returns whether two filters have the same geometry: one with which a kind keeps several rates
 * may be that of both. */
static bool same_geometry(const perhaps_filter *a, const perhaps_filter *b)
{
    const struct perhaps_plan one = stats_of(a).plan, other = stats_of(b).plan;
    return one.nfields == other.nfields && one.body_nbytes == other.body_nbytes &&
           !memcmp(one.field, other.field, sizeof one.field);
}

/* Filters that differ in seed, size, rate, kind or one key are not equal. */
TEST(test_equal)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 200);
    const struct perhaps_kind *first = perhaps_kind_at(0);
    EACH_KIND(kind, any_kind) {
        double fpr = low_rate(kind);
        scoped_filter *f = make_filter(kind, 300, fpr, 1);
        perhaps_filter *others[] = {
            make_filter(kind, 300, fpr, 2),  /* seed */
            make_filter(kind, 3000, fpr, 1), /* size */
            make_filter(kind != first ? first : perhaps_kind_at(1), 300, 1e-5, 1),
        };
        expect(perhaps_equal(f, f));
        for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
            expect(!perhaps_equal(f, others[o]) && !perhaps_equal(others[o], f));
            perhaps_free(others[o]);
        }
        scoped_filter *rate = make_filter(kind, 300, 1e-5, 1);
        expect(perhaps_equal(f, rate) == same_geometry(f, rate));
        scoped_filter *twin = make_filter(kind, 300, fpr, 1);
        fill(f, &keys);
        fill(twin, &keys);
        expect(perhaps_equal(f, twin));
        expect_success(perhaps_add(twin, "one more", 8));
        expect(!perhaps_equal(f, twin));
    }
}

/* ---- Abilities ------------------------------------------------------------------------- */

/* The filter holds "key" once. */
static void check_remove(const struct perhaps_kind *kind, perhaps_filter *f)
{
    scoped_filter *before = clone_of(f);
    struct perhaps_keys keys = perhaps_keys_packed("key", 3, 1);
    bool able = removes(kind), removed = false;
    size_t nremoved = 99;
    expect_error(perhaps_remove_many(f, &keys, &removed, &nremoved, NULL),
                 able ? 0 : PERHAPS_ERR_UNSUPPORTED);
    expect(removed == able && nremoved == able);
    expect(perhaps_contains(f, "key", 3) == !able);
    expect_error(perhaps_remove(f, "key", 3),
                 able ? PERHAPS_ERR_NOT_FOUND : PERHAPS_ERR_UNSUPPORTED);
    expect(perhaps_equal(f, before) == !able);
    expect(stats_of(f).unmatched_removals == able);
    expect(stats_of(f).keys == !able);
}

static void check_count(const struct perhaps_kind *kind, const perhaps_filter *f)
{
    uint64_t count = 99;
    bool able = kind->abilities & PERHAPS_CAN_COUNT;
    expect_error(perhaps_count(f, "key", 3, &count), able ? 0 : PERHAPS_ERR_UNSUPPORTED);
    expect(count == able);
    expect_error(perhaps_count(f, "absent", 6, &count), able ? 0 : PERHAPS_ERR_UNSUPPORTED);
    expect(count == 0);
}

static void check_needs(const struct perhaps_kind *kind)
{
    for (unsigned need = PERHAPS_CAN_REMOVE; need <= PERHAPS_CAN_THREADS; need *= 2) {
        struct perhaps_options options = options_for(kind, 10, 0.1, 1);
        options.needs = need;
        bool able = is_able(kind, need);
        scoped_filter *f = (perhaps_filter *)&options;
        scene("%s, need %u", kind->name, need);
        expect_error(perhaps_create(&options, &f), able ? 0 : PERHAPS_ERR_UNSUPPORTED);
        expect(able == (f != NULL));
    }
}

/* What a kind is able to do works; anything else is PERHAPS_ERR_UNSUPPORTED and changes
 * nothing. */
TEST_EACH(test_abilities, any_kind)
{
    perhaps_filter *f = make_filter(kind, 100, low_rate(kind), test_seed());
    expect_success(perhaps_add(f, "key", 3));
    check_count(kind, f);
    check_remove(kind, f);
    struct perhaps_verdict verdict;
    uint8_t secret[16];
    expect_error(perhaps_rotate(f), forgets(kind) ? 0 : PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_advance(f, 1), PERHAPS_ERR_UNSUPPORTED); /* none goes by time */
    expect_error(perhaps_verify(f, &verdict), PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_secret(f, secret), PERHAPS_ERR_UNSUPPORTED);
    perhaps_free(f);
    check_needs(kind);
}

TEST(test_registry)
{
    const struct perhaps_kind *kind;
    size_t n = 0;
    for (; (kind = perhaps_kind_at(n)); n++) {
        expect(*kind->name && *kind->summary);
        for (size_t other = 0; other < n; other++)
            expect(strcmp(kind->name, perhaps_kind_at(other)->name) != 0);
    }
    expect(n > 0 && !perhaps_kind_at(n + 1) && !perhaps_kind_at(SIZE_MAX));
}

/* NULL can be freed; every error has a text of its own, and unknown numbers share one. */
TEST(test_free_nothing)
{
    perhaps_free(NULL);
    for (int error = -100; error < 10; error++)
        expect(*perhaps_strerror(error));
    for (int error = PERHAPS_ERR_DEADLINE; error <= PERHAPS_ERR_ADDRESS; error++)
        expect(strcmp(perhaps_strerror(error), perhaps_strerror(-100)) != 0);
    expect(!strcmp(perhaps_version(), PERHAPS_VERSION));
}
