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
    struct target target;
    struct input *input;
    struct output output;
    uint64_t nselected;
};

static bool ask_batch(void *context, struct batch *batch)
{
    const struct query *query = context;
    const struct settings *s = query->settings;
    const struct target *target = &query->target;
    struct perhaps_keys keys = { .count = batch->count, .each = batch->key };
    size_t npresent;
    if (!target->remote)
        npresent = perhaps_contains_many(target->filter, &keys, batch->answer);
    else if (!remote_ask(target->remote, batch, &npresent))
        return false;
    batch->nselected = s->invert ? batch->count - npresent : npresent;
    if (s->any || s->count)
        return true;
    if (s->label)
        return batch_met(batch, output_label(batch) ? 0 : PERHAPS_ERR_MEMORY);
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
        error = perhaps_count(query->target.filter, key->bytes, key->nbytes, &batch->number[i]);
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

static int complain_of(const struct query *query, const struct batch *last)
{
    char outcome[1024] = "";
    if (stop_signal())
        snprintf(outcome, sizeof outcome, "; %s keys were asked, %s are perhaps in %s",
                 grouped(input_nkeys(query->input)).s, grouped(npresent_of(query)).s,
                 query->target.path);
    return query->target.remote
               ? remote_complain(query->target.remote, query->input, last, outcome)
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
    return status || !query->settings->check ? status : target_complain_damage(&query->target);
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
                  json_path(query->target.path), "keys", (json_int_t)nkeys, "skipped",
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

static int ask_all(struct query *query)
{
    const struct settings *s = query->settings;
    int status = refuse_loop(s);
    if (!status)
        status = target_open(&query->target, s->filter, s, WITH_SECRET);
    if (!status && query->ask == count_batch)
        status = check_counts(&query->target);
    if (!status)
        status = input_open(s, "asking", !s->count, &query->input);
    return status ? status : query_all(query);
}

static int run_query(struct query *query)
{
    double started = seconds_now();
    stop_on_signals();
    int status = ask_all(query);
    if (!status)
        report(query, seconds_now() - started);
    input_close(query->input);
    target_close(&query->target);
    return status;
}

int verb_query(const struct settings *settings)
{
    struct query query = { .settings = settings, .ask = ask_batch, .target = TARGET_NONE };
    int status = run_query(&query);
    if (!status)
        status = query.nselected ? STATUS_YES : STATUS_NO;
    return status;
}

int verb_count(const struct settings *settings)
{
    struct query query = { .settings = settings, .ask = count_batch, .target = TARGET_NONE };
    return run_query(&query);
}
