/* lines.c - the mathematics of kinds whose keys have cache lines of their own. */
#include "lines.h"

#include <math.h>

#include "../kernels/layout.h"
#include "../plan.h"
#include "../sample.h"

enum { WORDS = LINE_WORDS };

bool lines_in_range(const struct geometry *g)
{
    uint64_t part_lines = g->field[PART_LINES];
    uint64_t parts = g->field[PARTS];
    uint64_t marks = g->field[LINE_BITS];
    return part_lines >= 1 && part_lines < UINT64_MAX / LINE_NBYTES / LINES_PARTS_MAX &&
           parts >= 1 && parts <= LINES_PARTS_MAX && marks >= 1 && marks <= WORDS &&
           g->field[TOGETHER] <= (parts > 1);
}

/* How many lines of a key, one behind the other, are shared by the same keys; and how often it
 * has so many. */
static unsigned block_lines(const struct geometry *g)
{
    return g->field[TOGETHER] ? (unsigned)g->field[PARTS] : 1;
}

static unsigned separate_parts(const struct geometry *g)
{
    return g->field[TOGETHER] ? 1 : (unsigned)g->field[PARTS];
}

uint64_t lines_nbytes(const struct geometry *g)
{
    return g->field[PARTS] * g->field[PART_LINES] * LINE_NBYTES;
}

/* ---- The rate: a mixture over the number of keys in a line --------------------------- */

/* Loads beyond this are taken as full lines: at one bit a key it is a rate of .9997. */
enum { LOAD_MAX = 4096 };

static double choose(unsigned n, unsigned k)
{
    double c = 1;
    for (unsigned i = 0; i < k; i++)
        c = c * (n - i) / (i + 1);
    return c;
}

/* The chance that one key leaves t given cells, in t given words, unmarked. */
static double chance_untouched(unsigned t, unsigned marks, unsigned cells)
{
    double sum = 0;
    for (unsigned s = 0; s <= t && s <= marks; s++)
        if (marks - s <= WORDS - t)
            sum += choose(t, s) * choose(WORDS - t, marks - s) * pow((cells - 1.0) / cells, s);
    return sum / choose(WORDS, marks);
}

/* rate[i] = the chance that all cells of another key are marked in a line of i keys, by
 * inclusion and exclusion over those that are not, if a key's words were any subset. */
static void fill_line_rates(double rate[LOAD_MAX], unsigned marks, unsigned cells)
{
    for (unsigned i = 0; i < LOAD_MAX; i++)
        rate[i] = 0;
    for (unsigned t = 0; t <= marks; t++) {
        double term = choose(marks, t) * (t & 1 ? -1 : 1);
        double untouched = chance_untouched(t, marks, cells);
        for (unsigned i = 0; i < LOAD_MAX; i++) {
            rate[i] += term;
            term *= untouched;
        }
    }
    for (unsigned i = 0; i < LOAD_MAX; i++)
        rate[i] = fmin(fmax(rate[i], 0), 1);
}

/* The words that keys choose: 16 starts by 4 strides (a stride and its negative give the same
 * sets). */
enum { WALKS = WORDS * 4 };

static unsigned walk_word(unsigned walk, unsigned i)
{
    return (walk % WORDS + i * (2 * (walk / WORDS) + 1)) % WORDS;
}

/* With more marks than this the words' structure adds less than a fifth of a percent. */
enum { MARKS_REFINED = 12 };

/* A key's words are a progression, not any subset, so that two keys share all or none of them
 * a little more often: 1 % more false positives at a rate of 1e-3, and worth having right.
 * Inclusion and exclusion again, over each subset of the words 0 .. marks-1 of the key that is
 * asked (every key can be turned into that one, and all others with it). */
static void refine_line_rates(double rate[LOAD_MAX], unsigned marks, unsigned cells)
{
    double term[1 << MARKS_REFINED], untouched[1 << MARKS_REFINED], missed[WORDS + 1];
    for (unsigned n = 0; n <= WORDS; n++)
        missed[n] = pow((cells - 1.0) / cells, n);
    uint32_t words[WALKS] = { 0 };
    for (unsigned walk = 0; walk < WALKS; walk++)
        for (unsigned i = 0; i < marks; i++)
            words[walk] |= UINT32_C(1) << walk_word(walk, i);
    for (unsigned subset = 0; subset < 1U << marks; subset++) {
        double sum = 0;
        for (unsigned walk = 0; walk < WALKS; walk++)
            sum += missed[__builtin_popcount(words[walk] & subset)];
        untouched[subset] = sum / (double)WALKS;
        term[subset] = __builtin_popcount(subset) & 1 ? -1 : 1;
    }
    for (unsigned i = 0; i < LOAD_MAX && rate[i] < 0.3; i++) { /* above, it does not matter */
        double sum = 0;
        for (unsigned subset = 0; subset < 1U << marks; subset++) {
            sum += term[subset];
            term[subset] *= untouched[subset];
        }
        rate[i] = fmax(sum, 0);
    }
}

static void exact_line_rates(double rate[LOAD_MAX], unsigned marks, unsigned cells)
{
    fill_line_rates(rate, marks, cells);
    if (marks <= MARKS_REFINED)
        refine_line_rates(rate, marks, cells);
    else
        for (unsigned i = 0; i < LOAD_MAX; i++)
            rate[i] = fmin(1.002 * rate[i], 1);
}

/* The lines of a block have the same keys, but each of these its own marks in each of them. */
static void raise_to_block(double rate[LOAD_MAX], unsigned lines)
{
    for (unsigned i = 0; i < LOAD_MAX && lines > 1; i++)
        rate[i] = pow(rate[i], lines);
}

struct moments {
    double weight;
    double first;
    double second;
};

static void add_load(struct moments *m, const double *rate, uint64_t load, double weight)
{
    double r = load < LOAD_MAX ? rate[load] : 1;
    m->weight += weight;
    m->first += weight * r;
    m->second += weight * r * r;
}

/* Over loads from Binomial(keys, 1/lines), outwards from its mode; weights are relative. */
static struct moments mix_loads(const double *rate, uint64_t keys, uint64_t lines)
{
    const double negligible = 1e-22;
    struct moments m = { 0 };
    uint64_t mode = lines > 1 ? (keys + 1) / lines : keys;
    add_load(&m, rate, mode, 1);
    if (lines <= 1 || mode > 2 * LOAD_MAX)
        return m;
    double odds = 1 / (double)(lines - 1), weight = 1;
    for (uint64_t i = mode; i < keys && weight > negligible; i++) {
        weight *= (double)(keys - i) / (double)(i + 1) * odds;
        add_load(&m, rate, i + 1, weight);
    }
    weight = 1;
    for (uint64_t i = mode; i > 0 && weight > negligible; i--) {
        weight *= (double)i / (double)(keys - i + 1) / odds;
        add_load(&m, rate, i - 1, weight);
    }
    return m;
}

/* 'rate' is that of a block, of one line or more: its loads differ as one, its lines each for
 * itself. */
static struct rate mixed_rate(const struct geometry *g, const double *rate, unsigned cells,
                              double keys)
{
    double lines = (double)g->field[PART_LINES];
    double marks = (double)g->field[LINE_BITS];
    double together = block_lines(g), apart = separate_parts(g);
    struct moments m = mix_loads(rate, (uint64_t)fmin(keys, 1e18), g->field[PART_LINES]);
    double mean = m.first / m.weight;
    if (mean <= 0)
        return (struct rate){ 0 };
    double loads = fmax(m.second / m.weight / (mean * mean) - 1, 0);
    struct occupancy line = plan_occupancy(WORDS * cells, marks * keys / lines);
    double within = together * marks * marks * line.variance / (line.mean * line.mean);
    double total = pow(mean, apart);
    return (struct rate){ .mean = total, .sd = total * sqrt(apart * (loads + within) / lines) };
}

struct rate lines_predict(const struct geometry *g, unsigned cells, double keys)
{
    double rate[LOAD_MAX];
    exact_line_rates(rate, (unsigned)g->field[LINE_BITS], cells);
    raise_to_block(rate, block_lines(g));
    return mixed_rate(g, rate, cells, keys);
}

/* ---- Plan ------------------------------------------------------------------------------ */

struct trial {
    struct geometry g;
    unsigned cells;
    double (*keys)(const struct geometry *g);
    double rate[LOAD_MAX];
};

static bool fits(void *context, uint64_t part_lines)
{
    struct trial *trial = context;
    trial->g.field[PART_LINES] = part_lines;
    return plan_fits(mixed_rate(&trial->g, trial->rate, trial->cells, trial->keys(&trial->g)),
                     trial->g.fpr);
}

/* How many lines a part needs with this number of marks; 0 if none will do. */
static uint64_t lines_needed(const struct geometry *g, unsigned cells,
                             double (*keys)(const struct geometry *g))
{
    uint64_t most = 64 * g->capacity + 4096; /* far beyond the useful */
    struct trial trial = { .g = *g, .cells = cells, .keys = keys };
    exact_line_rates(trial.rate, (unsigned)g->field[LINE_BITS], cells);
    raise_to_block(trial.rate, block_lines(g));
    return plan_smallest(most, fits, &trial);
}

/* What memory fewer marks may cost, where each of them costs much: 3 %. */
static const double thrift = 1.03;

/* The fewest lines for this number of parts, over all numbers of marks; or, together, the
 * fewest marks that do with hardly more lines.  False if none will do. */
static bool plan_parts(struct geometry *g, unsigned cells, unsigned parts,
                       double (*keys)(const struct geometry *g))
{
    enum { FEWER = 4, FEWER_TOGETHER = 5 }; /* marks than usual */
    uint64_t needed[FEWER_TOGETHER + 1] = { 0 }, best = 0;
    struct geometry trial = *g;
    unsigned most = (unsigned)fmin(ceil(-log2(g->fpr) / parts), WORDS);
    unsigned fewer = g->field[TOGETHER] ? FEWER_TOGETHER : FEWER;
    unsigned least = most > fewer ? most - fewer : 1;
    trial.field[PARTS] = parts;
    for (unsigned marks = least; marks <= most; marks++) {
        trial.field[LINE_BITS] = marks;
        uint64_t lines = needed[marks - least] = lines_needed(&trial, cells, keys);
        if (lines && (!best || lines < best))
            best = lines;
    }
    double enough = (double)best * (g->field[TOGETHER] ? thrift : 1);
    for (unsigned marks = least; marks <= most && best; marks++) {
        uint64_t lines = needed[marks - least];
        if (!lines || (double)lines > enough)
            continue;
        g->field[PART_LINES] = lines;
        g->field[PARTS] = parts;
        g->field[LINE_BITS] = marks;
        break;
    }
    return best != 0;
}

unsigned lines_preferred_parts(unsigned usual, enum perhaps_preference preference)
{
    return preference == PERHAPS_FAST ? 1 : preference == PERHAPS_COMPACT ? usual + 1 : usual;
}

int lines_plan(struct geometry *g, unsigned cells, unsigned parts,
               double (*keys)(const struct geometry *g))
{
    while (!plan_parts(g, cells, parts, keys))
        if (++parts > LINES_PARTS_MAX)
            return PERHAPS_ERR_LIMIT;
    return 0;
}

static double rate_at(const void *context, double keys)
{
    const struct trial *trial = context;
    return mixed_rate(&trial->g, trial->rate, trial->cells, keys).mean;
}

uint64_t lines_key_limit(const struct geometry *g, unsigned cells)
{
    struct trial trial = { .g = *g, .cells = cells };
    /* the quick formula is good enough here */
    fill_line_rates(trial.rate, (unsigned)g->field[LINE_BITS], cells);
    raise_to_block(trial.rate, block_lines(g));
    return plan_key_limit(g->capacity, rate_at, &trial);
}

/* ---- Fill ------------------------------------------------------------------------------ */

/* product[j] = load[j] * ... * load[j + n-1], for the 16 windows of n in 32 numbers: by
 * doubling windows, and joining those that n's binary digits ask for. */
static void window_products(double load[2 * WORDS], unsigned n, double product[WORDS])
{
    unsigned joined = 0;
    for (unsigned j = 0; j < WORDS; j++)
        product[j] = 1;
    for (unsigned width = 1; width <= n; width *= 2) {
        if (n & width) {
            for (unsigned j = 0; j < WORDS; j++)
                product[j] *= load[j + joined];
            joined += width;
        }
        for (unsigned j = 0; j + width < 2 * WORDS; j++)
            load[j] *= load[j + width];
    }
}

/* The chance that a random key's cells are all marked in this line: over all walks, the product
 * of the loads of its words. */
static double line_rate(const uint8_t *line, unsigned marks, unsigned cells,
                        unsigned (*marked)(uint32_t word), double *all_marked)
{
    const uint32_t *words = (const void *)line; /* others may be adding */
    double load[WORDS], sum = 0;
    for (unsigned w = 0; w < WORDS; w++) {
        unsigned set = marked(__atomic_load_n(&words[w], __ATOMIC_RELAXED));
        load[w] = (double)set / cells;
        *all_marked += set;
    }
    for (unsigned stride = 1; stride < WORDS / 2; stride += 2) {
        double in_order[2 * WORDS], product[WORDS];
        for (unsigned j = 0; j < 2 * WORDS; j++)
            in_order[j] = load[j * stride % WORDS];
        window_products(in_order, marks, product);
        for (unsigned j = 0; j < WORDS; j++)
            sum += product[j];
    }
    return sum / (double)WALKS;
}

struct fill lines_measure(const perhaps_filter *f, unsigned cells,
                          unsigned (*marked)(uint32_t word))
{
    const struct geometry *g = &f->geometry;
    unsigned marks = (unsigned)g->field[LINE_BITS], together = block_lines(g);
    uint64_t block_nbytes = together * LINE_NBYTES;
    uint64_t part_nbytes = block_nbytes * g->field[PART_LINES];
    double rate[LINES_PARTS_MAX] = { 0 }, blocks[LINES_PARTS_MAX] = { 0 }, all_marked = 0;
    for (struct sample s = sample_begin(lines_nbytes(g)); sample_next(&s);) {
        uint64_t first = (s.offset + block_nbytes - 1) / block_nbytes;
        for (uint64_t at = first * block_nbytes; at < s.end; at += block_nbytes) {
            double block = 1;
            for (unsigned i = 0; i < together; i++)
                block *= line_rate(f->body + at + i * LINE_NBYTES, marks, cells, marked,
                                   &all_marked);
            rate[at / part_nbytes] += block;
            blocks[at / part_nbytes]++;
        }
    }
    struct fill fill = { .fpr = 1 };
    double all = 0;
    for (unsigned part = 0; part < separate_parts(g); part++) {
        fill.fpr *= blocks[part] > 0 ? rate[part] / blocks[part] : 1;
        all += blocks[part];
    }
    fill.load = all_marked / (all * together * (double)WORDS * cells);
    return fill;
}

/* ---- Where a key's lines lie ----------------------------------------------------------- */

void lines_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads)
{
    const struct geometry *g = &f->geometry;
    uint64_t block_nbytes = (uint64_t)block_lines(g) * LINE_NBYTES;
    const uint8_t *part = f->body;
    for (unsigned i = 0; i < separate_parts(g); i++) {
        uint64_t block = scale64(key.place, g->field[PART_LINES]);
        reads_add(reads, part + block * block_nbytes, block_nbytes);
        part += g->field[PART_LINES] * block_nbytes;
        key = blocked_next_part(key);
    }
}
