/* codec.c - writes strings as Redisson's Kryo5Codec and JsonJacksonCodec do.
 *
 * Keys are UTF-8.  Java has a string as units of 16 bits: one for each character, and two of
 * them, surrogates, for each beyond U+FFFF, which has four bytes in UTF-8.  Both codecs write
 * the two one after the other, and all other characters beyond ASCII as UTF-8.  So only the
 * characters of four bytes need to be taken apart. */
#include "codec.h"

#include <stdint.h>
#include <string.h>

/* ---- UTF-8 ------------------------------------------------------------------------------ */

/* The first byte of a character of four bytes.  Those of shorter ones are lower. */
enum { FOUR_BYTES = 0xf0 };

/* Reads the character at the beginning of some bytes, at least one.  Returns how many bytes it
 * has; 0 if it is not UTF-8, also if it is longer than needed or a surrogate. */
static size_t read_character(const unsigned char *at, size_t left, uint32_t *character)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t nbytes = at[0] < 0x80         ? 1
                    : at[0] < 0xc0       ? 0
                    : at[0] < 0xe0       ? 2
                    : at[0] < FOUR_BYTES ? 3
                    : at[0] < 0xf8       ? 4
                                         : 0;
    if (nbytes == 0 || nbytes > left)
        return 0;
    uint32_t c = nbytes == 1 ? at[0] : at[0] & 0x7fU >> nbytes;
    for (size_t i = 1; i < nbytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (at[i] & 0x3f);
    }
    if (c < least[nbytes] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *character = c;
    return nbytes;
}

/* Takes a character of four bytes apart. */
static void read_surrogates(const unsigned char *at, unsigned unit[2])
{
    uint32_t c = 0x10000;
    read_character(at, 4, &c);
    unit[0] = 0xd800 + (c - 0x10000) / 0x400;
    unit[1] = 0xdc00 + (c - 0x10000) % 0x400;
}

const char *codec_check(const void *key, size_t nbytes)
{
    const unsigned char *at = key;
    uint32_t character;
    if (nbytes > INT32_MAX)
        return "the key has more bytes than a string of Java may have";
    for (size_t i = 0, n; i < nbytes; i += n)
        if (!(n = read_character(at + i, nbytes - i, &character)))
            return "the key is not UTF-8, and so no string of Java: only codec=string takes it";
    return NULL;
}

/* ---- Kryo 5 ----------------------------------------------------------------------------- */

/* The number of java.lang.String among the classes that Kryo knows is 1, and it writes numbers
 * of classes plus 2.  Redisson writes without references, so no sign of one follows. */
enum { KRYO_STRING = 3 };

/* Kryo 5 writes ASCII of this many characters without a length: the last byte has bit 7 set.
 * (Kryo 4 did so up to 63.) */
enum { KRYO_ASCII_LEAST = 2, KRYO_ASCII_MOST = 32 };

/* Writes a length: six bits in the first byte, seven in each that follows.  Bit 7 of the first
 * says that it is a length; bit 6, and bit 7 of the others, that another byte follows. */
static unsigned char *write_length(size_t length, unsigned char *to)
{
    *to++ = (unsigned char)(0x80 | (length > 0x3f ? 0x40 : 0) | (length & 0x3f));
    for (length >>= 6; length; length >>= 7)
        *to++ = (unsigned char)((length > 0x7f ? 0x80 : 0) | (length & 0x7f));
    return to;
}

/* Returns how many units of 16 bits a string has.  They are as many as its bytes only if it is
 * ASCII. */
static size_t count_units(const unsigned char *key, size_t nbytes)
{
    size_t nunits = 0;
    for (size_t i = 0; i < nbytes; i++) {
        nunits += (key[i] & 0xc0) != 0x80;
        nunits += key[i] >= FOUR_BYTES;
    }
    return nunits;
}

/* Surrogates are written as if each were a character, with three bytes. */
static unsigned char *write_kryo5(const unsigned char *key, size_t nbytes, unsigned char *to)
{
    size_t nunits = count_units(key, nbytes);
    *to++ = KRYO_STRING;
    if (nunits == nbytes && nunits >= KRYO_ASCII_LEAST && nunits <= KRYO_ASCII_MOST) {
        memcpy(to, key, nbytes);
        to[nbytes - 1] |= 0x80;
        return to + nbytes;
    }
    to = write_length(nunits + 1, to);
    for (size_t i = 0; i < nbytes; i++) {
        unsigned unit[2];
        if (key[i] < FOUR_BYTES) {
            *to++ = key[i];
            continue;
        }
        read_surrogates(key + i, unit);
        for (unsigned u = 0; u < 2; u++) {
            *to++ = (unsigned char)(0xe0 | unit[u] >> 12);
            *to++ = (unsigned char)(0x80 | (unit[u] >> 6 & 0x3f));
            *to++ = (unsigned char)(0x80 | (unit[u] & 0x3f));
        }
        i += 3;
    }
    return to;
}

/* ---- JSON ------------------------------------------------------------------------------- */

/* Writes a unit of 16 bits as \uXXXX. */
static unsigned char *write_escape(unsigned unit, unsigned char *to)
{
    static const char digit[] = "0123456789ABCDEF";
    *to++ = '\\';
    *to++ = 'u';
    for (unsigned shift = 16; shift; shift -= 4)
        *to++ = (unsigned char)digit[unit >> (shift - 4) & 0xf];
    return to;
}

/* Returns the letter that stands behind a backslash for this byte; 0: none does. */
static char letter_for(unsigned char byte)
{
    static const char bytes[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = byte ? strchr(bytes, byte) : NULL;
    return found ? letters[found - bytes] : 0;
}

/* Jackson 2 writes a string between quotes, without the name of its class, and surrogates as
 * escapes. */
static unsigned char *write_json(const unsigned char *key, size_t nbytes, unsigned char *to)
{
    *to++ = '"';
    for (size_t i = 0; i < nbytes; i++) {
        char letter = letter_for(key[i]);
        if (letter) {
            *to++ = '\\';
            *to++ = (unsigned char)letter;
        } else if (key[i] < ' ') {
            to = write_escape(key[i], to);
        } else if (key[i] < FOUR_BYTES) {
            *to++ = key[i];
        } else {
            unsigned unit[2];
            read_surrogates(key + i, unit);
            to = write_escape(unit[1], write_escape(unit[0], to));
            i += 3;
        }
    }
    *to++ = '"';
    return to;
}

/* ---- All of it -------------------------------------------------------------------------- */

size_t codec_write(enum codec codec, const void *key, size_t nbytes, unsigned char *out)
{
    unsigned char *end =
        codec == CODEC_JSON ? write_json(key, nbytes, out) : write_kryo5(key, nbytes, out);
    return (size_t)(end - out);
}
