/* lookups.h - a service that asks "who is this?" very often, measured. */
#ifndef LOOKUPS_H
#define LOOKUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "guard.h"
#include "people.h"

enum { READERS_MAX = 64, BATCH_MAX = 1000 };

/* What is asked, and of whom. */
struct lookups {
    const struct emails *users; /* all of them */
    uint64_t count;
    double absent; /* share of addresses that nobody has */
    uint64_t seed; /* the same asks the same */
    unsigned readers;
    const char *database, *cache; /* where; NULL: no cache */
    const char *cache_prefix;
};

/* One way to answer. */
struct way {
    const char *name;
    struct guard *guard; /* NULL: none */
    bool uses_cache;
    bool caches_nobody; /* that nobody has an address is put into the cache, too */
    unsigned batch;     /* addresses that are asked of the guard at once, 1 to BATCH_MAX */
};

/* Where a look-up ended: who gave the answer. */
enum place { AT_GUARD, AT_CACHE, AT_DATABASE, PLACES };

struct spread {
    uint64_t count;
    double median_us, p99_us;
};

struct result {
    double seconds;
    uint64_t reached_cache, reached_database;
    uint64_t absent;     /* look-ups of addresses that nobody has */
    uint64_t needless;   /* of these, the ones that reached the database */
    uint64_t denied;     /* users who were not found: must be none */
    uint64_t invented;   /* users who were found and do not exist: must be none */
    uint64_t unanswered; /* questions that the guard's servers did not answer */
    uint64_t cache_entries, cache_nbytes; /* afterwards */
    struct spread ended[PLACES], all;
};

/* Empties the cache, asks, and empties it again. */
struct result measure(const struct lookups *lookups, const struct way *way);

#endif
