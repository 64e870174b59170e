/* grow.c - who grows, and in which order all is measured. */
#include "grow.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

/* ---- Who grows --------------------------------------------------------------------------- */

static uint64_t field_of(const struct perhaps_plan *plan, const char *name)
{
    for (unsigned i = 0; i < plan->nfields; i++)
        if (!strcmp(plan->field_name[i], name))
            return plan->field[i];
    return 0;
}

/* The highest round rate that takes slots of 16 bits, which are the fastest. */
static double fpr_of_16_bits(uint64_t capacity)
{
    static const double rates[] = { 0.01, 0.005, 0.003, 0.002, 0.001, 0.0005 };
    struct perhaps_plan plan;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct perhaps_options options = { .capacity = capacity,
                                           .fpr = rates[i],
                                           .kind = "elastic" };
        if (!perhaps_plan_for(&options, &plan) && field_of(&plan, "slot_bits") == 16)
            return rates[i];
    }
    return 0.003;
}

static struct grower elastic(double fpr)
{
    return (struct grower){ .options = { .fpr = fpr, .kind = "elastic" },
                            .fixed = "cuckoo",
                            .grows = true };
}

static struct grower chain(const char *base, unsigned factor, double fpr)
{
    return (struct grower){
        .options = { .fpr = fpr, .kind = "chain", .base = base, .chain.factor = factor },
        .fixed = base,
        .grows = true,
        .has_layers = true
    };
}

static struct grower window(const char *base, unsigned generations, double fpr)
{
    return (struct grower){ .options = { .fpr = fpr,
                                         .kind = "window",
                                         .base = base,
                                         .window.generations = generations },
                            .fixed = base };
}

static void set_name(struct grower *grower)
{
    const struct perhaps_options *o = &grower->options;
    size_t room = sizeof grower->name;
    int length = snprintf(grower->name, room, "%s", o->kind);
    if (o->base)
        length += snprintf(grower->name + length, room - (size_t)length, " %s", o->base);
    if (o->chain.factor)
        length +=
            snprintf(grower->name + length, room - (size_t)length, " x%u", o->chain.factor);
    snprintf(grower->name + length, room - (size_t)length, " %g%%", 100 * o->fpr);
}

static size_t list_growers(const struct settings *settings, struct grower *list)
{
    const double sharp = fpr_of_16_bits(settings->start), usual = 0.01;
    const struct grower all[] = {
        elastic(sharp),
        chain("cuckoo", 2, sharp),
        elastic(usual),
        chain("blocked", 2, usual),
        chain("blocked", 4, usual),
        window("blocked", 5, usual),
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct grower *grower = &list[count];
        if (settings->contender && strcmp(settings->contender, all[i].options.kind) != 0)
            continue;
        *grower = all[i];
        set_name(grower);
        grower->options.capacity = grower->grows ? settings->start : settings->keys[0];
        grower->options.window.keys = grower->grows ? 0 : settings->keys[0];
        grower->options.hashing.hash = settings->hashed ? PERHAPS_HASH_NONE : PERHAPS_HASH_XXH3;
        grower->options.hashing.seed = 1; /* the same in every run */
        count++;
    }
    return count;
}

/* ---- What all need ----------------------------------------------------------------------- */

uint64_t worst_from(const struct settings *settings)
{
    const uint64_t million = 1000000;
    return settings->keys[0] / 10 < million ? settings->keys[0] / 10 : million;
}

const char *grow_create(const struct grower *grower, const struct perhaps_allocator *allocator,
                        perhaps_filter **filter)
{
    struct perhaps_options options = grower->options;
    options.allocator = allocator;
    int error = perhaps_create(&options, filter);
    return error ? perhaps_strerror(error) : NULL;
}

double grow_planned_bits(const struct grower *grower, uint64_t keys, double fpr)
{
    struct perhaps_options options = { .capacity = keys, .fpr = fpr, .kind = grower->fixed };
    struct perhaps_plan plan;
    return perhaps_plan_for(&options, &plan) ? 0 : plan.bits_per_key;
}

void grow_progress(const struct growth *growth, const char *doing, uint64_t keys)
{
    struct task task = { .capacity = growth->keys,
                         .fpr = growth->grower->options.fpr,
                         .nthreads = 1 };
    report_progress(doing ? growth->grower->name : NULL, &task, doing,
                    (double)keys / (double)growth->keys);
}

/* ---- All of it --------------------------------------------------------------------------- */

typedef const char *grow_pass(struct growth *growth);
typedef void grow_row(FILE *to, const struct growth *growth);

/* Goes on with the others where there is a problem. */
static void run_pass(struct growth *growths, size_t count, grow_pass *pass, grow_row *row)
{
    for (size_t i = 0; i < count; i++) {
        struct growth *growth = &growths[i];
        if (!growth->problem)
            growth->problem = pass(growth);
        grow_progress(growth, NULL, 0);
        if (growth->problem)
            printf("%-24s %s\n", growth->grower->name, growth->problem);
        else if (row)
            row(stdout, growth);
        fflush(stdout);
    }
}

static void prepare(struct growth *growth, const struct grower *grower,
                    const struct settings *settings)
{
    size_t pieces = (size_t)(settings->keys[0] / settings->piece) + 2;
    *growth = (struct growth){ .grower = grower,
                               .settings = settings,
                               .keys = settings->keys[0],
                               .piece_nbytes = calloc(pieces, sizeof *growth->piece_nbytes) };
    if (!growth->piece_nbytes)
        errx(2, "out of memory");
}

bool grow_all(const struct settings *settings, struct json_report *json)
{
    static struct grower growers[GROWERS_MAX];
    static struct growth growths[GROWERS_MAX];
    size_t count = list_growers(settings, growers);
    if (!count)
        errx(2, "--kind %s: none that grows or forgets", settings->contender);
    for (size_t i = 0; i < count; i++)
        prepare(&growths[i], &growers[i], settings);
    grow_report_header(stdout, settings);
    run_pass(growths, count, grow_watch, NULL);
    grow_report_stops(stdout, growths, count);
    grow_report_layers(stdout, growths, count);
    grow_report_time_header(stdout);
    run_pass(growths, count, grow_time, grow_report_time);
    grow_report_sizes(stdout, growths, count);
    grow_report_pause_header(stdout);
    run_pass(growths, count, grow_pause, grow_report_pause);
    bool wrong = false;
    for (size_t i = 0; i < count; i++) {
        if (json)
            json_report_growth(json, &growths[i]);
        wrong |= growths[i].wrong;
        free(growths[i].piece_nbytes);
    }
    return wrong;
}
