/* fold_loops.h - the loops of fold.c.  Those over lines are plain C, which the compiler
 * turns into vectors. */
#include "fold.h"
#include "lines.h"

enum { LINE_LONGS = LINE_NBYTES / 8 };

/* Counters of a line that have a byte each. */
struct fold_sums {
    uint64_t low[LINE_LONGS], high[LINE_LONGS];
};

/* Returns a word whose n lowest bits are set, 1 <= n <= 64. */
static LOOP_INLINE uint64_t fold_low_bits(unsigned n)
{
    return UINT64_MAX >> (64 - n);
}

#if defined(__x86_64__)

/* Where 8 groups of bits lie that begin with a byte: for each group, in which two bytes, and in
 * which of their bits. */
struct group {
    uint8_t bytes[16];
    uint16_t mask[8];
};

#define BYTES(n, i) (i) * (n) / 8, (i) * (n) / 8 + 1
#define MASK(n, i)  (((1 << (n)) - 1) << (i) * (n) % 8)
#define GROUP(n)                                                                               \
    [n] = { { BYTES(n, 0), BYTES(n, 1), BYTES(n, 2), BYTES(n, 3), BYTES(n, 4), BYTES(n, 5),    \
              BYTES(n, 6), BYTES(n, 7) },                                                      \
            { MASK(n, 0), MASK(n, 1), MASK(n, 2), MASK(n, 3), MASK(n, 4), MASK(n, 5),          \
              MASK(n, 6), MASK(n, 7) } }
static const struct group fold_group_table[FOLD_GROUP_MOST + 1] = {
    GROUP(2), GROUP(3), GROUP(4), GROUP(5), GROUP(6), GROUP(7), GROUP(8),
};

#endif

/* ---- Lines ------------------------------------------------------------------------------- */

static void fold_loop_units(const uint8_t *from, uint8_t *to, uint64_t units,
                            uint64_t unit_nbytes, uint64_t factor)
{
    for (uint64_t unit = 0; unit < units; unit++, from += factor * unit_nbytes)
        for (uint64_t at = 0; at < unit_nbytes; at += LINE_NBYTES, to += LINE_NBYTES) {
            const uint8_t *line = from + at;
            uint64_t joined[LINE_LONGS] = { 0 };
            for (uint64_t i = 0; i < factor; i++, line += unit_nbytes)
                for (unsigned w = 0; w < LINE_LONGS; w++)
                    joined[w] |= load64(line + 8 * (size_t)w);
            memcpy(to, joined, sizeof joined);
        }
}

/* ---- Lines of counters ------------------------------------------------------------------- */

/* Adds the counters of lines: at most 16, so that no byte overflows. */
static LOOP_INLINE void fold_add_lines(struct fold_sums *sums, const uint8_t *from,
                                       uint64_t lines)
{
    for (uint64_t i = 0; i < lines; i++, from += LINE_NBYTES)
        for (size_t w = 0; w < LINE_LONGS; w++) {
            uint64_t counters = load64(from + w * sizeof counters);
            sums->low[w] += counters & low_halves;
            sums->high[w] += counters >> COUNTER_NBITS & low_halves;
        }
    for (size_t w = 0; w < LINE_LONGS; w++) {
        sums->low[w] = counters_clamp(sums->low[w]);
        sums->high[w] = counters_clamp(sums->high[w]);
    }
}

static void fold_loop_counters(const uint8_t *from, uint8_t *to, uint64_t lines,
                               uint64_t factor)
{
    const uint64_t most = 16;
    for (; lines; lines--, to += LINE_NBYTES) {
        struct fold_sums sums = { .low = { 0 } };
        for (uint64_t left = factor, n; left; left -= n, from += n * LINE_NBYTES) {
            n = left < most ? left : most;
            fold_add_lines(&sums, from, n);
        }
        for (size_t w = 0; w < LINE_LONGS; w++)
            store64(to + w * sizeof(uint64_t), sums.low[w] | sums.high[w] << COUNTER_NBITS);
    }
}

/* ---- Bits -------------------------------------------------------------------------------- */

#if CPU_HAS_AVX2

/* Returns 16 groups of bits, 8 in each half, that lie at 'low' and at 'high': 0 in those that
 * have a bit set, all ones in the others.  Moves to each group two bytes that have all its
 * bits, and removes the others. */
static LOOP_INLINE __m256i fold_clear_groups(const uint8_t *low, const uint8_t *high,
                                             __m256i bytes, __m256i mask)
{
    __m256i both = _mm256_castsi128_si256(_mm_loadu_si128((const void *)low));
    both = _mm256_inserti128_si256(both, _mm_loadu_si128((const void *)high), 1);
    both = _mm256_and_si256(_mm256_shuffle_epi8(both, bytes), mask);
    return _mm256_cmpeq_epi16(both, _mm256_setzero_si256());
}

/* Folds 4 * group bytes to 32 bits.  The order is that in which the instruction packs halves of
 * its operands.  Reads up to 14 bytes more. */
static LOOP_INLINE uint32_t fold_word(const uint8_t *from, size_t group, __m256i bytes,
                                      __m256i mask)
{
    __m256i a = fold_clear_groups(from, from + 2 * group, bytes, mask);
    __m256i b = fold_clear_groups(from + group, from + 3 * group, bytes, mask);
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(a, b));
}

/* Folds by 'group', at most FOLD_GROUP_MOST.  'to' may be 'from'.  Copies what the last
 * words are made of, so that nothing behind it is read. */
static void fold_loop_bits(const uint8_t *from, uint8_t *to, uint64_t nbytes, unsigned group)
{
    enum { LAST = 8 };
    const struct group *g = &fold_group_table[group];
    __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)g->bytes));
    __m256i mask = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)g->mask));
    uint8_t end[LAST * FOLD_GROUP_MOST + 16] = { 0 };
    memcpy(end, from + (nbytes - LAST) * group, LAST * (size_t)group);
    uint32_t before = fold_word(end, group, bytes, mask);
    uint32_t last = fold_word(end + 4 * (size_t)group, group, bytes, mask);
    for (uint64_t at = 0; at < nbytes - LAST; at += 4)
        store32(to + at, fold_word(from + at * group, group, bytes, mask));
    store32(to + nbytes - LAST, before);
    store32(to + nbytes - 4, last);
}

#else

/* Folds 'many' groups of 'group' bits, the lowest bits of x, to 'many' bits.  First ORs each
 * group into its lowest bit.  Then pushes the bits together: to pairs, pairs of pairs, and so
 * on.  A quotient of two words of low bits has one bit set in each piece of that size; all
 * arguments but x are constants, and so are the masks. */
static LOOP_INLINE uint64_t fold_groups(uint64_t x, unsigned group, unsigned many)
{
    const uint64_t all = fold_low_bits(many * group);
    uint64_t joined = x;
    for (unsigned i = 1; i < group; i++)
        joined |= x >> i;
    joined &= all / fold_low_bits(group);
    for (unsigned n = 1; n < many; n *= 2) {
        joined |= joined >> n * (group - 1);
        joined &= all / fold_low_bits(2 * n * group) * fold_low_bits(2 * n);
    }
    return joined;
}

/* Folds by 'group'; writes 'many' bits at a time: 8, 16 or 32.  'to' may be 'from'.  Reads
 * words whose upper bytes may belong to the next bits, except for the last ones. */
static LOOP_INLINE void fold_pass(const uint8_t *from, uint8_t *to, uint64_t nbytes,
                                  unsigned group, unsigned many)
{
    const size_t in = many * group / 8, out = many / 8;
    const uint64_t last = nbytes / out - 1;
    uint64_t x = 0;
    for (uint64_t i = 0; i < last; i++) {
        uint64_t folded = fold_groups(load64(from + i * in), group, many);
        memcpy(to + i * out, &folded, out);
    }
    memcpy(&x, from + last * in, in);
    x = fold_groups(x, group, many);
    memcpy(to + last * out, &x, out);
}

static void fold_loop_bits(const uint8_t *from, uint8_t *to, uint64_t nbytes, unsigned group)
{
    if (group == 2)
        fold_pass(from, to, nbytes, 2, 32);
    else if (group == 3)
        fold_pass(from, to, nbytes, 3, 16);
    else if (group == 4)
        fold_pass(from, to, nbytes, 4, 16);
    else if (group == 5)
        fold_pass(from, to, nbytes, 5, 8);
    else if (group == 6)
        fold_pass(from, to, nbytes, 6, 8);
    else if (group == 7)
        fold_pass(from, to, nbytes, 7, 8);
    else
        fold_pass(from, to, nbytes, 8, 8);
}

#endif

/* ---- Counts ------------------------------------------------------------------------------ */

static uint64_t fold_loop_count_bits(const uint8_t *bytes, uint64_t nbytes)
{
    uint64_t count = 0;
    for (uint64_t at = 0; at < nbytes; at += LINE_NBYTES) {
        uint32_t in_line = 0;
        for (unsigned w = 0; w < LINE_WORDS; w++)
            in_line += bits_set32(load32(bytes + at + 4 * (size_t)w));
        count += in_line;
    }
    return count;
}

/* The picks of 16 counters become the counts of 8 bytes, which are added up line by line. */
static void fold_loop_count_counters(const uint8_t *bytes, uint64_t nbytes, uint64_t *used,
                                     uint64_t *full)
{
    const uint64_t bytes_sum = UINT64_C(0x0101010101010101);
    for (uint64_t at = 0; at < nbytes; at += LINE_NBYTES) {
        uint64_t in_use = 0, at_end = 0;
        for (unsigned w = 0; w < LINE_LONGS; w++) {
            uint64_t counters = load64(bytes + at + 8 * (size_t)w);
            uint64_t some = counters_used(counters), ends = counters_full(counters);
            in_use += (some + (some >> COUNTER_NBITS)) & low_halves;
            at_end += (ends + (ends >> COUNTER_NBITS)) & low_halves;
        }
        *used += in_use * bytes_sum >> 56;
        *full += at_end * bytes_sum >> 56;
    }
}

/* The table. */
#define FOLD_LOOPS                                                                             \
    {                                                                                          \
        .units = fold_loop_units, .counters = fold_loop_counters, .bits = fold_loop_bits,      \
        .count_bits = fold_loop_count_bits, .count_counters = fold_loop_count_counters,        \
    }
