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

#define OR_RAW ", or give --raw to take its bytes as they are"

/* Files that begin so are unpacked, or refused with what can be done. */
static const struct magic {
    const struct unpacker *unpacker;
    const char *refusal;
    size_t nbytes;
    uint8_t bytes[STREAM_HEAD_NBYTES];
    uint8_t ignored[STREAM_HEAD_NBYTES]; /* bits */
} magics[] = {
    { &unpack_gzip, NULL, 2, "\x1f\x8b", "" },
    { &unpack_zstd, NULL, 4, "\x28\xb5\x2f\xfd", "" },
    { &unpack_zstd, NULL, 4, "\x50\x2a\x4d\x18", "\x0f" }, /* skippable frame */
    { &unpack_xz, NULL, 6, "\3757zXZ", "" },
    { &unpack_bzip2, NULL, 10, "BZh1\x31\x41\x59\x26\x53\x59", "\0\0\0\x0f" },
    { &unpack_bzip2, NULL, 10, "BZh1\x17\x72\x45\x38\x50\x90", "\0\0\0\x0f" }, /* empty */
    { NULL, "is a zip archive: unpack it first, with 'unzip -p'" OR_RAW, 4, "PK\3\4", "" },
    { NULL, "is packed by lz4: unpack it first, with 'lz4 -dc'" OR_RAW, 4, "\x04\x22\x4d\x18",
      "" },
    { NULL, "is a filter, not keys: several are asked with -f A -f B" OR_RAW, 8,
      "\x89perh\r\n\x1a", "" },
};

#define NMAGICS (sizeof magics / sizeof *magics)

/* How many bytes of the magic the head begins with: all of them, or as far as the head goes;
 * 0 where it differs. */
static size_t matching(const uint8_t *head, size_t nhead, const struct magic *magic)
{
    size_t i = 0;
    for (; i < magic->nbytes && i < nhead; i++)
        if ((head[i] ^ magic->bytes[i]) & ~magic->ignored[i])
            return 0;
    return i;
}

/* The format that the head tells, or NULL.  Sets *undecided if more bytes may still make it
 * one. */
static const struct magic *find_magic(const uint8_t *head, size_t nhead, bool *undecided)
{
    *undecided = nhead == 0;
    for (size_t i = 0; i < NMAGICS; i++) {
        size_t n = matching(head, nhead, &magics[i]);
        if (n == magics[i].nbytes)
            return &magics[i];
        *undecided |= n > 0;
    }
    return NULL;
}

/* Reads on only while the bytes may still become a magic number: a person's first line is
 * answered before the second is typed. */
static bool learn_format(struct stream *stream)
{
    bool undecided;
    const struct magic *magic;
    while (!(magic = find_magic(stream->head, stream->nhead, &undecided)) && undecided) {
        ssize_t got =
            pull(stream, stream->head + stream->nhead, sizeof stream->head - stream->nhead);
        if (got <= 0)
            return got == 0;
        stream->nhead += (size_t)got;
    }
    if (magic && magic->refusal)
        return fail(stream, magic->refusal) == 0;
    stream->unpacker = magic ? magic->unpacker : NULL;
    return true;
}

static bool start_unpacking(struct stream *stream)
{
    if (!stream->unpacker)
        return true;
    stream->packed = malloc(PACKED_NBYTES);
    stream->state = stream->unpacker->start();
    if (!stream->packed || !stream->state)
        return fail(stream, "out of memory") == 0;
    memcpy(stream->packed, stream->head, stream->nhead);
    stream->end = stream->nhead;
    return true;
}

static void skip_padding(struct stream *stream)
{
    if (!stream->inside && stream->unpacker->pads)
        while (stream->at < stream->end && !stream->packed[stream->at])
            stream->at++;
}

/* Makes sure that there are packed bytes.  Returns 1; 0 at the proper end; -1. */
static ssize_t refill(struct stream *stream)
{
    if (stream->pending)
        return 1;
    while (skip_padding(stream), stream->at == stream->end) {
        ssize_t got = pull(stream, stream->packed, PACKED_NBYTES);
        if (got < 0)
            return -1;
        if (got == 0)
            return stream->inside ? fail(stream, stream->unpacker->truncated) : 0;
        stream->at = 0;
        stream->end = (size_t)got;
    }
    return 1;
}

static ssize_t read_packed(struct stream *stream, void *buffer, size_t nbytes)
{
    const struct unpacker *unpacker = stream->unpacker;
    struct flow flow = { .out = buffer, .out_nbytes = nbytes };
    while (flow.out_nbytes == nbytes) {
        ssize_t more = refill(stream);
        if (more <= 0)
            return more;
        flow.in = stream->packed + stream->at;
        flow.in_nbytes = stream->end - stream->at;
        enum unpacked result = unpacker->step(stream->state, &flow, &stream->inside);
        stream->at = stream->end - flow.in_nbytes;
        stream->pending = stream->inside && flow.out_nbytes == 0;
        if (result != UNPACKED)
            return fail(stream, result == CORRUPT ? unpacker->corrupt : "out of memory");
    }
    return (ssize_t)(nbytes - flow.out_nbytes);
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

const char *stream_refusal(const char *path)
{
    uint8_t head[STREAM_HEAD_NBYTES];
    bool undecided;
    int fd = open_to_read(path);
    ssize_t nhead = fd < 0 ? 0 : read(fd, head, sizeof head);
    const struct magic *magic = nhead > 0 ? find_magic(head, (size_t)nhead, &undecided) : NULL;
    if (fd >= 0)
        close(fd);
    return magic ? magic->refusal : NULL;
}

bool stream_open(struct stream *stream, const char *path, bool raw)
{
    stream->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open_to_read(path);
    if (stream->fd < 0)
        return fail(stream, strerror(errno)) == 0;
    return raw || (learn_format(stream) && start_unpacking(stream));
}

ssize_t stream_read(struct stream *stream, void *buffer, size_t nbytes)
{
    if (stream->unpacker)
        return read_packed(stream, buffer, nbytes);
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
    if (stream->state)
        stream->unpacker->stop(stream->state);
    free(stream->packed);
    *stream = (struct stream){ .fd = -1, .nread = stream->nread, .problem = stream->problem };
}
