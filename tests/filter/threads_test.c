/* threads_test.c - proves that functions of a const filter may run in any number of threads at
 * once, and that different filters are independent.  Under ThreadSanitizer it also fails when a
 * call that should only read writes somewhere. */
#include "support.h"
#include <perhaps_sets.h>

#include <string.h>

enum { THREADS = 4, KEYS = 20000, ROUNDS = SANITIZED ? 3 : 30 };

struct reader {
    const perhaps_filter *f;
    const struct perhaps_keys *keys;
    const bool *expected;
    unsigned number;
    bool right; /* cmocka's checks must not be made in a thread */
};

/* Asks for all keys and compares the answers.  Each thread has its own batch size, so that the
 * threads do not read the same bytes at the same time by chance. */
static bool ask_all(const struct reader *r)
{
    static _Thread_local bool present[KEYS];
    size_t step = 97 * r->number + 31;
    for (size_t at = 0; at < KEYS; at += step) {
        struct perhaps_keys some = some_keys(r->keys, at, KEYS - at < step ? KEYS - at : step);
        perhaps_contains_many(r->f, &some, present + at);
        if (perhaps_contains(r->f, key_at(&some, 0), some.key_nbytes) != present[at])
            return false;
    }
    return !memcmp(present, r->expected, sizeof present);
}

/* Calls the other functions that take a const filter.  Returns whether all is right. */
static bool inspect(const struct reader *r)
{
    uint64_t count;
    perhaps_filter *copy;
    struct perhaps_stats stats = stats_of(r->f);
    perhaps_count(r->f, "key", 3, &count);
    if (stats.keys == 0 || perhaps_predict_fpr(r->f, stats.keys) <= 0 ||
        perhaps_clone(r->f, &copy))
        return false;
    bool equal = perhaps_equal(r->f, copy);
    perhaps_free(copy);
    return equal;
}

static void *read_filter(void *context)
{
    struct reader *r = context;
    r->right = true;
    for (unsigned round = 0; round < ROUNDS && r->right; round++)
        r->right = ask_all(r) && inspect(r);
    return NULL;
}

/* Asks once in this thread, and then in several threads at once, for the same answers. */
static void run_readers(const perhaps_filter *f, const struct perhaps_keys *keys)
{
    static bool expected[KEYS];
    struct reader readers[THREADS];
    for (size_t i = 0; i < KEYS; i++)
        expected[i] = perhaps_contains(f, key_at(keys, i), keys->key_nbytes);
    for (unsigned t = 0; t < THREADS; t++)
        readers[t] = (struct reader){ .f = f, .keys = keys, .expected = expected, .number = t };
    run_threads(THREADS, read_filter, readers, sizeof *readers);
    for (unsigned t = 0; t < THREADS; t++)
        expect(readers[t].right);
}

/* One filter, in memory and mapped, read by all threads. */
TEST(test_readers)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct perhaps_keys half = some_keys(&keys, 0, KEYS / 2);
    EACH_KIND(kind, any_kind) {
        struct path path = temp_path("threads");
        scoped_filter *f = full_filter(kind, KEYS, 0.01, &half);
        run_readers(f, &keys);
        expect_success(perhaps_save(f, path.text));
        scoped_filter *mapped = open_file(path.text, NULL);
        run_readers(mapped, &keys);
    }
}

struct writer {
    const struct perhaps_kind *kind;
    struct perhaps_keys keys;
    perhaps_filter *f;
    int error;
};

static void *build_filter(void *context)
{
    struct writer *w = context;
    struct perhaps_options options = options_for(w->kind, KEYS, 0.01, 7);
    w->error = perhaps_create(&options, &w->f);
    if (!w->error)
        w->error = perhaps_add_many(w->f, &w->keys, NULL);
    return NULL;
}

/* Each thread builds a filter of its own; at the end all are merged.  So can several threads
 * build one set without a shared filter. */
TEST(test_writers)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    EACH_KIND(kind, any_kind) {
        struct writer writers[THREADS];
        for (unsigned t = 0; t < THREADS; t++) {
            size_t share = KEYS / THREADS;
            writers[t] =
                (struct writer){ .kind = kind, .keys = some_keys(&keys, t * share, share) };
        }
        run_threads(THREADS, build_filter, writers, sizeof *writers);
        for (unsigned t = 0; t < THREADS; t++) {
            expect_success(writers[t].error);
            expect_all_found(writers[t].f, &writers[t].keys);
            if (t > 0 && merges(kind))
                expect_success(perhaps_merge(writers[0].f, writers[t].f));
        }
        if (merges(kind))
            expect_all_found(writers[0].f, &keys);
        for (unsigned t = 0; t < THREADS; t++)
            perhaps_free(writers[t].f);
    }
}
