/* lanes.c - the walks through a line, turned round: from word to step. */
#include "lanes.h"

/* The cube of an odd number is its inverse modulo 16. */
#define STEP(start, stride, word)                                                              \
    (((word) + 16U - (start)) * (stride) * (stride) * (stride) % LINE_WORDS)

/* clang-format off */
#define STEPS(start, stride) { \
    STEP(start, stride, 0),  STEP(start, stride, 1),  STEP(start, stride, 2),  \
    STEP(start, stride, 3),  STEP(start, stride, 4),  STEP(start, stride, 5),  \
    STEP(start, stride, 6),  STEP(start, stride, 7),  STEP(start, stride, 8),  \
    STEP(start, stride, 9),  STEP(start, stride, 10), STEP(start, stride, 11), \
    STEP(start, stride, 12), STEP(start, stride, 13), STEP(start, stride, 14), \
    STEP(start, stride, 15) }

#define STRIDES(start) \
    STEPS(start, 1), STEPS(start, 3),  STEPS(start, 5),  STEPS(start, 7), \
    STEPS(start, 9), STEPS(start, 11), STEPS(start, 13), STEPS(start, 15)

const uint8_t blocked_steps[WALK_COUNT][LINE_WORDS] = {
    STRIDES(0),  STRIDES(1),  STRIDES(2),  STRIDES(3),
    STRIDES(4),  STRIDES(5),  STRIDES(6),  STRIDES(7),
    STRIDES(8),  STRIDES(9),  STRIDES(10), STRIDES(11),
    STRIDES(12), STRIDES(13), STRIDES(14), STRIDES(15),
};
/* clang-format on */
