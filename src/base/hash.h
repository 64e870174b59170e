/* hash.h - hashes the bytes of a key to 128 bits.
 *
 * The public functions hash each key once.  Everything behind them sees only hashes. */
#ifndef HASH_H
#define HASH_H

#include "cpu.h"
#include "decimal.h"
#include "keyhash.h"
#include "xxh3.h"
#include <perhaps.h>

struct perhaps_hashed; /* perhaps_fast.h */

struct hasher {
    enum perhaps_hash id;
    enum cpu cpu : 8;       /* which instructions may hash integers faster */
    bool ready;             /* false: opened without its secret or function */
    uint64_t seed;          /* xxh3; 0 for other hashes */
    uint64_t flip;          /* xxh3 of 64 bits: xxh3_flip() of the seed */
    uint64_t check;         /* of a hash that needs something: hasher_check() */
    union {                 /* what the hash needs: its row tells */
        uint8_t secret[16]; /* sip */
        struct {            /* custom */
            void (*function)(void *context, const void *key, size_t key_nbytes, uint8_t *hash);
            void *context; /* passed to 'function' */
        };
    };
    const char *note; /* what was done to keys before: not NULL; not the hasher's own */
};

typedef struct keyhash hash_function(const struct hasher *hasher, const void *key,
                                     size_t nbytes);

/* What there is to know of a hash.  A new one is a row of hash_rows, in hash.c. */
struct hash_row {
    const char *name;
    uint8_t bits;  /* 128; or 64: the mark follows from the place */
    uint8_t takes; /* the only length of keys, in bytes; 0: any */
    bool seeded;   /* by 'seed' of the hasher */
    bool integers; /* nothing is hashed: a key is an integer, which is its place; the hash of
                    * anything else has a mark, which no integer has */
    bool grouped;  /* the lowest 32 bits of the mark are those of the key's group */
    enum { HASH_NEEDS_NOTHING, HASH_NEEDS_SECRET, HASH_NEEDS_FUNCTION } needs;
    hash_function *one; /* NULL: this build does not have it */

    /* Hashes keys first .. first+n-1, which are not hashed yet: see hasher_run(). */
    void (*run)(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                size_t n, struct keyhash *out);
};

extern const struct hash_row hash_rows[PERHAPS_HASH_COUNT];

static inline const struct hash_row *hash_row_of(const struct hasher *hasher)
{
    return &hash_rows[hasher->id];
}

/* Returns the hash that has this place, where it has 64 bits. */
static inline struct keyhash hash_of_place(const struct hasher *hasher, uint64_t place)
{
    return hash_row_of(hasher)->integers ? (struct keyhash){ .place = place }
                                         : keyhash_from_64(place);
}

/* Returns whether these bytes can be a note: there are not too many, and no control characters
 * are among them. */
bool is_note(const char *text, size_t nbytes);

/* Sets up the hash of a new filter, and draws the seed or the secret if the caller gave none.
 * Returns 0; PERHAPS_ERR_SECRET (custom without a function); PERHAPS_ERR_ARGUMENT for an
 * unknown hash, or what can be no note; PERHAPS_ERR_UNSUPPORTED for one that this build does
 * not have; or PERHAPS_ERR_IO if the system gave no random bytes. */
int hasher_create(struct hasher *hasher, const struct perhaps_hashing *hashing);

/* Sets up the hash of a saved filter: id, seed and check value come from the file, the rest
 * from the caller.  'without_secret' allows a missing secret or function, and leaves 'ready'
 * false.  Returns 0; PERHAPS_ERR_SECRET if the secret or function is missing, or if the check
 * value shows that it is not the filter's; PERHAPS_ERR_VERSION for an unknown id; or
 * PERHAPS_ERR_UNSUPPORTED as above, unless it is to be opened without its secret.  'check'
 * may be NULL for a hash that needs neither: nothing is compared then. */
int hasher_restore(struct hasher *hasher, uint32_t id, uint64_t seed, const uint64_t *check,
                   const struct perhaps_hashing *hashing, bool without_secret);

/* Returns half of the hash of a fixed text, which tells another seed, secret or function
 * apart. */
uint64_t hasher_check(const struct hasher *hasher);

/* Returns whether both give the same hashes, as far as the check value tells. */
bool hasher_equal(const struct hasher *a, const struct hasher *b);

/* Returns the address of packed key 'index'.  'packed' may be NULL if keys have no bytes: then
 * nothing is added to it, since C does not define NULL + 0. */
static inline const uint8_t *keys_packed_at(const struct perhaps_keys *keys, size_t index)
{
    const uint8_t *packed = keys->packed;
    return keys->key_nbytes ? packed + index * keys->key_nbytes : packed;
}

/* Returns how many keys there are before the first one that this hash refuses: for its length,
 * or because it is no integer. */
size_t hasher_accepts(const struct hasher *hasher, const struct perhaps_keys *keys);

/* Hashes keys first .. first+n-1, which hasher_accepts() has counted. */
void hasher_run(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                size_t n, struct keyhash *out);

/* Hashes all keys.  Contract and errors are those of perhaps_hash_many(). */
int hasher_run_all(const struct hasher *hasher, const struct perhaps_keys *keys,
                   struct perhaps_hashed *hashed);

/* Hashes one key.  Returns false if the secret or function is missing, or if the hash does not
 * take the key. */
bool hasher_one(const struct hasher *hasher, const void *key, size_t key_nbytes,
                struct keyhash *out);

/* Hash a key by one hash each. */

struct keyhash hash_xxh3(const struct hasher *hasher, const void *key, size_t nbytes);
struct keyhash hash_xxh3_64(const struct hasher *hasher, const void *key, size_t nbytes);

/* Keys of up to 16 bytes, inlined. */
static ALWAYS_INLINE struct keyhash hash_xxh3_short(const struct hasher *hasher,
                                                    const void *key, size_t nbytes)
{
    return xxh3_short(key, nbytes, hasher->seed);
}

static ALWAYS_INLINE struct keyhash hash_xxh3_short_64(const struct hasher *hasher,
                                                       const void *key, size_t nbytes)
{
    return xxh3_short_64(key, nbytes, hasher->seed);
}

/* Keys of 8 bytes. */
static ALWAYS_INLINE struct keyhash hash_integer_64(const struct hasher *hasher,
                                                    const void *key, size_t nbytes)
{
    (void)nbytes;
    return xxh3_keyhash_64_of_8(load64(key), hasher->flip);
}

static ALWAYS_INLINE struct keyhash hash_none(const struct hasher *hasher, const void *key,
                                              size_t nbytes)
{
    (void)hasher;
    (void)nbytes;
    return (struct keyhash){ .place = load64(key), .mark = load64((const uint8_t *)key + 8) };
}

static ALWAYS_INLINE struct keyhash hash_none_64(const struct hasher *hasher, const void *key,
                                                 size_t nbytes)
{
    (void)hasher;
    (void)nbytes;
    return keyhash_from_64(load64(key));
}

/* The hash of an integer is the integer itself.  Of anything else it is one with a mark, which
 * no integer has. */
static ALWAYS_INLINE struct keyhash hash_decimal(const struct hasher *hasher, const void *key,
                                                 size_t nbytes)
{
    uint64_t value = 0;
    (void)hasher;
    if (decimal_read(key, nbytes, &value))
        return (struct keyhash){ .place = value };
    return (struct keyhash){ .mark = 1 };
}

/* Hashes n keys of 8 bytes each, one after the other in memory. */
typedef void hash_integers(const uint8_t *restrict packed, size_t n, uint64_t flip,
                           struct keyhash *restrict out);

/* By XXH3-64, for each instruction set (hash_loops.h). */
hash_integers hash_integers_64_scalar, hash_integers_64_avx2, hash_integers_64_avx512;

/* By XXH3-128, which needs the seed. */
void hash_integers_128_avx512(const uint8_t *packed, size_t n, uint64_t seed,
                              struct keyhash *out);

/* Overwrites bytes that were secret.  The compiler does not leave that out. */
void wipe(void *bytes, size_t nbytes);

/* ---- By SipHash (hash_sip.c) ------------------------------------------------------------- */

struct keyhash hash_sip(const struct hasher *hasher, const void *key, size_t nbytes);
void hash_sip_run(const struct hasher *hasher, const struct perhaps_keys *keys, size_t first,
                  size_t n, struct keyhash *out);

/* Hashes n keys under a secret of 16 bytes, for each instruction set (sip_loops.h).  Each key
 * has as many whole blocks of 8 bytes as the one before it, or more. */
typedef void hash_sip_lanes(const uint8_t *secret, const struct perhaps_key *keys, size_t n,
                            struct keyhash *out);

hash_sip_lanes hash_sip_avx2, hash_sip_avx512;

#endif
