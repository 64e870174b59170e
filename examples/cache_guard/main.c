/* main.c - cache_guard: a filter in front of a cache and a database.
 * Run: build/examples/cache_guard   (returns 0 if no user was denied, and hardly a question
 * that nobody can answer came through; README.md tells the rest) */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "run.h"
#include "scratch.h"
#include "service.h"

static const char usage[] =
    "usage: cache_guard [OPTION...]         look-ups with and without a guard, and sign-ups\n"
    "       cache_guard signup [OPTION...]  e-mail addresses from standard input: taken, or\n"
    "                                       free and given away\n"
    "       cache_guard check [OPTION...]   does the guard know all users of the database?\n"
    "\n"
    "  --database FILE | postgresql://user@host/name\n"
    "                  SQLite, or PostgreSQL; one that has users is taken as it is.  Without\n"
    "                  it an SQLite file for this run alone\n"
    "  --cache redis://[:password@]host[:port] | none\n"
    "                  without it a Redis server for this run alone, if it is installed\n"
    "  --guard memory | none | FILE | redis://host:port/name\n"
    "                  in the memory of this process; or shared by many: in a file, or on a\n"
    "                  server or cluster.  Without it on that server for this run alone;\n"
    "                  signup, check: the SQLite file's name and .guard\n"
    "  --fpr 0.1%      share of absent addresses that may pass the guard\n"
    "  --users 1M      made-up users to load into a database that has none\n"
    "  --lookups 1M    questions, ...\n"
    "  --absent 90%    ... and the share of them about addresses that nobody has\n"
    "  --readers 8     threads that ask, one question at a time each\n"
    "  --signups 10k   of each of two processes at once\n"
    "  --seed N        to ask the same once more\n"
    "  --quick         20k users and look-ups, 1k sign-ups\n"
    "  --json          for programs\n"
    "  --capacity N    signup: room of a guard that is made in a file; without it twice the\n"
    "                  users\n"
    "  --key-file FILE\n"
    "                  signup, check: 16 secret bytes, made if there are none; without them\n"
    "                  strangers might find addresses that pass\n"
    "\n"
    "Exit status: 0; 1 if the guard denied a user or let too much pass; 2 for other trouble.\n";

/* ---- Options ----------------------------------------------------------------------------- */

enum known {
    /* a text is given for each of these, */
    DATABASE,
    CACHE,
    GUARD,
    KEY_FILE,
    /* a number, */
    FPR,
    USERS,
    LOOKUPS,
    ABSENT,
    READERS,
    SIGNUPS,
    SEED,
    CAPACITY,
    /* or nothing */
    QUICK,
    JSON,
    HELP,
    NKNOWN,
};

static const struct option names[NKNOWN + 1] = {
    [DATABASE] = { "database", 1, NULL, DATABASE },
    [CACHE] = { "cache", 1, NULL, CACHE },
    [GUARD] = { "guard", 1, NULL, GUARD },
    [KEY_FILE] = { "key-file", 1, NULL, KEY_FILE },
    [FPR] = { "fpr", 1, NULL, FPR },
    [USERS] = { "users", 1, NULL, USERS },
    [LOOKUPS] = { "lookups", 1, NULL, LOOKUPS },
    [ABSENT] = { "absent", 1, NULL, ABSENT },
    [READERS] = { "readers", 1, NULL, READERS },
    [SIGNUPS] = { "signups", 1, NULL, SIGNUPS },
    [SEED] = { "seed", 1, NULL, SEED },
    [CAPACITY] = { "capacity", 1, NULL, CAPACITY },
    [QUICK] = { "quick", 0, NULL, QUICK },
    [JSON] = { "json", 0, NULL, JSON },
    [HELP] = { "help", 0, NULL, HELP },
};

static const struct {
    double least, most, normal, quick;
} numbers[NKNOWN] = {
    [FPR] = { 1e-9, 0.5, 0.001, 0.001 },
    [USERS] = { 1, 1e9, 1e6, 20000 },
    [LOOKUPS] = { 1, 1e9, 1000000, 20000 },
    [ABSENT] = { 0, 1, 0.9, 0.9 },
    [READERS] = { 1, READERS_MAX, 8, 8 },
    [SIGNUPS] = { 0, 1e7, 10000, 1000 },
    [SEED] = { 0, 1e15, 0, 0 },
    [CAPACITY] = { 0, 1e12, 0, 0 },
};

struct request {
    const char *text[NKNOWN];
    double number[NKNOWN];
    bool is_given[NKNOWN];
};

/* A number, which may end in k, M or %. */
static double number_of(enum known option, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    bool is_number = end != text;
    if (*end == 'k' || *end == 'M' || *end == '%')
        number *= *end == 'k' ? 1e3 : *end == 'M' ? 1e6 : 0.01, end++;
    if (!is_number || *end ||
        !(number >= numbers[option].least && number <= numbers[option].most))
        fail("--%s %s: wanted is a number from %g to %g", names[option].name, text,
             numbers[option].least, numbers[option].most);
    return number;
}

static uint64_t random_seed(void)
{
    uint32_t seed; /* short enough to type */
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        fail("no random numbers: %s", strerror(errno));
    return seed;
}

static struct request parse(int argc, char **argv)
{
    struct request request = { .is_given[HELP] = false };
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == '?')
            fail("%s: no such option, or not with that value; --help lists them",
                 argv[optind - 1]);
        request.is_given[option] = true;
        request.text[option] = optarg;
        if (option >= FPR && option < QUICK)
            request.number[option] = number_of((enum known)option, optarg);
    }
    if (optind < argc)
        fail("%s: no such verb or option; --help lists them", argv[optind]);
    for (option = FPR; option < QUICK; option++)
        if (!request.is_given[option])
            request.number[option] =
                request.is_given[QUICK] ? numbers[option].quick : numbers[option].normal;
    const char *seed = getenv("PERHAPS_TEST_SEED");
    if (!request.is_given[SEED])
        request.number[SEED] =
            seed ? (double)(strtoull(seed, NULL, 10) % (1ULL << 49)) : (double)random_seed();
    return request;
}

/* ---- Verbs ------------------------------------------------------------------------------- */

static int run_request(const struct request *r)
{
    const struct run_options options = {
        .database = r->text[DATABASE],
        .cache = r->text[CACHE],
        .guard = r->text[GUARD],
        .fpr = r->number[FPR],
        .users = (uint64_t)r->number[USERS],
        .lookups = (uint64_t)r->number[LOOKUPS],
        .absent = r->number[ABSENT],
        .readers = (unsigned)r->number[READERS],
        .signups = (uint64_t)r->number[SIGNUPS],
        .seed = (uint64_t)r->number[SEED],
        .json = r->is_given[JSON],
    };
    return run(&options);
}

static int serve_request(const struct request *r, int (*serve)(const struct service *service))
{
    const struct service service = { .database = r->text[DATABASE],
                                     .guard = r->text[GUARD],
                                     .key_file = r->text[KEY_FILE],
                                     .fpr = r->number[FPR],
                                     .capacity = (uint64_t)r->number[CAPACITY] };
    return serve(&service);
}

int main(int argc, char **argv)
{
    bool has_verb = argc > 1 && argv[1][0] != '-';
    const char *verb = has_verb ? argv[1] : "";
    int (*serve)(const struct service *service) = strcmp(verb, "signup") == 0  ? serve_signups
                                                  : strcmp(verb, "check") == 0 ? check_guard
                                                                               : NULL;
    struct request request = parse(argc - (serve != NULL), argv + (serve != NULL));
    if (request.is_given[HELP]) {
        fputs(usage, stdout);
        return 0;
    }
    finish(serve ? serve_request(&request, serve) : run_request(&request));
}
