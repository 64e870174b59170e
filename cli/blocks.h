/* blocks.h - the inputs as blocks of whole records, read ahead by a thread if there is one. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block holds the records that end in at most so many bytes, hence at most so many. */
#define BLOCK_NBYTES ((size_t)256 << 10)

struct block {
    enum { BLOCK_RECORDS, BLOCK_END, BLOCK_PROBLEM } state;
    size_t source;  /* which of the paths it is from */
    char *text;     /* whole records, each with its delimiter, the last of a file too */
    size_t nbytes;  /* 0 unless BLOCK_RECORDS */
    size_t nunused; /* for the reader: the record begun behind them */
    size_t room;
};

struct blocks;

/* Reads the files at 'paths' one after the other.  NULL: out of memory. */
struct blocks *blocks_open(char *const *paths, size_t npaths, char delimiter, bool read_ahead);

/* Returns the next block, which stands until the next call.  Behind BLOCK_END and
 * BLOCK_PROBLEM there is none. */
const struct block *blocks_next(struct blocks *blocks);

/* After BLOCK_PROBLEM: what is wrong with the source. */
const char *blocks_problem(const struct blocks *blocks);

/* Bytes read so far, as they stand in the files. */
uint64_t blocks_nread(struct blocks *blocks);

/* May be called at any time; before the end it makes stop_wait() return false from then on. */
void blocks_close(struct blocks *blocks);

#endif
