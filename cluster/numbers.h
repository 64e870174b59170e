/* numbers.h - decimal numbers, the same whatever the locale, of texts that need not end in a
 * zero byte. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* false, leaving *number alone, for anything but digits, or a number above 'most'. */
static inline bool read_digits(const char *text, size_t nbytes, uint64_t most, uint64_t *number)
{
    uint64_t n = 0;
    for (size_t i = 0; i < nbytes; i++) {
        unsigned digit = (unsigned)((unsigned char)text[i] - '0');
        if (digit > 9 || digit > most || n > (most - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    if (nbytes)
        *number = n;
    return nbytes > 0;
}

static inline unsigned count_digits(uint64_t number)
{
    unsigned n = 1;
    for (; number >= 10000; number /= 10000)
        n += 4;
    return n + (number >= 10) + (number >= 100) + (number >= 1000);
}

/* Returns where it ends, without a zero byte: 20 bytes at most. */
static inline char *put_digits(char *to, uint64_t number)
{
    char *end = to + count_digits(number), *digit = end;
    do
        *--digit = (char)('0' + number % 10);
    while (number /= 10);
    return end;
}

/* A number from 0 to 1: "0.001" or "1.0E-6".  false, leaving *share alone, for anything
 * else. */
bool share_read(const char *bytes, size_t nbytes, double *share);

/* The shortest text that reads the same again: "25e-3". */
enum { SHARE_NBYTES = 32 };
void share_write(double share, char to[SHARE_NBYTES]);

#endif
