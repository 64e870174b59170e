/* loops.h - the inner loops of a kind, for one instruction set.
 *
 * A loop sees pointers and integers, never a filter.  The contract of all of them:
 * - 'field' is the geometry of the kind, in the order of its field_names; any that passed the
 *   kind's set_geometry(), with any body, is memory-safe.
 * - 'keys' are n hashes to deal with, in order; 'ahead' are n hashes of keys that come later:
 *   while it works on keys[i] it prefetches what ahead[i] will need.  The caller
 *   passes ahead == keys where none comes later.
 * - It reads and writes the body only, and answers as the scalar one does, bit for bit.
 * - answer[i] is written for every i < n: whether the key is there; for adds, whether it was
 *   there before.
 * - A body that others may write meanwhile is read word by word: each is old or new. */
#ifndef LOOPS_H
#define LOOPS_H

#include <stddef.h>

#include "../base/cpu.h"
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

#endif
