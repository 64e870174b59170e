/* bloom_loops.c - the loops of classic Bloom filters, for each instruction set. */
#include "bloom.h"

/* Returns the aligned word that holds a bit: bit % 32 of it. */
static ALWAYS_INLINE uint32_t *word_of(const struct body *b, uint64_t bit)
{
    return (uint32_t *)(void *)b->bytes + bit / WORD_NBITS;
}

static ALWAYS_INLINE void prefetch_bits(const struct body *b, uint64_t bits, struct keyhash key)
{
    for (uint64_t i = 0; i < bits; i++) {
        PREFETCH(word_of(b, scale64(key.place, b->field[NBITS])));
        key.place = bloom_next_place(key.place, key.mark);
    }
}

static void bloom_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_bits(b, b->field[KEY_BITS], keys[i]);
}

/* Keys are looked up in chunks.  Most absent keys fail at one of their first bits.  All bits of
 * a key are prefetched at most NEAR keys before: those of more keys would drive each other out
 * of the cache. */
enum { CHUNK = 128, NEAR = 16 };

/* Of a chunk, the keys whose bits were all set so far. */
struct passed {
    uint64_t place[CHUNK];  /* of the last bit that was looked at */
    uint32_t number[CHUNK]; /* in the chunk */
};

/* Sets the bits of the mask in a word.  Returns the word as it was before. */
typedef uint32_t word_adder(uint32_t *word, uint32_t mask);

static ALWAYS_INLINE uint32_t word_add(uint32_t *word, uint32_t mask)
{
    uint32_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    __atomic_store_n(word, before | mask, __ATOMIC_RELAXED);
    return before;
}

/* Looks first, since most bits of a filled body are set already and an atomic operation is
 * expensive. */
static ALWAYS_INLINE uint32_t word_add_atomic(uint32_t *word, uint32_t mask)
{
    uint32_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    return before & mask ? before : __atomic_fetch_or(word, mask, __ATOMIC_RELEASE);
}

/* Adds a key.  Returns whether all its bits were set before. */
static ALWAYS_INLINE bool add_key(const struct body *b, struct keyhash key, word_adder *add)
{
    const struct body body = *b; /* add() may write anywhere */
    uint32_t all = 1;
    for (uint64_t i = 0; i < body.field[KEY_BITS]; i++) {
        uint64_t bit = scale64(key.place, body.field[NBITS]);
        all &= add(word_of(&body, bit), UINT32_C(1) << bit % WORD_NBITS) >> bit % WORD_NBITS;
        key.place = bloom_next_place(key.place, key.mark);
    }
    return all;
}

/* The last NEAR keys prefetch for the first ones ahead, others for those NEAR keys later. */
static ALWAYS_INLINE size_t add_all(const struct body *b, const struct keyhash *keys,
                                    const struct keyhash *ahead, size_t n, bool *answer,
                                    word_adder *add)
{
    size_t found = 0, near = n < NEAR ? n : NEAR;
    const struct keyhash *later = keys + near;
    for (size_t i = 0; i < n; i++) {
        later = i == n - near ? ahead : later;
        prefetch_bits(b, b->field[KEY_BITS], *later++);
        answer[i] = add_key(b, keys[i], add);
        found += answer[i];
    }
    return found;
}

#define NO_AVX512 1 /* nothing here is a vector */
#define LOOPS     "../kinds/lines/bloom_loops.h"
#include "../../base/each_cpu.h"

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
    return add_all(b, keys, ahead, n, answer, word_add_atomic);
}
