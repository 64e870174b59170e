/* bloom.h - the loops of classic Bloom filters, for any instruction set.
 *
 * The including file may have defined BYTE_ADD and
 *   unsigned byte_add(byte, mask)   sets the mask's bit; the bit, if it was not set before */
#ifndef KERNELS_BLOOM_H
#define KERNELS_BLOOM_H

#include "layout.h"

#ifndef BYTE_ADD
static ALWAYS_INLINE unsigned byte_add(uint8_t *at, unsigned mask)
{
    unsigned byte = __atomic_load_n(at, __ATOMIC_RELAXED);
    __atomic_store_n(at, (uint8_t)(byte | mask), __ATOMIC_RELAXED);
    return ~byte & mask;
}
#endif

static ALWAYS_INLINE void prefetch_bits(const uint8_t *body, uint64_t nbits, uint64_t bits,
                                        struct keyhash key)
{
    for (uint64_t i = 0; i < bits; i++) {
        PREFETCH(body + (scale64(key.place, nbits) >> 3));
        key.place = bloom_next_place(key.place, key.mark);
    }
}

static void bloom_prefetch(const uint8_t *body, const uint64_t *field,
                           const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_bits(body, field[NBITS], field[KEY_BITS], keys[i]);
}

/* Looks at so many bits, with no branch to mispredict, and moves the key behind them. */
static ALWAYS_INLINE bool bits_set(const uint8_t *body, uint64_t nbits, uint64_t bits,
                                   struct keyhash *key)
{
    unsigned all = 1;
    for (uint64_t b = 0; b < bits; b++) {
        uint64_t bit = scale64(key->place, nbits);
        all &= (unsigned)__atomic_load_n(&body[bit >> 3], __ATOMIC_RELAXED) >> (bit & 7);
        key->place = bloom_next_place(key->place, key->mark);
    }
    return all;
}

static ALWAYS_INLINE bool bits_add(uint8_t *body, uint64_t nbits, uint64_t bits,
                                   struct keyhash key)
{
    unsigned misses = 0;
    for (uint64_t b = 0; b < bits; b++) {
        uint64_t bit = scale64(key.place, nbits);
        misses |= byte_add(&body[bit >> 3], 1U << (bit & 7));
        key.place = bloom_next_place(key.place, key.mark);
    }
    return !misses;
}

/* Most absent keys fail at one of the first bits: only those are fetched ahead, and the others
 * for the keys that pass. */
enum { FIRST_BITS = 2, CHUNK = 64 };

static inline size_t chunk_contains(const uint8_t *body, uint64_t nbits, uint64_t bits,
                                    const struct keyhash *keys, const struct keyhash *ahead,
                                    size_t n, bool *answer)
{
    uint64_t first = bits < FIRST_BITS ? bits : FIRST_BITS;
    struct keyhash passed[CHUNK];
    size_t number[CHUNK], npassed = 0, found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_bits(body, nbits, first, ahead[i]);
        struct keyhash key = keys[i];
        answer[i] = bits_set(body, nbits, first, &key);
        passed[npassed] = key;
        number[npassed] = i;
        npassed += answer[i];
    }
    for (size_t i = 0; i < npassed; i++)
        prefetch_bits(body, nbits, bits - first, passed[i]);
    for (size_t i = 0; i < npassed; i++) {
        bool all = bits_set(body, nbits, bits - first, &passed[i]);
        answer[number[i]] = all;
        found += all;
    }
    return found;
}

static size_t bloom_contains(const uint8_t *body, const uint64_t *field,
                             const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                             bool *answer)
{
    size_t found = 0;
    for (size_t at = 0; at < n; at += CHUNK)
        found += chunk_contains(body, field[NBITS], field[KEY_BITS], keys + at, ahead + at,
                                n - at < CHUNK ? n - at : CHUNK, answer + at);
    return found;
}

static size_t bloom_add(uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_bits(body, field[NBITS], field[KEY_BITS], ahead[i]);
        answer[i] = bits_add(body, field[NBITS], field[KEY_BITS], keys[i]);
        found += answer[i];
    }
    return found;
}

/* Stops at the first bit that is not set: nothing was fetched, and every access counts. */
static bool bloom_contains_one(const uint8_t *body, const uint64_t *field, struct keyhash key)
{
    for (uint64_t b = 0; b < field[KEY_BITS]; b++) {
        uint64_t bit = scale64(key.place, field[NBITS]);
        if (!(__atomic_load_n(&body[bit >> 3], __ATOMIC_RELAXED) >> (bit & 7) & 1))
            return false;
        key.place = bloom_next_place(key.place, key.mark);
    }
    return true;
}

static bool bloom_add_one(uint8_t *body, const uint64_t *field, struct keyhash key)
{
    return bits_add(body, field[NBITS], field[KEY_BITS], key);
}

#define BLOOM_LOOPS                                                                            \
    {                                                                                          \
        .prefetch = bloom_prefetch, .contains = bloom_contains, .add = bloom_add,              \
        .contains_one = bloom_contains_one, .add_one = bloom_add_one,                          \
    }

#endif
