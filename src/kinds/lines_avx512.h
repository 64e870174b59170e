/* lines_avx512.h - AVX-512: a line of 16 words is one vector.  lines_loops.h tells what is
 * defined here. */
struct line_rule {
    __m512i factors; /* the constants of steps 0 to 15 */
    __m512i bits;    /* the number of steps, in each lane */
};

static inline struct line_rule line_rule(unsigned bits)
{
    return (struct line_rule){ .factors = _mm512_loadu_si512(blocked_factors),
                               .bits = _mm512_set1_epi32((int)bits) };
}

/* Returns the key's bits.  The step of each word picks its constant; factor times constant
 * gives the shift that makes the bit, of which only the bits in 'shifts' count.  A word whose
 * step the walk does not reach gets no bit. */
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

/* Returns whether the line has all bits of the mask. */
static ALWAYS_INLINE bool lacks_none(__m512i line, __m512i mask)
{
    __m512i missing = _mm512_andnot_si512(line, mask);
    return _mm512_test_epi32_mask(missing, missing) == 0;
}

static ALWAYS_INLINE bool line_has(uint8_t *line, uint64_t mark, const struct line_rule *rule)
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

typedef uint32_t words __attribute__((vector_size(64), may_alias));

static ALWAYS_INLINE bool some_lane(words x)
{
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0;
}

static ALWAYS_INLINE void line_ones(uint64_t mark, const struct line_rule *rule, words ones[])
{
    ones[0] = (words)line_mask(mark, rule, COUNTER_SHIFTS);
}
