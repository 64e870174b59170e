/* bloom_bits.h - the bits of a key of a classic Bloom filter, and a loop over keys that sets
 * them.  The loops of all instruction sets are made of it, and adds while other processes
 * write. */
#ifndef BLOOM_BITS_H
#define BLOOM_BITS_H

#include "bloom.h"
#include "owners.h"

/* Returns the aligned word that holds a bit: bit % 32 of it. */
static LOOP_INLINE uint32_t *bloom_word_of(const struct body *b, uint64_t bit)
{
    return (uint32_t *)(void *)b->bytes + bit / WORD_NBITS;
}

static ALWAYS_INLINE void bloom_prefetch_bits(const struct body *b, uint64_t bits,
                                              struct keyhash key)
{
    for (uint64_t i = 0; i < bits; i++) {
        PREFETCH(bloom_word_of(b, scale64(key.place, b->geometry.field[NBITS])));
        key.place = bloom_next_place(key.place, key.mark);
    }
}

/* All bits of a key are prefetched at most NEAR keys before: those of more keys would drive
 * each other out of the cache. */
enum { NEAR = 16 };

/* Sets the bits of the mask in a word.  Returns the word as it was before. */
typedef uint32_t word_adder(uint32_t *word, uint32_t mask);

/* Adds a key.  Returns whether all its bits were set before. */
static LOOP_INLINE bool bloom_add_key(const struct body *b, struct keyhash key, word_adder *add)
{
    const struct body body = *b; /* add() may write anywhere */
    uint32_t all = 1;
    for (uint64_t i = 0; i < body.geometry.field[KEY_BITS]; i++) {
        uint64_t bit = scale64(key.place, body.geometry.field[NBITS]);
        all &=
            add(bloom_word_of(&body, bit), UINT32_C(1) << bit % WORD_NBITS) >> bit % WORD_NBITS;
        key.place = bloom_next_place(key.place, key.mark);
    }
    return all;
}

/* The last NEAR keys prefetch for the first ones ahead, others for those NEAR keys later. */
static LOOP_INLINE size_t bloom_add_all(const struct body *b, const struct keyhash *keys,
                                        const struct keyhash *ahead, size_t n, bool *answer,
                                        word_adder *add)
{
    size_t found = 0, near = n < NEAR ? n : NEAR;
    const struct keyhash *later = keys + near;
    for (size_t i = 0; i < n; i++) {
        later = i == n - near ? ahead : later;
        bloom_prefetch_bits(b, b->geometry.field[KEY_BITS], *later++);
        answer[i] = bloom_add_key(b, keys[i], add);
        found += answer[i];
    }
    return found;
}

/* Is a found_adder.  The upper half of a mark is the number of a bit in its byte. */
static inline void bloom_add_found(const struct body *b, const struct found *found, size_t n,
                                   bool *answer)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t *byte = b->bytes + found[i].offset;
        unsigned mask = 1U << (found[i].mark >> 32);
        unsigned before = __atomic_load_n(byte, __ATOMIC_RELAXED);
        __atomic_store_n(byte, (uint8_t)(before | mask), __ATOMIC_RELAXED);
        answer[found[i].mark & FOUND_INDEX] &= (before & mask) != 0;
    }
}

#endif
