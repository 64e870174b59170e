/* owners.h - many writers, and at each moment one owner a region.
 *
 * A body is cut into regions with a lock each.  A writer sorts a batch of keys by region, and
 * adds those of a region while it holds its lock, as if it were alone.  So a lock is taken once
 * for dozens of keys, where an atomic operation for every bit would make adds three times
 * slower, and a lock for every line would be on its way between the cores most of the time. */
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

/* A body of field[PART_LINES] lines, of which each key has one: that of its hash multiplied by
 * 'times'. */
struct owned_lines {
    const struct loops *loops; /* for one writer */
    uint8_t *body;
    const uint64_t *field;
    struct keyhash times;
};

/* Adds n keys, BATCH_MOST at most; answer[i] tells whether it was there before. */
void owners_add_lines(struct owners *owners, const struct owned_lines *lines,
                      const struct keyhash *keys, size_t n, bool *answer);

/* The same for a body of field[NBITS] bits, of which each key has field[KEY_BITS] anywhere. */
void owners_add_bits(struct owners *owners, uint8_t *body, const uint64_t *field,
                     const struct keyhash *keys, size_t n, bool *answer);

#endif
