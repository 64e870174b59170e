/* cluster.h - an open filter on servers: what its parts share. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "address.h"
#include "description.h"
#include "nodes.h"
#include "redisson.h"

/* The keys that are under way at once. */
enum { CHUNK_KEYS = 8192 };

enum { FOOTER_NBYTES = 64, PARTITIONS_MOST = 1 << 24 };

/* What a partition takes of a server's memory: its blocks, its footer, and up to 16 bytes that
 * Redis has in each string. */
enum { PARTITION_NBYTES_MOST = 16 << 20, PARTITION_NBYTES_BESIDE = FOOTER_NBYTES + 16 };
enum { NAME_NBYTES_MOST = 1000, REDIS_KEY_NBYTES = NAME_NBYTES_MOST + 64 };

struct layer {
    perhaps_layout *layout;
    struct perhaps_plan plan;
    uint64_t blocks, partition_blocks, partitions;
    size_t block_nbytes;
    char suffix[ID_DIGITS + 8]; /* of the names of its partitions: "}:ID" or "}:ID.LAYER" */
    size_t suffix_nbytes;
    long long owed; /* reserved and not needed: goes back with the next reservation */
};

struct perhaps_cluster {
    struct nodes nodes;
    struct address address;
    char *shown; /* the address without its password */
    struct perhaps_hashing hashing;
    uint8_t secret[16]; /* that hashing points to */
    bool without_secret;
    bool replicas;
    unsigned acknowledge;
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;

    char key[REDIS_KEY_NBYTES]; /* of the description; of the counts: */
    char counts[REDIS_KEY_NBYTES + ID_DIGITS + 1];
    char prefix[REDIS_KEY_NBYTES]; /* of the names of partitions: "perhaps:{NAME/" */
    size_t prefix_nbytes;
    unsigned slot; /* of the description */
    bool open;
    struct description about;
    unsigned nlayers;
    struct layer layer[PERHAPS_LAYERS_MAX];
    uint16_t *partition_slot; /* the same for all layers */
    uint64_t nslots;
    uint64_t turn; /* the partition to be looked at next */
    uint64_t doubtful;

    struct redisson redisson; /* of a filter that Redisson made */
    bool adding;              /* keys, and only asking the older layers for them */
    struct work *work;        /* room for a chunk of keys */
};

/* cluster.c: notes "NAME: ..." and returns the error. */
int cluster_fail(perhaps_cluster *c, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* cluster.c: the same for an error of perhaps.h, whose text is perhaps_strerror()'s. */
int cluster_fail_plainly(perhaps_cluster *c, int error);

/* cluster.c: the key of the counts of a filter with that id: of a size as c->counts. */
void cluster_counts_key(const perhaps_cluster *c, const char *id, char *counts);

/* cluster.c: reads the description anew.  PERHAPS_ERR_MISSING where there is none; what the
 * handle has open is left alone. */
int cluster_describe(perhaps_cluster *c, struct description *about);

/* cluster.c: opens the layers that are ready and not open yet. */
int cluster_open_layers(perhaps_cluster *c, const struct description *about);

/* cluster.c: the suffix of a layer. */
void cluster_name_layer(const perhaps_cluster *c, struct layer *layer, unsigned index);

/* cluster.c: the size of a block. */
size_t cluster_block_nbytes(const perhaps_layout *layout);

/* cluster.c: the size and the suffix of a layer whose layout is there. */
int cluster_measure_layer(perhaps_cluster *c, struct layer *layer, unsigned index,
                          uint64_t partitions);

/* cluster.c: forgets what is open. */
void cluster_close(perhaps_cluster *c);

/* cluster.c: a few commands to the description, one after the other on one connection, and
 * acknowledged as adds are. */
struct talk {
    size_t count;
    void (*write)(void *context, size_t i, struct resp *out);
    int (*take)(void *context, size_t i, const redisReply *reply, bool again); /* or NULL */
    void *context;
    int (*refuse)(void *context, size_t i, const redisReply *error); /* or NULL: as that of an
                                                                        exchange */
    void (*doubt)(void *context, size_t i);                          /* or NULL: the same */
};
int cluster_talk(perhaps_cluster *c, const struct talk *talk);

/* cluster.c: between these two things are cleared up after an error: its problem is what stays,
 * and nobody waits long, or can interrupt. */
struct aside {
    char problem[sizeof((struct nodes *)NULL)->problem];
    bool (*stopped)(void *context);
    unsigned patience_ms;
};
void cluster_begin_aside(perhaps_cluster *c, struct aside *aside);
void cluster_end_aside(perhaps_cluster *c, const struct aside *aside);

/* inspect.c: what the handle has done so far. */
void cluster_count_work(const perhaps_cluster *c, struct perhaps_cluster_stats *stats);

/* ---- partitions.c ---------------------------------------------------------------------- */

static inline uint64_t partition_nblocks(const struct layer *layer, uint64_t partition)
{
    uint64_t first = partition * layer->partition_blocks;
    uint64_t left = layer->blocks - first;
    return left < layer->partition_blocks ? left : layer->partition_blocks;
}

/* Without its footer. */
static inline size_t partition_nbytes(const struct layer *layer, uint64_t partition)
{
    return partition_nblocks(layer, partition) * layer->block_nbytes;
}

/* Writes the name of a partition as an argument. */
void partition_name(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                    struct resp *out);

/* Writes STRLEN of a partition. */
void partition_strlen(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                      struct resp *out);

/* The first bytes of a partition's footer. */
void partition_footer(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                      char footer[FOOTER_NBYTES]);

/* Makes sure that partition_slot[] has those of the layer. */
int partitions_find_slots(perhaps_cluster *c, uint64_t partitions);

/* Makes all partitions of a layer, all bits zero; those that are there are left as they are. */
int partitions_make(perhaps_cluster *c, const struct layer *layer);

/* Removes them. */
int partitions_remove(perhaps_cluster *c, const struct layer *layer);

/* Compares the lengths of all partitions with what they should be.  PERHAPS_ERR_LOST: 'census'
 * tells how many are not. */
struct census {
    uint64_t looked_at, lost, first_lost;
    unsigned first_layer;
};
int partitions_check(perhaps_cluster *c, struct census *census);

/* The same of those that can be reached at once. */
int partitions_check_reachable(perhaps_cluster *c);

/* The same of those on servers that answered in the last exchange over a connection that was
 * not there when they were looked at: a server that has restarted without its data has broken
 * off all connections, and so has one whose place another took. */
int partitions_check_new(perhaps_cluster *c);

/* Looks at n of them; and may remove those that are lost, where what is there was made by
 * adding to what was not there any more. */
int partitions_look(perhaps_cluster *c, const struct layer *layer, const uint32_t *partition,
                    size_t n, bool remove);

/* What to say about a lost one. */
int partitions_fail_lost(perhaps_cluster *c, unsigned layer, uint64_t partition);

/* ---- foreign.c ------------------------------------------------------------------------- */

int foreign_open(perhaps_cluster *c);
int foreign_add(perhaps_cluster *c, const struct perhaps_keys *keys, bool *was_present,
                size_t *done);
int foreign_contains(perhaps_cluster *c, const struct perhaps_keys *keys, bool *present,
                     size_t *npresent);
int foreign_stats(perhaps_cluster *c, struct perhaps_cluster_stats *stats);

#endif
