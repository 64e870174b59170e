/* hash.c - hashes the bytes of a key to 128 bits.
 *
 * The first 8 bytes of a hash, as a little-endian integer, are its 'place', and the last 8 are
 * its 'mark'.  For XXH3 these are low64 and high64.  The order is part of the file format. */
#include "hash.h"

#include <sodium/crypto_shorthash_siphash24.h>
#include <sodium/utils.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "xxh3.h"

/* hasher_run_all() copies one to the other: hosts are little-endian (bytes.h). */
_Static_assert(sizeof(struct keyhash) == sizeof(struct perhaps_hashed), "copied as they are");

static struct keyhash keyhash_from_bytes(const uint8_t bytes[PERHAPS_HASH_NBYTES])
{
    return (struct keyhash){ .place = load64(bytes), .mark = load64(bytes + 8) };
}

static struct keyhash hash_xxh3(const struct hasher *hasher, const void *key, size_t nbytes)
{
    return xxh3_keyhash(key, nbytes, hasher->seed);
}

static struct keyhash hash_sip(const struct hasher *hasher, const void *key, size_t nbytes)
{
    uint8_t out[crypto_shorthash_siphashx24_BYTES];
    crypto_shorthash_siphashx24(out, key, nbytes, hasher->secret);
    return keyhash_from_bytes(out);
}

static struct keyhash hash_none(const struct hasher *hasher, const void *key, size_t nbytes)
{
    (void)hasher;
    (void)nbytes;
    return keyhash_from_bytes(key);
}

static struct keyhash hash_custom(const struct hasher *hasher, const void *key, size_t nbytes)
{
    uint8_t out[PERHAPS_HASH_NBYTES];
    hasher->function(hasher->context, key, nbytes, out);
    return keyhash_from_bytes(out);
}

/* Hashes keys first .. first+n-1 with hash().  The compiler inlines this into one loop for each
 * hash, so that no key costs an indirect call. */
static inline __attribute__((always_inline)) void
run(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first, size_t n,
    struct keyhash *out,
    struct keyhash (*hash)(const struct hasher *hasher, const void *key, size_t nbytes))
{
    if (keys->each) {
        const struct perhaps_key *key = keys->each + first;
        for (size_t i = 0; i < n; i++)
            out[i] = hash(hasher, key[i].bytes, key[i].nbytes);
    } else {
        size_t nbytes = keys->key_nbytes;
        for (size_t i = first; i < first + n; i++)
            *out++ = hash(hasher, keys_packed_at(keys, i), nbytes);
    }
}

static inline __attribute__((always_inline)) void
run_packed(const uint8_t *packed, size_t nbytes, size_t n, uint64_t seed, struct keyhash *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = xxh3_keyhash(packed + i * nbytes, nbytes, seed);
}

static void run_integers(const struct hasher *hasher, const uint8_t *packed, size_t n,
                         struct keyhash *out)
{
#if defined(__x86_64__)
    if (hasher->cpu == CPU_AVX512) {
        hash_integers_avx512(packed, n, hasher->seed, out);
        return;
    }
#endif
    run_packed(packed, 8, n, hasher->seed, out);
}

/* Hashes keys by XXH3.  Keys of the usual lengths get loops of their own, in which the length
 * is a constant and the compiler removes the branches of XXH3 that depend on it. */
static void run_xxh3(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                     size_t n, struct keyhash *out)
{
    size_t nbytes = keys->each ? 0 : keys->key_nbytes;
    const uint8_t *packed = keys->each ? NULL : keys_packed_at(keys, first);
    switch (nbytes) {
    case 8:
        run_integers(hasher, packed, n, out);
        break;
    case 16:
        run_packed(packed, 16, n, hasher->seed, out);
        break;
    case 20:
        run_packed(packed, 20, n, hasher->seed, out);
        break;
    case 32:
        run_packed(packed, 32, n, hasher->seed, out);
        break;
    default:
        run(hasher, keys, first, n, out, hash_xxh3);
    }
}

void hasher_run(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                size_t n, struct keyhash *out)
{
    if (!keys->each && keys->hashed) {
        for (size_t i = 0; i < n; i++)
            out[i] = keyhash_from_bytes(keys->hashed[first + i].bytes);
        return;
    }
    switch (hasher->id) {
    case PERHAPS_HASH_XXH3:
        run_xxh3(hasher, keys, first, n, out);
        break;
    case PERHAPS_HASH_SIP:
        run(hasher, keys, first, n, out, hash_sip);
        break;
    case PERHAPS_HASH_NONE:
        run(hasher, keys, first, n, out, hash_none);
        break;
    case PERHAPS_HASH_CUSTOM:
        run(hasher, keys, first, n, out, hash_custom);
        break;
    }
}

bool hasher_other(const struct hasher *hasher, const void *key, size_t key_nbytes,
                  struct keyhash *out)
{
    if (!hasher->ready || !hasher_takes(hasher, key_nbytes))
        return false;
    if (hasher->id == PERHAPS_HASH_SIP)
        *out = hash_sip(hasher, key, key_nbytes);
    else if (hasher->id == PERHAPS_HASH_NONE)
        *out = hash_none(hasher, key, key_nbytes);
    else
        *out = hash_custom(hasher, key, key_nbytes);
    return true;
}

size_t hasher_accepts(const struct hasher *hasher, const struct perhaps_keys *keys)
{
    if (hasher->id != PERHAPS_HASH_NONE || (!keys->each && keys->hashed))
        return keys->count;
    if (!keys->each)
        return keys->key_nbytes == PERHAPS_HASH_NBYTES ? keys->count : 0;
    size_t n = 0;
    while (n < keys->count && keys->each[n].nbytes == PERHAPS_HASH_NBYTES)
        n++;
    return n;
}

int hasher_run_all(const struct hasher *hasher, const struct perhaps_keys *keys,
                   struct perhaps_hashed *hashed)
{
    enum { STEP = 128 };
    if (!hasher->ready)
        return PERHAPS_ERR_SECRET;
    if (hasher_accepts(hasher, keys) < keys->count)
        return PERHAPS_ERR_ARGUMENT;
    for (size_t at = 0; at < keys->count; at += STEP) {
        struct keyhash step[STEP];
        size_t n = keys->count - at < STEP ? keys->count - at : STEP;
        hasher_run(hasher, keys, at, n, step);
        memcpy(hashed + at, step, n * sizeof *step);
    }
    return 0;
}

/* Returns half of the hash of a fixed text, which tells another seed, secret or function apart.
 * The text has 16 bytes, so that the hash 'none' takes it, too. */
static uint64_t check_value(const struct hasher *hasher)
{
    struct perhaps_keys text = perhaps_keys_packed("perhaps, or not.", 16, 1);
    struct keyhash h = { 0 }; /* gcc does not see that hasher_run() knows every id */
    hasher_run(hasher, &text, 0, 1, &h);
    return h.place;
}

/* Copies the secret, function and context that the caller gave.  Returns whether they are all
 * that this hash needs. */
static bool take_secret(struct hasher *hasher, const struct perhaps_hashing *hashing)
{
    if (hashing->secret)
        memcpy(hasher->secret, hashing->secret, sizeof hasher->secret);
    hasher->function = hashing->function;
    hasher->context = hashing->context;
    return (hasher->id != PERHAPS_HASH_SIP || hashing->secret) &&
           (hasher->id != PERHAPS_HASH_CUSTOM || hashing->function);
}

int hasher_create(struct hasher *hasher, const struct perhaps_hashing *hashing)
{
    *hasher = (struct hasher){ .id = hashing->hash, .seed = hashing->seed, .ready = true };
    if ((unsigned)hasher->id > PERHAPS_HASH_CUSTOM)
        return PERHAPS_ERR_ARGUMENT;
    if (!take_secret(hasher, hashing)) {
        if (hasher->id == PERHAPS_HASH_CUSTOM)
            return PERHAPS_ERR_SECRET;
        if (getentropy(hasher->secret, sizeof hasher->secret))
            return PERHAPS_ERR_IO;
    }
    if (hasher->id != PERHAPS_HASH_XXH3)
        hasher->seed = 0;
    else if (!hasher->seed && getentropy(&hasher->seed, sizeof hasher->seed))
        return PERHAPS_ERR_IO;
    hasher->check = check_value(hasher);
    return 0;
}

int hasher_restore(struct hasher *hasher, uint32_t id, uint64_t seed, uint64_t check,
                   const struct perhaps_hashing *hashing, bool without_secret)
{
    if (id > PERHAPS_HASH_CUSTOM)
        return PERHAPS_ERR_VERSION;
    *hasher = (struct hasher){ .id = (enum perhaps_hash)id, .seed = seed, .check = check };
    if (take_secret(hasher, hashing)) {
        hasher->ready = check_value(hasher) == check;
        return hasher->ready ? 0 : PERHAPS_ERR_SECRET;
    }
    return without_secret ? 0 : PERHAPS_ERR_SECRET;
}

bool hasher_equal(const struct hasher *a, const struct hasher *b)
{
    return a->id == b->id && a->seed == b->seed && a->check == b->check;
}

const char *perhaps_hash_name(enum perhaps_hash hash)
{
    static const char *const names[] = { "xxh3", "sip", "none", "custom" };
    return (unsigned)hash < sizeof names / sizeof *names ? names[hash] : NULL;
}
