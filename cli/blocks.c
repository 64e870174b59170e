#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#include "stream.h"

struct blocks {
    char *const *paths;
    size_t npaths;
    char delimiter;
    bool raw;
    uint64_t nread;
    struct stream stream;
    size_t source;

    struct block given;

    size_t nbegun;
    char begun[BLOCK_NBYTES]; /* of a record, behind the last whole one that was read */
};

/* Makes room for BLOCK_NBYTES behind the first 'used', for a missing last delimiter, and for
 * what those who move records look at behind it. */
static bool make_room(struct block *block, size_t used)
{
    size_t needed = used + BLOCK_NBYTES + 1 + BLOCK_SLACK_NBYTES;
    if (block->text && block->room >= needed)
        return true;
    size_t room = block->room * 2 > needed ? block->room * 2 : needed;
    char *text = realloc(block->text, room);
    if (!text)
        return false;
    block->text = text;
    block->room = room;
    return true;
}

/* One long record shall not take its room for good in each of many blocks. */
static void give_back_room(struct block *block)
{
    if (block->room <= 4 * BLOCK_NBYTES)
        return;
    free(block->text);
    block->text = NULL;
    block->room = 0;
}

/* A file has ended: its last record may lack the delimiter. */
static bool end_file(struct blocks *blocks, struct block *block, size_t used)
{
    block->source = blocks->source++;
    stream_close(&blocks->stream);
    if (used == 0)
        return false;
    block->text[used] = blocks->delimiter;
    block->nbytes = used + 1;
    return true;
}

static void fill_with_problem(struct blocks *blocks, struct block *block, const char *problem)
{
    block->state = BLOCK_PROBLEM;
    block->source = blocks->source;
    blocks->stream.problem = problem;
}

/* Ends the block behind the last delimiter among the 'got' bytes that were read behind the
 * first 'used'.  false: there is none. */
static bool end_block(struct blocks *blocks, struct block *block, size_t used, size_t got)
{
    const char *last = memrchr(block->text + used, blocks->delimiter, got);
    if (!last)
        return false;
    block->source = blocks->source;
    block->nbytes = (size_t)(last + 1 - block->text);
    blocks->nbegun = used + got - block->nbytes;
    memcpy(blocks->begun, last + 1, blocks->nbegun);
    return true;
}

bool blocks_give(struct blocks *blocks, const char *text, size_t nbytes)
{
    if (!make_room(&blocks->given, nbytes))
        return false;
    memcpy(blocks->given.text, text, nbytes);
    blocks->given.nbytes = nbytes;
    return true;
}

void blocks_read(struct blocks *blocks, struct block *block)
{
    if (blocks->given.text) {
        free(block->text);
        *block = blocks->given;
        blocks->given = (struct block){ 0 };
        blocks->source = blocks->npaths;
        return;
    }
    struct stream *stream = &blocks->stream;
    size_t used = blocks->nbegun;
    blocks->nbegun = 0;
    block->state = BLOCK_RECORDS;
    block->nbytes = 0;
    give_back_room(block);
    bool room = make_room(block, used);
    if (room)
        memcpy(block->text, blocks->begun, used);
    while (blocks->source < blocks->npaths) {
        if (!room)
            return fill_with_problem(blocks, block, "out of memory for so long a line");
        if (stream->fd < 0 && !stream_open(stream, blocks->paths[blocks->source], blocks->raw))
            return fill_with_problem(blocks, block, stream->problem);
        ssize_t got = stream_read(stream, block->text + used, BLOCK_NBYTES);
        if (got < 0)
            return fill_with_problem(blocks, block, stream->problem);
        if (got == 0 && end_file(blocks, block, used))
            return;
        if (end_block(blocks, block, used, (size_t)got))
            return;
        used += (size_t)got;
        room = make_room(block, used);
    }
    block->state = BLOCK_END;
}

struct blocks *blocks_open(char *const *paths, size_t npaths, char delimiter, bool raw)
{
    struct blocks *blocks = malloc(sizeof *blocks);
    if (!blocks)
        return NULL;
    blocks->paths = paths;
    blocks->npaths = npaths;
    blocks->delimiter = delimiter;
    blocks->raw = raw;
    blocks->given = (struct block){ 0 };
    blocks->nread = blocks->source = blocks->nbegun = 0;
    stream_init(&blocks->stream, &blocks->nread);
    return blocks;
}

const char *blocks_problem(const struct blocks *blocks)
{
    return blocks->stream.problem;
}

uint64_t blocks_nread(const struct blocks *blocks)
{
    return blocks->nread;
}

void blocks_close(struct blocks *blocks)
{
    if (!blocks)
        return;
    stream_close(&blocks->stream);
    free(blocks->given.text);
    free(blocks);
}
