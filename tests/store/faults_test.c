/* faults_test.c - proves that when a system call fails, the library reports its errno, keeps
 * the old file, and leaves no draft and no open file behind; and that a call that did less than
 * it was asked, or was interrupted, is made again. */
#include "failing_calls.h"
#include "support.h"
#include <perhaps.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filter/filter.h"

/* ---- A folder with an old filter in it --------------------------------------------------- */

struct stage {
    struct path path;
    perhaps_filter *old;   /* was saved at 'path' */
    perhaps_filter *fresh; /* is to be saved there */
};

static struct stage make_stage(const char *name)
{
    struct path folder = temp_path(name);
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 3000);
    struct stage s = { .old = make_filter(perhaps_kind_at(0), 3000, 0.01, 1),
                       .fresh = make_filter(perhaps_kind_at(0), 3000, 0.01, 2) };
    expect(!mkdir(folder.text, 0777));
    s.path = path_below(folder, "filter");
    fill(s.old, &keys);
    fill(s.fresh, &keys);
    expect_success(perhaps_save(s.old, s.path.text));
    return s;
}

#define scoped_stage __attribute__((cleanup(free_stage))) struct stage

static void free_stage(struct stage *s)
{
    perhaps_free(s->old);
    perhaps_free(s->fresh);
}

static void expect_saved(const struct stage *s, const perhaps_filter *wanted)
{
    scoped_filter *f = open_file(s->path.text, &load_it); /* checks every page */
    expect(perhaps_equal(f, wanted) && count_beside(s->path.text) == 1);
}

static int read_from(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    return perhaps_body_read(context, offset, buffer, nbytes);
}

/* Saves the bytes of a filter by perhaps_layout_save(), as if the caller kept them. */
static int save_by_layout(const perhaps_filter *f, const char *path)
{
    perhaps_layout *layout = layout_of(f);
    int error = perhaps_layout_save(layout, f->counters->keys, read_from, (void *)f, path);
    int saved = errno;
    perhaps_layout_free(layout);
    errno = saved;
    return error;
}

/* The save to test: perhaps_save(), or save_by_layout(), which must fail in the same ways. */
static int (*save)(const perhaps_filter *f, const char *path) = perhaps_save;

/* Checks that a save whose call fails returns that errno, keeps the old file, and closes all
 * its files. */
static void expect_save_fails(const struct stage *s, const char *call, int reason,
                              unsigned after)
{
    scene("%s fails after %u", call, after);
    unsigned before = open_files();
    let_fail(call, reason, after);
    int error = save(s->fresh, s->path.text), got = errno;
    let_all_work();
    expect_error(error, PERHAPS_ERR_IO);
    expect(got == reason && open_files() == before);
    expect_saved(s, s->old);
}

/* ---- Save -------------------------------------------------------------------------------- */

static void fail_each_step(const char *name)
{
    scoped_stage s = make_stage(name);
    for (unsigned after = 0; after < 3; after++) {
        transfer_at_once(777);
        expect_save_fails(&s, "write", ENOSPC, after);
        transfer_at_once(777);
        expect_save_fails(&s, "write", EIO, after);
    }
    expect_save_fails(&s, CALL_OF_DRAFTS, EACCES, 0);
    expect_save_fails(&s, CALL_OF_DRAFTS, EMFILE, 0);
    expect_save_fails(&s, "fsync", EIO, 0);
    expect_save_fails(&s, "fchmod", EIO, 0);
    expect_save_fails(&s, "fchown", EIO, 0);
    if (IS_LINUX)
        expect_save_fails(&s, "linkat", ENOENT, 0);
    expect_save_fails(&s, IS_LINUX ? "linkat" : "create", EEXIST, 0); /* all names are taken */
    expect_save_fails(&s, "rename", EIO, 0);
    expect_save_fails(&s, "getentropy", ENOSYS, 0);
    expect_success(save(s.fresh, s.path.text));
    expect_saved(&s, s.fresh);
}

TEST(test_failing_save)
{
    fail_each_step("failing");
    save = save_by_layout;
    fail_each_step("failing, of a layout");
    save = perhaps_save;
}

/* perhaps_save_new() gives the file its name by a link, or by a rename where the file system
 * has no links.  It never replaces a file. */
TEST(test_new_names)
{
    static const char *const missing[] = { "none", "open nameless", "links" };
    scoped_stage s = make_stage("new names");
    struct path fresh = s.path;
    fresh.text[strlen(fresh.text) - 1] = '1';
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        scene("%s is missing", missing[i]);
        let_fail(missing[i], EOPNOTSUPP, 0);
        expect_success(perhaps_save_new(s.fresh, fresh.text));
        expect(count_beside(fresh.text) == 2);
        expect_error(perhaps_save_new(s.old, fresh.text), PERHAPS_ERR_IO);
        expect(errno == EEXIST && count_beside(fresh.text) == 2 && !unlink(fresh.text));
    }
    let_fail("linkat", ENOSPC, 0);
    expect_error(perhaps_save_new(s.fresh, fresh.text), PERHAPS_ERR_IO);
    expect(errno == ENOSPC && count_beside(fresh.text) == 1);
    let_all_work();
}

/* If only the fsync() of the folder fails, the new file is in place, but might not survive a
 * crash: so the save reports an error. */
TEST(test_unsynced_folder)
{
    scoped_stage s = make_stage("unsynced");
    let_fail("fsync", EIO, 1);
    expect_error(save(s.fresh, s.path.text), PERHAPS_ERR_IO);
    expect(errno == EIO);
    let_all_work();
    expect_saved(&s, s.fresh);
}

/* Only root may give a file to another owner.  That this fails is no error of the save. */
TEST(test_not_the_owner)
{
    scoped_stage s = make_stage("owner");
    let_fail("fchown", EPERM, 0);
    expect_success(save(s.fresh, s.path.text));
    let_all_work();
    expect_saved(&s, s.fresh);
}

/* If the name of the draft is taken, another name is tried. */
TEST(test_taken_names)
{
    scoped_stage s = make_stage("taken");
    let_fail_once("linkat", EEXIST, 0);
    expect_success(save(s.fresh, s.path.text));
    let_all_work();
    expect_saved(&s, s.fresh);
}

/* On a file system without nameless files the draft has a name from the beginning.  The new
 * file must then still get the mode that umask allows. */
static void save_without_nameless(const struct stage *s, int reason)
{
    struct stat st;
    struct path first = s->path;
    first.text[strlen(first.text) - 1] = '1';
    scene("no nameless files: %s", strerror(reason));
    let_fail("open nameless", reason, 0);
    expect_success(save(s->fresh, s->path.text));
    expect_saved(s, s->fresh);
    mode_t usual = umask(027);
    expect_success(save(s->fresh, first.text));
    umask(usual);
    expect(!stat(first.text, &st) && (st.st_mode & 0777) == 0640);
    expect(count_beside(first.text) == 2 && !unlink(first.text));
    let_all_work();
    expect_success(save(s->old, s->path.text));
}

TEST(test_no_nameless_files)
{
    scoped_stage s = make_stage("named");
    save_without_nameless(&s, EOPNOTSUPP);
    save_without_nameless(&s, EISDIR);
}

/* A draft with a name must be removed when the save fails.  3000 bytes hold the header, but not
 * the body. */
static int save_named_and_fail(void *context)
{
    struct stage *s = context;
    struct rlimit limit = { 3000, 3000 };
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit))
        return CANNOT_TRY;
    let_fail("open nameless", EOPNOTSUPP, 0);
    return save(s->fresh, s->path.text) == PERHAPS_ERR_IO && errno == EFBIG ? 0 : 1;
}

TEST(test_named_draft_is_removed)
{
    scoped_stage s = make_stage("removed");
    expect(!run_in_child(save_named_and_fail, &s, false));
    expect_saved(&s, s.old);
}

/* ---- Less than was asked ----------------------------------------------------------------- */

static void save_in_small_steps(const char *name)
{
    scoped_stage s = make_stage(name);
    const size_t sizes[] = { 1, 777, 4096 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const perhaps_filter *f = i % 2 ? s.old : s.fresh;
        transfer_at_once(sizes[i]);
        for (unsigned after = 0; after < 5; after++) {
            scene("%zu bytes at once, interrupted after %u", sizes[i], after);
            let_fail_once("write", EINTR, after);
            expect_success(save(f, s.path.text));
            let_fail_once("fsync", EINTR, after);
            expect_success(save(f, s.path.text));
            let_fail_once("read", EINTR, after);
            expect_saved(&s, f);
        }
    }
    let_all_work();
}

TEST(test_short_and_interrupted)
{
    save_in_small_steps("short");
    save = save_by_layout;
    save_in_small_steps("short, of a layout");
    save = perhaps_save;
}

/* ---- Open and create --------------------------------------------------------------------- */

static void expect_open_fails(const struct stage *s, bool writable, const char *call,
                              int reason, unsigned after, int wanted)
{
    scene("open, %s fails after %u", call, after);
    unsigned before = open_files();
    let_fail(call, reason, after);
    int error = try_open(s->path.text, ways_to_open[writable]), got = errno;
    let_all_work();
    expect_error(error, wanted);
    expect(got == reason && open_files() == before);
}

TEST(test_failing_open)
{
    scoped_stage s = make_stage("open");
    expect_open_fails(&s, false, "open", EMFILE, 0, PERHAPS_ERR_IO);
    expect_open_fails(&s, false, "read", EIO, 0, PERHAPS_ERR_IO);
    expect_open_fails(&s, false, "mmap", EACCES, 0, PERHAPS_ERR_IO);
    expect_open_fails(&s, false, "mmap", ENOMEM, 0, PERHAPS_ERR_MEMORY);
    for (unsigned part = 0; part < 3; part++) /* header, body, table */
        expect_open_fails(&s, true, "read", EIO, part, PERHAPS_ERR_IO);
}

/* If blocks cannot be reserved for a file that is written in place, that is an error if there
 * is no room, and no error if the file system cannot reserve blocks at all. */
TEST(test_reserving_blocks)
{
    const int harmless[] = { EOPNOTSUPP, EINVAL, ENOSYS }, errors[] = { ENOSPC, EDQUOT, EIO };
    scoped_stage s = make_stage("reserve");
    for (unsigned i = 0; i < 3; i++) {
        scene("errno %d, %d", harmless[i], errors[i]);
        let_fail("fallocate", harmless[i], 0);
        expect_success(try_open(s.path.text, &in_place));
        unsigned before = open_files();
        let_fail("fallocate", errors[i], 0);
        expect_error(try_open(s.path.text, &in_place), PERHAPS_ERR_IO);
        expect(errno == errors[i]);
        let_all_work();
        expect(open_files() == before);
    }
    const char *const interrupted[] = { "fallocate", "fdatasync" };
    for (size_t i = 0; i < sizeof interrupted / sizeof *interrupted; i++) {
        let_fail_once(interrupted[i], EINTR, 0);
        expect_success(try_open(s.path.text, &in_place));
        expect(has_failed());
        let_all_work();
    }
}

/* A run of zeros is reserved and not written, where the file system can do that: the file has
 * the same bytes, and all its blocks. */
TEST(test_empty_filters)
{
    const int reasons[] = { 0, EOPNOTSUPP, EINTR };
    const uint64_t block_nbytes = 512;
    const struct perhaps_options options = { .capacity = 8000000,
                                             .fpr = 0.01,
                                             .kind = "blocked" };
    scoped_filter *f = make_with(&options);
    struct path path = temp_path("empty");
    for (unsigned keys = 0; keys < 2; keys++) {
        scoped_bytes wanted = { .nbytes = (size_t)perhaps_write_nbytes(f) };
        wanted.at = malloc(wanted.nbytes);
        expect_success(perhaps_to_bytes(f, wanted.at, wanted.nbytes));
        for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++) {
            struct stat st;
            scene("%u keys, errno %d", keys, reasons[i]);
            if (reasons[i])
                let_fail("fallocate", reasons[i], 0);
            expect_success(perhaps_save(f, path.text));
            expect(!reasons[i] || has_failed());
            let_all_work();
            scoped_bytes saved = read_file(path.text);
            expect_same_bytes(&saved, &wanted);
            expect(!stat(path.text, &st) &&
                   (uint64_t)st.st_blocks * block_nbytes >= wanted.nbytes);
        }
        expect_success(perhaps_add(f, "key", 3)); /* then one piece is not all zeros */
    }
}

TEST(test_no_entropy)
{
    for (unsigned hash = PERHAPS_HASH_XXH3; hash <= PERHAPS_HASH_SIP; hash++) {
        struct perhaps_options options = { .capacity = 10,
                                           .fpr = 0.1,
                                           .hashing = { .hash = (enum perhaps_hash)hash } };
        perhaps_filter *f = (perhaps_filter *)&options;
        let_fail("getentropy", ENOSYS, 0);
        int error = perhaps_create(&options, &f);
        let_all_work();
        expect_error(error, PERHAPS_ERR_IO);
        expect(!f);
    }
}
