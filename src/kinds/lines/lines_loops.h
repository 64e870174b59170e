/* lines_loops.h - the loops of blocked and counting filters.
 *
 * They are made of these functions of one line, aligned to 64 bytes, and the mark of a key:
 *   bool line_has(b, line, mark)      returns whether the key's bits are all set
 *   bool line_add(b, line, mark)      sets them; returns whether all were set before
 *   bool counters_have(b, line, mark) returns whether none of the key's counters is zero
 *   unsigned counters_zeros(b, line, mark), counters_least(b, line, mark)
 *                                     return how many of them are zero, and the least one
 *   struct line_tally                 what happened to counters, in any form
 *   void line_tally_end(&line_tally, &tally)
 *                                     adds it to a struct count_tally
 *   void line_count(b, line, mark, up, moves, &line_tally)
 *                                     counts them up or down by one if 'moves' is true
 *   bool line_change(b, line, mark, change, &tally)
 *                                     changes those of a key that has this line only, while
 *                                     nobody else writes; returns whether it was there, or
 *                                     false with COUNT_UP
 * lines_scalar.h defines these in plain C.  For an instruction set that has vectors they are
 * defined here, once for all widths. */
#include "lines_places.h"

#if CPU_HAS_AVX2 || CPU_HAS_NEON || CPU_HAS_SIMD128
/* ---- A line as vectors of any width: one text for every instruction set ------------------ */

#if CPU_HAS_AVX512
enum { WORDS_NBYTES = 64 };
#elif CPU_HAS_AVX2
enum { WORDS_NBYTES = 32 };
#else
enum { WORDS_NBYTES = 16 };
#endif

/* A vector of words of a line. */
typedef uint32_t line_words __attribute__((vector_size(WORDS_NBYTES), may_alias));

/* Returns whether any bit of 'of' is set. */
static LOOP_INLINE bool some_bit(line_words x, line_words of)
{
#if CPU_HAS_AVX512
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)of) != 0;
#elif CPU_HAS_AVX2
    return !_mm256_testz_si256((__m256i)x, (__m256i)of);
#elif CPU_HAS_SIMD128
    return wasm_v128_any_true((v128_t)(x & of));
#else
    return vmaxvq_u32((uint32x4_t)(x & of)) != 0;
#endif
}

/* Returns the row of a key's walk.  Start and stride are adjacent bits of the mark, so they
 * give the row at once: they are the highest 7 of the lower 32 bits. */
static LOOP_INLINE const void *row_of(const struct body *b, uint64_t mark)
{
    const struct walks *w = b->table;
    return w->row[(uint32_t)mark >> WALK_SHIFT];
}

/* Returns a line of ones.  Loaded from here they take one instruction, as a constant three. */
static LOOP_INLINE const void *ones_of(const struct body *b)
{
    return ((const struct walks *)b->table)->ones;
}

/* How many vectors make a line. */
#define LINE_VECTORS (LINE_NBYTES / sizeof(line_words))

/* Returns by how many bits the cell of each word is shifted: factor times constant gives it.
 * 'row' has the constant of each word, which is odd, or 0 for a word that has no cell. */
static LOOP_INLINE line_words row_shift(line_words row, uint64_t mark)
{
    return row * (uint32_t)(mark >> 32) >> 27;
}

#if CPU_HAS_SIMD128
/* Shifts each lane alike only.  So each byte of a lane takes its bits from a table of 16 bytes:
 * at the number that its lane has, less 'step' for each byte before it in the lane.  Beyond the
 * table, also below 0, it gets 0.  A word that has no cell gets 0. */
static LOOP_INLINE line_words from_table(v128_t table, uint32_t step, line_words row,
                                         line_words number)
{
    const v128_t before = wasm_i32x4_splat((int32_t)(step << 8 | step << 17 | 3 * step << 24));
    v128_t at = wasm_i8x16_shuffle((v128_t)number, (v128_t)number, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8,
                                   8, 8, 12, 12, 12, 12);
    at = wasm_i8x16_swizzle(table, wasm_i8x16_sub(at, before));
    return (line_words)at & (line_words)(row != 0);
}

/* Returns the bit of each word. */
static LOOP_INLINE line_words bits_of_rows(line_words row, line_words one, uint64_t mark)
{
    const v128_t bits = wasm_i8x16_make(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0);
    (void)one;
    return from_table(bits, 8, row, row_shift(row, mark));
}

/* Returns the lowest bit of the counter of each word. */
static LOOP_INLINE line_words row_ones(line_words row, line_words one, uint64_t mark)
{
    const v128_t bits = wasm_i8x16_make(1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    (void)one;
    return from_table(bits, 2, row, row * (uint32_t)(mark >> 32) >> 29);
}

static LOOP_INLINE bool line_has(const struct body *b, uint8_t *line, uint64_t mark)
{
    const line_words *at = (const void *)line, *row = row_of(b, mark);
    line_words missing = { 0 };
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        missing |= bits_of_rows(row[i], row[i], mark) & ~at[i];
    return !some_bit(missing, missing);
}

#else
static LOOP_INLINE line_words bits_of_rows(line_words row, line_words one, uint64_t mark)
{
    return (row & one) << row_shift(row, mark);
}

/* By how many bits the counter of each word is shifted: row_shift() & COUNTER_SHIFTS, by shifts
 * alone. */
static LOOP_INLINE line_words counter_shift(line_words row, uint64_t mark)
{
    return row * (uint32_t)(mark >> 32) >> 29 << 2;
}

static LOOP_INLINE line_words row_ones(line_words row, line_words one, uint64_t mark)
{
    return (row & one) << counter_shift(row, mark);
}

/* The lowest bit of a constant tells whether the word has a bit, so no mask is made: the line
 * is shifted instead. */
static LOOP_INLINE bool line_has(const struct body *b, uint8_t *line, uint64_t mark)
{
    const line_words *at = (const void *)line, *row = row_of(b, mark), *ones = ones_of(b);
    line_words missing = { 0 };
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        missing |= row[i] & ~(at[i] >> row_shift(row[i], mark));
    return !some_bit(missing, *ones);
}
#endif

static LOOP_INLINE bool line_add(const struct body *b, uint8_t *line, uint64_t mark)
{
    line_words *at = (void *)line, missing = { 0 }, after[LINE_VECTORS];
    const line_words *row = row_of(b, mark), *ones = ones_of(b);
    for (unsigned i = 0; i < LINE_VECTORS; i++) {
        line_words bit = bits_of_rows(row[i], *ones, mark);
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
static LOOP_INLINE line_words load_once(const line_words *at)
{
    return *(const volatile line_words *)at;
}

/* Sets the lowest bit of each of the key's counters. */
static LOOP_INLINE void line_ones(const struct body *b, uint64_t mark,
                                  line_words ones[LINE_VECTORS])
{
    const line_words *row = row_of(b, mark), *one = ones_of(b);
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        ones[i] = row_ones(row[i], *one, mark);
}

/* Returns, in the lowest bit of each counter, whether it is zero; the other bits are
 * anything. */
static LOOP_INLINE line_words counters_zero(line_words counters)
{
    line_words pairs = counters | counters >> 1;
    return ~(pairs | pairs >> 2);
}

/* Returns in the same way whether each counter is less than COUNTER_MAX. */
static LOOP_INLINE line_words counters_can_move(line_words counters)
{
    line_words pairs = counters & counters >> 1;
    return ~(pairs & pairs >> 2);
}

static LOOP_INLINE bool counters_have(const struct body *b, uint8_t *line, uint64_t mark)
{
    const line_words *at = (const void *)line;
    line_words ones[LINE_VECTORS], missing = { 0 };
    line_ones(b, mark, ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        missing |= ones[i] & counters_zero(load_once(&at[i]));
    return !some_bit(missing, missing);
}

/* Returns the sum of the lanes. */
static LOOP_INLINE uint32_t sum_of_lanes(line_words lanes)
{
#if CPU_HAS_AVX512
    return (uint32_t)_mm512_reduce_add_epi32((__m512i)lanes);
#elif CPU_HAS_AVX2
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128((__m256i)lanes),
                                _mm256_extracti128_si256((__m256i)lanes, 1));
    sum = _mm_add_epi32(sum, _mm_srli_si128(sum, 8));
    sum = _mm_add_epi32(sum, _mm_srli_si128(sum, 4));
    return (uint32_t)_mm_cvtsi128_si32(sum);
#elif CPU_HAS_SIMD128
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
#else
    return vaddvq_u32((uint32x4_t)lanes);
#endif
}

static LOOP_INLINE unsigned counters_zeros(const struct body *b, uint8_t *line, uint64_t mark)
{
    const line_words *at = (const void *)line;
    line_words ones[LINE_VECTORS], zeros = { 0 };
    line_ones(b, mark, ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++) /* a true comparison gives -1 in its lane */
        zeros -= (line_words)((ones[i] & counters_zero(load_once(&at[i]))) != 0);
    return sum_of_lanes(zeros);
}

#if CPU_HAS_SIMD128
/* Looks for it from the highest bit of the counters on, since lanes cannot be shifted apart. */
static LOOP_INLINE unsigned counters_least(const struct body *b, uint8_t *line, uint64_t mark)
{
    const line_words *at = (const void *)line;
    line_words ones[LINE_VECTORS], counters[LINE_VECTORS];
    unsigned least = 0;
    line_ones(b, mark, ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        counters[i] = load_once(&at[i]);
    for (unsigned bit = COUNTER_NBITS; bit-- > 0;) {
        line_words clear[LINE_VECTORS], any = { 0 };
        for (unsigned i = 0; i < LINE_VECTORS; i++)
            any |= clear[i] = ones[i] & ~(counters[i] >> bit);
        if (some_bit(any, any))
            memcpy(ones, clear, sizeof ones);
        else
            least |= 1U << bit;
    }
    return least;
}

#else
/* Returns the least one of the lanes. */
static LOOP_INLINE uint32_t least_lane(line_words lanes)
{
#if CPU_HAS_AVX512
    return _mm512_reduce_min_epu32((__m512i)lanes);
#elif CPU_HAS_AVX2
    __m128i least = _mm_min_epu32(_mm256_castsi256_si128((__m256i)lanes),
                                  _mm256_extracti128_si256((__m256i)lanes, 1));
    least = _mm_min_epu32(least, _mm_shuffle_epi32(least, 0x4e)); /* halves exchanged, */
    least = _mm_min_epu32(least, _mm_shuffle_epi32(least, 0xb1)); /* and neighbours */
    return (uint32_t)_mm_cvtsi128_si32(least);
#else
    return vminvq_u32((uint32x4_t)lanes);
#endif
}

/* Returns the smaller one of each two lanes. */
static LOOP_INLINE line_words smaller_lanes(line_words a, line_words b)
{
#if CPU_HAS_AVX512
    return (line_words)_mm512_min_epu32((__m512i)a, (__m512i)b);
#elif CPU_HAS_AVX2
    return (line_words)_mm256_min_epu32((__m256i)a, (__m256i)b);
#else
    return (line_words)vminq_u32((uint32x4_t)a, (uint32x4_t)b);
#endif
}

/* A word without a counter of the key gives a lane of ones. */
static LOOP_INLINE unsigned counters_least(const struct body *b, uint8_t *line, uint64_t mark)
{
    const line_words *at = (const void *)line, *row = row_of(b, mark), *one = ones_of(b);
    line_words least = -*one;
    for (unsigned i = 0; i < LINE_VECTORS; i++) {
        line_words none = (row[i] & *one) - *one;
        line_words counter = load_once(&at[i]) >> counter_shift(row[i], mark) & COUNTER_MAX;
        least = smaller_lanes(least, counter | none);
    }
    return least_lane(least);
}
#endif

/* A sum in each lane; the lanes are added up once a batch. */
struct line_tally {
    line_words turned;
    line_words filled;
};

static LOOP_INLINE void line_tally_end(const struct line_tally *line, struct count_tally *tally)
{
    tally->turned += sum_of_lanes(line->turned);
    tally->filled += sum_of_lanes(line->filled);
}

/* Adds or subtracts 1 in all lanes at once.  Nothing is carried into the next counter: one at
 * COUNTER_MAX stays there, and a key is counted down only if none of its counters is zero. */
static LOOP_INLINE void line_count(const struct body *b, uint8_t *line, uint64_t mark, bool up,
                                   bool moves, struct line_tally *tally)
{
    line_words *at = (void *)line;
    line_words ones[LINE_VECTORS];
    uint32_t mask = -(uint32_t)moves;
    line_ones(b, mark, ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++) {
        line_words before = load_once(&at[i]);
        line_words one = ones[i] & counters_can_move(before) & mask;
        line_words after = up ? before + one : before - one;
        at[i] = after;
        /* a true comparison gives -1 in its lane, hence the subtractions */
        tally->turned -= (line_words)((one & counters_zero(up ? before : after)) != 0);
        if (up)
            tally->filled -= (line_words)((one & ~counters_can_move(after)) != 0);
    }
}

/* Returns how many lanes of a line are not zero.  No top bit of a lane is set. */
static LOOP_INLINE uint32_t lanes_not_zero(const line_words lanes[LINE_VECTORS])
{
#if CPU_HAS_AVX512
    return (uint32_t)__builtin_popcount(
        _mm512_test_epi32_mask((__m512i)*lanes, (__m512i)*lanes));
#elif CPU_HAS_AVX2
    __m256i both = _mm256_packs_epi32((__m256i)lanes[0], (__m256i)lanes[1]);
    both = _mm256_cmpeq_epi16(both, _mm256_setzero_si256());
    return LINE_WORDS - (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_epi8(both)) / 2;
#else
    line_words sum = { 0 };
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        sum -= (line_words)(lanes[i] != 0);
    return sum_of_lanes(sum);
#endif
}

/* The counters of a key in a line, and what those of their words are: in the lowest bit of each
 * counter, but for the bits of 'ones' the other bits are anything. */
struct line_counters {
    line_words before[LINE_VECTORS];
    line_words ones[LINE_VECTORS];  /* the counter is the key's, */
    line_words zero[LINE_VECTORS];  /* and is 0, */
    line_words moves[LINE_VECTORS]; /* and is less than COUNTER_MAX, */
    line_words last[LINE_VECTORS];  /* and is one less than that, if it moves, */
    line_words first[LINE_VECTORS]; /* and is 1, if it is not 0 */
};

static LOOP_INLINE void line_look(const struct body *b, const uint8_t *line, uint64_t mark,
                                  struct line_counters *c)
{
    const line_words *at = (const void *)line;
    line_ones(b, mark, c->ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++) {
        const line_words counters = at[i], second = counters >> 1, ones = c->ones[i];
        const line_words some = counters | second, both = counters & second;
        c->before[i] = counters;
        c->zero[i] = ones & ~(some | some >> 2);
        c->moves[i] = ones & ~(both & both >> 2);
        c->last[i] = c->moves[i] & second & both >> 2;
        c->first[i] = c->moves[i] & ~(second | some >> 2);
    }
}

/* Counters seldom come to COUNTER_MAX, so here is a branch. */
static LOOP_INLINE bool line_change(const struct body *b, uint8_t *line, uint64_t mark,
                                    enum count_change change, struct count_tally *tally)
{
    line_words *at = (void *)line, none = { 0 }, turned[LINE_VECTORS], filled[LINE_VECTORS];
    struct line_counters c;
    line_look(b, line, mark, &c);
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        none |= c.zero[i];
    const bool there = change != COUNT_UP && !some_bit(none, none);
    const uint32_t mask = -(uint32_t)(there == (change == COUNT_DOWN));
    none ^= none;
    for (unsigned i = 0; i < LINE_VECTORS; i++) {
        const line_words one = c.moves[i] & mask;
        turned[i] = change == COUNT_DOWN ? c.first[i] & one : c.zero[i] & mask;
        filled[i] = c.last[i] & one;
        at[i] = change == COUNT_DOWN ? c.before[i] - one : c.before[i] + one;
        none |= filled[i];
    }
    tally->turned = lanes_not_zero(turned);
    if (change != COUNT_DOWN && some_bit(none, none))
        tally->filled = lanes_not_zero(filled);
    return there;
}

#else
#include "lines_scalar.h"
#endif

/* ---- Blocked ---------------------------------------------------------------------------- */

static void blocked_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    struct line_places at = places_in_one(b);
    for (size_t i = 0; i < n; i++)
        prefetch_lines(b->bytes, at, keys[i]);
}

static void several_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    struct line_places at = places_of(b);
    for (size_t i = 0; i < n; i++)
        prefetch_lines(b->bytes, at, keys[i]);
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
ADD_NEW_ONE(blocked_add_new_one, blocked_add_one)

/* Adds a key to its lines, one after the other, each under the lock of its region, and counts
 * it in the last one.  Returns whether all its bits were set before. */
static LOOP_INLINE bool key_add_owned(const struct body *b, struct line_places at,
                                      struct keyhash key, uint64_t *count)
{
    uint8_t *band = b->bytes;
    bool all = true;
    for (uint64_t i = 0; i < at.bands; i++) {
        uint64_t line = scale64(key.place, at.band_lines);
        uint64_t region = owners_region(b->writers, line);
        owners_take(b->writers, region);
        all &= line_add(b, band + line * LINE_NBYTES, key.mark);
        if (!all && i == at.bands - 1)
            owners_count(b->writers, region, count);
        owners_release(b->writers, region);
        band += at.band_lines * LINE_NBYTES;
        key = blocked_next_band(key);
    }
    return all;
}

static size_t blocked_lines(const struct body *b, const struct keyhash *keys, size_t n,
                            uint64_t *line)
{
    for (size_t i = 0; i < n; i++)
        line[i] = scale64(keys[i].place, b->geometry.field[BAND_LINES]);
    return n;
}

/* The line is on its way while the CPU takes the lock.  Under it no other thread adds the key,
 * so it is counted only if it is new, and only once. */
static enum shared_add blocked_add_one_shared(const struct body *b, struct keyhash key,
                                              uint64_t *count, uint64_t most)
{
    const uint64_t line = scale64(key.place, b->geometry.field[BAND_LINES]);
    const uint64_t region = owners_region(b->writers, line);
    uint8_t *at = b->bytes + line * LINE_NBYTES;
    enum shared_add done = SHARED_PRESENT;
    PREFETCH(at);
    owners_take(b->writers, region);
    if (!line_has(b, at, key.mark))
        done = has_room(count, most) ? SHARED_ADDED : SHARED_NO_ROOM;
    if (done == SHARED_ADDED) {
        owners_count(b->writers, region, count);
        line_add(b, at, key.mark);
    }
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
ADD_NEW_ONE(several_add_new_one, several_add_one)

/* Of threads that add the same key at the same moment, each may find that it was not there, and
 * count it (filter/add.c). */
static enum shared_add several_add_one_shared(const struct body *b, struct keyhash key,
                                              uint64_t *count, uint64_t most)
{
    const struct line_places at = places_in_bands(b);
    if (!has_room(count, most))
        return SHARED_NO_ROOM;
    prefetch_lines(b->bytes, at, key);
    return key_add_owned(b, at, key, count) ? SHARED_PRESENT : SHARED_ADDED;
}

#include "counting_loops.h"

/* The table. */
#define LINE_LOOPS                                                                             \
    {                                                                                          \
        .one = { .one_line = true,                                                             \
                 .prefetch = blocked_prefetch,                                                 \
                 .contains = blocked_contains,                                                 \
                 .add = blocked_add,                                                           \
                 .lines = blocked_lines,                                                       \
                 .contains_one = blocked_contains_one,                                         \
                 .contains_integer = blocked_contains_integer,                                 \
                 .add_one = blocked_add_one,                                                   \
                 .add_integer = blocked_add_integer,                                           \
                 .add_new_one = blocked_add_new_one,                                           \
                 .add_one_shared = blocked_add_one_shared },                                   \
        .several = { .prefetch = several_prefetch,                                             \
                     .contains = several_contains,                                             \
                     .add = several_add,                                                       \
                     .contains_one = several_contains_one,                                     \
                     .contains_integer = several_contains_integer,                             \
                     .add_one = several_add_one,                                               \
                     .add_integer = several_add_integer,                                       \
                     .add_new_one = several_add_new_one,                                       \
                     .add_one_shared = several_add_one_shared },                               \
        .counting = COUNTING_LOOPS(counting_add_one, counting_add_integer),                    \
        .counting_set = COUNTING_LOOPS(counting_set_add_one, counting_set_add_integer),        \
        .change = counting_changes, .zeros = counting_zeros, .rates = rates_of_line,           \
        .counts = line_counts, .add_found = add_found_lines,                                   \
    }
