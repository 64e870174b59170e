/* cells.h - which cells two bodies have picked, in kinds whose cells are bits or counters. */
#ifndef CELLS_H
#define CELLS_H

#include "../../filter/filter.h"

/* Counts lines of two bodies: the counts of a byte of so many fit into a byte, 31 * 8 < 256. */
enum { CELLS_SUM_LINES = 31 };
typedef void line_counter(const uint8_t *a, const uint8_t *b, size_t nlines,
                          struct picked *picked);

/* The loops that count at most CELLS_SUM_LINES lines, for one instruction set
 * (../cpu/cpu_loops.h). */
struct cell_loops {
    line_counter *bits;
    line_counter *counters; /* those that are not zero */
};

/* Adds to *picked how many bits are set in the first 'nbytes' bytes of both bodies, a multiple
 * of 64. */
void cells_count(const perhaps_filter *a, const perhaps_filter *b, uint64_t nbytes,
                 struct picked *picked);

/* count() of struct compares (groups.h), for kinds that have 'folds': counts bits that are set
 * (cell_nbits is 1), or counters of 4 bits that are not zero. */
void cells_count_smaller(const perhaps_filter *a, uint64_t a_factor, const perhaps_filter *b,
                         uint64_t b_factor, unsigned cell_nbits, struct picked *picked);

/* Clears the bits of f that 'other' has not set. */
void cells_keep_common(perhaps_filter *f, const perhaps_filter *other);

#endif
