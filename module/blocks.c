/* blocks.c - the bytes of filters of other modules, in blocks and pieces. */
#include "blocks.h"

#include <string.h>

#include "memory.h"

static const char bad_data[] = "ERR received bad data";

/* ---- Blocks ----------------------------------------------------------------------------- */

int array_make_room(void **array, size_t n, size_t *room, size_t element_nbytes)
{
    if (n < *room)
        return 0;
    size_t more = n ? 2 * n : 1;
    void *moved = memory_take(more * element_nbytes);
    if (!moved)
        return PERHAPS_ERR_MEMORY;
    if (n)
        memcpy(moved, *array, n * element_nbytes);
    memory_give(*array);
    *array = moved;
    *room = more;
    return 0;
}

int body_expect_block(struct body *body, uint64_t nbytes)
{
    size_t room = body->room;
    void *blocks = body->blocks;
    if (nbytes >= BODY_NBYTES_MOST - body->nbytes)
        return PERHAPS_ERR_MEMORY;
    if (array_make_room(&blocks, body->nblocks, &room, sizeof *body->blocks))
        return PERHAPS_ERR_MEMORY;
    body->blocks = blocks;
    body->memory_nbytes += (room - body->room) * sizeof *body->blocks;
    body->room = room;
    body->blocks[body->nblocks++] = (struct block){ .nbytes = nbytes, .begin = body->nbytes };
    body->nbytes += nbytes;
    return 0;
}

static int take_block(struct body *body, struct block *block)
{
    block->bytes = memory_take(block->nbytes);
    if (!block->bytes)
        return PERHAPS_ERR_MEMORY;
    body->memory_nbytes += block->nbytes;
    return 0;
}

/* Takes back what body_expect_block() did, but for the room. */
static void forget_block(struct body *body)
{
    body->nbytes -= body->blocks[--body->nblocks].nbytes;
}

int body_append_block(struct body *body, uint64_t nbytes)
{
    if (body_expect_block(body, nbytes))
        return PERHAPS_ERR_MEMORY;
    if (take_block(body, &body->blocks[body->nblocks - 1])) {
        forget_block(body);
        return PERHAPS_ERR_MEMORY;
    }
    body->there = body->nbytes;
    return 0;
}

void body_drop_block(struct body *body)
{
    const struct block *last = &body->blocks[body->nblocks - 1];
    memory_give(last->bytes);
    body->memory_nbytes -= last->nbytes;
    forget_block(body);
    body->there = body->nbytes;
}

void body_release(struct body *body)
{
    for (size_t i = 0; i < body->nblocks; i++)
        memory_give(body->blocks[i].bytes);
    memory_give(body->blocks);
    *body = (struct body){ 0 };
}

/* Returns how many bytes of a block are there. */
static uint64_t there_of(const struct body *body, const struct block *block)
{
    uint64_t there = body->there > block->begin ? body->there - block->begin : 0;
    return there < block->nbytes ? there : block->nbytes;
}

int body_copy(struct body *copy, const struct body *body)
{
    *copy = (struct body){ 0 };
    for (size_t i = 0; i < body->nblocks; i++) {
        const struct block *from = &body->blocks[i];
        if (body_expect_block(copy, from->nbytes) ||
            (from->bytes && take_block(copy, &copy->blocks[i]))) {
            body_release(copy);
            return PERHAPS_ERR_MEMORY;
        }
        if (from->bytes)
            memcpy(copy->blocks[i].bytes, from->bytes, there_of(body, from));
    }
    copy->there = body->there;
    return 0;
}

double share_of_ones(const uint8_t *bytes, uint64_t nbytes, uint64_t bits)
{
    uint64_t ones = 0, word;
    for (uint64_t at = 0; at < nbytes; at += sizeof word) {
        word = 0;
        memcpy(&word, bytes + at, nbytes - at < sizeof word ? nbytes - at : sizeof word);
        ones += (uint64_t)__builtin_popcountll(word);
    }
    const double share = (double)ones / (double)(nbytes * 8 < bits ? nbytes * 8 : bits);
    return share < 1 ? share : 1;
}

void object_defrag(RedisModuleDefragCtx *ctx, void **memory)
{
    void *moved = *memory && server.DefragAlloc ? server.DefragAlloc(ctx, *memory) : NULL;
    if (moved)
        *memory = moved;
}

void body_defrag(RedisModuleDefragCtx *ctx, struct body *body)
{
    void *memory = body->blocks;
    object_defrag(ctx, &memory);
    body->blocks = memory;
    for (size_t i = 0; i < body->nblocks; i++) {
        memory = body->blocks[i].bytes;
        object_defrag(ctx, &memory);
        body->blocks[i].bytes = memory;
    }
}

/* ---- Pieces ----------------------------------------------------------------------------- */

/* Returns the block that has the byte at this offset, which is below body->nbytes. */
static struct block *block_at(const struct body *body, uint64_t offset)
{
    size_t first = 0, behind = body->nblocks;
    while (behind - first > 1) {
        size_t middle = first + (behind - first) / 2;
        if (body->blocks[middle].begin <= offset)
            first = middle;
        else
            behind = middle;
    }
    return &body->blocks[first];
}

int body_dump(const struct body *body, uint64_t position, struct dump *piece)
{
    const uint64_t offset = position - 1;
    *piece = (struct dump){ 0 };
    if (offset > body->there)
        return PERHAPS_ERR_ARGUMENT;
    if (offset == body->there)
        return 0;
    const struct block *block = block_at(body, offset);
    const uint64_t begin = offset - block->begin, left = there_of(body, block) - begin;
    piece->bytes = (const char *)block->bytes + begin;
    piece->nbytes = left < DUMP_MOST_NBYTES ? left : DUMP_MOST_NBYTES;
    piece->next = position + piece->nbytes;
    return 0;
}

/* Takes a piece for 'offset', which lies within this block. */
static int load_into(struct body *body, struct block *block, uint64_t offset, const char *bytes,
                     size_t nbytes, const char **why)
{
    const uint64_t begin = offset - block->begin;
    if (offset < body->there && nbytes <= body->there - offset) {
        *why = "ERR this chunk has come already, with other bytes";
        return memcmp(block->bytes + begin, bytes, nbytes) ? PERHAPS_ERR_ARGUMENT : 0;
    }
    *why = "ERR chunks must come in order";
    if (offset != body->there)
        return PERHAPS_ERR_ARGUMENT;
    *why = "ERR Insufficient memory to create filter";
    if (!block->bytes && take_block(body, block))
        return PERHAPS_ERR_MEMORY;
    memcpy(block->bytes + begin, bytes, nbytes);
    body->there += nbytes;
    return 0;
}

int body_load(struct body *body, uint64_t position, const char *bytes, size_t nbytes,
              const char **why)
{
    *why = bad_data;
    if (!nbytes || position <= nbytes)
        return PERHAPS_ERR_ARGUMENT;
    const uint64_t offset = position - nbytes - 1;
    *why = "ERR invalid offset - no link found";
    if (offset >= body->nbytes)
        return PERHAPS_ERR_ARGUMENT;
    struct block *block = block_at(body, offset);
    *why = "ERR invalid chunk - Too big for current filter";
    if (nbytes > block->nbytes - (offset - block->begin))
        return PERHAPS_ERR_ARGUMENT;
    return load_into(body, block, offset, bytes, nbytes, why);
}

bool blocks_are_complete(const void *filter)
{
    return body_is_whole(filter);
}

int blocks_load(void *filter, uint64_t position, const char *bytes, size_t nbytes,
                const char **why)
{
    return body_load(filter, position, bytes, nbytes, why);
}

void blocks_digest(RedisModuleDigest *digest, const struct form *form, const void *filter)
{
    const struct body *body = filter;
    struct dump header;
    if (!form->dump(filter, 0, &header))
        server.DigestAddStringBuffer(digest, header.bytes, header.nbytes);
    memory_give(header.memory);
    for (size_t i = 0; i < body->nblocks && body->blocks[i].bytes; i++)
        server.DigestAddStringBuffer(digest, (const char *)body->blocks[i].bytes,
                                     there_of(body, &body->blocks[i]));
    server.DigestEndSequence(digest);
}

/* ---- RDB -------------------------------------------------------------------------------- */

bool body_read_block(struct body *body, RedisModuleIO *rdb, uint64_t *nbytes)
{
    size_t length = 0;
    char *bytes = server.LoadStringBuffer(rdb, &length);
    bool could = bytes && length && !server.IsIOError(rdb) && !body_append_block(body, length);
    if (could)
        memcpy(body->blocks[body->nblocks - 1].bytes, bytes, length);
    if (bytes)
        server.Free(bytes);
    *nbytes = length;
    return could;
}

void body_save_block(RedisModuleIO *rdb, const struct block *block)
{
    server.SaveStringBuffer(rdb, (const char *)block->bytes, block->nbytes);
}

void part_save(RedisModuleIO *rdb, const struct form *form, const void *filter)
{
    struct dump piece;
    uint64_t position = 0;
    for (;; position = piece.next) {
        if (form->dump(filter, position, &piece)) {
            server.LogIOError(rdb, "warning", "too little memory to write a filter");
            break;
        }
        if (position)
            server.SaveUnsigned(rdb, piece.next);
        if (!piece.nbytes)
            return;
        server.SaveStringBuffer(rdb, piece.bytes, piece.nbytes);
        memory_give(piece.memory);
    }
    /* 0 bytes of a header, which nobody takes for a filter */
    server.SaveStringBuffer(rdb, "", 0);
}

/* Reads a piece and passes it to the filter.  Returns whether it could. */
static bool read_piece(RedisModuleIO *rdb, const struct form *form, void *filter,
                       uint64_t position, const char **why)
{
    size_t nbytes = 0;
    char *bytes = server.LoadStringBuffer(rdb, &nbytes);
    bool could =
        bytes && !server.IsIOError(rdb) && !form->load(filter, position, bytes, nbytes, why);
    if (bytes)
        server.Free(bytes);
    return could;
}

void *part_read(RedisModuleIO *rdb, const struct form *form, const char **why)
{
    size_t nbytes = 0;
    char *header = server.LoadStringBuffer(rdb, &nbytes);
    void *filter = NULL;
    *why = bad_data;
    if (header && !server.IsIOError(rdb) && form->is_header(header, nbytes))
        filter = form->begin_load(header, nbytes, why);
    if (header)
        server.Free(header);
    if (!filter)
        return NULL;
    for (uint64_t position; (position = server.LoadUnsigned(rdb)) != 0;)
        if (server.IsIOError(rdb) || !read_piece(rdb, form, filter, position, why)) {
            form->release(filter);
            return NULL;
        }
    if (!server.IsIOError(rdb) && !form->is_complete(filter))
        return filter;
    form->release(filter);
    return NULL;
}

void rdb_refuse(RedisModuleIO *rdb, const char *why)
{
    if (!server.IsIOError(rdb))
        server.LogIOError(rdb, "warning", "%s", why);
}
