/* messages.h - what the program says: one-line errors, summaries, tables of facts, progress. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <jansson.h>

#include "options.h"

/* Exit statuses, as grep has them. */
enum status {
    STATUS_YES = 0,
    STATUS_NO = 1,
    STATUS_ERROR = 2,
};

/* An error ends the program, and atexit() releases what it holds.  That is for the thread that
 * runs main(): the stages of blocks note their errors in these. */

/* Prints "perhaps: ..." as one line on stderr, whatever the arguments hold. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains, and leaves with STATUS_ERROR. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that a signal stopped the work, and the outcome ("; F is unchanged").  Leaves with the
 * exit status that shells give to such an end. */
_Noreturn void fail_interrupted(const char *outcome);

/* Ends the program; what was printed must have gone out. */
_Noreturn void leave(int status);

/* All zero; ends the program where memory is short. */
void *allocate_zeroed(size_t count, size_t nbytes);

/* What a perhaps_error means; for PERHAPS_ERR_IO what errno means. */
const char *why(int error);

/* Ends the work of a verb: prints the sentence, or under --json the facts as one object, with
 * the verb before and the seconds behind them, on stderr; nothing under --quiet.  Releases
 * 'facts'. */
void summarize(const struct settings *settings, json_t *facts, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints the facts on stdout: a line each, or under --json as one object.  Releases 'facts'. */
void print_facts(const struct settings *settings, json_t *facts);

/* The text with what is not UTF-8 replaced: a path may hold any bytes, JSON may not. */
json_t *json_path(const char *path);

double seconds_now(void);

/* That the verb has worked up to now. */
double seconds_worked(const struct settings *settings);

/* One line on the terminal that is drawn over and over, and erased at the end. */
struct progress {
    const char *doing;     /* "counting", "adding" */
    uint64_t total_nbytes; /* 0: not known */
    bool wanted;
    double started, drawn; /* in seconds_now() */
};

/* Not wanted under --quiet and --json, and where standard error is no terminal. */
void progress_start(struct progress *progress, const struct settings *settings,
                    const char *doing, uint64_t total_nbytes);

/* Draws, if the work has lasted a second and the last drawing is old enough.  'of_keys': tells
 * their number; else bytes are all there is to tell. */
void progress_show(struct progress *progress, bool of_keys, uint64_t nkeys, uint64_t nbytes);

/* Takes the line away, if there is one. */
void progress_erase(void);

#endif
