/* linux.c - what only Linux has. */
#define _GNU_SOURCE 1
#include "system.h"

#ifdef SYSTEM_LINUX

#include <errno.h>
#include <fcntl.h>
#include <perhaps.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unix.h"

const char *environment(const char *name)
{
    return secure_getenv(name);
}

/* ---- Files: their bytes ------------------------------------------------------------------ */

static int sync_by(int (*call)(int fd), int fd)
{
    int failed;
    while ((failed = call(fd)) && errno == EINTR)
        continue;
    return failed;
}

int sync_file(int fd)
{
    return sync_by(fsync, fd);
}

int sync_data(int fd)
{
    return sync_by(fdatasync, fd);
}

int reserve_file(int fd, uint64_t from, uint64_t nbytes)
{
    while (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)nbytes))
        if (errno != EINTR)
            return is_lacking(errno) ? PERHAPS_ERR_UNSUPPORTED : PERHAPS_ERR_IO;
    return 0;
}

int reserve_mapped(int fd, uint64_t nbytes)
{
    enum { UNSHARE_RANGE = 0x40 }; /* FALLOC_FL_UNSHARE_RANGE, which musl does not have */
    while (fallocate(fd, FALLOC_FL_KEEP_SIZE | UNSHARE_RANGE, 0, (off_t)nbytes)) {
        if (is_lacking(errno))
            return reserve_file(fd, 0, nbytes) == PERHAPS_ERR_IO ? PERHAPS_ERR_IO : 0;
        if (errno != EINTR)
            return PERHAPS_ERR_IO;
    }
    return 0;
}

bool add_zeros(int fd, uint64_t at, size_t nbytes)
{
    struct stat st;
    const int saved = errno;
    const bool ok = !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size == at &&
                    lseek(fd, 0, SEEK_CUR) == (off_t)at &&
                    !fallocate(fd, 0, (off_t)at, (off_t)nbytes) &&
                    lseek(fd, (off_t)nbytes, SEEK_CUR) >= 0;
    errno = saved;
    return ok;
}

uint64_t behind_hole(int fd, uint64_t at, uint64_t end)
{
    const off_t data = lseek(fd, (off_t)at, SEEK_DATA);
    if (data >= 0)
        return (uint64_t)data;
    return errno == ENXIO && at < end ? end : at;
}

/* ---- Files without a name ---------------------------------------------------------------- */

enum { PROC_PATH_NBYTES = 64 };

/* Writes the path by which /proc names an open file, with or without a name. */
static void write_proc_path(char path[PROC_PATH_NBYTES], int fd)
{
    snprintf(path, PROC_PATH_NBYTES, "/proc/self/fd/%d", fd);
}

static int open_nameless(const char *folder, int flags, mode_t mode)
{
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags, mode);
}

bool has_no_nameless(int error)
{
    return is_lacking(error) || error == EISDIR;
}

/* Returns whether a nameless file can get a name: through /proc, which a container may lack,
 * and by a hard link, which it may refuse.  No link is made where there is a folder. */
static bool can_be_named(const char *self, const char *folder)
{
    char there[PATH_NBYTES_MOST + 2];
    snprintf(there, sizeof there, "%s/.", folder);
    return !access(self, F_OK) && linkat(AT_FDCWD, self, AT_FDCWD, there, AT_SYMLINK_FOLLOW) &&
           !is_lacking(errno);
}

int create_nameless(const char *folder)
{
    char self[PROC_PATH_NBYTES];
    int fd = open_nameless(folder, 0, 0666);
    if (fd < 0)
        return -1;
    write_proc_path(self, fd);
    if (can_be_named(self, folder))
        return fd;
    close(fd);
    errno = EOPNOTSUPP;
    return -1;
}

int name_nameless(int fd, const char *name)
{
    char self[PROC_PATH_NBYTES];
    write_proc_path(self, fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? PERHAPS_ERR_IO : 0;
}

int open_temporary(const char *folder)
{
    char path[PATH_NBYTES_MOST];
    int fd = open_nameless(folder, O_EXCL, 0600);
    if (fd >= 0 || !has_no_nameless(errno))
        return fd;
    int n = snprintf(path, sizeof path, "%s/perhaps.XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || !unlink(path))
        return fd;
    const int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

int rename_replacing_nothing(const char *from, const char *to)
{
    const unsigned no_replace = 1; /* RENAME_NOREPLACE, which musl does not have */
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, no_replace) ? -1 : 0;
}

/* ---- Pages of memory --------------------------------------------------------------------- */

/* May fail: small pages work, but slower. */
void want_huge_pages(void *memory, size_t nbytes)
{
    const int saved = errno;
    madvise(memory, nbytes, MADV_HUGEPAGE);
    errno = saved;
}

bool move_pages(void *from, void *to, size_t nbytes)
{
    return mremap(from, nbytes, nbytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

static int advise(uint8_t *map, uint64_t at, uint64_t nbytes, int advice)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = at & ~(page - 1);
    return madvise(map + begin, (size_t)(at + nbytes - begin), advice);
}

void map_advise(uint8_t *map, size_t nbytes, enum map_order order)
{
    static const int advice[] = { [MAP_AS_USUAL] = MADV_NORMAL,
                                  [MAP_IN_ORDER] = MADV_SEQUENTIAL,
                                  [MAP_AT_RANDOM] = MADV_RANDOM };
    const int saved = errno;
    advise(map, 0, nbytes, advice[order]);
    errno = saved;
}

bool map_fetch(uint8_t *map, uint64_t at, uint64_t nbytes)
{
    const int saved = errno;
    const bool ok = !advise(map, at, nbytes, MADV_WILLNEED);
    errno = saved;
    return ok;
}

int map_read(uint8_t *map, uint64_t at, uint64_t nbytes)
{
    enum { POPULATE_READ = 22 }; /* MADV_POPULATE_READ, which old headers do not have */
    const int saved = errno;
    const int failed = advise(map, at, nbytes, POPULATE_READ);
    if (!failed || (errno != EFAULT && errno != EHWPOISON)) {
        errno = saved;
        return 0;
    }
    errno = EIO;
    return PERHAPS_ERR_IO;
}

long disk_faults(void)
{
    struct rusage usage = { 0 };
    const int saved = errno;
    if (getrusage(RUSAGE_THREAD, &usage))
        errno = saved;
    return usage.ru_majflt;
}

/* Returns how many bytes on huge pages a line of /proc/self/smaps tells of, such as
 * "AnonHugePages: 2048 kB"; 0 for other lines. */
static uint64_t huge_pages_in_line(const char *line)
{
    static const char *const names[] = { "AnonHugePages:", "ShmemPmdMapped:",
                                         "FilePmdMapped:" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(line, names[i], strlen(names[i])))
            return 1024 * strtoull(line + strlen(names[i]), NULL, 10);
    return 0;
}

uint64_t huge_nbytes(const void *memory, uint64_t nbytes)
{
    uintptr_t from = (uintptr_t)memory, to = from + (uintptr_t)nbytes;
    int saved = errno;
    FILE *maps = nbytes < PAGES_NBYTES_LEAST ? NULL : fopen("/proc/self/smaps", "re");
    char line[512];
    bool inside = false;
    uint64_t sum = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        char *dash, *rest;
        uintptr_t begin = (uintptr_t)strtoull(line, &dash, 16);
        if (dash > line && *dash == '-') { /* a new mapping begins: "7f00-7f40 rw-p ..." */
            uintptr_t end = (uintptr_t)strtoull(dash + 1, &rest, 16);
            inside = begin < to && from < end;
        } else if (inside) {
            sum += huge_pages_in_line(line);
        }
    }
    if (maps)
        fclose(maps);
    errno = saved;
    return sum < nbytes ? sum : nbytes; /* the kernel may join a neighbour to this mapping */
}

#endif
