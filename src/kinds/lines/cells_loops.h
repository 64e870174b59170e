/* cells_loops.h - counts picked cells, for one instruction set; each_cpu.h includes it.  The
 * text is the same for all of them: the compiler makes vectors of it. */
#ifndef CELLS_LOOPS_NAMES
#define CELLS_LOOPS_NAMES
#define count_lines    FOR_CPU(count_lines)
#define count_bits     FOR_CPU(count_bits)
#define count_counters FOR_CPU(count_counters)
#endif

/* Counts a few lines: SUM_LINES at most. */
static ALWAYS_INLINE void count_lines(const uint8_t *a, const uint8_t *b, size_t nlines,
                                      unsigned cell_nbits, struct picked *picked)
{
    uint32_t in_a[LINE_WORDS] = { 0 }, in_b[LINE_WORDS] = { 0 }, in_either[LINE_WORDS] = { 0 };
    for (size_t line = 0; line < nlines; line++, a += LINE_NBYTES, b += LINE_NBYTES)
        for (size_t w = 0; w < LINE_WORDS; w++) {
            uint32_t word = load32(a + w * sizeof word), other = load32(b + w * sizeof word);
            in_a[w] += counts_of_bytes(marks_of(word, cell_nbits));
            in_b[w] += counts_of_bytes(marks_of(other, cell_nbits));
            in_either[w] += counts_of_bytes(marks_of(word | other, cell_nbits));
        }
    for (size_t w = 0; w < LINE_WORDS; w++) {
        picked->a += sum_of_bytes(in_a[w]);
        picked->b += sum_of_bytes(in_b[w]);
        picked->either += sum_of_bytes(in_either[w]);
    }
}

static void count_bits(const uint8_t *a, const uint8_t *b, size_t nlines, struct picked *picked)
{
    count_lines(a, b, nlines, 1, picked);
}

static void count_counters(const uint8_t *a, const uint8_t *b, size_t nlines,
                           struct picked *picked)
{
    count_lines(a, b, nlines, COUNTER_NBITS, picked);
}
