/* fold.h - makes a small body of a large one whose picks lie at floor(x * units / 2^64), where
 * x depends on the key alone.
 *
 *   floor(floor(x * n f / 2^64) / f) = floor(x * n / 2^64)
 *
 * So the pick of a key that lies in unit u of n f units lies in unit u / f of n units.  Joining
 * each 'factor' adjacent units makes, bit for bit, the body that would have been there if the
 * filter had had n units from the beginning.
 *
 * A unit is a line or a block of lines in blocked filters, a line in counting ones, and a bit
 * in classic Bloom filters.  A body with several bands is folded as a whole, since no group of
 * units reaches from one band into the next.  The functions take any number of whole groups, so
 * a body can be folded piece by piece. */
#ifndef FOLD_H
#define FOLD_H

#include <stdint.h>

#include "../../base/cpu.h"

/* By how many the bits are folded in one pass at most. */
enum { FOLD_GROUP_MOST = 8 };

/* The loops, for one instruction set (../cpu/cpu_loops.h).  'group' is FOLD_GROUP_MOST at
 * most. */
struct fold_loops {
    void (*units)(const uint8_t *from, uint8_t *to, uint64_t units, uint64_t unit_nbytes,
                  uint64_t factor);
    void (*counters)(const uint8_t *from, uint8_t *to, uint64_t lines, uint64_t factor);
    void (*bits)(const uint8_t *from, uint8_t *to, uint64_t nbytes, unsigned group);
    uint64_t (*count_bits)(const uint8_t *bytes, uint64_t nbytes);
    void (*count_counters)(const uint8_t *bytes, uint64_t nbytes, uint64_t *used,
                           uint64_t *full);
};

/* Returns 'units' or a little more: the next multiple of 720, or of a smaller number with many
 * divisors, that costs less than half a percent.  A plan takes so many, so that there are many
 * factors by which the filter can be folded. */
uint64_t fold_round_up(uint64_t units);

/* Joins units by OR: writes 'units' units of 'unit_nbytes' bytes, a multiple of 64, to 'to',
 * and reads 'factor' times as many.  The two do not overlap. */
void fold_units(enum cpu cpu, const uint8_t *from, uint8_t *to, uint64_t units,
                uint64_t unit_nbytes, uint64_t factor);

/* Joins units of one bit by OR: writes 'nbytes' bytes, a multiple of 64, to 'to', and reads
 * 'factor' times as many.  The two do not overlap. */
void fold_bits(enum cpu cpu, const uint8_t *from, uint8_t *to, uint64_t nbytes,
               uint64_t factor);

/* Adds up the counters of 'factor' adjacent lines: writes so many lines.  A counter that is at
 * its end stays there. */
void fold_counters(enum cpu cpu, const uint8_t *from, uint8_t *to, uint64_t lines,
                   uint64_t factor);

/* Returns how many bits of these lines are set.  Nobody may write them meanwhile. */
uint64_t fold_count_bits(enum cpu cpu, const uint8_t *bytes, uint64_t nbytes);

/* Adds to *used how many counters of these lines are not zero, and to *full how many are at
 * their end. */
void fold_count_counters(enum cpu cpu, const uint8_t *bytes, uint64_t nbytes, uint64_t *used,
                         uint64_t *full);

#endif
