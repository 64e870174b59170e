/* plan.h - the choice of a kind. */
#ifndef PLAN_H
#define PLAN_H

#include "../filter/filter.h"

/* Checks the options, chooses a kind and its geometry, and writes to why[160] one line that
 * explains the choice.  Keeps g->first, and overwrites the rest of *g.  Returns 0 or an error
 * of perhaps_plan_for(). */
int plan_choose(const struct perhaps_options *options, const struct filter_kind **kind,
                struct geometry *g, char *why);

/* Returns whether the options ask for a kind that is exact: by its name, or by a range of
 * integers.  Then capacity and fpr may be 0. */
bool plan_is_exact(const struct perhaps_options *options);

/* Chooses the hash of a filter where the caller left it open, or where the kind has only one:
 * of integers, which no other kind has.  Returns 0 or PERHAPS_ERR_ARGUMENT. */
int plan_hash(const struct filter_kind *kind, const struct geometry *g,
              struct perhaps_hashing *hashing);

/* Returns whether a hash of 64 bits is enough: the false positives by equal hashes, a share of
 * n / 2^64 with n keys, are less than a 65,536th of the asked fpr.  Filters that grow without
 * end are taken for 2^36 keys. */
bool plan_64_suffices(const struct filter_kind *kind, const struct geometry *g);

#endif
