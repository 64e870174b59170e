/* elastic.h - the loops that ask elastic filters, for any instruction set. */
#ifndef KERNELS_ELASTIC_H
#define KERNELS_ELASTIC_H

#if defined(__BMI2__) /* and what comes with it */
#include <immintrin.h>
#endif

#include "cuckoo.h"

/* The eight slots that an entry may lie in, each in a lane. */
typedef uint16_t narrow_lanes __attribute__((vector_size(16)));
typedef uint32_t wide_lanes __attribute__((vector_size(32)));

/* Four slots of up to 16 bits, each to 16 bits. */
static ALWAYS_INLINE uint64_t spread(uint64_t slots, unsigned width)
{
    uint64_t mask = (UINT64_C(1) << width) - 1;
    if (width == NARROW_MAX)
        return slots;
#if defined(__BMI2__)
    return _pdep_u64(slots, mask * UINT64_C(0x0001000100010001));
#else
    return (slots & mask) | (slots >> width & mask) << 16 | (slots >> 2 * width & mask) << 32 |
           (slots >> 3 * width & mask) << 48;
#endif
}

static ALWAYS_INLINE bool any_lane(const void *lanes, size_t nbytes)
{
    uint64_t word[sizeof(wide_lanes) / sizeof(uint64_t)], any = 0;
#if defined(__SSE4_1__)
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

/* elastic_matches() in all lanes. */
static ALWAYS_INLINE bool narrow_segment_has(const uint8_t *segment, unsigned width,
                                             uint64_t first, uint64_t second, uint32_t full)
{
    const uint64_t slots[] = { spread(cuckoo_load_bucket(segment, first, width), width),
                               spread(cuckoo_load_bucket(segment, second, width), width) };
    narrow_lanes entry, key = (uint16_t)full - (narrow_lanes){ 0 };
    memcpy(&entry, slots, sizeof entry);
    narrow_lanes lowest = entry & -entry;
    narrow_lanes match = (narrow_lanes)((entry ^ key) < (narrow_lanes)(lowest + lowest));
    return any_lane(&match, sizeof match);
}

#if defined(__AVX2__)
/* Where the slots of a bucket begin: the byte, and the bit of it. */
#define SLOT_BIT(i)  ((int)(odd * 4 + (i)*width))
#define SLOT_BYTE(i) (char)(SLOT_BIT(i) / 8)
#define SLOT_BYTES(i)                                                                          \
    SLOT_BYTE(i), SLOT_BYTE(i) + 1, SLOT_BYTE(i) + 2, SLOT_BYTE(i) + 3, SLOT_BYTE(i) + 4, -1,  \
        -1, -1

/* Four slots of 17 to 32 bits, each to 64 bits.  'odd': the bucket begins in the middle of a
 * byte. */
static ALWAYS_INLINE __m256i spread_wide(const uint8_t *segment, uint64_t bucket,
                                         unsigned width, unsigned odd)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    const __m256i bytes =
        _mm256_setr_epi8(SLOT_BYTES(0), SLOT_BYTES(1), SLOT_BYTES(2), SLOT_BYTES(3));
    const __m256i bits =
        _mm256_setr_epi64x(SLOT_BIT(0) % 8, SLOT_BIT(1) % 8, SLOT_BIT(2) % 8, SLOT_BIT(3) % 8);
    const __m256i mask = _mm256_set1_epi64x((1LL << width) - 1);
    __m256i slots = _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)(segment + (bit >> 3))));
    return _mm256_and_si256(_mm256_srlv_epi64(_mm256_shuffle_epi8(slots, bytes), bits), mask);
}

static ALWAYS_INLINE __m256i wide_matches(const uint8_t *segment, uint64_t bucket,
                                          unsigned width, __m256i key)
{
    bool odd = width % 2 && bucket % 2;
    __m256i entry =
        odd ? spread_wide(segment, bucket, width, 1) : spread_wide(segment, bucket, width, 0);
    __m256i lowest = _mm256_and_si256(entry, _mm256_sub_epi64(_mm256_setzero_si256(), entry));
    return _mm256_cmpgt_epi64(_mm256_add_epi64(lowest, lowest), _mm256_xor_si256(entry, key));
}

static ALWAYS_INLINE bool wide_segment_has(const uint8_t *segment, unsigned width,
                                           uint64_t first, uint64_t second, uint32_t full)
{
    __m256i key = _mm256_set1_epi64x(full);
    __m256i match = _mm256_or_si256(wide_matches(segment, first, width, key),
                                    wide_matches(segment, second, width, key));
    return !_mm256_testz_si256(match, match);
}
#else
static ALWAYS_INLINE bool wide_segment_has(const uint8_t *segment, unsigned width,
                                           uint64_t first, uint64_t second, uint32_t full)
{
    unsigned __int128 there = cuckoo_load_wide_bucket(segment, first, width);
    unsigned __int128 other = cuckoo_load_wide_bucket(segment, second, width);
    uint32_t mask = (uint32_t)((UINT64_C(1) << width) - 1), slots[2 * BUCKET_SLOTS];
    for (unsigned i = 0; i < BUCKET_SLOTS; i++) {
        slots[i] = (uint32_t)(there >> i * width) & mask;
        slots[BUCKET_SLOTS + i] = (uint32_t)(other >> i * width) & mask;
    }
    wide_lanes entry, key = full - (wide_lanes){ 0 };
    memcpy(&entry, slots, sizeof entry);
    wide_lanes lowest = entry & -entry;
    wide_lanes match = (wide_lanes)((entry ^ key) < (wide_lanes)(lowest + lowest));
    return any_lane(&match, sizeof match);
}

#endif

static ALWAYS_INLINE bool segment_has(uint8_t *entry, unsigned width, struct keyhash key,
                                      uint64_t first, uint64_t second)
{
    const uint8_t *segment = directory_segment(entry);
    uint32_t full = elastic_entry(key, directory_depth(entry), width);
    return width <= NARROW_MAX ? narrow_segment_has(segment, width, first, second, full)
                               : wide_segment_has(segment, width, first, second, full);
}

static ALWAYS_INLINE uint8_t *directory_entry(const struct directory *directory, uint64_t mark)
{
    return directory->entry[directory_index(mark, directory->depth)];
}

static ALWAYS_INLINE void prefetch_pair(struct directory *const *directories, unsigned width,
                                        struct keyhash key)
{
    const struct directory *directory =
        __atomic_load_n(&directories[elastic_base(key.place)], __ATOMIC_ACQUIRE);
    uint8_t *const *at = &directory->entry[directory_index(key.mark, directory->depth)];
    const uint8_t *segment = directory_segment(__atomic_load_n(at, __ATOMIC_ACQUIRE));
    uint64_t first = elastic_bucket(key.place);
    prefetch_bucket(segment, first, width);
    prefetch_bucket(segment, elastic_other_bucket(first, elastic_tail(key.place)), width);
}

/* Beside writers.  What was not found may have been moved to its other bucket meanwhile: then
 * the version of the two has changed; or its segment may have been split: then the directory
 * has. */
static ALWAYS_INLINE bool key_is_in_beside(struct directory *const *directories, unsigned width,
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
        const uint32_t *version = &versions[cuckoo_version(first, second + salt)];
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

static ALWAYS_INLINE bool key_is_in(struct directory *const *directories, unsigned width,
                                    struct keyhash key)
{
    uint64_t first = elastic_bucket(key.place);
    uint64_t second = elastic_other_bucket(first, elastic_tail(key.place));
    return segment_has(directory_entry(directories[elastic_base(key.place)], key.mark), width,
                       key, first, second);
}

static ALWAYS_INLINE size_t elastic_contains_at(struct directory *const *directories,
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

static size_t elastic_contains(struct directory *const *directories, unsigned slot_bits,
                               const uint32_t *versions, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer)
{
#define IN_SEGMENTS(w)   elastic_contains_at(directories, w, versions, keys, ahead, n, answer)
#define WIDE_SEGMENTS(w) IN_SEGMENTS(NARROW_MAX + (w))
    if (slot_bits == NARROW_MAX) /* the widest that fits a lane is the fastest, and common */
        return versions
                   ? elastic_contains_at(directories, NARROW_MAX, versions, keys, ahead, n,
                                         answer)
                   : elastic_contains_at(directories, NARROW_MAX, NULL, keys, ahead, n, answer);
    if (slot_bits < NARROW_MAX)
        RETURN_WITH_CONSTANT(slot_bits, IN_SEGMENTS)
    RETURN_WITH_CONSTANT(slot_bits - NARROW_MAX, WIDE_SEGMENTS)
}

static void elastic_prefetch(struct directory *const *directories, unsigned slot_bits,
                             const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_pair(directories, slot_bits, keys[i]);
}

#endif
