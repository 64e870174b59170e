/* The verb convert: a filter from a file to servers, or back.  Its bytes stay what they are. */
#include "numbers.h"
#include "report.h"
#include "stop.h"
#include "target.h"

static int report(const struct settings *settings, const struct target *file,
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

static int check(const struct settings *settings)
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
    int status = check(settings);
    if (status)
        return status;
    stop_on_signals();
    bool upward = is_remote(settings->inputs[0]);
    status =
        upward ? convert_up(settings, &file, &remote) : convert_down(settings, &file, &remote);
    if (!status)
        status = report(settings, &file, remote, upward, started);
    target_close(&file);
    remote_close(remote);
    return status;
}
