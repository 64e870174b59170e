/* against.h - filters that are exact where the other side is known. */
#ifndef AGAINST_H
#define AGAINST_H

#include "../../filter/filter.h"

enum { AGAINST_BASE, AGAINST_OTHERS, AGAINST_ROW_BITS }; /* the fields */

/* Returns the hash with which a key goes to the second part.  With the same hash both parts
 * would have nearly the same equations, and what the first one takes for listed the second one
 * would take for listed, too.  The mark stays the same multiple of the place, if it is one. */
static inline struct keyhash against_second(struct keyhash key)
{
    return (struct keyhash){ .place = key.place * ODD_PI, .mark = key.mark * ODD_PI };
}

/* Returns how many bits a key has in the first part, so that both parts take the fewest. */
unsigned against_row_bits(uint64_t listed, uint64_t others, double fpr);

#endif
