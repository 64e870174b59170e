/* held.c - how many keys so many lines hold at a rate.
 *
 * The bound of by_load.c takes some hundred microseconds to find that out, and a program may
 * make a filter for each of a million users.  So it is computed for certain numbers of lines
 * only, the nodes, and remembered.  Nodes are 1 to 32 lines, and behind that 16 in each octave.
 *
 *     keys a line
 *       |                        . - - x     The more lines there are, the closer is each
 *       |             . x - '                filter to the mean, and the more keys may be in
 *       |       . x                          a line.  The curve is concave: a chord lies below
 *       |    x                               it, and so never gives too many keys.
 *       +----+----+-------+----------- lines
 *
 * What is remembered is a pure function of rate and node: so a plan does not depend on what was
 * planned before. */
#include "held.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "../../base/sizing.h"
#include "by_load.h"
#include "lines.h"

/* ---- Nodes ------------------------------------------------------------------------------- */

enum { OCTAVE = 16, OCTAVES = 24, NODES = OCTAVE * OCTAVES };

/* Returns the last node that has at most this many lines: at least 1. */
static unsigned node_below(uint64_t lines)
{
    unsigned doublings = 0;
    for (; lines >= 2 * OCTAVE; lines /= 2)
        doublings++;
    const uint64_t node = OCTAVE * doublings + lines;
    return node < NODES ? (unsigned)node : NODES - 1;
}

static uint64_t lines_of_node(unsigned node)
{
    return node < 2 * OCTAVE ? node : (uint64_t)(OCTAVE + node % OCTAVE) << (node / OCTAVE - 1);
}

/* ---- One node ---------------------------------------------------------------------------- */

/* Numbers of picks that may be the best, for lines of one number. */
struct trial {
    const struct design *design;
    struct by_load_start start;
    struct by_load by_load;
};

/* Returns the square root of the margin with so many keys, less 1: of which the zero is to be
 * found.  It is nearly a straight line. */
static double over(struct trial *t, double keys)
{
    by_load_set_keys(&t->by_load, keys);
    return sqrt(by_load_margin(&t->by_load, t->design->bands, t->design->fpr, &t->start)) - 1;
}

/* Returns the most keys with which the fpr is kept, where 'least' are few enough, and 'most'
 * too many, as over() tells.  Goes along the chord between the two.  If one end stays for long,
 * counts it for less, so that the other one moves, too (the Illinois method). */
static double most_keys(struct trial *t, double least, double above, double most, double below)
{
    int stays = 0; /* the end that stayed last: -1 or 1 */
    while (most - least > 1 + ldexp(least, -12)) {
        double keys = floor(least + (most - least) * above / (above - below));
        keys = fmin(fmax(keys, least + 1), most - 1);
        const double at = over(t, keys);
        if (at >= 0) {
            least = keys;
            above = at;
            below /= stays == 1 ? 2 : 1;
            stays = 1;
        } else {
            most = keys;
            below = at;
            above /= stays == -1 ? 2 : 1;
            stays = -1;
        }
    }
    return least;
}

static bool may_be_too_many(void *trial, uint64_t keys)
{
    struct trial *t = trial;
    by_load_set_keys(&t->by_load, (double)keys);
    return !by_load_may_keep(&t->by_load, t->design->bands, t->design->fpr);
}

/* Returns a number of keys that is too large in any case. */
static double too_many(struct trial *t)
{
    const double most = t->by_load.blocks * LOAD_MAX;
    return fmax((double)sizing_smallest((uint64_t)most, may_be_too_many, t), 2);
}

/* Returns the number of picks in a filter whose lines are all alike. */
static unsigned usual_picks(const struct design *d)
{
    return (unsigned)fmin(ceil(-log2(d->fpr) / d->bands), WORDS);
}

/* Begins to try a number of picks. */
static void trial_begin(struct trial *t, unsigned picks, double lines)
{
    by_load_lines(&t->by_load, picks, t->design->cells, lines);
}

/* Finds the best number of picks for so many keys.  Goes down from the usual one for as long as
 * fewer are as good: the fewer lines there are, the more do they differ, and then fewer picks
 * are better.  Returns over() with them. */
static double best_picks(struct trial *t, double lines, double keys, unsigned *picks)
{
    struct by_load_start start = { 0 };
    double best = -1;
    t->start = start;
    for (unsigned i = usual_picks(t->design); i >= 1; i--) {
        trial_begin(t, i, lines);
        const double at = over(t, keys);
        if (at < best)
            break;
        best = at;
        start = t->start;
        *picks = i;
    }
    trial_begin(t, *picks, lines);
    t->start = start;
    return best;
}

/* Begins with keys that are nearly too many for the usual number of picks, and goes down to
 * some that are held with the best number for them.  Returns how many are, or 0. */
static double begin_to_hold(struct trial *t, double lines, unsigned *picks, double *at,
                            double *most, double *below)
{
    trial_begin(t, *picks, lines);
    double keys = floor(too_many(t) * (1 - 0.5 / sqrt(lines + 24)));
    while (keys >= 1 && (*at = best_picks(t, lines, keys, picks)) == -1)
        keys = floor(0.8 * keys);
    *most = too_many(t);
    *below = -0.45; /* about */
    while (keys >= 1 && *at < 0) {
        *most = keys;
        *below = *at;
        keys = fmin(floor(keys * (1 + *at / 2)), keys - 1);
        *at = over(t, keys);
    }
    return fmax(keys, 0);
}

/* Computes a node.  Where it has begun, more picks may have been the best than at the end. */
static struct held compute(const struct design *d, unsigned node)
{
    const double lines = (double)lines_of_node(node);
    struct trial t = { .design = d };
    struct held held = { .picks = usual_picks(d) };
    double at = -1, most, below, keys;
    keys = begin_to_hold(&t, lines, &held.picks, &at, &most, &below);
    if (keys < 1)
        return (struct held){ 0 };
    held.keys = most_keys(&t, keys, at, most, below);
    while (held.picks > 1) {
        trial_begin(&t, held.picks - 1, lines);
        at = over(&t, held.keys + 1);
        if (at < 0)
            break;
        held.keys = most_keys(&t, held.keys + 1, at, too_many(&t), -0.45);
        held.picks--;
    }
    return held;
}

/* ---- What is remembered ------------------------------------------------------------------ */

/* A node of a rate.  'what' has all that was computed, and of what but the rate; 'check' is the
 * bits of the rate, mixed with 'what'.  Threads read and write both without a lock: of a slot
 * that two write at once the two do not fit together, and it is as good as empty. */
struct slot {
    uint64_t what, check;
};

/* A set of slots is one cache line. */
enum { SETS = 256, WAYS = LINE_NBYTES / sizeof(struct slot) };
static struct slot remembered[SETS][WAYS] __attribute__((aligned(LINE_NBYTES)));

/* 'what': keys, picks, and whose they are. */
enum { KEYS_NBITS = 44, PICKS_NBITS = 5, WHOSE_AT = KEYS_NBITS + PICKS_NBITS };

static uint64_t whose(const struct design *d, unsigned node)
{
    return (uint64_t)node << 4 | (d->bands - 1) << 1 | (d->cells == WORD_NBITS);
}

static uint64_t bits_of(double fpr)
{
    uint64_t bits;
    memcpy(&bits, &fpr, sizeof bits);
    return bits;
}

static uint64_t mixed(uint64_t what)
{
    return (what ^ what >> 32) * ODD_GOLDEN;
}

static struct slot *set_of(uint64_t fpr, uint64_t who)
{
    return remembered[((fpr ^ fpr >> 29) * ODD_PI + who * ODD_GOLDEN) >> 56];
}

static bool recall(uint64_t fpr, uint64_t who, struct held *held)
{
    const struct slot *set = set_of(fpr, who);
    for (unsigned i = 0; i < WAYS; i++) {
        const uint64_t what = __atomic_load_n(&set[i].what, __ATOMIC_RELAXED);
        const uint64_t check = __atomic_load_n(&set[i].check, __ATOMIC_RELAXED);
        if (what >> WHOSE_AT != who || (check ^ mixed(what)) != fpr)
            continue;
        held->keys = (double)(what & ((UINT64_C(1) << KEYS_NBITS) - 1));
        held->picks = (unsigned)(what >> KEYS_NBITS) & ((1U << PICKS_NBITS) - 1);
        return true;
    }
    return false;
}

/* The newest goes to the first slot, and the others move up: the last one is forgotten. */
static void remember(uint64_t fpr, uint64_t who, const struct held *held)
{
    struct slot *set = set_of(fpr, who);
    const uint64_t keys = (uint64_t)held->keys;
    const uint64_t what = who << WHOSE_AT | (uint64_t)held->picks << KEYS_NBITS | keys;
    struct slot next = { what, fpr ^ mixed(what) };
    for (unsigned i = 0; i < WAYS; i++) {
        struct slot old = { __atomic_load_n(&set[i].what, __ATOMIC_RELAXED),
                            __atomic_load_n(&set[i].check, __ATOMIC_RELAXED) };
        __atomic_store_n(&set[i].what, next.what, __ATOMIC_RELAXED);
        __atomic_store_n(&set[i].check, next.check, __ATOMIC_RELAXED);
        next = old;
    }
}

static struct held held_by_node(const struct design *d, unsigned node)
{
    const uint64_t fpr = bits_of(d->fpr), who = whose(d, node);
    struct held held;
    if (!recall(fpr, who, &held)) {
        held = compute(d, node);
        remember(fpr, who, &held);
    }
    return held;
}

/* ---- Between the nodes ------------------------------------------------------------------- */

/* Returns what so many lines hold, from the node below and the next one. */
static struct held between(struct held below, uint64_t below_lines, struct held above,
                           uint64_t above_lines, uint64_t lines)
{
    double a_line = below.keys / (double)below_lines;
    const double next = above.keys / (double)above_lines;
    if (above.picks == below.picks)
        a_line += (next - a_line) * (double)(lines - below_lines) /
                  (double)(above_lines - below_lines);
    return (struct held){ .keys = floor(a_line * (double)lines), .picks = below.picks };
}

struct held held_by(const struct design *d, uint64_t lines)
{
    const unsigned node = node_below(lines);
    const uint64_t below = lines_of_node(node);
    struct held held = held_by_node(d, node);
    if (below == lines)
        return held;
    if (node == NODES - 1)
        return between(held, below, (struct held){ 0 }, lines + 1, lines);
    return between(held, below, held_by_node(d, node + 1), lines_of_node(node + 1), lines);
}

/* ---- The fewest lines -------------------------------------------------------------------- */

struct search {
    const struct design *design;
    const struct needed *needed;
};

static double needed_keys(const struct search *s, uint64_t lines, unsigned picks)
{
    return s->needed->keys(s->needed->context, lines, picks);
}

static bool fits(void *search, uint64_t lines)
{
    const struct search *s = search;
    const struct held held = held_by(s->design, lines);
    return held.keys > 0 && held.keys >= needed_keys(s, lines, held.picks);
}

/* A guess of how many lines are enough, from the bits that a key takes in a filter whose lines
 * are all alike. */
static double guess(const struct search *s)
{
    const struct design *d = s->design;
    const double nbits = -log2(d->fpr) / d->bands, size = (double)WORD_NBITS / d->cells;
    const double even = s->needed->about * nbits / LN_2 * size / (WORDS * WORD_NBITS);
    return even + 0.0008 * size * nbits * nbits * even + 0.017 * nbits * nbits * sqrt(even) +
           0.5;
}

/* Narrows down to two neighbouring nodes: *bad is too small, and *good is enough, or NODES.
 * Looks at few nodes on the way, since each may have to be computed: keys a line change little
 * from node to node. */
static void narrow(const struct search *s, unsigned *bad, unsigned *good)
{
    for (double lines = guess(s); *good - *bad > 1;) {
        unsigned node = node_below((uint64_t)fmin(lines, 0x1p40));
        node = node <= *bad ? *bad + 1 : node >= *good ? *good - 1 : node;
        const uint64_t here = lines_of_node(node);
        const struct held held = held_by_node(s->design, node);
        const double keys = held.keys > 0 ? needed_keys(s, here, held.picks) : INFINITY;
        *(held.keys >= keys ? good : bad) = node;
        lines = (double)here * (held.keys > 0 ? keys / held.keys : 2) + 0.99;
    }
}

uint64_t held_fewest_lines(const struct design *d, const struct needed *needed, uint64_t most,
                           unsigned *picks)
{
    struct search s = { d, needed };
    unsigned bad = 0, good = node_below(most) + 1;
    narrow(&s, &bad, &good);
    uint64_t enough = good < NODES && lines_of_node(good) < most ? lines_of_node(good) : most;
    if (!fits(&s, enough))
        return 0;
    const uint64_t lines = sizing_smallest_from(lines_of_node(bad) + 1, enough, fits, &s);
    *picks = held_by(d, lines).picks;
    return lines;
}
