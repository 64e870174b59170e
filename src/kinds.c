/* kinds.c - the registry: one row a kind, in order of preference. */
#include <string.h>

#include "filter.h"
#include "filters/kinds.h"

static const struct filter_kind *const kinds[] = {
    &kind_blocked,  /* adds and asks */
    &kind_cuckoo,   /* removes */
    &kind_bloom,    /* the fewest bits */
    &kind_elastic,  /* grows, removes */
    &kind_chain,    /* grows, at any rate */
    &kind_counting, /* counts beyond 8 */
    &kind_window,   /* forgets */
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

unsigned kind_field_count(const struct filter_kind *kind)
{
    unsigned n = 0;
    while (kind->field_names[n])
        n++;
    return n;
}

int kind_set_geometry(const struct filter_kind *kind, struct geometry *g)
{
    int error = kind->set_geometry(g);
    return error ? error : g->key_limit ? 0 : PERHAPS_ERR_LIMIT;
}

const struct perhaps_kind *perhaps_kind_at(size_t index)
{
    const struct filter_kind *kind = kind_by_index(index);
    return kind ? &kind->about : NULL;
}
