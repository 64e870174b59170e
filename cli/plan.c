/* The verb plan: what would be made, and what else could be. */
#include <math.h>
#include <string.h>

#include "facts.h"
#include "report.h"
#include "request.h"

/* The filters that have all that is needed, in the order of the registry: every kind, and those
 * that are made of filters with every base.  One that forgets is none for who wants a set. */
struct others {
    const struct settings *settings;
    const struct perhaps_plan *chosen;
    struct perhaps_options options;
    json_t *rows;
};

static bool is_chosen(const struct others *others, const struct perhaps_plan *plan)
{
    const struct perhaps_plan *chosen = others->chosen;
    return strcmp(plan->kind, chosen->kind) == 0 &&
           memcmp(plan->field, chosen->field, sizeof plan->field) == 0;
}

static void add_row(struct others *others, const struct perhaps_plan *plan)
{
    const char *base = plan->base;
    if (is_chosen(others, plan))
        return;
    json_array_append_new(others->rows,
                          json_pack("{s:s, s:s?, s:f, s:I, s:f, s:o}", "kind", plan->kind,
                                    "base", base, "bits_per_key", plan->bits_per_key,
                                    "body_bytes", (json_int_t)plan->body_nbytes,
                                    "fpr_predicted", plan->fpr_predicted, "fpr_until",
                                    fact_until(others->settings, plan)));
}

static void try_bases(struct others *others)
{
    const struct perhaps_kind *base;
    struct perhaps_options options = others->options;
    struct perhaps_plan plan;
    for (size_t i = 0; (base = perhaps_kind_at(i)); i++) {
        options.base = base->name;
        if (perhaps_plan_for(&options, &plan) == 0)
            add_row(others, &plan);
    }
}

static json_t *others_of(const struct settings *settings, const struct perhaps_options *options,
                         const struct perhaps_plan *chosen)
{
    struct others others = {
        .settings = settings, .chosen = chosen, .options = *options, .rows = json_array()
    };
    const struct perhaps_kind *kind;
    const unsigned forget = options->needs & PERHAPS_CAN_FORGET;
    others.options.base = NULL;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
        struct perhaps_plan plan;
        others.options.kind = kind->name;
        if ((kind->abilities & PERHAPS_CAN_FORGET) != forget ||
            perhaps_plan_for(&others.options, &plan) != 0)
            continue;
        if (plan.base)
            try_bases(&others);
        else
            add_row(&others, &plan);
    }
    return others.rows;
}

/* The cheapest of some stricter rates, for which a kind may need fewer lines or counters: of
 * the same bits a key as 'plan', if none is cheaper by a hundredth. */
static void find_cheaper(const struct perhaps_options *options, const struct perhaps_plan *plan,
                         struct perhaps_plan *cheapest)
{
    struct perhaps_options stricter = *options;
    struct perhaps_plan tried;
    *cheapest = *plan;
    for (int percent = 95; percent >= 10; percent -= 5) {
        stricter.fpr = options->fpr * percent / 100;
        if (perhaps_plan_for(&stricter, &tried) == 0 &&
            tried.bits_per_key < fmin(cheapest->bits_per_key, .99 * plan->bits_per_key))
            *cheapest = tried;
    }
}

/* NULL for people, null under --json: there is none. */
static json_t *cheaper_of(const struct settings *settings,
                          const struct perhaps_options *options,
                          const struct perhaps_plan *plan)
{
    struct perhaps_plan cheapest;
    find_cheaper(options, plan, &cheapest);
    if (cheapest.bits_per_key == plan->bits_per_key)
        return settings->json ? json_null() : NULL;
    if (settings->json)
        return json_pack("{s:f, s:f}", "fpr", cheapest.fpr, "bits_per_key",
                         cheapest.bits_per_key);
    return json_sprintf("-p %.3g, a stricter rate, takes only %.4g bits a key", cheapest.fpr,
                        cheapest.bits_per_key);
}

static json_t *notes_of(const struct settings *settings)
{
    return settings->fixed
               ? json_pack("[s]", "--static changes nothing: no kind makes use of it yet")
               : NULL;
}

int verb_plan(const struct settings *settings)
{
    struct perhaps_options options;
    struct perhaps_plan plan;
    struct size size = request_size(settings);
    if (!size.capacity)
        return complain("plan: for how many keys? give -n N, or --grow if nobody knows");
    int status = request_plan(settings, size, "plan", &options, &plan);
    if (status)
        return status;
    return print_facts(
        settings,
        json_pack("{s:s, s:s, s:I, s:f, s:f, s:o, s:I, s:f, s:o*, s:o, s:o*, s:o}", "kind",
                  plan.kind, "why", plan.why, "capacity", (json_int_t)plan.capacity,
                  "fpr_asked", plan.fpr, "fpr_predicted", plan.fpr_predicted, "fpr_until",
                  fact_until(settings, &plan), "body_bytes", (json_int_t)plan.body_nbytes,
                  "bits_per_key", plan.bits_per_key, "cheaper",
                  cheaper_of(settings, &options, &plan), "geometry",
                  fact_geometry(settings, &plan), "notes", notes_of(settings),
                  "others_that_can", others_of(settings, &options, &plan)));
}
