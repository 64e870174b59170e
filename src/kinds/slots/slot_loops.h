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

#if CPU_HAS_AVX2
/* Compares the slots of two buckets, of 16 bits each, with an entry. */
static LOOP_INLINE __m128i slots_equal(const uint8_t *body, struct entry e)
{
    __m128i slots = _mm_set_epi64x((long long)bucket_load(body, e.second, NARROW_MAX),
                                   (long long)bucket_load(body, e.first, NARROW_MAX));
    return _mm_cmpeq_epi16(slots, _mm_set1_epi16((short)e.fingerprint));
}
#endif

/* As buckets_have(). */
static LOOP_INLINE bool in_buckets(const uint8_t *body, unsigned width, struct entry e)
{
#if CPU_HAS_AVX2
    if (width == NARROW_MAX) {
        __m128i equal = slots_equal(body, e);
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

/* Returns a bit for each slot of a wide bucket that is 'value'. */
static LOOP_INLINE unsigned wide_match(const uint8_t *body, uint64_t bucket, unsigned width,
                                       uint32_t value)
{
#if CPU_HAS_AVX2
    __m256i slots = wide_slots(body, bucket, width);
    __m256i equal = _mm256_cmpeq_epi64(slots, _mm256_set1_epi64x(value));
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(equal));
#else
    return wide_bucket_match(body, bucket, width, value);
#endif
}

/* Returns the first slot of a wide bucket that is 'value', or BUCKET_SLOTS if none is. */
static LOOP_INLINE unsigned wide_find(const uint8_t *body, uint64_t bucket, unsigned width,
                                      uint32_t value)
{
    return (unsigned)__builtin_ctz(wide_match(body, bucket, width, value) | 1U << BUCKET_SLOTS);
}

/* As narrow_put() and wide_put(). */
static LOOP_INLINE bool put_in_bucket(uint8_t *body, unsigned width, struct entry e)
{
    if (width <= NARROW_MAX)
        return narrow_put(body, width, e);
    return wide_put_at(body, width, e, wide_find(body, e.first, width, 0),
                       wide_find(body, e.second, width, 0));
}

/* Remove a copy of an entry: as table_remove() the first one, in the first bucket if there is
 * one.  Return whether there was one.  There is no branch on which bucket it is. */
static LOOP_INLINE bool narrow_remove(uint8_t *body, unsigned width, struct entry e)
{
    uint64_t in_first = bucket_lanes(body, e.first, width, e.fingerprint);
    uint64_t in_second = bucket_lanes(body, e.second, width, e.fingerprint);
    uint64_t lanes = in_first ? in_first : in_second;
    if (!lanes)
        return false;
    bucket_xor(body, in_first ? e.first : e.second, width,
               e.fingerprint * ((lanes & -lanes) >> (width - 1)));
    return true;
}

static LOOP_INLINE bool remove_from_bucket(uint8_t *body, unsigned width, struct entry e)
{
    if (width <= NARROW_MAX)
        return narrow_remove(body, width, e);
    unsigned in_first = wide_find(body, e.first, width, e.fingerprint);
    unsigned in_second = wide_find(body, e.second, width, e.fingerprint);
    if (in_first + in_second == 2 * BUCKET_SLOTS)
        return false;
    bool from_first = in_first < BUCKET_SLOTS;
    slot_set(body, from_first ? e.first : e.second, from_first ? in_first : in_second, width,
             0);
    return true;
}

/* Returns how many copies of an entry lie in its two buckets: as table_copies(). */
static LOOP_INLINE unsigned copies_in_buckets(const uint8_t *body, unsigned width,
                                              struct entry e)
{
#if CPU_HAS_AVX2
    if (width == NARROW_MAX)
        return (unsigned)__builtin_popcount((unsigned)_mm_movemask_epi8(slots_equal(body, e))) /
               (unsigned)sizeof(uint16_t);
#endif
    if (width <= NARROW_MAX)
        return bucket_count(body, e.first, width, e.fingerprint) +
               bucket_count(body, e.second, width, e.fingerprint);
    return bits_set32(wide_match(body, e.first, width, e.fingerprint) |
                      wide_match(body, e.second, width, e.fingerprint) << BUCKET_SLOTS);
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

static LOOP_INLINE int add_new_one_at(const struct body *b, bool strided, unsigned width,
                                      struct keyhash key, struct counters *counters)
{
    if (key_is_there(b->bytes, flat_places(b, strided), strided, width, key))
        return 0;
    return add_one_at(b, strided, width, key, counters);
}

static LOOP_INLINE int remove_one_at(const struct body *b, unsigned width, struct keyhash key,
                                     struct counters *counters)
{
    struct entry e = flat_entry(key, flat_places(b, false), width, false);
    return count_removal(counters, remove_from_bucket(b->bytes, width, e));
}

static LOOP_INLINE uint64_t count_one_at(const struct body *b, unsigned width,
                                         struct keyhash key)
{
    struct entry e = flat_entry(key, flat_places(b, false), width, false);
    return copies_in_buckets(b->bytes, width, e);
}

/* Cells have one loop for all widths. */
static int remove_one_cell(const struct body *b, struct keyhash key, struct counters *counters)
{
    struct table t = flat_table_alone(b, true);
    struct entry e = flat_table_entry(&t, &key);
    return count_removal(counters, table_remove(&t, &e));
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
        .add_new_one = name##_add_new_one,                                                     \
        .remove_one = (strided) ? remove_one_cell : name##_remove_one,                         \
        .count_one = (strided) ? NULL : name##_count_one,                                      \
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
    static NOINLINE int name##_set_add_one(const struct body *b, struct keyhash key,           \
                                           struct counters *counters)                          \
    {                                                                                          \
        return add_new_one_at(b, strided, width, key, counters);                               \
    }                                                                                          \
    static inline int name##_remove_one(const struct body *b, struct keyhash key,              \
                                        struct counters *counters)                             \
    {                                                                                          \
        return remove_one_at(b, width, key, counters);                                         \
    }                                                                                          \
    static inline uint64_t name##_count_one(const struct body *b, struct keyhash key)          \
    {                                                                                          \
        return count_one_at(b, width, key);                                                    \
    }                                                                                          \
    CONTAINS_INTEGER(name##_contains_integer, name##_contains_one)                             \
    ADD_INTEGER(name##_add_integer, name##_add_one)                                            \
    ADD_NEW_ONE(name##_add_new_one, name##_set_add_one)                                        \
    ADD_INTEGER(name##_set_add_integer, name##_set_add_one)                                    \
    static const struct slot_loops name##_loops = {                                            \
        .loops = LOOPS_OF(name, strided, add_one, add_integer),                                \
        .of_set = LOOPS_OF(name, strided, set_add_one, set_add_integer),                       \
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
