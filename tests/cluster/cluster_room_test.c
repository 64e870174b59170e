/* cluster_room_test.c - proves that N different keys go into a filter for N on servers, whoever
 * adds them, how often and in which order; that none more do; and that a filter which grows
 * gets no layer too early and no key twice.
 *
 *     cluster_room_test PORT PORT    a server's, and that of a node of a cluster; both are
 * empty */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perhaps_cluster_async.h"
#include "support.h"

enum { HANDLES_MOST = 8, PROCESSES_MOST = 8 };

/* At this rate no test meets a key that sets no bit. */
static const double no_chance = 1e-11;

static const char *ports[2];
static char url[100];

static perhaps_cluster *handle(void)
{
    perhaps_cluster *c;
    expect_success(perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = url }, &c));
    return c;
}

static perhaps_cluster *open_handle(void)
{
    perhaps_cluster *c = handle();
    expect_success(perhaps_cluster_open(c));
    return c;
}

/* Its seed is that of the test, so that nothing is told by chance. */
static void make_on_servers(uint64_t capacity, double fpr, bool grows)
{
    perhaps_cluster *c = handle();
    struct rng rng = rng_for("hash");
    struct perhaps_options options = { .capacity = capacity,
                                       .fpr = fpr,
                                       .hashing.seed = rng_next(&rng),
                                       .needs = grows ? PERHAPS_CAN_GROW : 0 };
    perhaps_cluster_delete(c); /* there may be none */
    expect_success(perhaps_cluster_create(c, &options, 0));
    perhaps_cluster_free(c);
}

static struct perhaps_cluster_stats stats(void)
{
    struct perhaps_cluster_stats stats;
    perhaps_cluster *c = open_handle();
    expect_success(perhaps_cluster_stats_of(c, &stats));
    perhaps_cluster_free(c);
    return stats;
}

/* ---- Workers ----------------------------------------------------------------------------- */

enum shape { DISJOINT, SAME, BACKWARDS, REPEATED, SHUFFLED, SHAPES };
static const char *const shape_name[] = { "disjoint", "the same", "backwards", "repeated",
                                          "shuffled" };

/* A handle that adds keys. */
struct worker {
    pthread_t thread;
    enum shape shape;
    unsigned number, of; /* of all workers of all processes */
    uint64_t first, count;
    size_t batch;
    int error;
    char problem[300];
};

/* Writes the keys of a worker in its order.  Returns how many. */
static size_t write_keys(const struct worker *w, uint64_t *keys)
{
    struct rng rng = rng_for("keys");
    size_t n = 0;
    for (unsigned i = 0; i < w->number; i++)
        rng_next(&rng);
    for (uint64_t i = 0; i < w->count; i++) {
        uint64_t key = w->shape == BACKWARDS && w->number % 2 ? w->count - 1 - i : i;
        if (w->shape == DISJOINT && i % w->of != w->number)
            continue;
        keys[n++] = w->first + key;
        if (w->shape == REPEATED)
            keys[n++] = w->first + rng_below(&rng, i + 1);
    }
    for (size_t i = n; w->shape == SHUFFLED && i > 1; i--) {
        size_t j = rng_below(&rng, i);
        uint64_t key = keys[j];
        keys[j] = keys[i - 1];
        keys[i - 1] = key;
    }
    return n;
}

static void *add_keys(void *context)
{
    struct worker *w = context;
    uint64_t *keys = calloc(2 * w->count, sizeof *keys);
    size_t n = write_keys(w, keys);
    perhaps_cluster *c = open_handle();
    for (size_t i = 0; i < n && !w->error; i += w->batch) {
        size_t some = n - i < w->batch ? n - i : w->batch;
        struct perhaps_keys batch = perhaps_keys_packed(keys + i, sizeof *keys, some);
        w->error = perhaps_cluster_add_many(c, &batch, NULL, NULL);
    }
    snprintf(w->problem, sizeof w->problem, "%s", perhaps_cluster_problem(c));
    perhaps_cluster_free(c);
    free(keys);
    return NULL;
}

/* What adds: so many processes, each with so many handles in threads. */
struct crew {
    unsigned processes, handles;
    enum shape shape;
    uint64_t first, count;
    size_t batch;
};

/* The workers of one process.  Returns the first error. */
static int work(const struct crew *crew, unsigned process)
{
    struct worker w[HANDLES_MOST] = { { 0 } };
    int error = 0;
    for (unsigned i = 0; i < crew->handles; i++) {
        w[i] = (struct worker){ .shape = crew->shape,
                                .number = process * crew->handles + i,
                                .of = crew->processes * crew->handles,
                                .first = crew->first,
                                .count = crew->count,
                                .batch = crew->batch };
        expect(!pthread_create(&w[i].thread, NULL, add_keys, &w[i]));
    }
    for (unsigned i = 0; i < crew->handles; i++) {
        pthread_join(w[i].thread, NULL);
        if (w[i].error && !error)
            fprintf(stderr, "%s [%s]\n", w[i].problem, scene_text());
        error = error ? error : w[i].error;
    }
    return error;
}

/* Forks; the child ends with its parent. */
static pid_t fork_child(void)
{
    pid_t child = fork();
    expect(child >= 0);
    if (!child)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

/* A reservation ends after one second, that for a batch after 10; and who waits for room that
 * others hold makes a newer layer after 2.  What comes later may be counted twice.  So the
 * counts of a crew that was slower than the shortest of these are not looked at. */
enum { SLOW_MS = 1000 };

/* Lets the crew add, which must succeed.  Returns whether it was not too slow. */
static bool add(const struct crew *crew)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t child[PROCESSES_MOST];
    for (unsigned i = 1; i < crew->processes; i++) {
        child[i] = fork_child();
        if (!child[i])
            _exit(work(crew, i) ? 1 : 0);
    }
    int error = work(crew, 0), status;
    for (unsigned i = 1; i < crew->processes; i++)
        if (waitpid(child[i], &status, 0) != child[i] || status)
            error = error ? error : -1;
    if (error)
        fail_msg("error %d [%s]", error, scene_text());
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 <
           SLOW_MS;
}

static void expect_keys(uint64_t keys, uint64_t layers)
{
    struct perhaps_cluster_stats s = stats();
    if (s.keys != keys || s.keys_reserved || s.layers != layers)
        fail_msg("%ju keys, %ju reserved, %ju layers [%s]", (uintmax_t)s.keys,
                 (uintmax_t)s.keys_reserved, (uintmax_t)s.layers, scene_text());
}

static void expect_full(uint64_t key)
{
    perhaps_cluster *c = open_handle();
    expect_error(perhaps_cluster_add(c, &key, sizeof key), PERHAPS_ERR_FULL);
    perhaps_cluster_free(c);
}

/* Returns one of the crews that are tried. */
static struct crew any_crew(struct rng *rng)
{
    static const unsigned handles[] = { 1, 1, 2, 4 }, processes[] = { 1, 1, 2, 3, 8 };
    static const size_t batches[] = { 1, 7, 500, 5000, 20000 };
    static const uint64_t counts[] = { 1, 2, 100, 1000, 10000, 40000 };
    struct crew crew = { .processes = processes[rng_below(rng, 5)],
                         .handles = handles[rng_below(rng, 4)],
                         .shape = (enum shape)rng_below(rng, SHAPES),
                         .first = rng_next(rng) >> 8,
                         .count = counts[rng_below(rng, 6)],
                         .batch = batches[rng_below(rng, 5)] };
    const uint64_t most = crew.batch == 1 ? 5000 : SANITIZED ? 30000 : 150000;
    while (crew.count * crew.processes * crew.handles > most)
        crew.count /= 2;
    return crew;
}

static void set_scene(const struct crew *crew, unsigned server, bool grows)
{
    snprintf(url, sizeof url, "redis://127.0.0.1:%s/room", ports[server]);
    scene("%s%u processes of %u handles, %ju keys, %s, batches of %zu%s",
          server ? "a cluster, " : "", crew->processes, crew->handles, (uintmax_t)crew->count,
          shape_name[crew->shape], crew->batch, grows ? ", grows" : "");
}

TEST(test_n_keys_into_a_filter_for_n)
{
    struct rng rng = rng_for("fixed");
    unsigned judged = 0;
    for (int i = 0; i < (every_case() ? 200 : 24); i++) {
        struct crew crew = any_crew(&rng);
        set_scene(&crew, (unsigned)i % 2, false);
        make_on_servers(crew.count, no_chance, false);
        if (!add(&crew))
            continue;
        judged++;
        expect_keys(crew.count, 1);
        expect_full(crew.first + crew.count);
        add(&crew); /* keys that are there need no room */
    }
    expect(judged);
}

/* One layer is filled to the brim before there is a second one. */
TEST(test_no_layer_too_early)
{
    struct rng rng = rng_for("grows");
    unsigned judged = 0;
    for (int i = 0; i < (every_case() ? 200 : 24); i++) {
        struct crew crew = any_crew(&rng);
        set_scene(&crew, (unsigned)i % 2, true);
        make_on_servers(crew.count, no_chance, true);
        if (!add(&crew))
            continue;
        judged++;
        expect_keys(crew.count, 1);
        crew.first += crew.count;
        crew.count = 1;
        add(&crew);
        expect_keys(stats().keys, 2);
    }
    expect(judged);
}

/* Who knows of a newer layer later adds some keys to two. */
TEST(test_no_batch_twice)
{
    struct rng rng = rng_for("twice");
    for (int i = 0; i < (every_case() ? 50 : 6); i++) {
        struct crew crew = { .processes = 1 + (unsigned)i % 2,
                             .handles = 2 + 2 * (unsigned)(i / 2 % 2),
                             .shape = DISJOINT,
                             .first = rng_next(&rng) >> 8,
                             .count = 160000,
                             .batch = 8192 };
        set_scene(&crew, (unsigned)i / 2 % 2, true);
        make_on_servers(10000, 1e-6, true);
        add(&crew);
        struct perhaps_cluster_stats s = stats();
        if (s.keys < 159990 || s.keys > 160500)
            fail_msg("%ju keys [%s]", (uintmax_t)s.keys, scene_text());
    }
}

/* Another handle has reserved room ahead, and does nothing any more; one of the same process,
 * or of another. */
TEST(test_idle_handles)
{
    enum { N = 100000, SINGLE = 600 };
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        struct crew crew = { .processes = 1, .handles = 1, .count = N, .batch = 5000 };
        int told[2];
        char byte;
        pid_t child = 0;
        set_scene(&crew, 0, false);
        make_on_servers(N, no_chance, false);
        expect(!pipe(told));
        perhaps_cluster *idle = NULL;
        if (!elsewhere || !(child = fork_child())) {
            idle = open_handle();
            for (uint64_t key = 0; key < SINGLE; key++)
                expect(perhaps_cluster_add(idle, &key, sizeof key) == PERHAPS_ANSWER_NO);
            expect(write(told[1], "x", 1) == 1);
            if (elsewhere)
                pause();
        }
        expect(read(told[0], &byte, 1) == 1);
        add(&crew);
        if (elsewhere) {
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
        } else {
            expect_full(N);
            perhaps_cluster_free(idle);
            expect_keys(N, 1);
        }
        close(told[0]);
        close(told[1]);
    }
}

/* Processes are killed while they add keys that are there.  What they had reserved comes
 * back. */
TEST(test_killed_processes)
{
    enum { N = 50000, IN = 25000 };
    struct rng rng = rng_for("kills");
    struct crew crew = { .processes = 1, .handles = 1, .count = IN, .batch = 4000 };
    set_scene(&crew, 0, false);
    make_on_servers(N, 1e-2, false);
    add(&crew);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork_child();
        if (!child)
            for (;;)
                work(&crew, 0);
        usleep((useconds_t)rng_below(&rng, 20000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    crew.first = IN;
    crew.count = IN - N / 100; /* what the bits tell has an error */
    add(&crew);
    struct perhaps_cluster_stats s = stats();
    if (s.keys > N || s.keys_reserved)
        fail_msg("%ju keys, %ju reserved", (uintmax_t)s.keys, (uintmax_t)s.keys_reserved);
}

static void ignore(void *context, const struct perhaps_cluster_result *result)
{
    (void)context, (void)result;
}

/* An asynchronous client is freed while calls are under way.  What it had reserved is given
 * back; of what was not answered in time it is noted that nobody knows. */
TEST(test_async_freed)
{
    enum { N = 20000, STEP = 1000 };
    struct rng rng = rng_for("freed");
    struct crew crew = { .processes = 1, .handles = 1, .count = N, .batch = 5000 };
    uint64_t *keys = calloc(N, sizeof *keys);
    for (uint64_t i = 0; i < N; i++)
        keys[i] = i;
    set_scene(&crew, 0, false);
    make_on_servers(2 * N, no_chance, false);
    add(&crew);
    for (int i = 0; i < 20; i++) {
        perhaps_cluster_async *async;
        expect_success(
            perhaps_cluster_async_new(&(struct perhaps_cluster_options){ .url = url }, &async));
        for (size_t at = 0; at < N; at += STEP) {
            struct perhaps_keys some = perhaps_keys_packed(keys + at, sizeof *keys, STEP);
            expect_success(perhaps_cluster_async_add(async, &some, 0, ignore, NULL, NULL));
        }
        usleep((useconds_t)rng_below(&rng, 20000));
        perhaps_cluster_async_free(async);
        struct perhaps_cluster_stats s = stats();
        if (s.keys - s.keys_reserved > N || s.keys < N)
            fail_msg("%ju keys, %ju reserved", (uintmax_t)s.keys, (uintmax_t)s.keys_reserved);
    }
    free(keys);
}

/* Of so many keys that were not added, 'found' were found.  By chance that is more than the
 * rate says once in a thousand million runs. */
static void expect_rate_at_most(uint64_t found, uint64_t asked, double rate)
{
    double mean = (double)asked * rate;
    if ((double)found > mean + 6 * sqrt(mean * (1 - rate)) + 6)
        fail_msg("%ju of %ju found [%s]", (uintmax_t)found, (uintmax_t)asked, scene_text());
}

/* Filled to the brim, with keys that set no bit: the rate is not over what was asked. */
TEST(test_rate_at_the_brim)
{
    enum { N = 100000 };
    static const double rates[] = { .5, .3, .2, .1, .05, 1e-2, 1e-3, 1e-6 };
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        uint64_t key = (uint64_t)i << 40, found = 0;
        int error = 0;
        snprintf(url, sizeof url, "redis://127.0.0.1:%s/room", ports[0]);
        scene("rate %g", rates[i]);
        make_on_servers(N, rates[i], false);
        perhaps_cluster *c = open_handle();
        uint64_t *keys = calloc(N, sizeof *keys);
        uint8_t answers[8192];
        for (size_t round = 0; !error && round < 100; round++) {
            for (size_t k = 0; k < 8192; k++)
                keys[k] = key++;
            struct perhaps_keys batch = perhaps_keys_packed(keys, sizeof *keys, 8192);
            error = perhaps_cluster_add_many(c, &batch, answers, NULL);
        }
        expect(error == PERHAPS_ERR_FULL);
        expect((key & 0xffffffff) >= N);
        for (size_t round = 0; round < 25; round++) {
            size_t npresent;
            for (size_t k = 0; k < 8192; k++)
                keys[k] = 1ULL << 60 | round << 20 | k;
            struct perhaps_keys batch = perhaps_keys_packed(keys, sizeof *keys, 8192);
            expect_success(perhaps_cluster_contains_many(c, &batch, answers, &npresent));
            found += npresent;
        }
        expect_rate_at_most(found, 25 * 8192, rates[i]);
        free(keys);
        perhaps_cluster_free(c);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: cluster_room_test PORT PORT\n");
        return 2;
    }
    ports[0] = argv[1];
    ports[1] = argv[2];
    return run_all_tests();
}
