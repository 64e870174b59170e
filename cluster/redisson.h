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
    uint64_t capacity; /* "expectedInsertions"; 0: not told */
    double fpr;        /* "falseProbability"; 0: not told */
};

/* The fields of the hash beside it: their names, in the order of their values below. */
enum { REDISSON_FIELDS = 4 };
extern const char *const redisson_field[REDISSON_FIELDS];

/* A value as a server tells it; bytes NULL: there is no such field. */
struct redisson_value {
    const char *bytes;
    size_t nbytes;
};

/* Reads the values of the fields; Redisson itself needs only the first two.  Returns NULL; or
 * one line of what is wrong and what to do, and changes nothing. */
const char *redisson_read(const struct redisson_value values[REDISSON_FIELDS],
                          struct redisson *config);

/* The key of the hash: {name}:config, or name:config where the name has a {.  key[] has room
 * for 10 bytes more than the name has.  Returns how many it is, without the zero byte. */
size_t redisson_config_key(const char *name, char *key);

/* The config.nhashes bits of an element, as offsets for SETBIT. */
void redisson_bits(const struct redisson *config, const void *element, size_t nbytes,
                   uint64_t *bits);

/* HighwayHash-128. */
void highway128(const uint64_t key[4], const void *bytes, size_t nbytes, uint64_t hash[2]);

#endif
