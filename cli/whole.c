/* The verbs that take filters as wholes: create, delete, merge, convert. */
#include <unistd.h>

#include "messages.h"
#include "numbers.h"
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

/* ---- Merge ------------------------------------------------------------------------- */

static int complain_merge(const struct target *part, const struct settings *settings, int error)
{
    const char *first = settings->inputs[0];
    if (error == PERHAPS_ERR_MISMATCH)
        return complain("%s: differs from %s in kind, size, hash, seed or secret: build both "
                        "with the same options, --seed too",
                        part->path, first);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return complain(
            "%s: filters of its kind cannot be put together without the keys: build "
            "a new one from those",
            part->path);
    if (error == PERHAPS_ERR_FULL)
        return complain("%s: does not fit into %s any more: build them with a larger -n",
                        part->path, first);
    return complain("%s: %s", part->path, why(error));
}

static int merge_part(struct target *whole, const char *path, const struct settings *settings)
{
    struct target part = TARGET_NONE;
    int status = target_open(&part, path, settings, WITHOUT_SECRET);
    if (!status) {
        int error = perhaps_merge(whole->filter, part.filter);
        status = error ? complain_merge(&part, settings, error) : 0;
    }
    target_close(&part);
    return status;
}

static int report_merge(const struct target *whole, const struct settings *settings,
                        double seconds)
{
    struct perhaps_stats stats;
    perhaps_stats_of(whole->filter, &stats);
    json_t *facts = json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:f, s:f}", "verb", settings->verb->name, "filter",
        json_path(whole->path), "parts", (json_int_t)settings->ninputs, "keys_in_filter",
        (json_int_t)stats.keys, "body_bytes", (json_int_t)stats.plan.body_nbytes, "fpr_now",
        stats.fpr_now, "seconds", seconds);
    return summarize(settings, facts, "%s into %s: %s%s, %s%s, %s",
                     counted(settings->ninputs, "filter").s, whole->path,
                     counts_all(&stats.plan) ? "" : "about ", counted(stats.keys, "key").s,
                     scaled((double)stats.plan.body_nbytes, "B").s,
                     room_of(&stats.plan, stats.keys).s, duration(seconds).s);
}

/* The output may be one of the parts, and is then changed: it is locked before any is read. */
static int merge_all(struct target *whole, const struct settings *settings)
{
    int status = target_reserve_output(whole, settings);
    if (!status)
        status = target_check_replaced(whole, settings);
    if (!status)
        status = target_load(whole, settings->inputs[0], settings, WITHOUT_SECRET);
    for (size_t i = 1; !status && i < settings->ninputs; i++) {
        status = merge_part(whole, settings->inputs[i], settings);
        if (!status && stop_signal())
            status = complain_interrupted(whole->outcome);
    }
    return status ? status : target_save(whole, settings);
}

int verb_merge(const struct settings *settings)
{
    struct target whole = TARGET_NONE;
    double started = seconds_now();
    if (!settings->output)
        return complain("merge: which file shall it make? give -o F");
    if (settings->ninputs == 0)
        return complain("merge: which filters? see 'perhaps help merge'");
    stop_on_signals();
    int status = merge_all(&whole, settings);
    if (!status)
        status = report_merge(&whole, settings, seconds_now() - started);
    target_close(&whole);
    return status;
}

/* ---- Convert: from a file to servers, or back; the bytes stay what they are -------- */

static int report_copy(const struct settings *settings, const struct target *file,
                       const struct remote *remote, bool upward, double started)
{
    struct perhaps_cluster_stats stats;
    double seconds = seconds_now() - started;
    const char *from = upward ? file->path : remote_name(remote);
    const char *to = upward ? remote_name(remote) : file->path;
    int error = settings->quiet ? 0 : perhaps_cluster_stats_of(remote_handle(remote), &stats);
    if (error || settings->quiet)
        return remote_settle(remote, error, "");
    json_t *facts = json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:f}", "verb", settings->verb->name, "from",
        json_path(from), "to", json_path(to), "keys_in_filter", (json_int_t)stats.keys,
        "body_bytes", (json_int_t)stats.memory_nbytes, "partitions",
        (json_int_t)stats.partitions, "nodes", (json_int_t)stats.nodes, "seconds", seconds);
    return summarize(settings, facts, "%s copied to %s: about %s, %s, %s, %s", from, to,
                     counted(stats.keys, "key").s, scaled((double)stats.memory_nbytes, "B").s,
                     duration(seconds).s,
                     scaled((double)stats.memory_nbytes / seconds, "B/s").s);
}

static int upload(const struct target *file, const struct remote *remote,
                  const struct settings *settings)
{
    char outcome[512];
    snprintf(outcome, sizeof outcome, "; %s was not made", remote_name(remote));
    int error =
        perhaps_cluster_upload(remote_handle(remote), file->filter, settings->partitions);
    return remote_settle(remote, error, error == PERHAPS_ERR_STOPPED ? outcome : "");
}

static int download(const struct target *file, const struct remote *remote)
{
    int error = perhaps_cluster_download(remote_handle(remote), file->path);
    return remote_settle(remote, error, file->outcome);
}

static int convert_up(const struct settings *settings, struct target *file,
                      struct remote **remote)
{
    int status = target_open(file, settings->filter, settings, WITH_SECRET);
    if (!status)
        status = remote_new(settings->inputs[0], settings, "copying", remote);
    return status ? status : upload(file, *remote, settings);
}

static int convert_down(const struct settings *settings, struct target *file,
                        struct remote **remote)
{
    int status = target_reserve(file, settings->inputs[0], settings);
    if (!status)
        status = target_check_replaced(file, settings);
    if (!status)
        status = remote_new(settings->filter, settings, "copying", remote);
    if (!status)
        status = remote_open(*remote);
    return status ? status : download(file, *remote);
}

static int check_places(const struct settings *settings)
{
    if (settings->ninputs != 1)
        return complain("convert: from where to where? give two filters, of which one lies on "
                        "servers");
    bool upward = is_remote(settings->inputs[0]);
    if (upward && is_remote(settings->filter))
        return complain("convert: both lie on servers: copy to a file, and from that");
    if (!upward && !is_remote(settings->filter))
        return complain("convert: both are files: copy with cp");
    if (settings->partitions && !upward)
        return complain("--partitions: not of a filter in a file: leave it out");
    return 0;
}

int verb_convert(const struct settings *settings)
{
    struct target file = TARGET_NONE;
    struct remote *remote = NULL;
    double started = seconds_now();
    int status = check_places(settings);
    if (status)
        return status;
    stop_on_signals();
    bool upward = is_remote(settings->inputs[0]);
    status =
        upward ? convert_up(settings, &file, &remote) : convert_down(settings, &file, &remote);
    if (!status)
        status = report_copy(settings, &file, remote, upward, started);
    target_close(&file);
    remote_close(remote);
    return status;
}
