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
size_t segments_sync_nbytes(const struct geometry *g);
void segments_grown(const perhaps_filter *f, struct geometry *g);
const uint8_t *segments_next_piece(const perhaps_filter *f, struct walk *w, uint64_t *nbytes);

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
