/* strided.h - the cells of a strided filter: where the entries of a key lie (part of the file
 * format, doc/FORMAT.md), and its loops. */
#ifndef STRIDED_H
#define STRIDED_H

#include "buckets.h"

enum { NCELLS }; /* its fields: this, and WIDTH of buckets.h */

/* A place is the number of a cell; its second cell lies 1 to STRIDE_MOST cells behind.  Cells
 * of up to SHORT_MOST bits lie so near that one load gets both of a place. */
enum { STRIDE_MOST = 3, SHORT_MOST = (64 - 7) / (STRIDE_MOST + 1), STRIDED_COPIES = 4 };

/* What a key stores: a fingerprint, in a cell of one of two places. */
struct strided {
    uint32_t fingerprint;
    unsigned stride;
    uint64_t place[2];
};

/* Returns how many places there are: an even number, so that the two of an entry differ. */
static inline uint64_t strided_places(const struct body *b)
{
    return b->field[NCELLS] - STRIDE_MOST;
}

/* Returns 1, 2 or 3 by the low bits of a fingerprint. */
static ALWAYS_INLINE unsigned strided_stride(uint32_t fingerprint)
{
    return 1 + ((fingerprint & 0xff) * STRIDE_MOST >> 8);
}

/* Returns the strided entry of this fingerprint of which one place is known. */
static ALWAYS_INLINE struct strided strided_at(uint64_t place, uint32_t fingerprint,
                                               uint64_t nplaces)
{
    return (
        struct strided){ .fingerprint = fingerprint,
                         .stride = strided_stride(fingerprint),
                         .place = { place, cuckoo_other_bucket(place, fingerprint, nplaces) } };
}

static ALWAYS_INLINE struct strided strided_of(struct keyhash key, uint64_t nplaces,
                                               unsigned width)
{
    uint64_t fingerprint = cuckoo_fingerprint(key.mark, width - 1);
    return strided_at(scale64(key.place, nplaces), (uint32_t)fingerprint, nplaces);
}

/* Cell i of an entry is the first (even i) or second (odd i) cell of place i / 2.  It holds the
 * fingerprint, and in the lowest bit which of the two it is. */
static ALWAYS_INLINE uint64_t strided_cell(const struct strided *e, unsigned i)
{
    return e->place[i / 2] + (i % 2 ? e->stride : 0);
}

static ALWAYS_INLINE uint32_t strided_value(const struct strided *e, unsigned i)
{
    return e->fingerprint << 1 | i % 2;
}

/* Returns the bytes of the body from a cell on, beginning with its first bit. */
static ALWAYS_INLINE uint64_t strided_load(const uint8_t *body, uint64_t cell, unsigned width)
{
    uint64_t bit = cell * width;
    return load64(body + (bit >> 3)) >> (bit & 7);
}

static ALWAYS_INLINE uint32_t strided_get(const uint8_t *body, uint64_t cell, unsigned width)
{
    return (uint32_t)(strided_load(body, cell, width) & ((UINT64_C(1) << width) - 1));
}

static ALWAYS_INLINE void strided_set(uint8_t *body, uint64_t cell, unsigned width,
                                      uint32_t value)
{
    uint64_t bit = cell * width, mask = ((UINT64_C(1) << width) - 1) << (bit & 7);
    uint8_t *at = body + (bit >> 3);
    store64(at, (load64(at) & ~mask) | (uint64_t)value << (bit & 7));
}

/* Returns the entry that lies in a cell, with the place that the cell belongs to first, and
 * sets *second to which of its cells it is. */
static ALWAYS_INLINE struct strided strided_in(uint64_t cell, uint32_t value, uint64_t nplaces,
                                               unsigned *second)
{
    uint32_t fingerprint = value >> 1;
    uint64_t ahead = value & 1 ? strided_stride(fingerprint) : 0;
    *second = value & 1;
    /* Bytes of an enemy may hold an entry that no key can have, near the ends of the body. */
    uint64_t place = cell < ahead ? 0 : cell - ahead;
    return strided_at(place < nplaces ? place : nplaces - 1, fingerprint, nplaces);
}

/* ---- The loops --------------------------------------------------------------------------- */

const struct slot_loops *strided_loops(enum cpu cpu, unsigned width);

/* Adds an entry, and moves others for it if its cells are full.  Returns 0; or
 * PERHAPS_ERR_COPIES or PERHAPS_ERR_FULL, having changed nothing. */
int strided_insert(const struct body *b, const struct strided *e);

/* Removes one copy of an entry.  Returns whether there was one. */
bool strided_remove(const struct body *b, const struct strided *e);

/* Returns which of the four cells of an entry hold it: a bit for each. */
unsigned strided_find(const struct body *b, const struct strided *e);

#endif
