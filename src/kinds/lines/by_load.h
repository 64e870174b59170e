/* by_load.h - the fpr of a block by its load, which is the number of its keys, and from it that
 * of a body (lines.h).  All of it is arithmetic: nothing here looks at a filter. */
#ifndef BY_LOAD_H
#define BY_LOAD_H

#include <stdbool.h>
#include <stdint.h>

struct geometry;

/* A block of this load or more counts as full: its fpr is 1. */
enum { LOAD_MAX = 512 };

/* The fpr of a line or block by its load. */
struct load_rates {
    double rate[LOAD_MAX];   /* the mean over all that have this load */
    double spread[LOAD_MAX]; /* the standard deviation of the logarithm of their fprs */

    /* With this log-normal distribution: the fpr at 3 deviations below the mean, to the mean;
     * and the step from there to one deviation more. */
    double lowest[LOAD_MAX], step[LOAD_MAX];
};

struct by_load {
    const struct load_rates *rates; /* of a line */
    unsigned lines;                 /* of a block */
    double keys, blocks; /* of one band: the load of a block is Binomial(keys, 1/blocks) */
};

/* Sets the rates and the number of blocks, for words of 'cells' cells. */
void by_load_begin(struct by_load *b, const struct geometry *g, unsigned cells);

/* Does the same for lines that are not together. */
void by_load_lines(struct by_load *b, unsigned picks, unsigned cells, double band_lines);

/* Set how many keys there are, or how many blocks, from which the distribution of loads
 * follows. */
void by_load_set_keys(struct by_load *b, double keys);
void by_load_set_blocks(struct by_load *b, uint64_t blocks);

/* Returns the mean fpr over all seeds of a body of so many bands. */
double by_load_mean(const struct by_load *b, double bands);

/* Checks quickly whether the fpr may be kept: whether the product of the mean rates of all
 * bands, plus five deviations, is at most fpr. */
bool by_load_may_keep(const struct by_load *b, double bands, double fpr);

/* Checks whether the fpr is kept for all seeds but one in 10^9. */
bool by_load_keeps(const struct by_load *b, double bands, double fpr);

/* Where the searches for the bounds begin: { 0 }, or where those for about as many keys and
 * picks ended. */
struct by_load_start {
    struct by_load_theta {
        double theta, ratio;
    } each, one;
};

/* Returns by what power of 10^-9 at least the share of seeds with which the fpr is not kept is
 * bounded: it is kept from 1 on.  Falls steadily with the number of keys. */
double by_load_margin(const struct by_load *b, double bands, double fpr,
                      struct by_load_start *start);

#endif
