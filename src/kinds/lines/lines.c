/* lines.c - the plan of filters whose keys have cache lines of their own. */
#include "lines.h"

#include <math.h>

#include "../../base/sizing.h"
#include "by_load.h"
#include "fold.h"
#include "held.h"

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

double lines_predict(const struct geometry *g, unsigned cells, double keys)
{
    struct by_load b;
    if (lines_pick_one(g))
        return sizing_occupancy(lines_cells(g, cells), keys).mean;
    by_load_begin(&b, g, cells);
    by_load_set_keys(&b, keys);
    return by_load_mean(&b, lines_separate_bands(g));
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
    by_load_set_blocks(&trial->by_load, band_lines);
    by_load_set_keys(&trial->by_load, trial->keys(g));
    return keeps(&trial->by_load, lines_separate_bands(g), g->fpr);
}

static bool may_fit(void *context, uint64_t band_lines)
{
    return try_lines(context, band_lines, by_load_may_keep);
}

static bool fits(void *context, uint64_t band_lines)
{
    return try_lines(context, band_lines, by_load_keeps);
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
    by_load_begin(&trial->by_load, &trial->g, trial->cells);
}

/* With TOGETHER the plan may take this many times the least memory to set fewer picks: each bit
 * that is set costs time on a disk or server. */
static const double fewer_picks_cost = 1.03;

/* Finds the fewest picks that need hardly more lines than the number of picks that needs the
 * fewest.  See plan_bands(). */
static bool plan_together(struct geometry *g, unsigned cells, unsigned bands, uint64_t best,
                          double (*keys)(const struct geometry *g))
{
    enum { FEWER = 5 }; /* picks than usual */
    struct trial trial = { .g = *g, .cells = cells, .keys = keys };
    unsigned most = (unsigned)fmin(ceil(-log2(g->fpr) / bands), WORDS);
    unsigned least = most > FEWER ? most - FEWER : 1;
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
    uint64_t enough = (uint64_t)((double)best * fewer_picks_cost);
    for (unsigned picks = least; found && picks < g->field[LINE_BITS]; picks++) {
        uint64_t lines = (trial_begin(&trial, picks), fewest_lines(&trial, enough));
        if (!lines)
            continue;
        *g = trial.g;
        g->field[BAND_LINES] = lines;
        break;
    }
    return found;
}

/* Gives a key one pick.  See plan_bands(). */
static bool plan_one_cell(struct geometry *g, unsigned cells, uint64_t most)
{
    struct trial trial = { .g = *g, .cells = cells };
    trial.g.field[BANDS] = trial.g.field[LINE_BITS] = 1;
    uint64_t lines = sizing_smallest(most, fits, &trial);
    if (!lines)
        return false;
    *g = trial.g;
    g->field[BAND_LINES] = lines;
    return true;
}

/* A plan that looks for the number of lines. */
struct keys_of {
    struct geometry g;
    double (*keys)(const struct geometry *g);
};

static double keys_with(void *context, uint64_t band_lines, unsigned picks)
{
    struct keys_of *of = context;
    of->g.field[BAND_LINES] = band_lines;
    of->g.field[LINE_BITS] = picks;
    return of->keys(&of->g);
}

/* Finds the number of picks that needs the fewest lines, with this number of bands.  Returns
 * false, and leaves g as it was, if no number of picks reaches the fpr with 'best' lines in a
 * band. */
static bool plan_bands(struct geometry *g, unsigned cells, unsigned bands, uint64_t best,
                       double (*keys)(const struct geometry *g))
{
    if (g->fpr >= ONE_CELL_FPR && bands == 1)
        return plan_one_cell(g, cells, best);
    if (g->field[TOGETHER])
        return plan_together(g, cells, bands, best, keys);
    const struct design design = { g->fpr, cells, bands };
    struct keys_of of = { .g = *g, .keys = keys };
    unsigned picks;
    of.g.field[BANDS] = bands;
    const struct needed needed = { (double)g->capacity, keys_with, &of };
    uint64_t lines = held_fewest_lines(&design, &needed, best, &picks);
    if (!lines)
        return false;
    *g = of.g;
    g->field[BAND_LINES] = lines;
    g->field[LINE_BITS] = picks;
    return true;
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
    by_load_begin(&trial.by_load, g, cells);
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
    by_load_set_keys(&trial->by_load, keys);
    return by_load_mean(&trial->by_load, lines_separate_bands(&trial->g));
}

/* Rates that are not refined are good enough here. */
uint64_t lines_key_limit(const struct geometry *g, unsigned cells)
{
    struct trial trial = { .g = *g, .cells = cells };
    if (lines_pick_one(g))
        return sizing_one_cell_limit(lines_cells(g, cells), g->fpr);
    by_load_begin(&trial.by_load, g, cells);
    return sizing_key_limit(g->capacity, g->fpr, rate_at, &trial);
}

double lines_counted(const struct geometry *g, unsigned cells, double keys)
{
    struct trial trial = { .g = *g, .cells = cells };
    if (lines_pick_one(g))
        return lines_predict(g, cells, keys) * lines_cells(g, cells);
    by_load_begin(&trial.by_load, g, cells);
    return sizing_counted(keys, rate_at, &trial);
}

double lines_keys_within(const struct geometry *g, unsigned cells, double most)
{
    struct trial trial = { .g = *g, .cells = cells };
    by_load_begin(&trial.by_load, g, cells);
    return sizing_keys_within(g->fpr, most, rate_at, &trial);
}
