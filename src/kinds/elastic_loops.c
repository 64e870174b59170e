/* elastic_loops.c - the loops that query elastic filters, for each instruction set.  Adds and
 * removals are in elastic.c. */
#include "bucket_pair.h"
#include "segments.h"

/* The eight slots of a pair of buckets, one in each lane. */
typedef uint16_t narrow_lanes __attribute__((vector_size(16)));
typedef uint32_t wide_lanes __attribute__((vector_size(32)));

static ALWAYS_INLINE uint8_t *directory_entry(const struct directory *directory, uint64_t mark)
{
    return directory->entry[directory_index(mark, directory->depth)];
}

/* Prefetches the two buckets of a key.  Reads the directory atomically, since another thread
 * may replace it. */
static ALWAYS_INLINE void prefetch_pair(struct directory *const *directories, unsigned width,
                                        struct keyhash key)
{
    const struct directory *directory =
        __atomic_load_n(&directories[elastic_base(key.place)], __ATOMIC_ACQUIRE);
    uint8_t *const *at = &directory->entry[directory_index(key.mark, directory->depth)];
    const uint8_t *segment = directory_segment(__atomic_load_n(at, __ATOMIC_ACQUIRE));
    uint64_t first = elastic_bucket(key.place);
    prefetch_bucket(segment, first, width);
    prefetch_bucket(segment, elastic_other_bucket(first, elastic_tail(key.place)), width);
}

static void elastic_prefetch(struct directory *const *directories, unsigned slot_bits,
                             const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_pair(directories, slot_bits, keys[i]);
}

#if defined(__x86_64__)
/* How to spread four slots of 17 to 32 bits to 64 bits each: which bytes each slot lies in (for
 * a byte shuffle; -1 gives a zero), and by how many bits to shift these right.  A bucket begins
 * at a byte or in the middle of one: 'odd' below. */
struct spreading {
    int8_t byte[32];
    uint64_t bit[4];
};

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

static const struct spreading spreadings[SLOT_MAX - NARROW_MAX][2] = {
    OF_WIDTH(17), OF_WIDTH(18), OF_WIDTH(19), OF_WIDTH(20), OF_WIDTH(21), OF_WIDTH(22),
    OF_WIDTH(23), OF_WIDTH(24), OF_WIDTH(25), OF_WIDTH(26), OF_WIDTH(27), OF_WIDTH(28),
    OF_WIDTH(29), OF_WIDTH(30), OF_WIDTH(31), OF_WIDTH(32),
};
/* clang-format on */
#endif

#define LOOPS "../kinds/elastic_loops.h"
#include "../base/each_cpu.h"

#define ROW(cpu)                                                                               \
    {                                                                                          \
        .prefetch = elastic_prefetch, .contains = elastic_contains_##cpu                       \
    }
const struct elastic_loops elastic_loops[CPU_COUNT] = { EACH_CPU(ROW) };
