/* json.c - the results as JSON. */
#include <jansson.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "grow.h"

struct json_report {
    json_t *facts;
    json_t *rows;
    json_t *growths;
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
    report->growths = json_array();
    if (settings->grow)
        json_object_set(report->facts, "growths", report->growths);
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

/* ---- Filters that grow ------------------------------------------------------------------- */

static json_t *json_speed(const struct speed *speed)
{
    return json_pack("{s:f, s:f, s:f}", "ns", speed->ns, "bare_ns", speed->bare, "ratio",
                     speed->ns / speed->bare);
}

static json_t *json_stops(const struct growth *growth)
{
    json_t *list = json_array();
    for (size_t i = 0; i < growth->nstops; i++) {
        const struct stop *stop = &growth->stops[i];
        json_array_append_new(list, json_pack("{s:I, s:I, s:f, s:f, s:I, s:f, s:b}", "keys",
                                              (json_int_t)stop->keys, "bytes",
                                              (json_int_t)stop->nbytes, "bits_per_key",
                                              8 * (double)stop->nbytes / (double)stop->keys,
                                              "fpr_now", stop->fpr_now, "parts",
                                              (json_int_t)stop->parts, "fixed_bits_per_key",
                                              stop->planned_bits, "doubled", stop->doubled));
    }
    return list;
}

static json_t *json_layer_stops(const struct growth *growth)
{
    json_t *list = json_array();
    for (size_t i = 0; i < growth->nlayer_stops; i++) {
        const struct layer_stop *stop = &growth->layer_stops[i];
        json_array_append_new(list, json_pack("{s:f, s:I, s:f, s:f}", "full", stop->full,
                                              "keys", (json_int_t)stop->keys, "bits_per_key",
                                              8 * (double)stop->nbytes / (double)stop->keys,
                                              "planned_bits_per_key", stop->planned_bits));
    }
    return list;
}

static json_t *json_pauses(const struct pauses *pauses)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "median_ns", pauses->median_ns,
                     "all_but_1e-4_ns", pauses->most_ns[0], "all_but_1e-5_ns",
                     pauses->most_ns[1], "longest_ns", pauses->longest_ns, "again_ns",
                     pauses->again_ns, "again_at_key", (json_int_t)pauses->again_at, "calls",
                     (json_int_t)pauses->calls, "long_calls", (json_int_t)pauses->long_calls);
}

static json_t *json_grown_times(const struct growth *growth)
{
    json_t *times = json_pack("{s:o, s:o}", "add", json_speed(&growth->add),
                              "add_last_doubling", json_speed(&growth->add_last));
    for (int operation = ASK_ABSENT; operation < OPERATIONS; operation++) {
        json_t *speed = json_speed(&growth->ask[operation]);
        json_object_set_new(speed, "fixed_ns", json_real(growth->fixed_ns[operation]));
        json_object_set_new(times, operation_names[operation], speed);
    }
    if (growth->remove.ns > 0) {
        json_object_set_new(times, "remove", json_speed(&growth->remove));
        json_object_set_new(times, "stale", json_integer((json_int_t)growth->stale));
    }
    return times;
}

void json_report_growth(struct json_report *report, const struct growth *growth)
{
    const struct perhaps_options *options = &growth->grower->options;
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:f, s:I, s:I, s:b}", "filter", growth->grower->name, "kind",
                  options->kind, "fixed", growth->grower->fixed, "fpr", options->fpr, "start",
                  (json_int_t)options->capacity, "keys", (json_int_t)growth->keys, "grows",
                  growth->grower->grows);
    json_array_append_new(report->growths, row);
    if (growth->problem) {
        json_object_set_new(row, "problem", json_string(growth->problem));
        return;
    }
    json_object_update_new(
        row, json_pack("{s:f, s:I, s:f, s:I, s:I, s:f, s:I, s:I, s:i}", "fpr_measured",
                       growth->fpr_measured, "fpr_queries", (json_int_t)growth->queries,
                       "fixed_bits_per_key", growth->fixed_bits, "resident_bytes",
                       (json_int_t)growth->resident_nbytes, "worst_from_keys",
                       (json_int_t)worst_from(growth->settings), "worst_bits_per_key",
                       growth->worst_bits, "worst_at_keys", (json_int_t)growth->worst_keys,
                       "looks", (json_int_t)growth->looks, "keys_a_look", WATCH_KEYS));
    json_object_set_new(row, "batched", json_grown_times(growth));
    json_object_set_new(row, "pauses", json_pauses(&growth->pauses));
    json_object_set_new(row, "bare_pauses", json_pauses(&growth->bare_pauses));
    json_object_set_new(row, "stops", json_stops(growth));
    json_object_set_new(row, "layer_stops", json_layer_stops(growth));
}

int json_report_close(struct json_report *report, const char *path)
{
    int error = json_dump_file(report->facts, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    json_decref(report->rows);
    json_decref(report->growths);
    json_decref(report->facts);
    free(report);
    return error;
}
