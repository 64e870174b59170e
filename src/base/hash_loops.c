/* hash_loops.c - hashes integers by XXH3-64, for each instruction set. */
#include "hash.h"

#define LOOPS "hash_loops.h"
#include "each_cpu.h"

#define ROW(cpu) hash_all_##cpu
hash_integers *const hash_integers_64[CPU_COUNT] = { EACH_CPU(ROW) };
