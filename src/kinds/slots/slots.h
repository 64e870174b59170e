/* slots.h - slots in a body: how they are read, written and compared, by their width and by the
 * shape of a bucket.
 *
 *   slot   = 'width' bits, 4 to 32; 0 = empty
 *   bucket = 4 slots; bucket b begins at bit 4 * width * b
 *   cell   = a bucket of one slot; cell c begins at bit width * c
 *
 * All loads are of 8 bytes.  They may reach 8 bytes beyond the last slot, except from buckets
 * of four slots of 16 bits.
 *
 * Many slots are compared at once, as lanes of a word: see lanes_zero(). */
#ifndef SLOTS_H
#define SLOTS_H

#include "../../base/bytes.h"
#include "../../filter/filter.h"

enum { BUCKET_SLOTS = 4, WIDTH_MIN = 4, WIDTH_MAX = 32 };

/* The four slots of a bucket are one word up to NARROW_MAX bits each: a bucket begins at a
 * multiple of 4 bits, and at one of 8 if it is 64 bits long. */
enum { NARROW_MAX = 16 };

/* ---- Reading --------------------------------------------------------------------------- */

/* Loads 8 bytes from any address.  Other threads may write meanwhile: then some bytes are old
 * and some new, but a slot that nobody changes is always read right, since writers of other
 * slots do not touch its bits.  ThreadSanitizer needs to see atomic loads of aligned words. */
static inline uint64_t slots_load(const uint8_t *at)
{
#if THREAD_SANITIZED
    unsigned shift = 8 * (unsigned)((uintptr_t)at & 7);
    const uint64_t *word = (const uint64_t *)(const void *)(at - shift / 8);
    uint64_t low = __atomic_load_n(word, __ATOMIC_RELAXED) >> shift;
    return shift ? low | __atomic_load_n(word + 1, __ATOMIC_RELAXED) << (64 - shift) : low;
#else
    return load64(at);
#endif
}

/* Returns the byte in which a bucket begins.  The compiler cannot know that the product of a
 * bucket and its size in bits does not wrap; so it is told where one multiplication is
 * enough. */
static ALWAYS_INLINE uint64_t bucket_byte(uint64_t bucket, unsigned width)
{
    if (__builtin_constant_p(width) && width % 2 == 0)
        return bucket * (width * BUCKET_SLOTS / 8);
    return bucket * (BUCKET_SLOTS * width) >> 3;
}

/* Returns the four slots of a narrow bucket in the low bits; the bits above them are
 * anything. */
static ALWAYS_INLINE uint64_t bucket_load(const uint8_t *body, uint64_t bucket, unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    return slots_load(body + bucket_byte(bucket, width)) >> (bit & 7);
}

/* Returns the body from a cell on, beginning with its first bit: 57 bits at least. */
static ALWAYS_INLINE uint64_t cell_load(const uint8_t *body, uint64_t cell, unsigned width)
{
    uint64_t bit = cell * width;
    return slots_load(body + (bit >> 3)) >> (bit & 7);
}

static ALWAYS_INLINE uint32_t cell_get(const uint8_t *body, uint64_t cell, unsigned width)
{
    return (uint32_t)(cell_load(body, cell, width) & ((UINT64_C(1) << width) - 1));
}

static ALWAYS_INLINE uint32_t slot_get(const uint8_t *body, uint64_t bucket, unsigned slot,
                                       unsigned width)
{
    if (width > NARROW_MAX)
        return cell_get(body, bucket * BUCKET_SLOTS + slot, width);
    return (uint32_t)(bucket_load(body, bucket, width) >> slot * width &
                      ((UINT64_C(1) << width) - 1));
}

/* Returns the four slots of a bucket of any width in the low bits. */
static ALWAYS_INLINE unsigned __int128 wide_bucket_load(const uint8_t *body, uint64_t bucket,
                                                        unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    unsigned __int128 low = slots_load(body + (bit >> 3));
    unsigned __int128 high = slots_load(body + (bit >> 3) + sizeof(uint64_t));
    return (low | high << 64) >> (bit & 7);
}

/* Sets all four slots of 'to' to those of a bucket. */
static ALWAYS_INLINE void bucket_get(const uint8_t *body, uint64_t bucket, unsigned width,
                                     uint32_t to[BUCKET_SLOTS])
{
    uint64_t mask = (UINT64_C(1) << width) - 1;
    if (width > NARROW_MAX) {
        unsigned __int128 slots = wide_bucket_load(body, bucket, width);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
            to[slot] = (uint32_t)(slots >> slot * width & mask);
        return;
    }
    uint64_t slots = bucket_load(body, bucket, width);
    for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
        to[slot] = (uint32_t)(slots >> slot * width & mask);
}

/* ---- Writing, for one thread ------------------------------------------------------------- */

/* Sets 'width' bits of the word at 'at', from bit 'shift' on. */
static ALWAYS_INLINE void bits_set(uint8_t *at, uint64_t shift, unsigned width, uint32_t value)
{
    uint64_t mask = ((UINT64_C(1) << width) - 1) << shift;
    store64(at, (load64(at) & ~mask) | (uint64_t)value << shift);
}

static ALWAYS_INLINE void cell_set(uint8_t *body, uint64_t cell, unsigned width, uint32_t value)
{
    uint64_t bit = cell * width;
    bits_set(body + (bit >> 3), bit & 7, width, value);
}

static ALWAYS_INLINE void slot_set(uint8_t *body, uint64_t bucket, unsigned slot,
                                   unsigned width, uint32_t value)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    if (width > NARROW_MAX)
        cell_set(body, bucket * BUCKET_SLOTS + slot, width, value);
    else
        bits_set(body + (bit >> 3), (bit & 7) + slot * width, width, value);
}

/* Flips the bits of a narrow bucket that are set in 'slots'; the bits above it are 0. */
static ALWAYS_INLINE void bucket_xor(uint8_t *body, uint64_t bucket, unsigned width,
                                     uint64_t slots)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    uint8_t *at = body + bucket_byte(bucket, width);
    store64(at, load64(at) ^ slots << (bit & 7));
}

/* Sets all four slots of an empty bucket. */
static ALWAYS_INLINE void bucket_fill(uint8_t *body, uint64_t bucket, unsigned width,
                                      const uint32_t slots[BUCKET_SLOTS])
{
    uint64_t word = 0;
    if (width > NARROW_MAX) {
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
            slot_set(body, bucket, slot, width, slots[slot]);
        return;
    }
    for (unsigned slot = BUCKET_SLOTS; slot-- > 0;)
        word = word << width | slots[slot];
    bucket_xor(body, bucket, width, word);
}

/* ---- Writing, while others write and read ------------------------------------------------ */

/* Flips those bits of a slot that are set in 'change'.  Works atomically on aligned words,
 * since other threads may change other slots in the same words. */
static inline void slot_flip(uint8_t *body, uint64_t bucket, unsigned slot, unsigned width,
                             uint32_t change)
{
    uint64_t bit = (bucket * BUCKET_SLOTS + slot) * width;
    uint64_t *word = (uint64_t *)(void *)body + (bit >> 6);
    unsigned shift = (unsigned)(bit & 63);
    __atomic_fetch_xor(word, (uint64_t)change << shift, __ATOMIC_RELEASE);
    if (shift + width > 64)
        __atomic_fetch_xor(word + 1, (uint64_t)change >> (64 - shift), __ATOMIC_RELEASE);
}

/* ---- Lanes ------------------------------------------------------------------------------- */

/* Returns a one in each of the four lanes of a narrow bucket. */
static ALWAYS_INLINE uint64_t lane_ones(unsigned width)
{
    return UINT64_C(1) | UINT64_C(1) << width | UINT64_C(1) << 2 * width |
           UINT64_C(1) << 3 * width;
}

/* Returns the top bits of lanes that are zero in 'x'; 'ones' has a one in each lane.  A
 * subtraction of one turns over the top bit of a lane that is zero, and by a borrow possibly of
 * lanes above: so the lowest lane that is returned is a true zero, and there is none exactly if
 * the result is 0.  The bits of 'x' above the lanes may be anything, since a subtraction
 * borrows upwards only. */
static ALWAYS_INLINE uint64_t lanes_zero(uint64_t x, uint64_t ones, unsigned width)
{
    return (x - ones) & ~x & ones << (width - 1);
}

/* Returns the top bits of lanes of a narrow bucket that are 'value': the lowest one is
 * right. */
static ALWAYS_INLINE uint64_t bucket_lanes(const uint8_t *body, uint64_t bucket, unsigned width,
                                           uint32_t value)
{
    uint64_t ones = lane_ones(width);
    return lanes_zero(bucket_load(body, bucket, width) ^ value * ones, ones, width);
}

/* Returns how many slots of a narrow bucket are 'value'.  Where a lane is not zero, the sum
 * carries into its top bit, or that is set already; nothing is carried into the next lane. */
static ALWAYS_INLINE unsigned bucket_count(const uint8_t *body, uint64_t bucket, unsigned width,
                                           uint32_t value)
{
    const uint64_t ones = lane_ones(width), tops = ones << (width - 1), lows = tops - ones;
    const uint64_t x = bucket_load(body, bucket, width) ^ value * ones;
    const uint64_t equal = ~(((x & lows) + lows) | x) & tops;
    return (unsigned)((equal >> (width - 1)) * ones >> 3 * width & (2 * BUCKET_SLOTS - 1));
}

/* Returns a bit for each slot of a bucket that is 'value'; for slots of more than 16 bits. */
static ALWAYS_INLINE unsigned wide_bucket_match(const uint8_t *body, uint64_t bucket,
                                                unsigned width, uint32_t value)
{
    uint32_t slots[BUCKET_SLOTS];
    unsigned match = 0;
    bucket_get(body, bucket, width, slots);
    for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
        match |= (unsigned)(slots[slot] == value) << slot;
    return match;
}

/* Returns the first slot of a bucket that is 'value', or BUCKET_SLOTS if none is. */
static ALWAYS_INLINE unsigned bucket_find(const uint8_t *body, uint64_t bucket, unsigned width,
                                          uint32_t value)
{
    if (width > NARROW_MAX)
        return (unsigned)__builtin_ctz(wide_bucket_match(body, bucket, width, value) |
                                       1U << BUCKET_SLOTS);
    uint64_t lanes = bucket_lanes(body, bucket, width, value), lowest = lanes & -lanes;
    if (!lanes)
        return BUCKET_SLOTS;
    return (unsigned)(lowest >> width != 0) + (unsigned)(lowest >> 2 * width != 0) +
           (unsigned)(lowest >> 3 * width != 0);
}

/* ---- Lanes of 64 bits -------------------------------------------------------------------- */

#if defined(__x86_64__)
/* How to spread four slots of 17 to 32 bits to 64 bits each: which bytes each slot lies in (for
 * a byte shuffle; -1 gives a zero), and by how many bits to shift these right.  The second row
 * of a width is for buckets that begin in the middle of a byte. */
struct spreading {
    int8_t byte[32];
    uint64_t bit[4];
};
extern const struct spreading spreadings[WIDTH_MAX - NARROW_MAX][2];
#endif

#endif
