/* output.h - writes records of blocks to standard output.
 *
 * Many threads make the output of their blocks at once.  output_write() then writes the blocks
 * in order, in a stage that is in order. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "lines.h"

/* Standard output, for the blocks of one run. */
struct output {
    int error; /* errno of the first failure; nothing is written after it */
};

/* Makes the output of those records whose answer is 'wanted', by moving them together within
 * the text.  Looks only at the first 'ndone' records.  Returns how many it keeps.  The records
 * of the block no longer lie where they were. */
size_t output_keep(struct block *block, enum perhaps_answer wanted);

/* Makes the first 'ndone' records the output, each behind its answer, "perhaps", "no" or
 * "unknown", and a tab.  Returns false if there is no memory. */
bool output_labels(struct block *block);

/* Makes the first 'ndone' records the output.  Behind each stand a tab and its number; the
 * highest number that is counted may mean more, and is printed as 15+.  Returns false if there
 * is no memory. */
bool output_numbers(struct block *block);

/* Makes the first 'ndone' records the output.  Before each stand its value, or "no" where the
 * answer is false, and a tab.  Returns false if there is no memory. */
bool output_values(struct block *block, const uint32_t *value);

/* Writes the output of the block.  Returns false if that fails, or failed before. */
bool output_write(struct output *output, const struct block *block);

/* Ends the program if writing failed, with the reason and the outcome ("; F is unchanged").
 * Says nothing if a pipe was closed by its reader. */
void output_settle(const struct output *output, const char *outcome);

#endif
