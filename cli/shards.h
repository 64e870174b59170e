/* shards.h - the keys of a block by shards: filters or tables that share the keys among them by
 * hash.
 *
 * Each shard works on its keys in a stage of its own, in order, so several threads work at once
 * and each shard still gets its keys in the order of the input. */
#ifndef SHARDS_H
#define SHARDS_H

#include "lines.h"
#include <perhaps_fast.h>

#define SHARDS_MAX 8

/* How keys are hashed, and into how many shards, a power of two. */
struct sharding {
    size_t count;
    uint64_t seed;
};

/* Returns a sharding with a random seed, or ends the program. */
struct sharding sharding_new(size_t count);

/* Returns for how many keys a shard needs room, if so many keys fall into all: six standard
 * deviations more than the mean, since they do not fall into them quite evenly. */
uint64_t sharding_room(const struct sharding *sharding, uint64_t nkeys);

/* The keys of a block by shards, in its room for the verb.  The arrays 'hash' and 'record' have
 * 'room' members for each shard: those of shard s begin at s * room. */
struct sharded {
    size_t room;              /* how many keys each shard has room for */
    size_t count[SHARDS_MAX]; /* how many keys belong to each shard */
    struct perhaps_hashed *hash;
    uint32_t *record; /* the number in the block of the record with this hash */
    bool *answer;     /* for one shard at a time, since a block is in one stage at a time */
};

/* A stage, with a struct sharding: hashes the keys of a block, and finds the shard of each. */
bool shards_split(void *sharding, struct block *block);

/* Returns what shards_split() made; NULL if it had no memory. */
struct sharded *shards_of(const struct block *block);

/* Returns the keys of a shard, as keys that are hashed by the caller. */
struct perhaps_keys shards_keys(const struct sharded *sharded, size_t shard);

#endif
