/* batch.h - the records of a block of input, and what has been found out about them. */
#ifndef BATCH_H
#define BATCH_H

#include <perhaps.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blocks.h"

struct batch {
    struct block block;
    size_t count, nrecords;     /* of the records there are, and of those there is room for */
    struct perhaps_key *record; /* its delimiter is the next byte */
    struct perhaps_key *key;    /* what the filter is asked or told: the record or part of it */
    bool *answer;               /* room for one each */
    size_t nselected;           /* the verb's own: how many it counts */
    void *scratch;              /* the verb's own, from malloc(): released with the batch */
    struct perhaps_hashed *hashed; /* of each key, if 'is_hashed': see batch_hash() */
    uint64_t *number;              /* the verb's own, of each record: its time, or its count */
    size_t nhashed, nnumbers;      /* that there is room for */
    bool is_hashed;
    uint64_t line; /* of the first record in its file, from 1 on */

    /* Lines that lack what is asked of them are not among the records: see batch_skip(). */
    size_t nskipped;
    size_t first_skipped; /* how many lines of the batch stand before it */
    const char *lacks;    /* what it lacks */
    char *written;        /* keys that are not pieces of their records */
    size_t written_nbytes;
    size_t *place; /* of each record, if any were skipped: how many lines stand before it */
    size_t nplaces;

    /* What is wrong with a record, if anything; those before it have been dealt with. */
    size_t ndone;
    int error;           /* a perhaps_error */
    const char *problem; /* or what else there is */

    char *output; /* what is to be printed */
    size_t output_nbytes;
    char *room; /* for output that does not fit in the place of the records */
    size_t room_nbytes;

    /* The pipeline's. */
    enum { IDLE, READY, BUSY } state;
    size_t stage;    /* the next one, or the one that it is in */
    uint64_t ticket; /* its place in the order */
};

/* Notes the error (0: none) that a stage met, and returns what the stage is to return.  An
 * error before stays. */
static inline bool batch_met(struct batch *batch, int error)
{
    if (error)
        batch->error = error;
    return !error;
}

/* Record 'i' is skipped for what it lacks: those behind it, which the caller goes on to, are
 * moved with batch_keep(), and 'count' is set to how many were.  false: no memory. */
bool batch_skip(struct batch *batch, size_t i, const char *lacks);

static inline void batch_keep(struct batch *batch, size_t to, size_t from)
{
    batch->record[to] = batch->record[from];
    batch->key[to] = batch->key[from];
    if (batch->nskipped)
        batch->place[to] = batch->place[from];
}

/* The line in its file of record 'i'. */
uint64_t batch_line(const struct batch *batch, size_t i);

/* A stage's work that may be done side by side with others: hashes the keys as the filter does.
 * Where it cannot, batch_keys() gives the keys themselves, and the filter will find out which
 * one is wrong. */
bool batch_hash(const perhaps_filter *filter, struct batch *batch);

/* Makes room for the numbers.  false: no memory. */
bool batch_make_numbers(struct batch *batch);

/* 'count' keys from number 'at' on, hashed if they are. */
struct perhaps_keys batch_keys(const struct batch *batch, size_t at, size_t count);

/* Releases what the batch owns but for its records. */
void batch_release(struct batch *batch);

#endif
