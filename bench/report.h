/* report.h - results are JSON objects; tables show what is in them. */
#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>

#include "bench.h"

/* A table is told as "TITLE PATH WIDTHFORMAT; ...": each column shows what lies at the path of
 * an object, such as batched.add.ns, or nothing if that is not there.  Formats: s text, b yes
 * or nothing, n short number, % share, .0 to .9 so many decimals, x a ratio.  A title that
 * begins with | has a line before it; _ in it is a blank; a width below 0 is text to the left.
 * Neither ends the line. */
void table_head(const char *columns);
void table_row(const char *columns, const json_t *row);

double json_number_at(const json_t *row, const char *path);

/* "ns", "bare_ns" and "ratio" of it; NULL if nothing was timed. */
json_t *json_speed(struct speed speed);

/* The versions and the machine, which it also prints. */
json_t *report_machine(void);

/* Writes it to a file, if there is one; ends the program if that fails. */
void report_close(json_t *facts, const char *path);

/* Measures filters that grow; adds to the facts.  True if one was wrong. */
bool grow_all(const struct settings *settings, json_t *facts);

/* One contender at one task: a row, with "problem" if there is none; '*wrong' is set if a key
 * was lost, or single and batched calls are of two minds. */
json_t *measure(const struct contender *contender, const struct task *task, bool *wrong);

#endif
