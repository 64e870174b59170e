/* handle.h - a handle: a filter on servers, as one client has it open.
 *
 *     handle --- nodes         the servers: their map, the links to them, the last problem
 *         '----- about         the description of what is open
 *         '----- there         the description, as it was last read
 *         '----- layer[0..]    the layers that are open: those that are ready, the oldest first
 *         '----- batch         the keys that are under way
 *
 * Invariant: layer[0 .. nlayers-1] have a layout and a size, and slot[] has room for all their
 * partitions.  An open filter of our own layout has at least one layer. */
#ifndef HANDLE_H
#define HANDLE_H

#include "address.h"
#include "description.h"
#include "exchange.h"
#include "redisson.h"
#include <perhaps_layout.h>
#include <perhaps_plan.h>

/* How many keys are under way at once. */
enum { BATCH_KEYS = PERHAPS_CLUSTER_BATCH };

/* Room for a Redis key of the filter: its name, and what stands around it. */
enum { REDIS_KEY_NBYTES = NAME_NBYTES_MOST + 64 };

/* A layer that is open.  It owns its layout, 'seen' and 'marked'. */
struct layer {
    perhaps_layout *layout;
    struct perhaps_plan plan;
    uint64_t blocks;           /* in all partitions together */
    uint64_t partition_blocks; /* in each partition but the last, which has the rest */
    uint64_t partitions;
    size_t block_nbytes;
    unsigned key_nbits;         /* how many bits each key has */
    char suffix[ID_DIGITS + 8]; /* of its partitions' names: "}:ID" or "}:ID.LAYER" */
    size_t suffix_nbytes;

    /* Of each partition: the number of the connection over which it was last seen to be whole;
     * 0: it was never looked at. */
    uint32_t *seen;
    uint32_t *marked; /* of each partition: used within a pass (pass.c) */

    /* A "no" from a block with at most this many bits set is not believed without a look at the
     * partition (batch.c).  'sparse': the last one was from such a block. */
    unsigned bits_doubted;
    bool sparse;

    uint64_t key_limit; /* how many keys that set a bit it takes */
    int64_t usable_ms;  /* nothing is added to it before this time */
    int64_t opened_ms;
};

/* A handle.  perhaps_cluster_new() makes it and perhaps_cluster_free() releases all that it
 * owns; it is for one thread at a time. */
struct perhaps_cluster {
    const struct dialect *dialect; /* how the filter lies on the servers */
    struct nodes nodes;
    struct address address;
    char *shown; /* the address without its password */
    struct perhaps_hashing hashing;
    uint8_t secret[16];  /* hashing points to it */
    bool without_secret; /* opens filters whose secret it does not have: not for keys */
    bool replicas;       /* keys may be asked for at replicas */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void (*warn)(void *context, const char *line);
    bool warned; /* or there was nothing to warn of */
    void *context;

    /* Redis keys: of the description; of the counts; the beginning "perhaps:{NAME/" of those of
     * partitions. */
    char key[REDIS_KEY_NBYTES];
    char counts[REDIS_KEY_NBYTES + ID_DIGITS + 1];
    char prefix[REDIS_KEY_NBYTES];
    size_t prefix_nbytes;
    bool open, parting; /* 'parting': it is being freed */
    struct description about;
    struct description there; /* of layers_describe(): too large for the stack of a thread */
    unsigned nlayers;
    struct layer layer[PERHAPS_LAYERS_MAX];
    uint16_t *slot;  /* of each partition, which is the same in all layers: partition_slot() */
    uint64_t nslots; /* how many partitions it has room for */
    struct reservation *room; /* for keys to add: room.h; NULL: not open */
    int64_t leased_ms;   /* until this time no layer is in use that this handle does not know */
    uint64_t next_watch; /* the partition whose length is looked at next */
    size_t unwatched;    /* keys that were asked for or added since then */
    uint64_t doubtful;   /* keys of which nobody knows which client added them first */

    struct redisson redisson; /* the config, if Redisson made the filter */
    struct batch *batch;      /* the keys that are under way */
    size_t more;              /* how many are to be added behind these in the same call */
    size_t newcomers; /* keys added one after the other, none of which was in an older layer */
};

/* How a filter lies on servers, and what can be done with such a filter.  An operation that is
 * NULL cannot be done, and the public call says why (client.c). */
struct dialect {
    const char *layout;          /* its name */
    const char *before, *behind; /* what is around the name in the Redis key */
    bool is_opened; /* a filter must be opened before keys are added or asked for */
    int (*open)(perhaps_cluster *c);

    /* Deal with a batch of keys, whose answers are then in c->batch: see operations.h. */
    int (*ask)(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);
    int (*add)(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);
    int (*settle)(perhaps_cluster *c); /* behind the last of some batches; NULL: need not */

    int (*stats)(perhaps_cluster *c, struct perhaps_cluster_stats *stats);
    int (*create)(perhaps_cluster *c, const struct perhaps_options *options,
                  uint64_t partitions);
    int (*delete)(perhaps_cluster *c);
    int (*upload)(perhaps_cluster *c, const perhaps_filter *filter, uint64_t partitions);
    int (*download)(perhaps_cluster *c, const char *path);
    int (*verify)(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict);
    int (*recount)(perhaps_cluster *c, uint64_t *was, uint64_t *now);
};

extern const struct dialect redisson_dialect; /* foreign.c */

/* Takes the hashing of the options.  Copies the secret, since the caller may wipe its own. */
void handle_take_hashing(perhaps_cluster *c, const struct perhaps_hashing *hashing);

/* Returns PERHAPS_ERR_PROTOCOL, and notes that, if the reply to a command is no number. */
int handle_take_number(perhaps_cluster *c, const struct reply *reply, const char *command);

/* Returns an error if the counts of the filter that is open were lost when they were last
 * read. */
int handle_check_counts(perhaps_cluster *c);

/* Returns whether an error says that the filter was deleted. */
bool handle_is_gone(int error);

/* Writes the Redis key of the counts of the filter with this ID. */
void handle_name_counts(const perhaps_cluster *c, const char *id,
                        char counts[sizeof((perhaps_cluster *)NULL)->counts]);

/* Sends a command to the node of the description, and has it acknowledged by replicas as adds
 * are.  NULL stands behind its last argument, and its reply is a number.  It may be sent twice,
 * so doing it twice must do no harm.  Returns 0 or an error. */
int handle_tell(perhaps_cluster *c, const char *const *command);

/* Between these two calls a handle clears up after an error.  The problem of that error is kept
 * as the one that the caller sees.  Patience lasts only one timeout.  It cannot be interrupted,
 * since a caller that interrupts wants things to be cleared up, too; nor does a deadline end
 * it. */
struct aside {
    char problem[sizeof((struct nodes *)NULL)->problem];
    bool (*stopped)(void *context);
    unsigned patience_ms;
    int64_t ends_ms;
    bool impatient;
};
void handle_begin_aside(perhaps_cluster *c, struct aside *aside);
void handle_end_aside(perhaps_cluster *c, const struct aside *aside);

#endif
