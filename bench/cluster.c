/* perhaps-bench-cluster - one filter over the servers of a cluster, beside pipelined GETs. */
#include <err.h>

#include "cluster.h"

static void measure_and_report(struct fleet *fleet, const struct plan *plan, const char *url,
                               struct row *row, json_t *json)
{
    measure_row(fleet, plan, url, row);
    cluster_report_row(stdout, row);
    json_array_append_new(json_object_get(json, "rows"), cluster_json_row(row));
}

/* The first rate with keys of each size, the others with those of the first. */
static void measure_cluster(struct fleet *fleet, const struct plan *plan, json_t *json)
{
    const char *name = fleet->count > 1 ? "cluster" : "single server";
    for (size_t i = 0; i < plan->nkey_nbytes; i++) {
        struct row row = { .servers = name,
                           .fpr = plan->fpr[0],
                           .key_nbytes = plan->key_nbytes[i] };
        measure_and_report(fleet, plan, plan->servers, &row, json);
    }
    for (size_t i = 1; i < plan->nfpr; i++) {
        struct row row = { .servers = name,
                           .fpr = plan->fpr[i],
                           .key_nbytes = plan->key_nbytes[0] };
        measure_and_report(fleet, plan, plan->servers, &row, json);
    }
}

static void measure_calls(struct fleet *fleet, const struct plan *plan, json_t *json)
{
    struct latency latency[LATENCIES] = { 0 };
    measure_latency(fleet, plan, plan->servers, latency);
    cluster_report_latency(stdout, latency);
    json_object_set_new(json, "latencies", cluster_json_latency(latency));
}

static void measure_single(const struct plan *plan, json_t *json)
{
    static struct fleet fleet;
    struct row row = { .servers = "single server",
                       .fpr = plan->fpr[0],
                       .key_nbytes = plan->key_nbytes[0] };
    fleet_open(&fleet, plan->single);
    values_set(&fleet);
    measure_and_report(&fleet, plan, plan->single, &row, json);
    values_drop(&fleet);
    fleet_close(&fleet);
}

int main(int argc, char **argv)
{
    static struct fleet fleet;
    struct plan plan;
    plan_read(argc, argv, &plan);
    fleet_open(&fleet, plan.servers);
    json_t *json = cluster_json(&plan, &fleet);
    cluster_report_header(stdout, &plan, &fleet);
    values_set(&fleet);
    measure_cluster(&fleet, &plan, json);
    measure_calls(&fleet, &plan, json);
    values_drop(&fleet);
    fleet_close(&fleet);
    if (plan.single)
        measure_single(&plan, json);
    if (plan.json && json_dump_file(json, plan.json, JSON_INDENT(2) | JSON_REAL_PRECISION(6)))
        errx(2, "%s: could not be written", plan.json);
    json_decref(json);
    return 0;
}
