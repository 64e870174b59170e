/* report.h - results: JSON objects, and tables that show what is in them.
 *
 * Each measurement writes one JSON object.  The tables on standard output and the file of
 * --json are both made from it, so that they cannot differ. */
#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>

#include "bench.h"

/* Print the head of a table, or one row of it, without the end of the line.
 *
 * 'columns' is "TITLE PATH WIDTHFORMAT; ...".  Each column shows the value that lies at the
 * path in the object, such as batched.add.ns, and stays empty if there is none.  Formats:
 *
 *     s   text                    n   short number         .0 to .9   so many decimals
 *     b   "yes" or nothing        %   share                x          ratio
 *
 * A vertical line stands before a column whose title begins with |.  A _ in the title stands
 * for a blank.  A width below 0 puts the text to the left. */
void table_head(const char *columns);
void table_row(const char *columns, const json_t *row);

/* Returns the number at a path such as batched.add.ns; 0 if there is none. */
double json_number_at(const json_t *row, const char *path);

/* Returns an object with "ns", "bare_ns" and "ratio"; NULL if nothing was timed. */
json_t *json_speed(struct speed speed);

/* Returns the versions and the machine as an object, and prints them. */
json_t *report_machine(void);

/* Writes the facts to the file, unless 'path' is NULL, and releases them.  Ends the program if
 * the file cannot be written. */
void report_close(json_t *facts, const char *path);

/* Measures filters that grow, prints the tables and adds the results to 'facts'.  Returns
 * whether a filter gave a wrong answer. */
bool grow_all(const struct settings *settings, json_t *facts);

/* Measures many small filters, prints the table and adds the results to 'facts'.  Returns
 * whether a filter gave a wrong answer. */
bool small_all(const struct settings *settings, json_t *facts);

/* Measures questions to a file that is not in memory, prints the tables and adds the results to
 * 'facts'.  Returns false: no answer is looked at. */
bool cold_all(const struct settings *settings, json_t *facts);

/* Measures calls with two filters, prints the table and adds the results to 'facts'.  Returns
 * whether an answer was wrong. */
bool pairs_all(const struct settings *settings, json_t *facts);

/* Measures one contender at one task.  Returns the row; if it could not be measured, "problem"
 * in it tells why.  Sets *wrong if a key that was added was not found, or if single and batched
 * calls gave different answers; never clears it. */
json_t *measure(const struct contender *contender, const struct task *task, bool *wrong);

#endif
