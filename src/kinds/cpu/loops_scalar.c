/* loops_scalar.c - all loops in plain C: what all other instruction sets must equal, and
 * what CPUs run that have none of them. */
#if defined(__x86_64__)
#define LOOP_INLINE inline /* few CPUs run these there */
#endif
#include "unit.h"

#include "../built/ribbon_loops.h"
#include "../built/ribbon_solve.h"
#include "../lines/bloom_loops.h"
#include "../lines/cells_loops.h"
#include "../lines/fold_loops.h"
#include "../lines/lines_loops.h"
#include "../lines/lines_rates.h"
#include "../slots/elastic_loops.h"
#include "../slots/slot_loops.h"

const struct unit_loops loops_scalar = {
#if !defined(PERHAPS_SIMD128)
    .lines = LINE_LOOPS,
#endif
    .bloom = BLOOM_LOOPS,
    .fold = FOLD_LOOPS,
    .cells = CELL_LOOPS,
    .flat = FLAT_LOOPS,
    .elastic = ELASTIC_LOOPS,
    .ribbon = RIBBON_LOOPS,
    .solver = RIBBON_SOLVER,
};
