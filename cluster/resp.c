#include "resp.h"

#include <stdlib.h>

/* What an argument needs beside its bytes: $, a length of at most 20 digits, twice \r\n. */
enum { AROUND_NBYTES = 1 + 20 + 4, NUMBER_NBYTES = 20, FIRST_ROOM = 4096 };

static bool grow(struct resp *resp, size_t nbytes)
{
    size_t room = resp->room ? resp->room : FIRST_ROOM;
    while (room - resp->nbytes < nbytes && room <= SIZE_MAX / 2)
        room *= 2;
    char *bytes = room - resp->nbytes < nbytes ? NULL : realloc(resp->bytes, room);
    if (!bytes) {
        resp->failed = true;
        resp->nbytes = resp->whole;
        return false;
    }
    resp->bytes = bytes;
    resp->room = room;
    return true;
}

/* Whether so many bytes more may be written. */
static inline bool reserve(struct resp *resp, size_t nbytes)
{
    return !resp->failed && (resp->room - resp->nbytes >= nbytes || grow(resp, nbytes));
}

static inline unsigned count_digits(uint64_t number)
{
    unsigned n = 1;
    for (; number >= 10000; number /= 10000)
        n += 4;
    return n + (number >= 10) + (number >= 100) + (number >= 1000);
}

static inline char *put_digits(char *to, uint64_t number, unsigned ndigits)
{
    char *digit = to + ndigits;
    do
        *--digit = (char)('0' + number % 10);
    while (number /= 10);
    return to + ndigits;
}

static inline char *put_end(char *to)
{
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

/* "*2\r\n", "$3\r\n" */
static inline char *put_length(char *to, char mark, uint64_t length)
{
    *to++ = mark;
    return put_end(put_digits(to, length, count_digits(length)));
}

void resp_command(struct resp *resp, unsigned nargs, size_t nbytes)
{
    if (!resp->failed)
        resp->whole = resp->nbytes;
    if (reserve(resp, AROUND_NBYTES * (1 + (size_t)nargs) + nbytes))
        resp->nbytes =
            (size_t)(put_length(resp->bytes + resp->nbytes, '*', nargs) - resp->bytes);
}

void resp_bytes(struct resp *resp, const void *bytes, size_t nbytes)
{
    if (!reserve(resp, AROUND_NBYTES + nbytes))
        return;
    char *to = put_length(resp->bytes + resp->nbytes, '$', nbytes);
    if (nbytes)
        memcpy(to, bytes, nbytes);
    resp->nbytes = (size_t)(put_end(to + nbytes) - resp->bytes);
}

void resp_number(struct resp *resp, uint64_t number)
{
    if (!reserve(resp, AROUND_NBYTES + NUMBER_NBYTES))
        return;
    unsigned ndigits = count_digits(number);
    char *to = put_length(resp->bytes + resp->nbytes, '$', ndigits);
    resp->nbytes = (size_t)(put_end(put_digits(to, number, ndigits)) - resp->bytes);
}

void resp_written(struct resp *resp, const char *bytes, size_t nbytes)
{
    if (!reserve(resp, nbytes))
        return;
    memcpy(resp->bytes + resp->nbytes, bytes, nbytes);
    resp->nbytes += nbytes;
}

void resp_drop(struct resp *resp, size_t nbytes)
{
    resp->nbytes -= nbytes;
    resp->whole = resp->whole > nbytes ? resp->whole - nbytes : 0;
    if (nbytes)
        memmove(resp->bytes, resp->bytes + nbytes, resp->nbytes);
}

void resp_clear(struct resp *resp)
{
    resp->nbytes = resp->whole = 0;
    resp->failed = false;
}

void resp_release(struct resp *resp)
{
    free(resp->bytes);
    *resp = (struct resp){ 0 };
}
