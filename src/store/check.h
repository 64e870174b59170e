/* check.h - filters that are opened with 'check'. */
#ifndef CHECK_H
#define CHECK_H

#include "../filter/filter.h"

/* Sets the guard of a mapped filter, which from now on checks each page before its first use.
 * Returns 0 or PERHAPS_ERR_MEMORY. */
int check_begin(perhaps_filter *f);

/* Releases what check_begin() allocated, if it was called. */
void check_end(perhaps_filter *f);

#endif
