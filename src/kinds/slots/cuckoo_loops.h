/* cuckoo_loops.h - the loops of cuckoo filters, for one instruction set; each_cpu.h includes
 * it. */
#ifndef CUCKOO_LOOPS_NAMES
#define CUCKOO_LOOPS_NAMES
#define pair_has       FOR_CPU(pair_has)
#define wide_empty     FOR_CPU(wide_empty)
#define pair_put       FOR_CPU(pair_put)
#define slots_prefetch FOR_CPU(slots_prefetch)
#define slots_have     FOR_CPU(slots_have)
#define slots_put      FOR_CPU(slots_put)
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

static ALWAYS_INLINE void slots_prefetch(const uint8_t *body, uint64_t nbuckets, unsigned width,
                                         struct keyhash key)
{
    prefetch_buckets(body, nbuckets, width, key);
}

static ALWAYS_INLINE bool slots_have(const uint8_t *body, uint64_t nbuckets, unsigned width,
                                     struct keyhash key)
{
    return pair_has(body, width, cuckoo_entry(key, nbuckets, width));
}

static ALWAYS_INLINE bool slots_put(uint8_t *body, uint64_t nbuckets, unsigned width,
                                    struct keyhash key)
{
    return pair_put(body, width, cuckoo_entry(key, nbuckets, width));
}

#include "slot_loops.h"
