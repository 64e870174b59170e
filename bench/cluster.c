/* perhaps-bench-cluster - measures one filter that lies on the servers of a cluster, beside
 * pipelined GETs.  This file has the options and the tables. */
#include "cluster.h"

#include <err.h>
#include <math.h>

static const char usage[] =
    "usage: perhaps-bench-cluster --servers redis://HOST:PORT [OPTION...]\n"
    "       ./dev bench cluster [OPTION...]      starts servers of its own\n"
    "Measures one filter over the servers of a Redis or Valkey Cluster, in turns with\n"
    "pipelined GETs of 64 bytes and with a layout that sends a command for each bit.  All\n"
    "keep all servers busy from one thread.  Targets: at 0.1 %, asking takes 60 % or more of\n"
    "the keys that GETs take, and 5 times or more what the naive layout takes; adding 20 %,\n"
    "and 1.8 times.\n\n"
    "  --servers URL     any node of a cluster, or a server that is none\n"
    "  --keys N          capacity [10M]\n"
    "  --fpr P[,P...]    false-positive rates to ask for [0.1%,1%,1e-6]\n"
    "  --json FILE       write the results to FILE, too\n"
    "  --quick           a try, not a measurement: few keys, two turns\n"
    "  --help\n";

/* The columns of one rate, a row for each work; then those of the latencies. */
static const char work_columns[] =
    "_ work -14s; keys/s keys_per_second 7n; GETs/s gets_per_second 7n; /GET to_get 6%; "
    "/few to_get_few 6%; /naive to_naive 6.2; |commands a_key.commands 8.2; "
    "B_to a_key.bytes_to 7.1; B_from a_key.bytes_from 7.1; |servers a_key.server_us 7.2; "
    "client a_key.client_us 7.2;";

static const char latency_columns[] =
    "keys keys 7.0; GET get_us 9.0; ask ask_us 9.0; /GET ask_to_get 6.2; add add_us 9.0; "
    "/GET add_to_get 6.2;";

/* Reads the options, and chooses how much work there is.  The rounds may add at most half of
 * the keys. */
static void read_setup(int argc, char **argv, struct setup *setup)
{
    const struct option_row options[] = {
        { "servers", .text = &setup->servers },
        { "keys", .list = &setup->keys, 1, 1e5, 1e11, "10M", "200k" },
        { "fpr", .list = &setup->fpr, LIST_MAX, 1e-9, 0.5, "0.1%,1%,1e-6", "0.1%" },
        { "json", .text = &setup->json },
        { "quick", .flag = &setup->quick },
        { 0 },
    };
    static const struct option_row none = { 0 };
    options_read(argc, argv, usage, options, &none, &setup->quick);
    if (!setup->servers)
        errx(2, "--servers is missing (./dev bench cluster starts some)");
    setup->batch = setup->quick ? 4096 : 8192;
    setup->piece = setup->quick ? 1 << 13 : 1 << 16;
    setup->rounds = setup->quick ? 2 : 10;
    setup->absent = setup->quick ? 100000 : 5000000;
    setup->samples = setup->quick ? 10 : 200;
    if (setup->keys.at[0] < (double)(2 * setup->piece * setup->rounds))
        errx(2, "--keys: fewer than twice what is added in the rounds, %zu times %zu",
             setup->rounds, setup->piece);
}

/* Explains how it is measured, and what the columns mean. */
static void print_head(const struct setup *setup, const struct fleet *fleet)
{
    printf("%zu masters; %zu keys a call; turns of %zu keys, %zu of them, the best counts; "
           "before each as many GETs, as many a call,\n"
           "of %d bytes (one of %d values; few: of %d)\n"
           "  /GET: keys/s to GETs/s; /few: to GETs of few values; /naive: how many times as "
           "fast as the naive layout does the same\n"
           "  commands, bytes to and from the servers, microseconds of CPU time: for each key, "
           "by the servers' INFO and getrusage()\n"
           "  client: making the commands, the kernel's part and reading the answers "
           "included\n",
           fleet->count, setup->batch, setup->piece, setup->rounds, VALUE_NBYTES, VALUES,
           FEW_VALUES);
}

/* Prints what measure_rate() returned: the filter, then a line for each work. */
static void print_rate(const json_t *row)
{
    char capacity[16];
    size_t i;
    const json_t *work;
    double fpr = json_number_at(row, "fpr"), asked = json_number_at(row, "fpr_queries");
    double filled = json_number_at(row, "filled");
    printf("\n%.4g %%: room for %s keys, %.2f bits each, %.0f partitions; naive: k = %.0f\n",
           100 * fpr, short_number(json_number_at(row, "capacity"), capacity),
           json_number_at(row, "bits_per_key"), json_number_at(row, "partitions"),
           json_number_at(row, "naive_k"));
    printf("  %.0f keys added, %.0f thousand a second, then the turns\n", filled,
           1e-3 * filled / json_number_at(row, "fill_seconds"));
    printf("  rate when full: predicted %.4g %%, measured %.4g %% (of %.0f absent keys, "
           "standard deviation %.2g %%)\n  ",
           100 * json_number_at(row, "fpr_predicted"),
           100 * json_number_at(row, "fpr_measured"), asked,
           100 * sqrt(fpr * (1 - fpr) / asked));
    table_head(work_columns);
    json_array_foreach(json_object_get(row, "works"), i, work)
    {
        printf("\n  ");
        table_row(work_columns, work);
    }
    putchar('\n');
    fflush(stdout);
}

static void print_latencies(const json_t *rows)
{
    size_t i;
    const json_t *row;
    printf("\nmicroseconds a call, medians:\n  ");
    table_head(latency_columns);
    json_array_foreach(rows, i, row)
    {
        printf("\n  ");
        table_row(latency_columns, row);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    static struct fleet fleet;
    static struct setup setup;
    read_setup(argc, argv, &setup);
    fleet_open(&fleet, setup.servers);
    json_t *facts = report_machine(), *rows = json_array();
    print_head(&setup, &fleet);
    struct strings values = values_open(&fleet);
    for (size_t i = 0; i < setup.fpr.count; i++) {
        json_t *row = measure_rate(&values, &setup, setup.fpr.at[i]);
        print_rate(row);
        json_array_append_new(rows, row);
    }
    json_t *latencies = measure_latency(&values, &setup);
    print_latencies(latencies);
    json_object_update_new(
        facts, json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "masters", (json_int_t)fleet.count,
                         "keys_a_call", (json_int_t)setup.batch, "keys_a_turn",
                         (json_int_t)setup.piece, "turns", (json_int_t)setup.rounds, "rows",
                         rows, "latencies", latencies));
    report_close(facts, setup.json);
    strings_close(&values);
    fleet_close(&fleet);
    return 0;
}
