/* overlap.h - how many keys two filters have, and how many of them both, from the cells that
 * they have marked. */
#ifndef OVERLAP_H
#define OVERLAP_H

#include <perhaps.h>
#include <perhaps_sets.h>

/* How the keys of a filter mark cells.  A cell is a bit, a counter, or a fingerprint in a pair
 * of buckets. */
struct marking {
    double cells;
    double chance; /* that a key marks a given cell */

    /* The other cells, seen from a given one, in groups.  With r the chance that a key marks
     * neither the given cell nor one of the group, 'together' is log(r / (1 - chance)^2): above
     * 0 for cells that a key rather marks together.  Cells that are marked independently need
     * no group. */
    unsigned ngroups;
    struct marking_group {
        double cells;
        double together;
    } group[4];

    bool exact; /* each key marks a cell of its own, and there is nothing to estimate */
};

/* How many cells are marked: in a filter, in another, and in at least one of the two. */
struct marked {
    uint64_t a, b, either;
};

/* Returns how many keys mark so many cells.  The error is infinite if all are marked. */
struct perhaps_estimate overlap_size(const struct marking *marking, uint64_t marked);

/* Fills in *result. */
void overlap_estimate(const struct marking *marking, const struct marked *marked,
                      struct perhaps_comparison *result);

#endif
