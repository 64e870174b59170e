/* cluster_measure.c - measures one filter on servers: its works in turn, its rate and its
 * latency.
 *
 * Before each turn come as many GETs as the turn has keys.  So each work has GETs of its own to
 * be compared with, made a moment before.  The best time of all turns counts, for both. */
#include <err.h>
#include <perhaps_cluster.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "cluster.h"

/* What is measured, in the order of the turns.  NAIVE_ADDING comes before NAIVE_ASKING, which
 * asks for keys that were added to the naive layout. */
enum work {
    ASKING_ABSENT,
    ASKING_PRESENT,
    ADDING_NEW,
    ADDING_AGAIN,
    NAIVE_ADDING,
    NAIVE_ASKING,
    GETTING_FEW, /* GETs of FEW_VALUES */
    WORKS
};

/* 'naive' is the same work on the naive layout; WORKS: there is none. */
static const struct {
    const char *name;
    enum work naive;
} works[WORKS] = {
    [ASKING_ABSENT] = { "ask, absent", NAIVE_ASKING },
    [ASKING_PRESENT] = { "ask, present", NAIVE_ASKING },
    [ADDING_NEW] = { "add, new", NAIVE_ADDING },
    [ADDING_AGAIN] = { "add, again", NAIVE_ADDING },
    [NAIVE_ADDING] = { "naive add", WORKS },
    [NAIVE_ASKING] = { "naive ask", WORKS },
    [GETTING_FEW] = { "GET, of few", WORKS },
};

/* One filter that is being measured.  open_contest() makes 'cluster', 'buffer' and 'answers',
 * and close_contest() releases them; 'bits' is opened and closed by measure_rate(). */
struct contest {
    const struct strings *values; /* belong to the caller */
    const struct setup *setup;
    perhaps_cluster *cluster;
    struct perhaps_cluster_stats stats; /* of the empty filter */
    struct bits bits;
    struct key_buffer buffer;
    uint8_t *answers;            /* of one batch */
    uint64_t added, naive_added; /* how many keys are in: those from number 0 on */
    uint64_t asked, got;         /* counted so that each turn has other keys and values */
    double seconds[WORKS], get_seconds[WORKS];  /* the best of all rounds */
    double cost[WORKS][COSTS], get_cost[COSTS]; /* of all rounds together */
};

static void stop_on(const perhaps_cluster *cluster, int error)
{
    if (error)
        errx(2, "%s", perhaps_cluster_problem(cluster));
}

/* ---- Batches ----------------------------------------------------------------------------- */

/* These do one batch, and return for how many keys the answer was "perhaps". */

static size_t add_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    size_t present = 0;
    stop_on(contest->cluster,
            perhaps_cluster_add_many(contest->cluster, keys, contest->answers, NULL));
    for (size_t i = 0; i < keys->count; i++)
        present += contest->answers[i];
    return present;
}

static size_t ask_batch(struct contest *contest, const struct perhaps_keys *keys)
{
    size_t present;
    stop_on(contest->cluster,
            perhaps_cluster_contains_many(contest->cluster, keys, contest->answers, &present));
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

/* Makes the keys of the next turn, and sets *sure to whether all of them were added before. */
static struct perhaps_keys next_keys(struct contest *contest, enum work work, bool *sure)
{
    struct key_buffer *buffer = &contest->buffer;
    size_t count = contest->setup->piece;
    uint64_t turn = contest->asked++ * count;
    uint64_t *added =
        work == NAIVE_ADDING || work == NAIVE_ASKING ? &contest->naive_added : &contest->added;
    *sure = work == ASKING_PRESENT || work == ADDING_AGAIN || work == NAIVE_ASKING;
    if (work == ASKING_ABSENT)
        return keys_absent(buffer, turn, count);
    if (work != ADDING_NEW && work != NAIVE_ADDING)
        return keys_present(buffer, turn, count, *added);
    *added += count;
    return keys_added(buffer, *added - count, count);
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

static void note_best(double *best, double seconds)
{
    if (*best <= 0 || seconds < *best)
        *best = seconds;
}

/* Does one turn of a work, and the GETs before it.  Ends the program if a key that was added is
 * not found. */
static void take_turn(struct contest *contest, enum work work)
{
    const struct setup *setup = contest->setup;
    bool sure;
    size_t found = 0;
    struct perhaps_keys keys = next_keys(contest, work, &sure);
    count_cost(contest, -1, contest->get_cost);
    double start = seconds_now();
    for (size_t at = 0; at < setup->piece; at += setup->batch)
        get_batch(contest, VALUES);
    note_best(&contest->get_seconds[work], seconds_now() - start);
    count_cost(contest, 1, contest->get_cost);
    count_cost(contest, -1, contest->cost[work]);
    start = seconds_now();
    for (size_t at = 0; at < setup->piece; at += setup->batch) {
        struct perhaps_keys batch = perhaps_keys_slice(&keys, at, setup->batch);
        found += work_batch(contest, work, &batch);
    }
    note_best(&contest->seconds[work], seconds_now() - start);
    count_cost(contest, 1, contest->cost[work]);
    if (sure && found != setup->piece)
        errx(1, "WRONG: %s: of %zu keys that are in %zu are found", works[work].name,
             setup->piece, found);
}

/* ---- Before and after -------------------------------------------------------------------- */

/* Adds keys until there are 'until' of them.  Returns the seconds that the adding took. */
static double fill(struct contest *contest, uint64_t until)
{
    double seconds = 0;
    while (contest->added < until) {
        size_t count = piece_of(until - contest->added, contest->setup->batch);
        struct perhaps_keys keys = keys_added(&contest->buffer, contest->added, count);
        double start = seconds_now();
        add_batch(contest, &keys);
        seconds += seconds_now() - start;
        contest->added += count;
    }
    return seconds;
}

/* Returns the share of absent keys that are found.  Their numbers lie far behind those of the
 * keys that the turns asked for. */
static double measure_fpr(struct contest *contest)
{
    size_t batch = contest->setup->batch;
    uint64_t asked = 0, found = 0;
    for (; asked < contest->setup->absent; asked += batch) {
        struct perhaps_keys keys =
            keys_absent(&contest->buffer, (UINT64_C(1) << 48) + asked, batch);
        found += ask_batch(contest, &keys);
    }
    return (double)found / (double)asked;
}

/* Makes a new filter on the servers.  The program ends if there is one of that name already, so
 * that no filter in use is overwritten. */
static void open_contest(struct contest *contest, double fpr)
{
    enum { KEY_NBYTES = 8 };
    const struct setup *setup = contest->setup;
    char url[256];
    struct perhaps_options options = { .capacity = (uint64_t)setup->keys.at[0], .fpr = fpr };
    struct perhaps_cluster_options at = { .url = url };
    snprintf(url, sizeof url, "%s/perhaps-bench", setup->servers);
    contest->answers = allocate_zeroed(setup->batch, sizeof *contest->answers);
    contest->buffer = key_buffer_open(KEY_NBYTES, setup->piece);
    int error = perhaps_cluster_new(&at, &contest->cluster);
    if (!error)
        error = perhaps_cluster_create(contest->cluster, &options, 0);
    if (!error)
        error = perhaps_cluster_stats_of(contest->cluster, &contest->stats);
    stop_on(contest->cluster, error);
}

static void close_contest(struct contest *contest)
{
    stop_on(contest->cluster, perhaps_cluster_delete(contest->cluster));
    perhaps_cluster_free(contest->cluster);
    key_buffer_close(&contest->buffer);
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
    enum work naive = works[work].naive;
    json_t *row =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:o}", "work", works[work].name, "keys_per_second",
                  piece / seconds, "gets_per_second", piece / contest->get_seconds[work],
                  "to_get", contest->get_seconds[work] / seconds, "to_get_few",
                  contest->seconds[GETTING_FEW] / seconds, "a_key",
                  json_cost(contest->cost[work], piece * (double)contest->setup->rounds));
    if (naive != WORKS)
        json_object_set_new(row, "to_naive", json_real(contest->seconds[naive] / seconds));
    return row;
}

/* Returns all about the filter, with a row for each work, and a last one for the GETs. */
static json_t *json_contest(const struct contest *contest)
{
    const struct perhaps_plan *plan = &contest->stats.plan;
    double gets = (double)contest->setup->piece * (double)contest->setup->rounds * WORKS;
    json_t *list = json_array();
    for (int work = 0; work < WORKS; work++)
        json_array_append_new(list, json_work(contest, work));
    json_array_append_new(list, json_pack("{s:s, s:o}", "work", "GET, a value", "a_key",
                                          json_cost(contest->get_cost, gets)));
    return json_pack("{s:f, s:f, s:I, s:f, s:I, s:i, s:o}", "fpr", plan->fpr, "fpr_predicted",
                     plan->fpr_predicted, "capacity", (json_int_t)plan->capacity,
                     "bits_per_key", plan->bits_per_key, "partitions",
                     (json_int_t)contest->stats.partitions, "naive_k", (int)contest->bits.k,
                     "works", list);
}

/* The filter is filled but for the keys that the turns add: adding to a full filter is other
 * work. */
json_t *measure_rate(const struct strings *values, const struct setup *setup, double fpr)
{
    struct contest contest = { .values = values, .setup = setup };
    uint64_t filled = (uint64_t)setup->keys.at[0] - (setup->rounds + 1) * setup->piece;
    open_contest(&contest, fpr);
    bits_open(&contest.bits, values->fleet, setup, fpr, contest.stats.partitions);
    double fill_seconds = fill(&contest, filled);
    for (size_t round = 0; round < setup->rounds; round++)
        for (int work = 0; work < WORKS; work++)
            take_turn(&contest, (enum work)work);
    fill(&contest, (uint64_t)setup->keys.at[0]);
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

enum call { GET, ASK, ADD_KEYS, CALL_KINDS };

/* Makes one call with 'count' keys.  Returns its seconds. */
static double time_call(struct contest *contest, enum call call, size_t count)
{
    struct perhaps_keys keys = call == ASK
                                   ? keys_absent(&contest->buffer, contest->asked, count)
                                   : keys_added(&contest->buffer, contest->added, count);
    contest->asked += call == ASK ? count : 0;
    contest->added += call == ADD_KEYS ? count : 0;
    double start = seconds_now();
    if (call == GET)
        values_get(contest->values, VALUES, contest->got++, count);
    else if (call == ASK)
        ask_batch(contest, &keys);
    else
        add_batch(contest, &keys);
    return seconds_now() - start;
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

/* The three calls take turns within each sample.  The median counts here, not the best: a
 * latency is what a caller usually sees. */
json_t *measure_latency(const struct strings *values, const struct setup *setup)
{
    static const size_t sizes[] = { 1, 16, 256, 4096, 0 };
    struct contest contest = { .values = values, .setup = setup };
    size_t n = setup->samples;
    double *times = allocate_zeroed(CALL_KINDS * n, sizeof *times), us[CALL_KINDS];
    json_t *rows = json_array();
    open_contest(&contest, setup->fpr.at[0]);
    for (const size_t *size = sizes; *size; size++) {
        for (size_t i = 0; i < n; i++)
            for (int call = GET; call < CALL_KINDS; call++)
                times[(size_t)call * n + i] = time_call(&contest, (enum call)call, *size);
        for (int call = GET; call < CALL_KINDS; call++)
            us[call] = 1e6 * median(times + (size_t)call * n, n);
        json_array_append_new(rows,
                              json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "keys",
                                        (json_int_t)*size, "get_us", us[GET], "ask_us", us[ASK],
                                        "ask_to_get", us[ASK] / us[GET], "add_us", us[ADD_KEYS],
                                        "add_to_get", us[ADD_KEYS] / us[GET]));
    }
    close_contest(&contest);
    free(times);
    return rows;
}
