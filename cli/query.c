#include <unistd.h>

#include "input.h"
#include "numbers.h"
#include "output.h"
#include "report.h"
#include "target.h"

struct query {
    const struct settings *settings;
    struct target target;
    struct input *input;
    struct output output;
    uint64_t nkeys;
    uint64_t npresent;
};

/* What is printed unless -c or -q is given: the record, and the delimiter behind it. */
static void print_batch(struct query *query, const struct batch *batch)
{
    const struct settings *s = query->settings;
    static const char labels[2][9] = { "no\t", "perhaps\t" };
    for (size_t i = 0; i < batch->count; i++) {
        bool present = batch->answer[i];
        if (s->label)
            output_put(&query->output, labels[present], present ? 8 : 3);
        if (s->label || present != s->invert)
            output_put(&query->output, batch->record[i].bytes, batch->record[i].nbytes + 1);
    }
}

static uint64_t nselected(const struct query *query)
{
    return query->settings->invert ? query->nkeys - query->npresent : query->npresent;
}

static int query_all(struct query *query)
{
    const struct settings *s = query->settings;
    struct batch batch;
    int got = 0, status = 0;
    while (!status && !(s->quiet && nselected(query)) &&
           (got = input_next(query->input, &batch)) > 0) {
        struct perhaps_keys keys = { .count = batch.count, .each = batch.key };
        query->npresent += perhaps_contains_many(query->target.filter, &keys, batch.answer);
        query->nkeys += batch.count;
        if (!s->quiet && !s->count)
            print_batch(query, &batch);
        status = output_flush(&query->output, "");
    }
    return got < 0 ? input_complain(query->input, "") : status;
}

static void report(const struct query *query, double seconds)
{
    const struct settings *s = query->settings;
    if (s->count && !s->quiet)
        printf("%ju\n", (uintmax_t)nselected(query));
    if (!s->json) /* its output goes into pipes: it says no more than grep */
        return;
    json_t *facts = json_pack("{s:s, s:o, s:I, s:I, s:I, s:f}", "verb", s->verb->name, "filter",
                              json_path(query->target.path), "keys", (json_int_t)query->nkeys,
                              "perhaps", (json_int_t)query->npresent, "no",
                              (json_int_t)(query->nkeys - query->npresent), "seconds", seconds);
    summarize(s, facts, "%s", "");
}

/* Printing into a file that is read grows it for ever. */
static int refuse_loop(const struct settings *settings)
{
    struct stat out;
    if (settings->quiet || settings->count || fstat(STDOUT_FILENO, &out) != 0)
        return 0;
    return input_refuse(settings, &out, "standard output");
}

int verb_query(const struct settings *settings)
{
    struct query query = { .settings = settings, .target = TARGET_NONE };
    double started = seconds_now();
    int status = refuse_loop(settings);
    if (!status)
        status = target_open(&query.target, settings->filter, settings, WITH_SECRET);
    if (!status)
        status = output_open(&query.output);
    if (!status)
        status = input_open(settings, "asking", !settings->count, &query.input);
    if (!status)
        status = query_all(&query);
    input_close(query.input);
    if (!status) {
        report(&query, seconds_now() - started);
        status = nselected(&query) ? STATUS_YES : STATUS_NO;
    }
    output_close(&query.output);
    target_close(&query.target);
    return status;
}
