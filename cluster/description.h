/* description.h - what a filter on servers is: the fields of the Redis hash "perhaps:{name}"
 * (doc/CLUSTER.md). */
#ifndef DESCRIPTION_H
#define DESCRIPTION_H

#include <hiredis.h>
#include <perhaps_layout.h>

#include "resp.h"

enum { ID_DIGITS = 12 };

/* A layer is made as was written down, whoever makes it; and counts when it is ready. */
struct layer_description {
    struct perhaps_description layout; /* hash, seed and check are the filter's */
    uint64_t partitions;
    uint64_t keys; /* reserved so far: of another Redis hash */
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

/* Reads the answer to HGETALL.  Returns NULL, or what is wrong with it: description_unfinished,
 * or that it is of another version, or nonsense. */
extern const char description_unfinished[];
const char *description_read(const redisReply *fields, struct description *description);

/* Reads the answer to HGETALL of the counts.  Returns NULL, or what is wrong with it. */
const char *counts_read(const redisReply *fields, struct description *description);

/* Writes HSET with all but the layers behind the first, which come when they are made. */
void description_write(const struct description *description, const char *key,
                       struct resp *out);

/* "layer.3", "keys.3", "ready.3" */
enum { FIELD_NBYTES = 16, LAYER_NBYTES = 512 };
void description_field(char field[FIELD_NBYTES], const char *what, unsigned layer);

/* What "layer.3" holds. */
void description_layer(char text[LAYER_NBYTES], const struct layer_description *layer);

#endif
