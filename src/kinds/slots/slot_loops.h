/* slot_loops.h - the loops of cuckoo and strided filters, for one instruction set; each_cpu.h
 * includes it.  All functions take whether the table is strided, and the width of a slot, which
 * the compiler knows where it inlines them.  The widths that plans take most often have loops
 * of their own, where shifts are by constants; not in scalar code, which few CPUs run. */
#ifndef SLOT_LOOPS_NAMES
#define SLOT_LOOPS_NAMES
#define in_buckets        FOR_CPU(in_buckets)
#define wide_empty        FOR_CPU(wide_empty)
#define put_in_bucket     FOR_CPU(put_in_bucket)
#define lanes_of          FOR_CPU(lanes_of)
#define in_cells          FOR_CPU(in_cells)
#define in_buckets_beside FOR_CPU(in_buckets_beside)
#define short_put         FOR_CPU(short_put)
#define key_prefetch      FOR_CPU(key_prefetch)
#define key_is_there      FOR_CPU(key_is_there)
#define key_put           FOR_CPU(key_put)
#define prefetch_places   FOR_CPU(prefetch_places)
#define contains_at       FOR_CPU(contains_at)
#define add_at            FOR_CPU(add_at)
#define add_one_at        FOR_CPU(add_one_at)
#define slot_loops_at     FOR_CPU(slot_loops_at)
#define width_up_to       FOR_CPU(width_up_to)
#define width_above       FOR_CPU(width_above)
#define AT(name, loop)    FOR_CPU(slots_##name##_##loop)
#endif

#include "wide_slots.h"

/* ---- Buckets ----------------------------------------------------------------------------- */

/* As buckets_have(). */
static ALWAYS_INLINE bool in_buckets(const uint8_t *body, unsigned width, struct entry e)
{
#if CPU_HAS_AVX2
    if (width == NARROW_MAX) {
        __m128i slots = _mm_set_epi64x((long long)bucket_load(body, e.second, width),
                                       (long long)bucket_load(body, e.first, width));
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
    return buckets_have(body, width, e);
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

/* As narrow_put() and wide_put(). */
static ALWAYS_INLINE bool put_in_bucket(uint8_t *body, unsigned width, struct entry e)
{
    if (width <= NARROW_MAX)
        return narrow_put(body, width, e);
#if CPU_HAS_AVX2
    return wide_put_at(body, width, e,
                       (unsigned)__builtin_ctz(wide_empty(body, e.first, width)),
                       (unsigned)__builtin_ctz(wide_empty(body, e.second, width)));
#else
    return wide_put(body, width, e);
#endif
}

/* ---- Cells
 * --------------------------------------------------------------------------------- */

/* Returns what an entry would fill of a place, in cells of up to SHORT_MOST bits. */
static ALWAYS_INLINE struct lanes lanes_of(const struct entry *e, unsigned width)
{
    uint64_t second = UINT64_C(1) << strided_stride(e->fingerprint) * width, ones = 1 | second;
    return (struct lanes){ .ones = ones,
                           .values = 2 * (uint64_t)e->fingerprint * ones | second };
}

static ALWAYS_INLINE bool in_cells(const uint8_t *body, unsigned width, struct entry e)
{
    bool found = false;
    if (width <= SHORT_MOST) {
        struct lanes l = lanes_of(&e, width);
        uint64_t first = cell_load(body, e.first, width) ^ l.values;
        uint64_t second = cell_load(body, e.second, width) ^ l.values;
        return (lanes_zero(first, l.ones, width) | lanes_zero(second, l.ones, width)) != 0;
    }
    for (unsigned i = 0; i < STRIDED_CELLS; i++)
        found |= cell_get(body, strided_cell(&e, i), width) == strided_value(&e, i);
    return found;
}

/* Puts an entry into an empty cell, the first one of a place if there is a choice.  There is no
 * branch on which place it is. */
static ALWAYS_INLINE bool short_put(uint8_t *body, unsigned width, struct entry e)
{
    struct lanes l = lanes_of(&e, width);
    uint64_t in_first = lanes_zero(cell_load(body, e.first, width), l.ones, width);
    uint64_t in_second = lanes_zero(cell_load(body, e.second, width), l.ones, width);
    if (!(in_first | in_second))
        return false;
    in_first &= -in_first;
    in_second &= -in_second;
    bool to_first = in_first - 1 <= in_second - 1; /* 0 becomes the largest number */
    uint64_t top = to_first ? in_first : in_second;
    uint64_t bit = (to_first ? e.first : e.second) * width;
    uint8_t *at = body + (bit >> 3);
    store64(at, load64(at) | (l.values & (2 * top - (top >> (width - 1)))) << (bit & 7));
    return true;
}

/* ---- Keys
 * ---------------------------------------------------------------------------------- */

static ALWAYS_INLINE void key_prefetch(const uint8_t *body, uint64_t nplaces, bool strided,
                                       unsigned width, struct keyhash key)
{
    struct entry e = flat_entry(key, nplaces, width, strided);
    place_prefetch(body, e.first, width, strided);
    place_prefetch(body, e.second, width, strided);
}

static ALWAYS_INLINE bool key_is_there(const uint8_t *body, uint64_t nplaces, bool strided,
                                       unsigned width, struct keyhash key)
{
    struct entry e = flat_entry(key, nplaces, width, strided);
    return strided ? in_cells(body, width, e) : in_buckets(body, width, e);
}

/* Adds a key.  Returns false, and changes nothing, if no slot is empty. */
static ALWAYS_INLINE bool key_put(uint8_t *body, uint64_t nplaces, bool strided, unsigned width,
                                  struct keyhash key)
{
    struct entry e = flat_entry(key, nplaces, width, strided);
    if (!strided)
        return put_in_bucket(body, width, e);
    return width <= SHORT_MOST ? short_put(body, width, e) : strided_put(body, width, &e);
}

static ALWAYS_INLINE size_t contains_at(const struct body *b, bool strided, unsigned width,
                                        const struct keyhash *keys, const struct keyhash *ahead,
                                        size_t n, bool *answer)
{
    const uint8_t *body = b->bytes;
    const uint64_t nplaces = flat_places(b, strided);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        key_prefetch(body, nplaces, strided, width, ahead[i]);
        answer[i] = key_is_there(body, nplaces, strided, width, keys[i]);
        found += answer[i];
    }
    return found;
}

static ALWAYS_INLINE int add_at(const struct body *b, bool strided, unsigned width,
                                const struct keyhash *keys, const struct keyhash *ahead,
                                size_t n, bool unless_present, bool *answer, size_t *done)
{
    uint8_t *body = b->bytes;
    const uint64_t nplaces = flat_places(b, strided);
    int error = 0;
    size_t i = 0;
    for (; i < n && !error; i++) {
        key_prefetch(body, nplaces, strided, width, ahead[i]);
        if (unless_present &&
            (answer[i] = key_is_there(body, nplaces, strided, width, keys[i])))
            continue;
        if (!key_put(body, nplaces, strided, width, keys[i]))
            error = add_by_moves(b, keys[i], strided);
    }
    *done = i - (error != 0);
    return error;
}

static ALWAYS_INLINE int add_one_at(const struct body *b, bool strided, unsigned width,
                                    struct keyhash key, struct counters *counters)
{
    if (!key_put(b->bytes, flat_places(b, strided), strided, width, key))
        return add_one_by_moves(b, key, strided, counters);
    counters->keys++;
    return 0;
}

/* Does not know the width: what calls it has no other keys to ask for. */
static ALWAYS_INLINE void prefetch_places(const struct body *b, bool strided,
                                          const struct keyhash *keys, size_t n)
{
    const unsigned width = (unsigned)b->field[WIDTH];
    for (size_t i = 0; i < n; i++)
        key_prefetch(b->bytes, flat_places(b, strided), strided, width, keys[i]);
}

static void AT(prefetch, cuckoo_keys)(const struct body *b, const struct keyhash *keys,
                                      size_t n)
{
    prefetch_places(b, false, keys, n);
}

static void AT(prefetch, strided_keys)(const struct body *b, const struct keyhash *keys,
                                       size_t n)
{
    prefetch_places(b, true, keys, n);
}

#if CPU_HAS_AVX2 || CPU_HAS_NEON
/* Return the width, and tell the compiler which half of the loops it needs. */
static ALWAYS_INLINE unsigned width_up_to(const struct body *b, unsigned most)
{
    if (b->field[WIDTH] > most)
        __builtin_unreachable();
    return (unsigned)b->field[WIDTH];
}

static ALWAYS_INLINE unsigned width_above(const struct body *b, unsigned most)
{
    if (b->field[WIDTH] <= most)
        __builtin_unreachable();
    return (unsigned)b->field[WIDTH];
}
#endif

/* Whether a key is in a table of buckets to which other threads write.  An entry that was not
 * found may have moved between its two buckets meanwhile.  Then the version of the pair has
 * changed, and the reader looks again; it never waits for a lock. */
static ALWAYS_INLINE bool in_buckets_beside(const uint8_t *body, unsigned width, struct entry e,
                                            const uint32_t *versions)
{
    const uint32_t *version = &versions[table_version_of(e.first, e.second)];
    uint32_t before;
    do {
        before = __atomic_load_n(version, __ATOMIC_ACQUIRE);
        if (in_buckets(body, width, e))
            return true;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(version, __ATOMIC_RELAXED) != before);
    return false;
}

static size_t AT(contain, beside)(const struct body *b, const struct keyhash *keys,
                                  const struct keyhash *ahead, size_t n, bool *answer)
{
    const uint8_t *body = b->bytes;
    const uint64_t nbuckets = b->field[SIZE];
    const unsigned width = (unsigned)b->field[WIDTH];
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        key_prefetch(body, nbuckets, false, width, ahead[i]);
        struct entry e = cuckoo_entry(keys[i], nbuckets, width);
        answer[i] = in_buckets_beside(body, width, e, b->writers);
        found += answer[i];
    }
    return found;
}

/* 'one' says whether the _integer forms inline the _one forms; otherwise they jump to them,
 * which takes two instructions more and saves code. */
/* NOLINTBEGIN(bugprone-macro-parentheses): an attribute takes none */
#define LOOPS_AT(name, strided, width, one)                                                    \
    static size_t AT(contains, name)(const struct body *b, const struct keyhash *keys,         \
                                     const struct keyhash *ahead, size_t n, bool *answer)      \
    {                                                                                          \
        return contains_at(b, strided, width, keys, ahead, n, answer);                         \
    }                                                                                          \
    static int AT(add, name)(const struct body *b, const struct keyhash *keys,                 \
                             const struct keyhash *ahead, size_t n, bool unless_present,       \
                             bool *answer, size_t *done)                                       \
    {                                                                                          \
        return unless_present                                                                  \
                   ? add_at(b, strided, width, keys, ahead, n, true, answer, done)             \
                   : add_at(b, strided, width, keys, ahead, n, false, answer, done);           \
    }                                                                                          \
    static one bool AT(contains_one, name)(const struct body *b, struct keyhash key)           \
    {                                                                                          \
        return key_is_there(b->bytes, flat_places(b, strided), strided, width, key);           \
    }                                                                                          \
    static one int AT(add_one, name)(const struct body *b, struct keyhash key,                 \
                                     struct counters *counters)                                \
    {                                                                                          \
        return add_one_at(b, strided, width, key, counters);                                   \
    }                                                                                          \
    static NOINLINE int AT(add_absent, name)(const struct body *b, struct keyhash key,         \
                                             struct counters *counters)                        \
    {                                                                                          \
        return key_is_there(b->bytes, flat_places(b, strided), strided, width, key)            \
                   ? 0                                                                         \
                   : add_one_at(b, strided, width, key, counters);                             \
    }                                                                                          \
    CONTAINS_INTEGER(AT(contains_integer, name), AT(contains_one, name))                       \
    ADD_INTEGER(AT(add_integer, name), AT(add_one, name))                                      \
    ADD_INTEGER(AT(add_integer_absent, name), AT(add_absent, name))                            \
    static const struct slot_loops AT(                                                         \
        loops, name) = { .loops = { .prefetch = strided ? AT(prefetch, strided_keys)           \
                                                        : AT(prefetch, cuckoo_keys),           \
                                    .contains = AT(contains, name),                            \
                                    .contains_one = AT(contains_one, name),                    \
                                    .contains_integer = AT(contains_integer, name),            \
                                    .add_one = AT(add_one, name),                              \
                                    .add_integer = AT(add_integer, name) },                    \
                         .contains_beside = AT(contain, beside),                               \
                         .add = AT(add, name),                                                 \
                         .add_absent = AT(add_absent, name),                                   \
                         .add_integer_absent = AT(add_integer_absent, name) }
/* NOLINTEND(bugprone-macro-parentheses) */

#if CPU_HAS_AVX2 || CPU_HAS_NEON
LOOPS_AT(cuckoo_8, false, 8, NOINLINE);
LOOPS_AT(cuckoo_10, false, 10, NOINLINE);
LOOPS_AT(cuckoo_12, false, 12, NOINLINE);
LOOPS_AT(cuckoo_16, false, 16, inline);
LOOPS_AT(cuckoo_narrow, false, width_up_to(b, NARROW_MAX - 1), NOINLINE);
LOOPS_AT(cuckoo_wide, false, width_above(b, NARROW_MAX), NOINLINE);
LOOPS_AT(strided_10, true, 10, NOINLINE);
LOOPS_AT(strided_12, true, 12, NOINLINE);
LOOPS_AT(strided_16, true, 16, inline);
LOOPS_AT(strided_short, true, width_up_to(b, SHORT_MOST), NOINLINE);
LOOPS_AT(strided_long, true, width_above(b, SHORT_MOST), NOINLINE);
#else
LOOPS_AT(cuckoo_any, false, (unsigned)b->field[WIDTH], NOINLINE);
LOOPS_AT(strided_any, true, (unsigned)b->field[WIDTH], NOINLINE);
#endif

static const struct slot_loops *slot_loops_at(bool strided, unsigned width)
{
#if CPU_HAS_AVX2 || CPU_HAS_NEON
    switch (width) {
    case 8: /* strided cells are wider */
        return &AT(loops, cuckoo_8);
    case 10:
        return strided ? &AT(loops, strided_10) : &AT(loops, cuckoo_10);
    case 12:
        return strided ? &AT(loops, strided_12) : &AT(loops, cuckoo_12);
    case 16:
        return strided ? &AT(loops, strided_16) : &AT(loops, cuckoo_16);
    default:
        break;
    }
    if (strided)
        return width <= SHORT_MOST ? &AT(loops, strided_short) : &AT(loops, strided_long);
    return width <= NARROW_MAX ? &AT(loops, cuckoo_narrow) : &AT(loops, cuckoo_wide);
#else
    (void)width;
    return strided ? &AT(loops, strided_any) : &AT(loops, cuckoo_any);
#endif
}
