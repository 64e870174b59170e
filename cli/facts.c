#include "facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "request.h"

/* NULL: not to be told. */
static json_t *fact_field(const struct settings *settings, const struct perhaps_plan *plan,
                          unsigned i)
{
    static const char *const preferences[] = { "balanced", "fast", "compact" };
    const char *name = plan->field_name[i];
    const uint64_t value = plan->field[i];
    if (plan->base && strcmp(name, "base") == 0)
        return json_string(plan->base);
    if (settings->json)
        return json_integer((json_int_t)value);
    if (value == 0)
        return NULL;
    if (strcmp(name, "period_time") == 0)
        return json_string(period(value).s);
    if (strcmp(name, "together") == 0)
        return json_true();
    if (strcmp(name, "preference") == 0 && value <= sizeof preferences / sizeof *preferences)
        return json_string(preferences[value - 1]);
    return json_integer((json_int_t)value);
}

json_t *fact_geometry(const struct settings *settings, const struct perhaps_plan *plan)
{
    json_t *fields = json_object();
    for (unsigned i = 0; i < plan->nfields; i++) {
        bool told = strcmp(plan->field_name[i], "fpr_until") == 0; /* a fact of every kind */
        json_t *field = told ? NULL : fact_field(settings, plan, i);
        if (field)
            json_object_set_new(fields, plan->field_name[i], field);
    }
    return fields;
}

json_t *fact_until(const struct settings *settings, const struct perhaps_plan *plan)
{
    if (plan->fpr_until != UINT64_MAX)
        return json_integer((json_int_t)plan->fpr_until);
    return settings->json ? json_null() : json_string("any number");
}

bool counts_all(const struct perhaps_plan *plan)
{
    return kind_can(plan->base ? plan->base : plan->kind, PERHAPS_CAN_REMOVE);
}

static double predicted_miss(const perhaps_filter *filter, double keys)
{
    const double least = 1e-9;
    return fmax(1 - perhaps_predict_fpr(filter, (uint64_t)keys), least);
}

/* How many different keys have come where 'keys' of them set a bit.  Of those that come when n
 * are there, the share 1 - fpr(n) sets one; solved by the midpoint rule, in few steps where
 * that will do, since a chain plans its layers for each. */
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
    double bits = keys ? 8.0 * (double)memory_nbytes / (double)keys : 0;
    struct text out = { "" };
    if (keys && keys >= capacity / 2)
        snprintf(out.s, sizeof out.s, ", %.40s", scaled(bits, " bits a key").s);
    return out;
}

struct text room_of(const struct perhaps_plan *plan, uint64_t keys)
{
    struct text out = { "" };
    bool grows = plan->fpr_until > plan->capacity || kind_can(plan->kind, PERHAPS_CAN_FORGET);
    if (!grows && keys < plan->capacity)
        snprintf(out.s, sizeof out.s, ", room for %.31s more",
                 counted(plan->capacity - keys, "key").s);
    return out;
}
