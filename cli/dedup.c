/* dedup prints as it reads, so what was printed can no more be taken back: after a full filter,
 * a bad input or a signal the state is saved and matches what was printed.  If printing fails
 * it is not saved: lines that nobody saw come again in the next run. */
#include <unistd.h>

#include "input.h"
#include "numbers.h"
#include "output.h"
#include "report.h"
#include "stop.h"
#include "target.h"

struct dedup {
    const struct settings *settings;
    struct target target;
    struct input *input;
    struct output output;
    uint64_t nlines;
    uint64_t nnew;
    uint64_t nkeys_before; /* that the state held at the start */
};

static void print_batch(struct dedup *dedup, const struct batch *batch, size_t count)
{
    const struct settings *s = dedup->settings;
    for (size_t i = 0; i < count; i++) {
        bool repeated = batch->answer[i];
        dedup->nnew += !repeated;
        if (repeated == s->repeated && !s->count)
            output_put(&dedup->output, batch->record[i].bytes, batch->record[i].nbytes + 1);
    }
    dedup->nlines += count;
}

/* Saves the state, if one is wanted.  Returns 0 or the exit status. */
static int remember(struct dedup *dedup)
{
    return dedup->settings->state ? target_save(&dedup->target) : 0;
}

/* What an error leaves, once remember() has made it true. */
static const char *outcome_of(const struct dedup *dedup)
{
    return dedup->settings->state ? "; the lines so far are done and remembered"
                                  : "; the lines so far are done";
}

static int dedup_batch(struct dedup *dedup, const struct batch *batch)
{
    struct perhaps_keys keys = { .count = batch->count, .each = batch->key };
    size_t done = 0;
    int error =
        perhaps_add_unless_present_many(dedup->target.filter, &keys, batch->answer, &done);
    print_batch(dedup, batch, done);
    int status = output_flush(&dedup->output, dedup->target.outcome);
    if (status || !error)
        return status;
    status = remember(dedup);
    return status ? status : input_complain_key(batch, done, error, outcome_of(dedup));
}

static int dedup_all(struct dedup *dedup)
{
    struct batch batch;
    int got = 1, status = 0;
    while (!status && (got = input_next(dedup->input, &batch)) > 0)
        status = dedup_batch(dedup, &batch);
    if (!status)
        status = remember(dedup);
    return status || got == 0 ? status : input_complain(dedup->input, outcome_of(dedup));
}

/* How many lines may have been taken for old though they were new, in expectation: before
 * each new line that got in, with k keys there, p/(1-p) did not, for p the rate at k.
 * Simpson's rule over k. */
static double expected_losses(const perhaps_filter *filter, uint64_t before, uint64_t nnew)
{
    enum { INTERVALS = 16 };
    double sum = 0, width = (double)nnew / INTERVALS;
    for (int i = 0; i <= INTERVALS; i++) {
        double p = perhaps_predict_fpr(filter, before + (uint64_t)(i * width));
        double weight = i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2;
        sum += weight * p / (p < 1 ? 1 - p : 1e-9);
    }
    return sum * width / 3;
}

static int report(const struct dedup *dedup, double seconds)
{
    const struct settings *s = dedup->settings;
    uint64_t nrepeated = dedup->nlines - dedup->nnew;
    double losses = expected_losses(dedup->target.filter, dedup->nkeys_before, dedup->nnew);
    if (s->count)
        printf("lines\t%ju\nnew\t%ju\nrepeated\t%ju\n", (uintmax_t)dedup->nlines,
               (uintmax_t)dedup->nnew, (uintmax_t)nrepeated);
    json_t *facts =
        json_pack("{s:s, s:o*, s:I, s:I, s:I, s:f, s:f}", "verb", s->verb->name, "state",
                  s->state ? json_path(s->state) : NULL, "lines", (json_int_t)dedup->nlines,
                  "new", (json_int_t)dedup->nnew, "repeated", (json_int_t)nrepeated,
                  "expected_lost", losses, "seconds", seconds);
    return summarize(s, facts,
                     "%s lines, %s new, %s repeated; %s new lines may have been taken "
                     "for old; %s, %s",
                     grouped(dedup->nlines).s, grouped(dedup->nnew).s, grouped(nrepeated).s,
                     expectation(losses).s, duration(seconds).s,
                     scaled((double)dedup->nlines / seconds, " lines/s").s);
}

/* Opens the state, or makes a filter: the state of the runs to come, or of this one only. */
static int open_target(struct dedup *dedup)
{
    const struct settings *s = dedup->settings;
    uint64_t capacity;
    int status = target_reserve(&dedup->target, s->state);
    if (!status && s->state && access(s->state, F_OK) == 0)
        return target_load(&dedup->target, s->state, s, WITH_SECRET);
    if (!status)
        status = input_capacity(s, &capacity);
    return status ? status : target_create(&dedup->target, s, capacity);
}

static int refuse_overlap(const struct settings *settings)
{
    struct stat file;
    int status = 0;
    if (settings->state && stat(settings->state, &file) == 0)
        status = input_refuse(settings, &file, settings->state);
    if (!status && !settings->count && fstat(STDOUT_FILENO, &file) == 0)
        status = input_refuse(settings, &file, "standard output");
    return status;
}

/* From the opened target on. */
static int run(struct dedup *dedup, double started)
{
    struct perhaps_stats stats;
    perhaps_stats(dedup->target.filter, &stats);
    dedup->nkeys_before = stats.keys;
    int status = output_open(&dedup->output);
    if (!status)
        status = input_open(dedup->settings, "reading", !dedup->settings->count, &dedup->input);
    if (!status)
        status = dedup_all(dedup);
    input_close(dedup->input);
    output_close(&dedup->output);
    return status ? status : report(dedup, seconds_now() - started);
}

int verb_dedup(const struct settings *settings)
{
    struct dedup dedup = { .settings = settings, .target = TARGET_NONE };
    double started = seconds_now();
    stop_on_signals();
    int status = refuse_overlap(settings);
    if (!status)
        status = open_target(&dedup);
    if (!status)
        status = run(&dedup, started);
    target_close(&dedup.target);
    return status;
}
