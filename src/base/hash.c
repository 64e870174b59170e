/* hash.c - hashes the bytes of a key to 128 bits.
 *
 * The first 8 bytes of a hash, as a little-endian integer, are its 'place', and the last 8 are
 * its 'mark'.  For XXH3 these are low64 and high64.  The order is part of the file format. */
#include "hash.h"
#include "../system/system.h"
#include <perhaps_fast.h>
#include <perhaps_plan.h>

#include <string.h>

#include "bytes.h"
#include "xxh3.h"

/* hasher_run_all() copies one to the other: hosts are little-endian (bytes.h). */
_Static_assert(sizeof(struct keyhash) == sizeof(struct perhaps_hashed), "copied as they are");

static ALWAYS_INLINE struct keyhash any(const struct hasher *hasher, const void *key,
                                        size_t nbytes)
{
    return xxh3_any(key, nbytes, hasher->seed);
}

static ALWAYS_INLINE struct keyhash any_64(const struct hasher *hasher, const void *key,
                                           size_t nbytes)
{
    return xxh3_any_64(key, nbytes, hasher->seed);
}

NOINLINE struct keyhash hash_xxh3(const struct hasher *hasher, const void *key, size_t nbytes)
{
    return any(hasher, key, nbytes);
}

NOINLINE struct keyhash hash_xxh3_64(const struct hasher *hasher, const void *key,
                                     size_t nbytes)
{
    return any_64(hasher, key, nbytes);
}

static struct keyhash hash_custom(const struct hasher *hasher, const void *key, size_t nbytes)
{
    uint8_t out[PERHAPS_HASH_NBYTES];
    hasher->function(hasher->context, key, nbytes, out);
    return hash_none(hasher, out, sizeof out);
}

/* The lowest byte of the seed says how many bytes the group has. */
static struct keyhash hash_grouped(const struct hasher *hasher, const void *key, size_t nbytes)
{
    const size_t most = hasher->seed & UINT8_MAX, own = nbytes < most ? nbytes : most;
    struct keyhash hash = hash_xxh3(hasher, key, nbytes);
    hash.mark = hash.mark << 32 | hash_xxh3_64(hasher, key, own).place >> 32;
    return hash;
}

/* Hash keys by hash(): each with its own length, of one length that may be a constant, or
 * between offsets.  The compiler inlines hash() into them, so that no key costs an indirect
 * call. */
static ALWAYS_INLINE void run_each(const struct hasher *hasher, const struct perhaps_key *key,
                                   size_t n, struct keyhash *out, hash_function *hash)
{
    for (size_t i = 0; i < n; i++)
        out[i] = hash(hasher, key[i].bytes, key[i].nbytes);
}

static ALWAYS_INLINE void run_packed(const struct hasher *hasher, const uint8_t *packed,
                                     size_t nbytes, size_t n, struct keyhash *out,
                                     hash_function *hash)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = hash(hasher, packed, nbytes);
        packed = nbytes ? packed + nbytes : packed; /* C does not define NULL + 0 */
    }
}

static ALWAYS_INLINE void run_between(const struct hasher *hasher,
                                      const struct perhaps_keys *keys, size_t first, size_t n,
                                      struct keyhash *out, hash_function *hash)
{
    for (size_t i = 0; i < n; i++) {
        struct perhaps_key key = perhaps_keys_at(keys, first + i);
        out[i] = hash(hasher, key.bytes, key.nbytes);
    }
}

static ALWAYS_INLINE void run(const struct hasher *hasher, const struct perhaps_keys *keys,
                              size_t first, size_t n, struct keyhash *out, hash_function *hash)
{
    if (keys->each)
        run_each(hasher, keys->each + first, n, out, hash);
    else if (keys->offsets)
        run_between(hasher, keys, first, n, out, hash);
    else
        run_packed(hasher, keys_packed_at(keys, first), keys->key_nbytes, n, out, hash);
}

/* Hashes keys by XXH3.  The usual lengths get loops of their own, into which the compiler
 * inlines the part of inlined() that is for such a length.  For other keys it calls hash(). */
static ALWAYS_INLINE void run_xxh3(const struct hasher *hasher, const struct perhaps_keys *keys,
                                   size_t first, size_t n, struct keyhash *out,
                                   hash_function *inlined, hash_function *hash)
{
    const uint8_t *packed = keys->each ? NULL : keys_packed_at(keys, first);
    size_t nbytes = keys->each || keys->offsets ? 0 : keys->key_nbytes;
    if (nbytes == 8)
        run_packed(hasher, packed, 8, n, out, inlined);
    else if (nbytes == 16)
        run_packed(hasher, packed, 16, n, out, inlined);
    else if (nbytes == 20)
        run_packed(hasher, packed, 20, n, out, inlined);
    else if (nbytes == 32)
        run_packed(hasher, packed, 32, n, out, inlined);
    else
        run(hasher, keys, first, n, out, hash);
}

/* Return whether keys lie one after the other, of 8 bytes each: then vectors hash them. */
static bool are_integers(const struct perhaps_keys *keys)
{
    return !keys->each && !keys->offsets && keys->key_nbytes == sizeof(uint64_t);
}

/* ---- The table of hashes ----------------------------------------------------------------- */

static void run_keys_xxh3(const struct hasher *hasher, const struct perhaps_keys *keys,
                          size_t first, size_t n, struct keyhash *out)
{
#if defined(__x86_64__)
    if (hasher->cpu == CPU_AVX512 && are_integers(keys)) {
        hash_integers_128_avx512(keys_packed_at(keys, first), n, hasher->seed, out);
        return;
    }
#endif
    run_xxh3(hasher, keys, first, n, out, any, hash_xxh3);
}

static hash_integers *const integers_64[CPU_COUNT] = {
    [CPU_SCALAR] = hash_integers_64_scalar,
#if defined(__x86_64__)
    [CPU_AVX2] = hash_integers_64_avx2,
    [CPU_AVX512] = hash_integers_64_avx512,
#elif defined(__aarch64__)
    [CPU_NEON] = hash_integers_64_scalar, /* the compiler makes vectors of it there */
#elif defined(PERHAPS_SIMD128)
    [CPU_SIMD128] = hash_integers_64_scalar,
#endif
};

static void run_keys_xxh3_64(const struct hasher *hasher, const struct perhaps_keys *keys,
                             size_t first, size_t n, struct keyhash *out)
{
    if (are_integers(keys))
        integers_64[hasher->cpu](keys_packed_at(keys, first), n, hasher->flip, out);
    else
        run_xxh3(hasher, keys, first, n, out, any_64, hash_xxh3_64);
}

/* Defines run_keys_NAME, into which the compiler inlines hash_NAME. */
#define RUN_KEYS(name)                                                                         \
    static void run_keys_##name(const struct hasher *hasher, const struct perhaps_keys *keys,  \
                                size_t first, size_t n, struct keyhash *out)                   \
    {                                                                                          \
        run(hasher, keys, first, n, out, hash_##name);                                         \
    }
RUN_KEYS(none)
RUN_KEYS(custom)
RUN_KEYS(none_64)
RUN_KEYS(decimal)
RUN_KEYS(grouped)

const struct hash_row hash_rows[PERHAPS_HASH_COUNT] = {
    [PERHAPS_HASH_XXH3] = { "xxh3", .bits = 128, .seeded = true, .one = hash_xxh3,
                            .run = run_keys_xxh3 },
#ifdef PERHAPS_WITHOUT_SODIUM
    [PERHAPS_HASH_SIP] = { "sip", .bits = 128, .needs = HASH_NEEDS_SECRET },
#else
    [PERHAPS_HASH_SIP] = { "sip", .bits = 128, .needs = HASH_NEEDS_SECRET, .one = hash_sip,
                           .run = hash_sip_run },
#endif
    [PERHAPS_HASH_NONE] = { "none", .bits = 128, .takes = PERHAPS_HASH_NBYTES, .one = hash_none,
                            .run = run_keys_none },
    [PERHAPS_HASH_CUSTOM] = { "custom", .bits = 128, .needs = HASH_NEEDS_FUNCTION,
                              .one = hash_custom, .run = run_keys_custom },
    [PERHAPS_HASH_XXH3_64] = { "xxh3-64", .bits = 64, .seeded = true, .one = hash_xxh3_64,
                               .run = run_keys_xxh3_64 },
    [PERHAPS_HASH_NONE_64] = { "none-64", .bits = 64, .takes = sizeof(uint64_t),
                               .one = hash_none_64, .run = run_keys_none_64 },
    [PERHAPS_HASH_INTEGER] = { "integer", .bits = 64, .integers = true, .one = hash_decimal,
                               .run = run_keys_decimal },
    [PERHAPS_HASH_GROUPED] = { "xxh3-grouped", .bits = 128, .seeded = true, .grouped = true,
                               .one = hash_grouped, .run = run_keys_grouped },
};

/* ---- Hashing by it ----------------------------------------------------------------------- */

void hasher_run(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                size_t n, struct keyhash *out)
{
    if (!keys->each && keys->hashed) {
        for (size_t i = 0; i < n; i++)
            out[i] = hash_none(hasher, keys->hashed[first + i].bytes, PERHAPS_HASH_NBYTES);
        return;
    }
    hash_row_of(hasher)->run(hasher, keys, first, n, out);
}

bool hasher_one(const struct hasher *hasher, const void *key, size_t key_nbytes,
                struct keyhash *out)
{
    const struct hash_row *row = hash_row_of(hasher);
    if (!hasher->ready || (row->takes && key_nbytes != row->takes))
        return false;
    *out = row->one(hasher, key, key_nbytes);
    return !row->integers || !out->mark;
}

/* Returns how many keys there are before the first one that is no integer. */
static size_t count_integers(const struct perhaps_keys *keys)
{
    size_t n = 0;
    uint64_t value;
    for (; n < keys->count; n++) {
        struct perhaps_key key = perhaps_keys_at(keys, n);
        if (!decimal_read(key.bytes, key.nbytes, &value))
            break;
    }
    return n;
}

size_t hasher_accepts(const struct hasher *hasher, const struct perhaps_keys *keys)
{
    const size_t only = hash_row_of(hasher)->takes;
    size_t n = 0;
    if (!keys->each && keys->hashed)
        return keys->count;
    if (hash_row_of(hasher)->integers)
        return count_integers(keys);
    if (!only)
        return keys->count;
    if (!keys->each && !keys->offsets)
        return keys->key_nbytes == only ? keys->count : 0;
    while (n < keys->count && perhaps_keys_at(keys, n).nbytes == only)
        n++;
    return n;
}

int hasher_run_all(const struct hasher *hasher, const struct perhaps_keys *keys,
                   struct perhaps_hashed *hashed)
{
    enum { STEP = 128 };
    if (!hasher->ready)
        return PERHAPS_ERR_SECRET;
    const bool integers = hash_row_of(hasher)->integers; /* read once: the mark tells */
    if (!integers && hasher_accepts(hasher, keys) < keys->count)
        return PERHAPS_ERR_ARGUMENT;
    for (size_t at = 0; at < keys->count; at += STEP) {
        struct keyhash step[STEP];
        size_t n = keys->count - at < STEP ? keys->count - at : STEP;
        hasher_run(hasher, keys, at, n, step);
        for (size_t i = 0; integers && i < n; i++)
            if (step[i].mark)
                return PERHAPS_ERR_ARGUMENT;
        memcpy(hashed + at, step, n * sizeof *step);
    }
    return 0;
}

/* Returns the check value.  The text has 16 bytes, or as many as the hash takes. */
static uint64_t check_value(const struct hasher *hasher)
{
    static const char text[] = "perhaps, or not.";
    size_t only = hash_row_of(hasher)->takes;
    struct perhaps_keys keys = perhaps_keys_packed(text, only ? only : sizeof text - 1, 1);
    struct keyhash h;
    hasher_run(hasher, &keys, 0, 1, &h);
    return h.place;
}

/* It is kept where it may be asked for without the secret or function. */
uint64_t hasher_check(const struct hasher *hasher)
{
    return hash_row_of(hasher)->needs ? hasher->check : check_value(hasher);
}

/* Copies what this hash needs of what the caller gave: the secret, or function and context.
 * Returns whether it was given. */
static bool take_secret(struct hasher *hasher, const struct perhaps_hashing *hashing)
{
    switch (hash_row_of(hasher)->needs) {
    case HASH_NEEDS_SECRET:
        if (hashing->secret)
            memcpy(hasher->secret, hashing->secret, sizeof hasher->secret);
        return hashing->secret;
    case HASH_NEEDS_FUNCTION:
        hasher->function = hashing->function;
        hasher->context = hashing->context;
        return hashing->function;
    default:
        return true;
    }
}

bool is_note(const char *text, size_t nbytes)
{
    const char delete = 127;
    for (size_t i = 0; i < nbytes; i++)
        if ((uint8_t)text[i] < ' ' || text[i] == delete)
            return false;
    return nbytes <= PERHAPS_NOTE_MAX;
}

int hasher_create(struct hasher *hasher, const struct perhaps_hashing *hashing)
{
    const char *note = hashing->note ? hashing->note : "";
    *hasher = (struct hasher){
        .id = hashing->hash, .seed = hashing->seed, .ready = true, .note = note
    };
    if ((unsigned)hasher->id >= PERHAPS_HASH_COUNT || !is_note(note, strlen(note)))
        return PERHAPS_ERR_ARGUMENT;
    if (!hash_row_of(hasher)->one)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!take_secret(hasher, hashing)) {
        if (hash_row_of(hasher)->needs == HASH_NEEDS_FUNCTION)
            return PERHAPS_ERR_SECRET;
        if (random_bytes(hasher->secret, sizeof hasher->secret))
            return PERHAPS_ERR_IO;
    }
    if (!hash_row_of(hasher)->seeded)
        hasher->seed = 0;
    else if (!hasher->seed && random_bytes(&hasher->seed, sizeof hasher->seed))
        return PERHAPS_ERR_IO;
    hasher->flip = xxh3_flip(hasher->seed);
    hasher->check = check_value(hasher);
    return 0;
}

int hasher_restore(struct hasher *hasher, uint32_t id, uint64_t seed, const uint64_t *check,
                   const struct perhaps_hashing *hashing, bool without_secret)
{
    if (id >= PERHAPS_HASH_COUNT)
        return PERHAPS_ERR_VERSION;
    *hasher = (struct hasher){
        .id = (enum perhaps_hash)id, .seed = seed, .check = check ? *check : 0, .note = ""
    };
    hasher->flip = xxh3_flip(seed);
    if (take_secret(hasher, hashing)) {
        if (!hash_row_of(hasher)->one)
            return PERHAPS_ERR_UNSUPPORTED;
        hasher->ready = !check || check_value(hasher) == *check;
        return hasher->ready ? 0 : PERHAPS_ERR_SECRET;
    }
    return without_secret ? 0 : PERHAPS_ERR_SECRET;
}

bool hasher_equal(const struct hasher *a, const struct hasher *b)
{
    return a->id == b->id && a->seed == b->seed && hasher_check(a) == hasher_check(b);
}

size_t perhaps_hash_takes(enum perhaps_hash hash)
{
    return (unsigned)hash < PERHAPS_HASH_COUNT ? hash_rows[hash].takes : 0;
}

const char *perhaps_hash_name(enum perhaps_hash hash)
{
    return (unsigned)hash < PERHAPS_HASH_COUNT ? hash_rows[hash].name : NULL;
}
