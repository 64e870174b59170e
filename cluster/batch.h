/* batch.h - the keys that are under way, and one layer: a request for each key. */
#ifndef BATCH_H
#define BATCH_H

#include "handle.h"

enum answer { UNKNOWN, PRESENT, ADDED };

struct batch {
    size_t count;
    struct perhaps_hashed hash[BATCH_KEYS];
    uint8_t answer[BATCH_KEYS]; /* enum answer */

    uint32_t pending[BATCH_KEYS]; /* the keys that are still to be dealt with, in order */
    size_t npending;

    /* Of each pending one, in the layer that is asked: */
    struct perhaps_bits bits[BATCH_KEYS];
    uint32_t partition[BATCH_KEYS];

    size_t nunknown; /* keys of which nobody knows whether they were added, after an error */

    uint32_t watch[BATCH_KEYS];   /* partitions that are looked at behind the questions */
    uint32_t suspect[BATCH_KEYS]; /* partitions to be looked at */
    size_t nsuspects;
};

/* Hashes the keys, BATCH_KEYS at most; all are pending and their answers unknown. */
int batch_begin(perhaps_cluster *c, const struct perhaps_keys *keys);

/* Drops from the pending keys those whose answer is known. */
void batch_sift(struct batch *batch);

/* Asks one layer for the pending keys: those that are there are PRESENT.  In *changed, whether
 * there are newer layers than c->nlayers. */
int batch_ask(perhaps_cluster *c, const struct layer *layer, bool *changed);

/* Adds the pending keys to a layer: they are PRESENT or ADDED; after an error perhaps UNKNOWN,
 * which were not added but for 'nunknown' of them. */
int batch_add(perhaps_cluster *c, const struct layer *layer);

/* Writes the end of a BITFIELD: the bits of a key, which are set, or else asked for.  Its reply
 * has what they were. */
void batch_put_bits(struct resp *out, bool sets, const uint64_t *bit, unsigned nbits);

/* Takes what the bits of a key were, nbits of them: were all set, it was there.  An add that is
 * sent 'again' does not tell whether it was the first time that set them.  Returns how many
 * were set, or an error. */
int batch_take_bits(perhaps_cluster *c, uint8_t *answer, const struct reply *reply,
                    size_t nbits, bool again);

#endif
