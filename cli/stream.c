#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stop.h"

#define PACKED_NBYTES ((size_t)128 << 10)

void stream_init(struct stream *stream, uint64_t *nread)
{
    *stream = (struct stream){ .fd = -1 };
    stream->nread = nread;
}

static ssize_t fail(struct stream *stream, const char *problem)
{
    stream->problem = problem;
    return -1;
}

/* Reads bytes as they stand in the file. */
static ssize_t pull(struct stream *stream, void *buffer, size_t nbytes)
{
    for (;;) {
        if (!stop_wait(stream->fd))
            return fail(stream, "interrupted");
        ssize_t got = read(stream->fd, buffer, nbytes);
        if (got >= 0) {
            *stream->nread += (uint64_t)got;
            return got;
        }
        if (errno != EINTR && errno != EAGAIN)
            return fail(stream, strerror(errno));
    }
}

/* ---- Formats ----------------------------------------------------------------------- */

static const struct magic {
    enum format format;
    size_t nbytes;
    uint8_t bytes[4];
    uint8_t mask[4];
} magics[] = {
    { GZIP, 2, { 0x1f, 0x8b }, { 0xff, 0xff } },
    { ZSTD, 4, { 0x28, 0xb5, 0x2f, 0xfd }, { 0xff, 0xff, 0xff, 0xff } },
    { ZSTD, 4, { 0x50, 0x2a, 0x4d, 0x18 }, { 0xf0, 0xff, 0xff, 0xff } }, /* skippable frame */
};

/* How many bytes of the magic the head begins with: all of them, or as far as the head goes;
 * 0 where it differs. */
static size_t matching(const struct stream *stream, const struct magic *magic)
{
    size_t i = 0;
    for (; i < magic->nbytes && i < stream->nhead; i++)
        if ((stream->head[i] & magic->mask[i]) != magic->bytes[i])
            return 0;
    return i;
}

/* Reads on only while the bytes may still become a magic number: a person's first line is
 * answered before the second is typed. */
static bool learn_format(struct stream *stream)
{
    for (;;) {
        bool undecided = stream->nhead == 0;
        for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
            size_t n = matching(stream, &magics[i]);
            if (n == magics[i].nbytes) {
                stream->format = magics[i].format;
                return true;
            }
            undecided |= n > 0;
        }
        if (!undecided)
            return true;
        ssize_t got =
            pull(stream, stream->head + stream->nhead, sizeof stream->head - stream->nhead);
        if (got <= 0)
            return got == 0;
        stream->nhead += (size_t)got;
    }
}

static bool start_unpacking(struct stream *stream)
{
    if (stream->format == PLAIN)
        return true;
    if (!(stream->packed = malloc(PACKED_NBYTES)))
        return fail(stream, "out of memory") == 0;
    memcpy(stream->packed, stream->head, stream->nhead);
    stream->end = stream->nhead;
    bool ok;
    if (stream->format == GZIP)
        ok = inflateInit2(&stream->gzip, 16 + MAX_WBITS) == Z_OK;
    else
        ok = (stream->zstd = ZSTD_createDStream()) != NULL;
    return ok || fail(stream, "out of memory") == 0;
}

/* Makes sure that there are packed bytes.  Returns 1; 0 at the proper end; -1. */
static ssize_t refill(struct stream *stream, const char *truncated)
{
    if (stream->at < stream->end)
        return 1;
    ssize_t got = pull(stream, stream->packed, PACKED_NBYTES);
    if (got < 0)
        return -1;
    if (got == 0)
        return stream->inside ? fail(stream, truncated) : 0;
    stream->at = 0;
    stream->end = (size_t)got;
    return 1;
}

static ssize_t read_gzip(struct stream *stream, void *buffer, size_t nbytes)
{
    z_stream *z = &stream->gzip;
    z->next_out = buffer;
    z->avail_out = (uInt)nbytes;
    while (z->avail_out == nbytes) {
        ssize_t more = refill(stream, "truncated gzip data");
        if (more <= 0)
            return more;
        if (!stream->inside && inflateReset(z) != Z_OK)
            return fail(stream, "corrupt gzip data");
        z->next_in = stream->packed + stream->at;
        z->avail_in = (uInt)(stream->end - stream->at);
        int result = inflate(z, Z_NO_FLUSH);
        stream->at = stream->end - z->avail_in;
        stream->inside = result != Z_STREAM_END;
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return fail(stream, result == Z_MEM_ERROR ? "out of memory" : "corrupt gzip data");
    }
    return (ssize_t)(nbytes - z->avail_out);
}

static ssize_t read_zstd(struct stream *stream, void *buffer, size_t nbytes)
{
    ZSTD_outBuffer out = { buffer, nbytes, 0 };
    while (out.pos == 0) {
        ssize_t more = stream->pending ? 1 : refill(stream, "truncated zstd data");
        if (more <= 0)
            return more;
        ZSTD_inBuffer in = { stream->packed, stream->end, stream->at };
        size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
        if (ZSTD_isError(result))
            return fail(stream, ZSTD_getErrorName(result));
        stream->at = in.pos;
        stream->inside = result != 0;
        stream->pending = stream->inside && out.pos == out.size;
    }
    return (ssize_t)out.pos;
}

/* ---- Open, read, close ------------------------------------------------------------- */

/* A pipe is opened without waiting for its writer; stop_wait() does that, and can be woken. */
static int open_to_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return fd;
}

bool stream_open(struct stream *stream, const char *path)
{
    stream->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open_to_read(path);
    if (stream->fd < 0)
        return fail(stream, strerror(errno)) == 0;
    return learn_format(stream) && start_unpacking(stream);
}

ssize_t stream_read(struct stream *stream, void *buffer, size_t nbytes)
{
    if (stream->format == GZIP)
        return read_gzip(stream, buffer, nbytes);
    if (stream->format == ZSTD)
        return read_zstd(stream, buffer, nbytes);
    if (stream->nhead == 0)
        return pull(stream, buffer, nbytes);
    size_t nhead = stream->nhead < nbytes ? stream->nhead : nbytes;
    memcpy(buffer, stream->head, nhead);
    stream->nhead -= nhead;
    memmove(stream->head, stream->head + nhead, stream->nhead);
    return (ssize_t)nhead;
}

void stream_close(struct stream *stream)
{
    if (stream->fd > STDIN_FILENO)
        close(stream->fd);
    if (stream->gzip.state)
        inflateEnd(&stream->gzip);
    ZSTD_freeDStream(stream->zstd);
    free(stream->packed);
    *stream = (struct stream){ .fd = -1, .nread = stream->nread, .problem = stream->problem };
}
