/* loops_avx512.c - the loops that gain by AVX-512; cpu_loops.c takes AVX2 for others. */
#if defined(__x86_64__)
#define CPU_HAS_AVX2   1
#define CPU_HAS_AVX512 1
#include "unit.h"

#if defined(__clang__)
#pragma clang attribute push(                                                                  \
    __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))),                   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl")
#endif

#include "../lines/lines_loops.h"
#include "../lines/lines_rates.h"

/* What follows counts the bits of vectors, too: only cpu_that_counts() leads here. */
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(                                                                  \
    __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq"))),   \
    apply_to = function)
#else
#pragma GCC target("avx512vpopcntdq")
#endif

#include "../built/ribbon_loops.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct unit_loops loops_avx512 = {
    .lines = LINE_LOOPS,
    .ribbon = RIBBON_LOOPS,
};

#else
typedef int not_for_this_cpu;
#endif
