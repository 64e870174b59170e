/* unit.h - each file that compiles the loops of an instruction set includes this first; and the
 * type of what it exports.  CPU_HAS_AVX2 and so on are 1 if the instructions may be used. */
#ifndef UNIT_H
#define UNIT_H

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(PERHAPS_SIMD128)
#include <wasm_simd128.h>
#endif

#include "../built/ribbon.h"
#include "../lines/bloom.h"
#include "../lines/cells.h"
#include "../lines/fold.h"
#include "../lines/lines.h"
#include "../slots/flat.h"
#include "../slots/segments.h"
#include "cpu_loops.h"

#ifndef CPU_HAS_AVX2
#define CPU_HAS_AVX2 0
#endif
#ifndef CPU_HAS_AVX512
#define CPU_HAS_AVX512 0
#endif
#ifndef CPU_HAS_NEON
#define CPU_HAS_NEON 0
#endif
#ifndef CPU_HAS_SIMD128
#define CPU_HAS_SIMD128 0
#endif

/* The loops that a file has. */
struct unit_loops {
    struct line_loops lines;
    struct loops bloom;
    struct fold_loops fold;
    struct cell_loops cells;
    struct flat_loops flat;
    struct loops elastic;
    struct ribbon_loops ribbon;
    struct ribbon_solver solver;
};

extern const struct unit_loops loops_scalar, loops_avx2, loops_avx512, loops_neon,
    loops_simd128;

#endif
