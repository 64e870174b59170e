/* fold.c - makes a small body of a large one: lines and bits that are joined by OR. */
#include "fold.h"

#include <stdbool.h>
#include <stddef.h>

#include "../base/bytes.h"

uint64_t fold_round_up(uint64_t units)
{
    static const uint64_t multiples[] = { 720, 360, 240, 120, 60, 48, 24, 12, 6, 4, 2 };
    const uint64_t share = 200; /* the most that rounding may add: one part in so many */
    for (unsigned i = 0; i < sizeof multiples / sizeof *multiples; i++) {
        uint64_t more = (multiples[i] - units % multiples[i]) % multiples[i];
        if (more * share < units)
            return units + more;
    }
    return units;
}

/* ---- Units of whole lines --------------------------------------------------------------- */

enum { LINE_LONGS = LINE_NBYTES / 8 };

/* Joins 'factor' lines that lie 'step' bytes apart. */
static void join_lines(const uint8_t *from, uint8_t *to, uint64_t step, uint64_t factor)
{
    uint64_t joined[LINE_LONGS] = { 0 };
    for (uint64_t i = 0; i < factor; i++, from += step)
        for (unsigned w = 0; w < LINE_LONGS; w++)
            joined[w] |= load64(from + 8 * (size_t)w);
    memcpy(to, joined, sizeof joined);
}

void fold_units(const uint8_t *from, uint8_t *to, uint64_t units, uint64_t unit_nbytes,
                uint64_t factor)
{
    for (uint64_t unit = 0; unit < units; unit++, from += factor * unit_nbytes)
        for (uint64_t at = 0; at < unit_nbytes; at += LINE_NBYTES, to += LINE_NBYTES)
            join_lines(from + at, to, unit_nbytes, factor);
}

/* ---- Units of one bit ------------------------------------------------------------------- */

/* Factors up to this one are a product of small primes, by each of which the bits are folded in
 * a pass of its own.  With larger ones each bit of the small body is computed alone, which then
 * is as quick, since it has words of the large one to itself. */
enum { PASSES_FACTOR_MAX = 31, PASSES_NBYTES = 256 };

/* Returns whether one of n bits is set, from number 'first' on. */
static bool any_set(const uint8_t *from, uint64_t first, uint64_t n)
{
    uint64_t any = 0, last = first + n - 1;
    uint64_t low = UINT64_MAX << first % 64, high = UINT64_MAX >> (63 - last % 64);
    uint64_t word = first / 64, end = last / 64;
    if (word == end)
        return (load64(from + 8 * word) & low & high) != 0;
    any = (load64(from + 8 * word) & low) | (load64(from + 8 * end) & high);
    while (++word < end)
        any |= load64(from + 8 * word);
    return any != 0;
}

static void fold_bit_by_bit(const uint8_t *from, uint8_t *to, uint64_t nbytes, uint64_t factor)
{
    for (uint64_t at = 0, first = 0; at < nbytes; at += 8) {
        uint64_t word = 0;
        for (unsigned bit = 0; bit < 64; bit++, first += factor)
            word |= (uint64_t)any_set(from, first, factor) << bit;
        store64(to + at, word);
    }
}

/* Returns a word whose n lowest bits are set, 1 <= n <= 64. */
static ALWAYS_INLINE uint64_t low_bits(unsigned n)
{
    return UINT64_MAX >> (64 - n);
}

/* Folds 'many' groups of 'prime' bits, the lowest bits of x, to 'many' bits.  First ORs each
 * group into its lowest bit.  Then pushes the bits together: to pairs, pairs of pairs, and so
 * on.  A quotient of two words of low bits has one bit set in each piece of that size; all
 * arguments but x are constants, and so are the masks. */
static ALWAYS_INLINE uint64_t fold_groups(uint64_t x, unsigned prime, unsigned many)
{
    const uint64_t all = low_bits(many * prime);
    uint64_t joined = x;
    for (unsigned i = 1; i < prime; i++)
        joined |= x >> i;
    joined &= all / low_bits(prime);
    for (unsigned n = 1; n < many; n *= 2) {
        joined |= joined >> n * (prime - 1);
        joined &= all / low_bits(2 * n * prime) * low_bits(2 * n);
    }
    return joined;
}

/* Folds by a prime; writes 'many' bits at a time: 8, 16 or 32.  'to' may be 'from'.  Reads words
 * whose upper bytes may belong to the next bits, except for the last ones. */
static ALWAYS_INLINE void pass(const uint8_t *from, uint8_t *to, uint64_t nbytes,
                               unsigned prime, unsigned many)
{
    const size_t in = many * prime / 8, out = many / 8;
    const uint64_t last = nbytes / out - 1;
    uint64_t x = 0;
    for (uint64_t i = 0; i < last; i++) {
        uint64_t folded = fold_groups(load64(from + i * in), prime, many);
        memcpy(to + i * out, &folded, out);
    }
    memcpy(&x, from + last * in, in);
    x = fold_groups(x, prime, many);
    memcpy(to + last * out, &x, out);
}

/* Returns the smallest prime that divides the factor and has a pass; 0 if there is none. */
static unsigned first_prime(uint64_t factor)
{
    return factor % 2 == 0 ? 2 : factor % 3 == 0 ? 3 : factor % 5 == 0 ? 5 : factor % 7 ? 0 : 7;
}

static void fold_by_prime(const uint8_t *from, uint8_t *to, uint64_t nbytes, unsigned prime)
{
    if (prime == 2)
        pass(from, to, nbytes, 2, 32);
    else if (prime == 3)
        pass(from, to, nbytes, 3, 16);
    else if (prime == 5)
        pass(from, to, nbytes, 5, 8);
    else
        pass(from, to, nbytes, 7, 8);
}

/* Folds at most PASSES_NBYTES bytes by a small factor.  All passes but the last one write to a
 * buffer. */
static void fold_in_passes(const uint8_t *from, uint8_t *to, uint64_t nbytes, uint64_t factor)
{
    _Alignas(LINE_NBYTES) uint8_t buffer[PASSES_NBYTES * (PASSES_FACTOR_MAX / 2 + 1)];
    unsigned prime = first_prime(factor);
    for (; prime && prime != factor; prime = first_prime(factor)) {
        factor /= prime;
        fold_by_prime(from, buffer, factor * nbytes, prime);
        from = buffer;
    }
    if (prime)
        fold_by_prime(from, to, nbytes, prime);
    else
        fold_bit_by_bit(from, to, nbytes, factor);
}

void fold_bits(const uint8_t *from, uint8_t *to, uint64_t nbytes, uint64_t factor)
{
    if (factor == 1) {
        memcpy(to, from, nbytes);
        return;
    }
    if (factor > PASSES_FACTOR_MAX) {
        fold_bit_by_bit(from, to, nbytes, factor);
        return;
    }
    for (uint64_t at = 0; at < nbytes; at += PASSES_NBYTES) {
        uint64_t left = nbytes - at;
        fold_in_passes(from + at * factor, to + at, left < PASSES_NBYTES ? left : PASSES_NBYTES,
                       factor);
    }
}
