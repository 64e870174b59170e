/* segments.h - the pages of an elastic filter: found through directories, split when full.
 *
 *   body = a line of counters
 *          the depth of each segment, a byte, base by base in the order of the bits that lead
 *          to it, and zeros up to a multiple of 4096
 *          the segments in the same order
 *          a line of zeros, since reads of the last slots reach behind it */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#include "../filter/filter.h"
#include "buckets.h"

/* ---- Where a key lies: part of the file format (doc/FORMAT.md) --------------------------- */

enum { SLOT_BITS, FPR_UNTIL, SEGMENTS }; /* its fields */
enum {
    SLOT_MIN = 12,
    SLOT_MAX = 32,
    BASES = 16,
    SEGMENT_SLOTS = SEGMENT_BUCKETS * BUCKET_SLOTS,
    DEPTH_MAX = 31,
};

/* Where a key lies.  Its place chooses the base, and within a segment the bucket; of its mark
 * the first bits choose the segment, and those that follow are stored.
 *
 * Base i has the share (2^((i+1)/16) - 2^(i/16)) of all keys, so that no two bases fill their
 * segments at the same time: these are the lower ends, in units of 2^-32. */
static const uint64_t elastic_bounds[BASES + 1] = {
    0x00000000, 0x0b5586cf, 0x172b83c7, 0x2387a6e7, 0x306fe0a3,  0x3dea64c1,
    0x4bfdad53, 0x5ab07dd4, 0x6a09e667, 0x7a11473e, 0x8ace5422,  0x9c49182a,
    0xae89f995, 0xc199bdd8, 0xd5818dcf, 0xea4afa2a, 0x100000000,
};

static inline unsigned elastic_base(uint64_t place)
{
    /* of each 32nd of the range, the base that its lower end belongs to: one more at most */
    static const uint8_t guess[32] = { 0,  0,  1,  2,  2,  3,  3,  4,  5,  5,  6,
                                       6,  7,  7,  8,  8,  9,  9,  10, 10, 11, 11,
                                       12, 12, 12, 13, 13, 14, 14, 14, 15, 15 };
    unsigned base = guess[place >> 59];
    return base + (place >> 32 >= elastic_bounds[base + 1]);
}

static inline uint64_t elastic_bucket(uint64_t place)
{
    return place % SEGMENT_BUCKETS;
}

static inline uint32_t elastic_tail(uint64_t place)
{
    return (uint32_t)(place / SEGMENT_BUCKETS) % (1U << TAIL_BITS);
}

/* The bits of a slot below the tail: head bits, a one, and zeros. */
static inline unsigned elastic_field_bits(unsigned slot_bits)
{
    return slot_bits - TAIL_BITS;
}

/* What a key would have in a slot of a segment at this depth: all the head bits there are. */
static inline uint32_t elastic_entry(struct keyhash key, unsigned depth, unsigned slot_bits)
{
    unsigned field_bits = elastic_field_bits(slot_bits);
    uint32_t head = (uint32_t)(key.mark << depth >> (65 - field_bits));
    return elastic_tail(key.place) << field_bits | head << 1 | 1;
}

/* Whether an entry (0: none) can be that of a key which would have 'full': the tails are the
 * same, and the head bits as far as the entry has any. */
static inline bool elastic_matches(uint32_t entry, uint32_t full)
{
    return (entry ^ full) < 2 * (entry & -entry);
}

/* Of one base: which segment the next 'depth' bits of a mark lead to.  An entry is the address
 * of the segment, which is a multiple of 64, and the segment's own depth. */
struct directory {
    unsigned depth;
    unsigned room; /* the depth that there is memory for */
    uint8_t *entry[];
};

static inline uint64_t directory_index(uint64_t mark, unsigned depth)
{
    return mark >> 1 >> (63 - depth);
}

/* Tells the versions of one segment's buckets from another's. */
static inline uint64_t segment_salt(const uint8_t *segment)
{
    return (uint64_t)((uintptr_t)segment * (uintptr_t)ODD_GOLDEN >> 32);
}

static inline unsigned directory_depth(const uint8_t *entry)
{
    return (unsigned)((uintptr_t)entry % LINE_NBYTES);
}

static inline uint8_t *directory_segment(uint8_t *entry)
{
    return entry - directory_depth(entry);
}

/* ---- The loops --------------------------------------------------------------------------- */

/* Elastic filters are asked through their directories, one a base.  'versions' as in
 * cuckoo_contains_beside, or NULL where nobody writes. */
struct elastic_loops {
    void (*prefetch)(struct directory *const *directories, unsigned slot_bits,
                     const struct keyhash *keys, size_t n);
    size_t (*contains)(struct directory *const *directories, unsigned slot_bits,
                       const uint32_t *versions, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer);
};
extern const struct elastic_loops elastic_loops[CPU_COUNT];

/* ---- Segments ---------------------------------------------------------------------------- */

enum { DEPTHS_OFFSET = LINE_NBYTES };

static inline unsigned slot_bits_of(const perhaps_filter *f)
{
    return (unsigned)f->geometry.field[SLOT_BITS];
}

uint64_t segments_body_nbytes(uint64_t segments, unsigned slot_bits);

/* Operations of the kind. */
int segments_attach(perhaps_filter *f);
void segments_detach(perhaps_filter *f);
uint64_t segments_directory_nbytes(unsigned depth);
uint64_t segments_beyond(const perhaps_filter *f);
size_t segments_writers_nbytes(const struct geometry *g);
void segments_grown(const perhaps_filter *f, struct geometry *g);
const uint8_t *segments_next_piece(const perhaps_filter *f, struct body_cursor *cursor,
                                   uint64_t *nbytes);

/* Forgets all keys; then each base has segments of one depth again. */
void segments_clear(perhaps_filter *f, const unsigned depth[BASES]);

/* Load, segments, stale entries; and as fpr the sum over an average segment's entries of
 * 2^(head bits that are spent). */
struct fill segments_measure(const perhaps_filter *f, uint64_t most_nbytes);

/* What a kernel needs to ask. */
struct directory *const *segments_directories(const perhaps_filter *f);
const uint32_t *segments_versions(const perhaps_filter *f);

/* Where a key lies: its segment as a table of its own. */
struct spot {
    struct table table;
    struct pair pair;
    uint32_t entry; /* as a new one */
    struct keyhash key;
    uint8_t *segment;
    unsigned depth;
    unsigned base;
};

/* Looks a key up, for one who asks. */
struct spot segments_look(const perhaps_filter *f, const struct keyhash *key);

/* As reads() of the kind: also the depths, from which the directories were made. */
void segments_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads);

/* For one who asks and has found nothing: whether it is still so, the version of the pair
 * having been 'before'. */
uint32_t segments_version(const struct spot *s);
bool segments_unchanged(const perhaps_filter *f, const struct spot *s, uint32_t before);

/* Looks a key up, for one who writes: no other does in this segment until it is left. */
struct spot segments_enter(perhaps_filter *f, const struct keyhash *key);
void segments_leave(perhaps_filter *f, const struct spot *s);

/* Splits the segment, which one has entered and must leave after it.  Returns 0;
 * PERHAPS_ERR_COPIES where it is not full, so that a split would be no help: the key's slots
 * are taken by copies, or by keys that were made to lie there; PERHAPS_ERR_FULL where a split
 * would make the directory too large for the keys that there are, or the segment too deep; or
 * PERHAPS_ERR_MEMORY.  Then nothing has changed. */
int segments_split(perhaps_filter *f, const struct spot *s);

/* An entry without head bits lies in several segments; one of them was removed. */
void segments_count_stale(perhaps_filter *f);

/* Whether an entry has no head bits. */
static inline bool elastic_is_spent(uint32_t entry, unsigned slot_bits)
{
    return (entry & -entry) == UINT32_C(1) << (elastic_field_bits(slot_bits) - 1);
}

#endif
