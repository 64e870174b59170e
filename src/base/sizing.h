/* sizing.h - the mathematics of sizing: how many cells a filter needs to keep the fpr that was
 * asked.
 *
 * A cell is a bit or a counter; a key picks some cells.  doc/THEORY.md has the derivations. */
#ifndef SIZING_H
#define SIZING_H

#include <perhaps.h>

#define LN_2   0.693147180559945309417
#define LN_10  2.302585092994045684018
#define LOG2_E 1.442695040888963407360

/* The key limit of a filter in which copies cost nothing, or that grows.  No counter reaches
 * it, and sums of a few such limits do not overflow. */
#define KEYS_UNLIMITED (UINT64_MAX / 4)

/* Returns whether capacity and fpr are in the ranges that perhaps.h states. */
bool sizing_in_range(uint64_t capacity, double fpr);

/* A filter is sized so that less than one hash seed in 10^9 gives an fpr above the asked one,
 * or refuses one of 'capacity' different keys.  Where a sum of many small numbers differs from
 * seed to seed, a plan allows for this many standard deviations from the mean of the sum. */
#define SIZING_DEVIATIONS 6.5

/* From this fpr on, keys with one cell each take about as little memory as is possible.  The
 * fpr is then the share of cells in use, and a filter keeps it by counting these cells. */
#define ONE_CELL_FPR 0.3

/* Returns whether this many cells take 'capacity' keys at this fpr, with one cell a key. */
bool sizing_one_cell_fits(double cells, uint64_t capacity, double fpr);

/* Returns how many of the cells may be in use at this fpr, with one cell a key. */
uint64_t sizing_one_cell_limit(double cells, double fpr);

/* Returns how many different keys may have been added, with several picks a key, when the count
 * of keys reaches the key limit (see sizing_key_limit()): more than the limit, since some were
 * taken for present and not counted.  A plan must keep the fpr with this many. */
double sizing_keys_at_limit(uint64_t capacity, double fpr);

/* Returns the smallest value in 1 .. most that fits, or 0 if none does.  fits() is false below
 * some value and true from it on. */
uint64_t sizing_smallest(uint64_t most, bool (*fits)(void *context, uint64_t value),
                         void *context);

/* Returns the smallest value in least .. good that fits, where 'good' is known to fit. */
uint64_t sizing_smallest_from(uint64_t least, uint64_t good,
                              bool (*fits)(void *context, uint64_t value), void *context);

/* A share of cells that are in use, over all hash seeds. */
struct occupancy {
    double mean;
    double variance;
};

/* Returns which share of 'cells' is in use after 'picks' picks at random cells. */
struct occupancy sizing_occupancy(double cells, double picks);

/* Returns how many keys of 'picks' picks each leave the share 'load' of 'cells' in use, in
 * expectation.  0 <= load < 1. */
double sizing_keys_from_load(double cells, double picks, double load);

/* Returns the key limit: how many keys that set a bit may be added before adds are refused.  A
 * key that is taken for present sets no bit, and cannot be told from a repeat, so it is not
 * counted.  Of 'capacity' different keys, the expected number of such keys is the integral of
 * the fpr from 0 to 'capacity' keys.  The actual number differs from seed to seed, so the limit
 * allows a few more, for which sizing_keys_at_limit() has made room.  If the geometry does not
 * keep the fpr with that many keys, because no plan() chose it, the limit is lower, so that the
 * fpr is kept in expectation.  rate() returns the fpr with a number of keys. */
uint64_t sizing_key_limit(uint64_t capacity, double fpr,
                          double (*rate)(void *context, double keys), void *context);

/* Returns how many of 'keys' different keys set a bit when they are added, in expectation. */
double sizing_counted(double keys, double (*rate)(void *context, double keys), void *context);

/* Returns the largest number of keys, up to 'most', with which rate() is at most fpr. */
double sizing_keys_within(double fpr, double most, double (*rate)(void *context, double keys),
                          void *context);

#endif
