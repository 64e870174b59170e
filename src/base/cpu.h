/* cpu.h - the instruction sets for which the inner loops of the kinds are compiled. */
#ifndef CPU_H
#define CPU_H

#include <stdbool.h>

/* Ordered from plain C to the fastest: the tables of loops are indexed by these numbers. */
enum cpu {
    CPU_SCALAR,
#if defined(__x86_64__)
    CPU_AVX2,
    CPU_AVX512,
#elif defined(__aarch64__)
    CPU_NEON,
#elif defined(PERHAPS_SIMD128)
    CPU_SIMD128,
#endif
    CPU_COUNT
};

/* Returns whether this machine has the instruction set. */
bool cpu_has(enum cpu cpu);

/* Returns its name, as the environment variable PERHAPS_CPU spells it. */
const char *cpu_name(enum cpu cpu);

/* Returns the instruction set for loops that count the bits of vectors: 'cpu', or CPU_AVX2
 * where the AVX-512 of this machine cannot (Intel before Ice Lake). */
enum cpu cpu_that_counts(enum cpu cpu);

/* Returns the instruction set of this name, if this machine has it; otherwise, also for NULL,
 * the fastest that this machine has. */
enum cpu cpu_named(const char *wanted);

/* Returns the instruction set to use: the one that PERHAPS_CPU named when it was first needed,
 * by cpu_named(). */
enum cpu cpu_choose(void);

#endif
