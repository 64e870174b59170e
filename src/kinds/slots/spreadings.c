/* spreadings.c - how slots of 17 to 32 bits are spread over the lanes of a vector. */
#include "slots.h"

#if defined(__x86_64__)
/* 'odd' is 1 for buckets that begin in the middle of a byte. */
/* clang-format off */
#define SLOT_BIT(width, odd, i) ((odd) * 4 + (i) * (width))
#define SLOT_BYTES(width, odd, i) \
    SLOT_BIT(width, odd, i) / 8,     SLOT_BIT(width, odd, i) / 8 + 1, \
    SLOT_BIT(width, odd, i) / 8 + 2, \
    SLOT_BIT(width, odd, i) / 8 + 3, SLOT_BIT(width, odd, i) / 8 + 4, -1, -1, -1
#define SPREADING(width, odd) { \
    { SLOT_BYTES(width, odd, 0), SLOT_BYTES(width, odd, 1), \
      SLOT_BYTES(width, odd, 2), SLOT_BYTES(width, odd, 3) }, \
    { SLOT_BIT(width, odd, 0) % 8, SLOT_BIT(width, odd, 1) % 8, \
      SLOT_BIT(width, odd, 2) % 8, SLOT_BIT(width, odd, 3) % 8 } }
#define OF_WIDTH(width) { SPREADING(width, 0), SPREADING(width, 1) }

const struct spreading spreadings[WIDTH_MAX - NARROW_MAX][2] = {
    OF_WIDTH(17), OF_WIDTH(18), OF_WIDTH(19), OF_WIDTH(20), OF_WIDTH(21), OF_WIDTH(22),
    OF_WIDTH(23), OF_WIDTH(24), OF_WIDTH(25), OF_WIDTH(26), OF_WIDTH(27), OF_WIDTH(28),
    OF_WIDTH(29), OF_WIDTH(30), OF_WIDTH(31), OF_WIDTH(32),
};
/* clang-format on */
#endif
