/* decimal.h - integers as decimal text: the keys of the hash 'integer'. */
#ifndef DECIMAL_H
#define DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"

/* 8 digits in a word, one in each byte, the first one lowest: as load64() gets them from text
 * when '0' is taken off each byte. */
#define DECIMAL_ZEROS UINT64_C(0x3030303030303030)

/* Returns whether each byte is 9 at most.  A byte that is more sets its own highest bit, or had
 * it already, whatever is carried from the byte below. */
static inline bool decimal_are_digits(uint64_t digits)
{
    return !(((digits + UINT64_C(0x7676767676767676)) | digits) & UINT64_C(0x8080808080808080));
}

/* Returns the number that 8 digits make: joins neighbours to pairs, these to fours, and these
 * to the eight. */
static inline uint64_t decimal_of_digits(uint64_t digits)
{
    digits = (digits * 10 + (digits >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    digits = (digits * 100 + (digits >> 16)) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(digits * 10000 + (digits >> 32));
}

/* Reads 8 to 16 digits: the last 8, and those before them behind zeros. */
static inline bool decimal_read_medium(const char *text, size_t nbytes, uint64_t *value)
{
    const unsigned half = 4 * (unsigned)(16 - nbytes); /* two shifts, since one may be by 64 */
    uint64_t first = (load64(text) ^ DECIMAL_ZEROS) << half << half;
    uint64_t last = load64(text + nbytes - 8) ^ DECIMAL_ZEROS;
    *value = decimal_of_digits(first) * 100000000 + decimal_of_digits(last);
    return decimal_are_digits(first) && decimal_are_digits(last);
}

/* Reads digits one after the other.  Returns false if one is none, or if the number does not
 * fit into 64 bits. */
static inline bool decimal_read_digits(const char *text, size_t nbytes, uint64_t *value)
{
    uint64_t n = 0;
    for (size_t i = 0; i < nbytes; i++) {
        unsigned digit = (unsigned char)text[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, digit, &n))
            return false;
    }
    *value = n;
    return nbytes > 0;
}

/* Reads the only decimal form of an integer: digits without leading zeros, behind which is
 * nothing and before which may be one '+'.  Returns false if the text is anything else or the
 * integer is 2^64 or more. */
static inline bool decimal_read(const void *text, size_t nbytes, uint64_t *value)
{
    const char *at = text;
    if (nbytes > 0 && *at == '+') {
        at++;
        nbytes--;
    }
    if (nbytes > 1 && *at == '0')
        return false;
    return nbytes >= 8 && nbytes <= 16 ? decimal_read_medium(at, nbytes, value)
                                       : decimal_read_digits(at, nbytes, value);
}

#endif
