/* lines_neon.h - NEON: a line of 16 words is four vectors of 4.  lines_loops.h tells what is
 * defined here. */
typedef uint32_t words __attribute__((vector_size(16), may_alias));

static ALWAYS_INLINE bool some_bit(words x, words of)
{
    return vmaxvq_u32((uint32x4_t)(x & of)) != 0;
}
