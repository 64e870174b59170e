/* output.h - records to standard output, through one large buffer. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>

struct output {
    char *buffer;
    size_t used;
    int error; /* errno of the first failure; nothing is written after it */
};

/* Returns 0, or the exit status, having complained. */
int output_open(struct output *output);

void output_put(struct output *output, const void *bytes, size_t nbytes);

/* Writes what has been put.  Returns 0, or the exit status, having complained of the failure
 * and told the outcome ("; F is unchanged"). */
int output_flush(struct output *output, const char *outcome);

void output_close(struct output *output);

#endif
