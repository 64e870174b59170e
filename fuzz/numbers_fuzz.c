/* numbers_fuzz.c - fuzzes the reading of numbers, shares, durations and times on the command
 * line.  A text that is refused leaves the variable as it was; a whole number that is accepted
 * is read exactly. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cli/base/numbers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Checks that a number that is printed as 1,234,567 is read again as the same number without
 * the commas.  The other printing functions must only be safe. */
static void check_number(uint64_t n)
{
    struct text text = grouped(n);
    char plain[sizeof text.s], *to = plain;
    uint64_t again = ~n;
    for (const char *from = text.s; *from; from++)
        if (*from != ',')
            *to++ = *from;
    *to = '\0';
    if (!read_number(plain, &again) || again != n)
        abort();
    scaled((double)n, "B");
    duration((double)(n >> 20));
    expectation((double)(n >> 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    char text[64] = "";
    uint64_t n = 4711;
    double share = 4711;
    if (nbytes >= sizeof text)
        return 0;
    memcpy(text, data, nbytes);
    if (read_number(text, &n))
        check_number(n);
    else if (n != 4711)
        abort();
    if (read_share(text, &share) ? isnan(share) : share != 4711)
        abort();
    n = 4711;
    if (!read_duration(text, &n) && n != 4711)
        abort();
    n = 4711;
    bool is_time = read_moment(text, nbytes, &n);
    if (is_time ? n > UINT64_C(253402387200000) : n != 4711) /* a day into the year 10000 */
        abort();
    return 0;
}
