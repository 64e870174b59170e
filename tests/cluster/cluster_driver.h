/* cluster_driver.h - what cluster_driver.c and cluster_workers.c share: the settings of the
 * command line, the numbering of keys, and the names of errors. */
#ifndef CLUSTER_DRIVER_H
#define CLUSTER_DRIVER_H

#include "support.h"

#include "perhaps_cluster.h"

enum { ADDERS_MOST = 16, ASKERS_MOST = 32 };

struct settings {
    const char *url, *keys;
    double fpr;
    uint64_t capacity, partitions, grow;
    uint64_t adder, first, count, shuffle, absent, wait, each;
    uint64_t adders, askers, batch, unopened, recount;
};

/* How many keys of each adder have been acknowledged. */
struct progress {
    uint64_t added[ADDERS_MOST];
    unsigned adders;
};
void read_progress(const char *path, struct progress *progress); /* no file: none */
void write_progress(const char *path, const struct progress *progress);

/* Returns a key of 8 bytes: the adder's number in the highest 16 bits, then the index.  No
 * adder has the number ABSENT, so its keys are never in. */
enum { ABSENT = 0xFFFF };
uint64_t key_of(uint64_t adder, uint64_t index);
struct perhaps_keys packed_keys(const uint64_t *keys, size_t count);

enum { ERRORS = 30 };
size_t index_of_error(int error);
const char *name_of_error(size_t index);

/* Returns a new handle for the URL; NULL if there is no memory. */
perhaps_cluster *handle_for(const struct settings *settings);

double clock_ms(void);

/* Runs the verb 'run' until SIGTERM.  Returns 1 if a key was denied, else 0. */
int run_workers(const struct settings *settings);

#endif
