/* grow_watch.c - what a filter takes, and how often it errs, while it grows.
 *
 * Its memory comes from an allocator that counts, so that a look at it costs nothing; the most
 * that was in use between two looks is what counts, so that memory for a moment counts, too.
 * perhaps_stats_of() is called at the stops only. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

struct purse {
    uint64_t nbytes;
    uint64_t most; /* since the last look */
};

struct watch {
    struct growth *growth;
    perhaps_filter *filter;
    struct key_buffer buffer;
    struct purse purse;
    uint64_t keys; /* that are in */
};

/* ---- Memory ---------------------------------------------------------------------------- */

static void *purse_allocate(void *context, size_t nbytes)
{
    struct purse *purse = context;
    void *memory = aligned_alloc(64, (nbytes + 63) / 64 * 64);
    if (!memory)
        return NULL;
    memset(memory, 0, nbytes);
    purse->nbytes += nbytes;
    if (purse->most < purse->nbytes)
        purse->most = purse->nbytes;
    return memory;
}

static void purse_release(void *context, void *memory, size_t nbytes)
{
    struct purse *purse = context;
    purse->nbytes -= nbytes;
    free(memory);
}

static void look_at_memory(struct watch *w)
{
    struct growth *growth = w->growth;
    double bits = 8 * (double)w->purse.most / (double)w->keys;
    growth->piece_nbytes[w->keys / growth->settings->piece] = w->purse.nbytes;
    w->purse.most = w->purse.nbytes;
    if (w->keys < worst_from(growth->settings))
        return;
    growth->looks++;
    if (bits > growth->worst_bits) {
        growth->worst_bits = bits;
        growth->worst_keys = w->keys;
    }
}

/* ---- Growing ----------------------------------------------------------------------------- */

/* Adds until there are 'keys' keys. */
static const char *watch_until(struct watch *w, uint64_t keys)
{
    while (w->keys < keys) {
        size_t count = keys - w->keys < WATCH_KEYS ? (size_t)(keys - w->keys) : WATCH_KEYS;
        struct perhaps_keys batch = keys_added(&w->buffer, w->keys, count);
        int error = perhaps_add_many(w->filter, &batch, NULL);
        if (error)
            return perhaps_strerror(error);
        w->keys += count;
        look_at_memory(w);
        grow_progress(w->growth, "watched", w->keys);
    }
    return NULL;
}

static void note_stop(struct watch *w, bool doubled)
{
    struct growth *growth = w->growth;
    struct perhaps_stats stats;
    perhaps_stats_of(w->filter, &stats);
    growth->stops[growth->nstops++] = (struct stop){
        .keys = w->keys,
        .nbytes = stats.memory_nbytes,
        .fpr_now = stats.fpr_now,
        .parts = stats.parts ? stats.parts : stats.elastic.segments,
        .planned_bits = grow_planned_bits(growth->grower, w->keys, stats.fpr_now),
        .doubled = doubled,
    };
}

/* ---- Where layers begin ------------------------------------------------------------------ */

static const double fullness[LAYER_STOPS] = { 1, 1.5, 1.99 };

/* The sum of the capacities of as many layers as can be filled by the half of the keys. */
static double boundary_of(const struct growth *growth)
{
    const struct perhaps_options *options = &growth->grower->options;
    double layer = (double)options->capacity, sum = layer;
    double most = (double)growth->keys / fullness[LAYER_STOPS - 1];
    while (sum + layer * options->chain.factor <= most) {
        layer *= options->chain.factor;
        sum += layer;
    }
    return sum;
}

/* Deals with what of them comes until there are 'keys' keys. */
static const char *watch_layers_until(struct watch *w, uint64_t keys)
{
    struct growth *growth = w->growth;
    const struct grower *grower = growth->grower;
    while (grower->has_layers && growth->nlayer_stops < LAYER_STOPS) {
        double full = fullness[growth->nlayer_stops];
        uint64_t at = (uint64_t)(full * boundary_of(growth));
        if (at > keys)
            break;
        const char *problem = watch_until(w, at);
        struct perhaps_stats stats;
        if (problem)
            return problem;
        perhaps_stats_of(w->filter, &stats);
        growth->layer_stops[growth->nlayer_stops++] = (struct layer_stop){
            .full = full,
            .keys = at,
            .nbytes = stats.memory_nbytes,
            .planned_bits = grow_planned_bits(grower, at, grower->options.fpr),
        };
    }
    return watch_until(w, keys);
}

/* ---- All of it --------------------------------------------------------------------------- */

static const char *watch_all(struct watch *w)
{
    const struct growth *growth = w->growth;
    const struct settings *settings = growth->settings;
    for (int i = 0; w->keys < growth->keys && growth->nstops < STOPS_MAX; i++) {
        double keys = (double)settings->start * exp2(i / (double)STOPS_A_DOUBLING);
        bool is_last = keys >= (double)growth->keys || growth->nstops == STOPS_MAX - 1;
        const char *problem = watch_layers_until(w, is_last ? growth->keys : (uint64_t)keys);
        if (problem)
            return problem;
        note_stop(w, is_last || i % STOPS_A_DOUBLING == 0);
    }
    return NULL;
}

const char *grow_watch(struct growth *growth)
{
    struct watch w = { .growth = growth };
    struct perhaps_allocator allocator = { purse_allocate, purse_release, &w.purse };
    if (key_buffer_open(&w.buffer, (size_t)growth->settings->key_nbytes, WATCH_KEYS))
        return "out of memory";
    const char *problem = grow_create(growth->grower, &allocator, &w.filter);
    if (!problem)
        problem = watch_all(&w);
    perhaps_free(w.filter);
    key_buffer_close(&w.buffer);
    return problem;
}
