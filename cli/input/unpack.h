/* unpack.h - packed formats: gzip, zstd, xz, bzip2; no files. */
#ifndef UNPACK_H
#define UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Packed bytes, and room for what they hold.  An unpacker moves both on as it uses them. */
struct flow {
    const uint8_t *in;
    size_t in_nbytes;
    uint8_t *out;
    size_t out_nbytes;
};

enum unpacked { UNPACKED, CORRUPT, NO_MEMORY };

/* A packed format.  A file of it is one member or several, one behind the other. */
struct unpacker {
    const char *truncated, *corrupt; /* what to say of such a file */
    bool pads;                       /* zeros may stand behind a member, as padding */

    size_t state_nbytes; /* of the state, which is all zero at the beginning */

    /* Unpacks as much as there is input and room for.  Sets *inside to whether it is in the
     * middle of a member; if not, the next call begins a new one. */
    enum unpacked (*step)(void *state, struct flow *flow, bool *inside);

    /* Releases what the state holds, also if step() was never called. */
    void (*stop)(void *state);
};

extern const struct unpacker unpack_gzip, unpack_zstd, unpack_xz, unpack_bzip2;

#endif
