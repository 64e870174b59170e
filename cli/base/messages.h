/* messages.h - what the program says: one-line errors, summaries, tables of facts, progress.
 *
 * An error ends the program with a message, so no status has to go through every function;
 * atexit() releases what the program holds (locks, connections, mapped files).  Only the thread
 * that runs main() may do that.  Stages run in other threads, so they note their errors in
 * their blocks. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <jansson.h>

#include "../options.h"

/* Exit statuses, as grep has them. */
enum status {
    STATUS_YES = 0,
    STATUS_NO = 1,
    STATUS_ERROR = 2,
};

/* Prints "perhaps: ..." on stderr as one line: control characters become '?', and passwords in
 * addresses are left out. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains, and ends the program with STATUS_ERROR. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that a signal stopped the work, and the outcome ("; F is unchanged").  Ends the program
 * with the exit status that shells give to a program that this signal ended. */
_Noreturn void fail_interrupted(const char *outcome);

/* Ends the program with this status, or with an error if stdout could not be written. */
_Noreturn void leave(int status);

/* Returns zeroed memory, which the caller frees.  Ends the program if there is none. */
void *allocate_zeroed(size_t count, size_t nbytes);

/* Returns what a perhaps_error means; for PERHAPS_ERR_IO it is what errno means, and for
 * PERHAPS_ERR_MEMORY also how much there is now.  The text stays until the next call.  One
 * thread at a time. */
const char *why(int error);

/* Returns the problem; or, if it is NULL, what PERHAPS_ERR_MEMORY means. */
const char *problem_or_memory(const char *problem);

/* Prints the summary of a verb on stderr: the sentence; or, under --json, one object with the
 * verb, the facts and the seconds; or nothing under --quiet.  Releases 'facts'. */
void summarize(const struct settings *settings, json_t *facts, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints the facts on stdout: a line for each, or one object under --json.  Releases
 * 'facts'. */
void print_facts(const struct settings *settings, json_t *facts);

/* Returns the path as a JSON text, in which '?' stands for each byte that is not UTF-8: a path
 * may hold any bytes, JSON may not. */
json_t *json_path(const char *path);

/* Returns the seconds of a clock that never goes back. */
double seconds_now(void);

/* Returns for how many seconds the verb has worked. */
double seconds_worked(const struct settings *settings);

/* The search for the name that somebody meant: at most a third of its letters may be wrong. */
struct guess {
    const char *typed;
    size_t nbytes, unlikeness; /* only names less unlike than this are taken */
    const char *nearest;       /* NULL: no name is near enough */
};

/* Begins a search for a name like what was typed. */

/* Begins a search for the name that is most like the first 'nbytes' bytes of what was typed. */
struct guess guess_begin(const char *typed, size_t nbytes);

/* Compares a name with what was typed; the nearest of all becomes guess->nearest. */
void guess_try(struct guess *guess, const char *name);

/* A line on the terminal that is drawn again and again, and erased at the end.  One thread at a
 * time draws it. */
struct progress {
    const char *doing;     /* a word for the work: "counting", "adding" */
    uint64_t total_nbytes; /* 0: not known */
    bool wanted;           /* false: nothing is drawn */
    double started, drawn; /* in seconds_now() */
};

/* Prepares the line and draws nothing.  It will not be drawn under --quiet and --json, nor if
 * stderr is not a terminal. */
void progress_start(struct progress *progress, const struct settings *settings,
                    const char *doing, uint64_t total_nbytes);

/* Draws the line if the work has lasted a second and the last drawing is old enough.  With
 * 'of_keys' it tells the number of keys, else the number of bytes. */
void progress_show(struct progress *progress, bool of_keys, uint64_t nkeys, uint64_t nbytes);

/* Returns how many columns the terminal has; UINT_MAX if it does not tell, or is none. */
unsigned terminal_columns(int fd);

/* Erases the line, if it is on the terminal. */
void progress_erase(void);

#endif
