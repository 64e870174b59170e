/* by_load.c - the fpr of filters whose keys have cache lines of their own, by the load of their
 * blocks: its mean, and the bound that all seeds but one in 10^9 keep.  doc/THEORY.md gives the
 * formulas and what was measured against them. */
#include "by_load.h"

#include <math.h>

#include "../../base/compiler.h"
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

/* Sums over a normal distribution go from here to there, in deviations. */
enum { LOWEST = -3, HIGHEST = 6 };

static void store(double *to, double value)
{
    __atomic_store(to, &value, __ATOMIC_RELAXED);
}

/* Fills in the rates of lines and their spread.  Lines of one load differ because they have
 * different numbers of picked cells, and these differ as the numbers of occupied bins do when
 * balls are thrown at random.  (Simulated for 2 to 16 picks and 4 to 60 keys, 200,000 lines
 * each: the spread is true to 5 % from 8 keys on, and the tails are a little lighter than those
 * of a logarithmic normal distribution.)  Several threads may write the same numbers at
 * once. */
static void fill(struct load_rates *r, unsigned picks, unsigned cells)
{
    const double more = picks > PICKS_REFINED ? 1.002 : 1;
    double rate[LOAD_MAX];
    fill_line_rates(rate, picks, cells);
    if (picks <= PICKS_REFINED)
        refine_line_rates(rate, picks, cells);
    for (unsigned i = 0; i < LOAD_MAX; i++) {
        struct occupancy line = sizing_occupancy(WORDS * cells, (double)picks * i);
        const double spread = i ? picks * sqrt(line.variance) / line.mean : 0;
        store(&r->rate[i], fmin(more * rate[i], 1));
        store(&r->spread[i], spread);
        store(&r->lowest[i], exp((LOWEST - spread / 2) * spread));
        store(&r->step[i], exp(spread));
    }
}

/* A table is filled when a plan or a filter first needs it. */
static const struct load_rates *rates_of_lines(unsigned picks, unsigned cells)
{
    static struct load_rates all[2][WORDS];
    static bool filled[2][WORDS];
    const unsigned size = cells == WORD_NBITS;
    struct load_rates *r = &all[size][picks - 1];
    if (__atomic_load_n(&filled[size][picks - 1], __ATOMIC_ACQUIRE))
        return r;
    fill(r, picks, cells);
    __atomic_store_n(&filled[size][picks - 1], true, __ATOMIC_RELEASE);
    return r;
}

void by_load_lines(struct by_load *b, unsigned picks, unsigned cells, double band_lines)
{
    *b = (struct by_load){ .rates = rates_of_lines(picks, cells), .lines = 1 };
    b->blocks = band_lines;
}

void by_load_begin(struct by_load *b, const struct geometry *g, unsigned cells)
{
    by_load_lines(b, (unsigned)g->field[LINE_BITS], cells, (double)g->field[BAND_LINES]);
    b->lines = lines_of_block(g);
}

void by_load_set_keys(struct by_load *b, double keys)
{
    b->keys = floor(fmin(keys, 0x1p60));
}

void by_load_set_blocks(struct by_load *b, uint64_t blocks)
{
    b->blocks = (double)blocks;
}

/* ---- How often each load is -------------------------------------------------------------- */

/* Several loads side by side, of which the first is a multiple of LANES. */
typedef double lanes __attribute__((vector_size(16)));
typedef int64_t bits __attribute__((vector_size(16)));
enum { LANES = sizeof(lanes) / sizeof(double) };

/* How frequent each load is, divided by how frequent the most frequent one is, the mode; for
 * those that count.  At most 200 below the mode do, and 400 above it. */
enum { BELOW = 208, ABOVE = 432 };

struct loads {
    double mean;
    int base; /* which load has its weight at 0: a multiple of LANES, or less than 0 */
    unsigned begin, end; /* where there are weights: multiples of LANES */
    double weight[BELOW + ABOVE];
};

/* Goes from the mode upwards, and then downwards, until the weights are negligible: downwards
 * sooner, since blocks of few keys add little to the fpr.  Neighbouring terms of the binomial
 * distribution of n keys have the ratio (n - i) / (i + 1) * odds, where odds = p / (1 - p) and
 * p = 1 / blocks.  If the mode lies far beyond the table, all blocks are full and the mode
 * alone is enough. */
static void find_loads(const struct by_load *b, struct loads *loads)
{
    const double n = b->keys, odds = 1 / (b->blocks - 1);
    const double mode = fmin(b->blocks > 1 ? floor((n + 1) / b->blocks) : n, 4 * LOAD_MAX);
    const bool alone = b->blocks <= 1 || mode > 2 * LOAD_MAX;
    const unsigned at = BELOW + (unsigned)mode % LANES;
    unsigned first = at, last = at;
    double *weight = loads->weight;
    weight[at] = 1;
    while (!alone && weight[last] > 1e-25 && last < BELOW + ABOVE - 2 * LANES) {
        const double i = mode + (double)(last - at);
        weight[last + 1] = weight[last] * ((n - i) * odds / (i + 1));
        last++;
    }
    while (!alone && at - first < mode && weight[first] > 1e-9 && first > LANES) {
        const double i = mode - (double)(at - first);
        weight[first - 1] = weight[first] * (i / ((n - i + 1) * odds));
        first--;
    }
    loads->mean = n / b->blocks;
    loads->base = (int)mode - (int)at;
    loads->begin = first - first % LANES;
    loads->end = last + LANES - last % LANES;
    for (unsigned i = loads->begin; i < first; i++)
        weight[i] = 0;
    for (unsigned i = last + 1; i < loads->end; i++)
        weight[i] = 0;
}

/* Another thread may be filling the table, with the same numbers. */
static ALWAYS_INLINE lanes lanes_at(const double *from)
{
    double first, second;
    __atomic_load(from, &first, __ATOMIC_RELAXED);
    __atomic_load(from + 1, &second, __ATOMIC_RELAXED);
    return (lanes){ first, second };
}

/* Returns the values of a column of the table; or 'beyond' behind its end. */
static ALWAYS_INLINE lanes column(const double column[LOAD_MAX], int load, double beyond)
{
    return load < LOAD_MAX ? lanes_at(column + load) : (lanes){ 0 } + beyond;
}

/* Returns e^x - 1, where x <= 700: 2^k e^r - 1 with the nearest k, and r to the power of 13. */
static ALWAYS_INLINE lanes exp_less_one(lanes x)
{
    const double shift = 0x1.8p52, ln2_high = 0x1.62e42fefa38p-1,
                 ln2_low = 0x1.ef35793c7673p-45;
    lanes shifted = x * LOG2_E + shift, k = shifted - shift, power = { 0 };
    const lanes r = (x - k * ln2_high) - k * ln2_low;
    static const double factor[] = { 1 / 6227020800.0,
                                     1 / 479001600.0,
                                     1 / 39916800.0,
                                     1 / 3628800.0,
                                     1 / 362880.0,
                                     1 / 40320.0,
                                     1 / 5040.0,
                                     1 / 720.0,
                                     1 / 120.0,
                                     1 / 24.0,
                                     1 / 6.0,
                                     1 / 2.0,
                                     1 };
    for (unsigned i = 0; i < sizeof factor / sizeof *factor; i++)
        power = (power + factor[i]) * r;
    const lanes scale = (lanes)(((bits)shifted << 52) + (bits)((lanes){ 0 } + 1));
    return power * scale + (scale - 1);
}

/* The fpr of blocks. */
struct of_blocks {
    lanes rate, spread;
};

/* All lines of a block have the same keys, but a key has different picks in each line: so the
 * rate of a block is the product of the rates of its lines. */
static ALWAYS_INLINE struct of_blocks blocks_of(const struct by_load *b, int load)
{
    const lanes line = column(b->rates->rate, load, 1);
    struct of_blocks blocks = { line, column(b->rates->spread, load, 0) };
    if (b->lines == 1)
        return blocks;
    for (unsigned i = 1; i < b->lines; i++)
        blocks.rate *= line;
    blocks.spread *= sqrt(b->lines);
    return blocks;
}

static ALWAYS_INLINE double sum_of(lanes values)
{
    return values[0] + values[1];
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
static struct moments block_moments(const struct by_load *b, const struct loads *loads)
{
    const lanes steps = { 0, 1 };
    lanes all = { 0 }, x = { 0 }, xx = { 0 }, d = { 0 }, dd = { 0 }, xd = { 0 };
    for (unsigned i = loads->begin; i < loads->end; i += LANES) {
        const int load = loads->base + (int)i;
        const struct of_blocks blocks = blocks_of(b, load);
        const lanes rate = blocks.rate, spread = blocks.spread;
        const lanes w = lanes_at(loads->weight + i), off = load - loads->mean + steps;
        all += w;
        x += w * rate;
        xx += w * rate * rate * (1 + spread * spread);
        d += w * off;
        dd += w * off * off;
        xd += w * rate * off;
    }
    const double weight = sum_of(all), rates = sum_of(x), offs = sum_of(d);
    struct moments m = { .rate = rates / weight };
    double with_load = sum_of(xd) - rates * offs / weight;
    double variance_of_loads = sum_of(dd) - offs * offs / weight;
    m.per_key =
        variance_of_loads > 1e-9 && m.rate > 0 ? with_load / variance_of_loads / m.rate : 0;
    double variance =
        (sum_of(xx) - rates * rates / weight - m.per_key * m.rate * with_load) / weight;
    m.variance = m.rate > 0 ? fmax(variance / (m.rate * m.rate), 1e-12) : 0;
    return m;
}

double by_load_mean(const struct by_load *b, double bands)
{
    struct loads loads;
    find_loads(b, &loads);
    return pow(block_moments(b, &loads).rate, bands);
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

/* The same for every LANES-th load. */
struct tilted_lanes {
    lanes weight, less_one, x, xx, d, dd, xd;
};

static ALWAYS_INLINE lanes least(lanes a, lanes b)
{
    bits smaller = a < b;
    return (lanes)(((bits)a & smaller) | ((bits)b & ~smaller));
}

/* Adds blocks of fpr x, load difference d, and this weight. */
static ALWAYS_INLINE void tilted_add(struct tilted_lanes *t, const struct tilt *by,
                                     lanes weight, lanes x, lanes d)
{
    x = least(x, (lanes){ 0 } + by->most);
    const lanes grown = exp_less_one(least(by->theta * x + by->eta * d, (lanes){ 0 } + 700));
    const lanes w = weight * (grown + 1), wx = w * x, wd = w * d;
    t->weight += weight;
    t->less_one += weight * grown;
    t->x += wx;
    t->xx += wx * x;
    t->d += wd;
    t->dd += wd * d;
    t->xd += wx * d;
}

/* Return the fpr at LOWEST deviations, to the mean, and the step from there to the next one. */

static ALWAYS_INLINE lanes lowest_of(const struct by_load *b, int load, lanes spread)
{
    return b->lines == 1 ? column(b->rates->lowest, load, 1)
                         : exp_less_one((LOWEST - spread / 2) * spread) + 1;
}

static ALWAYS_INLINE lanes step_of(const struct by_load *b, int load, lanes spread)
{
    return b->lines == 1 ? column(b->rates->step, load, 1) : exp_less_one(spread) + 1;
}

/* Returns the sums over all loads.  At one load log x has a normal distribution.  Where the
 * spread hardly matters, half of the blocks are one deviation above and half one below.  Else
 * sums over the density at whole deviations from LOWEST to HIGHEST, which is true to eight
 * digits. */
static struct tilted tilt(const struct by_load *b, const struct loads *loads,
                          const struct moments *m, const struct tilt *by)
{
    static const double density[] = { 4.431848e-3, 5.399097e-2, 0.241970725, 0.398942280,
                                      0.241970725, 5.399097e-2, 4.431848e-3, 1.338302e-4,
                                      1.486720e-6, 6.075883e-9 };
    const lanes steps = { 0, 1 };
    struct tilted_lanes t = { 0 };
    for (unsigned i = loads->begin; i < loads->end; i += LANES) {
        const int load = loads->base + (int)i;
        const lanes weight = lanes_at(loads->weight + i), d = load - loads->mean + steps;
        const struct of_blocks blocks = blocks_of(b, load);
        const lanes spread = blocks.spread;
        lanes x = blocks.rate / m->rate;
        const bits matters = by->theta * x * spread >= 0.5;
        if (matters[0] | matters[1]) {
            const lanes step = step_of(b, load, spread);
            x *= lowest_of(b, load, spread);
            for (int z = LOWEST; z <= HIGHEST; z++, x *= step)
                tilted_add(&t, by, weight * density[z - LOWEST], x, d);
        } else {
            tilted_add(&t, by, weight / 2, x * (1 + spread), d);
            tilted_add(&t, by, weight / 2, x * (1 - spread), d);
        }
    }
    return (struct tilted){ .weight = sum_of(t.weight),
                            .less_one = sum_of(t.less_one),
                            .x = sum_of(t.x),
                            .xx = sum_of(t.xx),
                            .d = sum_of(t.d),
                            .dd = sum_of(t.dd),
                            .xd = sum_of(t.xd) };
}

/* The loads of all blocks sum up to the keys, so their mean cannot change.  So eta is in a
 * fixed ratio to theta, which leaves the mean load about as it is, and theta alone is searched
 * for. */
struct ray {
    const struct by_load *by_load;
    const struct loads *loads;
    const struct moments *moments;
    double y;     /* the mean that is asked about, to that of all seeds */
    double ratio; /* of -eta to theta */
};

/* A point on a ray: the bound there, to be multiplied by the number of blocks, and its
 * slope. */
struct point {
    double theta, bound, slope;
    struct tilted t;
};

static struct point point_at(const struct ray *r, double theta)
{
    const struct tilt by = { .theta = theta,
                             .eta = -r->ratio * theta,
                             .most = r->by_load->blocks * r->y };
    const struct tilted t = tilt(r->by_load, r->loads, r->moments, &by);
    return (struct point){ .theta = theta,
                           .bound = theta * r->y - log1p(t.less_one / t.weight),
                           .slope = r->y - (t.x - r->ratio * t.d) / (t.weight + t.less_one),
                           .t = t };
}

/* Returns how high a point between two may lie at most, where their tangents meet: the bound is
 * a concave function. */
static double meet(const struct point *low, const struct point *high, double *theta)
{
    double at = high->bound - low->bound + low->slope * low->theta - high->slope * high->theta;
    *theta = fmin(fmax(at / (low->slope - high->slope), low->theta), high->theta);
    return low->bound + low->slope * (*theta - low->theta);
}

/* Returns a point on the ray that is lower than the highest by at most 'near', or that is as
 * high as is enough.  Begins at theta, which is at most 'limit'. */
static struct point highest(const struct ray *r, double theta, double limit, double near,
                            double enough)
{
    struct point low = { .slope = r->y - 1 }, high = { .slope = 1 }, best = low;
    for (int i = 0; i < 30 && best.bound < enough; i++) {
        const struct point at = point_at(r, theta);
        *(at.slope > 0 ? &low : &high) = at;
        if (at.bound > best.bound)
            best = at;
        if (high.slope > 0) { /* is not found yet */
            if (theta >= limit)
                break;
            theta = fmin(1.5 * theta, limit);
            continue;
        }
        const double top = meet(&low, &high, &theta), wide = high.theta - low.theta;
        if (top - best.bound < near || wide < 1e-3 * high.theta)
            break;
        theta = fmin(fmax(theta, low.theta + 0.02 * wide), high.theta - 0.02 * wide);
    }
    return best;
}

/* Changes the ratio to one that leaves the mean load at this point nearer to what it is.
 * Returns by how much that may raise the bound. */
static double turn(struct ray *r, const struct point *at)
{
    const double sum = at->t.weight + at->t.less_one, d = at->t.d / sum;
    const double dd = at->t.dd / sum - d * d, most = 0.5 / sqrt(r->loads->mean + 1);
    if (r->by_load->blocks <= 1 || !(dd > 0))
        return 0;
    r->ratio += fmax(fmin(d / dd, most), -most) / at->theta;
    return d * d / dd / 2;
}

/* Returns a lower bound of -log(share of seeds whose mean fpr over all blocks is above 'most').
 * This is Chernoff's bound, under the condition that the loads sum up to the keys.  Every theta
 * and eta give a valid bound.  The search for the best ones begins at *start; or if that is { 0
 * }, where it would end for a normal distribution, or earlier, near to where the bound would be
 * what is needed if the mean became too large by few blocks.  It ends when the bound is 'times'
 * what is needed.  Sets *start to where it ended. */
static double log_chance_over(const struct by_load *b, const struct loads *loads,
                              const struct moments *m, double most, double needed, double times,
                              struct by_load_theta *start)
{
    const double y = most / m->rate, near = 0.002 * needed / b->blocks;
    const double roughly = 8 * near; /* as long as the ratio may change */
    const double limit = 500 / fmin(1 / m->rate, b->blocks * y);
    struct ray r = { b, loads, m, y, start->theta > 0 ? start->ratio : m->per_key };
    double theta = fmin((y - 1) / m->variance, 1.2 * needed / b->blocks / (y - 1)), best = 0;
    if (y <= 1)
        return 0;

    theta = start->theta > 0 ? start->theta : theta;
    for (int i = 0; i < 5; i++) {
        const struct point at = highest(&r, fmin(theta, limit), limit, i ? near : roughly,
                                        times * needed / b->blocks);
        if (at.bound > best) {
            best = at.bound;
            *start = (struct by_load_theta){ at.theta, r.ratio };
        }
        if (!(at.theta > 0) || best * b->blocks >= times * needed || turn(&r, &at) < near)
            break;
        theta = at.theta;
    }
    return best * b->blocks;
}

bool by_load_may_keep(const struct by_load *b, double bands, double fpr)
{
    struct loads loads;
    find_loads(b, &loads);
    struct moments m = block_moments(b, &loads);
    return pow(m.rate, bands) * (1 + 5 * sqrt(m.variance * bands / b->blocks)) <= fpr;
}

/* Returns how many times as large as it must be the logarithm of the share is; does not look
 * further than to 'times'.  The bands are independent.  Their product is too large mostly
 * because all of them are a little too large, or because one is far too large: the bound is
 * taken for both cases. */
static double margin(const struct by_load *b, double bands, double fpr, double times,
                     struct by_load_start *start)
{
    const double needed = 9 * LN_10;
    struct loads loads;
    find_loads(b, &loads);
    const struct moments m = block_moments(b, &loads);
    const double mean = pow(m.rate, bands);
    if (mean <= 0)
        return times;
    const double each = m.rate * pow(fpr / mean, 1 / bands), one = m.rate * fpr / mean;
    double all = needed / bands;
    all = log_chance_over(b, &loads, &m, each, all, times, &start->each) / all;
    return bands == 1 || all < 1
               ? all
               : fmin(all,
                      log_chance_over(b, &loads, &m, one, needed, times, &start->one) / needed);
}

bool by_load_keeps(const struct by_load *b, double bands, double fpr)
{
    return margin(b, bands, fpr, 1, &(struct by_load_start){ 0 }) >= 1;
}

double by_load_margin(const struct by_load *b, double bands, double fpr,
                      struct by_load_start *start)
{
    return margin(b, bands, fpr, 16, start);
}
