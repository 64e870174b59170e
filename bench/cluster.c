/* perhaps-bench-cluster - measures filters that lie on the servers of a cluster, beside GETs.
 * This file has the options and the tables. */
#include "cluster.h"

#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: perhaps-bench-cluster --servers redis://HOST:PORT[,...] [OPTION...]\n"
    "       ./dev bench cluster [OPTION...]      starts 1, 3 and 12 masters of its own\n"
    "Measures filters on the servers of a Redis or Valkey Cluster, in turns with GETs of 64\n"
    "bytes.\n\n"
    "One key a call, for a large filter, a small one and one that has grown: the time of a\n"
    "call, the commands that the servers got for it, how evenly the masters share them, and\n"
    "the client's CPU time.  Targets: asking takes 1.1 times as long as a GET, 1.1 commands;\n"
    "adding 1.6 times, 1.3 commands; 15 us of CPU time.  Eight processes that ask at once.\n"
    "The first answer: a handle made, the filter opened, one key asked, the handle freed;\n"
    "also for a filter of 900,000 partitions, on the first cluster.\n\n"
    "Batches, beside pipelined GETs and a layout that sends a command for each bit.  All keep\n"
    "all servers busy from one thread.  Targets: at 0.1 %, asking takes 60 % or more of the\n"
    "keys that GETs take, and 5 times or more what the naive layout takes; adding 20 %, and\n"
    "1.8 times.  Then calls of 16 to 4096 keys.\n\n"
    "  --servers URL,... any node of each cluster, or a server that is none\n"
    "  --keys N          capacity [10M]\n"
    "  --fpr P[,P...]    false-positive rates to ask for [0.1%,1%,1e-6]; those after\n"
    "                    the first one only in batches, on the first cluster\n"
    "  --module FILE     let the servers load this module, and measure batches with it, too:\n"
    "                    in turns with plain commands; times: how many times as many keys/s\n"
    "  --json FILE       write the results to FILE, too\n"
    "  --quick           a try, not a measurement: few keys, two turns, 1 and 3 masters, no\n"
    "                    filter of 900,000 partitions\n"
    "  --help\n";

/* The columns of calls with one key, a row for each work. */
static const char call_columns[] =
    "_ work -14s; us call.us 7.1; GET get.us 7.1; /GET to_get 6.2; "
    "|commands call.commands 8.2; busiest call.busiest 8.2; GETs' get.busiest 6.2; "
    "descr. call.description 7.2; |CPU call.cpu_us 7.1; GET get.cpu_us 6.1;";

/* Those of one rate in batches, a row for each work; then those of the latencies.  Behind each
 * are those with the module. */
static const char work_columns[] =
    "_ work -14s; keys/s keys_per_second 7n; GETs/s gets_per_second 7n; /GET to_get 6%; "
    "/few to_get_few 6%; /naive to_naive 6.2; |commands a_key.commands 8.2; "
    "B_to a_key.bytes_to 7.1; B_from a_key.bytes_from 7.1; |servers a_key.server_us 7.2; "
    "client a_key.client_us 7.2;";

static const char module_work_columns[] =
    "|module module.keys_per_second 7n; times module.times 6.2; "
    "commands module.a_key.commands 8.3; B_to module.a_key.bytes_to 7.1; "
    "B_from module.a_key.bytes_from 7.1; servers module.a_key.server_us 7.2; "
    "client module.a_key.client_us 7.2;";

static const char latency_columns[] =
    "keys keys 7.0; GET get_us 9.0; ask ask_us 9.0; /GET ask_to_get 6.2; add add_us 9.0; "
    "/GET add_to_get 6.2;";

static const char module_latency_columns[] =
    "|module:_ask module_ask_us 11.0; add module_add_us 9.0;";

/* Reads the options, and chooses how much work there is.  The rounds may add at most half of
 * the keys. */
static void read_setup(int argc, char **argv, struct setup *setup)
{
    const struct option_row options[] = {
        { "servers", .text = &setup->servers },
        { "keys", .list = &setup->keys, 1, 1e5, 1e11, "10M", "200k" },
        { "fpr", .list = &setup->fpr, LIST_MAX, 1e-9, 0.5, "0.1%,1%,1e-6", "0.1%" },
        { "module", .text = &setup->module },
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
    setup->calls = setup->quick ? 100 : 500;
    setup->turns = setup->quick ? 2 : 20;
    setup->turn_s = setup->quick ? 0.05 : 0.3;
    if (setup->keys.at[0] < (double)(2 * setup->piece * setup->rounds))
        errx(2, "--keys: fewer than twice what is added in the rounds, %zu times %zu",
             setup->rounds, setup->piece);
}

/* Explains how it is measured, and what the columns mean. */
static void print_head(const struct setup *setup)
{
    printf(
        "one key a call: turns of %zu calls, %zu of them, the best counts, for time and CPU; "
        "before each as many GETs, each sent and awaited\n"
        "  us, CPU: microseconds of a call, and of the client's CPU time for it; commands: "
        "that the servers got for a call\n"
        "  busiest: commands of the busiest master to the mean of all (1.00: even; GETs': "
        "that is chance); descr.: of the one with the description\n"
        "  targets: ask: /GET 1.1, commands 1.1; add: /GET 1.6, commands 1.3; CPU 15\n",
        setup->calls, setup->turns);
    printf("batches: %zu keys a call; turns of %zu keys, %zu of them, the best counts; "
           "before each as many GETs, as many a call,\n"
           "of %d bytes (one of %d values; few: of %d)\n"
           "  /GET: keys/s to GETs/s; /few: to GETs of few values; /naive: how many times as "
           "fast as the naive layout does the same\n"
           "  commands, bytes to and from the servers, microseconds of CPU time: for each key, "
           "by the servers' INFO and getrusage()\n"
           "  client: making the commands, the kernel's part and reading the answers "
           "included\n",
           setup->batch, setup->piece, setup->rounds, VALUE_NBYTES, VALUES, FEW_VALUES);
}

/* Prints what measure_calls() returned: the filter, a line for each work, and the rest. */
static void print_calls(const json_t *row)
{
    char capacity[16], keys[16], asks[16], gets[16];
    size_t i;
    const json_t *work, *works = json_object_get(row, "works");
    printf("\none key a call, %s: %.4g %%, room for %s keys%s, %s in; %.0f partitions; made in "
           "%.1f s\n",
           json_string_value(json_object_get(row, "shape")), 100 * json_number_at(row, "fpr"),
           short_number(json_number_at(row, "capacity"), capacity),
           json_number_at(row, "layers") > 1 ? " at first" : "",
           short_number(json_number_at(row, "keys"), keys), json_number_at(row, "partitions"),
           json_number_at(row, "made_seconds"));
    if (works) {
        printf("  ");
        table_head(call_columns);
    }
    json_array_foreach(works, i, work)
    {
        printf("\n  ");
        table_row(call_columns, work);
    }
    printf("%s  first answer: %.2f ms; of a GET: %.2f ms\n", works ? "\n" : "",
           json_number_at(row, "first.ms"), json_number_at(row, "first.get_ms"));
    if (json_object_get(row, "processes"))
        printf("  %.0f processes: %s questions/s, %s GETs/s: %.2f\n",
               json_number_at(row, "processes.count"),
               short_number(json_number_at(row, "processes.asks_per_second"), asks),
               short_number(json_number_at(row, "processes.gets_per_second"), gets),
               json_number_at(row, "processes.to_get"));
    fflush(stdout);
}

/* Prints a table with a line for each row; with the module it has more columns. */
static void print_rows(const json_t *rows, const char *columns, const char *module_columns,
                       bool module)
{
    size_t i;
    const json_t *row;
    printf("  ");
    table_head(columns);
    if (module)
        table_head(module_columns);
    json_array_foreach(rows, i, row)
    {
        printf("\n  ");
        table_row(columns, row);
        if (module)
            table_row(module_columns, row);
    }
    putchar('\n');
}

/* Prints what measure_rate() returned: the filter, then a line for each work. */
static void print_rate(const json_t *row, bool module)
{
    char capacity[16];
    double fpr = json_number_at(row, "fpr"), asked = json_number_at(row, "fpr_queries");
    double filled = json_number_at(row, "filled");
    printf("\n%.4g %%: room for %s keys, %.2f bits each, %.0f partitions; naive: k = %.0f\n",
           100 * fpr, short_number(json_number_at(row, "capacity"), capacity),
           json_number_at(row, "bits_per_key"), json_number_at(row, "partitions"),
           json_number_at(row, "naive_k"));
    printf("  %.0f keys added, %.0f thousand a second, then the turns\n", filled,
           1e-3 * filled / json_number_at(row, "fill_seconds"));
    printf("  rate when full: predicted %.4g %%, measured %.4g %% (of %.0f absent keys, "
           "standard deviation %.2g %%)\n",
           100 * json_number_at(row, "fpr_predicted"),
           100 * json_number_at(row, "fpr_measured"), asked,
           100 * sqrt(fpr * (1 - fpr) / asked));
    print_rows(json_object_get(row, "works"), work_columns, module_work_columns, module);
    fflush(stdout);
}

static void print_latencies(const json_t *rows, bool module)
{
    printf("\nmicroseconds a call, medians:\n");
    print_rows(rows, latency_columns, module_latency_columns, module);
}

/* Measures everything on one cluster; with 'all' also what is measured on the first one only.
 * Returns the results. */
static json_t *measure_cluster(const struct setup *setup, const char *url, bool all)
{
    static struct fleet fleet;
    fleet_open(&fleet, url);
    printf("\n---- %zu master%s ----\n", fleet.count, fleet.count == 1 ? "" : "s");
    struct strings values = values_open(&fleet);
    json_t *calls = json_array(), *rows = json_array();
    for (int shape = 0; shape < (all && !setup->quick ? SHAPES : THOUSANDS); shape++) {
        json_t *row = measure_calls(&values, setup, (enum shape)shape);
        print_calls(row);
        json_array_append_new(calls, row);
    }
    for (size_t i = 0; i < (all ? setup->fpr.count : 1); i++) {
        json_t *row = measure_rate(&values, setup, setup->fpr.at[i]);
        print_rate(row, setup->module);
        json_array_append_new(rows, row);
    }
    json_t *latencies = measure_latency(&values, setup);
    print_latencies(latencies, setup->module);
    json_t *facts = json_pack("{s:I, s:o, s:o, s:o}", "masters", (json_int_t)fleet.count,
                              "one_key", calls, "rows", rows, "latencies", latencies);
    strings_close(&values);
    fleet_close(&fleet);
    return facts;
}

int main(int argc, char **argv)
{
    static struct setup setup;
    read_setup(argc, argv, &setup);
    json_t *facts = report_machine(), *clusters = json_array();
    print_head(&setup);
    char *urls = strdup(setup.servers), *rest = urls, *url;
    if (!urls)
        errx(2, "out of memory");
    while ((url = strsep(&rest, ",")))
        json_array_append_new(clusters, measure_cluster(&setup, url, url == urls));
    free(urls);
    json_object_update_new(facts, json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "calls_a_turn",
                                            (json_int_t)setup.calls, "call_turns",
                                            (json_int_t)setup.turns, "keys_a_call",
                                            (json_int_t)setup.batch, "keys_a_turn",
                                            (json_int_t)setup.piece, "turns",
                                            (json_int_t)setup.rounds, "clusters", clusters));
    report_close(facts, setup.json);
    return 0;
}
