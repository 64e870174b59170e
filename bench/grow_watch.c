/* grow_watch.c - watches how much memory a filter takes, and how often it errs, while it grows.
 *
 * Its memory comes from an allocator that counts, so that a look at it costs nothing.  The most
 * that was in use since the last look counts, so that memory taken for a moment counts, too.
 * perhaps_stats_of() reads the body, and so is called only at the stops: STOPS_A_DOUBLING for
 * each doubling of the keys. */
#include <math.h>
#include <stdlib.h>

#include "grow.h"
#include <perhaps_plan.h>

/* WATCH_KEYS: keys from one look to the next. */
enum { STOPS_A_DOUBLING = 8, WATCH_KEYS = 4096, LAYER_STOPS = 3 };

/* Where a chain is looked at, as a ratio of keys to the sum of its layers' capacities: when the
 * layers are just full; in between; and just before the next layer is full, in a chain whose
 * layers double. */
static const double fullness[LAYER_STOPS] = { 1, 1.5, 1.99 };

/* One filter that is being watched; it belongs to grow_watch().  The filter's allocator has its
 * address, so it stays where it is. */
struct watch {
    struct growth *growth;
    perhaps_filter *filter;
    struct key_buffer buffer;
    uint64_t nbytes, most; /* memory in use now, and the most since the last look */
    uint64_t keys;         /* how many are in */

    /* Looks count from 'worst_from' keys on.  The worst look had 'worst_keys' keys, and took
     * 'worst_bits' bits for each. */
    uint64_t worst_from, worst_keys, looks;
    double worst_bits;
    size_t layer_stops; /* how many of 'fullness' are behind us */
};

/* ---- Memory ------------------------------------------------------------------------------ */

static void *watch_allocate(void *context, size_t nbytes)
{
    struct watch *w = context;
    void *memory = malloc(nbytes);
    if (!memory)
        return NULL;
    w->nbytes += nbytes;
    if (w->most < w->nbytes)
        w->most = w->nbytes;
    return memory;
}

static void watch_release(void *context, void *memory, size_t nbytes)
{
    struct watch *w = context;
    w->nbytes -= nbytes;
    free(memory);
}

/* Notes the memory of the current piece, and the worst look. */
static void look_at_memory(struct watch *w)
{
    double bits = 8 * (double)w->most / (double)w->keys;
    w->growth->piece_nbytes[w->keys / w->growth->settings->piece] = w->nbytes;
    w->most = w->nbytes;
    if (w->keys < w->worst_from)
        return;
    w->looks++;
    if (bits > w->worst_bits) {
        w->worst_bits = bits;
        w->worst_keys = w->keys;
    }
}

/* ---- Growing ----------------------------------------------------------------------------- */

/* Adds keys until there are 'keys' of them.  Returns NULL, or what is wrong. */
static const char *watch_until(struct watch *w, uint64_t keys)
{
    while (w->keys < keys) {
        size_t count = piece_of(keys - w->keys, WATCH_KEYS);
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

/* Returns the bits a key of a filter of fixed size, planned for the keys that are in; 0 if
 * there cannot be one. */
static double planned_bits(const struct watch *w, double fpr)
{
    struct perhaps_options options = { .capacity = w->keys,
                                       .fpr = fpr,
                                       .kind = w->growth->fixed };
    struct perhaps_plan plan;
    return perhaps_plan_for(&options, &plan) ? 0 : plan.bits_per_key;
}

/* Adds a stop to the row: memory and rate as they are now.  'doubled' marks the stops that the
 * table shows: one for each doubling, and the last of all. */
static void note_stop(const struct watch *w, bool doubled)
{
    struct growth *growth = w->growth;
    struct perhaps_stats stats;
    perhaps_stats_of(w->filter, &stats);
    growth->nbytes = stats.memory_nbytes;
    growth->parts = stats.parts ? stats.parts : stats.elastic.segments;
    growth->fpr_now = stats.fpr_now;
    growth->planned_bits = planned_bits(w, stats.fpr_now);
    json_array_append_new(
        json_object_get(growth->row, "stops"),
        json_pack("{s:I, s:I, s:f, s:f, s:I, s:f, s:b}", "keys", (json_int_t)w->keys, "bytes",
                  (json_int_t)stats.memory_nbytes, "bits_per_key",
                  8 * (double)stats.memory_nbytes / (double)w->keys, "fpr_now", stats.fpr_now,
                  "parts", (json_int_t)growth->parts, "fixed_bits_per_key",
                  growth->planned_bits, "doubled", doubled));
}

/* ---- Where layers begin ------------------------------------------------------------------ */

/* Returns the sum of the capacities of the first layers.  It takes as many layers as it can so
 * that all of 'fullness' is reached with the keys that there will be. */
static double boundary_of(const struct growth *growth)
{
    const struct perhaps_options *options = &growth->options;
    double layer = (double)options->capacity, sum = layer;
    double most = (double)growth->keys / fullness[LAYER_STOPS - 1];
    while (sum + layer * options->chain.factor <= most) {
        layer *= options->chain.factor;
        sum += layer;
    }
    return sum;
}

/* Adds to the row what the chain takes at this stop, beside a planned filter of the same
 * rate. */
static void note_layer_stop(struct watch *w)
{
    struct growth *growth = w->growth;
    double planned = planned_bits(w, growth->options.fpr);
    double bits = 8 * (double)perhaps_memory_nbytes(w->filter) / (double)w->keys;
    json_array_append_new(json_object_get(growth->row, "layer_stops"),
                          json_pack("{s:f, s:s, s:I, s:f, s:f, s:f}", "full",
                                    fullness[w->layer_stops++], "filter", growth->name, "keys",
                                    (json_int_t)w->keys, "bits_per_key", bits,
                                    "planned_bits_per_key", planned, "ratio", bits / planned));
}

/* Adds keys until there are 'keys' of them, and stops on the way where layers begin.  Returns
 * NULL, or what is wrong. */
static const char *watch_layers_until(struct watch *w, uint64_t keys)
{
    const char *problem = NULL;
    while (w->growth->has_layers && w->layer_stops < LAYER_STOPS && !problem) {
        uint64_t at = (uint64_t)(fullness[w->layer_stops] * boundary_of(w->growth));
        if (at > keys)
            break;
        problem = watch_until(w, at);
        if (!problem)
            note_layer_stop(w);
    }
    return problem ? problem : watch_until(w, keys);
}

/* ---- All of it --------------------------------------------------------------------------- */

/* Adds all keys, and notes the stops.  Returns NULL, or what is wrong. */
static const char *watch_all(struct watch *w)
{
    const struct growth *growth = w->growth;
    for (int i = 0; w->keys < growth->keys; i++) {
        double keys = growth->settings->start.at[0] * exp2(i / (double)STOPS_A_DOUBLING);
        bool is_last = keys >= (double)growth->keys;
        const char *problem = watch_layers_until(w, is_last ? growth->keys : (uint64_t)keys);
        if (problem)
            return problem;
        note_stop(w, is_last || i % STOPS_A_DOUBLING == 0);
    }
    return NULL;
}

/* The worst look counts from a million keys on (or from a tenth of all): a small filter may
 * well be too large by a few pages, since that is little memory. */
const char *grow_watch(struct growth *growth)
{
    const uint64_t million = 1000000;
    struct watch w = {
        .growth = growth,
        .buffer = key_buffer_open((size_t)growth->settings->key_nbytes.at[0], WATCH_KEYS),
        .worst_from = growth->keys / 10 < million ? growth->keys / 10 : million,
    };
    struct perhaps_allocator allocator = { watch_allocate, watch_release, &w, false };
    const char *problem = grow_create(growth, &allocator, &w.filter);
    if (!problem)
        problem = watch_all(&w);
    perhaps_free(w.filter);
    key_buffer_close(&w.buffer);
    json_object_update_new(
        growth->row,
        json_pack("{s:I, s:f, s:I, s:I, s:I}", "worst_from_keys", (json_int_t)w.worst_from,
                  "worst_bits_per_key", w.worst_bits, "worst_at_keys", (json_int_t)w.worst_keys,
                  "looks", (json_int_t)w.looks, "keys_a_look", (json_int_t)WATCH_KEYS));
    return problem;
}
