/* digits.h - whole decimal numbers, of texts that need not end in a zero byte. */
#ifndef DIGITS_H
#define DIGITS_H

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

#endif
