/* bytes.h - little-endian integers in byte buffers, and 64 x 64 -> 128 bit products.
 *
 * Bodies are little-endian in a file, and the library uses them where they are mapped, without
 * converting them.  So the host must be little-endian, too.  All loads and stores go through
 * memcpy(), since the bytes of a header need not be aligned. */
#ifndef BYTES_H
#define BYTES_H

#include <stdint.h>
#include <string.h>

#include <perhaps.h>

#include "compiler.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "perhaps maps little-endian files into memory: big-endian hosts are not supported"
#endif

static inline uint64_t load64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store64(void *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline uint32_t load32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store32(void *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

/* Returns how many bits of 'word' are set.  The compiler turns a loop over this function into
 * vector instructions, which it does not do with __builtin_popcount(). */
static inline uint32_t bits_set32(uint32_t word)
{
    word -= word >> 1 & UINT32_C(0x55555555);
    word = (word & UINT32_C(0x33333333)) + (word >> 2 & UINT32_C(0x33333333));
    return ((word + (word >> 4)) & UINT32_C(0x0f0f0f0f)) * UINT32_C(0x01010101) >> 24;
}

/* A cache line, and the words of 32 bits in which kinds work on it. */
enum { LINE_NBYTES = 64, LINE_WORDS = 16, WORD_NBITS = 32 };

/* Odd multipliers without structure: 2^64 divided by the golden ratio, and the first digits of
 * pi.  (xxh3.h has those of e.) */
#define ODD_GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define ODD_PI     UINT64_C(0x243F6A8885A308D3)

/* Maps a uniform 64-bit number to 0 .. range-1 and returns it.  'range' may be any number, not
 * only a power of two: the result is the upper half of the product (multiply-shift). */
static inline uint64_t scale64(uint64_t uniform, uint64_t range)
{
#ifdef __wasm__ /* which has no such product: compilers call a function for it */
    const uint64_t low = UINT32_MAX;
    if (range <= low) /* as almost all are: two products are enough */
        return ((uniform >> 32) * range + ((uniform & low) * range >> 32)) >> 32;
    uint64_t a = (uniform >> 32) * (range & low), b = (uniform & low) * (range >> 32);
    uint64_t middle = ((uniform & low) * (range & low) >> 32) + (a & low) + b;
    return (uniform >> 32) * (range >> 32) + (a >> 32) + (middle >> 32);
#else
    return (uint64_t)(((unsigned __int128)uniform * range) >> 64);
#endif
}

/* Returns whether all reserved members of a public struct are zero.  A later version may give
 * them a meaning, which this version does not know, so callers refuse anything else. */
static inline bool is_unused(const uint64_t reserved[PERHAPS_RESERVED])
{
    uint64_t any = 0;
    for (int i = 0; i < PERHAPS_RESERVED; i++)
        any |= reserved[i];
    return any == 0;
}

/* Returns the smallest multiple of 'unit', a power of two, that is not less than n. */
static inline uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) & ~(unit - 1);
}

#endif
