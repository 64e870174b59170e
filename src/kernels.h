/* kernels.h - the inner loops, one table for each instruction set.
 *
 * A kernel sees pointers and integers, never a filter.  The contract of all of them:
 * - 'keys' are n hashes to deal with, in order; 'ahead' are n hashes of keys that come later:
 *   while it works on keys[i] the kernel prefetches what ahead[i] will need.  The caller
 *   passes ahead == keys where none comes later.
 * - It reads and writes the body only; any geometry that passed the kind's set_geometry()
 *   with any body is memory-safe.
 * - answer[i] is written for every i < n. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The 128 bits of a key's hash: one half chooses the place, the other what is marked there,
 * so that they are independent. */
struct keyhash {
    uint64_t place;
    uint64_t mark;
};

struct kernels {
    const char *name;

    /* Blocked Bloom filters (src/filters/blocked.c has the picture): 'parts' times
     * 'part_lines' cache lines, 'bits' bits a line.  Contains returns how many of the answers
     * are true; add sets answer[i] if the key was there and returns how many were not. */
    void (*blocked_prefetch)(const uint8_t *body, uint64_t part_lines, unsigned parts,
                             const struct keyhash *keys, size_t n);
    size_t (*blocked_contains)(const uint8_t *body, uint64_t part_lines, unsigned parts,
                               unsigned bits, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer);
    size_t (*blocked_add)(uint8_t *body, uint64_t part_lines, unsigned parts, unsigned bits,
                          const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                          bool *answer);

    /* Classic Bloom filters (src/filters/bloom.c): 'bits' bits a key in 'nbits'. */
    void (*bloom_prefetch)(const uint8_t *body, uint64_t nbits, unsigned bits,
                           const struct keyhash *keys, size_t n);
    size_t (*bloom_contains)(const uint8_t *body, uint64_t nbits, unsigned bits,
                             const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                             bool *answer);
    size_t (*bloom_add)(uint8_t *body, uint64_t nbits, unsigned bits,
                        const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                        bool *answer);

    /* Cuckoo filters (src/filters/cuckoo.c): 'width' bits a fingerprint. */
    void (*cuckoo_prefetch)(const uint8_t *body, uint64_t nbuckets, unsigned width,
                            const struct keyhash *keys, size_t n);
    size_t (*cuckoo_contains)(const uint8_t *body, uint64_t nbuckets, unsigned width,
                              const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                              bool *answer);
};

extern const struct kernels kernels_scalar;

/* The best table that this CPU can run.  Asked once per batch. */
const struct kernels *kernels_choose(void);

#endif
