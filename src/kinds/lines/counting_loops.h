/* counting_loops.h - the loops of counting filters, made of the functions of one line that
 * lines_loops.h has. */
#include "lines_places.h"

/* ---- Many keys --------------------------------------------------------------------------- */

/* Counts the counters of a key in all its lines up or down, if 'moves' is true. */
static LOOP_INLINE void lines_count(const struct body *b, struct line_places at,
                                    struct keyhash key, bool up, bool moves,
                                    struct line_tally *tally)
{
    uint8_t *band = b->bytes;
    for (uint64_t i = 0; i < at.bands; i++) {
        line_count(b, band + blocked_line_offset(key, at.band_lines), key.mark, up, moves,
                   tally);
        band += at.band_lines * LINE_NBYTES;
        key = blocked_next_band(key);
    }
}

/* Changes the counters of n keys: see counting_changer.  For a key whose counters do not change
 * it writes them back as they are, which avoids a branch that would be mispredicted. */
static LOOP_INLINE size_t change_in_bands(const struct body *body, const struct keyhash *keys,
                                          const struct keyhash *ahead, size_t n,
                                          enum count_change change, bool *answer,
                                          struct count_tally *tally)
{
    const struct body b = *body;
    struct line_places at = places_in_bands(&b);
    struct line_tally all = { 0 };
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct keyhash *later = apart(ahead + i);
        prefetch_lines(b.bytes, at, *later);
        answer[i] = change != COUNT_UP && key_passes(&b, at, keys[i], counters_have);
        lines_count(&b, at, keys[i], change != COUNT_DOWN, answer[i] == (change == COUNT_DOWN),
                    &all);
        found += answer[i];
    }
    line_tally_end(&all, tally);
    return found;
}

static NOINLINE size_t counting_changes(const struct body *b, const struct keyhash *keys,
                                        const struct keyhash *ahead, size_t n,
                                        enum count_change change, bool *answer,
                                        struct count_tally *tally)
{
    if (change == COUNT_UP) /* the usual change is inlined with a constant */
        return change_in_bands(b, keys, ahead, n, COUNT_UP, answer, tally);
    return change_in_bands(b, keys, ahead, n, change, answer, tally);
}

static size_t counting_contains(const struct body *b, const struct keyhash *keys,
                                const struct keyhash *ahead, size_t n, bool *answer)
{
    return b->geometry.field[BANDS] == 1
               ? keys_pass_in(b, places_in_one(b), keys, ahead, n, answer, counters_have)
               : keys_pass_in(b, places_in_bands(b), keys, ahead, n, answer, counters_have);
}

static bool counting_contains_one(const struct body *b, struct keyhash key)
{
    return key_passes(b, places_in_bands(b), key, counters_have);
}

CONTAINS_INTEGER(counting_contains_integer, counting_contains_one)

/* ---- One key ----------------------------------------------------------------------------- */

static uint64_t counting_zeros(const struct body *b, struct keyhash key)
{
    const struct line_places at = places_in_bands(b);
    uint8_t *band = b->bytes;
    uint64_t zeros = 0;
    for (uint64_t i = 0; i < at.bands; i++) {
        zeros += counters_zeros(b, band + blocked_line_offset(key, at.band_lines), key.mark);
        band += at.band_lines * LINE_NBYTES;
        key = blocked_next_band(key);
    }
    return zeros;
}

static NOINLINE uint64_t least_of_lines(const struct body *b, struct keyhash key)
{
    const struct line_places at = places_in_bands(b);
    uint8_t *band = b->bytes;
    unsigned least = COUNTER_MAX;
    for (uint64_t i = 0; i < at.bands; i++) {
        uint8_t *line = band + blocked_line_offset(key, at.band_lines);
        unsigned here = counters_least(b, line, key.mark);
        least = here < least ? here : least;
        band += at.band_lines * LINE_NBYTES;
        key = blocked_next_band(key);
    }
    return least;
}

/* Returns the only line of a key. */
static LOOP_INLINE uint8_t *only_line(const struct body *b, struct keyhash key)
{
    return b->bytes + blocked_line_offset(key, b->geometry.field[BAND_LINES]);
}

static uint64_t counting_count_one(const struct body *b, struct keyhash key)
{
    if (b->geometry.field[BANDS] != 1)
        return least_of_lines(b, key);
    return counters_least(b, only_line(b, key), key.mark);
}

/* Changes the counters of a key that has several lines, as a batch.  Returns whether it was
 * there. */
static bool change_lines(const struct body *b, struct keyhash key, enum count_change change,
                         struct count_tally *tally)
{
    size_t n = 1;
    bool there;
    __asm__("" : "+r"(n), "+r"(change)); /* lest the compiler makes another loop for that */
    counting_changes(b, &key, &key, n, change, &there, tally);
    return there;
}

/* Counts a key that was changed: as added, or removed.  Returns what the loop returns. */

static LOOP_INLINE int counted_up(const struct body *b, bool there,
                                  const struct count_tally *tally, struct counters *counters)
{
    uint64_t *totals = lines_totals(b);
    totals[COUNTERS_USED] += tally->turned;
    totals[COUNTERS_FULL] += tally->filled;
    counters->keys += !there;
    return 0;
}

static LOOP_INLINE int counted_down(const struct body *b, bool there,
                                    const struct count_tally *tally, struct counters *counters)
{
    uint64_t *used = &lines_totals(b)[COUNTERS_USED];
    *used -= tally->turned < *used ? tally->turned : *used;
    return count_removal(counters, there);
}

/* Returns whether there is room for 'most' counters more. */
static LOOP_INLINE bool counters_have_room(const struct body *b, uint64_t most)
{
    const uint64_t limit = b->geometry.cell_limit;
    return most <= limit && lines_totals(b)[COUNTERS_USED] <= limit - most;
}

/* Adds a key that has several lines, or near the limit: there it is added if there is room for
 * those of its counters that are zero.  How many are in use may come from a file, and be above
 * the limit. */
static NOINLINE int count_up_slowly(const struct body *b, struct keyhash key,
                                    enum count_change change, struct counters *counters)
{
    const uint64_t most = b->geometry.field[BANDS] * b->geometry.field[LINE_BITS];
    const uint64_t zeros = counters_have_room(b, most) ? 0 : counting_zeros(b, key);
    struct count_tally tally = { 0 };
    if (zeros && !counters_have_room(b, zeros)) {
        counters->failed_adds++;
        return PERHAPS_ERR_FULL;
    }
    const bool there = change_lines(b, key, change, &tally);
    return counted_up(b, there, &tally, counters);
}

static LOOP_INLINE int count_up(const struct body *b, struct keyhash key,
                                enum count_change change, struct counters *counters)
{
    struct count_tally tally = { 0 };
    if (b->geometry.field[BANDS] != 1 || !counters_have_room(b, b->geometry.field[LINE_BITS]))
        return count_up_slowly(b, key, change, counters);
    const bool there = line_change(b, only_line(b, key), key.mark, change, &tally);
    return counted_up(b, there, &tally, counters);
}

static NOINLINE int count_down_slowly(const struct body *b, struct keyhash key,
                                      struct counters *counters)
{
    struct count_tally tally = { 0 };
    const bool there = change_lines(b, key, COUNT_DOWN, &tally);
    return counted_down(b, there, &tally, counters);
}

static NOINLINE int counting_add_one(const struct body *b, struct keyhash key,
                                     struct counters *counters)
{
    return count_up(b, key, COUNT_UP, counters);
}

static NOINLINE int counting_set_add_one(const struct body *b, struct keyhash key,
                                         struct counters *counters)
{
    return count_up(b, key, COUNT_UP_ABSENT, counters);
}

ADD_INTEGER(counting_add_integer, counting_add_one)
ADD_INTEGER(counting_set_add_integer, counting_set_add_one)
ADD_NEW_ONE(counting_add_new_one, counting_set_add_one)

static int counting_remove_one(const struct body *b, struct keyhash key,
                               struct counters *counters)
{
    struct count_tally tally = { 0 };
    if (b->geometry.field[BANDS] != 1)
        return count_down_slowly(b, key, counters);
    const bool there = line_change(b, only_line(b, key), key.mark, COUNT_DOWN, &tally);
    return counted_down(b, there, &tally, counters);
}

#define COUNTING_LOOPS(one, integer)                                                           \
    {                                                                                          \
        .prefetch = several_prefetch, .contains = counting_contains,                           \
        .contains_one = counting_contains_one, .contains_integer = counting_contains_integer,  \
        .add_one = (one), .add_integer = (integer), .add_new_one = counting_add_new_one,       \
        .remove_one = counting_remove_one, .count_one = counting_count_one,                    \
    }
