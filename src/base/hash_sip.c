/* hash_sip.c - SipHash-2-4 with 128 bits (Aumasson and Bernstein, INDOCRYPT 2012), under a
 * secret.  With PERHAPS_WITHOUT_SODIUM there is no such hash.
 *
 * libsodium hashes single keys.  Vectors hash many (sip_loops.h), if they are sorted by their
 * lengths first: a vector takes as long as the longest of its keys. */
#include "hash.h"
#include <perhaps_fast.h>

#ifdef PERHAPS_WITHOUT_SODIUM

#include <string.h>

void wipe(void *bytes, size_t nbytes)
{
    memset(bytes, 0, nbytes);
    __asm__ volatile("" : : "r"(bytes) : "memory"); /* they may be read here */
}

#else

#include <sodium/crypto_shorthash_siphash24.h>
#include <sodium/utils.h>

void wipe(void *bytes, size_t nbytes)
{
    sodium_memzero(bytes, nbytes);
}

enum {
    STEP = 128,   /* keys that are sorted at once */
    FEWEST = 5,   /* keys for which vectors pay */
    CLASSES = 64, /* of lengths; in the last one are keys of 504 bytes and more */
    BLOCK = 8
};

struct keyhash hash_sip(const struct hasher *hasher, const void *key, size_t nbytes)
{
    uint8_t out[crypto_shorthash_siphashx24_BYTES];
    crypto_shorthash_siphashx24(out, key, nbytes, hasher->secret);
    return hash_none(hasher, out, sizeof out);
}

/* NULL: one key at a time. */
static hash_sip_lanes *const lanes_of[CPU_COUNT] = {
#if defined(__x86_64__)
    [CPU_AVX2] = hash_sip_avx2,
    [CPU_AVX512] = hash_sip_avx512,
#endif
};

static size_t class_of(const struct perhaps_key *key)
{
    const size_t blocks = key->nbytes / BLOCK;
    return blocks < CLASSES - 1 ? blocks : CLASSES - 1;
}

/* Sets order[i] to the number of the key that comes at i when keys are sorted by class.
 * Returns how many there are before the last class. */
static size_t sort_by_class(const struct perhaps_key *key, size_t n, uint8_t *order)
{
    uint8_t end[CLASSES + 1] = { 0 }; /* of the keys of each class before it */
    for (size_t i = 0; i < n; i++)
        end[class_of(&key[i]) + 1]++;
    for (size_t c = 1; c < CLASSES; c++)
        end[c] = (uint8_t)(end[c] + end[c - 1]);
    const size_t before_last = end[CLASSES - 1];
    for (size_t i = 0; i < n; i++)
        order[end[class_of(&key[i])]++] = (uint8_t)i;
    return before_last;
}

/* Hashes keys of differing lengths.  One that is very long may be much longer than others of
 * its class, and is hashed alone. */
static void run_mixed(const struct hasher *hasher, const struct perhaps_key *key, size_t n,
                      struct keyhash *out)
{
    struct perhaps_key sorted[STEP];
    struct keyhash hash[STEP];
    uint8_t order[STEP];
    const size_t usual = sort_by_class(key, n, order);
    for (size_t i = 0; i < usual; i++)
        sorted[i] = key[order[i]];
    lanes_of[hasher->cpu](hasher->secret, sorted, usual, hash);
    for (size_t i = usual; i < n; i++)
        hash[i] = hash_sip(hasher, key[order[i]].bytes, key[order[i]].nbytes);
    for (size_t i = 0; i < n; i++)
        out[order[i]] = hash[i];
}

/* Returns whether vectors take all these keys as they are. */
static bool are_alike(const struct perhaps_key *key, size_t n)
{
    size_t other = 0;
    for (size_t i = 1; i < n; i++)
        other |= key[i].nbytes / BLOCK ^ key[0].nbytes / BLOCK;
    return !other;
}

/* Hashes up to STEP keys. */
static void run_step(const struct hasher *hasher, const struct perhaps_key *key, size_t n,
                     bool packed, struct keyhash *out)
{
    if (!lanes_of[hasher->cpu] || n < FEWEST)
        for (size_t i = 0; i < n; i++)
            out[i] = hash_sip(hasher, key[i].bytes, key[i].nbytes);
    else if (packed || are_alike(key, n))
        lanes_of[hasher->cpu](hasher->secret, key, n, out);
    else
        run_mixed(hasher, key, n, out);
}

void hash_sip_run(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                  size_t n, struct keyhash *out)
{
    const bool packed = !keys->each && !keys->offsets;
    for (size_t at = 0; at < n; at += STEP) {
        struct perhaps_key key[STEP];
        const size_t some = n - at < STEP ? n - at : STEP;
        for (size_t i = 0; i < some && !keys->each; i++)
            key[i] = perhaps_keys_at(keys, first + at + i);
        run_step(hasher, keys->each ? keys->each + first + at : key, some, packed, out + at);
    }
}

#endif
