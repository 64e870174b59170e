#include "redisson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "highway.h"

enum { SIZE, ITERATIONS, INSERTIONS, PROBABILITY };
const char *const redisson_field[REDISSON_FIELDS] = {
    [SIZE] = "size",
    [ITERATIONS] = "hashIterations",
    [INSERTIONS] = "expectedInsertions",
    [PROBABILITY] = "falseProbability",
};

/* ---- What it is ------------------------------------------------------------------------- */

const char *redisson_plan(uint64_t capacity, double fpr, struct redisson *config)
{
    double n = (double)capacity, ln2 = log(2);
    double nbits = trunc(-n * log(fpr) / (ln2 * ln2));
    if (nbits < 1)
        return "that takes no bits at all: a filter of redisson needs a smaller fpr";
    if (nbits > (double)REDISSON_BITS_MOST)
        return "a filter of redisson has at most 4294967294 bits (512 MiB): take fewer keys or "
               "a higher fpr, or layout=perhaps";
    double nhashes = fmax(1, floor(nbits / n * ln2 + 0.5));
    if (nhashes > REDISSON_HASHES_MOST)
        return "that takes more than 64 hashes: a filter of redisson needs a higher fpr";
    *config = (struct redisson){
        .nbits = (uint64_t)nbits,
        .nhashes = (unsigned)nhashes,
        .capacity = capacity,
        .fpr = fpr,
    };
    return NULL;
}

/* ---- Shares as text --------------------------------------------------------------------- */

/* What the C library reads and writes has the decimal point of whatever locale the program has
 * set; so there is none in what it gets, nor in what servers get. */

static size_t count_digits(const char *text, size_t nbytes)
{
    size_t n = 0;
    while (n < nbytes && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* "E-6" or nothing. */
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

/* "0.001" or "1.0E-6", as Java writes them, from 0 to 1. */
static bool read_share(struct redisson_value value, double *share)
{
    char text[2 * REDISSON_VALUE_NBYTES];
    int exponent;
    if (value.nbytes >= REDISSON_VALUE_NBYTES)
        return false;
    size_t before = count_digits(value.bytes, value.nbytes);
    const char *behind = value.bytes + before;
    size_t nbehind = value.nbytes - before;
    size_t point = nbehind && *behind == '.';
    size_t after = point ? count_digits(behind + 1, nbehind - 1) : 0;
    if (before + after == 0 ||
        !read_exponent(behind + point + after, nbehind - point - after, &exponent))
        return false;
    snprintf(text, sizeof text, "%.*s%.*se%d", (int)before, value.bytes, (int)after,
             behind + point, exponent - (int)after);
    double x = strtod(text, NULL);
    if (x > 1)
        return false;
    *share = x;
    return true;
}

/* The shortest that reads the same again: 25e-3. */
static void write_share(double share, char to[REDISSON_VALUE_NBYTES])
{
    char text[2 * REDISSON_VALUE_NBYTES];
    int precision = -1;
    do
        snprintf(text, sizeof text, "%.*e", ++precision, share);
    while (precision < 16 && strtod(text, NULL) != share);
    const char *exponent = strchr(text, 'e'), *last = exponent - precision;
    *to++ = *text;
    if (precision)
        memcpy(to, last, (size_t)precision);
    snprintf(to + precision, REDISSON_VALUE_NBYTES - 1 - (size_t)precision, "e%d",
             atoi(exponent + 1) - precision);
}

/* ---- The hash beside it ----------------------------------------------------------------- */

/* false for one that is there and no number. */
static bool read_optional(struct redisson_value value, uint64_t *number)
{
    return !value.bytes || read_digits(value.bytes, value.nbytes, INT64_MAX, number);
}

const char *redisson_read(const struct redisson_value values[REDISSON_FIELDS],
                          struct redisson *config)
{
    struct redisson made = { 0 };
    struct redisson_value size = values[SIZE], iterations = values[ITERATIONS];
    uint64_t nhashes = 0;
    if (!size.bytes || !iterations.bytes)
        return "it has no size or no hashIterations: it is not the config of a Bloom filter of "
               "redisson";
    if (!read_digits(size.bytes, size.nbytes, REDISSON_BITS_MOST, &made.nbits) || !made.nbits)
        return "its size is no number from 1 to 4294967294";
    if (!read_digits(iterations.bytes, iterations.nbytes, REDISSON_HASHES_MOST, &nhashes) ||
        !nhashes)
        return "its hashIterations are no number from 1 to 64";
    if (!read_optional(values[INSERTIONS], &made.capacity))
        return "its expectedInsertions are no number";
    if (values[PROBABILITY].bytes && !read_share(values[PROBABILITY], &made.fpr))
        return "its falseProbability is no number from 0 to 1";
    made.nhashes = (unsigned)nhashes;
    *config = made;
    return NULL;
}

void redisson_format(const struct redisson *config,
                     char values[REDISSON_FIELDS][REDISSON_VALUE_NBYTES])
{
    snprintf(values[SIZE], REDISSON_VALUE_NBYTES, "%llu", (unsigned long long)config->nbits);
    snprintf(values[ITERATIONS], REDISSON_VALUE_NBYTES, "%u", config->nhashes);
    snprintf(values[INSERTIONS], REDISSON_VALUE_NBYTES, "%llu",
             (unsigned long long)config->capacity);
    write_share(config->fpr, values[PROBABILITY]);
}

size_t redisson_config_key(const char *name, char *key)
{
    const char *format = strchr(name, '{') ? "%s:config" : "{%s}:config";
    return (size_t)snprintf(key, strlen(name) + 10, format, name);
}

/* ---- Its bits --------------------------------------------------------------------------- */

void redisson_bits(const struct redisson *config, const void *element, size_t nbytes,
                   uint64_t *bits)
{
    static const uint64_t key[4] = { 0x9e3779b97f4a7c15, 0xf39cc0605cedc834, 0x1082276bf3a27251,
                                     0xf86c6a11d0c18e95 };
    uint64_t hash[2];
    highway128(key, element, nbytes, hash);
    uint64_t x = hash[0];
    for (unsigned i = 0; i < config->nhashes; i++) {
        bits[i] = (x & INT64_MAX) % config->nbits;
        x += hash[i % 2 ? 0 : 1];
    }
}
