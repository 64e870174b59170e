/* fuse_loops.h - the loops of binary fuse filters, for one instruction set; each_cpu.h includes
 * it.  The text is the same for all, but some multiply and shift in fewer instructions. */
#ifndef FUSE_LOOPS_NAMES
#define FUSE_LOOPS_NAMES
#define key_spot         FOR_CPU(key_spot)
#define contains_all     FOR_CPU(contains_all)
#define contains_key     FOR_CPU(contains_key)
#define fuse_prefetch_8  FOR_CPU(fuse_prefetch_8)
#define fuse_prefetch_12 FOR_CPU(fuse_prefetch_12)
#define fuse_prefetch_16 FOR_CPU(fuse_prefetch_16)
#define fuse_prefetch_32 FOR_CPU(fuse_prefetch_32)
#define fuse_contains_8  FOR_CPU(fuse_contains_8)
#define fuse_contains_12 FOR_CPU(fuse_contains_12)
#define fuse_contains_16 FOR_CPU(fuse_contains_16)
#define fuse_contains_32 FOR_CPU(fuse_contains_32)
#define fuse_one_8       FOR_CPU(fuse_one_8)
#define fuse_one_12      FOR_CPU(fuse_one_12)
#define fuse_one_16      FOR_CPU(fuse_one_16)
#define fuse_one_32      FOR_CPU(fuse_one_32)
#define fuse_integer_8   FOR_CPU(fuse_integer_8)
#define fuse_integer_12  FOR_CPU(fuse_integer_12)
#define fuse_integer_16  FOR_CPU(fuse_integer_16)
#define fuse_integer_32  FOR_CPU(fuse_integer_32)
#define fuse_loops_at    FOR_CPU(fuse_loops_at)
#define prefetch_spot    FOR_CPU(prefetch_spot)
#endif

/* Returns the slots of a key in its shard, and sets *slots to those of the shard. */
static ALWAYS_INLINE struct fuse_spot key_spot(const struct body *b, struct keyhash key,
                                               const uint8_t **slots)
{
    uint64_t shard = scale64(key.place, b->field[SHARDS]);
    uint64_t mixed = fuse_mix(key.place, b->bytes[b->field[SALTS_AT] + shard]);
    *slots = b->bytes + shard * b->field[SHARD_NBYTES];
    return fuse_spot(mixed, b->field[FIRST_SLOTS], b->field[SEGMENT_MASK]);
}

static ALWAYS_INLINE void prefetch_spot(const struct body *b, struct keyhash key, unsigned bits)
{
    const uint8_t *slots;
    const struct fuse_spot spot = key_spot(b, key, &slots);
    PREFETCH(slots + spot.first * bits / 8);
    PREFETCH(slots + spot.second * bits / 8);
    PREFETCH(slots + spot.third * bits / 8);
}

static ALWAYS_INLINE bool contains_key(const struct body *b, struct keyhash key, unsigned bits)
{
    const uint8_t *slots;
    const struct fuse_spot spot = key_spot(b, key, &slots);
    return !fuse_sum(slots, &spot, bits);
}

static ALWAYS_INLINE size_t contains_all(const struct body *b, const struct keyhash *keys,
                                         const struct keyhash *ahead, size_t n, bool *answer,
                                         unsigned bits)
{
    const struct body body = *b; /* 'answer' may be anywhere */
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_spot(&body, ahead[i], bits);
        answer[i] = contains_key(&body, keys[i], bits);
        found += answer[i];
    }
    return found;
}

/* Defines the loops for slots of so many bits. */
#ifndef FUSE_LOOPS
#define FUSE_LOOPS(bits)                                                                       \
    static void fuse_prefetch_##bits(const struct body *b, const struct keyhash *keys,         \
                                     size_t n)                                                 \
    {                                                                                          \
        for (size_t i = 0; i < n; i++)                                                         \
            prefetch_spot(b, keys[i], bits);                                                   \
    }                                                                                          \
    static size_t fuse_contains_##bits(const struct body *b, const struct keyhash *keys,       \
                                       const struct keyhash *ahead, size_t n, bool *answer)    \
    {                                                                                          \
        return contains_all(b, keys, ahead, n, answer, bits);                                  \
    }                                                                                          \
    static bool fuse_one_##bits(const struct body *b, struct keyhash key)                      \
    {                                                                                          \
        return contains_key(b, key, bits);                                                     \
    }                                                                                          \
    CONTAINS_INTEGER(fuse_integer_##bits, fuse_one_##bits)
#define FUSE_ROW(bits)                                                                         \
    {                                                                                          \
        .prefetch = fuse_prefetch_##bits, .contains = fuse_contains_##bits,                    \
        .contains_one = fuse_one_##bits, .contains_integer = fuse_integer_##bits               \
    }
#endif
FUSE_LOOPS(8)
FUSE_LOOPS(12)
FUSE_LOOPS(16)
FUSE_LOOPS(32)

static const struct loops fuse_loops_at[] = { FUSE_ROW(8), FUSE_ROW(12), FUSE_ROW(16),
                                              FUSE_ROW(32) };
