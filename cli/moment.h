/* moment.h - points in time, as lines have them. */
#ifndef MOMENT_H
#define MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What can be read, for an error's message. */
#define MOMENT_EXPECTED                                                                        \
    "seconds since 1970, such as 1795290000.5, or 2026-11-21T19:38:06[.123][Z|+hh:mm]"

/* Reads seconds since 1970 with an optional fraction; or a date and time of day, with 'T' or a
 * blank between them, and of UTC if no zone stands behind it.  Up to the year 9999.  Sets *ms
 * to the milliseconds since 1970, less what is finer; false, leaving it alone, for anything
 * else. */
bool read_moment(const char *text, size_t nbytes, uint64_t *ms);

/* What the clock says, in milliseconds since 1970. */
uint64_t moment_now(void);

#endif
