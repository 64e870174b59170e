/* estimate.h - how many keys a layer has, from its bits.  A hash chooses the block of each key,
 * so the bits of a partition lie evenly, and mostly those of all partitions, too.  But a client
 * that dies may have added its keys to some partitions and not to others. */
#ifndef ESTIMATE_H
#define ESTIMATE_H

#include "handle.h"

/* How many keys a layer has, in expectation. */
struct estimate {
    double keys;      /* that were added, all different */
    double counted;   /* those of them that set a bit: the count of the layer has these */
    double deviation; /* the standard deviation of both */
};

/* Estimates from 'nbits' bits of whole blocks, of which 'nset' are set, as if all others were
 * like them. */
struct estimate estimate_keys(const struct layer *layer, uint64_t nset, uint64_t nbits);

/* Adds the keys that lie in 'nbits' bits: those of a partition.  The sum of all partitions is
 * right, however differently they are filled. */
void estimate_add(struct estimate *sum, const struct layer *layer, uint64_t nset,
                  uint64_t nbits);

/* Returns how many different keys there are, in expectation, if 'counted' of them set a bit. */
double estimate_different(const struct layer *layer, uint64_t counted);

/* Returns whether a count cannot be explained: it is far lower than the keys that are there, or
 * far higher than these and all that clients may have reserved. */
bool estimate_contradicts(const struct layer *layer, const struct estimate *estimate,
                          uint64_t count);

#endif
