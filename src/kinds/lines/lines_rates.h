/* lines_rates.h - the fprs of 16 lines at once: lines_rates.c compiles this file once for each
 * instruction set.
 *
 * A number that each of several lines has makes a row, and the lines go through all steps side
 * by side.  A row is as long as a vector of the instruction set. */

#if CPU_HAS_AVX512
enum { FOR_CPU(LANES) = 16 };
#elif CPU_HAS_AVX2
enum { FOR_CPU(LANES) = 8 };
#else
enum { FOR_CPU(LANES) = 4 };
#endif
typedef float FOR_CPU(row) __attribute__((vector_size(4 * FOR_CPU(LANES))));
typedef uint32_t FOR_CPU(counts) __attribute__((vector_size(4 * FOR_CPU(LANES))));
typedef int32_t FOR_CPU(ints) __attribute__((vector_size(4 * FOR_CPU(LANES))));

#if CPU_HAS_AVX2

/* Turns 8 words of 8 lines by the diagonal: lines become lanes. */
static ALWAYS_INLINE void FOR_CPU(turn)(const uint8_t *lines, uint32_t words[][LINES_AT_ONCE])
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

static ALWAYS_INLINE void FOR_CPU(read_words)(const uint8_t *lines,
                                              uint32_t words[WORDS][LINES_AT_ONCE])
{
    for (size_t i = 0; i < LINES_AT_ONCE; i += 8)
        for (size_t w = 0; w < WORDS; w += 8)
            FOR_CPU(turn)(lines + i * LINE_NBYTES + w * sizeof(uint32_t), (void *)&words[w][i]);
}

#else

static ALWAYS_INLINE void FOR_CPU(read_words)(const uint8_t *lines,
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
static ALWAYS_INLINE void FOR_CPU(find_loads)(uint32_t words[WORDS][LINES_AT_ONCE],
                                              size_t lines, unsigned cells,
                                              FOR_CPU(row) load[WORDS],
                                              FOR_CPU(counts) * picked)
{
    FOR_CPU(counts) sum = { 0 };
    for (size_t w = 0; w < WORDS; w++) {
        FOR_CPU(counts) picks;
        memcpy(&picks, &words[w][lines], sizeof picks);
        if (cells == WORD_COUNTERS) {
            picks |= picks >> 1;
            picks = (picks | picks >> 2) & 0x11111111;
        }
        picks -= picks >> 1 & 0x55555555;
        picks = (picks & 0x33333333) + (picks >> 2 & 0x33333333);
        picks = ((picks + (picks >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
        sum += picks;
        load[w] =
            __builtin_convertvector((FOR_CPU(ints))picks, FOR_CPU(row)) * (1 / (float)cells);
    }
    *picked = sum;
}

/* Adds to *sum the products of all windows of n loads that lie 'stride' words apart.  Computes
 * the products of windows of 1, 2, 4, ... loads, and joins those that add up to n. */
static ALWAYS_INLINE void FOR_CPU(add_windows)(const FOR_CPU(row) load[WORDS], size_t stride,
                                               unsigned n, FOR_CPU(row) * sum)
{
    FOR_CPU(row) window[WORDS], wider[WORDS], product[WORDS];
    size_t joined = 0;
    for (size_t j = 0; j < WORDS; j++) {
        window[j] = load[j * stride % WORDS];
        product[j] = (FOR_CPU(row)){ 0 } + 1;
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

static void FOR_CPU(rates)(const uint8_t *lines, unsigned picks, unsigned cells,
                           struct line_rates *rates)
{
    uint32_t words[WORDS][LINES_AT_ONCE];
    FOR_CPU(read_words)(lines, words);
    for (size_t i = 0; i < LINES_AT_ONCE; i += FOR_CPU(LANES)) {
        FOR_CPU(row) load[WORDS], sum = { 0 };
        FOR_CPU(counts) picked;
        FOR_CPU(find_loads)(words, i, cells, load, &picked);
        for (size_t stride = 1; stride < WORDS / 2; stride += 2)
            FOR_CPU(add_windows)(load, stride, picks, &sum);
        sum *= 1 / (float)WALKS;
        memcpy(&rates->rate[i], &sum, sizeof sum);
        memcpy(&rates->picked[i], &picked, sizeof picked);
    }
}
