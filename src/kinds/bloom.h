/* bloom.h - classic Bloom filters: where the bits of a key lie, and the loops; union by OR. */
#ifndef BLOOM_H
#define BLOOM_H

#include "../base/bytes.h"
#include "../filter/filter.h"

enum { NBITS, KEY_BITS }; /* its fields */

/* The bits of a key: scale64() of place, then of each next place. */
static inline uint64_t bloom_next_place(uint64_t place, uint64_t mark)
{
    return place * ODD_GOLDEN + mark;
}

extern const struct loops bloom_loops[CPU_COUNT];

/* The adds for bodies that others write at the same moment, as blocked_atomic. */
extern const struct loops bloom_atomic;

/* ORs the other body into f's and estimates how many keys of 'marks' bits each the union
 * holds, from its load. */
void bloom_unite(perhaps_filter *f, const perhaps_filter *other, double marks);

#endif
