/* sample.h - an even sample of a body: all of a small body, 64 pieces of a large one.
 *
 *     for (struct sample s = sample_begin(body_nbytes, most_nbytes); sample_next(&s);)
 *         look at the bytes s.offset .. s.end-1 of the body */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct sample {
    uint64_t offset; /* this piece, set by sample_next(), begins here */
    uint64_t end;    /* and ends before this byte */
    uint64_t piece_nbytes;
    uint64_t step; /* from the beginning of a piece to that of the next */
    uint64_t next; /* where the next piece begins */
    uint64_t body_nbytes;
};

/* How many bytes of a body perhaps_stats_of() reads. */
#define SAMPLE_NBYTES ((uint64_t)1 << 20)

enum { SAMPLE_PIECES = 64, SAMPLE_PIECE_MIN = 4096 };

/* Begins a sample of at most 'most_nbytes' bytes, or of 4096 if that is more.  The pieces of a
 * sampled body begin at multiples of 64 bytes, so that they consist of whole lines. */
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

/* Goes on to the next piece.  Returns false if there is none. */
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
