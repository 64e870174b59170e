/* cells.c - counts the cells that two bodies have picked, alone and together, and clears those
 * that one of them has not picked. */
#include "cells.h"

#include "../cpu/cpu_loops.h"
#include "lines.h"

/* ---- Bytes ------------------------------------------------------------------------------ */

static void count_all(const perhaps_filter *f, const uint8_t *a, const uint8_t *b,
                      uint64_t nbytes, unsigned cell_nbits, struct picked *picked)
{
    const uint64_t most = (uint64_t)CELLS_SUM_LINES * LINE_NBYTES;
    const struct cell_loops *loops = cpu_loops[f->cpu].cells;
    line_counter *count = cell_nbits == 1 ? loops->bits : loops->counters;
    for (uint64_t at = 0, n; at < nbytes; at += n) {
        n = nbytes - at < most ? nbytes - at : most;
        count(a + at, b + at, (size_t)(n / LINE_NBYTES), picked);
    }
}

void cells_count(const perhaps_filter *a, const perhaps_filter *b, uint64_t nbytes,
                 struct picked *picked)
{
    count_all(a, a->body.bytes, b->body.bytes, nbytes, 1, picked);
}

/* Returns 'nbytes' bytes of the body of f from byte 'at' on, as they are when the body is made
 * smaller by this factor: in the buffer, or where they lie if the factor is 1. */
static const uint8_t *smaller(const perhaps_filter *f, uint64_t factor, uint64_t at,
                              uint64_t nbytes, uint8_t *buffer)
{
    const uint8_t *from = f->body.bytes + at * factor;
    if (factor == 1)
        return from;
    f->kind->folds->fold(&f->body.geometry, f->cpu, from, buffer, nbytes, factor);
    return buffer;
}

void cells_count_smaller(const perhaps_filter *a, uint64_t a_factor, const perhaps_filter *b,
                         uint64_t b_factor, unsigned cell_nbits, struct picked *picked)
{
    enum { PIECE_NBYTES = 4096 };
    _Alignas(LINE_NBYTES) uint8_t of_a[PIECE_NBYTES], of_b[PIECE_NBYTES];
    const struct folds *folds = a->kind->folds;
    uint64_t unit = folds->unit_nbytes(&a->body.geometry), most = PIECE_NBYTES / unit * unit;
    uint64_t nbytes = (a->body.geometry.body_nbytes - folds->tail_nbytes) / a_factor;
    for (uint64_t at = 0, n; at < nbytes; at += n) {
        n = nbytes - at < most ? nbytes - at : most;
        count_all(a, smaller(a, a_factor, at, n, of_a), smaller(b, b_factor, at, n, of_b), n,
                  cell_nbits, picked);
    }
}

void cells_keep_common(perhaps_filter *f, const perhaps_filter *other)
{
    for (uint64_t at = 0; at < f->body.geometry.body_nbytes; at += sizeof(uint64_t))
        store64(f->body.bytes + at,
                load64(f->body.bytes + at) & load64(other->body.bytes + at));
}
