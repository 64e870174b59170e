/* facts.h - what info and plan tell of a filter, in the same words. */
#ifndef FACTS_H
#define FACTS_H

#include <jansson.h>
#include <perhaps.h>

#include "options.h"

/* The geometry as an object; the kind of its parts by name. */
json_t *fact_geometry(const struct perhaps_plan *plan);

/* Up to how many keys the rate is kept: null under --json if there is no end. */
json_t *fact_until(const struct settings *settings, const struct perhaps_plan *plan);

#endif
