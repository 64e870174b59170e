/* chunk.h - the keys that are under way, and one layer: a request for each key. */
#ifndef CHUNK_H
#define CHUNK_H

#include "handle.h"

enum answer { UNKNOWN, PRESENT, ADDED };

struct chunk {
    size_t count;
    struct perhaps_hashed hash[CHUNK_KEYS];
    uint8_t answer[CHUNK_KEYS]; /* enum answer */

    uint32_t pending[CHUNK_KEYS]; /* the keys that are still to be dealt with, in order */
    size_t npending;

    /* Of each pending one, in the layer that is asked: */
    struct perhaps_bits bits[CHUNK_KEYS];
    uint32_t partition[CHUNK_KEYS];

    size_t nunknown; /* keys of which nobody knows whether they were added, after an error */

    uint32_t watch[CHUNK_KEYS];   /* partitions that are looked at behind the questions */
    uint32_t suspect[CHUNK_KEYS]; /* partitions to be looked at */
    size_t nsuspects;
};

/* Hashes the keys, CHUNK_KEYS at most; all are pending and their answers unknown. */
int chunk_begin(perhaps_cluster *c, const struct perhaps_keys *keys);

/* Drops from the pending keys those whose answer is known. */
void chunk_sift(struct chunk *chunk);

/* Asks one layer for the pending keys: those that are there are PRESENT.  In *changed, whether
 * there are newer layers than c->nlayers. */
int chunk_ask(perhaps_cluster *c, const struct layer *layer, bool *changed);

/* Adds the pending keys to a layer: they are PRESENT or ADDED; after an error perhaps UNKNOWN,
 * which were not added but for 'nunknown' of them. */
int chunk_add(perhaps_cluster *c, const struct layer *layer);

/* Takes what the bits of a key were, nbits of them: were all set, it was there.  An add that is
 * sent 'again' does not tell whether it was the first time that set them.  Returns how many
 * were set, or an error. */
int chunk_take_bits(perhaps_cluster *c, uint8_t *answer, const struct reply *reply,
                    size_t nbits, bool again);

#endif
