/* fuse_loops.c - the loops of binary fuse filters, for each instruction set. */
#include "fuse.h"

#define NO_AVX512 1 /* nothing here is a vector */
#define LOOPS     "../kinds/built/fuse_loops.h"
#include "../../base/each_cpu.h"

#define AT_CPU(cpu) fuse_loops_at_##cpu

struct loops fuse_loops(enum cpu cpu, unsigned slot_bits)
{
    static const struct loops *const at[CPU_COUNT] = { EACH_CPU(AT_CPU) };
    return at[cpu][slot_bits == 8 ? 0 : slot_bits == 12 ? 1 : slot_bits == 16 ? 2 : 3];
}
