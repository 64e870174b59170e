/* blocks.c - reads files one after the other (stream.c), and cuts their bytes into blocks of
 * whole lines. */
#include "blocks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

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
    size_t block_nbytes; /* so many bytes are read at once */
    struct stream stream;
    size_t source;              /* the number of the path that is read, or will be */
    uint64_t offset;            /* in its file, unpacked, of the next block */
    const struct piece *pieces; /* what the files hold; NULL: they are to be read */
    struct extent *extents;     /* what is known of the files; may be NULL */

    enum file_change change; /* of the first file that changed */
    size_t changed;
    uint64_t changed_end;

    char *given; /* the text of reader_give(), until a block takes it */
    size_t given_nbytes;

    size_t nbegun;
    char begun[]; /* what was read of the next record: up to block_nbytes */
};

/* Makes room for one read behind the first 'used' bytes, a last delimiter that the file may
 * lack, and the slack.  At least doubles it.  Returns false without memory. */
static bool make_read_room(const struct reader *reader, struct block *block, size_t used)
{
    size_t needed = used + reader->block_nbytes + 1 + BLOCK_SLACK_NBYTES;
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
static void give_back_room(const struct reader *reader, struct block *block)
{
    if (block->room_nbytes <= 4 * reader->block_nbytes)
        return;
    free(block->text);
    block->text = NULL;
    block->room_nbytes = 0;
}

/* Closes a file that has ended, and notes what was seen of it, or what has become of it. */
static void close_file(struct reader *reader)
{
    struct stream *stream = &reader->stream;
    struct extent *extent = reader->extents ? &reader->extents[reader->source] : NULL;
    if (!extent) {
        stream_close(stream);
    } else if (!extent->known) {
        stream_close_known(stream, extent);
    } else {
        if (!reader->change) {
            reader->change =
                change_of(reader->paths[reader->source], &extent->found, stream->file_at);
            reader->changed = reader->source;
            reader->changed_end = stream->file_at;
        }
        stream_close(stream);
    }
}

/* Goes on to the next file.  Ends the block, and returns true, if a record of this one is left;
 * that one lacks its delimiter, which is added. */
static bool end_file(struct reader *reader, struct block *block, size_t used)
{
    block->offset = reader->offset;
    reader->offset = 0;
    close_file(reader);
    block->source = reader->source++;
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

void reader_keep_to(struct reader *reader, struct extent *extents)
{
    reader->extents = extents;
}

enum file_change reader_change(const struct reader *reader, size_t *source, uint64_t *nbytes)
{
    *source = reader->changed;
    *nbytes = reader->changed_end;
    return reader->change;
}

/* Opens the next file.  A pipe gets room for what comes between two reads: 1 MiB, which the
 * system may refuse.  Returns false (problem) if it fails. */
static bool open_input(struct reader *reader)
{
    struct stream *stream = &reader->stream;
    if (!stream_open(stream, reader->paths[reader->source], reader->raw,
                     reader->extents ? &reader->extents[reader->source] : NULL))
        return false;
    if (reader->block_nbytes > BLOCK_NBYTES && S_ISFIFO(stream->found.st_mode))
        (void)fcntl(stream->fd, F_SETPIPE_SZ, 1 << 20);
    return true;
}

/* Makes sure that a file is open, or a piece begun.  Returns false (problem) if it fails. */
static bool open_next(struct reader *reader)
{
    struct stream *stream = &reader->stream;
    if (!reader->pieces)
        return stream->fd >= 0 || open_input(reader);
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
    give_back_room(reader, block);
    bool room = make_read_room(reader, block, used);
    if (room)
        memcpy(block->text, reader->begun, used);
    while (reader->source < reader->npaths) {
        if (!reader->pieces && stream->fd < 0 &&
            is_read_before(reader->paths, reader->source)) {
            reader->source++;
            continue;
        }
        if (!room)
            return fill_with_problem(reader, block,
                                     used > reader->block_nbytes ? TOO_LONG : NULL);
        if (!open_next(reader))
            return fill_with_problem(reader, block, stream->problem);
        ssize_t got = stream_read(stream, block->text + used, reader->block_nbytes);
        if (got < 0)
            return fill_with_problem(reader, block, stream->problem);
        if (got == 0 && end_file(reader, block, used))
            return;
        if (end_block(reader, block, used, (size_t)got))
            return;
        used += (size_t)got;
        room = make_read_room(reader, block, used);
    }
    block->holds = BLOCK_END;
}

struct reader *reader_open(char *const *paths, size_t npaths, char delimiter, bool raw,
                           size_t block_nbytes)
{
    struct reader *reader = calloc(1, sizeof *reader + block_nbytes);
    if (!reader)
        return NULL;
    reader->block_nbytes = block_nbytes;
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
