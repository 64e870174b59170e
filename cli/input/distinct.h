/* distinct.h - how many keys differ, about. */
#ifndef DISTINCT_H
#define DISTINCT_H

#include "lines.h"

/* HyperLogLog (Flajolet et al., AofA 2007) with the estimator of Ertl, "New cardinality
 * estimation algorithms for HyperLogLog sketches" (2017), which has no bias at any size.  It
 * takes 64 KiB.  With its estimate, a filter for lines that repeat is planned for the different
 * ones. */
enum { DISTINCT_BITS = 16, DISTINCT_COUNTERS = 1 << DISTINCT_BITS };

/* The highest rank of a hash that came to each counter.  All zero: no key came.  Any number of
 * threads may add to it. */
struct distinct {
    _Atomic uint8_t rank[DISTINCT_COUNTERS];
};

/* A stage, with a struct distinct. */
bool distinct_add(void *distinct, struct block *block);

/* Return numbers that the number of different keys does not exceed, and is not below: the
 * estimate and six times its standard deviation. */
uint64_t distinct_bound(const struct distinct *distinct);
uint64_t distinct_least(const struct distinct *distinct);

#endif
