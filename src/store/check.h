/* check.h - filters that are opened with 'check'. */
#ifndef CHECK_H
#define CHECK_H

#include "../filter/filter.h"

/* Has the pages of a mapped filter checked from now on.  Returns 0 or PERHAPS_ERR_MEMORY. */
int check_begin(perhaps_filter *f);
void check_end(perhaps_filter *f);

#endif
