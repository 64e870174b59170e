/* blocks.h - the inputs as blocks of whole lines, and what is found out about those. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <perhaps.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block holds the records that end in at most so many bytes, hence at most so many.  With
 * what is made of it it fits in a core's second-level cache. */
#define BLOCK_NBYTES ((size_t)128 << 10)

/* Behind the text of a block there is room for so many bytes more. */
#define BLOCK_SLACK_NBYTES 32

/* Memory that is used again for every text that a block holds. */
struct room {
    void *memory;
    size_t nbytes;
};

/* Room for 'count' members; nothing of what was there before is kept.  NULL: no memory. */
void *room_for(struct room *room, size_t count, size_t member_nbytes);

struct block {
    enum { BLOCK_RECORDS, BLOCK_END, BLOCK_PROBLEM } holds;
    size_t source; /* which of the paths it is from */
    char *text;    /* whole records, each with its delimiter, the last of a file too */
    size_t nbytes; /* 0 unless BLOCK_RECORDS */
    size_t room_nbytes;

    size_t count;               /* of the records */
    struct perhaps_key *record; /* its delimiter is the next byte */
    struct perhaps_key *key;    /* what the filter is asked or told: the record or part of it */
    bool *answer;               /* room for one each */
    struct perhaps_hashed *hashed; /* of each key, if 'is_hashed': see block_hash() */
    uint64_t *number;              /* the verb's own, of each record: its time, or its count */
    bool is_hashed;
    size_t nselected; /* the verb's own: how many it counts */
    uint64_t line;    /* of the first record in its file, from 1 on */

    /* Lines that lack what is asked of them are not among the records: see block_skip(). */
    size_t nskipped;
    size_t first_skipped; /* how many lines of the block stand before it */
    const char *lacks;    /* what it lacks */
    size_t *place; /* of each record, if any were skipped: how many lines stand before it */

    /* What is wrong with a record, if anything; those before it have been dealt with. */
    size_t ndone;
    int error;           /* a perhaps_error */
    const char *problem; /* or what else there is */

    char *output; /* what is to be printed */
    size_t output_nbytes;

    /* Of the members above; FOR_WRITTEN: keys that are not pieces of their records; FOR_VERB:
     * the verb's own. */
    struct room room[9];

    /* The pipeline's. */
    enum { IDLE, READY, BUSY } state;
    size_t stage;    /* the next one, or the one that it is in */
    uint64_t ticket; /* its place in the order */
};

enum {
    FOR_RECORDS,
    FOR_KEYS,
    FOR_ANSWERS,
    FOR_HASHES,
    FOR_NUMBERS,
    FOR_PLACES,
    FOR_WRITTEN,
    FOR_OUTPUT,
    FOR_VERB,
};

/* Releases what the block owns. */
void block_release(struct block *block);

struct reader;

/* Reads the files at 'paths' one after the other; 'raw': their bytes as they are, packed or
 * not.  NULL: out of memory. */
struct reader *reader_open(char *const *paths, size_t npaths, char delimiter, bool raw);

/* Takes the text, which holds whole records, and has BLOCK_SLACK_NBYTES more behind it, to be
 * read instead of files; free() releases it. */
void reader_give(struct reader *reader, char *text, size_t nbytes);

/* Fills the block, which is all zero or was filled before, with what comes next.  Behind
 * BLOCK_END and BLOCK_PROBLEM nothing does. */
void reader_read(struct reader *reader, struct block *block);

/* After BLOCK_PROBLEM: what is wrong with the source. */
const char *reader_problem(const struct reader *reader);

/* Bytes read so far, as they stand in the files. */
uint64_t reader_nread(const struct reader *reader);

void reader_close(struct reader *reader);

/* Why a file will be refused, if its first bytes tell: it holds no lines.  Or NULL. */
const char *reader_refusal(const char *path);

#endif
