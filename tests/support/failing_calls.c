/* failing_calls.c - system calls that fail when told to: see failing_calls.h. */
#include "failing_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the fault */

static struct {
    const char *call; /* the call that fails; NULL: none */
    int error;        /* its errno */
    unsigned after;   /* how many of these calls work before */
    bool once;        /* later ones work again */
    bool met;         /* a call has failed */
} fault;

static bool no_nameless;               /* there are no nameless files */
static size_t most_at_once = SIZE_MAX; /* how many bytes one read or write transfers */

static void set_fault(const char *call, int error, unsigned after, bool once)
{
    pthread_mutex_lock(&lock);
    fault.call = call;
    fault.error = error;
    fault.after = after;
    fault.once = once;
    fault.met = false;
    pthread_mutex_unlock(&lock);
}

void let_fail(const char *call, int error, unsigned after)
{
    set_fault(call, error, after, false);
}

void let_fail_once(const char *call, int error, unsigned after)
{
    set_fault(call, error, after, true);
}

void let_no_nameless(void)
{
    no_nameless = true;
}

void let_all_work(void)
{
    no_nameless = false;
    fault.call = NULL;
    most_at_once = SIZE_MAX;
}

bool has_failed(void)
{
    return fault.met;
}

void transfer_at_once(size_t nbytes)
{
    most_at_once = nbytes;
}

unsigned open_files(void)
{
    return count_beside("/proc/self/fd/0");
}

/* Returns the errno with which the call fails, which it sets, too; 0: it works. */
static int failure_of(const char *call)
{
    int error = 0;
    pthread_mutex_lock(&lock);
    if (fault.call && strcmp(fault.call, call) == 0 && fault.after-- == 0) {
        error = errno = fault.error;
        fault.after = 0;
        fault.met = true;
        if (fault.once)
            fault.call = NULL;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

static bool fails(const char *call)
{
    return failure_of(call) != 0;
}

static size_t cut(size_t nbytes)
{
    return nbytes < most_at_once ? nbytes : most_at_once;
}

/* Defines the function that the linker puts in place of a call: it fails or makes the call. */
#define WRAP(type, failure, name, parameters, arguments)                                       \
    type __real_##name parameters;                                                             \
    type __wrap_##name parameters;                                                             \
    type __wrap_##name parameters                                                              \
    {                                                                                          \
        return fails(#name) ? (failure) : __real_##name arguments;                             \
    }

WRAP(int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, -1, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
WRAP(int, -1, rename, (const char *from, const char *to), (from, to))
WRAP(void *, MAP_FAILED, mmap,
     (void *address, size_t nbytes, int use, int flags, int fd, off_t offset),
     (address, nbytes, use, flags, fd, offset))
WRAP(int, -1, madvise, (void *at, size_t nbytes, int advice), (at, nbytes, advice))
WRAP(int, -1, getentropy, (void *bytes, size_t nbytes), (bytes, nbytes))
WRAP(int, -1, fallocate, (int fd, int mode, off_t offset, off_t nbytes),
     (fd, mode, offset, nbytes))
WRAP(int, -1, ftruncate, (int fd, off_t nbytes), (fd, nbytes))
WRAP(int, -1, flock, (int fd, int how), (fd, how))
WRAP(off_t, -1, lseek, (int fd, off_t offset, int from), (fd, offset, from))
WRAP(int, -1, mkostemp, (char *path, int flags), (path, flags))

/* Defines one for a call that returns its error, and has the name of another one. */
#define WRAP_ERROR(name, of, parameters, arguments)                                            \
    int __real_##name parameters;                                                              \
    int __wrap_##name parameters;                                                              \
    int __wrap_##name parameters                                                               \
    {                                                                                          \
        const int saved = errno;                                                               \
        int error = failure_of(of);                                                            \
        errno = saved;                                                                         \
        return error ? error : __real_##name arguments;                                        \
    }

WRAP_ERROR(posix_fallocate, "fallocate", (int fd, off_t at, off_t nbytes), (fd, at, nbytes))
WRAP_ERROR(posix_madvise, "madvise", (void *at, size_t nbytes, int advice),
           (at, nbytes, advice))
int __real_mkstemp(char *path);
int __wrap_mkstemp(char *path);
int __wrap_mkstemp(char *path)
{
    return fails("mkostemp") ? -1 : __real_mkstemp(path);
}

WRAP(ssize_t, -1, write, (int fd, const void *bytes, size_t nbytes), (fd, bytes, cut(nbytes)))
WRAP(ssize_t, -1, read, (int fd, void *bytes, size_t nbytes), (fd, bytes, cut(nbytes)))
WRAP(ssize_t, -1, pwrite, (int fd, const void *bytes, size_t nbytes, off_t offset),
     (fd, bytes, cut(nbytes), offset))
WRAP(ssize_t, -1, pread, (int fd, void *bytes, size_t nbytes, off_t offset),
     (fd, bytes, cut(nbytes), offset))

int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __real_open(const char *path, int flags, ...);
int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);

int __wrap_open(const char *path, int flags, ...);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap___open_2(const char *path, int flags);
ssize_t __wrap___read_chk(int fd, void *bytes, size_t nbytes, size_t room);
ssize_t __wrap___pread_chk(int fd, void *bytes, size_t nbytes, off_t offset, size_t room);

/* These do not wait for the disk, which these tests do not look at. */
int __wrap_fsync(int fd)
{
    return fails("fsync") || fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

int __wrap_fdatasync(int fd)
{
    return fails("fdatasync") || fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {
        va_list arguments;
        va_start(arguments, flags);
        mode = (mode_t)va_arg(arguments, unsigned);
        va_end(arguments);
    }
    bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    if (fails(nameless          ? "open nameless"
              : flags & O_CREAT ? "create"
                                : "open") ||
        (nameless && fails("links")))
        return -1;
    if (nameless && no_nameless) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_open(path, flags, mode);
}

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    return fails("linkat") || fails("links") ? -1
                                             : __real_linkat(from_fd, from, to_fd, to, flags);
}

/* glibc has another type for the first argument, and others an int. */
int __real_getrusage(int who, struct rusage *usage);
int __wrap_getrusage(int who, struct rusage *usage);
int __wrap_getrusage(int who, struct rusage *usage)
{
    return fails("getrusage") ? -1 : __real_getrusage(who, usage);
}

WRAP_ERROR(pthread_create, "pthread_create",
           (pthread_t * thread, const pthread_attr_t *how, void *(*run)(void *),
            void *argument),
           (thread, how, run, argument))

/* Some compilers define _FORTIFY_SOURCE, which turns open(), read() and pread() into these. */
int __wrap___open_2(const char *path, int flags)
{
    return __wrap_open(path, flags);
}

ssize_t __wrap___read_chk(int fd, void *bytes, size_t nbytes, size_t room)
{
    return nbytes <= room ? __wrap_read(fd, bytes, nbytes) : -1;
}

ssize_t __wrap___pread_chk(int fd, void *bytes, size_t nbytes, off_t offset, size_t room)
{
    return nbytes <= room ? __wrap_pread(fd, bytes, nbytes, offset) : -1;
}
