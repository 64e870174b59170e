/* dedup prints as it reads, so what was printed can no more be taken back: after a full filter,
 * a bad input or a signal the state is saved and matches what was printed.  If printing fails
 * it is not saved: lines that nobody saw come again in the next run. */
#include <unistd.h>

#include "facts.h"
#include "input.h"
#include "numbers.h"
#include "output.h"
#include "report.h"
#include "seen.h"
#include "stop.h"

struct dedup {
    const struct settings *settings;
    struct seen seen;
    struct input *input;
    struct output output;
    uint64_t nlines;
    uint64_t nnew;
};

static bool keep_batch(void *context, struct batch *batch)
{
    const struct dedup *dedup = context;
    const struct settings *s = dedup->settings;
    size_t nkept = output_keep(batch, s->repeated);
    batch->nselected = s->repeated ? batch->ndone - nkept : nkept;
    if (s->count)
        batch->output_nbytes = 0;
    return true;
}

static bool print_batch(void *context, struct batch *batch)
{
    struct dedup *dedup = context;
    dedup->nlines += batch->ndone;
    dedup->nnew += batch->nselected;
    return output_write(&dedup->output, batch);
}

static bool is_saved(const struct dedup *dedup)
{
    return dedup->settings->state && !dedup->seen.target.remote;
}

/* Saves the state, if it is a file.  Returns 0 or the exit status. */
static int remember(struct dedup *dedup)
{
    return is_saved(dedup) ? target_save(&dedup->seen.target, dedup->settings) : 0;
}

/* What an error leaves, once remember() has made it true. */
static int complain_of(const struct dedup *dedup, const struct batch *last)
{
    uint64_t nunsure = dedup->seen.nunsure;
    char outcome[160];
    snprintf(outcome, sizeof outcome, "; the lines so far are done%s%s%s%s",
             dedup->settings->state ? " and remembered" : "", nunsure ? ", but the last " : "",
             nunsure ? grouped(nunsure).s : "", nunsure ? " may come again" : "");
    return dedup->seen.target.remote
               ? remote_complain(dedup->seen.target.remote, dedup->input, last, outcome)
               : input_complain(dedup->input, last, outcome);
}

/* Servers remember at once. */
static int complain_of_output(const struct dedup *dedup)
{
    return output_complain(&dedup->output,
                           is_saved(dedup) ? dedup->seen.target.outcome
                           : dedup->seen.target.remote
                               ? "; what could not be printed is remembered all the same"
                               : "");
}

static int dedup_all(struct dedup *dedup)
{
    struct stage stages[SEEN_STAGES_MAX + 2];
    size_t n = seen_stages(&dedup->seen, stages);
    stages[n++] = (struct stage){ .run = keep_batch, .context = dedup };
    stages[n++] = (struct stage){ .run = print_batch, .context = dedup, .in_order = true };
    const struct batch *last = input_run(dedup->input, stages, n);
    if (dedup->output.error)
        return complain_of_output(dedup);
    int status = remember(dedup);
    return status ? status : complain_of(dedup, last);
}

static int report(const struct dedup *dedup, double seconds)
{
    const struct settings *s = dedup->settings;
    uint64_t nrepeated = dedup->nlines - dedup->nnew;
    struct seen_facts seen;
    if (s->count)
        printf("lines\t%ju\nnew\t%ju\nrepeated\t%ju\n", (uintmax_t)dedup->nlines,
               (uintmax_t)dedup->nnew, (uintmax_t)nrepeated);
    int status = s->quiet ? 0 : seen_facts(&dedup->seen, dedup->nnew, &seen);
    if (status || s->quiet)
        return status;
    double bits = seen.keys ? 8.0 * (double)seen.memory_nbytes / (double)seen.keys : 0;
    json_t *facts = json_pack(
        "{s:s, s:o*, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:f}", "verb",
        s->verb->name, "state", s->state ? json_path(dedup->seen.target.path) : NULL, "lines",
        (json_int_t)dedup->nlines, "new", (json_int_t)dedup->nnew, "repeated",
        (json_int_t)nrepeated, "skipped", (json_int_t)input_nskipped(dedup->input),
        "keys_in_filter", (json_int_t)seen.keys, "body_bytes", (json_int_t)seen.memory_nbytes,
        "bits_per_key", bits, "fpr_asked", seen.fpr, "fpr_now", seen.fpr_now, "expected_lost",
        seen.expected_losses, "doubtful", (json_int_t)seen.doubtful, "seconds", seconds);
    return summarize(
        s, facts,
        "%s, %s new, %s repeated; %s new lines may have been taken "
        "for old; %s%s%s%s, %s%s%s%s%s%s",
        counted(dedup->nlines, "line").s, grouped(dedup->nnew).s, grouped(nrepeated).s,
        expectation(seen.expected_losses).s, seen.doubtful ? grouped(seen.doubtful).s : "",
        seen.doubtful ? " old ones for new, since connections broke; " : "",
        scaled((double)seen.memory_nbytes, "B").s,
        bits_of(seen.capacity, seen.keys, seen.memory_nbytes).s, duration(seconds).s,
        speed(dedup->nlines, seconds, " lines/s").s, seen.over ? "; the rate is now " : "",
        seen.over ? share(seen.fpr_now).s : "", seen.over ? ", above the " : "",
        seen.over ? share(seen.fpr).s : "");
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

int verb_dedup(const struct settings *settings)
{
    struct dedup dedup = { .settings = settings, .seen = SEEN_NONE };
    double started = seconds_now();
    stop_on_signals();
    int status = refuse_overlap(settings);
    if (!status)
        status = seen_open(&dedup.seen, settings);
    if (!status)
        status = input_open(settings, "reading", !settings->count, &dedup.input);
    if (!status)
        status = dedup_all(&dedup);
    if (!status)
        status = report(&dedup, seconds_now() - started);
    input_close(dedup.input);
    seen_close(&dedup.seen);
    return status;
}
