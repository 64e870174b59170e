/* sample.h - an even sample of a body: all of a small one, 64 pieces of a large one. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* Set by sample_next(): the bytes 'offset' .. 'end' of the body are in the sample. */
struct sample {
    uint64_t offset;
    uint64_t end;
    uint64_t piece_nbytes;
    uint64_t step;
    uint64_t next;
    uint64_t body_nbytes;
};

/* What perhaps_stats_of() reads of a body. */
#define SAMPLE_NBYTES ((uint64_t)1 << 20)

enum { SAMPLE_PIECES = 64, SAMPLE_PIECE_MIN = 4096 };

/* Of 'most_nbytes', or 4096, at most; multiples of 64 bytes. */
static inline struct sample sample_begin(uint64_t body_nbytes, uint64_t most_nbytes)
{
    struct sample s = { .body_nbytes = body_nbytes, .piece_nbytes = body_nbytes | 1 };
    if (body_nbytes > most_nbytes && body_nbytes > SAMPLE_PIECE_MIN) {
        uint64_t piece = most_nbytes / SAMPLE_PIECES & ~UINT64_C(63);
        s.piece_nbytes = piece > SAMPLE_PIECE_MIN ? piece : SAMPLE_PIECE_MIN;
    }
    uint64_t pieces = most_nbytes / s.piece_nbytes;
    s.step = pieces ? body_nbytes / pieces & ~UINT64_C(63) : body_nbytes;
    if (s.step < s.piece_nbytes)
        s.step = s.piece_nbytes;
    return s;
}

static inline bool sample_next(struct sample *s)
{
    if (s->next >= s->body_nbytes)
        return false;
    s->offset = s->next;
    s->end = s->offset + s->piece_nbytes;
    if (s->end > s->body_nbytes)
        s->end = s->body_nbytes;
    s->next += s->step;
    return true;
}

#endif
