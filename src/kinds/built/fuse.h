/* fuse.h - binary fuse filters: where the slots of a key lie, and their loops. */
#ifndef FUSE_H
#define FUSE_H

#include "../../base/bytes.h"
#include "../../filter/filter.h"

/* The fields. */
enum { SLOT_BITS, SHARD_BITS, SEGMENT_BITS, SEGMENTS };

/* What is derived, for the loops alone. */
enum {
    SHARDS = PERHAPS_FIELDS_MAX - 5,
    SEGMENT_MASK, /* the slots of a segment, less 1 */
    FIRST_SLOTS,  /* in which the first slot of a key can lie: those of SEGMENTS segments */
    SHARD_SLOTS,
    SALTS_AT, /* where in the body the salts begin */
};

enum {
    FUSE_SEGMENT_BITS_LEAST = 3,
    FUSE_SEGMENT_BITS_MOST = 18, /* twice as many, and 28 more, come from half of a product */
    FUSE_SALTS = 64,
    FUSE_WAITING = 32, /* keys of a batch that wait for their lines at a time */
};

/* Returns the 64 bits that stand for a key in its shard.  The salt rotates the place: two keys
 * that get the same slots under one salt most likely do not under another.  The mark is not
 * needed, since what a place of 64 bits adds to the rate is counted for each hash. */
static ALWAYS_INLINE uint64_t fuse_mix(uint64_t place, unsigned salt)
{
    return place >> (salt & 63) | place << (-salt & 63);
}

/* The three slots of a key, and in its lowest bits what they add up to. */
struct fuse_spot {
    uint64_t first, second, third;
    uint32_t fingerprint;
};

/* The slots lie in three segments in a row.  Of the lower word of the product the upper half
 * decides about the first slot, and the lower half is the fingerprint; the upper word decides
 * where in their segments the others lie.  Slots are counted on from 'base', where a segment
 * begins. */
static ALWAYS_INLINE struct fuse_spot fuse_spot(uint64_t mixed, uint64_t base,
                                                uint64_t first_slots, uint64_t segment_mask)
{
    uint64_t low = mixed * ODD_GOLDEN, high = scale64(mixed, ODD_GOLDEN);
    uint64_t first = base + scale64(low, first_slots), second = first + segment_mask + 1;
    uint64_t third = second + segment_mask + 1;
    return (struct fuse_spot){
        .first = first,
        .second = second ^ (high & segment_mask),
        .third = third ^ (high >> FUSE_SEGMENT_BITS_MOST & segment_mask),
        .fingerprint = (uint32_t)low,
    };
}

/* Returns where the slot of this number begins.  Two slots of 12 bits share three bytes. */
static ALWAYS_INLINE const uint8_t *fuse_slot(const uint8_t *slots, uint64_t number,
                                              unsigned bits)
{
    return slots + (bits == 12 ? number + number / 2 : number * (bits / 8));
}

/* Returns the slot of this number. */
static ALWAYS_INLINE uint32_t fuse_load(const uint8_t *slots, uint64_t number, unsigned bits)
{
    const uint8_t *at = fuse_slot(slots, number, bits);
    uint16_t word;
    if (bits == 8)
        return *at;
    if (bits == 32)
        return load32(at);
    memcpy(&word, at, sizeof word);
    return bits == 16 ? word : (uint32_t)word >> (number % 2 * 4) & 0xfff;
}

/* Returns what the slots of a key and its fingerprint add up to: 0 if it is perhaps there. */
static ALWAYS_INLINE uint32_t fuse_sum(const uint8_t *slots, const struct fuse_spot *spot,
                                       unsigned bits)
{
    uint32_t sum = fuse_load(slots, spot->first, bits) ^ fuse_load(slots, spot->second, bits) ^
                   fuse_load(slots, spot->third, bits) ^ spot->fingerprint;
    return sum & (uint32_t)((UINT64_C(1) << bits) - 1);
}

/* ---- fuse_loops.c ------------------------------------------------------------------------ */

/* Returns the loops for slots of so many bits. */
struct loops fuse_loops(enum cpu cpu, unsigned slot_bits);

/* ---- fuse_build.c ------------------------------------------------------------------------ */

/* The operation build() of the kind. */
int fuse_build(struct building *b);

#endif
