/* The verbs that change a filter by keys: build, add, remove.  All keys or none: the filter is
 * saved once, when the last key is in. */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "numbers.h"
#include "report.h"
#include "stop.h"
#include "target.h"

/* How a batch is dealt with.  Returns 0, or a perhaps_error and in *done the key that met it.
 */
typedef int change_batch(perhaps_filter *filter, const struct perhaps_keys *keys,
                         struct batch *batch, size_t *done);

struct change {
    const char *doing; /* "adding" */
    const char *done;  /* "added to" */
    change_batch *batch;
    uint64_t nkeys;    /* that were read */
    uint64_t nchanged; /* of these: not the ones that were to be removed and not there */
};

static int add_batch(perhaps_filter *filter, const struct perhaps_keys *keys,
                     struct batch *batch, size_t *done)
{
    (void)batch;
    return perhaps_add_many(filter, keys, done);
}

static int remove_batch(perhaps_filter *filter, const struct perhaps_keys *keys,
                        struct batch *batch, size_t *done)
{
    int error = perhaps_remove_many(filter, keys, batch->answer, done);
    if (!error)
        return 0;
    /* It does not tell which key met the error: go through them, the filter is lost anyway. */
    for (*done = 0; *done + 1 < batch->count; ++*done) {
        const struct perhaps_key *key = &batch->key[*done];
        int result = perhaps_remove(filter, key->bytes, key->nbytes);
        if (result && result != PERHAPS_ERR_NOT_FOUND)
            break;
    }
    return error;
}

static int change_all(struct target *target, struct input *input, struct change *change)
{
    struct batch batch;
    int got;
    while ((got = input_next(input, &batch)) > 0) {
        struct perhaps_keys keys = { .count = batch.count, .each = batch.key };
        size_t done = 0;
        int error = change->batch(target->filter, &keys, &batch, &done);
        if (error == PERHAPS_ERR_UNSUPPORTED)
            return complain("%s: its kind cannot remove keys: build it with --removable%s",
                            target->path, target->outcome);
        if (error)
            return input_complain_key(&batch, done, error, target->outcome);
        change->nkeys += batch.count;
        change->nchanged += done;
    }
    return got == 0 ? 0 : input_complain(input, target->outcome);
}

static int report(const struct target *target, const struct settings *settings,
                  const struct change *change, double seconds)
{
    struct perhaps_stats stats;
    perhaps_stats(target->filter, &stats);
    uint64_t nmissed = change->nkeys - change->nchanged;
    double rate = (double)change->nkeys / seconds;
    json_t *facts = json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "verb",
                              settings->verb->name, "filter", json_path(target->path), "kind",
                              stats.plan.kind, "keys", (json_int_t)change->nkeys, "not_found",
                              (json_int_t)nmissed, "keys_in_filter", (json_int_t)stats.keys,
                              "capacity", (json_int_t)stats.plan.capacity, "body_bytes",
                              (json_int_t)stats.plan.body_nbytes, "bits_per_key",
                              stats.bits_per_key, "fpr_now", stats.fpr_now, "seconds", seconds);
    return summarize(
        settings, facts, "%s keys %s %s%s%s%s: %s, %s, %s, %s", grouped(change->nchanged).s,
        change->done, target->path, nmissed ? ", " : "", nmissed ? grouped(nmissed).s : "",
        nmissed ? " were not in it" : "", scaled((double)stats.plan.body_nbytes, "B").s,
        scaled(stats.bits_per_key, " bits a key").s, duration(seconds).s,
        scaled(rate, " keys/s").s);
}

/* Changes the filter by all keys of the inputs, saves it and reports. */
static int change(struct target *target, const struct settings *settings, struct change *change,
                  double started)
{
    struct input *input = NULL;
    int status = input_open(settings, change->doing, false, &input);
    if (!status)
        status = change_all(target, input, change);
    input_close(input);
    if (!status)
        status = target_save(target);
    return status ? status : report(target, settings, change, seconds_now() - started);
}

/* Reserves the place of the filter, which must not be read as an input. */
static int reserve(struct target *target, const char *path, const struct settings *settings)
{
    struct stat old;
    stop_on_signals();
    int status = target_reserve(target, path);
    if (!status && stat(path, &old) == 0)
        status = input_refuse(settings, &old, path);
    return status;
}

int verb_build(const struct settings *settings)
{
    struct change building = { .doing = "building", .done = "into", .batch = add_batch };
    struct target target = TARGET_NONE;
    uint64_t capacity = 0;
    double started = seconds_now();
    if (!settings->output)
        return complain("build: which file shall it make? give -o F");
    int status = reserve(&target, settings->output, settings);
    if (!status)
        status = input_capacity(settings, &capacity);
    if (!status)
        status = target_create(&target, settings, capacity);
    if (!status)
        status = change(&target, settings, &building, started);
    target_close(&target);
    return status;
}

static int change_existing(const struct settings *settings, struct change *changing)
{
    struct target target = TARGET_NONE;
    double started = seconds_now();
    int status = reserve(&target, settings->filter, settings);
    if (!status)
        status = target_load(&target, settings->filter, settings, WITH_SECRET);
    if (!status)
        status = change(&target, settings, changing, started);
    target_close(&target);
    return status;
}

int verb_add(const struct settings *settings)
{
    struct change adding = { .doing = "adding", .done = "added to", .batch = add_batch };
    return change_existing(settings, &adding);
}

int verb_remove(const struct settings *settings)
{
    struct change removing = { .doing = "removing",
                               .done = "removed from",
                               .batch = remove_batch };
    return change_existing(settings, &removing);
}
