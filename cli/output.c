/* output.c - makes the output of a block, and writes it to standard output.
 *
 * Records that are printed as they are stay in the text of their block: those that are wanted
 * are moved together.  Output that adds something to the records has a room of its own. */
#include "output.h"
#include <perhaps_plan.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"

/* Every record is moved, wanted or not, in pieces of this size.  Which records are wanted is as
 * random as the keys, and a branch that the CPU mispredicts takes longer than moving a line.  A
 * long record is moved only if it is wanted. */
enum { PIECE_NBYTES = BLOCK_SLACK_NBYTES, LONG_NBYTES = 256 };

/* Moves a record down to 'to', at least a piece below it.  Returns where the next record
 * goes. */
static char *keep_if(bool kept, char *to, const char *from, size_t nbytes)
{
    if (nbytes > LONG_NBYTES)
        return kept ? (char *)memmove(to, from, nbytes) + nbytes : to;
    for (size_t i = 0; i < nbytes; i += PIECE_NBYTES)
        memcpy(to + i, from + i, PIECE_NBYTES);
    return to + (kept ? nbytes : 0);
}

/* Moves the first records one by one, as long as the next one lies less than a piece above its
 * new place, since a piece would then overlap itself.  Moves *to on, and counts in *nkept.
 * Returns how many records were dealt with. */
static size_t keep_first(const struct block *block, enum perhaps_answer wanted, char **to,
                         size_t *nkept)
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

size_t output_keep(struct block *block, enum perhaps_answer wanted)
{
    const struct perhaps_key *record = block->record;
    const uint8_t *answer = block->answer;
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

/* Returns the end of what it appended. */
static char *append(char *to, const char *bytes, size_t nbytes)
{
    memcpy(to, bytes, nbytes);
    return to + nbytes;
}

/* Makes room for output that does not fit into the place of the records: 'more_nbytes' more for
 * each.  Returns NULL if there is no memory. */
static char *make_room(struct block *block, size_t more_nbytes)
{
    size_t nbytes = block->nbytes + block->ndone * more_nbytes + 1;
    return block->output = room_for(&block->room[FOR_OUTPUT], nbytes, 1);
}

/* Appends "a,b"; or "no"; or "unknown", if none answers "perhaps" and not all "no".  The answer
 * of filter i is answer[i * stride].  Returns the end. */
static char *append_names(char *to, const char *const *name, size_t nnames,
                          const uint8_t *answer, size_t stride)
{
    char *begin = to;
    bool unknown = false;
    for (size_t i = 0; i < nnames; i++) {
        unknown |= answer[i * stride] == PERHAPS_ANSWER_UNKNOWN;
        if (answer[i * stride] != PERHAPS_ANSWER_PERHAPS)
            continue;
        if (to > begin)
            *to++ = ',';
        to = stpcpy(to, name[i]);
    }
    return to > begin ? to : stpcpy(to, unknown ? "unknown" : "no");
}

bool output_names(struct block *block, const char *const *name, size_t nnames,
                  const uint8_t *answer)
{
    size_t most = sizeof "unknown\t";
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
    enum { NUMBER_NBYTES = 1 + 20 }; /* a tab and 2^64 - 1 */
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

bool output_values(struct block *block, const uint32_t *value)
{
    enum { VALUE_NBYTES = 10 + 1 }; /* 2^32 - 1 and a tab */
    char *to = make_room(block, VALUE_NBYTES);
    if (!to)
        return false;
    for (size_t i = 0; i < block->ndone; i++) {
        to +=
            block->answer[i] ? sprintf(to, "%ju\t", (uintmax_t)value[i]) : sprintf(to, "no\t");
        to = append(to, block->record[i].bytes, block->record[i].nbytes + 1);
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
        leave(128 + SIGPIPE); /* the reader of the pipe has read enough */
    if (output->error)
        fail("standard output: %s%s", strerror(output->error), outcome);
}
