/* children_test.c - proves that a child of fork() can free a filter, however it was opened, and
 * whatever threads of its parent do at that moment; and that the parent loses nothing by
 * that. */
#include "support.h"
#include <perhaps_live.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, CHILDREN = 30, KEYS = 40000 };

/* What the threads do with a filter until they are to stop. */
struct crowd {
    perhaps_filter *f;
    struct perhaps_keys keys;
    bool changes, syncs;
    atomic_bool stops;
    atomic_size_t next; /* the first key that no thread has taken */
};

static void *work(void *context)
{
    struct crowd *c = *(struct crowd **)context;
    enum { STEP = 20 };
    while (!atomic_load(&c->stops)) {
        size_t at = atomic_fetch_add(&c->next, STEP) % KEYS;
        const struct perhaps_keys some = some_keys(&c->keys, at, STEP);
        if (c->changes)
            expect_success(perhaps_add_many(c->f, &some, NULL));
        if (c->syncs)
            expect_success(perhaps_sync(c->f));
        expect(!c->changes || perhaps_contains_many(c->f, &some, NULL) == STEP);
    }
    return NULL;
}

/* Returns how a child ends that only frees the filter. */
static int free_in_child(perhaps_filter *f)
{
    int status;
    pid_t pid = fork();
    expect(pid >= 0);
    if (!pid) {
        alarm(30);
        perhaps_free(f);
        _exit(0);
    }
    expect(waitpid(pid, &status, 0) == pid);
    return status;
}

/* Forks while threads are in calls.  Returns how many keys were added. */
static size_t fork_beside(struct crowd *c)
{
    pthread_t thread[THREADS];
    for (unsigned t = 0; t < THREADS; t++)
        expect(!pthread_create(&thread[t], NULL, work, &c));
    for (unsigned i = 0; i < CHILDREN; i++) {
        usleep(1000);
        expect(free_in_child(c->f) == 0);
    }
    atomic_store(&c->stops, true);
    for (unsigned t = 0; t < THREADS; t++)
        expect(!pthread_join(thread[t], NULL));
    return c->next < KEYS ? c->next : KEYS;
}

static void check_mode(const char *kind, const struct perhaps_open_options *how)
{
    const struct perhaps_options options = { .kind = kind, .capacity = 2 * KEYS, .fpr = 0.001 };
    struct path path = temp_path("parent");
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, KEYS);
    const bool changes = how->mode != PERHAPS_MODE_READ;
    struct crowd c = { .keys = keys,
                       .changes = changes,
                       .syncs = changes && how->mode != PERHAPS_MODE_LOAD };
    scoped_filter *first = make_with(&options);
    scene("%s, mode %d", kind, (int)how->mode);
    expect_success(perhaps_save(first, path.text));
    c.f = open_file(path.text, how);
    const struct perhaps_keys added = some_keys(&keys, 0, fork_beside(&c));
    if (how->mode == PERHAPS_MODE_LOAD)
        expect_success(perhaps_save(c.f, path.text));
    perhaps_free(c.f);
    scoped_filter *again = open_file(path.text, NULL);
    if (changes)
        expect_all_found(again, &added);
}

TEST(test_modes)
{
    const struct perhaps_open_options modes[] = {
        { .mode = PERHAPS_MODE_READ },
        { .mode = PERHAPS_MODE_LOAD, .shared = true },
        { .mode = PERHAPS_MODE_IN_PLACE },
        { .mode = PERHAPS_MODE_JOURNAL, .shared = true },
        { .mode = PERHAPS_MODE_JOURNAL, .shared = true, .journal_nbytes = 20000 },
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        check_mode("blocked", &modes[i]);
        check_mode("bloom", &modes[i]);
    }
}
