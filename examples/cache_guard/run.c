/* run.c - the whole story: look-ups with and without the guard, and sign-ups. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cache.h"
#include "scratch.h"

enum { SERVER_BATCH = 100 };

/* As rare as what lies six standard deviations off: a run in a thousand million. */
static const double rarely = 1e-9;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Who waits is told for what. */
static void announce(const char *what)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s", what);
}

/* ---- Database ---------------------------------------------------------------------------- */

static void collect(void *context, const char *email)
{
    emails_add(context, email);
}

/* A database that has users is taken as it is. */
static void find_users(struct story *story, struct database *database, struct emails *users)
{
    announce("users");
    database_each(database, collect, users);
    story->database_kind = database_name(database);
    story->loaded = users->count == 0;
    if (story->loaded) {
        double start_s = now_s();
        database_load(database, story->options->users);
        story->load_seconds = now_s() - start_s;
        database_each(database, collect, users);
    }
    story->users = users->count;
}

/* ---- Cache ------------------------------------------------------------------------------- */

/* Of a cache that others use, too, only entries with this prefix are ever touched. */
static struct {
    const char *url; /* NULL: none */
    char prefix[64], own_url[64];
    unsigned own_port; /* of a server that this run has started; else 0 */
} cache;

static void empty_cache(void *context)
{
    (void)context;
    struct cache *connection = cache_open(cache.url, cache.prefix);
    cache_clear(connection);
    cache_close(connection);
}

static void find_cache(const char *wanted)
{
    cache.own_port = wanted ? 0 : scratch_redis();
    snprintf(cache.prefix, sizeof cache.prefix, "cache_guard:%ld:", (long)getpid());
    snprintf(cache.own_url, sizeof cache.own_url, "redis://127.0.0.1:%u", cache.own_port);
    if (cache.own_port) {
        cache.url = cache.own_url;
    } else if (wanted && strcmp(wanted, "none") != 0) {
        cache_close(cache_open(wanted, cache.prefix));
        cache.url = wanted;
        at_end(empty_cache, NULL); /* the run may not get to that */
    }
}

/* ---- Guards ------------------------------------------------------------------------------ */

/* On the server of this run, if there is one. */
static const char *default_guard(void)
{
    static char url[sizeof cache.own_url + 8];
    snprintf(url, sizeof url, "%s/taken", cache.own_url);
    return cache.own_port ? url : "memory";
}

static bool is_where(const char *where, const char *name)
{
    return strcmp(where, name) == 0;
}

static void delete_guard(void *options)
{
    guard_delete(options);
}

/* Makes a guard that is not there yet, and is not there any more at the end. */
static struct guard *make_guard(struct guard_options *options, struct database *database)
{
    announce("guard");
    struct guard *guard = guard_open(options, GUARD_MAKE);
    if (!is_where(options->where, "memory"))
        at_end(delete_guard, options);
    guard_add_all(guard, database);
    return guard;
}

/* ---- Look-ups ---------------------------------------------------------------------------- */

static struct way *add_way(struct story *story, const char *name, struct guard *guard)
{
    struct way *way = &story->ways[story->nways++];
    *way = (struct way){
        .name = name, .guard = guard, .uses_cache = cache.url != NULL, .batch = 1
    };
    return way;
}

/* 'shared' is NULL, or in a file or on servers. */
static void add_ways(struct story *story, struct guard *in_memory, struct guard *shared)
{
    bool on_servers = strncmp(story->guard, "redis://", 8) == 0;
    add_way(story, "no guard", NULL);
    if (cache.url)
        add_way(story, "no guard, \"nobody\" cached", NULL)->caches_nobody = true;
    if (in_memory)
        add_way(story, "guard in memory", in_memory);
    if (shared)
        add_way(story, on_servers ? "guard on servers" : "guard in a file", shared);
    if (shared && on_servers)
        add_way(story, "the same, 100 at once", shared)->batch = SERVER_BATCH;
}

static void measure_ways(struct story *story, const struct emails *users, const char *database)
{
    const struct run_options *o = story->options;
    struct lookups lookups = { .users = users,
                               .count = o->lookups,
                               .absent = o->absent,
                               .seed = o->seed,
                               .readers = o->readers,
                               .database = database,
                               .cache = cache.url,
                               .cache_prefix = cache.prefix };
    for (size_t i = 0; i < story->nways; i++) {
        announce(story->ways[i].name);
        story->results[i] = measure(&lookups, &story->ways[i]);
        story->needless_limit[i] = binomial_limit(story->results[i].absent, o->fpr, rarely);
    }
}

/* ---- Sign-ups ---------------------------------------------------------------------------- */

/* Made-up people do not sign up where others have. */
static void sign_ups(struct story *story, const char *database,
                     const struct guard_options *guard, const struct emails *users)
{
    story->contested = story->loaded && story->options->signups > 0;
    if (!story->contested)
        return;
    announce("sign-ups");
    story->contest =
        hold_contest(database, guard, users, story->options->signups, story->options->seed);
}

/* ---- All of it --------------------------------------------------------------------------- */

/* Still wanted at the end. */
static struct guard_options alone, shared;
static uint8_t secret[SECRET_NBYTES];

static void choose_guards(const struct story *story)
{
    const struct run_options *o = story->options;
    uint64_t chance = ~o->seed;
    for (size_t i = 0; i < sizeof secret; i++) /* a service takes one that no seed gives away */
        secret[i] = (uint8_t)chance_next(&chance);
    alone = (struct guard_options){
        .where = "memory", .capacity = story->users, .fpr = o->fpr, .secret = secret
    };
    shared = alone;
    shared.where = is_where(story->guard, "memory") ? scratch_path("guard") : story->guard;
    shared.capacity = story->users + 2 * o->signups;
}

static void with_guards(struct story *story, struct database *database, const char *where,
                        const struct emails *users)
{
    choose_guards(story);
    struct guard *one = make_guard(&alone, database), *all = make_guard(&shared, database);
    story->guard_nbytes = guard_nbytes(one);
    add_ways(story, one, is_where(story->guard, "memory") ? NULL : all);
    measure_ways(story, users, where);
    sign_ups(story, where, &shared, users);
    announce("check");
    story->denied = guard_count_denied(all, database, &story->checked);
    guard_close(all);
    guard_close(one);
}

int run(const struct run_options *options)
{
    struct story story = { .options = options };
    struct emails users = { 0 };
    clean_up_on_signals();
    char *where =
        options->database ? text_of("%s", options->database) : scratch_path("users.db");
    struct database *database = database_open(where, true);
    find_users(&story, database, &users);
    find_cache(options->cache);
    story.cache = cache.url;
    story.guard = options->guard ? options->guard : default_guard();
    if (is_where(story.guard, "none")) {
        add_ways(&story, NULL, NULL);
        measure_ways(&story, &users, where);
    } else {
        with_guards(&story, database, where, &users);
    }
    database_close(database);
    emails_free(&users);
    free(where);
    announce("");
    (options->json ? report_json : report)(&story);
    if (fflush(stdout) || ferror(stdout))
        fail("standard output: %s", strerror(errno));
    return is_all_well(&story) ? 0 : 1;
}
