/* spelling.h - keys that are there with other letters. */
#ifndef SPELLING_H
#define SPELLING_H

#include "target.h"

/* Looks, when a filter has none of the keys of a block, whether it has most of them with small
 * or with capital letters, as hexadecimal digits may come; and says so. */
void spelling_check(const struct target *target, const struct block *block);

#endif
