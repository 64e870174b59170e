/* lines_rates.c - the fprs of lines, for each instruction set. */
#include "lines.h"

#define LOOPS "../kinds/lines/lines_rates.h"
#include "../../base/each_cpu.h"

#define ROW(cpu) rates_##cpu
line_rater *const lines_rates[CPU_COUNT] = { EACH_CPU(ROW) };
