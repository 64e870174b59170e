/* cuckoo_loops.c - the loops that query cuckoo filters.  They are the same for every
 * instruction set; adds and removals are in cuckoo.c. */
#include "bucket_pair.h"

static void cuckoo_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_buckets(b->bytes, b->field[NBUCKETS], (unsigned)b->field[WIDTH], keys[i]);
}

/* Queries n keys.  'versions' is NULL if nobody writes meanwhile. */
static ALWAYS_INLINE size_t contains_at_width(const uint8_t *body, uint64_t nbuckets,
                                              unsigned width, const uint32_t *versions,
                                              const struct keyhash *keys,
                                              const struct keyhash *ahead, size_t n,
                                              bool *answer)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_buckets(body, nbuckets, width, ahead[i]);
        struct entry e = cuckoo_entry(keys[i], nbuckets, width);
        answer[i] =
            versions ? has_beside(body, width, e, versions) : bucket_pair_has(body, width, e);
        found += answer[i];
    }
    return found;
}

/* Each width up to 16 bits has a loop of its own, where shifts are by constants: 8 % faster. */
static size_t cuckoo_contains(const struct body *b, const struct keyhash *keys,
                              const struct keyhash *ahead, size_t n, bool *answer)
{
    const uint8_t *body = b->bytes;
    uint64_t nbuckets = b->field[NBUCKETS];
#define AT_WIDTH(width)                                                                        \
    case width:                                                                                \
        return contains_at_width(body, nbuckets, width, NULL, keys, ahead, n, answer)
    switch (b->field[WIDTH]) {
        AT_WIDTH(4);
        AT_WIDTH(5);
        AT_WIDTH(6);
        AT_WIDTH(7);
        AT_WIDTH(8);
        AT_WIDTH(9);
        AT_WIDTH(10);
        AT_WIDTH(11);
        AT_WIDTH(12);
        AT_WIDTH(13);
        AT_WIDTH(14);
        AT_WIDTH(15);
        AT_WIDTH(16);
    default:
        return contains_at_width(body, nbuckets, (unsigned)b->field[WIDTH], NULL, keys, ahead,
                                 n, answer);
    }
}

size_t cuckoo_contains_beside(const struct body *b, const uint32_t *versions,
                              const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                              bool *answer)
{
    return contains_at_width(b->bytes, b->field[NBUCKETS], (unsigned)b->field[WIDTH], versions,
                             keys, ahead, n, answer);
}

static bool cuckoo_contains_one(const struct body *b, struct keyhash key)
{
    unsigned width = (unsigned)b->field[WIDTH];
    return bucket_pair_has(b->bytes, width, cuckoo_entry(key, b->field[NBUCKETS], width));
}

CONTAINS_INTEGER(cuckoo_contains_integer, cuckoo_contains_one)

const struct loops cuckoo_loops = {
    .prefetch = cuckoo_prefetch,
    .contains = cuckoo_contains,
    .contains_one = cuckoo_contains_one,
    .contains_integer = cuckoo_contains_integer,
};
