/* info.c - the verb info: tells about a filter.
 *
 * People hear what they ask for first.  Under --json there are all facts, so that a script
 * finds the same members for every filter. */
#include <errno.h>
#include <math.h>
#include <perhaps_embed.h>
#include <perhaps_file.h>
#include <perhaps_plan.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../filter/remote.h"
#include "../filter/request.h"
#include "../filter/target.h"
#include "../filter/window.h"
#include "facts.h"

/* Returns what its owner should know about this filter, and may do about it; or NULL. */
static json_t *notes_of(const struct perhaps_stats *stats)
{
    char ahead[WINDOW_TEXT_MAX];
    const struct perhaps_plan *plan = &stats->plan;
    json_t *notes = json_array();
    if (is_full(plan, stats->keys_different))
        json_array_append_new(notes,
                              json_string("it is full: one that takes more keys is built with "
                                          "-n, or with --grow"));
    if (is_over(stats))
        json_array_append_new(
            notes, json_sprintf("it has more than the %s keys up to which the rate is kept: "
                                "the rate is now %s instead of %s; to lower it, build a new "
                                "filter from the keys",
                                grouped(plan->fpr_until).s, share(stats->fpr_now).s,
                                share(plan->fpr).s));
    if (stats->parts > 1 && !kind_can(plan->kind, PERHAPS_CAN_FORGET))
        json_array_append_new(
            notes, json_string("layers cannot be put together without the keys: for a faster "
                               "and smaller filter, build a new one from those"));
    if (window_is_ahead(stats, ahead))
        json_array_append_new(notes, json_string(ahead));
    if (json_array_size(notes))
        return notes;
    json_decref(notes);
    return NULL;
}

/* Returns of what keys were made, as the note of the filter says; NULL if it says nothing. */
static json_t *origin_of(const struct target *target)
{
    static const char prefix[] = "keys: ";
    const char *note = target->web      ? web_note(target->web)
                       : target->remote ? client.note(remote_handle(target->remote))
                                        : perhaps_note(target->filter);
    if (strncmp(note, prefix, strlen(prefix)) == 0)
        note += strlen(prefix);
    return *note ? json_path(note) : NULL;
}

/* Returns a time as "2026-11-21T19:38:06Z"; null if it is not known. */
static json_t *moment_of(uint64_t seconds)
{
    if (!seconds || seconds > SECONDS_MOST)
        return json_null();
    return json_string(moment(seconds * 1000).s);
}

/* ---- For people ------------------------------------------------------------------------ */

/* Returns how much room there is: what a person asks first. */
static json_t *fact_room(const struct perhaps_stats *stats, uint64_t keys)
{
    const struct perhaps_plan *plan = &stats->plan;
    if (is_full(plan, keys))
        return json_string("full");
    if (kind_can(plan->kind, PERHAPS_CAN_FORGET))
        return json_string("it forgets the oldest keys");
    if (kind_can(plan->kind, PERHAPS_CAN_BUILD))
        return json_string("built once: no key can be added");
    if (plan->fpr_until == UINT64_MAX)
        return json_string("grows to any number of keys");
    if (kind_can(plan->kind, PERHAPS_CAN_GROW))
        return json_sprintf("grows; the rate is kept up to %s keys",
                            grouped(plan->fpr_until).s);
    const struct text room = room_of(plan, keys);
    return json_string(*room.s ? room.s + strlen(", room ") : "full");
}

/* Returns the rate now and the one that was asked.  That of a large filter is computed from a
 * part of it; as long as the filter takes keys it is at most what was asked. */
static json_t *fact_rate(const struct perhaps_stats *stats)
{
    const double now = is_over(stats) ? stats->fpr_now : fmin(stats->fpr_now, stats->plan.fpr);
    if (stats->plan.fpr <= 0)
        return json_string("no false positives");
    return json_sprintf("%s now, at most %s was asked", share(now).s, share(stats->plan.fpr).s);
}

/* Returns how many keys the filter has: a sentence, if it is an estimate. */
static json_t *fact_keys(const struct target *target, const struct perhaps_stats *stats)
{
    const perhaps_filter *filter = target->filter;
    const bool exact = target->web ? !stats->keys_estimated
                       : filter    ? counts_all(filter) || stats->keys == 0
                                   : stats->keys_different == stats->keys;
    if (exact)
        return json_integer((json_int_t)stats->keys);
    return json_sprintf("about %s different ones (%s of them %s)",
                        grouped(stats->keys_different).s, grouped(stats->keys).s,
                        filter && can_store_copies(&stats->plan) ? "are stored" : "set a bit");
}

/* Returns whether a key is stored as often as it is added; NULL if the kind cannot do that. */
static json_t *fact_copies(const perhaps_filter *filter, const struct perhaps_stats *stats)
{
    if (!can_store_copies(&stats->plan))
        return NULL;
    return json_string(counts_all(filter)
                           ? "one each time that a key is added; keys can be removed"
                           : "none: a set, from which no key can be removed");
}

static json_t *of_file(const struct target *target, const struct perhaps_stats *stats)
{
    return json_pack("{s:o*, s:o*, s:o*, s:s, s:o*}", "copies",
                     fact_copies(target->filter, stats), "journal",
                     fact_journal(target->settings, target->filter), "keys_made_of",
                     origin_of(target), "hash", stats->hash, "notes", notes_of(stats));
}

static json_t *of_servers(const struct target *target,
                          const struct perhaps_cluster_stats *servers)
{
    json_t *reserved = servers->keys_reserved
                           ? json_sprintf("%s of these, by clients that add now or were killed",
                                          grouped(servers->keys_reserved).s)
                           : NULL;
    return json_pack("{s:o*, s:s, s:I, s:I, s:I, s:o*, s:s, s:o}", "keys_reserved", reserved,
                     "layout", servers->layout, "layers", (json_int_t)servers->layers,
                     "partitions", (json_int_t)servers->partitions, "nodes",
                     (json_int_t)servers->nodes, "keys_made_of", origin_of(target), "hash",
                     servers->hash, "created", moment_of(servers->created));
}

/* A file on a web server, of which the header alone is read. */
static json_t *of_web(const struct target *target, const struct perhaps_stats *stats)
{
    return json_pack("{s:I, s:s, s:o*}", "file_bytes", (json_int_t)web_nbytes(target->web),
                     "hash", stats->hash, "keys_made_of", origin_of(target));
}

static json_t *for_people(const struct target *target, const struct perhaps_stats *stats)
{
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o}", "filter", json_path(target->path), "kind",
        stats->plan.kind, "keys", fact_keys(target, stats), "room",
        fact_room(stats, stats->keys_different), "rate", fact_rate(stats), "size",
        json_sprintf("%s%s", scaled((double)stats->memory_nbytes, "B").s,
                     bits_of(stats->plan.capacity, stats->keys, stats->memory_nbytes).s));
}

/* ---- For programs ---------------------------------------------------------------------- */

/* Returns a table of the layers or generations; NULL if the filter has none. */
static json_t *parts_of(const perhaps_filter *filter)
{
    json_t *parts = NULL;
    struct perhaps_stats stats;
    for (size_t i = 0; perhaps_part(filter, i, &stats); i++) {
        if (!parts)
            parts = json_array();
        json_array_append_new(parts,
                              json_pack("{s:I, s:I, s:I, s:f, s:f, s:I}", "age", (json_int_t)i,
                                        "keys", (json_int_t)stats.keys, "capacity",
                                        (json_int_t)stats.plan.capacity, "fpr_now",
                                        stats.fpr_now, "bits_per_key", stats.bits_per_key,
                                        "body_bytes", (json_int_t)stats.memory_nbytes));
    }
    return parts;
}

static json_t *all_of_file(const struct target *target, const struct perhaps_stats *stats)
{
    struct stat file;
    const perhaps_filter *filter = target->filter;
    const unsigned abilities = perhaps_abilities_of(filter);
    const char *path = target->settings->filter;
    if (stat(path, &file) != 0)
        fail("%s: %s", path, strerror(errno));
    return json_pack(
        "{s:I, s:b, s:b, s:o*, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:s, s:o, s:o*, s:o*, "
        "s:o*}",
        "file_bytes", (json_int_t)file.st_size, "removes",
        (abilities & PERHAPS_CAN_REMOVE) != 0, "counts", (abilities & PERHAPS_CAN_COUNT) != 0,
        "journal", fact_journal(target->settings, filter), "hash", stats->hash, "segments",
        (json_int_t)stats->elastic.segments, "stale", (json_int_t)stats->stale, "saturated",
        (json_int_t)stats->counting.saturated, "failed_adds", (json_int_t)stats->failed_adds,
        "unmatched_removals", (json_int_t)stats->unmatched_removals, "mapped", stats->mapped,
        "huge_pages", perhaps_huge_nbytes(filter) > 0, "instructions", stats->cpu,
        "newest_time",
        stats->window.knows_time ? json_string(moment(stats->window.newest).s) : json_null(),
        "keys_made_of", origin_of(target), "notes", notes_of(stats), "parts", parts_of(filter));
}

static json_t *all_of_servers(const struct target *target,
                              const struct perhaps_cluster_stats *servers)
{
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o*}", "layout", servers->layout,
        "keys_reserved", (json_int_t)servers->keys_reserved, "layers",
        (json_int_t)servers->layers, "partitions", (json_int_t)servers->partitions, "nodes",
        (json_int_t)servers->nodes, "largest_node_bytes", (json_int_t)servers->largest_nbytes,
        "smallest_node_bytes", (json_int_t)servers->smallest_nbytes, "hash", servers->hash,
        "created", moment_of(servers->created), "keys_made_of", origin_of(target));
}

static json_t *for_programs(const struct target *target, const struct perhaps_stats *stats)
{
    const struct perhaps_plan *plan = &stats->plan;
    return json_pack("{s:o, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:I, s:o}",
                     "filter", json_path(target->path), "kind", plan->kind, "keys",
                     (json_int_t)stats->keys, "keys_different",
                     (json_int_t)stats->keys_different, "capacity", (json_int_t)plan->capacity,
                     "load", stats->load, "bits_per_key", stats->bits_per_key, "fpr_asked",
                     plan->fpr, "fpr_predicted", plan->fpr_predicted, "fpr_now", stats->fpr_now,
                     "fpr_until", fact_until(target->settings, plan), "body_bytes",
                     (json_int_t)stats->memory_nbytes, "geometry", fact_geometry(plan));
}

void verb_info(const struct settings *settings)
{
    struct perhaps_stats stats;
    struct perhaps_cluster_stats servers;
    struct target *target = target_open(settings, settings->filter);
    target_stats(target, &stats, &servers, "");
    json_t *facts = settings->json ? for_programs(target, &stats) : for_people(target, &stats);
    json_t *rest = target->web      ? of_web(target, &stats)
                   : settings->json ? target->remote ? all_of_servers(target, &servers)
                                                     : all_of_file(target, &stats)
                   : target->remote ? of_servers(target, &servers)
                                    : of_file(target, &stats);
    json_object_update(facts, rest);
    json_decref(rest);
    print_facts(settings, facts);
}
