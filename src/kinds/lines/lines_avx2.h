/* lines_avx2.h - AVX2: a line of 16 words is two vectors of 8.  lines_loops.h tells what is
 * defined here. */
typedef uint32_t words __attribute__((vector_size(32), may_alias));

static ALWAYS_INLINE bool some_bit(words x, words of)
{
    return !_mm256_testz_si256((__m256i)x, (__m256i)of);
}
