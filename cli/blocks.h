/* blocks.h - the inputs as blocks of whole records. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block holds the records that end in at most so many bytes, hence at most so many.  With
 * what is made of it it fits in a core's second-level cache. */
#define BLOCK_NBYTES ((size_t)128 << 10)

/* Behind the text of a block there is room for so many bytes more. */
#define BLOCK_SLACK_NBYTES 32

struct block {
    enum { BLOCK_RECORDS, BLOCK_END, BLOCK_PROBLEM } state;
    size_t source; /* which of the paths it is from */
    char *text;    /* whole records, each with its delimiter, the last of a file too */
    size_t nbytes; /* 0 unless BLOCK_RECORDS */
    size_t room;
};

struct blocks;

/* Reads the files at 'paths' one after the other; 'raw': their bytes as they are, packed or
 * not.  NULL: out of memory. */
struct blocks *blocks_open(char *const *paths, size_t npaths, char delimiter, bool raw);

/* Reads the text, which holds whole records, instead of files.  false: out of memory. */
bool blocks_give(struct blocks *blocks, const char *text, size_t nbytes);

/* Fills the block, which is all zero or was filled before, with what comes next.  Behind
 * BLOCK_END and BLOCK_PROBLEM nothing does. */
void blocks_read(struct blocks *blocks, struct block *block);

/* After BLOCK_PROBLEM: what is wrong with the source. */
const char *blocks_problem(const struct blocks *blocks);

/* Bytes read so far, as they stand in the files. */
uint64_t blocks_nread(const struct blocks *blocks);

/* NULL is allowed. */
void blocks_close(struct blocks *blocks);

#endif
