/* check.h - filters that are opened with 'check'. */
#ifndef CHECK_H
#define CHECK_H

#include "filter.h"

/* Has the pages of a mapped filter checked from now on.  Returns 0 or PERHAPS_ERR_MEMORY. */
int check_begin(perhaps_filter *f);
void check_end(perhaps_filter *f);

/* Of such a filter: whether all pages that the answer for a key is read from are sound. */
bool check_key(const perhaps_filter *f, const struct keyhash *key);

/* As contains() of the kind; keys that lie on damaged pages are perhaps there. */
size_t check_contains(const perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer);

#endif
