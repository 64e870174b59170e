/* xxh3.h - XXH3-128, inlined into its callers so that hashing a key is no function call. */
#ifndef XXH3_H
#define XXH3_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "keyhash.h"

static inline __attribute__((always_inline)) struct keyhash
xxh3_keyhash(const void *key, size_t nbytes, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(key, nbytes, seed);
    return (struct keyhash){ .place = h.low64, .mark = h.high64 };
}

#endif
