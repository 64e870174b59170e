/* redisbloom.h - the hashes of RedisBloom's filters. */
#ifndef REDISBLOOM_H
#define REDISBLOOM_H

#include <stddef.h>
#include <stdint.h>

/* MurmurHash64A.  Its collisions are easily computed, and no seed helps. */
uint64_t redisbloom_hash(const void *bytes, size_t nbytes, uint64_t seed);

/* MurmurHash2, of early versions. */
uint32_t redisbloom_hash_32(const uint8_t *bytes, size_t nbytes, uint32_t seed);

/* What info() tells of them. */
#define REDISBLOOM_HASH "murmur64a (public: anybody can craft items)"

#endif
