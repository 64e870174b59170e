#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"

/* Records are moved as they come, kept or not, in pieces of this size: which ones are kept is
 * as random as the keys, and a branch that is guessed wrong takes longer than a line.  A long
 * record is moved only if it is kept. */
enum { PIECE_NBYTES = BLOCK_SLACK_NBYTES, LONG_NBYTES = 256 };

/* Moves a record down to 'to', which it overlaps by no piece.  Returns where the next one
 * goes. */
static char *keep_if(bool kept, char *to, const char *from, size_t nbytes)
{
    if (nbytes > LONG_NBYTES)
        return kept ? (char *)memmove(to, from, nbytes) + nbytes : to;
    for (size_t i = 0; i < nbytes; i += PIECE_NBYTES)
        memcpy(to + i, from + i, PIECE_NBYTES);
    return to + (kept ? nbytes : 0);
}

/* Returns the place behind the records that are kept from 'i' on, the first of which lies
 * where it shall or not a piece's size above it. */
static size_t keep_first(const struct block *block, bool wanted, char **to, size_t *nkept)
{
    size_t i = 0;
    for (; i < block->ndone; i++) {
        const char *from = block->record[i].bytes;
        size_t nbytes = block->record[i].nbytes + 1;
        if (from >= *to + PIECE_NBYTES)
            break;
        if (block->answer[i] != wanted)
            continue;
        if (*to != from)
            memmove(*to, from, nbytes);
        *to += nbytes;
        ++*nkept;
    }
    return i;
}

size_t output_keep(struct block *block, bool wanted)
{
    const struct perhaps_key *record = block->record;
    const bool *answer = block->answer;
    const size_t count = block->ndone;
    char *to = block->output = block->text;
    size_t nkept = 0;
    for (size_t i = keep_first(block, wanted, &to, &nkept); i < count; i++) {
        bool kept = answer[i] == wanted;
        to = keep_if(kept, to, record[i].bytes, record[i].nbytes + 1);
        nkept += kept;
    }
    block->output_nbytes = (size_t)(to - block->output);
    return nkept;
}

static char *append(char *to, const char *bytes, size_t nbytes)
{
    memcpy(to, bytes, nbytes);
    return to + nbytes;
}

/* For output that does not fit in the place of the records: 'more_nbytes' more for each. */
static char *make_room(struct block *block, size_t more_nbytes)
{
    size_t nbytes = block->nbytes + block->ndone * more_nbytes + 1;
    return block->output = room_for(&block->room[FOR_OUTPUT], nbytes, 1);
}

/* "a,b", or "no". */
static char *append_names(char *to, const char *const *name, size_t nnames, const bool *answer,
                          size_t stride)
{
    char *begin = to;
    for (size_t i = 0; i < nnames; i++) {
        if (!answer[i * stride])
            continue;
        if (to > begin)
            *to++ = ',';
        to = stpcpy(to, name[i]);
    }
    return to > begin ? to : stpcpy(to, "no");
}

bool output_names(struct block *block, const char *const *name, size_t nnames,
                  const bool *answer)
{
    size_t most = sizeof "no\t";
    for (size_t i = 0; i < nnames; i++)
        most += strlen(name[i]) + 1;
    char *to = make_room(block, most);
    if (!to)
        return false;
    for (size_t i = 0; i < block->ndone; i++) {
        to = append_names(to, name, nnames, answer + i, block->count);
        *to++ = '\t';
        to = append(to, block->record[i].bytes, block->record[i].nbytes + 1);
    }
    block->output_nbytes = (size_t)(to - block->output);
    return true;
}

bool output_numbers(struct block *block)
{
    enum { NUMBER_NBYTES = 1 + 20 }; /* a tab and 2^64 - 1, or 15+ */
    char *to = make_room(block, NUMBER_NBYTES);
    if (!to)
        return false;
    for (size_t i = 0; i < block->ndone; i++) {
        const struct perhaps_key *record = &block->record[i];
        const char *delimiter = (const char *)record->bytes + record->nbytes;
        to = append(to, record->bytes, record->nbytes);
        to += block->number[i] < PERHAPS_COUNT_MAX
                  ? sprintf(to, "\t%ju", (uintmax_t)block->number[i])
                  : sprintf(to, "\t%d+", PERHAPS_COUNT_MAX);
        *to++ = *delimiter;
    }
    block->output_nbytes = (size_t)(to - block->output);
    return true;
}

bool output_write(struct output *output, const struct block *block)
{
    const char *bytes = block->output;
    size_t nbytes = block->output_nbytes;
    while (nbytes > 0 && !output->error) {
        ssize_t written = write(STDOUT_FILENO, bytes, nbytes);
        if (written < 0 && errno != EINTR) {
            output->error = errno;
        } else if (written > 0) {
            bytes += written;
            nbytes -= (size_t)written;
        }
    }
    return !output->error;
}

void output_settle(const struct output *output, const char *outcome)
{
    if (output->error == EPIPE)
        leave(128 + SIGPIPE); /* who reads has read enough */
    if (output->error)
        fail("standard output: %s%s", strerror(output->error), outcome);
}
