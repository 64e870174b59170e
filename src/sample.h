/* sample.h - an even sample of a body: every page of a small one, 64 pages of a large one. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "perhaps.h"

/* Set by sample_next(): the bytes 'offset' .. 'end' of the body are in the sample. */
struct sample {
    uint64_t offset;
    uint64_t end;
    uint64_t step;
    uint64_t next;
    uint64_t body_nbytes;
};

enum { SAMPLE_PAGES = 64 };

static inline struct sample sample_begin(uint64_t body_nbytes)
{
    uint64_t pages = (body_nbytes + PERHAPS_PAGE_NBYTES - 1) / PERHAPS_PAGE_NBYTES;
    uint64_t step = (pages + SAMPLE_PAGES - 1) / SAMPLE_PAGES;
    return (struct sample){ .step = step * PERHAPS_PAGE_NBYTES, .body_nbytes = body_nbytes };
}

static inline bool sample_next(struct sample *s)
{
    if (s->next >= s->body_nbytes)
        return false;
    s->offset = s->next;
    s->end = s->offset + PERHAPS_PAGE_NBYTES;
    if (s->end > s->body_nbytes)
        s->end = s->body_nbytes;
    s->next += s->step;
    return true;
}

#endif
