/* report.h - what the program says: one-line errors, summaries, tables of facts. */
#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>

#include "options.h"

/* Exit statuses, as grep has them. */
enum status {
    STATUS_YES = 0,
    STATUS_NO = 1,
    STATUS_ERROR = 2,
};

/* Prints "perhaps: ..." as one line on stderr, whatever the arguments hold.
 * Returns STATUS_ERROR, so that a function can end in 'return complain(...)'. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that a signal stopped the work, and the outcome ("; F is unchanged").  Returns the exit
 * status that shells give to such an end. */
int complain_interrupted(const char *outcome);

/* What a perhaps_error means; for PERHAPS_ERR_IO what errno means. */
const char *why(int error);

/* Ends the work of a verb: prints the sentence, or under --json the facts as one object, on
 * stderr; nothing under --quiet.  Releases 'facts'.  Returns STATUS_YES. */
int summarize(const struct settings *settings, json_t *facts, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints the facts on stdout: a line each, or under --json as one object.  Releases 'facts'.
 * Returns STATUS_YES. */
int print_facts(const struct settings *settings, json_t *facts);

/* The text with what is not UTF-8 replaced: a path may hold any bytes, JSON may not. */
json_t *json_path(const char *path);

double seconds_now(void);

#endif
