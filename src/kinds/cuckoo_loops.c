/* cuckoo_loops.c - the loops that query cuckoo filters and add to them, for each instruction
 * set; other operations are in cuckoo.c. */
#include "bucket_pair.h"

static void cuckoo_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_buckets(b->bytes, b->field[NBUCKETS], (unsigned)b->field[WIDTH], keys[i]);
}

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

/* Does the same for add_one() of the loops. */
static NOINLINE int add_one_by_moves(const struct body *b, struct keyhash key,
                                     struct counters *counters)
{
    int error = add_by_moves(b, key);
    counters->keys += !error;
    counters->failed_adds += error != 0;
    return error;
}

#define NO_AVX512 1 /* nothing here is wider than a pair of buckets */
#define LOOPS     "../kinds/cuckoo_loops.h"
#include "../base/each_cpu.h"

#define AT_CPU(cpu) cuckoo_loops_at_##cpu

const struct cuckoo_loops *cuckoo_loops(enum cpu cpu, unsigned width)
{
    static const struct cuckoo_loops *(*const at[CPU_COUNT])(unsigned) = { EACH_CPU(AT_CPU) };
    return at[cpu](width);
}
