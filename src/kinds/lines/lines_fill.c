/* lines_fill.c - the fill of blocked and counting filters, and the fpr that follows from it. */
#include <math.h>

#include "../../base/sample.h"
#include "../cpu/cpu_loops.h"
#include "lines.h"

/* A copy of one cache line: each word is read only once, since other threads may add. */
struct line {
    uint32_t word[WORDS];
};

static struct line line_read(const uint8_t *at)
{
    const uint32_t *words = (const void *)at;
    struct line line;
    for (unsigned w = 0; w < WORDS; w++)
        line.word[w] = __atomic_load_n(&words[w], __ATOMIC_RELAXED);
    return line;
}

/* A survey of blocks.  To compute the fpr of a line takes several times as long as to guess it
 * from the number of its picked cells.  So where not all blocks are looked at, the fpr of each
 * block is guessed, and that of some is computed, too; they show by which factor the guesses
 * are wrong. */
struct survey {
    const struct geometry *g;
    enum cpu cpu;
    unsigned cells, picks, lines; /* cells of a word, picks of a line, lines of a block */
    double picked, blocks;        /* of all blocks surveyed: their picked cells, their number */

    /* For each band, sums over its blocks: the guesses; the guesses for the blocks that were
     * computed as well; the computed fprs; and the number of blocks. */
    double guess[LINES_BANDS_MAX], guess_both[LINES_BANDS_MAX], exact[LINES_BANDS_MAX],
        count[LINES_BANDS_MAX];
};

/* Returns x^n: quicker than pow() for small whole n. */
static double power(double x, unsigned n)
{
    double result = 1;
    while (n) {
        if (n & 1)
            result *= x;
        x *= x;
        n >>= 1;
    }
    return result;
}

static void survey_begin(struct survey *s, const struct geometry *g, unsigned cells,
                         enum cpu cpu)
{
    *s = (struct survey){ .g = g,
                          .cpu = cpu,
                          .cells = cells,
                          .picks = (unsigned)g->field[LINE_BITS],
                          .lines = lines_of_block(g) };
}

/* Returns the sum of the fprs of blocks that lie side by side, and adds their picked cells to
 * *picked.  Where fewer lines are left than are computed at once, it computes a copy with clear
 * lines behind them. */
static double exact_rates(const struct survey *s, const uint8_t *block, uint64_t blocks,
                          double *picked)
{
    const uint64_t most = LINES_AT_ONCE / s->lines, block_nbytes = s->lines * LINE_NBYTES;
    struct line copy[LINES_AT_ONCE] = { 0 };
    struct line_rates rates;
    double sum = 0;
    for (uint64_t n; blocks; blocks -= n, block += n * block_nbytes) {
        n = blocks < most ? blocks : most;
        bool whole = n * s->lines == LINES_AT_ONCE;
        for (uint64_t i = 0; !whole && i < n * s->lines; i++)
            copy[i] = line_read(block + i * LINE_NBYTES);
        cpu_loops[s->cpu].lines->rates(whole ? block : (const uint8_t *)copy, s->picks,
                                       s->cells, &rates);
        for (uint64_t i = 0, line = 0; i < n; i++) {
            double rate = 1;
            for (unsigned j = 0; j < s->lines; j++, line++) {
                rate *= rates.rate[line];
                *picked += rates.picked[line];
            }
            sum += rate;
        }
    }
    return sum;
}

/* Surveys blocks of a band that lie side by side. */
static void survey_exact(struct survey *s, const uint8_t *block, uint64_t blocks, uint64_t band)
{
    s->blocks += (double)blocks;
    s->count[band] += (double)blocks;
    s->exact[band] += exact_rates(s, block, blocks, &s->picked);
}

/* The same, but only guesses their fprs. */
static void survey_guess(struct survey *s, const uint8_t *block, uint64_t blocks, uint64_t band)
{
    const uint64_t most = LINES_AT_ONCE / s->lines, block_nbytes = s->lines * LINE_NBYTES;
    const double a_cell = 1 / (double)(WORDS * s->cells);
    uint32_t picked[LINES_AT_ONCE];
    s->blocks += (double)blocks;
    s->count[band] += (double)blocks;
    for (uint64_t n; blocks; blocks -= n, block += n * block_nbytes) {
        n = blocks < most ? blocks : most;
        cpu_loops[s->cpu].lines->counts(block, n * s->lines, s->cells, picked);
        for (uint64_t i = 0, line = 0; i < n; i++) {
            double guess = 1;
            for (unsigned j = 0; j < s->lines; j++, line++) {
                guess *= power(picked[line] * a_cell, s->picks);
                s->picked += picked[line];
            }
            s->guess[band] += guess;
        }
    }
}

/* Guesses the fpr of a block; with 'exact', computes it, too. */
static void survey_block(struct survey *s, const uint8_t *block, uint64_t band, bool exact)
{
    const double before = s->guess[band];
    double picked = 0;
    survey_guess(s, block, 1, band);
    if (exact) {
        s->guess_both[band] += s->guess[band] - before;
        s->exact[band] += exact_rates(s, block, 1, &picked);
    }
}

/* Returns load and fpr.  The fpr of a filter is the product of the mean fprs of its bands. */
static struct fill survey_end(const struct survey *s)
{
    struct fill fill = { .fpr = 1 };
    for (unsigned band = 0; band < lines_separate_bands(s->g); band++) {
        double sum = s->exact[band];
        if (s->guess[band] > 0)
            sum = s->guess_both[band] > 0 ? sum / s->guess_both[band] * s->guess[band]
                                          : s->guess[band];
        fill.fpr *= s->count[band] > 0 ? sum / s->count[band] : 1;
    }
    fill.load = s->picked / (s->blocks * s->lines * (double)(WORDS * s->cells));
    return fill;
}

/* Surveys all blocks of a body. */
static void survey_all(struct survey *s, const uint8_t *body)
{
    uint64_t blocks = s->g->field[BAND_LINES];
    for (unsigned band = 0; band < lines_separate_bands(s->g); band++)
        survey_exact(s, body + band * blocks * s->lines * LINE_NBYTES, blocks, band);
}

/* Surveys the blocks of an even sample, or all blocks of a small body.  Skips a block whose
 * beginning lies before the piece of the sample. */
struct fill lines_measure(const perhaps_filter *f, unsigned cells, uint64_t most_nbytes)
{
    enum { GUESSED = 16 }; /* in a large body one of so many blocks is computed */
    const struct geometry *g = &f->geometry;
    struct survey s;
    survey_begin(&s, g, cells, f->cpu);
    uint64_t block_nbytes = s.lines * LINE_NBYTES, number = 0;
    uint64_t band_nbytes = block_nbytes * g->field[BAND_LINES], nbytes = lines_nbytes(g);
    if (nbytes <= most_nbytes / GUESSED) {
        survey_all(&s, f->body.bytes);
        return survey_end(&s);
    }
    for (struct sample at = sample_begin(nbytes, most_nbytes); sample_next(&at);) {
        uint64_t first = (at.offset + block_nbytes - 1) / block_nbytes;
        for (uint64_t b = first * block_nbytes; b < at.end; b += block_nbytes, number++)
            survey_block(&s, f->body.bytes + b, b / band_nbytes, number % GUESSED == 0);
    }
    return survey_end(&s);
}

static void pick_in_line(struct line *line, uint64_t mark, unsigned picks)
{
    struct blocked_walk walk = blocked_walk_start(mark);
    for (unsigned i = 0; i < picks; i++) {
        line->word[walk.word] |= UINT32_C(1) << blocked_bit(walk.factor, i);
        walk.word = (walk.word + walk.stride) % WORDS;
    }
}

/* Returns the fpr that the filter would have with one key more.  Surveys copies of the key's
 * blocks with its bits set, and changes nothing. */
static double surveyed_rate_with(const perhaps_filter *f, struct keyhash key, bool exact)
{
    void (*survey)(struct survey * s, const uint8_t *block, uint64_t blocks, uint64_t band) =
        exact ? survey_exact : survey_guess;
    struct line copy[LINES_BANDS_MAX];
    const struct geometry *g = &f->geometry;
    struct survey s;
    survey_begin(&s, g, WORD_NBITS, f->cpu);
    uint64_t nblocks = g->field[BAND_LINES], block_nbytes = s.lines * LINE_NBYTES;
    const uint8_t *block = f->body.bytes;
    for (unsigned band = 0; band < lines_separate_bands(g); band++) {
        uint64_t own = scale64(key.place, nblocks);
        const uint8_t *line = block + own * block_nbytes;
        survey(&s, block, own, band);
        survey(&s, line + block_nbytes, nblocks - own - 1, band);
        for (unsigned i = 0; i < s.lines; i++, line += LINE_NBYTES) {
            copy[i] = line_read(line);
            pick_in_line(&copy[i], key.mark, s.picks);
            key = blocked_next_band(key);
        }
        survey(&s, (const uint8_t *)copy, 1, band);
        block += nblocks * block_nbytes;
    }
    return survey_end(&s).fpr;
}

/* A guess is within a third of the true fpr, except where keys were crafted.  So twice the
 * guess is a bound; only if that is too high is the fpr computed. */
double lines_rate_with(const perhaps_filter *f, struct keyhash key)
{
    double most = 2 * surveyed_rate_with(f, key, false);
    return most <= f->geometry.fpr ? most : surveyed_rate_with(f, key, true);
}

/* ---- Smaller filters -------------------------------------------------------------------- */

uint64_t lines_units(const struct geometry *g)
{
    return g->field[BAND_LINES];
}

void lines_divide(struct geometry *g, uint64_t factor)
{
    g->field[BAND_LINES] /= factor;
}

uint64_t lines_unit_nbytes(const struct geometry *g)
{
    return (uint64_t)lines_of_block(g) * LINE_NBYTES;
}

/* A piece may reach from one band into the next. */
void lines_look(const struct geometry *g, unsigned cells, enum cpu cpu, const uint8_t *bytes,
                uint64_t nbytes, struct folded *folded)
{
    uint64_t block_nbytes = lines_unit_nbytes(g);
    uint64_t band_nbytes = block_nbytes * g->field[BAND_LINES];
    for (uint64_t n; nbytes; nbytes -= n, bytes += n, folded->nbytes += n) {
        uint64_t band = folded->nbytes / band_nbytes;
        uint64_t left = band_nbytes - folded->nbytes % band_nbytes;
        struct survey s;
        n = nbytes < left ? nbytes : left;
        survey_begin(&s, g, cells, cpu);
        s.exact[band] = folded->rates[band];
        survey_exact(&s, bytes, n / block_nbytes, band);
        folded->rates[band] = s.exact[band];
    }
}

double lines_folded_rate(const struct geometry *g, const struct folded *folded)
{
    double rate = 1;
    for (unsigned band = 0; band < lines_separate_bands(g); band++)
        rate *= folded->rates[band] / (double)g->field[BAND_LINES];
    return rate;
}

/* ---- Two filters ------------------------------------------------------------------------ */

/* A key has one of the blocks of a band, and in each line of the block it picks 'picks' of the
 * 16 words, each in one cell.  Which two words of a line it picks depends a little on their
 * distance (walks are progressions); all pairs count as the mean pair here, which makes errors
 * one percent too small at most.  Separate bands are independent. */
void lines_picking(const struct geometry *g, unsigned cells, struct picking *m)
{
    double picks = (double)g->field[LINE_BITS], lines = lines_of_block(g), words = WORDS;
    double blocks = (double)g->field[BAND_LINES], line_cells = words * cells;
    double in_line = picks / line_cells, chance = in_line / blocks;
    double both_words = picks * (picks - 1) / (words * (words - 1)) / ((double)cells * cells);
    const struct {
        double cells, both; /* the chance that a key picks the given cell and one of these */
    } group[] = {
        { cells - 1.0, 0 },                                       /* of the same word */
        { line_cells - cells, both_words / blocks },              /* of other words */
        { (lines - 1) * line_cells, in_line * in_line / blocks }, /* of lines of the block */
        { (blocks - 1) * lines * line_cells, 0 },                 /* of other blocks */
    };
    *m = (struct picking){ .cells = lines * lines_separate_bands(g) * blocks * line_cells,
                           .chance = chance,
                           .ngroups = sizeof group / sizeof *group };
    for (unsigned i = 0; i < m->ngroups; i++) {
        double more = (group[i].both - chance * chance) / ((1 - chance) * (1 - chance));
        m->group[i] = (struct picking_group){ group[i].cells, log1p(more) };
    }
}

/* ---- Where a key's lines lie ----------------------------------------------------------- */

void lines_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads)
{
    const struct geometry *g = &f->geometry;
    uint64_t block_nbytes = (uint64_t)lines_of_block(g) * LINE_NBYTES;
    const uint8_t *band = f->body.bytes;
    for (unsigned i = 0; i < lines_separate_bands(g); i++) {
        uint64_t block = scale64(key.place, g->field[BAND_LINES]);
        reads_add(reads, band + block * block_nbytes, block_nbytes);
        band += g->field[BAND_LINES] * block_nbytes;
        key = blocked_next_band(key);
    }
}
