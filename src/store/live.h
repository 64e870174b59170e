/* live.h - files that several processes write in place.
 *
 * Each of them holds a shared lock (flock) on the file as long as it has it open.  The first
 * marks it 'live' in the header, which says that the checksums of the pages are void and that
 * the counters are those in the file; the last, who alone can have the lock for itself, writes
 * the checksums and takes the mark away.  After a crash the mark stays until that has happened
 * once more. */
#ifndef LIVE_H
#define LIVE_H

#include "container.h"

/* Locks and marks the file of a filter that is mapped from 'fd'.  Returns 0, or an error of
 * perhaps_open(): then the file is as it was. */
int live_begin(perhaps_filter *f, int fd);

/* For the mapped filter of such a file, before it is unmapped and closed. */
void live_end(perhaps_filter *f);

#endif
