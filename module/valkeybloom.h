/* valkeybloom.h - Bloom filters of valkey-bloom: how its commands make them here. */
#ifndef VALKEYBLOOM_H
#define VALKEYBLOOM_H

#include <stddef.h>
#include <stdint.h>

enum { VALKEYBLOOM_SEED_NBYTES = 32 };

struct valkeybloom_wish {
    uint64_t capacity;
    double fpr;         /* of its first layer */
    double tightening;  /* of each further one, to the one before: 0 < tightening < 1 */
    uint32_t expansion; /* 0: does not grow */
    const char *seed;   /* 32 bytes */
};

/* Makes an empty filter.  Returns NULL and sets *why if there is too little memory, or there
 * are no such filters. */
void *valkeybloom_create(const struct valkeybloom_wish *wish, const char **why);

/* Makes the filter that BF.LOAD gets as one string.  Returns NULL and sets *why if an enemy
 * wrote it, or there is too little memory. */
void *valkeybloom_decode(const char *bytes, size_t nbytes, const char **why);

#endif
