/* handle.h - an open filter on servers: what all that works on one shares.
 *
 *     handle --- nodes         the servers: their map, the links to them, the last problem
 *         '----- about         the description, as it was last read
 *         '----- layer[0..]    what is open of it: layers that are ready, the oldest first
 *         '----- batch         the keys that are under way
 *
 * Invariant: layer[0 .. nlayers-1] have a layout and a size, and partition_slot[] has the slots
 * of all their partitions.  An open filter of our own layout has at least one layer. */
#ifndef HANDLE_H
#define HANDLE_H

#include "address.h"
#include "description.h"
#include "exchange.h"
#include "redisson.h"

/* The keys that are under way at once. */
enum { BATCH_KEYS = 8192 };

enum { REDIS_KEY_NBYTES = NAME_NBYTES_MOST + 64 };

struct layer {
    perhaps_layout *layout;
    struct perhaps_plan plan;
    uint64_t blocks;           /* in all partitions */
    uint64_t partition_blocks; /* in each but the last, which has what is left */
    uint64_t partitions;
    size_t block_nbytes;
    char suffix[ID_DIGITS + 8]; /* of the names of its partitions: "}:ID" or "}:ID.LAYER" */
    size_t suffix_nbytes;
    long long owed; /* reserved and not needed: goes back with the next reservation */
};

struct perhaps_cluster {
    const struct dialect *dialect; /* how the filter lies on the servers */
    struct nodes nodes;
    struct address address;
    char *shown; /* the address without its password */
    struct perhaps_hashing hashing;
    uint8_t secret[16]; /* that hashing points to */
    bool without_secret;
    bool replicas;
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;

    char key[REDIS_KEY_NBYTES];                    /* of the description */
    char counts[REDIS_KEY_NBYTES + ID_DIGITS + 1]; /* of the counts */
    char prefix[REDIS_KEY_NBYTES]; /* of the names of partitions: "perhaps:{NAME/" */
    size_t prefix_nbytes;
    bool open;
    struct description about;
    unsigned nlayers;
    struct layer layer[PERHAPS_LAYERS_MAX];
    uint16_t *partition_slot; /* the same for all layers */
    uint64_t nslots;
    uint64_t next_watch; /* the partition whose length is looked at next */
    uint64_t doubtful;   /* keys of which nobody knows who added them first */

    struct redisson redisson; /* of a filter that Redisson made */
    struct batch *batch;      /* room for the keys that are under way */
};

/* How a filter lies on servers, and what can be done with one that lies so.  NULL: that cannot
 * be done, and the public call says why (client.c). */
struct dialect {
    const char *layout;          /* its name */
    const char *before, *behind; /* the filter's name, in the Redis key of its description */
    bool is_opened;              /* it must be, before keys are added or asked for */
    int (*open)(perhaps_cluster *c);

    /* Deal with a batch of keys, whose answers are then in c->batch.  After an error the first
     * *done keys have been dealt with. */
    int (*ask)(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);
    int (*add)(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);

    int (*stats)(perhaps_cluster *c, struct perhaps_cluster_stats *stats);
    int (*create)(perhaps_cluster *c, const struct perhaps_options *options,
                  uint64_t partitions);
    int (*delete)(perhaps_cluster *c);
    int (*upload)(perhaps_cluster *c, const perhaps_filter *filter, uint64_t partitions);
    int (*download)(perhaps_cluster *c, const char *path);
    int (*verify)(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict);
};

extern const struct dialect redisson_dialect; /* foreign.c */

/* Copies the secret, too: the caller may wipe his. */
void handle_take_hashing(perhaps_cluster *c, const struct perhaps_hashing *hashing);

/* Sends a command to the description, acknowledged as adds are; NULL stands behind its last
 * argument. */
int handle_tell(perhaps_cluster *c, const char *const *command);

/* Between these two calls a handle clears up after an error.  The problem stays that of the
 * first error; patience is only as long as one timeout; and it cannot be interrupted, since who
 * interrupts wants things to be cleared up, too. */
struct aside {
    char problem[sizeof((struct nodes *)NULL)->problem];
    bool (*stopped)(void *context);
    unsigned patience_ms;
};
void handle_begin_aside(perhaps_cluster *c, struct aside *aside);
void handle_end_aside(perhaps_cluster *c, const struct aside *aside);

#endif
