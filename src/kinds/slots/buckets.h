/* buckets.h - a table of buckets of 4 slots, where an entry lies in one of two buckets.  Cuckoo
 * filters are one such table; elastic filters have one in each segment. */
#ifndef BUCKETS_H
#define BUCKETS_H

#include <math.h>

#include "../../base/bytes.h"
#include "../../filter/filter.h"

/* ---- Where the entries of a key lie: part of the file format (doc/FORMAT.md) ------------- */

enum { NBUCKETS, WIDTH }; /* its fields */
enum { BUCKET_SLOTS = 4, WIDTH_MIN = 4, WIDTH_MAX = 32, NARROW_MAX = 16 };

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

/* What a key stores: a fingerprint, in one of two buckets. */
struct entry {
    uint32_t fingerprint;
    uint64_t first;
    uint64_t second;
};

static ALWAYS_INLINE struct entry cuckoo_entry(struct keyhash key, uint64_t nbuckets,
                                               unsigned width)
{
    uint64_t fingerprint = cuckoo_fingerprint(key.mark, width);
    uint64_t first = scale64(key.place, nbuckets);
    return (struct entry){ .fingerprint = (uint32_t)fingerprint,
                           .first = first,
                           .second = cuckoo_other_bucket(first, fingerprint, nbuckets) };
}

/* Tells how keys mark cells that are the combinations of a pair and a fingerprint: each marks
 * one. */
static inline void entries_marking(double combinations, struct marking *m)
{
    double others = combinations - 1;
    *m = (struct marking){
        .cells = combinations,
        .chance = 1 / combinations,
        .ngroups = 1,
        .group = { { .cells = others, .together = log1p(-1 / (others * others)) } },
    };
}

/* Versions tell readers that an entry may have moved.  A writer counts up the version of a pair
 * of buckets before it clears a slot of the pair; readers compare it before and after.  All
 * pairs share this many versions.  The sum gives the same version from both buckets. */
enum { CUCKOO_VERSIONS = 4096 };

static inline uint64_t cuckoo_version(uint64_t a, uint64_t b)
{
    return (a + b) % CUCKOO_VERSIONS;
}

/* Loads 8 bytes from any address.  Other threads may write meanwhile: then some bytes are old
 * and some new, but a slot that nobody changes is always read right, since writers of other
 * slots do not touch its bits.  ThreadSanitizer needs to see atomic loads of aligned words. */
static inline uint64_t cuckoo_load(const uint8_t *at)
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

/* Returns the four slots of a bucket, of up to 16 bits each, in the low bits; the bits above
 * them are anything.  One load is enough: a bucket begins at a multiple of 4 bits, and at one
 * of 8 if it is 64 bits long. */
static inline uint64_t cuckoo_load_bucket(const uint8_t *body, uint64_t bucket, unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    return cuckoo_load(body + bucket_byte(bucket, width)) >> (bit & 7);
}

/* The same for slots of up to 32 bits.  The loads may reach 8 bytes beyond the last bucket; the
 * body has room for that. */
static inline unsigned __int128 cuckoo_load_wide_bucket(const uint8_t *body, uint64_t bucket,
                                                        unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    unsigned __int128 low = cuckoo_load(body + (bit >> 3));
    unsigned __int128 high = cuckoo_load(body + (bit >> 3) + sizeof(uint64_t));
    return (low | high << 64) >> (bit & 7);
}

/* Returns a one in each of the four lanes of a bucket; for slots of up to 16 bits. */
static inline uint64_t cuckoo_lanes(unsigned width)
{
    return UINT64_C(1) | UINT64_C(1) << width | UINT64_C(1) << 2 * width |
           UINT64_C(1) << 3 * width;
}

static inline uint32_t cuckoo_slot(const uint8_t *body, uint64_t bucket, unsigned slot,
                                   unsigned width)
{
    uint64_t bit = (bucket * BUCKET_SLOTS + slot) * width;
    uint64_t mask = (UINT64_C(1) << width) - 1;
    return (uint32_t)(cuckoo_load(body + (bit >> 3)) >> (bit & 7) & mask);
}

/* Flips those bits of a slot that are set in 'change'.  Works atomically on aligned words,
 * since other threads may change other slots in the same words. */
static inline void cuckoo_change_slot(uint8_t *body, uint64_t bucket, unsigned slot,
                                      unsigned width, uint32_t change)
{
    uint64_t bit = (bucket * BUCKET_SLOTS + slot) * width;
    uint64_t *word = (uint64_t *)(void *)body + (bit >> 6);
    unsigned shift = (unsigned)(bit & 63);
    __atomic_fetch_xor(word, (uint64_t)change << shift, __ATOMIC_RELEASE);
    if (shift + width > 64)
        __atomic_fetch_xor(word + 1, (uint64_t)change >> (64 - shift), __ATOMIC_RELEASE);
}

/* Sets all four slots of an empty bucket at once; for slots of up to 16 bits. */
static inline void cuckoo_fill_bucket(uint8_t *body, uint64_t bucket, unsigned width,
                                      uint64_t slots)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    uint8_t *at = body + (bit >> 3);
    store64(at, load64(at) | slots << (bit & 7));
}

/* Writes a slot of up to 16 bits, for one thread.  Loads from the beginning of the bucket, so
 * that it touches no byte behind a bucket of 64 bits. */
static inline void cuckoo_set_narrow_slot(uint8_t *body, uint64_t bucket, unsigned slot,
                                          unsigned width, uint32_t fingerprint)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    uint8_t *at = body + (bit >> 3);
    unsigned shift = (unsigned)(bit & 7) + slot * width;
    uint64_t mask = ((UINT64_C(1) << width) - 1) << shift;
    store64(at, (load64(at) & ~mask) | (uint64_t)fingerprint << shift);
}

/* Writes a slot of up to 32 bits, for one thread. */
static inline void cuckoo_set_slot(uint8_t *body, uint64_t bucket, unsigned slot,
                                   unsigned width, uint32_t fingerprint)
{
    uint64_t bit = (bucket * BUCKET_SLOTS + slot) * width;
    uint64_t mask = (UINT64_C(1) << width) - 1;
    uint8_t *at = body + (bit >> 3);
    uint64_t others = load64(at) & ~(mask << (bit & 7));
    store64(at, others | (uint64_t)fingerprint << (bit & 7));
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

/* ---- The loops of cuckoo filters --------------------------------------------------------- */

/* The loops for one width. */
struct slot_loops {
    struct loops loops; /* no 'add', since an add may fail */

    /* Does what add() of the kind does, if no other thread writes; without 'unless_present' it
     * sets no answers, since all are false. */
    int (*add)(const struct body *b, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done);

    /* What add_one and add_integer of the loops are for a set. */
    int (*add_absent)(const struct body *b, struct keyhash key, struct counters *counters);
    int (*add_integer_absent)(const struct body *b, uint64_t key, struct counters *counters);
};

/* Takes the loops for f, which may be a set. */
void slot_loops_bind(perhaps_filter *f, const struct slot_loops *slots);

const struct slot_loops *cuckoo_loops(enum cpu cpu, unsigned width);

/* Does what contains() of the loops does while other threads write.  'versions' are the
 * CUCKOO_VERSIONS versions that the writers count up. */
size_t cuckoo_contains_beside(const struct body *b, const uint32_t *versions,
                              const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                              bool *answer);

/* ---- Tables ------------------------------------------------------------------------------ */

/* How many buckets a search for room looks at, at most. */
enum { SEARCH_MOST = 1024 };

/* A table of buckets as the operations need it: made from a filter at the beginning of a
 * call. */
struct table {
    uint8_t *body;
    uint64_t nbuckets;
    unsigned width;       /* bits a slot */
    unsigned tail_shift;  /* segments: how far to shift an entry to get its tail; else 0 */
    unsigned search_most; /* the number of buckets that a search for room looks at */
    uint64_t ones;        /* a one in each of four lanes; 0 for slots of more than 16 bits */
    bool straddles;       /* a bucket may lie in two cache lines */
    uint32_t *versions;   /* CUCKOO_VERSIONS, for concurrent readers; NULL: one thread only */
    uint64_t salt;        /* tables that share the versions differ in this */
    uint8_t *locks;       /* lock_mask + 1 locks, a power of two; NULL: nobody else writes */
    uint64_t lock_mask;
};

/* Returns a table for one thread; for several threads the caller sets versions and locks. */
struct table table_make(uint8_t *body, uint64_t nbuckets, unsigned width, unsigned tail_shift);

/* The two buckets in which an entry may lie. */
struct pair {
    uint64_t first;
    uint64_t second;
};

/* Read one slot, or all four slots of a bucket; 0 is an empty slot. */
uint32_t table_get(const struct table *t, uint64_t bucket, unsigned slot);
void table_get_all(const struct table *t, uint64_t bucket, uint32_t entry[BUCKET_SLOTS]);

/* Returns the first slot of the bucket that holds 'entry', or BUCKET_SLOTS if none does.  An
 * entry of 0 finds the first empty slot. */
unsigned table_find(const struct table *t, uint64_t bucket, uint32_t entry);

/* Clears a slot of 'bucket'.  'other' is the other bucket of the entry in the slot. */
void table_clear(const struct table *t, uint64_t bucket, unsigned slot, uint64_t other);

/* Puts an entry into the emptier of its two buckets.  Returns false, and changes nothing, if
 * both are full. */
bool table_put(const struct table *t, const struct pair *pair, uint32_t entry);

/* Moves entries to their other buckets, so that a bucket of the pair gets a free slot; another
 * thread may then take that slot.  Takes the table's locks itself: the caller holds none.
 * Returns false, and changes nothing, if the search finds no way. */
bool table_make_room(const struct table *t, const struct pair *pair);

/* Adds an entry of a cuckoo filter; with 'unless_present', only if it is not there yet.  Sets
 * *was_present to whether it was there; without 'unless_present', to false.  Takes the table's
 * locks itself.  Returns 0, PERHAPS_ERR_COPIES or PERHAPS_ERR_FULL. */
int table_insert(const struct table *t, const struct entry *e, bool unless_present,
                 bool *was_present);

/* Returns how many copies of an entry of a cuckoo filter there are. */
unsigned table_copies(const struct table *t, const struct entry *e);

/* Returns the other bucket of an entry that lies in 'bucket'; for an empty slot, any bucket. */
static inline uint64_t table_other(const struct table *t, uint64_t bucket, uint32_t entry)
{
    if (t->tail_shift) /* of a segment */
        return elastic_other_bucket(bucket, entry >> t->tail_shift);
    return cuckoo_other_bucket(bucket, entry, t->nbuckets);
}

/* Returns the version of a pair of buckets, whichever of them is 'a'. */
static inline uint32_t *table_version(const struct table *t, uint64_t a, uint64_t b)
{
    return &t->versions[cuckoo_version(a, b + t->salt)];
}

static inline uint8_t *table_lock_of(const struct table *t, uint64_t bucket)
{
    return &t->locks[bucket & t->lock_mask];
}

/* Lock and unlock two buckets.  Locks are taken in the order of their addresses, so that no two
 * writers wait for each other.  Do nothing in a table of one thread. */
void table_lock(const struct table *t, uint64_t a, uint64_t b);
void table_unlock(const struct table *t, uint64_t a, uint64_t b);

/* Prefetches what a writer of the bucket will need: its cache lines and its lock. */
static ALWAYS_INLINE void table_prefetch(const struct table *t, uint64_t bucket)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * t->width);
    __builtin_prefetch(t->body + (bit >> 3), 1, 3);
    if (t->straddles)
        __builtin_prefetch(t->body + ((bit + BUCKET_SLOTS * t->width - 1) >> 3), 1, 3);
    if (t->locks)
        __builtin_prefetch(table_lock_of(t, bucket), 1, 3);
}

#endif
