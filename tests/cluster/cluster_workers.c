/* cluster_workers.c - the driver's verb 'run': threads that add and threads that ask, each with
 * its own handle.  An adder publishes how many of its keys have been acknowledged.  An asker
 * asks for keys that were acknowledged before it asks, which must be found, and for as many
 * keys that nobody adds.  All go on after errors, which they count, until SIGTERM.
 *
 * Each line of output has: acknowledged, asked (of these) and denied; absent_asked and
 * absent_present; told_new; the number of each error; the longest call that did not fail; and
 * the last line also has the counts of the handles. */
#include "cluster_driver.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAP_US = 20000, TELL_US = 100000 }; /* pause after an error; time between two lines */

enum count {
    ASKED,
    DENIED,
    ABSENT_ASKED,
    ABSENT_PRESENT,
    TOLD_NEW,
    LONGEST_ADD_MS,
    LONGEST_ASK_MS,
    COMMANDS,
    RETRIES,
    REDIRECTIONS,
    DOUBTFUL,
    COUNTS
};
static const char *const count_names[COUNTS] = {
    "asked",    "denied",         "absent_asked",   "absent_present",
    "told_new", "longest_add_ms", "longest_ask_ms", "commands",
    "retries",  "redirections",   "doubtful",
};

/* What all workers share. */
struct crowd {
    const struct settings *settings;
    _Atomic uint64_t added[ADDERS_MOST]; /* acknowledged keys of each adder */
    _Atomic uint64_t counts[COUNTS], errors[ERRORS];
    atomic_bool stop;
};

struct worker {
    pthread_t thread;
    struct crowd *crowd;
    perhaps_cluster *cluster;
    unsigned index; /* the adder's number; its keys begin with it */
    struct rng rng;
    uint64_t *keys;
    uint8_t *answers;
};

static volatile sig_atomic_t told_to_stop;

static void on_signal(int number)
{
    (void)number;
    told_to_stop = 1;
}

static void count(struct crowd *crowd, enum count which, uint64_t n)
{
    atomic_fetch_add_explicit(&crowd->counts[which], n, memory_order_relaxed);
}

static void count_longest(struct crowd *crowd, enum count which, double began_ms)
{
    uint64_t took = (uint64_t)(clock_ms() - began_ms),
             longest = atomic_load(&crowd->counts[which]);
    while (took > longest &&
           !atomic_compare_exchange_weak(&crowd->counts[which], &longest, took))
        ;
}

/* Counts an error and waits a little; prints the first few of each sort to standard error. */
static void count_error(struct worker *worker, const char *what, int error)
{
    size_t index = index_of_error(error);
    if (atomic_fetch_add(&worker->crowd->errors[index], 1) < 3)
        fprintf(stderr, "%s: %s: %s\n", what, name_of_error(index),
                perhaps_cluster_problem(worker->cluster));
    usleep(NAP_US);
}

static bool stops(const struct worker *worker)
{
    return atomic_load_explicit(&worker->crowd->stop, memory_order_relaxed);
}

/* Opens the worker's own handle, as often as it takes. */
static void begin(struct worker *worker)
{
    size_t batch = worker->crowd->settings->batch;
    worker->cluster = handle_for(worker->crowd->settings);
    worker->keys = calloc(batch, sizeof *worker->keys);
    worker->answers = calloc(batch, sizeof *worker->answers);
    if (!worker->keys || !worker->answers)
        abort();
    int error;
    while (!stops(worker) && (error = perhaps_cluster_open(worker->cluster)))
        count_error(worker, "open", error);
}

/* Adds up the counts of the handle and releases it.  Statistics ask the servers; if these do
 * not answer, the counts are missing. */
static void end(struct worker *worker)
{
    struct perhaps_cluster_stats stats;
    if (!perhaps_cluster_stats_of(worker->cluster, &stats)) {
        count(worker->crowd, COMMANDS, stats.commands);
        count(worker->crowd, RETRIES, stats.retries);
        count(worker->crowd, REDIRECTIONS, stats.redirections);
        count(worker->crowd, DOUBTFUL, stats.doubtful);
    }
    perhaps_cluster_free(worker->cluster);
    free(worker->keys);
    free(worker->answers);
}

/* ---- Adding ------------------------------------------------------------------------------ */

static void *add_keys(void *context)
{
    struct worker *worker = context;
    struct crowd *crowd = worker->crowd;
    size_t batch = crowd->settings->batch;
    int error = 0;
    begin(worker);
    while (!stops(worker) && error != PERHAPS_ERR_FULL) {
        uint64_t added = atomic_load(&crowd->added[worker->index]), told_new = 0;
        struct perhaps_keys keys = packed_keys(worker->keys, batch);
        size_t done = 0;
        double began_ms = clock_ms();
        for (size_t i = 0; i < batch; i++)
            worker->keys[i] = key_of(worker->index, added + i);
        error = perhaps_cluster_add_many(worker->cluster, &keys, worker->answers, &done);
        if (error)
            count_error(worker, "add", error);
        else
            count_longest(crowd, LONGEST_ADD_MS, began_ms);
        for (size_t i = 0; i < done; i++)
            told_new += !worker->answers[i];
        count(crowd, TOLD_NEW, told_new);
        atomic_store_explicit(&crowd->added[worker->index], added + done, memory_order_release);
    }
    end(worker);
    return NULL;
}

/* ---- Asking ------------------------------------------------------------------------------ */

/* Returns the index of an added key; in half of the cases a recent one, since a fault would
 * lose the keys that came last. */
static uint64_t some_index(struct rng *rng, uint64_t added)
{
    uint64_t recent = added < 2000 ? added : 2000;
    return rng_below(rng, 2) ? rng_below(rng, added) : added - 1 - rng_below(rng, recent);
}

/* Chooses a batch: keys at even places have been acknowledged, the others are absent.  Returns
 * false if no key has been acknowledged yet. */
static bool choose_keys(struct worker *worker)
{
    struct crowd *crowd = worker->crowd;
    uint64_t adder = rng_below(&worker->rng, crowd->settings->adders);
    uint64_t added = atomic_load_explicit(&crowd->added[adder], memory_order_acquire);
    for (size_t i = 0; added && i < crowd->settings->batch; i++)
        worker->keys[i] = i % 2 ? key_of(ABSENT, rng_below(&worker->rng, UINT64_C(1) << 40))
                                : key_of(adder, some_index(&worker->rng, added));
    return added;
}

static void count_answers(struct worker *worker)
{
    uint64_t denied = 0, absent_present = 0;
    size_t batch = worker->crowd->settings->batch;
    for (size_t i = 0; i < batch; i++) {
        if (i % 2)
            absent_present += worker->answers[i];
        else if (!worker->answers[i] && !denied++)
            fprintf(stderr, "denied: key %" PRIx64 ", when %" PRIu64 " were in\n",
                    worker->keys[i], (uint64_t)worker->crowd->added[worker->keys[i] >> 48]);
    }
    count(worker->crowd, ASKED, (batch + 1) / 2);
    count(worker->crowd, DENIED, denied);
    count(worker->crowd, ABSENT_ASKED, batch / 2);
    count(worker->crowd, ABSENT_PRESENT, absent_present);
}

static void *ask_keys(void *context)
{
    struct worker *worker = context;
    begin(worker);
    while (!stops(worker)) {
        struct perhaps_keys keys = packed_keys(worker->keys, worker->crowd->settings->batch);
        if (!choose_keys(worker)) {
            usleep(NAP_US);
            continue;
        }
        double began_ms = clock_ms();
        int error =
            perhaps_cluster_contains_many(worker->cluster, &keys, worker->answers, NULL);
        if (error) {
            count_error(worker, "ask", error);
        } else {
            count_answers(worker);
            count_longest(worker->crowd, LONGEST_ASK_MS, began_ms);
        }
    }
    end(worker);
    return NULL;
}

/* ---- The crowd --------------------------------------------------------------------------- */

static void tell(struct crowd *crowd, struct progress *progress)
{
    uint64_t acknowledged = 0;
    progress->adders = (unsigned)crowd->settings->adders;
    for (unsigned i = 0; i < progress->adders; i++)
        acknowledged += progress->added[i] = atomic_load(&crowd->added[i]);
    printf("{\"acknowledged\":%" PRIu64, acknowledged);
    for (unsigned i = 0; i < COUNTS; i++)
        printf(",\"%s\":%" PRIu64, count_names[i], atomic_load(&crowd->counts[i]));
    uint64_t errors = 0;
    for (unsigned i = 0; i < ERRORS; i++) {
        uint64_t n = atomic_load(&crowd->errors[i]);
        errors += n;
        if (n)
            printf(",\"%s\":%" PRIu64, name_of_error(i), n);
    }
    printf(",\"errors\":%" PRIu64 "}\n", errors);
    fflush(stdout);
}

static void start(struct worker *worker, struct crowd *crowd, unsigned index, bool asks)
{
    *worker = (struct worker){ .crowd = crowd, .index = index, .rng = rng_for("worker") };
    worker->rng.state = mix64(worker->rng.state + index);
    if (pthread_create(&worker->thread, NULL, asks ? ask_keys : add_keys, worker))
        abort();
}

int run_workers(const struct settings *settings)
{
    static struct crowd crowd;
    static struct worker workers[ADDERS_MOST + ASKERS_MOST];
    unsigned adders = (unsigned)settings->adders, all = adders + (unsigned)settings->askers;
    struct progress progress;
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGTERM, &action, NULL);
    crowd.settings = settings;
    read_progress(settings->keys, &progress);
    for (unsigned i = 0; i < progress.adders; i++)
        crowd.added[i] = progress.added[i];
    for (unsigned i = 0; i < all; i++)
        start(&workers[i], &crowd, i, i >= adders);
    while (!told_to_stop) {
        tell(&crowd, &progress);
        usleep(TELL_US);
    }
    atomic_store(&crowd.stop, true);
    for (unsigned i = 0; i < all; i++)
        pthread_join(workers[i].thread, NULL);
    tell(&crowd, &progress);
    write_progress(settings->keys, &progress);
    return atomic_load(&crowd.counts[DENIED]) ? 1 : 0;
}
