/* cluster_measure.c - measures one filter on servers with many keys a call: its works in turn,
 * its rate and its latency.
 *
 * Before each turn come as many GETs as the turn has keys.  So each work has GETs of its own
 * to be compared with, made a moment before.  The best time of all turns counts, for both. */
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

/* The same work on the naive layout. */
static const enum work naive_of[OWN_WORKS] = {
    [ASKING_ABSENT] = NAIVE_ASKING,
    [ASKING_PRESENT] = NAIVE_ASKING,
    [ADDING_NEW] = NAIVE_ADDING,
    [ADDING_AGAIN] = NAIVE_ADDING,
};

/* One filter that is being measured.  open_contest() makes 'filter' and 'answers', and
 * close_contest() releases them; 'bits' is opened and closed by measure_rate(). */
struct contest {
    const struct strings *values; /* belong to the caller */
    const struct setup *setup;
    struct filter filter;
    perhaps_cluster *plain, *swift; /* its handle, and one that uses the module; or NULL */
    struct bits bits;
    uint8_t *answers;                           /* of one batch */
    uint64_t naive_added;                       /* how many keys the naive layout has */
    uint64_t got;                               /* counted so that each turn has other values */
    double seconds[WORKS], get_seconds[WORKS];  /* the best of all rounds */
    double cost[WORKS][COSTS], get_cost[COSTS]; /* of all rounds together */
    double swift_seconds[OWN_WORKS], swift_cost[OWN_WORKS][COSTS];
};

/* ---- The filter -------------------------------------------------------------------------- */

void stop_on(const perhaps_cluster *cluster, int error)
{
    if (error < 0)
        errx(2, "%s", perhaps_cluster_problem(cluster));
}

void filter_url(const struct fleet *fleet, char url[256])
{
    snprintf(url, 256, "%.200s/%s?module=no", fleet->url, FILTER_NAME);
}

struct filter filter_make(const struct fleet *fleet, const struct setup *setup,
                          const struct perhaps_options *options, uint64_t partitions)
{
    enum { KEY_NBYTES = 8 };
    char url[256];
    struct perhaps_cluster_options at = { .url = url };
    struct filter filter = { .buffer = key_buffer_open(KEY_NBYTES, setup->piece) };
    filter_url(fleet, url);
    int error = perhaps_cluster_new(&at, &filter.cluster);
    if (!error)
        error = perhaps_cluster_create(filter.cluster, options, partitions);
    if (!error)
        error = perhaps_cluster_stats_of(filter.cluster, &filter.stats);
    stop_on(filter.cluster, error);
    return filter;
}

void filter_delete(struct filter *filter)
{
    stop_on(filter->cluster, perhaps_cluster_delete(filter->cluster));
    perhaps_cluster_free(filter->cluster);
    key_buffer_close(&filter->buffer);
}

double filter_fill(struct filter *filter, uint64_t until, size_t batch)
{
    double seconds = 0;
    while (filter->added < until) {
        size_t count = piece_of(until - filter->added, batch);
        struct perhaps_keys keys = keys_added(&filter->buffer, filter->added, count);
        double start = seconds_now();
        stop_on(filter->cluster, perhaps_cluster_add_many(filter->cluster, &keys, NULL, NULL));
        seconds += seconds_now() - start;
        filter->added += count;
    }
    return seconds;
}

struct perhaps_keys filter_keys(struct filter *filter, enum work work, size_t count,
                                uint64_t *added, bool *sure)
{
    uint64_t first = filter->turns++ * count;
    *sure = work == ASKING_PRESENT || work == ADDING_AGAIN || work == NAIVE_ASKING;
    if (work == ASKING_ABSENT)
        return keys_absent(&filter->buffer, first, count);
    if (work != ADDING_NEW && work != NAIVE_ADDING)
        return keys_present(&filter->buffer, first, count, *added);
    *added += count;
    return keys_added(&filter->buffer, *added - count, count);
}

/* ---- Batches ----------------------------------------------------------------------------- */

/* These do one batch, and return for how many keys the answer was "perhaps". */

static size_t add_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    size_t present = 0;
    perhaps_cluster *cluster = contest->filter.cluster;
    stop_on(cluster, perhaps_cluster_add_many(cluster, keys, contest->answers, NULL));
    for (size_t i = 0; i < keys->count; i++)
        present += contest->answers[i];
    return present;
}

static size_t ask_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    size_t present;
    perhaps_cluster *cluster = contest->filter.cluster;
    stop_on(cluster, perhaps_cluster_contains_many(cluster, keys, contest->answers, &present));
    return present;
}

static size_t get_batch(struct contest *contest, uint64_t values)
{
    values_get(contest->values, values, contest->got, contest->setup->batch);
    contest->got += contest->setup->batch;
    return contest->setup->batch;
}

static size_t work_batch(struct contest *contest, enum work work,
                         const struct perhaps_keys *keys)
{
    switch (work) {
    case ASKING_ABSENT:
    case ASKING_PRESENT:
        return ask_batch(contest, keys);
    case ADDING_NEW:
    case ADDING_AGAIN:
        return add_batch(contest, keys);
    case NAIVE_ADDING:
        return bits_add(&contest->bits, keys);
    case NAIVE_ASKING:
        return bits_ask(&contest->bits, keys);
    default:
        return get_batch(contest, FEW_VALUES);
    }
}

/* ---- One turn ---------------------------------------------------------------------------- */

/* Adds to 'cost' all that servers and client have done so far, times 'sign'. */
static void count_cost(const struct contest *contest, double sign, double cost[COSTS])
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cost[CLIENT_US] += sign * 1e6 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
    cost[CLIENT_US] += sign * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    fleet_count(contest->values->fleet, sign, cost);
}

void note_best(double *best, double seconds)
{
    if (*best <= 0 || seconds < *best)
        *best = seconds;
}

/* Does the work of one turn, with other keys than before, and notes its time and cost.  Ends
 * the program if a key that was added is not found. */
static void do_work(struct contest *contest, enum work work, double *seconds,
                    double cost[COSTS])
{
    const struct setup *setup = contest->setup;
    bool sure, naive = work == NAIVE_ADDING || work == NAIVE_ASKING;
    size_t found = 0;
    struct perhaps_keys keys =
        filter_keys(&contest->filter, work, setup->piece,
                    naive ? &contest->naive_added : &contest->filter.added, &sure);
    count_cost(contest, -1, cost);
    double start = seconds_now();
    for (size_t at = 0; at < setup->piece; at += setup->batch) {
        struct perhaps_keys batch = perhaps_keys_slice(&keys, at, setup->batch);
        found += work_batch(contest, work, &batch);
    }
    note_best(seconds, seconds_now() - start);
    count_cost(contest, 1, cost);
    if (sure && found != setup->piece)
        errx(1, "WRONG: %s: of %zu keys that are in %zu are found", work_names[work],
             setup->piece, found);
}

/* Does one turn of a work by plain commands, and once more with the module; first the GETs. */
static void take_turn(struct contest *contest, enum work work)
{
    const struct setup *setup = contest->setup;
    count_cost(contest, -1, contest->get_cost);
    double start = seconds_now();
    for (size_t at = 0; at < setup->piece; at += setup->batch)
        get_batch(contest, VALUES);
    note_best(&contest->get_seconds[work], seconds_now() - start);
    count_cost(contest, 1, contest->get_cost);
    do_work(contest, work, &contest->seconds[work], contest->cost[work]);
    if (!contest->swift || work >= OWN_WORKS)
        return;
    contest->filter.cluster = contest->swift;
    do_work(contest, work, &contest->swift_seconds[work], contest->swift_cost[work]);
    contest->filter.cluster = contest->plain;
}

/* ---- Before and after -------------------------------------------------------------------- */

/* Returns the share of absent keys that are found.  Their numbers lie far behind those of the
 * keys that the turns asked for. */
static double measure_fpr(struct contest *contest)
{
    size_t batch = contest->setup->batch;
    uint64_t asked = 0, found = 0;
    for (; asked < contest->setup->absent; asked += batch) {
        struct perhaps_keys keys =
            keys_absent(&contest->filter.buffer, (UINT64_C(1) << 48) + asked, batch);
        found += ask_batch(contest, &keys);
    }
    return (double)found / (double)asked;
}

static void open_contest(struct contest *contest, double fpr)
{
    const struct setup *setup = contest->setup;
    struct perhaps_options options = { .capacity = (uint64_t)setup->keys.at[0], .fpr = fpr };
    contest->answers = allocate_zeroed(setup->batch, sizeof *contest->answers);
    contest->filter = filter_make(contest->values->fleet, setup, &options, 0);
    contest->plain = contest->filter.cluster;
    if (!setup->module)
        return;
    char url[256];
    struct perhaps_cluster_options at = { .url = url };
    filter_url(contest->values->fleet, url);
    *strrchr(url, '?') = '\0';
    int error = perhaps_cluster_new(&at, &contest->swift);
    if (!error)
        error = perhaps_cluster_open(contest->swift);
    stop_on(contest->swift, error);
}

static void close_contest(struct contest *contest)
{
    perhaps_cluster_free(contest->swift);
    filter_delete(&contest->filter);
    free(contest->answers);
}

/* ---- A rate ------------------------------------------------------------------------------ */

/* Returns the cost of one key or value. */
static json_t *json_cost(const double cost[COSTS], double count)
{
    static const char *const names[COSTS] = { "commands", "bytes_to", "bytes_from", "server_us",
                                              "client_us" };
    json_t *row = json_object();
    for (int i = 0; i < COSTS; i++)
        json_object_set_new(row, names[i], json_real(cost[i] / count));
    return row;
}

/* Returns the row of one work. */
static json_t *json_work(const struct contest *contest, int work)
{
    double piece = (double)contest->setup->piece, seconds = contest->seconds[work];
    json_t *row =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:o}", "work", work_names[work], "keys_per_second",
                  piece / seconds, "gets_per_second", piece / contest->get_seconds[work],
                  "to_get", contest->get_seconds[work] / seconds, "to_get_few",
                  contest->seconds[GETTING_FEW] / seconds, "a_key",
                  json_cost(contest->cost[work], piece * (double)contest->setup->rounds));
    if (work < OWN_WORKS)
        json_object_set_new(row, "to_naive",
                            json_real(contest->seconds[naive_of[work]] / seconds));
    if (work < OWN_WORKS && contest->swift)
        json_object_set_new(row, "module",
                            json_pack("{s:f, s:f, s:o}", "keys_per_second",
                                      piece / contest->swift_seconds[work], "times",
                                      seconds / contest->swift_seconds[work], "a_key",
                                      json_cost(contest->swift_cost[work],
                                                piece * (double)contest->setup->rounds)));
    return row;
}

/* Returns all about the filter, with a row for each work, and a last one for the GETs. */
static json_t *json_contest(const struct contest *contest)
{
    const struct perhaps_cluster_stats *stats = &contest->filter.stats;
    const struct perhaps_plan *plan = &stats->plan;
    double gets =
        (double)contest->setup->piece * (double)contest->setup->rounds * (double)WORKS;
    json_t *list = json_array();
    for (int work = 0; work < WORKS; work++)
        json_array_append_new(list, json_work(contest, work));
    json_array_append_new(list, json_pack("{s:s, s:o}", "work", "GET, a value", "a_key",
                                          json_cost(contest->get_cost, gets)));
    return json_pack("{s:f, s:f, s:I, s:f, s:I, s:i, s:o}", "fpr", plan->fpr, "fpr_predicted",
                     plan->fpr_predicted, "capacity", (json_int_t)plan->capacity,
                     "bits_per_key", plan->bits_per_key, "partitions",
                     (json_int_t)stats->partitions, "naive_k", (int)contest->bits.k, "works",
                     list);
}

/* The filter is filled but for the keys that the turns add: adding to a full filter is other
 * work. */
json_t *measure_rate(const struct strings *values, const struct setup *setup, double fpr)
{
    struct contest contest = { .values = values, .setup = setup };
    const unsigned adders = setup->module ? 2 : 1;
    uint64_t filled = (uint64_t)setup->keys.at[0] - (adders * setup->rounds + 1) * setup->piece;
    open_contest(&contest, fpr);
    bits_open(&contest.bits, values->fleet, setup, fpr, contest.filter.stats.partitions);
    double fill_seconds = filter_fill(&contest.filter, filled, setup->batch);
    for (size_t round = 0; round < setup->rounds; round++)
        for (int work = 0; work < WORKS; work++)
            take_turn(&contest, (enum work)work);
    if (contest.swift)
        perhaps_cluster_rest(contest.swift); /* else the filter is full while this holds room */
    filter_fill(&contest.filter, (uint64_t)setup->keys.at[0], setup->batch);
    json_t *row = json_contest(&contest);
    json_object_update_new(row, json_pack("{s:I, s:f, s:f, s:I}", "filled", (json_int_t)filled,
                                          "fill_seconds", fill_seconds, "fpr_measured",
                                          measure_fpr(&contest), "fpr_queries",
                                          (json_int_t)setup->absent));
    bits_close(&contest.bits);
    close_contest(&contest);
    return row;
}

/* ---- Latency ----------------------------------------------------------------------------- */

enum call { GET, ASK, ADD_KEYS, SWIFT_ASK, SWIFT_ADD, CALL_KINDS };

/* Makes one call with 'count' keys.  Returns its seconds. */
static double time_call(struct contest *contest, enum call call, size_t count)
{
    struct filter *filter = &contest->filter;
    bool sure, adds = call == ADD_KEYS || call == SWIFT_ADD;
    struct perhaps_keys keys =
        filter_keys(filter, adds ? ADDING_NEW : ASKING_ABSENT, count, &filter->added, &sure);
    filter->cluster = call > ADD_KEYS ? contest->swift : contest->plain;
    double start = seconds_now();
    if (call == GET)
        values_get(contest->values, VALUES, contest->got++, count);
    else if (adds)
        add_batch(contest, &keys);
    else
        ask_batch(contest, &keys);
    double seconds = seconds_now() - start;
    filter->cluster = contest->plain;
    return seconds;
}

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

/* The calls take turns within each sample.  The median counts here, not the best: a
 * latency is what a caller usually sees. */
json_t *measure_latency(const struct strings *values, const struct setup *setup)
{
    static const size_t sizes[] = { 16, 256, 4096, 0 };
    struct contest contest = { .values = values, .setup = setup };
    size_t n = setup->samples;
    double *times = allocate_zeroed(CALL_KINDS * n, sizeof *times), us[CALL_KINDS];
    json_t *rows = json_array();
    open_contest(&contest, setup->fpr.at[0]);
    const int kinds = contest.swift ? CALL_KINDS : SWIFT_ASK;
    for (const size_t *size = sizes; *size; size++) {
        for (size_t i = 0; i < n; i++)
            for (int call = GET; call < kinds; call++)
                times[(size_t)call * n + i] = time_call(&contest, (enum call)call, *size);
        for (int call = GET; call < kinds; call++)
            us[call] = 1e6 * median(times + (size_t)call * n, n);
        json_array_append_new(rows,
                              json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "keys",
                                        (json_int_t)*size, "get_us", us[GET], "ask_us", us[ASK],
                                        "ask_to_get", us[ASK] / us[GET], "add_us", us[ADD_KEYS],
                                        "add_to_get", us[ADD_KEYS] / us[GET]));
        if (contest.swift)
            json_object_update_new(json_array_get(rows, json_array_size(rows) - 1),
                                   json_pack("{s:f, s:f}", "module_ask_us", us[SWIFT_ASK],
                                             "module_add_us", us[SWIFT_ADD]));
    }
    close_contest(&contest);
    free(times);
    return rows;
}
