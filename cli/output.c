#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

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
static size_t keep_first(const struct batch *batch, bool wanted, char **to, size_t *nkept)
{
    size_t i = 0;
    for (; i < batch->ndone; i++) {
        const char *from = batch->record[i].bytes;
        size_t nbytes = batch->record[i].nbytes + 1;
        if (from >= *to + PIECE_NBYTES)
            break;
        if (batch->answer[i] != wanted)
            continue;
        if (*to != from)
            memmove(*to, from, nbytes);
        *to += nbytes;
        ++*nkept;
    }
    return i;
}

size_t output_keep(struct batch *batch, bool wanted)
{
    const struct perhaps_key *record = batch->record;
    const bool *answer = batch->answer;
    const size_t count = batch->ndone;
    char *to = batch->output = batch->block.text;
    size_t nkept = 0;
    for (size_t i = keep_first(batch, wanted, &to, &nkept); i < count; i++) {
        bool kept = answer[i] == wanted;
        to = keep_if(kept, to, record[i].bytes, record[i].nbytes + 1);
        nkept += kept;
    }
    batch->output_nbytes = (size_t)(to - batch->output);
    return nkept;
}

static const struct label {
    char text[9];
    size_t nbytes;
} labels[2] = { { "no\t", 3 }, { "perhaps\t", 8 } };

static bool make_room(struct batch *batch, size_t nbytes)
{
    if (batch->room_nbytes >= nbytes)
        return true;
    free(batch->room);
    batch->room = malloc(nbytes);
    batch->room_nbytes = batch->room ? nbytes : 0;
    return batch->room;
}

static char *append(char *to, const char *bytes, size_t nbytes)
{
    memcpy(to, bytes, nbytes);
    return to + nbytes;
}

bool output_label(struct batch *batch)
{
    size_t most = batch->block.nbytes + batch->ndone * labels[true].nbytes;
    if (!make_room(batch, most))
        return false;
    char *to = batch->output = batch->room;
    for (size_t i = 0; i < batch->ndone; i++) {
        const struct label *label = &labels[batch->answer[i]];
        to = append(to, label->text, label->nbytes);
        to = append(to, batch->record[i].bytes, batch->record[i].nbytes + 1);
    }
    batch->output_nbytes = (size_t)(to - batch->output);
    return true;
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

bool output_names(struct batch *batch, const char *const *name, size_t nnames,
                  const bool *answer)
{
    size_t most = sizeof "no\t";
    for (size_t i = 0; i < nnames; i++)
        most += strlen(name[i]) + 1;
    if (!make_room(batch, batch->block.nbytes + batch->ndone * most + 1))
        return false;
    char *to = batch->output = batch->room;
    for (size_t i = 0; i < batch->ndone; i++) {
        to = append_names(to, name, nnames, answer + i, batch->count);
        *to++ = '\t';
        to = append(to, batch->record[i].bytes, batch->record[i].nbytes + 1);
    }
    batch->output_nbytes = (size_t)(to - batch->output);
    return true;
}

bool output_numbers(struct batch *batch)
{
    enum { NUMBER_NBYTES = 1 + 20 }; /* a tab and 2^64 - 1, or 15+ */
    if (!make_room(batch, batch->block.nbytes + batch->ndone * NUMBER_NBYTES + 1))
        return false;
    char *to = batch->output = batch->room;
    for (size_t i = 0; i < batch->ndone; i++) {
        const struct perhaps_key *record = &batch->record[i];
        const char *delimiter = (const char *)record->bytes + record->nbytes;
        to = append(to, record->bytes, record->nbytes);
        to += batch->number[i] < PERHAPS_COUNT_MAX
                  ? sprintf(to, "\t%ju", (uintmax_t)batch->number[i])
                  : sprintf(to, "\t%d+", PERHAPS_COUNT_MAX);
        *to++ = *delimiter;
    }
    batch->output_nbytes = (size_t)(to - batch->output);
    return true;
}

bool output_write(struct output *output, const struct batch *batch)
{
    const char *bytes = batch->output;
    size_t nbytes = batch->output_nbytes;
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

int output_complain(const struct output *output, const char *outcome)
{
    if (output->error == EPIPE)
        return 128 + SIGPIPE; /* who reads has read enough */
    return complain("standard output: %s%s", strerror(output->error), outcome);
}
