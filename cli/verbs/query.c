/* query.c - the verbs query and count: they read a filter, and print lines.
 *
 * Any number of threads ask the filter about blocks of keys and make the output of the blocks;
 * one stage in order prints it. */
#include <ctype.h>
#include <perhaps_build.h>
#include <perhaps_file.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../base/stop.h"
#include "../filter/agree.h"
#include "../filter/target.h"
#include "../filter/window.h"
#include "../input/input.h"
#include "../input/output.h"

/* One run.  The stages read it; only print_block(), which is in order, counts and writes. */
struct query {
    const struct settings *settings;
    bool (*ask)(void *query,
                struct block *block); /* the stage: ask_block() or count_copies() */
    struct target *target;
    struct input *input;
    struct output output;
    uint64_t nselected; /* keys that query prints; for count those that are there */
    uint64_t nunknown;  /* keys whose servers did not answer */
    bool values;        /* --label prints the values of the keys */
};

/* So many keys are tried; if so few have letters, it says nothing. */
enum { TRIED_MOST = 200, TRIED_LEAST = 20, KEY_NBYTES_MOST = 1024 };

/* Asks for keys whose letters change(), and returns how many there are, and how many of these
 * are present. */
static size_t count_changed(const struct target *target, const struct block *block,
                            int (*change)(int), size_t *npresent)
{
    char changed[KEY_NBYTES_MOST];
    size_t ntried = 0;
    *npresent = 0;
    for (size_t i = 0; i < block->count && ntried < TRIED_MOST; i++) {
        const struct perhaps_key *key = &block->key[i];
        const unsigned char *bytes = key->bytes;
        bool differs = false;
        for (size_t at = 0; at < key->nbytes && key->nbytes <= sizeof changed; at++) {
            changed[at] = (char)change(bytes[at]);
            differs |= changed[at] != (char)bytes[at];
        }
        if (!differs)
            continue;
        ntried++;
        *npresent += perhaps_contains(target->filter, changed, key->nbytes);
    }
    return ntried;
}

/* Looks, when a filter has none of the keys of a block, whether it has most of them with
 * small or with capital letters: somebody wrote hashes with a to f, and asks for them with A
 * to F. */
static void look_for_letters(const struct target *target, const struct block *block)
{
    const struct {
        int (*change)(int);
        const char *letters;
    } ways[] = { { toupper, "capital" }, { tolower, "small" } };
    const struct settings *settings = target->settings;
    if (!target->filter || settings->quiet || settings->json)
        return;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        size_t npresent, ntried = count_changed(target, block, ways[i].change, &npresent);
        if (ntried >= TRIED_LEAST && npresent > ntried / 2)
            complain(
                "%s: has none of the first %s, but has them with %s letters: write them so, "
                "or make a filter with --ignore-case",
                target->path, counted(block->count, "key").s, ways[i].letters);
    }
}

/* Looks up the values of the keys of a block, and makes the output for --label: each line
 * behind its value or "no". */
static bool label_values(const struct query *query, struct block *block)
{
    struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    uint32_t *value = room_for(&block->room[FOR_VERB], block->count, sizeof *value);
    int error =
        value ? perhaps_lookup_many(query->target->filter, &keys, value, block_bools(block))
              : PERHAPS_ERR_MEMORY;
    if (!error && !output_values(block, value))
        error = PERHAPS_ERR_MEMORY;
    for (size_t i = 0; !error && i < block->count; i++)
        block->nselected += block->answer[i];
    return block_met(block, error);
}

/* A stage, with a struct query: asks about the keys of a block and makes its output. */
static bool ask_block(void *context, struct block *block)
{
    struct query *query = context;
    const struct settings *s = query->settings;
    size_t npresent = 0;
    block->nselected = 0;
    if (query->values)
        return label_values(query, block);
    bool ok = target_ask(query->target, block, &npresent);
    if (!ok && remote_blames_key(block))
        return false;
    if (!ok)
        block->ndone = block->count;
    if (ok && !npresent && block->ticket == 0)
        look_for_letters(query->target, block);
    block->nselected = s->invert ? block->count - npresent - block->nunknown : npresent;
    if (s->any || s->count)
        return ok;
    if (s->label)
        return block_met(block, output_labels(block) ? 0 : PERHAPS_ERR_MEMORY) && ok;
    output_keep(block, s->invert ? PERHAPS_ANSWER_NO : PERHAPS_ANSWER_PERHAPS);
    return ok;
}

/* Counts the keys of a block up to the first error. */
static int count_each(const perhaps_filter *filter, struct block *block)
{
    const struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    block->ndone = block->count;
    if (!perhaps_count_many(filter, &keys, block->number))
        return 0;
    for (block->ndone = 0; block->ndone < block->count; block->ndone++) {
        const struct perhaps_key *key = &block->key[block->ndone];
        int error =
            perhaps_count(filter, key->bytes, key->nbytes, &block->number[block->ndone]);
        if (error)
            return error;
    }
    return 0;
}

/* A stage, with a struct query: counts the keys of a block, and makes its output.  After an
 * error the output has the keys before it. */
static bool count_copies(void *context, struct block *block)
{
    const struct query *query = context;
    int error = PERHAPS_ERR_MEMORY;
    block->ndone = 0;
    if (block_make_numbers(block))
        error = count_each(query->target->filter, block);
    for (size_t i = 0; i < block->ndone; i++)
        block->nselected += block->number[i] > 0;
    if (!output_numbers(block))
        error = PERHAPS_ERR_MEMORY;
    return block_met(block, error) && !block->problem;
}

/* A stage, with a struct query: prints the output of a block.  Returns false if --any needs no
 * more. */
static bool print_block(void *context, struct block *block)
{
    struct query *query = context;
    query->nselected += block->nselected;
    query->nunknown += block->nunknown;
    bool enough = query->settings->any && query->nselected;
    return output_write(&query->output, block) && !enough;
}

/* Returns how many of the keys that were asked are perhaps there. */
static uint64_t npresent_of(const struct query *query)
{
    return query->settings->invert
               ? input_nkeys(query->input) - query->nselected - query->nunknown
               : query->nselected;
}

/* Writes how many keys are unknown, for the end of a message. */
static void tell_unknown(const struct query *query, const char *rest, char *outcome,
                         size_t nbytes)
{
    snprintf(outcome, nbytes, "; %s of %s keys are unknown%s", grouped(query->nunknown).s,
             grouped(input_nkeys(query->input)).s, rest);
}

/* Ends the program if some answers are unknown, after all others were printed. */
static void settle_unknown(const struct query *query)
{
    char outcome[256];
    if (!query->nunknown || (query->settings->any && query->nselected))
        return;
    tell_unknown(query, "", outcome, sizeof outcome);
    fail("%s: %s%s", query->target->path, remote_problem(query->target->remote), outcome);
}

/* Ends the program if something went wrong.  With --any a selected key is the answer, whatever
 * happened behind it.  An interrupted run says how far it came. */
static void settle_query(const struct query *query, const struct block *last)
{
    char outcome[2048] = "";
    if (stop_signal())
        snprintf(outcome, sizeof outcome, "; %s keys were asked, %s are perhaps in %s",
                 grouped(input_nkeys(query->input)).s, grouped(npresent_of(query)).s,
                 query->target->path);
    else if (query->nunknown)
        tell_unknown(query, ", and those behind them were not asked", outcome, sizeof outcome);
    output_settle(&query->output, "");
    if (!query->settings->any || !query->nselected)
        target_settle(query->target, query->input, last, outcome);
    if (query->settings->check)
        target_settle_damage(query->target);
}

/* Returns how many keys that are not in the filter were taken for present, in expectation,
 * if so many were found absent. */
static double expected_missing(const struct query *query)
{
    struct perhaps_stats stats;
    target_stats(query->target, &stats, NULL, "");
    return stats.fpr_now < 1 ? (double)query->nselected * (1 / (1 - stats.fpr_now) - 1) : 0;
}

/* Who prints what is not in a filter wants all of it. */
static void tell_missing(const struct query *query)
{
    const struct settings *s = query->settings;
    const double few = 0.1;
    if (s->any || s->quiet || s->json || !s->invert)
        return;
    const double missing = expected_missing(query), most = (double)npresent_of(query);
    if (missing > few && most > 0)
        complain("%s certainly not there; %s more that are not there either may be missing, at "
                 "most %s: to lose none, see dedup --against",
                 counted(query->nselected, "key").s,
                 expectation(missing < most ? missing : most).s, grouped((uint64_t)most).s);
}

/* Prints what -c and --json ask for; otherwise nothing, as grep, since the output goes into
 * pipes; but what -v leaves out by chance is told. */
static void report_query(const struct query *query)
{
    const struct settings *s = query->settings;
    if (s->count)
        printf("%ju\n", (uintmax_t)query->nselected);
    tell_missing(query);
    if (!s->json)
        return;
    uint64_t nkeys = input_nkeys(query->input), npresent = npresent_of(query);
    json_t *facts = json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:I, s:o*}", "filter", json_path(query->target->path),
        "keys", (json_int_t)nkeys, "skipped", (json_int_t)input_nskipped(query->input),
        "perhaps", (json_int_t)npresent, "no", (json_int_t)(nkeys - npresent - query->nunknown),
        "unknown", (json_int_t)query->nunknown, "expected_missing",
        s->invert ? json_real(expected_missing(query)) : NULL);
    summarize(s, facts, "%s", "");
}

/* Ends the program if it would print into a file that it reads, which would then grow for
 * ever. */
static void refuse_loop(const struct settings *settings)
{
    struct stat out;
    if (!settings->any && !settings->count && fstat(STDOUT_FILENO, &out) == 0)
        input_refuse(settings, &out, "standard output");
}

/* Ends the program if the filter cannot count, before any line is read. */
static void expect_counts(const struct target *target)
{
    uint64_t count;
    const int error = perhaps_count(target->filter, "", 0, &count);
    if (error == PERHAPS_ERR_SET)
        fail("%s: was made without --count, and stores each key once: build it anew with that",
             target->path);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s: its kind cannot count: build it with --count", target->path);
}

static bool stores_values(const struct target *target)
{
    uint32_t value;
    return target->filter &&
           perhaps_lookup(target->filter, "", 0, &value) != PERHAPS_ERR_UNSUPPORTED;
}

static bool is_far(const struct target *target)
{
    return target->web || (target->filter && perhaps_is_cold(target->filter));
}

/* Opens the filter, takes the keys through the stages, and reports. */
static void run_query(struct query *query)
{
    const struct settings *s = query->settings;
    const struct stage stages[] = { { query->ask, query, .in_order = false },
                                    { print_block, query, .in_order = true } };
    refuse_loop(s);
    query->target = target_open(s, s->filter);
    if (query->ask == count_copies)
        expect_counts(query->target);
    if (query->target->filter)
        window_warn(s, query->target->filter, query->target->path);
    query->values = s->label && stores_values(query->target);
    query->input = is_far(query->target) ? input_open_far(s, "asking", !s->count)
                                         : input_open(s, "asking", !s->count);
    target_expect_keys(query->target, query->input);
    agree_on_keys(query->target, query->input);
    settle_query(query, input_run(query->input, stages, 2));
    report_query(query);
    settle_unknown(query);
    input_close(query->input);
}

/* Exits as grep does: 0 if a key was selected, else 1. */
void verb_query(const struct settings *settings)
{
    struct query query = { .settings = settings, .ask = ask_block };
    run_query(&query);
    leave(query.nselected ? STATUS_YES : STATUS_NO);
}

void verb_count(const struct settings *settings)
{
    struct query query = { .settings = settings, .ask = count_copies };
    run_query(&query);
}
