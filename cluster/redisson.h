/* redisson.h - the Bloom filter of Redisson (RBloomFilter), a client library for Java: one
 * Redis string of bits, and beside it a hash that says what it is.  Codec: StringCodec, whose
 * elements are their UTF-8 bytes. */
#ifndef REDISSON_H
#define REDISSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDISSON_BITS_MOST   UINT64_C(4294967294)
#define REDISSON_HASHES_MOST 64

struct redisson {
    uint64_t nbits;    /* "size" */
    unsigned nhashes;  /* "hashIterations" */
    uint64_t capacity; /* "expectedInsertions" */
    double fpr;        /* "falseProbability" */
};

/* The fields of the hash, in the order that redisson_format() writes them. */
enum { REDISSON_FIELDS = 4, REDISSON_NUMBER_NBYTES = 400 };
extern const char *const redisson_field[REDISSON_FIELDS];

/* The functions that return text return NULL, or one line of what is wrong and change nothing.
 */

/* What Redisson makes of these needs. */
const char *redisson_plan(uint64_t capacity, double fpr, struct redisson *config);

/* Reads the values of the fields, which need not end in a zero byte; .bytes NULL: missing. */
struct redisson_value {
    const char *bytes;
    size_t nbytes;
};
const char *redisson_read(const struct redisson_value values[REDISSON_FIELDS],
                          struct redisson *config);

/* Writes them as Redisson does, which compares them as text. */
void redisson_format(const struct redisson *config,
                     char values[REDISSON_FIELDS][REDISSON_NUMBER_NBYTES]);

/* The key of the hash: {name}:config, or name:config where the name has a {.  Returns its
 * bytes, without the zero byte; key[] must have 10 more than the name. */
size_t redisson_config_key(const char *name, char *key);

/* The config.nhashes bits of an element, as offsets of Redis. */
void redisson_bits(const struct redisson *config, const void *element, size_t nbytes,
                   uint64_t *bits);

#endif
