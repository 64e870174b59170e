/* A filter need be told the time only when it begins a new generation, once in a period, and
 * then adds what follows in one call.  When that is only the filter knows; but if all times are
 * cut to steps of a grain that divides the period, its periods begin with a step, and whether a
 * time is before or after such a moment is as it was. */
#include "window.h"

#include "input.h"
#include "messages.h"
#include "numbers.h"

/* The largest divisor of the period that is below a thousandth of it: steps are few, and what
 * is too early at the beginning of the first period is little. */
static uint64_t choose_grain(uint64_t period_ms)
{
    enum { STEPS = 1000, STEPS_MAX = 10000 };
    for (uint64_t steps = STEPS; steps <= STEPS_MAX; steps++)
        if (period_ms % steps == 0)
            return period_ms / steps;
    return 1;
}

/* The options of the command line as a plan, to be compared with the state's. */
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

/* What the state's window is, in the units in which it can be asked for. */
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

/* Returns NULL, or what the line lacks. */
static const char *read_time(const struct key_form *form, struct perhaps_key line, uint64_t *ms)
{
    if (!line_narrow(form, &line))
        return "has no field with a time (--time-field)";
    if (!read_moment(line.bytes, line.nbytes, ms))
        return "has no time in its --time-field: expected " MOMENT_EXPECTED;
    return NULL;
}

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

/* The filter takes no notice of a time before the latest. */
static void tell(struct window *window, perhaps_filter *filter, uint64_t ms)
{
    if (ms <= window->now_ms)
        return;
    window->now_ms = ms;
    (void)perhaps_advance(filter, ms); /* cannot fail: it is a window by time, and writable */
}

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
