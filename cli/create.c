/* The verbs create and delete: empty filters, and none. */
#include <unistd.h>

#include "numbers.h"
#include "report.h"
#include "stop.h"
#include "target.h"

/* ---- A file ------------------------------------------------------------------------ */

static int report_file(const struct settings *settings, const struct target *target,
                       double seconds)
{
    struct perhaps_stats stats;
    perhaps_stats_of(target->filter, &stats);
    const struct perhaps_plan *plan = &stats.plan;
    json_t *facts = json_pack("{s:s, s:o, s:s, s:I, s:f, s:I, s:f, s:f}", "verb",
                              settings->verb->name, "filter", json_path(target->path), "kind",
                              plan->kind, "capacity", (json_int_t)plan->capacity, "fpr_asked",
                              plan->fpr, "body_bytes", (json_int_t)stats.memory_nbytes,
                              "bits_per_key", plan->bits_per_key, "seconds", seconds);
    return summarize(settings, facts, "%s made, for %s: %s, %s, %s", target->path,
                     counted(plan->capacity, "key").s,
                     scaled((double)stats.memory_nbytes, "B").s,
                     scaled(plan->bits_per_key, " bits a key").s, duration(seconds).s);
}

static int create_file(const struct settings *settings, struct size size, double started)
{
    struct target target = TARGET_NONE;
    bool exists = access(settings->filter, F_OK) == 0;
    int status = exists ? 0 : target_reserve(&target, settings->filter, settings);
    if (!status && !target.fresh)
        status = complain("%s: is there already: give another name, or remove it with rm",
                          settings->filter);
    if (!status)
        status = target_create(&target, settings, size);
    if (!status)
        status = target_save(&target, settings);
    if (!status)
        status = report_file(settings, &target, seconds_now() - started);
    target_close(&target);
    return status;
}

/* ---- On servers -------------------------------------------------------------------- */

static int report_remote(const struct settings *settings, const struct remote *remote,
                         double seconds)
{
    struct perhaps_cluster_stats stats;
    int error = perhaps_cluster_stats_of(remote_handle(remote), &stats);
    if (error)
        return remote_settle(remote, error, "");
    const struct perhaps_plan *plan = &stats.plan;
    char largest[32] = "";
    if (stats.nodes > 1)
        snprintf(largest, sizeof largest, ", at most %.0f %% on one",
                 100.0 * (double)stats.largest_nbytes / (double)stats.memory_nbytes);
    json_t *facts = json_pack(
        "{s:s, s:o, s:s, s:I, s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:f}", "verb",
        settings->verb->name, "filter", json_path(remote_name(remote)), "kind", plan->kind,
        "capacity", (json_int_t)plan->capacity, "fpr_asked", plan->fpr, "body_bytes",
        (json_int_t)stats.memory_nbytes, "bits_per_key", plan->bits_per_key, "partitions",
        (json_int_t)stats.partitions, "nodes", (json_int_t)stats.nodes, "largest_node_bytes",
        (json_int_t)stats.largest_nbytes, "smallest_node_bytes",
        (json_int_t)stats.smallest_nbytes, "seconds", seconds);
    return summarize(
        settings, facts, "%s made, for %s: %s, %s, %s on %s%s, %s", remote_name(remote),
        counted(plan->capacity, "key").s, scaled((double)stats.memory_nbytes, "B").s,
        scaled(plan->bits_per_key, " bits a key").s, counted(stats.partitions, "partition").s,
        counted(stats.nodes, "node").s, largest, duration(seconds).s);
}

/* The secret is written first: without it nobody could ask the filter. */
static int make_remote(const struct remote *remote, const struct settings *settings,
                       struct size size)
{
    char outcome[512];
    const struct hashing *hashing = remote_hashing(remote);
    struct perhaps_options options = request_options(settings, size);
    options.hashing = hashing->chosen;
    snprintf(outcome, sizeof outcome, "; %s was not made", remote_name(remote));
    int status = hashing_keep(hashing, settings);
    if (status)
        return status;
    int error = perhaps_cluster_create(remote_handle(remote), &options, settings->partitions);
    if (error)
        hashing_drop(hashing, settings);
    else
        hashing_tell(hashing, settings);
    return remote_settle(remote, error, error == PERHAPS_ERR_STOPPED ? outcome : "");
}

static int create_remote(const struct settings *settings, struct size size, double started)
{
    struct remote *remote;
    int status = remote_new(settings->filter, settings, "making", &remote);
    if (!status)
        status = make_remote(remote, settings, size);
    if (!status && !settings->quiet)
        status = report_remote(settings, remote, seconds_now() - started);
    remote_close(remote);
    return status;
}

int verb_create(const struct settings *settings)
{
    double started = seconds_now();
    struct size size = request_size(settings);
    if (!size.capacity)
        return complain("create: for how many keys? give -n N, or --grow if nobody knows");
    stop_on_signals();
    return is_remote(settings->filter) ? create_remote(settings, size, started)
                                       : create_file(settings, size, started);
}

/* ---- Delete ------------------------------------------------------------------------ */

static int delete_remote(const struct settings *settings, struct remote *remote, double started)
{
    const char *name = remote_name(remote);
    int error = perhaps_cluster_delete(remote_handle(remote));
    if (error)
        return remote_settle(
            remote, error,
            error == PERHAPS_ERR_STOPPED ? "; a part may be left: delete it again" : "");
    json_t *facts = json_pack("{s:s, s:o, s:f}", "verb", settings->verb->name, "filter",
                              json_path(name), "seconds", seconds_now() - started);
    return summarize(settings, facts, "%s deleted: %s", name,
                     duration(seconds_now() - started).s);
}

int verb_delete(const struct settings *settings)
{
    struct remote *remote;
    double started = seconds_now();
    if (!is_remote(settings->filter))
        return complain("%s: is a file: remove it with rm", settings->filter);
    stop_on_signals();
    int status = remote_new(settings->filter, settings, "deleting", &remote);
    if (!status)
        status = delete_remote(settings, remote, started);
    remote_close(remote);
    return status;
}
