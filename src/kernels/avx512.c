/* avx512.c - a line of 16 words is one vector. */
#include <immintrin.h>

#include "lanes.h"

struct line_rule {
    __m512i factors;
    __m512i bits;
};

static inline struct line_rule line_rule(unsigned bits)
{
    return (struct line_rule){ .factors = _mm512_loadu_si512(blocked_factors),
                               .bits = _mm512_set1_epi32((int)bits) };
}

/* The key's bit in each word that its walk comes to: the steps, permuted into the order of the
 * words, pick each word's constant, and a shift by as many, of 'shifts', makes the bit. */
static ALWAYS_INLINE __m512i line_mask(uint64_t mark, const struct line_rule *rule, int shifts)
{
    __m512i step =
        _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)blocked_steps_of(mark)));
    __m512i factor = _mm512_set1_epi32((int)(mark >> 32));
    __m512i product = _mm512_mullo_epi32(factor, _mm512_permutexvar_epi32(step, rule->factors));
    __m512i shift = _mm512_srli_epi32(product, 27);
    if (shifts != WORD_NBITS - 1)
        shift = _mm512_and_si512(shift, _mm512_set1_epi32(shifts));
    return _mm512_maskz_sllv_epi32(_mm512_cmplt_epu32_mask(step, rule->bits),
                                   _mm512_set1_epi32(1), shift);
}

static ALWAYS_INLINE bool lacks_none(__m512i line, __m512i mask)
{
    __m512i missing = _mm512_andnot_si512(line, mask);
    return _mm512_test_epi32_mask(missing, missing) == 0;
}

static ALWAYS_INLINE bool line_has(const uint8_t *line, uint64_t mark,
                                   const struct line_rule *rule)
{
    return lacks_none(_mm512_load_si512(line), line_mask(mark, rule, WORD_NBITS - 1));
}

static ALWAYS_INLINE bool line_add(uint8_t *line, uint64_t mark, const struct line_rule *rule)
{
    __m512i mask = line_mask(mark, rule, WORD_NBITS - 1);
    __m512i before = _mm512_load_si512(line);
    _mm512_store_si512(line, _mm512_or_si512(before, mask));
    return lacks_none(before, mask);
}

#define RETURN_FOR_BITS(bits, call) return call((unsigned)(bits));
#include "blocked.h"
#include "bloom.h"

typedef uint32_t words __attribute__((vector_size(64), may_alias));

static ALWAYS_INLINE bool some_lane(words x)
{
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0;
}

static ALWAYS_INLINE void line_ones(uint64_t mark, const struct line_rule *rule, words ones[])
{
    ones[0] = (words)line_mask(mark, rule, COUNTER_SHIFTS);
}

#include "nibbles.h"

#include "counting.h"
#include "cuckoo.h"
#include "elastic.h"

/* ---- XXH3-128 of 8 bytes, eight at a time ------------------------------------------------ */

/* x xor itself, shifted */
static inline __m512i fold(__m512i x, unsigned shift)
{
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, shift));
}

/* 64 x 64 -> 128 bits by four products of halves. */
static inline __m512i multiply(__m512i a, uint64_t b, __m512i *high)
{
    const __m512i low_half = _mm512_set1_epi64(0xffffffff);
    __m512i b_low = _mm512_set1_epi64((long long)(b & 0xffffffff));
    __m512i b_high = _mm512_set1_epi64((long long)(b >> 32));
    __m512i a_high = _mm512_srli_epi64(a, 32);
    __m512i low = _mm512_mul_epu32(a, b_low);
    __m512i middle = _mm512_add_epi64(_mm512_mul_epu32(a, b_high), _mm512_srli_epi64(low, 32));
    __m512i other =
        _mm512_add_epi64(_mm512_mul_epu32(a_high, b_low), _mm512_and_si512(middle, low_half));
    *high = _mm512_add_epi64(
        _mm512_add_epi64(_mm512_mul_epu32(a_high, b_high), _mm512_srli_epi64(middle, 32)),
        _mm512_srli_epi64(other, 32));
    return _mm512_or_si512(_mm512_slli_epi64(other, 32), _mm512_and_si512(low, low_half));
}

/* The steps and numbers of XXH3 for keys of 8 bytes: https://github.com/Cyan4973/xxHash,
 * doc/xxhash_spec.md. */
static inline __m512i xxh3_of_8(__m512i key, uint64_t flip, __m512i *mark)
{
    __m512i high;
    __m512i low = multiply(_mm512_xor_si512(key, _mm512_set1_epi64((long long)flip)),
                           UINT64_C(0x9E3779B185EBCAA7), &high);
    high = _mm512_add_epi64(high, _mm512_slli_epi64(low, 1));
    low = fold(_mm512_xor_si512(low, _mm512_srli_epi64(high, 3)), 35);
    low = _mm512_mullo_epi64(low, _mm512_set1_epi64((long long)UINT64_C(0x9FB21C651E98DF25)));
    high = _mm512_mullo_epi64(fold(high, 37), _mm512_set1_epi64(0x165667919E3779F9));
    *mark = fold(high, 32);
    return fold(low, 28);
}

static void hash_integers(const uint8_t *packed, size_t n, uint64_t seed, struct keyhash *out)
{
    const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    const __m512i second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    uint64_t swapped = (uint64_t)__builtin_bswap32((uint32_t)seed) << 32;
    uint64_t flip = UINT64_C(0xC4F023344DC994AC) + (seed ^ swapped);
    for (size_t i = 0; i < n; i += 8) {
        unsigned left = n - i < 8 ? (unsigned)(n - i) : 8;
        __mmask8 some = (__mmask8)((1U << left) - 1);
        __m512i mark,
            place = xxh3_of_8(_mm512_maskz_loadu_epi64(some, packed + 8 * i), flip, &mark);
        __m512i pairs = _mm512_permutex2var_epi64(place, second, mark);
        unsigned halves = (1U << 2 * left) - 1;
        _mm512_mask_storeu_epi64(out + i, (__mmask8)halves,
                                 _mm512_permutex2var_epi64(place, first, mark));
        _mm512_mask_storeu_epi64(out + i + 4, (__mmask8)(halves >> 8), pairs);
    }
}

const struct kernels kernels_avx512 = {
    .name = "avx512",
    .hash_integers = hash_integers,
    .blocked = BLOCKED_LOOPS,
    .bloom = BLOOM_LOOPS,
    .counting = COUNTING_LOOPS,
    .counting_change = counting_change,
    .cuckoo = CUCKOO_LOOPS,
    .cuckoo_contains_beside = cuckoo_contains_beside,
    .elastic_prefetch = elastic_prefetch,
    .elastic_contains = elastic_contains,
};
