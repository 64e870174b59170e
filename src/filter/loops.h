/* loops.h - the inner loops of a kind, for one instruction set.
 *
 * A loop sees pointers and integers, never a filter.  The contract of all loops:
 * - 'field' is the geometry of the kind, in the order of its field_names.  It has passed the
 *   kind's set_geometry(); the body may contain any bytes, and the loop is memory-safe.
 * - 'keys' are n hashes to work on, in order.  'ahead' are n hashes of keys that come later:
 *   while the loop works on keys[i], it prefetches what ahead[i] will need.  If no keys come
 *   later, the caller passes ahead == keys.
 * - A loop reads and writes only the body.  Its answers and the bits that it leaves are those
 *   of the scalar loop.
 * - It sets answer[i] for every i < n: to whether the key is perhaps there, or, if it adds, to
 *   whether the key was there before.
 * - If other threads may write the body meanwhile, a loop reads it in aligned words, so that
 *   each word is the old or the new one. */
#ifndef LOOPS_H
#define LOOPS_H

#include <stddef.h>

#include "../base/cpu.h"
#include "../base/keyhash.h"

/* The loops of one kind for one instruction set.  'contains' and 'add' return how many answers
 * are true.  The _one forms return the answer for their key.  They must take few instructions,
 * so that the CPU can overlap the memory accesses of several calls. */
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
