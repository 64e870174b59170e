/* chance.h - how much chance may find. */
#ifndef CHANCE_H
#define CHANCE_H

#include <math.h>

/* Returns a number that a count does not exceed, but with a probability of at most 10^-11: a
 * count of independent events, each of any probability, with this mean at most; or of events of
 * which each has its probability whatever happened before.  Chernoff's bound: such a count is k
 * or more, for k > mean, with a probability of at most exp(k - mean - k log(k / mean)). */
static inline double most_by_chance(double mean)
{
    const double log_odds = log(1e11);
    double k = floor(mean) + 1;
    while (k * log(k / mean) - k + mean < log_odds)
        k++;
    return k - 1;
}

#endif
