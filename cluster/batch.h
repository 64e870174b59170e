/* batch.h - asks one layer for a batch of keys, or adds them to it: a request for each key.
 *
 *     hash[], answer[]             of each key of the batch, in the caller's order
 *     pending[]                    indexes into these: the keys whose answer is not known yet
 *     bits[], partition[]          of each pending key, in the layer that is worked on
 *
 * Only pending keys are asked for or added.  After a layer was asked, batch_sift() drops the
 * keys whose answer is known, and the next layer is asked for the others. */
#ifndef BATCH_H
#define BATCH_H

#include "handle.h"

/* UNKNOWN: no layer has answered "perhaps" yet.  ADDED: it was not there, and is now. */
enum answer { UNKNOWN, PRESENT, ADDED };

/* A batch of keys.  It belongs to the handle, which has room for one. */
struct batch {
    size_t count;
    struct perhaps_hashed hash[BATCH_KEYS];
    uint8_t answer[BATCH_KEYS]; /* enum answer */

    uint32_t pending[BATCH_KEYS]; /* ascending */
    size_t npending;
    struct perhaps_bits bits[BATCH_KEYS];
    uint32_t partition[BATCH_KEYS];

    size_t nunknown; /* after an error: keys that were added or not, nobody knows */

    /* Partitions whose length is looked at behind the requests; and partitions that are looked
     * at afterwards, since an answer was strangely empty. */
    uint32_t watch[BATCH_KEYS];
    uint32_t suspect[BATCH_KEYS];
    size_t nsuspects;
};

/* Begins a batch: hashes the keys, at most BATCH_KEYS.  All are pending, and their answers are
 * unknown. */
int batch_begin(perhaps_cluster *c, const struct perhaps_keys *keys);

/* Drops from the pending keys those whose answer is known. */
void batch_sift(struct batch *batch);

/* Asks one layer for the pending keys.  Those that are there become PRESENT and are no longer
 * pending.  Sets *changed to whether there are, or may be, newer layers than c->nlayers.  With
 * 'replicas', replicas may answer, too. */
int batch_ask(perhaps_cluster *c, const struct layer *layer, bool replicas, bool *changed);

/* Adds the pending keys to a layer.  They become PRESENT or ADDED.  After an error some may
 * stay UNKNOWN: 'nunknown' of these may have been added, the others were not. */
int batch_add(perhaps_cluster *c, const struct layer *layer);

/* Writes the last arguments of a BITFIELD, which sets the bits of a key or asks for them.  Its
 * reply tells what they were. */
void batch_put_bits(struct resp *out, bool sets, const uint64_t *bit, unsigned nbits);

/* Takes the reply that tells what the nbits bits of a key were.  If all were set, the key was
 * there.  If an add was sent 'again', its first sending may have set them itself.  Then the key
 * counts as doubtful, and as ADDED: a caller that keeps only new keys would lose it otherwise.
 * Returns how many bits were set, or an error. */
int batch_take_bits(perhaps_cluster *c, uint8_t *answer, const struct reply *reply,
                    size_t nbits, bool again);

#endif
