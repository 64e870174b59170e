/* key_locks.h - locks for bodies that several threads write at once.
 *
 * There is a byte for each line, or for several of them.  A writer holds the locks of all lines
 * of a key while it looks whether the key is there and adds it.  So it writes plainly, as if it
 * were alone, and of several threads that add the same key just one is told that it was not
 * there.  The lock is prefetched with the line: it lies in another core's cache as often as
 * not.  Readers take no lock.
 *
 * That is as fast as to sort batches by regions of the body, each with its owner, and simpler;
 * an atomic operation for every bit would make adds three times slower. */
#ifndef KEY_LOCKS_H
#define KEY_LOCKS_H

#include "../base/bytes.h"
#include "../base/compiler.h"
#include "../base/locks.h"

enum { KEY_LOCKS_MIN = 64, KEY_LOCKS_MAX = 1 << 14 };

struct key_locks {
    uint64_t mask;                             /* how many locks there are, less one */
    uint8_t room[LINE_NBYTES - sizeof(uint64_t)]; /* locks lie in cache lines of their own */
    uint8_t lock[];
};

/* Returns how many locks there are for so many lines: a power of two. */
static inline uint64_t key_locks_count(uint64_t lines)
{
    uint64_t n = KEY_LOCKS_MIN;
    while (n < lines && n < KEY_LOCKS_MAX)
        n *= 2;
    return n;
}

/* Returns how many bytes the locks take.  They begin as zeros, and key_locks_begin() sets the
 * rest. */
static inline size_t key_locks_nbytes(uint64_t lines)
{
    return sizeof(struct key_locks) + (size_t)key_locks_count(lines);
}

static inline void key_locks_begin(struct key_locks *locks, uint64_t lines)
{
    locks->mask = key_locks_count(lines) - 1;
}

/* The locks that a writer takes at once; the same number may occur twice. */
enum { LOCKS_AT_ONCE = 8 };

struct lock_set {
    unsigned count;
    uint32_t number[LOCKS_AT_ONCE];
};

static ALWAYS_INLINE void lock_set_put(struct lock_set *set, const struct key_locks *locks,
                                       uint64_t line)
{
    set->number[set->count++] = (uint32_t)(line & locks->mask);
}

static ALWAYS_INLINE void lock_set_prefetch(const struct lock_set *set,
                                            const struct key_locks *locks)
{
    for (unsigned i = 0; i < set->count; i++)
        __builtin_prefetch(&locks->lock[set->number[i]], 1, 3);
}

/* Sorts the numbers: locks are taken in order, so that no two writers wait for each other.
 * Finds the place of each by comparing it with all, which needs no branch. */
static ALWAYS_INLINE void lock_set_sort(struct lock_set *set)
{
    struct lock_set sorted = { .count = set->count };
    for (unsigned i = 0; i < set->count; i++) {
        unsigned place = 0;
        for (unsigned j = 0; j < set->count; j++)
            place += (set->number[j] < set->number[i]) |
                     ((set->number[j] == set->number[i]) & (j < i));
        sorted.number[place] = set->number[i];
    }
    *set = sorted;
}

static ALWAYS_INLINE void lock_set_take(struct lock_set *set, struct key_locks *locks)
{
    if (set->count > 1)
        lock_set_sort(set);
    for (unsigned i = 0; i < set->count; i++)
        if (i == 0 || set->number[i] != set->number[i - 1])
            lock_take(&locks->lock[set->number[i]]);
}

static ALWAYS_INLINE void lock_set_release(const struct lock_set *set, struct key_locks *locks)
{
    for (unsigned i = 0; i < set->count; i++)
        if (i == 0 || set->number[i] != set->number[i - 1])
            lock_release(&locks->lock[set->number[i]]);
}

#endif
