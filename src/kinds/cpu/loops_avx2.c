/* loops_avx2.c - all loops by AVX2. */
#if defined(__x86_64__)
#define CPU_HAS_AVX2 1
#include "unit.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi2")
#endif

#include "../built/ribbon_loops.h"
#include "../built/ribbon_solve.h"
#include "../lines/bloom_loops.h"
#include "../lines/cells_loops.h"
#include "../lines/fold_loops.h"
#include "../lines/lines_loops.h"
#include "../lines/lines_rates.h"
#include "../slots/elastic_loops.h"
#include "../slots/slot_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct unit_loops loops_avx2 = {
    .lines = LINE_LOOPS,
    .bloom = BLOOM_LOOPS,
    .fold = FOLD_LOOPS,
    .cells = CELL_LOOPS,
    .flat = FLAT_LOOPS,
    .elastic = ELASTIC_LOOPS,
    .ribbon = RIBBON_LOOPS,
    .solver = RIBBON_SOLVER,
};

#else
typedef int not_for_this_cpu;
#endif
