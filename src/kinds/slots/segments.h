/* segments.h - the segments of an elastic filter: pages of slots that are found through
 * directories and split when they are full.
 *
 *   body = a line of counters
 *          the depth of each segment, a byte, base by base in the order of the bits that lead
 *          to it, and zeros up to a multiple of 4096
 *          the segments in the same order
 *          a line of zeros, since reads of the last slots reach behind them
 *
 * In memory, segments that splits have made lie outside the body, in blocks (struct state).
 * Invariant: the segments of a base cover every mark exactly once. */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#include "table.h"

/* ---- Where a key lies: part of the file format (doc/FORMAT.md) --------------------------- */

enum { SLOT_BITS, FPR_UNTIL, SEGMENTS }; /* its fields */
enum {
    SLOT_MIN = 12,
    SLOT_MAX = 32,
    BASES = 16,
    SEGMENT_SLOTS = SEGMENT_BUCKETS * BUCKET_SLOTS,
    DEPTH_MAX = 31,
    DEPTHS_OFFSET = LINE_NBYTES,
};

/* Where a key lies.  Its place chooses the base, and the buckets within a segment.  The first
 * bits of its mark choose the segment, and the bits that follow are stored in the slot.
 *
 * Base i has the share (2^((i+1)/16) - 2^(i/16)) of all keys, so that no two bases fill their
 * segments at the same time.  These are the lower ends of their ranges, in units of 2^-32. */
static const uint64_t elastic_bounds[BASES + 1] = {
    0x00000000, 0x0b5586cf, 0x172b83c7, 0x2387a6e7, 0x306fe0a3,  0x3dea64c1,
    0x4bfdad53, 0x5ab07dd4, 0x6a09e667, 0x7a11473e, 0x8ace5422,  0x9c49182a,
    0xae89f995, 0xc199bdd8, 0xd5818dcf, 0xea4afa2a, 0x100000000,
};

/* Returns the base of a place.  The table gives, for each 32nd of the range, the base of its
 * lower end; the base of the place is that one or the next. */
static inline unsigned elastic_base(uint64_t place)
{
    static const uint8_t guess[32] = { 0,  0,  1,  2,  2,  3,  3,  4,  5,  5,  6,
                                       6,  7,  7,  8,  8,  9,  9,  10, 10, 11, 11,
                                       12, 12, 12, 13, 13, 14, 14, 14, 15, 15 };
    unsigned base = guess[place >> 59];
    return base + (place >> 32 >= elastic_bounds[base + 1]);
}

/* The lowest bits of the place are the first bucket, and the next ones the tail. */
static inline uint64_t elastic_bucket(uint64_t place)
{
    return place % SEGMENT_BUCKETS;
}

static inline uint32_t elastic_tail(uint64_t place)
{
    return (uint32_t)(place / SEGMENT_BUCKETS) % (1U << TAIL_BITS);
}

/* Returns how many bits a slot has below the tail: for head bits, a one, and zeros. */
static inline unsigned elastic_field_bits(unsigned slot_bits)
{
    return slot_bits - TAIL_BITS;
}

/* Returns what a new key has in its slot, in a segment of this depth: an entry with all its
 * head bits. */
static inline uint32_t elastic_entry(struct keyhash key, unsigned depth, unsigned slot_bits)
{
    unsigned field_bits = elastic_field_bits(slot_bits);
    uint32_t head = (uint32_t)(key.mark << depth >> (65 - field_bits));
    return elastic_tail(key.place) << field_bits | head << 1 | 1;
}

/* Returns whether an entry matches a key whose new entry would be 'full': they have the same
 * tail, and the same head bits as far as the entry has any.  An empty slot (0) never matches.
 * entry & -entry is the one behind the head bits; all bits above it must be equal. */
static inline bool elastic_matches(uint32_t entry, uint32_t full)
{
    return (entry ^ full) < 2 * (entry & -entry);
}

/* The directory of one base: entry[i] leads to the segment of the marks whose first 'depth'
 * bits are i.  A segment that is less deep has several entries.  An entry is the address of the
 * segment, a multiple of 64, plus the depth of the segment, so that both change at once. */
struct directory {
    unsigned depth;
    unsigned room; /* the depth for which memory was allocated */
    uint8_t *entry[];
};

/* Returns the first 'depth' bits of a mark.  Two shifts, since one by 64 is undefined. */
static inline uint64_t directory_index(uint64_t mark, unsigned depth)
{
    return mark >> 1 >> (63 - depth);
}

/* Returns a number that differs from segment to segment: all segments share the versions, and
 * this spreads them. */
static inline uint64_t segment_salt(const uint8_t *segment)
{
    return (uint64_t)(uintptr_t)segment * ODD_GOLDEN >> 32;
}

/* Take a directory entry apart. */
static inline unsigned directory_depth(const uint8_t *entry)
{
    return (unsigned)((uintptr_t)entry % LINE_NBYTES);
}

static inline uint8_t *directory_segment(uint8_t *entry)
{
    return entry - directory_depth(entry);
}

/* ---- In memory ------------------------------------------------------------------------- */

/* What the threads of a shared filter need.  Segments share the locks. */
enum { SEGMENT_LOCKS = 1024 };

struct segment_locks {
    uint32_t version[TABLE_VERSIONS];
    uint8_t lock[SEGMENT_LOCKS];
};

/* Memory outside the body that is released with the filter; a list. */
struct block {
    struct block *next;
    void *memory;
    uint64_t nbytes;
};

struct state {
    struct directory *directories[BASES];
    uint64_t base_segments[BASES];
    uint64_t segments;  /* how many segments the directories lead to */
    uint64_t nbytes;    /* the size of all blocks and directories */
    struct table table; /* the table of a segment, without its body and salt */
    uint8_t *spare;     /* a segment to which no directory leads any more, or NULL */
    uint8_t *fresh;     /* unused segments, one after the other in memory */
    uint64_t nfresh;    /* how many there are at 'fresh' */
    struct block *blocks;
    uint64_t nblocks; /* how many blocks there are */
};

/* The counters in the body. */
struct tally {
    uint64_t duplicates; /* entries that splits have copied to both halves */
    uint64_t stale;      /* removals of entries that may have such copies */
};

static inline uint64_t segment_nbytes(unsigned slot_bits)
{
    return (uint64_t)SEGMENT_SLOTS * slot_bits / 8;
}

static inline uint64_t segments_offset(uint64_t segments)
{
    return round_up(DEPTHS_OFFSET + segments, 4096);
}

static inline struct tally *tally_of(const perhaps_filter *f)
{
    return (struct tally *)(void *)f->body.bytes;
}

/* ---- Segments ---------------------------------------------------------------------------- */

static inline unsigned slot_bits_of(const perhaps_filter *f)
{
    return (unsigned)f->body.geometry.field[SLOT_BITS];
}

/* Returns the size of a body of so many segments. */
uint64_t segments_body_nbytes(uint64_t segments, unsigned slot_bits);

/* Operations of the kind: see struct grows and struct filter_kind. */
int segments_attach(perhaps_filter *f);
void segments_detach(perhaps_filter *f);
uint64_t segments_directory_nbytes(unsigned depth);
uint64_t segments_beyond(const perhaps_filter *f);
uint64_t segments_state_nbytes(const perhaps_filter *f);
void segments_relocate(perhaps_filter *f, const uint8_t *body, const struct mover *mover);
size_t segments_writers_nbytes(const struct geometry *g);
void segments_grown(const perhaps_filter *f, struct geometry *g);
const uint8_t *segments_next_piece(const perhaps_filter *f, struct body_cursor *cursor,
                                   uint64_t *nbytes);

/* Forgets all keys.  Then all segments of a base have the depth that is given for it, as in a
 * new filter. */
void segments_clear(perhaps_filter *f, const unsigned depth[BASES]);

/* Returns load, number of segments and stale entries.  The 'fpr' is in other units: the sum of
 * 2^(spent head bits) over the entries of an average segment. */
struct fill segments_measure(const perhaps_filter *f, uint64_t most_nbytes);

/* Where a key lies: its segment, seen as a table, and its buckets there. */
struct spot {
    struct table table;
    struct entry entry; /* what a new key would store, and its buckets */
    uint64_t mark;      /* of the key */
    uint8_t *segment;
    unsigned depth;
    unsigned base;
};

/* Returns where a key lies, for a reader: writers may go on meanwhile. */
struct spot segments_look(const perhaps_filter *f, const struct keyhash *key);

/* Lists the bytes that an answer is read from: reads() of kind.h.  The answer depends on the
 * depths in the body, too, since the directories were made from them. */
void segments_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads);

/* Tell a reader whether what it saw in a spot was consistent: it calls segments_version()
 * first, then reads the slots, and segments_unchanged() must then return true. */
uint32_t segments_version(const struct spot *s);
bool segments_unchanged(const perhaps_filter *f, const struct spot *s, uint32_t before);

/* Returns where a key lies, for a writer: no other thread writes this segment until the writer
 * calls segments_leave(). */
struct spot segments_enter(perhaps_filter *f, const struct keyhash *key);
void segments_leave(perhaps_filter *f, const struct spot *s);

/* Splits the segment of a spot.  The caller has entered it, has found so many copies of a key
 * there, and leaves it afterwards.  Returns 0; or changes nothing and returns
 * - PERHAPS_ERR_FULL if the directory would be too large for its segments, or too deep;
 * - PERHAPS_ERR_COPIES if the segment is not full, and a split would be no help or there are
 *   too many such segments: copies, or keys that were crafted to lie there, take all slots;
 * - PERHAPS_ERR_MEMORY. */
int segments_split(perhaps_filter *f, const struct spot *s, unsigned copies);

/* Counts the removal of an entry without head bits.  Splits may have copied it to other
 * segments, where the copies stay: they are stale. */
void segments_count_stale(perhaps_filter *f);

/* Returns whether an entry has no head bits left. */
static inline bool elastic_is_spent(uint32_t entry, unsigned slot_bits)
{
    return (entry & -entry) == UINT32_C(1) << (elastic_field_bits(slot_bits) - 1);
}

#endif
