/* A ring of blocks between one who fills and one who uses them.
 *
 *      use_at           fill_at
 *        v                 v
 *   | used | full | full | filled |      'nfull' counts the used one too
 *
 * A record that a block begins and does not end is copied to the front of the next one, so a
 * block is filled while the one before it still stands: hence two of them at least.  Without a
 * reading thread the user fills each block when it asks for it. */
#include "blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stop.h"
#include "stream.h"

#define NBLOCKS_MAX 4

struct blocks {
    char *const *paths;
    size_t npaths;
    char delimiter;
    atomic_uint_fast64_t nread;

    /* The filler's. */
    struct stream stream;
    size_t source;
    size_t fill_at;

    /* The user's. */
    size_t use_at;
    bool using;    /* the block at use_at */
    bool finished; /* it is the last */

    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t nfull; /* under the lock */
    bool closing; /* under the lock */

    size_t nblocks;
    struct block block[NBLOCKS_MAX];
};

/* ---- Filling ----------------------------------------------------------------------- */

/* Makes room for BLOCK_NBYTES behind the first 'used', and for a missing last delimiter. */
static bool make_room(struct block *block, size_t used)
{
    size_t needed = used + BLOCK_NBYTES + 1;
    if (block->room >= needed)
        return true;
    size_t room = block->room * 2 > needed ? block->room * 2 : needed;
    char *text = realloc(block->text, room);
    if (!text)
        return false;
    block->text = text;
    block->room = room;
    return true;
}

/* Copies the record that the block before has begun.  false: out of memory. */
static bool continue_record(const struct blocks *blocks, struct block *block, size_t *used)
{
    size_t n = blocks->nblocks;
    const struct block *before = &blocks->block[(blocks->fill_at + n - 1) % n];
    *used = before->nunused;
    if (!make_room(block, *used))
        return false;
    if (*used)
        memcpy(block->text, before->text + before->nbytes, *used);
    return true;
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

static void fill(struct blocks *blocks, struct block *block)
{
    struct stream *stream = &blocks->stream;
    size_t used;
    bool room = continue_record(blocks, block, &used);
    block->state = BLOCK_RECORDS;
    block->nbytes = block->nunused = 0;
    while (blocks->source < blocks->npaths) {
        if (!room)
            return fill_with_problem(blocks, block, "out of memory for so long a line");
        if (stream->fd < 0 && !stream_open(stream, blocks->paths[blocks->source]))
            return fill_with_problem(blocks, block, stream->problem);
        ssize_t got = stream_read(stream, block->text + used, BLOCK_NBYTES);
        if (got < 0)
            return fill_with_problem(blocks, block, stream->problem);
        if (got == 0 && end_file(blocks, block, used))
            return;
        const char *last = memrchr(block->text + used, blocks->delimiter, (size_t)got);
        used += (size_t)got;
        if (last) {
            block->source = blocks->source;
            block->nbytes = (size_t)(last + 1 - block->text);
            block->nunused = used - block->nbytes;
            return;
        }
        room = make_room(block, used);
    }
    block->state = BLOCK_END;
}

/* Returns false after the last one. */
static bool fill_next(struct blocks *blocks)
{
    struct block *block = &blocks->block[blocks->fill_at];
    fill(blocks, block);
    blocks->fill_at = (blocks->fill_at + 1) % blocks->nblocks;
    return block->state == BLOCK_RECORDS;
}

/* ---- Reading ahead ----------------------------------------------------------------- */

/* Waits until the filler may go on.  false: it shall end. */
static bool wait_for_room(struct blocks *blocks)
{
    pthread_mutex_lock(&blocks->lock);
    while (blocks->nfull == blocks->nblocks && !blocks->closing)
        pthread_cond_wait(&blocks->changed, &blocks->lock);
    bool go_on = !blocks->closing;
    pthread_mutex_unlock(&blocks->lock);
    return go_on;
}

static void change_nfull(struct blocks *blocks, int by)
{
    pthread_mutex_lock(&blocks->lock);
    blocks->nfull += (size_t)by;
    pthread_cond_signal(&blocks->changed);
    pthread_mutex_unlock(&blocks->lock);
}

static void *read_ahead(void *argument)
{
    struct blocks *blocks = argument;
    bool more = true;
    while (more && wait_for_room(blocks)) {
        more = fill_next(blocks);
        change_nfull(blocks, 1);
    }
    return NULL;
}

static void wait_for_block(struct blocks *blocks)
{
    pthread_mutex_lock(&blocks->lock);
    while (blocks->nfull == 0)
        pthread_cond_wait(&blocks->changed, &blocks->lock);
    pthread_mutex_unlock(&blocks->lock);
}

/* ---- For the user ------------------------------------------------------------------ */

struct blocks *blocks_open(char *const *paths, size_t npaths, char delimiter, bool ahead)
{
    struct blocks *blocks = calloc(1, sizeof *blocks);
    if (!blocks)
        return NULL;
    blocks->paths = paths;
    blocks->npaths = npaths;
    blocks->delimiter = delimiter;
    blocks->nblocks = ahead ? NBLOCKS_MAX : 2;
    stream_init(&blocks->stream, &blocks->nread);
    pthread_mutex_init(&blocks->lock, NULL);
    pthread_cond_init(&blocks->changed, NULL);
    blocks->threaded = ahead && pthread_create(&blocks->thread, NULL, read_ahead, blocks) == 0;
    return blocks;
}

const struct block *blocks_next(struct blocks *blocks)
{
    if (blocks->using) {
        blocks->use_at = (blocks->use_at + 1) % blocks->nblocks;
        if (blocks->threaded)
            change_nfull(blocks, -1);
    }
    blocks->using = true;
    if (blocks->threaded)
        wait_for_block(blocks);
    else
        fill_next(blocks);
    const struct block *block = &blocks->block[blocks->use_at];
    blocks->finished = block->state != BLOCK_RECORDS;
    return block;
}

const char *blocks_problem(const struct blocks *blocks)
{
    return blocks->stream.problem;
}

uint64_t blocks_nread(struct blocks *blocks)
{
    return atomic_load_explicit(&blocks->nread, memory_order_relaxed);
}

static void end_thread(struct blocks *blocks)
{
    pthread_mutex_lock(&blocks->lock);
    blocks->closing = true;
    pthread_cond_signal(&blocks->changed);
    pthread_mutex_unlock(&blocks->lock);
    if (!blocks->finished)
        stop_waiting(); /* it may wait for input that never comes */
    pthread_join(blocks->thread, NULL);
}

void blocks_close(struct blocks *blocks)
{
    if (!blocks)
        return;
    if (blocks->threaded)
        end_thread(blocks);
    stream_close(&blocks->stream);
    for (size_t i = 0; i < blocks->nblocks; i++)
        free(blocks->block[i].text);
    pthread_cond_destroy(&blocks->changed);
    pthread_mutex_destroy(&blocks->lock);
    free(blocks);
}
