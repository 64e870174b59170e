/* file.c - open files as sinks and sources. */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "../base/memory.h"
#include "../base/system.h"
#include "store.h"

/* One system call is asked for at most this much.  Linux itself stops at 2 GiB. */
#define CHUNK_NBYTES ((size_t)1 << 30)

static size_t chunk(size_t nbytes)
{
    return nbytes < CHUNK_NBYTES ? nbytes : CHUNK_NBYTES;
}

static int file_write(void *context, const void *bytes, size_t nbytes)
{
    const int *fd = context;
    for (const char *at = bytes, *end = at + nbytes; at < end;) {
        ssize_t n = write(*fd, at, chunk((size_t)(end - at)));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        at += n;
    }
    return 0;
}

static int file_read(void *context, void *bytes, size_t nbytes)
{
    const int *fd = context;
    for (char *at = bytes, *end = at + nbytes; at < end;) {
        ssize_t n = read(*fd, at, chunk((size_t)(end - at)));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        if (n == 0)
            return PERHAPS_ERR_DAMAGED;
        at += n;
    }
    return 0;
}

struct perhaps_sink file_sink(int *fd)
{
    return (struct perhaps_sink){ .write = file_write, .context = fd };
}

/* ---- At a place ------------------------------------------------------------------------ */

int read_some(int fd, uint8_t *to, uint64_t nbytes, uint64_t at, uint64_t *done)
{
    for (*done = 0; *done < nbytes;) {
        ssize_t n = pread(fd, to + *done, chunk((size_t)(nbytes - *done)), (off_t)(at + *done));
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

int read_at(int fd, uint8_t *to, uint64_t nbytes, uint64_t at)
{
    uint64_t done;
    int error = read_some(fd, to, nbytes, at, &done);
    if (!error && done < nbytes) {
        errno = EIO;
        error = PERHAPS_ERR_IO;
    }
    return error;
}

int write_at(int fd, const uint8_t *from, uint64_t nbytes, uint64_t at)
{
    for (uint64_t done = 0; done < nbytes;) {
        ssize_t n = pwrite(fd, from + done, chunk((size_t)(nbytes - done)), (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        done += (uint64_t)n;
    }
    return 0;
}

void glance(const char *path, uint8_t bytes[HEADER_NBYTES])
{
    struct stat st; /* opening a pipe would wait for, or disturb, who writes into it */
    memset(bytes, 0, HEADER_NBYTES);
    int fd = stat(path, &st) || !S_ISREG(st.st_mode)
                 ? -1
                 : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (pread(fd, bytes, HEADER_NBYTES, 0) < 0)
        memset(bytes, 0, HEADER_NBYTES);
    close(fd);
}

int sync_file(int fd)
{
    int failed;
    while ((failed = fsync(fd)) && errno == EINTR)
        continue;
    return failed;
}

int sync_data(int fd)
{
    int failed;
    while ((failed = fdatasync(fd)) && errno == EINTR)
        continue;
    return failed;
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

/* ---- Large pieces ---------------------------------------------------------------------- */

/* A huge page. */
#define PIECE_NBYTES ((size_t)2 << 20)

static int flush(struct pieces *p)
{
    size_t nbytes = p->nbytes;
    p->written += nbytes;
    p->nbytes = 0;
    return file_write(p->fd, p->bytes, nbytes);
}

/* Returns how many more bytes the next piece takes. */
static size_t room_left(const struct pieces *p)
{
    size_t to_the_next = PIECE_NBYTES - (size_t)(p->written % PIECE_NBYTES);
    return (to_the_next < p->room ? to_the_next : p->room) - p->nbytes;
}

static int gather(void *context, const void *bytes, size_t nbytes)
{
    struct pieces *p = context;
    int error = 0;
    for (const char *at = bytes, *end = at + nbytes; at < end && !error;) {
        size_t room = room_left(p);
        size_t n = (size_t)(end - at) < room ? (size_t)(end - at) : room;
        memcpy(p->bytes + p->nbytes, at, n);
        p->nbytes += n;
        at += n;
        if (n == room)
            error = flush(p);
    }
    return error;
}

int pieces_begin(struct pieces *p, const struct perhaps_allocator *allocator, int *fd,
                 uint64_t file_nbytes)
{
    size_t room = file_nbytes < PIECE_NBYTES ? (size_t)file_nbytes : PIECE_NBYTES;
    *p = (struct pieces){ .fd = fd, .room = room, .bytes = allocate(allocator, room) };
    return p->bytes ? 0 : PERHAPS_ERR_MEMORY;
}

struct perhaps_sink pieces_sink(struct pieces *p)
{
    return (struct perhaps_sink){ .write = gather, .context = p };
}

int pieces_end(struct pieces *p, const struct perhaps_allocator *allocator, int error)
{
    if (!error)
        error = flush(p);
    release(allocator, p->bytes, p->room);
    return error;
}

struct perhaps_source file_source(int *fd, uint64_t nbytes)
{
    return (struct perhaps_source){ .read = file_read, .context = fd, .nbytes = nbytes };
}
