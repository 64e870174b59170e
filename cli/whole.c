/* The verbs that take filters as wholes: create, delete, merge, convert. */
#include <unistd.h>

#include "messages.h"
#include "numbers.h"
#include "stop.h"
#include "target.h"

/* ---- Create ------------------------------------------------------------------------ */

/* NULL, which json_pack() passes over, for a filter in a file. */
static json_t *of_servers(const struct target *target, uint64_t n)
{
    return target->remote ? json_integer((json_int_t)n) : NULL;
}

/* ", 1,024 partitions on 3 nodes, at most 34 % on one". */
static struct text place_of(const struct target *target,
                            const struct perhaps_cluster_stats *servers)
{
    struct text text = { "" };
    const double largest = (double)servers->largest_nbytes;
    int length = 0;
    if (target->remote)
        length = snprintf(text.s, sizeof text.s, ", %.24s on %.12s",
                          counted(servers->partitions, "partition").s,
                          counted(servers->nodes, "node").s);
    if (servers->nodes > 1)
        snprintf(text.s + length, sizeof text.s - (size_t)length, ", at most %.0f %% on one",
                 100 * largest / (double)servers->memory_nbytes);
    return text;
}

static int report_made(const struct settings *settings, const struct target *target)
{
    struct perhaps_stats stats;
    struct perhaps_cluster_stats servers;
    int status = settings->quiet ? 0 : target_stats(target, &stats, &servers, "");
    if (settings->quiet || status)
        return status;
    const struct perhaps_plan *plan = &stats.plan;
    double seconds = seconds_now() - settings->started;
    json_t *facts = json_pack(
        "{s:s, s:o, s:s, s:I, s:f, s:I, s:f, s:o*, s:o*, s:o*, s:o*, s:f}", "verb",
        settings->verb->name, "filter", json_path(target->path), "kind", plan->kind, "capacity",
        (json_int_t)plan->capacity, "fpr_asked", plan->fpr, "body_bytes",
        (json_int_t)stats.memory_nbytes, "bits_per_key", plan->bits_per_key, "partitions",
        of_servers(target, servers.partitions), "nodes", of_servers(target, servers.nodes),
        "largest_node_bytes", of_servers(target, servers.largest_nbytes), "smallest_node_bytes",
        of_servers(target, servers.smallest_nbytes), "seconds", seconds);
    return summarize(settings, facts, "%s made, for %s: %s, %s%s, %s", target->path,
                     counted(plan->capacity, "key").s,
                     scaled((double)stats.memory_nbytes, "B").s,
                     scaled(plan->bits_per_key, " bits a key").s, place_of(target, &servers).s,
                     duration(seconds).s);
}

static int make_file(const struct settings *settings, struct target *target, struct size size)
{
    bool exists = access(settings->filter, F_OK) == 0;
    int status = exists ? 0 : target_reserve(target, settings->filter, settings);
    if (!status && !target->fresh)
        status = complain("%s: is there already: give another name, or remove it with rm",
                          settings->filter);
    if (!status)
        status = target_create(target, settings, size);
    return status ? status : target_save(target, settings);
}

/* Settles what a call returned that leaves nothing on the servers where it fails. */
static int settle_made(const struct target *target, int error)
{
    char outcome[512];
    snprintf(outcome, sizeof outcome, "; %s was not made", target->path);
    return remote_settle(target, error, error == PERHAPS_ERR_STOPPED ? outcome : "");
}

/* The secret is written first: without it nobody could ask the filter. */
static int make_on_servers(const struct settings *settings, struct target *target,
                           struct size size)
{
    struct perhaps_options options = request_options(settings, size);
    int status = remote_new(target, settings->filter, settings, "making");
    if (!status)
        status = hashing_keep(&target->hashing, settings);
    if (status)
        return status;
    options.hashing = target->hashing.chosen;
    int error = perhaps_cluster_create(remote_handle(target), &options, settings->partitions);
    if (error)
        hashing_drop(&target->hashing, settings);
    else
        hashing_tell(&target->hashing, settings);
    return settle_made(target, error);
}

int verb_create(const struct settings *settings)
{
    struct target target = { 0 };
    struct size size = request_size(settings);
    if (!size.capacity)
        return complain("create: for how many keys? give -n N, or --grow if you do not know");
    int status = is_remote(settings->filter) ? make_on_servers(settings, &target, size)
                                             : make_file(settings, &target, size);
    if (!status)
        status = report_made(settings, &target);
    target_close(&target);
    return status;
}

/* ---- Delete ------------------------------------------------------------------------ */

static int delete_remote(const struct settings *settings, const struct target *target)
{
    int error = perhaps_cluster_delete(remote_handle(target));
    bool stopped = error == PERHAPS_ERR_STOPPED;
    if (error)
        return remote_settle(target, error,
                             stopped ? "; a part may be left: delete it again" : "");
    double seconds = seconds_now() - settings->started;
    json_t *facts = json_pack("{s:s, s:o, s:f}", "verb", settings->verb->name, "filter",
                              json_path(target->path), "seconds", seconds);
    return summarize(settings, facts, "%s deleted: %s", target->path, duration(seconds).s);
}

int verb_delete(const struct settings *settings)
{
    struct target target = { 0 };
    if (!is_remote(settings->filter))
        return complain("%s: is a file: remove it with rm", settings->filter);
    int status = remote_new(&target, settings->filter, settings, "deleting");
    if (!status)
        status = delete_remote(settings, &target);
    target_close(&target);
    return status;
}

/* ---- Merge ------------------------------------------------------------------------- */

static int complain_merge(const struct target *other, const struct settings *settings,
                          int error)
{
    const char *first = settings->inputs[0];
    if (error == PERHAPS_ERR_MISMATCH)
        return complain("%s: differs from %s in kind, size, hash, seed or secret: build both "
                        "with the same options, --seed too",
                        other->path, first);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return complain(
            "%s: filters of its kind cannot be put together without the keys: build "
            "a new one from those",
            other->path);
    if (error == PERHAPS_ERR_FULL)
        return complain("%s: does not fit into %s any more: build them with a larger -n",
                        other->path, first);
    return complain("%s: %s", other->path, why(error));
}

static int merge_one(struct target *whole, const char *path, const struct settings *settings)
{
    struct target other = { 0 };
    int status = target_open(&other, path, settings);
    if (!status) {
        int error = perhaps_merge(whole->filter, other.filter);
        status = error ? complain_merge(&other, settings, error) : 0;
    }
    target_close(&other);
    return status;
}

static int report_merge(const struct target *whole, const struct settings *settings)
{
    double seconds = seconds_now() - settings->started;
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
        status = target_load(whole, settings->inputs[0], settings);
    for (size_t i = 1; !status && i < settings->ninputs; i++) {
        status = merge_one(whole, settings->inputs[i], settings);
        if (!status && stop_signal())
            status = complain_interrupted(whole->outcome);
    }
    return status ? status : target_save(whole, settings);
}

int verb_merge(const struct settings *settings)
{
    struct target whole = { 0 };
    if (!settings->output)
        return complain("merge: which file shall it make? give -o F");
    if (settings->ninputs == 0)
        return complain("merge: which filters? see 'perhaps help merge'");
    int status = merge_all(&whole, settings);
    if (!status)
        status = report_merge(&whole, settings);
    target_close(&whole);
    return status;
}

/* ---- Convert: from a file to servers, or back; the bytes stay what they are -------- */

static int report_copy(const struct settings *settings, const struct target *from,
                       const struct target *to)
{
    struct perhaps_stats stats;
    struct perhaps_cluster_stats servers;
    const struct target *remote = to->remote ? to : from;
    double seconds = seconds_now() - settings->started;
    int status = settings->quiet ? 0 : target_stats(remote, &stats, &servers, "");
    if (settings->quiet || status)
        return status;
    json_t *facts = json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:f}", "verb", settings->verb->name, "from",
        json_path(from->path), "to", json_path(to->path), "keys_in_filter",
        (json_int_t)stats.keys, "body_bytes", (json_int_t)stats.memory_nbytes, "partitions",
        (json_int_t)servers.partitions, "nodes", (json_int_t)servers.nodes, "seconds", seconds);
    return summarize(settings, facts, "%s copied to %s: about %s, %s, %s, %s", from->path,
                     to->path, counted(stats.keys, "key").s,
                     scaled((double)stats.memory_nbytes, "B").s, duration(seconds).s,
                     scaled((double)stats.memory_nbytes / seconds, "B/s").s);
}

static int copy_up(const struct settings *settings, struct target *file, struct target *servers)
{
    int status = target_open(file, settings->filter, settings);
    if (!status)
        status = remote_new(servers, settings->inputs[0], settings, "copying");
    return status ? status
                  : settle_made(servers,
                                perhaps_cluster_upload(remote_handle(servers), file->filter,
                                                       settings->partitions));
}

static int copy_down(const struct settings *settings, struct target *servers,
                     struct target *file)
{
    int status = target_reserve(file, settings->inputs[0], settings);
    if (!status)
        status = target_check_replaced(file, settings);
    if (!status)
        status = remote_new(servers, settings->filter, settings, "copying");
    if (!status)
        status = remote_open(servers);
    if (status)
        return status;
    int error = perhaps_cluster_download(remote_handle(servers), file->path);
    return remote_settle(servers, error, file->outcome);
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
    struct target from = { 0 }, to = { 0 };
    int status = check_places(settings);
    if (status)
        return status;
    status = is_remote(settings->inputs[0]) ? copy_up(settings, &from, &to)
                                            : copy_down(settings, &from, &to);
    if (!status)
        status = report_copy(settings, &from, &to);
    target_close(&from);
    target_close(&to);
    return status;
}
