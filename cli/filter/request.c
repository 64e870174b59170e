/* request.c - turns the options of the command line into what the library takes.
 *
 * A kind is chosen by what it must be able to do, so that the verbs need not know the kinds.
 * Only --count and --integers name one: see counts_on and KIND_OF_INTEGERS. */
#include "request.h"

#include <math.h>
#include <perhaps_plan.h>
#include <stdio.h>
#include <string.h>

#include "../base/messages.h"
#include "../base/numbers.h"

/* ---- What the library knows -------------------------------------------------------- */

bool kind_can(const char *name, unsigned abilities)
{
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (strcmp(kind->name, name) == 0)
            return !(abilities & ~kind->abilities);
    return false;
}

bool planned_field(const struct perhaps_plan *plan, const char *name, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < plan->nfields; i++)
        if (strcmp(plan->field_name[i], name) == 0) {
            *value = plan->field[i];
            return true;
        }
    return false;
}

bool counts_all(const perhaps_filter *filter)
{
    return perhaps_abilities_of(filter) & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_BUILD);
}

bool can_store_copies(const struct perhaps_plan *plan)
{
    const char *kind = plan->base ? plan->base : plan->kind;
    return kind_can(kind, PERHAPS_CAN_REMOVE) && strcmp(kind, KIND_OF_INTEGERS) != 0 &&
           !kind_can(plan->kind, PERHAPS_CAN_FORGET);
}

/* Returns the probability that a new key is found to be new when 'keys' keys have come.  It is
 * never 0, since keys_that_came() divides by it. */
static double predicted_miss(const perhaps_filter *filter, double keys)
{
    const double least = 1e-9;
    return fmax(1 - perhaps_predict_fpr(filter, (uint64_t)keys), least);
}

/* Returns how many different keys have come, in expectation, if 'keys' of them set a bit.
 * After 'came' keys the next one sets a bit with the probability 1 - fpr(came), so
 *
 *     d came / d keys = 1 / (1 - fpr(came)),
 *
 * which is solved by the midpoint rule.  At low rates 8 steps will do.  Fewer are better: a
 * chain plans its layers again for each fpr. */
static double keys_that_came(const perhaps_filter *filter, uint64_t keys)
{
    const double mild = 0.9;
    const unsigned steps = predicted_miss(filter, (double)keys) > mild ? 8 : 64;
    double came = 0, step = (double)keys / steps;
    for (unsigned i = 0; i < steps && keys > 0; i++) {
        double half = came + step / 2 / predicted_miss(filter, came);
        came += step / predicted_miss(filter, half);
    }
    return came;
}

double expected_unseen(const perhaps_filter *filter, uint64_t before, uint64_t nnew)
{
    double came = keys_that_came(filter, before + nnew) - keys_that_came(filter, before);
    return fmax(came - (double)nnew, 0);
}

struct text bits_of(uint64_t capacity, uint64_t keys, uint64_t memory_nbytes)
{
    if (!keys || keys < capacity / 2)
        return (struct text){ "" };
    return text_of(", %s", scaled(8.0 * (double)memory_nbytes / (double)keys, " bits a key").s);
}

/* Returns whether the filter takes keys up to its capacity, and then no more. */
static bool has_limit(const struct perhaps_plan *plan)
{
    bool grows = plan->fpr_until > plan->capacity || kind_can(plan->kind, PERHAPS_CAN_FORGET);
    return !grows && !kind_can(plan->kind, PERHAPS_CAN_BUILD);
}

bool is_full(const struct perhaps_plan *plan, uint64_t keys)
{
    const uint64_t share = 200;
    return has_limit(plan) && strcmp(plan->kind, KIND_OF_INTEGERS) != 0 &&
           keys + plan->capacity / share >= plan->capacity;
}

struct text room_of(const struct perhaps_plan *plan, uint64_t keys)
{
    if (!has_limit(plan) || keys >= plan->capacity)
        return (struct text){ "" };
    return text_of(", room for %s more", counted(plan->capacity - keys, "key").s);
}

bool is_over(const struct perhaps_stats *stats)
{
    return stats->keys > stats->plan.fpr_until && stats->fpr_now > stats->plan.fpr;
}

struct text over_of(bool over, double fpr_now, double fpr)
{
    return over ? text_of("; the rate is now %s, above the %s", share(fpr_now).s, share(fpr).s)
                : (struct text){ "" };
}

/* ---- What is asked ----------------------------------------------------------------- */

/* The kind that takes any number of copies of a key, and can remove keys, and the one that
 * makes layers of it.  The other kinds that count refuse the ninth copy. */
static const char counts_on[] = "counting", layers[] = "chain";

bool request_window(const struct settings *settings)
{
    return settings->window.keys || settings->window.time;
}

bool request_is_static(const struct settings *settings)
{
    bool named = settings->kind.name && kind_can(settings->kind.name, PERHAPS_CAN_BUILD);
    return settings->verb->bit & (BUILD | PLAN) && !settings->integers.high &&
           (settings->fixed || named);
}

bool request_changes_later(const struct settings *s)
{
    return s->grow || s->removable || s->counts || s->integers.high ||
           (s->kind.name && (kind_can(s->kind.name, PERHAPS_CAN_GROW) ||
                             kind_can(s->kind.name, PERHAPS_CAN_FORGET)));
}

bool request_stores_copies(const struct settings *s)
{
    return s->removable && !s->counts && !s->grow && !s->integers.high &&
           !(s->kind.name && (kind_can(s->kind.name, PERHAPS_CAN_GROW) ||
                              kind_can(s->kind.name, PERHAPS_CAN_FORGET)));
}

bool request_may_grow(const struct settings *settings)
{
    return !settings->integers.high &&
           (!settings->kind.name || kind_can(settings->kind.name, PERHAPS_CAN_GROW));
}

/* A window need not be a kind that grows, since its generations grow.  If --kind names a kind
 * that forgets, and nothing says when, it remembers as many keys as it has room for. */
struct perhaps_options request_options(const struct settings *settings, struct size size)
{
    const bool window = request_window(settings);
    struct perhaps_window_options forgets = settings->window;
    bool groups = settings->kind.group_nbytes;
    bool against = settings->against || settings->kind.others;
    const bool counts = settings->counts && !settings->kind.name;
    const bool integers = settings->integers.high;
    unsigned needs = (settings->removable ? PERHAPS_CAN_REMOVE : 0U) |
                     (settings->counts ? PERHAPS_CAN_COUNT : 0U) |
                     (request_is_static(settings) ? PERHAPS_CAN_BUILD : 0U) |
                     (window ? PERHAPS_CAN_FORGET : 0U) |
                     (size.grows && !window ? PERHAPS_CAN_GROW : 0U);
    if (!window && settings->kind.name && kind_can(settings->kind.name, PERHAPS_CAN_FORGET))
        forgets.keys = size.capacity;
    return (struct perhaps_options){
        .capacity = size.capacity,
        .fpr = settings->fpr > 0              ? settings->fpr
               : integers                     ? 0
               : settings->verb->bit == DEDUP ? FPR_DEDUP
               : groups                       ? FPR_GROUPS
               : against                      ? FPR_AGAINST
                                              : FPR,
        .needs = needs,
        .kind = integers            ? KIND_OF_INTEGERS
                : !counts || window ? settings->kind.name
                : size.grows        ? layers
                                    : counts_on,
        .base = counts ? counts_on : settings->kind.base,
        .chain.factor = (unsigned)settings->kind.factor,
        .elastic.fpr_until = settings->kind.until,
        .against.others = settings->kind.others,
        .against.group_nbytes = (unsigned)settings->kind.group_nbytes,
        .ribbon.value_bits = (unsigned)settings->kind.value_bits,
        .window = forgets,
        .preference = settings->preference,
        .blocked.together = settings->kind.together,
        .bitmap = settings->integers,
    };
}

/* Ends the program because no filter reaches the rate.  Names one that can be reached. */
static _Noreturn void fail_rate(const struct settings *settings,
                                const struct perhaps_options *options, const char *name)
{
    struct perhaps_options higher = *options;
    struct perhaps_plan plan;
    do
        higher.fpr *= 2;
    while (higher.fpr < 1 && perhaps_plan_for(&higher, &plan) == PERHAPS_ERR_LIMIT);
    const struct text rate = text_of("%g", higher.fpr);
    if (higher.fpr >= 1)
        fail("%s: %s", name, why(PERHAPS_ERR_LIMIT));
    if (settings->kind.value_bits)
        fail("-p %g: values of %ju bits leave too few for that: give -p %s", options->fpr,
             (uintmax_t)settings->kind.value_bits, rate.s);
    if (settings->kind.name)
        fail("-p %g: is too low for --kind %s: give -p %s, or leave out --kind", options->fpr,
             settings->kind.name, rate.s);
    fail("-p %g: no kind that does all that is asked reaches that: give -p %s", options->fpr,
         rate.s);
}

/* Ends the program because no filter can be planned.  Names the option that is most likely the
 * cause, and what to do. */
static _Noreturn void fail_plan(const struct settings *settings,
                                const struct perhaps_options *options, const char *name,
                                int error)
{
    const char *kind = settings->kind.name;
    bool unsupported = error == PERHAPS_ERR_UNSUPPORTED;
    if (unsupported && settings->integers.high)
        fail("--integers: such a filter cannot count, and it cannot grow: leave out --count "
             "and --grow");
    if (kind && request_window(settings) && !kind_can(kind, PERHAPS_CAN_FORGET))
        fail("--kind %s: cannot forget: give --kind window:base=%s for a window that is "
             "made of it",
             kind, kind);
    if (settings->kind.base && (error == PERHAPS_ERR_ARGUMENT || unsupported))
        fail("--kind %s:base=%s: no filter with all that is asked can be made of it: leave it "
             "out, "
             "or leave out an option such as --removable, --count or --grow",
             kind, settings->kind.base);
    if (unsupported && kind && kind_can(kind, PERHAPS_CAN_BUILD))
        fail("--kind %s: is built once, from all keys: make it with 'perhaps build', without "
             "--removable, --count or --grow",
             kind);
    if (unsupported && kind)
        fail("--kind %s: cannot do all that is asked: leave it out, or leave out an option "
             "such as --removable, --count or --grow",
             kind);
    if (unsupported)
        fail("%s: no kind can do all that is asked: leave out an option such as --removable, "
             "--count or --grow%s",
             name,
             options->needs & PERHAPS_CAN_GROW
                 ? " (without --grow, plan for the most keys there may be)"
                 : "");
    if (error == PERHAPS_ERR_LIMIT)
        fail_rate(settings, options, name);
    fail("%s: %s", name, why(error));
}

void request_plan(const struct settings *settings, struct size size, const char *name,
                  struct perhaps_options *options, struct perhaps_plan *plan)
{
    *options = request_options(settings, size);
    int error = perhaps_plan_for(options, plan);
    if (error)
        fail_plan(settings, options, name, error);
}
