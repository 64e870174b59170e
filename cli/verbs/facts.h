/* facts.h - facts that several verbs tell. */
#ifndef FACTS_H
#define FACTS_H

#include "../base/messages.h"

/* Returns the fields of a geometry by their names. */
json_t *fact_geometry(const struct perhaps_plan *plan);

/* Returns up to how many keys the rate is kept. */
json_t *fact_until(const struct settings *settings, const struct perhaps_plan *plan);

/* Returns what there is to tell of the journal of a live file; NULL for others. */
json_t *fact_journal(const struct settings *settings, const perhaps_filter *filter);

#endif
