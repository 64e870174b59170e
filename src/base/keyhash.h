/* keyhash.h - the hash of a key. */
#ifndef KEYHASH_H
#define KEYHASH_H

#include <stdint.h>

/* The 128 bits of a key's hash.  'place' chooses where the key lies in the body (a line, a
 * bucket, a segment), and 'mark' chooses the bits or the fingerprint that stand for it there.
 * So the two choices are independent, as the mathematics of the fpr requires. */
struct keyhash {
    uint64_t place;
    uint64_t mark;
};

#endif
