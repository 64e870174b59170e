/* geometry.c - plans, checks and describes the numbers that give a body its meaning. */
#include "filter.h"

#include "../base/sizing.h"

bool geometry_in_range(const struct filter_kind *kind, uint64_t capacity, double fpr)
{
    return sizing_in_range(capacity, kind->exact && fpr == 0 ? PERHAPS_FPR_MIN : fpr);
}

int geometry_check(const struct filter_kind *kind, struct geometry *g)
{
    g->key_limit = g->cell_limit = 0; /* of what it was made of */
    int error = kind->set_geometry(g);
    return error ? error : geometry_limit(kind, g);
}

int geometry_limit(const struct filter_kind *kind, struct geometry *g)
{
    if (!g->key_limit && kind->set_limits)
        kind->set_limits(g);
    return g->key_limit ? 0 : PERHAPS_ERR_LIMIT;
}

int geometry_plan(const struct filter_kind *kind, const struct perhaps_options *options,
                  struct geometry *g, char *why)
{
    int error = kind->plan(g, options, why);
    return error ? error : geometry_check(kind, g);
}

unsigned kind_field_count(const struct filter_kind *kind)
{
    unsigned n = 0;
    while (kind->field_names[n])
        n++;
    return n;
}

unsigned kind_packed_count(const struct filter_kind *kind)
{
    return kind->packed_fields ? kind->packed_fields : kind_field_count(kind);
}

void geometry_describe(const struct filter_kind *kind, const struct geometry *g,
                       double predicted, struct perhaps_plan *plan)
{
    uint64_t nbytes = g->body_nbytes + g->extra_nbytes;
    *plan = (struct perhaps_plan){
        .kind = kind->about.name,
        .base = g->base ? g->base->about.name : NULL,
        .capacity = g->capacity,
        .fpr = g->fpr,
        .fpr_predicted = predicted,
        .body_nbytes = nbytes,
        .bits_per_key = 8.0 * (double)nbytes / (double)g->capacity,
        .fpr_until = g->fpr_until ? g->fpr_until : g->capacity,
        .nfields = kind_field_count(kind),
    };
    for (unsigned i = 0; i < plan->nfields; i++) {
        plan->field_name[i] = kind->field_names[i];
        plan->field[i] = g->field[i];
    }
}

struct geometry filter_geometry(const perhaps_filter *f)
{
    struct geometry g = f->body.geometry;
    if (f->kind->grows)
        f->kind->grows->grown(f, &g);
    return g;
}
