/* elastic_loops.h - the loops that query elastic filters.  Adds and removals are in elastic.c.
 *
 * All loops compare the eight slots of a pair of buckets with elastic_matches(), one slot in
 * each lane of a vector.  The table of a body is its directories, one for each base; b->writers
 * is NULL, or begins with the versions. */
#include "segments.h"
#include "wide_slots.h"

/* The eight slots of a pair of buckets, one in each lane. */
typedef uint16_t narrow_lanes __attribute__((vector_size(16)));
typedef uint32_t wide_lanes __attribute__((vector_size(32)));

static LOOP_INLINE uint8_t *directory_entry(const struct directory *directory, uint64_t mark)
{
    return directory->entry[directory_index(mark, directory->depth)];
}

/* Prefetches the two buckets of a key.  Reads the directory atomically, since another thread
 * may replace it. */
static ALWAYS_INLINE void prefetch_pair(struct directory *const *directories, unsigned width,
                                        struct keyhash key)
{
    if (!CAN_PREFETCH)
        return;
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
    const unsigned slot_bits = (unsigned)b->geometry.field[SLOT_BITS];
    for (size_t i = 0; i < n; i++)
        if (slot_bits == NARROW_MAX) /* one line a bucket */
            prefetch_pair(b->table, NARROW_MAX, keys[i]);
        else
            prefetch_pair(b->table, slot_bits, keys[i]);
}

/* Returns whether any bit of 'nbytes' bytes is set. */
static LOOP_INLINE bool any_lane(const void *lanes, size_t nbytes)
{
    uint64_t word[sizeof(wide_lanes) / sizeof(uint64_t)], any = 0;
#if CPU_HAS_AVX2
    if (nbytes == sizeof(__m128i)) {
        __m128i all = _mm_loadu_si128(lanes);
        return !_mm_testz_si128(all, all);
    }
#endif
    memcpy(word, lanes, nbytes);
    for (size_t i = 0; i < nbytes / sizeof *word; i++)
        any |= word[i];
    return any != 0;
}

#if CPU_HAS_AVX2 || CPU_HAS_NEON
/* Spreads four slots of up to 16 bits to 16 bits each. */
static LOOP_INLINE uint64_t spread(uint64_t slots, unsigned width)
{
    uint64_t mask = (UINT64_C(1) << width) - 1;
    if (width == NARROW_MAX)
        return slots;
#if CPU_HAS_AVX2
    return _pdep_u64(slots, mask * UINT64_C(0x0001000100010001));
#else
    return (slots & mask) | (slots >> width & mask) << 16 | (slots >> 2 * width & mask) << 32 |
           (slots >> 3 * width & mask) << 48;
#endif
}

/* Returns whether one of the eight slots matches, of up to 16 bits each; 'full' is what a new
 * entry of the key would be. */
static LOOP_INLINE bool narrow_segment_has(const uint8_t *segment, unsigned width,
                                           uint64_t first, uint64_t second, uint32_t full)
{
    const uint64_t slots[] = { spread(bucket_load(segment, first, width), width),
                               spread(bucket_load(segment, second, width), width) };
    narrow_lanes entry, key = (uint16_t)full - (narrow_lanes){ 0 };
    memcpy(&entry, slots, sizeof entry);
    narrow_lanes lowest = entry & -entry;
    narrow_lanes match = (narrow_lanes)((entry ^ key) < (narrow_lanes)(lowest + lowest));
    return any_lane(&match, sizeof match);
}

#else
/* Returns for four slots, as lanes of a word, whether each one differs from the key: 0 in a
 * lane that matches.  entry ^ (entry - 1) are the bits up to the lowest one, in which a slot
 * may differ; no lane borrows, since the top bits are set meanwhile. */
static LOOP_INLINE uint64_t narrow_differ(uint64_t entries, uint64_t key, uint64_t tops,
                                          uint64_t ones)
{
    uint64_t clear = ~entries & tops, less = ((entries | tops) - ones) ^ clear;
    uint64_t empty = less & clear; /* only 0 becomes larger */
    return ((entries ^ key) & ~(entries ^ less)) | empty;
}

/* As with vectors. */
static LOOP_INLINE bool narrow_segment_has(const uint8_t *segment, unsigned width,
                                           uint64_t first, uint64_t second, uint32_t full)
{
    const uint64_t ones = lane_ones(width), tops = ones << (width - 1), key = full * ones;
    const uint64_t a = narrow_differ(bucket_load(segment, first, width), key, tops, ones);
    const uint64_t b = narrow_differ(bucket_load(segment, second, width), key, tops, ones);
    return (lanes_zero(a, ones, width) | lanes_zero(b, ones, width)) != 0;
}
#endif

#if CPU_HAS_AVX2
/* Compares the four slots of a bucket, of 17 to 32 bits each, with the key.  Returns all ones
 * in the lanes of 64 bits whose slots match. */
static LOOP_INLINE __m256i wide_matches(const uint8_t *segment, uint64_t bucket, unsigned width,
                                        __m256i key)
{
    __m256i entry = wide_slots(segment, bucket, width);
    __m256i lowest = _mm256_and_si256(entry, _mm256_sub_epi64(_mm256_setzero_si256(), entry));
    return _mm256_cmpgt_epi64(_mm256_add_epi64(lowest, lowest), _mm256_xor_si256(entry, key));
}

static LOOP_INLINE bool wide_segment_has(const uint8_t *segment, unsigned width, uint64_t first,
                                         uint64_t second, uint32_t full)
{
    __m256i key = _mm256_set1_epi64x(full);
    __m256i match = _mm256_or_si256(wide_matches(segment, first, width, key),
                                    wide_matches(segment, second, width, key));
    return !_mm256_testz_si256(match, match);
}
#else
static LOOP_INLINE bool wide_segment_has(const uint8_t *segment, unsigned width, uint64_t first,
                                         uint64_t second, uint32_t full)
{
    uint32_t slots[2 * BUCKET_SLOTS];
    bucket_get(segment, first, width, slots);
    bucket_get(segment, second, width, slots + BUCKET_SLOTS);
    wide_lanes entry, key = full - (wide_lanes){ 0 };
    memcpy(&entry, slots, sizeof entry);
    wide_lanes lowest = entry & -entry;
    wide_lanes match = (wide_lanes)((entry ^ key) < (wide_lanes)(lowest + lowest));
    return any_lane(&match, sizeof match);
}

#endif

/* Returns whether the segment that a directory entry leads to has the key, whose buckets are
 * 'first' and 'second'. */
static LOOP_INLINE bool segment_has(uint8_t *entry, unsigned width, struct keyhash key,
                                    uint64_t first, uint64_t second)
{
    const uint8_t *segment = directory_segment(entry);
    uint32_t full = elastic_entry(key, directory_depth(entry), width);
    return width <= NARROW_MAX ? narrow_segment_has(segment, width, first, second, full)
                               : wide_segment_has(segment, width, first, second, full);
}

/* Returns whether a key is in, while other threads write.  If it is not found, another thread
 * may have moved its entry to the other bucket: then the version of the pair has changed.  Or
 * it may have split the segment: then the directory, or its entry, has changed.  In both cases
 * the reader looks again; it never waits for a lock. */
static LOOP_INLINE bool key_is_in_beside(struct directory *const *directories, unsigned width,
                                         struct keyhash key, const uint32_t *versions)
{
    struct directory *const *base = &directories[elastic_base(key.place)];
    uint64_t first = elastic_bucket(key.place);
    uint64_t second = elastic_other_bucket(first, elastic_tail(key.place));
    for (;;) {
        const struct directory *directory = __atomic_load_n(base, __ATOMIC_ACQUIRE);
        uint8_t *const *at = &directory->entry[directory_index(key.mark, directory->depth)];
        uint8_t *entry = __atomic_load_n(at, __ATOMIC_ACQUIRE);
        uint64_t salt = segment_salt(directory_segment(entry));
        const uint32_t *version = &versions[table_version_of(first, second + salt)];
        uint32_t before = __atomic_load_n(version, __ATOMIC_ACQUIRE);
        if (segment_has(entry, width, key, first, second))
            return true;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(version, __ATOMIC_RELAXED) == before &&
            __atomic_load_n(base, __ATOMIC_RELAXED) == directory &&
            __atomic_load_n(at, __ATOMIC_RELAXED) == entry)
            return false;
    }
}

/* The same while nobody writes. */
static LOOP_INLINE bool key_is_in(struct directory *const *directories, unsigned width,
                                  struct keyhash key)
{
    uint64_t first = elastic_bucket(key.place);
    uint64_t second = elastic_other_bucket(first, elastic_tail(key.place));
    return segment_has(directory_entry(directories[elastic_base(key.place)], key.mark), width,
                       key, first, second);
}

static LOOP_INLINE size_t elastic_contains_at(struct directory *const *directories,
                                              unsigned width, const uint32_t *versions,
                                              const struct keyhash *keys,
                                              const struct keyhash *ahead, size_t n,
                                              bool *answer)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_pair(directories, width, ahead[i]);
        answer[i] = versions ? key_is_in_beside(directories, width, keys[i], versions)
                             : key_is_in(directories, width, keys[i]);
        found += answer[i];
    }
    return found;
}

/* The compiler inlines the loop at each call, with what is known of the width there. */
static size_t elastic_contains(const struct body *b, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer)
{
    struct directory *const *directories = b->table;
    const uint32_t *versions = b->writers; /* they begin with the versions */
    unsigned slot_bits = (unsigned)b->geometry.field[SLOT_BITS];
    if ((CPU_HAS_AVX2 || CPU_HAS_NEON) &&
        slot_bits == NARROW_MAX) /* the fastest width, and common */
        return versions
                   ? elastic_contains_at(directories, NARROW_MAX, versions, keys, ahead, n,
                                         answer)
                   : elastic_contains_at(directories, NARROW_MAX, NULL, keys, ahead, n, answer);
    if ((CPU_HAS_AVX2 || CPU_HAS_NEON) && slot_bits < NARROW_MAX)
        return elastic_contains_at(directories, slot_bits, versions, keys, ahead, n, answer);
    return elastic_contains_at(directories, slot_bits, versions, keys, ahead, n, answer);
}

static NOINLINE bool elastic_contains_one(const struct body *b, struct keyhash key)
{
    unsigned width = (unsigned)b->geometry.field[SLOT_BITS];
    if (width == NARROW_MAX)
        return key_is_in(b->table, NARROW_MAX, key);
    return key_is_in(b->table, width, key);
}

CONTAINS_INTEGER(elastic_contains_integer, elastic_contains_one)

/* The table. */
#define ELASTIC_LOOPS                                                                          \
    {                                                                                          \
        .prefetch = elastic_prefetch, .contains = elastic_contains,                            \
        .contains_one = elastic_contains_one, .contains_integer = elastic_contains_integer,    \
    }
