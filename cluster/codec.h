/* codec.h - what the codecs of Redisson make of a string of Java: the bytes that its Bloom
 * filters hash. */
#ifndef CODEC_H
#define CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "address.h"

/* Returns whether the codec leaves keys as they are, and takes any bytes.  What follows is for
 * the other codecs. */
static inline bool codec_is_plain(enum codec codec)
{
    return codec == CODEC_NOT_GIVEN || codec == CODEC_STRING;
}

/* Checks that a key is a string of Java, written as UTF-8.  Returns NULL; or one line that says
 * what is wrong and what to do. */
const char *codec_check(const void *key, size_t nbytes);

/* No codec makes more bytes than this of a key.  JSON writes a control character as six, and
 * has a quote before and behind the key. */
#define CODEC_ROOM(key_nbytes) (6 * (key_nbytes) + 8)

/* Writes a key that was checked as the codec does, into CODEC_ROOM(nbytes) bytes.  Returns how
 * many it wrote. */
size_t codec_write(enum codec codec, const void *key, size_t nbytes, unsigned char *out);

#endif
