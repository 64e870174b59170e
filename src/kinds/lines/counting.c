/* counting.c - counting Bloom filter (Fan, Cao, Almeida, Broder: Summary Cache, SIGCOMM 1998
 * and ToN 2000), blocked: it has a counter where blocked.c has a bit, so that keys can be
 * removed and copies counted.
 *
 *   body = 'bands' bands of 'band_lines' lines of 64 bytes, and one line more
 *   line = 16 words of 8 counters of 4 bits; a key has one counter in each of 'line_counters'
 *          words, along the walk of blocked.c
 *   last line = how many counters are not zero, how many are at 15, zeros
 *
 * An add counts the key's counters up, a removal counts them down.  A counter that reaches 15
 * stays there, since nobody knows any more how many copies it stands for.
 *
 * The fpr depends on how many counters are in use (not zero), not on how many copies are
 * stored: another copy of a key takes no new counter.  So the filter limits the number of
 * counters in use, to what 'capacity' different keys take.
 *
 * Many threads.  A writer holds the locks of the lines of its keys (bytes, one for several
 * lines, taken in order).  Readers take no lock.  Far from the limit, a batch reserves all
 * counters that it may need, and gives back the rest afterwards.  Near the limit each key
 * reserves what it needs before it is added.
 *
 * Limits: 8 bands, 16 counters a line.
 * Invariant: a counter is 15, or at least the number of copies of the keys that it belongs
 * to. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../base/locks.h"
#include "../../base/sizing.h"
#include "../../filter/counted.h"
#include "../../filter/counters.h"
#include "../cpu/cpu_loops.h"
#include "../kinds.h"
#include "cells.h"
#include "fold.h"
#include "lines.h"

static const char *const field_names[] = { "band_lines", "bands", "line_counters", NULL };

enum { LINE_COUNTERS = LINE_BITS, CELLS = WORD_COUNTERS * LINE_WORDS };

/* ---- Rate and plan --------------------------------------------------------------------- */

static double counting_predict(const struct geometry *g, double keys)
{
    return lines_predict(g, WORD_COUNTERS, keys);
}

static double counting_counted(const struct geometry *g, double keys)
{
    return lines_counted(g, WORD_COUNTERS, keys);
}

/* Returns how many counters all bands have. */
static double all_counters(const struct geometry *g)
{
    return (double)g->field[BAND_LINES] * (double)g->field[BANDS] * (double)CELLS;
}

/* Returns the logarithm of the chance that a key does not have a given counter of a band. */
static double log_alone(const struct geometry *g)
{
    const double cells = CELLS;
    double chance = (double)g->field[LINE_COUNTERS] / cells / (double)g->field[BAND_LINES];
    return log1p(-chance);
}

/* Returns how many counters may be in use: the expectation for 'capacity' different keys, plus
 * SIZING_DEVIATIONS deviations, so that none of these keys is refused by chance.
 *
 * The deviation has two causes.  First, in a line of i keys the share q^i of the counters is
 * zero, with q = 1 - picks/cells, and i differs from line to line ('between' below).  The band
 * of this that is linear in i cancels out, since the sum of all i is the number of keys.
 * Second, lines with the same i have different numbers of zeros, as random balls leave
 * different numbers of bins empty ('within'). */
static uint64_t counters_limit(const struct geometry *g)
{
    const double cells = CELLS;
    double keys = (double)g->capacity, lines = all_counters(g) / cells;
    double picks = (double)g->field[LINE_COUNTERS];
    double line_marks = picks * keys / (double)g->field[BAND_LINES];
    double mean = -expm1(keys * log_alone(g)) * all_counters(g);
    double empty = exp(-line_marks / cells), curve = line_marks * picks / cells / cells;
    double between = cells * cells * empty * empty * fmin(expm1(curve) - curve, 1e6);
    double within = cells * cells * sizing_occupancy(CELLS, line_marks).variance;
    double limit = mean + SIZING_DEVIATIONS * sqrt(lines * (between + within)) + 1;
    return (uint64_t)fmin(ceil(limit), fmin(all_counters(g), 0x1p63));
}

/* Returns how many different keys take as many counters as are allowed: the plan keeps the fpr
 * for that many. */
static double keys_at_limit(const struct geometry *g)
{
    double share = (double)counters_limit(g) / all_counters(g);
    return share < 1 ? ceil(log1p(-share) / log_alone(g)) : 1e18;
}

/* Returns how many counters may be in use in a geometry that may come from anywhere: the limit
 * above, or fewer if the fpr would not be kept.  With one counter a key the fpr is the share of
 * counters in use. */
static uint64_t counters_within(const struct geometry *g)
{
    double most = keys_at_limit(g);
    uint64_t limit = counters_limit(g);
    if (g->field[BANDS] == 1 && g->field[LINE_COUNTERS] == 1) {
        uint64_t used = sizing_one_cell_limit(all_counters(g), g->fpr);
        return used < limit ? used : limit;
    }
    double keys = lines_keys_within(g, WORD_COUNTERS, most);
    return keys < most ? (uint64_t)(-expm1(keys * log_alone(g)) * all_counters(g)) : limit;
}

/* From this fpr on a key has one line: another one saves little. */
static const double one_line = 1e-2;

static int counting_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    int error = lines_plan(g, WORD_COUNTERS, one_line, options->preference, keys_at_limit);
    if (error)
        return error;
    unsigned bands = (unsigned)g->field[BANDS];
    snprintf(why, WHY_NBYTES,
             "keys are counted to %d and removed: %u counters of %d bits in %s", COUNTER_MAX,
             (unsigned)g->field[LINE_COUNTERS] * bands, COUNTER_NBITS,
             bands == 1 ? "one cache line" : "a few cache lines");
    return 0;
}

static int counting_set_geometry(struct geometry *g)
{
    if (!lines_in_range(g))
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = lines_nbytes(g) + LINE_NBYTES;
    return 0;
}

static void counting_set_limits(struct geometry *g)
{
    g->cell_limit = counters_within(g);
    g->key_limit = KEYS_UNLIMITED; /* copies cost nothing */
}

/* ---- The last line --------------------------------------------------------------------- */

/* Returns the numbers in the last line: COUNTERS_USED and COUNTERS_FULL. */
static uint64_t *totals_of(const perhaps_filter *f)
{
    return lines_totals(&f->body);
}

/* Reserves n counters if the limit allows it, and returns whether it did; n = 0 always
 * succeeds.  The number in use may come from a file and be anything, even above the limit. */
static bool reserve(perhaps_filter *f, uint64_t n)
{
    uint64_t *used = &totals_of(f)[COUNTERS_USED];
    uint64_t now = counter_get(used), limit = f->body.geometry.cell_limit;
    do
        if (n > limit || now > limit - n)
            return n == 0;
    while (f->shared && !__atomic_compare_exchange_n(used, &now, now + n, true,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (!f->shared)
        *used = now + n;
    return true;
}

/* Gives back n reserved counters.  A filter of one thread has no branch here that depends on n:
 * after a single add n is known only when its line has come from memory, and a branch would
 * keep the next call from overlapping with this one. */
static void give_back(perhaps_filter *f, uint64_t n)
{
    uint64_t *used = &totals_of(f)[COUNTERS_USED];
    if (f->shared)
        counter_take(f, used, n);
    else
        *used -= n < *used ? n : *used;
}

static void note_filled(perhaps_filter *f, uint64_t n)
{
    if (n)
        counter_add(f, &totals_of(f)[COUNTERS_FULL], n);
}

/* ---- Fill ------------------------------------------------------------------------------ */

static struct fill counting_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    struct fill fill = lines_measure(f, WORD_COUNTERS, most_nbytes);
    fill.saturated = counter_get(&totals_of(f)[COUNTERS_FULL]);
    return fill;
}

/* ---- Locks ----------------------------------------------------------------------------- */

/* What the threads of a shared filter need: lock_count() locks, a power of two. */
enum { LOCK_BITS_MIN = 6, LOCK_BITS_MAX = 20 };

/* Returns how many locks there are: at least one for each line, but at most a million. */
static uint64_t lock_count(const struct geometry *g)
{
    uint64_t lines = g->field[BAND_LINES] * g->field[BANDS];
    int bits = 64 - __builtin_clzll(lines);
    return UINT64_C(1) << (bits < LOCK_BITS_MIN   ? LOCK_BITS_MIN
                           : bits > LOCK_BITS_MAX ? LOCK_BITS_MAX
                                                  : bits);
}

static size_t counting_writers_nbytes(const struct geometry *g)
{
    return (size_t)lock_count(g);
}

/* The numbers of the locks of a few keys' lines; the same number may occur twice. */
enum { GROUP_LOCKS = LINES_BANDS_MAX };

struct locks {
    unsigned count;
    uint32_t number[GROUP_LOCKS];
};

static void add_locks_of(struct locks *l, const perhaps_filter *f, struct keyhash key)
{
    uint64_t mask = lock_count(&f->body.geometry) - 1,
             band_lines = f->body.geometry.field[BAND_LINES];
    for (uint64_t band = 0; band < f->body.geometry.field[BANDS]; band++) {
        uint64_t line = band * band_lines + scale64(key.place, band_lines);
        l->number[l->count++] = (uint32_t)(line & mask);
        key = blocked_next_band(key);
    }
}

/* Sorts the numbers: locks are taken in order, so that no two writers wait for each other.
 * Finds the place of each by comparing it with all, which needs no branch. */
static void sort_locks(struct locks *l)
{
    struct locks sorted = { .count = l->count };
    for (unsigned i = 0; i < l->count; i++) {
        unsigned place = 0;
        for (unsigned j = 0; j < l->count; j++)
            place += (l->number[j] < l->number[i]) | ((l->number[j] == l->number[i]) & (j < i));
        sorted.number[place] = l->number[i];
    }
    *l = sorted;
}

static void take_locks(const perhaps_filter *f, struct locks *l)
{
    uint8_t *lock = f->body.writers;
    sort_locks(l);
    for (unsigned i = 0; i < l->count; i++)
        if (i == 0 || l->number[i] != l->number[i - 1])
            lock_take(&lock[l->number[i]]);
}

static void release_locks(const perhaps_filter *f, const struct locks *l)
{
    uint8_t *lock = f->body.writers;
    for (unsigned i = 0; i < l->count; i++)
        if (i == 0 || l->number[i] != l->number[i - 1])
            lock_release(&lock[l->number[i]]);
}

/* Prefetches the lines of keys, and their locks, which may lie in other cores' caches. */
static inline __attribute__((always_inline)) void
prefetch_ahead(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    const uint8_t *lock = f->body.writers;
    struct locks l = { 0 };
    loops_prefetch(f, keys, n);
    for (size_t i = 0; i < n; i++)
        add_locks_of(&l, f, keys[i]);
    for (unsigned i = 0; i < l.count; i++)
        __builtin_prefetch(&lock[l.number[i]], 1, 3);
}

/* ---- Operations ------------------------------------------------------------------------ */

static void counting_bind(perhaps_filter *f)
{
    const struct line_loops *lines = cpu_loops[f->cpu].lines;
    f->loops = f->is_set ? &lines->counting_set : &lines->counting;
    f->body.table = lines_table(f->body.geometry.field[LINE_COUNTERS]);
}

/* Changes the counters of n keys, as counting_changer; takes no lock. */
static size_t change(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                     size_t n, enum count_change how, bool *answer, struct count_tally *tally)
{
    return cpu_loops[f->cpu].lines->change(&f->body, keys, ahead, n, how, answer, tally);
}

/* Changes the counters of n keys of a filter that is shared: of a few keys at a time, and holds
 * the locks of all their lines meanwhile. */
static NOINLINE size_t change_locked(perhaps_filter *f, const struct keyhash *keys,
                                     const struct keyhash *ahead, size_t n,
                                     enum count_change how, bool *answer,
                                     struct count_tally *tally)
{
    size_t found = 0;
    size_t most = GROUP_LOCKS / (size_t)f->body.geometry.field[BANDS];
    for (size_t at = 0, group; at < n; at += group) {
        struct locks l = { 0 };
        group = n - at < most ? n - at : most;
        prefetch_ahead(f, ahead + at, group);
        for (size_t i = at; i < at + group; i++)
            add_locks_of(&l, f, keys[i]);
        take_locks(f, &l);
        found += change(f, keys + at, keys + at, group, how, answer + at, tally);
        release_locks(f, &l);
    }
    return found;
}

/* The same for a filter that may be shared. */
static size_t change_safely(perhaps_filter *f, const struct keyhash *keys,
                            const struct keyhash *ahead, size_t n, enum count_change how,
                            bool *answer, struct count_tally *tally)
{
    return f->body.writers ? change_locked(f, keys, ahead, n, how, answer, tally)
                           : change(f, keys, ahead, n, how, answer, tally);
}

/* Batches of fewer keys are not worth a reservation. */
enum { RESERVING_KEYS = 8 };

/* Adds all keys and returns true if there is room even if each needs all its counters.  Else
 * returns false, and has added none. */
static bool add_reserved(perhaps_filter *f, const struct keyhash *keys,
                         const struct keyhash *ahead, size_t n, enum count_change how,
                         bool *answer)
{
    const uint64_t *field = f->body.geometry.field;
    uint64_t most = n * field[BANDS] * field[LINE_COUNTERS];
    struct count_tally tally = { 0 };
    if (f->body.writers && n < RESERVING_KEYS)
        return false;
    holding_begin(f);
    bool reserved = reserve(f, most);
    if (reserved) {
        change_safely(f, keys, ahead, n, how, answer, &tally);
        note_filled(f, tally.filled);
        give_back(f, most - tally.turned);
    }
    holding_end(f);
    return reserved;
}

/* Adds a key if there is room for the counters that it needs.  Returns whether there was. */
static bool try_to_add(perhaps_filter *f, const struct keyhash *key, enum count_change how,
                       bool *answer)
{
    struct locks l = { 0 };
    struct count_tally tally = { 0 };
    if (f->body.writers)
        add_locks_of(&l, f, *key);
    take_locks(f, &l);
    bool room = reserve(f, cpu_loops[f->cpu].lines->zeros(&f->body, *key));
    if (room)
        change(f, key, key, 1, how, answer, &tally);
    release_locks(f, &l);
    note_filled(f, tally.filled);
    return room;
}

/* Adds a key.  Returns 0 or PERHAPS_ERR_FULL.  Another thread may hold counters that it will
 * give back: so a key is refused only if none did during the try. */
static int counting_add_one(perhaps_filter *f, const struct keyhash *key, enum count_change how,
                            bool *answer)
{
    for (;;) {
        const struct holding before = holding_look(f);
        if (try_to_add(f, key, how, answer))
            return 0;
        if (holding_is_over(f, before))
            return PERHAPS_ERR_FULL;
        thread_yield();
    }
}

static int counting_add(perhaps_filter *f, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool unless_present,
                        bool *answer, size_t *done)
{
    enum count_change how = unless_present ? COUNT_UP_ABSENT : COUNT_UP;
    int error = 0;
    *done = 0;
    if (add_reserved(f, keys, ahead, n, how, answer))
        *done = n;
    while (*done < n && !error) {
        loops_prefetch(f, &ahead[*done], 1);
        error = counting_add_one(f, &keys[*done], how, &answer[*done]);
        *done += !error;
    }
    return error;
}

static size_t remove_(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer)
{
    struct count_tally tally = { 0 };
    holding_begin(f); /* counters that have become zero, until they are given back */
    size_t removed = change_safely(f, keys, ahead, n, COUNT_DOWN, answer, &tally);
    give_back(f, tally.turned);
    holding_end(f);
    return removed;
}

/* ---- Two filters, and a smaller one ----------------------------------------------------- */

static uint64_t add_counters(uint64_t a, uint64_t b)
{
    uint64_t low = (a & low_halves) + (b & low_halves);
    uint64_t high = (a >> COUNTER_NBITS & low_halves) + (b >> COUNTER_NBITS & low_halves);
    return counters_clamp(low) | counters_clamp(high) << COUNTER_NBITS;
}

/* Sets the numbers in the last line from all counters. */
static void set_totals(perhaps_filter *f)
{
    uint64_t *totals = totals_of(f), used = 0, full = 0;
    fold_count_counters(f->cpu, f->body.bytes, lines_nbytes(&f->body.geometry), &used, &full);
    totals[COUNTERS_USED] = used;
    totals[COUNTERS_FULL] = full;
}

/* Adds to the number of keys.  It does not wrap, whatever a file said. */
static void count_more(perhaps_filter *f, uint64_t more)
{
    uint64_t limit = f->body.geometry.key_limit, keys = f->counters->keys;
    uint64_t room = keys < limit ? limit - keys : 0;
    f->counters->keys = keys + (more < room ? more : room);
}

/* Returns the smaller one of each pair of counters that have a byte each. */
static uint64_t least_in_bytes(uint64_t a, uint64_t b)
{
    const uint64_t tops = UINT64_C(0x8080808080808080), all = 0xff;
    uint64_t is_less = (((b | tops) - a) & tops) >> 7; /* or equal */
    return (a & is_less * all) | (b & ~(is_less * all));
}

/* Returns the smaller one of each pair of counters. */
static uint64_t smaller_counters(uint64_t a, uint64_t b)
{
    return least_in_bytes(a & low_halves, b & low_halves) |
           least_in_bytes(a >> COUNTER_NBITS & low_halves, b >> COUNTER_NBITS & low_halves)
               << COUNTER_NBITS;
}

/* Of each pair one is the smaller and one the larger, so no sum of halves overflows. */
static uint64_t larger_counters(uint64_t a, uint64_t b)
{
    const uint64_t both = a ^ b;
    return smaller_counters(a, b) ^ both;
}

/* Adds the counters of the two filters; of sets, in which no key counts twice, takes the larger
 * ones.  f is a copy (core/merge.c), which the caller drops after a failure. */
static int counting_merge(perhaps_filter *f, const perhaps_filter *other)
{
    const double one = filter_different(f), two = filter_different(other);
    for (uint64_t at = 0; at < lines_nbytes(&f->body.geometry); at += sizeof(uint64_t)) {
        const uint64_t a = load64(f->body.bytes + at), b = load64(other->body.bytes + at);
        store64(f->body.bytes + at, f->is_set ? larger_counters(a, b) : add_counters(a, b));
    }
    set_totals(f);
    if (f->is_set)
        filter_count_union(f, one, two, totals_of(f)[COUNTERS_USED]);
    else
        count_more(f, other->counters->keys);
    return totals_of(f)[COUNTERS_USED] > f->body.geometry.cell_limit ? PERHAPS_ERR_FULL : 0;
}

/* Takes the smaller counter of each pair: it is 15, or at least the number of copies that both
 * filters have of its keys.  The number of copies is at most that of all counts, divided by the
 * counters of a key. */
static void intersect(perhaps_filter *f, const perhaps_filter *other)
{
    const uint64_t *field = f->body.geometry.field, ones = UINT64_C(0x0101010101010101);
    uint64_t sum = 0, keys = f->counters->keys;
    for (uint64_t at = 0; at < lines_nbytes(&f->body.geometry); at += sizeof(uint64_t)) {
        uint64_t a = load64(f->body.bytes + at), b = load64(other->body.bytes + at);
        const uint64_t both = smaller_counters(a, b);
        store64(f->body.bytes + at, both);
        sum += (((both & low_halves) + (both >> COUNTER_NBITS & low_halves)) * ones) >> 56;
    }
    set_totals(f);
    uint64_t most = sum / (field[BANDS] * field[LINE_COUNTERS]);
    keys = keys < other->counters->keys ? keys : other->counters->keys;
    f->counters->keys = keys < most ? keys : most;
}

static void counting_picking(const struct geometry *g, struct picking *m)
{
    lines_picking(g, WORD_COUNTERS, m);
}

static void counting_count_picked(const perhaps_filter *a, uint64_t a_factor,
                                  const perhaps_filter *b, uint64_t b_factor,
                                  struct picked *picked)
{
    cells_count_smaller(a, a_factor, b, b_factor, COUNTER_NBITS, picked);
}

static const struct compares compares = { .picking = counting_picking,
                                          .count = counting_count_picked };

static uint64_t counting_capacity(const struct geometry *g)
{
    return lines_capacity(g, WORD_COUNTERS, keys_at_limit);
}

/* How many are in use may come from a file, and be anything. */
static uint64_t keys(const perhaps_filter *f)
{
    const struct geometry *g = &f->body.geometry;
    double share = (double)counter_get(&totals_of(f)[COUNTERS_USED]) / all_counters(g);
    return share < 1 ? (uint64_t)fmin(log1p(-share) / log_alone(g), 0x1p62) : KEYS_UNLIMITED;
}

static void counting_fold(const struct geometry *g, enum cpu cpu, const uint8_t *from,
                          uint8_t *to, uint64_t nbytes, uint64_t factor)
{
    (void)g;
    fold_counters(cpu, from, to, nbytes / LINE_NBYTES, factor);
}

static void counting_look(const struct geometry *g, enum cpu cpu, const uint8_t *bytes,
                          uint64_t nbytes, struct folded *folded)
{
    lines_look(g, WORD_COUNTERS, cpu, bytes, nbytes, folded);
}

static void tail(enum cpu cpu, const uint8_t *bytes, uint64_t nbytes, uint8_t *tail_line)
{
    uint64_t *totals = (uint64_t *)(void *)tail_line;
    fold_count_counters(cpu, bytes, nbytes, &totals[COUNTERS_USED], &totals[COUNTERS_FULL]);
}

static const struct folds folds = {
    .units = lines_units,
    .divide = lines_divide,
    .capacity = counting_capacity,
    .keys = keys,
    .fold = counting_fold,
    .unit_nbytes = lines_unit_nbytes,
    .look = counting_look,
    .rate = lines_folded_rate,
    .tail = tail,
    .tail_nbytes = LINE_NBYTES,
};

const struct filter_kind kind_counting = {
    .about = { .name = "counting",
               .summary = "counting Bloom filter: keys can be removed, copies counted up to 15",
               .abilities = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT | PERHAPS_CAN_MERGE |
                            PERHAPS_CAN_THREADS },
    .id = 4,
    .field_names = field_names,
    .plan = counting_plan,
    .set_geometry = counting_set_geometry,
    .set_limits = counting_set_limits,
    .predict = counting_predict,
    .measure = counting_measure,
    .counted = counting_counted,
    .bind = counting_bind,
    .writers_nbytes = counting_writers_nbytes,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = lines_reads,
    .answer = lines_answer,
    .add = counting_add,
    .remove = remove_,
    .count = loops_count,
    .merge = counting_merge,
    .intersect = intersect,
    .folds = &folds,
    .compares = &compares,
};
