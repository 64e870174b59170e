/* model_test.c - a million random operations a kind, beside an exact multiset: whatever is in
 * that is found in the filter, through failed adds, removals, merges, files and copies. */
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CAPACITY = 1000, UNIVERSE = 3 * CAPACITY, KEY_NBYTES = 8 };

struct model {
    const struct perhaps_kind *kind;
    bool shared; /* in memory, though by this one thread only */
    perhaps_filter *f;
    struct rng rng;
    uint64_t seed;             /* of the filter's hash */
    struct perhaps_keys keys;  /* UNIVERSE of them */
    uint32_t copies[UNIVERSE]; /* that are in */
    uint64_t stored;           /* what stats must say */
    uint64_t failed_adds;
    uint64_t unmatched_removals;
};

static bool removes(const struct model *m)
{
    return m->kind->abilities & PERHAPS_REMOVE;
}

static size_t any_key(struct model *m)
{
    return (size_t)rng_below(&m->rng, UNIVERSE);
}

static bool says_perhaps(const struct model *m, size_t key)
{
    return perhaps_contains(m->f, key_at(&m->keys, key), KEY_NBYTES);
}

/* ---- Checks ----------------------------------------------------------------------------- */

static void check_counters(const struct model *m)
{
    struct perhaps_stats stats = stats_of(m->f);
    expect(stats.keys == m->stored);
    expect(stats.failed_adds == m->failed_adds);
    expect(stats.unmatched_removals == m->unmatched_removals);
}

static void check_all(const struct model *m)
{
    bool present[UNIVERSE];
    perhaps_contains_many(m->f, &m->keys, present);
    for (size_t key = 0; key < UNIVERSE; key++)
        expect(present[key] || !m->copies[key]);
    check_counters(m);
}

/* ---- Operations -------------------------------------------------------------------------- */

/* Kinds that cannot remove hold a set: an add is stored where it sets a bit. */
static void note_add(struct model *m, size_t key, bool was_there, int error)
{
    if (error) {
        expect(error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES);
        expect(removes(m) || error == PERHAPS_ERR_FULL);
        m->failed_adds++;
        return;
    }
    m->copies[key]++;
    m->stored += removes(m) || !was_there;
}

static void do_add(struct model *m)
{
    size_t key = any_key(m);
    bool was_there = says_perhaps(m, key);
    note_add(m, key, was_there, perhaps_add(m->f, key_at(&m->keys, key), KEY_NBYTES));
}

/* Up to its capacity a filter takes every key; copies of a few may crowd their places. */
static void do_add_again(struct model *m)
{
    size_t key = any_key(m);
    for (unsigned copies = 0; copies < 10; copies++) {
        bool was_there = says_perhaps(m, key);
        uint64_t before = m->stored;
        int error = perhaps_add(m->f, key_at(&m->keys, key), KEY_NBYTES);
        expect(!error || before >= CAPACITY || removes(m));
        note_add(m, key, was_there, error);
    }
}

static void do_add_many(struct model *m)
{
    size_t first = any_key(m), count = (size_t)rng_below(&m->rng, 100), done;
    if (first + count > UNIVERSE)
        count = UNIVERSE - first;
    struct perhaps_keys some = some_keys(&m->keys, first, count);
    uint64_t before = stats_of(m->f).keys;
    int error = perhaps_add_many(m->f, &some, &done);
    expect(error ? done < count : done == count);
    for (size_t i = 0; i < done; i++)
        m->copies[first + i]++;
    m->stored += removes(m) ? done : stats_of(m->f).keys - before;
    if (error)
        note_add(m, first + done, true, error);
}

static void do_remove(struct model *m)
{
    size_t key = any_key(m);
    bool was_there = says_perhaps(m, key);
    if (!m->copies[key] && was_there && removes(m))
        return; /* it is another's entry: not to be removed */
    int error = perhaps_remove(m->f, key_at(&m->keys, key), KEY_NBYTES);
    if (!removes(m)) {
        expect_error(error, PERHAPS_ERR_UNSUPPORTED);
    } else if (m->copies[key]) {
        expect_success(error);
        m->copies[key]--;
        m->stored--;
    } else {
        expect_error(error, PERHAPS_ERR_NOT_FOUND);
        m->unmatched_removals++;
    }
}

static void do_ask(struct model *m)
{
    size_t key = any_key(m);
    uint64_t count;
    bool perhaps = says_perhaps(m, key);
    expect(perhaps || !m->copies[key]);
    if (perhaps_count(m->f, key_at(&m->keys, key), KEY_NBYTES, &count))
        return;
    uint64_t most = saturates(m->kind) ? PERHAPS_COUNT_MAX : PERHAPS_COPIES_MAX;
    expect(count >= (m->copies[key] < most ? m->copies[key] : most) && count <= most);
    expect(perhaps == (count > 0));
}

static void do_clear(struct model *m)
{
    expect_success(perhaps_clear(m->f));
    memset(m->copies, 0, sizeof m->copies);
    m->stored = m->failed_adds = m->unmatched_removals = 0;
}

static void replace_filter(struct model *m, perhaps_filter *f)
{
    expect(perhaps_equal(m->f, f));
    perhaps_free(m->f);
    m->f = f;
    check_all(m);
}

static void do_clone(struct model *m)
{
    replace_filter(m, clone_of(m->f));
}

/* Into a file and back: loaded, or mapped and copied. */
static void do_save(struct model *m)
{
    struct path path = temp_path("model");
    struct perhaps_open_options options = { .writable = rng_below(&m->rng, 2) };
    perhaps_filter *opened;
    expect_success(perhaps_save(m->f, path.text));
    expect_success(perhaps_open(path.text, &options, &opened));
    if (m->shared) { /* which the one from the file would not be */
        expect(perhaps_equal(opened, m->f));
        perhaps_free(opened);
        return;
    }
    if (!options.writable) {
        perhaps_filter *copy = clone_of(opened);
        expect_error(perhaps_add(opened, "x", 1), PERHAPS_ERR_READ_ONLY);
        perhaps_free(m->f);
        m->f = opened;
        check_all(m);
        opened = copy;
    }
    replace_filter(m, opened);
    unlink(path.text);
}

static void do_merge(struct model *m)
{
    size_t first = any_key(m), count = (size_t)rng_below(&m->rng, 50);
    if (first + count > UNIVERSE)
        count = UNIVERSE - first;
    struct perhaps_keys some = some_keys(&m->keys, first, count);
    perhaps_filter *other = make_filter(m->kind, CAPACITY, 0.01, m->seed);
    perhaps_filter *before = clone_of(m->f);
    fill(other, &some);
    int error = perhaps_merge(m->f, other);
    if (error) {
        expect(perhaps_equal(m->f, before));
    } else {
        for (size_t i = 0; i < count; i++)
            m->copies[first + i]++;
        m->stored = removes(m) ? m->stored + count : stats_of(m->f).keys;
    }
    perhaps_free(other);
    perhaps_free(before);
}

/* ---- The run ------------------------------------------------------------------------------
 */

/* In turns more is added than the filter takes, and more is removed than comes. */
static void step(struct model *m, unsigned number)
{
    bool filling = number / 8192 % 2 == 0;
    uint64_t die = rng_below(&m->rng, 20000);
    if (die < 3)
        do_merge(m);
    else if (die < 6)
        do_save(m);
    else if (die < 10)
        do_clone(m);
    else if (die < 11)
        do_clear(m);
    else if (die < 30)
        do_add_again(m);
    else if (die < 60)
        do_add_many(m);
    else if (die < (filling ? 11000 : 4000))
        do_add(m);
    else if (die < 15000)
        do_remove(m);
    else
        do_ask(m);
}

static perhaps_filter *model_filter(const struct perhaps_kind *kind, bool shared, uint64_t seed)
{
    struct perhaps_options options = { .capacity = CAPACITY,
                                       .fpr = 0.01,
                                       .kind = kind->name,
                                       .shared = shared,
                                       .hashing = { .seed = seed } };
    perhaps_filter *f;
    expect_success(perhaps_create(&options, &f));
    return f;
}

static void run_model(const struct perhaps_kind *kind, bool shared, struct rng rng)
{
    enum { STEPS = SANITIZED ? 100 * 1000 : 1000 * 1000 };
    struct model m = { .kind = kind, .shared = shared, .rng = rng, .seed = 1 + rng_next(&rng) };
    m.keys = make_keys(RANDOM_KEYS, m.seed, 0, UNIVERSE);
    m.f = model_filter(kind, shared, m.seed);
    uint64_t failed = 0;
    for (unsigned number = 0; number < STEPS; number++) {
        scene("%s%s, step %u", shared ? "shared " : "", kind->name, number);
        uint64_t before = m.failed_adds;
        step(&m, number);
        failed += m.failed_adds > before;
        if (number % 1024 == 0)
            check_all(&m);
    }
    check_all(&m);
    expect(failed > STEPS / 100); /* or the test has not tested that */
    free_keys(&m.keys);
    perhaps_free(m.f);
}

static void test_model(void **state)
{
    (void)state;
    struct rng rng = rng_for(__func__);
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind(i)); i++) {
        rng_next(&rng);
        run_model(kind, false, rng);
    }
}

static void test_shared(void **state)
{
    (void)state;
    struct rng rng = rng_for(__func__);
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind(i)); i++) {
        rng_next(&rng);
        run_model(kind, true, rng);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_model),
                                        cmocka_unit_test(test_shared) };
    return run_group(tests);
}
