/* owners.h - many writers on one body, where each region has one owner at a time.
 *
 * A body is divided into regions, each with a lock.  A writer sorts a batch of keys by region.
 * Then it adds the keys of one region after the other, and holds the lock of the region
 * meanwhile, so it can write as if it were alone.  So it takes one lock for dozens of keys.  An
 * atomic operation for every bit would make adds three times slower, and a lock for every line
 * would travel between the caches of the cores most of the time. */
#ifndef OWNERS_H
#define OWNERS_H

#include "../filter/filter.h"

enum { REGIONS = 32 };

struct owners {
    struct {
        uint8_t lock;
        uint8_t room[63]; /* the next lock lies in another cache line */
    } region[REGIONS];
};

/* A body of field[PART_LINES] lines, where each key has one line: the one that its hash,
 * multiplied by 'times', gives. */
struct owned_lines {
    const struct loops *loops; /* for one writer, and one line a key */
    struct body body;
    struct keyhash times;
};

/* Adds n keys, at most BATCH_MOST.  Sets answer[i] to whether key i was there before. */
void owners_add_lines(struct owners *owners, const struct owned_lines *lines,
                      const struct keyhash *keys, size_t n, bool *answer);

/* Does the same for a body of field[NBITS] bits, where each key has field[KEY_BITS] bits
 * anywhere. */
void owners_add_bits(struct owners *owners, uint8_t *body, const uint64_t *field,
                     const struct keyhash *keys, size_t n, bool *answer);

#endif
