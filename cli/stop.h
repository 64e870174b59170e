/* stop.h - being asked to stop, in the middle of waiting for input too. */
#ifndef STOP_H
#define STOP_H

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP ask the program to stop, instead of ending it; one
 * that comes seconds later ends it.  Signals that the parent ignores stay ignored.  Called
 * once, before there are threads: without it nothing wakes stop_wait(). */
void stop_on_signals(void);

/* The signal that asked to stop, or 0. */
int stop_signal(void);

/* Whether a signal asked for it so long ago that what was on its way should be done. */
bool stop_overdue(void);

/* Makes every stop_wait() that waits now or is called later return false. */
void stop_waiting(void);

/* Waits until 'fd' can be read.  false: somebody asked to stop before. */
bool stop_wait(int fd);

#endif
