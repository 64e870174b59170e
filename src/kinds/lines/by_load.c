/* by_load.c - the fpr of filters whose keys have cache lines of their own, by the load of their
 * blocks: its mean, and the bound that all seeds but one in 10^9 keep.  doc/THEORY.md gives the
 * formulas and what was measured against them. */
#include "by_load.h"

#include <math.h>

#include "../../base/sizing.h"
#include "lines.h"

/* ---- The rate: a mixture over the number of keys in a line --------------------------- */

/* Returns the binomial coefficient. */
static double choose(unsigned n, unsigned k)
{
    double c = 1;
    for (unsigned i = 0; i < k; i++)
        c = c * (n - i) / (i + 1);
    return c;
}

/* Returns the chance that one key leaves t given cells, in t different words, unpicked. */
static double chance_untouched(unsigned t, unsigned picks, unsigned cells)
{
    double sum = 0;
    for (unsigned s = 0; s <= t && s <= picks; s++)
        if (picks - s <= WORDS - t)
            sum += choose(t, s) * choose(WORDS - t, picks - s) * pow((cells - 1.0) / cells, s);
    return sum / choose(WORDS, picks);
}

/* Sets rate[i] to the fpr of a line of i keys: the chance that all cells of another key are
 * picked.  Uses inclusion and exclusion over the cells that are not picked, and takes the words
 * of a key for a random subset of the 16. */
static void fill_line_rates(double rate[LOAD_MAX], unsigned picks, unsigned cells)
{
    for (unsigned i = 0; i < LOAD_MAX; i++)
        rate[i] = 0;
    for (unsigned t = 0; t <= picks; t++) {
        double term = choose(picks, t) * (t & 1 ? -1 : 1);
        double untouched = chance_untouched(t, picks, cells);
        for (unsigned i = 0; i < LOAD_MAX; i++) {
            rate[i] += term;
            term *= untouched;
        }
    }
    for (unsigned i = 0; i < LOAD_MAX; i++)
        rate[i] = fmin(fmax(rate[i], 0), 1);
}

/* Returns the word of step i of a walk, for walks 0 to WALKS - 1. */
static unsigned walk_word(unsigned walk, unsigned i)
{
    return (walk % WORDS + i * (2 * (walk / WORDS) + 1)) % WORDS;
}

/* With more picks than this, the refinement below adds less than a fifth of a percent. */
enum { PICKS_REFINED = 12 };

/* Refines the rates.  The words of a key are a progression, not a random subset, so two keys
 * share all or none of them a little more often.  At an fpr of 1e-3 that makes 1 % more false
 * positives: enough to break the promise, if it were left out.  Uses inclusion and exclusion
 * again, now over each subset of the words 0 .. picks-1 of the key that is asked.  (Every key
 * can be turned into that one, and all others with it.)  Rates above .3 stay, since there it
 * does not matter. */
static void refine_line_rates(double rate[LOAD_MAX], unsigned picks, unsigned cells)
{
    double missed[WORDS + 1];
    uint32_t words[WALKS] = { 0 };
    uint8_t nbits[1U << PICKS_REFINED] = { 0 }; /* of each number: quicker than a call */
    unsigned loads = 0;
    for (unsigned i = 1; i < 1U << picks; i++)
        nbits[i] = (uint8_t)(nbits[i / 2] + i % 2);
    for (unsigned n = 0; n <= WORDS; n++)
        missed[n] = pow((cells - 1.0) / cells, n);
    for (unsigned walk = 0; walk < WALKS; walk++)
        for (unsigned i = 0; i < picks; i++)
            words[walk] |= UINT32_C(1) << walk_word(walk, i);
    for (; loads < LOAD_MAX && rate[loads] < 0.3; loads++)
        rate[loads] = 0;
    for (unsigned subset = 0; subset < 1U << picks; subset++) {
        double untouched = 0, term = nbits[subset] & 1 ? -1 : 1;
        for (unsigned walk = 0; walk < WALKS; walk++)
            untouched += missed[nbits[words[walk] & subset]] / (double)WALKS;
        for (unsigned i = 0; i < loads; i++) {
            rate[i] += term;
            term *= untouched;
        }
    }
    for (unsigned i = 0; i < loads; i++)
        rate[i] = fmax(rate[i], 0);
}

/* Fills in the rates and their spread.  All lines of a block have the same keys, but a key has
 * different picks in each line: so the rate of a block is the product of the rates of its
 * lines.  Blocks of one load differ because they have different numbers of picked cells, and
 * these differ as the numbers of occupied bins do when balls are thrown at random.  (Simulated
 * for 2 to 16 picks and 4 to 60 keys, 200,000 lines each: the spread is true to 5 % from 8 keys
 * on, and the tails are a little lighter than those of a logarithmic normal distribution.) */
void by_load_fill(struct by_load *b, const struct geometry *g, unsigned cells, bool refined)
{
    unsigned picks = (unsigned)g->field[LINE_BITS], lines = lines_of_block(g);
    fill_line_rates(b->rate, picks, cells);
    if (refined && picks <= PICKS_REFINED)
        refine_line_rates(b->rate, picks, cells);
    for (unsigned i = 0; i < LOAD_MAX; i++) {
        double more = refined && picks > PICKS_REFINED ? 1.002 : 1;
        struct occupancy line = sizing_occupancy(WORDS * cells, (double)picks * i);
        b->rate[i] = pow(fmin(more * b->rate[i], 1), lines);
        b->spread[i] = i ? picks * sqrt(lines * line.variance) / line.mean : 0;
    }
}

void by_load_set(struct by_load *b, const struct geometry *g, double keys)
{
    b->keys = floor(fmin(keys, 0x1p60));
    b->blocks = (double)g->field[BAND_LINES];
}

/* Goes through the loads from the most frequent one, the mode: first upwards, then downwards,
 * until the weights are negligible.  Downwards it stops sooner, since blocks of few keys add
 * little to the fpr.  A weight is the frequency of a load divided by that of the mode.  If the
 * mode lies far beyond the table, all blocks are full and the mode alone is enough. */
struct load_cursor {
    double load, mode, weight;
    bool up;
};

static struct load_cursor loads_begin(const struct by_load *b)
{
    double mode = b->blocks > 1 ? floor((b->keys + 1) / b->blocks) : b->keys;
    return (struct load_cursor){ .load = mode, .mode = mode, .weight = 1, .up = true };
}

/* Neighbouring terms of the binomial distribution of n keys have the ratio
 * (n - i) / (i + 1) * odds, where odds = p / (1 - p) and p = 1 / blocks. */
static bool loads_next(const struct by_load *b, struct load_cursor *w)
{
    double odds = 1 / (b->blocks - 1);
    if (b->blocks <= 1 || w->mode > 2 * LOAD_MAX)
        return false;
    if (w->up) {
        w->weight *= (b->keys - w->load) / (w->load + 1) * odds;
        w->load++;
        if (w->weight > 1e-25)
            return true;
        *w = (struct load_cursor){ .load = w->mode, .weight = 1 };
    }
    if (w->load < 1)
        return false;
    w->weight *= w->load / (b->keys - w->load + 1) / odds;
    w->load--;
    return w->weight > 1e-9;
}

static double load_rate(const struct by_load *b, double load)
{
    return load < (double)LOAD_MAX ? b->rate[(unsigned)load] : 1;
}

static double load_spread(const struct by_load *b, double load)
{
    return load < (double)LOAD_MAX ? b->spread[(unsigned)load] : 0;
}

/* How the fpr of a block is distributed, over all blocks of a band and all seeds. */
struct moments {
    double rate; /* the mean */

    /* The variance in units of rate^2, without the part that is linear in the load.  That part
     * does not change the mean over all blocks, since their loads sum up to the keys. */
    double variance;

    /* The slope of the linear part: by which share of 'rate' the fpr grows with each key. */
    double per_key;
};

/* The slope comes from a linear regression of the fpr on the load, where each load counts as
 * often as it occurs. */
static struct moments block_moments(const struct by_load *b)
{
    double weight = 0, x = 0, xx = 0, d = 0, dd = 0, xd = 0;
    struct load_cursor w = loads_begin(b);
    do {
        double rate = load_rate(b, w.load), spread = load_spread(b, w.load);
        double off = w.load - b->keys / b->blocks;
        weight += w.weight;
        x += w.weight * rate;
        xx += w.weight * rate * rate * (1 + spread * spread);
        d += w.weight * off;
        dd += w.weight * off * off;
        xd += w.weight * rate * off;
    } while (loads_next(b, &w));
    struct moments m = { .rate = x / weight };
    double with_load = xd - x * d / weight, loads = dd - d * d / weight;
    m.per_key = loads > 1e-9 && m.rate > 0 ? with_load / loads / m.rate : 0;
    double variance = (xx - x * x / weight - m.per_key * m.rate * with_load) / weight;
    m.variance = m.rate > 0 ? fmax(variance / (m.rate * m.rate), 1e-12) : 0;
    return m;
}

double by_load_mean(const struct by_load *b, double bands)
{
    return pow(block_moments(b).rate, bands);
}

/* ---- The rate of all filters but one in 10^9 ------------------------------------------- */

/* Chernoff's bound tilts the distribution of the blocks.  Let x be the fpr of a block in units
 * of the mean, and d the difference of its load from the mean load.  The tilt makes such a
 * block e^(theta x + eta d) times as frequent. */
struct tilt {
    double theta, eta;
    double most; /* larger x count as this: one such block alone brings the mean to the limit */
};

/* Sums over all loads. */
struct tilted {
    double weight;           /* of the weights before the tilt */
    double less_one;         /* of the weights times (factor of the tilt - 1) */
    double x, xx, d, dd, xd; /* of the tilted weights times x, x^2, d, d^2, x d */
};

/* Returns e^x - 1: quicker than expm1(), and precise enough here. */
static double exp_less_one(double x)
{
    return fabs(x) < 1e-2 ? x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5))))
                          : exp(x) - 1;
}

/* Adds blocks of fpr x, load difference d, and this weight. */
static void tilted_add(struct tilted *t, const struct tilt *by, double weight, double x,
                       double d)
{
    x = fmin(x, by->most);
    double grown = exp_less_one(by->theta * x + by->eta * d), w = weight * (grown + 1);
    t->weight += weight;
    t->less_one += weight * grown;
    t->x += w * x;
    t->xx += w * x * x;
    t->d += w * d;
    t->dd += w * d * d;
    t->xd += w * x * d;
}

/* Adds the blocks of one load, whose log x has a normal distribution.  Where the spread hardly
 * matters, adds half of them one deviation above and half one below.  Else sums over the
 * density at whole deviations from -3 to 6, which is true to eight digits. */
static void tilted_add_load(struct tilted *t, const struct tilt *by, double weight, double x,
                            double spread, double d)
{
    enum { LOWEST = -3, HIGHEST = 6 };
    static const double density[] = { 4.431848e-3, 5.399097e-2, 0.241970725, 0.398942280,
                                      0.241970725, 5.399097e-2, 4.431848e-3, 1.338302e-4,
                                      1.486720e-6, 6.075883e-9 };
    if (by->theta * x * spread < 0.5) {
        tilted_add(t, by, weight / 2, x * (1 + spread), d);
        tilted_add(t, by, weight / 2, x * (1 - spread), d);
        return;
    }
    double step = exp(spread);
    x *= exp(((double)LOWEST - spread / 2) * spread);
    for (int z = LOWEST; z <= HIGHEST; z++) {
        tilted_add(t, by, weight * density[z - LOWEST], x, d);
        x *= step;
    }
}

/* Returns the sums over all loads. */
static struct tilted tilt(const struct by_load *b, const struct moments *m,
                          const struct tilt *by)
{
    struct tilted t = { 0 };
    double mean = b->keys / b->blocks;
    struct load_cursor w = loads_begin(b);
    do
        tilted_add_load(&t, by, w.weight, load_rate(b, w.load) / m->rate,
                        load_spread(b, w.load), w.load - mean);
    while (loads_next(b, &w));
    return t;
}

/* Does the same with an eta that leaves the mean load about where it was: the loads of all
 * blocks sum up to the keys, so the mean cannot change. */
static struct tilted tilt_with_loads(const struct by_load *b, const struct moments *m,
                                     double theta, double most)
{
    struct tilt by = { .theta = theta, .eta = -theta * m->per_key, .most = most };
    struct tilted t = tilt(b, m, &by);
    for (int i = 0; i < 3 && b->blocks > 1; i++) {
        double sum = t.weight + t.less_one, off = t.d / sum, variance = t.dd / sum - off * off;
        double step = off / variance;
        if (!(variance > 0) || fabs(step) > 0.5 || off * off < 1e-2 * variance)
            break;
        by.eta -= step;
        t = tilt(b, m, &by);
    }
    return t;
}

/* Returns a lower bound of -log(share of seeds whose mean fpr over all blocks is above 'most').
 * This is Chernoff's bound, under the condition that the loads sum up to the keys.  Every theta
 * and eta give a valid bound; the search for the best theta ends when the bound is 'enough'. */
static double log_chance_over(const struct by_load *b, const struct moments *m, double most,
                              double enough)
{
    double y = most / m->rate, one = b->blocks * y, best = 0, low = 0,
           high = 500 / fmin(1 / m->rate, one);
    if (y <= 1)
        return 0;

    double theta = fmin((y - 1) / m->variance, high);
    for (int i = 0; i < 30 && best < enough; i++) {
        struct tilted t = tilt_with_loads(b, m, theta, one);
        double sum = t.weight + t.less_one, x = t.x / sum;
        best = fmax(best, b->blocks * (theta * y - log1p(t.less_one / t.weight)));
        *(x < y ? &low : &high) = theta;
        double with_load = t.dd > 0 ? t.xd * t.xd / t.dd : 0;
        double next = theta + log(y / x) * x / ((t.xx - with_load) / sum - x * x);
        if (!(next > low && next < high) || x > 2 * y)
            next = low > 0 ? sqrt(low * high) : high / 2;
        if (fabs(next / theta - 1) < 0.02)
            break;
        theta = next;
    }
    return best;
}

bool by_load_may_keep(const struct by_load *b, double bands, double fpr)
{
    struct moments m = block_moments(b);
    return pow(m.rate, bands) * (1 + 5 * sqrt(m.variance * bands / b->blocks)) <= fpr;
}

bool by_load_keeps(const struct by_load *b, double bands, double fpr)
{
    const double enough = 9 * M_LN10;
    struct moments m = block_moments(b);
    double mean = pow(m.rate, bands);
    if (mean <= 0)
        return true;
    double each = m.rate * pow(fpr / mean, 1 / bands), one = m.rate * fpr / mean;
    return bands * log_chance_over(b, &m, each, enough / bands) >= enough &&
           (bands == 1 || log_chance_over(b, &m, one, enough) >= enough);
}
