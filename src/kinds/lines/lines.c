/* lines.c - fpr and plan of filters whose keys have cache lines of their own.  doc/THEORY.md
 * gives the formulas and what was measured against them. */
#include "lines.h"

#include <math.h>

#include "../../base/sizing.h"
#include "fold.h"

bool lines_in_range(const struct geometry *g)
{
    uint64_t band_lines = g->field[BAND_LINES];
    uint64_t bands = g->field[BANDS];
    uint64_t picks = g->field[LINE_BITS];
    return band_lines >= 1 && band_lines < UINT64_MAX / LINE_NBYTES / LINES_BANDS_MAX &&
           bands >= 1 && bands <= LINES_BANDS_MAX && picks >= 1 && picks <= WORDS &&
           g->field[TOGETHER] <= (bands > 1);
}

/* Checks whether a key picks a single cell.  Then the fpr is simply the share of picked cells,
 * which sizing.h deals with. */
static bool lines_pick_one(const struct geometry *g)
{
    return g->field[BANDS] == 1 && g->field[LINE_BITS] == 1;
}

/* Returns how many cells all bands have. */
static double lines_cells(const struct geometry *g, unsigned cells)
{
    return (double)g->field[BAND_LINES] * (double)g->field[BANDS] * (double)(WORDS * cells);
}

uint64_t lines_nbytes(const struct geometry *g)
{
    return g->field[BANDS] * g->field[BAND_LINES] * LINE_NBYTES;
}

/* ---- The rate: a mixture over the number of keys in a line --------------------------- */

/* The load of a line is the number of its keys.  A line of this load or more counts as full:
 * its fpr is 1. */
enum { LOAD_MAX = 512 };

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
enum { MARKS_REFINED = 12 };

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
    uint8_t nbits[1U << MARKS_REFINED] = { 0 }; /* of each number: quicker than a call */
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

/* The fpr of a block by its load. */
struct by_load {
    double rate[LOAD_MAX];   /* the mean over all blocks of this load */
    double spread[LOAD_MAX]; /* the standard deviation of the logarithm of their fprs */
    double keys, blocks;     /* of one band: the load of a block is Binomial(keys, 1/blocks) */
};

/* Fills in the rates and their spread.  All lines of a block have the same keys, but a key has
 * different picks in each line: so the rate of a block is the product of the rates of its
 * lines.  Blocks of one load differ because they have different numbers of picked cells, and
 * these differ as the numbers of occupied bins do when balls are thrown at random.  (Simulated
 * for 2 to 16 picks and 4 to 60 keys, 200,000 lines each: the spread is true to 5 % from 8 keys
 * on, and the tails are a little lighter than those of a logarithmic normal distribution.)
 * Without 'refined' the rates are a little too low, and take much less time. */
static void by_load_fill(struct by_load *b, const struct geometry *g, unsigned cells,
                         bool refined)
{
    unsigned picks = (unsigned)g->field[LINE_BITS], lines = lines_of_block(g);
    fill_line_rates(b->rate, picks, cells);
    if (refined && picks <= MARKS_REFINED)
        refine_line_rates(b->rate, picks, cells);
    for (unsigned i = 0; i < LOAD_MAX; i++) {
        double more = refined && picks > MARKS_REFINED ? 1.002 : 1;
        struct occupancy line = sizing_occupancy(WORDS * cells, (double)picks * i);
        b->rate[i] = pow(fmin(more * b->rate[i], 1), lines);
        b->spread[i] = i ? picks * sqrt(lines * line.variance) / line.mean : 0;
    }
}

/* Sets how many keys there are, from which the distribution of loads follows. */
static void by_load_set(struct by_load *b, const struct geometry *g, double keys)
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

double lines_predict(const struct geometry *g, unsigned cells, double keys)
{
    struct by_load b;
    if (lines_pick_one(g))
        return sizing_occupancy(lines_cells(g, cells), keys).mean;
    by_load_fill(&b, g, cells, true);
    by_load_set(&b, g, keys);
    return pow(block_moments(&b).rate, lines_separate_bands(g));
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

/* Checks quickly whether the fpr may be kept: whether the product of the mean rates of all
 * bands, plus five deviations, is at most fpr. */
static bool may_keep_rate(const struct by_load *b, double bands, double fpr)
{
    struct moments m = block_moments(b);
    return pow(m.rate, bands) * (1 + 5 * sqrt(m.variance * bands / b->blocks)) <= fpr;
}

/* Checks whether the fpr is kept for all seeds but one in 10^9.  The bands are independent.  If
 * their product is too large, then most often because all of them are a little too large, or
 * because one of them is: the bound is taken for both cases. */
static bool keeps_rate(const struct by_load *b, double bands, double fpr)
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

/* ---- Plan ------------------------------------------------------------------------------ */

/* A geometry that the plan tries. */
struct trial {
    struct geometry g;
    unsigned cells;
    double (*keys)(const struct geometry *g);
    struct by_load by_load;
};

/* Sets the lines of a band, and checks with 'keeps' whether the fpr is kept. */
static bool try_lines(struct trial *trial, uint64_t band_lines,
                      bool (*keeps)(const struct by_load *b, double bands, double fpr))
{
    struct geometry *g = &trial->g;
    g->field[BAND_LINES] = band_lines;
    if (lines_pick_one(g))
        return sizing_one_cell_fits(lines_cells(g, trial->cells), g->capacity, g->fpr);
    by_load_set(&trial->by_load, g, trial->keys(g));
    return keeps(&trial->by_load, lines_separate_bands(g), g->fpr);
}

static bool may_fit(void *context, uint64_t band_lines)
{
    return try_lines(context, band_lines, may_keep_rate);
}

static bool fits(void *context, uint64_t band_lines)
{
    return try_lines(context, band_lines, keeps_rate);
}

/* Returns the fewest lines in a band that keep the fpr, or 0 if 'most' lines do not.  The quick
 * may_fit() gives a number a little below; from there the search goes up in growing steps until
 * lines fit, and then looks for the fewest in the last step. */
static uint64_t fewest_lines(struct trial *trial, uint64_t most)
{
    uint64_t least = sizing_smallest(most, may_fit, trial), step = least / 64 + 1;
    for (uint64_t lines = least; lines; step *= 2) {
        if (fits(trial, lines))
            return sizing_smallest_from(lines == least ? least : lines - step / 2 + 1, lines,
                                        fits, trial);
        if (lines == most)
            break;
        lines = lines + step < most ? lines + step : most;
    }
    return 0;
}

/* Begins to try another number of picks. */
static void trial_begin(struct trial *trial, unsigned picks)
{
    trial->g.field[LINE_BITS] = picks;
    by_load_fill(&trial->by_load, &trial->g, trial->cells, true);
}

/* With TOGETHER the plan may take this many times the least memory to set fewer picks: each bit
 * that is set costs time on a disk or server. */
static const double fewer_marks_cost = 1.03;

/* Finds the number of picks that needs the fewest lines, with this number of bands.  With
 * TOGETHER, finds the fewest picks that need hardly more lines.  Returns false, and leaves g as
 * it was, if no number of picks reaches the fpr with 'best' lines in a band. */
static bool plan_bands(struct geometry *g, unsigned cells, unsigned bands, uint64_t best,
                       double (*keys)(const struct geometry *g))
{
    enum { FEWER = 4, FEWER_TOGETHER = 5 }; /* picks than usual */
    struct trial trial = { .g = *g, .cells = cells, .keys = keys };
    unsigned most = (unsigned)fmin(ceil(-log2(g->fpr) / bands), WORDS);
    unsigned fewer = g->field[TOGETHER] ? FEWER_TOGETHER : FEWER;
    unsigned least = most > fewer ? most - fewer : 1;
    if (g->fpr >= ONE_CELL_FPR)
        most = least = 1;
    trial.g.field[BANDS] = bands;
    bool found = false;
    for (unsigned picks = most; picks >= least; picks--) {
        uint64_t lines = (trial_begin(&trial, picks), fewest_lines(&trial, best));
        if (!lines)
            continue;
        found = true;
        best = lines;
        *g = trial.g;
        g->field[BAND_LINES] = lines;
    }
    uint64_t enough = (uint64_t)((double)best * fewer_marks_cost);
    for (unsigned picks = least; found && g->field[TOGETHER] && picks < g->field[LINE_BITS];
         picks++) {
        uint64_t lines = (trial_begin(&trial, picks), fewest_lines(&trial, enough));
        if (!lines)
            continue;
        *g = trial.g;
        g->field[BAND_LINES] = lines;
        break;
    }
    return found;
}

/* Returns a number of lines in a band that is far beyond the useful. */
static uint64_t lines_beyond(const struct geometry *g)
{
    return 64 * g->capacity + 4096;
}

/* A line more for each key must save this factor of the memory, since it costs a memory access.
 * With TOGETHER one read fetches all lines. */
static double line_worth(const struct geometry *g)
{
    return g->field[TOGETHER] ? 1.04 : 1.125;
}

/* Returns the memory, weighted by the lines of a key. */
static double cost(const struct geometry *g)
{
    return (double)lines_nbytes(g) * pow(line_worth(g), (double)g->field[BANDS]);
}

/* Below this fpr one line is never chosen: it takes a sixth more memory than two, and more the
 * fewer keys there are. */
static const double one_line_least = 1e-5;

/* Gives a key one line instead of two, if two are not worth it.  Two are planned first, since a
 * plan of one line takes long, unless its memory has a bound.  Returns whether it did. */
static bool take_one_line(struct geometry *g, unsigned cells,
                          double (*keys)(const struct geometry *g))
{
    uint64_t most = (uint64_t)((double)lines_nbytes(g) * line_worth(g)) / LINE_NBYTES;
    return g->field[BANDS] == 2 && !g->field[TOGETHER] && g->fpr >= one_line_least &&
           plan_bands(g, cells, 1, most, keys);
}

/* Gives a key more lines as long as each of them is worth it. */
static void take_more_lines(struct geometry *g, unsigned cells,
                            double (*keys)(const struct geometry *g))
{
    unsigned bands = (unsigned)g->field[BANDS];
    for (struct geometry more = *g; ++bands <= LINES_BANDS_MAX; *g = more)
        if (!plan_bands(&more, cells, bands, lines_beyond(g), keys) || cost(&more) >= cost(g))
            break;
}

/* Up to this capacity a key may have more lines together than usual.  A small filter has few
 * blocks, whose fprs differ much, so the mean of a filter may be far from that of all filters:
 * more lines save much memory. */
enum { SMALL_TOGETHER = 1 << 24 };

/* Lines together have numbers of their own: filters on servers keep their bytes. */
int lines_plan(struct geometry *g, unsigned cells, double one_line,
               enum perhaps_preference preference, double (*keys)(const struct geometry *g))
{
    const double fpr = g->fpr * (1 + 1e-9); /* rounding may make a computed 1e-3 less */
    bool together = g->field[TOGETHER];
    bool fast = preference == PERHAPS_PREFER_FAST || g->fpr >= ONE_CELL_FPR;
    bool compact = preference == PERHAPS_PREFER_COMPACT && !fast;
    unsigned bands = fast || fpr >= one_line ? 1 : together && fpr < 1e-6 ? 3 : 2;
    if (compact && together)
        bands++;
    while (!plan_bands(g, cells, bands, lines_beyond(g), keys))
        if (++bands > LINES_BANDS_MAX)
            return PERHAPS_ERR_LIMIT;
    if (bands > 1 && (!together || g->capacity <= SMALL_TOGETHER) &&
        !take_one_line(g, cells, keys))
        take_more_lines(g, cells, keys);
    if (compact && !together && g->field[BANDS] < LINES_BANDS_MAX)
        plan_bands(g, cells, (unsigned)g->field[BANDS] + 1, lines_beyond(g), keys);
    if (!together)
        g->field[BAND_LINES] = fold_round_up(g->field[BAND_LINES]);
    return 0;
}

/* Checks whether so many keys are too many for the lines of the trial. */
static bool may_be_too_many(void *context, uint64_t capacity)
{
    struct trial *trial = context;
    trial->g.capacity = capacity;
    return !may_fit(trial, trial->g.field[BAND_LINES]);
}

static bool are_too_many(void *context, uint64_t capacity)
{
    struct trial *trial = context;
    trial->g.capacity = capacity;
    return !fits(trial, trial->g.field[BAND_LINES]);
}

/* The quick may_fit() gives a number a little above; from there the search goes down in growing
 * steps.  (It must not begin far below: the bound that fits() computes is sometimes too weak,
 * and says of a few capacities that they are too many.) */
uint64_t lines_capacity(const struct geometry *g, unsigned cells,
                        double (*keys)(const struct geometry *g))
{
    struct trial trial = { .g = *g, .cells = cells, .keys = keys };
    by_load_fill(&trial.by_load, g, cells, true);
    uint64_t bad = sizing_smallest(PERHAPS_CAPACITY_MAX, may_be_too_many, &trial);
    uint64_t good = bad ? bad - 1 : PERHAPS_CAPACITY_MAX;
    for (uint64_t step = good / 256 + 1; good && are_too_many(&trial, good); step *= 2) {
        bad = good;
        good -= step < good ? step : good;
    }
    return bad ? sizing_smallest_from(good + 1, bad, are_too_many, &trial) - 1 : good;
}

/* Returns the mean fpr of the trial's geometry with 'keys' keys. */
static double rate_at(void *context, double keys)
{
    struct trial *trial = context;
    by_load_set(&trial->by_load, &trial->g, keys);
    return pow(block_moments(&trial->by_load).rate, lines_separate_bands(&trial->g));
}

/* Rates that are not refined are good enough here. */
uint64_t lines_key_limit(const struct geometry *g, unsigned cells)
{
    struct trial trial = { .g = *g, .cells = cells };
    if (lines_pick_one(g))
        return sizing_one_cell_limit(lines_cells(g, cells), g->fpr);
    by_load_fill(&trial.by_load, g, cells, false);
    return sizing_key_limit(g->capacity, g->fpr, rate_at, &trial);
}

double lines_counted(const struct geometry *g, unsigned cells, double keys)
{
    struct trial trial = { .g = *g, .cells = cells };
    if (lines_pick_one(g))
        return lines_predict(g, cells, keys) * lines_cells(g, cells);
    by_load_fill(&trial.by_load, g, cells, false);
    return sizing_counted(keys, rate_at, &trial);
}

double lines_keys_within(const struct geometry *g, unsigned cells, double most)
{
    struct trial trial = { .g = *g, .cells = cells };
    by_load_fill(&trial.by_load, g, cells, false);
    return sizing_keys_within(g->fpr, most, rate_at, &trial);
}
