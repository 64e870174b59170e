/* dedup.c - the verb dedup: prints each line the first time it comes.
 *
 * It prints as it reads, so what was printed cannot be taken back.  After a full filter, a bad
 * input or a signal the state is therefore saved, and matches what was printed.  If printing
 * fails it is not saved: lines that nobody saw come again in the next run.
 *
 * Where the lines are remembered:
 *
 *     --state redis://...                     a filter on servers
 *     --state of a live file                  one filter, and its journal (durable.h)
 *     --state, --window, --hash, --key-file,  one filter, to which one thread at a time adds
 *       --integers
 *     else                                    shards, to which several threads add: filters;
 *                                             or, of a pipe of which nothing is said, tables of
 *                                             hashes that grow (grown.h) */
#include <errno.h>
#include <math.h>
#include <perhaps_live.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../filter/agree.h"
#include "../filter/target.h"
#include "../filter/window.h"
#include "../input/input.h"
#include "durable.h"
#include "exact.h"
#include "grown.h"
#include "heavy.h"
#include "printer.h"
#include "shards.h"

/* ---- The filters ---------------------------------------------------------------------- */

#define STAGES_OF_FILTERS_MAX (SHARDS_MAX + 2)

/* One run.  Stages in order write it, each its own members. */
struct dedup {
    const struct settings *settings;
    struct target *target; /* the one filter; with shards it has none */
    struct window window;
    uint64_t nkeys_before; /* how many keys the state held at the start */
    uint64_t nunsure; /* lines that may be in or not, after a server failed: taken for new */

    /* Shards: filters that share the keys among them by hash.  Each adds its keys in a stage of
     * its own, in order, so several threads add at once and each shard still gets its keys in
     * the order of the input.  0: there is one filter. */
    size_t nshards;
    struct shard {
        size_t index;
        struct target *target; /* NULL if it is 'grown' */
        struct grown *grown;   /* else NULL */
    } shard[SHARDS_MAX];
    double grown_fpr;       /* the rate of those; 0: the shards have filters */
    struct settings hashed; /* the options of the shards, whose keys are hashes already */
    struct sharding sharding;

    struct input *input;
    struct printer printer;
    struct durable durable; /* of a live file; else it has no target */
};

/* ---- One filter, which hashes ------------------------------------------------------ */

/* A stage, with a struct dedup: adds the keys of a block, and learns which were there.  Between
 * two keys the filter may have to be told the time. */
static bool add_lines(void *context, struct block *block)
{
    struct dedup *dedup = context;
    perhaps_filter *filter = dedup->target->filter;
    size_t at = 0, done;
    if (block->error)
        return false;
    window_enter(&dedup->window, block);
    for (int error = 0; at < block->count && !error; at += done) {
        size_t count = window_advance(&dedup->window, filter, block, at);
        struct perhaps_keys keys = block_keys(block, at, count);
        error = perhaps_add_unless_present_many(filter, &keys, block_bools(block) + at, &done);
        block_met(block, error);
    }
    block->ndone = at;
    return !block->error;
}

/* A stage, with a struct dedup: adds the keys of a block to a live file. */
static bool add_durably(void *context, struct block *block)
{
    struct dedup *dedup = context;
    if (durable_enter(&dedup->durable, block))
        return add_lines(dedup, block);
    block->ndone = 0; /* none of its lines is new or old */
    return false;
}

/* A stage, with a struct dedup: prints a block that add_durably() has dealt with. */
static bool print_durably(void *context, struct block *block)
{
    struct dedup *dedup = context;
    bool printed = printer_print(&dedup->printer, block);
    return durable_leave(&dedup->durable, block, printed);
}

/* A stage, with a struct dedup: adds the keys of a block to servers.  If a server fails, nobody
 * knows whether some of the lines are in the filter.  They would be lost if they were in and
 * not printed, so they count as new; but not those that were never sent. */
static bool add_to_servers(void *context, struct block *block)
{
    struct dedup *dedup = context;
    if (remote_add(dedup->target->remote, block))
        return true;
    if (remote_blames_key(block))
        return false;
    for (size_t end = block->ndone + PERHAPS_CLUSTER_BATCH;
         block->ndone < end && block->ndone < block->count; block->ndone++)
        if (block->answer[block->ndone] == PERHAPS_ANSWER_UNKNOWN) {
            block->answer[block->ndone] = PERHAPS_ANSWER_NO;
            dedup->nunsure++;
        }
    return false;
}

/* ---- Shards ------------------------------------------------------------------------- */

/* A stage, with a struct shard: adds those keys of a block that belong to it.  After an error
 * in one shard the records before the first one that failed are done. */
static bool add_to_shard(void *context, struct block *block)
{
    const struct shard *shard = context;
    struct sharded *sharded = shards_of(block);
    if (!sharded)
        return false;
    const size_t begin = shard->index * sharded->room;
    const struct perhaps_hashed *hash = sharded->hash + begin;
    const uint32_t *record = sharded->record + begin;
    struct perhaps_keys keys = shards_keys(sharded, shard->index);
    size_t done;
    int error = shard->grown ? grown_add(shard->grown, hash, keys.count, sharded->answer, &done)
                             : perhaps_add_unless_present_many(shard->target->filter, &keys,
                                                               sharded->answer, &done);
    for (size_t i = 0; i < done; i++)
        block->answer[record[i]] = sharded->answer[i];
    if (error && record[done] < block->ndone)
        block->ndone = record[done];
    return block_met(block, error);
}

/* Writes the stages that find out for each record of a block whether it was seen before.
 * Returns how many. */
static size_t stages_of(struct dedup *dedup, struct stage stages[STAGES_OF_FILTERS_MAX])
{
    if (dedup->target->remote) {
        stages[0] = (struct stage){ .run = add_to_servers, .context = dedup, .in_order = true };
        return 1;
    }
    if (dedup->nshards == 0) {
        size_t n = 0;
        if (window_reads(&dedup->window))
            stages[n++] = (struct stage){ .run = window_read_times, .context = &dedup->window };
        stages[n++] = (struct stage){ .run = block_hash, .context = dedup->target->filter };
        stages[n++] = (struct stage){ .run = dedup->durable.target ? add_durably : add_lines,
                                      .context = dedup,
                                      .in_order = true };
        return n;
    }
    stages[0] = (struct stage){ .run = shards_split, .context = &dedup->sharding };
    for (size_t i = 0; i < dedup->nshards; i++)
        stages[i + 1] = (struct stage){ .run = add_to_shard,
                                        .context = &dedup->shard[i],
                                        .in_order = true };
    return dedup->nshards + 1;
}

/* ---- Opening ----------------------------------------------------------------------- */

/* Returns the rate of tables that grow; 0 if the options ask for a filter. */
static double grown_fpr(const struct settings *s, struct size size)
{
    const double fpr = request_options(s, size).fpr;
    const bool any = !s->kind.name && !s->kind.factor && !s->kind.until && !s->preference;
    return size.grows && any && fpr >= GROWN_FPR_LEAST && fpr <= GROWN_FPR_MOST ? fpr : 0;
}

/* Makes what a shard remembers lines by. */
static void make_shard(const struct dedup *dedup, struct shard *shard, struct size size)
{
    if (dedup->grown_fpr <= 0) {
        shard->target = target_reserve(&dedup->hashed, NULL);
        target_create(shard->target, size);
        return;
    }
    shard->grown = grown_new(dedup->grown_fpr, dedup->sharding.count);
    if (!shard->grown)
        fail("dedup: %s", why(PERHAPS_ERR_MEMORY));
}

/* Makes the shards.  What grows may get any number of keys, so it is shared out in any case. */
static void make_shards(struct dedup *dedup, struct size size)
{
    const struct settings *settings = dedup->settings;
    const uint64_t nkeys = size.grows ? UINT64_MAX : size.capacity;
    const size_t nshards = sharding_count(settings, nkeys);
    dedup->hashed = *settings;
    dedup->hashed.hash = "none";
    dedup->sharding = sharding_new(nshards);
    dedup->grown_fpr = grown_fpr(settings, size);
    size.capacity = sharding_room(&dedup->sharding, size.capacity);
    for (; dedup->nshards < nshards; dedup->nshards++) {
        struct shard *shard = &dedup->shard[dedup->nshards];
        shard->index = dedup->nshards;
        make_shard(dedup, shard, size);
    }
}

/* Returns whether an option asks for something else than there is. */
static bool differs(const char *asked, const char *is)
{
    return asked && (!is || strcmp(asked, is) != 0);
}

/* Tells which options have no effect, since a state stays as it was made.  --window is not one
 * of them: window_open() refuses another window. */
static void tell_ignored(const struct settings *s, const struct perhaps_stats *state)
{
    const struct perhaps_plan *plan = &state->plan;
    uint64_t factor, low = 0, high = 0;
    planned_field(plan, "low", &low);
    planned_field(plan, "high", &high);
    planned_field(plan, "factor", &factor);
    bool grows = kind_can(plan->kind, PERHAPS_CAN_GROW) || plan->fpr_until == UINT64_MAX;
    const struct {
        const char *name;
        bool ignored;
    } options[] = {
        { "-n", s->capacity && s->capacity != plan->capacity },
        { "-p", s->fpr > 0 && s->fpr != plan->fpr },
        { "--kind", differs(s->kind.name, plan->kind) || differs(s->kind.base, plan->base) ||
                        (s->kind.until && s->kind.until != plan->fpr_until) ||
                        (s->kind.factor && s->kind.factor != factor) },
        { "--integers",
          s->integers.high && (s->integers.low != low || s->integers.high != high) },
        { "--grow", s->grow && !grows },
        { "--prefer", s->preference },
        { "--hash", differs(s->hash, state->hash) },
    };
    char names[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].ignored)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used ? ", " : "", options[i].name);
    if (*names && !s->quiet && !s->json)
        complain("%s: exists already and stays as it was made: ignored: %s", s->state, names);
}

/* Finds out about a state that exists. */
static void learn_state(struct dedup *dedup)
{
    const struct target *target = dedup->target;
    struct perhaps_stats stats;
    if (target->remote && dedup->settings->quiet)
        return; /* nothing of it is needed or told */
    target_stats(target, &stats, NULL, "");
    dedup->nkeys_before = stats.keys;
    if (kind_can(stats.plan.kind, PERHAPS_CAN_BUILD))
        fail("%s: was built once, and takes no lines: give another state", target->path);
    if (!target->remote)
        window_open(&dedup->window, dedup->settings, target->filter, target->path);
    tell_ignored(dedup->settings, &stats);
}

/* Returns whether the state is a live file, or shall become one. */
static bool is_durable(const struct settings *s)
{
    return s->state && !is_remote(s->state) &&
           (s->durable.lines || s->durable.ms || perhaps_is_live(s->state));
}

/* Opens a live file.  One that is not live yet is made, or is locked until it is. */
static void open_durable(struct dedup *dedup)
{
    const struct settings *s = dedup->settings;
    const bool live = perhaps_is_live(s->state);
    struct target *target = dedup->target =
        live ? target_new(s, s->state) : target_reserve(s, s->state);
    const bool exists = !target->fresh;
    if (!live)
        target_check_journal(target);
    if (!exists) {
        target_create(target, size_of_inputs(s));
        window_open(&dedup->window, s, target->filter, NULL);
        target_save(target);
        perhaps_free(target->filter);
        target->filter = NULL;
    }
    target_load_live(target, DURABLE_RECORDS);
    durable_begin(&dedup->durable, s, target);
    if (exists)
        learn_state(dedup);
}

/* Opens the state, or makes filters. */
static void open_filters(struct dedup *dedup)
{
    const struct settings *s = dedup->settings;
    bool remote = s->state && is_remote(s->state);
    if (is_durable(s)) {
        open_durable(dedup);
        return;
    }
    dedup->target = remote ? target_open(s, s->state) : target_reserve(s, s->state);
    if (s->state && !dedup->target->fresh) {
        if (!remote)
            target_load(dedup->target, s->state);
        learn_state(dedup);
        return;
    }
    struct size size = size_of_inputs(s);
    if (!s->state && !s->hash && !s->key_file && !request_window(s) && !s->integers.high) {
        make_shards(dedup, size);
        return;
    }
    /* A window is not divided into shards: what it forgets must not depend on hashes. */
    target_create(dedup->target, size);
    window_open(&dedup->window, s, dedup->target->filter, NULL);
}

/* ---- What may have been lost ------------------------------------------------------- */

/* What all filters hold together, for the report. */
struct facts {
    uint64_t keys, capacity, memory_nbytes;
    double fpr_now, fpr;
    bool over;              /* more keys came than the asked rate is kept for */
    double expected_losses; /* new lines that were taken for old ones */
    /* Lines that were taken for new ones and may be old: see perhaps_cluster_add_many(). */
    uint64_t doubtful;
};

/* Adds what a filter or a table holds.  fpr_now becomes the mean, weighted by their keys. */
static void add_held(struct facts *facts, const struct grown_facts *held)
{
    double keys = (double)held->keys, all = (double)facts->keys + keys;
    if (all > 0)
        facts->fpr_now += (held->fpr_now - facts->fpr_now) * keys / all;
    facts->keys += held->keys;
    facts->capacity += held->capacity;
    facts->memory_nbytes += held->memory_nbytes;
    facts->expected_losses += held->expected_losses;
}

/* Adds what one filter holds, which had 'before' keys at the start, and of which 'nnew' lines
 * were new.  A window has forgotten how full it was before, and other jobs add to a filter on
 * servers.  Both are taken to have been as full all the time as they are now. */
static void add_facts(struct facts *facts, const struct target *target, uint64_t before,
                      uint64_t nnew)
{
    struct perhaps_stats stats;
    struct perhaps_cluster_stats servers;
    target_stats(target, &stats, &servers, "; all lines are done and remembered");
    const bool unknown = target->remote || kind_can(stats.plan.kind, PERHAPS_CAN_FORGET);
    add_held(facts,
             &(struct grown_facts){
                 .keys = stats.keys,
                 .capacity = stats.plan.capacity,
                 .memory_nbytes = stats.memory_nbytes,
                 .fpr_now = stats.fpr_now,
                 .expected_losses = unknown ? (double)nnew * stats.fpr_now
                                            : expected_unseen(target->filter, before, nnew),
             });
    facts->fpr = stats.plan.fpr;
    facts->over |= is_over(&stats);
    facts->doubtful = servers.doubtful;
}

/* Collects the facts of the one filter or of all shards. */
static struct facts find_facts(const struct dedup *dedup)
{
    struct facts facts = { .fpr = dedup->grown_fpr };
    const uint64_t nnew = dedup->printer.nnew;
    if (!dedup->nshards)
        add_facts(&facts, dedup->target, dedup->nkeys_before, nnew);
    for (size_t i = 0; i < dedup->nshards; i++) {
        const struct shard *shard = &dedup->shard[i];
        if (!shard->grown) {
            add_facts(&facts, shard->target, 0, nnew / dedup->nshards);
            continue;
        }
        struct grown_facts held = grown_facts(shard->grown);
        add_held(&facts, &held);
    }
    return facts;
}

/* ---- The verb -------------------------------------------------------------------------- */

/* Saves the state, and ends the program if something went wrong.  The message tells what the
 * run leaves.  Servers remember every line at once. */
static void settle_state(struct dedup *dedup, const struct block *last)
{
    struct target *target = dedup->target;
    const bool remote = target->remote, durable = dedup->durable.target;
    const bool saves = dedup->settings->state && !remote && !durable;
    uint64_t nunsure = dedup->nunsure;
    char outcome[160];
    output_settle(&dedup->printer.output,
                  saves    ? target->outcome
                  : remote ? "; what could not be printed is remembered all the same"
                           : "");
    if (saves)
        target_save(target);
    if (durable)
        durable_settle(&dedup->durable);
    snprintf(outcome, sizeof outcome, "; the lines so far are done%s%s%s%s",
             dedup->settings->state ? " and remembered" : "", nunsure ? ", but the last " : "",
             nunsure ? grouped(nunsure).s : "", nunsure ? " may come again" : "");
    target_settle(target, dedup->input, last, outcome);
}

/* Prints what -c asks for, and the summary. */
static void report_lines(const struct dedup *dedup)
{
    const struct settings *s = dedup->settings;
    const uint64_t nlines = dedup->printer.nlines, nnew = dedup->printer.nnew;
    double seconds = seconds_worked(s);
    uint64_t nrepeated = nlines - nnew;
    printer_report(&dedup->printer);
    if (s->quiet)
        return;
    struct facts found = find_facts(dedup);
    double bits = found.keys ? 8.0 * (double)found.memory_nbytes / (double)found.keys : 0;
    json_t *facts =
        json_pack("{s:o*, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I}", "state",
                  s->state ? json_path(dedup->target->path) : NULL, "lines", (json_int_t)nlines,
                  "new", (json_int_t)nnew, "repeated", (json_int_t)nrepeated, "skipped",
                  (json_int_t)input_nskipped(dedup->input), "times_ahead",
                  (json_int_t)dedup->window.nahead, "keys_in_filter", (json_int_t)found.keys,
                  "body_bytes", (json_int_t)found.memory_nbytes, "bits_per_key", bits,
                  "fpr_asked", found.fpr, "fpr_now", found.fpr_now, "expected_lost",
                  found.expected_losses, "doubtful", (json_int_t)found.doubtful);
    summarize(s, facts,
              "%s, %s new, %s repeated; %s new lines may have been taken "
              "for old; %s%s%s%s, %s%s%s",
              counted(nlines, "line").s, grouped(nnew).s, grouped(nrepeated).s,
              found.fpr > 0 ? expectation(found.expected_losses).s : "no",
              found.doubtful ? grouped(found.doubtful).s : "",
              found.doubtful ? " old ones for new, since connections broke; " : "",
              scaled((double)found.memory_nbytes, "B").s,
              bits_of(found.capacity, found.keys, found.memory_nbytes).s, duration(seconds).s,
              speed(nlines, seconds, " lines/s").s,
              over_of(found.over, found.fpr_now, found.fpr).s);
}

/* Ends the program if it would write a file that it reads. */
static void refuse_overlap(const struct settings *settings)
{
    struct stat file;
    if (settings->state && stat(settings->state, &file) == 0)
        input_refuse(settings, &file, settings->state);
    if (!settings->count && fstat(STDOUT_FILENO, &file) == 0)
        input_refuse(settings, &file, "standard output");
}

void verb_dedup(const struct settings *settings)
{
    struct dedup dedup = { .settings = settings, .printer = { .settings = settings } };
    struct stage stages[STAGES_OF_FILTERS_MAX + 2];
    refuse_overlap(settings);
    if (settings->exact || settings->unique) {
        exact_run(settings);
        return;
    }
    if (settings->count_each) {
        heavy_run(settings);
        return;
    }
    open_filters(&dedup);
    size_t n = stages_of(&dedup, stages);
    if (dedup.durable.target)
        stages[n++] =
            (struct stage){ .run = print_durably, .context = &dedup, .in_order = true };
    else
        n = printer_stages(&dedup.printer, stages, n);
    dedup.input = input_open(settings, "reading", !settings->count);
    target_limit_keys(dedup.target, dedup.input);
    agree_on_keys(dedup.target, dedup.input);
    settle_state(&dedup, input_run(dedup.input, stages, n));
    report_lines(&dedup);
    input_close(dedup.input);
    for (size_t i = 0; i < dedup.nshards; i++)
        grown_free(dedup.shard[i].grown);
}
