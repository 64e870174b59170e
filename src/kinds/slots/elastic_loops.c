/* elastic_loops.c - the loops that query elastic filters, for each instruction set.  Adds and
 * removals are in elastic.c. */
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
    place_prefetch(segment, first, width, false);
    place_prefetch(segment, elastic_other_bucket(first, elastic_tail(key.place)), width, false);
}

static void elastic_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    const unsigned slot_bits = (unsigned)b->field[SLOT_BITS];
    for (size_t i = 0; i < n; i++)
        if (slot_bits == NARROW_MAX) /* one line a bucket */
            prefetch_pair(b->table, NARROW_MAX, keys[i]);
        else
            prefetch_pair(b->table, slot_bits, keys[i]);
}

#define NO_AVX512 1 /* nothing here is wider than a pair of buckets */
#define LOOPS     "../kinds/slots/elastic_loops.h"
#include "../../base/each_cpu.h"

#define ROW(cpu)                                                                               \
    {                                                                                          \
        .prefetch = elastic_prefetch, .contains = elastic_contains_##cpu,                      \
        .contains_one = elastic_contains_one_##cpu,                                            \
        .contains_integer = elastic_contains_integer_##cpu                                     \
    }
const struct loops elastic_loops[CPU_COUNT] = { EACH_CPU(ROW) };
