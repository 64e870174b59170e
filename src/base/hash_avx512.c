/* hash_avx512.c - XXH3-128 and XXH3-64 of keys of 8 bytes, and SipHash, by AVX-512. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "hash_loops.h"

#if defined(__clang__)
#pragma clang attribute push(                                                                  \
    __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))),                   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl")
#endif

#define SIP_LANES 8
#include "sip_loops.h"

/* Returns x ^ x >> shift in each lane. */
static inline __m512i fold(__m512i x, unsigned shift)
{
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, shift));
}

/* Multiplies each lane of 'a' by b: returns the lower 64 bits of the products and sets *high to
 * the upper ones.  AVX-512 has no such instruction, so four products of halves are added. */
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

/* Returns the place and sets *mark for eight keys.  Steps and numbers are those of XXH3 for 4
 * to 8 bytes: https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md.  'flip' is what depends
 * on the seed alone. */
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

/* Places and marks come in two vectors, and 'out' has them in turn: 'first' and 'second' are
 * the permutations that interleave the first four and the last four keys. */
void hash_integers_128_avx512(const uint8_t *packed, size_t n, uint64_t seed,
                              struct keyhash *out)
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

void hash_integers_64_avx512(const uint8_t *restrict packed, size_t n, uint64_t flip,
                             struct keyhash *restrict out)
{
    hash_loop_64(packed, n, flip, out);
}

void hash_sip_avx512(const uint8_t *secret, const struct perhaps_key *keys, size_t n,
                     struct keyhash *out)
{
    sip_run(secret, keys, n, out);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int not_for_this_cpu;
#endif
