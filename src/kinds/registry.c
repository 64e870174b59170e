/* registry.c - the registry: one row for each kind, in order of preference.
 *
 * A plan takes the first kind that meets the needs and reaches the fpr and the size; with
 * PERHAPS_CAN_BUILD those that are built once come first.  All that
 * goes over the kinds, such as command line and tests, goes over this table. */
#include <string.h>

#include "kinds.h"

static const struct filter_kind *const kinds[] = {
    &kind_blocked,  /* only adds: the fewest memory accesses */
    &kind_strided,  /* can remove: the fewest bits */
    &kind_cuckoo,   /* can remove, counts, many threads */
    &kind_bloom,    /* only adds: the fewest bits */
    &kind_elastic,  /* grows, can remove */
    &kind_chain,    /* grows, at any fpr */
    &kind_counting, /* counts more than 8 copies */
    &kind_window,   /* forgets */
    &kind_ribbon,   /* built once: the fewest bits */
    &kind_against,  /* built once: exact where the other side is known */
    &kind_bitmap,   /* integers of a range: no error */
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

const struct filter_kind *kind_by_index(size_t index)
{
    return index < KIND_COUNT ? kinds[index] : NULL;
}

const struct filter_kind *kind_by_id(uint32_t id)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (kinds[i]->id == id)
            return kinds[i];
    return NULL;
}

const struct filter_kind *kind_by_name(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (!strcmp(kinds[i]->about.name, name))
            return kinds[i];
    return NULL;
}

int kind_set_geometry(const struct filter_kind *kind, struct geometry *g)
{
    if (kind->composite) {
        uint64_t id = g->field[kind->composite->base_field];
        g->base = id <= UINT32_MAX ? kind_by_id((uint32_t)id) : NULL;
    }
    return kind->set_geometry(g);
}

const struct perhaps_kind *perhaps_kind_at(size_t index)
{
    const struct filter_kind *kind = kind_by_index(index);
    return kind ? &kind->about : NULL;
}
