/* window.c - tells the filter of dedup the time, from the clock or from the lines.
 *
 * The filter must be told the time only when it begins a new generation, once in a period, and
 * can take all keys in between in one call.  Only the filter knows when that is.  So all times
 * are rounded down to steps of a grain that divides the period.  Each period of the filter then
 * begins with a step, and rounding moves no time from one period to another. */
#include "window.h"

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

void window_open(struct window *window, const struct settings *settings,
                 const perhaps_filter *filter, const char *path)
{
    struct perhaps_stats stats;
    uint64_t period_ms;
    perhaps_stats_of(filter, &stats);
    bool forgets = kind_can(stats.plan.kind, PERHAPS_CAN_FORGET);
    planned_field(&stats.plan, "period_time", &period_ms);
    *window = (struct window){ .settings = settings,
                               .by_time = forgets && period_ms,
                               .grain_ms = choose_grain(period_ms) };
    if (request_window(settings) && !forgets)
        fail("--window: %s remembers all for ever: give another --state", path);
    if (path && request_window(settings) && !is_as_asked(settings, &stats.plan))
        fail_other(&stats.plan, path);
    if (settings->time_field && !window->by_time)
        fail("--time-field: %s does not forget by time: leave it out, or give another --state "
             "with --window",
             path);
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

/* Tells the filter a time, unless it is earlier than the latest one, which would change
 * nothing. */
static void tell(struct window *window, perhaps_filter *filter, uint64_t ms)
{
    if (ms <= window->now_ms)
        return;
    window->now_ms = ms;
    (void)perhaps_advance(filter, ms); /* cannot fail: it is a window by time, and writable */
}

/* Records with times up to the latest one belong to it, so they can be added in the same
 * call. */
size_t window_advance(struct window *window, perhaps_filter *filter, const struct block *block,
                      size_t at)
{
    size_t i = at;
    if (!window->by_time)
        return block->count - at;
    if (!window_reads(window)) {
        uint64_t ms = moment_now();
        tell(window, filter, ms - ms % window->grain_ms);
        return block->count - at;
    }
    tell(window, filter, block->number[at]);
    while (i < block->count && block->number[i] <= window->now_ms)
        i++;
    return i - at;
}
