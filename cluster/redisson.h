/* redisson.h - the Bloom filter of Redisson (RBloomFilter), a client library for Java.  It is
 * one Redis string of bits, and beside it a Redis hash, the config, that describes it.  Keys
 * are hashed as Redisson's StringCodec writes them: as their UTF-8 bytes. */
#ifndef REDISSON_H
#define REDISSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDISSON_BITS_MOST   UINT64_C(4294967294)
#define REDISSON_HASHES_MOST 64

/* The config, as it was read and checked. */
struct redisson {
    uint64_t nbits;    /* "size": 1 to REDISSON_BITS_MOST */
    unsigned nhashes;  /* "hashIterations": 1 to REDISSON_HASHES_MOST */
    uint64_t capacity; /* "expectedInsertions"; 0: not told */
    double fpr;        /* "falseProbability"; 0: not told */
};

/* The names of the fields of the config. */
enum { REDISSON_FIELDS = 4 };
extern const char *const redisson_field[REDISSON_FIELDS];

/* A value as a server tells it; bytes NULL: there is no such field. */
struct redisson_value {
    const char *bytes;
    size_t nbytes;
};

/* Reads the values of the fields, in the order of redisson_field[]; only the first two must be
 * there, as for Redisson itself.  Returns NULL; or one line that says what is wrong and what to
 * do, and leaves *config as it was. */
const char *redisson_read(const struct redisson_value values[REDISSON_FIELDS],
                          struct redisson *config);

/* Writes the Redis key of the config: {name}:config; or name:config if the name has a {, and so
 * may have a hash tag of its own.  key[] has room for 10 bytes more than the name has.  Returns
 * the length of the key, without the zero byte. */
size_t redisson_config_key(const char *name, char *key);

/* Writes the positions of the config->nhashes bits of a key, as offsets for SETBIT. */
void redisson_bits(const struct redisson *config, const void *element, size_t nbytes,
                   uint64_t *bits);

/* Computes HighwayHash-128.  Declared here for the tests, which compare it with the vectors of
 * its authors. */
void highway128(const uint64_t key[4], const void *bytes, size_t nbytes, uint64_t hash[2]);

#endif
