/* copy.c - the verb copy: from a file to servers, or back, or of a live file.
 *
 * The bytes of the filter stay what they are. */
#include <perhaps_file.h>
#include <sys/stat.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../filter/target.h"

static void report_copy(const struct target *from, const struct target *to)
{
    const struct settings *settings = to->settings;
    struct perhaps_stats stats;
    struct perhaps_cluster_stats servers;
    double seconds = seconds_worked(settings);
    if (settings->quiet)
        return;
    target_stats(to->remote ? to : from, &stats, &servers, "");
    json_t *facts =
        json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "from", json_path(from->path), "to",
                  json_path(to->path), "keys_in_filter", (json_int_t)stats.keys, "body_bytes",
                  (json_int_t)stats.memory_nbytes, "partitions", (json_int_t)servers.partitions,
                  "nodes", (json_int_t)servers.nodes);
    summarize(settings, facts, "%s copied to %s: about %s, %s, %s, %s", from->path, to->path,
              counted(stats.keys_different, "key").s,
              scaled((double)stats.memory_nbytes, "B").s, duration(seconds).s,
              scaled((double)stats.memory_nbytes / seconds, "B/s").s);
}

/* Copies a file to servers. */
static void copy_up(const struct settings *settings)
{
    struct target *file = target_open(settings, settings->filter);
    struct target *servers = target_on_servers(settings, settings->inputs[0], "copying");
    remote_settle_made(servers->remote, client.upload(remote_handle(servers->remote),
                                                      file->filter, settings->partitions));
    report_copy(file, servers);
}

/* Copies from servers to a file.  The client saves the file itself, as perhaps_save() does. */
static void copy_down(const struct settings *settings)
{
    struct target *file = target_reserve(settings, settings->inputs[0]);
    target_check_replaced(file);
    struct target *servers = target_on_servers(settings, settings->filter, "copying");
    remote_open(servers->remote);
    remote_settle(servers->remote, client.download(remote_handle(servers->remote), file->path),
                  file->outcome);
    report_copy(servers, file);
}

/* Copies a file.  Of a live one the copy has no journal, and all that was on the disk. */
static void copy_between_files(const struct settings *settings)
{
    const char *path = settings->inputs[0];
    const struct target *from = target_open(settings, settings->filter);
    struct stat a, b;
    if (stat(settings->filter, &a) == 0 && stat(path, &b) == 0 && is_same_file(&a, &b))
        fail("%s: is the file itself: give the copy another name", path);
    struct target *to = target_reserve(settings, path);
    target_check_replaced(to);
    target_look_last(to);
    int error =
        to->fresh ? perhaps_save_new(from->filter, path) : perhaps_save(from->filter, path);
    if (error == PERHAPS_ERR_DAMAGED)
        fail("%s: %s%s", from->path, why(error), to->outcome);
    target_settle_save(to, error);
    report_copy(from, to);
}

void verb_copy(const struct settings *settings)
{
    if (settings->ninputs != 1)
        fail("copy: from where to where? give two filters");
    const bool up = is_remote(settings->inputs[0]), down = is_remote(settings->filter);
    if (up && down)
        fail("copy: both lie on servers: copy to a file, and from that");
    if (settings->partitions && !up)
        fail("--partitions: is not for filters in files: leave it out");
    if (up)
        copy_up(settings);
    else if (down)
        copy_down(settings);
    else
        copy_between_files(settings);
}
