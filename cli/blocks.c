/* blocks.c - reads files one after the other, unpacks them if they are packed, and cuts their
 * bytes into blocks of whole lines.
 *
 *     struct unpacker   one packed format (unpack.h)
 *     struct stream     the bytes of one file, unpacked; knows no lines
 *     struct reader     all files, as blocks that end with the end of a line
 *
 * A file is known by its first bytes, so standard input is unpacked as well.  All reading goes
 * through pull(), where a signal can end the waiting. */
#include "blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mapped.h"
#include "stop.h"
#include "unpack.h"

/* ---- The bytes of a file or of standard input, unpacked if they are packed --------- */

/* How many bytes are read to find the format: at least as many as the longest magic number. */
#define STREAM_HEAD_NBYTES 12

/* One open file, as the bytes that it holds.  Invariant: 'head' has bytes that were read and
 * not yet given to the reader; of a packed file they were copied to 'packed'.  A stream may
 * also read a piece of memory, and has then no file. */
struct stream {
    const char *problem; /* why it failed, after a failure; NULL: no memory */
    uint64_t nread;      /* how many bytes were read, of all files, as they stand there */

    int fd;                           /* -1: closed */
    struct piece left;                /* of the piece that it reads; else its bytes are NULL */
    const struct unpacker *unpacker;  /* NULL: the bytes are not packed */
    uint8_t head[STREAM_HEAD_NBYTES]; /* the first bytes, from which the format is known */
    size_t nhead;

    uint8_t *packed; /* bytes from 'at' to 'end' were read and are not unpacked yet */
    size_t at, end;
    void *state;  /* of the unpacker */
    bool inside;  /* in the middle of a member, so the file may not end here */
    bool pending; /* the unpacker may hold more bytes than there was room for */
};

#define PACKED_NBYTES ((size_t)128 << 10)

/* Notes the problem.  Returns -1, for functions that return how many bytes they read. */
static ssize_t broken(struct stream *stream, const char *problem)
{
    stream->problem = problem;
    return -1;
}

/* Reads bytes as they stand in the file, as soon as there are any.  Returns how many, 0 at the
 * end, or -1 (problem).  EAGAIN: another process made the shared descriptor non-blocking. */
static ssize_t pull(struct stream *stream, void *buffer, size_t nbytes)
{
    for (;;) {
        if (!stop_wait(stream->fd))
            return broken(stream, "interrupted");
        ssize_t got = read(stream->fd, buffer, nbytes);
        if (got >= 0) {
            stream->nread += (uint64_t)got;
            return got;
        }
        if (errno != EINTR && errno != EAGAIN)
            return broken(stream, strerror(errno));
    }
}

/* ---- Formats ----------------------------------------------------------------------- */

#define OR_RAW ", or give --raw to take its bytes as they are"

/* Magic numbers: files that begin so are unpacked, or refused with what can be done. */
static const struct magic {
    const struct unpacker *unpacker;
    const char *refusal; /* NULL: it is unpacked */
    size_t nbytes;
    uint8_t bytes[STREAM_HEAD_NBYTES];
    uint8_t ignored[STREAM_HEAD_NBYTES]; /* bits that may have any value */
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
    { NULL, "is a filter, not a file of keys: to query several filters give -f A -f B" OR_RAW,
      8, "\x89perh\r\n\x1a", "" },
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
    while (!(magic = find_magic(stream->head, stream->nhead, &undecided)) && undecided) {
        ssize_t got =
            pull(stream, stream->head + stream->nhead, sizeof stream->head - stream->nhead);
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

/* Does what stream_read() does, for a packed file.  A step may need more input before it gives
 * a byte, so it goes on until there is one. */
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

/* ---- Open, read, close ------------------------------------------------------------- */

/* Opens a file; of a pipe it does not wait for the writer, which stop_wait() does. */
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

const char *reader_refusal(const char *path)
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

bool reader_is_packed(int fd)
{
    uint8_t head[STREAM_HEAD_NBYTES];
    bool undecided;
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t nhead = at < 0 ? 0 : pread(fd, head, sizeof head, at);
    const struct magic *magic = nhead > 0 ? find_magic(head, (size_t)nhead, &undecided) : NULL;
    return magic && magic->unpacker;
}

/* Has the system read the next megabytes of a piece, if they are not in memory, each time that
 * some more are used up.  Errors do not matter. */
static void read_ahead(const struct piece *left)
{
    const uintptr_t step = (uintptr_t)4 << 20, page = (uintptr_t)64 << 10;
    const uintptr_t at = (uintptr_t)left->bytes;
    if (at % step < BLOCK_NBYTES && left->nbytes > step)
        madvise((void *)(left->bytes - at % page + step),
                left->nbytes - step < step ? left->nbytes - step : step, MADV_WILLNEED);
}

/* Does what stream_read() does, for a piece. */
static ssize_t read_piece(struct stream *stream, void *buffer, size_t nbytes)
{
    struct piece *left = &stream->left;
    size_t got = left->nbytes < nbytes ? (size_t)left->nbytes : nbytes;
    read_ahead(left);
    memcpy(buffer, left->bytes, got);
    left->bytes += got;
    left->nbytes -= got;
    stream->nread += got;
    if (stop_signal())
        return broken(stream, "interrupted");
    return mapped_torn() ? broken(stream, "was cut off while it was read") : (ssize_t)got;
}

/* Opens a file and finds its format.  Returns false (problem) if it fails. */
static bool stream_open(struct stream *stream, const char *path, bool raw)
{
    stream->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open_to_read(path);
    if (stream->fd < 0)
        return broken(stream, strerror(errno)) == 0;
    return raw || (learn_format(stream) && start_unpacking(stream));
}

/* Reads up to 'nbytes' unpacked bytes.  Returns how many, 0 at the end, or -1 (problem). */
static ssize_t stream_read(struct stream *stream, void *buffer, size_t nbytes)
{
    if (stream->left.bytes)
        return read_piece(stream, buffer, nbytes);
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

/* Closes the file, so that the stream can open the next one.  Standard input stays open. */
static void stream_close(struct stream *stream)
{
    if (stream->fd > STDIN_FILENO)
        close(stream->fd);
    if (stream->state)
        stream->unpacker->stop(stream->state);
    free(stream->state);
    free(stream->packed);
    *stream = (struct stream){ .fd = -1, .nread = stream->nread, .problem = stream->problem };
}

/* ---- Blocks ------------------------------------------------------------------------ */

void *room_for(struct room *room, size_t count, size_t member_nbytes)
{
    size_t nbytes = (count ? count : 1) * member_nbytes;
    if (room->nbytes < nbytes) {
        free(room->memory);
        nbytes += nbytes / 4;
        room->memory = malloc(nbytes);
        room->nbytes = room->memory ? nbytes : 0;
    }
    return room->memory;
}

void block_release(struct block *block)
{
    free(block->text);
    for (size_t i = 0; i < sizeof block->room / sizeof *block->room; i++)
        free(block->room[i].memory);
}

/* All files.  'begun' has what was read behind the last whole line of a block. */
struct reader {
    char *const *paths;
    size_t npaths;
    char delimiter;
    bool raw;
    struct stream stream;
    size_t source;              /* the number of the path that is read, or will be */
    uint64_t offset;            /* in its file, unpacked, of the next block */
    const struct piece *pieces; /* what the files hold; NULL: they are to be read */

    char *given; /* the text of reader_give(), until a block takes it */
    size_t given_nbytes;

    size_t nbegun;
    char begun[BLOCK_NBYTES]; /* what was read of the next record */
};

/* Makes room for BLOCK_NBYTES behind the first 'used' bytes, a last delimiter that the file may
 * lack, and the slack.  At least doubles it.  Returns false without memory. */
static bool make_room(struct block *block, size_t used)
{
    size_t needed = used + BLOCK_NBYTES + 1 + BLOCK_SLACK_NBYTES;
    if (block->text && block->room_nbytes >= needed)
        return true;
    size_t room = block->room_nbytes * 2 > needed ? block->room_nbytes * 2 : needed;
    char *text = realloc(block->text, room);
    if (!text)
        return false;
    block->text = text;
    block->room_nbytes = room;
    return true;
}

/* A very long record must not leave so much memory in each of many blocks. */
static void give_back_room(struct block *block)
{
    if (block->room_nbytes <= 4 * BLOCK_NBYTES)
        return;
    free(block->text);
    block->text = NULL;
    block->room_nbytes = 0;
}

/* Closes a file that has ended.  Ends the block, and returns true, if a record is left; that
 * one lacks its delimiter, which is added. */
static bool end_file(struct reader *reader, struct block *block, size_t used)
{
    block->source = reader->source++;
    block->offset = reader->offset;
    reader->offset = 0;
    stream_close(&reader->stream);
    if (used == 0)
        return false;
    block->text[used] = reader->delimiter;
    block->nbytes = used + 1;
    return true;
}

/* Makes a block that says what is wrong with the file that is read; NULL: no memory. */
static void fill_with_problem(struct reader *reader, struct block *block, const char *problem)
{
    block->holds = BLOCK_PROBLEM;
    block->source = reader->source;
    reader->stream.problem = problem;
}

/* Ends the block behind the last delimiter among the 'got' bytes behind the first 'used' ones,
 * and keeps what follows for the next block.  Returns false if there is no delimiter. */
static bool end_block(struct reader *reader, struct block *block, size_t used, size_t got)
{
    const char *last = memrchr(block->text + used, reader->delimiter, got);
    if (!last)
        return false;
    block->source = reader->source;
    block->nbytes = (size_t)(last + 1 - block->text);
    block->offset = reader->offset;
    reader->offset += block->nbytes;
    reader->nbegun = used + got - block->nbytes;
    memcpy(reader->begun, last + 1, reader->nbegun);
    return true;
}

void reader_give(struct reader *reader, char *text, size_t nbytes)
{
    reader->given = text;
    reader->given_nbytes = nbytes;
}

void reader_take_pieces(struct reader *reader, const struct piece *pieces)
{
    reader->pieces = pieces;
}

/* Opens the next file, or begins with its piece.  Returns false (problem) if it fails. */
static bool open_next(struct reader *reader)
{
    struct stream *stream = &reader->stream;
    if (!reader->pieces)
        return stream->fd >= 0 ||
               stream_open(stream, reader->paths[reader->source], reader->raw);
    if (!stream->left.bytes)
        stream->left = reader->pieces[reader->source];
    return true;
}

/* Gives the block the text of reader_give(), and reads no file after it. */
static void take_given(struct reader *reader, struct block *block)
{
    free(block->text);
    block->text = reader->given;
    block->nbytes = block->room_nbytes = reader->given_nbytes;
    block->holds = BLOCK_RECORDS;
    reader->given = NULL;
    reader->source = reader->npaths;
}

#define TOO_LONG "a line is longer than the memory has room for: see --delimiter"

void reader_read(struct reader *reader, struct block *block)
{
    if (reader->given) {
        take_given(reader, block);
        return;
    }
    struct stream *stream = &reader->stream;
    size_t used = reader->nbegun;
    reader->nbegun = 0;
    block->holds = BLOCK_RECORDS;
    block->nbytes = 0;
    give_back_room(block);
    bool room = make_room(block, used);
    if (room)
        memcpy(block->text, reader->begun, used);
    while (reader->source < reader->npaths) {
        if (!room)
            return fill_with_problem(reader, block, used > BLOCK_NBYTES ? TOO_LONG : NULL);
        if (!open_next(reader))
            return fill_with_problem(reader, block, stream->problem);
        ssize_t got = stream_read(stream, block->text + used, BLOCK_NBYTES);
        if (got < 0)
            return fill_with_problem(reader, block, stream->problem);
        if (got == 0 && end_file(reader, block, used))
            return;
        if (end_block(reader, block, used, (size_t)got))
            return;
        used += (size_t)got;
        room = make_room(block, used);
    }
    block->holds = BLOCK_END;
}

struct reader *reader_open(char *const *paths, size_t npaths, char delimiter, bool raw)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->paths = paths;
    reader->npaths = npaths;
    reader->delimiter = delimiter;
    reader->raw = raw;
    reader->stream.fd = -1;
    return reader;
}

const char *reader_problem(const struct reader *reader)
{
    return reader->stream.problem;
}

uint64_t reader_nread(const struct reader *reader)
{
    return reader->stream.nread;
}

void reader_close(struct reader *reader)
{
    stream_close(&reader->stream);
    free(reader->given);
    free(reader);
}
