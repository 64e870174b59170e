/* table.h - a table of slots, in which entries move to make room for others.  A cuckoo filter
 * is one, a strided filter is one of another shape, and an elastic filter has one in each
 * segment.
 *
 *   buckets   a table of buckets of 4 slots.  An entry lies in one of two buckets.
 *   segment   the same, of 512 buckets; the top bits of an entry give its other bucket.
 *   strided   a table of cells.  An entry lies in one of two places of two cells each, which
 *             are 1, 2 or 3 cells apart, as the fingerprint says.
 *
 * Where an entry lies follows from the entry and one of its places.  So it can move although
 * its key is not known. Invariant: each entry lies in one of its two places. */
#ifndef TABLE_H
#define TABLE_H

#include "slots.h"

/* ---- Where the entries of a key lie: part of the file format (doc/FORMAT.md) ------------- */

/* Returns 1 .. 2^width - 1, since 0 stands for an empty slot. */
static inline uint64_t cuckoo_fingerprint(uint64_t mark, unsigned width)
{
    return 1 + scale64(mark, (UINT64_C(1) << width) - 1);
}

/* Returns the other bucket of a fingerprint that lies in 'bucket'.  The fingerprint gives the
 * sum of its two buckets modulo nbuckets, so the function is its own inverse for any even
 * number of buckets.  The sum is odd, so the two always differ.  It must not be linear in the
 * fingerprint: otherwise chains of moves would come back to the same few buckets, and a filter
 * with short fingerprints would be full too early. */
static inline uint64_t cuckoo_other_bucket(uint64_t bucket, uint64_t fingerprint,
                                           uint64_t nbuckets)
{
    uint64_t mixed = fingerprint * ODD_GOLDEN;
    mixed = (mixed ^ mixed >> 32) * ODD_PI;
    uint64_t sum = 2 * scale64(mixed, nbuckets / 2) + 1;
    int64_t other = (int64_t)(sum - bucket);
    return (uint64_t)(other < 0 ? other + (int64_t)nbuckets : other);
}

/* What a key stores, in one of two places: buckets, or the first cells of strided places.  In
 * segments the 'fingerprint' is the whole entry. */
struct entry {
    uint32_t fingerprint;
    uint64_t first;
    uint64_t second;
};

static ALWAYS_INLINE struct entry entry_at(uint64_t place, uint32_t fingerprint,
                                           uint64_t nplaces)
{
    return (struct entry){ .fingerprint = fingerprint,
                           .first = place,
                           .second = cuckoo_other_bucket(place, fingerprint, nplaces) };
}

static ALWAYS_INLINE struct entry cuckoo_entry(struct keyhash key, uint64_t nbuckets,
                                               unsigned width)
{
    uint64_t fingerprint = cuckoo_fingerprint(key.mark, width);
    return entry_at(scale64(key.place, nbuckets), (uint32_t)fingerprint, nbuckets);
}

/* The segments of elastic filters are tables of one size.  The top bits of an entry, its tail,
 * give its other bucket. */
enum { SEGMENT_BUCKETS = 512, TAIL_BITS = 6 };

/* Returns the other bucket of a tail that lies in 'bucket'.  The table holds the sums that
 * cuckoo_other_bucket() computes for 512 buckets, one for each tail. */
static inline uint64_t elastic_other_bucket(uint64_t bucket, uint32_t tail)
{
    static const uint16_t sums[1U << TAIL_BITS] = {
        /* clang-format off */
          1, 183,  97,  43, 267,  27, 331,   9,  95,  27,  53, 131, 489, 177,  17, 433,
         17,  21, 297, 121, 179,   5, 507, 381,  25, 439, 355, 107, 373, 479, 353, 337,
        373,  19, 289, 295, 155, 327, 489, 109, 431,  55, 255, 487, 327, 165, 249,  21,
        391, 461, 367, 277, 269,  29, 457, 337, 307, 371, 179, 199,  21, 433, 161, 335,
        /* clang-format on */
    };
    return (sums[tail] - bucket) % SEGMENT_BUCKETS;
}

/* A cell of a strided filter holds a fingerprint, and in the lowest bit which cell of its place
 * it is.  The second cell of a place lies 1 to STRIDE_MOST cells behind the first.  Cells of up
 * to SHORT_MOST bits lie so near that one load gets both of a place. */
enum { STRIDE_MOST = 3, SHORT_MOST = (64 - 7) / (STRIDE_MOST + 1), STRIDED_CELLS = 4 };

static ALWAYS_INLINE struct entry strided_entry(struct keyhash key, uint64_t nplaces,
                                                unsigned width)
{
    return cuckoo_entry(key, nplaces, width - 1);
}

/* Returns 1, 2 or 3 by the low bits of a fingerprint. */
static ALWAYS_INLINE unsigned strided_stride(uint32_t fingerprint)
{
    return 1 + ((fingerprint & 0xff) * STRIDE_MOST >> 8);
}

/* Cell i of an entry is the first (even i) or second (odd i) cell of place i / 2. */
static ALWAYS_INLINE uint64_t strided_cell(const struct entry *e, unsigned i)
{
    return (i / 2 ? e->second : e->first) + (i % 2 ? strided_stride(e->fingerprint) : 0);
}

static ALWAYS_INLINE uint32_t strided_value(const struct entry *e, unsigned i)
{
    return e->fingerprint << 1 | i % 2;
}

/* Returns the entry that lies in a cell, with the place that the cell belongs to first.  Bytes
 * of an enemy may hold an entry that no key can have, near the ends of the body. */
static ALWAYS_INLINE struct entry strided_entry_in(uint64_t cell, uint32_t value,
                                                   uint64_t nplaces)
{
    uint64_t ahead = value & 1 ? strided_stride(value >> 1) : 0;
    uint64_t place = cell < ahead ? 0 : cell - ahead;
    return entry_at(place < nplaces ? place : nplaces - 1, value >> 1, nplaces);
}

/* Puts an entry into the first empty one of its four cells.  Returns false, and changes
 * nothing, if there is none. */
static ALWAYS_INLINE bool strided_put(uint8_t *body, unsigned width, const struct entry *e)
{
    for (unsigned i = 0; i < STRIDED_CELLS; i++)
        if (cell_get(body, strided_cell(e, i), width) == 0) {
            cell_set(body, strided_cell(e, i), width, strided_value(e, i));
            return true;
        }
    return false;
}

/* Prefetches the first and the last byte of a place: it may straddle two cache lines, unless it
 * is a bucket whose size divides that of a line.  Loops for any width do not check that: it
 * would take more than the prefetch. */
static ALWAYS_INLINE void place_prefetch(const uint8_t *body, uint64_t place, unsigned width,
                                         bool strided)
{
    uint64_t nbits = BUCKET_SLOTS * width, bit = place * (strided ? width : nbits);
    PREFETCH(body + (strided ? bit >> 3 : bucket_byte(place, width)));
    if (strided || !__builtin_constant_p(width) || 8 * LINE_NBYTES % nbits != 0)
        PREFETCH(body + ((bit + nbits - 1) >> 3));
}

/* Return whether an entry lies in one of its two buckets.  Wide buckets are lanes of a word of
 * 128 bits. */
static ALWAYS_INLINE bool narrow_have(const uint8_t *body, unsigned width, struct entry e)
{
    return (bucket_lanes(body, e.first, width, e.fingerprint) |
            bucket_lanes(body, e.second, width, e.fingerprint)) != 0;
}

static ALWAYS_INLINE bool wide_have(const uint8_t *body, unsigned width, struct entry e)
{
    unsigned __int128 two = (unsigned __int128)1 << width | 1, ones = two << 2 * width | two;
    unsigned __int128 copies = e.fingerprint * ones;
    unsigned __int128 first = wide_bucket_load(body, e.first, width) ^ copies;
    unsigned __int128 second = wide_bucket_load(body, e.second, width) ^ copies;
    return ((((first - ones) & ~first) | ((second - ones) & ~second)) & ones << (width - 1)) !=
           0;
}

static ALWAYS_INLINE bool buckets_have(const uint8_t *body, unsigned width, struct entry e)
{
    return width <= NARROW_MAX ? narrow_have(body, width, e) : wide_have(body, width, e);
}

/* Puts an entry into the emptier of its two buckets, which keeps both from filling up early:
 * slots are taken in order, so the emptier is the one whose first free slot is lower.  For
 * slots of up to 16 bits, and one thread.  There is no branch on which bucket it is. */
static ALWAYS_INLINE bool narrow_put(uint8_t *body, unsigned width, struct entry e)
{
    uint64_t in_first = bucket_lanes(body, e.first, width, 0);
    uint64_t in_second = bucket_lanes(body, e.second, width, 0);
    if (!(in_first | in_second))
        return false;
    in_first &= -in_first;
    in_second &= -in_second;
    bool to_first = in_first - 1 <= in_second - 1; /* 0 becomes the largest number */
    uint64_t lane = to_first ? in_first : in_second;
    bucket_xor(body, to_first ? e.first : e.second, width,
               e.fingerprint * (lane >> (width - 1)));
    return true;
}

/* The same for slots of more than 16 bits, if the first free slots are known. */
static ALWAYS_INLINE bool wide_put_at(uint8_t *body, unsigned width, struct entry e,
                                      unsigned in_first, unsigned in_second)
{
    if (in_first + in_second == 2 * BUCKET_SLOTS)
        return false;
    bool to_first = in_first <= in_second;
    slot_set(body, to_first ? e.first : e.second, to_first ? in_first : in_second, width,
             e.fingerprint);
    return true;
}

static ALWAYS_INLINE bool wide_put(uint8_t *body, unsigned width, struct entry e)
{
    return wide_put_at(body, width, e, bucket_find(body, e.first, width, 0),
                       bucket_find(body, e.second, width, 0));
}

/* ---- Tables ------------------------------------------------------------------------------ */

/* Versions tell readers that an entry may have moved.  A writer counts up the version of a pair
 * of buckets before it clears a slot of the pair; readers compare it before and after.  All
 * pairs share this many versions.  The sum gives the same version from both buckets. */
enum { TABLE_VERSIONS = 4096 };

static inline uint64_t table_version_of(uint64_t a, uint64_t b)
{
    return (a + b) % TABLE_VERSIONS;
}

/* How many buckets, or cells, a search for room looks at, at most.  In a table of cells some
 * walks follow, of so many steps each, along so many cells. */
enum { SEARCH_MOST = 1024, SEARCH_CELLS = 256 };
enum { WALK_TRIES = 32, WALK_STEPS = 1024, WALK_CELLS = 256 };

/* A table as the operations need it: made from a filter at the beginning of a call. */
struct table {
    uint8_t *body;
    uint64_t nplaces; /* buckets, or cells in which a place may begin */
    unsigned width;   /* bits a slot */
    bool strided;
    bool straddles;       /* a place may lie in two cache lines */
    unsigned tail_shift;  /* segments: how far to shift an entry to get its tail; else 0 */
    unsigned search_most; /* how many buckets or cells a search for room looks at */
    uint32_t *versions;   /* TABLE_VERSIONS, for concurrent readers; NULL: one thread only */
    uint64_t salt;        /* tables that share the versions differ in this */
    uint8_t *locks;       /* lock_mask + 1 locks, a power of two; NULL: nobody else writes */
    uint64_t lock_mask;
};

/* Returns a table for one thread; for several threads the caller sets versions and locks. */
static inline struct table table_make(uint8_t *body, uint64_t nplaces, unsigned width,
                                      bool strided)
{
    return (struct table){ .body = body,
                           .nplaces = nplaces,
                           .width = width,
                           .strided = strided,
                           .straddles =
                               strided || 8 * LINE_NBYTES % (BUCKET_SLOTS * width) != 0,
                           .search_most = strided ? SEARCH_CELLS : SEARCH_MOST };
}

/* Looking at entries.  Slots are numbered from 0 on. */

/* Returns how many copies of an entry there are. */
unsigned table_copies(const struct table *t, const struct entry *e);

/* Returns whether no copy of an entry lies in a slot before number 'at'. */
bool table_is_first_copy(const struct table *t, const struct entry *e, uint64_t at);

/* Changing a table.  In a shared table, table_clear(), table_put() and table_remove() are
 * called with the locks of the entry; the others take locks themselves. */

void table_clear(const struct table *t, uint64_t at);

/* Puts an entry into an empty slot.  Returns false, and changes nothing, if there is none. */
bool table_put(const struct table *t, const struct entry *e);

/* Removes one copy of an entry.  Returns whether there was one. */
bool table_remove(const struct table *t, const struct entry *e);

/* Adds an entry whose slots are all full, in a table that no other thread writes.  Returns 0;
 * or PERHAPS_ERR_COPIES or PERHAPS_ERR_FULL, and has changed nothing. */
int table_put_by_moves(const struct table *t, const struct entry *e);

/* Adds an entry; with 'unless_present', only if it is not there yet.  Sets *was_present to
 * whether it was there; without 'unless_present', to false.  Returns 0, PERHAPS_ERR_COPIES or
 * PERHAPS_ERR_FULL. */
int table_insert(const struct table *t, const struct entry *e, bool unless_present,
                 bool *was_present);

/* Returns the other bucket of an entry that lies in 'bucket'; for an empty slot, any bucket. */
static ALWAYS_INLINE uint64_t table_other(const struct table *t, uint64_t bucket,
                                          uint32_t entry)
{
    if (t->tail_shift) /* of a segment */
        return elastic_other_bucket(bucket, entry >> t->tail_shift);
    return cuckoo_other_bucket(bucket, entry, t->nplaces);
}

/* Returns the entry in a slot, with the place where it lies first; 0 is the fingerprint of an
 * empty slot. */
static ALWAYS_INLINE struct entry table_entry(const struct table *t, uint64_t at)
{
    if (t->strided)
        return strided_entry_in(at, cell_get(t->body, at, t->width), t->nplaces);
    const uint64_t bucket = at / BUCKET_SLOTS;
    uint32_t value = slot_get(t->body, bucket, at % BUCKET_SLOTS, t->width);
    return (struct entry){ value, bucket, table_other(t, bucket, value) };
}

/* Returns the version of a pair of places, whichever of them is 'a'. */
static inline uint32_t *table_version(const struct table *t, uint64_t a, uint64_t b)
{
    return &t->versions[table_version_of(a, b + t->salt)];
}

static inline uint8_t *table_lock_of(const struct table *t, uint64_t place)
{
    return &t->locks[place & t->lock_mask];
}

void table_lock_two(uint8_t *lock, uint8_t *other);
void table_unlock_two(uint8_t *lock, uint8_t *other);

/* Lock and unlock the places of an entry.  Locks are taken in the order of their addresses, so
 * that no two writers wait for each other.  Do nothing in a table of one thread. */
static inline void table_lock(const struct table *t, uint64_t a, uint64_t b)
{
    if (t->locks)
        table_lock_two(table_lock_of(t, a), table_lock_of(t, b));
}

static inline void table_unlock(const struct table *t, uint64_t a, uint64_t b)
{
    if (t->locks)
        table_unlock_two(table_lock_of(t, a), table_lock_of(t, b));
}

/* Prefetches what a writer of a place will need: its cache lines and its lock.  A bucket has
 * four slots, and a strided place is at most four cells long. */
static ALWAYS_INLINE void table_prefetch(const struct table *t, uint64_t place)
{
    uint64_t nbits = BUCKET_SLOTS * t->width, bit = place * (t->strided ? t->width : nbits);
    __builtin_prefetch(t->body + (bit >> 3), 1, 3);
    if (t->straddles)
        __builtin_prefetch(t->body + ((bit + nbits - 1) >> 3), 1, 3);
    if (t->locks)
        __builtin_prefetch(table_lock_of(t, place), 1, 3);
}

#endif
