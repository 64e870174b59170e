/* cells_loops.h - loops that count picked cells: plain C, of which the compiler makes
 * vectors. */
#include "cells.h"
#include "lines.h"

/* Returns the lowest bit of each cell of a word, set if the cell is picked. */
static LOOP_INLINE uint32_t marks_of(uint32_t word, unsigned cell_nbits)
{
    if (cell_nbits == 1)
        return word;
    word |= word >> 1;
    return (word | word >> 2) & UINT32_C(0x11111111);
}

/* Returns a word that has in each byte how many bits are set in that byte. */
static LOOP_INLINE uint32_t counts_of_bytes(uint32_t word)
{
    word -= word >> 1 & UINT32_C(0x55555555);
    word = (word & UINT32_C(0x33333333)) + (word >> 2 & UINT32_C(0x33333333));
    return (word + (word >> 4)) & UINT32_C(0x0f0f0f0f);
}

static LOOP_INLINE uint32_t sum_of_bytes(uint32_t word)
{
    word = (word & UINT32_C(0x00ff00ff)) + (word >> 8 & UINT32_C(0x00ff00ff));
    return (word + (word >> 16)) & UINT32_C(0xffff);
}

/* Counts a few lines: CELLS_SUM_LINES at most. */
static LOOP_INLINE void cells_count_lines(const uint8_t *a, const uint8_t *b, size_t nlines,
                                          unsigned cell_nbits, struct picked *picked)
{
    uint32_t in_a[LINE_WORDS] = { 0 }, in_b[LINE_WORDS] = { 0 }, in_either[LINE_WORDS] = { 0 };
    for (size_t line = 0; line < nlines; line++, a += LINE_NBYTES, b += LINE_NBYTES)
        for (size_t w = 0; w < LINE_WORDS; w++) {
            uint32_t word = load32(a + w * sizeof word), other = load32(b + w * sizeof word);
            in_a[w] += counts_of_bytes(marks_of(word, cell_nbits));
            in_b[w] += counts_of_bytes(marks_of(other, cell_nbits));
            in_either[w] += counts_of_bytes(marks_of(word | other, cell_nbits));
        }
    for (size_t w = 0; w < LINE_WORDS; w++) {
        picked->a += sum_of_bytes(in_a[w]);
        picked->b += sum_of_bytes(in_b[w]);
        picked->either += sum_of_bytes(in_either[w]);
    }
}

static void cells_count_bits(const uint8_t *a, const uint8_t *b, size_t nlines,
                             struct picked *picked)
{
    cells_count_lines(a, b, nlines, 1, picked);
}

static void cells_count_counters(const uint8_t *a, const uint8_t *b, size_t nlines,
                                 struct picked *picked)
{
    cells_count_lines(a, b, nlines, COUNTER_NBITS, picked);
}

/* The table. */
#define CELL_LOOPS                                                                             \
    {                                                                                          \
        .bits = cells_count_bits, .counters = cells_count_counters                             \
    }
