/* live.h - files that several processes write in place.
 *
 * Each process holds a shared lock (flock) on the file as long as it has the file open.  The
 * first process marks the file 'live' in its header: the mark says that the checksums of the
 * pages are void, and that all processes count in the counters of the file.  The last process
 * to close the file is the only one that can get an exclusive lock: it writes the checksums and
 * removes the mark.  After a crash the mark stays until a process has done that. */
#ifndef LIVE_H
#define LIVE_H

#include "container.h"

/* Locks and marks the file of a filter that is mapped from 'fd', and keeps a descriptor of its
 * own for the lock.  Returns 0, or an error of perhaps_open(): then the file is as it was. */
int live_begin(perhaps_filter *f, int fd);

/* Releases the lock, and writes the checksums if no other process has the file open.  To be
 * called before the file is unmapped and closed. */
void live_end(perhaps_filter *f);

#endif
