/* main.c - cache_guard: a filter in front of a cache and a database of users.
 * The functions to read first are is_user() and sign_up().  README.md explains the rest.
 * Run: build/examples/cache_guard   (returns 0 if the guard denied no user and did its work) */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cache_guard.h"

static const char usage[] =
    "usage: cache_guard [OPTION VALUE...]   the same look-ups without and with a guard\n"
    "       cache_guard signup ...          addresses from standard input: given away if free\n"
    "       cache_guard check ...           does the guard know all users of the database?\n"
    "  --database FILE | postgresql://user@host/name\n"
    "                  table users (email UNIQUE); without it a temporary SQLite file\n"
    "  --guard FILE | redis://host:port/name\n"
    "                  shared, and kept; without it in the memory of this process\n"
    "  --fpr 0.001     share of absent addresses that may pass the guard\n"
    "  --capacity 2e6  users for whom a guard that is made has room\n"
    "  --users 1e6     made-up users for a database that has none\n"
    "  --lookups 1e6   questions, nine of ten about addresses that nobody has\n"
    "GUARD_SECRET in the environment: 16 characters, for a guard that is shared.\n";

static const char *database_path = "";
static double fpr = 0.001, capacity = 2e6, nusers = 1e6, nlookups = 1e6;
static struct guard guard = { .where = "memory" };
static struct database *database;

/* Adds all users of the database to the guard, and returns them.  This is done before the guard
 * is asked, so that it does not matter whether the guard had lost some. */
static struct perhaps_keys add_all_users(void)
{
    struct perhaps_keys users = { 0 };
    database_query(database, USERS, NULL, &users);
    guard_add(&guard, &users, NULL);
    return users;
}

/* ---- Look-ups: the guard, then the cache, then the database ------------------------------ */

enum { CACHE_PLACES = 20000, ABSENT_PERCENT = 90 };

/* A service that answers "is this a user?", and counts where the answers came from.  A question
 * that reaches the database is needless if the address is no user's. */
struct service {
    const char *name;
    bool is_guarded;
    bool caches_nobody; /* the cache also keeps answers that say: no user */
    size_t from_cache, to_database, needless, unanswered, wrong;
    struct entry {
        char *email;
        bool is_user;
    } cache[CACHE_PLACES];
};

/* Returns the place of an address in the cache.  Several addresses share a place, and the
 * newest one stays there. */
static struct entry *cache_place(struct service *service, const char *email)
{
    uint64_t sum = 0;
    for (; *email; email++)
        sum = (sum ^ (unsigned char)*email) * UINT64_C(0x9E3779B97F4A7C15);
    return &service->cache[(sum >> 32) % CACHE_PLACES];
}

static bool is_user(struct service *service, const char *email)
{
    struct perhaps_key key = { email, strlen(email) };
    struct perhaps_keys keys = perhaps_keys_each(&key, 1);
    struct entry *entry = cache_place(service, email);
    bool perhaps = true;
    if (service->is_guarded && !guard_ask(&guard, &keys, &perhaps))
        service->unanswered++; /* cache and database are asked, as if there were no guard */
    if (!perhaps)
        return false; /* certainly no user: neither cache nor database is asked */
    if (entry->email && strcmp(entry->email, email) == 0) {
        service->from_cache++;
        return entry->is_user;
    }
    bool exists = database_query(database, FIND, email, NULL) > 0;
    service->to_database++;
    service->needless += !exists;
    if (exists || service->caches_nobody) {
        free(entry->email);
        *entry = (struct entry){ strdup(email), exists };
    }
    return exists;
}

/* Asks a service all questions, which are the same for all services.  Half of the questions
 * about users are about one in 64 of them.  The other addresses hardly ever repeat, as if
 * somebody tried out addresses at random. */
static void ask(struct service *service, const struct perhaps_keys *users)
{
    unsigned short state[3] = { 1, 2, 3 };
    for (uint64_t i = 0; i < (uint64_t)nlookups; i++) {
        char nobody[64];
        const char *email = nobody;
        bool exists = 100 * erand48(state) >= (double)ABSENT_PERCENT;
        double share = erand48(state);
        if (exists)
            email = users->each[(size_t)(pow(share, 6) * (double)users->count)].bytes;
        else
            snprintf(nobody, sizeof nobody, "user.%.0f@nowhere.example", share * 0x1p48);
        service->wrong += is_user(service, email) != exists;
    }
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Asks a service, and prints what it did.  Returns whether all answers were true and the
 * guard did its work: it may by chance let through more than the fpr says, but not twice as
 * many and 50 more. */
static bool measure(struct service *service, const struct perhaps_keys *users)
{
    double start_s = now_s(), limit = nlookups;
    ask(service, users);
    double per_second = nlookups / (now_s() - start_s);
    if (service->is_guarded)
        limit = 2 * fpr * nlookups + 50 + (double)service->unanswered;
    bool is_well = service->wrong == 0 && (double)service->needless <= limit;
    printf("%-28s%12zu%12zu%12zu%12.0f%s\n", service->name, service->to_database,
           service->needless, service->from_cache, per_second, is_well ? "" : "  WRONG");
    if (service->unanswered > 0)
        printf("the guard did not answer %zu questions\n", service->unanswered);
    return is_well;
}

static bool look_ups(void)
{
    static struct service services[] = {
        { .name = "no guard" },
        { .name = "no guard, \"nobody\" cached", .caches_nobody = true },
        { .name = "guard", .is_guarded = true },
    };
    char count[24];
    bool is_well = true;
    snprintf(count, sizeof count, "%.0f", nusers);
    if (database_query(database, USERS, NULL, NULL) == 0)
        database_query(database, MAKE_UP, count, NULL);
    struct perhaps_keys users = add_all_users();
    printf("%zu users; %.0f look-ups, %d %% of them of addresses that nobody has\n\n",
           users.count, nlookups, ABSENT_PERCENT);
    puts("                                 reached    of these    found in    look-ups\n"
         "                                database    needless   the cache    a second");
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++)
        is_well &= measure(&services[i], &users);
    return is_well;
}

/* ---- Sign-ups: the guard, then the database ---------------------------------------------- */

/* Gives the address away unless it is taken.  Returns the answer, and what decided it.  The
 * order of the two changes matters, since the process may die between them:
 *     database first   the address is taken, but the guard says for ever: certainly free;
 *     guard first      the address is free, but the guard says: perhaps taken.  Then the
 *                      program asks the database, which knows better.
 * Two processes may both find an address free.  Then both insert it, and UNIQUE decides. */
static const char *sign_up(const char *email)
{
    struct perhaps_key key = { email, strlen(email) };
    struct perhaps_keys keys = perhaps_keys_each(&key, 1);
    bool perhaps_taken;
    guard_add(&guard, &keys, &perhaps_taken);
    if (perhaps_taken && database_query(database, FIND, email, NULL) > 0)
        return "taken\tdatabase";
    if (database_query(database, INSERT, email, NULL) == 0)
        return "taken\tconstraint";
    return perhaps_taken ? "free\tdatabase" : "free\tguard";
}

/* Returns whether this looks like an address.  Guard and database must see the same bytes: if
 * Anna@x and anna@x are one address to you, change it to lower case here. */
static bool is_email(const char *text)
{
    static const char characters[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz@.!#$%&'*+-/=?^_`{|}~";
    return strchr(text, '@') && strlen(text) <= 254 && !text[strspn(text, characters)];
}

static void sign_up_lines(void)
{
    char *line = NULL;
    size_t room = 0;
    add_all_users();
    setvbuf(stdout, NULL, _IOLBF, 0); /* each line is answered at once */
    while (getline(&line, &room, stdin) > 0 && !ferror(stdout)) {
        line[strcspn(line, "\r\n")] = '\0';
        bool is_well = is_email(line);
        printf("%s\t%s\n", is_well ? sign_up(line) : "refused\t-", is_well ? line : "");
    }
    free(line);
}

/* ---- The program ------------------------------------------------------------------------- */

static const struct option {
    const char *name;
    const char **text;
    double *number;
} options[] = {
    { "--database", &database_path, NULL },
    { "--guard", &guard.where, NULL },
    { "--fpr", NULL, &fpr },
    { "--capacity", NULL, &capacity },
    { "--users", NULL, &nusers },
    { "--lookups", NULL, &nlookups },
    { NULL, NULL, NULL },
};

static void parse(char **argument)
{
    for (; *argument; argument += 2) {
        const struct option *option = options;
        char *end = "";
        while (option->name && strcmp(*argument, option->name) != 0)
            option++;
        if (!option->name || !argument[1])
            errx(2, "%s: no such option, or no value; --help lists them", *argument);
        if (option->text)
            *option->text = argument[1];
        else
            *option->number = strtod(argument[1], &end);
        if (*end || (option->number && !(*option->number > 0 && *option->number < 1e9)))
            errx(2, "%s %s: wanted is a number above 0", *argument, argument[1]);
    }
}

/* Returns whether the guard knows all users. */
static bool check(void)
{
    struct perhaps_keys users = { 0 };
    size_t count = database_query(database, USERS, NULL, &users), ndenied = 0;
    bool *perhaps = calloc(count + 1, sizeof *perhaps);
    guard.silent_until_s = 0; /* asks the guard even if it did not answer a moment ago */
    if (!perhaps || !guard_ask(&guard, &users, perhaps))
        errx(2, "the guard could not be checked");
    for (size_t i = 0; i < count; i++)
        ndenied += !perhaps[i];
    free(perhaps);
    fprintf(stderr, "%s%zu users checked: the guard denies %zu\n", ndenied ? "WRONG: " : "",
            count, ndenied);
    return ndenied == 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "", *secret = getenv("GUARD_SECRET");
    bool signs_up = strcmp(verb, "signup") == 0, checks = strcmp(verb, "check") == 0;
    if (strcmp(verb, "--help") == 0)
        return fputs(usage, stdout) < 0;
    parse(argv + 1 + (signs_up || checks));
    bool is_shared = strcmp(guard.where, "memory") != 0;
    if ((signs_up || checks) && (!*database_path || !is_shared))
        errx(2, "%s: wanted are --database and --guard", verb);
    if (is_shared && (!secret || strlen(secret) != 16))
        errx(2, "GUARD_SECRET in the environment: wanted are 16 characters");

    /* Strangers choose the addresses.  A hash with a secret keeps them from working out which
     * addresses pass.  For a guard in memory the library draws the secret. */
    guard.options.hashing.hash = PERHAPS_HASH_SIP;
    guard.options.hashing.secret = is_shared ? (const uint8_t *)secret : NULL;
    guard.options.capacity = (uint64_t)capacity;
    guard.options.fpr = fpr;
    database = database_open(database_path, !checks);
    guard_open(&guard, !checks);
    if (signs_up)
        sign_up_lines();
    bool is_well = signs_up || checks || look_ups();
    is_well = check() && is_well;
    guard_close(&guard);
    database_close(database);
    if (fflush(stdout) || ferror(stdout))
        err(2, "standard output");
    return !is_well;
}
