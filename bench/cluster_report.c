/* cluster_report.c - the results as a table, and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <sys/sysinfo.h>

#include "cluster.h"

/* ---- The table --------------------------------------------------------------------------- */

void cluster_report_header(FILE *to, const struct plan *plan, const struct fleet *fleet)
{
    char piece[16];
    fprintf(to, "perhaps %s, built by %s, on %s, %d CPUs for %zu masters and the client\n",
            perhaps_version(), machine_compiler(), machine_cpu(), get_nprocs(), fleet->count);
    fprintf(
        to,
        "%zu keys a call; turns of %s keys, %u of them, the best counts; before each as many "
        "GETs, as many a call,\n"
        "of %d bytes (one of %d values; few: of %d)\n"
        "  keys/s, GETs/s: thousands a second; /GET: the first to the second, and the median "
        "of this over the turns; /few: to GETs of few values\n"
        "  /naive: how many times as fast as the naive layout does the same\n"
        "  commands, bytes to and from the servers, microseconds of CPU time: for each key, "
        "by the servers' INFO and getrusage()\n"
        "  client: making the commands, the kernel's part and reading the answers "
        "included\n",
        plan->batch, short_number((double)plan->piece, piece), plan->rounds, VALUE_NBYTES,
        VALUES, FEW_VALUES);
}

static void print_fpr(FILE *to, const struct row *row)
{
    double rate = (double)row->false_positives / (double)row->asked;
    double deviation = sqrt(row->fpr * (1 - row->fpr) / (double)row->asked);
    fprintf(to,
            "  rate when full: asked %.4g %%, predicted %.4g %%, measured %.4g %% (%" PRIu64
            " of %" PRIu64 " absent keys, standard deviation %.2g %%)\n",
            100 * row->fpr, 100 * row->stats.plan.fpr_predicted, 100 * rate,
            row->false_positives, row->asked, 100 * deviation);
}

static void print_what(FILE *to, const struct row *row)
{
    char capacity[16];
    const struct perhaps_plan *plan = &row->stats.plan;
    fprintf(to,
            "\n%s, %.4g %%, keys of %zu bytes: room for %s keys, %.2f bits each, %" PRIu64
            " partitions; naive: k = %u\n",
            row->servers, 100 * row->fpr, row->key_nbytes,
            short_number((double)plan->capacity, capacity), plan->bits_per_key,
            row->stats.partitions, row->naive_k);
    fprintf(to, "  %" PRIu64 " keys added in %.1f s, %.0f thousand a second, then the turns\n",
            row->filled, row->fill_seconds, 1e-3 * (double)row->filled / row->fill_seconds);
    print_fpr(to, row);
}

/* The naive work that is the same as this; WORKS: there is none. */
static enum work naive_of(enum work work)
{
    switch (work) {
    case ASKING_ABSENT:
    case ASKING_PRESENT:
        return NAIVE_ASKING;
    case ADDING_NEW:
    case ADDING_AGAIN:
        return NAIVE_ADDING;
    default:
        return WORKS;
    }
}

/* How many times as fast as the naive layout; 0: it does nothing of the kind. */
static double gain(const struct row *row, enum work work)
{
    enum work naive = naive_of(work);
    return naive == WORKS ? 0 : row->works[naive].seconds / row->works[work].seconds;
}

/* To GETs of few values. */
static double to_few(const struct row *row, enum work work)
{
    return row->works[GETTING_FEW].seconds / row->works[work].seconds;
}

static void print_cost(FILE *to, const struct cost *cost)
{
    fprintf(to, " |%8.2f %7.1f %7.1f | %7.2f %7.2f\n", cost->commands, cost->in_nbytes,
            cost->out_nbytes, 1e6 * cost->server_seconds, 1e6 * cost->client_seconds);
}

static void print_work(FILE *to, const struct row *row, enum work work)
{
    const struct measured *measured = &row->works[work];
    char times[16] = "";
    if (gain(row, work) > 0)
        snprintf(times, sizeof times, "%.2f", gain(row, work));
    fprintf(to, "  %-13s %7.0f %7.0f %6.1f%% %6.1f%% %6.1f%% %6s", work_names[work],
            1e-3 / measured->seconds, 1e-3 / measured->get_seconds,
            100 * measured->get_seconds / measured->seconds, 100 * measured->ratio,
            100 * to_few(row, work), times);
    print_cost(to, &measured->cost);
}

void cluster_report_row(FILE *to, const struct row *row)
{
    print_what(to, row);
    fprintf(to, "  %-13s %7s %7s %7s %7s %7s %6s |%8s %7s %7s | %7s %7s\n", "", "keys/s",
            "GETs/s", "/GET", "median", "/few", "/naive", "commands", "B to", "B from",
            "servers", "client");
    for (int work = 0; work < WORKS; work++)
        print_work(to, row, (enum work)work);
    fprintf(to, "  %-13s %7s %7s %7s %7s %7s %6s", "GET, a value", "", "", "", "", "", "");
    print_cost(to, &row->works[0].get_cost);
    fflush(to);
}

void cluster_report_latency(FILE *to, const struct latency latency[LATENCIES])
{
    fprintf(to, "\nmicroseconds a call, medians:\n  %7s %9s %9s %6s %9s %6s\n", "keys", "GET",
            "ask", "/GET", "add", "/GET");
    for (size_t i = 0; i < LATENCIES && latency[i].get > 0; i++)
        fprintf(to, "  %7zu %9.0f %9.0f %6.2f %9.0f %6.2f\n", latency_batch[i],
                1e6 * latency[i].get, 1e6 * latency[i].ask, latency[i].ask / latency[i].get,
                1e6 * latency[i].add, latency[i].add / latency[i].get);
}

/* ---- JSON -------------------------------------------------------------------------------- */

json_t *cluster_json(const struct plan *plan, const struct fleet *fleet)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:i, s:[]}", "version",
                     perhaps_version(), "compiler", machine_compiler(), "cpu", machine_cpu(),
                     "cpus", get_nprocs(), "masters", (json_int_t)fleet->count, "keys_a_call",
                     (json_int_t)plan->batch, "keys_a_turn", (json_int_t)plan->piece, "turns",
                     (json_int_t)plan->rounds, "value_bytes", VALUE_NBYTES, "rows");
}

static json_t *json_cost(const struct cost *cost)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "commands", cost->commands, "bytes_to",
                     cost->in_nbytes, "bytes_from", cost->out_nbytes, "server_us",
                     1e6 * cost->server_seconds, "client_us", 1e6 * cost->client_seconds);
}

static json_t *json_works(const struct row *row)
{
    json_t *works = json_object();
    for (int work = 0; work < WORKS; work++) {
        const struct measured *measured = &row->works[work];
        json_object_set_new(
            works, work_names[work],
            json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "keys_per_second",
                      1 / measured->seconds, "gets_per_second", 1 / measured->get_seconds,
                      "to_get", measured->get_seconds / measured->seconds, "to_get_median",
                      measured->ratio, "to_get_few", to_few(row, (enum work)work), "to_naive",
                      gain(row, (enum work)work), "a_key", json_cost(&measured->cost), "a_get",
                      json_cost(&measured->get_cost)));
    }
    return works;
}

json_t *cluster_json_row(const struct row *row)
{
    const struct perhaps_plan *plan = &row->stats.plan;
    return json_pack(
        "{s:s, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:I, s:I, s:f, s:i, s:o}", "servers",
        row->servers, "fpr", row->fpr, "fpr_predicted", plan->fpr_predicted, "fpr_measured",
        (double)row->false_positives / (double)row->asked, "fpr_queries",
        (json_int_t)row->asked, "key_bytes", (json_int_t)row->key_nbytes, "capacity",
        (json_int_t)plan->capacity, "bits_per_key", plan->bits_per_key, "partitions",
        (json_int_t)row->stats.partitions, "filled", (json_int_t)row->filled, "fill_seconds",
        row->fill_seconds, "naive_k", (int)row->naive_k, "works", json_works(row));
}

json_t *cluster_json_latency(const struct latency latency[LATENCIES])
{
    json_t *list = json_array();
    for (size_t i = 0; i < LATENCIES && latency[i].get > 0; i++)
        json_array_append_new(
            list, json_pack("{s:I, s:f, s:f, s:f}", "keys", (json_int_t)latency_batch[i],
                            "get_us", 1e6 * latency[i].get, "ask_us", 1e6 * latency[i].ask,
                            "add_us", 1e6 * latency[i].add));
    return list;
}
