/* by_load.h - the fpr of a block by its load, which is the number of its keys, and from it that
 * of a body (lines.h).  All of it is arithmetic: nothing here looks at a filter. */
#ifndef BY_LOAD_H
#define BY_LOAD_H

#include <stdbool.h>

struct geometry;

/* A block of this load or more counts as full: its fpr is 1. */
enum { LOAD_MAX = 512 };

/* The fpr of a block by its load. */
struct by_load {
    double rate[LOAD_MAX];   /* the mean over all blocks of this load */
    double spread[LOAD_MAX]; /* the standard deviation of the logarithm of their fprs */
    double keys, blocks;     /* of one band: the load of a block is Binomial(keys, 1/blocks) */
};

/* Fills in the rates and their spread, for words of 'cells' cells.  Without 'refined' the rates
 * are a little too low, and take much less time. */
void by_load_fill(struct by_load *b, const struct geometry *g, unsigned cells, bool refined);

/* Sets how many keys there are, from which the distribution of loads follows. */
void by_load_set(struct by_load *b, const struct geometry *g, double keys);

/* Returns the mean fpr over all seeds of a body of so many bands. */
double by_load_mean(const struct by_load *b, double bands);

/* Checks quickly whether the fpr may be kept: whether the product of the mean rates of all
 * bands, plus five deviations, is at most fpr. */
bool by_load_may_keep(const struct by_load *b, double bands, double fpr);

/* Checks whether the fpr is kept for all seeds but one in 10^9.  The bands are independent.
 * Their product is too large mostly because all of them are a little too large, or because one
 * is far too large: the bound is taken for both cases. */
bool by_load_keeps(const struct by_load *b, double bands, double fpr);

#endif
