/* numbers.c - reads and writes shares as decimal numbers, in the same way in every locale. */
#include "numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C library reads and writes the decimal point of the program's locale.  So it only gets
 * texts without one ("1e-3"), and servers get the same. */

static size_t leading_digits(const char *text, size_t nbytes)
{
    size_t n = 0;
    while (n < nbytes && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* Reads "E-6", or nothing, which is an exponent of 0.  Returns false for anything else. */
static bool read_exponent(const char *text, size_t nbytes, int *exponent)
{
    uint64_t n = 0;
    *exponent = 0;
    if (nbytes == 0)
        return true;
    bool negative = nbytes > 1 && text[1] == '-';
    if ((*text | 32) != 'e' ||
        !read_digits(text + 1 + negative, nbytes - 1 - negative, 999, &n))
        return false;
    *exponent = negative ? -(int)n : (int)n;
    return true;
}

/* Takes "12.5E-3" apart and puts it together as "125e-4" for strtod().  Digits behind the point
 * are taken as digits before it, and the exponent is lowered by as many. */
bool share_read(const char *bytes, size_t nbytes, double *share)
{
    char text[2 * SHARE_NBYTES];
    int exponent;
    if (nbytes >= SHARE_NBYTES)
        return false;
    size_t before = leading_digits(bytes, nbytes);
    const char *behind = bytes + before;
    size_t nbehind = nbytes - before;
    size_t point = nbehind && *behind == '.';
    size_t after = point ? leading_digits(behind + 1, nbehind - 1) : 0;
    if (before + after == 0 ||
        !read_exponent(behind + point + after, nbehind - point - after, &exponent))
        return false;
    snprintf(text, sizeof text, "%.*s%.*se%d", (int)before, bytes, (int)after, behind + point,
             exponent - (int)after);
    double x = strtod(text, NULL);
    if (x > 1)
        return false;
    *share = x;
    return true;
}

/* Tries one digit, then two and so on, until the text reads as the same number; 17 digits
 * always do.  A locale's decimal point, of whatever length, is left out: the digits behind it
 * are those before the 'e'. */
void share_write(double share, char to[SHARE_NBYTES])
{
    char text[2 * SHARE_NBYTES];
    int precision = -1;
    do
        snprintf(text, sizeof text, "%.*e", ++precision, share);
    while (precision < 16 && strtod(text, NULL) != share);
    const char *exponent = strchr(text, 'e'), *last = exponent - precision;
    *to++ = *text;
    if (precision)
        memcpy(to, last, (size_t)precision);
    snprintf(to + precision, SHARE_NBYTES - 1 - (size_t)precision, "e%d",
             atoi(exponent + 1) - precision);
}
