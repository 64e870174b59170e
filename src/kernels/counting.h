/* counting.h - the loops of counting filters, for any instruction set.
 *
 * The including file has included blocked.h before, and defined for a line of counters:
 *   bool counters_have(line, mark, rule)  whether none of the key's counters is zero
 *   struct line_tally                     what happened to counters, in any form
 *   void line_tally_end(&line_tally, &tally)
 *                                         adds it to a struct count_tally
 *   void line_count(line, mark, rule, up, moves, &line_tally)
 *                                         counts them up or down by one, if 'moves' */
#ifndef KERNELS_COUNTING_H
#define KERNELS_COUNTING_H

#include "blocked.h"

static ALWAYS_INLINE void lines_count(uint8_t *body, struct places at,
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

/* A key that does not move its counters writes them as they are: that is no branch. */
static ALWAYS_INLINE size_t change_in_parts(uint8_t *body, const uint64_t *field,
                                            const struct keyhash *keys,
                                            const struct keyhash *ahead, size_t n,
                                            enum count_change change, bool *answer,
                                            struct count_tally *tally)
{
    struct places at = places_in_parts(field);
    struct line_rule rule = line_rule((unsigned)field[LINE_BITS]);
    struct line_tally all = { 0 };
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, at, ahead[i]);
        answer[i] = change != COUNT_UP && lines_have(body, at, &rule, keys[i], counters_have);
        lines_count(body, at, &rule, keys[i], change != COUNT_DOWN,
                    answer[i] == (change == COUNT_DOWN), &all);
        found += answer[i];
    }
    line_tally_end(&all, tally);
    return found;
}

static size_t counting_change(uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                              const struct keyhash *ahead, size_t n, enum count_change change,
                              bool *answer, struct count_tally *tally)
{
#define CHANGE(how) change_in_parts(body, field, keys, ahead, n, how, answer, tally)
    switch (change) {
    case COUNT_UP:
        return CHANGE(COUNT_UP);
    case COUNT_UP_ABSENT:
        return CHANGE(COUNT_UP_ABSENT);
    default:
        return CHANGE(COUNT_DOWN);
    }
}

/* One loop for filters of one part and one for others, as in blocked.h. */
static size_t counting_contains(const uint8_t *body, const uint64_t *field,
                                const struct keyhash *keys, const struct keyhash *ahead,
                                size_t n, bool *answer)
{
#define COUNTED_IN(places, marks)                                                              \
    contains_in(body, places(field), marks, keys, ahead, n, answer, counters_have)
#define COUNTED_IN_ONE(marks)   COUNTED_IN(places_in_one, marks)
#define COUNTED_IN_PARTS(marks) COUNTED_IN(places_in_parts, marks)
    if (field[PARTS] == 1)
        RETURN_FOR_BITS(field[LINE_BITS], COUNTED_IN_ONE)
    RETURN_FOR_BITS(field[LINE_BITS], COUNTED_IN_PARTS)
}

static bool counting_contains_one(const uint8_t *body, const uint64_t *field,
                                  struct keyhash key)
{
#define COUNTED(marks) one_in(body, places_in_parts(field), marks, key, counters_have)
    RETURN_FOR_BITS(field[LINE_BITS], COUNTED)
}

#define COUNTING_LOOPS                                                                         \
    {                                                                                          \
        .prefetch = blocked_prefetch, .contains = counting_contains,                           \
        .contains_one = counting_contains_one,                                                 \
    }

#endif
