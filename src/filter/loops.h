/* loops.h - the inner loops of a kind, for one instruction set.
 *
 * A loop sees a struct body and integers, never a filter.  The contract of all loops:
 * - The fields have passed the kind's set_geometry().  The bytes may be anything, and the loop
 *   is memory-safe.
 * - 'keys' are n hashes to work on, in order.  'ahead' are n hashes of keys that come later:
 *   while the loop works on keys[i], it prefetches what ahead[i] will need.  If no keys come
 *   later, the caller passes ahead == keys.
 * - A loop reads and writes only the bytes of the body, the locks of its writers, and the
 *   counts that it is given.  Its answers and the bits that it leaves are those of the scalar
 *   loop.
 * - It sets answer[i] for every i < n: to whether the key is perhaps there, or, if it adds, to
 *   whether the key was there before.
 * - If other threads may write the body meanwhile, a loop reads it in aligned words, so that
 *   each word is the old or the new one. */
#ifndef LOOPS_H
#define LOOPS_H

#include <stddef.h>

#include <perhaps.h>

#include "../base/cpu.h"
#include "../base/xxh3.h"
#include "geometry.h"

/* What a loop works on. */
struct body {
    uint8_t *bytes;
    const void *table; /* what the kind computed for its loops; or NULL */
    uint64_t flip;     /* of the hash: struct hasher */

    /* What writers of a shared filter use to keep out of each other's way: writers_nbytes()
     * bytes of locks and versions.  NULL for other filters. */
    void *writers;
    struct geometry geometry;
};

/* What a filter counts: the members of struct perhaps_stats with these names.  A file has them
 * in this order, and processes that write a file in place count in it. */
struct counters {
    uint64_t keys;
    uint64_t failed_adds;
    uint64_t unmatched_removals;
};

/* What add_one_shared() of the loops did.  With NO_ROOM the key was not there, and nothing has
 * changed; with REFUSED the kind cannot take it (PERHAPS_ERR_ARGUMENT). */
enum shared_add { SHARED_ADDED, SHARED_PRESENT, SHARED_NO_ROOM, SHARED_REFUSED };

/* Counts the removal of a key, or that there was none, for remove_one() of the loops, and
 * returns what that does.  A count from a file may be wrong. */
static inline int count_removal(struct counters *counters, bool removed)
{
    counters->keys -= removed & (counters->keys != 0);
    counters->unmatched_removals += !removed;
    return removed ? 0 : PERHAPS_ERR_NOT_FOUND;
}

/* Returns whether a shared filter has less than 'most' keys; always without a counter, which
 * says that the key was counted.  Several threads at once may then add a few more than 'most',
 * of which the caller has kept clear of the key limit. */
static inline bool has_room(const uint64_t *count, uint64_t most)
{
    return !count || __atomic_load_n(count, __ATOMIC_RELAXED) < most;
}

/* Counts a key of a shared filter, if it has room, and returns whether it did. */
static inline bool count_below(uint64_t *count, uint64_t most)
{
    if (!has_room(count, most))
        return false;
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    return true;
}

/* The loops of one kind for one instruction set.  'contains' and 'add' return how many answers
 * are true.  The _one forms must take few instructions, so that the CPU can overlap the memory
 * accesses of several calls.  The _integer forms are for keys of 8 bytes under the hash
 * xxh3-64: they hash the key, too, by the instructions of this CPU.  CONTAINS_INTEGER() and
 * ADD_INTEGER() make them. */
struct loops {
    bool one_line; /* geometry.field[0] lines of 64 bytes, one for each key: perhaps_fast.h */
    void (*prefetch)(const struct body *b, const struct keyhash *keys, size_t n);
    size_t (*contains)(const struct body *b, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer);
    size_t (*add)(const struct body *b, const struct keyhash *keys, const struct keyhash *ahead,
                  size_t n, bool *answer);

    /* Sets line[i] to the number of the line of 64 bytes that key i changes when it is added.
     * Returns how many keys there are before the first one that is refused.  NULL: adding a key
     * may fail, or change several lines. */
    size_t (*lines)(const struct body *b, const struct keyhash *keys, size_t n, uint64_t *line);

    /* Returns whether the key is perhaps there. */
    bool (*contains_one)(const struct body *b, struct keyhash key);
    bool (*contains_integer)(const struct body *b, uint64_t key);

    /* Adds a key, when the caller has found that there is room, no other thread writes, and the
     * counters are this thread's.  Counts the key if it was stored, or the failed add.  Returns
     * 0, or the error for the user of perhaps_add(). */
    int (*add_one)(const struct body *b, struct keyhash key, struct counters *counters);
    int (*add_integer)(const struct body *b, uint64_t key, struct counters *counters);

    /* The same, but a key that is there is not added, and is not counted.  Sets *was_present to
     * whether it was.  ADD_NEW_ONE() makes it. */
    int (*add_new_one)(const struct body *b, struct keyhash key, struct counters *counters,
                       bool *was_present);

    /* Removes a copy of a key, when no other thread writes, and the counters are this thread's.
     * Counts it, or the unmatched removal.  Returns 0 or PERHAPS_ERR_NOT_FOUND. */
    int (*remove_one)(const struct body *b, struct keyhash key, struct counters *counters);

    /* Returns how many copies of a key are perhaps there. */
    uint64_t (*count_one)(const struct body *b, struct keyhash key);

    /* Adds a key while other threads may add, too, and counts it if it was not there and the
     * count is below 'most'. */
    enum shared_add (*add_one_shared)(const struct body *b, struct keyhash key, uint64_t *count,
                                      uint64_t most);
};

/* Defines the _integer forms of a kind from its _one forms, which it inlines. */
#define CONTAINS_INTEGER(contains_integer, contains_one)                                       \
    static bool contains_integer(const struct body *b, uint64_t key)                           \
    {                                                                                          \
        return contains_one(b, xxh3_keyhash_64_of_8(key, b->flip));                            \
    }
#define ADD_INTEGER(add_integer, add_one)                                                      \
    static int add_integer(const struct body *b, uint64_t key, struct counters *counters)      \
    {                                                                                          \
        return add_one(b, xxh3_keyhash_64_of_8(key, b->flip), counters);                       \
    }

/* Defines add_new_one() of a kind from its add_one() as a set, which stores no copies: so the
 * count of keys tells whether the key was there. */
#define ADD_NEW_ONE(add_new_one, add_one)                                                      \
    static int add_new_one(const struct body *b, struct keyhash key,                           \
                           struct counters *counters, bool *was_present)                       \
    {                                                                                          \
        const uint64_t before = counters->keys;                                                \
        const int error = add_one(b, key, counters);                                           \
        *was_present = !error && counters->keys == before;                                     \
        return error;                                                                          \
    }

#endif
