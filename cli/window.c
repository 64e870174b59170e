/* window.c - tells the filter of dedup the time, from the clock or from the lines.
 *
 * The filter must be told the time only when it begins a new generation, once in a period, and
 * can take all keys in between in one call.  Only the filter knows when that is.  So all times
 * are rounded down to steps of a grain that divides the period.  Each period of the filter then
 * begins with a step, and rounding moves no time from one period to another.
 *
 * A window goes by the latest time that it was told.  So a time that is far ahead of the clock
 * is not told to it, and its line counts as of the latest one before; and a window whose time
 * is ahead all the same, since a clock was wrong, is told of, and brought back by --set-back.
 * No line is left out for its time: the clock may be the one that is wrong. */
#include "window.h"
#include <perhaps_plan.h>
#include <perhaps_window.h>

#include <stdio.h>

#include "input.h"
#include "messages.h"
#include "numbers.h"

/* Returns the largest divisor of the period that is a thousandth of it or less.  So there are
 * few steps, and the first period begins too early by at most a thousandth.  Returns 1 if such
 * a divisor would be less than a ten-thousandth. */
static uint64_t choose_grain(uint64_t period_ms)
{
    enum { STEPS = 1000, STEPS_MAX = 10000 };
    for (uint64_t steps = STEPS; steps <= STEPS_MAX; steps++)
        if (period_ms % steps == 0)
            return period_ms / steps;
    return 1;
}

/* Returns whether the state forgets as the options ask for: plans a window by the options, and
 * compares its fields with those of the state. */
static bool is_as_asked(const struct settings *s, const struct perhaps_plan *state)
{
    static const char *const names[] = { "generations", "period_keys", "period_time" };
    struct perhaps_options options = { .capacity = state->capacity,
                                       .fpr = state->fpr,
                                       .kind = state->kind,
                                       .base = state->base,
                                       .window = s->window };
    struct perhaps_plan plan;
    uint64_t generations, there, asked;
    planned_field(state, names[0], &generations);
    if (!options.window.generations)
        options.window.generations = (unsigned)generations;
    if (perhaps_plan_for(&options, &plan))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!planned_field(state, names[i], &there) ||
            !planned_field(&plan, names[i], &asked) || there != asked)
            return false;
    return true;
}

/* Ends the program because the state has another window, and tells which, in the form in which
 * one could ask for it. */
static _Noreturn void fail_other(const struct perhaps_plan *plan, const char *path)
{
    uint64_t generations, keys, ms;
    planned_field(plan, "generations", &generations);
    planned_field(plan, "period_keys", &keys);
    planned_field(plan, "period_time", &ms);
    struct text window = ms ? period(ms * (generations - 1))
                            : text_of("%ju-keys", (uintmax_t)(keys * (generations - 1)));
    fail("--window: %s is a window of %s in %ju generations: leave out --window, or give "
         "another --state",
         path, window.s, (uintmax_t)generations);
}

/* ---- A time that is ahead -------------------------------------------------------------- */

/* Returns whether the newest time of a window is ahead of the clock by more than a period: by
 * so much more than it promises it then remembers its lines. */
static bool is_ahead(const struct perhaps_stats *stats, uint64_t clock_ms)
{
    uint64_t period_ms;
    return stats->window.knows_time && planned_field(&stats->plan, "period_time", &period_ms) &&
           stats->window.newest > clock_ms && stats->window.newest - clock_ms > period_ms;
}

bool window_is_ahead(const struct perhaps_stats *stats, char text[WINDOW_TEXT_MAX])
{
    const uint64_t clock_ms = moment_now();
    if (!is_ahead(stats, clock_ms))
        return false;
    snprintf(text, WINDOW_TEXT_MAX,
             "its newest time is %s, and the clock shows %s: it forgets nothing until then; if "
             "the clock is right, bring it back by 'perhaps dedup --state' with --set-back now",
             moment(stats->window.newest).s, moment(clock_ms).s);
    return true;
}

bool window_warn(const struct settings *settings, const perhaps_filter *filter,
                 const char *path)
{
    struct perhaps_stats stats;
    char text[WINDOW_TEXT_MAX];
    if (!(perhaps_kind_of(filter)->abilities & PERHAPS_CAN_FORGET))
        return false;
    perhaps_stats_of(filter, &stats);
    if (!window_is_ahead(&stats, text))
        return false;
    if (!settings->json)
        complain("%s: %s", path, text);
    return true;
}

/* Brings back the time of a state, and tells what that did. */
static void set_back(const struct window *window, perhaps_filter *filter, const char *path)
{
    const struct settings *s = window->settings;
    const uint64_t asked = s->set_back_ms - s->set_back_ms % window->grain_ms;
    const struct text before = moment(window->now_ms), after = moment(asked);
    const bool ahead = window->now_ms > asked;
    int error = perhaps_set_back(filter, asked);
    if (error)
        fail("%s: --set-back: %s", path, why(error));
    if (!s->quiet && !s->json && ahead)
        complain("%s: its newest time is brought back from %s to %s", path, before.s, after.s);
    else if (!s->quiet && !s->json)
        complain("%s: --set-back: ignored: its newest time is not after %s", path, after.s);
}

/* Returns the number of a record in its file.  block_line() knows it only behind all stages. */
static uint64_t line_of(const struct window *window, const struct block *block, size_t at)
{
    return window->line + block_line(block, at) - block->line;
}

/* Says once that the time went back, and what follows from that. */
static void note_late(struct window *window, const struct block *block, size_t at, uint64_t ms)
{
    const struct settings *s = window->settings;
    const bool reads = window_reads(window);
    if (window->warned || window->now_ms - ms <= (reads ? window->time_ms : window->period_ms))
        return;
    window->warned = true;
    if (s->json)
        return;
    if (reads)
        complain("%s:%ju: its time is more than the window before the latest: it counts as of "
                 "the latest, and nothing is forgotten until later ones come",
                 input_name(s->inputs[block->source]), (uintmax_t)line_of(window, block, at));
    else
        complain("the clock went back, from %s to %s: nothing is forgotten until it is there "
                 "again",
                 moment(window->now_ms).s, moment(ms).s);
}

/* Counts a line whose time is refused, and says so once. */
static void note_ahead(struct window *window, const struct block *block, size_t at)
{
    const struct settings *s = window->settings;
    if (!window->nahead++ && !s->json)
        complain("%s:%ju: its time is further ahead of the clock than the window is long: it "
                 "counts as of the latest time before it, as do others like it",
                 input_name(s->inputs[block->source]), (uintmax_t)line_of(window, block, at));
}

/* ---- The filter ------------------------------------------------------------------------ */

void window_open(struct window *window, const struct settings *settings, perhaps_filter *filter,
                 const char *path)
{
    struct perhaps_stats stats;
    uint64_t period_ms;
    perhaps_stats_of(filter, &stats);
    bool forgets = kind_can(stats.plan.kind, PERHAPS_CAN_FORGET);
    planned_field(&stats.plan, "period_time", &period_ms);
    *window = (struct window){ .settings = settings,
                               .by_time = forgets && period_ms,
                               .grain_ms = choose_grain(period_ms),
                               .period_ms = period_ms,
                               .time_ms = stats.window.time,
                               .now_ms = stats.window.newest };
    if (request_window(settings) && !forgets)
        fail("--window: %s remembers all for ever: give another --state", path);
    if (path && request_window(settings) && !is_as_asked(settings, &stats.plan))
        fail_other(&stats.plan, path);
    if (settings->time_field && !window->by_time)
        fail("--time-field: %s does not forget by time: leave it out, or give another --state "
             "with --window",
             path);
    if (settings->set_back_ms && !window->by_time)
        fail("--set-back: %s does not forget by time: leave it out",
             path ? path : settings->state);
    if (settings->set_back_ms && !path)
        complain("%s: --set-back: ignored: it was not there before", settings->state);
    if (settings->set_back_ms && path) {
        set_back(window, filter, path);
        perhaps_stats_of(filter, &stats);
        window->now_ms = stats.window.newest;
    }
    if (path)
        window->warned = window_warn(settings, filter, path);
}

bool window_reads(const struct window *window)
{
    return window->by_time && window->settings->time_field;
}

/* Reads the time of a line.  Returns NULL, or what the line lacks. */
static const char *read_time(const struct key_form *form, struct perhaps_key line, uint64_t *ms)
{
    if (!line_narrow(form, &line))
        return "has no field with a time (--time-field)";
    if (!read_moment(line.bytes, line.nbytes, ms))
        return "has no time in its --time-field: expected " MOMENT_EXPECTED;
    return NULL;
}

/* Reads the times of all records, and skips those without one.  Returns false if there is no
 * memory. */
static bool read_times(const struct window *window, struct block *block)
{
    struct key_form form = window->settings->form;
    uint64_t field = window->settings->time_field;
    size_t kept = 0;
    form.fields = (struct fields){ .count = 1, .range = { { field, field } } };
    for (size_t i = 0; i < block->count; i++) {
        uint64_t ms;
        const char *lacks = read_time(&form, block->record[i], &ms);
        if (!lacks) {
            block_keep(block, kept, i);
            block->number[kept++] = ms - ms % window->grain_ms;
        } else if (!block_skip(block, i, lacks)) {
            return false;
        }
    }
    block->count = block->ndone = kept;
    return true;
}

bool window_read_times(void *context, struct block *block)
{
    if (block_make_numbers(block) && read_times(context, block))
        return true;
    block->count = block->ndone = 0;
    return block_met(block, PERHAPS_ERR_MEMORY);
}

void window_enter(struct window *window, const struct block *block)
{
    if (block->source != window->source)
        window->nlines = 0;
    window->source = block->source;
    window->line = window->nlines + 1;
    window->nlines += block->count + block->nskipped;
}

/* Tells the filter the time of a record, unless it is earlier than the latest one, which would
 * change nothing. */
static void tell(struct window *window, perhaps_filter *filter, const struct block *block,
                 size_t at, uint64_t ms)
{
    if (ms < window->now_ms)
        note_late(window, block, at, ms);
    if (ms <= window->now_ms)
        return;
    /* It can fail only where the next add fails, too: it is a window by time, and writable. */
    if (perhaps_advance_unless_ahead(filter, ms, moment_now()) == PERHAPS_ERR_AHEAD)
        note_ahead(window, block, at);
    else
        window->now_ms = ms;
}

/* Records with times up to the latest one belong to it, so they can be added in the same
 * call; and so does the first one, if its time is refused. */
size_t window_advance(struct window *window, perhaps_filter *filter, const struct block *block,
                      size_t at)
{
    size_t i = at + 1;
    if (!window->by_time)
        return block->count - at;
    if (!window_reads(window)) {
        uint64_t ms = moment_now();
        tell(window, filter, block, at, ms - ms % window->grain_ms);
        return block->count - at;
    }
    tell(window, filter, block, at, block->number[at]);
    for (; i < block->count && block->number[i] <= window->now_ms; i++)
        note_late(window, block, i, block->number[i]);
    return i - at;
}
