/* distinct.h - about how many different keys an input holds, in 64 KiB, so that a filter of
 * lines that repeat is planned for what differs. */
#ifndef DISTINCT_H
#define DISTINCT_H

#include <perhaps.h>
#include <stdatomic.h>

enum { DISTINCT_BITS = 16, DISTINCT_COUNTERS = 1 << DISTINCT_BITS };

/* All zero: no key yet. */
struct distinct {
    _Atomic uint8_t rank[DISTINCT_COUNTERS];
};

/* May be called by any number of threads at once. */
void distinct_add(struct distinct *distinct, const struct perhaps_key *keys, size_t count);

/* A number that is not exceeded: the estimate and six times its deviation of 0.41 %. */
uint64_t distinct_bound(const struct distinct *distinct);

#endif
