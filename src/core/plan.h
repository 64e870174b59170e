/* plan.h - which kind, and the registry of them. */
#ifndef PLAN_H
#define PLAN_H

#include "../filter/filter.h"

/* Checks the options, chooses the kind and its geometry.  Returns 0 or the errors of
 * perhaps_plan_for(). */
int plan_choose(const struct perhaps_options *options, const struct filter_kind **kind,
                struct geometry *g, char *why);

/* The registry: NULL where there is none. */
const struct filter_kind *kind_by_id(uint32_t id);
const struct filter_kind *kind_by_name(const char *name);
const struct filter_kind *kind_by_index(size_t index);

/* Checks the fields of a geometry that comes from outside, such as a file: as geometry_check(),
 * but finds the base of a composite first. */
int kind_set_geometry(const struct filter_kind *kind, struct geometry *g);

#endif
