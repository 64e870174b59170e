/* kinds.c - what tests have to know of a kind, here and nowhere else: see support.h. */
#include "support.h"

#include <string.h>

#include "kinds/kinds.h"

/* 'blocked' a second time: its address tells it from the one in the registry. */
static struct perhaps_kind together;

const struct perhaps_kind *kind_to_test(size_t index)
{
    if (perhaps_kind_at(index) || (index > 0 && !perhaps_kind_at(index - 1)))
        return perhaps_kind_at(index);
    together = kind_by_name("blocked")->about;
    return &together;
}

/* The index of 'kind' is searched anew each time: there are few kinds. */
const struct perhaps_kind *next_kind(const struct perhaps_kind *kind,
                                     bool (*which)(const struct perhaps_kind *kind))
{
    const struct perhaps_kind *next;
    size_t i = 0;
    while (kind && kind_to_test(i++) != kind)
        ;
    while ((next = kind_to_test(i++)) && (!takes_any_key(next) || !which(next)))
        ;
    if (next)
        scene("%s", next->name);
    return next;
}

bool takes_any_key(const struct perhaps_kind *kind)
{
    return !kind_by_name(kind->name)->exact;
}

bool every_kind(const struct perhaps_kind *kind)
{
    return kind;
}

bool is_built(const struct perhaps_kind *kind)
{
    return kind->abilities & PERHAPS_CAN_BUILD;
}

bool any_kind(const struct perhaps_kind *kind)
{
    return !is_built(kind);
}

bool in_registry(const struct perhaps_kind *kind)
{
    return kind != &together && !is_built(kind);
}

bool removes(const struct perhaps_kind *kind)
{
    return kind->abilities & PERHAPS_CAN_REMOVE;
}

bool merges(const struct perhaps_kind *kind)
{
    return kind->abilities & PERHAPS_CAN_MERGE;
}

bool grows(const struct perhaps_kind *kind)
{
    return kind->abilities & PERHAPS_CAN_GROW;
}

bool grows_in_place(const struct perhaps_kind *kind)
{
    return grows(kind) && !has_parts(kind);
}

bool forgets(const struct perhaps_kind *kind)
{
    return kind->abilities & PERHAPS_CAN_FORGET;
}

bool takes_threads(const struct perhaps_kind *kind)
{
    return kind->abilities & PERHAPS_CAN_THREADS;
}

bool takes_threads_over(const struct perhaps_kind *kind, const char *base)
{
    return takes_threads(kind) && (!base || takes_threads(&kind_by_name(base)->about));
}

bool shares(const struct perhaps_kind *kind)
{
    return kind->abilities & PERHAPS_CAN_SHARE;
}

bool folds(const struct perhaps_kind *kind)
{
    return kind_by_name(kind->name)->folds != NULL;
}

bool folds_not(const struct perhaps_kind *kind)
{
    return !folds(kind) && strcmp(kind->name, "chain") != 0;
}

bool folds_rounded(const struct perhaps_kind *kind)
{
    return folds(kind) && in_registry(kind);
}

bool has_parts(const struct perhaps_kind *kind)
{
    return kind_by_name(kind->name)->composite && !is_built(kind);
}

bool gets_full(const struct perhaps_kind *kind)
{
    return !grows(kind) && !forgets(kind) && !is_built(kind) && takes_any_key(kind);
}

/* Every kind can be built at once, since the caller only promises not to add later. */
bool is_able(const struct perhaps_kind *kind, unsigned need)
{
    const struct composite *composite = kind_by_name(kind->name)->composite;
    return (kind->abilities | (composite ? composite->inherits : 0U) | PERHAPS_CAN_BUILD) &
           need;
}

/* The parts of a composite are of kinds that get full, so not composites, and none that grow;
 * and that merge. */
bool base_to_test(const struct perhaps_kind *kind, size_t index, const char **base)
{
    const struct perhaps_kind *full;
    *base = NULL;
    if (!has_parts(kind))
        return index == 0;
    for (size_t i = 0; (full = perhaps_kind_at(i)); i++)
        if (gets_full(full) && merges(full) && index-- == 0) {
            *base = full->name;
            return true;
        }
    return false;
}

/* A fingerprint has at most 32 bits, and a query compares it with several slots.  A filter that
 * grows in place uses up bits of its fingerprints while it grows. */
double low_rate(const struct perhaps_kind *kind)
{
    return is_built(kind) ? 1e-9 : !removes(kind) ? 1e-12 : grows(kind) ? 1e-7 : 1e-8;
}

int too_many(const struct perhaps_kind *kind)
{
    return gets_full(kind) ? PERHAPS_ERR_FULL : 0;
}

/* What needs copies of a key. */
enum { COPIES = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT };

struct perhaps_options options_for(const struct perhaps_kind *kind, uint64_t capacity,
                                   double fpr, uint64_t seed)
{
    bool of_lines = kind == &together; /* compact, so that a key has two lines at least */
    return (struct perhaps_options){
        .capacity = capacity,
        .fpr = fpr,
        .kind = kind->name,
        .needs = is_built(kind) ? PERHAPS_CAN_BUILD : kind->abilities & COPIES,
        .blocked.together = of_lines,
        .preference = of_lines ? PERHAPS_PREFER_COMPACT : PERHAPS_PREFER_BALANCED,
        .window = { .keys = forgets(kind) ? capacity : 0 },
        .hashing = { .seed = seed }
    };
}

bool ask_for_copies(struct perhaps_options *options, bool copies)
{
    const char *storing = options->base ? options->base : options->kind;
    const unsigned able = kind_by_name(storing)->about.abilities & COPIES;
    options->needs &= ~(unsigned)COPIES;
    if (copies)
        options->needs |= able;
    return able && !kind_by_name(storing)->exact;
}
