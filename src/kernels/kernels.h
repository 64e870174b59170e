/* kernels.h - the inner loops, one table for each instruction set.
 *
 * A kernel sees pointers and integers, never a filter.  The contract of all of them:
 * - 'field' is the geometry of the kind, in the order of its field_names; any that passed the
 *   kind's set_geometry(), with any body, is memory-safe.
 * - 'keys' are n hashes to deal with, in order; 'ahead' are n hashes of keys that come later:
 *   while it works on keys[i] the kernel prefetches what ahead[i] will need.  The caller
 *   passes ahead == keys where none comes later.
 * - It reads and writes the body only, and answers as the scalar kernel does, bit for bit.
 * - answer[i] is written for every i < n: whether the key is there; for adds, whether it was
 *   there before.
 * - A body that others may write meanwhile is read word by word: each is old or new. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/keyhash.h"

/* Of one kind.  'contains' and 'add' return how many answers are true.  The _one forms, which
 * must do with few instructions to overlap with the next call, return the answer. */
struct loops {
    void (*prefetch)(const uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                     size_t n);
    size_t (*contains)(const uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer);
    size_t (*add)(uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                  const struct keyhash *ahead, size_t n, bool *answer);
    bool (*contains_one)(const uint8_t *body, const uint64_t *field, struct keyhash key);
    bool (*add_one)(uint8_t *body, const uint64_t *field, struct keyhash key);
};

struct directory; /* layout.h */

/* What is done to the counters of a key. */
enum count_change {
    COUNT_UP,
    COUNT_UP_ABSENT, /* unless none of them is zero */
    COUNT_DOWN,      /* unless one of them is zero; those at their end stay there */
};

/* What came of it. */
struct count_tally {
    uint64_t turned; /* counters that were zero and are not, or that have become zero */
    uint64_t filled; /* counters that have come to their end */
};

struct kernels {
    const char *name;

    /* XXH3-128 of n keys of 8 bytes each, one behind the other; NULL: libxxhash is as fast. */
    void (*hash_integers)(const uint8_t *packed, size_t n, uint64_t seed, struct keyhash *out);

    struct loops blocked;
    struct loops bloom;
    struct loops cuckoo; /* its adds are in src/filters/cuckoo.c */

    struct loops counting; /* its adds and removals: */

    /* answer[i]: whether the key was there; of keys that are counted up anyway, false.  Adds to
     * *tally.  Returns how many answers are true. */
    size_t (*counting_change)(uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                              const struct keyhash *ahead, size_t n, enum count_change change,
                              bool *answer, struct count_tally *tally);

    /* As cuckoo.contains, beside writers, who count up a version of an entry's two buckets
     * before they clear one of its slots. */
    size_t (*cuckoo_contains_beside)(const uint8_t *body, const uint64_t *field,
                                     const uint32_t *versions, const struct keyhash *keys,
                                     const struct keyhash *ahead, size_t n, bool *answer);

    /* Elastic filters are asked through their directories, one a base.  'versions' as above, or
     * NULL where nobody writes. */
    void (*elastic_prefetch)(struct directory *const *directories, unsigned slot_bits,
                             const struct keyhash *keys, size_t n);
    size_t (*elastic_contains)(struct directory *const *directories, unsigned slot_bits,
                               const uint32_t *versions, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer);
};

/* The tables that this CPU can run, the plain C one first; NULL from the first index that is
 * none. */
const struct kernels *kernels_at(size_t index);

/* The one to use: the last of them, or that which the environment's PERHAPS_CPU names. */
const struct kernels *kernels_choose(void);

/* Adds for bodies that others write at the same moment: each word is set atomically, and only
 * if a bit in it is missing.  Of two who add one key at once at least one is told that it was
 * not there. */
extern const struct kernels kernels_atomic;

extern const struct kernels kernels_scalar;
#if defined(__x86_64__)
extern const struct kernels kernels_avx2;
extern const struct kernels kernels_avx512;
#elif defined(__aarch64__)
extern const struct kernels kernels_neon;
#endif

#endif
