/* parts.c - filters that are made of other filters: planning, adding and asking their parts. */
#include "parts.h"

#include <string.h>

#include "../../base/sizing.h"
#include "../../filter/counters.h"

/* Leaves out the options that belong to the whole, and 'together', which parts never have. */
int parts_plan(const struct filter_kind *base, uint64_t capacity, double fpr,
               const struct perhaps_options *options, struct geometry *g)
{
    struct perhaps_options part = *options;
    char why[WHY_NBYTES];
    *g = (struct geometry){
        .capacity = capacity < PERHAPS_CAPACITY_MAX ? capacity : PERHAPS_CAPACITY_MAX,
        .fpr = fpr,
        .first = g->first,
    };
    part.base = NULL;
    part.blocked.together = false;
    part.window = (struct perhaps_window_options){ 0 };
    return fpr < PERHAPS_FPR_MIN ? PERHAPS_ERR_LIMIT : geometry_plan(base, &part, g, why);
}

/* A part keeps the fpr by its key limit alone (filter/add.c). */
static void parts_mark(perhaps_filter *part)
{
    part->is_part = true;
    filter_reset_room(part);
}

/* Returns whether no part may store copies of a key.  Nothing is removed from a window. */
static bool is_of_sets(const perhaps_filter *f)
{
    return f->is_set || f->kind->forgets;
}

/* Takes a part that was made, unless making it failed.  Returns 0 or an error. */
static int parts_take(perhaps_filter *f, perhaps_filter *part, int error)
{
    if (error)
        return error;
    parts_mark(part);
    part->counts_once = f->counts_once;
    if (is_of_sets(f))
        filter_become_set(part);
    error = filter_adopt(f, part);
    if (error)
        perhaps_free(part);
    return error;
}

int parts_append(perhaps_filter *f, const struct filter_kind *base, const struct geometry *g,
                 const struct perhaps_options *options)
{
    perhaps_filter *part;
    struct perhaps_options its = *options;
    its.allocator = &f->allocator;
    its.shared = f->shared;
    int error = filter_new(base, g, &f->hasher, &its, &part);
    return parts_take(f, part, error);
}

int parts_append_like(perhaps_filter *f, const perhaps_filter *model)
{
    perhaps_filter *part;
    int error = filter_new_like(model, &f->hasher, &f->allocator, f->shared, &part);
    return parts_take(f, part, error);
}

int parts_append_copy(perhaps_filter *f, const perhaps_filter *from)
{
    perhaps_filter *part;
    if (!filter_keeps_rate(from))
        return PERHAPS_ERR_FULL;
    int error = filter_copy(from, &f->hasher, &f->allocator, f->shared, &part);
    return parts_take(f, part, error);
}

/* Adds the fewer keys to the more: entries of a crowded table hardly fit into another one, even
 * if that is empty. */
int parts_unite(perhaps_filter *f, size_t number, const perhaps_filter *other)
{
    perhaps_filter *part = f->parts->part[number], *copy;
    if (counter_get(&part->counters->keys) >= counter_get(&other->counters->keys))
        return filter_unite(part, other);
    int error = filter_copy(other, &f->hasher, &f->allocator, f->shared, &copy);
    if (error)
        return error;
    copy->body.geometry = part->body.geometry; /* with the limits of this filter */
    parts_mark(copy);
    f->parts->part[number] = copy;
    error = filter_unite(copy, part);
    perhaps_free(part);
    return error;
}

bool parts_attach(perhaps_filter *f, const struct filter_kind *base)
{
    for (size_t i = 0; i < f->parts->count; i++) {
        if (f->parts->part[i]->kind != base)
            return false;
        parts_mark(f->parts->part[i]);
        if (is_of_sets(f))
            filter_become_set(f->parts->part[i]);
    }
    return f->parts->count > 0;
}

void parts_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    for (size_t i = parts_count(f); i > 0; i--)
        f->parts->part[i - 1]->kind->prefetch(f->parts->part[i - 1], keys, n);
}

/* Asks the newest part first, since in a chain it is the largest.  Skips a part to which no key
 * was ever added; where keys can be removed, a count of 0 does not mean that. */
size_t parts_contain(const perhaps_filter *f, size_t first, size_t end,
                     const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                     bool *answer)
{
    bool here[BATCH_MOST], asked = false;
    size_t found = 0;
    for (size_t i = end; i > first && found < n; i--) {
        const perhaps_filter *part = f->parts->part[i - 1];
        if (!f->removes && !counter_get(&part->counters->keys))
            continue; /* nothing was ever added */
        size_t found_here = part->kind->contains(part, keys, ahead, n, asked ? here : answer);
        if (!asked)
            found = found_here;
        for (size_t k = 0; asked && found_here && k < n; k++) {
            found += here[k] > answer[k];
            answer[k] |= here[k];
        }
        asked = true;
    }
    if (!asked)
        memset(answer, false, n);
    return found;
}

/* Collects the missing keys first, so that the part still gets them as one batch.  After an
 * error *done is the number of the key that met it, counted over all n keys. */
int parts_add_missing(perhaps_filter *part, const struct keyhash *keys, size_t n,
                      bool unless_present, bool *answer, size_t *done)
{
    struct keyhash missing[BATCH_MOST];
    bool was_there[BATCH_MOST];
    size_t count = 0, added;
    *done = n;
    for (size_t i = 0; i < n; i++)
        if (!answer[i])
            missing[count++] = keys[i];
    if (!count)
        return 0;
    part->kind->prefetch(part, missing, count);
    int error =
        filter_add_hashed(part, missing, missing, count, unless_present, was_there, &added);
    for (size_t i = 0, at = 0; i < n; i++) {
        if (answer[i])
            continue;
        if (at == added) { /* key i met the error */
            *done = i;
            break;
        }
        answer[i] = was_there[at++];
    }
    return error;
}

/* The load is the mean over the parts, weighted by the sizes of their bodies.  Each part may
 * read its share of most_nbytes. */
struct fill parts_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    struct fill all = { 0 };
    double nbytes = 0;
    size_t count = parts_count(f);
    for (size_t i = count; i > 0; i--) {
        const perhaps_filter *part = f->parts->part[i - 1];
        struct fill fill = part->kind->measure(part, most_nbytes / count);
        double weight = (double)filter_geometry(part).body_nbytes;
        all.fpr = either(all.fpr, fill.fpr);
        all.load += fill.load * weight;
        nbytes += weight;
        all.segments += fill.segments;
        all.saturated += fill.saturated;
        all.stale += fill.stale;
    }
    all.load /= nbytes > 0 ? nbytes : 1;
    return all;
}
