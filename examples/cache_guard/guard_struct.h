/* guard_struct.h - what a guard is, for guard.c and guard_open.c. */
#ifndef GUARD_STRUCT_H
#define GUARD_STRUCT_H

#include <perhaps.h>
#include <perhaps_cluster.h>
#include <time.h>

#include "guard.h"

/* One of both is not NULL. */
struct guard {
    perhaps_filter *filter;   /* in memory, or a file that is mapped */
    perhaps_cluster *cluster; /* on servers */
    struct guard_options options;
    uint8_t secret[SECRET_NBYTES];
    bool is_open;         /* it has been found on the servers */
    bool is_borrowed;     /* the filter is another guard's */
    uint64_t nunanswered; /* questions */
    char problem[256];    /* why, the last time */
    time_t silent_until_s;
};

/* Finds the guard on the servers, unless it has been found before.  It is not looked for again
 * when it has gone: what has its name then is another one, and may not know all users yet. */
int guard_find(struct guard *guard);

/* Says why the guard cannot do its work, and ends the program. */
void guard_fail(const struct guard *guard, int error) __attribute__((noreturn));

#endif
