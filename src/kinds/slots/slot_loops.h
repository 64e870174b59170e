/* slot_loops.h - the loops of cuckoo and strided filters.  All functions take whether the
 * table is strided, and the width of a slot, which the compiler knows where it inlines
 * them.  The widths that plans take most often have loops of their own, where shifts are by
 * constants; not in scalar code, which few CPUs run. */
#include "flat.h"
#include "wide_slots.h"

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

/* ---- Buckets ----------------------------------------------------------------------------- */

/* As buckets_have(). */
static LOOP_INLINE bool in_buckets(const uint8_t *body, unsigned width, struct entry e)
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
static LOOP_INLINE unsigned wide_empty(const uint8_t *body, uint64_t bucket, unsigned width)
{
    __m256i slots = wide_slots(body, bucket, width);
    __m256i empty = _mm256_cmpeq_epi64(slots, _mm256_setzero_si256());
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(empty)) | 1U << BUCKET_SLOTS;
}
#endif

/* As narrow_put() and wide_put(). */
static LOOP_INLINE bool put_in_bucket(uint8_t *body, unsigned width, struct entry e)
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

/* ---- Cells ------------------------------------------------------------------------------- */

/* Returns what an entry would fill of a place, in cells of up to SHORT_MOST bits. */
static LOOP_INLINE struct lanes lanes_of(const struct entry *e, unsigned width)
{
    uint64_t second = UINT64_C(1) << strided_stride(e->fingerprint) * width, ones = 1 | second;
    return (struct lanes){ .ones = ones,
                           .values = 2 * (uint64_t)e->fingerprint * ones | second };
}

static LOOP_INLINE bool in_cells(const uint8_t *body, unsigned width, struct entry e)
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
static LOOP_INLINE bool short_put(uint8_t *body, unsigned width, struct entry e)
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

/* ---- Keys -------------------------------------------------------------------------------- */

static ALWAYS_INLINE void key_prefetch(const uint8_t *body, uint64_t nplaces, bool strided,
                                       unsigned width, struct keyhash key)
{
    struct entry e = flat_entry(key, nplaces, width, strided);
    place_prefetch(body, e.first, width, strided);
    place_prefetch(body, e.second, width, strided);
}

static LOOP_INLINE bool key_is_there(const uint8_t *body, uint64_t nplaces, bool strided,
                                     unsigned width, struct keyhash key)
{
    struct entry e = flat_entry(key, nplaces, width, strided);
    return strided ? in_cells(body, width, e) : in_buckets(body, width, e);
}

/* Adds a key.  Returns false, and changes nothing, if no slot is empty. */
static LOOP_INLINE bool key_put(uint8_t *body, uint64_t nplaces, bool strided, unsigned width,
                                struct keyhash key)
{
    struct entry e = flat_entry(key, nplaces, width, strided);
    if (!strided)
        return put_in_bucket(body, width, e);
    return width <= SHORT_MOST ? short_put(body, width, e) : strided_put(body, width, &e);
}

static LOOP_INLINE size_t contains_at(const struct body *b, bool strided, unsigned width,
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

static LOOP_INLINE int add_at(const struct body *b, bool strided, unsigned width,
                              const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                              bool unless_present, bool *answer, size_t *done)
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

static LOOP_INLINE int add_one_at(const struct body *b, bool strided, unsigned width,
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
    const unsigned width = (unsigned)b->geometry.field[WIDTH];
    for (size_t i = 0; i < n; i++)
        key_prefetch(b->bytes, flat_places(b, strided), strided, width, keys[i]);
}

static void cuckoo_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    prefetch_places(b, false, keys, n);
}

static void strided_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    prefetch_places(b, true, keys, n);
}

#if CPU_HAS_AVX2 || CPU_HAS_NEON
/* Return the width, and tell the compiler which half of the loops it needs. */
static LOOP_INLINE unsigned width_up_to(const struct body *b, unsigned most)
{
    if (b->geometry.field[WIDTH] > most)
        __builtin_unreachable();
    return (unsigned)b->geometry.field[WIDTH];
}

static LOOP_INLINE unsigned width_above(const struct body *b, unsigned most)
{
    if (b->geometry.field[WIDTH] <= most)
        __builtin_unreachable();
    return (unsigned)b->geometry.field[WIDTH];
}
#endif

/* Whether a key is in a table of buckets to which other threads write.  An entry that was not
 * found may have moved between its two buckets meanwhile.  Then the version of the pair has
 * changed, and the reader looks again; it never waits for a lock. */
static LOOP_INLINE bool in_buckets_beside(const uint8_t *body, unsigned width, struct entry e,
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

static size_t cuckoo_contains_beside(const struct body *b, const struct keyhash *keys,
                                     const struct keyhash *ahead, size_t n, bool *answer)
{
    const uint8_t *body = b->bytes;
    const uint64_t nbuckets = b->geometry.field[SIZE];
    const unsigned width = (unsigned)b->geometry.field[WIDTH];
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        key_prefetch(body, nbuckets, false, width, ahead[i]);
        struct entry e = cuckoo_entry(keys[i], nbuckets, width);
        answer[i] = in_buckets_beside(body, width, e, b->writers);
        found += answer[i];
    }
    return found;
}

#define PREFETCH_OF(strided) ((strided) ? strided_prefetch : cuckoo_prefetch)
#define LOOPS_OF(name, strided, one, integer)                                                  \
    {                                                                                          \
        .prefetch = PREFETCH_OF(strided), .contains = name##_contains,                         \
        .contains_one = name##_contains_one, .contains_integer = name##_contains_integer,      \
        .add_one = name##_##one, .add_integer = name##_##integer,                              \
    }

/* 'one' says whether the _integer forms inline the _one forms; otherwise they jump to them,
 * which takes two instructions more and saves code. */
/* NOLINTBEGIN(bugprone-macro-parentheses): an attribute takes none */
#define LOOPS_AT(name, strided, width, one)                                                    \
    static size_t name##_contains(const struct body *b, const struct keyhash *keys,            \
                                  const struct keyhash *ahead, size_t n, bool *answer)         \
    {                                                                                          \
        return contains_at(b, strided, width, keys, ahead, n, answer);                         \
    }                                                                                          \
    static int name##_add(const struct body *b, const struct keyhash *keys,                    \
                          const struct keyhash *ahead, size_t n, bool unless_present,          \
                          bool *answer, size_t *done)                                          \
    {                                                                                          \
        return add_at(b, strided, width, keys, ahead, n, unless_present, answer, done);        \
    }                                                                                          \
    static one bool name##_contains_one(const struct body *b, struct keyhash key)              \
    {                                                                                          \
        return key_is_there(b->bytes, flat_places(b, strided), strided, width, key);           \
    }                                                                                          \
    static one int name##_add_one(const struct body *b, struct keyhash key,                    \
                                  struct counters *counters)                                   \
    {                                                                                          \
        return add_one_at(b, strided, width, key, counters);                                   \
    }                                                                                          \
    static NOINLINE int name##_add_absent(const struct body *b, struct keyhash key,            \
                                          struct counters *counters)                           \
    {                                                                                          \
        return key_is_there(b->bytes, flat_places(b, strided), strided, width, key)            \
                   ? 0                                                                         \
                   : add_one_at(b, strided, width, key, counters);                             \
    }                                                                                          \
    CONTAINS_INTEGER(name##_contains_integer, name##_contains_one)                             \
    ADD_INTEGER(name##_add_integer, name##_add_one)                                            \
    ADD_INTEGER(name##_add_integer_absent, name##_add_absent)                                  \
    static const struct slot_loops name##_loops = {                                            \
        .loops = LOOPS_OF(name, strided, add_one, add_integer),                                \
        .of_set = LOOPS_OF(name, strided, add_absent, add_integer_absent),                     \
        .beside = { .prefetch = PREFETCH_OF(strided), .contains = cuckoo_contains_beside },    \
        .add = name##_add                                                                      \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

#if CPU_HAS_AVX2 || CPU_HAS_NEON
LOOPS_AT(cuckoo_8, false, 8, NOINLINE);
LOOPS_AT(cuckoo_10, false, 10, NOINLINE);
LOOPS_AT(cuckoo_12, false, 12, NOINLINE);
LOOPS_AT(cuckoo_16, false, 16, inline);
LOOPS_AT(cuckoo_narrow, false, width_up_to(b, NARROW_MAX - 1), NOINLINE);
LOOPS_AT(cuckoo_wide, false, width_above(b, NARROW_MAX), NOINLINE);
LOOPS_AT(strided_16, true, 16, inline);
LOOPS_AT(strided_short, true, width_up_to(b, SHORT_MOST), NOINLINE);
LOOPS_AT(strided_long, true, width_above(b, SHORT_MOST), NOINLINE);
#else
LOOPS_AT(cuckoo_any, false, (unsigned)b->geometry.field[WIDTH], NOINLINE);
LOOPS_AT(strided_any, true, (unsigned)b->geometry.field[WIDTH], NOINLINE);
#endif

static const struct slot_loops *slot_loops_at(bool strided, unsigned width)
{
#if CPU_HAS_AVX2 || CPU_HAS_NEON
    if (strided)
        return width == 16           ? &strided_16_loops
               : width <= SHORT_MOST ? &strided_short_loops
                                     : &strided_long_loops;
    switch (width) {
    case 8:
        return &cuckoo_8_loops;
    case 10:
        return &cuckoo_10_loops;
    case 12:
        return &cuckoo_12_loops;
    case 16:
        return &cuckoo_16_loops;
    default:
        return width <= NARROW_MAX ? &cuckoo_narrow_loops : &cuckoo_wide_loops;
    }
#else
    (void)width;
    return strided ? &strided_any_loops : &cuckoo_any_loops;
#endif
}

/* The table. */
#define FLAT_LOOPS                                                                             \
    {                                                                                          \
        .at = slot_loops_at                                                                    \
    }
