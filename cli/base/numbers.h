/* numbers.h - reads numbers and times from text, and writes them for people. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A short text that is returned by value, so that a call can stand among the arguments of
 * printf(): grouped(n).s */
struct text {
    char s[64];
};

/* Returns what printf() would print, cut to what fits. */
struct text text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads "5000000", "5,000,000", "5e9", "10M", "10MB" or "1.5k", and does not round.  Returns
 * false, and leaves *n alone, for anything that is not a whole number below 2^64. */
bool read_number(const char *text, uint64_t *n);

/* Reads a time with its unit: "24h", "1.5d", "250ms".  The units s, m, h, d and w are second,
 * minute, hour, day and week.  Returns false, and leaves *ms alone, for anything that has no
 * unit or is not a whole number of milliseconds. */
bool read_duration(const char *text, uint64_t *ms);

/* Reads "0.001", "1e-6" or "0.1%".  Returns false, and leaves *x alone, for anything else. */
bool read_share(const char *text, double *x);

/* Return a text for people, such as the one beside each. */
struct text grouped(uint64_t n);                   /* 15,000,000 */
struct text counted(uint64_t n, const char *noun); /* 1 key, 15,000 keys */
struct text scaled(double x, const char *unit);    /* 18.6 MB, 24.6 M keys/s, 512 B */
struct text duration(double seconds);              /* 0.61 s, 7 s, 2 min 05 s, 3 h 20 min */
struct text period(uint64_t ms);                   /* 250ms, 90s, 24h, 7d: as read_duration() */
struct text moment(uint64_t ms);                   /* 2026-11-21T19:38:06Z */
struct text expectation(double x);                 /* about 0.3, fewer than 0.01 */
struct text share(double x);                       /* 1.3 %, 2.1e-06 */

/* Returns ", 3.1 M keys/s"; or an empty text for a small n, where the time of starting is most
 * of the time. */
struct text speed(uint64_t n, double seconds, const char *unit);

/* What read_moment() can read, for error messages. */
#define MOMENT_EXPECTED                                                                        \
    "seconds since 1970, such as 1795290000.5, or 2026-11-21T19:38:06[.123][Z|+hh:mm]"

/* Reads seconds since 1970 with an optional fraction; or a date and a time of day with 'T' or a
 * blank between them, which is in UTC if no zone follows.  Years end at 9999.  Sets *ms to the
 * milliseconds since 1970, and drops what is finer.  Returns false, and leaves *ms alone, for
 * anything else. */
bool read_moment(const char *text, size_t nbytes, uint64_t *ms);

/* The last second of the year 9999, since 1970. */
#define SECONDS_MOST INT64_C(253402300799)

/* Returns the time of the clock, in milliseconds since 1970; 0 if it shows one before. */
uint64_t moment_now(void);

#endif
