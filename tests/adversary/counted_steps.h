/* counted_steps.h - how much the searches for room do: counted_table.c is the source
 * of the library, compiled once more with these counters in it. */
#ifndef COUNTED_STEPS_H
#define COUNTED_STEPS_H

#include <stdint.h>

/* Slots are those of strided filters, too, which they call cells. */
struct counted {
    uint64_t buckets_looked_at; /* in cuckoo and elastic filters, and once more for each move */
    uint64_t cells_looked_at;   /* in strided filters; some of them are read three times */
    uint64_t slots_written;     /* a move writes two */
};

extern struct counted counted;

#endif
