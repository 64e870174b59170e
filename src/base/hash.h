/* hash.h - hashes the bytes of a key to 128 bits.
 *
 * The public functions hash each key once.  Everything behind them sees only hashes. */
#ifndef HASH_H
#define HASH_H

#include "cpu.h"
#include "keyhash.h"
#include "xxh3.h"
#include <perhaps.h>

struct hasher {
    enum perhaps_hash id;
    uint64_t seed;                   /* xxh3; 0 for other hashes */
    uint64_t check;                  /* half of the hash of a fixed text */
    uint8_t secret[16];              /* sip */
    bool ready;                      /* false: opened without its secret or function */
    perhaps_hash_function *function; /* custom */
    void *context;                   /* custom: passed to 'function' */

    enum cpu cpu; /* which instructions may hash integers faster */
};

/* Sets up the hash of a new filter, and draws the seed or the secret if the caller gave none.
 * Returns 0; PERHAPS_ERR_SECRET (custom without a function); PERHAPS_ERR_ARGUMENT for an
 * unknown hash; or PERHAPS_ERR_IO if the system gave no random bytes. */
int hasher_create(struct hasher *hasher, const struct perhaps_hashing *hashing);

/* Sets up the hash of a saved filter: id, seed and check value come from the file, the rest
 * from the caller.  'without_secret' allows a missing secret or function, and leaves 'ready'
 * false.  Returns 0; PERHAPS_ERR_SECRET if the secret or function is missing, or if the check
 * value shows that it is not the filter's; or PERHAPS_ERR_VERSION for an unknown id. */
int hasher_restore(struct hasher *hasher, uint32_t id, uint64_t seed, uint64_t check,
                   const struct perhaps_hashing *hashing, bool without_secret);

/* Returns whether both give the same hashes, as far as the check value tells. */
bool hasher_equal(const struct hasher *a, const struct hasher *b);

/* Returns the address of packed key 'index'.  'packed' may be NULL if keys have no bytes: then
 * nothing is added to it, since C does not define NULL + 0. */
static inline const uint8_t *keys_packed_at(const struct perhaps_keys *keys, size_t index)
{
    const uint8_t *packed = keys->packed;
    return keys->key_nbytes ? packed + index * keys->key_nbytes : packed;
}

/* Returns whether this hash takes keys of that length: 'none' takes only 16 bytes. */
static inline bool hasher_takes(const struct hasher *hasher, size_t key_nbytes)
{
    return hasher->id != PERHAPS_HASH_NONE || key_nbytes == PERHAPS_HASH_NBYTES;
}

/* Returns how many keys there are before the first one with a length that this hash refuses. */
size_t hasher_accepts(const struct hasher *hasher, const struct perhaps_keys *keys);

/* Hashes keys first .. first+n-1, which hasher_accepts() has counted. */
void hasher_run(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                size_t n, struct keyhash *out);

/* Hashes all keys.  Contract and errors are those of perhaps_hash_many(). */
int hasher_run_all(const struct hasher *hasher, const struct perhaps_keys *keys,
                   struct perhaps_hashed *hashed);

/* Hashes one key by a hash that is not xxh3.  Returns false if the secret or function is
 * missing, or if the hash does not take the length. */
bool hasher_other(const struct hasher *hasher, const void *key, size_t key_nbytes,
                  struct keyhash *out);

/* Hashes one key.  Returns false if hasher_other() does. */
static inline bool hasher_one(const struct hasher *hasher, const void *key, size_t key_nbytes,
                              struct keyhash *out)
{
    if (hasher->id != PERHAPS_HASH_XXH3)
        return hasher_other(hasher, key, key_nbytes, out);
    *out = xxh3_keyhash(key, key_nbytes, hasher->seed);
    return true;
}

#if defined(__x86_64__)
/* Hashes n keys of 8 bytes each, one after the other in memory, by XXH3-128. */
void hash_integers_avx512(const uint8_t *packed, size_t n, uint64_t seed, struct keyhash *out);
#endif

#endif
