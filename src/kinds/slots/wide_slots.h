/* wide_slots.h - slots of 17 to 32 bits as lanes of a vector, for the loops of cuckoo and
 * elastic filters. */
#ifndef WIDE_SLOTS_H
#define WIDE_SLOTS_H

#include "slots.h"

#if CPU_HAS_AVX2
/* Returns the four slots of a bucket, one in each lane of 64 bits. */
static ALWAYS_INLINE __m256i wide_slots(const uint8_t *body, uint64_t bucket, unsigned width)
{
    uint64_t bit = bucket * (BUCKET_SLOTS * width);
    const struct spreading *to = &spreadings[width - NARROW_MAX - 1][bit % 8 != 0];
    __m256i slots = _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)(body + (bit >> 3))));
    slots = _mm256_shuffle_epi8(slots, _mm256_loadu_si256((const __m256i *)to->byte));
    slots = _mm256_srlv_epi64(slots, _mm256_loadu_si256((const __m256i *)to->bit));
    return _mm256_and_si256(slots, _mm256_set1_epi64x((1LL << width) - 1));
}
#endif

#endif
