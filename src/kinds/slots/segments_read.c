/* segments_read.c - reads an elastic filter as a whole: its body, piece by piece, and its
 * fill. */
#include <math.h>

#include "../../filter/counters.h"
#include "segments.h"

/* Returns the directory entry of the next segment, in the order of the body; NULL behind the
 * last. */
static uint8_t *next_segment(const struct state *state, struct body_cursor *cursor)
{
    while (cursor->directory < BASES) {
        const struct directory *directory =
            __atomic_load_n(&state->directories[cursor->directory], __ATOMIC_ACQUIRE);
        if (cursor->index < UINT64_C(1) << directory->depth) {
            uint8_t *entry =
                __atomic_load_n(&directory->entry[cursor->index], __ATOMIC_ACQUIRE);
            cursor->index += UINT64_C(1) << (directory->depth - directory_depth(entry));
            return entry;
        }
        cursor->directory++;
        cursor->index = 0;
    }
    return NULL;
}

/* Fills the cursor's bytes with the next depths, and zeros behind the last.  Returns how many
 * bytes these are: at most 'left'. */
static uint64_t fill_depths(const struct state *state, struct body_cursor *cursor,
                            uint64_t left)
{
    uint64_t n = left < sizeof cursor->bytes ? left : sizeof cursor->bytes;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *entry = next_segment(state, cursor);
        cursor->bytes[i] = entry ? (uint8_t)directory_depth(entry) : 0;
    }
    return n;
}

/* The pieces are, in the order of the body: the line of counters; the depths, in portions of
 * cursor->bytes; each segment; and the line of zeros. */
const uint8_t *segments_next_piece(const perhaps_filter *f, struct body_cursor *cursor,
                                   uint64_t *nbytes)
{
    const struct state *state = f->state;
    uint64_t segments = segments_offset(state->segments), at = cursor->offset;
    uint64_t end = segments_body_nbytes(state->segments, slot_bits_of(f));
    const uint8_t *piece = cursor->bytes;
    if (at < DEPTHS_OFFSET) {
        piece = f->body.bytes;
        *nbytes = DEPTHS_OFFSET;
    } else if (at < segments) {
        *nbytes = fill_depths(state, cursor, segments - at);
    } else if (at < end - LINE_NBYTES) {
        if (at == segments)
            cursor->directory = cursor->index = 0;
        piece = directory_segment(next_segment(state, cursor));
        *nbytes = segment_nbytes(slot_bits_of(f));
    } else if (at < end) {
        memset(cursor->bytes, 0, LINE_NBYTES);
        *nbytes = LINE_NBYTES;
    } else {
        return NULL;
    }
    cursor->offset += *nbytes;
    return piece;
}

/* Sums over the segments that are measured.  The weight of a segment is proportional to the
 * share of all keys whose queries look there. */
struct sums {
    double weight;
    double spent;   /* over all entries: 2^(spent head bits) times the weight */
    double entries; /* not weighted, as are 'slots' */
    double slots;
};

/* Adds a segment to the sums; 'share' is that of its base. */
static void add_segment(const struct state *state, uint8_t *entry, double share,
                        struct sums *sums)
{
    struct table t = state->table;
    double spent = 0, weight = ldexp(share, -(int)directory_depth(entry));
    t.body = directory_segment(entry);
    for (unsigned bucket = 0; bucket < SEGMENT_BUCKETS; bucket++) {
        uint32_t slots[BUCKET_SLOTS];
        bucket_get(t.body, bucket, t.width, slots);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            spent += slots[slot] & -slots[slot];
            sums->entries += slots[slot] != 0;
        }
    }
    sums->spent += weight * spent;
    sums->weight += weight;
    sums->slots += (double)SEGMENT_SLOTS;
}

/* Looks at every segment of a small filter, and at every n-th of a large one. */
struct fill segments_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    enum { SLOWER = 4 }; /* how many times as long a byte takes as in lines_measure() */
    const struct state *state = f->state;
    struct body_cursor cursor = { 0 };
    struct sums sums = { 0 };
    uint64_t most = most_nbytes / segment_nbytes(slot_bits_of(f)) / SLOWER + 1;
    uint64_t step = counter_get(&state->segments) / most + 1, number = 0;
    for (uint8_t *entry; (entry = next_segment(state, &cursor)); number++)
        if (number % step == 0)
            add_segment(state, entry, exp2((double)cursor.directory / (double)BASES), &sums);
    const struct tally *tally = tally_of(f);
    uint64_t stale = counter_get(&tally->stale);
    return (struct fill){ .load = sums.entries / sums.slots,
                          .fpr = sums.spent / sums.weight,
                          .segments = counter_get(&state->segments),
                          .stale = stale ? counter_get(&tally->duplicates) : 0 };
}
