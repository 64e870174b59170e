/* beside_test.c - proves that a live file and its journal stay together: nobody's journal is
 * overwritten, files and journals of two copies are told apart, what was removed under a writer
 * is noticed before anything is acknowledged, and what replaces a live file is live. */
#include "live_files.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/journal.h"

enum { KEYS = 60 }; /* of one part */

/* Returns a path in a new folder for the test. */
static struct path new_file(const char *name)
{
    struct path folder = temp_path(name), file = path_below(folder, "F");
    mkdir(folder.text, 0755);
    unlink(file.text);
    unlink(journal_of(file).text);
    return file;
}

static void save_plain(struct path file)
{
    scoped_filter *f = make_filter(perhaps_kind_at(0), 1000, 0.01, test_seed());
    expect_success(perhaps_save_new(f, file.text));
}

static void make_live(struct path file)
{
    save_plain(file);
    perhaps_free(open_file(file.text, &to_write));
}

static void add_part(perhaps_filter *f, const struct perhaps_keys *keys, size_t part)
{
    const struct perhaps_keys some = some_keys(keys, part * KEYS, KEYS);
    expect_success(perhaps_add_many(f, &some, NULL));
}

/* Opens the file, adds a part of the keys, and saves it anew if 'saves'. */
static void work(struct path file, const struct perhaps_keys *keys, size_t part, bool saves)
{
    perhaps_filter *f = open_file(file.text, &to_write);
    add_part(f, keys, part);
    expect_success(saves ? perhaps_checkpoint(f) : perhaps_sync(f));
    perhaps_free(f);
}

static bool has_part(const perhaps_filter *f, const struct perhaps_keys *keys, size_t part)
{
    const struct perhaps_keys some = some_keys(keys, part * KEYS, KEYS);
    return perhaps_contains_many(f, &some, NULL) == KEYS;
}

static void copy_file(struct path from, struct path to)
{
    scoped_bytes bytes = read_file(from.text);
    put_file(to, bytes.at, bytes.nbytes);
}

static void copy_pair(struct path from, struct path to)
{
    copy_file(from, to);
    copy_file(journal_of(from), journal_of(to));
}

static bool exists(struct path path)
{
    struct stat st;
    return !lstat(path.text, &st);
}

/* ---- Two copies that went on separately -------------------------------------------------- */

/* What one copy does by itself: opens the file 'times' times, and saves it in the last. */
struct fate {
    unsigned times;
    bool saves, dies;
};

static void live_on(struct path file, const struct perhaps_keys *keys, size_t part,
                    struct fate fate)
{
    for (unsigned i = 0; i < fate.times; i++)
        work(file, keys, part + i, fate.saves && i + 1 == fate.times);
    if (!fate.dies)
        return;
    perhaps_filter *f = open_file(file.text, &to_write);
    add_part(f, keys, part);
    expect_success(perhaps_sync(f));
    die(f);
}

/* The file of one copy with the journal of the other one is refused, or is all that the other
 * copy is, if the files are the same. */
static void expect_told_apart(struct path one, struct path other, struct path mixed)
{
    scoped_bytes of_one = read_file(one.text), of_other = read_file(other.text);
    const bool same =
        of_one.nbytes == of_other.nbytes && !memcmp(of_one.at, of_other.at, of_one.nbytes);
    scoped_filter *right = open_file(other.text, &load_it);
    for (int mode = PERHAPS_MODE_READ; mode <= PERHAPS_MODE_JOURNAL; mode++) {
        if (mode == PERHAPS_MODE_IN_PLACE)
            continue;
        const struct perhaps_open_options how = { .mode = (enum perhaps_mode)mode };
        copy_file(one, mixed);
        copy_file(journal_of(other), journal_of(mixed));
        perhaps_filter *f = NULL;
        int error = perhaps_open(mixed.text, &how, &f);
        if (same)
            expect(!error && perhaps_equal(f, right));
        else
            expect(error == PERHAPS_ERR_JOURNAL || error == PERHAPS_ERR_DAMAGED);
        perhaps_free(f);
    }
}

TEST(test_copies)
{
    static const struct fate fates[] = { { 0 },
                                         { .times = 1 },
                                         { .times = 1, .saves = true },
                                         { .times = 2, .saves = true },
                                         { .times = 1, .saves = true, .dies = true },
                                         { .times = 3, .saves = true },
                                         { .times = 2, .dies = true } };
    const size_t count = sizeof fates / sizeof *fates;
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 12 * KEYS);
    for (size_t i = 0; i < 3 * count * count; i++) {
        struct path a = new_file("copy a"), b = new_file("copy b"), mixed = new_file("mixed");
        scene("begin %zu, fates %zu and %zu", i / count / count, i / count % count, i % count);
        make_live(a);
        for (size_t n = 0; n < i / count / count; n++) /* the copies have a past */
            work(a, &keys, n, n == 1);
        copy_pair(a, b);
        live_on(a, &keys, 2, fates[i / count % count]);
        live_on(b, &keys, 6, fates[i % count]);
        expect_told_apart(a, b, mixed);
        expect_told_apart(b, a, mixed);
    }
}

/* A copy of a pair that is just being written, as a crash would leave it. */
TEST(test_copy_of_open_file)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 12 * KEYS);
    struct path a = new_file("copy a"), b = new_file("copy b"), mixed = new_file("mixed");
    make_live(a);
    perhaps_filter *f = open_file(a.text, &to_write);
    add_part(f, &keys, 0);
    expect_success(perhaps_sync(f));
    copy_pair(a, b);
    add_part(f, &keys, 1);
    expect_success(perhaps_checkpoint(f));
    perhaps_free(f);
    work(b, &keys, 2, false);
    work(b, &keys, 3, false);
    expect_told_apart(a, b, mixed);
    work(b, &keys, 4, true);
    expect_told_apart(a, b, mixed);
    expect_told_apart(b, a, mixed);
}

/* ---- Journals of other files ------------------------------------------------------------- */

/* The file cannot become live, and nothing at the place of the journal changes. */
static void expect_refused(struct path file)
{
    struct stat before, after;
    scoped_bytes plain = read_file(file.text);
    expect(!lstat(journal_of(file).text, &before));
    for (int i = 0; i < 2; i++) {
        expect_error(try_open(file.text, &to_write), PERHAPS_ERR_IO);
        expect(errno == EEXIST && !perhaps_may_become_live(file.text));
    }
    expect(!lstat(journal_of(file).text, &after) && before.st_ino == after.st_ino &&
           before.st_mode == after.st_mode && before.st_size == after.st_size);
    scoped_bytes then = read_file(file.text);
    expect_same_bytes(&plain, &then);
}

TEST(test_renamed)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 12 * KEYS);
    struct path file = new_file("renamed"), aside = new_file("aside");
    for (size_t i = 0; i < 3; i++) { /* without records, with some, saved with them */
        make_live(file);
        if (i)
            work(file, &keys, 0, i == 2);
        expect(!rename(file.text, aside.text));
        save_plain(file);
        scoped_bytes before = read_file(journal_of(file).text);
        expect_refused(file);
        scoped_bytes after = read_file(journal_of(file).text);
        expect_same_bytes(&before, &after);
        expect(!rename(aside.text, file.text));
        scoped_filter *f = open_file(file.text, &to_write);
        expect(has_part(f, &keys, 0) == (i > 0));
        unlink(file.text);
        unlink(journal_of(file).text);
    }
}

TEST(test_other_things)
{
    struct path file = new_file("things"), journal = journal_of(file);
    save_plain(file);
    expect(!mkfifo(journal.text, 0600));
    expect_refused(file);
    expect(!unlink(journal.text) && !mkdir(journal.text, 0700));
    expect_refused(file);
    expect(!rmdir(journal.text) && !symlink("nowhere", journal.text));
    expect_refused(file);
    expect(!exists(path_below(temp_path("things"), "nowhere")));
    expect(!unlink(journal.text));
    write_file(journal.text, "text", 4);
    expect_refused(file);
    expect(count_beside(file.text) == 2);
}

/* What holds nothing is no reason to refuse. */
TEST(test_of_no_use)
{
    const struct journal_begin begin = { .id = 7, .first = 1 };
    uint8_t header[JOURNAL_HEADER_NBYTES];
    struct path file = new_file("useless"), journal = journal_of(file);
    save_plain(file);
    expect(perhaps_may_become_live(file.text));
    write_file(journal.text, "", 0);
    expect(perhaps_may_become_live(file.text));
    expect_success(try_open(file.text, &to_write));
    expect(perhaps_is_live(file.text) && perhaps_may_become_live(file.text));
    expect(!unlink(file.text) && !perhaps_may_become_live(file.text));

    /* what a crash leaves between the journal and the file */
    save_plain(file);
    journal_header(header, &begin);
    put_file(journal, header, sizeof header);
    expect(perhaps_may_become_live(file.text));
    expect_success(try_open(file.text, &to_write));
    expect(perhaps_is_live(file.text));
}

/* ---- Under a writer ---------------------------------------------------------------------- */

static void expect_lost(perhaps_filter *f, const struct perhaps_keys *keys)
{
    add_part(f, keys, 1);
    for (int i = 0; i < 2; i++) {
        expect_error(perhaps_sync(f), PERHAPS_ERR_JOURNAL);
        expect_error(perhaps_checkpoint(f), PERHAPS_ERR_JOURNAL);
    }
    perhaps_free(f);
}

/* What somebody does to the files under a writer: with the journal, or with the file. */
enum deed_of_others { REMOVE, RENAME, REPLACE, REPLACE_BY_COPY, TRUNCATE, DEEDS };

static void interfere(struct path path, enum deed_of_others deed)
{
    struct path aside = new_file("interfere");
    scoped_bytes bytes = read_file(path.text);
    if (deed == RENAME)
        expect(!rename(path.text, aside.text));
    else if (deed == REMOVE)
        expect(!unlink(path.text));
    else if (deed == TRUNCATE)
        expect(!truncate(path.text, 0));
    else
        put_file(path, deed == REPLACE ? (const void *)"other" : bytes.at,
                 deed == REPLACE ? 5 : bytes.nbytes);
}

TEST(test_under_a_writer)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 4 * KEYS);
    for (int i = 0; i < 2 * DEEDS; i++) {
        const bool of_journal = i < DEEDS;
        const enum deed_of_others deed = (enum deed_of_others)(i % DEEDS);
        struct path file = new_file("under");
        /* a copy of the file is as good; and who writes into a journal can do anything */
        if (deed == (of_journal ? TRUNCATE : REPLACE_BY_COPY))
            continue;
        scene("%s, deed %d", of_journal ? "journal" : "file", deed);
        make_live(file);
        perhaps_filter *f = open_file(file.text, &to_write);
        add_part(f, &keys, 0);
        expect_success(perhaps_sync(f));
        interfere(of_journal ? journal_of(file) : file, deed);
        if (i % 2) /* also if there is nothing to sync */
            expect_error(perhaps_sync(f), PERHAPS_ERR_JOURNAL);
        if (i % 2)
            perhaps_free(f);
        else
            expect_lost(f, &keys);
    }
}

/* In the background, too, the file is not saved any more, and adds end with the error. */
TEST(test_in_the_background)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 9000);
    struct path file = new_file("background");
    struct perhaps_open_options how = to_write;
    how.journal_nbytes = 8192;
    make_live(file);
    perhaps_filter *f = open_file(file.text, &how);
    expect_success(perhaps_sync(f));
    expect(!unlink(journal_of(file).text));
    int error = 0;
    for (size_t i = 0; i + 100 <= keys.count && !error; i += 100) {
        const struct perhaps_keys some = some_keys(&keys, i, 100);
        error = perhaps_add_many(f, &some, NULL);
        expect(!error || error == PERHAPS_ERR_JOURNAL || error == PERHAPS_ERR_FULL);
    }
    expect_error(perhaps_sync(f), PERHAPS_ERR_JOURNAL);
    perhaps_free(f);
    expect(!exists(journal_of(file)));
    expect_error(try_open(file.text, &load_it), PERHAPS_ERR_JOURNAL);
}

/* ---- Replacing a live file --------------------------------------------------------------- */

/* Returns a filter of another size with a part of the keys. */
static perhaps_filter *other_filter(const struct perhaps_kind *kind,
                                    const struct perhaps_keys *keys)
{
    const struct perhaps_keys some = some_keys(keys, 3 * KEYS, KEYS);
    return full_filter(kind, 5000, low_rate(kind), &some);
}

TEST_EACH(test_replaced, in_registry)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 6 * KEYS);
    scoped_filter *other = other_filter(kind, &keys);
    for (int crashes = 0; crashes < 2; crashes++) {
        struct path file = new_file("replaced");
        make_live(file);
        work(file, &keys, 0, false);
        live_on(file, &keys, 1, (struct fate){ .dies = crashes });
        int error = perhaps_save(other, file.text);
        if (is_built(kind)) {
            expect_error(error, PERHAPS_ERR_UNSUPPORTED);
            scoped_filter *old = open_file(file.text, &load_it);
            expect(has_part(old, &keys, 0));
            continue;
        }
        expect_success(error);
        expect(perhaps_is_live(file.text));
        scoped_filter *now = open_file(file.text, &load_it);
        expect(perhaps_equal(now, other));
        work(file, &keys, 2, false);
        scoped_filter *later = open_file(file.text, &map_it);
        expect(has_part(later, &keys, 2) && has_part(later, &keys, 3));
        expect(count_beside(file.text) == 2);
    }
}

/* Not while somebody writes it; and not if its journal is another one's. */
TEST(test_not_replaced)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 6 * KEYS);
    scoped_filter *other = other_filter(perhaps_kind_at(0), &keys);
    struct path file = new_file("not replaced"), second = new_file("second");
    make_live(file);
    make_live(second);
    perhaps_filter *f = open_file(file.text, &to_write);
    expect_error(perhaps_save(other, file.text), PERHAPS_ERR_IO);
    expect(errno == EBUSY);
    perhaps_free(f);
    copy_file(file, second);
    scoped_bytes before = read_file(second.text), journal = read_file(journal_of(second).text);
    expect_error(perhaps_save(other, second.text), PERHAPS_ERR_JOURNAL);
    scoped_bytes after = read_file(second.text), then = read_file(journal_of(second).text);
    expect_same_bytes(&before, &after);
    expect_same_bytes(&journal, &then);
    expect_error(perhaps_save_new(other, file.text), PERHAPS_ERR_IO);
    expect(errno == EEXIST);
}

/* ---- Modes and holes --------------------------------------------------------------------- */

static void expect_mode(struct path path, mode_t mode)
{
    struct stat st;
    expect(!stat(path.text, &st) && (st.st_mode & 07777) == mode);
}

TEST(test_mode)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 6 * KEYS);
    struct path file = new_file("mode");
    make_live(file);
    expect(!chmod(file.text, 0600));
    work(file, &keys, 0, false);
    expect_mode(journal_of(file), 0600);
    perhaps_filter *f = open_file(file.text, &to_write);
    expect(!chmod(file.text, 0640));
    add_part(f, &keys, 1);
    expect_success(perhaps_checkpoint(f));
    expect_mode(file, 0640);
    expect_mode(journal_of(file), 0640);
    perhaps_free(f);
    unlink(file.text);
    unlink(journal_of(file).text);
    save_plain(file);
    expect(!chmod(file.text, 0666)); /* whatever the umask of who makes it live */
    expect_success(try_open(file.text, &to_write));
    expect_mode(journal_of(file), 0666);
}

/* A journal with a hole of a TB, which would take hours to be read, opens; and what lies behind
 * the hole is found. */
TEST(test_hole)
{
    const off_t huge = (off_t)1 << 40;
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 6 * KEYS);
    struct path file = new_file("hole"), journal = journal_of(file);
    make_live(file);
    work(file, &keys, 0, false);
    work(file, &keys, 1, false);
    scoped_bytes whole = read_file(journal.text);
    int fd = open(journal.text, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, huge) || lseek(fd, huge / 2, SEEK_DATA) >= 0 ||
        errno != ENXIO) {
        close(fd);
        skip();
    }
    scoped_filter *f = open_file(file.text, &load_it);
    expect(has_part(f, &keys, 1));
    const size_t lost = whole.nbytes - 2 * SECTOR_NBYTES; /* the last frame with records */
    expect(!ftruncate(fd, (off_t)lost) && !ftruncate(fd, huge));
    scoped_filter *before = open_file(file.text, &load_it);
    expect(has_part(before, &keys, 0));
    expect(pwrite(fd, whole.at + whole.nbytes - SECTOR_NBYTES, SECTOR_NBYTES, huge / 2) ==
           SECTOR_NBYTES);
    expect_error(try_open(file.text, &load_it), PERHAPS_ERR_DAMAGED);
    close(fd);
    expect(!truncate(journal.text, 0));
}
