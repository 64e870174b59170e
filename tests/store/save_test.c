/* save_test.c - proves that a save that fails leaves the old file and no other: with a full
 * disk, a limit, a folder or a file that may not be written; and that a save that succeeds
 * keeps the mode of the file, links to it, and devices and pipes of that name.
 *
 * Disks are filled in a child with a mount namespace of its own; where the system forbids that,
 * the test is skipped. */
#include "support.h"
#include <perhaps_sets.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes a folder for one test, so that count_beside() sees what a save left behind. */
static struct path fresh_folder(void)
{
    static unsigned number;
    char name[32];
    snprintf(name, sizeof name, "save%u", number++);
    struct path folder = temp_path(name);
    expect(!mkdir(folder.text, 0777));
    return folder;
}

static struct path fresh_path(void)
{
    return path_below(fresh_folder(), "filter");
}

static perhaps_filter *some_filter(const struct perhaps_kind *kind, size_t nkeys)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, nkeys);
    scene("%s of %zu", kind->name, nkeys);
    return full_filter(kind, nkeys, 0.001, &keys);
}

static bool holds(const char *path, const perhaps_filter *wanted)
{
    scoped_filter *f = open_file(path, NULL);
    return perhaps_equal(f, wanted);
}

/* ---- What fails -------------------------------------------------------------------------- */

/* Saves with a limit on the size of files, which acts like a disk that is full after so many
 * bytes. */
static void check_limit(const perhaps_filter *f, const char *path, uint64_t limit)
{
    struct rlimit usual, low;
    expect(!getrlimit(RLIMIT_FSIZE, &usual));
    low = (struct rlimit){ .rlim_cur = limit, .rlim_max = usual.rlim_max };
    expect(!setrlimit(RLIMIT_FSIZE, &low));
    int error = perhaps_save(f, path);
    int reason = errno;
    expect(!setrlimit(RLIMIT_FSIZE, &usual));
    scene("limit of %llu bytes", (unsigned long long)limit);
    expect_error(error, PERHAPS_ERR_IO);
    expect(reason == EFBIG);
}

/* The limits lie around the end of the header (4096 bytes), in the body, and just before the
 * end of the checksums. */
TEST(test_file_size_limit)
{
    signal(SIGXFSZ, SIG_IGN);
    EACH_KIND(kind, any_kind) {
        struct path path = fresh_path();
        scoped_filter *old = some_filter(kind, 10), *large = some_filter(kind, 100 * 1000);
        struct stat st;
        expect_success(perhaps_save(large, path.text));
        expect(!stat(path.text, &st));
        uint64_t nbytes = (uint64_t)st.st_size;
        expect_success(perhaps_save(old, path.text));
        const uint64_t limits[] = {
            0, 1, 4095, 4096, 4097, nbytes / 2, nbytes - 9, nbytes - 1
        };
        for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
            check_limit(large, path.text, limits[l]);
            expect(holds(path.text, old) && count_beside(path.text) == 1);
        }
        unlink(path.text);
        check_limit(large, path.text, nbytes / 2);
        expect(count_beside(path.text) == 0);
    }
    signal(SIGXFSZ, SIG_DFL);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        _exit(CANNOT_TRY);
    close(fd);
}

/* Mounts a disk of 1 MiB of memory on this folder, in a namespace of this process alone.  Exits
 * with CANNOT_TRY where that is not permitted. */
static void mount_small_disk(const char *folder)
{
    char map[64];
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
        _exit(CANNOT_TRY);
    write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", uid);
    write_text("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", gid);
    write_text("/proc/self/gid_map", map);
    if (mount("none", folder, "tmpfs", 0, "size=1m"))
        _exit(CANNOT_TRY);
}

/* The filters and paths that a child works with. */
struct attempt {
    struct path path;
    struct path folder;
    perhaps_filter *old;
    perhaps_filter *other;
};

static struct attempt make_attempt(size_t old_keys, size_t other_keys)
{
    struct path folder = fresh_folder();
    return (struct attempt){ .path = path_below(folder, "filter"),
                             .folder = folder,
                             .old = some_filter(perhaps_kind_at(0), old_keys),
                             .other = some_filter(perhaps_kind_at(0), other_keys) };
}

static void expect_attempt(struct attempt *a, int result)
{
    perhaps_free(a->old);
    perhaps_free(a->other);
    if (result == CANNOT_TRY)
        skip();
    scene("the child says %d", result);
    expect(!result);
}

/* A small filter fits on the disk; a large one does not and must leave nothing.  Returns 0, or
 * the number of the step that went wrong. */
static int save_on_small_disk(void *context)
{
    const struct attempt *a = context;
    perhaps_filter *f;
    mount_small_disk(a->folder.text);
    if (perhaps_save(a->old, a->path.text))
        return 1;
    for (unsigned i = 0; i < 20; i++) /* if failures left files, these would fill the disk */
        if (perhaps_save(a->other, a->path.text) != PERHAPS_ERR_IO || errno != ENOSPC)
            return 2;
    if (count_beside(a->path.text) != 1 || perhaps_open(a->path.text, NULL, &f) ||
        !perhaps_equal(f, a->old))
        return 3;
    return perhaps_save(a->old, a->path.text) ? 4 : 0;
}

TEST(test_full_disk)
{
    struct attempt a = make_attempt(1000, 1000 * 1000);
    expect_attempt(&a, run_in_child(save_on_small_disk, &a, false));
}

/* Writes a file with holes in place of blocks of zeros, as 'cp --sparse=always' does. */
static void write_with_holes(const char *path, const struct bytes *file)
{
    static const uint8_t zeros[4096];
    unlink(path);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)file->nbytes))
        _exit(CANNOT_TRY);
    for (size_t at = 0, n; at < file->nbytes; at += n) {
        n = file->nbytes - at < sizeof zeros ? file->nbytes - at : sizeof zeros;
        if (memcmp(file->at + at, zeros, n) != 0 && pwrite(fd, file->at + at, n, (off_t)at) < 0)
            _exit(CANNOT_TRY);
    }
    close(fd);
}

static void fill_disk(const char *path)
{
    static const uint8_t block[4096];
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

/* A file has holes, and the disk has no room to fill them.  Opening it for writing in place
 * must fail, since an add to a hole would end in SIGBUS.  With room the open reserves the
 * blocks, and adds succeed even if the disk is full again. */
static int add_in_place_on_full_disk(void *context)
{
    const struct attempt *a = context;
    struct path filler = path_below(a->folder, "filler");
    struct bytes file = saved_bytes(a->old);
    perhaps_filter *f;
    mount_small_disk(a->folder.text);
    write_with_holes(a->path.text, &file);
    fill_disk(filler.text);
    if (perhaps_open(a->path.text, &in_place, &f) != PERHAPS_ERR_IO || errno != ENOSPC)
        return 1;
    unlink(filler.text);
    if (perhaps_open(a->path.text, &in_place, &f))
        return 2;
    fill_disk(filler.text);
    for (uint64_t key = 0; key < 100000; key++)
        if (perhaps_add(f, &key, sizeof key))
            return 3;
    perhaps_free(f);
    free(file.at);
    return 0;
}

TEST(test_in_place_on_full_disk)
{
    struct attempt a = make_attempt(1, 1);
    struct perhaps_options options = options_for(perhaps_kind_at(0), 300000, 0.01, 7);
    perhaps_free(a.old);
    a.old = make_with(&options); /* takes half of the disk, and is all zeros */
    expect_attempt(&a, run_in_child(add_in_place_on_full_disk, &a, false));
}

/* A save must not need /proc, which is empty here: a nameless file gets its name through it. */
static int save_without_proc(void *context)
{
    const struct attempt *a = context;
    perhaps_filter *f;
    mount_small_disk("/proc");
    if (perhaps_save(a->old, a->path.text) || perhaps_save(a->other, a->path.text))
        return 1;
    if (count_beside(a->path.text) != 1 || perhaps_open(a->path.text, NULL, &f))
        return 2;
    return perhaps_equal(f, a->other) ? 0 : 3;
}

TEST(test_without_proc)
{
    struct attempt a = make_attempt(100, 9);
    expect_attempt(&a, run_in_child(save_without_proc, &a, false));
}

static bool is_forbidden(const perhaps_filter *f, const char *path)
{
    return perhaps_save(f, path) == PERHAPS_ERR_IO && errno == EACCES;
}

static int save_where_forbidden(void *context)
{
    const struct attempt *a = context;
    struct path fresh = path_below(a->folder, "new");
    return !is_forbidden(a->other, a->path.text) || !is_forbidden(a->other, fresh.text);
}

/* In a folder that may not be written neither an old file is replaced nor a new one made. */
TEST(test_forbidden_folder)
{
    struct attempt a = make_attempt(100, 9);
    expect_success(perhaps_save(a.old, a.path.text));
    expect(!chmod(a.path.text, 0666) && !chmod(a.folder.text, 0555));
    int result = run_in_child(save_where_forbidden, &a, true);
    expect(!chmod(a.folder.text, 0777));
    expect(holds(a.path.text, a.old) && count_beside(a.path.text) == 1);
    expect_attempt(&a, result);
}

static int save_over_read_only(void *context)
{
    const struct attempt *a = context;
    struct path fresh = path_below(a->folder, "new");
    if (!is_forbidden(a->other, a->path.text))
        return 1;
    return perhaps_save(a->other, fresh.text) || unlink(fresh.text) ? 2 : 0;
}

/* A file that may not be written is not replaced, although the folder would permit a rename. */
TEST(test_read_only_file)
{
    struct attempt a = make_attempt(100, 9);
    expect_success(perhaps_save(a.old, a.path.text));
    expect(!chmod(a.path.text, 0444) && !chmod(a.folder.text, 0777));
    int result = run_in_child(save_over_read_only, &a, true);
    expect(holds(a.path.text, a.old) && count_beside(a.path.text) == 1);
    expect_attempt(&a, result);
}

static void expect_not_saved(const perhaps_filter *f, const char *path, int reason)
{
    errno = 0;
    expect_error(perhaps_save(f, path), PERHAPS_ERR_IO);
    expect(errno == reason);
}

/* Paths at which no file can be made, each with the errno of the system. */
TEST(test_no_such_place)
{
    scoped_filter *f = some_filter(perhaps_kind_at(0), 100);
    struct path folder = temp_path("no/such/folder"), file = temp_path("a file");
    expect_not_saved(f, folder.text, ENOENT);
    expect_error(perhaps_save(f, ""), PERHAPS_ERR_IO);
    write_file(file.text, "", 0);
    expect_not_saved(f, path_below(file, "below").text, ENOTDIR);
    expect_not_saved(f, "/", EISDIR);
}

/* The draft of a save must not need a longer name than the file itself. */
TEST(test_long_names)
{
    scoped_filter *f = some_filter(perhaps_kind_at(0), 100);
    struct path folder = fresh_folder();
    char name[257];
    memset(name, 'x', sizeof name);
    name[256] = '\0'; /* 256 characters; a name may have 255 */
    struct path path = path_below(folder, name + 1), longer = path_below(folder, name);
    for (unsigned twice = 0; twice < 2; twice++) {
        expect_success(perhaps_save(f, path.text));
        expect(holds(path.text, f) && count_beside(path.text) == 1);
    }
    expect_error(perhaps_save(f, longer.text), PERHAPS_ERR_IO);
    expect(errno == ENAMETOOLONG && count_beside(path.text) == 1);
}

/* ---- What is kept ------------------------------------------------------------------------ */

static unsigned mode_of(const char *path)
{
    struct stat st;
    expect(!stat(path, &st));
    return st.st_mode & 07777;
}

/* A new file gets the mode that umask allows; a replaced file keeps its mode. */
TEST(test_mode)
{
    struct path path = fresh_path();
    scoped_filter *f = some_filter(perhaps_kind_at(0), 100);
    mode_t usual = umask(027);
    expect_success(perhaps_save(f, path.text));
    expect(mode_of(path.text) == 0640);
    umask(usual);
    const unsigned modes[] = { 0600, 0666, 0644, 0755 };
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        expect(!chmod(path.text, modes[m]));
        expect_success(perhaps_save(f, path.text));
        expect(mode_of(path.text) == modes[m] && count_beside(path.text) == 1);
    }
}

/* A save through a symbolic link replaces the target and keeps the link. */
TEST(test_symbolic_link)
{
    struct path link = fresh_path(), target = fresh_path();
    scoped_filter *f = some_filter(perhaps_kind_at(0), 100),
                  *g = some_filter(perhaps_kind_at(0), 9);
    struct stat st;
    expect_success(perhaps_save(f, target.text));
    expect(!symlink(target.text, link.text));
    expect_success(perhaps_save(g, link.text));
    expect(!lstat(link.text, &st) && S_ISLNK(st.st_mode));
    expect(!lstat(target.text, &st) && S_ISREG(st.st_mode));
    expect(holds(target.text, g) && count_beside(link.text) == 1);
    expect(count_beside(target.text) == 1);
}

/* A link to a link to a file that does not exist: the save makes that file. */
TEST(test_dangling_link)
{
    struct path link = fresh_path(), target = fresh_path(), beside = fresh_path();
    scoped_filter *f = some_filter(perhaps_kind_at(0), 100);
    struct stat st;
    expect(!symlink(target.text, beside.text) && !symlink(beside.text, link.text));
    for (unsigned fresh = 0; fresh < 2; fresh++) {
        expect_success(fresh ? perhaps_save_new(f, link.text) : perhaps_save(f, link.text));
        expect(!lstat(link.text, &st) && S_ISLNK(st.st_mode));
        expect(!lstat(target.text, &st) && S_ISREG(st.st_mode));
        expect(holds(target.text, f) && count_beside(target.text) == 1);
        expect(!unlink(target.text));
    }
    expect(!unlink(link.text) && !symlink("elsewhere", link.text));
    expect_success(perhaps_save(f, link.text));
    expect(count_beside(link.text) == 2 && holds(link.text, f));
    expect(!unlink(link.text) && !symlink("missing/filter", link.text));
    expect_not_saved(f, link.text, ENOENT);
}

struct rival {
    const char *path;
    int error, reason;
};

static void *save_new(void *context)
{
    struct rival *r = context;
    scoped_filter *f = make_filter(perhaps_kind_at(0), 100, 0.001, 1);
    r->error = perhaps_save_new(f, r->path);
    r->reason = errno;
    return NULL;
}

/* Several threads make a new file of one name at once: exactly one of them succeeds. */
TEST(test_new)
{
    for (unsigned turn = 0; turn < 20; turn++) {
        struct path path = fresh_path();
        struct rival rivals[4];
        unsigned made = 0;
        for (unsigned i = 0; i < 4; i++)
            rivals[i].path = path.text;
        run_threads(4, save_new, rivals, sizeof *rivals);
        for (unsigned i = 0; i < 4; i++) {
            expect(!rivals[i].error ||
                   (rivals[i].error == PERHAPS_ERR_IO && rivals[i].reason == EEXIST));
            made += !rivals[i].error;
        }
        expect(made == 1 && count_beside(path.text) == 1);
    }
}

/* A path without a slash names a file in the current folder. */
TEST(test_relative_path)
{
    struct path folder = fresh_folder(), path = path_below(folder, "filter");
    scoped_filter *f = some_filter(perhaps_kind_at(0), 100);
    char before[PATH_MAX];
    expect(getcwd(before, sizeof before));
    expect(!chdir(folder.text));
    for (unsigned twice = 0; twice < 2; twice++)
        expect_success(perhaps_save(f, "filter"));
    expect(!chdir(before));
    expect(holds(path.text, f) && count_beside(path.text) == 1);
}

/* ---- Devices and pipes ------------------------------------------------------------------- */

struct reader {
    struct path path;
    struct bytes got;
};

static void *read_fifo(void *argument)
{
    const size_t most = 8 << 20; /* more than any kind takes for these keys */
    struct reader *reader = argument;
    FILE *file = fopen(reader->path.text, "rb");
    if (!file)
        return NULL;
    reader->got.at = malloc(most);
    reader->got.nbytes = reader->got.at ? fread(reader->got.at, 1, most, file) : 0;
    fclose(file);
    return NULL;
}

/* A FIFO is written through, and is not replaced by a file. */
TEST_EACH(test_pipe, any_kind)
{
    struct reader reader = { .path = fresh_path() };
    scoped_filter *f = some_filter(kind, 100 * 1000); /* more than a pipe holds */
    scoped_bytes wanted = saved_bytes(f);
    struct stat st;
    pthread_t thread;
    expect(!mkfifo(reader.path.text, 0600));
    expect(!pthread_create(&thread, NULL, read_fifo, &reader));
    expect_success(perhaps_save(f, reader.path.text));
    expect(!pthread_join(thread, NULL));
    expect(reader.got.nbytes == wanted.nbytes);
    expect(!memcmp(reader.got.at, wanted.at, wanted.nbytes));
    expect(!lstat(reader.path.text, &st) && S_ISFIFO(st.st_mode));
    free(reader.got.at);
}

TEST(test_descriptor)
{
    struct path path = fresh_path();
    scoped_filter *f = some_filter(perhaps_kind_at(0), 100);
    int fd = open(path.text, O_CREAT | O_RDWR, 0666);
    expect(fd >= 0);
    expect_success(perhaps_save_to(f, fd));
    expect(!close(fd) && holds(path.text, f));
    expect_error(perhaps_save_to(f, -1), PERHAPS_ERR_IO);
    expect(errno == EBADF);
}

/* Devices are written through; /dev/full reports that the disk is full. */
TEST(test_devices)
{
    struct stat st;
    scoped_filter *f = some_filter(perhaps_kind_at(0), 100);
    expect_success(perhaps_save(f, "/dev/null"));
    expect(!lstat("/dev/null", &st) && S_ISCHR(st.st_mode));
    expect_not_saved(f, "/dev/full", ENOSPC);
    expect(!lstat("/dev/full", &st) && S_ISCHR(st.st_mode));
}
