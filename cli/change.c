/* The verbs that change a filter by keys: build, add, remove.  All keys or none: the filter is
 * saved once, when the last key is in; but what is added in place is in at once. */
#include <stdatomic.h>
#include <unistd.h>

#include "input.h"
#include "messages.h"
#include "numbers.h"
#include "request.h"
#include "target.h"

struct change {
    const char *doing; /* "adding" */
    const char *done;  /* "added to" */
    bool (*block)(void *change, struct block *block);
    bool once; /* no copies of a key that is perhaps there */
    struct target target;
    uint64_t nkeys, nskipped;      /* that were read, and lines that had none */
    atomic_uint_fast64_t nchanged; /* less by those that were to be removed and not there */
};

static bool add_block(void *context, struct block *block)
{
    struct change *change = context;
    if (block->error)
        return false;
    struct perhaps_keys keys = block_keys(block, 0, block->count);
    perhaps_filter *filter = change->target.filter;
    int error = change->once ? perhaps_add_unless_present_many(filter, &keys, block->answer,
                                                               &block->ndone)
                             : perhaps_add_many(filter, &keys, &block->ndone);
    atomic_fetch_add(&change->nchanged, block->ndone);
    return block_met(block, error);
}

/* perhaps_remove_many() does not tell which key met the error: goes through them, the filter is
 * lost anyway. */
static size_t find_error(perhaps_filter *filter, const struct block *block)
{
    size_t i = 0;
    for (; i + 1 < block->count; i++) {
        int error = perhaps_remove(filter, block->key[i].bytes, block->key[i].nbytes);
        if (error && error != PERHAPS_ERR_NOT_FOUND)
            break;
    }
    return i;
}

static bool remove_block(void *context, struct block *block)
{
    struct change *change = context;
    struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    size_t nremoved;
    if (block->count == 0)
        return true;
    int error = perhaps_remove_many(change->target.filter, &keys, block->answer, &nremoved);
    if (error)
        block->ndone = find_error(change->target.filter, block);
    atomic_fetch_add(&change->nchanged, nremoved);
    return block_met(block, error);
}

static bool add_to_servers(void *context, struct block *block)
{
    struct change *change = context;
    bool ok = remote_add(change->target.remote, block);
    atomic_fetch_add(&change->nchanged, block->ndone);
    return ok;
}

/* Servers, and files that are changed in place, have what they have been told. */
static int complain_of_part(const struct change *change, const struct input *input,
                            const struct block *last)
{
    char outcome[1024];
    snprintf(outcome, sizeof outcome, "; %s of the keys are in %s%s",
             grouped(change->nchanged).s, change->target.path,
             remote_blames_key(last) ? "" : ": adding all again is safe");
    return target_complain(&change->target, input, last, outcome);
}

/* Blockes change the filter in order, so that it and its errors are the same for any number of
 * threads; in place that cannot be had, since others add meanwhile. */
static int change_all(struct change *change, struct input *input, bool in_order)
{
    const struct target *target = &change->target;
    struct stage stages[] = {
        { .run = block_hash, .context = target->filter },
        { .run = change->block, .context = change, .in_order = in_order },
    };
    bool hashes = change->block == add_block;
    const struct block *last = input_run(input, stages + !hashes, 1 + hashes);
    change->nkeys = input_nkeys(input);
    change->nskipped = input_nskipped(input);
    if (target->remote || target->in_place)
        return complain_of_part(change, input, last);
    if (last->error == PERHAPS_ERR_UNSUPPORTED)
        return complain("%s: its kind cannot remove keys: build it with --removable%s",
                        target->path, target->outcome);
    return input_complain(input, last, target->outcome);
}

static int report(const struct settings *settings, const struct change *change)
{
    double seconds = seconds_now() - settings->started;
    const struct target *target = &change->target;
    struct perhaps_stats stats;
    int status = settings->quiet ? 0 : target_stats(target, &stats, NULL, "");
    if (settings->quiet || status)
        return status;
    const struct perhaps_plan *plan = &stats.plan;
    uint64_t nchanged = change->nchanged, nmissed = change->nkeys - nchanged;
    json_t *facts =
        json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "verb",
                  settings->verb->name, "filter", json_path(target->path), "kind", plan->kind,
                  "keys", (json_int_t)change->nkeys, "skipped", (json_int_t)change->nskipped,
                  "not_found", (json_int_t)nmissed, "keys_in_filter", (json_int_t)stats.keys,
                  "capacity", (json_int_t)plan->capacity, "body_bytes",
                  (json_int_t)stats.memory_nbytes, "bits_per_key", stats.bits_per_key,
                  "fpr_asked", plan->fpr, "fpr_now", stats.fpr_now, "seconds", seconds);
    return summarize(
        settings, facts, "%s %s %s%s%s%s: %s%s%s, %s%s%s", counted(nchanged, "key").s,
        change->done, target->path, nmissed ? ", " : "", nmissed ? grouped(nmissed).s : "",
        nmissed == 1 ? " was not in it"
        : nmissed    ? " were not in it"
                     : "",
        scaled((double)stats.memory_nbytes, "B").s,
        bits_of(plan->capacity, stats.keys, stats.memory_nbytes).s, room_of(plan, stats.keys).s,
        duration(seconds).s, speed(change->nkeys, seconds, " keys/s").s,
        over_of(is_over(&stats), stats.fpr_now, plan->fpr).s);
}

/* Changes the filter by all keys of the inputs, keeps it and reports. */
static int change_filter(struct change *change, const struct settings *settings)
{
    const struct target *target = &change->target;
    struct input *input = NULL;
    int status = input_open(settings, change->doing, false, &input);
    if (!status)
        status = change_all(change, input, !target->in_place && !target->remote);
    input_close(input);
    status = target_keep(target, settings, status);
    return status ? status : report(settings, change);
}

/* The filter must not be read as an input. */
static int refuse_itself(const struct settings *settings, const struct target *target)
{
    struct stat old;
    bool exists =
        target->streams ? fstat(STDOUT_FILENO, &old) == 0 : stat(target->path, &old) == 0;
    return exists ? input_refuse(settings, &old, target->path) : 0;
}

/* Copies are wanted by who will remove keys or have them counted, or names a kind that can.
 * Else many of one key would only take room, and soon find none. */
static bool wants_once(const struct settings *settings, const perhaps_filter *filter)
{
    struct perhaps_stats stats;
    if (settings->once)
        return true;
    if (settings->removable || settings->counts || settings->kind)
        return false;
    perhaps_stats_of(filter, &stats);
    return kind_can(stats.plan.kind, PERHAPS_CAN_REMOVE) ||
           kind_can(stats.plan.kind, PERHAPS_CAN_COUNT);
}

int verb_build(const struct settings *settings)
{
    struct change building = { .doing = "building", .done = "into", .block = add_block };
    struct size size;
    if (!settings->output)
        return complain("build: which file shall it make? give -o F");
    int status = target_reserve_output(&building.target, settings);
    if (!status)
        status = refuse_itself(settings, &building.target);
    if (!status)
        status = target_check_replaced(&building.target, settings);
    if (!status)
        status = input_size(settings, &size);
    if (!status)
        status = target_create(&building.target, settings, size);
    if (!status)
        building.once = wants_once(settings, building.target.filter);
    if (!status)
        status = change_filter(&building, settings);
    target_close(&building.target);
    return status;
}

static int open_existing(struct target *target, const struct settings *settings)
{
    const char *path = settings->filter;
    if (is_remote(path))
        return target_open(target, path, settings);
    if (settings->in_place ||
        (settings->verb->bit == ADD && !settings->rewrite && target_takes_in_place(path))) {
        int status = target_open_in_place(target, path, settings);
        return status ? status : refuse_itself(settings, target);
    }
    int status = target_reserve(target, path, settings);
    if (!status)
        status = refuse_itself(settings, target);
    return status ? status : target_load(target, path, settings);
}

static int change_existing(const struct settings *settings, struct change *change)
{
    int status = open_existing(&change->target, settings);
    if (change->target.remote)
        change->block = add_to_servers; /* options_read() lets no other verb come here */
    if (!status)
        status = change_filter(change, settings);
    target_close(&change->target);
    return status;
}

int verb_add(const struct settings *settings)
{
    struct change adding = {
        .doing = "adding", .done = "added to", .block = add_block, .once = settings->once
    };
    return change_existing(settings, &adding);
}

int verb_remove(const struct settings *settings)
{
    struct change removing = { .doing = "removing",
                               .done = "removed from",
                               .block = remove_block };
    return change_existing(settings, &removing);
}
