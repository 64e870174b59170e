/* whole.c - the verbs that take filters as wholes: create, delete, recount, merge, intersect,
 * convert.
 *
 * None of them reads keys.  Each makes its result completely or not at all, except delete
 * and recount, which can be done again. */
#include <unistd.h>

#include "agree.h"
#include "messages.h"
#include "numbers.h"
#include "target.h"
#include <perhaps_sets.h>

/* ---- Create ------------------------------------------------------------------------ */

/* Returns a number that only a filter on servers has; NULL, which json_pack() leaves out, for a
 * file. */
static json_t *of_servers(const struct target *target, uint64_t n)
{
    return target->remote ? json_integer((json_int_t)n) : NULL;
}

/* Returns ", 1,024 partitions on 3 nodes, at most 34 % on one"; or an empty text for a file. */
static struct text place_of(const struct target *target,
                            const struct perhaps_cluster_stats *servers)
{
    const double largest = (double)servers->largest_nbytes;
    struct text most = { "" };
    if (!target->remote)
        return most;
    if (servers->nodes > 1)
        most =
            text_of(", at most %.0f %% on one", 100 * largest / (double)servers->memory_nbytes);
    return text_of(", %s on %s%s", counted(servers->partitions, "partition").s,
                   counted(servers->nodes, "node").s, most.s);
}

/* Prints the summary of create. */
static void report_made(const struct target *target)
{
    const struct settings *settings = target->settings;
    struct perhaps_stats stats;
    struct perhaps_cluster_stats servers;
    if (settings->quiet)
        return;
    target_stats(target, &stats, &servers, "");
    const struct perhaps_plan *plan = &stats.plan;
    json_t *facts = json_pack(
        "{s:o, s:s, s:I, s:f, s:I, s:f, s:o*, s:o*, s:o*, s:o*}", "filter",
        json_path(target->path), "kind", plan->kind, "capacity", (json_int_t)plan->capacity,
        "fpr_asked", plan->fpr, "body_bytes", (json_int_t)stats.memory_nbytes, "bits_per_key",
        plan->bits_per_key, "partitions", of_servers(target, servers.partitions), "nodes",
        of_servers(target, servers.nodes), "largest_node_bytes",
        of_servers(target, servers.largest_nbytes), "smallest_node_bytes",
        of_servers(target, servers.smallest_nbytes));
    summarize(settings, facts, "%s made, for %s: %s, %s%s, %s", target->path,
              counted(plan->capacity, "key").s, scaled((double)stats.memory_nbytes, "B").s,
              scaled(plan->bits_per_key, " bits a key").s, place_of(target, &servers).s,
              duration(seconds_worked(settings)).s);
}

/* Makes and saves a filter in a file that must not exist. */
static struct target *make_file(const struct settings *settings, struct size size)
{
    bool exists = access(settings->filter, F_OK) == 0;
    struct target *target = exists ? NULL : target_reserve(settings, settings->filter);
    if (!target || !target->fresh)
        fail("%s: is there already: give another name, or remove it with rm", settings->filter);
    if (settings->live)
        target_check_journal(target);
    target_create(target, size);
    target_save(target);
    return target;
}

/* Ends the program if a call failed that makes a filter on servers.  Such a call leaves nothing
 * there. */
static void settle_made(const struct target *target, int error)
{
    char outcome[512];
    snprintf(outcome, sizeof outcome, "; %s was not made", target->path);
    remote_settle(target->remote, error, error == PERHAPS_ERR_STOPPED ? outcome : "");
}

/* Makes a filter on servers.  The secret is written first: without it nobody could ask the
 * filter. */
static struct target *make_on_servers(const struct settings *settings, struct size size)
{
    struct perhaps_options options = request_options(settings, size);
    struct target *target = target_on_servers(settings, settings->filter, "making");
    hashing_keep(&target->hashing);
    options.hashing = target->hashing.chosen;
    int error =
        perhaps_cluster_create(remote_handle(target->remote), &options, settings->partitions);
    if (error)
        hashing_drop(&target->hashing);
    else
        hashing_tell(&target->hashing);
    settle_made(target, error);
    return target;
}

void verb_create(const struct settings *settings)
{
    struct size size = request_size(settings);
    if (!size.capacity)
        fail("create: for how many keys? give -n N, or --grow if you do not know");
    report_made(is_remote(settings->filter) ? make_on_servers(settings, size)
                                            : make_file(settings, size));
}

/* ---- Delete ------------------------------------------------------------------------ */

void verb_delete(const struct settings *settings)
{
    if (!is_remote(settings->filter))
        fail("%s: is a file: remove it with rm", settings->filter);
    struct target *target = target_on_servers(settings, settings->filter, "deleting");
    int error = perhaps_cluster_delete(remote_handle(target->remote));
    bool stopped = error == PERHAPS_ERR_STOPPED;
    remote_settle(target->remote, error,
                  stopped ? "; a part may be left: delete it again" : "");
    summarize(settings, json_pack("{s:o}", "filter", json_path(target->path)), "%s deleted: %s",
              target->path, duration(seconds_worked(settings)).s);
}

/* ---- Recount ----------------------------------------------------------------------- */

void verb_recount(const struct settings *settings)
{
    if (!is_remote(settings->filter))
        fail("%s: is a file, which has the right count", settings->filter);
    struct target *target = target_on_servers(settings, settings->filter, "counting");
    uint64_t was, now;
    int error = perhaps_cluster_recount(remote_handle(target->remote), &was, &now);
    remote_settle(target->remote, error,
                  error == PERHAPS_ERR_STOPPED ? "; the count was not set" : "");
    summarize(settings,
              json_pack("{s:o, s:I, s:I}", "filter", json_path(target->path), "was",
                        (json_int_t)was, "keys_in_filter", (json_int_t)now),
              "%s: its count was %s, is now %s, %s", target->path, grouped(was).s,
              counted(now, "key").s, duration(seconds_worked(settings)).s);
}

/* ---- Merge and intersect: one filter of several ------------------------------------ */

/* Ends the program because 'other' cannot be joined with 'first'. */
static _Noreturn void fail_join(const struct target *first, const char *first_path,
                                const struct target *other, int error)
{
    const char *path = other->path;
    char difference[PERHAPS_DIFFERENCE_NBYTES];
    if (error == PERHAPS_ERR_MISMATCH &&
        perhaps_difference(other->filter, first->filter, difference))
        fail("%s: differs from %s (%s): build both with the same options, --seed too", path,
             first_path, difference);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s: filters of its kind cannot be put together without the keys: build a new "
             "one from those",
             path);
    if (error == PERHAPS_ERR_FULL)
        fail("%s: does not fit into %s any more: build them with a larger -n", path,
             first_path);
    fail("%s: %s", path, why(error));
}

/* Prints the summary.  'about' stands before the number of keys if that is not exact. */
static void report_join(const struct settings *settings, const struct target *whole,
                        const char *about)
{
    struct perhaps_stats stats;
    perhaps_stats_of(whole->filter, &stats);
    json_t *facts =
        json_pack("{s:o, s:I, s:I, s:I, s:f}", "filter", json_path(whole->path), "parts",
                  (json_int_t)settings->ninputs, "keys_in_filter", (json_int_t)stats.keys,
                  "body_bytes", (json_int_t)stats.plan.body_nbytes, "fpr_now", stats.fpr_now);
    struct text rate = { "" };
    if (settings->verb->bit == INTERSECT)
        rate = text_of(", a rate of %s", share(stats.fpr_now).s);
    summarize(settings, facts, "%s into %s: %s%s, %s%s%s, %s",
              counted(settings->ninputs, "filter").s, whole->path,
              counts_all(whole->filter) ? "" : about, counted(stats.keys_different, "key").s,
              scaled((double)stats.plan.body_nbytes, "B").s, rate.s,
              room_of(&stats.plan, stats.keys_different).s,
              duration(seconds_worked(settings)).s);
}

/* Makes one filter of all inputs.  The output may be one of the inputs, which is then changed.
 * So it is locked before any is read. */
static void join_inputs(const struct settings *settings, const char *about,
                        int (*join)(perhaps_filter *filter, const perhaps_filter *other))
{
    const char *verb = settings->verb->name;
    char *const *paths = settings->inputs;
    if (!settings->output)
        fail("%s: which file shall it make? give -o F", verb);
    if (settings->ninputs == 0)
        fail("%s: which filters? see 'perhaps help %s'", verb, verb);
    struct target *whole = target_reserve_output(settings);
    target_check_replaced(whole);
    target_load(whole, paths[0]);
    for (size_t i = 1; i < settings->ninputs; i++) {
        struct target *other = target_open(settings, paths[i]);
        agree_on_both(whole, other);
        int error = join(whole->filter, other->filter);
        if (error)
            fail_join(whole, paths[0], other, error);
        target_look_last(whole);
        target_close(other);
    }
    target_look_last(whole);
    target_save(whole);
    report_join(settings, whole, about);
}

void verb_merge(const struct settings *settings)
{
    join_inputs(settings, "about ", perhaps_merge);
}

/* Bits that meet by chance count as keys, too: so the number is rather too large. */
void verb_intersect(const struct settings *settings)
{
    join_inputs(settings, "at most about ", perhaps_intersect);
}

/* ---- Convert: from a file to servers, or back; the bytes stay what they are -------- */

/* Prints the summary of convert. */
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
    settle_made(servers, perhaps_cluster_upload(remote_handle(servers->remote), file->filter,
                                                settings->partitions));
    report_copy(file, servers);
}

/* Copies from servers to a file.  The client saves the file itself, as perhaps_save() does. */
static void copy_down(const struct settings *settings)
{
    struct target *file = target_reserve(settings, settings->inputs[0]);
    target_check_replaced(file);
    struct target *servers = target_on_servers(settings, settings->filter, "copying");
    remote_open(servers->remote);
    remote_settle(servers->remote,
                  perhaps_cluster_download(remote_handle(servers->remote), file->path),
                  file->outcome);
    report_copy(servers, file);
}

void verb_convert(const struct settings *settings)
{
    if (settings->ninputs != 1)
        fail("convert: from where to where? give two filters, of which one lies on servers");
    bool upward = is_remote(settings->inputs[0]);
    if (upward && is_remote(settings->filter))
        fail("convert: both lie on servers: copy to a file, and from that");
    if (!upward && !is_remote(settings->filter))
        fail("convert: both are files: copy with cp");
    if (settings->partitions && !upward)
        fail("--partitions: is not for filters in files: leave it out");
    if (upward)
        copy_up(settings);
    else
        copy_down(settings);
}
