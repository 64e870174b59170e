/* xxh3.h - XXH3, inlined into its callers so that hashing a key is no function call. */
#ifndef XXH3_H
#define XXH3_H

#define XXH_INLINE_ALL
#include <perhaps_fast.h>
#include <xxhash.h>

#include "bytes.h"
#include "keyhash.h"

/* Returns the hash of 128 bits that stands for a uniform one of 64. */
static ALWAYS_INLINE struct keyhash keyhash_from_64(uint64_t hash)
{
    return (struct keyhash){ .place = hash, .mark = perhaps_view_mark(hash) };
}

static ALWAYS_INLINE struct keyhash keyhash_from_xxh(XXH128_hash_t hash)
{
    return (struct keyhash){ .place = hash.low64, .mark = hash.high64 };
}

/* Hash keys of up to 16 bytes.  They name the function for these: gcc does not inline the
 * general one where the CPU has AVX2. */
static ALWAYS_INLINE struct keyhash xxh3_short(const void *key, size_t nbytes, uint64_t seed)
{
    return keyhash_from_xxh(XXH3_len_0to16_128b(key, nbytes, XXH3_kSecret, seed));
}

static ALWAYS_INLINE struct keyhash xxh3_short_64(const void *key, size_t nbytes, uint64_t seed)
{
    return keyhash_from_64(XXH3_len_0to16_64b(key, nbytes, XXH3_kSecret, seed));
}

/* Hash keys of any length: those of up to 128 bytes without a call. */
static ALWAYS_INLINE struct keyhash xxh3_any(const void *key, size_t nbytes, uint64_t seed)
{
    const uint8_t *secret = XXH3_kSecret;
    if (nbytes <= 16)
        return xxh3_short(key, nbytes, seed);
    return keyhash_from_xxh(
        nbytes <= 128 ? XXH3_len_17to128_128b(key, nbytes, secret, sizeof XXH3_kSecret, seed)
                      : XXH3_128bits_withSeed(key, nbytes, seed));
}

static ALWAYS_INLINE struct keyhash xxh3_any_64(const void *key, size_t nbytes, uint64_t seed)
{
    const uint8_t *secret = XXH3_kSecret;
    if (nbytes <= 16)
        return xxh3_short_64(key, nbytes, seed);
    return keyhash_from_64(
        nbytes <= 128 ? XXH3_len_17to128_64b(key, nbytes, secret, sizeof XXH3_kSecret, seed)
                      : XXH3_64bits_withSeed(key, nbytes, seed));
}

/* What depends on the seed alone when a key of 8 bytes is hashed to 64 bits. */
static inline uint64_t xxh3_flip(uint64_t seed)
{
    return UINT64_C(0xC73AB174C5ECD5A2) -
           (seed ^ (uint64_t)__builtin_bswap32((uint32_t)seed) << 32);
}

/* Does what xxh3_short_64() does for a key of 8 bytes. */
static ALWAYS_INLINE struct keyhash xxh3_keyhash_64_of_8(uint64_t key, uint64_t flip)
{
    return keyhash_from_64(perhaps_view_hash(key, flip));
}

#endif
