/* shards.c - the keys of a block by shards. */
#include "shards.h"

#include <errno.h>
#include <math.h>
#include <perhaps_fast.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../base/messages.h"
#include "../input/input.h"

struct sharding sharding_new(size_t count)
{
    struct sharding sharding = { .count = count };
    if (getentropy(&sharding.seed, sizeof sharding.seed) != 0)
        fail("no random bytes: %s", strerror(errno));
    return sharding;
}

uint64_t sharding_room(const struct sharding *sharding, uint64_t nkeys)
{
    const double mean = (double)nkeys / (double)sharding->count;
    return sharding->count > 1 ? (uint64_t)(mean + 6 * sqrt(mean)) : nkeys;
}

/* Makes room for the keys of a block, all of which may belong to one shard.  Returns NULL if
 * there is no memory. */
static struct sharded *room_for_hashes(struct block *block, size_t nshards)
{
    size_t room = (block->count + 63) / 64 * 64;
    size_t each_nbytes =
        nshards * (sizeof(struct perhaps_hashed) + sizeof(uint32_t)) + sizeof(bool);
    struct sharded *sharded =
        room_for(&block->room[FOR_VERB], sizeof *sharded + room * each_nbytes, 1);
    if (!sharded)
        return NULL;
    sharded->room = room;
    sharded->hash = (struct perhaps_hashed *)(sharded + 1);
    sharded->record = (uint32_t *)(sharded->hash + nshards * room);
    sharded->answer = (bool *)(sharded->record + nshards * room);
    return sharded;
}

/* Hashes the keys of a block and sorts them by shards.  The shard is the lowest bits of the
 * hash's mark, which no kind uses by themselves.  Members that do not change are read before
 * the loop: as far as a compiler knows, writing a hash might change them. */
static void split_keys(const struct sharding *sharding, const struct block *block,
                       struct sharded *sharded)
{
    const uint64_t seed = sharding->seed, mask = sharding->count - 1;
    const struct perhaps_key *key = block->key;
    const size_t count = block->count, room = sharded->room;
    struct perhaps_hashed *hashes = sharded->hash;
    uint32_t *records = sharded->record;
    size_t used[SHARDS_MAX] = { 0 };
    for (size_t i = 0; i < count; i++) {
        XXH128_hash_t hash = XXH3_128bits_withSeed(key[i].bytes, key[i].nbytes, seed);
        uint64_t shard = hash.high64 & mask;
        size_t at = shard * room + used[shard]++;
        memcpy(&hashes[at], &hash, sizeof hash);
        records[at] = (uint32_t)i;
    }
    memcpy(sharded->count, used, sizeof used);
}

bool shards_split(void *context, struct block *block)
{
    const struct sharding *sharding = context;
    struct sharded *sharded = room_for_hashes(block, sharding->count);
    if (sharded)
        split_keys(sharding, block, sharded);
    else
        block->ndone = 0;
    return block_met(block, sharded ? 0 : PERHAPS_ERR_MEMORY);
}

struct sharded *shards_of(const struct block *block)
{
    return block->error == PERHAPS_ERR_MEMORY ? NULL : block->room[FOR_VERB].memory;
}

struct perhaps_keys shards_keys(const struct sharded *sharded, size_t shard)
{
    return perhaps_keys_packed(sharded->hash + shard * sharded->room, sizeof *sharded->hash,
                               sharded->count[shard]);
}

size_t sharding_count(const struct settings *settings, uint64_t nkeys)
{
    const size_t nthreads = input_nthreads(settings);
    size_t nshards = 1;
    while (nshards < SHARDS_MAX && 2 * nshards <= nthreads && nkeys / (2 * nshards) >= 1000000)
        nshards *= 2;
    return nshards;
}
