/* ribbon_solve.c - solves the equations of ribbon filters, for each instruction set. */
#include "ribbon.h"

/* A bucket with more keys than this is bumped as a whole: it has about 133. */
enum { BUCKET_KEYS_MOST = 512 };

enum { ALL_BUMPED = 3 };

/* What becomes of an equation that no slot takes: nothing is left of it; nothing but its row;
 * or it goes further than its lane.  Slots are lower numbers. */
#define REDUNDANT     (UINT32_MAX - 2)
#define CONTRADICTORY (UINT32_MAX - 1)
#define OUTSIDE       UINT32_MAX

/* A region of fewer buckets has one lane. */
enum { LANES = 4, LANES_BUCKETS_LEAST = 256 };

/* The region that is solved. */
struct region {
    const struct ribbon_matrix *matrix;
    const struct ribbon_keys *keys;
    uint64_t first, slots; /* the number of its first slot, and the slots of the layer */
    uint8_t *threshold;    /* of each bucket: its number */
};

/* Enters the keys of some buckets: one bucket after the other, from the left to the right, and
 * its keys from the right to the left.  The first key that contradicts the others is bumped,
 * and with it all keys of the bucket that begin below the least threshold beyond it. */
struct lane {
    uint64_t slot; /* where the equation begins now */
    struct equation equation;
    uint64_t slots_end;
    uint64_t key, from, to; /* the number of this key, and those of the bucket's keys */
    uint64_t bucket, buckets_end;
    size_t nentered;
    uint32_t entered[BUCKET_KEYS_MOST]; /* the slots of the keys before it */
};

/* Returns how many keys begin below a slot. */
static uint64_t keys_below(const struct ribbon_keys *keys, uint64_t slot, uint64_t slots)
{
    uint64_t low = 0, high = keys->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (scale64(keys->records[middle * keys->words], slots) < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#define NO_AVX512 1
#define LOOPS     "../kinds/built/ribbon_solve.h"
#include "../../base/each_cpu.h"

#define ROW(cpu)                                                                               \
    {                                                                                          \
        .enter = ribbon_enter_##cpu, .enter_one = ribbon_enter_one_##cpu,                      \
        .solve = ribbon_solve_##cpu                                                            \
    }
const struct ribbon_solver ribbon_solvers[CPU_COUNT] = { EACH_CPU(ROW) };
