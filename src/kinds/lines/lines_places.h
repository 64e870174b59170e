/* lines_places.h - where the lines of a key lie, and a loop over keys that does something to
 * each of their lines.  The loops of all instruction sets are made of it, and adds while
 * other processes write. */
#ifndef LINES_PLACES_H
#define LINES_PLACES_H

#include "lines.h"

/* Where the lines of a key lie: one in each band, or together in a block.  Each caller of the
 * inlined loops makes this from what it knows, so that no loop checks it again for each key. */
struct line_places {
    uint64_t band_lines;
    uint64_t bands;
    bool together;
};

static LOOP_INLINE struct line_places places_in_one(const struct body *b)
{
    return (struct line_places){ .band_lines = b->geometry.field[BAND_LINES], .bands = 1 };
}

static LOOP_INLINE struct line_places places_in_bands(const struct body *b)
{
    return (struct line_places){ .band_lines = b->geometry.field[BAND_LINES],
                                 .bands = b->geometry.field[BANDS] };
}

static LOOP_INLINE struct line_places places_together(const struct body *b)
{
    return (struct line_places){ .band_lines = b->geometry.field[BAND_LINES],
                                 .bands = b->geometry.field[BANDS],
                                 .together = true };
}

static LOOP_INLINE struct line_places places_of(const struct body *b)
{
    return (struct line_places){ .band_lines = b->geometry.field[BAND_LINES],
                                 .bands = b->geometry.field[BANDS],
                                 .together = b->geometry.field[TOGETHER] != 0 };
}

/* Returns where in the body the first line of a key begins, in bytes. */
static LOOP_INLINE uint64_t first_line_offset(struct keyhash key, struct line_places at)
{
    return at.together ? blocked_block_offset(key, at.band_lines, at.bands)
                       : blocked_line_offset(key, at.band_lines);
}

/* Returns where line number 'band' of a key begins.  'offset' is where the line before begins;
 * 'key' has gone on to this band by blocked_next_band(). */
static LOOP_INLINE uint64_t next_line_offset(uint64_t offset, struct keyhash key,
                                             struct line_places at, uint64_t band)
{
    return at.together
               ? offset + LINE_NBYTES
               : band * at.band_lines * LINE_NBYTES + blocked_line_offset(key, at.band_lines);
}

static ALWAYS_INLINE void prefetch_lines(const uint8_t *body, struct line_places at,
                                         struct keyhash key)
{
    uint64_t offset = first_line_offset(key, at);
    PREFETCH(body + offset);
    for (uint64_t band = 1; band < at.bands; band++) {
        key = blocked_next_band(key);
        offset = next_line_offset(offset, key, at, band);
        PREFETCH(body + offset);
    }
}

/* What is done to a line, with the mark of a key: line_has(), line_add(), counters_have() or
 * line_add_atomic().  Returns whether all that the mark asks for was there. */
typedef bool line_test(const struct body *b, uint8_t *line, uint64_t mark);

/* Returns whether all lines of a key pass the test.  Looks at all of them, since a branch on
 * each answer would often be mispredicted. */
static LOOP_INLINE bool key_passes(const struct body *b, struct line_places at,
                                   struct keyhash key, line_test *test)
{
    uint64_t offset = first_line_offset(key, at);
    bool all = test(b, b->bytes + offset, key.mark);
    for (uint64_t band = 1; band < at.bands; band++) {
        key = blocked_next_band(key);
        offset = next_line_offset(offset, key, at, band);
        all &= test(b, b->bytes + offset, key.mark);
    }
    return all;
}

/* The body is copied, so that the compiler knows that no store changes its members. */
static LOOP_INLINE size_t keys_pass_in(const struct body *body, struct line_places at,
                                       const struct keyhash *keys, const struct keyhash *ahead,
                                       size_t n, bool *answer, line_test *test)
{
    const struct body b = *body;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct keyhash *later = apart(ahead + i);
        prefetch_lines(b.bytes, at, *later);
        answer[i] = key_passes(&b, at, keys[i], test);
        found += answer[i];
    }
    return found;
}

/* There are two loops for filters with several lines a key: apart and together. */
static LOOP_INLINE size_t keys_pass(const struct body *b, const struct keyhash *keys,
                                    const struct keyhash *ahead, size_t n, bool *answer,
                                    line_test *test)
{
    if (b->geometry.field[TOGETHER])
        return keys_pass_in(b, places_together(b), keys, ahead, n, answer, test);
    return keys_pass_in(b, places_in_bands(b), keys, ahead, n, answer, test);
}

#endif
