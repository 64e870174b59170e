/* output.h - records of blocks to standard output. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "lines.h"

struct output {
    int error; /* errno of the first failure; nothing is written after it */
};

/* Of the records that have been dealt with, makes those the output of the block whose answer is
 * 'wanted': moves them together where they are.  Returns how many there are. */
size_t output_keep(struct block *block, bool wanted);

/* Makes all records the output, each behind the names of the filters that hold it, or "no", and
 * a tab.  'answer' has a row for each filter.  false: no memory. */
bool output_names(struct block *block, const char *const *name, size_t nnames,
                  const bool *answer);

/* The same for their numbers, which stand behind the record and a tab; one that may mean more,
 * as 15+.  false: no memory. */
bool output_numbers(struct block *block);

/* Writes the output of the block.  false: failed, now or before. */
bool output_write(struct output *output, const struct block *block);

/* Ends the program if writing failed, having said why, and the outcome ("; F is unchanged"). */
void output_settle(const struct output *output, const char *outcome);

#endif
