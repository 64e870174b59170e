/* lines_loops.h - the loops of blocked and counting filters, for one instruction set.
 * each_cpu.h includes it.
 *
 * For each instruction set a file of its own (lines_avx2.h, ...) defines, for a line that is
 * aligned to 64 bytes:
 *   struct line_rule                      what is the same for all keys
 *   struct line_rule line_rule(bits)      returns it, for 'bits' marks of a key in a line
 *   bool line_has(line, mark, &rule)      returns whether the key's bits are all set
 *   bool line_add(line, mark, &rule)      sets them; returns whether all were set before
 * and if it has vectors:
 *   words                                 a vector of u32
 *   bool some_lane(words)                 returns whether any bit is set
 *   void line_ones(mark, &rule, words ones[LINE_VECTORS])
 *                                         sets the lowest bit of each of the key's counters
 * and if it has none, for a line of counters:
 *   bool counters_have(line, mark, &rule) returns whether none of the key's counters is zero
 *   struct line_tally                     what happened to counters, in any form
 *   void line_tally_end(&line_tally, &tally)
 *                                         adds it to a struct count_tally
 *   void line_count(line, mark, &rule, up, moves, &line_tally)
 *                                         counts them up or down by one if 'moves' is true */
#ifndef LINES_LOOPS_NAMES
#define LINES_LOOPS_NAMES
#define line_rule             FOR_CPU(line_rule)
#define line_has              FOR_CPU(line_has)
#define line_add              FOR_CPU(line_add)
#define half_mask             FOR_CPU(half_mask)
#define line_mask             FOR_CPU(line_mask)
#define quarter_mask          FOR_CPU(quarter_mask)
#define lacks_none            FOR_CPU(lacks_none)
#define words                 FOR_CPU(words)
#define some_lane             FOR_CPU(some_lane)
#define line_ones             FOR_CPU(line_ones)
#define load_once             FOR_CPU(load_once)
#define counters_zero         FOR_CPU(counters_zero)
#define counters_can_move     FOR_CPU(counters_can_move)
#define counters_have         FOR_CPU(counters_have)
#define line_tally            FOR_CPU(line_tally)
#define line_tally_end        FOR_CPU(line_tally_end)
#define sum_of_lanes          FOR_CPU(sum_of_lanes)
#define line_count            FOR_CPU(line_count)
#define line_test             FOR_CPU(line_test)
#define key_passes            FOR_CPU(key_passes)
#define keys_pass_in          FOR_CPU(keys_pass_in)
#define keys_pass             FOR_CPU(keys_pass)
#define one_passes            FOR_CPU(one_passes)
#define lines_count           FOR_CPU(lines_count)
#define change_in_parts       FOR_CPU(change_in_parts)
#define blocked_contains      FOR_CPU(blocked_contains)
#define blocked_add           FOR_CPU(blocked_add)
#define blocked_contains_one  FOR_CPU(blocked_contains_one)
#define blocked_add_one       FOR_CPU(blocked_add_one)
#define counting_contains     FOR_CPU(counting_contains)
#define counting_contains_one FOR_CPU(counting_contains_one)
#define counting_changes      FOR_CPU(counting_changes)
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
/* ---- A line of counters as vectors of any width: one text for every instruction set ------ */

/* How many vectors make a line. */
#define LINE_VECTORS (LINE_NBYTES / sizeof(words))

/* Loads a vector exactly once, since other threads may write meanwhile.  Without 'volatile' the
 * compiler may load it twice: if a counter goes from 1 to 2 in between, the low bit of the
 * second value and the high bit of the first look like 0. */
static ALWAYS_INLINE words load_once(const words *at)
{
    return *(const volatile words *)at;
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

static ALWAYS_INLINE bool counters_have(uint8_t *line, uint64_t mark,
                                        const struct line_rule *rule)
{
    const words *at = (const void *)line;
    words ones[LINE_VECTORS], missing = { 0 };
    line_ones(mark, rule, ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        missing |= ones[i] & counters_zero(load_once(&at[i]));
    return !some_lane(missing);
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
static ALWAYS_INLINE void line_count(uint8_t *line, uint64_t mark, const struct line_rule *rule,
                                     bool up, bool moves, struct line_tally *tally)
{
    words *at = (void *)line;
    words ones[LINE_VECTORS];
    uint32_t mask = -(uint32_t)moves;
    line_ones(mark, rule, ones);
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
typedef bool line_test(uint8_t *line, uint64_t mark, const struct line_rule *rule);

/* Returns whether all lines of a key pass the test.  Looks at all of them, since a branch on
 * each answer would often be mispredicted. */
static ALWAYS_INLINE bool key_passes(uint8_t *body, struct line_places at,
                                     const struct line_rule *rule, struct keyhash key,
                                     line_test *test)
{
    uint64_t offset = first_line_offset(key, at);
    bool all = test(body + offset, key.mark, rule);
    if (LIKELY(at.parts == 1))
        return all;
    for (uint64_t part = 1; part < at.parts; part++) {
        key = blocked_next_part(key);
        offset = next_line_offset(offset, key, at, part);
        all &= test(body + offset, key.mark, rule);
    }
    return all;
}

static ALWAYS_INLINE size_t keys_pass_in(uint8_t *body, struct line_places at, unsigned bits,
                                         const struct keyhash *keys,
                                         const struct keyhash *ahead, size_t n, bool *answer,
                                         line_test *test)
{
    struct line_rule rule = line_rule(bits);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, at, ahead[i]);
        answer[i] = key_passes(body, at, &rule, keys[i], test);
        found += answer[i];
    }
    return found;
}

/* There is one loop for filters with one line a key, which are most filters, and two for those
 * with several: apart and together. */
static ALWAYS_INLINE size_t keys_pass(uint8_t *body, const uint64_t *field,
                                      const struct keyhash *keys, const struct keyhash *ahead,
                                      size_t n, bool *answer, line_test *test)
{
    unsigned bits = (unsigned)field[LINE_BITS];
    if (field[PARTS] == 1)
        return keys_pass_in(body, places_in_one(field), bits, keys, ahead, n, answer, test);
    if (field[TOGETHER])
        return keys_pass_in(body, places_together(field), bits, keys, ahead, n, answer, test);
    return keys_pass_in(body, places_in_parts(field), bits, keys, ahead, n, answer, test);
}

static ALWAYS_INLINE bool one_passes(uint8_t *body, const uint64_t *field, struct keyhash key,
                                     line_test *test)
{
    struct line_rule rule = line_rule((unsigned)field[LINE_BITS]);
    if (LIKELY(field[PARTS] == 1))
        return key_passes(body, places_in_one(field), &rule, key, test);
    return key_passes(body, places_of(field), &rule, key, test);
}

static size_t blocked_contains(const uint8_t *body, const uint64_t *field,
                               const struct keyhash *keys, const struct keyhash *ahead,
                               size_t n, bool *answer)
{
    return keys_pass((uint8_t *)body, field, keys, ahead, n, answer, line_has);
}

static size_t blocked_add(uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer)
{
    return keys_pass(body, field, keys, ahead, n, answer, line_add);
}

static bool blocked_contains_one(const uint8_t *body, const uint64_t *field, struct keyhash key)
{
    return one_passes((uint8_t *)body, field, key, line_has);
}

static bool blocked_add_one(uint8_t *body, const uint64_t *field, struct keyhash key)
{
    return one_passes(body, field, key, line_add);
}

/* ---- Counting --------------------------------------------------------------------------- */

/* Counts the counters of a key in all its lines up or down, if 'moves' is true. */
static ALWAYS_INLINE void lines_count(uint8_t *body, struct line_places at,
                                      const struct line_rule *rule, struct keyhash key, bool up,
                                      bool moves, struct line_tally *tally)
{
    for (uint64_t part = 0; part < at.parts; part++) {
        line_count(body + blocked_line_offset(key, at.part_lines), key.mark, rule, up, moves,
                   tally);
        body += at.part_lines * LINE_NBYTES;
        key = blocked_next_part(key);
    }
}

/* Changes the counters of n keys: see counting_changer.  For a key whose counters do not change
 * it writes them back as they are, which avoids a branch that would be mispredicted. */
static ALWAYS_INLINE size_t change_in_parts(uint8_t *body, const uint64_t *field,
                                            const struct keyhash *keys,
                                            const struct keyhash *ahead, size_t n,
                                            enum count_change change, bool *answer,
                                            struct count_tally *tally)
{
    struct line_places at = places_in_parts(field);
    struct line_rule rule = line_rule((unsigned)field[LINE_BITS]);
    struct line_tally all = { 0 };
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, at, ahead[i]);
        answer[i] = change != COUNT_UP && key_passes(body, at, &rule, keys[i], counters_have);
        lines_count(body, at, &rule, keys[i], change != COUNT_DOWN,
                    answer[i] == (change == COUNT_DOWN), &all);
        found += answer[i];
    }
    line_tally_end(&all, tally);
    return found;
}

static size_t counting_changes(uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, enum count_change change,
                               bool *answer, struct count_tally *tally)
{
    switch (change) { /* each call is inlined with a constant */
    case COUNT_UP:
        return change_in_parts(body, field, keys, ahead, n, COUNT_UP, answer, tally);
    case COUNT_UP_ABSENT:
        return change_in_parts(body, field, keys, ahead, n, COUNT_UP_ABSENT, answer, tally);
    default:
        return change_in_parts(body, field, keys, ahead, n, COUNT_DOWN, answer, tally);
    }
}

static size_t counting_contains(const uint8_t *body, const uint64_t *field,
                                const struct keyhash *keys, const struct keyhash *ahead,
                                size_t n, bool *answer)
{
    return keys_pass((uint8_t *)body, field, keys, ahead, n, answer, counters_have);
}

static bool counting_contains_one(const uint8_t *body, const uint64_t *field,
                                  struct keyhash key)
{
    return one_passes((uint8_t *)body, field, key, counters_have);
}
