/* bloom.h - classic Bloom filters: where the bits of a key lie, their loops, and the union and
 * the intersection of two Bloom filters. */
#ifndef BLOOM_H
#define BLOOM_H

#include "../../base/bytes.h"
#include "../../filter/filter.h"

enum { NBITS, KEY_BITS }; /* its fields */

/* Returns the next place of a key.  The bits of a key are scale64() of its first place, then of
 * each next one; this is part of the file format (doc/FORMAT.md). */
static inline uint64_t bloom_next_place(uint64_t place, uint64_t mark)
{
    return place * ODD_GOLDEN + mark;
}

/* An add() of the loops (loops.h) for bodies that other threads or processes write at the same
 * moment: each bit that is clear is set by an atomic operation. */
size_t bloom_add_atomic(const struct body *b, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool *answer);

/* ORs the body of 'other' into that of f, and counts the keys by what is set then.  Serves
 * blocked filters, too. */
void bloom_unite(perhaps_filter *f, const perhaps_filter *other);

/* Keeps in f only the bits that 'other' has, too, and counts the keys anew: intersect() of
 * kind.h.  Serves blocked filters, too. */
void bloom_intersect(perhaps_filter *f, const perhaps_filter *other);

#endif
