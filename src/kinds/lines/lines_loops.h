/* lines_loops.h - the loops of blocked and counting filters, for one instruction set.
 * each_cpu.h includes it.
 *
 * Of a line that is aligned to 64 bytes, and of the mark of a key:
 *   bool line_has(b, line, mark)      returns whether the key's bits are all set
 *   bool line_add(b, line, mark)      sets them; returns whether all were set before
 *   bool counters_have(b, line, mark) returns whether none of the key's counters is zero
 *   struct line_tally                 what happened to counters, in any form
 *   void line_tally_end(&line_tally, &tally)
 *                                     adds it to a struct count_tally
 *   void line_count(b, line, mark, up, moves, &line_tally)
 *                                     counts them up or down by one if 'moves' is true
 * lines_scalar.h defines these in plain C.  For an instruction set that has vectors they are
 * defined here, once for all widths, and a file of its own (lines_avx2.h, ...) defines:
 *   words                             a vector of u32
 *   bool some_bit(words, of)          returns whether any bit of 'of' is set */
#ifndef LINES_LOOPS_NAMES
#define LINES_LOOPS_NAMES
#define words                     FOR_CPU(words)
#define some_bit                  FOR_CPU(some_bit)
#define line_has                  FOR_CPU(line_has)
#define line_add                  FOR_CPU(line_add)
#define load_once                 FOR_CPU(load_once)
#define row_shift                 FOR_CPU(row_shift)
#define line_ones                 FOR_CPU(line_ones)
#define counters_zero             FOR_CPU(counters_zero)
#define counters_can_move         FOR_CPU(counters_can_move)
#define counters_have             FOR_CPU(counters_have)
#define line_tally                FOR_CPU(line_tally)
#define line_tally_end            FOR_CPU(line_tally_end)
#define sum_of_lanes              FOR_CPU(sum_of_lanes)
#define line_count                FOR_CPU(line_count)
#define line_test                 FOR_CPU(line_test)
#define key_passes                FOR_CPU(key_passes)
#define keys_pass_in              FOR_CPU(keys_pass_in)
#define keys_pass                 FOR_CPU(keys_pass)
#define lines_count               FOR_CPU(lines_count)
#define change_in_bands           FOR_CPU(change_in_bands)
#define blocked_contains          FOR_CPU(blocked_contains)
#define blocked_add               FOR_CPU(blocked_add)
#define blocked_contains_one      FOR_CPU(blocked_contains_one)
#define blocked_contains_integer  FOR_CPU(blocked_contains_integer)
#define blocked_add_one           FOR_CPU(blocked_add_one)
#define blocked_add_integer       FOR_CPU(blocked_add_integer)
#define blocked_add_one_shared    FOR_CPU(blocked_add_one_shared)
#define add_found_lines           FOR_CPU(add_found_lines)
#define several_add_one_shared    FOR_CPU(several_add_one_shared)
#define key_add_owned             FOR_CPU(key_add_owned)
#define several_contains          FOR_CPU(several_contains)
#define several_add               FOR_CPU(several_add)
#define several_contains_one      FOR_CPU(several_contains_one)
#define several_contains_integer  FOR_CPU(several_contains_integer)
#define several_add_one           FOR_CPU(several_add_one)
#define several_add_integer       FOR_CPU(several_add_integer)
#define counting_contains         FOR_CPU(counting_contains)
#define counting_contains_one     FOR_CPU(counting_contains_one)
#define counting_contains_integer FOR_CPU(counting_contains_integer)
#define counting_changes          FOR_CPU(counting_changes)
#endif

#if CPU_HAS_AVX512
#include "lines_avx512.h"
#elif CPU_HAS_AVX2
#include "lines_avx2.h"
#elif CPU_HAS_NEON
#include "lines_neon.h"
#else
#include "lines_scalar.h"
#endif

#if CPU_HAS_AVX2 || CPU_HAS_NEON
/* ---- A line as vectors of any width: one text for every instruction set ------------------ */

/* How many vectors make a line. */
#define LINE_VECTORS (LINE_NBYTES / sizeof(words))

/* Returns by how many bits the cell of each word is shifted: factor times constant gives it.
 * 'row' has the constant of each word, which is odd, or 0 for a word that has no cell. */
static ALWAYS_INLINE words row_shift(words row, uint64_t mark)
{
    return row * (uint32_t)(mark >> 32) >> 27;
}

/* The lowest bit of a constant tells whether the word has a bit, so no mask is made: the line
 * is shifted instead. */
static ALWAYS_INLINE bool line_has(const struct body *b, uint8_t *line, uint64_t mark)
{
    const words *at = (const void *)line, *row = row_of(b, mark), *ones = ones_of(b);
    words missing = { 0 };
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        missing |= row[i] & ~(at[i] >> row_shift(row[i], mark));
    return !some_bit(missing, *ones);
}

static ALWAYS_INLINE bool line_add(const struct body *b, uint8_t *line, uint64_t mark)
{
    words *at = (void *)line, missing = { 0 }, after[LINE_VECTORS];
    const words *row = row_of(b, mark), *ones = ones_of(b);
    for (unsigned i = 0; i < LINE_VECTORS; i++) {
        words bit = (row[i] & *ones) << row_shift(row[i], mark);
        after[i] = at[i] | bit;
        missing |= bit & ~at[i];
    }
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        at[i] = after[i];
    return !some_bit(missing, missing);
}

/* Loads a vector exactly once, since other threads may write meanwhile.  Without 'volatile' the
 * compiler may load it twice: if a counter goes from 1 to 2 in between, the low bit of the
 * second value and the high bit of the first look like 0. */
static ALWAYS_INLINE words load_once(const words *at)
{
    return *(const volatile words *)at;
}

/* Sets the lowest bit of each of the key's counters. */
static ALWAYS_INLINE void line_ones(const struct body *b, uint64_t mark,
                                    words ones[LINE_VECTORS])
{
    const words *row = row_of(b, mark), *one = ones_of(b);
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        ones[i] = (row[i] & *one) << (row_shift(row[i], mark) & COUNTER_SHIFTS);
}

/* Returns, in the lowest bit of each counter, whether it is zero; the other bits are
 * anything. */
static ALWAYS_INLINE words counters_zero(words counters)
{
    words pairs = counters | counters >> 1;
    return ~(pairs | pairs >> 2);
}

/* Returns in the same way whether each counter is less than COUNTER_MAX. */
static ALWAYS_INLINE words counters_can_move(words counters)
{
    words pairs = counters & counters >> 1;
    return ~(pairs & pairs >> 2);
}

static ALWAYS_INLINE bool counters_have(const struct body *b, uint8_t *line, uint64_t mark)
{
    const words *at = (const void *)line;
    words ones[LINE_VECTORS], missing = { 0 };
    line_ones(b, mark, ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        missing |= ones[i] & counters_zero(load_once(&at[i]));
    return !some_bit(missing, missing);
}

/* A sum in each lane; the lanes are added up once a batch. */
struct line_tally {
    words turned;
    words filled;
};

static ALWAYS_INLINE uint64_t sum_of_lanes(words lanes)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < sizeof lanes / sizeof(uint32_t); i++)
        sum += lanes[i];
    return sum;
}

static ALWAYS_INLINE void line_tally_end(const struct line_tally *line,
                                         struct count_tally *tally)
{
    tally->turned += sum_of_lanes(line->turned);
    tally->filled += sum_of_lanes(line->filled);
}

/* Adds or subtracts 1 in all lanes at once.  Nothing is carried into the next counter: one at
 * COUNTER_MAX stays there, and a key is counted down only if none of its counters is zero. */
static ALWAYS_INLINE void line_count(const struct body *b, uint8_t *line, uint64_t mark,
                                     bool up, bool moves, struct line_tally *tally)
{
    words *at = (void *)line;
    words ones[LINE_VECTORS];
    uint32_t mask = -(uint32_t)moves;
    line_ones(b, mark, ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++) {
        words before = load_once(&at[i]);
        words one = ones[i] & counters_can_move(before) & mask;
        words after = up ? before + one : before - one;
        at[i] = after;
        /* a true comparison gives -1 in its lane, hence the subtractions */
        tally->turned -= (words)((one & counters_zero(up ? before : after)) != 0);
        if (up)
            tally->filled -= (words)((one & ~counters_can_move(after)) != 0);
    }
}
#endif

/* ---- Blocked ---------------------------------------------------------------------------- */

/* Is line_has(), line_add() or counters_have(); the first and the last write nothing. */
typedef bool line_test(const struct body *b, uint8_t *line, uint64_t mark);

/* Returns whether all lines of a key pass the test.  Looks at all of them, since a branch on
 * each answer would often be mispredicted. */
static ALWAYS_INLINE bool key_passes(const struct body *b, struct line_places at,
                                     struct keyhash key, line_test *test)
{
    uint64_t offset = first_line_offset(key, at);
    bool all = test(b, b->bytes + offset, key.mark);
    for (uint64_t band = 1; band < at.bands; band++) {
        key = blocked_next_band(key);
        offset = next_line_offset(offset, key, at, band);
        all &= test(b, b->bytes + offset, key.mark);
    }
    return all;
}

/* The body is copied, so that the compiler knows that no store changes its members. */
static ALWAYS_INLINE size_t keys_pass_in(const struct body *body, struct line_places at,
                                         const struct keyhash *keys,
                                         const struct keyhash *ahead, size_t n, bool *answer,
                                         line_test *test)
{
    const struct body b = *body;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(b.bytes, at, ahead[i]);
        answer[i] = key_passes(&b, at, keys[i], test);
        found += answer[i];
    }
    return found;
}

/* There are two loops for filters with several lines a key: apart and together. */
static ALWAYS_INLINE size_t keys_pass(const struct body *b, const struct keyhash *keys,
                                      const struct keyhash *ahead, size_t n, bool *answer,
                                      line_test *test)
{
    if (b->field[TOGETHER])
        return keys_pass_in(b, places_together(b), keys, ahead, n, answer, test);
    return keys_pass_in(b, places_in_bands(b), keys, ahead, n, answer, test);
}

static size_t blocked_contains(const struct body *b, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer)
{
    return keys_pass_in(b, places_in_one(b), keys, ahead, n, answer, line_has);
}

static size_t blocked_add(const struct body *b, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer)
{
    return keys_pass_in(b, places_in_one(b), keys, ahead, n, answer, line_add);
}

static bool blocked_contains_one(const struct body *b, struct keyhash key)
{
    return key_passes(b, places_in_one(b), key, line_has);
}

static int blocked_add_one(const struct body *b, struct keyhash key, struct counters *counters)
{
    counters->keys += !key_passes(b, places_in_one(b), key, line_add);
    return 0;
}

CONTAINS_INTEGER(blocked_contains_integer, blocked_contains_one)
ADD_INTEGER(blocked_add_integer, blocked_add_one)

/* Adds a key to its lines, one after the other, each under the lock of its region.  Returns
 * whether all its bits were set before. */
static ALWAYS_INLINE bool key_add_owned(const struct body *b, struct line_places at,
                                        struct keyhash key)
{
    uint8_t *band = b->bytes;
    bool all = true;
    for (uint64_t i = 0; i < at.bands; i++) {
        uint64_t line = scale64(key.place, at.band_lines);
        uint64_t region = owners_region(b->writers, line);
        owners_take(b->writers, region);
        all &= line_add(b, band + line * LINE_NBYTES, key.mark);
        owners_release(b->writers, region);
        band += at.band_lines * LINE_NBYTES;
        key = blocked_next_band(key);
    }
    return all;
}

/* The line is on its way while the CPU takes the lock.  Under it no other thread adds the key,
 * so it is counted only if it is new, and only once. */
static enum shared_add blocked_add_one_shared(const struct body *b, struct keyhash key,
                                              uint64_t *count, uint64_t most)
{
    const uint64_t line = scale64(key.place, b->field[BAND_LINES]);
    const uint64_t region = owners_region(b->writers, line);
    uint8_t *at = b->bytes + line * LINE_NBYTES;
    enum shared_add done = SHARED_PRESENT;
    PREFETCH(at);
    owners_take(b->writers, region);
    if (!line_has(b, at, key.mark))
        done = count_below(count, most) ? SHARED_ADDED : SHARED_NO_ROOM;
    if (done == SHARED_ADDED)
        line_add(b, at, key.mark);
    owners_release(b->writers, region);
    return done;
}

/* Is a found_adder. */
static void add_found_lines(const struct body *body, const struct found *found, size_t n,
                            bool *answer)
{
    const struct body b = *body;
    for (size_t i = 0; i < n; i++)
        answer[found[i].mark & FOUND_INDEX] &=
            line_add(&b, b.bytes + found[i].offset, found[i].mark);
}

static size_t several_contains(const struct body *b, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer)
{
    return keys_pass(b, keys, ahead, n, answer, line_has);
}

static size_t several_add(const struct body *b, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer)
{
    return keys_pass(b, keys, ahead, n, answer, line_add);
}

static bool several_contains_one(const struct body *b, struct keyhash key)
{
    return key_passes(b, places_of(b), key, line_has);
}

static int several_add_one(const struct body *b, struct keyhash key, struct counters *counters)
{
    counters->keys += !key_passes(b, places_of(b), key, line_add);
    return 0;
}

CONTAINS_INTEGER(several_contains_integer, several_contains_one)
ADD_INTEGER(several_add_integer, several_add_one)

/* Of threads that add the same key at the same moment, each may find that it was not there, and
 * count it (filter/add.c). */
static enum shared_add several_add_one_shared(const struct body *b, struct keyhash key,
                                              uint64_t *count, uint64_t most)
{
    const struct line_places at = places_in_bands(b);
    if (!count_below(count, most))
        return SHARED_NO_ROOM;
    prefetch_lines(b->bytes, at, key);
    if (!key_add_owned(b, at, key))
        return SHARED_ADDED;
    __atomic_fetch_sub(count, 1, __ATOMIC_RELAXED);
    return SHARED_PRESENT;
}

/* ---- Counting --------------------------------------------------------------------------- */

/* Counts the counters of a key in all its lines up or down, if 'moves' is true. */
static ALWAYS_INLINE void lines_count(const struct body *b, struct line_places at,
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
static ALWAYS_INLINE size_t change_in_bands(const struct body *body, const struct keyhash *keys,
                                            const struct keyhash *ahead, size_t n,
                                            enum count_change change, bool *answer,
                                            struct count_tally *tally)
{
    const struct body b = *body;
    struct line_places at = places_in_bands(&b);
    struct line_tally all = { 0 };
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(b.bytes, at, ahead[i]);
        answer[i] = change != COUNT_UP && key_passes(&b, at, keys[i], counters_have);
        lines_count(&b, at, keys[i], change != COUNT_DOWN, answer[i] == (change == COUNT_DOWN),
                    &all);
        found += answer[i];
    }
    line_tally_end(&all, tally);
    return found;
}

static size_t counting_changes(const struct body *b, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, enum count_change change,
                               bool *answer, struct count_tally *tally)
{
    if (change == COUNT_UP) /* the usual change is inlined with a constant */
        return change_in_bands(b, keys, ahead, n, COUNT_UP, answer, tally);
    return change_in_bands(b, keys, ahead, n, change, answer, tally);
}

static size_t counting_contains(const struct body *b, const struct keyhash *keys,
                                const struct keyhash *ahead, size_t n, bool *answer)
{
    return b->field[BANDS] == 1
               ? keys_pass_in(b, places_in_one(b), keys, ahead, n, answer, counters_have)
               : keys_pass_in(b, places_in_bands(b), keys, ahead, n, answer, counters_have);
}

static bool counting_contains_one(const struct body *b, struct keyhash key)
{
    return key_passes(b, places_in_bands(b), key, counters_have);
}

CONTAINS_INTEGER(counting_contains_integer, counting_contains_one)
