#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "numbers.h"
#include "output.h"
#include "report.h"
#include "stop.h"
#include "target.h"

struct query {
    const struct settings *settings;
    bool (*ask)(void *query, struct batch *batch);
    size_t ntargets;
    struct target *target;
    _Atomic(const struct target *) failed; /* one on servers, if any has */
    struct input *input;
    struct output output;
    uint64_t nselected;
};

static bool ask_one(struct query *query, const struct target *target, struct batch *batch,
                    size_t *npresent)
{
    struct perhaps_keys keys = perhaps_keys_each(batch->key, batch->count);
    if (!target->remote) {
        *npresent = perhaps_contains_many(target->filter, &keys, batch->answer);
        return true;
    }
    bool ok = remote_ask(target->remote, batch, npresent);
    if (!ok)
        query->failed = target;
    return ok;
}

/* The answers of several filters: the batch's scratch.  'each' has a row for every filter. */
struct answers {
    size_t nanswers;
    bool each[];
};

static struct answers *answers_of(const struct query *query, struct batch *batch)
{
    struct answers *answers = batch->scratch;
    size_t needed = batch->count * query->ntargets;
    if (answers && answers->nanswers >= needed)
        return answers;
    free(answers);
    batch->scratch = answers = malloc(sizeof *answers + needed * sizeof *answers->each);
    if (answers)
        answers->nanswers = needed;
    return answers;
}

/* A key is there if it is in any of them. */
static bool ask_several(struct query *query, struct batch *batch, size_t *npresent)
{
    struct answers *answers = answers_of(query, batch);
    if (!answers)
        return batch_met(batch, PERHAPS_ERR_MEMORY);
    for (size_t t = 0; t < query->ntargets && batch->count; t++) {
        if (!ask_one(query, &query->target[t], batch, npresent))
            return false;
        memcpy(answers->each + t * batch->count, batch->answer, batch->count);
    }
    *npresent = 0;
    for (size_t i = 0; i < batch->count; i++) {
        bool any = false;
        for (size_t t = 0; t < query->ntargets; t++)
            any |= answers->each[t * batch->count + i];
        batch->answer[i] = any;
        *npresent += any;
    }
    return true;
}

static bool label(const struct query *query, struct batch *batch)
{
    const struct words *filters = &query->settings->filters;
    const struct answers *answers = batch->scratch;
    bool ok = query->ntargets > 1
                  ? output_names(batch, filters->word, filters->count, answers->each)
                  : output_label(batch);
    return batch_met(batch, ok ? 0 : PERHAPS_ERR_MEMORY);
}

static bool ask_batch(void *context, struct batch *batch)
{
    struct query *query = context;
    const struct settings *s = query->settings;
    size_t npresent = 0;
    if (query->ntargets == 1 ? !ask_one(query, query->target, batch, &npresent)
                             : !ask_several(query, batch, &npresent))
        return false;
    batch->nselected = s->invert ? batch->count - npresent : npresent;
    if (s->any || s->count)
        return true;
    if (s->label)
        return label(query, batch);
    output_keep(batch, !s->invert);
    return true;
}

static bool count_batch(void *context, struct batch *batch)
{
    const struct query *query = context;
    int error = batch_make_numbers(batch) ? 0 : PERHAPS_ERR_MEMORY;
    size_t i = 0;
    for (; i < batch->count && !error; i += !error) {
        const struct perhaps_key *key = &batch->key[i];
        error =
            perhaps_count(query->target->filter, key->bytes, key->nbytes, &batch->number[i]);
        batch->nselected += !error && batch->number[i] > 0;
    }
    batch->ndone = i;
    if (!output_numbers(batch))
        error = PERHAPS_ERR_MEMORY;
    return batch_met(batch, error) && !batch->problem;
}

static bool print_batch(void *context, struct batch *batch)
{
    struct query *query = context;
    query->nselected += batch->nselected;
    bool enough = query->settings->any && query->nselected;
    return output_write(&query->output, batch) && !enough;
}

/* How many of the keys that were asked are perhaps there. */
static uint64_t npresent_of(const struct query *query)
{
    return query->settings->invert ? input_nkeys(query->input) - query->nselected
                                   : query->nselected;
}

/* "F", or "any of 3 filters". */
static const char *name_of(const struct query *query, char name[1024])
{
    if (query->ntargets == 1)
        snprintf(name, 1024, "%s", query->target->path);
    else
        snprintf(name, 1024, "any of %zu filters", query->ntargets);
    return name;
}

static int complain_of(const struct query *query, const struct batch *last)
{
    char name[1024], outcome[2048] = "";
    if (stop_signal())
        snprintf(outcome, sizeof outcome, "; %s keys were asked, %s are perhaps in %s",
                 grouped(input_nkeys(query->input)).s, grouped(npresent_of(query)).s,
                 name_of(query, name));
    const struct target *failed = query->failed;
    return failed ? remote_complain(failed->remote, query->input, last, outcome)
                  : input_complain(query->input, last, outcome);
}

static int query_all(struct query *query)
{
    const struct stage stages[] = { { query->ask, query, .in_order = false },
                                    { print_batch, query, .in_order = true } };
    const struct batch *last = input_run(query->input, stages, 2);
    if (query->output.error)
        return output_complain(&query->output, "");
    bool enough = query->settings->any && query->nselected;
    int status = enough ? 0 : complain_of(query, last);
    for (size_t i = 0; i < query->ntargets && !status && query->settings->check; i++)
        status = target_complain_damage(&query->target[i]);
    return status;
}

static json_t *names_of(const struct query *query)
{
    json_t *names = query->ntargets > 1 ? json_array() : json_path(query->target->path);
    for (size_t i = 0; i < query->ntargets && query->ntargets > 1; i++)
        json_array_append_new(names, json_path(query->target[i].path));
    return names;
}

static void report(const struct query *query, double seconds)
{
    const struct settings *s = query->settings;
    if (s->count)
        printf("%ju\n", (uintmax_t)query->nselected);
    if (!s->json) /* its output goes into pipes: it says no more than grep */
        return;
    uint64_t nkeys = input_nkeys(query->input), npresent = npresent_of(query);
    json_t *facts =
        json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:f}", "verb", s->verb->name, "filter",
                  names_of(query), "keys", (json_int_t)nkeys, "skipped",
                  (json_int_t)input_nskipped(query->input), "perhaps", (json_int_t)npresent,
                  "no", (json_int_t)(nkeys - npresent), "seconds", seconds);
    summarize(s, facts, "%s", "");
}

/* Printing into a file that is read grows it for ever. */
static int refuse_loop(const struct settings *settings)
{
    struct stat out;
    if (settings->any || settings->count || fstat(STDOUT_FILENO, &out) != 0)
        return 0;
    return input_refuse(settings, &out, "standard output");
}

/* Before any line is read. */
static int check_counts(const struct target *target)
{
    uint64_t count;
    if (perhaps_count(target->filter, "", 0, &count) != PERHAPS_ERR_UNSUPPORTED)
        return 0;
    return complain("%s: its kind cannot count: build it with --count", target->path);
}

static int open_targets(struct query *query)
{
    const struct settings *s = query->settings;
    int status = 0;
    for (size_t i = 0; i < query->ntargets; i++)
        query->target[i] = (struct target)TARGET_NONE;
    for (size_t i = 0; i < query->ntargets && !status; i++)
        status =
            target_open(&query->target[i], i ? s->filters.word[i] : s->filter, s, WITH_SECRET);
    return status;
}

static int ask_all(struct query *query)
{
    const struct settings *s = query->settings;
    int status = refuse_loop(s);
    if (!status)
        status = open_targets(query);
    if (!status && query->ask == count_batch)
        status = check_counts(query->target);
    if (!status)
        status = input_open(s, "asking", !s->count, &query->input);
    return status ? status : query_all(query);
}

static int run_query(struct query *query)
{
    double started = seconds_now();
    size_t count = query->settings->filters.count;
    query->ntargets = count ? count : 1;
    query->target = calloc(query->ntargets, sizeof *query->target);
    if (!query->target)
        return complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
    stop_on_signals();
    int status = ask_all(query);
    if (!status)
        report(query, seconds_now() - started);
    input_close(query->input);
    for (size_t i = 0; i < query->ntargets; i++)
        target_close(&query->target[i]);
    free(query->target);
    return status;
}

int verb_query(const struct settings *settings)
{
    struct query query = { .settings = settings, .ask = ask_batch };
    int status = run_query(&query);
    if (!status)
        status = query.nselected ? STATUS_YES : STATUS_NO;
    return status;
}

int verb_count(const struct settings *settings)
{
    struct query query = { .settings = settings, .ask = count_batch };
    return run_query(&query);
}
