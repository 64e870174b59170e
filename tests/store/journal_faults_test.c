/* journal_faults_test.c - proves that a live file keeps its promises when system calls fail,
 * do less than they were asked or are interrupted: whichever call it is, an add that returned
 * an error has changed nothing, what was acknowledged is found again, and behind a sync that
 * failed nothing is acknowledged. */
#include "failing_calls.h"
#include "live_files.h"
#include "support.h"
#include <perhaps_fast.h>
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- A life with one fault --------------------------------------------------------------- */

enum { DIGESTS_MOST = 64 };

/* A filter that is opened, changed, synced and closed, while calls may fail. */
struct life {
    struct path file;
    struct perhaps_open_options how;
    struct perhaps_keys keys;
    struct rng rng;
    perhaps_filter *f;
    uint8_t digest[DIGESTS_MOST][16]; /* behind each change that succeeded */
    size_t count;
    size_t safe;       /* the last one that was acknowledged */
    bool is_broken;    /* a sync has failed */
    unsigned failures; /* of calls of the library */

    struct failing_allocator *memory; /* NULL: memory does not fail */
};

static void note(struct life *life)
{
    expect(life->count < DIGESTS_MOST);
    perhaps_digest(life->f, life->digest[life->count++]);
}

static bool is_last(const struct life *life)
{
    uint8_t digest[16];
    perhaps_digest(life->f, digest);
    return !memcmp(digest, life->digest[life->count - 1], sizeof digest);
}

/* Returns whether the filter is as it was behind the last change that was acknowledged, or a
 * later one. */
static bool is_since_safe(const struct life *life)
{
    uint8_t digest[16];
    size_t i = life->safe;
    perhaps_digest(life->f, digest);
    while (i < life->count && memcmp(digest, life->digest[i], sizeof digest) != 0)
        i++;
    return i < life->count;
}

/* A call of the library fails only if one of the system did, or of the allocator. */
static void expect_fault(struct life *life, int error)
{
    if (life->memory)
        expect(error == PERHAPS_ERR_MEMORY && life->memory->calls >= life->memory->fail_at);
    else
        expect(error == PERHAPS_ERR_IO && (has_failed() || life->is_broken));
    life->failures++;
}

static void add(struct life *life)
{
    size_t n = 1 + rng_below(&life->rng, 100);
    struct perhaps_keys some =
        perhaps_keys_slice(&life->keys, rng_below(&life->rng, life->keys.count - n), n);
    int error = perhaps_add_many(life->f, &some, NULL);
    if (!error || error == PERHAPS_ERR_COPIES || error == PERHAPS_ERR_FULL) {
        note(life); /* those before the key that the kind refused were added */
        return;
    }
    expect_fault(life, error);
    expect(is_last(life));
}

static void acknowledge(struct life *life)
{
    expect(!life->is_broken);
    life->safe = life->count - 1;
}

static void sync_life(struct life *life)
{
    int error = perhaps_sync(life->f);
    if (!error) {
        acknowledge(life);
        return;
    }
    expect_fault(life, error);
    life->is_broken = true;
}

/* One that fails does not break the filter: file and journal are as they were, or as good. */
static void save_life(struct life *life)
{
    int error = perhaps_checkpoint(life->f);
    if (error)
        expect_fault(life, error);
    else
        acknowledge(life);
}

static void do_all(struct life *life)
{
    for (int i = 0; i < 3; i++) {
        add(life);
        add(life);
        sync_life(life);
        add(life);
        if (i == 1)
            save_life(life);
        add(life);
        sync_life(life);
    }
    add(life);
    expect(is_last(life));
}

/* Opens the file without faults, and expects what was acknowledged at least. */
static void expect_kept(struct life *life, const struct perhaps_open_options *how)
{
    scoped_filter *f = open_file(life->file.text, how);
    struct life found = *life;
    found.f = f;
    expect(is_since_safe(&found));
}

static struct life begin(const struct perhaps_kind *kind, const struct perhaps_keys *keys)
{
    struct path folder = temp_path("faults");
    struct life life = { .file = path_below(folder, "F"),
                         .how = to_write,
                         .keys = *keys,
                         .rng = rng_for("journal faults") };
    scoped_filter *plain = make_filter(kind, 4000, 0.01, test_seed());
    mkdir(folder.text, 0755);
    unlink(life.file.text);
    unlink(journal_of(life.file).text);
    expect_success(perhaps_save(plain, life.file.text));
    life.f = plain;
    note(&life);
    life.f = NULL;
    return life;
}

/* Opens the filter, which makes it live; and after some changes opens it once more. */
static void live(struct life *life)
{
    for (int times = 0; times < 2; times++) {
        int error = perhaps_open(life->file.text, &life->how, &life->f);
        if (error) {
            expect_fault(life, error);
            continue;
        }
        if (times && !is_last(life)) { /* what was not acknowledged may be there or not */
            expect((has_failed() || life->memory) && is_since_safe(life));
            note(life);
        }
        life->is_broken = false;
        do_all(life);
        perhaps_free(life->f);
    }
    let_all_work();
}

/* Lives with a call that fails once, or from then on, after 'after' of them have worked.
 * Returns whether there were so many. */
static bool live_with(const struct perhaps_kind *kind, const struct perhaps_keys *keys,
                      const char *call, int reason, unsigned after, bool once, bool background)
{
    struct life life = begin(kind, keys);
    unsigned before = open_files();
    scene("%s, %s fails after %u: %s, %s, %s", kind->name, call, after, strerror(reason),
          once ? "once" : "from then on", background ? "background" : "one thread");
    life.how.journal_nbytes = background ? 8192 : 0;
    (once ? let_fail_once : let_fail)(call, reason, after);
    live(&life);
    bool met = has_failed();
    expect(open_files() == before && count_beside(life.file.text) <= 2);
    expect_kept(&life, &load_it);
    expect_kept(&life, &to_write);
    expect_kept(&life, &map_it);
    return met;
}

/* ---- Every call -------------------------------------------------------------------------- */

static const char *const calls[] = {
    "write",  "pwrite",    "fsync",         "fdatasync",  "rename",        "ftruncate",
    "linkat", "fallocate", "open",          "create",     "read",          "pread",
    "flock",  "fchmod",    "open nameless", "getentropy", "pthread_create"
};

static void fail_each_call(const struct perhaps_kind *kind, bool background)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    unsigned lives = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int once = 0; once < 2; once++)
            for (unsigned after = 0; live_with(kind, &keys, calls[i], after % 2 ? EIO : ENOSPC,
                                               after, once, background);
                 after++)
                lives++;
    printf("%s: %u lives with a fault\n", kind->name, lives);
}

TEST(test_each_call)
{
    fail_each_call(perhaps_kind_at(0), false);
}

TEST(test_each_call_in_the_background)
{
    fail_each_call(perhaps_kind_at(0), true);
}

/* For the other kinds, some of the calls. */
TEST_EACH(test_each_kind, in_registry)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    static const char *const some[] = { "pwrite", "fdatasync", "fsync" };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (unsigned after = 0;
             live_with(kind, &keys, some[i], ENOSPC, after, after % 2, after % 3 == 0);)
            after += every_case() ? 1 : 4;
}

/* One allocation fails.  No sync needs memory. */
TEST_EACH(test_no_memory, in_registry)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    struct failing_allocator failing = { 0 };
    const struct perhaps_allocator allocator = allocator_that_fails(&failing);
    for (uint64_t at = 1; failing.calls >= failing.fail_at;
         at += every_case() ? 1 : 1 + at / 4) {
        struct life life = begin(kind, &keys);
        scene("%s, allocation %u fails", kind->name, (unsigned)at);
        failing = (struct failing_allocator){ .fail_at = at };
        life.memory = &failing;
        life.how.allocator = &allocator;
        live(&life);
        expect(!life.is_broken && !failing.live);
        expect_kept(&life, &load_it);
        expect_kept(&life, &to_write);
    }
}

/* ---- Calls that do less ------------------------------------------------------------------ */

static void expect_lives(struct life *life)
{
    live(life);
    expect(!life->failures && life->count > 10);
    life->safe = life->count - 1; /* it was closed */
    expect_kept(life, &load_it);
    expect_kept(life, &map_it);
}

/* Calls that were interrupted are made again. */
TEST(test_interrupted)
{
    static const char *const some[] = { "write", "pwrite", "read",      "pread",    "fallocate",
                                        "flock", "fsync",  "fdatasync", "ftruncate" };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (unsigned after = 0, met = 1; met; after++) {
            struct life life = begin(perhaps_kind_at(0), &keys);
            scene("%s is interrupted after %u", some[i], after);
            let_fail_once(some[i], EINTR, after);
            expect_lives(&life);
            met = has_failed();
        }
}

TEST(test_small_steps)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    const size_t sizes[] = { 7, 100, 513 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct life life = begin(perhaps_kind_at(0), &keys);
        scene("%zu bytes at once", sizes[i]);
        transfer_at_once(sizes[i]);
        expect_lives(&life);
    }
}

/* A write that stops in the middle of a frame leaves a torn one. */
TEST(test_torn_writes)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    for (unsigned after = 0, met = 1; met; after += every_case() ? 1 : 3) {
        transfer_at_once(300);
        met = live_with(perhaps_kind_at(0), &keys, "pwrite", ENOSPC, after, true, false);
    }
}

/* A file system that cannot reserve room. */
TEST(test_no_reserving)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    const int reasons[] = { EOPNOTSUPP, ENOSYS, EINVAL };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        struct life life = begin(perhaps_kind_at(0), &keys);
        let_fail("fallocate", reasons[i], 0);
        expect_lives(&life);
    }
}

/* ---- A full disk ------------------------------------------------------------------------- */

/* Adds fail and change nothing.  What was added before can still be synced, and when there is
 * room again all goes on.  Only Linux reserves room before it is written to. */
TEST_EACH(test_full_disk, in_registry)
{
    if (!IS_LINUX)
        skip();
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    struct life life = begin(kind, &keys);
    struct perhaps_keys one = perhaps_keys_slice(&keys, 0, 1);
    life.f = open_file(life.file.text, &to_write);
    add(&life);
    let_fail("fallocate", ENOSPC, 0);
    size_t before = life.count;
    while (life.count < DIGESTS_MOST / 2 && !life.failures) {
        add(&life);
        sync_life(&life); /* room was reserved ahead, which is used up */
    }
    for (int i = 0; i < 100000 && !life.failures; i++) {
        perhaps_clear(life.f); /* a record of its own, whatever the kind */
        if (perhaps_add_many(life.f, &one, NULL)) {
            expect(errno == ENOSPC);
            life.failures++;
        }
        if (perhaps_sync(life.f))
            break;
    }
    expect(life.failures && before < life.count);
    life.count = 0;
    note(&life);
    add(&life);
    expect(life.count == 1); /* it failed */
    expect_success(perhaps_sync(life.f));
    let_all_work();
    life.is_broken = false;
    add(&life);
    expect(life.count == 2);
    sync_life(&life);
    expect_kept(&life, &load_it);
    perhaps_free(life.f);
    expect_kept(&life, &load_it);
}

/* ---- Syncs that fail --------------------------------------------------------------------- */

/* A sync that failed once: the system would let a second one succeed. */
TEST(test_failed_sync)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    static const char *const some[] = { "fdatasync", "pwrite" };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        struct life life = begin(perhaps_kind_at(0), &keys);
        life.f = open_file(life.file.text, &to_write);
        add(&life);
        sync_life(&life);
        add(&life);
        let_fail_once(some[i], EDQUOT, 0);
        for (int times = 0; times < 3; times++) {
            errno = 0;
            expect_error(perhaps_sync(life.f), PERHAPS_ERR_IO);
            expect(errno == EDQUOT);
            expect_error(perhaps_checkpoint(life.f), PERHAPS_ERR_IO);
            expect(errno == EDQUOT);
            expect_error(perhaps_clear(life.f), PERHAPS_ERR_IO);
            expect(errno == EDQUOT && is_last(&life));
        }
        struct perhaps_journal told;
        expect_success(perhaps_journal_of(life.f, &told));
        expect(told.synced < told.last);
        perhaps_free(life.f);
        expect_kept(&life, &load_it);
    }
}

static ino_t inode_of(struct path path)
{
    struct stat st;
    expect(!stat(path.text, &st));
    return st.st_ino;
}

/* A journal that was closed cannot be synced, and no memory is there to copy it: then the next
 * one to open it has to copy it. */
TEST(test_two_faults)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2000);
    struct failing_allocator failing = { 0 };
    const struct perhaps_allocator allocator = allocator_that_fails(&failing);
    const struct perhaps_open_options how = { .mode = PERHAPS_MODE_JOURNAL,
                                              .allocator = &allocator };
    unsigned met = 0;
    for (uint64_t at = 1; failing.calls >= failing.fail_at; at++) {
        struct life life = begin(perhaps_kind_at(0), &keys);
        life.f = open_file(life.file.text, &to_write);
        add(&life);
        sync_life(&life);
        perhaps_free(life.f);
        const ino_t before = inode_of(journal_of(life.file));
        scene("allocation %u fails", (unsigned)at);
        failing = (struct failing_allocator){ .fail_at = at };
        let_fail_once("fdatasync", EIO, 0);
        int error = perhaps_open(life.file.text, &how, &life.f);
        const bool both = error && has_failed();
        let_all_work();
        perhaps_free(life.f);
        expect_kept(&life, &load_it);
        expect_kept(&life, &to_write);
        met += both;
        expect(!both || inode_of(journal_of(life.file)) != before);
    }
    expect(met);
}
