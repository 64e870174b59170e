/* redisson.c - computes what Redisson does for its Bloom filter: reads the config, hashes keys,
 * and finds their bits.  Any difference from Redisson would lose keys without a sign, so
 * tests/cluster/redisson_test.c compares the hash with values that its authors published. */
#include "redisson.h"

#include <stdio.h>
#include <string.h>

#include "numbers.h"

/* The order of the fields. */
enum { SIZE, ITERATIONS, INSERTIONS, PROBABILITY };
const char *const redisson_field[REDISSON_FIELDS] = {
    [SIZE] = "size",
    [ITERATIONS] = "hashIterations",
    [INSERTIONS] = "expectedInsertions",
    [PROBABILITY] = "falseProbability",
};

/* ---- The config ------------------------------------------------------------------------- */

/* Reads a number that may be missing.  Returns false if it is there and no number. */
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

size_t redisson_config_key(const char *name, char *key)
{
    const char *format = strchr(name, '{') ? "%s:config" : "{%s}:config";
    return (size_t)snprintf(key, strlen(name) + 10, format, name);
}

/* ---- HighwayHash ------------------------------------------------------------------------- */

/* HighwayHash (Alakuijala, Cox and Wassenberg, arXiv 1612.06257), 128 bits.
 * It is written here because Debian's libhighwayhash is C++, and exports only the 64-bit hash
 * to C.  The state is four rows of four lanes.  A packet of 32 bytes goes in at once.  The rest
 * of a message goes in as one more packet, and before it the state is turned by the length of
 * the rest.  Little-endian, as all of perhaps. */
enum { LANES = 4, PACKET_NBYTES = 32, FINAL_ROUNDS = 6 };

struct state {
    uint64_t v0[LANES], v1[LANES], mul0[LANES], mul1[LANES];
};

/* Digits of pi: constants in which nobody can have hidden anything. */
static const uint64_t mul0_start[LANES] = { 0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0,
                                            0x13198a2e03707344, 0x243f6a8885a308d3 };
static const uint64_t mul1_start[LANES] = { 0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c,
                                            0xbe5466cf34e90c6c, 0x452821e638d01377 };

static inline uint64_t swap_halves(uint64_t x)
{
    return x >> 32 | x << 32;
}

/* Returns byte i of x at its place, and zeros elsewhere. */
static inline uint64_t byte(uint64_t x, unsigned i)
{
    return x & UINT64_C(0xff) << 8 * i;
}

/* Adds the 16 bytes of from[] to to[] in the order 3 12 2 5 14 1 15 0, 11 4 10 13 9 6 8 7.  A
 * multiplication mixes the middle bytes of a lane better than those at its ends; this order
 * brings the well mixed ones to where they count most. */
static inline void add_zipped(uint64_t to[2], const uint64_t from[2])
{
    uint64_t low = from[0], high = from[1];
    to[0] += (byte(low, 3) | byte(high, 4)) >> 24 | byte(low, 2) |
             (byte(low, 5) | byte(high, 6)) >> 16 | byte(low, 1) << 32 | byte(high, 7) >> 8 |
             low << 56;
    to[1] += (byte(high, 3) | byte(low, 4)) >> 24 | byte(high, 2) | byte(high, 5) >> 16 |
             byte(high, 1) << 24 | byte(low, 6) >> 8 | byte(high, 0) << 48 | byte(low, 7);
}

/* Takes one packet into the state. */
static void update(struct state *s, const uint64_t packet[LANES])
{
    for (unsigned i = 0; i < LANES; i++) {
        s->v1[i] += packet[i] + s->mul0[i];
        s->mul0[i] ^= (s->v1[i] & UINT32_MAX) * (s->v0[i] >> 32);
        s->v0[i] += s->mul1[i];
        s->mul1[i] ^= (s->v0[i] & UINT32_MAX) * (s->v1[i] >> 32);
    }
    for (unsigned i = 0; i < LANES; i += 2)
        add_zipped(s->v0 + i, s->v1 + i);
    for (unsigned i = 0; i < LANES; i += 2)
        add_zipped(s->v1 + i, s->v0 + i);
}

static void update_bytes(struct state *s, const unsigned char bytes[PACKET_NBYTES])
{
    uint64_t packet[LANES];
    memcpy(packet, bytes, sizeof packet);
    update(s, packet);
}

/* Turns both 32-bit halves of x left by n bits, 1 to 31. */
static inline uint64_t turn_halves(uint64_t x, unsigned n)
{
    uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);
    low = low << n | low >> (32 - n);
    high = high << n | high >> (32 - n);
    return (uint64_t)high << 32 | low;
}

/* Takes the last 1 to 31 bytes.  Those behind the last multiple of four have a place of their
 * own: the end of the packet, as part of the last four bytes; or its middle, if the rest has
 * fewer than 16 bytes. */
static void update_rest(struct state *s, const unsigned char *bytes, size_t nbytes)
{
    unsigned char packet[PACKET_NBYTES] = { 0 };
    size_t nodd = nbytes & 3, neven = nbytes - nodd;
    for (unsigned i = 0; i < LANES; i++) {
        s->v0[i] += (uint64_t)nbytes << 32 | nbytes;
        s->v1[i] = turn_halves(s->v1[i], (unsigned)nbytes);
    }
    memcpy(packet, bytes, neven);
    if (nbytes >= 16)
        memcpy(packet + 28, bytes + nbytes - 4, 4);
    else if (nodd) {
        packet[16] = bytes[neven];
        packet[17] = bytes[neven + nodd / 2];
        packet[18] = bytes[nbytes - 1];
    }
    update_bytes(s, packet);
}

void highway128(const uint64_t key[4], const void *bytes, size_t nbytes, uint64_t hash[2])
{
    struct state s;
    const unsigned char *at = bytes;
    for (unsigned i = 0; i < LANES; i++) {
        s.mul0[i] = mul0_start[i];
        s.mul1[i] = mul1_start[i];
        s.v0[i] = mul0_start[i] ^ key[i];
        s.v1[i] = mul1_start[i] ^ swap_halves(key[i]);
    }
    for (; nbytes >= PACKET_NBYTES; nbytes -= PACKET_NBYTES, at += PACKET_NBYTES)
        update_bytes(&s, at);
    if (nbytes)
        update_rest(&s, at, nbytes);
    for (unsigned round = 0; round < FINAL_ROUNDS; round++) {
        const uint64_t turned[LANES] = { swap_halves(s.v0[2]), swap_halves(s.v0[3]),
                                         swap_halves(s.v0[0]), swap_halves(s.v0[1]) };
        update(&s, turned);
    }
    for (unsigned i = 0; i < 2; i++)
        hash[i] = s.v0[i] + s.mul0[i] + s.v1[i + 2] + s.mul1[i + 2];
}

/* ---- The bits of a key ------------------------------------------------------------------- */

/* The bits lie at hash[0], then at steps of hash[1] and hash[0] in turn, as Redisson does it.
 * The sum is 64 bits and may overflow; its sign bit is dropped, as Java has no unsigned
 * numbers. */
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
