#include "redisson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (values[PROBABILITY].bytes &&
        !share_read(values[PROBABILITY].bytes, values[PROBABILITY].nbytes, &made.fpr))
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
    share_write(config->fpr, values[PROBABILITY]);
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
