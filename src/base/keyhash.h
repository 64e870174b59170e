/* keyhash.h - what the hash of a key is. */
#ifndef KEYHASH_H
#define KEYHASH_H

#include <stdint.h>

/* The 128 bits of a key's hash: one half chooses the place, the other what is marked there,
 * so that they are independent. */
struct keyhash {
    uint64_t place;
    uint64_t mark;
};

#endif
