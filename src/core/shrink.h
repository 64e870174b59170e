/* shrink.h - smaller filters whose bodies are made piece by piece, for those who write them. */
#ifndef SHRINK_H
#define SHRINK_H

#include "../filter/filter.h"
#include <perhaps_file.h>

/* After so many factors that were planned and failed with the actual bits, only halves are
 * tried. */
enum { FOLD_TRIES = 4 };

/* How a large filter is read. */
struct shrinking {
    double fpr; /* that the small filter shall keep; 0: that of the large one */

    /* Is called before bytes of a body are read.  One body after the other is read, each from
     * its first byte to its last; and again, if a smaller filter was tried that breaks the fpr.
     * May set *bytes to a copy, which is used until the next call.  Returns 0, or an error that
     * ends it.  NULL: bytes are simply read. */
    int (*enter)(void *context, const uint8_t **bytes, uint64_t nbytes);

    /* Writes a small filter with shrink_write(), and returns the error of that, or its own;
     * only for filters without parts.  If there was an error, what it wrote is worth nothing.
     * shrink_plan() then does not read the bits first to choose the filter, but has each one
     * written that it tries.  NULL: it reads them first. */
    int (*write)(void *context, const perhaps_filter *small);

    /* With write(): is called when the large filter was read to its end, and returns 0 or an
     * error. */
    int (*end)(void *context);
    void *context;
};

/* Finds the filter that perhaps_shrink() makes.  It has everything but the bodies: only that of
 * a composite, a line of counters, is there.  Returns 0, or sets *small to NULL and returns an
 * error of perhaps_shrink() or of enter(). */
int shrink_plan(const perhaps_filter *f, const struct shrinking *how, perhaps_filter **small);

/* Writes the body of such a filter, or of a part of it; 'f' is the large filter, or its part.
 * Returns 0, PERHAPS_ERR_MEMORY, or an error of enter(), end() or the sink; or with write()
 * PERHAPS_ERR_FULL, if the filter exceeds its fpr. */
int shrink_write(const perhaps_filter *f, const perhaps_filter *small,
                 const struct shrinking *how, const struct perhaps_sink *sink);

/* Returns the least fpr with which a filter of this kind becomes smaller, as its bits are now;
 * 0 if there is none.  'f' is no composite, and its kind folds. */
int shrink_least_fpr(const perhaps_filter *f, const struct shrinking *how, double *fpr);

#endif
