/* numbers.h - reads and writes decimal numbers, in the same way in every locale.  The texts
 * that are read need not end in a zero byte, since pieces of addresses do not. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a number.  Returns false, and leaves *number as it was, for anything but digits and for
 * a number above 'most'. */
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

/* Returns how many digits a number has.  It counts four of them at a time, since this is done
 * for each argument of each command. */
static inline unsigned count_digits(uint64_t number)
{
    unsigned n = 1;
    for (; number >= 10000; number /= 10000)
        n += 4;
    return n + (number >= 10) + (number >= 100) + (number >= 1000);
}

/* Writes a number, which has at most 20 digits, without a zero byte.  Returns its end. */
static inline char *put_digits(char *to, uint64_t number)
{
    char *end = to + count_digits(number), *digit = end;
    do
        *--digit = (char)('0' + number % 10);
    while (number /= 10);
    return end;
}

/* Reads a number from 0 to 1, such as "0.001" or "1.0E-6".  Returns false, and leaves *share as
 * it was, for anything else. */
bool share_read(const char *bytes, size_t nbytes, double *share);

/* Writes the shortest text from which share_read() reads the same number again: digits and a
 * power of ten, such as "25e-3". */
enum { SHARE_NBYTES = 32 };
void share_write(double share, char to[SHARE_NBYTES]);

#endif
