/* lines_avx512.h - AVX-512: a line of 16 words is one vector.  lines_loops.h tells what is
 * defined here. */
typedef uint32_t words __attribute__((vector_size(64), may_alias));

static ALWAYS_INLINE bool some_bit(words x, words of)
{
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)of) != 0;
}
