/* crew.h - threads that add, remove and ask on one shared filter at once, and know exactly what
 * has to be found.
 *
 * Each writer has a range of keys to itself, and publishes for each of them how many copies are
 * certainly in: after an add has returned, and before a removal begins.  Who reads that number,
 * asks, and reads the same number again knows that the key was there all the time. */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "support.h"

struct crew {
    /* What to do: set by the caller. */
    perhaps_filter *f;
    struct perhaps_keys keys; /* an equal share for each writer */
    unsigned writers;
    unsigned readers;
    bool churn;     /* remove what was added, and add it again, over and over */
    uint64_t steps; /* of each writer that churns; others end with their keys */
    uint64_t seed;

    /* What came out. */
    char complaint[256]; /* empty: all was as it should be */
    uint64_t operations; /* keys added, removed or asked for */
    uint64_t copies;     /* that are in */
    uint64_t refused;    /* adds: full, or too many copies */

    _Atomic uint32_t *held; /* for each key: copies that are certainly in, and a version */
    atomic_uint working;    /* writers */
    atomic_bool failed;
    pthread_mutex_t lock;
};

/* Lets the threads do their work, and checks what is in at the end.  Returns whether all was as
 * it should be. */
bool crew_run(struct crew *crew);

/* How many copies of a key are in when the crew has ended; valid until crew_end(). */
unsigned crew_copies(const struct crew *crew, size_t key);
void crew_end(struct crew *crew);

#endif
