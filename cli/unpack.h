/* unpack.h - what packed files hold. */
#ifndef UNPACK_H
#define UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Packed bytes that come in, and room for what they hold; both move on as they are used. */
struct flow {
    const uint8_t *in;
    size_t in_nbytes;
    uint8_t *out;
    size_t out_nbytes;
};

enum unpacked { UNPACKED, CORRUPT, NO_MEMORY };

/* A format.  A file is one or several members, one behind the other. */
struct unpacker {
    const char *truncated, *corrupt; /* what is wrong then */
    bool pads;                       /* zeros may stand behind a member */

    /* Makes the state of unpacking.  NULL: no memory. */
    void *(*start)(void);

    /* Goes on as far as it can.  '*inside' tells whether a member has begun and not ended; if
     * not, the next begins. */
    enum unpacked (*step)(void *state, struct flow *flow, bool *inside);

    void (*stop)(void *state);
};

extern const struct unpacker unpack_gzip, unpack_zstd, unpack_xz, unpack_bzip2;

#endif
