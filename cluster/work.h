/* work.h - a chunk of keys on its way. */
#ifndef WORK_H
#define WORK_H

#include "cluster.h"

enum answer { UNKNOWN, PRESENT, ADDED };

struct work {
    size_t count;
    struct perhaps_hashed hash[CHUNK_KEYS];
    uint8_t answer[CHUNK_KEYS]; /* enum answer */

    uint32_t pending[CHUNK_KEYS]; /* the keys that are still to be dealt with, in order */
    size_t npending;
    uint32_t
        partition[CHUNK_KEYS];   /* of each pending one's block, in the layer that is asked */
    uint32_t offset[CHUNK_KEYS]; /* and its first byte there */

    size_t nunknown; /* keys of which nobody knows whether they were added, after an error */

    uint32_t watch[CHUNK_KEYS];   /* partitions that are looked at behind the questions */
    uint32_t suspect[CHUNK_KEYS]; /* partitions to be looked at */
    size_t nsuspects;
};

/* batch.c */

/* Hashes 'count' keys from number 'first' on; all are pending and their answers unknown. */
int work_begin(perhaps_cluster *c, const struct perhaps_keys *keys, size_t first, size_t count);

/* Drops from the pending keys those whose answer is known. */
void work_sift(struct work *w);

/* Asks one layer for the pending keys: those that are there are PRESENT.  In *changed, whether
 * there are newer layers than c->nlayers. */
int work_ask(perhaps_cluster *c, const struct layer *layer, bool *changed);

/* Adds the pending keys to a layer: they are PRESENT or ADDED; after an error perhaps UNKNOWN,
 * which were not added but for 'nunknown' of them. */
int work_add(perhaps_cluster *c, const struct layer *layer);

#endif
