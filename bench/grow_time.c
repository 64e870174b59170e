/* grow_time.c - measures how long a filter takes to grow, to answer then, and to remove keys.
 *
 * Keys come in batches of a piece.  In turn with each piece come as many bare accesses, over as
 * many bytes as the filter has at that moment.  While keys are asked for, a filter of fixed
 * size with the same keys has its turn, too.  A new filter grows in each pass, and the best
 * time of each piece counts. */
#include <malloc.h>

#include "grow.h"

/* Returns how much memory the process has in use, as Linux tells; 0 elsewhere. */
static uint64_t resident_nbytes(void)
{
    unsigned long long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * 4096;
}

/* ---- Growing ----------------------------------------------------------------------------- */

/* Adds or removes all keys from number 'first' on, a piece at a time.  With 'bare' there are
 * bare accesses over what the filter has at that moment.  (1 byte more: 0 would mean none.)
 * Returns NULL, or what is wrong. */
static const char *each_piece(struct race *race, const struct growth *growth,
                              enum operation operation, uint64_t first, bool bare,
                              struct timing *timing)
{
    for (size_t lap = 0; first < growth->keys; lap++, first += race->piece) {
        struct round round = { operation, BATCHED, first, growth->keys };
        race->bare_nbytes = !bare                 ? 0
                            : operation == REMOVE ? growth->nbytes
                                                  : growth->piece_nbytes[lap] + 1;
        size_t done = race_round(race, &round, timing, lap);
        if (done == SIZE_MAX)
            return "cannot";
        if (done != piece_of(growth->keys - first, race->piece))
            return "did not do it with all keys";
        grow_progress(growth, operation_names[operation], first);
    }
    return NULL;
}

/* Lets a new filter grow in each pass; the last one stays in 'race'.  Resident memory is what
 * the first pass adds to the process.  malloc_trim() returns what others left first, or the
 * filter would grow into that and seem smaller.  Returns NULL, or what is wrong. */
static const char *grow_passes(struct race *race, struct growth *growth, json_t *times)
{
    struct timing timing = { 0 };
    const char *problem = NULL;
    malloc_trim(0);
    uint64_t before = resident_nbytes(), after = 0;
    for (uint64_t pass = 0; pass < (uint64_t)growth->settings->repeat.at[0] && !problem;
         pass++) {
        perhaps_filter *filter;
        perhaps_free(race->filter);
        problem = grow_create(growth, NULL, &filter);
        race->filter = filter;
        if (!problem)
            problem = each_piece(race, growth, ADD, 0, true, &timing);
        if (pass == 0)
            after = resident_nbytes();
    }
    double resident = after > before ? (double)(after - before) : 0;
    size_t pieces = (size_t)((growth->keys + race->piece - 1) / race->piece);
    size_t half = growth->keys < 2 * race->piece ? 0 : pieces - pieces / 2;
    json_object_set_new(times, "add", json_speed(timing_speed(&timing, 0)));
    json_object_set_new(times, "add_last_doubling", json_speed(timing_speed(&timing, half)));
    json_object_set_new(growth->row, "resident_bytes", json_real(resident));
    json_object_set_new(growth->row, "resident_bits_per_key",
                        json_real(8 * resident / (double)growth->keys));
    timing_close(&timing);
    return problem;
}

/* ---- Asking ------------------------------------------------------------------------------ */

/* Makes the filter of fixed size: planned for all the keys at the rate that the other one has
 * now, so that both err equally often.  Returns NULL, or what is wrong. */
static const char *make_fixed(struct race *fixed, const struct growth *growth)
{
    struct perhaps_options options = growth->options;
    perhaps_filter *filter;
    options.kind = growth->fixed;
    options.base = NULL;
    options.window = (struct perhaps_window_options){ 0 };
    options.capacity = growth->keys;
    options.fpr = growth->fpr_now;
    int error = perhaps_create(&options, &filter);
    fixed->filter = filter;
    if (error)
        return perhaps_strerror(error);
    return each_piece(fixed, growth, ADD, 0, false, NULL);
}

/* Asks both filters for the same keys, in turn.  Returns NULL, or what is wrong. */
static const char *ask_passes(struct race *race, struct race *fixed, struct growth *growth,
                              enum operation operation, json_t *times)
{
    const struct settings *settings = growth->settings;
    struct timing timing = { 0 }, fixed_timing = { 0 };
    race->bare_nbytes = growth->nbytes;
    fixed->bare_nbytes = 0;
    for (uint64_t i = 0; i < (uint64_t)settings->repeat.at[0] * settings->rounds; i++) {
        size_t lap = (size_t)(i % settings->rounds);
        struct round round = { operation, BATCHED, i * race->piece, UINT64_MAX };
        growth->wrong |=
            race_round(race, &round, &timing, lap) != race->piece && operation == ASK_PRESENT;
        race_round(fixed, &round, &fixed_timing, lap);
        grow_progress(growth, operation_names[operation],
                      lap * growth->keys / settings->rounds);
    }
    json_t *speed = json_speed(timing_speed(&timing, 0));
    double ns = timing_speed(&timing, 0).ns, fixed_ns = timing_speed(&fixed_timing, 0).ns;
    json_object_set_new(speed, "fixed_ns", json_real(fixed_ns));
    json_object_set_new(speed, "to_fixed", json_real(ns / fixed_ns));
    if (growth->has_layers)
        json_object_set_new(speed, "ns_a_layer", json_real(ns / (double)growth->parts));
    json_object_set_new(times, operation_names[operation], speed);
    timing_close(&timing);
    timing_close(&fixed_timing);
    return growth->wrong ? "WRONG: a key that was added is not found" : NULL;
}

/* Measures the rate with other absent keys than those that were timed. */
static void measure_fpr(struct race *race, struct growth *growth)
{
    enum { QUERIES = 10000000 };
    uint64_t found = 0, asked = 0, least = growth->settings->quick ? growth->keys : QUERIES;
    for (; asked < least; asked += race->piece) {
        struct round round = { ASK_ABSENT, BATCHED, (UINT64_C(1) << 40) + asked, UINT64_MAX };
        found += race_round(race, &round, NULL, 0);
    }
    json_object_set_new(growth->row, "fpr_measured", json_real((double)found / (double)asked));
    json_object_set_new(growth->row, "fpr_queries", json_integer((json_int_t)asked));
}

/* ---- Removing ---------------------------------------------------------------------------- */

/* Removes the half of the keys that came last, and checks by a sample that those left are still
 * found.  A filter that cannot remove is left as it is.  Returns NULL, or what is wrong. */
static const char *remove_keys(struct race *race, struct growth *growth, json_t *times)
{
    enum { PIECES = 16 };
    struct timing timing = { 0 };
    struct perhaps_stats stats;
    const char *problem = each_piece(race, growth, REMOVE, growth->keys / 2, true, &timing);
    struct speed speed = timing_speed(&timing, 0);
    timing_close(&timing);
    if (speed.ns <= 0)
        return NULL;
    perhaps_stats_of(race->filter, &stats);
    json_object_set_new(times, "remove", json_speed(speed));
    json_object_set_new(times, "stale", json_integer((json_int_t)stats.stale));
    race->added = growth->keys / 2;
    for (uint64_t i = 0; i < PIECES && !problem; i++) {
        struct round round = { ASK_PRESENT, BATCHED, i * race->piece, UINT64_MAX };
        if (race_round(race, &round, NULL, 0) != race->piece)
            problem = "removals have taken other keys with them";
    }
    growth->wrong |= problem != NULL;
    return problem;
}

/* ---- All of it --------------------------------------------------------------------------- */

const char *grow_time(struct growth *growth)
{
    static struct contender list[CONTENDERS_MAX];
    contenders_list(list);
    /* The calls of all kinds are the same, so those of the first one do. */
    struct race race = { .contender = &list[0], .added = growth->keys };
    struct race fixed = race;
    json_t *times = json_object();
    json_object_set_new(growth->row, "batched", times);
    race_open(&race, 1, growth->settings, growth->nbytes);
    race_open(&fixed, 1, growth->settings, 0);
    const char *problem = grow_passes(&race, growth, times);
    if (!problem)
        problem = make_fixed(&fixed, growth);
    for (int operation = ASK_ABSENT; operation < REMOVE && !problem; operation++)
        problem = ask_passes(&race, &fixed, growth, (enum operation)operation, times);
    if (!problem) {
        measure_fpr(&race, growth);
        problem = remove_keys(&race, growth, times);
    }
    perhaps_free(race.filter);
    perhaps_free(fixed.filter);
    race_close(&race);
    race_close(&fixed);
    return problem;
}
