/* state.h - what segments.c and segments_read.c know of an elastic filter in memory. */
#ifndef STATE_H
#define STATE_H

#include "segments.h"

/* Memory beyond the body, to be released with the filter. */
struct block {
    struct block *next;
    void *memory;
    uint64_t nbytes;
};

struct state {
    struct directory *directories[BASES];
    uint64_t base_segments[BASES];
    uint64_t segments;  /* that directories lead to */
    uint64_t nbytes;    /* of blocks and directories */
    struct table table; /* of any segment, but for its place */
    uint8_t *spare;     /* a segment that none leads to any more, or NULL */
    uint8_t *fresh;     /* segments that none led to yet, one behind the other */
    uint64_t nfresh;    /* how many */
    struct block *blocks;
};

/* What the body counts. */
struct tally {
    uint64_t duplicates; /* entries that splits copied to both halves */
    uint64_t stale;      /* of which one was removed */
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
    return (struct tally *)(void *)f->body;
}

#endif
