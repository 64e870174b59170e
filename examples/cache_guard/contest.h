/* contest.h - two sign-up processes at once, who want the same addresses. */
#ifndef CONTEST_H
#define CONTEST_H

#include "guard.h"
#include "people.h"

struct contest {
    uint64_t lines;    /* in both processes */
    uint64_t fresh;    /* different addresses among them that nobody had */
    uint64_t by_guard; /* free, and the database was not asked */
    uint64_t by_database, by_constraint, taken;
    uint64_t free_though_taken;            /* must be none */
    uint64_t given_twice, given_to_nobody; /* of those that were free: must be none */
};

/* Half of 'lines' addresses of each process are taken;
 * a quarter wants the other process too. */
struct contest hold_contest(const char *database, const struct guard_options *guard,
                            const struct emails *users, uint64_t lines, uint64_t seed);

#endif
