#include "request.h"

#include <string.h>

#include "report.h"

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

/* ---- What is asked ----------------------------------------------------------------- */

/* The kind that takes any number of copies, and removes keys as well. */
static const char counts_on[] = "counting";

bool request_window(const struct settings *settings)
{
    return settings->window.keys || settings->window.time;
}

/* A state is for the lines of many runs, the number of which nobody told. */
static bool request_growth(const struct settings *settings)
{
    bool lasting = settings->state && !settings->capacity && request_may_grow(settings);
    return settings->grow || settings->until || settings->factor || lasting;
}

/* Each generation of a window grows by itself, and all are asked: many shall not begin smaller,
 * and have the more layers, than the usual few. */
static uint64_t parts_of(const struct settings *settings)
{
    const uint64_t usual = 5;
    return settings->generations > usual ? (settings->generations - 1) / (usual - 1) : 1;
}

/* A window by keys says itself how many there are; one by time grows by itself. */
struct size request_size(const struct settings *settings)
{
    struct size size = { settings->capacity, request_growth(settings) };
    if (!size.capacity)
        size.capacity = settings->window.keys;
    if (!size.capacity && (size.grows || settings->window.time))
        size.capacity = CAPACITY_TO_BEGIN_WITH * parts_of(settings);
    return size;
}

bool request_may_grow(const struct settings *settings)
{
    return !settings->kind || kind_can(settings->kind, PERHAPS_CAN_GROW);
}

/* A window needs not grow itself: its generations do.  A kind that forgets, and is not told
 * when, remembers as many keys as it has room for. */
struct perhaps_options request_options(const struct settings *settings, struct size size)
{
    bool window = request_window(settings);
    bool layers_count = settings->counts && !settings->base && (size.grows || window);
    bool untold = !window && settings->kind && kind_can(settings->kind, PERHAPS_CAN_FORGET);
    unsigned needs = (settings->removable ? PERHAPS_CAN_REMOVE : 0U) |
                     (settings->counts ? PERHAPS_CAN_COUNT : 0U) |
                     (settings->fixed ? PERHAPS_CAN_BUILD : 0U) |
                     (window ? PERHAPS_CAN_FORGET : 0U) |
                     (size.grows && !window ? PERHAPS_CAN_GROW : 0U);
    enum perhaps_preference preference = settings->fast      ? PERHAPS_PREFER_FAST
                                         : settings->compact ? PERHAPS_PREFER_COMPACT
                                                             : PERHAPS_PREFER_BALANCED;
    return (struct perhaps_options){
        .capacity = size.capacity,
        .fpr = settings->fpr > 0              ? settings->fpr
               : settings->verb->bit == DEDUP ? FPR_DEDUP
                                              : FPR,
        .needs = needs,
        .kind = settings->kind,
        .base = layers_count ? counts_on : settings->base,
        .chain.factor = (unsigned)settings->factor,
        .elastic.fpr_until = settings->until,
        .window = untold ? (struct perhaps_window_options){ .keys = size.capacity }
                         : settings->window,
        .preference = preference,
        .blocked.together = settings->together,
    };
}

/* Other kinds that count refuse a key from its ninth copy on. */
static bool counts_far(const struct settings *settings, const struct perhaps_plan *plan)
{
    return !settings->counts || settings->kind || settings->base ||
           strcmp(plan->base ? plan->base : plan->kind, counts_on) == 0;
}

/* Whether the kind that was planned heeds --base, --factor, --together and --count. */
static bool heeds(const struct settings *settings, const struct perhaps_plan *plan)
{
    uint64_t value;
    bool layers = !settings->factor || request_window(settings);
    bool together = !settings->together || planned_field(plan, "together", &value);
    return (!settings->base || plan->base) && together && counts_far(settings, plan) &&
           (layers || planned_field(plan, "factor", &value));
}

/* Plans the kinds in turn until one heeds all, and reaches the rate: the first may not, where a
 * later one does. */
static int choose_kind(const struct settings *settings, struct perhaps_options *options,
                       struct perhaps_plan *plan)
{
    const struct perhaps_kind *kind;
    const unsigned forget = options->needs & PERHAPS_CAN_FORGET;
    int error = PERHAPS_ERR_UNSUPPORTED;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
        if ((kind->abilities & PERHAPS_CAN_FORGET) != forget)
            continue; /* one that forgets is none for who did not ask for it */
        options->kind = kind->name;
        int met = perhaps_plan_for(options, plan);
        if (!met && heeds(settings, plan))
            return 0;
        if (met && error == PERHAPS_ERR_UNSUPPORTED)
            error = met;
    }
    options->kind = NULL;
    return error;
}

/* What the options of the command line could not say by themselves. */
static int complain_plan(const struct settings *settings, const struct perhaps_options *options,
                         const char *name, int error)
{
    bool window = request_window(settings);
    if (window && settings->kind && !kind_can(settings->kind, PERHAPS_CAN_FORGET))
        return complain("--kind %s: cannot forget: leave it out, and say with --base what the "
                        "window is made of",
                        settings->kind);
    if (settings->base && (error == PERHAPS_ERR_ARGUMENT || error == PERHAPS_ERR_UNSUPPORTED))
        return complain("--base %s: no filter with all that is asked can be made of it: leave "
                        "it out, or a need",
                        settings->base);
    if (error == PERHAPS_ERR_UNSUPPORTED && settings->kind)
        return complain("--kind %s: cannot do all that is asked: leave it out, or a need",
                        settings->kind);
    if (error == PERHAPS_ERR_UNSUPPORTED && settings->together)
        return complain("--together: is of filters of a fixed size to which keys are added: "
                        "leave it out, or the other needs, and give -n N");
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return complain("%s: there is no kind that can do all that: leave out a need%s", name,
                        options->needs & PERHAPS_CAN_GROW
                            ? ", or --grow and plan for the most keys there may be"
                            : "");
    return complain("%s: %s", name, why(error));
}

int request_plan(const struct settings *settings, struct size size, const char *name,
                 struct perhaps_options *options, struct perhaps_plan *plan)
{
    *options = request_options(settings, size);
    int error =
        settings->kind ? perhaps_plan_for(options, plan) : choose_kind(settings, options, plan);
    if (error)
        return complain_plan(settings, options, name, error);
    if (heeds(settings, plan))
        return 0;
    return complain("--kind %s: is not made of %s", settings->kind,
                    settings->base       ? "other filters: leave out --base"
                    : settings->together ? "lines of bits: leave out --together"
                                         : "layers: leave out --factor");
}
