/* file.c - open files as sinks and sources. */
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

struct perhaps_source file_source(int *fd, uint64_t nbytes)
{
    return (struct perhaps_source){ .read = file_read, .context = fd, .nbytes = nbytes };
}
