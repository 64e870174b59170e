/* state.h - the state of an elastic filter in memory, for segments*.c. */
#ifndef STATE_H
#define STATE_H

#include "segments.h"

/* What the threads of a shared filter need.  Segments share the locks. */
enum { SEGMENT_LOCKS = 1024 };

struct segment_locks {
    uint32_t version[CUCKOO_VERSIONS];
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

#endif
