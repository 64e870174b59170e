/* cpu.h - the instruction sets that loops are compiled for. */
#ifndef CPU_H
#define CPU_H

#include <stdbool.h>

/* Plain C first, the best last; src/kinds/each_cpu.h lists them in the same order. */
enum cpu {
    CPU_SCALAR,
#if defined(__x86_64__)
    CPU_AVX2,
    CPU_AVX512,
#elif defined(__aarch64__)
    CPU_NEON,
#endif
    CPU_COUNT
};

/* Whether this machine has it. */
bool cpu_has(enum cpu cpu);

/* As PERHAPS_CPU of the environment spells it. */
const char *cpu_name(enum cpu cpu);

/* The one to use: the last that this machine has, or that which PERHAPS_CPU names. */
enum cpu cpu_choose(void);

#endif
