/* change.c - the verbs that change a filter by keys: build, add, remove.
 *
 * All keys are added or none: the filter is changed in memory, and saved once when the last key
 * is in.  Filters that are changed in place or by a journal, and those on servers, are the
 * exception: they have each key at once, and after an error the message tells how many. */
#include <errno.h>
#include <limits.h>
#include <perhaps_build.h>
#include <perhaps_live.h>
#include <perhaps_plan.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../filter/agree.h"
#include "../filter/reach.h"
#include "../filter/request.h"
#include "../filter/static.h"
#include "../filter/target.h"
#include "../filter/window.h"
#include "../input/input.h"

/* What the verb does, for its stages and its report.  Lives on the stack of the verb. */
struct change {
    const char *doing;                                /* for the progress line: "adding" */
    const char *done;                                 /* for the summary: "added to" */
    bool (*block)(void *change, struct block *block); /* the stage that changes the filter */
    bool once; /* adds no copy of a key that is perhaps there */
    struct target *target;
    struct reach reach;            /* of a live file */
    struct position done_until;    /* on servers: all keys before it are in */
    uint64_t nlines;               /* of its source, up to the end of the last block */
    bool broken;                   /* a block before was not done as a whole */
    perhaps_bulk *bulk;            /* through which keys get into a filter in memory; or NULL */
    atomic_uint_fast64_t nchanged; /* how many keys were added, or were found and removed */
};

/* A stage, with a struct change: adds the keys of a block, or nothing after an error of an
 * earlier stage.  In place several threads may be here at once. */
static bool add_keys(void *context, struct block *block)
{
    struct change *change = context;
    if (block->error)
        return false;
    struct perhaps_keys keys = block_keys(block, 0, block->count);
    perhaps_filter *filter = change->target->filter;
    int error =
        change->once
            ? perhaps_add_unless_present_many(filter, &keys, block_bools(block), &block->ndone)
        : change->bulk ? perhaps_bulk_add(change->bulk, &keys, &block->ndone)
                       : perhaps_add_many(filter, &keys, &block->ndone);
    atomic_fetch_add(&change->nchanged, block->ndone);
    return block_met(block, error);
}

/* A stage, with a struct change: removes the keys of a block. */
static bool remove_block(void *context, struct block *block)
{
    struct change *change = context;
    struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    size_t nremoved;
    if (block->count == 0)
        return true;
    int error = perhaps_remove_many(change->target->filter, &keys, block_bools(block),
                                    &nremoved, &block->ndone);
    atomic_fetch_add(&change->nchanged, nremoved);
    return block_met(block, error);
}

/* A stage, with a struct change: adds the keys of a block to a filter on servers. */
static bool add_to_servers(void *context, struct block *block)
{
    struct change *change = context;
    bool ok = remote_add(change->target->remote, block);
    atomic_fetch_add(&change->nchanged, block->ndone);
    return ok;
}

/* A stage in order, with a struct change: notes until where all keys are on the servers. */
static bool note_done(void *context, struct block *block)
{
    struct change *change = context;
    if (block->holds != BLOCK_RECORDS || change->broken)
        return !block->error;
    position_pass(&change->done_until, &change->nlines, block);
    change->broken = block->error || block->ndone < block->count;
    return !block->error;
}

/* A stage, with a struct change: does change->block to a live file. */
static bool change_live(void *context, struct block *block)
{
    struct change *change = context;
    if (block->error || block->holds != BLOCK_RECORDS)
        return !block->error;
    if (!reach_enter(&change->reach, block)) {
        block->ndone = 0;
        return block_met(block, PERHAPS_ERR_IO);
    }
    bool ok = change->block(change, block);
    if (block->error == PERHAPS_ERR_IO)
        change->reach.refused = errno;
    reach_leave(&change->reach, block, change->nchanged);
    return ok;
}

/* Ends the program if an input or the target failed, where the filter already has some of the
 * keys: those that several threads or servers have added meanwhile, which are sets.  So nothing
 * is done twice if all keys are given again.  If the filter is not there any more, or has lost
 * a part, its message says what to do. */
static void settle_part(const struct change *change, const struct input *input,
                        const struct block *last)
{
    const bool removes = change->block == remove_block;
    const struct position *position = &change->done_until;
    char outcome[2 * PATH_MAX] = "", go_on[PATH_MAX + 80] = "";
    if (position->nkeys)
        snprintf(go_on, sizeof go_on, "; all before %s:%ju are in",
                 input_name(change->target->settings->inputs[position->source]),
                 (uintmax_t)position->line);
    if (!remote_has_lost(last))
        snprintf(outcome, sizeof outcome, "; %s of the keys, in no order, %s %s%s%s",
                 grouped(change->nchanged).s, removes ? "were removed from" : "are in",
                 change->target->path,
                 remote_blames_key(last) ? ""
                 : removes               ? ": removing all again is safe"
                                         : ": adding all again is safe",
                 remote_blames_key(last) ? "" : go_on);
    target_settle(change->target, input, last, outcome);
}

/* Returns whether a key that is added twice is there as often as if it was added once. */
static bool adds_to_set(const struct change *change)
{
    return change->once || !(perhaps_abilities_of(change->target->filter) &
                             (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT));
}

/* Syncs a live file, and ends the program if something went wrong. */
static void settle_live(struct change *change, const struct input *input,
                        const struct block *last)
{
    struct target *target = change->target;
    const bool removes = change->block == remove_block, again = !removes && adds_to_set(change);
    char outcome[2 * PATH_MAX];
    reach_settle(&change->reach);
    if (change->reach.error == PERHAPS_ERR_JOURNAL)
        target_fail_lost(target, removes ? ": no key was removed from it: remove all again"
                                         : ": the keys are not in it: add all again");
    reach_tell(&change->reach, target->settings, removes, again, outcome, sizeof outcome);
    if (change->reach.error == PERHAPS_ERR_IO)
        fail("%s.journal: %s%s", target->path, strerror(change->reach.reason), outcome);
    if (change->reach.error)
        fail("%s: %s%s", target->path, why(change->reach.error), outcome);
    if (change->reach.refused)
        fail("%s.journal: %s%s", target->path, strerror(change->reach.refused), outcome);
    target_settle(target, input, last, outcome);
}

/* Ends the program if something went wrong; else keeps the filter.  What was changed in place
 * is synced also after an error, since it stays. */
static void settle_change(struct change *change, const struct input *input,
                          const struct block *last)
{
    struct target *target = change->target;
    if (!target->remote && last->error == PERHAPS_ERR_SET)
        fail("%s: was made without --removable, and stores each key once: build it anew with "
             "that%s",
             target->path, target->live ? "" : target->outcome);
    if (!target->remote && last->error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s: %s%s", target->path,
             change->block == remove_block
                 ? "its kind cannot remove keys: build it with --removable"
                 : "its kind is built once: build it anew from all keys",
             target->live ? "" : target->outcome);
    if (target->remote) {
        settle_part(change, input, last);
    } else if (target->live) {
        settle_live(change, input, last);
    } else if (target->in_place) {
        int unsynced = perhaps_sync(target->filter), reason = errno;
        settle_part(change, input, last);
        errno = reason;
        if (unsynced)
            fail("%s: %s%s", target->path, why(unsynced), target->outcome);
    } else {
        static_settle(target, input, last);
        if (target->settings->against)
            static_add_others(target);
        target_look_last(target);
        target_save(target);
    }
}

/* Returns how the filter got its size, if the keys told that; else how much room it has. */
static struct text text_of_size(const struct target *target, const struct perhaps_stats *stats,
                                uint64_t nkeys)
{
    const struct perhaps_plan *plan = &stats->plan;
    uint64_t factor = target->sized ? perhaps_builder_folded(target->builder) : 0;
    if (factor > 1)
        return text_of(", folded to 1/%ju of %s", (uintmax_t)factor,
                       scaled((double)factor * (double)stats->memory_nbytes, "B").s);
    if (!target->sized || factor || plan->capacity > nkeys)
        return room_of(plan, stats->keys_different);
    return plan->capacity == nkeys
               ? text_of(", sized for the %s that came", counted(nkeys, "key").s)
               : text_of(", sized for %s", counted(plan->capacity, "different key").s);
}

/* Prints the summary. */
static void report_change(const struct change *change, uint64_t nkeys, uint64_t nskipped)
{
    const struct target *target = change->target;
    const struct settings *settings = target->settings;
    double seconds = seconds_worked(settings);
    struct perhaps_stats stats;
    if (settings->quiet)
        return;
    target_stats(target, &stats, NULL, "");
    const struct perhaps_plan *plan = &stats.plan;
    uint64_t nchanged = change->nchanged, nmissed = nkeys - nchanged;
    json_t *facts = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "filter",
        json_path(target->path), "kind", plan->kind, "keys", (json_int_t)nkeys, "skipped",
        (json_int_t)nskipped, "not_found", (json_int_t)nmissed, "keys_in_filter",
        (json_int_t)stats.keys, "capacity", (json_int_t)plan->capacity, "body_bytes",
        (json_int_t)stats.memory_nbytes, "bits_per_key", stats.bits_per_key, "fpr_asked",
        plan->fpr, "fpr_now", stats.fpr_now);
    if (target->sized)
        json_object_update_new(facts,
                               json_pack("{s:b, s:I}", "sized", 1, "folded",
                                         (json_int_t)perhaps_builder_folded(target->builder)));
    summarize(settings, facts, "%s %s %s%s%s%s: %s%s%s, %s%s%s", counted(nchanged, "key").s,
              change->done, target->path, nmissed ? ", " : "",
              nmissed ? grouped(nmissed).s : "",
              nmissed == 1 ? " was not in it"
              : nmissed    ? " were not in it"
                           : "",
              scaled((double)stats.memory_nbytes, "B").s,
              bits_of(plan->capacity, stats.keys, stats.memory_nbytes).s,
              text_of_size(target, &stats, nkeys).s, duration(seconds).s,
              speed(nkeys, seconds, " keys/s").s,
              over_of(is_over(&stats), stats.fpr_now, plan->fpr).s);
}

/* Prepares to add keys in bulk.  Where there is no memory for that they are added as they
 * come. */
static void begin_bulk(struct change *change)
{
    const struct perhaps_build_options how = { .threads = (unsigned)input_nthreads(
                                                   change->target->settings) };
    (void)perhaps_bulk_begin(change->target->filter, &how, &change->bulk);
}

/* Changes the filter by all keys of the inputs, keeps it and reports.  In memory the blocks
 * change it in order, so that the filter and its errors are the same for any number of threads.
 * In place that cannot be had anyway, since other processes add meanwhile; and servers take
 * many blocks at once. */
static void change_filter(struct change *change)
{
    const struct target *target = change->target;
    bool hashes = change->block == add_keys;
    const struct stage to_builder[] = {
        { .run = static_add, .context = change->target },
        { .run = static_watch, .context = change->target, .in_order = true }
    };
    const struct stage stages[] = {
        { .run = block_hash, .context = target->filter },
        { .run = target->live ? change_live : change->block,
          .context = change,
          .in_order = target->live || (!target->in_place && !target->remote) },
        { .run = note_done, .context = change, .in_order = true },
    };
    const size_t nstages = 1U + hashes + (target->remote != NULL);
    struct input *input = input_open(target->settings, change->doing, false);
    target_limit_keys(target, input);
    agree_on_keys(target, input);
    if (target->live)
        reach_begin(&change->reach, change->target);
    if (hashes && !target->builder && !target->in_place && !change->once)
        begin_bulk(change);
    const struct block *last = target->builder ? input_run(input, to_builder, 2)
                                               : input_run(input, stages + !hashes, nstages);
    perhaps_bulk_end(change->bulk);
    if (target->builder)
        change->nchanged = input_nkeys(input);
    settle_change(change, input, last);
    report_change(change, input_nkeys(input), input_nskipped(input));
    input_close(input);
}

/* Ends the program if the filter is one of the inputs. */
static void refuse_itself(const struct target *target)
{
    struct stat old;
    bool exists =
        target->streams ? fstat(STDOUT_FILENO, &old) == 0 : stat(target->path, &old) == 0;
    if (exists)
        input_refuse(target->settings, &old, target->path);
}

void verb_build(const struct settings *asked)
{
    struct settings settings = *asked; /* the values may tell how many bits they need */
    struct change building = { .doing = "building", .done = "into", .block = add_keys };
    if (!settings.output)
        fail("build: which file shall it make? give -o F");
    building.target = target_reserve_output(&settings);
    refuse_itself(building.target);
    target_check_replaced(building.target);
    if (settings.live)
        target_check_journal(building.target);
    settings.kind.value_bits = static_value_bits(&settings);
    static_begin(building.target);
    if (!building.target->builder)
        building.once = settings.once;
    change_filter(&building);
}

/* Opens the filter of add or remove: on servers, in place, or in memory to be saved later. */
static struct target *open_existing(const struct settings *settings)
{
    const char *path = settings->filter;
    struct target *target;
    if (is_remote(path))
        return target_open(settings, path);
    if (perhaps_is_live(path)) {
        if (settings->rewrite)
            fail("--rewrite: %s is a live file, whose journal takes the keys: leave it out",
                 path);
        target = target_open_live(settings, path, REACH_RECORDS);
        refuse_itself(target);
        return target;
    }
    if (settings->verb->bit == ADD && !settings->rewrite && target_takes_in_place(path)) {
        target = target_open_in_place(settings, path);
        refuse_itself(target);
        return target;
    }
    target = target_reserve(settings, path);
    refuse_itself(target);
    target_load(target, path);
    return target;
}

/* On servers only keys can be added: options_read() refuses remove. */
void verb_add(const struct settings *settings)
{
    struct target *target = open_existing(settings);
    if (!target->remote)
        window_warn(settings, target->filter, target->path);
    struct change adding = { .doing = "adding",
                             .done = "added to",
                             .block = target->remote ? add_to_servers : add_keys,
                             .once = settings->once,
                             .target = target };
    change_filter(&adding);
}

void verb_remove(const struct settings *settings)
{
    struct change removing = { .doing = "removing",
                               .done = "removed from",
                               .block = remove_block,
                               .target = open_existing(settings) };
    change_filter(&removing);
}
