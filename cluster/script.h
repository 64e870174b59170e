/* script.h - runs a script (EVAL) at the node of the description.
 *
 * A server runs a script as a whole, so what it looks at is still so when it writes.  Every
 * script looks at the ID of the filter first, so nothing is written to one that was deleted or
 * made anew meanwhile.  Bits are added and asked for by plain commands: a script that does it
 * takes a server twice the time (doc/CLUSTER.md, "What was tried"). */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "handle.h"

enum { SCRIPT_ARGUMENTS = 12, SCRIPT_NBYTES = LAYER_NBYTES + 128, SCRIPT_NUMBERS = 6 };

/* A script, and its arguments: ARGV[4] and those behind it.  It finds these variables:
 *
 *     about, counts   the Redis keys of the description and of the counts
 *     id, state       of the filter
 *     again           it was sent before, and nobody knows whether it was run: it must find
 *                     out, and must not do twice what it did
 *     has_counts()    whether the counts are those of this filter
 *
 * It ends with 'return { 0, NUMBERS... }', or with { 3 } if the state is not the right one, or
 * with { 4 } if the counts are lost. */
struct script {
    const char *text;
    const char *id; /* of the filter; NULL: that which is open */
    bool again;     /* even if it is sent the first time */
    bool parting;   /* it is not awaited, and tells nothing: round.h */
    unsigned nargs;
    const char *argument[SCRIPT_ARGUMENTS]; /* in 'texts' */
    char texts[SCRIPT_NBYTES];
    size_t nbytes;
    long long number[SCRIPT_NUMBERS]; /* what it has returned behind the 0 */
};

/* Writes one argument more. */
void script_put(struct script *script, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Runs a script.  Returns 0 with its numbers; PERHAPS_ERR_MISSING or _CHANGED if the filter was
 * deleted or made anew since it was opened, PERHAPS_ERR_UNFINISHED for a wrong state,
 * PERHAPS_ERR_LOST if the counts are lost; or another error, after which nobody knows whether
 * it was run. */
int script_run(perhaps_cluster *c, struct script *script);

#endif
