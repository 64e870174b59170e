/* counted.h - what a count of keys means, and what it becomes in another filter. */
#ifndef COUNTED_H
#define COUNTED_H

#include "filter.h"
#include <perhaps_sets.h>

/* Returns whether the number of keys is an estimate, of the filter or of any of its parts. */
bool filter_is_estimated(const perhaps_filter *f);

/* Returns the number of keys: the count; but if that is an estimate, at most what the bits
 * tell, with what chance and a sample may add to it. */
uint64_t filter_keys(const perhaps_filter *f);

/* Returns whether f counts only the keys that set a bit: so the same keys have another count in
 * a filter of another geometry, or in another order. */
bool filter_counts_bits(const perhaps_filter *f);

/* Returns how many different keys have come, in expectation: those that were counted, and those
 * that seemed to be there when they came.  Of a filter that stores copies, and of a window, the
 * number of keys. */
double filter_different(const perhaps_filter *f);

/* Returns whether the count is the number of set bits, since each key has one. */
bool filter_picks_one(const perhaps_filter *f);

/* Returns the count of a filter of this geometry to which so many different keys were added,
 * and of whose cells this share is picked.  This and the next two are for filters with
 * filter_counts_bits(). */
uint64_t filter_count_of(const perhaps_filter *f, double different, double load);

/* Sets the count of a union, of which 'picked' cells are picked, of filters that had 'one' and
 * 'two' different keys; and of an intersection, whose count is 'most' at most. */
void filter_count_union(perhaps_filter *f, double one, double two, uint64_t picked);
void filter_count_common(perhaps_filter *f, uint64_t most, uint64_t picked);

/* Returns how many different keys there are, by the bits that are set; the error is that of
 * chance.  Reads about 'most_nbytes' bytes of the body.  For kinds with rate_with(). */
struct perhaps_estimate filter_estimate(const perhaps_filter *f, uint64_t most_nbytes);

#endif
