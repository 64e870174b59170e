/* description.h - writes and reads the description of a filter on servers: the fields of the
 * Redis hash "perhaps:{NAME}", and of the Redis hash that counts its keys (doc/CLUSTER.md).
 * What is read may come from an enemy, and is checked. */
#ifndef DESCRIPTION_H
#define DESCRIPTION_H

#include <hiredis.h>
#include <perhaps_layout.h>
#include <perhaps_plan.h>

#include "resp.h"

enum { ID_DIGITS = 12 };

/* A layer as it is described on the servers.  It never changes after it was planned: every
 * client that makes it makes the same.  Clients use it when it is ready. */
struct layer_description {
    struct perhaps_description layout; /* hash, seed and check are those of the filter */
    uint64_t partitions;
    long long count;     /* of keys that were added or are reserved; may be below 0 */
    long long reserved;  /* of these, as far as the counts tell */
    bool planned, ready; /* it is described; all its partitions are made */
};

/* Returns how many keys a layer has.  A failover may lose what was reserved; when it is given
 * back, the count is below 0. */
static inline uint64_t layer_keys(const struct layer_description *layer)
{
    return layer->count > 0 ? (uint64_t)layer->count : 0;
}

/* The state of a filter.  Others may open it only when it is ready. */
enum state { STATE_CREATING, STATE_READY, STATE_DELETING, STATES };
extern const char *const state_name[STATES];

/* A filter as it is described on the servers. */
struct description {
    char id[ID_DIGITS + 1]; /* random hex digits: no two filters have the same */
    enum state state;
    uint64_t created; /* seconds since 1970 */
    uint64_t capacity;
    double fpr;
    unsigned factor; /* how much larger each layer is; 0: the filter does not grow */
    unsigned preference;
    enum perhaps_hash hash;
    uint64_t seed, check;
    char note[PERHAPS_NOTE_MAX + 1]; /* what was done to keys: perhaps_note() */
    bool counted;                    /* its counts have the marker: see counts_read() */
    bool counts_lost;                /* they were removed or replaced, or make no sense */
    struct layer_description layer[PERHAPS_LAYERS_MAX];
};

/* Reads the reply to HGETALL of the description.  Returns NULL.  On failure returns
 * description_unfinished, if only a part of it is there; or one line that says that it is of
 * another version, or nonsense.  Passes over fields that it does not know. */
extern const char description_unfinished[];
const char *description_read(const redisReply *fields, struct description *description);

/* The field of the counts that has the ID of the filter.  Counts that somebody removed, and
 * that HINCRBY made anew, lack it.  Filters of versions before 0.2 have none: their description
 * has no field "counted". */
extern const char counts_marker[];

/* Counts beyond this, in either direction, make no sense: HINCRBY may soon fail. */
#define COUNT_MOST (INT64_MAX / 2)

/* Reads the reply to HGETALL of the counts, of any type, into the layers, and sets
 * 'counts_lost'. */
void counts_read(const redisReply *fields, struct description *description);

/* What is wrong if 'counts_lost' is set, in one line. */
extern const char counts_problem[];

/* Writes the fields of the description with its first layer and their values, as arguments of a
 * command; later layers are written when they are made.  description_nargs() of them. */
void description_write(const struct description *description, struct resp *out);
unsigned description_nargs(const struct description *description);

/* Writes the name of a field of a layer: "layer.3", "keys.3", "ready.3". */
enum { FIELD_NBYTES = 16, LAYER_NBYTES = 512 };
void description_field(char field[FIELD_NBYTES], const char *what, unsigned layer);

/* Writes the value of a field such as "layer.3". */
void description_layer(char text[LAYER_NBYTES], const struct layer_description *layer);

#endif
