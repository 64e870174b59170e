/* loops_neon.c - the loops by NEON that are not the plain C of loops_scalar.c: every CPU of
 * 64 bits has NEON, and the compiler uses it there, too. */
#if defined(__aarch64__)
#define CPU_HAS_NEON 1
#include "unit.h"

#include "../lines/lines_loops.h"
#include "../lines/lines_rates.h"
#include "../slots/elastic_loops.h"
#include "../slots/slot_loops.h"

const struct unit_loops loops_neon = {
    .lines = LINE_LOOPS,
    .flat = FLAT_LOOPS,
    .elastic = ELASTIC_LOOPS,
};

#else
typedef int not_for_this_cpu;
#endif
