/* cpu_loops.c - which loops serve which instruction set. */
#include "cpu_loops.h"

#include "unit.h"

#define ALL_OF(unit)                                                                           \
    {                                                                                          \
        .lines = &(unit).lines, .bloom = &(unit).bloom, .fold = &(unit).fold,                  \
        .cells = &(unit).cells, .flat = &(unit).flat, .elastic = &(unit).elastic,              \
        .ribbon = &(unit).ribbon, .solver = &(unit).solver                                     \
    }

const struct cpu_loops cpu_loops[CPU_COUNT] = {
#if !defined(PERHAPS_SIMD128)
    [CPU_SCALAR] = ALL_OF(loops_scalar),
#endif
#if defined(__x86_64__)
    [CPU_AVX2] = ALL_OF(loops_avx2),
    [CPU_AVX512] = { .lines = &loops_avx512.lines,
                     .bloom = &loops_avx2.bloom,
                     .fold = &loops_avx2.fold,
                     .cells = &loops_avx2.cells,
                     .flat = &loops_avx2.flat,
                     .elastic = &loops_avx2.elastic,
                     .ribbon = &loops_avx512.ribbon,
                     .solver = &loops_avx2.solver },
#elif defined(__aarch64__)
    [CPU_NEON] = { .lines = &loops_neon.lines,
                   .bloom = &loops_scalar.bloom,
                   .fold = &loops_scalar.fold,
                   .cells = &loops_scalar.cells,
                   .flat = &loops_neon.flat,
                   .elastic = &loops_neon.elastic,
                   .ribbon = &loops_scalar.ribbon,
                   .solver = &loops_scalar.solver },
#elif defined(PERHAPS_SIMD128)
    [CPU_SIMD128] = { .lines = &loops_simd128.lines,
                      .bloom = &loops_scalar.bloom,
                      .fold = &loops_scalar.fold,
                      .cells = &loops_scalar.cells,
                      .flat = &loops_scalar.flat,
                      .elastic = &loops_scalar.elastic,
                      .ribbon = &loops_scalar.ribbon,
                      .solver = &loops_scalar.solver },
#endif
};
