/* slot_loops.c - the loops of cuckoo and strided filters, for each instruction set. */
#include "flat.h"
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

/* Adds a key that found no empty slot: other entries must move.  Returns 0, PERHAPS_ERR_COPIES
 * or PERHAPS_ERR_FULL. */
static NOINLINE int add_by_moves(const struct body *b, struct keyhash key, bool strided)
{
    struct table t = flat_table_alone(b, strided);
    struct entry e = flat_table_entry(&t, &key);
    return table_put_by_moves(&t, &e);
}

static NOINLINE int add_one_by_moves(const struct body *b, struct keyhash key, bool strided,
                                     struct counters *counters)
{
    int error = add_by_moves(b, key, strided);
    counters->keys += !error;
    counters->failed_adds += error != 0;
    return error;
}

/* What an entry would fill of a place, in cells of up to SHORT_MOST bits: a one in the lanes of
 * its two cells, and the values in them.  Other lanes are 0. */
struct lanes {
    uint64_t ones, values;
};

#define NO_AVX512 1 /* nothing here is wider than a pair of buckets */
#define LOOPS     "../kinds/slots/slot_loops.h"
#include "../../base/each_cpu.h"

#define AT_CPU(cpu) slot_loops_at_##cpu

const struct slot_loops *slot_loops_of(enum cpu cpu, bool strided, unsigned width)
{
    static const struct slot_loops *(*const at[CPU_COUNT])(bool,
                                                           unsigned) = { EACH_CPU(AT_CPU) };
    return at[cpu](strided, width);
}
