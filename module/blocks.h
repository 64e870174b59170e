/* blocks.h - what filters of other modules share here: their bytes in blocks and pieces.
 *
 * Such a filter consists of filters, the oldest first, each with a block of bytes.  SCANDUMP
 * gives a header and then the bytes of all blocks in order, in pieces that do not cross from
 * one block to the next.  A piece that begins at 'offset' of all these bytes goes with the
 * position offset + its length + 1; and SCANDUMP gets offset + 1 to give it.  RedisBloom does
 * so; pieces of its filters can be loaded by it, and its own here.
 *
 * In an RDB a whole filter is written as its own module does.  That has no place for a filter
 * of which only some LOADCHUNKs came, and whoever took one for whole would answer a wrong
 * "no".  So in the RDB it is a filter of 0 filters, which no module has.  Behind it follow the
 * header; for each piece a position and the bytes; and the position 0.  Other modules refuse
 * that. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include "form.h"

/* How many items are hashed at once: while one is tested, the lines of the next ones are on
 * their way from memory. */
enum { FOREIGN_BATCH = 32 };

/* ---- Bytes in blocks -------------------------------------------------------------------- */

struct block {
    uint8_t *bytes; /* NULL until the first of them has come */
    uint64_t nbytes;
    uint64_t begin; /* offset of its first byte in the bytes of all blocks */
};

/* The positions of pieces are numbers of commands, which have a sign. */
#define BODY_NBYTES_MOST ((uint64_t)INT64_MAX)

/* Begins as { 0 }. */
struct body {
    struct block *blocks;
    size_t nblocks, room;   /* 'room': for how many the array is */
    uint64_t nbytes;        /* of all blocks */
    uint64_t there;         /* how many of them are there, from the first on */
    uint64_t memory_nbytes; /* of the blocks and their array */
};

/* Makes room for one more element in an array that memory_take() gave, or that is NULL:
 * moves it if 'room' elements are not more than 'n'.  Returns 0; or PERHAPS_ERR_MEMORY,
 * having changed nothing. */
int array_make_room(void **array, size_t n, size_t *room, size_t element_nbytes);

/* Appends a block that LOADCHUNKs fill.  Returns 0; or PERHAPS_ERR_MEMORY, also if the bytes of
 * all blocks could not be counted: an enemy may name many blocks, each as large as may be. */
int body_expect_block(struct body *body, uint64_t nbytes);

/* Appends a block of zeros to a body that is whole.  Returns 0 or PERHAPS_ERR_MEMORY. */
int body_append_block(struct body *body, uint64_t nbytes);

/* Releases the last block of a body that is whole. */
void body_drop_block(struct body *body);

static inline bool body_is_whole(const struct body *body)
{
    return body->there == body->nbytes;
}

/* Gives the piece at a position of 1 or more, of those that are there.  Returns as dump() of a
 * form. */
int body_dump(const struct body *body, uint64_t position, struct dump *piece);

/* Takes a piece, as load() of a form.  What came already must come with the same bytes. */
int body_load(struct body *body, uint64_t position, const char *bytes, size_t nbytes,
              const char **why);

void body_release(struct body *body);
int body_copy(struct body *copy, const struct body *body);

/* Returns the share of set bits among these bytes, of which no more than 'bits' are used. */
double share_of_ones(const uint8_t *bytes, uint64_t nbytes, uint64_t bits);

/* Moves an object of memory_take() where the server wants it. */
void object_defrag(RedisModuleDefragCtx *ctx, void **memory);
void body_defrag(RedisModuleDefragCtx *ctx, struct body *body);

/* Members of a form (form.h) whose filters begin with a body; blocks_digest() is told which. */
bool blocks_are_complete(const void *filter);
int blocks_load(void *filter, uint64_t position, const char *bytes, size_t nbytes,
                const char **why);
void blocks_digest(RedisModuleDigest *digest, const struct form *form, const void *filter);

/* ---- RDB -------------------------------------------------------------------------------- */

/* Reads a block and appends it; 'nbytes' is set to its length.  Returns whether it could. */
bool body_read_block(struct body *body, RedisModuleIO *rdb, uint64_t *nbytes);
void body_save_block(RedisModuleIO *rdb, const struct block *block);

/* Writes what came of a filter that is not whole, behind the numbers of one of 0 filters; and
 * reads it. */
void part_save(RedisModuleIO *rdb, const struct form *form, const void *filter);
void *part_read(RedisModuleIO *rdb, const struct form *form, const char **why);

/* Logs why a filter is not read, unless it is simply cut off. */
void rdb_refuse(RedisModuleIO *rdb, const char *why);

#endif
