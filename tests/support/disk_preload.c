/* disk_preload.c - a disk that fails, for programs that tests in shell run (LD_PRELOAD), by
 * what the environment says:
 *
 *     PERHAPS_TEST_BAD_SYNC=N     fdatasync() number N and all later ones fail
 *
 *     PERHAPS_TEST_LACKS=NAMES    a system or file system that does not have these: see 'lacks'
 *
 * For a disk that is full, ulimit -f will do. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- What a poor system lacks ------------------------------------------------------------ */

/* What is refused, and how: as exFAT, FUSE, network file systems, containers and old kernels
 * answer. */
static const struct lack {
    const char *name;
    int error;
} lacks[] = {
    { "links", EPERM },          { "renameat2", EINVAL }, { "nameless", EOPNOTSUPP },
    { "fallocate", EOPNOTSUPP }, { "flock", ENOSYS },     { "shared_maps", ENODEV },
    { "fchmod", EPERM },         { "fchown", EPERM },     { "folder_sync", EINVAL },
    { "advice", ENOSYS },        { "mremap", ENOSYS },
};

/* Returns whether this is refused, and sets errno. */
static int refuses(const char *name)
{
    const size_t length = strlen(name);
    const char *names = getenv("PERHAPS_TEST_LACKS"), *at = names ? names : "";
    for (; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
                if (!strcmp(lacks[i].name, name))
                    return errno = lacks[i].error;
    return 0;
}

/* The C library's own functions, by their types. */
#define REAL(name)                                                                             \
    __extension__({                                                                            \
        __typeof__(&(name)) real_;                                                             \
        void *const at_ = dlsym(RTLD_NEXT, #name);                                             \
        memcpy(&real_, &at_, sizeof real_);                                                    \
        real_;                                                                                 \
    })

int link(const char *from, const char *to)
{
    return refuses("links") ? -1 : REAL(link)(from, to);
}

int linkat(int at, const char *from, int at2, const char *to, int flags)
{
    return refuses("links") ? -1 : REAL(linkat)(at, from, at2, to, flags);
}

int flock(int fd, int how)
{
    return refuses("flock") ? -1 : REAL(flock)(fd, how);
}

int fchmod(int fd, mode_t mode)
{
    return refuses("fchmod") ? -1 : REAL(fchmod)(fd, mode);
}

int fchown(int fd, uid_t user, gid_t group)
{
    return refuses("fchown") ? -1 : REAL(fchown)(fd, user, group);
}

int posix_fadvise(int fd, off_t at, off_t nbytes, int advice)
{
    int error = refuses("advice");
    return error ? error : REAL(posix_fadvise)(fd, at, nbytes, advice);
}

int madvise(void *at, size_t nbytes, int advice)
{
    return refuses("advice") ? -1 : REAL(madvise)(at, nbytes, advice);
}

static int open_as(const char *function, const char *path, int flags, mode_t mode)
{
    if ((flags & O_TMPFILE) == O_TMPFILE && refuses("nameless"))
        return -1;
    int (*real)(const char *, int, ...);
    void *const at = dlsym(RTLD_NEXT, function);
    memcpy(&real, &at, sizeof real);
    return real(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return open_as("open", path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return open_as("open64", path, flags, mode);
}

int fsync(int fd)
{
    struct stat st;
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode) && refuses("folder_sync"))
        return -1;
    return REAL(fsync)(fd);
}

static int refuses_map(int flags)
{
    return (flags & (MAP_SHARED | MAP_ANONYMOUS)) == MAP_SHARED && refuses("shared_maps");
}

void *mmap(void *at, size_t nbytes, int protection, int flags, int fd, off_t offset)
{
    return refuses_map(flags) ? MAP_FAILED
                              : REAL(mmap)(at, nbytes, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t nbytes, int protection, int flags, int fd, off_t offset)
{
    return mmap(at, nbytes, protection, flags, fd, offset);
}

void *mremap(void *at, size_t old, size_t new, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *to = va_arg(rest, void *);
    va_end(rest);
    return refuses("mremap") ? MAP_FAILED : REAL(mremap)(at, old, new, flags, to);
}

/* The library calls renameat2() by its number. */
long syscall(long number, ...)
{
    long x[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        x[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_renameat2 && refuses("renameat2"))
        return -1;
    return REAL(syscall)(number, x[0], x[1], x[2], x[3], x[4], x[5]);
}

int fallocate(int fd, int mode, off_t offset, off_t nbytes)
{
    return refuses("fallocate") ? -1 : REAL(fallocate)(fd, mode, offset, nbytes);
}

int fallocate64(int fd, int mode, off_t offset, off_t nbytes)
{
    return fallocate(fd, mode, offset, nbytes);
}

int fdatasync(int fd)
{
    static _Atomic int calls;
    const char *bad = getenv("PERHAPS_TEST_BAD_SYNC");
    if (bad && ++calls >= atoi(bad)) {
        errno = EIO;
        return -1;
    }
    return REAL(fdatasync)(fd);
}
