/* overlap.h - how many keys two filters have, and how many of them both, from the cells that
 * they have picked. */
#ifndef OVERLAP_H
#define OVERLAP_H

#include <perhaps.h>
#include <perhaps_sets.h>

/* How the keys of a filter pick cells.  A cell is a bit, a counter, or a fingerprint in a pair
 * of buckets. */
struct picking {
    double cells;
    double chance; /* that a key picks a given cell */

    /* The other cells, seen from a given one, in groups.  With r the chance that a key picks
     * neither the given cell nor one of the group, 'together' is r / (1 - chance)^2 - 1: above
     * 0 for cells that a key rather picks together.  Cells that are picked independently need
     * no group. */
    unsigned ngroups;
    struct picking_group {
        double cells;
        double together;
    } group[4];

    bool exact; /* each key picks a cell of its own, and there is nothing to estimate */
};

/* How many cells are picked: in a filter, in another, and in at least one of the two. */
struct picked {
    uint64_t a, b, either;
};

/* Returns how many keys pick so many cells.  The error is infinite if all are picked. */
struct perhaps_estimate overlap_size(const struct picking *picking, uint64_t picked);

/* Fills in *result. */
void overlap_estimate(const struct picking *picking, const struct picked *picked,
                      struct perhaps_comparison *result);

#endif
