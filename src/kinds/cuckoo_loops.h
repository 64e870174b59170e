/* cuckoo_loops.h - the loops of cuckoo filters, for one instruction set; each_cpu.h includes
 * it.  The widths that plans take most often have loops of their own, where shifts are by
 * constants; not in scalar code, which few CPUs run. */
#ifndef CUCKOO_LOOPS_NAMES
#define CUCKOO_LOOPS_NAMES
#define pair_has        FOR_CPU(pair_has)
#define wide_empty      FOR_CPU(wide_empty)
#define pair_put        FOR_CPU(pair_put)
#define contains_at     FOR_CPU(contains_at)
#define add_at          FOR_CPU(add_at)
#define add_one_at      FOR_CPU(add_one_at)
#define cuckoo_loops_at FOR_CPU(cuckoo_loops_at)
#define narrow_width    FOR_CPU(narrow_width)
#define wide_width      FOR_CPU(wide_width)
#define AT(name, width) FOR_CPU(cuckoo_##name##_##width)
#endif

#if CPU_HAS_AVX2 || CPU_HAS_NEON
/* Return the width, and tell the compiler which half of the loops it needs. */
static ALWAYS_INLINE unsigned narrow_width(const struct body *b)
{
    if (b->field[WIDTH] > NARROW_MAX)
        __builtin_unreachable();
    return (unsigned)b->field[WIDTH];
}

static ALWAYS_INLINE unsigned wide_width(const struct body *b)
{
    if (b->field[WIDTH] <= NARROW_MAX)
        __builtin_unreachable();
    return (unsigned)b->field[WIDTH];
}
#endif

#include "wide_slots.h"

/* Does what bucket_pair_has() does. */
static ALWAYS_INLINE bool pair_has(const uint8_t *body, unsigned width, struct entry e)
{
#if CPU_HAS_AVX2
    if (width == NARROW_MAX) {
        __m128i slots = _mm_set_epi64x((long long)cuckoo_load_bucket(body, e.second, width),
                                       (long long)cuckoo_load_bucket(body, e.first, width));
        __m128i equal = _mm_cmpeq_epi16(slots, _mm_set1_epi16((short)e.fingerprint));
        return !_mm_testz_si128(equal, equal);
    }
    if (width > NARROW_MAX) {
        __m256i key = _mm256_set1_epi64x(e.fingerprint);
        __m256i in_first = _mm256_cmpeq_epi64(wide_slots(body, e.first, width), key);
        __m256i in_second = _mm256_cmpeq_epi64(wide_slots(body, e.second, width), key);
        __m256i equal = _mm256_or_si256(in_first, in_second);
        return !_mm256_testz_si256(equal, equal);
    }
#endif
    return bucket_pair_has(body, width, e);
}

#if CPU_HAS_AVX2
/* Returns a bit for each slot of a bucket that is empty, and one more for the end. */
static ALWAYS_INLINE unsigned wide_empty(const uint8_t *body, uint64_t bucket, unsigned width)
{
    __m256i slots = wide_slots(body, bucket, width);
    __m256i empty = _mm256_cmpeq_epi64(slots, _mm256_setzero_si256());
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(empty)) | 1U << BUCKET_SLOTS;
}
#endif

/* Puts an entry into the emptier of its two buckets, as table_put() does.  Returns false, and
 * changes nothing, if they are full, or if there is no fast way. */
static ALWAYS_INLINE bool pair_put(uint8_t *body, unsigned width, struct entry e)
{
    if (width <= NARROW_MAX)
        return narrow_put(body, width, e);
#if CPU_HAS_AVX2
    unsigned in_first = (unsigned)__builtin_ctz(wide_empty(body, e.first, width));
    unsigned in_second = (unsigned)__builtin_ctz(wide_empty(body, e.second, width));
    if (in_first + in_second == 2 * BUCKET_SLOTS)
        return false;
    bool to_first = in_first <= in_second;
    cuckoo_set_slot(body, to_first ? e.first : e.second, to_first ? in_first : in_second, width,
                    e.fingerprint);
    return true;
#else
    return false;
#endif
}

static ALWAYS_INLINE size_t contains_at(const struct body *b, unsigned width,
                                        const struct keyhash *keys, const struct keyhash *ahead,
                                        size_t n, bool *answer)
{
    const uint8_t *body = b->bytes;
    uint64_t nbuckets = b->field[NBUCKETS];
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_buckets(body, nbuckets, width, ahead[i]);
        answer[i] = pair_has(body, width, cuckoo_entry(keys[i], nbuckets, width));
        found += answer[i];
    }
    return found;
}

static ALWAYS_INLINE int add_at(const struct body *b, unsigned width,
                                const struct keyhash *keys, const struct keyhash *ahead,
                                size_t n, size_t *done)
{
    uint8_t *body = b->bytes;
    uint64_t nbuckets = b->field[NBUCKETS];
    int error = 0;
    size_t i = 0;
    for (; i < n && !error; i++) {
        prefetch_buckets(body, nbuckets, width, ahead[i]);
        if (!pair_put(body, width, cuckoo_entry(keys[i], nbuckets, width)))
            error = add_by_moves(b, keys[i]);
    }
    *done = i - (error != 0);
    return error;
}

static ALWAYS_INLINE int add_one_at(const struct body *b, unsigned width, struct keyhash key,
                                    struct counters *counters)
{
    if (!pair_put(b->bytes, width, cuckoo_entry(key, b->field[NBUCKETS], width)))
        return add_one_by_moves(b, key, counters);
    counters->keys++;
    return 0;
}

/* 'one' says whether the _integer forms inline the _one forms; otherwise they jump to them,
 * which takes two instructions more and saves code. */
/* NOLINTBEGIN(bugprone-macro-parentheses): an attribute takes none */
#define LOOPS_AT(name, width, one)                                                             \
    static size_t AT(contains, name)(const struct body *b, const struct keyhash *keys,         \
                                     const struct keyhash *ahead, size_t n, bool *answer)      \
    {                                                                                          \
        return contains_at(b, width, keys, ahead, n, answer);                                  \
    }                                                                                          \
    static int AT(add, name)(const struct body *b, const struct keyhash *keys,                 \
                             const struct keyhash *ahead, size_t n, size_t *done)              \
    {                                                                                          \
        return add_at(b, width, keys, ahead, n, done);                                         \
    }                                                                                          \
    static one bool AT(contains_one, name)(const struct body *b, struct keyhash key)           \
    {                                                                                          \
        return pair_has(b->bytes, width, cuckoo_entry(key, b->field[NBUCKETS], width));        \
    }                                                                                          \
    static one int AT(add_one, name)(const struct body *b, struct keyhash key,                 \
                                     struct counters *counters)                                \
    {                                                                                          \
        return add_one_at(b, width, key, counters);                                            \
    }                                                                                          \
    CONTAINS_INTEGER(AT(contains_integer, name), AT(contains_one, name))                       \
    ADD_INTEGER(AT(add_integer, name), AT(add_one, name))                                      \
    static const struct cuckoo_loops AT(                                                       \
        loops, name) = { { .prefetch = cuckoo_prefetch,                                        \
                           .contains = AT(contains, name),                                     \
                           .contains_one = AT(contains_one, name),                             \
                           .contains_integer = AT(contains_integer, name),                     \
                           .add_one = AT(add_one, name),                                       \
                           .add_integer = AT(add_integer, name) },                             \
                         AT(add, name) }
/* NOLINTEND(bugprone-macro-parentheses) */

#if CPU_HAS_AVX2 || CPU_HAS_NEON
LOOPS_AT(8, 8, NOINLINE);
LOOPS_AT(10, 10, NOINLINE);
LOOPS_AT(12, 12, NOINLINE);
LOOPS_AT(16, 16, inline);
LOOPS_AT(narrow, narrow_width(b), NOINLINE);
LOOPS_AT(wide, wide_width(b), NOINLINE);
#else
LOOPS_AT(any, (unsigned)b->field[WIDTH], NOINLINE);
#endif

static const struct cuckoo_loops *cuckoo_loops_at(unsigned width)
{
#if CPU_HAS_AVX2 || CPU_HAS_NEON
    switch (width) {
    case 8:
        return &AT(loops, 8);
    case 10:
        return &AT(loops, 10);
    case 12:
        return &AT(loops, 12);
    case 16:
        return &AT(loops, 16);
    default:
        return width <= NARROW_MAX ? &AT(loops, narrow) : &AT(loops, wide);
    }
#else
    (void)width;
    return &AT(loops, any);
#endif
}
