/* downsize.h - smaller filters, for those who watch how the large one is read. */
#ifndef DOWNSIZE_H
#define DOWNSIZE_H

#include "../filter/filter.h"

/* After so many factors that were planned and failed with the actual bits, only halves are
 * tried. */
enum { FOLD_TRIES = 4 };

/* Who watches how a large filter is read, if anybody does. */
struct watcher {
    /* Is called before bytes of a body are read.  One body after the other is read, each from
     * its first byte to its last; and again, if a smaller filter was tried that breaks the fpr.
     * Returns 0, or an error that ends it. */
    int (*enter)(void *context, const uint8_t *bytes, uint64_t nbytes);
    void *context;
};

/* Makes a smaller filter with the keys of f, whose fpr is at most 'fpr', as perhaps_shrink()
 * tells (perhaps_sets.h), but checks no pages.  'watcher' may be NULL.  Returns 0, or an error
 * of perhaps_shrink() or of enter(). */
int downsize(const perhaps_filter *f, double fpr, const struct watcher *watcher,
             perhaps_filter **small);

/* Sets *fpr to the least one with which a filter of this kind becomes smaller, as its bits are
 * now; 0 if there is none.  'f' is no composite, and its kind folds.  Returns 0,
 * PERHAPS_ERR_MEMORY, or an error of enter(). */
int downsize_least_fpr(const perhaps_filter *f, const struct watcher *watcher, double *fpr);

#endif
