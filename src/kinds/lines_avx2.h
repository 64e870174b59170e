/* lines_avx2.h - AVX2: a line of 16 words is two vectors of 8.  lines_loops.h tells what is
 * defined here. */
struct line_rule {
    __m256i low_factors;  /* the constants of steps 0 to 7 */
    __m256i high_factors; /* of steps 8 to 15 */
    __m256i bits;         /* the number of steps, in each lane */
};

static inline struct line_rule line_rule(unsigned bits)
{
    const __m256i *factors = (const __m256i *)blocked_factors;
    return (struct line_rule){ .low_factors = _mm256_loadu_si256(&factors[0]),
                               .high_factors = _mm256_loadu_si256(&factors[1]),
                               .bits = _mm256_set1_epi32((int)bits) };
}

/* Returns the key's bits in the 8 words to which 'steps' belong.  The step of each word picks
 * its constant; factor times constant gives the shift that makes the bit, of which only the
 * bits in 'shifts' count.  A word whose step the walk does not reach gets no bit. */
static ALWAYS_INLINE __m256i half_mask(const uint8_t *steps, __m256i factor,
                                       const struct line_rule *rule, int shifts)
{
    __m256i step = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)steps));
    __m256i low = _mm256_permutevar8x32_epi32(rule->low_factors, step);
    __m256i high = _mm256_permutevar8x32_epi32(rule->high_factors, step);
    __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(step, 28)); /* bit 3 to the sign */
    __m256i constant = _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), is_high));
    __m256i product = _mm256_mullo_epi32(factor, constant);
    __m256i one = _mm256_srli_epi32(_mm256_cmpgt_epi32(rule->bits, step), 31);
    __m256i shift = _mm256_srli_epi32(product, 27);
    if (shifts != WORD_NBITS - 1)
        shift = _mm256_and_si256(shift, _mm256_set1_epi32(shifts));
    return _mm256_sllv_epi32(one, shift);
}

static ALWAYS_INLINE bool line_has(uint8_t *line, uint64_t mark, const struct line_rule *rule)
{
    const uint8_t *steps = blocked_steps_of(mark);
    const __m256i *half = (const __m256i *)line;
    __m256i factor = _mm256_set1_epi32((int)(mark >> 32));
    __m256i low = half_mask(steps, factor, rule, WORD_NBITS - 1);
    __m256i high = half_mask(steps + 8, factor, rule, WORD_NBITS - 1);
    __m256i missing = _mm256_or_si256(_mm256_andnot_si256(_mm256_load_si256(&half[0]), low),
                                      _mm256_andnot_si256(_mm256_load_si256(&half[1]), high));
    return _mm256_testz_si256(missing, missing);
}

static ALWAYS_INLINE bool line_add(uint8_t *line, uint64_t mark, const struct line_rule *rule)
{
    const uint8_t *steps = blocked_steps_of(mark);
    __m256i *half = (__m256i *)line;
    __m256i factor = _mm256_set1_epi32((int)(mark >> 32));
    __m256i missing = _mm256_setzero_si256();
    for (unsigned i = 0; i < 2; i++) {
        __m256i mask = half_mask(steps + 8 * i, factor, rule, WORD_NBITS - 1);
        __m256i before = _mm256_load_si256(&half[i]);
        _mm256_store_si256(&half[i], _mm256_or_si256(before, mask));
        missing = _mm256_or_si256(missing, _mm256_andnot_si256(before, mask));
    }
    return _mm256_testz_si256(missing, missing);
}

typedef uint32_t words __attribute__((vector_size(32), may_alias));

static ALWAYS_INLINE bool some_lane(words x)
{
    return !_mm256_testz_si256((__m256i)x, (__m256i)x);
}

static ALWAYS_INLINE void line_ones(uint64_t mark, const struct line_rule *rule, words ones[])
{
    const uint8_t *steps = blocked_steps_of(mark);
    __m256i factor = _mm256_set1_epi32((int)(mark >> 32));
    ones[0] = (words)half_mask(steps, factor, rule, COUNTER_SHIFTS);
    ones[1] = (words)half_mask(steps + 8, factor, rule, COUNTER_SHIFTS);
}
