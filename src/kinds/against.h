/* against.h - filters that are exact where the other side is known. */
#ifndef AGAINST_H
#define AGAINST_H

#include "../filter/filter.h"

enum { AGAINST_BASE, AGAINST_OTHERS, AGAINST_ROW_BITS }; /* the fields */

/* Returns how many bits a key has in the first part, so that both parts take the fewest. */
unsigned against_row_bits(uint64_t listed, uint64_t others, double fpr);

#endif
