/* codec_test.c - proves that the client writes strings as the codecs of Redisson do, Kryo5Codec
 * and JsonJacksonCodec: against vectors, and against a second implementation that writes the
 * units of 16 bits as Java has them.  Keys that are no strings must be refused.
 *
 * It fails when a key that Java added would be hashed otherwise, and so denied. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "redisson.h"

/* ---- Vectors ---------------------------------------------------------------------------- */

/* A key, and the bytes that a codec makes of it. */
struct coded {
    const char *key;
    size_t nkey;
    const char *bytes;
    size_t nbytes;
};
#define CODED(key, bytes)                                                                      \
    {                                                                                          \
        key, sizeof(key) - 1, bytes, sizeof(bytes) - 1                                         \
    }

#define MARKS                                                                                  \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ\rabcdefghijklmnopqrstuvwxyz\n1234567890\t\"!`?'.,;:()[]{}"
#define TAIL "<>|/@\\^$-%+=#_&~*"
#define TEN  "0123456789"

/* The strings and their lengths (5, 3, 3, 2, 100 and 21) are those of testString() without
 * references in test/com/esotericsoftware/kryo/serializers/DefaultSerializersTest.java of
 * EsotericSoftware/kryo.  The bytes follow from writeString(), writeVarIntFlag() and
 * writeUtf8_slow() in src/com/esotericsoftware/kryo/io/Output.java of Kryo 5, and from
 * writeClass() in util/DefaultClassResolver.java (the id plus 2) and the constructor of
 * Kryo.java (int has the id 0, String 1).  Kryo 2.20 wrote the same bytes, but for ASCII
 * of 33 to 63 characters, which it writes without a length. */
static const struct coded kryo5[] = {
    CODED("meow", "\3meo\xf7"),
    CODED("a", "\3\202a"),
    CODED("\n", "\3\x82\n"),
    CODED("", "\3\x81"),
    CODED(MARKS TAIL, "\3\xe2\1" MARKS TAIL),
    CODED("abcdef\u00e1\u00e9\u00ed\u00f3\u00fa\u7c9f",
          "\3\215abcdef\u00e1\u00e9\u00ed\u00f3\u00fa\u7c9f"),
    /* ASCII: to 32 characters, and from 33 on; 62 is the most for one byte of the length. */
    CODED("\0\x7f", "\3\0\xff"),
    CODED("\0", "\3\x82\0"),
    CODED(TEN TEN TEN "ab", "\3" TEN TEN TEN "a\xe2"),
    CODED(TEN TEN TEN "abc", "\3\xa2" TEN TEN TEN "abc"),
    CODED(TEN TEN TEN TEN TEN TEN "ab", "\3\xbf" TEN TEN TEN TEN TEN TEN "ab"),
    CODED(TEN TEN TEN TEN TEN TEN "abc", "\3\xc0\1" TEN TEN TEN TEN TEN TEN "abc"),
    /* Two surrogates, three bytes each, count as two. */
    CODED("\U0001f602", "\3\x83\xed\xa0\xbd\xed\xb8\x82"),
    CODED("\U0010ffff!", "\3\x84\xed\xaf\xbf\xed\xbf\xbf!"),
};

/* Written by jackson-databind 2.14, set up as src/main/java/org/redisson/codec/
 * JsonJacksonCodec.java of redisson/redisson does: no name of the class, since String is final,
 * and the escapes of UTF8JsonGenerator.java of FasterXML/jackson-core.  Its Surrogate223Test
 * says that surrogates are escapes by default in 2.x. */
static const struct coded json[] = {
    CODED("", "\"\""),
    CODED("meow", "\"meow\""),
    CODED("\"\\/'<&", "\"\\\"\\\\/'<&\""),
    CODED("\b\f\n\r\t\v", "\"\\b\\f\\n\\r\\t\\u000B\""),
    CODED("\0\x1f \x7f", "\"\\u0000\\u001F \x7f\""),
    CODED("\u00e1\u2028\uffff", "\"\u00e1\u2028\uffff\""),
    CODED("\U0001f602", "\"\\uD83D\\uDE02\""),
    CODED("\U00010000\U0010ffff", "\"\\uD800\\uDC00\\uDBFF\\uDFFF\""),
};

/* Checks that a codec makes these bytes of a key, and writes no more than there is room for. */
static void expect_coded(enum codec codec, const void *key, size_t nkey, const void *wanted,
                         size_t nwanted)
{
    size_t room = CODEC_ROOM(nkey);
    unsigned char *out = malloc(room);
    expect(out && !codec_check(key, nkey));
    size_t nbytes = codec_write(codec, key, nkey, out);
    expect(nbytes <= room && nbytes == nwanted && memcmp(out, wanted, nbytes) == 0);
    free(out);
}

TEST(test_kryo5)
{
    for (size_t i = 0; i < sizeof kryo5 / sizeof *kryo5; i++) {
        const struct coded *c = &kryo5[i];
        scene("%s", c->key);
        expect_coded(CODEC_KRYO5, c->key, c->nkey, c->bytes, c->nbytes);
    }
}

TEST(test_json)
{
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        const struct coded *c = &json[i];
        scene("%s", c->key);
        expect_coded(CODEC_JSON, c->key, c->nkey, c->bytes, c->nbytes);
    }
}

/* ---- A second implementation ------------------------------------------------------------ */

/* A string as Java has it, and bytes that are written one by one. */
struct text {
    unsigned unit[20000];
    size_t nunits;
    unsigned char byte[160000];
    size_t nbytes;
};

static void put(struct text *t, unsigned byte)
{
    t->byte[t->nbytes++] = (unsigned char)byte;
}

/* Writes a number below 0x110000 as UTF-8, which is extended to surrogates. */
static void put_utf8(struct text *t, unsigned c)
{
    unsigned nmore = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned lead[] = { 0, 192, 224, 240 };
    put(t, lead[nmore] + (c >> 6 * nmore));
    while (nmore-- > 0)
        put(t, 128 + (c >> 6 * nmore) % 64);
}

/* Writes what Kryo 5 writes of the units, as its documents tell it. */
static void put_kryo5(struct text *t)
{
    unsigned all = 0, n = (unsigned)t->nunits, length = n + 1;
    for (size_t i = 0; i < n; i++)
        all |= t->unit[i];
    put(t, 3);
    bool bare = n > 1 && n < 33 && all < 128;
    if (!bare && length < 64)
        put(t, 128 + length);
    if (!bare && length >= 64)
        put(t, 192 + length % 64);
    if (!bare && length >= 64 && length < 8192)
        put(t, length / 64);
    if (!bare && length >= 8192) {
        put(t, 128 + length / 64 % 128);
        put(t, length / 8192);
    }
    for (size_t i = 0; i < n; i++)
        put_utf8(t, t->unit[i]);
    if (bare)
        t->byte[t->nbytes - 1] += 128;
}

/* Writes what Jackson 2 writes of the units. */
static void put_json(struct text *t)
{
    put(t, '"');
    for (size_t i = 0; i < t->nunits; i++) {
        unsigned c = t->unit[i];
        if (c >= 8 && c <= 13 && c != 11) {
            put(t, '\\');
            put(t, (unsigned char)"btn?fr"[c - 8]);
        } else if (c == '"' || c == '\\') {
            put(t, '\\');
            put(t, c);
        } else if (c < 32 || (c >= 0xd800 && c < 0xe000)) {
            t->nbytes += (size_t)sprintf((char *)t->byte + t->nbytes, "\\u%04X", c);
        } else
            put_utf8(t, c);
    }
    put(t, '"');
}

/* Adds a random character of one of six sorts to the units and to the key. */
static void add_character(struct rng *rng, unsigned sort, struct text *units, struct text *key)
{
    static const unsigned from[] = { 32, 0, 0x80, 0x800, 0xe000, 0x10000 },
                          to[] = { 0x7f, 0x80, 0x800, 0xd800, 0x10000, 0x110000 };
    unsigned c = from[sort] + (unsigned)rng_below(rng, to[sort] - from[sort]);
    put_utf8(key, c);
    if (c < 0x10000)
        units->unit[units->nunits++] = c;
    else {
        units->unit[units->nunits++] = 0xd800 + (c - 0x10000) / 1024;
        units->unit[units->nunits++] = 0xdc00 + c % 1024;
    }
}

/* Random strings, of characters of one sort or of all, against a second implementation. */
TEST(test_any_string)
{
    static const unsigned lengths[] = { 0, 1, 2, 31, 32, 33, 62, 63, 64, 300 };
    struct rng rng = rng_for(__func__);
    struct text *units = malloc(sizeof *units), *key = malloc(sizeof *key);
    for (unsigned trial = 0; trial < many(5000); trial++) {
        unsigned length = lengths[rng_below(&rng, 10)], sort = (unsigned)rng_below(&rng, 7);
        if (trial % 100 == 0)
            length = 8180 + (unsigned)rng_below(&rng, 20);
        units->nunits = units->nbytes = key->nbytes = 0;
        for (unsigned i = 0; i < length; i++)
            add_character(&rng, sort < 6 ? sort : (unsigned)rng_below(&rng, 6), units, key);
        scene("%u characters of sort %u, %zu units", length, sort, units->nunits);
        put_kryo5(units);
        expect_coded(CODEC_KRYO5, key->byte, key->nbytes, units->byte, units->nbytes);
        units->nbytes = 0;
        put_json(units);
        expect_coded(CODEC_JSON, key->byte, key->nbytes, units->byte, units->nbytes);
    }
    free(units);
    free(key);
}

/* ---- Refusals, and bits ----------------------------------------------------------------- */

/* The ends of what is UTF-8; and bytes that are none: cut, too long, surrogates, too large. */
TEST(test_utf8)
{
    static const char *const good[] = {
        "\x7f",         "\xc2\x80",     "\xdf\xbf",         "\xe0\xa0\x80",    "\xed\x9f\xbf",
        "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"
    };
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xff",
        "\xc3",
        "a\xc3",
        "\xc3(",
        "\xc3\xc3",
        "\xc0\xaf",
        "\xc1\xbf",
        "\xe2\x82",
        "\342\202a",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x9f\x98",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect(!codec_check(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scene("case %zu", i);
        expect(codec_check(bad[i], strlen(bad[i])));
    }
    expect(strstr(codec_check("", (size_t)INT32_MAX + 1), "more bytes"));
}

/* The bits that tests/cli/cli_cluster_test.sh sets by SETBIT, as Redisson would.  A third
 * implementation, in Python, computed them from the strings. */
TEST(test_coded_bits)
{
    static const struct {
        const char *key;
        uint64_t kryo5[7], json[7];
    } rows[] = {
        { "meow",
          { 1244, 9454, 1113, 9323, 982, 9192, 8088 },
          { 108, 5861, 5969, 2137, 2245, 7998, 8106 } },
        { "https://example.org/a/page/that/is/long/enough",
          { 3341, 1179, 4520, 10, 3351, 1189, 4530 },
          { 657, 2782, 3439, 5564, 3873, 8346, 6655 } },
        { "\u00e9\U0001f602\"",
          { 2346, 8319, 8317, 4705, 4703, 1091, 1089 },
          { 8763, 2935, 2113, 5870, 5048, 8805, 7983 } },
    };
    const struct redisson config = { 9585, 7, 1000, 0.01 };
    unsigned char out[CODEC_ROOM(100)];
    uint64_t bits[7];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t nkey = strlen(rows[i].key);
        redisson_bits(&config, out, codec_write(CODEC_KRYO5, rows[i].key, nkey, out), bits);
        expect(memcmp(bits, rows[i].kryo5, sizeof bits) == 0);
        redisson_bits(&config, out, codec_write(CODEC_JSON, rows[i].key, nkey, out), bits);
        expect(memcmp(bits, rows[i].json, sizeof bits) == 0);
    }
}
