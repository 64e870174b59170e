/* blocks.h - reads the inputs as blocks of whole lines.
 *
 * A block is the unit of work of the verbs that read keys.  The reader fills it with text, the
 * stages of lines.c find its records and keys, the stage of the verb asks the filter or changes
 * it, and output.c prints what is to be printed.  Then the reader fills the same block
 * again.
 *
 * One thread at a time works on a block, so its members need no lock.  Only 'state', 'stage'
 * and 'ticket' belong to the pipeline, and its lock protects them. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <perhaps_cluster.h>
#include <perhaps_fast.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream.h"

/* A block ends with the last record that ends within one read of at most this many bytes.  So
 * it holds at most this many records from files.  The text and all that is found out about it
 * fit in the second-level cache of a core.  For servers, which may be far, it has more: it
 * takes one way there and back for each block, and what has come in a pipe meanwhile is
 * the next one.  So it has for a filter that lies on the disk. */
#define BLOCK_NBYTES     ((size_t)128 << 10)
#define BLOCK_FAR_NBYTES ((size_t)2 << 20)

/* There is room for this many bytes behind the text of a block.  So output.c can move records
 * in pieces of a fixed size. */
#define BLOCK_SLACK_NBYTES 32

/* Memory that is used again for every text that a block holds.  It only grows. */
struct room {
    void *memory;
    size_t nbytes;
};

/* Returns room for 'count' members, and keeps nothing of what was there before; NULL if there
 * is no memory. */
void *room_for(struct room *room, size_t count, size_t member_nbytes);

/* A piece of an input, and what the stages find out about it.  Invariant: member i of record,
 * key and answer belong together, and so do those of hashed, number and place where these are
 * set; ndone <= count.  input.c owns the blocks.  A block owns its text and its rooms, and its
 * arrays lie in the rooms. */
struct block {
    enum { BLOCK_RECORDS, BLOCK_END, BLOCK_PROBLEM } holds;
    size_t source; /* the number of the path that it is from */
    char *text; /* whole records, each with its delimiter: the last of a file gets one, too */
    size_t nbytes;      /* of the text; 0 unless BLOCK_RECORDS */
    uint64_t offset;    /* of the text in its file, which is unpacked; not for a given text */
    size_t room_nbytes; /* how many bytes of 'text' are allocated */

    size_t count;               /* how many records there are */
    struct perhaps_key *record; /* without its delimiter, which is the next byte */
    struct perhaps_key *key;    /* what the filter gets: the record or a part of it */
    uint8_t *answer; /* enum perhaps_answer of each record: written by the stage of the verb */
    struct perhaps_hashed *hashed; /* one for each key, if 'is_hashed': see block_hash() */
    uint64_t *number; /* one for each record: the verb writes its time or its count */
    bool is_hashed;
    size_t nselected; /* the verb counts here the records that it selects */
    size_t nunknown;  /* and query those whose answer is unknown */
    uint32_t strange; /* of the first block of an input: see strange_block() */
    uint64_t line;    /* the number of the first record in its file; the first line is 1 */

    /* Lines without a key or without a time are not among the records: see block_skip(). */
    size_t nskipped;      /* how many */
    size_t first_skipped; /* how many lines of the block stand before the first of them */
    const char *lacks;    /* what the first of them lacks, as the end of a message */
    size_t *place;        /* how many lines stand before each record; set if any was skipped */

    /* The first 'ndone' records have been dealt with.  If one is wrong it is the next one, and
     * 'error' or 'problem' tells what is wrong with it. */
    size_t ndone;
    int error;           /* an enum perhaps_error; 0: none */
    const char *problem; /* a sentence, if there is something to say beyond 'error' */

    char *output; /* what is to be printed: in the text, or in its own room */
    size_t output_nbytes;

    /* One room for each of the members above, by the names below.  FOR_WRITTEN is for keys that
     * are not pieces of their records, and FOR_VERB is free for the verb. */
    struct room room[9];

    /* For pipeline.c.  IDLE: empty; READY: waits for its next stage; BUSY: a thread has it. */
    enum { IDLE, READY, BUSY } state;
    size_t stage;    /* the next one, or the one that it is in */
    uint64_t ticket; /* how many blocks were read before this one */
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

/* Returns the answers for a call of the library about a filter in a file, which writes NO as
 * false and PERHAPS as true. */
static inline bool *block_bools(struct block *block)
{
    _Static_assert(sizeof(bool) == sizeof *block->answer, "each answer is a byte");
    return (bool *)block->answer;
}

/* Releases what the block owns, but not the block. */
void block_release(struct block *block);

/* Reads the bytes of files one after the other and cuts them into blocks.  Only one thread may
 * use it at a time: reading is the first stage, which is in order. */
struct reader;

/* Makes a reader of the files at 'paths', which must stay where they are; "-" is standard
 * input.  With 'raw' it takes the bytes of the files as they are, packed or not.  Each read is
 * for up to 'block_nbytes'.  Opens no file yet.  Returns NULL if there is no memory. */
struct reader *reader_open(char *const *paths, size_t npaths, char delimiter, bool raw,
                           size_t block_nbytes);

/* Gives the reader a text to read instead of files, which the reader then owns.  The text holds
 * whole records, and has BLOCK_SLACK_NBYTES of room behind it. */
void reader_give(struct reader *reader, char *text, size_t nbytes);

/* Makes the reader read these instead of files: one piece for each path.  They must stay where
 * they are. */
void reader_take_pieces(struct reader *reader, const struct piece *pieces);

/* Has the reader keep to what was seen of the files, if that is known, or else note what it
 * sees: one extent for each path.  They must stay where they are. */
void reader_keep_to(struct reader *reader, struct extent *extents);

/* Returns what became of a file while a reader kept to what was seen of it, of the first file
 * that changed.  Then sets *source to the number of its path, and *nbytes to where reading
 * stopped. */
enum file_change reader_change(const struct reader *reader, size_t *source, uint64_t *nbytes);

/* Fills the block with what comes next.  The block is all zero or was filled before.  After
 * BLOCK_END or BLOCK_PROBLEM the caller does not call it again. */
void reader_read(struct reader *reader, struct block *block);

/* Returns, after BLOCK_PROBLEM, what is wrong with the file; NULL: there is no memory. */
const char *reader_problem(const struct reader *reader);

/* Returns how many bytes of the files were read so far, counted before they are unpacked. */
uint64_t reader_nread(const struct reader *reader);

/* Closes the file that is open and releases the reader.  Not NULL. */
void reader_close(struct reader *reader);

#endif
