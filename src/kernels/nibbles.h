/* nibbles.h - a line of counters of 4 bits as vectors of any width, by the arithmetic that both
 * compilers have for vectors: one text for every instruction set.
 *
 * The including file has included blocked.h before, and defined:
 *   words                         a vector of u32
 *   bool some_lane(words)         whether one is set
 *   void line_ones(mark, rule, words ones[LINE_VECTORS])
 *                                 a one at the lowest bit of each of the key's counters */
#ifndef NIBBLES_H
#define NIBBLES_H

#include "layout.h"

enum { LINE_VECTORS = LINE_NBYTES / sizeof(words) };

/* Others may be writing: what follows must look at one value.  (A compiler would load again
 * what it needs twice, and find bits of 1 and of 2 that make 0.) */
static ALWAYS_INLINE words load_once(const words *at)
{
    return *(const volatile words *)at;
}

/* At the lowest bit of each counter, whether it is zero; other bits are anything. */
static ALWAYS_INLINE words counters_zero(words counters)
{
    words pairs = counters | counters >> 1;
    return ~(pairs | pairs >> 2);
}

/* The same: whether it is below its end. */
static ALWAYS_INLINE words counters_can_move(words counters)
{
    words pairs = counters & counters >> 1;
    return ~(pairs & pairs >> 2);
}

static ALWAYS_INLINE bool counters_have(const uint8_t *line, uint64_t mark,
                                        const struct line_rule *rule)
{
    const words *at = (const void *)line;
    words ones[LINE_VECTORS], missing = { 0 };
    line_ones(mark, rule, ones);
    for (unsigned i = 0; i < LINE_VECTORS; i++)
        missing |= ones[i] & counters_zero(load_once(&at[i]));
    return !some_lane(missing);
}

/* In each lane a sum of its own: they are added up once a batch. */
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
        /* a comparison that is true gives -1 */
        tally->turned -= (words)((one & counters_zero(up ? before : after)) != 0);
        if (up)
            tally->filled -= (words)((one & ~counters_can_move(after)) != 0);
    }
}

#endif
