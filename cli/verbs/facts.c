/* facts.c - facts that several verbs tell. */
#include "facts.h"

#include <perhaps_live.h>
#include <string.h>

#include "../base/numbers.h"

/* Only an integer of a range is too large for JSON. */
json_t *fact_geometry(const struct perhaps_plan *plan)
{
    json_t *fields = json_object();
    for (unsigned i = 0; i < plan->nfields; i++) {
        const char *name = plan->field_name[i];
        const uint64_t value = plan->field[i];
        if (strcmp(name, "fpr_until") == 0)
            continue; /* a fact of every kind */
        json_object_set_new(fields, name,
                            plan->base && strcmp(name, "base") == 0 ? json_string(plan->base)
                            : value > INT64_MAX ? json_sprintf("%ju", (uintmax_t)value)
                                                : json_integer((json_int_t)value));
    }
    return fields;
}

json_t *fact_until(const struct settings *settings, const struct perhaps_plan *plan)
{
    if (plan->fpr_until != UINT64_MAX)
        return json_integer((json_int_t)plan->fpr_until);
    return settings->json ? json_null() : json_string("any number");
}

json_t *fact_journal(const struct settings *settings, const perhaps_filter *filter)
{
    struct perhaps_journal journal;
    if (perhaps_journal_of(filter, &journal))
        return NULL;
    if (!settings->json)
        return json_sprintf("%s, %s that the file does not have; the last is number %s",
                            scaled((double)journal.nbytes, "B").s,
                            counted(journal.records, "record").s, grouped(journal.last).s);
    return json_pack("{s:I, s:I, s:I}", "bytes", (json_int_t)journal.nbytes, "records",
                     (json_int_t)journal.records, "last", (json_int_t)journal.last);
}
