/* description.h - what a filter on servers is: the fields of the Redis hash "perhaps:{NAME}",
 * and of the hash that counts its keys (doc/CLUSTER.md).  Here they are only written and read.
 * What is read may come from an enemy. */
#ifndef DESCRIPTION_H
#define DESCRIPTION_H

#include <hiredis.h>
#include <perhaps_layout.h>

#include "resp.h"

enum { ID_DIGITS = 12 };

/* A layer is made as it was written down, whoever makes it; it is used when it is ready. */
struct layer_description {
    struct perhaps_description layout; /* hash, seed and check are the filter's */
    uint64_t partitions;
    uint64_t keys; /* added or reserved: from the counts */
    bool planned, ready;
};

enum state { STATE_CREATING, STATE_READY, STATE_DELETING, STATES };
extern const char *const state_name[STATES];

struct description {
    char id[ID_DIGITS + 1]; /* random hex digits: no two filters have the same */
    enum state state;
    uint64_t created; /* seconds since 1970 */
    uint64_t capacity;
    double fpr;
    unsigned factor; /* of growth; 0: it does not grow */
    unsigned preference;
    enum perhaps_hash hash;
    uint64_t seed, check;
    struct layer_description layer[PERHAPS_LAYERS_MAX];
};

/* Reads the answer to HGETALL of the description.  Returns NULL, or one line of what is wrong:
 * description_unfinished; or that it is of another version, or nonsense.  Fields that are not
 * known are passed over. */
extern const char description_unfinished[];
const char *description_read(const redisReply *fields, struct description *description);

/* Reads the answer to HGETALL of the counts into keys of the layers.  Returns the same. */
const char *counts_read(const redisReply *fields, struct description *description);

/* Writes HSET with all but the layers behind the first, which come when they are made. */
void description_write(const struct description *description, const char *key,
                       struct resp *out);

/* Writes the name of a field of a layer: "layer.3", "keys.3", "ready.3". */
enum { FIELD_NBYTES = 16, LAYER_NBYTES = 512 };
void description_field(char field[FIELD_NBYTES], const char *what, unsigned layer);

/* Writes what such a field "layer.3" holds. */
void description_layer(char text[LAYER_NBYTES], const struct layer_description *layer);

#endif
