/* cluster_measure.c - the turns. */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cluster.h"

const char *const work_names[WORKS] = {
    [ASKING_ABSENT] = "ask, absent", [ASKING_PRESENT] = "ask, present",
    [ADDING_NEW] = "add, new",       [ADDING_AGAIN] = "add, again",
    [NAIVE_ADDING] = "naive add",    [NAIVE_ASKING] = "naive ask",
    [GETTING_FEW] = "GET, of few",
};

const size_t latency_batch[LATENCIES] = { 1, 16, 256, 4096 };

/* One row being measured. */
struct contest {
    struct fleet *fleet;
    const struct plan *plan;
    struct row *row;
    perhaps_cluster *cluster;
    struct bits bits;
    struct key_buffer buffer;
    struct perhaps_keys keys; /* of the piece */
    bool *answers;
    uint64_t added, naive_added; /* keys, which are those from number 0 on */
    uint64_t asked, got;         /* so that others are asked and got in each turn */
    struct gauge overhead;       /* of looking at the gauge */
};

static void stop_on(const perhaps_cluster *cluster, int error)
{
    if (error)
        errx(2, "%s", perhaps_cluster_problem(cluster));
}

/* ---- Batches ----------------------------------------------------------------------------- */

static size_t count_true(const bool *answers, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += answers[i];
    return n;
}

/* How many of the keys were answered "perhaps". */
static size_t add_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    stop_on(contest->cluster,
            perhaps_cluster_add_many(contest->cluster, keys, contest->answers, NULL));
    return count_true(contest->answers, keys->count);
}

static size_t ask_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    size_t npresent;
    stop_on(contest->cluster,
            perhaps_cluster_contains_many(contest->cluster, keys, contest->answers, &npresent));
    return npresent;
}

static size_t naive_add_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    bits_add(&contest->bits, keys);
    return count_true(contest->bits.all, keys->count);
}

static size_t naive_ask_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    bits_ask(&contest->bits, keys);
    return count_true(contest->bits.all, keys->count);
}

static size_t get_few_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    values_get(contest->fleet, FEW_VALUES, contest->got, keys->count);
    contest->got += keys->count;
    return keys->count;
}

typedef size_t batch_function(struct contest *contest, const struct perhaps_keys *keys);
static batch_function *const batch_functions[WORKS] = {
    [ASKING_ABSENT] = ask_batch,      [ASKING_PRESENT] = ask_batch,
    [ADDING_NEW] = add_batch,         [ADDING_AGAIN] = add_batch,
    [NAIVE_ADDING] = naive_add_batch, [NAIVE_ASKING] = naive_ask_batch,
    [GETTING_FEW] = get_few_batch,
};

/* The keys of the next piece; 'sure': all of them were added before. */
static struct perhaps_keys next_keys(struct contest *contest, enum work work, bool *sure)
{
    struct key_buffer *buffer = &contest->buffer;
    size_t count = contest->plan->piece;
    uint64_t turn = contest->asked++ * count;
    *sure = work == ASKING_PRESENT || work == ADDING_AGAIN || work == NAIVE_ASKING;
    switch (work) {
    case ADDING_NEW:
        contest->added += count;
        return keys_added(buffer, contest->added - count, count);
    case NAIVE_ADDING:
        contest->naive_added += count;
        return keys_added(buffer, contest->naive_added - count, count);
    case NAIVE_ASKING:
        return keys_present(buffer, turn, count, contest->naive_added);
    case ASKING_ABSENT:
        return keys_absent(buffer, turn, count);
    default:
        return keys_present(buffer, turn, count, contest->added);
    }
}

/* ---- One turn ---------------------------------------------------------------------------- */

static double client_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* What passed between two looks at the gauge, of which the first is in it. */
static void note_cost(const struct contest *contest, const struct gauge *before, double client,
                      struct cost *cost)
{
    const struct gauge *overhead = &contest->overhead;
    double pieces = (double)contest->plan->piece * contest->plan->rounds;
    double client_now = client_seconds();
    struct gauge after = fleet_gauge(contest->fleet);
    cost->commands += (after.commands - before->commands - overhead->commands) / pieces;
    cost->in_nbytes += (after.in_nbytes - before->in_nbytes - overhead->in_nbytes) / pieces;
    cost->out_nbytes += (after.out_nbytes - before->out_nbytes - overhead->out_nbytes) / pieces;
    cost->server_seconds += (after.seconds - before->seconds - overhead->seconds) / pieces;
    cost->client_seconds += (client_now - client) / pieces;
}

/* Each returns its seconds a key. */
static double time_get(struct contest *contest, struct cost *cost)
{
    const struct plan *plan = contest->plan;
    struct gauge before = fleet_gauge(contest->fleet);
    double client = client_seconds(), start = seconds_now();
    for (size_t at = 0; at < plan->piece; at += plan->batch, contest->got += plan->batch)
        values_get(contest->fleet, VALUES, contest->got, plan->batch);
    double seconds = seconds_now() - start;
    note_cost(contest, &before, client, cost);
    return seconds / (double)plan->piece;
}

static double time_work(struct contest *contest, enum work work, struct cost *cost)
{
    const struct plan *plan = contest->plan;
    bool sure;
    size_t found = 0;
    struct perhaps_keys keys = next_keys(contest, work, &sure);
    struct gauge before = fleet_gauge(contest->fleet);
    double client = client_seconds(), start = seconds_now();
    for (size_t at = 0; at < plan->piece; at += plan->batch) {
        struct perhaps_keys batch = keys_slice(&keys, at, plan->batch);
        found += batch_functions[work](contest, &batch);
    }
    double seconds = seconds_now() - start;
    note_cost(contest, &before, client, cost);
    if (sure && found != plan->piece)
        errx(1, "WRONG: %s: of %zu keys that are in %zu are found", work_names[work],
             plan->piece, found);
    return seconds / (double)plan->piece;
}

/* ---- All turns --------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}

static double less(double best, double seconds)
{
    return best <= 0 || seconds < best ? seconds : best;
}

static void take_turns(struct contest *contest)
{
    unsigned rounds = contest->plan->rounds;
    double *ratios = calloc((size_t)WORKS * rounds, sizeof *ratios);
    if (!ratios)
        errx(2, "out of memory");
    for (unsigned round = 0; round < rounds; round++)
        for (int work = 0; work < WORKS; work++) {
            struct measured *measured = &contest->row->works[work];
            double get = time_get(contest, &measured->get_cost);
            double own = time_work(contest, (enum work)work, &measured->cost);
            measured->get_seconds = less(measured->get_seconds, get);
            measured->seconds = less(measured->seconds, own);
            ratios[(unsigned)work * rounds + round] = get / own;
        }
    for (int work = 0; work < WORKS; work++)
        contest->row->works[work].ratio = median(ratios + (unsigned)work * rounds, rounds);
    free(ratios);
}

/* ---- Before and after -------------------------------------------------------------------- */

/* Adds keys until there are so many; returns the seconds. */
static double fill(struct contest *contest, uint64_t until)
{
    const struct plan *plan = contest->plan;
    double seconds = 0;
    while (contest->added < until) {
        uint64_t left = until - contest->added;
        size_t count = left < plan->batch ? (size_t)left : plan->batch;
        struct perhaps_keys keys = keys_added(&contest->buffer, contest->added, count);
        double start = seconds_now();
        add_batch(contest, &keys);
        seconds += seconds_now() - start;
        contest->added += count;
    }
    return seconds;
}

/* Nearly, so that there is room for the keys of the rounds: a filter that is full takes other
 * ways. */
static void fill_nearly(struct contest *contest)
{
    const struct plan *plan = contest->plan;
    uint64_t rest = (uint64_t)(plan->rounds + 1) * plan->piece;
    contest->row->filled = plan->keys - rest;
    contest->row->fill_seconds = fill(contest, contest->row->filled);
}

static void measure_fpr(struct contest *contest)
{
    const struct plan *plan = contest->plan;
    struct row *row = contest->row;
    for (; row->asked < plan->absent; row->asked += plan->batch) {
        /* far behind those that were asked for their time */
        struct perhaps_keys keys =
            keys_absent(&contest->buffer, (UINT64_C(1) << 48) + row->asked, plan->batch);
        row->false_positives += ask_batch(contest, &keys);
    }
}

static perhaps_cluster *create(const struct plan *plan, const char *url, double fpr)
{
    char where[256];
    perhaps_cluster *cluster;
    struct perhaps_options options = { .capacity = plan->keys, .fpr = fpr };
    snprintf(where, sizeof where, "%s/perhaps-bench", url);
    struct perhaps_cluster_options at = { .url = where };
    int error = perhaps_cluster_new(&at, &cluster);
    if (!error)
        error = perhaps_cluster_create(cluster, &options, 0);
    stop_on(cluster, error);
    return cluster;
}

static void destroy(perhaps_cluster *cluster)
{
    stop_on(cluster, perhaps_cluster_delete(cluster));
    perhaps_cluster_free(cluster);
}

static void open_contest(struct contest *contest, size_t key_nbytes)
{
    const struct plan *plan = contest->plan;
    contest->answers = malloc(plan->batch);
    if (!contest->answers || key_buffer_open(&contest->buffer, key_nbytes, plan->piece))
        errx(2, "out of memory");
    struct gauge before = fleet_gauge(contest->fleet), after = fleet_gauge(contest->fleet);
    contest->overhead = (struct gauge){ .commands = after.commands - before.commands,
                                        .in_nbytes = after.in_nbytes - before.in_nbytes,
                                        .out_nbytes = after.out_nbytes - before.out_nbytes,
                                        .seconds = after.seconds - before.seconds };
}

static void close_contest(struct contest *contest)
{
    key_buffer_close(&contest->buffer);
    free(contest->answers);
}

void measure_row(struct fleet *fleet, const struct plan *plan, const char *url, struct row *row)
{
    struct contest contest = { .fleet = fleet, .plan = plan, .row = row };
    open_contest(&contest, row->key_nbytes);
    contest.cluster = create(plan, url, row->fpr);
    stop_on(contest.cluster, perhaps_cluster_stats_of(contest.cluster, &row->stats));
    bits_open(&contest.bits, fleet, plan, row->fpr, row->stats.partitions);
    row->naive_k = contest.bits.k;
    fill_nearly(&contest);
    take_turns(&contest);
    fill(&contest, plan->keys);
    measure_fpr(&contest);
    bits_close(&contest.bits);
    destroy(contest.cluster);
    close_contest(&contest);
}

/* ---- Latency ----------------------------------------------------------------------------- */

struct stopwatch {
    double *get, *ask, *add;
};

static void time_call(struct contest *contest, size_t keys, size_t call,
                      struct stopwatch *watch)
{
    double start = seconds_now();
    values_get(contest->fleet, VALUES, contest->got++, keys);
    watch->get[call] = seconds_now() - start;
    struct perhaps_keys asked = keys_absent(&contest->buffer, contest->asked, keys);
    contest->asked += keys;
    start = seconds_now();
    ask_batch(contest, &asked);
    watch->ask[call] = seconds_now() - start;
    struct perhaps_keys added = keys_added(&contest->buffer, contest->added, keys);
    contest->added += keys;
    start = seconds_now();
    add_batch(contest, &added);
    watch->add[call] = seconds_now() - start;
}

void measure_latency(struct fleet *fleet, const struct plan *plan, const char *url,
                     struct latency latency[LATENCIES])
{
    struct row row = { .fpr = plan->fpr[0] };
    struct contest contest = { .fleet = fleet, .plan = plan, .row = &row };
    struct stopwatch watch = { .get = calloc(plan->samples, sizeof *watch.get),
                               .ask = calloc(plan->samples, sizeof *watch.ask),
                               .add = calloc(plan->samples, sizeof *watch.add) };
    if (!watch.get || !watch.ask || !watch.add)
        errx(2, "out of memory");
    open_contest(&contest, plan->key_nbytes[0]);
    contest.cluster = create(plan, url, row.fpr);
    for (size_t i = 0; i < LATENCIES && latency_batch[i] <= plan->batch; i++) {
        size_t calls = plan->samples;
        for (size_t call = 0; call < calls; call++)
            time_call(&contest, latency_batch[i], call, &watch);
        latency[i] = (struct latency){ .get = median(watch.get, calls),
                                       .ask = median(watch.ask, calls),
                                       .add = median(watch.add, calls) };
    }
    destroy(contest.cluster);
    close_contest(&contest);
    free(watch.get);
    free(watch.ask);
    free(watch.add);
}
