/* grow_time.c - how long it takes to grow, to be asked then, and to forget again.
 *
 * Keys come in batches of a piece.  In turn with each piece come as many bare accesses to as
 * many bytes as the filter has at that moment (yardstick.c), and in the asking as many
 * questions to a filter of fixed size with the same keys.  Of each piece the best of all passes
 * counts; it grows anew in each. */
#include <malloc.h>
#include <stdlib.h>

#include "grow.h"

struct race {
    struct growth *growth;
    const struct contender *calls; /* serve for all kinds */
    perhaps_filter *filter, *fixed;
    struct key_buffer buffer;
    uint64_t *offsets;
    bool *answers;
    struct yardstick yardstick;
    uint64_t aimed;
    uint64_t sum; /* of what the yardstick read, so that it must be */
    struct timing add, add_bare;
    struct timing ask[OPERATIONS], ask_bare[OPERATIONS], ask_fixed[OPERATIONS];
    struct timing remove, remove_bare;
};

static size_t pieces_of(const struct growth *growth)
{
    size_t piece = growth->settings->piece;
    return (size_t)((growth->keys + piece - 1) / piece);
}

static size_t piece_at(const struct growth *growth, uint64_t first)
{
    uint64_t left = growth->keys - first;
    return left < growth->settings->piece ? (size_t)left : growth->settings->piece;
}

/* Touches as many lines as a piece has keys, in memory of so many bytes. */
static void bare_lap(struct race *race, struct timing *timing, size_t lap,
                     enum operation operation, uint64_t nbytes)
{
    size_t lines = race->growth->settings->piece;
    struct yardstick part = race->yardstick;
    if (nbytes / 64 < part.nlines)
        part.nlines = nbytes / 64 + 1;
    yardstick_aim(&part, race->offsets, race->aimed, lines);
    race->aimed += lines;
    double start = seconds_now();
    race->sum += yardstick_touch(&part, operation, BATCHED, race->offsets, lines);
    timing_note(timing, lap, seconds_now() - start, lines);
}

/* ---- Growing ----------------------------------------------------------------------------- */

static const char *add_piece(struct race *race, size_t lap, uint64_t first)
{
    struct growth *growth = race->growth;
    bare_lap(race, &race->add_bare, lap, ADD, growth->piece_nbytes[lap]);
    struct perhaps_keys keys = keys_added(&race->buffer, first, piece_at(growth, first));
    double start = seconds_now();
    size_t added = race->calls->add[BATCHED](race->filter, &keys);
    timing_note(&race->add, lap, seconds_now() - start, added);
    return added == keys.count ? NULL : "did not take all keys";
}

static const char *grow(struct race *race)
{
    const struct growth *growth = race->growth;
    perhaps_free(race->filter);
    const char *problem = grow_create(growth->grower, NULL, &race->filter);
    for (size_t lap = 0; lap < pieces_of(growth) && !problem; lap++) {
        uint64_t first = lap * growth->settings->piece;
        problem = add_piece(race, lap, first);
        grow_progress(growth, "add", first);
    }
    return problem;
}

/* Of the pieces that come when half of the keys are in. */
static double last_doubling_ns(const struct growth *growth, const struct timing *timing)
{
    size_t from = timing->count - timing->count / 2;
    if (growth->keys < 2 * growth->settings->piece)
        from = 0;
    struct timing last = { .laps = timing->laps + from, .count = timing->count - from };
    return timing_ns(&last);
}

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

static const char *grow_passes(struct race *race)
{
    struct growth *growth = race->growth;
    const char *problem = NULL;
    malloc_trim(0); /* else it grows into what others have left */
    uint64_t before = resident_nbytes();
    for (uint64_t pass = 0; pass < growth->settings->repeat && !problem; pass++) {
        problem = grow(race);
        uint64_t after = resident_nbytes();
        if (pass == 0)
            growth->resident_nbytes = after > before ? after - before : 0;
    }
    growth->add = (struct speed){ timing_ns(&race->add), timing_ns(&race->add_bare) };
    growth->add_last = (struct speed){ last_doubling_ns(growth, &race->add),
                                       last_doubling_ns(growth, &race->add_bare) };
    return problem;
}

/* ---- Asking ------------------------------------------------------------------------------ */

static const char *make_fixed(struct race *race)
{
    const struct growth *growth = race->growth;
    struct perhaps_options options = growth->grower->options;
    options.kind = growth->grower->fixed;
    options.base = NULL;
    options.window = (struct perhaps_window_options){ 0 };
    options.capacity = growth->keys;
    options.fpr = last_stop(growth)->fpr_now;
    int error = perhaps_create(&options, &race->fixed);
    if (error)
        return perhaps_strerror(error);
    for (uint64_t first = 0; first < growth->keys; first += piece_at(growth, first)) {
        struct perhaps_keys keys = keys_added(&race->buffer, first, piece_at(growth, first));
        if (race->calls->add[BATCHED](race->fixed, &keys) != keys.count)
            return "the filter of fixed size did not take all keys";
        grow_progress(growth, "fixed", first);
    }
    return NULL;
}

static size_t ask_timed(const struct race *race, const perhaps_filter *filter,
                        const struct perhaps_keys *keys, struct timing *timing, size_t lap)
{
    double start = seconds_now();
    size_t found = race->calls->ask[BATCHED](filter, keys);
    timing_note(timing, lap, seconds_now() - start, keys->count);
    return found;
}

static const char *ask_piece(struct race *race, enum operation operation, size_t lap,
                             uint64_t first)
{
    struct growth *growth = race->growth;
    size_t count = growth->settings->piece;
    bare_lap(race, &race->ask_bare[operation], lap, operation, last_stop(growth)->nbytes);
    struct perhaps_keys keys = operation == ASK_PRESENT
                                   ? keys_present(&race->buffer, first, count, growth->keys)
                                   : keys_absent(&race->buffer, first, count);
    size_t found = ask_timed(race, race->filter, &keys, &race->ask[operation], lap);
    ask_timed(race, race->fixed, &keys, &race->ask_fixed[operation], lap);
    if (operation == ASK_PRESENT && found != count) {
        growth->wrong = true;
        return "WRONG: a key that was added is not found";
    }
    return NULL;
}

static const char *ask_passes(struct race *race)
{
    struct growth *growth = race->growth;
    const struct settings *settings = growth->settings;
    const char *problem = NULL;
    for (uint64_t i = 0; i < settings->repeat * settings->rounds && !problem; i++) {
        size_t lap = (size_t)(i % settings->rounds);
        problem = ask_piece(race, ASK_ABSENT, lap, i * settings->piece);
        if (!problem)
            problem = ask_piece(race, ASK_PRESENT, lap, i * settings->piece);
        grow_progress(growth, "ask", i % settings->rounds * growth->keys / settings->rounds);
    }
    for (int operation = ASK_ABSENT; operation < OPERATIONS; operation++) {
        growth->ask[operation] = (struct speed){ timing_ns(&race->ask[operation]),
                                                 timing_ns(&race->ask_bare[operation]) };
        growth->fixed_ns[operation] = timing_ns(&race->ask_fixed[operation]);
    }
    return problem;
}

/* Others than those that were timed. */
static void measure_fpr(struct race *race)
{
    enum { QUERIES = 10000000 };
    struct growth *growth = race->growth;
    size_t piece = growth->settings->piece;
    uint64_t found = 0, least = growth->settings->quick ? growth->keys : QUERIES;
    for (; growth->queries < least; growth->queries += piece) {
        struct perhaps_keys keys =
            keys_absent(&race->buffer, (UINT64_C(1) << 40) + growth->queries, piece);
        found += race->calls->ask[BATCHED](race->filter, &keys);
    }
    growth->fpr_measured = (double)found / (double)growth->queries;
}

/* ---- Removing ---------------------------------------------------------------------------- */

/* The keys that are left are all found. */
static const char *check_the_rest(struct race *race, uint64_t left)
{
    enum { PIECES = 16 };
    struct growth *growth = race->growth;
    for (uint64_t i = 0; i < PIECES; i++) {
        size_t piece = growth->settings->piece;
        struct perhaps_keys keys = keys_present(&race->buffer, i * piece, piece, left);
        growth->wrong |= race->calls->ask[BATCHED](race->filter, &keys) != keys.count;
    }
    return growth->wrong ? "WRONG: removals have taken other keys with them" : NULL;
}

/* The keys that came last, half of all. */
static const char *remove_keys(struct race *race)
{
    struct growth *growth = race->growth;
    struct perhaps_stats stats;
    size_t lap = 0;
    for (uint64_t first = growth->keys / 2; first < growth->keys; lap++) {
        size_t nremoved;
        bare_lap(race, &race->remove_bare, lap, ADD, last_stop(growth)->nbytes);
        struct perhaps_keys keys = keys_added(&race->buffer, first, piece_at(growth, first));
        double start = seconds_now();
        int error = perhaps_remove_many(race->filter, &keys, race->answers, &nremoved);
        timing_note(&race->remove, lap, seconds_now() - start, keys.count);
        if (error == PERHAPS_ERR_UNSUPPORTED)
            return NULL;
        growth->wrong |= error || nremoved != keys.count;
        if (growth->wrong)
            return error ? perhaps_strerror(error) : "WRONG: a key could not be removed";
        first += keys.count;
        grow_progress(growth, "remove", first);
    }
    growth->remove = (struct speed){ timing_ns(&race->remove), timing_ns(&race->remove_bare) };
    perhaps_stats_of(race->filter, &stats);
    growth->stale = stats.stale;
    return check_the_rest(race, growth->keys / 2);
}

/* ---- All of it --------------------------------------------------------------------------- */

static int race_open(struct race *race)
{
    const struct growth *growth = race->growth;
    const struct settings *settings = growth->settings;
    size_t adds = pieces_of(growth) + 1;
    int error = key_buffer_open(&race->buffer, (size_t)settings->key_nbytes, settings->piece) |
                yardstick_open(&race->yardstick, last_stop(growth)->nbytes) |
                timing_open(&race->add, adds) | timing_open(&race->add_bare, adds) |
                timing_open(&race->remove, adds) | timing_open(&race->remove_bare, adds);
    for (int operation = 0; operation < OPERATIONS; operation++)
        error |= timing_open(&race->ask[operation], settings->rounds) |
                 timing_open(&race->ask_bare[operation], settings->rounds) |
                 timing_open(&race->ask_fixed[operation], settings->rounds);
    race->offsets = calloc(settings->piece, sizeof *race->offsets);
    race->answers = calloc(settings->piece, sizeof *race->answers);
    return error || !race->offsets || !race->answers ? -1 : 0;
}

static void race_close(struct race *race)
{
    perhaps_free(race->filter);
    perhaps_free(race->fixed);
    key_buffer_close(&race->buffer);
    yardstick_close(&race->yardstick);
    timing_close(&race->add);
    timing_close(&race->add_bare);
    timing_close(&race->remove);
    timing_close(&race->remove_bare);
    for (int operation = 0; operation < OPERATIONS; operation++) {
        timing_close(&race->ask[operation]);
        timing_close(&race->ask_bare[operation]);
        timing_close(&race->ask_fixed[operation]);
    }
    free(race->offsets);
    free(race->answers);
}

const char *grow_time(struct growth *growth)
{
    static struct contender list[CONTENDERS_MAX];
    contenders_list(list);
    struct race race = { .growth = growth, .calls = &list[0] };
    const char *problem = race_open(&race) ? "out of memory" : grow_passes(&race);
    if (!problem)
        problem = make_fixed(&race);
    if (!problem)
        problem = ask_passes(&race);
    if (!problem) {
        measure_fpr(&race);
        growth->fixed_bits = last_stop(growth)->planned_bits;
        problem = remove_keys(&race);
    }
    race_close(&race);
    return problem;
}
