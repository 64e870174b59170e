/* lookups.c - a service that asks "who is this?" very often, measured.
 * The heart of it is look_up(): the guard, then the cache, then the database. */
#include "lookups.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cache.h"
#include "scratch.h"

/* How long each look-up took that ended in one place. */
struct latencies {
    uint32_t *ns;
    size_t count, room;
};

/* One thread, with connections of its own. */
struct reader {
    const struct lookups *lookups;
    const struct way *way;
    struct database *database;
    struct cache *cache;
    struct guard *guard;
    uint64_t count; /* of look-ups */
    uint64_t chance;
    struct latencies latencies[PLACES];
    struct result tally;
    pthread_t thread;
};

struct question {
    char nobody[EMAIL_NBYTES_MAX + 1];
    const char *email;
    bool exists;
};

/* ---- Cache-aside, with a guard in front -------------------------------------------------- */

struct answer {
    enum place place; /* who gave it */
    bool exists;
    char name[NAME_NBYTES_MAX + 1];
};

/* 'passed': the guard said perhaps. */
static void look_up(struct reader *r, const char *email, bool passed, struct answer *answer)
{
    answer->exists = false;
    answer->place = AT_GUARD;
    if (!passed)
        return; /* nobody, certainly */
    answer->place = AT_CACHE;
    r->tally.reached_cache += r->cache != NULL;
    if (r->cache && cache_get(r->cache, email, &answer->exists, answer->name))
        return;
    answer->place = AT_DATABASE;
    r->tally.reached_database++;
    answer->exists = database_find(r->database, email, answer->name);
    if (r->cache && (answer->exists || r->way->caches_nobody))
        cache_put(r->cache, email, answer->exists ? answer->name : NULL);
}

/* ---- Time -------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void took(struct latencies *latencies, uint64_t ns)
{
    if (latencies->count == latencies->room) {
        latencies->room = latencies->room * 2 + 1024;
        latencies->ns = memory_resized(latencies->ns, latencies->room * sizeof *latencies->ns);
    }
    latencies->ns[latencies->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static struct spread spread_of(struct latencies *latencies)
{
    struct spread spread = { .count = latencies->count };
    if (latencies->count == 0)
        return spread;
    qsort(latencies->ns, latencies->count, sizeof *latencies->ns, by_size);
    size_t half = latencies->count / 2, hundredth = latencies->count / 100;
    spread.median_us = latencies->ns[half] / 1e3;
    spread.p99_us = latencies->ns[latencies->count - 1 - hundredth] / 1e3;
    return spread;
}

/* ---- A reader ---------------------------------------------------------------------------- */

/* Some users are asked for much more often than others: half of the questions go to an eighth
 * of them.  Nobody's address is hardly ever asked for twice, as when somebody tries them
 * out. */
static void think_of(struct reader *r, struct question *question)
{
    const struct lookups *l = r->lookups;
    question->exists = chance_share(&r->chance) >= l->absent && l->users->count > 0;
    if (question->exists) {
        double share = pow(chance_share(&r->chance), 3);
        question->email = emails_at(l->users, (size_t)(share * (double)l->users->count));
    } else {
        make_up_nobody(question->nobody, chance_next(&r->chance));
        question->email = question->nobody;
    }
}

static void note(struct reader *r, bool exists, const struct answer *answer, uint64_t ns)
{
    took(&r->latencies[answer->place], ns);
    r->tally.absent += !exists;
    r->tally.needless += !exists && answer->place == AT_DATABASE;
    r->tally.denied += exists && !answer->exists;
    r->tally.invented += !exists && answer->exists;
}

static void ask_guard(struct reader *r, const struct question *questions, size_t count,
                      bool *passed)
{
    const char *emails[BATCH_MAX];
    if (!r->guard) {
        memset(passed, true, count);
    } else if (count == 1) {
        *passed = guard_perhaps(r->guard, questions->email);
    } else {
        for (size_t i = 0; i < count; i++)
            emails[i] = questions[i].email;
        guard_perhaps_many(r->guard, emails, count, passed);
    }
}

/* Asks the guard about all, then deals with one after the other; the time of each is the
 * guard's and its own. */
static void look_up_batch(struct reader *r, const struct question *questions, size_t count)
{
    bool passed[BATCH_MAX];
    uint64_t start_ns = now_ns();
    ask_guard(r, questions, count, passed);
    uint64_t guard_ns = now_ns() - start_ns;
    for (size_t i = 0; i < count; i++) {
        struct answer answer;
        uint64_t ns = guard_ns;
        start_ns = passed[i] ? now_ns() : 0;
        look_up(r, questions[i].email, passed[i], &answer);
        if (passed[i])
            ns += now_ns() - start_ns;
        note(r, questions[i].exists, &answer, ns);
    }
}

static void *read_all(void *context)
{
    struct reader *r = context;
    struct question *questions = memory_zeroed(r->way->batch * sizeof *questions);
    for (uint64_t done = 0; done < r->count;) {
        size_t n = 0;
        for (; n < r->way->batch && done < r->count; n++, done++)
            think_of(r, &questions[n]);
        look_up_batch(r, questions, n);
    }
    free(questions);
    return NULL;
}

/* ---- All readers ------------------------------------------------------------------------- */

static void open_reader(struct reader *r, const struct lookups *lookups, const struct way *way,
                        unsigned index)
{
    unsigned readers = lookups->readers;
    *r = (struct reader){ .lookups = lookups, .way = way };
    r->count = lookups->count / readers + (index < lookups->count % readers);
    r->chance = lookups->seed + index;
    chance_next(&r->chance);
    r->chance = chance_next(&r->chance); /* or readers would be a few steps apart */
    r->database = database_open(lookups->database, false);
    r->cache = way->uses_cache ? cache_open(lookups->cache, lookups->cache_prefix) : NULL;
    r->guard = way->guard ? guard_again(way->guard) : NULL;
}

static void close_reader(struct reader *r, struct result *result)
{
    const char *problem;
    result->reached_cache += r->tally.reached_cache;
    result->reached_database += r->tally.reached_database;
    result->absent += r->tally.absent;
    result->needless += r->tally.needless;
    result->denied += r->tally.denied;
    result->invented += r->tally.invented;
    database_close(r->database);
    if (r->cache)
        cache_close(r->cache);
    if (!r->guard)
        return;
    result->unanswered += guard_unanswered(r->guard, &problem);
    guard_close(r->guard);
}

static void append(struct latencies *to, const struct latencies *from)
{
    for (size_t i = 0; i < from->count; i++)
        took(to, from->ns[i]);
}

static void sum_up_times(struct reader *readers, unsigned nreaders, struct result *result)
{
    struct latencies all = { 0 };
    for (int place = 0; place < PLACES; place++) {
        struct latencies here = { 0 };
        for (unsigned i = 0; i < nreaders; i++) {
            append(&here, &readers[i].latencies[place]);
            free(readers[i].latencies[place].ns);
        }
        append(&all, &here);
        result->ended[place] = spread_of(&here);
        free(here.ns);
    }
    result->all = spread_of(&all);
    free(all.ns);
}

static void run_readers(struct reader *readers, unsigned nreaders, struct result *result)
{
    uint64_t start_ns = now_ns();
    for (unsigned i = 0; i < nreaders; i++)
        if (pthread_create(&readers[i].thread, NULL, read_all, &readers[i]))
            fail("a thread could not be started");
    for (unsigned i = 0; i < nreaders; i++)
        pthread_join(readers[i].thread, NULL);
    result->seconds = (double)(now_ns() - start_ns) / 1e9;
}

struct result measure(const struct lookups *lookups, const struct way *way)
{
    struct reader readers[READERS_MAX];
    struct result result = { 0 };
    struct cache *cache =
        way->uses_cache ? cache_open(lookups->cache, lookups->cache_prefix) : NULL;
    uint64_t before_nbytes = cache ? cache_server_nbytes(cache) : 0;
    for (unsigned i = 0; i < lookups->readers; i++)
        open_reader(&readers[i], lookups, way, i);
    run_readers(readers, lookups->readers, &result);
    for (unsigned i = 0; i < lookups->readers; i++)
        close_reader(&readers[i], &result);
    sum_up_times(readers, lookups->readers, &result);
    if (cache) {
        uint64_t after_nbytes = cache_server_nbytes(cache);
        result.cache_nbytes = after_nbytes > before_nbytes ? after_nbytes - before_nbytes : 0;
        result.cache_entries = cache_clear(cache);
        cache_close(cache);
    }
    return result;
}
