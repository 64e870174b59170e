/* fold_loops.h - the loops of fold.c, which compiles this file once for each instruction set.
 * Those over lines are plain C, which the compiler turns into vectors. */

/* ---- Lines ------------------------------------------------------------------------------- */

static void FOR_CPU(units)(const uint8_t *from, uint8_t *to, uint64_t units,
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
static ALWAYS_INLINE void FOR_CPU(add_lines)(struct sums *sums, const uint8_t *from,
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

static void FOR_CPU(counters)(const uint8_t *from, uint8_t *to, uint64_t lines, uint64_t factor)
{
    const uint64_t most = 16;
    for (; lines; lines--, to += LINE_NBYTES) {
        struct sums sums = { .low = { 0 } };
        for (uint64_t left = factor, n; left; left -= n, from += n * LINE_NBYTES) {
            n = left < most ? left : most;
            FOR_CPU(add_lines)(&sums, from, n);
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
static ALWAYS_INLINE __m256i FOR_CPU(clear_groups)(const uint8_t *low, const uint8_t *high,
                                                   __m256i bytes, __m256i mask)
{
    __m256i both = _mm256_castsi128_si256(_mm_loadu_si128((const void *)low));
    both = _mm256_inserti128_si256(both, _mm_loadu_si128((const void *)high), 1);
    both = _mm256_and_si256(_mm256_shuffle_epi8(both, bytes), mask);
    return _mm256_cmpeq_epi16(both, _mm256_setzero_si256());
}

/* Folds 4 * group bytes to 32 bits.  The order is that in which the instruction packs halves of
 * its operands.  Reads up to 14 bytes more. */
static ALWAYS_INLINE uint32_t FOR_CPU(fold_word)(const uint8_t *from, size_t group,
                                                 __m256i bytes, __m256i mask)
{
    __m256i a = FOR_CPU(clear_groups)(from, from + 2 * group, bytes, mask);
    __m256i b = FOR_CPU(clear_groups)(from + group, from + 3 * group, bytes, mask);
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(a, b));
}

/* Folds by 'group', at most GROUP_MOST.  'to' may be 'from'.  Copies what the last words are
 * made of, so that nothing behind it is read. */
static void FOR_CPU(bits)(const uint8_t *from, uint8_t *to, uint64_t nbytes, unsigned group)
{
    enum { LAST = 8 };
    const struct group *g = &groups[group];
    __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)g->bytes));
    __m256i mask = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)g->mask));
    uint8_t end[LAST * GROUP_MOST + 16] = { 0 };
    memcpy(end, from + (nbytes - LAST) * group, LAST * (size_t)group);
    uint32_t before = FOR_CPU(fold_word)(end, group, bytes, mask);
    uint32_t last = FOR_CPU(fold_word)(end + 4 * (size_t)group, group, bytes, mask);
    for (uint64_t at = 0; at < nbytes - LAST; at += 4)
        store32(to + at, FOR_CPU(fold_word)(from + at * group, group, bytes, mask));
    store32(to + nbytes - LAST, before);
    store32(to + nbytes - 4, last);
}

#else

/* Folds 'many' groups of 'group' bits, the lowest bits of x, to 'many' bits.  First ORs each
 * group into its lowest bit.  Then pushes the bits together: to pairs, pairs of pairs, and so
 * on.  A quotient of two words of low bits has one bit set in each piece of that size; all
 * arguments but x are constants, and so are the masks. */
static ALWAYS_INLINE uint64_t FOR_CPU(fold_groups)(uint64_t x, unsigned group, unsigned many)
{
    const uint64_t all = low_bits(many * group);
    uint64_t joined = x;
    for (unsigned i = 1; i < group; i++)
        joined |= x >> i;
    joined &= all / low_bits(group);
    for (unsigned n = 1; n < many; n *= 2) {
        joined |= joined >> n * (group - 1);
        joined &= all / low_bits(2 * n * group) * low_bits(2 * n);
    }
    return joined;
}

/* Folds by 'group'; writes 'many' bits at a time: 8, 16 or 32.  'to' may be 'from'.  Reads
 * words whose upper bytes may belong to the next bits, except for the last ones. */
static ALWAYS_INLINE void FOR_CPU(pass)(const uint8_t *from, uint8_t *to, uint64_t nbytes,
                                        unsigned group, unsigned many)
{
    const size_t in = many * group / 8, out = many / 8;
    const uint64_t last = nbytes / out - 1;
    uint64_t x = 0;
    for (uint64_t i = 0; i < last; i++) {
        uint64_t folded = FOR_CPU(fold_groups)(load64(from + i * in), group, many);
        memcpy(to + i * out, &folded, out);
    }
    memcpy(&x, from + last * in, in);
    x = FOR_CPU(fold_groups)(x, group, many);
    memcpy(to + last * out, &x, out);
}

static void FOR_CPU(bits)(const uint8_t *from, uint8_t *to, uint64_t nbytes, unsigned group)
{
    if (group == 2)
        FOR_CPU(pass)(from, to, nbytes, 2, 32);
    else if (group == 3)
        FOR_CPU(pass)(from, to, nbytes, 3, 16);
    else if (group == 4)
        FOR_CPU(pass)(from, to, nbytes, 4, 16);
    else if (group == 5)
        FOR_CPU(pass)(from, to, nbytes, 5, 8);
    else if (group == 6)
        FOR_CPU(pass)(from, to, nbytes, 6, 8);
    else if (group == 7)
        FOR_CPU(pass)(from, to, nbytes, 7, 8);
    else
        FOR_CPU(pass)(from, to, nbytes, 8, 8);
}

#endif

/* ---- Counts ------------------------------------------------------------------------------ */

static uint64_t FOR_CPU(count_bits)(const uint8_t *bytes, uint64_t nbytes)
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
static void FOR_CPU(count_counters)(const uint8_t *bytes, uint64_t nbytes, uint64_t *used,
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
