/* redisbloom.c - the hashes of RedisBloom's filters. */
#include "redisbloom.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

/* ---- The hash --------------------------------------------------------------------------- */

#define MULTIPLIER UINT64_C(0xc6a4a7935bd1e995)
enum { SHIFT = 47 };

static uint64_t mix(uint64_t x)
{
    x *= MULTIPLIER;
    x ^= x >> SHIFT;
    return x * MULTIPLIER;
}

uint64_t redisbloom_hash(const void *bytes, size_t nbytes, uint64_t seed)
{
    const uint8_t *at = bytes;
    uint64_t hash = seed ^ nbytes * MULTIPLIER, word;
    for (; nbytes >= sizeof word; at += sizeof word, nbytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ mix(word)) * MULTIPLIER;
    }
    if (nbytes) {
        word = 0;
        memcpy(&word, at, nbytes);
        hash = (hash ^ word) * MULTIPLIER;
    }
    hash = (hash ^ hash >> SHIFT) * MULTIPLIER;
    return hash ^ hash >> SHIFT;
}

uint32_t redisbloom_hash_32(const uint8_t *bytes, size_t nbytes, uint32_t seed)
{
    const uint32_t multiplier = 0x5bd1e995;
    uint32_t hash = seed ^ (uint32_t)nbytes, word;
    for (; nbytes >= sizeof word; bytes += sizeof word, nbytes -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        word *= multiplier;
        word = (word ^ word >> 24) * multiplier;
        hash = hash * multiplier ^ word;
    }
    if (nbytes) {
        word = 0;
        memcpy(&word, bytes, nbytes);
        hash = (hash ^ word) * multiplier;
    }
    hash = (hash ^ hash >> 13) * multiplier;
    return hash ^ hash >> 15;
}
