/* batch.h - the keys that are under way, and one layer: a request for each key.
 *
 *     hash[], answer[]             of each key of the batch, in the caller's order
 *     pending[]                    indexes into these: the keys that are still to be dealt with
 *     bits[], partition[]          of each pending key, in the layer that is worked on
 *
 * A layer is asked or added to for the pending keys only; batch_sift() then drops from these
 * the keys whose answer is known, before the next layer is asked. */
#ifndef BATCH_H
#define BATCH_H

#include "handle.h"

/* UNKNOWN: no layer has answered "perhaps" yet. */
enum answer { UNKNOWN, PRESENT, ADDED };

struct batch {
    size_t count;
    struct perhaps_hashed hash[BATCH_KEYS];
    uint8_t answer[BATCH_KEYS]; /* enum answer */

    uint32_t pending[BATCH_KEYS]; /* ascending */
    size_t npending;
    struct perhaps_bits bits[BATCH_KEYS];
    uint32_t partition[BATCH_KEYS];

    size_t nunknown; /* keys of which nobody knows whether they were added, after an error */

    uint32_t watch[BATCH_KEYS]; /* partitions whose length is looked at behind the requests */
    uint32_t
        suspect[BATCH_KEYS]; /* partitions to be looked at: an answer was strangely empty */
    size_t nsuspects;
};

/* Hashes the keys, BATCH_KEYS at most; all are pending and their answers unknown. */
int batch_begin(perhaps_cluster *c, const struct perhaps_keys *keys);

/* Drops from the pending keys those whose answer is known. */
void batch_sift(struct batch *batch);

/* Asks one layer for the pending keys: those that are there are PRESENT.  In *changed, whether
 * there are newer layers than c->nlayers.  'replicas': they may be asked, too. */
int batch_ask(perhaps_cluster *c, const struct layer *layer, bool replicas, bool *changed);

/* Adds the pending keys to a layer: they are PRESENT or ADDED; after an error perhaps UNKNOWN,
 * which were not added but for 'nunknown' of them. */
int batch_add(perhaps_cluster *c, const struct layer *layer);

/* Writes the end of a BITFIELD: the bits of a key, which are set, or else asked for.  Its reply
 * has what they were. */
void batch_put_bits(struct resp *out, bool sets, const uint64_t *bit, unsigned nbits);

/* Takes what the bits of a key were, nbits of them: if all were set, it was there.  If an add
 * was sent 'again' its first sending may have set them: then the key counts as ADDED, since
 * whoever keeps what is new would else lose it, and as doubtful.  Returns how many bits were
 * set, or an error. */
int batch_take_bits(perhaps_cluster *c, uint8_t *answer, const struct reply *reply,
                    size_t nbits, bool again);

#endif
