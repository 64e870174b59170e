/* window.c - a filter that forgets: it consists of generations, which are filters of any other
 * kind, and drops the oldest as a whole.
 *
 *   parts = G generations, the oldest first; each is planned for 1/(G-1) of the window's keys,
 *           with an fpr such that G of them together stay below that of the window
 *   body  = one line: whether the time is known, and when the newest generation began
 *
 *    oldest                     newest
 *   [xxxxxxx][xxxxxxx][xxxxxxx][xx     ]   keys are added to the newest; "perhaps" if any
 *                                          generation says so
 *   [xxxxxxx][xxxxxxx][xxxxxxx][       ]   rotated: the oldest is emptied to be the newest
 *
 * With a period of W/(G-1) between rotations, a key is remembered for at least W (if it came
 * just before a rotation, it is dropped G-1 periods later) and for at most W + W/(G-1).
 *
 * Limits: 2 to 64 generations; no removals; a window cannot be shared.
 * Invariant: there are always G generations. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../base/bytes.h"
#include "../../base/sizing.h"
#include "../../filter/counters.h"
#include "../kinds.h"
#include "parts.h"

static const char *const field_names[] = { "generations", "base", "period_keys", "period_time",
                                           NULL };
enum { GENERATIONS, BASE, PERIOD_KEYS, PERIOD_TIME }; /* BASE: a kind's id; periods 0: none */
enum { GENERATIONS_USUAL = 5, GENERATIONS_MAX = PARTS_MOST };

/* What the body holds, for windows that go by time. */
struct clock {
    uint64_t is_set; /* perhaps_advance() was called */
    uint64_t began;  /* when the newest generation began, in the caller's units */
};

static perhaps_filter *newest(const perhaps_filter *f)
{
    return f->parts->part[f->parts->count - 1];
}

static struct clock *clock_of(const perhaps_filter *f)
{
    return (struct clock *)(void *)f->body.bytes;
}

/* ---- Plan ------------------------------------------------------------------------------ */

/* Checks whether a window can have generations of this kind. */
static bool may_be_base(const struct filter_kind *kind)
{
    return kind && kind->add && !kind->exact && kind != &kind_window;
}

static uint64_t divide_up(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

/* Returns the fpr of a generation: with it, the chance that any of G errs is the fpr of g. */
static double generation_fpr(const struct geometry *g)
{
    return -expm1(log1p(-g->fpr) / (double)g->field[GENERATIONS]);
}

/* Sets *generation to the geometry of a generation: for the keys that it gets before the next
 * rotation. */
static int plan_generation(const struct geometry *g, const struct perhaps_options *options,
                           struct geometry *generation)
{
    uint64_t keys = divide_up(g->capacity, g->field[GENERATIONS] - 1);
    if (keys < g->field[PERIOD_KEYS])
        keys = g->field[PERIOD_KEYS];
    return parts_plan(g->base, keys, generation_fpr(g), options, generation);
}

/* A window that goes by time cannot know how many keys come in a period, so its usual base is
 * chain, which grows. */
static int window_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    const struct perhaps_window_options *w = &options->window;
    struct geometry own = { 0 }, *generation = g->first ? g->first : &own;
    uint64_t generations = w->generations ? w->generations : GENERATIONS_USUAL;
    if (!g->base)
        g->base = w->time ? &kind_chain : &kind_blocked;
    if (generations < 2 || generations > GENERATIONS_MAX || !may_be_base(g->base) ||
        (w->time && w->keys))
        return PERHAPS_ERR_ARGUMENT;
    g->field[GENERATIONS] = generations;
    g->field[BASE] = g->base->id;
    g->field[PERIOD_KEYS] = divide_up(w->keys, generations - 1);
    g->field[PERIOD_TIME] = divide_up(w->time, generations - 1);
    int error = plan_generation(g, options, generation);
    g->extra_nbytes = generations * (generation->body_nbytes + generation->extra_nbytes);
    snprintf(why, WHY_NBYTES,
             "forgets the oldest keys: %u generations of '%s', all are asked, the oldest is "
             "dropped",
             (unsigned)generations, g->base->about.name);
    return error;
}

static int window_set_geometry(struct geometry *g)
{
    if (g->field[GENERATIONS] < 2 || g->field[GENERATIONS] > GENERATIONS_MAX ||
        g->field[BASE] > UINT32_MAX || !may_be_base(g->base))
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = LINE_NBYTES;
    g->key_limit = KEYS_UNLIMITED;
    if (g->base->about.abilities & PERHAPS_CAN_GROW)
        g->fpr_until = UINT64_MAX;
    return 0;
}

static int begin(perhaps_filter *f, const struct perhaps_options *options)
{
    struct geometry own = { 0 }, *generation = f->body.geometry.first;
    int error = 0;
    if (!generation) {
        generation = &own;
        error = plan_generation(&f->body.geometry, options, generation);
    }
    if (!error)
        error = parts_append(f, f->body.geometry.base, generation, options);
    while (!error && f->parts->count < f->body.geometry.field[GENERATIONS])
        error = parts_append_like(f, f->parts->part[0]);
    return error;
}

static int window_attach(perhaps_filter *f)
{
    bool complete = f->parts->count == f->body.geometry.field[GENERATIONS];
    return complete && parts_attach(f, f->body.geometry.base) ? 0 : PERHAPS_ERR_DAMAGED;
}

static void window_clear(perhaps_filter *f)
{
    for (size_t i = 0; i < f->parts->count; i++)
        perhaps_clear(f->parts->part[i]);
    *clock_of(f) = (struct clock){ 0 };
}

/* Takes the keys for evenly spread over G-1 generations, and all G for equally full. */
static double window_predict(const struct geometry *g, double keys)
{
    struct perhaps_options options = { .preference = PERHAPS_PREFER_BALANCED };
    struct geometry generation = { 0 };
    if (plan_generation(g, &options, &generation))
        return g->fpr;
    double here = fmin(keys / (double)(g->field[GENERATIONS] - 1), (double)generation.capacity);
    double none = log1p(-g->base->predict(&generation, here));
    return -expm1((double)g->field[GENERATIONS] * none);
}

/* ---- Operations ------------------------------------------------------------------------ */

static size_t window_contains(const perhaps_filter *f, const struct keyhash *keys,
                              const struct keyhash *ahead, size_t n, bool *answer)
{
    return parts_contain(f, 0, f->parts->count, keys, ahead, n, answer);
}

static size_t contains_newer(const perhaps_filter *f, size_t gone, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer)
{
    return parts_contain(f, gone, f->parts->count, keys, ahead, n, answer);
}

/* Empties the oldest generation, which becomes the newest; the others grow older by one. */
static void rotate(perhaps_filter *f)
{
    perhaps_filter **part = f->parts->part, *oldest = part[0];
    size_t last = f->parts->count - 1;
    counter_take(f, &f->counters->keys, oldest->counters->keys);
    memmove(part, part + 1, last * sizeof *part);
    part[last] = oldest;
    perhaps_clear(oldest);
}

/* Returns how many periods have passed since the newest generation began; 0 if the window does
 * not go by time, or knows none yet. */
static uint64_t periods_passed(const perhaps_filter *f, uint64_t now)
{
    const struct clock *clock = clock_of(f);
    uint64_t period = f->body.geometry.field[PERIOD_TIME];
    return period && clock->is_set && now > clock->began ? (now - clock->began) / period : 0;
}

/* When more periods have passed than there are generations, all of these are gone. */
static size_t gone(const perhaps_filter *f, uint64_t now)
{
    uint64_t periods = periods_passed(f, now);
    return periods < f->parts->count ? (size_t)periods : f->parts->count;
}

static int advance(perhaps_filter *f, uint64_t now)
{
    struct clock *clock = clock_of(f);
    if (!f->body.geometry.field[PERIOD_TIME])
        return PERHAPS_ERR_UNSUPPORTED;
    if (!clock->is_set)
        *clock = (struct clock){ .is_set = 1, .began = now };
    for (size_t n = gone(f, now); n > 0; n--)
        rotate(f);
    clock->began += periods_passed(f, now) * f->body.geometry.field[PERIOD_TIME];
    return 0;
}

/* What was added while the time was ahead lies in the newest generation, which is the last to
 * be forgotten. */
static int set_back(perhaps_filter *f, uint64_t now)
{
    struct clock *clock = clock_of(f);
    if (!f->body.geometry.field[PERIOD_TIME])
        return PERHAPS_ERR_UNSUPPORTED;
    if (clock->is_set && now < clock->began)
        clock->began = now;
    return 0;
}

/* The fields of a file may be so large that the product is not below 2^64. */
static uint64_t time_remembered(const perhaps_filter *f)
{
    uint64_t period = f->body.geometry.field[PERIOD_TIME], periods = f->parts->count - 1;
    return period > UINT64_MAX / periods ? UINT64_MAX : period * periods;
}

static bool newest_began(const perhaps_filter *f, uint64_t *began)
{
    const struct clock *clock = clock_of(f);
    bool known = f->body.geometry.field[PERIOD_TIME] && clock->is_set;
    *began = known ? clock->began : 0;
    return known;
}

/* Returns how many of n keys may go to the newest generation before the next rotation; rotates
 * first if it is time.  Returns at least 1 for n > 0; the generation may refuse that key. */
static size_t room(perhaps_filter *f, size_t n)
{
    uint64_t period = f->body.geometry.field[PERIOD_KEYS],
             limit = newest(f)->body.geometry.key_limit;
    if (!period)
        return n;
    /* keys that are "perhaps there" are not counted, so the key limit may be less */
    if (period > limit && limit > 0)
        period = limit;
    if (newest(f)->counters->keys >= period)
        rotate(f);
    uint64_t left = period - newest(f)->counters->keys;
    return left < n ? (size_t)left : n;
}

/* Returns whether a generation that has no room for a key is used up, so that the next one may
 * begin.  It may be before it has counted as many keys as it is for: keys that are "perhaps
 * there" are not counted, and those that are left set more bits than others.  A window by time
 * goes by that alone. */
static bool is_used_up(const perhaps_filter *f)
{
    return f->body.geometry.field[PERIOD_KEYS] && newest(f)->counters->keys;
}

/* Adds keys to the newest generation.  With 'unless_present', leaves out those that an older
 * generation has.  Otherwise these are added again: they are remembered for longer.  Copies are
 * never stored, since nothing is removed from a window. */
static int window_add(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done)
{
    int error = 0;
    for (*done = 0; *done < n && !error;) {
        size_t at = *done, added, some = room(f, n - at), found = 0;
        if (unless_present)
            found = parts_contain(f, 0, f->parts->count - 1, keys + at, ahead + at, some,
                                  answer + at);
        error = found ? parts_add_missing(newest(f), keys + at, some, true, answer + at, &added)
                      : filter_add_hashed(newest(f), keys + at, ahead + at, some, true,
                                          answer + at, &added);
        *done += added;
        if (error == PERHAPS_ERR_FULL && is_used_up(f)) {
            rotate(f);
            error = 0;
        }
    }
    return error;
}

static const struct composite composite = {
    .base_field = BASE,
    .begin = begin,
    .attach = window_attach,
};

static const struct forgets forgets = {
    .rotate = rotate,
    .advance = advance,
    .set_back = set_back,
    .time = time_remembered,
    .newest = newest_began,
    .gone = gone,
    .contains_newer = contains_newer,
};

const struct filter_kind kind_window = {
    .about = { .name = "window",
               .summary = "generations of another kind: forgets the oldest keys",
               .abilities = PERHAPS_CAN_FORGET },
    .id = 7,
    .composite = &composite,
    .forgets = &forgets,
    .field_names = field_names,
    .plan = window_plan,
    .set_geometry = window_set_geometry,
    .clear = window_clear,
    .predict = window_predict,
    .measure = parts_measure,
    .prefetch = parts_prefetch,
    .contains = window_contains,
    .add = window_add,
};
