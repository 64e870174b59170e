/* run.h - the whole story: look-ups with and without the guard, and sign-ups. */
#ifndef RUN_H
#define RUN_H

#include "contest.h"
#include "lookups.h"

enum { WAYS_MAX = 6 };

struct run_options {
    uint64_t users, lookups, signups, seed;
    double absent, fpr;
    unsigned readers;
    const char *database; /* NULL: an SQLite file that is removed at the end */
    const char *cache;    /* NULL: a Redis server of its own, if it can be had; or "none" */
    const char *guard;    /* "memory", "none", a path, or redis://host:port/name; NULL: on that
                             server of its own, or in memory */
    bool json;
};

/* What came out. */
struct story {
    const struct run_options *options;
    const char *database_kind;
    const char *cache, *guard; /* where; 'cache' may be NULL */
    uint64_t users;
    bool loaded; /* made up by this run */
    double load_seconds;
    uint64_t guard_nbytes;
    size_t nways;
    struct way ways[WAYS_MAX];
    struct result results[WAYS_MAX];
    uint64_t needless_limit[WAYS_MAX]; /* how many needless questions chance allows */
    bool contested;
    struct contest contest;
    uint64_t checked, denied; /* users whom the guard was asked about in the end */
};

/* Returns the exit status: 0, or 1 if something was wrong that never may be. */
int run(const struct run_options *options);

/* ---- report.c ---------------------------------------------------------------------------- */

void report(const struct story *story);
void report_json(const struct story *story);
bool is_all_well(const struct story *story);

/* The smallest k such that of 'count' tries, each of which succeeds with the probability 'p',
 * more than k succeed with a probability of at most 'chance'. */
uint64_t binomial_limit(uint64_t count, double p, double chance);

#endif
