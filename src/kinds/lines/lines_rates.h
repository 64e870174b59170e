/* lines_rates.h - loops that count the picked cells of lines, and compute their fprs.
 *
 * The fprs are those of 16 lines at once.
 * A number that each of several lines has makes a row, and the lines go through all steps side
 * by side.  A row is as long as a vector of the instruction set. */

#if CPU_HAS_AVX512
enum { RATES_LANES = 16 };
#elif CPU_HAS_AVX2
enum { RATES_LANES = 8 };
#else
enum { RATES_LANES = 4 };
#endif
typedef float rates_row __attribute__((vector_size(4 * RATES_LANES)));
typedef uint32_t rates_counts __attribute__((vector_size(4 * RATES_LANES)));
typedef int32_t rates_ints __attribute__((vector_size(4 * RATES_LANES)));

#if CPU_HAS_AVX2

/* Turns 8 words of 8 lines by the diagonal: lines become lanes. */
static LOOP_INLINE void rates_turn(const uint8_t *lines, uint32_t words[][LINES_AT_ONCE])
{
    __m256i line[8], pair[8], four[8];
    for (size_t i = 0; i < 8; i++)
        line[i] = _mm256_loadu_si256((const void *)(lines + i * LINE_NBYTES));
    for (size_t i = 0; i < 8; i += 2) {
        pair[i] = _mm256_unpacklo_epi32(line[i], line[i + 1]);
        pair[i + 1] = _mm256_unpackhi_epi32(line[i], line[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4)
        for (size_t j = 0; j < 2; j++) {
            four[i + 2 * j] = _mm256_unpacklo_epi64(pair[i + j], pair[i + 2 + j]);
            four[i + 2 * j + 1] = _mm256_unpackhi_epi64(pair[i + j], pair[i + 2 + j]);
        }
    for (size_t i = 0; i < 4; i++) {
        _mm256_storeu_si256((void *)words[i],
                            _mm256_permute2x128_si256(four[i], four[i + 4], 0x20));
        _mm256_storeu_si256((void *)words[i + 4],
                            _mm256_permute2x128_si256(four[i], four[i + 4], 0x31));
    }
}

static LOOP_INLINE void rates_read_words(const uint8_t *lines,
                                         uint32_t words[WORDS][LINES_AT_ONCE])
{
    for (size_t i = 0; i < LINES_AT_ONCE; i += 8)
        for (size_t w = 0; w < WORDS; w += 8)
            rates_turn(lines + i * LINE_NBYTES + w * sizeof(uint32_t), (void *)&words[w][i]);
}

#else

static LOOP_INLINE void rates_read_words(const uint8_t *lines,
                                         uint32_t words[WORDS][LINES_AT_ONCE])
{
    for (size_t i = 0; i < LINES_AT_ONCE; i++) {
        const uint32_t *from = (const void *)(lines + i * LINE_NBYTES);
        for (size_t w = 0; w < WORDS; w++)
            words[w][i] = __atomic_load_n(&from[w], __ATOMIC_RELAXED);
    }
}

#endif

/* Sets load[w] to the loads of word w of the lines, and *picked to how many cells are. */
static LOOP_INLINE void rates_find_loads(uint32_t words[WORDS][LINES_AT_ONCE], size_t lines,
                                         unsigned cells, rates_row load[WORDS],
                                         rates_counts *picked)
{
    rates_counts sum = { 0 };
    for (size_t w = 0; w < WORDS; w++) {
        rates_counts picks;
        memcpy(&picks, &words[w][lines], sizeof picks);
        if (cells == WORD_COUNTERS) {
            picks |= picks >> 1;
            picks = (picks | picks >> 2) & 0x11111111;
        }
        picks -= picks >> 1 & 0x55555555;
        picks = (picks & 0x33333333) + (picks >> 2 & 0x33333333);
        picks = ((picks + (picks >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
        sum += picks;
        load[w] = __builtin_convertvector((rates_ints)picks, rates_row) * (1 / (float)cells);
    }
    *picked = sum;
}

/* Adds to *sum the products of all windows of n loads that lie 'stride' words apart.  Computes
 * the products of windows of 1, 2, 4, ... loads, and joins those that add up to n. */
static LOOP_INLINE void rates_add_windows(const rates_row load[WORDS], size_t stride,
                                          unsigned n, rates_row *sum)
{
    rates_row window[WORDS], wider[WORDS], product[WORDS];
    size_t joined = 0;
    for (size_t j = 0; j < WORDS; j++) {
        window[j] = load[j * stride % WORDS];
        product[j] = (rates_row){ 0 } + 1;
    }
    for (size_t width = 1; joined < n; width *= 2) {
        if (n & width) {
            for (size_t j = 0; j < WORDS; j++)
                product[j] *= window[(j + joined) % WORDS];
            joined += width;
        }
        for (size_t j = 0; j < WORDS && joined < n; j++)
            wider[j] = window[j] * window[(j + width) % WORDS];
        for (size_t j = 0; j < WORDS && joined < n; j++)
            window[j] = wider[j];
    }
    for (size_t j = 0; j < WORDS; j++)
        *sum += product[j];
}

static void rates_of_line(const uint8_t *lines, unsigned picks, unsigned cells,
                          struct line_rates *rates)
{
    uint32_t words[WORDS][LINES_AT_ONCE];
    rates_read_words(lines, words);
    for (size_t i = 0; i < LINES_AT_ONCE; i += RATES_LANES) {
        rates_row load[WORDS], sum = { 0 };
        rates_counts picked;
        rates_find_loads(words, i, cells, load, &picked);
        for (size_t stride = 1; stride < WORDS / 2; stride += 2)
            rates_add_windows(load, stride, picks, &sum);
        sum *= 1 / (float)WALKS;
        memcpy(&rates->rate[i], &sum, sizeof sum);
        memcpy(&rates->picked[i], &picked, sizeof picked);
    }
}

/* Counts the picked cells of 8 bytes. */
static LOOP_INLINE uint32_t rates_picked(const uint64_t *cells, bool counters)
{
    uint64_t here = __atomic_load_n(cells, __ATOMIC_RELAXED);
    if (counters)
        here = counters_used(here);
#if CPU_HAS_AVX2
    return (uint32_t)__builtin_popcountll(here);
#else
    return bits_set32((uint32_t)here) + bits_set32((uint32_t)(here >> 32));
#endif
}

static LOOP_INLINE void rates_count(const uint8_t *lines, size_t n, bool counters,
                                    uint32_t *picked)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t *line = (const void *)(lines + i * LINE_NBYTES);
        uint32_t first = rates_picked(line, counters) + rates_picked(line + 1, counters) +
                         rates_picked(line + 2, counters) + rates_picked(line + 3, counters);
        picked[i] = first + rates_picked(line + 4, counters) +
                    rates_picked(line + 5, counters) + rates_picked(line + 6, counters) +
                    rates_picked(line + 7, counters);
    }
}

static void line_counts(const uint8_t *lines, size_t n, unsigned cells, uint32_t *picked)
{
    if (cells == WORD_COUNTERS)
        rates_count(lines, n, true, picked);
    else
        rates_count(lines, n, false, picked);
}
