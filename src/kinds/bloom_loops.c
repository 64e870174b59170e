/* bloom_loops.c - the loops of classic Bloom filters, for each instruction set. */
#include "bloom.h"

static ALWAYS_INLINE void prefetch_bits(const uint8_t *body, uint64_t nbits, uint64_t bits,
                                        struct keyhash key)
{
    for (uint64_t i = 0; i < bits; i++) {
        PREFETCH(body + (scale64(key.place, nbits) >> 3));
        key.place = bloom_next_place(key.place, key.mark);
    }
}

static void bloom_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_bits(b->bytes, b->field[NBITS], b->field[KEY_BITS], keys[i]);
}

/* Most absent keys fail at one of their first bits.  So only the first two are prefetched for
 * each key, and the others just for the keys of a chunk that pass these two. */
enum { FIRST_BITS = 2, CHUNK = 64 };

/* Sets the bit of the mask in a byte.  Returns the mask if the bit was clear before, else 0. */
typedef unsigned byte_adder(uint8_t *at, unsigned mask);

static ALWAYS_INLINE unsigned byte_add(uint8_t *at, unsigned mask)
{
    unsigned byte = __atomic_load_n(at, __ATOMIC_RELAXED);
    __atomic_store_n(at, (uint8_t)(byte | mask), __ATOMIC_RELAXED);
    return ~byte & mask;
}

/* Looks first, since most bits of a filled body are set already and an atomic operation is
 * expensive. */
static ALWAYS_INLINE unsigned byte_add_atomic(uint8_t *at, unsigned mask)
{
    if (__atomic_load_n(at, __ATOMIC_RELAXED) & mask)
        return 0;
    return ~(unsigned)__atomic_fetch_or(at, (uint8_t)mask, __ATOMIC_RELEASE) & mask;
}

/* Adds a key.  Returns whether all its bits were set before. */
static ALWAYS_INLINE bool add_key(const struct body *b, struct keyhash key, byte_adder *add)
{
    uint8_t *body = b->bytes;
    uint64_t nbits = b->field[NBITS], bits = b->field[KEY_BITS]; /* add() may write anywhere */
    unsigned misses = 0;
    for (uint64_t i = 0; i < bits; i++) {
        uint64_t bit = scale64(key.place, nbits);
        misses |= add(&body[bit >> 3], 1U << (bit & 7));
        key.place = bloom_next_place(key.place, key.mark);
    }
    return !misses;
}

static ALWAYS_INLINE size_t add_all(const struct body *b, const struct keyhash *keys,
                                    const struct keyhash *ahead, size_t n, bool *answer,
                                    byte_adder *add)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_bits(b->bytes, b->field[NBITS], b->field[KEY_BITS], ahead[i]);
        answer[i] = add_key(b, keys[i], add);
        found += answer[i];
    }
    return found;
}

#define NO_AVX512 1 /* nothing here is a vector */
#define LOOPS     "../kinds/bloom_loops.h"
#include "../base/each_cpu.h"

#define ROW(cpu)                                                                               \
    {                                                                                          \
        .prefetch = bloom_prefetch, .contains = bloom_contains_##cpu, .add = bloom_add_##cpu,  \
        .contains_one = bloom_contains_one_##cpu, .add_one = bloom_add_one_##cpu,              \
        .contains_integer = bloom_contains_integer_##cpu,                                      \
        .add_integer = bloom_add_integer_##cpu,                                                \
    }
const struct loops bloom_loops[CPU_COUNT] = { EACH_CPU(ROW) };

/* ---- Adds while others write ------------------------------------------------------------- */

size_t bloom_add_atomic(const struct body *b, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool *answer)
{
    return add_all(b, keys, ahead, n, answer, byte_add_atomic);
}
