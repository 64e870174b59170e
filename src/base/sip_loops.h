/* sip_loops.h - SipHash-2-4 with 128 bits (Aumasson and Bernstein, INDOCRYPT 2012) of several
 * keys at once, one in each lane of some vectors.  hash_avx2.c and hash_avx512.c include it
 * behind SIP_LANES, the lanes of a vector.
 *
 * A key is taken in blocks of 8 bytes.  The last one has the bytes that are left, and the
 * length.  No byte behind a key is read. */
#include "hash.h"

/* While one vector waits for a result, another is worked on. */
enum { SIP_VECTORS = 2, SIP_KEYS = SIP_VECTORS * SIP_LANES, SIP_BLOCK = sizeof(uint64_t) };

/* 'i' is the name of the variable that the loop declares, and so stands in no parentheses. */
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define EACH_VECTOR(i) for (unsigned i = 0; i < SIP_VECTORS; i++)

typedef uint64_t sip_lanes __attribute__((vector_size(SIP_LANES * sizeof(uint64_t))));

/* A word of each key. */
struct sip_words {
    sip_lanes at[SIP_VECTORS];
};

/* The state of each key: v0 to v3 in the paper. */
struct sip {
    struct sip_words v[4];
};

static ALWAYS_INLINE void sip_add(struct sip_words *a, const struct sip_words *b)
{
    EACH_VECTOR(i)
        a->at[i] += b->at[i];
}

static ALWAYS_INLINE void sip_flip(struct sip_words *a, const struct sip_words *b)
{
    EACH_VECTOR(i)
        a->at[i] ^= b->at[i];
}

static ALWAYS_INLINE sip_lanes sip_rotated(sip_lanes x, int left)
{
#if SIP_LANES == 4 /* AVX2 has no rotation, but can move bytes */
    const __m256i by_16 =
        _mm256_setr_epi8(6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13, /* and again */
                         6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13);
    if (left == 32)
        return (sip_lanes)_mm256_shuffle_epi32((__m256i)x, _MM_SHUFFLE(2, 3, 0, 1));
    if (left == 16)
        return (sip_lanes)_mm256_shuffle_epi8((__m256i)x, by_16);
#endif
    return x << left | x >> (64 - left);
}

static ALWAYS_INLINE void sip_rotate(struct sip_words *a, int left)
{
    EACH_VECTOR(i)
        a->at[i] = sip_rotated(a->at[i], left);
}

static ALWAYS_INLINE void sip_rounds(struct sip *s, unsigned n)
{
    struct sip_words *a = &s->v[0], *b = &s->v[1], *c = &s->v[2], *d = &s->v[3];
    for (unsigned i = 0; i < n; i++) {
        sip_add(a, b);
        sip_add(c, d);
        sip_rotate(b, 13);
        sip_rotate(d, 16);
        sip_flip(b, a);
        sip_flip(d, c);
        sip_rotate(a, 32);
        sip_add(c, b);
        sip_add(a, d);
        sip_rotate(b, 17);
        sip_rotate(d, 21);
        sip_flip(b, c);
        sip_flip(d, a);
        sip_rotate(c, 32);
    }
}

static ALWAYS_INLINE struct sip_words sip_constant(uint64_t word)
{
    const sip_lanes zero = { 0 };
    struct sip_words all;
    EACH_VECTOR(i)
        all.at[i] = zero + word;
    return all;
}

static ALWAYS_INLINE void sip_start(struct sip *s, const uint8_t *secret)
{
    const uint64_t first = load64(secret), second = load64(secret + 8);
    s->v[0] = sip_constant(first ^ UINT64_C(0x736f6d6570736575));
    s->v[1] = sip_constant(second ^ UINT64_C(0x646f72616e646f6d) ^ 0xee);
    s->v[2] = sip_constant(first ^ UINT64_C(0x6c7967656e657261));
    s->v[3] = sip_constant(second ^ UINT64_C(0x7465646279746573));
}

static ALWAYS_INLINE void sip_take(struct sip *s, const struct sip_words *block)
{
    sip_flip(&s->v[3], block);
    sip_rounds(s, 2);
    sip_flip(&s->v[0], block);
}

/* Returns half of each hash; 'constant' tells the halves apart. */
static ALWAYS_INLINE struct sip_words sip_half(struct sip *s, unsigned v, uint64_t constant)
{
    const struct sip_words flip = sip_constant(constant);
    struct sip_words half;
    sip_flip(&s->v[v], &flip);
    sip_rounds(s, 4);
    EACH_VECTOR(i)
        half.at[i] = s->v[0].at[i] ^ s->v[1].at[i] ^ s->v[2].at[i] ^ s->v[3].at[i];
    return half;
}

/* Writes the hashes of the first n keys. */
static ALWAYS_INLINE void sip_end(struct sip *s, size_t n, struct keyhash *out)
{
    const struct sip_words place = sip_half(s, 2, 0xee), mark = sip_half(s, 1, 0xdd);
    for (size_t i = 0; i < SIP_KEYS && i < n; i++)
        out[i] = (struct keyhash){ place.at[i / SIP_LANES][i % SIP_LANES],
                                   mark.at[i / SIP_LANES][i % SIP_LANES] };
}

/* Returns the last block of a key. */
static ALWAYS_INLINE uint64_t sip_last(const uint8_t *key, size_t nbytes)
{
    const size_t rest = nbytes % SIP_BLOCK;
    uint64_t block = (uint64_t)nbytes << 56;
    if (nbytes >= SIP_BLOCK) /* two shifts, since one may be by 64 */
        return block | load64(key + nbytes - SIP_BLOCK) >> 8 >> (56 - 8 * rest);
    if (rest >= sizeof(uint32_t))
        return block | load32(key) | (uint64_t)load32(key + rest - 4) << 8 * (rest - 4);
    for (size_t i = 0; i < rest; i++)
        block |= (uint64_t)key[i] << 8 * i;
    return block;
}

/* Returns the blocks at these addresses. */
static ALWAYS_INLINE struct sip_words sip_load(const uint8_t *const *at)
{
    struct sip_words blocks;
    EACH_VECTOR(i) {
        const uint8_t *const *a = at + i * SIP_LANES;
#if SIP_LANES == 4
        blocks.at[i] = (sip_lanes){ load64(a[0]), load64(a[1]), load64(a[2]), load64(a[3]) };
#else
        blocks.at[i] = (sip_lanes){ load64(a[0]), load64(a[1]), load64(a[2]), load64(a[3]),
                                    load64(a[4]), load64(a[5]), load64(a[6]), load64(a[7]) };
#endif
    }
    return blocks;
}

/* Takes block 'number' of the keys that have one.  The others have ended, and are left alone.
 * last[i] is the last block of key i. */
static ALWAYS_INLINE void sip_take_of_some(struct sip *s, const struct perhaps_key *key,
                                           const uint64_t *last, size_t number)
{
    const struct sip before = *s;
    const uint8_t *at[SIP_KEYS];
    uint64_t mask[SIP_KEYS];
    struct sip_words block, took;
    for (size_t i = 0; i < SIP_KEYS; i++) {
        const size_t whole = key[i].nbytes / SIP_BLOCK;
        const uint8_t *bytes = key[i].bytes, *end = (const uint8_t *)&last[i];
        at[i] = number < whole ? bytes + number * SIP_BLOCK : end;
        mask[i] = number <= whole ? UINT64_MAX : 0;
    }
    memcpy(&took, mask, sizeof took);
    block = sip_load(at);
    sip_take(s, &block);
    for (unsigned v = 0; v < 4; v++)
        EACH_VECTOR(i)
            s->v[v].at[i] = (s->v[v].at[i] & took.at[i]) | (before.v[v].at[i] & ~took.at[i]);
}

/* Hashes SIP_KEYS keys as hash_sip_lanes tells, and writes the hashes of the first n. */
static NOINLINE void sip_step(const uint8_t *secret, const struct perhaps_key *key, size_t n,
                              struct keyhash *out)
{
    const size_t least = key[0].nbytes / SIP_BLOCK, most = key[SIP_KEYS - 1].nbytes / SIP_BLOCK;
    const uint8_t *at[SIP_KEYS];
    uint64_t last[SIP_KEYS];
    struct sip_words block;
    struct sip s;
    for (size_t i = 0; i < SIP_KEYS; i++) {
        at[i] = key[i].bytes;
        last[i] = sip_last(at[i], key[i].nbytes);
    }
    sip_start(&s, secret);
    for (size_t number = 0; number < least; number++) {
        block = sip_load(at);
        sip_take(&s, &block);
        for (size_t i = 0; i < SIP_KEYS; i++)
            at[i] += SIP_BLOCK;
    }
    if (least == most) {
        memcpy(&block, last, sizeof block);
        sip_take(&s, &block);
    } else
        for (size_t number = least; number <= most; number++)
            sip_take_of_some(&s, key, last, number);
    sip_end(&s, n, out);
}

/* Behind the last key there are others like it. */
static ALWAYS_INLINE void sip_run(const uint8_t *secret, const struct perhaps_key *keys,
                                  size_t n, struct keyhash *out)
{
    size_t i = 0;
    for (; i + SIP_KEYS <= n; i += SIP_KEYS)
        sip_step(secret, keys + i, SIP_KEYS, out + i);
    if (i < n) {
        struct perhaps_key some[SIP_KEYS];
        for (size_t k = 0; k < SIP_KEYS; k++)
            some[k] = keys[i + k < n ? i + k : n - 1];
        sip_step(secret, some, n - i, out + i);
    }
}
