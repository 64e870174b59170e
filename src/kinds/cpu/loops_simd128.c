/* loops_simd128.c - the loops by SIMD128 of WebAssembly.  An engine without it refuses a module
 * that has any such instruction: so one that is made with PERHAPS_SIMD128 has these in place of
 * plain C.  (Slots, bits and ribbons gained nothing by vectors of 16 bytes.) */
#if defined(PERHAPS_SIMD128)
#define CPU_HAS_SIMD128 1
#include "unit.h"

#pragma clang attribute push(__attribute__((target("simd128"))), apply_to = function)

#include "../lines/lines_loops.h"
#include "../lines/lines_rates.h"

#pragma clang attribute pop

const struct unit_loops loops_simd128 = {
    .lines = LINE_LOOPS,
};

#else
typedef int not_for_this_cpu;
#endif
