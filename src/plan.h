/* plan.h - what the kinds share when they plan. */
#ifndef PLAN_H
#define PLAN_H

#include "filter.h"

enum { WHY_NBYTES = sizeof((struct perhaps_plan *)0)->why };

/* Checks the options, chooses the kind and its geometry.  Returns 0 or the errors of
 * perhaps_plan(). */
int plan_choose(const struct perhaps_options *options, const struct filter_kind **kind,
                struct geometry *g, char *why);

/* The kind of a composite's parts: as asked, or one that has what the needs among 'lent' ask,
 * or the usual one.  Returns 0, PERHAPS_ERR_ARGUMENT or PERHAPS_ERR_UNSUPPORTED. */
int plan_base(const struct perhaps_options *options, unsigned lent, const char *usual,
              const struct filter_kind **base);

/* Whether capacity and fpr are in their ranges. */
bool plan_in_range(uint64_t capacity, double fpr);

/* Whether a filter made with any seed keeps the rate: its mean and three standard deviations
 * stay under what was asked. */
bool plan_fits(struct rate rate, double fpr);

/* The smallest value in 1 .. most that fits (fits() is false below some value and true from
 * it on); 0 if none does. */
uint64_t plan_smallest(uint64_t most, bool (*fits)(void *context, uint64_t value),
                       void *context);

/* The share of 'cells' that 'marks' random marks leave set: mean and variance. */
struct occupancy {
    double mean;
    double variance;
};
struct occupancy plan_occupancy(double cells, double marks);

/* How many keys of 'marks' marks each left this share of 'cells' set; 'load' < 1. */
double plan_keys_from_load(double cells, double marks, double load);

/* How many keys may set a bit before the rate is above the asked one.  Keys that are taken for
 * present set none, and cannot be told from repeats: of 'capacity' different keys so many are
 * expected to be missing from the count as the rate, on the way there, adds up to.  Four
 * deviations more, so that the last of them is not refused by chance. */
uint64_t plan_key_limit(uint64_t capacity, double (*rate)(const void *context, double keys),
                        const void *context);

/* What the public struct says of a geometry, but for 'why'. */
void plan_describe(const struct filter_kind *kind, const struct geometry *g,
                   struct perhaps_plan *plan);

#endif
