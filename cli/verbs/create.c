/* create.c - the verbs that make an empty filter, and remove one: create, delete; and recount,
 * for one on servers whose count was lost.
 *
 * create makes all or nothing; the other two can be done again. */
#include <unistd.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../filter/target.h"

/* ---- Create ------------------------------------------------------------------------ */

/* Returns a number that only a filter on servers has; NULL, which json_pack() leaves out, for a
 * file. */
static json_t *of_servers(const struct target *target, uint64_t n)
{
    return target->remote ? json_integer((json_int_t)n) : NULL;
}

/* Returns ", 1,024 partitions on 3 nodes, at most 34 % on one"; or an empty text for a file. */
static struct text text_of_servers(const struct target *target,
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
              scaled(plan->bits_per_key, " bits a key").s, text_of_servers(target, &servers).s,
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

/* Makes a filter on servers.  The secret is written first: without it nobody could ask the
 * filter. */
static struct target *make_on_servers(const struct settings *settings, struct size size)
{
    struct perhaps_options options = request_options(settings, size);
    struct target *target = target_on_servers(settings, settings->filter, "making");
    hashing_keep(&target->hashing);
    options.hashing = target->hashing.chosen;
    int error = client.create(remote_handle(target->remote), &options, settings->partitions);
    if (error)
        hashing_drop(&target->hashing);
    else
        hashing_tell(&target->hashing);
    remote_settle_made(target->remote, error);
    return target;
}

void verb_create(const struct settings *settings)
{
    struct size size = size_asked(settings);
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
    int error = client.delete(remote_handle(target->remote));
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
    int error = client.recount(remote_handle(target->remote), &was, &now);
    remote_settle(target->remote, error,
                  error == PERHAPS_ERR_STOPPED ? "; the count was not set" : "");
    summarize(settings,
              json_pack("{s:o, s:I, s:I}", "filter", json_path(target->path), "was",
                        (json_int_t)was, "keys_in_filter", (json_int_t)now),
              "%s: its count was %s, is now %s, %s", target->path, grouped(was).s,
              counted(now, "key").s, duration(seconds_worked(settings)).s);
}
