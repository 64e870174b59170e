/* info.c - the verbs that look and change nothing: info, verify, plan.
 *
 * Each collects facts as a JSON object.  Under --json all of them are printed, so that a script
 * finds the same members for every filter; people do not see members that say nothing about
 * this filter. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "messages.h"
#include "numbers.h"
#include "remote.h"
#include "target.h"
#include "window.h"
#include <perhaps_embed.h>
#include <perhaps_live.h>
#include <perhaps_plan.h>

/* ---- Facts of a filter ----------------------------------------------------------------- */

/* Returns the value of a field of the geometry; NULL if it is not to be told to people. */
static json_t *fact_field(const struct settings *settings, const struct perhaps_plan *plan,
                          unsigned i)
{
    static const char *const preferences[] = { "balanced", "fast", "compact" };
    const char *name = plan->field_name[i];
    const uint64_t value = plan->field[i];
    if (plan->base && strcmp(name, "base") == 0)
        return json_string(plan->base);
    if (value > INT64_MAX)
        return json_sprintf("%ju",
                            (uintmax_t)value); /* only an integer of a range is so large */
    if (settings->json || strcmp(name, "low") == 0)
        return json_integer((json_int_t)value);
    if (value == 0)
        return NULL;
    if (strcmp(name, "period_time") == 0)
        return json_string(period(value).s);
    if (strcmp(name, "together") == 0)
        return json_true();
    if (strcmp(name, "preference") == 0 && value <= sizeof preferences / sizeof *preferences)
        return json_string(preferences[value - 1]);
    return json_integer((json_int_t)value);
}

/* Returns all fields that are told. */
static json_t *fact_geometry(const struct settings *settings, const struct perhaps_plan *plan)
{
    json_t *fields = json_object();
    for (unsigned i = 0; i < plan->nfields; i++) {
        bool told = strcmp(plan->field_name[i], "fpr_until") == 0; /* a fact of every kind */
        json_t *field = told ? NULL : fact_field(settings, plan, i);
        if (field)
            json_object_set_new(fields, plan->field_name[i], field);
    }
    return fields;
}

/* Returns up to how many keys the rate is kept. */
static json_t *fact_until(const struct settings *settings, const struct perhaps_plan *plan)
{
    if (plan->fpr_until != UINT64_MAX)
        return json_integer((json_int_t)plan->fpr_until);
    return settings->json ? json_null() : json_string("any number");
}

/* ---- Info ------------------------------------------------------------------------------ */

/* Returns whether the body lies on huge pages.  The library asks for those in memory only; the
 * pages of a mapped file are up to the system. */
static json_t *pages_of(const struct settings *settings, const perhaps_filter *filter,
                        const struct perhaps_stats *stats)
{
    bool huge = perhaps_huge_nbytes(filter) > 0;
    if (settings->json)
        return json_boolean(huge);
    return json_sprintf("%s%s", huge ? "yes" : "no", stats->mapped ? " (mapped file)" : "");
}

/* Returns a number that only some kinds have; NULL for people if it is 0. */
static json_t *optional(const struct settings *settings, uint64_t n)
{
    return n || settings->json ? json_integer((json_int_t)n) : NULL;
}

/* Returns the number of segments; NULL for people if the geometry tells it. */
static json_t *segments_of(const struct settings *settings, const struct perhaps_stats *stats)
{
    uint64_t told;
    bool known = planned_field(&stats->plan, "segments", &told);
    return optional(settings, known && !settings->json ? 0 : stats->elastic.segments);
}

/* Returns a sentence about how many keys were added, in expectation. */
static json_t *about(uint64_t different, uint64_t counted, const char *how)
{
    return json_sprintf("about %s different ones (%s of them %s)", grouped(different).s,
                        grouped(counted).s, how);
}

/* Returns how many keys the filter has; for people a sentence, if it is an estimate. */
static json_t *keys_of(const struct settings *settings, const perhaps_filter *filter,
                       const struct perhaps_stats *stats)
{
    if (settings->json || counts_all(filter) || stats->keys == 0)
        return json_integer((json_int_t)stats->keys);
    return about(stats->keys_different, stats->keys,
                 can_store_copies(&stats->plan) ? "are stored" : "set a bit");
}

/* Returns for people whether a key is stored as often as it is added; NULL if the kind cannot
 * do that, or if it is for scripts. */
static json_t *copies_of(const struct settings *settings, const perhaps_filter *filter,
                         const struct perhaps_stats *stats)
{
    if (settings->json || !can_store_copies(&stats->plan))
        return NULL;
    return json_string(counts_all(filter)
                           ? "one each time that a key is added; keys can be removed"
                           : "none: a set, from which no key can be removed");
}

/* Returns for scripts whether the filter has an ability; NULL for people. */
static json_t *ability(const struct settings *settings, const perhaps_filter *filter,
                       unsigned which)
{
    return settings->json ? json_boolean(perhaps_abilities_of(filter) & which) : NULL;
}

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
static json_t *origin_of(const char *note)
{
    static const char prefix[] = "keys: ";
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

/* Returns when the newest generation of a window began.  Of a filter without a time, null; for
 * people NULL. */
static json_t *newest_of(const struct settings *settings, const struct perhaps_stats *stats)
{
    if (stats->window.knows_time)
        return json_string(moment(stats->window.newest).s);
    return settings->json ? json_null() : NULL;
}

/* Prints what is told of every filter, and then 'rest', which is for this place. */
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

/* Prints the facts that a person asks for first. */
static void print_summary(const struct target *target, const struct perhaps_stats *stats,
                          uint64_t nkeys, json_t *all)
{
    static const char *const rest[] = { "copies", "journal",    "keys_reserved", "layout",
                                        "layers", "partitions", "nodes",         "keys_made_of",
                                        "hash",   "created",    "notes" };
    json_t *facts = json_pack(
        "{s:O, s:O, s:O, s:o, s:o, s:o}", "filter", json_object_get(all, "filter"), "kind",
        json_object_get(all, "kind"), "keys", json_object_get(all, "keys"), "room",
        fact_room(stats, nkeys), "rate", fact_rate(stats), "size",
        json_sprintf("%s%s", scaled((double)stats->memory_nbytes, "B").s,
                     bits_of(stats->plan.capacity, stats->keys, stats->memory_nbytes).s));
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (json_object_get(all, rest[i]))
            json_object_set(facts, rest[i], json_object_get(all, rest[i]));
    print_facts(target->settings, facts);
}

static void print_info(const struct target *target, const struct perhaps_stats *stats,
                       json_t *layout, json_t *keys, uint64_t nkeys, json_t *rest)
{
    const struct settings *settings = target->settings;
    const struct perhaps_plan *plan = &stats->plan;
    json_t *facts = json_pack(
        "{s:o, s:o*, s:s, s:o, s:o*, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:I}", "filter",
        json_path(target->path), "layout", layout, "kind", plan->kind, "keys", keys,
        "keys_different", settings->json || layout ? json_integer((json_int_t)nkeys) : NULL,
        "capacity", (json_int_t)plan->capacity, "load", stats->load, "bits_per_key",
        stats->bits_per_key, "fpr_asked", plan->fpr, "fpr_predicted", plan->fpr_predicted,
        "fpr_now", stats->fpr_now, "fpr_until", fact_until(settings, plan), "body_bytes",
        (json_int_t)stats->memory_nbytes);
    json_object_update(facts, rest);
    json_decref(rest);
    if (!settings->json && !settings->all) {
        print_summary(target, stats, nkeys, facts);
        json_decref(facts);
    } else {
        print_facts(settings, facts);
    }
}

/* Returns what there is to tell of the journal of a live file; NULL for others. */
static json_t *journal_of(const struct settings *settings, const perhaps_filter *filter)
{
    struct perhaps_journal journal;
    if (perhaps_journal_of(filter, &journal))
        return NULL;
    if (!settings->json)
        return json_sprintf("%s, %s that the file does not have; the last is number %s",
                            scaled((double)journal.nbytes, "B").s,
                            counted(journal.records, "record").s, grouped(journal.last).s);
    return json_pack("{s:I, s:I, s:I}", "bytes", (json_int_t)journal.nbytes, "records",
                     (json_int_t)journal.records, "last", (json_int_t)journal.last);
}

static void print_info_of_file(const struct target *target, const struct perhaps_stats *stats)
{
    struct stat file;
    const perhaps_filter *filter = target->filter;
    const struct settings *settings = target->settings;
    if (stat(settings->filter, &file) != 0)
        fail("%s: %s", settings->filter, strerror(errno));
    if (!S_ISREG(file.st_mode))
        file.st_size = (off_t)perhaps_write_nbytes(filter);
    print_info(
        target, stats, NULL, keys_of(settings, filter, stats), stats->keys_different,
        json_pack("{s:I, s:o*, s:o*, s:o*, s:o*, s:s, s:o*, s:o*, s:o*, s:I, s:I, s:b, s:o, "
                  "s:s, s:o*, "
                  "s:o, s:o*, s:o*, "
                  "s:o*}",
                  "file_bytes", (json_int_t)file.st_size, "copies",
                  copies_of(settings, filter, stats), "removes",
                  ability(settings, filter, PERHAPS_CAN_REMOVE), "counts",
                  ability(settings, filter, PERHAPS_CAN_COUNT), "journal",
                  journal_of(settings, filter), "hash", stats->hash, "segments",
                  segments_of(settings, stats), "stale", optional(settings, stats->stale),
                  "saturated", optional(settings, stats->counting.saturated), "failed_adds",
                  (json_int_t)stats->failed_adds, "unmatched_removals",
                  (json_int_t)stats->unmatched_removals, "mapped", stats->mapped, "huge_pages",
                  pages_of(settings, filter, stats), "instructions", stats->cpu, "newest_time",
                  newest_of(settings, stats), "geometry", fact_geometry(settings, &stats->plan),
                  "keys_made_of", origin_of(perhaps_note(filter)), "notes", notes_of(stats),
                  "parts", parts_of(filter)));
}

/* The same for servers. */
static json_t *keys_on_servers(const struct settings *settings,
                               const struct perhaps_cluster_stats *stats)
{
    if (settings->json || stats->keys_different == stats->keys)
        return json_integer((json_int_t)stats->keys);
    return about(stats->keys_different, stats->keys, "set a bit");
}

/* Returns how many of the keys are reserved; NULL for people if there are none. */
static json_t *reserved_of(const struct settings *settings, uint64_t n)
{
    if (settings->json || !n)
        return optional(settings, n);
    return json_sprintf("%s of these, by clients that add now or were killed", grouped(n).s);
}

static void print_info_of_servers(const struct target *target,
                                  const struct perhaps_stats *stats,
                                  const struct perhaps_cluster_stats *servers)
{
    print_info(target, stats, json_string(servers->layout),
               keys_on_servers(target->settings, servers), servers->keys_different,
               json_pack("{s:o*, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o*}",
                         "keys_reserved", reserved_of(target->settings, servers->keys_reserved),
                         "layers", (json_int_t)servers->layers, "partitions",
                         (json_int_t)servers->partitions, "nodes", (json_int_t)servers->nodes,
                         "largest_node_bytes", (json_int_t)servers->largest_nbytes,
                         "smallest_node_bytes", (json_int_t)servers->smallest_nbytes, "hash",
                         servers->hash, "created", moment_of(servers->created), "geometry",
                         fact_geometry(target->settings, &stats->plan), "keys_made_of",
                         origin_of(perhaps_cluster_note(remote_handle(target->remote)))));
}

void verb_info(const struct settings *settings)
{
    struct perhaps_stats stats;
    struct perhaps_cluster_stats servers;
    struct target *target = target_open(settings, settings->filter);
    target_stats(target, &stats, &servers, "");
    if (target->remote)
        print_info_of_servers(target, &stats, &servers);
    else
        print_info_of_file(target, &stats);
}

/* ---- Verify ---------------------------------------------------------------------------- */

/* All records of a journal were compared with their checksums when it was opened. */
static void print_sound(const struct target *target, const struct perhaps_verdict *verdict)
{
    struct perhaps_journal journal;
    const struct text pages = counted(verdict->pages, "page");
    if (target->streamed)
        printf("%s: ok, %s, all that was read\n", target->path,
               scaled((double)perhaps_write_nbytes(target->filter), "B").s);
    else if (perhaps_journal_of(target->filter, &journal))
        printf("%s: ok, %s\n", target->path, pages.s);
    else
        printf("%s: ok, %s, and %s in its journal\n", target->path, pages.s,
               counted(journal.records, "record").s);
}

/* Checks every page.  The exit status tells a damaged file from one that cannot be checked. */
static void verify_file(const struct settings *settings)
{
    const struct target *target = target_open(settings, settings->filter);
    const char *name = target->path;
    struct perhaps_verdict verdict = { 0 };
    int error = target->streamed ? 0 : perhaps_verify(target->filter, &verdict);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s: has no checksums while it is added to in place: check it later, or, if a "
             "crash ended that, have them written with 'perhaps add %s < /dev/null'",
             name, name);
    if (error && error != PERHAPS_ERR_DAMAGED)
        fail("%s: %s", name, why(error));
    if (settings->json)
        print_facts(
            settings,
            json_pack("{s:o, s:b, s:o, s:I, s:I, s:o*}", "filter", json_path(name), "ok",
                      !error, "pages",
                      target->streamed ? json_null() : json_integer((json_int_t)verdict.pages),
                      "damaged", (json_int_t)verdict.damaged, "first_damaged",
                      (json_int_t)verdict.first_damaged, "journal",
                      journal_of(settings, target->filter)));
    if (error)
        complain("%s: damaged: %s of %s pages, the first at byte %ju: restore it from a copy "
                 "or build it anew",
                 name, grouped(verdict.damaged).s, grouped(verdict.pages).s,
                 (uintmax_t)verdict.first_damaged);
    else if (!settings->quiet && !settings->json)
        print_sound(target, &verdict);
    leave(error ? STATUS_NO : STATUS_YES);
}

/* Checks all partitions, even of a filter that cannot be opened since some of it is lost. */
static void verify_servers(const struct settings *settings)
{
    const struct target *target = target_on_servers(settings, settings->filter, "verifying");
    const char *name = target->path;
    struct perhaps_cluster_verdict verdict;
    int error = perhaps_cluster_verify(remote_handle(target->remote), &verdict);
    const char *problem = perhaps_cluster_problem(remote_handle(target->remote));
    if (error != PERHAPS_ERR_LOST)
        remote_settle(target->remote, error, "");
    if (settings->json)
        print_facts(settings,
                    json_pack("{s:o, s:b, s:I, s:I, s:b, s:I, s:f}", "filter", json_path(name),
                              "ok", !error, "partitions", (json_int_t)verdict.partitions,
                              "lost", (json_int_t)verdict.lost, "miscounted",
                              verdict.miscounted, "keys", (json_int_t)verdict.keys,
                              "keys_estimated", (double)verdict.keys_estimated));
    if (verdict.lost)
        complain("%s: %s of %s partitions are lost: %s", name, grouped(verdict.lost).s,
                 grouped(verdict.partitions).s, problem);
    else if (error)
        complain("%s: %s", name, problem);
    else if (!settings->quiet && !settings->json)
        printf("%s: ok, %s; about %s, by a sample of %s\n", name,
               counted(verdict.partitions, "partition").s,
               counted((uint64_t)verdict.keys_estimated, "key").s,
               scaled((double)verdict.sampled_nbytes, "B").s);
    leave(error ? STATUS_NO : STATUS_YES);
}

void verb_verify(const struct settings *settings)
{
    if (is_remote(settings->filter))
        verify_servers(settings);
    else
        verify_file(settings);
}

/* ---- Plan ------------------------------------------------------------------------------ */

/* The filters that can do what is needed, in the order of the registry: every kind, and
 * composites with every base.  Kinds that forget are only for --window. */
struct others {
    const struct settings *settings;
    const struct perhaps_plan *chosen;
    struct perhaps_options options;
    json_t *rows;
};

/* Adds a row for this plan, unless it is the chosen one. */
static void add_row(struct others *others, const struct perhaps_plan *plan)
{
    const char *base = plan->base;
    if (strcmp(plan->kind, others->chosen->kind) == 0 &&
        memcmp(plan->field, others->chosen->field, sizeof plan->field) == 0)
        return;
    json_array_append_new(others->rows,
                          json_pack("{s:s, s:s?, s:f, s:I, s:f, s:o}", "kind", plan->kind,
                                    "base", base, "bits_per_key", plan->bits_per_key,
                                    "body_bytes", (json_int_t)plan->body_nbytes,
                                    "fpr_predicted", plan->fpr_predicted, "fpr_until",
                                    fact_until(others->settings, plan)));
}

/* Adds a row for each base with which the composite can be made. */
static void try_bases(struct others *others)
{
    const struct perhaps_kind *base;
    struct perhaps_options options = others->options;
    struct perhaps_plan plan;
    for (size_t i = 0; (base = perhaps_kind_at(i)); i++) {
        options.base = base->name;
        if (perhaps_plan_for(&options, &plan) == 0)
            add_row(others, &plan);
    }
}

/* Returns the table of the other filters that can do what is needed. */
static json_t *others_of(const struct settings *settings, const struct perhaps_options *options,
                         const struct perhaps_plan *chosen)
{
    struct others others = {
        .settings = settings, .chosen = chosen, .options = *options, .rows = json_array()
    };
    const struct perhaps_kind *kind;
    const unsigned forget = options->needs & PERHAPS_CAN_FORGET;
    others.options.base = NULL;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
        struct perhaps_plan plan;
        others.options.kind = kind->name;
        if ((kind->abilities & PERHAPS_CAN_FORGET) != forget ||
            perhaps_plan_for(&others.options, &plan) != 0)
            continue;
        if (plan.base)
            try_bases(&others);
        else
            add_row(&others, &plan);
    }
    return others.rows;
}

/* Returns the stricter rate that takes fewer bits, and how many cache lines a key then has, if
 * it has more.  If there is none, returns NULL for people and null under --json. */
static json_t *cheaper_of(const struct settings *settings,
                          const struct perhaps_options *options,
                          const struct perhaps_plan *plan)
{
    struct perhaps_plan cheaper;
    struct text more = { "" };
    uint64_t lines = 1, fewer = 1;
    if (!perhaps_plan_cheaper(options, &cheaper))
        return settings->json ? json_null() : NULL;
    if (settings->json)
        return json_pack("{s:f, s:f}", "fpr", cheaper.fpr, "bits_per_key",
                         cheaper.bits_per_key);
    planned_field(plan, "parts", &fewer);
    planned_field(&cheaper, "parts", &lines);
    if (lines > fewer)
        more =
            text_of(", in %ju cache lines instead of %ju", (uintmax_t)lines, (uintmax_t)fewer);
    return json_sprintf("-p %.3g, a stricter rate, takes only %.4g bits a key%s", cheaper.fpr,
                        cheaper.bits_per_key, more.s);
}

/* Plans the smallest filter that holds as many keys with errors, of those that take later keys
 * and of those that are built once.  Returns how it is made; NULL if there is none. */
static const char *smallest_other(const struct settings *settings,
                                  const struct perhaps_options *options,
                                  struct perhaps_plan *smallest)
{
    struct perhaps_options other = *options;
    const char *how = NULL;
    uint64_t nbytes = UINT64_MAX;
    other.kind = NULL;
    other.bitmap = (struct perhaps_bitmap_options){ 0 };
    if (!(settings->fpr > 0))
        other.fpr = FPR;
    for (unsigned built = 0; built < 2; built++) {
        struct perhaps_plan plan;
        other.needs |= built ? PERHAPS_CAN_BUILD : 0U;
        if (perhaps_plan_for(&other, &plan) != 0 || plan.body_nbytes >= nbytes)
            continue;
        nbytes = plan.body_nbytes;
        *smallest = plan;
        how = built && kind_can(plan.kind, PERHAPS_CAN_BUILD) ? " with --static" : "";
    }
    return how;
}

/* Returns the least number of bits a key in which any set of so many integers of the range can
 * be told from all others, about: the logarithm of how many such sets there are. */
static double least_bits(double range, double keys)
{
    double absent = keys < range ? (range - keys) / keys * log1p(-keys / range) / log(2) : 0;
    return log2(range / keys) - absent;
}

/* Returns what to know about a bit for each integer of a range when there are so many keys:
 * what a key takes, what would take less, and from how many keys on nothing would.  NULL
 * without --integers, or if nobody told how many keys there are. */
static json_t *notes_of_integers(const struct settings *settings,
                                 const struct perhaps_options *options,
                                 const struct perhaps_plan *plan)
{
    const uint64_t keys = settings->capacity, sorted_nbytes = 8 * keys;
    const double nbits = 8.0 * (double)plan->body_nbytes;
    const double few = 1000; /* whole cache lines decide there */
    struct perhaps_plan other;
    if (!settings->integers.high || !keys)
        return NULL;
    json_t *notes = json_array();
    json_array_append_new(
        notes,
        json_sprintf("no false positives; for %s it takes %s; the least that an exact "
                     "set of them can take is %.3g",
                     counted(keys, "key").s, scaled(nbits / (double)keys, " bits a key").s,
                     least_bits((double)plan->capacity, (double)keys)));
    const char *how = smallest_other(settings, options, &other);
    if (how)
        json_array_append_new(
            notes, json_sprintf("%s a rate of %s%s %s, %s (%s%s)",
                                other.body_nbytes < plan->body_nbytes
                                    ? "without --integers, at"
                                    : "exact, and no larger than the smallest filter with",
                                share(other.fpr).s,
                                other.body_nbytes < plan->body_nbytes ? ", it would take" : ":",
                                scaled((double)other.body_nbytes, "B").s,
                                scaled(other.bits_per_key, " bits a key").s, other.kind, how));
    if (how && nbits / other.bits_per_key >= few)
        json_array_append_new(
            notes, json_sprintf("with about %s of the range or more the exact set is no larger",
                                scaled(nbits / other.bits_per_key, " keys").s));
    if (sorted_nbytes < plan->body_nbytes)
        json_array_append_new(
            notes,
            json_sprintf("a sorted list of the integers, 8 bytes each, is exact, too, and "
                         "takes %s",
                         scaled((double)sorted_nbytes, "B").s));
    return notes;
}

void verb_plan(const struct settings *settings)
{
    struct perhaps_options options;
    struct perhaps_plan plan;
    struct size size = request_size(settings);
    if (!size.capacity)
        fail("plan: for how many keys? give -n N, or --grow if you do not know");
    request_plan(settings, size, "plan", &options, &plan);
    print_facts(settings,
                json_pack("{s:s, s:s, s:I, s:f, s:f, s:o, s:I, s:f, s:o*, s:o, s:o*, s:o}",
                          "kind", plan.kind, "why", plan.why, "capacity",
                          (json_int_t)plan.capacity, "fpr_asked", plan.fpr, "fpr_predicted",
                          plan.fpr_predicted, "fpr_until", fact_until(settings, &plan),
                          "body_bytes", (json_int_t)plan.body_nbytes, "bits_per_key",
                          plan.bits_per_key, "cheaper", cheaper_of(settings, &options, &plan),
                          "geometry", fact_geometry(settings, &plan), "notes",
                          notes_of_integers(settings, &options, &plan), "others_that_can",
                          others_of(settings, &options, &plan)));
}
