/* stream.c - the bytes of one file, unpacked if they are packed; knows no lines.
 *
 * A file is known by its first bytes, so standard input is unpacked as well.  All reading goes
 * through pull(), where a signal can end the waiting. */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/stop.h"
#include "mapped.h"

/* ---- Bytes as they stand in the file ------------------------------------------------- */

#define PACKED_NBYTES ((size_t)128 << 10)

/* Notes the problem.  Returns -1, for functions that return how many bytes they read. */
static ssize_t broken(struct stream *stream, const char *problem)
{
    stream->problem = problem;
    return -1;
}

/* Returns whether the file has become shorter than it was, or than what was read of it.  Some
 * files of the system have no size, and others end before what they tell. */
static bool is_cut_off(const struct stream *stream)
{
    const struct stat *was = &stream->found;
    const bool known = stream->file_end != UINT64_MAX;
    const uint64_t seen = known ? stream->file_end : (uint64_t)was->st_size;
    struct stat now;
    if (!S_ISREG(was->st_mode) || was->st_size == 0 || fstat(stream->fd, &now) != 0)
        return false;
    return (uint64_t)now.st_size < (seen > stream->file_at ? seen : stream->file_at);
}

/* Reads bytes as they stand in the file, as soon as there are any.  Returns how many, 0 at the
 * end, or -1 (problem).  EAGAIN: another process made the shared descriptor non-blocking. */
static ssize_t pull(struct stream *stream, void *buffer, size_t nbytes)
{
    const uint64_t left = stream->file_end - stream->file_at;
    while (left > 0) {
        if (!stop_wait(stream->fd))
            return broken(stream, "interrupted");
        ssize_t got = read(stream->fd, buffer, nbytes < left ? nbytes : (size_t)left);
        if (got > 0) {
            stream->nread += (uint64_t)got;
            stream->file_at += (uint64_t)got;
            return got;
        }
        if (got == 0)
            return is_cut_off(stream) ? broken(stream, "was cut off while it was read") : 0;
        if (errno != EINTR && errno != EAGAIN)
            return broken(stream, strerror(errno));
    }
    return 0;
}

/* ---- Formats ----------------------------------------------------------------------- */

#define OR_RAW ", or give --raw to take its bytes as they are"

#define MAGIC_MOST 12

/* Magic numbers: files that begin so are unpacked, or refused with what can be done. */
static const struct magic {
    const struct unpacker *unpacker;
    const char *refusal; /* NULL: it is unpacked */
    size_t nbytes;
    uint8_t bytes[MAGIC_MOST];
    uint8_t ignored[MAGIC_MOST]; /* bits that may have any value */
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
    { NULL, "is a filter, not a file of keys" OR_RAW, 8, "\x89perh\r\n\x1a", "" },
};

#define NMAGICS (sizeof magics / sizeof *magics)

/* Returns how many bytes of the head are those of the magic number; 0 if one differs. */
static size_t matching(const uint8_t *head, size_t nhead, const struct magic *magic)
{
    size_t i = 0;
    for (; i < magic->nbytes && i < nhead; i++)
        if ((head[i] ^ magic->bytes[i]) & ~magic->ignored[i])
            return 0;
    return i;
}

/* Returns the magic number that the head begins with, or NULL.  Sets *undecided to whether more
 * bytes may still make it one. */
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

/* Finds the format.  Reads more only while the bytes may still become a magic number: a typed
 * line is answered before the next one.  Returns false (problem) if it cannot. */
static bool learn_format(struct stream *stream)
{
    bool undecided;
    const struct magic *magic;
    stream->nhead = 0;
    stream->head = malloc(STREAM_HEAD_NBYTES);
    if (!stream->head)
        return broken(stream, NULL) == 0;
    while (!(magic = find_magic(stream->head, stream->nhead, &undecided)) && undecided) {
        ssize_t got =
            pull(stream, stream->head + stream->nhead, STREAM_HEAD_NBYTES - stream->nhead);
        if (got <= 0)
            return got == 0;
        stream->nhead += (size_t)got;
    }
    if (magic && magic->refusal)
        return broken(stream, magic->refusal) == 0;
    stream->unpacker = magic ? magic->unpacker : NULL;
    return true;
}

/* Prepares to unpack the format that was found.  Returns false (problem) without memory. */
static bool start_unpacking(struct stream *stream)
{
    if (!stream->unpacker)
        return true;
    stream->packed = malloc(PACKED_NBYTES);
    stream->state = calloc(1, stream->unpacker->state_nbytes);
    if (!stream->packed || !stream->state)
        return broken(stream, NULL) == 0;
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

/* Finds packed bytes for the unpacker.  Returns 1; 0 at a proper end; or -1 (problem). */
static ssize_t refill(struct stream *stream)
{
    if (stream->pending)
        return 1;
    while (skip_padding(stream), stream->at == stream->end) {
        ssize_t got = pull(stream, stream->packed, PACKED_NBYTES);
        if (got < 0)
            return -1;
        if (got == 0)
            return stream->inside ? broken(stream, stream->unpacker->truncated) : 0;
        stream->at = 0;
        stream->end = (size_t)got;
    }
    return 1;
}

/* stream_read() of a packed file.  A step may need more input before it gives a byte, so it
 * goes on until there is one. */
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
            return broken(stream, result == CORRUPT ? unpacker->corrupt : NULL);
    }
    return (ssize_t)(nbytes - flow.out_nbytes);
}

/* ---- Files and their names ------------------------------------------------------------- */

bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

enum file_change change_of(const char *path, const struct stat *was, uint64_t end)
{
    struct stat is;
    if (!S_ISREG(was->st_mode) ||
        (strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &is) : stat(path, &is)) != 0)
        return CHANGE_NONE;
    if (!is_same_file(&is, was))
        return CHANGE_REPLACED;
    if ((uint64_t)is.st_size > end && is.st_size > was->st_size)
        return CHANGE_GREW;
    if (was->st_size > 0 && (uint64_t)is.st_size < end)
        return CHANGE_OTHER;
    bool is_whole = end == (uint64_t)was->st_size;
    return is_whole && !same_time(&is.st_mtim, &was->st_mtim) ? CHANGE_OTHER : CHANGE_NONE;
}

bool is_read_before(char *const *paths, size_t n)
{
    struct stat st, earlier;
    if (stat(paths[n], &st) != 0 || !S_ISFIFO(st.st_mode))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((strcmp(paths[i], "-") == 0 ? fstat(STDIN_FILENO, &earlier)
                                        : stat(paths[i], &earlier)) == 0 &&
            is_same_file(&st, &earlier))
            return true;
    return false;
}

/* ---- Open, read, close ------------------------------------------------------------- */

/* Returns a copy of the descriptor that a path such as /dev/stdin or /dev/fd/3 stands for, or
 * -1 (errno).  Of a socket it cannot be had by open(). */
static int copy_descriptor(const char *path)
{
    static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
    int fd = strcmp(path, "/dev/stdin") == 0 ? STDIN_FILENO : -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            fd = atoi(path + strlen(folders[i]));
    errno = ENXIO;
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* Opens a file; of a pipe it does not wait for the writer, which stop_wait() does. */
static int open_to_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENXIO ? copy_descriptor(path) : -1;
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return fd;
}

const char *stream_refusal(const char *path)
{
    uint8_t head[MAGIC_MOST] = { 0 };
    bool undecided;
    int fd = open_to_read(path);
    ssize_t nhead = fd < 0 ? 0 : read(fd, head, sizeof head);
    const struct magic *magic = nhead > 0 ? find_magic(head, (size_t)nhead, &undecided) : NULL;
    if (fd >= 0)
        close(fd);
    return magic ? magic->refusal : NULL;
}

bool stream_is_packed(int fd)
{
    uint8_t head[MAGIC_MOST] = { 0 };
    bool undecided;
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t nhead = at < 0 ? 0 : pread(fd, head, sizeof head, at);
    const struct magic *magic = nhead > 0 ? find_magic(head, (size_t)nhead, &undecided) : NULL;
    return magic && magic->unpacker;
}

/* Has the system read the next megabytes of a piece, if they are not in memory, each time that
 * some more are used up, 'nbytes' at a time.  Errors do not matter. */
static void read_ahead(const struct piece *left, size_t nbytes)
{
    const uintptr_t step = (uintptr_t)4 << 20, page = (uintptr_t)64 << 10;
    const uintptr_t at = (uintptr_t)left->bytes;
    if (at % step < nbytes && left->nbytes > step)
        madvise((void *)(left->bytes - at % page + step),
                left->nbytes - step < step ? left->nbytes - step : step, MADV_WILLNEED);
}

/* stream_read() of a piece. */
static ssize_t read_mapped(struct stream *stream, void *buffer, size_t nbytes)
{
    struct piece *left = &stream->left;
    size_t got = left->nbytes < nbytes ? (size_t)left->nbytes : nbytes;
    read_ahead(left, nbytes);
    memcpy(buffer, left->bytes, got);
    left->bytes += got;
    left->nbytes -= got;
    stream->nread += got;
    if (stop_signal())
        return broken(stream, "interrupted");
    return mapped_torn() ? broken(stream, "was cut off while it was read") : (ssize_t)got;
}

/* Opens the file that an extent is known of, or takes over its descriptor. */
static bool open_known(struct stream *stream, const char *path, struct extent *extent)
{
    const struct stat *was = &extent->found;
    stream->fd = extent->fd >= 0 ? extent->fd : open_to_read(path);
    extent->fd = -1;
    if (stream->fd < 0 || fstat(stream->fd, &stream->found) != 0)
        return broken(stream, strerror(errno)) == 0;
    if (!is_same_file(&stream->found, was))
        return broken(stream, "was replaced while it was read") == 0;
    lseek(stream->fd, 0, SEEK_SET);
    return true;
}

/* Opens a file that nothing is known of, or takes standard input from where it is. */
static bool open_new(struct stream *stream, const char *path)
{
    stream->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open_to_read(path);
    return (stream->fd >= 0 && fstat(stream->fd, &stream->found) == 0) ||
           broken(stream, strerror(errno)) == 0;
}

bool stream_open(struct stream *stream, const char *path, bool raw, struct extent *extent)
{
    const bool known = extent && extent->known;
    if (known && strcmp(path, "-") != 0 ? !open_known(stream, path, extent)
                                        : !open_new(stream, path))
        return false;
    off_t at = lseek(stream->fd, 0, SEEK_CUR);
    stream->file_begin = stream->file_at = at > 0 ? (uint64_t)at : 0;
    stream->file_end = known ? stream->file_begin + extent->nbytes : UINT64_MAX;
    return raw || (learn_format(stream) && start_unpacking(stream));
}

ssize_t stream_read(struct stream *stream, void *buffer, size_t nbytes)
{
    if (stream->left.bytes)
        return read_mapped(stream, buffer, nbytes);
    if (stream->unpacker)
        return read_packed(stream, buffer, nbytes);
    if (stream->nhead == 0)
        return pull(stream, buffer, nbytes);
    size_t nhead = stream->nhead < nbytes ? stream->nhead : nbytes;
    memcpy(buffer, stream->head, nhead);
    stream->nhead -= nhead;
    memmove(stream->head, stream->head + nhead, stream->nhead);
    if (nhead == nbytes || !S_ISREG(stream->found.st_mode))
        return (ssize_t)nhead;
    ssize_t more = pull(stream, (char *)buffer + nhead, nbytes - nhead);
    return (ssize_t)nhead +
           (more > 0 ? more : 0); /* after an error the next read has it, too */
}

void stream_close(struct stream *stream)
{
    if (stream->fd > STDIN_FILENO)
        close(stream->fd);
    if (stream->state)
        stream->unpacker->stop(stream->state);
    free(stream->state);
    free(stream->packed);
    free(stream->head);
    *stream = (struct stream){ .fd = -1, .nread = stream->nread, .problem = stream->problem };
}

/* Files are kept open, so that one that gets another name is found again, but not too many: a
 * process may have few. */
void stream_close_known(struct stream *stream, struct extent *extent)
{
    enum { KEPT_BELOW = 200 };
    const bool kept = stream->fd > STDIN_FILENO && stream->fd < KEPT_BELOW;
    *extent = (struct extent){ .known = true,
                               .fd = kept ? stream->fd : -1,
                               .found = stream->found,
                               .nbytes = stream->file_at - stream->file_begin };
    if (kept)
        stream->fd = -1;
    stream_close(stream);
}
