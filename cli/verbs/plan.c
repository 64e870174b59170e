/* plan.c - the verb plan: which filter would be made, why, and what else there is. */
#include <perhaps_plan.h>
#include <string.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../filter/request.h"
#include "../filter/size.h"
#include "facts.h"

/* The filters that can do what is needed, in the order of the registry: every kind, and
 * composites with every base.  Kinds that forget are only for --window. */
struct others {
    const struct settings *settings;
    const struct perhaps_plan *chosen;
    struct perhaps_options options;
    json_t *rows;
};

/* Adds a row for this plan, unless it is the chosen one. */
static void add_row(struct others *others, const struct perhaps_plan *plan)
{
    const char *base = plan->base;
    if (strcmp(plan->kind, others->chosen->kind) == 0 &&
        memcmp(plan->field, others->chosen->field, sizeof plan->field) == 0)
        return;
    json_array_append_new(others->rows,
                          json_pack("{s:s, s:s?, s:f, s:I, s:f, s:o}", "kind", plan->kind,
                                    "base", base, "bits_per_key", plan->bits_per_key,
                                    "body_bytes", (json_int_t)plan->body_nbytes,
                                    "fpr_predicted", plan->fpr_predicted, "fpr_until",
                                    fact_until(others->settings, plan)));
}

/* Adds a row for each base with which the composite can be made. */
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

/* Returns the table of the other filters that can do what is needed. */
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

void verb_plan(const struct settings *settings)
{
    struct perhaps_options options;
    struct perhaps_plan plan;
    struct size size = size_asked(settings);
    if (!size.capacity)
        fail("plan: for how many keys? give -n N, or --grow if you do not know");
    request_plan(settings, size, "plan", &options, &plan);
    print_facts(settings,
                json_pack("{s:s, s:s, s:I, s:f, s:f, s:o, s:I, s:f, s:o*, s:o}", "kind",
                          plan.kind, "why", plan.why, "capacity", (json_int_t)plan.capacity,
                          "fpr_asked", plan.fpr, "fpr_predicted", plan.fpr_predicted,
                          "fpr_until", fact_until(settings, &plan), "body_bytes",
                          (json_int_t)plan.body_nbytes, "bits_per_key", plan.bits_per_key,
                          "geometry", settings->json ? fact_geometry(&plan) : NULL,
                          "others_that_can", others_of(settings, &options, &plan)));
}
