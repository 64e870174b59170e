/* kinds.h - all kinds, and the registry (registry.c), which finds them. */
#ifndef KINDS_H
#define KINDS_H

#include "../filter/filter.h"

extern const struct filter_kind kind_against;
extern const struct filter_kind kind_bitmap;
extern const struct filter_kind kind_blocked;
extern const struct filter_kind kind_bloom;
extern const struct filter_kind kind_chain;
extern const struct filter_kind kind_counting;
extern const struct filter_kind kind_cuckoo;
extern const struct filter_kind kind_elastic;
extern const struct filter_kind kind_ribbon;
extern const struct filter_kind kind_strided;
extern const struct filter_kind kind_window;

/* Return a kind of the registry, or NULL if it has none with this id, name or index. */
const struct filter_kind *kind_by_id(uint32_t id);
const struct filter_kind *kind_by_name(const char *name);
const struct filter_kind *kind_by_index(size_t index);

/* Checks a geometry that comes from outside, such as a file, and completes it but for its
 * limits: see geometry_limit().  Finds the base of a composite by its id.  Returns 0 or
 * PERHAPS_ERR_LIMIT. */
int kind_set_geometry(const struct filter_kind *kind, struct geometry *g);

#endif
