/* input.h - keys from files and standard input, a batch at a time. */
#ifndef INPUT_H
#define INPUT_H

#include <perhaps.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "options.h"

struct batch {
    size_t count;
    const struct perhaps_key *key;    /* what the filter is asked or told */
    const struct perhaps_key *record; /* what it was part of; its delimiter is the next byte */
    bool *answer;                     /* room for one each */
    const char *name;                 /* where the keys are from, for messages */
    uint64_t line;                    /* of the first one, from 1 on */
};

struct input;

/* Opens the inputs of the command line.  'doing' stands in the progress line ("adding"), which
 * is left out if 'prints' (the verb prints lines) and those go to the terminal too.
 * Returns 0; or the exit status, having complained and set *input to NULL. */
int input_open(const struct settings *settings, const char *doing, bool prints,
               struct input **input);

/* Makes the next batch of at least one key, which stands until the next call.  Returns 1; 0 at
 * the end; -1 on failure, or when a signal asked to stop: input_complain() says. */
int input_next(struct input *input, struct batch *batch);

/* Says why input_next() failed, and 'outcome' ("; F is unchanged").  Returns the exit status.
 */
int input_complain(const struct input *input, const char *outcome);

/* Says what the filter had against key 'i', where that stands, and 'outcome'.  Returns the exit
 * status. */
int input_complain_key(const struct batch *batch, size_t i, int error, const char *outcome);

/* NULL is allowed. */
void input_close(struct input *input);

/* Sets *capacity to -n; without it to the number of keys that the inputs hold, which takes
 * reading them.  Returns 0, or the exit status, having complained. */
int input_capacity(const struct settings *settings, uint64_t *capacity);

/* Complains if the file is one of the inputs, too.  Returns 0 or the exit status. */
int input_refuse(const struct settings *settings, const struct stat *file, const char *name);

#endif
