/* stop.h - stops the work after a signal, even while a thread waits for input.
 *
 * A signal only asks the program to stop.  The threads finish what they hold, and the verb then
 * says how far it came, saves what must be saved, and ends. */
#ifndef STOP_H
#define STOP_H

#include <stdbool.h>

/* Makes SIGINT, SIGTERM and SIGHUP ask the program to stop, instead of ending it.  Another such
 * signal that comes more than a second later ends it.  Signals that the parent process ignores
 * stay ignored.  Call this once, before there are other threads; without it stop_waiting() and
 * signals wake no stop_wait(). */
void stop_on_signals(void);

/* If the disk of a mapped file fails, or another program makes the file shorter, to read it
 * raises SIGBUS.  Makes the program then say so in a line, and end with the exit status of an
 * error.  Call this once, first of all. */
void stop_on_lost_bytes(void);

/* Tells that the file at 'path' is about to be mapped, for that line.  Of several files it
 * names none. */
void stop_says_lost(const char *path);

/* Returns the signal that asked to stop, or 0. */
int stop_signal(void);

/* Returns whether a signal asked to stop so long ago (more than a second) that work on its way
 * should be given up. */
bool stop_overdue(void);

/* Makes every stop_wait() return false, those that wait now and those that are called later. */
void stop_waiting(void);

/* Waits until 'fd' can be read.  Returns false if the program was asked to stop before that. */
bool stop_wait(int fd);

/* Returns whether a signal asked to stop, as the library wants to know while it works. */
bool stop_asked(void *unused);

#endif
