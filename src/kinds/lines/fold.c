/* fold.c - makes a small body of a large one: lines and bits that are joined by OR, and
 * counters that are added. */
#include "fold.h"

#include <stdbool.h>
#include <stddef.h>

#include "../../base/bytes.h"
#include "../cpu/cpu_loops.h"
#include "lines.h"

uint64_t fold_round_up(uint64_t units)
{
    static const uint64_t multiples[] = { 720, 360, 240, 120, 60, 48, 24, 12, 6, 4, 2 };
    const uint64_t share = 200; /* the most that rounding may add: one part in so many */
    for (unsigned i = 0; i < sizeof multiples / sizeof *multiples; i++) {
        uint64_t more = (multiples[i] - units % multiples[i]) % multiples[i];
        if (more * share < units)
            return units + more;
    }
    return units;
}

void fold_units(enum cpu cpu, const uint8_t *from, uint8_t *to, uint64_t units,
                uint64_t unit_nbytes, uint64_t factor)
{
    cpu_loops[cpu].fold->units(from, to, units, unit_nbytes, factor);
}

void fold_counters(enum cpu cpu, const uint8_t *from, uint8_t *to, uint64_t lines,
                   uint64_t factor)
{
    cpu_loops[cpu].fold->counters(from, to, lines, factor);
}

uint64_t fold_count_bits(enum cpu cpu, const uint8_t *bytes, uint64_t nbytes)
{
    return cpu_loops[cpu].fold->count_bits(bytes, nbytes);
}

void fold_count_counters(enum cpu cpu, const uint8_t *bytes, uint64_t nbytes, uint64_t *used,
                         uint64_t *full)
{
    cpu_loops[cpu].fold->count_counters(bytes, nbytes, used, full);
}

/* ---- Bits ------------------------------------------------------------------------------- */

/* Up to this factor the bits are folded by one small divisor after the other, each in a pass of
 * its own.  With larger ones each bit of the small body is computed alone, which then is as
 * quick, since it has words of the large one to itself. */
enum { PASSES_FACTOR_MAX = 120, PASSES_NBYTES = 128 };

/* Returns whether one of n bits is set, from number 'first' on. */
static bool any_set(const uint8_t *from, uint64_t first, uint64_t n)
{
    uint64_t any = 0, last = first + n - 1;
    uint64_t low = UINT64_MAX << first % 64, high = UINT64_MAX >> (63 - last % 64);
    uint64_t word = first / 64, end = last / 64;
    if (word == end)
        return (load64(from + 8 * word) & low & high) != 0;
    any = (load64(from + 8 * word) & low) | (load64(from + 8 * end) & high);
    while (++word < end)
        any |= load64(from + 8 * word);
    return any != 0;
}

static void fold_bit_by_bit(const uint8_t *from, uint8_t *to, uint64_t nbytes, uint64_t factor)
{
    for (uint64_t at = 0, first = 0; at < nbytes; at += 8) {
        uint64_t word = 0;
        for (unsigned bit = 0; bit < 64; bit++, first += factor)
            word |= (uint64_t)any_set(from, first, factor) << bit;
        store64(to + at, word);
    }
}

/* Returns the largest divisor of the factor by which a pass folds; 1 if there is none. */
static unsigned next_group(uint64_t factor)
{
    unsigned group = FOLD_GROUP_MOST;
    while (factor % group)
        group--;
    return group;
}

/* Folds at most PASSES_NBYTES bytes.  All passes but the last one write to a buffer. */
static void fold_in_passes(enum cpu cpu, const uint8_t *from, uint8_t *to, uint64_t nbytes,
                           uint64_t factor)
{
    _Alignas(LINE_NBYTES) uint8_t buffer[PASSES_NBYTES * PASSES_FACTOR_MAX / 2];
    unsigned group = next_group(factor);
    for (; group > 1 && group != factor; group = next_group(factor)) {
        factor /= group;
        cpu_loops[cpu].fold->bits(from, buffer, factor * nbytes, group);
        from = buffer;
    }
    if (group > 1)
        cpu_loops[cpu].fold->bits(from, to, nbytes, group);
    else
        fold_bit_by_bit(from, to, nbytes, factor);
}

void fold_bits(enum cpu cpu, const uint8_t *from, uint8_t *to, uint64_t nbytes, uint64_t factor)
{
    if (factor == 1)
        memcpy(to, from, nbytes);
    else if (factor <= FOLD_GROUP_MOST)
        cpu_loops[cpu].fold->bits(from, to, nbytes, (unsigned)factor);
    else if (factor > PASSES_FACTOR_MAX)
        fold_bit_by_bit(from, to, nbytes, factor);
    else
        for (uint64_t at = 0; at < nbytes; at += PASSES_NBYTES) {
            uint64_t left = nbytes - at;
            fold_in_passes(cpu, from + at * factor, to + at,
                           left < PASSES_NBYTES ? left : PASSES_NBYTES, factor);
        }
}
