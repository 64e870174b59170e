/* model_test.c - proves that no filter ever denies a key that is in: 100,000 random operations
 * for each kind (over each base, and again on a shared filter) run beside an exact multiset.
 * Every key of the multiset must be found, after failed adds, removals, merges, saves, copies
 * and failed allocations; and the counters must be right.  Windows, which forget, have a model
 * of their own in window_test.c. */
#include "support.h"
#include <perhaps.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kinds/kinds.h"

enum { CAPACITY = 1000, KEY_NBYTES = 8, UNIVERSE_MAX = 200 * 1000 };

struct model {
    const struct perhaps_kind *kind;
    struct perhaps_options options; /* may say 'shared', though only this thread uses it */
    bool removes;                   /* it stores copies, or is a bitmap */
    struct ledger ledger;
    perhaps_filter *f;
    struct rng rng;
    uint64_t seed;                 /* of the filter's hash */
    struct perhaps_keys keys;      /* all keys that are used */
    uint32_t copies[UNIVERSE_MAX]; /* how many copies of each are in */
    uint64_t stored;               /* the count of keys that the filter must have */
    uint64_t failed_adds;
    uint64_t unmatched_removals;
};

static size_t any_key(struct model *m)
{
    return (size_t)rng_below(&m->rng, m->keys.count);
}

/* Returns the number of the key that lies there. */
static size_t index_of(const struct model *m, const void *key)
{
    return (size_t)((const char *)key - (const char *)m->keys.packed) / KEY_NBYTES;
}

/* Returns up to a thirtieth of the keys, one behind the other. */
static struct perhaps_keys any_keys(struct model *m, size_t *first)
{
    size_t count = (size_t)rng_below(&m->rng, m->keys.count / 30);
    *first = any_key(m);
    if (*first + count > m->keys.count)
        count = m->keys.count - *first;
    return some_keys(&m->keys, *first, count);
}

static bool says_perhaps(const struct model *m, size_t key)
{
    return perhaps_contains(m->f, key_at(&m->keys, key), KEY_NBYTES);
}

/* ---- Checks ----------------------------------------------------------------------------- */

static void check_counters(const struct model *m)
{
    const struct counters *counters = m->f->counters; /* no rates */
    /* where the count is an estimate, it goes down when it comes to the limit */
    expect(counters->keys == m->stored || (m->f->keys_estimated && counters->keys < m->stored));
    expect(counters->failed_adds == m->failed_adds);
    expect(counters->unmatched_removals == m->unmatched_removals);
}

/* Checks that every key that is in is found, and all counters. */
static void check_all(const struct model *m)
{
    static bool present[UNIVERSE_MAX];
    perhaps_contains_many(m->f, &m->keys, present);
    for (size_t key = 0; key < m->keys.count; key++)
        expect(present[key] || !m->copies[key]);
    check_counters(m);
}

/* ---- Operations -------------------------------------------------------------------------- */

/* Notes what an add did.  A kind that cannot remove holds a set: it counts a key only if the
 * key was not perhaps there. */
static void note_add(struct model *m, size_t key, bool was_there, int error)
{
    if (error) {
        expect(error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES ||
               (error == PERHAPS_ERR_MEMORY && grows(m->kind)));
        expect(m->removes || error != PERHAPS_ERR_COPIES);
        expect(m->removes || !grows(m->kind) || error != PERHAPS_ERR_FULL);
        m->failed_adds++;
        return;
    }
    m->copies[key]++;
    m->stored += m->removes || !was_there;
}

static void do_add(struct model *m)
{
    size_t key = any_key(m);
    bool was_there = says_perhaps(m, key);
    note_add(m, key, was_there, perhaps_add(m->f, key_at(&m->keys, key), KEY_NBYTES));
}

/* Adds keys while every allocation fails.  An add that needs memory fails and changes nothing
 * but the count of failed adds. */
static void do_add_without_memory(struct model *m)
{
    m->ledger.failing = true;
    for (unsigned tries = 0; tries < 100; tries++) {
        size_t key = any_key(m);
        bool was_there = says_perhaps(m, key);
        note_add(m, key, was_there, perhaps_add(m->f, key_at(&m->keys, key), KEY_NBYTES));
    }
    m->ledger.failing = false;
    check_all(m);
}

/* Adds new keys until one of them needs memory: so every run of a kind that grows meets that
 * failure. */
static void starve(struct model *m)
{
    scoped_keys fresh = make_keys(RANDOM_KEYS, m->seed, m->keys.count, 10 * m->keys.count);
    m->ledger.failing = true;
    int error = 0;
    for (size_t key = 0; error != PERHAPS_ERR_MEMORY; key++) {
        expect(key < fresh.count);
        error = perhaps_add(m->f, key_at(&fresh, key), KEY_NBYTES);
        expect(!error || error == PERHAPS_ERR_MEMORY);
        m->failed_adds += error != 0;
        expect(error || perhaps_contains(m->f, key_at(&fresh, key), KEY_NBYTES));
    }
    m->ledger.failing = false;
    m->stored = m->f->counters->keys;
    check_all(m);
}

/* Adds one key ten times.  Below its capacity a filter takes every key, except that copies of
 * few keys can crowd their slots. */
static void do_add_again(struct model *m)
{
    size_t key = any_key(m);
    for (unsigned copies = 0; copies < 10; copies++) {
        bool was_there = says_perhaps(m, key);
        uint64_t before = m->stored;
        int error = perhaps_add(m->f, key_at(&m->keys, key), KEY_NBYTES);
        expect(!error || before >= CAPACITY || m->removes);
        note_add(m, key, was_there, error);
    }
}

/* The keys before an error are in; the one that failed counts as a failed add. */
static void do_add_many(struct model *m)
{
    size_t first, done;
    struct perhaps_keys some = any_keys(m, &first);
    uint64_t before = m->f->counters->keys;
    int error = perhaps_add_many(m->f, &some, &done);
    expect(error ? done < some.count : done == some.count);
    for (size_t i = 0; i < done; i++)
        m->copies[first + i]++;
    m->stored += m->removes ? done : m->f->counters->keys - before;
    if (error)
        note_add(m, first + done, true, error);
}

/* Adds a key unless it is perhaps there.  Then it changes nothing, even in a full filter. */
static void do_add_unless_present(struct model *m)
{
    size_t key = any_key(m);
    bool was_there = says_perhaps(m, key), was = !was_there;
    int error = perhaps_add_unless_present(m->f, key_at(&m->keys, key), KEY_NBYTES, &was);
    expect(!error || (!was_there && !was));
    expect(error || was == was_there);
    if (error || !was || !m->removes)
        note_add(m, key, was_there, error);
}

static void do_remove(struct model *m)
{
    size_t key = any_key(m);
    bool was_there = says_perhaps(m, key);
    if (!m->copies[key] && was_there && m->removes)
        return; /* a false positive: removing it would remove another key's entry */
    int error = perhaps_remove(m->f, key_at(&m->keys, key), KEY_NBYTES);
    if (!m->removes) {
        expect_error(error, m->f->is_set ? PERHAPS_ERR_SET : PERHAPS_ERR_UNSUPPORTED);
    } else if (m->copies[key]) {
        expect_success(error);
        m->copies[key]--;
        m->stored--;
    } else {
        expect_error(error, PERHAPS_ERR_NOT_FOUND);
        m->unmatched_removals++;
    }
}

/* Removes some of the keys that are in, and some that are certainly not. */
static void do_remove_many(struct model *m)
{
    enum { MOST = 40 };
    struct perhaps_key each[MOST];
    size_t first, n = 0, removed, done, wanted = 0;
    bool was[MOST];
    struct perhaps_keys some = any_keys(m, &first);
    for (size_t i = 0; i < some.count && n < MOST && m->removes; i++)
        if (m->copies[first + i] || !says_perhaps(m, first + i))
            each[n++] = perhaps_keys_at(&some, i);
    struct perhaps_keys keys = perhaps_keys_each(each, n);
    int error = perhaps_remove_many(m->f, &keys, was, &removed, &done);
    expect_error(error, m->removes     ? 0
                        : m->f->is_set ? PERHAPS_ERR_SET
                                       : PERHAPS_ERR_UNSUPPORTED);
    for (size_t i = 0; i < n; i++) {
        size_t key = index_of(m, each[i].bytes);
        expect(was[i] == (m->copies[key] > 0));
        m->copies[key] -= was[i];
        wanted += was[i];
    }
    expect(removed == wanted && done == n);
    m->stored -= removed;
    m->unmatched_removals += n - removed;
}

/* Counts a batch, which gives what single calls give. */
static void do_count_many(struct model *m)
{
    static uint64_t counts[UNIVERSE_MAX];
    size_t first;
    struct perhaps_keys some = any_keys(m, &first);
    int error = perhaps_count_many(m->f, &some, counts);
    expect_error(error, m->f->counts   ? 0
                        : m->f->is_set ? PERHAPS_ERR_SET
                                       : PERHAPS_ERR_UNSUPPORTED);
    for (size_t i = 0; i < some.count; i++) {
        uint64_t count = 1;
        expect_error(perhaps_count(m->f, key_at(&some, i), KEY_NBYTES, &count), error);
        expect(count == counts[i] && (error || count || !m->copies[first + i]));
    }
}

/* A count is never below the number of copies, and never above what the kind can store. */
static void do_ask(struct model *m)
{
    size_t key = any_key(m);
    uint64_t count;
    bool perhaps = says_perhaps(m, key);
    expect(perhaps || !m->copies[key]);
    if (perhaps_count(m->f, key_at(&m->keys, key), KEY_NBYTES, &count))
        return;
    bool may_saturate = saturates(m->kind) || has_parts(m->kind);
    uint64_t layers = has_parts(m->kind) ? m->f->parts->count : 1, least = m->copies[key];
    if (may_saturate && least > PERHAPS_COUNT_MAX)
        least = PERHAPS_COUNT_MAX;
    expect(count >= least);
    expect(count <= layers * (may_saturate ? PERHAPS_COUNT_MAX : PERHAPS_COPIES_MAX));
    expect(perhaps == (count > 0));
}

static void do_clear(struct model *m)
{
    expect_success(perhaps_clear(m->f));
    memset(m->copies, 0, sizeof m->copies);
    m->stored = m->failed_adds = m->unmatched_removals = 0;
}

/* Goes on with another filter, which must equal the one before. */
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

/* Saves the filter and replaces it by the one from the file: loaded, or mapped and copied. */
static void do_save(struct model *m)
{
    struct path path = temp_path("model");
    struct perhaps_allocator allocator = ledger_allocator(&m->ledger);
    struct perhaps_open_options options = { .mode = rng_below(&m->rng, 2) ? PERHAPS_MODE_LOAD
                                                                          : PERHAPS_MODE_READ,
                                            .allocator = &allocator };
    expect_success(perhaps_save(m->f, path.text));
    perhaps_filter *opened = open_file(path.text, &options);
    if (m->options.shared) { /* a filter from a file would not be shared */
        expect(perhaps_equal(opened, m->f));
        perhaps_free(opened);
        return;
    }
    if (options.mode == PERHAPS_MODE_READ) {
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

/* Merges a filter with a few keys; if that is refused, nothing may change. */
static void do_merge(struct model *m)
{
    if (!merges(m->kind))
        return;
    size_t first;
    struct perhaps_keys some = any_keys(m, &first);
    scoped_filter *other = make_with(&m->options);
    scoped_filter *before = clone_of(m->f);
    fill(other, &some);
    int error = perhaps_merge(m->f, other);
    if (error) {
        expect(perhaps_equal(m->f, before));
    } else {
        for (size_t i = 0; i < some.count; i++)
            m->copies[first + i]++;
        m->stored = m->removes ? m->stored + some.count : m->f->counters->keys;
    }
}

/* ---- The run ----------------------------------------------------------------------------- */

/* Does a random operation.  For 8192 steps more is added than the filter takes; for the next
 * 8192 more is removed than added. */
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
    else if (die < 11 && (m->keys.count < UNIVERSE_MAX || rng_below(&m->rng, 10) == 0))
        do_clear(m);
    else if (die < 14)
        do_add_without_memory(m);
    else if (die < 30)
        do_add_again(m);
    else if (die < 60)
        do_add_many(m);
    else if (die < 70)
        do_remove_many(m);
    else if (die < 80)
        do_count_many(m);
    else if (die < (filling ? 8000 : 3000))
        do_add(m);
    else if (die < (filling ? 11000 : 4000))
        do_add_unless_present(m);
    else if (die < 15000)
        do_remove(m);
    else
        do_ask(m);
}

static void run_model(struct perhaps_options *options, struct rng rng)
{
    const unsigned steps = many(100 * 1000);
    static struct model m;
    struct perhaps_allocator allocator = ledger_allocator(&m.ledger);
    m = (struct model){ .kind = &kind_by_name(options->kind)->about, .rng = rng };
    m.options = *options;
    m.options.allocator = &allocator;
    m.seed = m.options.hashing.seed = 1 + rng_next(&rng);
    /* a filter that grows in place begins with room for about 30,000 keys */
    m.keys =
        make_keys(RANDOM_KEYS, m.seed, 0, grows_in_place(m.kind) ? UNIVERSE_MAX : 3 * CAPACITY);
    m.f = make_with(&m.options);
    m.removes = m.f->removes;
    uint64_t failed = 0, most_parts = 0;
    for (unsigned number = 0; number < steps; number++) {
        scene("%s%s, base %s, step %u", options->shared ? "shared " : "", options->kind,
              options->base ? options->base : "none", number);
        uint64_t before = m.failed_adds, parts = m.f->parts->count;
        step(&m, number);
        failed += m.failed_adds > before;
        most_parts = parts > most_parts ? parts : most_parts;
        if (number % 1024 == 0)
            check_all(&m);
    }
    check_all(&m);
    if (grows(m.kind)) {
        do_clear(&m); /* else copies could crowd the slots, and it would not grow */
        starve(&m);
    }
    /* Otherwise the run has not tested full filters, or chains of several layers. */
    expect(!gets_full(m.kind) || failed > steps / 100);
    expect(!has_parts(m.kind) || most_parts > 3);
    free_keys(&m.keys);
    perhaps_free(m.f);
    expect(m.ledger.live == 0 && m.ledger.live_nbytes == 0);
}

/* Runs the model for one kind; a composite, once over each kind that its parts can have.  Those
 * that can store copies are tried with them and as sets.  The first of these runs has the hash
 * whose single keys take the shortest way (filter/one.c). */
static void run_kind(const struct perhaps_kind *kind, bool shared, struct rng rng)
{
    struct perhaps_options options = options_for(kind, CAPACITY, 0.01, 0);
    options.shared = shared;
    if (grows(kind))
        options.capacity = 50;
    for (size_t i = 0; base_to_test(kind, i, &options.base); i++) {
        if (shared && !takes_threads_over(kind, options.base))
            continue;
        ask_for_copies(&options, true);
        options.hashing.hash = PERHAPS_HASH_XXH3_64;
        run_model(&options, rng);
        options.hashing.hash = PERHAPS_HASH_XXH3;
        if (ask_for_copies(&options, false)) /* as a set */
            run_model(&options, rng);
    }
}

TEST(test_model)
{
    struct rng rng = rng_for(__func__);
    EACH_KIND(kind, any_kind) {
        rng_next(&rng);
        if (!forgets(kind))
            run_kind(kind, false, rng);
    }
}

TEST(test_shared)
{
    struct rng rng = rng_for(__func__);
    EACH_KIND(kind, any_kind) {
        rng_next(&rng);
        if (takes_threads(kind) && !forgets(kind))
            run_kind(kind, true, rng);
    }
}
