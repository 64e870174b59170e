/* ribbon_solve.c - solves the equations of ribbon filters, for each instruction set. */
#include "ribbon.h"

/* A bucket with more keys than this is bumped as a whole: it has about 133. */
enum { BUCKET_KEYS_MOST = 512 };

enum { ALL_BUMPED = 3 };

/* What becomes of an equation that no slot takes. */
#define REDUNDANT     (UINT64_MAX - 1)
#define CONTRADICTORY UINT64_MAX

#define NO_AVX512 1
#define LOOPS     "../kinds/ribbon_solve.h"
#include "../base/each_cpu.h"

#define ROW(cpu)                                                                               \
    {                                                                                          \
        .enter = ribbon_enter_##cpu, .enter_one = ribbon_enter_one_##cpu,                      \
        .solve = ribbon_solve_##cpu                                                            \
    }
const struct ribbon_solver ribbon_solvers[CPU_COUNT] = { EACH_CPU(ROW) };
