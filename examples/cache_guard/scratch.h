/* scratch.h - how the program ends: with one line if something is wrong, and with nothing left
 * behind.  What a run makes (a folder, a Redis server, a guard on a server) is taken away again
 * however it ends, short of kill -9. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Says what is wrong, and ends the program with status 2. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Ends the program with this status, of whatever thread. */
void finish(int status) __attribute__((noreturn));

/* Calls clean(context) when this process ends; the last one first. */
void at_end(void (*clean)(void *context), void *context);

/* From now on SIGINT, SIGTERM and SIGHUP end the program as fail() does. */
void clean_up_on_signals(void);

/* What fork() returns.  The child cleans nothing up, and dies with its parent. */
pid_t fork_child(void);

void *memory_zeroed(size_t nbytes);
void *memory_resized(void *memory, size_t nbytes);
char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The path of a file in a folder that is removed at the end.  Release it with free(). */
char *scratch_path(const char *name);

/* Starts a Redis server for this run alone on a free port of 127.0.0.1, which stores nothing on
 * disk.  Returns its port, or 0 if there is no program redis-server. */
unsigned scratch_redis(void);

#endif
