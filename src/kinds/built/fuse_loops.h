/* fuse_loops.h - the loops of binary fuse filters, for one instruction set; each_cpu.h includes
 * it.  The text is the same for all, but some multiply and shift in fewer instructions. */
#ifndef FUSE_LOOPS_NAMES
#define FUSE_LOOPS_NAMES
#define spot_of          FOR_CPU(spot_of)
#define prefetch_spot    FOR_CPU(prefetch_spot)
#define prefetch_keys    FOR_CPU(prefetch_keys)
#define contains_waiting FOR_CPU(contains_waiting)
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
#endif

/* Returns the slots of a key, counted from the first one of the body: a shard begins with a
 * segment. */
static ALWAYS_INLINE struct fuse_spot spot_of(const struct body *b, struct keyhash key)
{
    uint64_t shard = scale64(key.place, b->field[SHARDS]);
    uint64_t mixed = fuse_mix(key.place, b->bytes[b->field[SALTS_AT] + shard]);
    return fuse_spot(mixed, shard * b->field[SHARD_SLOTS], b->field[FIRST_SLOTS],
                     b->field[SEGMENT_MASK]);
}

static ALWAYS_INLINE void prefetch_spot(const struct body *b, const struct fuse_spot *spot,
                                        unsigned bits)
{
    PREFETCH(fuse_slot(b->bytes, spot->first, bits));
    PREFETCH(fuse_slot(b->bytes, spot->second, bits));
    PREFETCH(fuse_slot(b->bytes, spot->third, bits));
}

static ALWAYS_INLINE void prefetch_keys(const struct body *b, const struct keyhash *keys,
                                        size_t n, unsigned bits)
{
    const struct body body = *b;
    for (size_t i = 0; i < n; i++) {
        const struct fuse_spot spot = spot_of(&body, keys[i]);
        prefetch_spot(&body, &spot, bits);
    }
}

static ALWAYS_INLINE bool contains_key(const struct body *b, struct keyhash key, unsigned bits)
{
    const struct fuse_spot spot = spot_of(b, key);
    return !fuse_sum(b->bytes, &spot, bits);
}

/* Answers for the keys that wait, and lets the next ones wait in their place.  Returns how many
 * were found. */
static ALWAYS_INLINE size_t contains_waiting(const struct body *b, struct fuse_spot *waiting,
                                             const struct keyhash *next, bool *answer,
                                             unsigned bits)
{
    size_t found = 0;
    for (size_t i = 0; i < FUSE_WAITING; i++) {
        bool here = !fuse_sum(b->bytes, &waiting[i], bits);
        answer[i] = here;
        found += here;
        const struct fuse_spot spot = spot_of(b, next[i]);
        prefetch_spot(b, &spot, bits);
        waiting[i] = spot;
    }
    return found;
}

/* A key of a batch waits until its lines have come, so that its slots are computed but once.
 * Not all keys of a step wait at a time: three lines of each would be most of what the fastest
 * cache holds.  Those that the last call has prefetched are computed again, and those that are
 * left over at the end, too. */
static ALWAYS_INLINE size_t contains_all(const struct body *b, const struct keyhash *keys,
                                         const struct keyhash *ahead, size_t n, bool *answer,
                                         unsigned bits)
{
    const struct body body = *b; /* 'answer' may be anywhere */
    const size_t whole = n - n % FUSE_WAITING;
    struct fuse_spot waiting[FUSE_WAITING];
    size_t found = 0, at = 0;
    for (size_t i = 0; i < FUSE_WAITING && whole; i++)
        waiting[i] = spot_of(&body, keys[i]);
    while (at < whole) {
        bool *now = answer + at;
        at += FUSE_WAITING;
        found += contains_waiting(&body, waiting, at < whole ? keys + at : ahead, now, bits);
    }
    if (at && at < n)
        prefetch_keys(&body, keys + at, n - at, bits);
    for (; at < n; at++) {
        answer[at] = contains_key(&body, keys[at], bits);
        found += answer[at];
    }
    return found;
}

/* Defines the loops for slots of so many bits. */
#ifndef FUSE_LOOPS
#define FUSE_LOOPS(bits)                                                                       \
    static void fuse_prefetch_##bits(const struct body *b, const struct keyhash *keys,         \
                                     size_t n)                                                 \
    {                                                                                          \
        prefetch_keys(b, keys, n, bits);                                                       \
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
