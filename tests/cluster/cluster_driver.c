/* cluster_driver.c - a client of the cluster library, for tests in shell.
 *
 *     cluster_driver VERB URL [NAME=VALUE...]
 *
 * It prints the result as one line of JSON; "error" names the error.  The exit status is 0; 1
 * after an error; 2 for a wrong command line; 3 if a key was denied that had been added.
 *
 *     create capacity= fpr= [grow=1] [partitions=]
 *     open, recount
 *     delete [wait=1]                   opens it first; after an error, statistics at a line
 *     verify [wait=N] [unopened=1]      once, and N more times, each when a line comes in
 *     add adder= first= count= [batch=] [shuffle=1]  told_new: how many were not there before
 *         recount=1: the same handle recounts then
 *     ask keys=FILE [absent=] [wait=1] [each=1]  all keys that FILE says are in, and some that
 *         are not; each=1: one key a call; errors are counted and do not end it
 *     run keys=FILE adders= askers= [batch=]  until SIGTERM, with a line each 0.1 s
 *
 * Each adder numbers its keys.  FILE has a line for each adder: how many of its keys have been
 * acknowledged.  'run' begins with these numbers and writes the new ones at its end.  'ask'
 * with wait=1 first asks once, so that all its connections are open; then it prints a line,
 * waits for a line on standard input, and asks for the keys that FILE has then. */
#include "cluster_driver.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BATCH = 500, DENIED = 3 }; /* keys a call, if 'batch' is not given; the exit status */

double clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- Settings ---------------------------------------------------------------------------- */

/* Sets one setting.  Returns false if there is none of this name. */
static bool set(struct settings *s, const char *name, size_t nbytes, const char *value)
{
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {
        { "capacity", &s->capacity }, { "partitions", &s->partitions },
        { "grow", &s->grow },         { "adder", &s->adder },
        { "first", &s->first },       { "count", &s->count },
        { "shuffle", &s->shuffle },   { "absent", &s->absent },
        { "wait", &s->wait },         { "adders", &s->adders },
        { "askers", &s->askers },     { "batch", &s->batch },
        { "each", &s->each },         { "unopened", &s->unopened },
        { "recount", &s->recount },
    };
    if (nbytes == 4 && !memcmp(name, "keys", nbytes))
        return s->keys = value, true;
    if (nbytes == 3 && !memcmp(name, "fpr", nbytes))
        return s->fpr = strtod(value, NULL), true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strlen(numbers[i].name) == nbytes && !memcmp(name, numbers[i].name, nbytes))
            return *numbers[i].number = strtoull(value, NULL, 10), true;
    return false;
}

static bool read_settings(struct settings *s, char **arguments)
{
    *s = (struct settings){ .url = *arguments++, .fpr = 1e-4, .adders = 1, .batch = BATCH };
    for (; *arguments; arguments++) {
        const char *equals = strchr(*arguments, '=');
        if (!equals || !set(s, *arguments, (size_t)(equals - *arguments), equals + 1)) {
            fprintf(stderr, "cluster_driver: %s: no such setting\n", *arguments);
            return false;
        }
    }
    if (s->each)
        s->batch = 1;
    return s->adders <= ADDERS_MOST && s->askers <= ASKERS_MOST && s->batch;
}

perhaps_cluster *handle_for(const struct settings *s)
{
    perhaps_cluster *cluster;
    perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = s->url }, &cluster);
    return cluster;
}

/* ---- Keys -------------------------------------------------------------------------------- */

uint64_t key_of(uint64_t adder, uint64_t index)
{
    return adder << 48 | index;
}

struct perhaps_keys packed_keys(const uint64_t *keys, size_t count)
{
    return perhaps_keys_packed(keys, sizeof *keys, count);
}

void read_progress(const char *path, struct progress *progress)
{
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[32];
    *progress = (struct progress){ .adders = 0 };
    if (!file)
        return;
    while (progress->adders < ADDERS_MOST && fgets(line, sizeof line, file))
        progress->added[progress->adders++] = strtoull(line, NULL, 10);
    fclose(file);
}

void write_progress(const char *path, const struct progress *progress)
{
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    for (unsigned i = 0; i < progress->adders; i++)
        fprintf(file, "%" PRIu64 "\n", progress->added[i]);
    fclose(file);
}

/* ---- Results ----------------------------------------------------------------------------- */

static const char *const error_names[ERRORS] = {
    [0] = "none",      [1] = "ARGUMENT",      [2] = "UNSUPPORTED", [3] = "MEMORY",
    [4] = "FULL",      [5] = "COPIES",        [6] = "NOT_FOUND",   [7] = "READ_ONLY",
    [8] = "MISMATCH",  [9] = "SECRET",        [10] = "IO",         [11] = "FORMAT",
    [12] = "VERSION",  [13] = "DAMAGED",      [14] = "LIMIT",      [15] = "LAYERS",
    [16] = "ADDRESS",  [17] = "UNREACHABLE",  [18] = "REFUSED",    [19] = "SERVER_FULL",
    [20] = "TAKEN",    [21] = "MISSING",      [22] = "UNFINISHED", [23] = "LOST",
    [24] = "REPLICAS", [25] = "CHANGED",      [26] = "PROTOCOL",   [27] = "STOPPED",
    [28] = "DEADLINE", [29] = "not_an_error",
};

/* Errors of perhaps.h are 0 to -15 and have these indexes; those of perhaps_cluster.h begin at
 * -64 and follow them. */
size_t index_of_error(int error)
{
    size_t index = error > -64 ? (size_t)-error : (size_t)(-error - 64 + 16);
    return index < ERRORS ? index : ERRORS - 1;
}

const char *name_of_error(size_t index)
{
    return error_names[index];
}

/* Prints a string of JSON.  The texts are this project's own and one line each, so it is enough
 * to replace quotes, backslashes and control characters. */
static void print_text(const char *name, const char *text)
{
    printf(",\"%s\":\"", name);
    for (; *text; text++)
        putchar(*text == '"' || *text == '\\' || *text < ' ' ? '\'' : *text);
    putchar('"');
}

static void print_number(const char *name, uint64_t number)
{
    printf(",\"%s\":%" PRIu64, name, number);
}

static void print_outcome(int error, perhaps_cluster *cluster)
{
    printf("{\"error\":\"%s\"", name_of_error(index_of_error(error)));
    if (error)
        print_text("problem", perhaps_cluster_problem(cluster));
}

static int ended(int error)
{
    puts("}");
    fflush(stdout);
    return error ? 1 : 0;
}

/* ---- Verbs ------------------------------------------------------------------------------- */

static int create(const struct settings *s, perhaps_cluster *cluster)
{
    struct perhaps_options options = { .capacity = s->capacity,
                                       .fpr = s->fpr,
                                       .needs = s->grow ? PERHAPS_CAN_GROW : 0 };
    int error = perhaps_cluster_create(cluster, &options, s->partitions);
    print_outcome(error, cluster);
    return ended(error);
}

static int open_and_tell(const struct settings *s, perhaps_cluster *cluster)
{
    (void)s;
    struct perhaps_cluster_stats stats = { .keys = 0 };
    int error = perhaps_cluster_open(cluster);
    if (!error)
        error = perhaps_cluster_stats_of(cluster, &stats);
    print_outcome(error, cluster);
    print_number("keys", stats.keys);
    print_number("layers", stats.layers);
    print_number("partitions", stats.partitions);
    print_number("nodes", stats.nodes);
    print_number("memory_nbytes", stats.memory_nbytes);
    return ended(error);
}

/* Tells that it waits, and waits for a line or the end of standard input. */
static void wait_for_line(void)
{
    printf("{\"waiting\":1}\n");
    fflush(stdout);
    while (getchar() != '\n' && !feof(stdin))
        ;
}

static int verify_once(perhaps_cluster *cluster)
{
    struct perhaps_cluster_verdict verdict = { .partitions = 0 };
    struct perhaps_cluster_stats stats;
    int before = perhaps_cluster_stats_of(cluster, &stats);
    int error = perhaps_cluster_verify(cluster, &verdict);
    print_outcome(error, cluster);
    print_text("stats", name_of_error(index_of_error(before)));
    print_number("partitions", verdict.partitions);
    print_number("lost", verdict.lost);
    print_number("miscounted", verdict.miscounted);
    print_number("keys", verdict.keys);
    return ended(error);
}

static int verify(const struct settings *s, perhaps_cluster *cluster)
{
    int status = 0, error = s->unopened ? 0 : perhaps_cluster_open(cluster);
    if (error && error != PERHAPS_ERR_LOST) {
        print_outcome(error, cluster);
        return ended(error);
    }
    for (uint64_t i = 0; i <= s->wait; i++) {
        if (i)
            wait_for_line();
        status = verify_once(cluster);
    }
    return status;
}

static int delete_filter(const struct settings *s, perhaps_cluster *cluster)
{
    struct perhaps_cluster_stats stats = { .keys = 0 };
    int error = s->wait ? perhaps_cluster_open(cluster) : 0;
    if (!error)
        error = perhaps_cluster_delete(cluster);
    print_outcome(error, cluster);
    if (!error || !s->wait)
        return ended(error);
    ended(error);
    wait_for_line();
    error = perhaps_cluster_stats_of(cluster, &stats);
    print_outcome(error, cluster);
    print_number("keys", stats.keys);
    return ended(error);
}

static int recount(const struct settings *s, perhaps_cluster *cluster)
{
    (void)s;
    uint64_t was, now;
    int error = perhaps_cluster_recount(cluster, &was, &now);
    print_outcome(error, cluster);
    print_number("was", was);
    print_number("now", now);
    return ended(error);
}

static void shuffle(uint64_t *keys, uint64_t count)
{
    struct rng rng = rng_for("shuffle");
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = rng_below(&rng, i), key = keys[j];
        keys[j] = keys[i - 1];
        keys[i - 1] = key;
    }
}

static int add(const struct settings *s, perhaps_cluster *cluster)
{
    uint64_t *keys = calloc(s->count + 1, sizeof *keys), told_new = 0, dealt = 0;
    uint8_t *was_present = calloc(s->batch, sizeof *was_present);
    struct perhaps_cluster_stats stats = { .keys = 0 };
    expect(keys && was_present);
    for (uint64_t i = 0; i < s->count; i++)
        keys[i] = key_of(s->adder, s->first + i);
    if (s->shuffle)
        shuffle(keys, s->count);
    int error = perhaps_cluster_open(cluster);
    while (!error && dealt < s->count) {
        uint64_t left = s->count - dealt;
        struct perhaps_keys batch =
            packed_keys(keys + dealt, left < s->batch ? left : s->batch);
        size_t done;
        error = perhaps_cluster_add_many(cluster, &batch, was_present, &done);
        for (size_t i = 0; i < done; i++)
            told_new += !was_present[i];
        dealt += done;
    }
    if (!error && s->recount)
        error = perhaps_cluster_recount(cluster, NULL, NULL);
    print_outcome(error, cluster);
    print_number("added", dealt);
    print_number("told_new", told_new);
    if (!perhaps_cluster_stats_of(cluster, &stats))
        print_number("layers", stats.layers);
    print_number("doubtful", stats.doubtful);
    print_number("redirections", stats.redirections);
    free(keys);
    free(was_present);
    return ended(error);
}

struct answers {
    uint64_t asked, present, failed;
    uint64_t first_denied; /* the first key that was denied */
};

/* Asks for keys 0 .. count-1 of an adder, and adds the answers to *answers, also those that
 * came before an error. */
static int ask_keys(const struct settings *s, perhaps_cluster *cluster, uint64_t adder,
                    uint64_t count, struct answers *answers)
{
    uint64_t *keys = calloc(s->batch, sizeof *keys);
    uint8_t *present = calloc(s->batch, sizeof *present);
    int error = 0;
    expect(keys && present);
    for (uint64_t first = 0; !error && first < count; first += s->batch) {
        size_t n = count - first < s->batch ? count - first : s->batch;
        struct perhaps_keys batch = packed_keys(keys, n);
        for (size_t i = 0; i < n; i++)
            keys[i] = key_of(adder, first + i);
        error = perhaps_cluster_contains_many(cluster, &batch, present, NULL);
        for (size_t i = 0; i < n; i++) {
            answers->failed += present[i] == PERHAPS_ANSWER_UNKNOWN;
            answers->asked += present[i] != PERHAPS_ANSWER_UNKNOWN;
            answers->present += present[i] == PERHAPS_ANSWER_PERHAPS;
            if (present[i] == PERHAPS_ANSWER_NO && answers->asked == answers->present + 1)
                answers->first_denied = keys[i];
        }
        if (s->each)
            error = 0;
    }
    free(keys);
    free(present);
    return error;
}

static int ask_all(const struct settings *s, perhaps_cluster *cluster, struct answers *answers)
{
    struct progress progress;
    int error = 0;
    read_progress(s->keys, &progress);
    *answers = (struct answers){ .asked = 0 };
    for (unsigned a = 0; a < progress.adders && !error; a++)
        error = ask_keys(s, cluster, a, progress.added[a], answers);
    return error;
}

/* Status 3 if a key was denied that is in, whatever else went wrong. */
static int ask(const struct settings *s, perhaps_cluster *cluster)
{
    struct answers answers = { .asked = 0 }, absent = { .asked = 0 };
    int error = perhaps_cluster_open(cluster);
    if (!error && s->wait) {
        error = ask_all(s, cluster, &answers);
        wait_for_line();
    }
    if (!error)
        error = ask_all(s, cluster, &answers);
    if (!error)
        error = ask_keys(s, cluster, ABSENT, s->absent, &absent);
    uint64_t denied = answers.asked - answers.present;
    print_outcome(error, cluster);
    print_number("asked", answers.asked);
    print_number("failed", answers.failed);
    print_number("denied", denied);
    if (denied)
        print_number("first_denied", answers.first_denied);
    print_number("absent_asked", absent.asked);
    print_number("absent_present", absent.present);
    error = ended(error);
    return denied ? DENIED : error;
}

static int run(const struct settings *s, perhaps_cluster *cluster)
{
    (void)cluster; /* each worker has its own */
    return run_workers(s) ? DENIED : 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct settings *settings, perhaps_cluster *cluster);
    } verbs[] = {
        { "create", create }, { "open", open_and_tell },
        { "verify", verify }, { "delete", delete_filter },
        { "add", add },       { "ask", ask },
        { "run", run },       { "recount", recount },
    };
    struct settings settings;
    if (!setlocale(LC_ALL, "")) {
        fprintf(stderr, "cluster_driver: there is no such locale\n");
        return 2;
    }
    if (argc < 3 || !read_settings(&settings, argv + 2)) {
        fprintf(stderr, "usage: cluster_driver VERB URL [NAME=VALUE...]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(argv[1], verbs[i].name)) {
            perhaps_cluster *cluster = handle_for(&settings);
            int status = verbs[i].run(&settings, cluster);
            perhaps_cluster_free(cluster);
            return status;
        }
    fprintf(stderr, "cluster_driver: %s: no such verb\n", argv[1]);
    return 2;
}
