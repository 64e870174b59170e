/* cpu_loops.h - the inner loops of all kinds, for each instruction set.
 *
 * Loops are plain C in the folders of their families (lines/lines_loops.h and so on), with
 * #if where an instruction set has something better.  loops_scalar.c, loops_avx2.c, ... each
 * include those that gain by its instructions, behind a pragma that allows these where a
 * compiler needs one: so no file needs a flag such as -mavx2.  Nothing else may use these
 * instructions: all that such a file defines is static, except for its table. */
#ifndef CPU_LOOPS_H
#define CPU_LOOPS_H

#include "../../base/cpu.h"

struct line_loops;    /* ../lines/lines.h */
struct loops;         /* ../../filter/loops.h */
struct fold_loops;    /* ../lines/fold.h */
struct cell_loops;    /* ../lines/cells.h */
struct flat_loops;    /* ../slots/flat.h */
struct ribbon_loops;  /* ../built/ribbon.h */
struct ribbon_solver; /* ../built/ribbon.h */

/* Which loops serve an instruction set: those of another one where its own gain nothing. */
struct cpu_loops {
    const struct line_loops *lines;
    const struct loops *bloom;
    const struct fold_loops *fold;
    const struct cell_loops *cells;
    const struct flat_loops *flat;
    const struct loops *elastic;
    const struct ribbon_loops
        *ribbon; /* of cpu_that_counts(), not of f->cpu: some count bits */
    const struct ribbon_solver *solver;
};

extern const struct cpu_loops cpu_loops[CPU_COUNT];

#endif
