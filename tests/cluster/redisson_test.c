/* redisson_test.c - proves that the client sets the bits that Redisson (a Java client of Redis)
 * sets in its Bloom filters: HighwayHash-128 against the values that its authors published and
 * against a second implementation, and the bits against Redisson's formula.  It also checks how
 * the config of such a filter is read and written.
 *
 * It fails when a key that Java added would be denied, or when a wrong config is taken. */
#include "support.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"
#include "redisson.h"

/* ---- HighwayHash ------------------------------------------------------------------------ */

enum { LENGTHS = 65 };

/* The hashes of 0 to 64 bytes 0 1 2 ... under the key 00 01 02 ... 1f, from the authors'
 * highwayhash_test.cc. */
static const uint64_t published[LENGTHS][2] = {
    { 0x0fed268f9d8ffec7, 0x33565e767f093e6f }, { 0xd6b0a8893681e7a8, 0xdc291df9eb9cdcb4 },
    { 0x3d15ad265a16da04, 0x78085638dc32e868 }, { 0x0607621b295f0beb, 0xbfe69a0fd9cedd79 },
    { 0x26399eb46dace49e, 0x2e922ad039319208 }, { 0x3250bdc386d12ed8, 0x193810906c63c23a },
    { 0x6f476ab3cb896547, 0x7cde576f37ed1019 }, { 0x2a401fca697171b4, 0xbe1f03ff9f02796c },
    { 0xa1e96d84280552e8, 0x695cf1c63bec0ac2 }, { 0x142a2102f31e63b2, 0x1a85b98c5b5000cc },
    { 0x51a1b70e26b6bc5b, 0x929e1f3b2da45559 }, { 0x88990362059a415b, 0xbed21f22c47b7d13 },
    { 0xcd1f1f5f1caf9566, 0xa818ba8ce0f9c8d4 }, { 0xa225564112fe6157, 0xb2e94c78b8ddb848 },
    { 0xbd492febd1cc0919, 0xcecd1dbc025641a2 }, { 0x142237a52bc4af54, 0xe0796c0b6e26bcd7 },
    { 0x414460ffd5a401ad, 0x029ea3d5019f18c8 }, { 0xc52a4b96c51c9962, 0xecb878b1169b5ea0 },
    { 0xd940ca8f11fbeace, 0xf93a46d616f8d531 }, { 0x8ac49d0ae5c0cbf5, 0x3ffdbf8df51d7c93 },
    { 0xac6d279b852d00a8, 0x7dcd3a6ba5ebaa46 }, { 0xf11621bd93f08a56, 0x3173c398163dd9d5 },
    { 0x0c4ce250f68cf89f, 0xb3123cda411898ed }, { 0x15ab97ed3d9a51ce, 0x7ce274479169080e },
    { 0xcd001e198d4845b8, 0xd0d9d98bd8aa2d77 }, { 0x34f3d617a0493d79, 0x7dd304f6397f7e16 },
    { 0x5cb56890a9f4c6b6, 0x130829166567304f }, { 0x30da6f8b245bd1c0, 0x6f828b7e3fd9748c },
    { 0xe0580349204c12c0, 0x93f6da0cac5f441c }, { 0xf648731ba5073045, 0x5fb897114fb65976 },
    { 0x024f8354738a5206, 0x509a4918eb7e0991 }, { 0x06e7b465e8a57c29, 0x52415e3a07f5d446 },
    { 0x1984df66c1434aaa, 0x16fc1958f9b3e4b9 }, { 0x111678afe0c6c36c, 0xf958b59de5a2849d },
    { 0x773fbc8440fb0490, 0xc96ed5d243658536 }, { 0x91e3dc710bb6c941, 0xea336a0bc1eeace9 },
    { 0x25cfe3815d7ad9d4, 0xf2e94f8c828fc59e }, { 0xb9fb38b83cc288f2, 0x7479c4c8f850ec04 },
    { 0x1d85d5c525982b8c, 0x6e26b1c16f48dbf4 }, { 0x8a4e55bd6060bde7, 0x2134d599058b3fd0 },
    { 0x2a958ff994778f36, 0xe8052d1ae61d6423 }, { 0x89233ae6be453233, 0x3acf9c87d7e8c0b9 },
    { 0x4458f5e27ea9c8d5, 0x418fb49bca2a5140 }, { 0x090301837ed12a68, 0x1017f69633c861e6 },
    { 0x330dd84704d49590, 0x339df1ad3a4ba6e4 }, { 0x569363a663f2c576, 0x363b3d95e3c95ef6 },
    { 0xacc8d08586b90737, 0x2ba0e8087d4e28e9 }, { 0x39c27a27c86d9520, 0x8db620a45160932e },
    { 0x8e6a4aeb671a072d, 0x6ed3561a10e47ee6 }, { 0x0011d765b1bec74a, 0xd80e6e656ede842e },
    { 0x2515d62b936ac64c, 0xce088794d7088a7d }, { 0x91621552c16e23af, 0x264f0094eb23ccef },
    { 0x1e21880d97263480, 0xd8654807d3a31086 }, { 0x39d76aaf097f432d, 0xa517e1e09d074739 },
    { 0x0f17a4f337c65a14, 0x2f51215f69f976d4 }, { 0xa0fb5cda12895e44, 0x568c3dc4d1f13cd1 },
    { 0x93c8fc00d89c46ce, 0xbad5da947e330e69 }, { 0x817c07501d1a5694, 0x584d6ee72cbfac2b },
    { 0x91d668af73f053bf, 0xf98e647683c1e0ed }, { 0x5281e1ef6b3ccf8b, 0xbc4cc3df166083d8 },
    { 0xaad61b6dbeaaeeb9, 0xff969d000c16787b }, { 0x4325d84fc0475879, 0x14b919bd905f1c2d },
    { 0x79a176d1aa6ba6d1, 0xf1f720c5a53a2b86 }, { 0x74bd7018022f3ef0, 0x3aea94a8ad5f4bcb },
    { 0x98bb1f7198d4c4f2, 0xe0bc0571de918fc8 },
};

TEST(test_published)
{
    static const uint64_t key[4] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110,
                                     0x1f1e1d1c1b1a1918 };
    for (size_t nbytes = 0; nbytes < LENGTHS; nbytes++) {
        uint64_t hash[2];
        uint8_t *bytes = malloc(nbytes + !nbytes); /* a sanitizer sees reads behind it */
        expect(bytes);
        for (size_t i = 0; i < nbytes; i++)
            bytes[i] = (uint8_t)i;
        scene("%zu bytes", nbytes);
        highway128(key, bytes, nbytes, hash);
        free(bytes);
        expect(hash[0] == published[nbytes][0] && hash[1] == published[nbytes][1]);
    }
}

/* The same hash once more, written after the paper and not after the client's code: a lane is
 * eight bytes, and the state is a table of lanes.  It is slow, and is there to be compared. */
struct slow {
    uint8_t row[4][32]; /* v0, v1, mul0 and mul1 of the paper */
};

/* Returns lane i of a row; a lane is little-endian. */
static uint64_t lane(const uint8_t *row, unsigned i)
{
    uint64_t x = 0;
    for (unsigned b = 8; b-- > 0;)
        x = x * 256 + row[8 * i + b];
    return x;
}

static void set_lane(uint8_t *row, unsigned i, uint64_t x)
{
    for (unsigned b = 0; b < 8; b++, x /= 256)
        row[8 * i + b] = (uint8_t)(x % 256);
}

static uint64_t swapped(uint64_t x)
{
    return (x << 32) + (x >> 32);
}

/* Adds to each lane of 'to' that of 'from', whose bytes are reordered within each half. */
static void slow_zip(uint8_t *to, const uint8_t *from)
{
    static const unsigned order[16] = { 3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7 };
    uint8_t zipped[32];
    for (unsigned i = 0; i < 32; i++)
        zipped[i] = from[i / 16 * 16 + order[i % 16]];
    for (unsigned i = 0; i < 4; i++)
        set_lane(to, i, lane(to, i) + lane(zipped, i));
}

static void slow_update(struct slow *s, const uint8_t *packet)
{
    uint8_t *v0 = s->row[0], *v1 = s->row[1], *mul0 = s->row[2], *mul1 = s->row[3];
    for (unsigned i = 0; i < 4; i++) {
        set_lane(v1, i, lane(v1, i) + lane(mul0, i) + lane(packet, i));
        set_lane(mul0, i, lane(mul0, i) ^ (lane(v1, i) % (1ULL << 32)) * (lane(v0, i) >> 32));
        set_lane(v0, i, lane(v0, i) + lane(mul1, i));
        set_lane(mul1, i, lane(mul1, i) ^ (lane(v0, i) % (1ULL << 32)) * (lane(v1, i) >> 32));
    }
    slow_zip(v0, v1);
    slow_zip(v1, v0);
}

/* Takes in the last n < 32 bytes, which are no whole packet.  The paper puts some of them twice
 * into the packet, and turns v1 by n bits. */
static void slow_rest(struct slow *s, const uint8_t *bytes, size_t n)
{
    uint8_t packet[32] = { 0 };
    for (unsigned i = 0; i < 4; i++) {
        uint64_t x = lane(s->row[1], i), turned = 0;
        for (unsigned half = 0; half < 64; half += 32)
            for (unsigned bit = 0; bit < 32; bit++)
                turned |= (x >> (half + bit) & 1) << (half + (bit + n) % 32);
        set_lane(s->row[1], i, turned);
        set_lane(s->row[0], i, lane(s->row[0], i) + (n * 0x100000001));
    }
    for (size_t i = 0; i < n / 4 * 4; i++)
        packet[i] = bytes[i];
    for (size_t i = 0; i < 4 && n >= 16; i++)
        packet[28 + i] = bytes[n - 4 + i];
    for (size_t i = 0; i < 3 && n < 16 && n % 4; i++)
        packet[16 + i] = bytes[n / 4 * 4 + (i == 0 ? 0 : i == 1 ? n % 4 / 2 : n % 4 - 1)];
    slow_update(s, packet);
}

static void slow_hash(const uint64_t key[4], const uint8_t *bytes, size_t nbytes,
                      uint64_t hash[2])
{
    static const uint64_t pi[8] = { 0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344,
                                    0x243f6a8885a308d3, 0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c,
                                    0xbe5466cf34e90c6c, 0x452821e638d01377 };
    struct slow s;
    for (unsigned i = 0; i < 4; i++) {
        set_lane(s.row[0], i, pi[i] ^ key[i]);
        set_lane(s.row[1], i, pi[4 + i] ^ swapped(key[i]));
        set_lane(s.row[2], i, pi[i]);
        set_lane(s.row[3], i, pi[4 + i]);
    }
    size_t at = 0;
    for (; at + 32 <= nbytes; at += 32)
        slow_update(&s, bytes + at);
    if (at < nbytes)
        slow_rest(&s, bytes + at, nbytes - at);
    for (unsigned round = 0; round < 6; round++) {
        uint8_t turned[32];
        for (unsigned i = 0; i < 4; i++)
            set_lane(turned, i, swapped(lane(s.row[0], (i + 2) % 4)));
        slow_update(&s, turned);
    }
    for (unsigned i = 0; i < 2; i++)
        hash[i] = lane(s.row[0], i) + lane(s.row[2], i) + lane(s.row[1], i + 2) +
                  lane(s.row[3], i + 2);
}

TEST(test_any_hash)
{
    struct rng rng = rng_for(__func__);
    for (unsigned trial = 0; trial < many(5000); trial++) {
        uint64_t key[4], hash[2], wanted[2];
        uint8_t bytes[200];
        size_t nbytes = (size_t)rng_below(&rng, sizeof bytes);
        for (unsigned i = 0; i < 4; i++)
            key[i] = rng_next(&rng);
        for (size_t i = 0; i < nbytes; i++)
            bytes[i] = (uint8_t)rng_next(&rng);
        scene("%zu bytes", nbytes);
        highway128(key, bytes, nbytes, hash);
        slow_hash(key, bytes, nbytes, wanted);
        expect(hash[0] == wanted[0] && hash[1] == wanted[1]);
    }
}

/* ---- Redisson --------------------------------------------------------------------------- */

/* "test" hashes to b5ad2bbe285a54ee 57a133dfad89f84a under Redisson's key.  Nothing is written
 * behind the bits that were asked for. */
TEST(test_bits)
{
    static const uint64_t wanted[7] = { 8351, 6107, 4873, 2629, 1395, 8736, 7502 };
    const struct redisson config = { 9585, 7, 1000, 0.01 };
    uint64_t bits[8] = { [7] = 4711 };
    redisson_bits(&config, "test", 4, bits);
    for (unsigned i = 0; i < 7; i++)
        expect(bits[i] == wanted[i]);
    expect(bits[7] == 4711);
}

/* The bits are h1, h1 + h2, 2 h1 + h2, 2 h1 + 2 h2, ... modulo 2^63, modulo the size. */
TEST(test_any_bits)
{
    static const uint64_t key[4] = { 0x9e3779b97f4a7c15, 0xf39cc0605cedc834, 0x1082276bf3a27251,
                                     0xf86c6a11d0c18e95 };
    struct rng rng = rng_for(__func__);
    for (unsigned trial = 0; trial < many(2000); trial++) {
        struct redisson config = { .nbits = 1 + rng_below(&rng, REDISSON_BITS_MOST),
                                   .nhashes = 1 + (unsigned)rng_below(&rng, 64) };
        uint64_t element = rng_next(&rng), hash[2], bits[REDISSON_HASHES_MOST];
        redisson_bits(&config, &element, sizeof element, bits);
        slow_hash(key, (const uint8_t *)&element, sizeof element, hash);
        for (uint64_t i = 0; i < config.nhashes; i++) {
            uint64_t sum = (i / 2 + 1) * hash[0] + (i + 1) / 2 * hash[1];
            if (i % 2 == 0)
                sum = i / 2 * (hash[0] + hash[1]) + hash[0];
            expect(bits[i] == sum % (UINT64_C(1) << 63) % config.nbits);
        }
    }
}

/* Reads a config whose fields have these texts; NULL: the field is missing.  Returns NULL, or
 * what is wrong. */
static const char *read_config(const char *const text[REDISSON_FIELDS], struct redisson *config)
{
    struct redisson_value values[REDISSON_FIELDS] = { { 0 } };
    char all[200] = "";
    size_t nall = 0;
    for (unsigned i = 0; i < REDISSON_FIELDS; i++)
        if (text[i]) {
            values[i] = (struct redisson_value){ text[i], strlen(text[i]) };
            nall += (size_t)snprintf(all + nall, sizeof all - nall, " %s", text[i]);
        }
    scene("%s", all);
    return redisson_read(values, config);
}

/* Checks that a number is written like this (NULL: in any way) and read again exactly. */
static void expect_written(double share, const char *wanted)
{
    char text[SHARE_NBYTES];
    struct redisson config;
    share_write(share, text);
    expect(!read_config((const char *const[]){ "9585", "7", "1000", text }, &config));
    expect(config.fpr == share);
    if (wanted)
        expect(strcmp(text, wanted) == 0);
}

/* A falseProbability that is written is read again exactly: 53 random bits, of many sizes. */
TEST(test_written)
{
    struct rng rng = rng_for(__func__);
    expect_written(0.01, "1e-2");
    expect_written(0.025, "25e-3");
    expect_written(1, "1e0");
    for (unsigned trial = 0; trial < many(5000); trial++)
        expect_written(ldexp((double)(rng_next(&rng) >> 11), -53 - (int)(trial % 60)), NULL);
}

TEST(test_written_with_a_decimal_comma)
{
    use_decimal_comma();
    test_written(NULL);
    setlocale(LC_ALL, "C");
}

/* Numbers as Java writes them, the largest ones that are taken, and a config with no more than
 * the two fields that a query needs. */
TEST(test_read)
{
    static const struct {
        const char *text;
        double share;
    } shares[] = { { "0.03", 0.03 },      { "1.0E-6", 1e-6 }, { "1.0E-15", 1e-15 },
                   { "0.0000010", 1e-6 }, { "1", 1 },         { "0", 0 },
                   { "1.0", 1 },          { ".5", 0.5 },      { "2.5e-1", 0.25 } };
    struct redisson config;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        const char *const text[] = { "9585", "7", "1000", shares[i].text };
        expect(!read_config(text, &config) && config.fpr == shares[i].share);
        expect(config.nbits == 9585 && config.nhashes == 7 && config.capacity == 1000);
    }
    const char *const most[] = { "4294967294", "64", "9223372036854775807", "1" };
    expect(!read_config(most, &config) && config.capacity == INT64_MAX && config.fpr == 1);
    const char *const bare[] = { "4294967294", "64", NULL, NULL };
    expect(!read_config(bare, &config) && config.nbits == 4294967294 && config.nhashes == 64);
    expect(config.capacity == 0 && config.fpr == 0);
}

/* Each row is refused by a line that names the field, and leaves the struct as it was. */
TEST(test_bad_configs)
{
    static const char *const bad[][REDISSON_FIELDS + 1] = {
        { NULL, "7", "1", "0.1", "not the config" },
        { "9585", NULL, "1", "0.1", "not the config" },
        { "0", "7", "1", "0.1", "4294967294" },
        { "4294967295", "7", "1", "0.1", "4294967294" },
        { "18446744073709561201", "7", "1", "0.1", "4294967294" },
        { "-1", "7", "1", "0.1", "4294967294" },
        { "", "7", "1", "0.1", "4294967294" },
        { "9585 ", "7", "1", "0.1", "4294967294" },
        { "9585.0", "7", "1", "0.1", "4294967294" },
        { "9585", "0", "1", "0.1", "hashIterations" },
        { "9585", "65", "1", "0.1", "hashIterations" },
        { "9585", "7x", "1", "0.1", "hashIterations" },
        { "9585", "7", "-1", "0.1", "expectedInsertions" },
        { "9585", "7", "9223372036854775808", "0.1", "expectedInsertions" },
        { "9585", "7", "", "0.1", "expectedInsertions" },
        { "9585", "7", "1", "", "falseProbability" },
        { "9585", "7", "1", ".", "falseProbability" },
        { "9585", "7", "1", "-0.1", "falseProbability" },
        { "9585", "7", "1", "1.01", "falseProbability" },
        { "9585", "7", "1", "1E999", "falseProbability" },
        { "9585", "7", "1", "0.1E", "falseProbability" },
        { "9585", "7", "1", "0.1E-", "falseProbability" },
        { "9585", "7", "1", "0.1E-9999", "falseProbability" },
        { "9585", "7", "1", "0.1 ", "falseProbability" },
        { "9585", "7", "1", "0,1", "falseProbability" },
        { "9585", "7", "1", "0.1.1", "falseProbability" },
        { "9585", "7", "1", "NaN", "falseProbability" },
        { "9585", "7", "1", "Infinity", "falseProbability" },
        { "9585", "7", "1", "0x1", "falseProbability" },
        { "9585", "7", "1", "0.10000000000000000000000000000001", "falseProbability" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct redisson config = { 1, 2, 3, 4 };
        const char *problem = read_config(bad[i], &config), *about = bad[i][REDISSON_FIELDS];
        scene("case %zu: %s; about: %s", i, problem ? problem : "taken", about);
        expect(problem && strstr(problem, about));
        expect(config.nbits == 1 && config.nhashes == 2);
        expect(config.capacity == 3 && config.fpr == 4);
    }
}

/* The config's key has the hash tag of the filter's name, so that both lie in one slot. */
TEST(test_config_keys)
{
    char key[15];
    expect(redisson_config_key("a/b}c", key) == 14 && strcmp(key, "{a/b}c}:config") == 0);
    expect(redisson_config_key("x{a}", key) == 11 && strcmp(key, "x{a}:config") == 0);
}
