/* batch.h - asks layers for a batch of keys, or adds the keys to one: a request for each
 * different key and layer.
 *
 *     hash[], answer[], unsure[]   of each key of the batch, in the caller's order
 *     pending[]                    indexes into these: the keys whose answer is not known yet;
 *                                  of keys with the same hash only the first
 *     block[], partition[], ...    of each request that is under way
 *
 * Only pending keys are asked for or added.  After layers were asked, batch_sift() drops the
 * keys whose answer is known, and the next layers are asked for the others. */
#ifndef BATCH_H
#define BATCH_H

#include "handle.h"
#include <perhaps_fast.h>

/* UNKNOWN: no layer has answered "perhaps" yet.  ABSENT: all layers have answered "no".
 * ADDED: it was not there, and is now.  ADDED_TOO: an older layer has it, and it was added to
 * the newest one, too; becomes PRESENT when it is counted. */
enum answer { UNKNOWN, ABSENT, PRESENT, ADDED, ADDED_TOO };

/* Up to so many requests at once are few: they do what saves time on the way, where more would
 * do what saves work. */
enum { FEW_KEYS = 64 };

/* A batch of keys.  It belongs to the handle, which has room for one. */
struct batch {
    size_t count;
    struct perhaps_hashed hash[BATCH_KEYS];
    uint8_t answer[BATCH_KEYS]; /* enum answer */
    bool unsure[BATCH_KEYS];    /* a layer that was asked gave no answer that counts */
    bool forgotten[BATCH_KEYS]; /* it was ADDED to an older layer: keys.c */

    uint32_t first[BATCH_KEYS];     /* the first key with the same hash */
    uint32_t place[2 * BATCH_KEYS]; /* of a table of hashes: a key's index plus 1; 0: none */

    uint32_t pending[BATCH_KEYS]; /* ascending */
    size_t npending;
    size_t nunknown; /* after an error: keys that were added or not, nobody knows */

    /* Of each request for a key. */
    uint64_t block[BATCH_KEYS];
    uint32_t partition[BATCH_KEYS];
    uint32_t no_from[BATCH_KEYS]; /* the connection over which "no" came; 0: it did not */
    bool sparse[BATCH_KEYS];      /* that came from a block which is doubted */
    bool proves[BATCH_KEYS];      /* an add also asks for a byte of the footer */
    bool tried;                   /* swift.c has sent something, and noted in 'before': */
    uint8_t before[BATCH_KEYS];   /* what it has done of it: enum before */
    uint32_t order[BATCH_KEYS];   /* the requests by node (swift.c) */

    /* Partitions whose length is looked at behind the requests, and the layers of these; and
     * partitions of one layer that are looked at afterwards, and what was seen. */
    uint32_t watch[BATCH_KEYS];
    uint8_t watch_layer[BATCH_KEYS];
    uint32_t suspect[BATCH_KEYS];
    size_t nsuspects;
    uint8_t sight[BATCH_KEYS]; /* enum sight */
};

/* Begins a batch: hashes the keys, at most BATCH_KEYS.  All different ones are pending, and
 * their answers are unknown. */
int batch_begin(perhaps_cluster *c, const struct perhaps_keys *keys);

/* Ends a batch: answers the keys that are there again.  If the first of them was ADDED, the
 * others were PRESENT. */
void batch_end(struct batch *batch);

/* Drops from the pending keys those whose answer is known. */
void batch_sift(struct batch *batch);

/* Asks the layers from number 'from' on and before number 'to' for the pending keys, and sifts.
 * Those that are there become PRESENT; those of which a layer has not answered become unsure.
 * With 'replicas', replicas may answer, too.  After an error all other answers are right.  If
 * the lease is over, asks behind the keys whether there is a newer layer (layers.h). */
int batch_ask(perhaps_cluster *c, unsigned from, unsigned to, bool replicas);

/* Adds the pending keys to a layer, and asks those from number 'from' on that are older, if
 * any, at the same time.  They become PRESENT, ADDED or ADDED_TOO.  After an error some may
 * stay UNKNOWN: 'nunknown' of these, or of all with 'from', may have been added, the others
 * were not; and what is ADDED may be in an older layer if it is unsure. */
int batch_add(perhaps_cluster *c, unsigned from, unsigned layer);

/* Writes the last arguments of a BITFIELD, which sets the bits of a key or asks for them.  Its
 * reply tells what they were. */
void batch_put_bits(struct resp *out, bool sets, const uint64_t *bit, unsigned nbits);

/* Takes the reply that tells what the nbits bits of a key were; 'more' numbers stand behind
 * these.  If all were set, the key was there.  If an add was sent 'again', its first sending
 * may have set them itself.  Then the key counts as doubtful, and as ADDED: a caller that keeps
 * only new keys would lose it otherwise.  Returns how many bits were set, or an error. */
int batch_take_bits(perhaps_cluster *c, uint8_t *answer, const struct reply *reply,
                    size_t nbits, size_t more, bool again);

#endif
