/* sizing.h - the mathematics of sizing: how many cells, so that the rate is kept. */
#ifndef SIZING_H
#define SIZING_H

#include <perhaps.h>

/* The key limit of a filter in which copies cost nothing, or that grows: no counter comes to
 * it, and sums of a few do not overflow. */
#define KEYS_UNLIMITED (UINT64_MAX / 4)

/* Whether capacity and fpr are in their ranges. */
bool sizing_in_range(uint64_t capacity, double fpr);

/* A filter is sized so that of 10^9 seeds not one gives a rate above the asked one, or refuses
 * one of 'capacity' keys.  So many deviations from the mean are allowed for, where what differs
 * is a sum of many small things. */
#define SIZING_DEVIATIONS 6.5

/* From this rate on one mark a key takes about the least memory there is.  Then a rate is a
 * share of cells in use, and kept by counting them. */
#define ONE_MARK_FPR 0.3
bool sizing_one_mark_fits(double cells, uint64_t capacity, double fpr);
uint64_t sizing_one_mark_limit(double cells, double fpr);

/* With more marks, the number of different keys that may be in before as many as the key limit
 * have been counted: the rate must be kept with so many. */
double sizing_keys_at_limit(uint64_t capacity, double fpr);

/* The smallest value in 1 .. most that fits (fits() is false below some value and true from
 * it on); 0 if none does. */
uint64_t sizing_smallest(uint64_t most, bool (*fits)(void *context, uint64_t value),
                         void *context);

/* The same in least .. good, of which 'good' fits. */
uint64_t sizing_smallest_from(uint64_t least, uint64_t good,
                              bool (*fits)(void *context, uint64_t value), void *context);

/* The share of 'cells' that 'marks' random marks leave set: mean and variance. */
struct occupancy {
    double mean;
    double variance;
};
struct occupancy sizing_occupancy(double cells, double marks);

/* How many keys of 'marks' marks each left this share of 'cells' set; 'load' < 1. */
double sizing_keys_from_load(double cells, double marks, double load);

/* How many keys may set a bit before adds are refused.  Keys that are taken for present set
 * none, and cannot be told from repeats: of 'capacity' different keys so many are missing from
 * the count as the rate, on the way there, adds up to.  That differs from seed to seed: a few
 * more are allowed, for which sizing_keys_at_limit() has made room.  In a geometry that nobody
 * planned fewer, so that the rate is expected to be kept. */
uint64_t sizing_key_limit(uint64_t capacity, double fpr,
                          double (*rate)(void *context, double keys), void *context);

/* The most keys, of 'most' at most, with which the rate is at most fpr. */
double sizing_keys_within(double fpr, double most, double (*rate)(void *context, double keys),
                          void *context);

#endif
