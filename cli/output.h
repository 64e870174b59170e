/* output.h - records of batches to standard output. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "batch.h"

struct output {
    int error; /* errno of the first failure; nothing is written after it */
};

/* Of the records that have been dealt with, makes those the output of the batch whose answer is
 * 'wanted': moves them together where they are.  Returns how many there are. */
size_t output_keep(struct batch *batch, bool wanted);

/* Makes all records the output, each behind its answer and a tab.  false: no memory. */
bool output_label(struct batch *batch);

/* The same behind the names of the filters that hold it, of which each has a row of answers, or
 * "no".  false: no memory. */
bool output_names(struct batch *batch, const char *const *name, size_t nnames,
                  const bool *answer);

/* The same for the numbers, which stand behind a tab and the record; one that may mean more, as
 * 15+.  false: no memory. */
bool output_numbers(struct batch *batch);

/* Writes the output of the batch.  false: failed, now or before. */
bool output_write(struct output *output, const struct batch *batch);

/* Says why writing failed, and the outcome ("; F is unchanged").  Returns the exit status. */
int output_complain(const struct output *output, const char *outcome);

#endif
