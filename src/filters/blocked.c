/* blocked.c - blocked Bloom filter (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient
 * Bloom Filters, WEA 2007): all bits of a key lie in one cache line, or in a few.
 *
 *   body = 'parts' parts of 'part_lines' lines of 64 bytes; a key has one line in each part,
 *          so that its lines always differ.
 *   line = 16 words of 32 bits; a key sets one bit in each of 'line_bits' words:
 *
 *          word  0 1 2 3 4 5 6 7 8 9 a b c d e f     start 2, stride 5, line_bits 4:
 *                . . x . . . . x . . . . x . . .     words 2, 7, 12 and 17 mod 16 = 1
 *                . x . . . . . . . . . . . . . .
 *
 * Limits: 8 parts, 16 bits a line.  Union is the OR of the bodies.
 * Invariant: the bits of a key that was added are all set, and no bit is ever cleared. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../kernels/layout.h"
#include "../plan.h"
#include "../sample.h"
#include "bloom.h"
#include "kinds.h"
#include "owners.h"

static const char *const field_names[] = { "part_lines", "parts", "line_bits", NULL };

enum { PARTS_MAX = 8, WORDS = LINE_WORDS, WORD_BITS = WORD_NBITS, CELLS = WORDS * WORD_BITS };

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

/* The chance that one key leaves t given bits, in t given words, unset. */
static double chance_untouched(unsigned t, unsigned bits)
{
    double sum = 0;
    for (unsigned s = 0; s <= t && s <= bits; s++)
        if (bits - s <= WORDS - t)
            sum += choose(t, s) * choose(WORDS - t, bits - s) *
                   pow((WORD_BITS - 1.0) / WORD_BITS, s);
    return sum / choose(WORDS, bits);
}

/* rate[i] = the chance that all bits of another key are set in a line of i keys, by inclusion
 * and exclusion over those that are not, if a key's words were any subset. */
static void fill_line_rates(double rate[LOAD_MAX], unsigned bits)
{
    for (unsigned i = 0; i < LOAD_MAX; i++)
        rate[i] = 0;
    for (unsigned t = 0; t <= bits; t++) {
        double term = choose(bits, t) * (t & 1 ? -1 : 1);
        double untouched = chance_untouched(t, bits);
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

/* With more bits than this the words' structure adds less than a fifth of a percent. */
enum { BITS_REFINED = 12 };

/* A key's words are a progression, not any subset, so that two keys share all or none of them
 * a little more often: 1 % more false positives at a rate of 1e-3, and worth having right.
 * Inclusion and exclusion again, over each subset of the words 0 .. bits-1 of the key that is
 * asked (every key can be turned into that one, and all others with it). */
static void refine_line_rates(double rate[LOAD_MAX], unsigned bits)
{
    double term[1 << BITS_REFINED], untouched[1 << BITS_REFINED], missed[WORDS + 1];
    for (unsigned n = 0; n <= WORDS; n++)
        missed[n] = pow((WORD_BITS - 1.0) / WORD_BITS, n);
    uint32_t words[WALKS] = { 0 };
    for (unsigned walk = 0; walk < WALKS; walk++)
        for (unsigned i = 0; i < bits; i++)
            words[walk] |= UINT32_C(1) << walk_word(walk, i);
    for (unsigned subset = 0; subset < 1U << bits; subset++) {
        double sum = 0;
        for (unsigned walk = 0; walk < WALKS; walk++)
            sum += missed[__builtin_popcount(words[walk] & subset)];
        untouched[subset] = sum / WALKS;
        term[subset] = __builtin_popcount(subset) & 1 ? -1 : 1;
    }
    for (unsigned i = 0; i < LOAD_MAX && rate[i] < 0.3; i++) { /* above, it does not matter */
        double sum = 0;
        for (unsigned subset = 0; subset < 1U << bits; subset++) {
            sum += term[subset];
            term[subset] *= untouched[subset];
        }
        rate[i] = fmax(sum, 0);
    }
}

static void exact_line_rates(double rate[LOAD_MAX], unsigned bits)
{
    fill_line_rates(rate, bits);
    if (bits <= BITS_REFINED)
        refine_line_rates(rate, bits);
    else
        for (unsigned i = 0; i < LOAD_MAX; i++)
            rate[i] = fmin(1.002 * rate[i], 1);
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

static struct rate mixed_rate(const struct geometry *g, const double *rate, double keys)
{
    double lines = (double)g->field[PART_LINES];
    double parts = (double)g->field[PARTS];
    double bits = (double)g->field[LINE_BITS];
    struct moments m = mix_loads(rate, (uint64_t)fmin(keys, 1e18), g->field[PART_LINES]);
    double mean = m.first / m.weight;
    if (mean <= 0)
        return (struct rate){ 0 };
    double loads = fmax(m.second / m.weight / (mean * mean) - 1, 0);
    struct occupancy line = plan_occupancy(CELLS, bits * keys / lines);
    double within = bits * bits * line.variance / (line.mean * line.mean);
    double total = pow(mean, parts);
    return (struct rate){ .mean = total, .sd = total * sqrt(parts * (loads + within) / lines) };
}

static struct rate predict(const struct geometry *g, double keys)
{
    double rate[LOAD_MAX];
    exact_line_rates(rate, (unsigned)g->field[LINE_BITS]);
    return mixed_rate(g, rate, keys);
}

/* ---- Plan ------------------------------------------------------------------------------ */

struct trial {
    struct geometry g;
    double rate[LOAD_MAX];
};

static bool fits(void *context, uint64_t part_lines)
{
    struct trial *trial = context;
    trial->g.field[PART_LINES] = part_lines;
    return plan_fits(mixed_rate(&trial->g, trial->rate, (double)trial->g.capacity),
                     trial->g.fpr);
}

/* The fewest lines for this number of parts, over all numbers of bits; false if none will do.
 */
static bool plan_parts(struct geometry *g, unsigned parts)
{
    uint64_t most = 64 * g->capacity + 4096; /* far beyond the useful */
    uint64_t best = 0;
    double usual = fmin(ceil(-log2(g->fpr) / parts), WORDS);
    for (unsigned bits = (unsigned)fmax(usual - 4, 1); bits <= usual; bits++) {
        struct trial trial = { .g = *g };
        trial.g.field[PARTS] = parts;
        trial.g.field[LINE_BITS] = bits;
        exact_line_rates(trial.rate, bits);
        uint64_t part_lines = plan_smallest(most, fits, &trial);
        if (!part_lines || (best && part_lines >= best))
            continue;
        best = part_lines;
        g->field[PART_LINES] = part_lines;
        g->field[PARTS] = parts;
        g->field[LINE_BITS] = bits;
    }
    return best != 0;
}

/* Below these rates one more line saves a tenth of the memory and more (doc/KINDS.md has the
 * table). */
static unsigned usual_parts(double fpr)
{
    const double slack = 1 + 1e-9; /* an fpr of 1e-3 that was computed is one, too */
    return fpr * slack >= 1e-3 ? 1 : fpr * slack >= 1e-6 ? 2 : 3;
}

static int plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    unsigned parts = options->preference == PERHAPS_FAST ? 1 : usual_parts(g->fpr);
    if (options->preference == PERHAPS_COMPACT)
        parts++;
    while (!plan_parts(g, parts))
        if (++parts > PARTS_MAX)
            return PERHAPS_ERR_LIMIT;
    snprintf(
        why, WHY_NBYTES,
        "keys are added and asked, none removed: %u bits in %s, the fewest memory accesses",
        (unsigned)g->field[LINE_BITS] * parts,
        parts == 1 ? "one cache line" : "a few cache lines");
    return 0;
}

static double rate_at(const void *context, double keys)
{
    const struct trial *trial = context;
    return mixed_rate(&trial->g, trial->rate, keys).mean;
}

static int set_geometry(struct geometry *g)
{
    uint64_t part_lines = g->field[PART_LINES];
    uint64_t parts = g->field[PARTS];
    uint64_t bits = g->field[LINE_BITS];
    if (part_lines < 1 || part_lines > UINT64_MAX / LINE_NBYTES / PARTS_MAX || parts < 1 ||
        parts > PARTS_MAX || bits < 1 || bits > WORDS)
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = parts * part_lines * LINE_NBYTES;
    struct trial trial = { .g = *g };
    fill_line_rates(trial.rate, (unsigned)bits); /* the quick formula is good enough here */
    g->key_limit = plan_key_limit(g->capacity, rate_at, &trial);
    return 0;
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

/* The chance that a random key's bits are all set in this line: over all walks, the product of
 * the loads of its words. */
static double line_rate(const uint8_t *line, unsigned bits, double *ones)
{
    const uint32_t *words = (const void *)line; /* others may be adding */
    double load[WORDS], sum = 0;
    for (unsigned w = 0; w < WORDS; w++) {
        int set = __builtin_popcount(__atomic_load_n(&words[w], __ATOMIC_RELAXED));
        load[w] = (double)set / WORD_BITS;
        *ones += set;
    }
    for (unsigned stride = 1; stride < WORDS / 2; stride += 2) {
        double in_order[2 * WORDS], product[WORDS];
        for (unsigned j = 0; j < 2 * WORDS; j++)
            in_order[j] = load[j * stride % WORDS];
        window_products(in_order, bits, product);
        for (unsigned j = 0; j < WORDS; j++)
            sum += product[j];
    }
    return sum / WALKS;
}

static struct fill measure(const perhaps_filter *f)
{
    const struct geometry *g = &f->geometry;
    double rate[PARTS_MAX] = { 0 }, lines[PARTS_MAX] = { 0 }, ones = 0;
    for (struct sample s = sample_begin(g->body_nbytes); sample_next(&s);)
        for (uint64_t at = s.offset; at < s.end; at += LINE_NBYTES) {
            uint64_t part = at / LINE_NBYTES / g->field[PART_LINES];
            rate[part] += line_rate(f->body + at, (unsigned)g->field[LINE_BITS], &ones);
            lines[part]++;
        }
    struct fill fill = { .fpr = 1 };
    double all = 0;
    for (unsigned part = 0; part < g->field[PARTS]; part++) {
        fill.fpr *= lines[part] > 0 ? rate[part] / lines[part] : 1;
        all += lines[part];
    }
    fill.load = ones / (all * CELLS);
    return fill;
}

/* ---- Operations ------------------------------------------------------------------------ */

static void bind(perhaps_filter *f)
{
    f->loops = f->kernels->blocked;
    if (!f->shared)
        return;
    if (f->sync) {
        f->loops.add_one = NULL; /* through add() */
    } else {
        f->loops.add = kernels_atomic.blocked.add;
        f->loops.add_one = kernels_atomic.blocked.add_one;
    }
}

static size_t sync_nbytes(const struct geometry *g)
{
    (void)g;
    return sizeof(struct owners);
}

/* One part after the other, each like a filter of its own: the lines that a key has in several
 * belong to several owners. */
static void add_sorted(perhaps_filter *f, const struct keyhash *keys, size_t n, bool *answer)
{
    const uint64_t *field = f->geometry.field;
    const uint64_t of_part[] = { field[PART_LINES], 1, field[LINE_BITS] };
    struct keyhash moved[BATCH_MOST];
    bool was_there[BATCH_MOST];
    uint8_t *body = f->body;
    memset(answer, true, n);
    for (uint64_t part = 0; part < field[PARTS]; part++) {
        owners_add_lines(f->sync, &f->loops, body, of_part, keys, n, was_there);
        for (size_t i = 0; i < n; i++) {
            answer[i] &= was_there[i];
            moved[i] = blocked_next_part(keys[i]);
        }
        keys = moved;
        body += field[PART_LINES] * LINE_NBYTES;
    }
}

static int add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done)
{
    if (!f->sync)
        return filter_add(f, keys, ahead, n, unless_present, answer, done);
    add_sorted(f, keys, n, answer);
    *done = n;
    return 0;
}

static int merge(perhaps_filter *f, const perhaps_filter *other)
{
    const uint64_t *field = f->geometry.field;
    bloom_unite(f, other, (double)(field[PARTS] * field[LINE_BITS]));
    return 0;
}

const struct filter_kind kind_blocked = {
    .about = { .name = "blocked",
               .summary = "blocked Bloom filter: the fastest to add and ask; keys stay",
               .abilities = PERHAPS_MERGE | PERHAPS_SHARE | PERHAPS_THREADS },
    .id = 1,
    .field_names = field_names,
    .plan = plan,
    .set_geometry = set_geometry,
    .predict = predict,
    .measure = measure,
    .bind = bind,
    .sync_nbytes = sync_nbytes,
    .sorts_shared = true,
    .prefetch = filter_prefetch,
    .contains = filter_contains,
    .add = add,
    .merge = merge,
};
