/* lines_neon.h - NEON: a line of 16 words is four vectors of 4.  lines_loops.h tells what is
 * defined here. */
struct line_rule {
    uint8x16x4_t factors; /* the constants of steps 0 to 15, as a table of 64 bytes */
    uint32x4_t bits;      /* the number of steps, in each lane */
};

static inline struct line_rule line_rule(unsigned bits)
{
    return (struct line_rule){ .factors = vld1q_u8_x4((const uint8_t *)blocked_factors),
                               .bits = vdupq_n_u32(bits) };
}

/* Returns the key's bits in the 4 words to which 'step' belongs.  The step of each word picks
 * its constant from the table, byte by byte; factor times constant gives the shift that makes
 * the bit, of which only the bits in 'shifts' count.  A word whose step the walk does not reach
 * gets no bit. */
static ALWAYS_INLINE uint32x4_t quarter_mask(uint32x4_t step, uint32x4_t factor,
                                             const struct line_rule *rule, uint32_t shifts)
{
    uint32x4_t bytes =
        vmlaq_u32(vdupq_n_u32(0x03020100), step, vdupq_n_u32(0x04040404)); /* 4 step + 0 .. 3 */
    uint32x4_t constant =
        vreinterpretq_u32_u8(vqtbl4q_u8(rule->factors, vreinterpretq_u8_u32(bytes)));
    uint32x4_t shift = vshrq_n_u32(vmulq_u32(factor, constant), 27);
    if (shifts != WORD_NBITS - 1)
        shift = vandq_u32(shift, vdupq_n_u32(shifts));
    uint32x4_t one = vshrq_n_u32(vcltq_u32(step, rule->bits), 31);
    return vshlq_u32(one, vreinterpretq_s32_u32(shift));
}

/* Sets mask[] to the key's bits in all 16 words. */
static ALWAYS_INLINE void line_mask(uint64_t mark, const struct line_rule *rule,
                                    uint32_t shifts, uint32x4_t mask[4])
{
    uint8x16_t steps = vld1q_u8(blocked_steps_of(mark));
    uint16x8_t low = vmovl_u8(vget_low_u8(steps)), high = vmovl_u8(vget_high_u8(steps));
    uint32x4_t factor = vdupq_n_u32((uint32_t)(mark >> 32));
    mask[0] = quarter_mask(vmovl_u16(vget_low_u16(low)), factor, rule, shifts);
    mask[1] = quarter_mask(vmovl_u16(vget_high_u16(low)), factor, rule, shifts);
    mask[2] = quarter_mask(vmovl_u16(vget_low_u16(high)), factor, rule, shifts);
    mask[3] = quarter_mask(vmovl_u16(vget_high_u16(high)), factor, rule, shifts);
}

static ALWAYS_INLINE bool line_has(uint8_t *line, uint64_t mark, const struct line_rule *rule)
{
    const uint32_t *words = (const void *)line;
    uint32x4_t mask[4], missing = vdupq_n_u32(0);
    line_mask(mark, rule, WORD_NBITS - 1, mask);
    for (unsigned i = 0; i < 4; i++)
        missing = vorrq_u32(missing, vbicq_u32(mask[i], vld1q_u32(&words[4 * i])));
    return vmaxvq_u32(missing) == 0;
}

static ALWAYS_INLINE bool line_add(uint8_t *line, uint64_t mark, const struct line_rule *rule)
{
    uint32_t *words = (void *)line;
    uint32x4_t mask[4], missing = vdupq_n_u32(0);
    line_mask(mark, rule, WORD_NBITS - 1, mask);
    for (unsigned i = 0; i < 4; i++) {
        uint32x4_t before = vld1q_u32(&words[4 * i]);
        vst1q_u32(&words[4 * i], vorrq_u32(before, mask[i]));
        missing = vorrq_u32(missing, vbicq_u32(mask[i], before));
    }
    return vmaxvq_u32(missing) == 0;
}

typedef uint32_t words __attribute__((vector_size(16), may_alias));

static ALWAYS_INLINE bool some_lane(words x)
{
    return vmaxvq_u32((uint32x4_t)x) != 0;
}

static ALWAYS_INLINE void line_ones(uint64_t mark, const struct line_rule *rule, words ones[])
{
    uint32x4_t mask[4];
    line_mask(mark, rule, COUNTER_SHIFTS, mask);
    for (unsigned i = 0; i < 4; i++)
        ones[i] = (words)mask[i];
}
