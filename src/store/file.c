/* file.c - open files as sinks and sources. */
#include <errno.h>
#include <string.h>

#include "../base/memory.h"
#include "store.h"
#include <perhaps_live.h>

static int file_write(void *context, const void *bytes, size_t nbytes)
{
    return write_on(*(const int *)context, bytes, nbytes);
}

static int file_read(void *context, void *bytes, size_t nbytes)
{
    uint64_t done;
    int error = read_on(*(const int *)context, bytes, nbytes, &done);
    return error ? error : done < nbytes ? PERHAPS_ERR_DAMAGED : 0;
}

struct perhaps_sink file_sink(int *fd)
{
    return (struct perhaps_sink){ .write = file_write, .context = fd };
}

struct perhaps_source file_source(int *fd, uint64_t nbytes)
{
    return (struct perhaps_source){ .read = file_read, .context = fd, .nbytes = nbytes };
}

void glance(const char *path, uint8_t bytes[HEADER_NBYTES])
{
    uint64_t done;
    struct file_info file; /* opening a pipe would wait for, or disturb, who writes into it */
    memset(bytes, 0, HEADER_NBYTES);
    int fd =
        look_at_path(path, &file) || file.type != FILE_REGULAR ? -1 : open_at_once(path, false);
    if (fd < 0)
        return;
    if (read_some(fd, bytes, HEADER_NBYTES, 0, &done))
        memset(bytes, 0, HEADER_NBYTES);
    close_file(fd);
}

bool perhaps_is_live(const char *path)
{
    uint8_t bytes[HEADER_NBYTES];
    int saved = errno;
    glance(path, bytes);
    errno = saved;
    return container_has_magic(bytes) && container_has_journal(bytes);
}

/* ---- Large pieces ---------------------------------------------------------------------- */

/* A huge page. */
#define PIECE_NBYTES ((size_t)2 << 20)

static bool are_zeros(const uint8_t *bytes, size_t nbytes)
{
    return nbytes && !bytes[0] && !memcmp(bytes, bytes + 1, nbytes - 1);
}

/* An empty filter is written at once, however large it is. */
static int flush(struct pieces *p)
{
    const uint64_t at = p->written;
    const size_t nbytes = p->nbytes;
    p->written += nbytes;
    p->nbytes = 0;
    if (nbytes == PIECE_NBYTES && are_zeros(p->bytes, nbytes) && add_zeros(*p->fd, at, nbytes))
        return 0;
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
