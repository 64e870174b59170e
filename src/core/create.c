/* create.c - the public calls that make an empty filter, planned or like another one. */

#include "../filter/filter.h"
#include "plan.h"
#include <perhaps.h>

int perhaps_create(const struct perhaps_options *options, perhaps_filter **filter)
{
    struct perhaps_hashing hashing = options->hashing;
    const struct filter_kind *kind;
    struct geometry of_part = { 0 }, part = { .first = &of_part }, g = { .first = &part };
    struct hasher hasher;
    char why[WHY_NBYTES];
    *filter = NULL;
    int error = plan_choose(options, &kind, &g, why);
    if (!error && kind->builds)
        error = PERHAPS_ERR_UNSUPPORTED; /* by a builder */
    if (!error)
        error = plan_hash(kind, &g, &hashing);
    if (error)
        return error;
    error = hasher_create(&hasher, &hashing);
    if (!error)
        error = filter_new(kind, &g, &hasher, options, filter);
    if (!error && !(options->needs & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT)))
        filter_become_set(*filter);
    wipe(hasher.secret, sizeof hasher.secret);
    return error;
}

unsigned perhaps_abilities_of(const perhaps_filter *f)
{
    const unsigned copies = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT;
    return (f->kind->about.abilities & ~copies) | (f->removes ? PERHAPS_CAN_REMOVE : 0U) |
           (f->counts ? PERHAPS_CAN_COUNT : 0U);
}

/* Returns the hash of a filter like the model: the model's own, or a new one. */
static int hash_like(const perhaps_filter *model, const struct perhaps_hashing *own,
                     struct hasher *hasher)
{
    if (!own) {
        *hasher = model->hasher;
        return hasher->ready ? 0 : PERHAPS_ERR_SECRET;
    }
    struct perhaps_hashing hashing = *own;
    if (!hashing.note)
        hashing.note = model->hasher.note;
    int error = plan_hash(model->kind, &model->body.geometry, &hashing);
    return error ? error : hasher_create(hasher, &hashing);
}

int perhaps_create_like(const perhaps_filter *model, const struct perhaps_hashing *hashing,
                        const struct perhaps_allocator *allocator, perhaps_filter **filter)
{
    struct hasher hasher;
    *filter = NULL;
    if (model->kind->builds)
        return PERHAPS_ERR_UNSUPPORTED;
    int error = hash_like(model, hashing, &hasher);
    if (!error)
        error = filter_new_like(model, &hasher, allocator, model->shared, filter);
    if (!error && model->is_set)
        filter_become_set(*filter);
    wipe(hasher.secret, sizeof hasher.secret);
    return error;
}
