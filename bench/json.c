/* json.c - the results as JSON. */
#include <jansson.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "bench.h"

struct json_report {
    json_t *facts;
    json_t *rows;
};

struct json_report *json_report_open(const struct settings *settings)
{
    struct json_report *report = malloc(sizeof *report);
    if (!report)
        return NULL;
    report->rows = json_array();
    report->facts =
        json_pack("{s:s, s:s, s:s, s:i, s:s, s:I, s:b, s:I, s:I, s:I, s:i, s:i, s:O}",
                  "version", perhaps_version(), "compiler", machine_compiler(), "cpu",
                  machine_cpu(), "cpus", get_nprocs(), "kernels", machine_kernels(),
                  "key_bytes", (json_int_t)settings->key_nbytes, "hashed", settings->hashed,
                  "repeat", (json_int_t)settings->repeat, "queries_a_pass_and_thread",
                  (json_int_t)settings->rounds * (json_int_t)settings->piece, "keys_a_piece",
                  (json_int_t)settings->piece, "keys_a_batch", BATCH_KEYS, "ring", RING, "rows",
                  report->rows);
    return report;
}

static json_t *json_speeds(const struct result *result, const struct result *base,
                           enum calls calls)
{
    json_t *all = json_object();
    for (int operation = 0; operation < OPERATIONS; operation++) {
        const struct speed *speed = &result->speed[calls][operation];
        double gain = report_gain(result, base, calls, (enum operation)operation);
        if (speed->ns <= 0)
            continue;
        json_t *one = json_pack("{s:f, s:f, s:f}", "ns", speed->ns, "bare_ns", speed->bare,
                                "ratio", speed->ns / speed->bare);
        if (gain > 0)
            json_object_set_new(one, "gain", json_real(gain));
        json_object_set_new(all, operation_names[operation], one);
    }
    return all;
}

/* What there is of every row that has no problem. */
static json_t *json_size_and_rate(const struct result *result)
{
    double bits_per_key = 8 * (double)result->nbytes / (double)result->keys;
    json_t *row =
        json_pack("{s:I, s:I, s:f, s:f, s:I}", "keys", (json_int_t)result->keys, "body_bytes",
                  (json_int_t)result->nbytes, "bits_per_key", bits_per_key, "fpr_measured",
                  result->fpr_measured, "fpr_queries", (json_int_t)result->queries);
    if (result->huge_known)
        json_object_set_new(row, "huge_bytes", json_integer((json_int_t)result->huge_nbytes));
    if (result->cpu)
        json_object_set_new(row, "kernels", json_string(result->cpu));
    if (result->load > 0)
        json_object_set_new(row, "load", json_real(result->load));
    return row;
}

void json_report_row(struct json_report *report, const struct contender *contender,
                     const struct result *result, const struct result *base)
{
    json_t *row = json_pack("{s:s, s:b, s:I, s:f, s:I, s:b}", "filter", contender->name, "peer",
                            contender->is_peer, "capacity", (json_int_t)result->capacity, "fpr",
                            result->fpr, "threads", (json_int_t)result->nthreads, "shared",
                            result->shared);
    json_array_append_new(report->rows, row);
    if (result->problem) {
        json_object_set_new(row, "problem", json_string(result->problem));
        return;
    }
    json_object_update_new(row, json_size_and_rate(result));
    for (int calls = SINGLE; calls < CALLS; calls++)
        if (result->speed[calls][ASK_ABSENT].ns > 0)
            json_object_set_new(row, call_names[calls],
                                json_speeds(result, base, (enum calls)calls));
}

int json_report_close(struct json_report *report, const char *path)
{
    int error = json_dump_file(report->facts, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    json_decref(report->rows);
    json_decref(report->facts);
    free(report);
    return error;
}
