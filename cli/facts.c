#include "facts.h"

#include <string.h>

#include "request.h"

json_t *fact_geometry(const struct perhaps_plan *plan)
{
    const char *base = plan->base;
    json_t *fields = json_object();
    for (unsigned i = 0; i < plan->nfields; i++) {
        if (strcmp(plan->field_name[i], "fpr_until") == 0)
            continue; /* is a fact of every kind */
        bool names_kind = base && strcmp(plan->field_name[i], "base") == 0;
        json_object_set_new(fields, plan->field_name[i],
                            names_kind ? json_string(base)
                                       : json_integer((json_int_t)plan->field[i]));
    }
    return fields;
}

json_t *fact_until(const struct settings *settings, const struct perhaps_plan *plan)
{
    if (plan->fpr_until != UINT64_MAX)
        return json_integer((json_int_t)plan->fpr_until);
    return settings->json ? json_null() : json_string("any number");
}
