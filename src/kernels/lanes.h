/* lanes.h - the walks through a line as vectors. */
#ifndef LANES_H
#define LANES_H

#include "layout.h"

enum { WALK_COUNT = 128 };

/* For each walk, and for each word of the line, at which step the walk comes to that word. */
extern const uint8_t blocked_steps[WALK_COUNT][LINE_WORDS] __attribute__((aligned(64)));

/* The start and the stride of the walk are neighbours in the mark. */
static inline const uint8_t *blocked_steps_of(uint64_t mark)
{
    return blocked_steps[(mark >> 25) & (WALK_COUNT - 1)];
}

#endif
