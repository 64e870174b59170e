/* chain.c - scalable filter (Almeida, Baquero, Preguica, Hutchison: Scalable Bloom Filters, IPL
 * 2007), over any kind that adds, merges and does not grow.
 *
 *   parts = layers, the oldest first; layer i is planned for capacity * factor^i keys, with the
 *           fpr p (1 - r) r^i where r = .9: these sum up to at most p, however many there are.
 *           With the factor 1 the capacity doubles from layer 32 on
 *   body  = one line: the number of removals that left a stale entry
 *
 *   layer 0   layer 1          layer 2                          a new key goes to the newest;
 *   [xxxxxxxx][xxxxxxxxxxxxxxx][xxxxxxxxxxx                 ]   one that is full stays as it is
 *
 * A series that falls slowly costs little: the tenth layer takes 1.5 bits a key more than the
 * first one, where halving (r = .5) would take 13 bits more.  The first layer pays
 * log2(1/(1-r)) = 3.3 bits a key, but it is small.
 *
 * A key is absent only if every layer says so.  A removal may find the key in several layers:
 * one of them has the key, the others have an entry of another key that looks the same, and
 * nothing tells which is which.  So it removes nothing, and no key is lost; the entry is stale.
 * The layers cannot be merged into one without the keys.
 *
 * The union of two chains is that of their layers, one by one.
 *
 * Limits: PERHAPS_LAYERS_MAX layers.
 * Invariant: each key was added to one of the layers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../base/bytes.h"
#include "../../base/locks.h"
#include "../../base/sizing.h"
#include "../../filter/counters.h"
#include "../kinds.h"
#include "parts.h"
#include <perhaps.h>

static const char *const field_names[] = { "factor", "base", "preference", NULL };
enum { FACTOR, BASE, PREFERENCE }; /* BASE: a kind's id; PREFERENCE: the enum's value + 1 */
enum { FACTOR_USUAL = 2, FACTOR_MAX = 32768 };

/* The fpr of a layer, divided by that of the layer before it. */
static const double tightening = 0.9;

/* What a chain can do if its base can. */
enum { inherited = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT };

/* ---- Layers ---------------------------------------------------------------------------- */

static unsigned factor_of(const struct perhaps_options *options)
{
    return options->chain.factor ? options->chain.factor : FACTOR_USUAL;
}

/* Returns the options of a layer: the base's defaults, with the preference of the chain. */
static struct perhaps_options layer_options(const struct geometry *g)
{
    unsigned preference = (unsigned)g->field[PREFERENCE] - 1;
    return (struct perhaps_options){ .preference = (enum perhaps_preference)preference };
}

/* From this layer on the capacity at least doubles, so that a chain does not come to an end
 * after 64 layers of the same size. */
enum { DOUBLING_FROM = 32 };

/* Returns how many times the capacity of the first layer this layer has. */
static double growth(uint64_t factor, size_t number)
{
    return factor < 2 && number >= DOUBLING_FROM ? exp2((double)(number - DOUBLING_FROM + 1))
                                                 : pow((double)factor, (double)number);
}

static uint64_t layer_capacity(uint64_t first, uint64_t factor, size_t number)
{
    double capacity = (double)first * growth(factor, number);
    return capacity < (double)PERHAPS_CAPACITY_MAX ? (uint64_t)capacity : PERHAPS_CAPACITY_MAX;
}

static double layer_fpr(double all, size_t number)
{
    return all * (1 - tightening) * pow(tightening, (double)number);
}

static int plan_layer(const struct geometry *g, size_t number, struct geometry *layer)
{
    struct perhaps_options options = layer_options(g);
    return parts_plan(g->base, layer_capacity(g->capacity, g->field[FACTOR], number),
                      layer_fpr(g->fpr, number), &options, layer);
}

int perhaps_layer_options(const struct perhaps_options *chain, unsigned index,
                          struct perhaps_options *layer)
{
    unsigned factor = factor_of(chain);
    if (!sizing_in_range(chain->capacity, chain->fpr) || factor > FACTOR_MAX)
        return PERHAPS_ERR_ARGUMENT;
    if (index >= PERHAPS_LAYERS_MAX)
        return PERHAPS_ERR_LAYERS;
    double fpr = layer_fpr(chain->fpr, index);
    if (fpr < PERHAPS_FPR_MIN)
        return PERHAPS_ERR_LIMIT;
    *layer = *chain;
    layer->capacity = layer_capacity(chain->capacity, factor, index);
    layer->fpr = fpr;
    return 0;
}

/* Appends a new, empty layer.  Returns 0 or an error, and then changes nothing. */
static int append_layer(perhaps_filter *f)
{
    struct geometry layer = { 0 };
    if (f->parts->count == PERHAPS_LAYERS_MAX)
        return PERHAPS_ERR_LAYERS;
    struct perhaps_options options = layer_options(&f->body.geometry);
    int error = plan_layer(&f->body.geometry, f->parts->count, &layer);
    return error ? error : parts_append(f, f->body.geometry.base, &layer, &options);
}

/* How many removals left a stale entry. */
static uint64_t *stale_of(const perhaps_filter *f)
{
    return (uint64_t *)(void *)f->body.bytes;
}

static perhaps_filter *newest(const perhaps_filter *f)
{
    return f->parts->part[parts_count(f) - 1];
}

/* Returns whether a layer that refuses keys is really used up.  If it holds less than half of
 * its capacity, crafted keys have filled it, and more memory would not help.  Copies fill a
 * layer earlier: with four of each key a cuckoo filter refuses one from a third of its
 * capacity on, and a small one now and then from the beginning. */
static bool is_spent(const perhaps_filter *layer)
{
    enum { COPIES_SHARE = 16, SMALL = 4096 };
    const uint64_t keys = counter_get(&layer->counters->keys);
    const uint64_t capacity = layer->body.geometry.capacity;
    return keys >= capacity / 2 ||
           (layer->removes && (keys >= capacity / COPIES_SHARE || capacity <= SMALL));
}

/* Appends a layer after 'full' has refused a key.  Other threads may find 'full' full at the
 * same time: only the first of them appends.  Returns 0 or an error of append_layer(), or
 * PERHAPS_ERR_FULL. */
static int grow(perhaps_filter *f, const perhaps_filter *full)
{
    if (!is_spent(full))
        return PERHAPS_ERR_FULL;
    if (f->shared)
        lock_take(&f->limit_lock);
    int error = newest(f) == full ? append_layer(f) : 0;
    if (f->shared)
        lock_release(&f->limit_lock);
    return error;
}

/* ---- Plan ------------------------------------------------------------------------------ */

/* Checks whether a chain can have layers of this kind. */
static bool may_be_base(const struct filter_kind *kind)
{
    return kind && kind->add && kind->merge && !kind->exact && !kind->composite &&
           !(kind->about.abilities & PERHAPS_CAN_GROW);
}

static int chain_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    struct geometry own = { 0 }, *first = g->first ? g->first : &own;
    unsigned factor = factor_of(options);
    if (!g->base)
        g->base = &kind_blocked;
    if (factor > FACTOR_MAX || !may_be_base(g->base))
        return PERHAPS_ERR_ARGUMENT;
    g->field[FACTOR] = factor;
    g->field[BASE] = g->base->id;
    g->field[PREFERENCE] = (uint64_t)options->preference + 1;
    int error = plan_layer(g, 0, first);
    g->extra_nbytes = first->body_nbytes;
    snprintf(why, WHY_NBYTES,
             "grows by layers of '%s', each %u times the one before: few bits a key where a "
             "layer is full; all are asked",
             g->base->about.name, factor);
    return error;
}

/* A number with one digit behind the point, as text. */
struct tenths {
    char text[24];
};

/* Writes a point whatever the program's locale is, which "%.1f" would not. */
static struct tenths tenths(double x)
{
    struct tenths t;
    unsigned long long n = (unsigned long long)(10 * x + .5);
    snprintf(t.text, sizeof t.text, "%llu.%llu", n / 10, n % 10);
    return t;
}

/* Tells what becomes of the chain when it has grown 1,000 times.  A smaller factor takes less
 * memory at worst, and makes more layers. */
static void explain(const struct geometry *g, char *why)
{
    const double grown = 1000 * (double)g->capacity;
    double keys = 0, nbytes = 0, worst = 0;
    size_t layers = 0;
    for (; keys < grown && layers < PERHAPS_LAYERS_MAX; layers++) {
        struct geometry layer = { 0 };
        if (plan_layer(g, layers, &layer))
            break;
        nbytes += (double)layer.body_nbytes;
        worst = keys > 0 ? 8 * nbytes / keys : 0;
        keys += (double)layer.capacity;
    }
    const double full = keys > 0 ? 8 * nbytes / keys : 0;
    snprintf(
        why, WHY_NBYTES,
        "layers of '%s', each %u times the last, all are asked: grown %.0f times %zu layers, "
        "%s bits a key if full, %s at worst",
        g->base->about.name, (unsigned)g->field[FACTOR],
        fmin(keys, grown) / (double)g->capacity, layers, tenths(full).text, tenths(worst).text);
}

static int chain_set_geometry(struct geometry *g)
{
    const struct filter_kind *base = g->base;
    if (g->field[FACTOR] < 1 || g->field[FACTOR] > FACTOR_MAX || g->field[BASE] > UINT32_MAX ||
        !may_be_base(base) || g->field[PREFERENCE] < 1 ||
        g->field[PREFERENCE] > PERHAPS_PREFER_COMPACT + 1)
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = LINE_NBYTES;
    g->key_limit = KEYS_UNLIMITED;
    g->fpr_until = UINT64_MAX;
    return 0;
}

/* All layers but the newest hold their capacity. */
static double chain_predict(const struct geometry *g, double keys)
{
    double all = 0;
    for (size_t i = 0; i < PERHAPS_LAYERS_MAX && keys > 0; i++) {
        struct geometry layer = { 0 };
        if (plan_layer(g, i, &layer))
            break;
        double here = fmin(keys, (double)layer.capacity);
        all = either(all, g->base->predict(&layer, here));
        keys -= here;
    }
    return all;
}

static int begin(perhaps_filter *f, const struct perhaps_options *options)
{
    (void)options;
    const struct geometry *first = f->body.geometry.first;
    struct perhaps_options own = layer_options(&f->body.geometry);
    return first ? parts_append(f, f->body.geometry.base, first, &own) : append_layer(f);
}

static int chain_attach(perhaps_filter *f)
{
    if (!parts_attach(f, f->body.geometry.base))
        return PERHAPS_ERR_DAMAGED;
    const struct filter_kind *base = f->body.geometry.base;
    f->removes = base->remove && !f->is_set;
    f->counts = base->count && !f->is_set;
    return 0;
}

static void chain_clear(perhaps_filter *f)
{
    while (f->parts->count > 1)
        perhaps_free(f->parts->part[--f->parts->count]);
    perhaps_clear(f->parts->part[0]);
    *stale_of(f) = 0;
}

static struct fill chain_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    struct fill fill = parts_measure(f, most_nbytes);
    fill.stale += counter_get(stale_of(f));
    return fill;
}

/* ---- Operations ------------------------------------------------------------------------ */

static size_t chain_contains(const perhaps_filter *f, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer)
{
    return parts_contain(f, 0, parts_count(f), keys, ahead, n, answer);
}

static uint64_t chain_count(const perhaps_filter *f, const struct keyhash *key)
{
    uint64_t copies = 0;
    for (size_t i = parts_count(f); i > 0; i--)
        copies += f->parts->part[i - 1]->kind->count(f->parts->part[i - 1], key);
    return copies;
}

/* Looks once more whether older layers have keys, where contains() does not suffice: another
 * thread may not have noticed yet that a layer is no longer the newest, and add to it.  Returns
 * how many answers are true then. */
static size_t confirm(const perhaps_filter *f, size_t end, const struct keyhash *keys, size_t n,
                      bool *answer)
{
    const struct filter_kind *base = f->body.geometry.base;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const bool perhaps = answer[i];
        answer[i] = false;
        for (size_t layer = end; perhaps && layer > 0 && !answer[i]; layer--)
            answer[i] = base->holds(f->parts->part[layer - 1], &keys[i]);
        found += answer[i];
    }
    return found;
}

/* To be called when the newest layer has refused a copy of a key.  Returns 0 if it has
 * appended a layer; PERHAPS_ERR_COPIES if the key has as many copies as the base holds, or if
 * there is room in the layer, but none where this key can lie; or an error of grow(). */
static int grow_for_copy(perhaps_filter *f, const perhaps_filter *layer,
                         const struct keyhash *key)
{
    const struct filter_kind *base = f->body.geometry.base;
    if (base->copies_most && base->count && chain_count(f, key) >= base->copies_most)
        return PERHAPS_ERR_COPIES;
    const int error = grow(f, layer);
    return error == PERHAPS_ERR_FULL ? PERHAPS_ERR_COPIES : error;
}

/* Adds keys to the newest layer, until it is full: then appends a layer and returns 0 with
 * *done < n.  A key that an older layer has is not added again, unless its copies count. */
static int add_some(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                    size_t n, bool unless_present, bool *answer, size_t *done)
{
    size_t count = parts_count(f);
    perhaps_filter *layer = f->parts->part[count - 1];
    bool copies = f->removes && !unless_present;
    size_t found = 0;
    if (copies)
        memset(answer, false, n);
    else
        found = parts_contain(f, 0, count - 1, keys, ahead, n, answer);
    if (found && f->shared && f->body.geometry.base->holds)
        found = confirm(f, count - 1, keys, n, answer);
    int error = found ? parts_add_missing(layer, keys, n, unless_present, answer, done)
                      : filter_add_hashed(layer, keys, ahead, n, unless_present, answer, done);
    if (copies && (error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES))
        return grow_for_copy(f, layer, &keys[*done]);
    return error == PERHAPS_ERR_FULL ? grow(f, layer) : error;
}

static int chain_add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                     size_t n, bool unless_present, bool *answer, size_t *done)
{
    int error = 0;
    for (*done = 0; *done < n && !error;) {
        size_t at = *done, added;
        error = add_some(f, keys + at, ahead + at, n - at, unless_present, answer + at, &added);
        *done += added;
    }
    return error;
}

/* Returns how many layers have the key, and sets *layer to one of them. */
static unsigned find_layers(const perhaps_filter *f, const struct keyhash *key,
                            perhaps_filter **layer)
{
    unsigned found = 0;
    for (size_t i = parts_count(f); i > 0; i--) {
        bool here;
        perhaps_filter *part = f->parts->part[i - 1];
        if (!part->kind->contains(part, key, key, 1, &here))
            continue;
        *layer = part;
        found++;
    }
    return found;
}

/* Removes a key from the layer that has it.  If several layers seem to have it, removes it from
 * none and counts that in the body; the answer is true all the same. */
static size_t remove_(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t removed = 0;
    parts_prefetch(f, ahead, n);
    for (size_t i = 0; i < n; i++) {
        perhaps_filter *layer = NULL;
        unsigned found = find_layers(f, &keys[i], &layer);
        if (found > 1)
            counter_add(f, stale_of(f), 1);
        answer[i] = found > 1 ||
                    (found && filter_remove_hashed(layer, &keys[i], &keys[i], 1, &answer[i]));
        removed += answer[i];
    }
    return removed;
}

/* Unites the layers of the same number.  None takes keys of another: a bit or a fingerprint
 * does not tell where its key would lie there.  So a layer that two full ones do not fit into
 * refuses them, however empty later layers are, and appending a layer would not help. */
static int chain_merge(perhaps_filter *f, const perhaps_filter *other)
{
    uint64_t keys = 0;
    int error = 0;
    for (size_t i = 0; i < other->parts->count && !error; i++) {
        const perhaps_filter *layer = other->parts->part[i];
        if (i < f->parts->count)
            error = parts_unite(f, i, layer);
        else if (layer->body.geometry.fpr > layer_fpr(f->body.geometry.fpr, i))
            error = PERHAPS_ERR_MISMATCH; /* no chain of this geometry made it */
        else
            error = parts_append_copy(f, layer);
    }
    for (size_t i = 0; i < f->parts->count; i++)
        keys += f->parts->part[i]->counters->keys;
    *stale_of(f) += *stale_of(other);
    f->counters->keys = keys - (*stale_of(f) < keys ? *stale_of(f) : keys);
    return error;
}

/* Each layer keeps its share of the fpr. */
static double part_fpr(const perhaps_filter *f, size_t i, double fpr)
{
    return f->parts->part[i]->body.geometry.fpr * (fpr / f->body.geometry.fpr);
}

static const struct composite composite = {
    .base_field = BASE,
    .inherits = inherited,
    .begins_with = 1,
    .begin = begin,
    .attach = chain_attach,
    .part_fpr = part_fpr,
};

const struct filter_kind kind_chain = {
    .about = { .name = "chain",
               .summary = "layers of another kind: grows, with few bits a key; keys stay",
               .abilities = PERHAPS_CAN_GROW | PERHAPS_CAN_MERGE | PERHAPS_CAN_THREADS },
    .id = 6,
    .composite = &composite,
    .field_names = field_names,
    .plan = chain_plan,
    .explain = explain,
    .set_geometry = chain_set_geometry,
    .clear = chain_clear,
    .predict = chain_predict,
    .measure = chain_measure,
    .prefetch = parts_prefetch,
    .contains = chain_contains,
    .add = chain_add,
    .remove = remove_,
    .count = chain_count,
    .merge = chain_merge,
};
