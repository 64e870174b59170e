/* journal_threads_test.c - proves that threads may add, remove and sync at once on one live
 * file, shared or not, while it is saved anew again and again; that those who read it meanwhile
 * find all that was acknowledged before they asked; and that threads that sync at once wait for
 * the disk together.
 *
 * It fails when a key is lost that was acknowledged, when what is found again differs from what
 * was there, and when the system is asked to sync more often than twice for all threads. */
#include "support.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/journal.h"

enum { WRITERS = 4, ASKERS = 2, STAYING = SANITIZED ? 300 : 2000, PASSING = STAYING };

/* ---- fdatasync() ------------------------------------------------------------------------- */

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

/* A disk that is so slow that meanwhile every thread adds a key. */
static struct {
    bool is_slow, fails;
    atomic_uint syncs; /* of the disk */
    atomic_uint added; /* keys in all */
    atomic_uint until; /* a sync takes until so many are added */
} disk;

/* If the keys are not added while the disk is busy, because somebody waits who should not, the
 * sync ends after a while all the same, and the test fails since there are too many syncs. */
int __wrap_fdatasync(int fd)
{
    enum { PATIENCE = 100000 };
    if (!disk.is_slow)
        return __real_fdatasync(fd);
    atomic_fetch_add(&disk.syncs, 1);
    for (int i = 0; i < PATIENCE && disk.added < disk.until; i++)
        usleep(100);
    errno = EIO;
    return disk.fails ? -1 : 0;
}

/* ---- Writers, askers and readers --------------------------------------------------------- */

/* What all of them know, in memory that is shared with a child.  Each writer has STAYING keys,
 * which it adds, and PASSING others, which it adds and removes if the kind has removals. */
struct board {
    atomic_uint added[WRITERS]; /* staying keys that are in */
    atomic_uint
        acknowledged[WRITERS]; /* and of which perhaps_sync() has said that they are safe */
    atomic_bool finished;
    atomic_uint refreshes;
    _Atomic(const char *) wrong; /* what a thread complains about; NULL: nothing */
};

struct crowd {
    const struct perhaps_kind *kind;
    struct path path;
    struct perhaps_keys keys; /* first the staying ones of all writers */
    perhaps_filter *f;
    struct board *board;
};

struct member {
    const struct crowd *crowd;
    unsigned number;
};

static void complain(const struct crowd *c, const char *what)
{
    atomic_store(&c->board->wrong, what);
}

static struct perhaps_keys staying(const struct crowd *c, unsigned writer, size_t first,
                                   size_t count)
{
    return some_keys(&c->keys, writer * (size_t)STAYING + first, count);
}

static struct perhaps_keys passing(const struct crowd *c, unsigned writer, size_t first,
                                   size_t count)
{
    return some_keys(&c->keys, (size_t)WRITERS * STAYING + writer * (size_t)PASSING + first,
                     count);
}

/* Syncs or saves the file anew, and publishes what that has acknowledged. */
static void acknowledge(const struct member *m, struct rng *rng)
{
    const struct crowd *c = m->crowd;
    unsigned added = c->board->added[m->number];
    if (rng_below(rng, 100) ? perhaps_sync(c->f) : perhaps_checkpoint(c->f))
        complain(c, "no sync");
    atomic_store(&c->board->acknowledged[m->number], added);
}

/* Adds the next staying keys, in one of four ways. */
static unsigned add_some(const struct member *m, unsigned added, struct rng *rng)
{
    const struct crowd *c = m->crowd;
    unsigned most = rng_below(rng, 2) ? 1 : 200;
    unsigned count = 1 + (unsigned)rng_below(rng, most);
    count = count < STAYING - added ? count : STAYING - added;
    struct perhaps_keys some = staying(c, m->number, added, count);
    int error;
    if (count == 1)
        error = rng_below(rng, 2)
                    ? perhaps_add(c->f, key_at(&some, 0), some.key_nbytes)
                    : perhaps_add_unless_present(c->f, key_at(&some, 0), some.key_nbytes, NULL);
    else
        error = rng_below(rng, 2) ? perhaps_add_many(c->f, &some, NULL)
                                  : perhaps_add_unless_present_many(c->f, &some, NULL, NULL);
    if (error)
        complain(c, "a key is refused");
    return added + count;
}

/* Adds passing keys and removes them again. */
static void come_and_go(const struct member *m, struct rng *rng)
{
    const struct crowd *c = m->crowd;
    size_t count = 1 + rng_below(rng, 50), removed;
    struct perhaps_keys some =
        passing(c, m->number, rng_below(rng, (uint64_t)PASSING - count), count);
    if (!removes(c->kind))
        return;
    if (perhaps_add_many(c->f, &some, NULL) ||
        perhaps_remove_many(c->f, &some, NULL, &removed, NULL) || removed != count)
        complain(c, "a key that was added cannot be removed");
}

static void *write_live(void *context)
{
    const struct member *m = context;
    const struct crowd *c = m->crowd;
    struct rng rng = { mix64(test_seed() + m->number) };
    for (unsigned added = 0; added < STAYING && !c->board->wrong;) {
        added = add_some(m, added, &rng);
        atomic_store(&c->board->added[m->number], added);
        if (rng_below(&rng, 4) == 0)
            come_and_go(m, &rng);
        if (rng_below(&rng, 3) == 0)
            acknowledge(m, &rng);
    }
    acknowledge(m, &rng);
    return NULL;
}

static void expect_staying(const struct crowd *c, const perhaps_filter *f, unsigned writer,
                           unsigned count, const char *what)
{
    struct perhaps_keys some = staying(c, writer, 0, count);
    if (perhaps_contains_many(f, &some, NULL) != count)
        complain(c, what);
}

/* Asks the filter that others change. */
static void *ask_live(void *context)
{
    const struct member *m = context;
    const struct crowd *c = m->crowd;
    for (unsigned i = m->number; !c->board->finished && !c->board->wrong; i++) {
        unsigned added = c->board->added[i % WRITERS];
        expect_staying(c, c->f, i % WRITERS, added, "a key that was added is denied");
        sched_yield();
    }
    return NULL;
}

/* Opens the file to read it, and refreshes it until all is done, and once more then. */
static void *follow(void *context)
{
    const struct member *m = context;
    const struct crowd *c = m->crowd;
    perhaps_filter *f;
    if (perhaps_open(c->path.text, NULL, &f)) {
        complain(c, "cannot be opened to read");
        return NULL;
    }
    for (bool last = false; !last && !c->board->wrong;) {
        unsigned count[WRITERS];
        last = c->board->finished;
        for (unsigned w = 0; w < WRITERS; w++)
            count[w] = c->board->acknowledged[w];
        int error = perhaps_refresh(&f, c->path.text, NULL);
        if (error)
            complain(c, perhaps_strerror(error));
        for (unsigned w = 0; w < WRITERS; w++)
            expect_staying(c, f, w, count[w], "a reader lacks what was acknowledged");
        atomic_fetch_add(&c->board->refreshes, 1);
    }
    perhaps_free(f);
    return NULL;
}

static pid_t follow_in_child(struct member *m)
{
    pid_t pid = fork();
    expect(pid >= 0);
    if (pid)
        return pid;
    follow(m);
    _exit(m->crowd->board->wrong ? 1 : 0);
}

/* Runs the threads.  Those that only look end when the writers have ended. */
static void run_crowd(const struct crowd *c, unsigned askers)
{
    struct member members[WRITERS + ASKERS + 1];
    pthread_t thread[WRITERS + ASKERS + 1];
    unsigned n = WRITERS + askers + 1;
    for (unsigned i = 0; i < n; i++) {
        members[i] = (struct member){ c, i };
        expect(!pthread_create(&thread[i], NULL,
                               i < WRITERS ? write_live
                               : i < n - 1 ? ask_live
                                           : follow,
                               &members[i]));
    }
    for (unsigned i = 0; i < n; i++) {
        if (i == WRITERS)
            atomic_store(&c->board->finished, true);
        expect(!pthread_join(thread[i], NULL));
    }
}

/* Opens the file in each way, and expects what was there before it was closed. */
static void expect_again(const struct crowd *c, const perhaps_filter *then)
{
    const struct perhaps_open_options to_write = { .mode = PERHAPS_MODE_JOURNAL };
    const struct perhaps_open_options *const ways[] = { &map_it, &load_it, &to_write };
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        scoped_filter *again = open_file(c->path.text, ways[way]);
        expect(perhaps_equal(then, again) && stats_of(then).keys == stats_of(again).keys);
        for (unsigned w = 0; w < WRITERS; w++) {
            struct perhaps_keys all = staying(c, w, 0, STAYING);
            expect_all_found(again, &all);
        }
    }
}

static void check_crowd(const struct perhaps_kind *kind, bool shared)
{
    const size_t nkeys = (size_t)WRITERS * (STAYING + PASSING);
    const struct perhaps_open_options to_write = { .mode = PERHAPS_MODE_JOURNAL,
                                                   .shared = shared,
                                                   .journal_nbytes = 8 << 10 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, nkeys);
    struct crowd c = { .kind = kind, .path = temp_path("crowd"), .keys = keys };
    struct member child = { &c, WRITERS };
    scene("%s, %s", kind->name, shared ? "shared" : "not shared");
    c.board =
        mmap(NULL, sizeof *c.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    expect(c.board != MAP_FAILED);
    /* what grows begins small: it gets new parts and pages while others add, too */
    scoped_filter *empty =
        make_filter(kind, grows(kind) ? 64 : nkeys, low_rate(kind), test_seed());
    expect_success(perhaps_save(empty, c.path.text));
    perhaps_free(open_file(c.path.text, &to_write));
    pid_t pid = follow_in_child(&child);
    c.f = open_file(c.path.text, &to_write);
    run_crowd(&c, shared ? ASKERS : 0);
    int status;
    expect(waitpid(pid, &status, 0) == pid);
    if (c.board->wrong)
        scene("%s, %s: %s", kind->name, shared ? "shared" : "not shared", c.board->wrong);
    expect(!c.board->wrong && status == 0 && c.board->refreshes >= 2);
    scoped_filter *then = clone_of(c.f);
    perhaps_free(c.f);
    expect_again(&c, then);
    munmap(c.board, sizeof *c.board);
}

/* Threads may do all this without a shared filter, since a live file has a lock. */
TEST_EACH(test_crowd, in_registry)
{
    check_crowd(kind, false);
}

static bool can_be_shared(const struct perhaps_kind *kind)
{
    return in_registry(kind) && takes_threads(kind);
}

TEST_EACH(test_shared_crowd, can_be_shared)
{
    check_crowd(kind, true);
}

/* ---- Group commit ------------------------------------------------------------------------ */

enum { COMMITTERS = 8, ROUNDS = 50 };

struct committer {
    perhaps_filter *f;
    pthread_barrier_t *barrier;
    struct perhaps_keys keys;
    int add_error, sync_error, reason;
};

/* Adds a key and syncs, in each round once. */
static void *commit(void *context)
{
    struct committer *c = context;
    for (size_t i = 0; i < c->keys.count; i++) {
        c->add_error |= perhaps_add(c->f, key_at(&c->keys, i), c->keys.key_nbytes);
        atomic_fetch_add(&disk.added, 1);
        c->sync_error = perhaps_sync(c->f);
        c->reason = errno;
        if (pthread_barrier_wait(c->barrier) != 0) /* one of the threads */
            atomic_fetch_add(&disk.until, COMMITTERS);
        pthread_barrier_wait(c->barrier);
    }
    return NULL;
}

/* Runs COMMITTERS threads for some rounds on a slow disk. */
static void run_committers(struct committer committers[COMMITTERS], perhaps_filter *f,
                           const struct perhaps_keys *keys)
{
    pthread_barrier_t barrier;
    size_t share = keys->count / COMMITTERS;
    expect(!pthread_barrier_init(&barrier, NULL, COMMITTERS));
    for (unsigned t = 0; t < COMMITTERS; t++)
        committers[t] = (struct committer){ .f = f,
                                            .barrier = &barrier,
                                            .keys = some_keys(keys, t * share, share) };
    disk.syncs = disk.added = 0;
    disk.until = COMMITTERS;
    disk.is_slow = true;
    run_threads(COMMITTERS, commit, committers, sizeof *committers);
    disk.is_slow = false;
    pthread_barrier_destroy(&barrier);
}

static perhaps_filter *new_live(const char *path, uint64_t capacity, bool shared)
{
    const struct perhaps_open_options to_write = { .mode = PERHAPS_MODE_JOURNAL,
                                                   .shared = shared };
    const struct perhaps_options options = { .capacity = capacity, .fpr = 1e-12 };
    scoped_filter *f = make_with(&options);
    expect_success(perhaps_save(f, path));
    return open_file(path, &to_write);
}

/* In each round the first sync takes until all threads have added a key; the keys that it does
 * not have go with the second one. */
TEST(test_group_commit)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, (size_t)COMMITTERS * ROUNDS);
    for (int shared = 0; shared < 2; shared++) {
        struct path path = temp_path("commit");
        struct committer committers[COMMITTERS];
        perhaps_filter *f = new_live(path.text, keys.count, shared);
        run_committers(committers, f, &keys);
        scene("%u syncs of %u threads in %u rounds", disk.syncs, COMMITTERS, ROUNDS);
        expect(disk.syncs >= ROUNDS && disk.syncs <= 2 * ROUNDS);
        for (unsigned t = 0; t < COMMITTERS; t++)
            expect(!committers[t].add_error && !committers[t].sync_error);
        scoped_filter *reader = open_file(path.text, NULL);
        expect_all_found(reader, &keys);
        disk.is_slow = true;
        expect_success(perhaps_sync(f)); /* all is there */
        disk.is_slow = false;
        expect(disk.syncs <= 2 * ROUNDS);
        perhaps_free(f);
    }
}

/* Nobody is told that a key is safe if the disk fails, and from then on nothing works. */
TEST(test_disk_fails)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, COMMITTERS);
    struct path path = temp_path("fails");
    struct committer committers[COMMITTERS];
    perhaps_filter *f = new_live(path.text, keys.count, false);
    disk.fails = true;
    run_committers(committers, f, &keys);
    disk.fails = false;
    expect(disk.syncs == 1);
    for (unsigned t = 0; t < COMMITTERS; t++)
        expect(!committers[t].add_error && committers[t].sync_error == PERHAPS_ERR_IO &&
               committers[t].reason == EIO);
    errno = 0;
    expect_error(perhaps_add(f, key_at(&keys, 0), keys.key_nbytes), PERHAPS_ERR_IO);
    expect(errno == EIO);
    expect_error(perhaps_sync(f), PERHAPS_ERR_IO);
    expect_error(perhaps_checkpoint(f), PERHAPS_ERR_IO);
    perhaps_free(f);
    const struct perhaps_open_options to_write = { .mode = PERHAPS_MODE_JOURNAL };
    f = open_file(path.text, &to_write);
    fill(f, &keys);
    expect_success(perhaps_sync(f));
    perhaps_free(f);
}
