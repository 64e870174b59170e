/* siphash13.h - SipHash-1-3 of a string and its length.
 *
 * J.-P. Aumasson and D. J. Bernstein: SipHash: a fast short-input PRF (Indocrypt 2012), with
 * one round for each word and three at the end, as hash tables of Rust have it.  libsodium has
 * SipHash-2-4 only. */
#ifndef SIPHASH13_H
#define SIPHASH13_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct siphash13 {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t siphash13_turn(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void siphash13_round(struct siphash13 *s)
{
    s->v0 += s->v1;
    s->v1 = siphash13_turn(s->v1, 13) ^ s->v0;
    s->v0 = siphash13_turn(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = siphash13_turn(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = siphash13_turn(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = siphash13_turn(s->v1, 17) ^ s->v2;
    s->v2 = siphash13_turn(s->v2, 32);
}

static inline void siphash13_word(struct siphash13 *s, uint64_t word)
{
    s->v3 ^= word;
    siphash13_round(s);
    s->v0 ^= word;
}

/* Returns the hash, under a key of 16 bytes, of 8 bytes that hold 'nbytes' and then the bytes:
 * so Rust hashes a slice of bytes. */
static inline uint64_t siphash13_slice(const void *bytes, size_t nbytes, const uint64_t key[2])
{
    struct siphash13 s = { key[0] ^ UINT64_C(0x736f6d6570736575),
                           key[1] ^ UINT64_C(0x646f72616e646f6d),
                           key[0] ^ UINT64_C(0x6c7967656e657261),
                           key[1] ^ UINT64_C(0x7465646279746573) };
    const uint8_t *at = bytes, *end = at + nbytes;
    uint64_t word = 0;
    siphash13_word(&s, nbytes);
    for (; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        siphash13_word(&s, word);
    }
    word = 0;
    if (at < end)
        memcpy(&word, at, (size_t)(end - at));
    siphash13_word(&s, word | (uint64_t)(nbytes + 8) << 56);
    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        siphash13_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif
