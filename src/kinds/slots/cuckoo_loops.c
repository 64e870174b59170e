/* cuckoo_loops.c - the loops that query cuckoo filters and add to them, for each instruction
 * set; other operations are in cuckoo.c. */
#include "bucket_pair.h"

size_t cuckoo_contains_beside(const struct body *b, const uint32_t *versions,
                              const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                              bool *answer)
{
    uint64_t nbuckets = b->field[NBUCKETS];
    unsigned width = (unsigned)b->field[WIDTH];
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_buckets(b->bytes, nbuckets, width, ahead[i]);
        struct entry e = cuckoo_entry(keys[i], nbuckets, width);
        answer[i] = has_beside(b->bytes, width, e, versions);
        found += answer[i];
    }
    return found;
}

/* Adds a key for which pair_put() found no room: other entries must move.  Returns 0,
 * PERHAPS_ERR_COPIES or PERHAPS_ERR_FULL. */
static NOINLINE int add_by_moves(const struct body *b, struct keyhash key)
{
    struct table t = table_make(b->bytes, b->field[NBUCKETS], (unsigned)b->field[WIDTH], 0);
    struct entry e = cuckoo_entry(key, t.nbuckets, t.width);
    bool was_present;
    return table_insert(&t, &e, false, &was_present);
}

#define slots_size(b)    (b)->field[NBUCKETS]
#define SLOTS_NARROW_MAX NARROW_MAX

#define NO_AVX512 1 /* nothing here is wider than a pair of buckets */
#define LOOPS     "../kinds/slots/cuckoo_loops.h"
#include "../../base/each_cpu.h"

#define AT_CPU(cpu) slot_loops_at_##cpu

const struct slot_loops *cuckoo_loops(enum cpu cpu, unsigned width)
{
    static const struct slot_loops *(*const at[CPU_COUNT])(unsigned) = { EACH_CPU(AT_CPU) };
    return at[cpu](width);
}
