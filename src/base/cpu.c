/* cpu.c - which instruction set the loops use on this machine. */
#include "cpu.h"

#include <string.h>

#include "../system/system.h"
#include "compiler.h"

bool cpu_has(enum cpu cpu)
{
#if defined(PERHAPS_SIMD128) /* see loops_simd128.c */
    return cpu == CPU_SIMD128;
#endif
    if (cpu == CPU_SCALAR)
        return true;
    if (THREAD_SANITIZED) /* see compiler.h: only the scalar loops run */
        return false;
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    if (cpu == CPU_AVX512)
        return avx2 && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    return avx2;
#else
    return true;
#endif
}

const char *cpu_name(enum cpu cpu)
{
    static const char *const names[CPU_COUNT] = {
        [CPU_SCALAR] = "scalar",
#if defined(__x86_64__)
        [CPU_AVX2] = "avx2",
        [CPU_AVX512] = "avx512",
#elif defined(__aarch64__)
        [CPU_NEON] = "neon",
#elif defined(PERHAPS_SIMD128)
        [CPU_SIMD128] = "simd128",
#endif
    };
    return names[cpu];
}

enum cpu cpu_that_counts(enum cpu cpu)
{
#if defined(__x86_64__)
    if (cpu == CPU_AVX512 && !__builtin_cpu_supports("avx512vpopcntdq"))
        return CPU_AVX2;
#endif
    return cpu;
}

enum cpu cpu_named(const char *wanted)
{
    enum cpu best = CPU_SCALAR;
    for (unsigned i = 0; i < CPU_COUNT; i++) {
        if (!cpu_has((enum cpu)i))
            continue;
        best = (enum cpu)i;
        if (wanted && !strcmp(cpu_name(best), wanted))
            return best;
    }
    return best;
}

/* Threads that call at the same time all choose the same one. */
enum cpu cpu_choose(void)
{
    static int chosen = CPU_COUNT;
    int cpu = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (cpu == CPU_COUNT) {
        cpu = (int)cpu_named(environment("PERHAPS_CPU"));
        __atomic_store_n(&chosen, cpu, __ATOMIC_RELAXED);
    }
    return (enum cpu)cpu;
}
