/* hash.h - key bytes to 128 bits, once, at the public boundary. */
#ifndef HASH_H
#define HASH_H

#include "cpu.h"
#include "keyhash.h"
#include "xxh3.h"
#include <perhaps.h>

struct hasher {
    enum perhaps_hash id;
    uint64_t seed;  /* xxh3 */
    uint64_t check; /* of a fixed text: tells another seed, secret or function apart */
    uint8_t secret[16];
    bool ready; /* false: opened without the secret or the function */
    perhaps_hash_function *function;
    void *context;

    enum cpu cpu; /* may hash integers faster */
};

/* A new filter's hash.  Returns 0, PERHAPS_ERR_SECRET (custom without a function),
 * PERHAPS_ERR_ARGUMENT, or PERHAPS_ERR_IO where the system gave no random bytes. */
int hasher_create(struct hasher *hasher, const struct perhaps_hashing *hashing);

/* A saved filter's hash: id, seed and check value from the file, the rest from the caller.
 * Returns 0; PERHAPS_ERR_SECRET where they do not belong together; PERHAPS_ERR_VERSION for an
 * unknown id. */
int hasher_restore(struct hasher *hasher, uint32_t id, uint64_t seed, uint64_t check,
                   const struct perhaps_hashing *hashing, bool without_secret);

bool hasher_equal(const struct hasher *a, const struct hasher *b);

/* Keys of no bytes may lie at NULL, to which even nothing must not be added. */
static inline const uint8_t *keys_packed_at(const struct perhaps_keys *keys, size_t index)
{
    const uint8_t *packed = keys->packed;
    return keys->key_nbytes ? packed + index * keys->key_nbytes : packed;
}

/* 'none' takes keys of 16 bytes only. */
static inline bool hasher_takes(const struct hasher *hasher, size_t key_nbytes)
{
    return hasher->id != PERHAPS_HASH_NONE || key_nbytes == PERHAPS_HASH_NBYTES;
}

/* How many leading keys have a length that this hash takes. */
size_t hasher_accepts(const struct hasher *hasher, const struct perhaps_keys *keys);

/* Hashes keys first .. first+n-1; all are accepted. */
void hasher_run(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                size_t n, struct keyhash *out);

/* perhaps_hash_many() */
int hasher_run_all(const struct hasher *hasher, const struct perhaps_keys *keys,
                   struct perhaps_hashed *hashed);

/* Hashes one key, by a hash that is not xxh3.  false: without its secret or function it cannot,
 * or it does not take the length. */
bool hasher_other(const struct hasher *hasher, const void *key, size_t key_nbytes,
                  struct keyhash *out);

/* Hashes one key. */
static inline bool hasher_one(const struct hasher *hasher, const void *key, size_t key_nbytes,
                              struct keyhash *out)
{
    if (hasher->id != PERHAPS_HASH_XXH3)
        return hasher_other(hasher, key, key_nbytes, out);
    *out = xxh3_keyhash(key, key_nbytes, hasher->seed);
    return true;
}

#if defined(__x86_64__)
/* XXH3-128 of n keys of 8 bytes each, one behind the other. */
void hash_integers_avx512(const uint8_t *packed, size_t n, uint64_t seed, struct keyhash *out);
#endif

#endif
