/* processes_test.c - proves that several processes can add to one mapped file at once: each of
 * them finds what any of them has added, even if one was killed; and when the last one has
 * closed the file, it has the bytes that one process would have saved.
 *
 * It fails when a key is lost that was acknowledged, when the checksums are missing or wrong at
 * the end, and when a process that should not write changes the file. */
#include "support.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SHARE /* of a child; with few keys most files are small (doc/FORMAT.md) */
#define SHARE (SANITIZED ? 3000 : 30000)
#endif
enum { CHILDREN = 3, KEYS = CHILDREN * SHARE, BLOCK = 100 };

/* A little more than all keys: a process that is killed may have counted a block that it did
 * not add. */
enum { CAPACITY = KEYS + CHILDREN * BLOCK };

/* Saves an empty filter with room for all keys, and returns its path. */
static struct path new_file(const struct perhaps_kind *kind)
{
    struct path path = temp_path("processes");
    scoped_filter *f = make_filter(kind, CAPACITY, 0.01, test_seed());
    expect_success(perhaps_save(f, path.text));
    return path;
}

static struct perhaps_keys all_keys(void)
{
    return make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
}

/* Returns the first (0) or second (1) half of the keys. */
static struct perhaps_keys half_of(const struct perhaps_keys *keys, size_t number)
{
    return some_keys(keys, number * (keys->count / 2), keys->count / 2);
}

static void expect_verdict(const struct path *path, int wanted)
{
    struct perhaps_verdict verdict;
    scoped_filter *f = open_file(path->text, NULL);
    expect_error(perhaps_verify(f, &verdict), wanted);
}

/* Checks that the checksums are right and that the file holds these keys and nothing else.
 * The count of keys may differ a little: it depends on the order of the adds, a merge estimates
 * it, and a process that was killed may have counted keys that it did not add. */
static void expect_whole(const struct path *path, const struct perhaps_kind *kind,
                         const struct perhaps_keys *keys)
{
    scoped_filter *alone = make_filter(kind, CAPACITY, 0.01, test_seed());
    scoped_filter *mapped = open_file(path->text, NULL);
    scoped_filter *loaded = open_file(path->text, &load_it);
    struct perhaps_verdict verdict;
    fill(alone, keys);
    expect_success(perhaps_verify(mapped, &verdict));
    expect(perhaps_equal(mapped, alone) && perhaps_equal(loaded, alone));
    expect_same_counters(mapped, loaded);
    double keys_in = (double)stats_of(mapped).keys, wanted = (double)stats_of(alone).keys;
    scene("%s: %g keys, not %g", kind->name, keys_in, wanted);
    expect(fabs(keys_in - wanted) <= 1 + 0.05 * wanted);
    expect(stats_of(mapped).mapped && !stats_of(mapped).shared);
}

static int wait_for(pid_t pid)
{
    int status;
    expect(waitpid(pid, &status, 0) == pid);
    return status;
}

/* ---- In one process ---------------------------------------------------------------------- */

/* Every call for a filter in memory works on a filter in place. */
TEST_EACH(test_in_place, shares)
{
    struct path path = new_file(kind), copy_path = temp_path("copy");
    scoped_keys keys = all_keys();
    struct perhaps_keys half = half_of(&keys, 0), rest = half_of(&keys, 1);
    perhaps_filter *f = open_file(path.text, &in_place);
    fill(f, &half);
    expect_all_found(f, &half);
    scoped_filter *copy = clone_of(f);
    expect(perhaps_equal(f, copy) && !stats_of(copy).mapped);
    expect_same_counters(f, copy);
    fill(copy, &rest);
    expect(stats_of(f).keys < stats_of(copy).keys && !perhaps_equal(f, copy));
    expect_success(perhaps_save(f, copy_path.text));
    expect_whole(&copy_path, kind, &half);
    expect_success(perhaps_clear(f));
    expect(stats_of(f).keys == 0 && perhaps_contains_many(f, &keys, NULL) == 0);
    bool was_present = true;
    for (size_t i = 0; i < keys.count; i++)
        expect_success(perhaps_add_unless_present(f, key_at(&keys, i), keys.key_nbytes,
                                                  i < 10 ? &was_present : NULL));
    expect(!was_present);
    expect_success(perhaps_sync(f));
    perhaps_free(f);
    expect_whole(&path, kind, &keys);
}

static bool shares_and_merges(const struct perhaps_kind *kind)
{
    return shares(kind) && merges(kind);
}

/* A merge into a file in place reaches those who have the file mapped. */
TEST_EACH(test_merge, shares_and_merges)
{
    scoped_keys keys = all_keys();
    struct perhaps_keys half = half_of(&keys, 0), rest = half_of(&keys, 1);
    struct path path = new_file(kind);
    perhaps_filter *f = open_file(path.text, &in_place);
    scoped_filter *reader = open_file(path.text, NULL);
    scoped_filter *other = make_filter(kind, CAPACITY, 0.01, test_seed());
    fill(f, &half);
    fill(other, &rest);
    expect_success(perhaps_merge(f, other));
    expect_all_found(f, &keys);
    expect_all_found(reader, &keys);
    perhaps_free(f);
    expect_whole(&path, kind, &keys);
}

/* One process opens the file twice.  A lock that belongs to the process as a whole would be
 * lost when the first of the two is closed, and the file would be taken for closed. */
TEST_EACH(test_twice, shares)
{
    struct path path = new_file(kind);
    scoped_keys keys = all_keys();
    scoped_filter *reader = open_file(path.text, NULL);
    perhaps_filter *first = open_file(path.text, &in_place),
                   *second = open_file(path.text, &in_place);
    for (size_t at = 0; at < KEYS / 2; at += BLOCK) {
        struct perhaps_keys some = some_keys(&keys, at, BLOCK);
        fill(at / BLOCK % 2 ? first : second, &some);
        expect_all_found(first, &some);
        expect_all_found(second, &some);
        expect_all_found(reader, &some);
    }
    perhaps_free(first);
    expect_verdict(&path, PERHAPS_ERR_UNSUPPORTED);
    struct perhaps_keys rest = half_of(&keys, 1);
    fill(second, &rest);
    expect_verdict(&path, PERHAPS_ERR_UNSUPPORTED);
    perhaps_filter *third = open_file(path.text, &in_place);
    perhaps_free(second);
    expect_verdict(&path, PERHAPS_ERR_UNSUPPORTED);
    expect_all_found(third, &keys);
    perhaps_free(third);
    expect_all_found(reader, &keys);
    expect_whole(&path, kind, &keys);
}

/* A save replaces the file.  A process that has the old file open goes on with it, and must not
 * change the new file when it closes the old one. */
TEST_EACH(test_replaced, shares)
{
    scoped_keys keys = all_keys();
    struct perhaps_keys half = half_of(&keys, 0);
    struct path path = new_file(kind);
    perhaps_filter *f = open_file(path.text, &in_place);
    scoped_filter *other = full_filter(kind, CAPACITY, 0.01, &half);
    expect_success(perhaps_save(other, path.text));
    struct perhaps_keys rest = half_of(&keys, 1);
    fill(f, &rest);
    expect_all_found(f, &rest);
    perhaps_free(f);
    expect_whole(&path, kind, &half);
}

/* Opens the file in place.  Returns 0 or the errno.  The alarm ends it if another process holds
 * the lock of the file for ever. */
static int open_in_place(void *context)
{
    const struct path *path = context;
    alarm(60);
    return try_open(path->text, &in_place) ? errno : 0;
}

/* A forked child inherits the open file without being one of its writers.  Whether the child
 * frees the filter or keeps it, the parent can close the file and others can open it. */
static void check_forked(const struct perhaps_kind *kind, bool release)
{
    struct path path = new_file(kind);
    scoped_keys keys = all_keys();
    int ends[2];
    perhaps_filter *f = open_file(path.text, &in_place);
    expect(!pipe(ends));
    pid_t pid = fork();
    expect(pid >= 0);
    if (!pid) {
        char end;
        close(ends[1]);
        if (release)
            perhaps_free(f);
        else if (read(ends[0], &end, 1) < 0) /* returns when the parent has closed the pipe */
            _exit(1);
        _exit(0);
    }
    close(ends[0]);
    if (release)
        expect(wait_for(pid) == 0);
    fill(f, &keys);
    expect_verdict(&path, PERHAPS_ERR_UNSUPPORTED);
    perhaps_free(f);
    expect_whole(&path, kind, &keys);
    expect(run_in_child(open_in_place, &path, false) == 0);
    expect_whole(&path, kind, &keys);
    close(ends[1]);
    if (!release)
        expect(wait_for(pid) == 0);
}

TEST_EACH(test_forked, shares)
{
    check_forked(kind, false);
    check_forked(kind, true);
}

/* A full file refuses keys, and holds those that it accepted.  Its bits decide when it is full,
 * since its count may be wrong: so it may take a few more than a filter in memory. */
TEST_EACH(test_full, shares)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2 * KEYS);
    struct path path = new_file(kind);
    perhaps_filter *f = open_file(path.text, &in_place);
    size_t done;
    expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_FULL);
    expect(done >= CAPACITY && stats_of(f).failed_adds == 1);
    perhaps_free(f);
    struct perhaps_keys in = some_keys(&keys, 0, done);
    expect_verdict(&path, 0);
    f = open_file(path.text, &in_place);
    expect_all_found(f, &in);
    expect(stats_of(f).fpr_now <= 0.01 * 1.05); /* it looks at a sample */
    expect_error(perhaps_add_many(f, &keys, NULL), PERHAPS_ERR_FULL);
    perhaps_free(f);
}

/* ---- Several processes ------------------------------------------------------------------- */

/* What a child sends through a pipe after each block. */
struct acknowledged {
    uint32_t child;
    uint32_t count; /* keys of its share that are in, from the beginning */
};

struct half {
    perhaps_filter *f;
    struct perhaps_keys keys;
    int error;
};

static void *add_half(void *context)
{
    struct half *h = context;
    h->error = perhaps_add_many(h->f, &h->keys, NULL);
    return NULL;
}

/* Adds a block of keys: by two threads (way 0), one key after the other (1), or all at once. */
static int add_block(perhaps_filter *f, const struct perhaps_keys *keys, unsigned way)
{
    struct half half = { .f = f, .keys = half_of(keys, 0) };
    struct perhaps_keys rest = half_of(keys, 1);
    pthread_t thread;
    int error = 0;
    switch (way) {
    case 0:
        if (pthread_create(&thread, NULL, add_half, &half))
            return 1;
        error = perhaps_add_many(f, &rest, NULL);
        pthread_join(thread, NULL);
        return error | half.error;
    case 1:
        for (size_t i = 0; i < BLOCK && !error; i++)
            error = perhaps_add(f, key_at(keys, i), keys->key_nbytes);
        return error;
    default:
        return perhaps_add_many(f, keys, NULL);
    }
}

/* The work of a child: adds its share, and tells after each block how far it is. */
static void be_child(const char *path, struct perhaps_keys share, uint32_t number, int pipe)
{
    perhaps_filter *f;
    if (perhaps_open(path, &in_place, &f))
        _exit(1);
    for (uint32_t at = 0; at < SHARE; at += BLOCK) {
        struct perhaps_keys block = some_keys(&share, at, BLOCK);
        struct acknowledged message = { .child = number, .count = at + BLOCK };
        if (add_block(f, &block, at / BLOCK % 16 == 0 ? 0 : (number + at / BLOCK) % 2 + 1))
            _exit(2);
        if (write(pipe, &message, sizeof message) != sizeof message)
            _exit(3);
        if (at / BLOCK % 64 == 0 && perhaps_sync(f))
            _exit(4);
    }
    perhaps_free(f);
    _exit(0);
}

/* Starts all children.  Returns the end of the pipe from which their messages come. */
static int start_children(const struct path *path, const struct perhaps_keys *keys,
                          pid_t pid[CHILDREN])
{
    int ends[2];
    expect(!pipe(ends));
    for (uint32_t c = 0; c < CHILDREN; c++) {
        pid[c] = fork();
        expect(pid[c] >= 0);
        if (pid[c])
            continue;
        close(ends[0]);
        be_child(path->text, some_keys(keys, c * SHARE, SHARE), c, ends[1]);
    }
    close(ends[1]);
    return ends[0];
}

static void expect_all_ended(const pid_t pid[CHILDREN])
{
    for (uint32_t c = 0; c < CHILDREN; c++) {
        int status = wait_for(pid[c]);
        scene("child %u: status %d", c, status);
        expect(status == 0);
    }
}

/* Checks that keys 'from' to 'to' of a child's share are found. */
static void expect_share_found(const perhaps_filter *f, const struct perhaps_keys *keys,
                               uint32_t child, uint32_t from, uint32_t to)
{
    struct perhaps_keys some = some_keys(keys, child * SHARE + from, to - from);
    scene("child %u, keys %u to %u", child, from, to);
    expect_all_found(f, &some);
}

/* Each child adds its share while the parent asks for what they have acknowledged.  The child
 * of the number 'killed', if there is one, is killed after a third of its share. */
static void check_children(const struct perhaps_kind *kind, uint32_t killed)
{
    struct path path = new_file(kind);
    scoped_keys keys = all_keys();
    struct acknowledged message;
    uint32_t count[CHILDREN] = { 0 };
    pid_t pid[CHILDREN];
    scoped_filter *reader = open_file(path.text, NULL);
    int from = start_children(&path, &keys, pid);
    while (read(from, &message, sizeof message) == sizeof message) {
        uint32_t c = message.child;
        expect(c < CHILDREN && message.count <= SHARE && message.count > count[c]);
        expect_share_found(reader, &keys, c, count[c], message.count);
        count[c] = message.count;
        if (c == killed && message.count >= SHARE / 3)
            kill(pid[c], SIGKILL);
    }
    close(from);
    for (uint32_t c = 0; c < CHILDREN; c++) {
        int status = wait_for(pid[c]);
        scene("%s, child %u: status %d", kind->name, c, status);
        if (c == killed && WIFSIGNALED(status))
            expect(WTERMSIG(status) == SIGKILL && count[c] >= SHARE / 3);
        else
            expect(WIFEXITED(status) && WEXITSTATUS(status) == 0 && count[c] == SHARE);
        expect_share_found(reader, &keys, c, 0, count[c]);
    }
    /* Half of the last block of the killed child may be in; adding it again completes it. */
    perhaps_filter *f = open_file(path.text, &in_place);
    for (uint32_t c = 0; c < CHILDREN; c++)
        expect_share_found(f, &keys, c, 0, count[c]);
    if (killed < CHILDREN) {
        struct perhaps_keys rest =
            some_keys(&keys, killed * SHARE + count[killed], SHARE - count[killed]);
        fill(f, &rest);
    }
    perhaps_free(f);
    expect_whole(&path, kind, &keys);
}

/* Each child is killed once, and once none is. */
TEST_EACH(test_children, shares)
{
    for (uint32_t killed = 0; killed <= CHILDREN; killed++)
        check_children(kind, killed);
}

/* The child that closes the file last writes the checksums, and nobody opens it afterwards. */
TEST_EACH(test_last_one_closes, shares)
{
    scoped_keys keys = all_keys();
    struct path path = new_file(kind);
    pid_t pid[CHILDREN];
    int from = start_children(&path, &keys, pid);
    for (struct acknowledged m; read(from, &m, sizeof m) == sizeof m;)
        ;
    close(from);
    expect_all_ended(pid);
    expect_whole(&path, kind, &keys);
}

/* The work of a child that opens, adds a block and closes, over and over: so the last process
 * that closes the file is another one all the time. */
static void come_and_go(const struct path *path, const struct perhaps_keys *share)
{
    for (size_t at = 0; at < SHARE; at += BLOCK) {
        struct perhaps_keys some = some_keys(share, at, BLOCK);
        scoped_filter *f;
        int error = perhaps_open(path->text, &in_place, &f);
        if (error)
            _exit(-error);
        if (perhaps_add_many(f, &some, NULL) ||
            perhaps_contains_many(f, &some, NULL) != some.count)
            _exit(100);
    }
    _exit(0);
}

TEST_EACH(test_coming_and_going, shares)
{
    scoped_keys keys = all_keys();
    struct path path = new_file(kind);
    pid_t pid[CHILDREN];
    for (uint32_t c = 0; c < CHILDREN; c++) {
        struct perhaps_keys share = some_keys(&keys, c * SHARE, SHARE);
        pid[c] = fork();
        expect(pid[c] >= 0);
        if (!pid[c])
            come_and_go(&path, &share);
    }
    scoped_filter *mapped = open_file(path.text, NULL);
    for (unsigned times = 0; times < 200; times++) { /* others can open and verify it */
        struct perhaps_verdict verdict;
        perhaps_free(open_file(path.text, NULL));
        perhaps_free(open_file(path.text, &load_it));
        expect(perhaps_verify(mapped, &verdict) != PERHAPS_ERR_DAMAGED);
    }
    expect_all_ended(pid);
    expect_whole(&path, kind, &keys);
}

/* ---- Crashes ----------------------------------------------------------------------------- */

/* Makes a file to which a process added all keys before it died with the file open. */
static struct path crash(const struct perhaps_kind *kind, const struct perhaps_keys *keys)
{
    struct path path = new_file(kind);
    perhaps_filter *f;
    pid_t pid = fork();
    expect(pid >= 0);
    if (!pid) /* _exit() closes nothing properly, as SIGKILL does not */
        _exit(perhaps_open(path.text, &in_place, &f) || perhaps_add_many(f, keys, NULL));
    expect(wait_for(pid) == 0);
    return path;
}

/* After a crash the file has no checksums, but all keys; the next open in place writes them
 * when it is closed. */
TEST_EACH(test_crash, shares)
{
    scoped_keys keys = all_keys();
    struct path path = crash(kind, &keys);
    expect_verdict(&path, PERHAPS_ERR_UNSUPPORTED);
    scoped_filter *reader = open_file(path.text, NULL);
    expect_all_found(reader, &keys);
    scoped_filter *loaded = open_file(path.text, &load_it);
    expect_all_found(loaded, &keys);
    expect(perhaps_equal(reader, loaded));
    perhaps_filter *healer = open_file(path.text, &in_place);
    expect_all_found(healer, &keys);
    expect_verdict(&path, PERHAPS_ERR_UNSUPPORTED);
    perhaps_free(healer);
    expect_whole(&path, kind, &keys);
}

/* A file that a crash left can be saved and cloned like any other. */
TEST_EACH(test_use_after_crash, shares)
{
    scoped_keys keys = all_keys();
    struct path path = crash(kind, &keys);
    scoped_filter *reader = open_file(path.text, NULL);
    struct path other = temp_path("other");
    scoped_filter *copy = clone_of(reader);
    expect(perhaps_equal(copy, reader));
    expect_success(perhaps_save(reader, other.text));
    expect_whole(&other, kind, &keys);
    expect_success(perhaps_save(copy, path.text));
    expect_whole(&path, kind, &keys);
}
