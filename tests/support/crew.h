/* crew.h - threads that add, remove and ask on one shared filter at once, and know exactly
 * which keys must be found.
 *
 * Each writer has its own range of keys.  For each key it publishes how many copies are
 * certainly in: it raises the number after an add has returned, and lowers it before a removal
 * begins.  A reader that reads the number, asks the filter, and then reads the same number
 * again knows that the key was there all the time. */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "support.h"

struct crew {
    /* The task: set by the caller. */
    perhaps_filter *f;
    struct perhaps_keys keys; /* an equal share for each writer */
    unsigned writers;
    unsigned readers;
    bool churn;     /* writers remove what they added and add it again, over and over */
    uint64_t steps; /* of each writer that churns; other writers stop after their last key */
    uint64_t seed;

    /* The results: set by crew_run(). */
    char complaint[256]; /* the first thing that was wrong; empty: nothing was */
    uint64_t operations; /* keys added, removed or asked for */
    uint64_t copies;     /* that are in at the end */
    uint64_t refused;    /* adds that were refused: full, or too many copies */

    _Atomic uint32_t *held; /* for each key: copies that are certainly in, and a version */
    atomic_uint working;    /* writers that have not ended yet */
    atomic_bool failed;
    pthread_mutex_t lock;
};

/* Runs the threads and checks what is in at the end.  Returns whether everything was right;
 * otherwise 'complaint' tells what was not. */
bool crew_run(struct crew *crew);

/* Returns how many copies of a key are in after crew_run().  Valid until crew_end(). */
unsigned crew_copies(const struct crew *crew, size_t key);

/* Releases what crew_run() allocated; the filter and the keys stay the caller's. */
void crew_end(struct crew *crew);

#endif
