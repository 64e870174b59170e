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
    const float *guesses;         /* of lines, by their picked cells */
    double picked, blocks;        /* of all blocks surveyed: their picked cells, their number */

    /* For each band, sums over its blocks: the guesses; the guesses for the blocks that were
     * computed as well; the computed fprs; and the number of blocks. */
    double guess[LINES_BANDS_MAX], guess_both[LINES_BANDS_MAX], exact[LINES_BANDS_MAX],
        count[LINES_BANDS_MAX];
};

/* Returns the guesses for lines, by how many of their cells are picked: the share of these to
 * the power of the picks.  A table is filled when a filter first needs it; several threads may
 * write the same numbers. */
static const float *guesses_for(unsigned picks, unsigned cells)
{
    static float all[2][WORDS][WORDS * WORD_NBITS + 1];
    static bool filled[2][WORDS];
    const unsigned size = cells == WORD_NBITS, most = WORDS * cells;
    float *guess = all[size][picks - 1];
    if (__atomic_load_n(&filled[size][picks - 1], __ATOMIC_ACQUIRE))
        return guess;
    for (unsigned picked = 0; picked <= most; picked++) {
        float power = 1, share = (float)picked / (float)most;
        for (unsigned i = 0; i < picks; i++)
            power *= share;
        __atomic_store(&guess[picked], &power, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&filled[size][picks - 1], true, __ATOMIC_RELEASE);
    return guess;
}

static void survey_begin(struct survey *s, const struct geometry *g, unsigned cells,
                         enum cpu cpu)
{
    const unsigned picks = (unsigned)g->field[LINE_BITS];
    *s = (struct survey){ .g = g,
                          .cpu = cpu,
                          .cells = cells,
                          .picks = picks,
                          .lines = lines_of_block(g),
                          .guesses = guesses_for(picks, cells) };
}

/* Computes the fprs of n lines.  Of fewer than are computed at once it computes a copy, with
 * clear lines behind them. */
static void compute_lines(const struct survey *s, const uint8_t *lines, uint64_t n,
                          struct line_rates *rates)
{
    struct line copy[LINES_AT_ONCE] = { 0 };
    bool whole = n == LINES_AT_ONCE;
    for (uint64_t i = 0; !whole && i < n; i++)
        copy[i] = line_read(lines + i * LINE_NBYTES);
    cpu_loops[s->cpu].lines->rates(whole ? lines : (const uint8_t *)copy, s->picks, s->cells,
                                   rates);
}

/* Guesses the fprs of n lines. */
static void guess_lines(const struct survey *s, const uint8_t *lines, uint64_t n,
                        struct line_rates *rates)
{
    cpu_loops[s->cpu].lines->counts(lines, n, s->cells, rates->picked);
    for (uint64_t i = 0; i < n; i++)
        __atomic_load(&s->guesses[rates->picked[i]], &rates->rate[i], __ATOMIC_RELAXED);
}

/* Adds up the fprs of blocks. */
static double add_up(const struct survey *s, const struct line_rates *rates, uint64_t blocks,
                     double *picked)
{
    uint64_t all = 0, line = 0;
    double sum = 0;
    for (uint64_t i = 0; i < blocks; i++) {
        double rate = (double)rates->rate[line];
        all += rates->picked[line++];
        for (unsigned j = 1; j < s->lines; j++, line++) {
            rate *= (double)rates->rate[line];
            all += rates->picked[line];
        }
        sum += rate;
    }
    *picked += (double)all;
    return sum;
}

/* Returns the sum of the fprs of blocks that lie side by side, computed or guessed, and adds
 * their picked cells to *picked. */
static double sum_of_rates(const struct survey *s, const uint8_t *block, uint64_t blocks,
                           bool exact, double *picked)
{
    const uint64_t most = LINES_AT_ONCE / s->lines, block_nbytes = s->lines * LINE_NBYTES;
    struct line_rates rates;
    double sum = 0;
    for (uint64_t n; blocks; blocks -= n, block += n * block_nbytes) {
        n = blocks < most ? blocks : most;
        (exact ? compute_lines : guess_lines)(s, block, n * s->lines, &rates);
        sum += add_up(s, &rates, n, picked);
    }
    return sum;
}

/* Surveys blocks of a band that lie side by side. */
static void survey_exact(struct survey *s, const uint8_t *block, uint64_t blocks, uint64_t band)
{
    s->blocks += (double)blocks;
    s->count[band] += (double)blocks;
    s->exact[band] += sum_of_rates(s, block, blocks, true, &s->picked);
}

/* Guesses the fpr of a block; with 'exact', computes it, too. */
static void survey_block(struct survey *s, const uint8_t *block, uint64_t band, bool exact)
{
    double picked = 0, guess = sum_of_rates(s, block, 1, false, &s->picked);
    s->guess[band] += guess;
    s->blocks++;
    s->count[band]++;
    if (exact) {
        s->guess_both[band] += guess;
        s->exact[band] += sum_of_rates(s, block, 1, true, &picked);
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
    const struct geometry *g = &f->body.geometry;
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

/* Returns the sum of the fprs of a band in which the bits of a key are set in its block.
 * Copies the blocks that are computed at once with that one, and changes nothing. */
static double exact_with(const struct survey *s, const uint8_t *band, struct keyhash *key)
{
    struct line copy[LINES_AT_ONCE];
    const uint64_t blocks = s->g->field[BAND_LINES], own = scale64(key->place, blocks);
    const uint64_t most = LINES_AT_ONCE / s->lines, first = own - own % most;
    const uint64_t n = blocks - first < most ? blocks - first : most, lines = n * s->lines;
    const uint8_t *from = band + first * s->lines * LINE_NBYTES;
    struct line *line = &copy[(own - first) * s->lines];
    double picked = 0;
    for (uint64_t i = 0; i < lines; i++)
        copy[i] = line_read(from + i * LINE_NBYTES);
    for (unsigned i = 0; i < s->lines; i++) {
        pick_in_line(&line[i], key->mark, s->picks);
        *key = blocked_next_band(*key);
    }
    return sum_of_rates(s, band, first, true, &picked) +
           sum_of_rates(s, (const uint8_t *)copy, n, true, &picked) +
           sum_of_rates(s, from + lines * LINE_NBYTES, blocks - first - n, true, &picked);
}

/* Guesses the same: the sum of the blocks as they are, with the difference that the key
 * makes. */
static double guess_with(const struct survey *s, const uint8_t *band, struct keyhash *key)
{
    struct line copy[LINES_BANDS_MAX];
    const uint64_t blocks = s->g->field[BAND_LINES];
    const uint8_t *own = band + scale64(key->place, blocks) * s->lines * LINE_NBYTES;
    double picked = 0, sum = sum_of_rates(s, band, blocks, false, &picked);
    sum -= sum_of_rates(s, own, 1, false, &picked);
    for (unsigned i = 0; i < s->lines; i++) {
        copy[i] = line_read(own + i * LINE_NBYTES);
        pick_in_line(&copy[i], key->mark, s->picks);
        *key = blocked_next_band(*key);
    }
    return fmax(sum, 0) + sum_of_rates(s, (const uint8_t *)copy, 1, false, &picked);
}

/* Returns the fpr that the filter would have with one key more, computed or guessed. */
static double rate_with(const perhaps_filter *f, struct keyhash key, bool exact)
{
    const struct geometry *g = &f->body.geometry;
    const uint8_t *band = f->body.bytes;
    struct survey s;
    double rate = 1;
    survey_begin(&s, g, WORD_NBITS, f->cpu);
    for (unsigned i = 0; i < lines_separate_bands(g); i++) {
        rate *=
            (exact ? exact_with : guess_with)(&s, band, &key) / (double)g->field[BAND_LINES];
        band += g->field[BAND_LINES] * s.lines * LINE_NBYTES;
    }
    return rate;
}

/* A guess is within a third of the true fpr, except where keys were crafted.  So twice the
 * guess is a bound.  The fpr is computed where the bound is too high, or so near to the asked
 * rate that soon another look would follow: to compute takes as long as seven guesses. */
double lines_rate_with(const perhaps_filter *f, struct keyhash key)
{
    const double enough = 0.8;
    double most = 2 * rate_with(f, key, false);
    return most <= enough * f->body.geometry.fpr ? most : rate_with(f, key, true);
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
        m->group[i] = (struct picking_group){ group[i].cells, more };
    }
}

/* ---- Where a key's lines lie ----------------------------------------------------------- */

void lines_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads)
{
    const struct geometry *g = &f->body.geometry;
    uint64_t block_nbytes = (uint64_t)lines_of_block(g) * LINE_NBYTES;
    uint64_t band = 0;
    for (unsigned i = 0; i < lines_separate_bands(g); i++) {
        uint64_t block = scale64(key.place, g->field[BAND_LINES]);
        reads_add(reads, band + block * block_nbytes, block_nbytes);
        band += g->field[BAND_LINES] * block_nbytes;
        key = blocked_next_band(key);
    }
}

/* The lines of a key are the body of a filter with one line in each band, or with one block:
 * there every key has them all, and picks the same cells in them. */
bool lines_answer(const perhaps_filter *f, struct keyhash key, const uint8_t *const *bytes)
{
    _Alignas(LINE_NBYTES) uint8_t lines[LINES_BANDS_MAX * LINE_NBYTES];
    struct body body = f->body;
    const size_t block_nbytes = (size_t)lines_of_block(&body.geometry) * LINE_NBYTES;
    for (unsigned i = 0; i < lines_separate_bands(&body.geometry); i++)
        memcpy(lines + i * block_nbytes, bytes[i], block_nbytes);
    body.bytes = lines;
    body.geometry.field[BAND_LINES] = 1;
    return f->loops->contains_one(&body, key);
}
