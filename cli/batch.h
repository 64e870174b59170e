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
    uint64_t line;              /* of the first record in its file, from 1 on */

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

#endif
