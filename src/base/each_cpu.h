/* each_cpu.h - compiles the file LOOPS once for each instruction set.
 *
 * A .c file defines LOOPS, the path of a file of loops from here, and includes this one.  In
 * LOOPS, FOR_CPU(name) stands for another name in each instruction set: name_scalar, name_avx2.
 * CPU_HAS_AVX2 and so on are 1 if its instructions may be used.  Then EACH_CPU(ROW) lists
 * ROW(scalar), ROW(avx2), ... in the order of enum cpu, to fill a table.  Pragmas tell the
 * compiler which instructions a function may use, so that no file needs flags of its own.  A .c
 * file whose loops gain nothing by AVX-512 defines NO_AVX512 as 1; then ROW(avx2) serves that,
 * too.  One that defines AVX512_COUNTS as 1 may count the bits of vectors with AVX-512, and
 * chooses the row by cpu_that_counts(). */
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define CPU_PASTE(name, cpu)   name##_##cpu
#define CPU_NAME_OF(name, cpu) CPU_PASTE(name, cpu)
#define FOR_CPU(name)          CPU_NAME_OF(name, CPU)

#define CPU            scalar
#define CPU_HAS_AVX2   0
#define CPU_HAS_AVX512 0
#define CPU_HAS_NEON   0
#include LOOPS
#undef CPU

#if defined(__x86_64__)
#if NO_AVX512
#define EACH_CPU(ROW) ROW(scalar), ROW(avx2), ROW(avx2)
#else
#define EACH_CPU(ROW) ROW(scalar), ROW(avx2), ROW(avx512)
#endif

#define CPU avx2
#undef CPU_HAS_AVX2
#define CPU_HAS_AVX2 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi2")
#endif
#include LOOPS
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef CPU

#if !NO_AVX512
#define CPU avx512
#undef CPU_HAS_AVX512
#define CPU_HAS_AVX512 1
#if AVX512_COUNTS && defined(__clang__)
#pragma clang attribute push(                                                                  \
    __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq"))),   \
    apply_to = function)
#elif defined(__clang__)
#pragma clang attribute push(                                                                  \
    __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))),                   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl")
#if AVX512_COUNTS
#pragma GCC target("avx512vpopcntdq")
#endif
#endif
#include LOOPS
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef CPU
#endif

#elif defined(__aarch64__)
#define EACH_CPU(ROW) ROW(scalar), ROW(neon)

#define CPU neon
#undef CPU_HAS_NEON
#define CPU_HAS_NEON 1
#include LOOPS
#undef CPU

#else
#define EACH_CPU(ROW) ROW(scalar)
#endif
