/* fd.c - open files: every byte is read and written, and a signal ends nothing. */
#define _GNU_SOURCE 1
#include "fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

#include <perhaps.h>

#include "system.h"

/* ---- Bytes ----------------------------------------------------------------------------- */

/* One system call is asked for at most this much.  Linux itself stops at 2 GiB. */
#define CHUNK_NBYTES ((size_t)1 << 30)

/* One of the four system calls; two of them know where they are. */
typedef ssize_t transfer(int fd, void *bytes, size_t nbytes, uint64_t at);

static ssize_t read_next(int fd, void *bytes, size_t nbytes, uint64_t at)
{
    (void)at;
    return read(fd, bytes, nbytes);
}

static ssize_t write_next(int fd, void *bytes, size_t nbytes, uint64_t at)
{
    (void)at;
    return write(fd, bytes, nbytes);
}

static ssize_t read_there(int fd, void *bytes, size_t nbytes, uint64_t at)
{
    return pread(fd, bytes, nbytes, (off_t)at);
}

static ssize_t write_there(int fd, void *bytes, size_t nbytes, uint64_t at)
{
    return pwrite(fd, bytes, nbytes, (off_t)at);
}

/* Transfers bytes until all are done, or there are no more. */
static int transfer_all(transfer *some, int fd, uint8_t *bytes, uint64_t nbytes, uint64_t at,
                        uint64_t *done)
{
    for (*done = 0; *done < nbytes;) {
        const uint64_t left = nbytes - *done;
        const size_t asked = left < CHUNK_NBYTES ? (size_t)left : CHUNK_NBYTES;
        const ssize_t n = some(fd, bytes + *done, asked, at + *done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        if (n == 0)
            break;
        *done += (uint64_t)n;
    }
    return 0;
}

/* Makes an error of a transfer that has ended too early. */
static int all_or_error(int error, uint64_t done, uint64_t nbytes)
{
    if (error || done == nbytes)
        return error;
    errno = EIO;
    return PERHAPS_ERR_IO;
}

int write_on(int fd, const void *bytes, uint64_t nbytes)
{
    uint64_t done;
    int error = transfer_all(write_next, fd, (uint8_t *)bytes, nbytes, 0, &done);
    return all_or_error(error, done, nbytes);
}

int write_at(int fd, const void *bytes, uint64_t nbytes, uint64_t at)
{
    uint64_t done;
    int error = transfer_all(write_there, fd, (uint8_t *)bytes, nbytes, at, &done);
    return all_or_error(error, done, nbytes);
}

int read_on(int fd, void *bytes, uint64_t nbytes, uint64_t *done)
{
    return transfer_all(read_next, fd, bytes, nbytes, 0, done);
}

int read_some(int fd, void *bytes, uint64_t nbytes, uint64_t at, uint64_t *done)
{
    return transfer_all(read_there, fd, bytes, nbytes, at, done);
}

int read_at(int fd, void *bytes, uint64_t nbytes, uint64_t at)
{
    uint64_t done;
    int error = read_some(fd, bytes, nbytes, at, &done);
    return all_or_error(error, done, nbytes);
}

/* ---- The whole file -------------------------------------------------------------------- */

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

int cut_file(int fd, uint64_t nbytes)
{
    int failed;
    while ((failed = ftruncate(fd, (off_t)nbytes)) && errno == EINTR)
        continue;
    return failed;
}

int lock_file(int fd, int how)
{
    while (flock(fd, how)) {
        if (errno == EINTR)
            continue;
        if (is_lacking(errno))
            errno = ENOLCK;
        return PERHAPS_ERR_IO;
    }
    return 0;
}

/* ---- To open --------------------------------------------------------------------------- */

int open_at_once(const char *path, int flags)
{
    return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

int open_nameless(const char *folder, int flags, mode_t mode)
{
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags, mode);
}

bool has_no_nameless(int error)
{
    return is_lacking(error) || error == EISDIR;
}

int open_temporary(const char *folder)
{
    char path[4096];
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
    close_keeping_errno(fd);
    return -1;
}
