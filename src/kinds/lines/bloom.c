/* bloom.c - classic Bloom filter (Bloom: Space/Time Trade-offs in Hash Coding with Allowable
 * Errors, CACM 1970).
 *
 *   body = nbits bits, bit i being bit i mod 8 of byte i / 8; a key sets 'key_bits' of them,
 *          anywhere.
 *
 * Of the kinds that only add, it takes the fewest bits and the most memory accesses.
 * Limits: 64 bits a key.  The union of two filters is the OR of their bodies.
 * Invariant: all bits of every added key are set; only perhaps_clear() clears bits. */
#include "bloom_bits.h"

#include <math.h>
#include <stdio.h>

#include "../../base/sample.h"
#include "../../base/sizing.h"
#include "../../filter/counted.h"
#include "../cpu/cpu_loops.h"
#include "../kinds.h"
#include "cells.h"
#include "fold.h"
#include "owners.h"

static const char *const field_names[] = { "nbits", "key_bits", NULL };

/* A plan has whole units of one cache line. */
enum { KEY_BITS_MAX = 64, UNIT_NBITS = 512 };

/* Returns the mean of X^k, where X is the share of bits set and k the bits of a key, to the
 * second order in the deviation of X. */
static double bloom_predict(const struct geometry *g, double keys)
{
    double bits = (double)g->field[KEY_BITS];
    struct occupancy set = sizing_occupancy((double)g->field[NBITS], bits * keys);
    if (set.mean <= 0)
        return 0;
    double relative = set.variance / (set.mean * set.mean);
    return fmin(pow(set.mean, bits) * (1 + bits * (bits - 1) / 2 * relative), 1);
}

/* Checks whether so many units keep the fpr for all seeds but one in 10^9.  Only the number of
 * set bits differs from seed to seed, so its mean and SIZING_DEVIATIONS deviations decide. */
static bool fits(void *context, uint64_t units)
{
    struct geometry *g = context;
    double bits = (double)g->field[KEY_BITS], nbits = (double)units * (double)UNIT_NBITS;
    g->field[NBITS] = units * UNIT_NBITS;
    if (bits == 1)
        return sizing_one_cell_fits(nbits, g->capacity, g->fpr);
    struct occupancy set =
        sizing_occupancy(nbits, bits * sizing_keys_at_limit(g->capacity, g->fpr));
    return pow(set.mean + SIZING_DEVIATIONS * sqrt(set.variance), bits) <= g->fpr;
}

/* Tries the textbook number of bits a key, -log2(fpr), and two fewer and more: with the room
 * that fits() adds, a neighbour sometimes takes less memory. */
static int bloom_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    (void)options;
    uint64_t best = 0, best_bits = 0;
    double usual = round(-log2(g->fpr));
    uint64_t least = (uint64_t)fmax(usual - 2, 1);
    uint64_t most = (uint64_t)fmin(usual + 2, KEY_BITS_MAX);
    if (g->fpr >= ONE_CELL_FPR)
        least = most = 1;
    for (uint64_t bits = least; bits <= most; bits++) {
        struct geometry trial = *g;
        trial.field[KEY_BITS] = bits;
        uint64_t units = sizing_smallest(g->capacity + 4096, fits, &trial);
        if (units && (!best || units < best)) {
            best = units;
            best_bits = bits;
        }
    }
    if (!best)
        return PERHAPS_ERR_LIMIT;
    g->field[NBITS] = fold_round_up(best) * UNIT_NBITS;
    g->field[KEY_BITS] = best_bits;
    snprintf(
        why, WHY_NBYTES,
        "fewest bits of the kinds that only add: %u bits anywhere, up to %u accesses a key",
        (unsigned)best_bits, (unsigned)best_bits);
    return 0;
}

static double rate_at(void *context, double keys)
{
    return bloom_predict(context, keys);
}

static double bloom_counted(const struct geometry *g, double keys)
{
    struct geometry copy = *g;
    if (g->field[KEY_BITS] == 1)
        return bloom_predict(g, keys) * (double)g->field[NBITS];
    return sizing_counted(keys, rate_at, &copy);
}

static int bloom_set_geometry(struct geometry *g)
{
    uint64_t nbits = g->field[NBITS];
    uint64_t bits = g->field[KEY_BITS];
    if (nbits < 1 || nbits > UINT64_MAX / 2 || bits < 1 || bits > KEY_BITS_MAX)
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = round_up((nbits + 7) / 8, UNIT_NBITS / 8);
    return 0;
}

static void bloom_set_limits(struct geometry *g)
{
    g->key_limit = g->field[KEY_BITS] == 1
                       ? sizing_one_cell_limit((double)g->field[NBITS], g->fpr)
                       : sizing_key_limit(g->capacity, g->fpr, rate_at, g);
}

/* Returns how many bits of one line are set.  Other threads may add meanwhile. */
static unsigned line_set(const uint8_t *line)
{
    const uint32_t *words = (const void *)line;
    unsigned set = 0;
    for (unsigned w = 0; w < LINE_WORDS; w++)
        set += bits_set32(__atomic_load_n(&words[w], __ATOMIC_RELAXED));
    return set;
}

/* Returns the share of bits that are set.  If the body ends in bits that belong to no key
 * (a planned filter has none), they count as clear. */
static double share_set(const perhaps_filter *f, uint64_t most_nbytes)
{
    double ones = 0, cells = 0;
    for (struct sample s = sample_begin(f->body.geometry.body_nbytes, most_nbytes);
         sample_next(&s);) {
        for (uint64_t at = s.offset; at < s.end; at += LINE_NBYTES)
            ones += line_set(f->body.bytes + at);
        cells += 8.0 * (double)(s.end - s.offset);
    }
    return ones / cells;
}

static double rate_with(const perhaps_filter *f, const struct keyhash *key)
{
    const struct geometry *g = &f->body.geometry;
    double ones = round(share_set(f, UINT64_MAX) * 8.0 * (double)g->body_nbytes);
    uint64_t place = key->place;
    for (uint64_t i = 0; i < g->field[KEY_BITS]; i++) {
        uint64_t bit = scale64(place, g->field[NBITS]);
        uint8_t byte = __atomic_load_n(&f->body.bytes[bit / 8], __ATOMIC_RELAXED);
        ones += !(byte >> bit % 8 & 1);
        place = bloom_next_place(place, key->mark);
    }
    return pow(fmin(ones / (double)g->field[NBITS], 1), (double)g->field[KEY_BITS]);
}

static struct fill bloom_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    double load = share_set(f, most_nbytes);
    return (struct fill){ .load = load,
                          .fpr = pow(load, (double)f->body.geometry.field[KEY_BITS]) };
}

static size_t bloom_writers_nbytes(const struct geometry *g)
{
    (void)g;
    return sizeof(struct owners);
}

/* Adds keys in several threads. */
static void add_sorted(perhaps_filter *f, const struct keyhash *keys, size_t n, bool *answer)
{
    const uint64_t *field = f->body.geometry.field;
    struct waiting w;
    waiting_begin(&w, f, bloom_add_found, n, answer);
    for (size_t i = 0; i < n; i++) {
        uint64_t place = keys[i].place;
        for (uint64_t k = 0; k < field[KEY_BITS]; k++) {
            uint64_t bit = scale64(place, field[NBITS]);
            struct found found = { .offset = bit / 8, .mark = (bit % 8) << 32 | i };
            waiting_put(&w, owners_region(w.owners, found.offset), found);
            place = bloom_next_place(place, keys[i].mark);
        }
    }
    waiting_end(&w);
}

/* Looks first, since most bits of a filled body are set already and an atomic operation is
 * expensive. */
static ALWAYS_INLINE uint32_t bloom_word_add_atomic(uint32_t *word, uint32_t mask)
{
    uint32_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    return before & mask ? before : __atomic_fetch_or(word, mask, __ATOMIC_RELEASE);
}

size_t bloom_add_atomic(const struct body *b, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool *answer)
{
    return bloom_add_all(b, keys, ahead, n, answer, bloom_word_add_atomic);
}

/* Without writers single keys of a shared filter are added by add(), too: by atomics. */
static void bloom_bind(perhaps_filter *f)
{
    f->loops = cpu_loops[f->cpu].bloom;
    f->adds_at_once = !f->shared || f->body.writers;
    if (f->body.writers) /* regions are of whole bytes: two threads must not write one byte */
        owners_divide(f->body.writers, f->body.geometry.body_nbytes);
}

static int bloom_add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                     size_t n, bool unless_present, bool *answer, size_t *done)
{
    (void)unless_present; /* adding a key that is there changes nothing */
    if (!f->body.writers)
        (f->shared ? bloom_add_atomic : f->loops->add)(&f->body, keys, ahead, n, answer);
    else if (!owners_add_alone(f, keys, n, answer))
        add_sorted(f, keys, n, answer);
    *done = n;
    return 0;
}

static void bloom_reads(const perhaps_filter *f, struct keyhash key, struct reads *r)
{
    const uint64_t *field = f->body.geometry.field;
    for (uint64_t i = 0; i < field[KEY_BITS]; i++) {
        reads_add(r, scale64(key.place, field[NBITS]) / 8, 1);
        key.place = bloom_next_place(key.place, key.mark);
    }
}

static bool bloom_answer(const perhaps_filter *f, struct keyhash key,
                         const uint8_t *const *bytes)
{
    const uint64_t *field = f->body.geometry.field;
    unsigned all = 1;
    for (uint64_t i = 0; i < field[KEY_BITS]; i++) {
        all &= (unsigned)*bytes[i] >> scale64(key.place, field[NBITS]) % 8;
        key.place = bloom_next_place(key.place, key.mark);
    }
    return all & 1;
}

/* Sets the count of the union from all of its bits. */
void bloom_unite(perhaps_filter *f, const perhaps_filter *other)
{
    const double one = filter_different(f), two = filter_different(other);
    struct picked both = { 0 };
    uint64_t nbytes = f->body.geometry.body_nbytes;
    for (uint64_t at = 0; at < nbytes; at += sizeof(uint64_t))
        store64(f->body.bytes + at,
                load64(f->body.bytes + at) | load64(other->body.bytes + at));
    cells_count(f, f, nbytes, &both);
    filter_count_union(f, one, two, both.a);
}

/* A filter that has as many bits by its keys has at least the fpr of this one: the lines of a
 * key are full where many keys met by chance, and here two sets of keys must have met.  The
 * count is at most the smaller of the two counts: what the result takes, each of the two would
 * have taken, too, and would have kept the fpr with more bits. */
void bloom_intersect(perhaps_filter *f, const perhaps_filter *other)
{
    const uint64_t one = f->counters->keys, two = other->counters->keys;
    struct picked left = { 0 };
    cells_keep_common(f, other);
    cells_count(f, f, f->body.geometry.body_nbytes, &left);
    filter_count_common(f, one < two ? one : two, left.a);
}

static int bloom_merge(perhaps_filter *f, const perhaps_filter *other)
{
    bloom_unite(f, other);
    return 0;
}

/* A key sets its bits one by one, each anywhere: so of two given bits each leaves both alone
 * with the chance 1 - 2/nbits. */
static void bloom_picking(const struct geometry *g, struct picking *m)
{
    double nbits = (double)g->field[NBITS], bits = (double)g->field[KEY_BITS];
    *m = (struct picking){
        .cells = nbits,
        .chance = -expm1(bits * log1p(-1 / nbits)),
        .ngroups = 1,
        .group = { { .cells = nbits - 1,
                     .together = expm1(bits * log1p(-pow(nbits - 1, -2))) } },
    };
}

static void bloom_count_picked(const perhaps_filter *a, uint64_t a_factor,
                               const perhaps_filter *b, uint64_t b_factor,
                               struct picked *picked)
{
    cells_count_smaller(a, a_factor, b, b_factor, 1, picked);
}

static const struct compares compares = { .picking = bloom_picking,
                                          .count = bloom_count_picked };

/* ---- A smaller filter -------------------------------------------------------------------- */

/* Only whole lines are joined: a body that ends in bits of no key would count them as clear. */
static uint64_t units(const struct geometry *g)
{
    return g->field[NBITS] % UNIT_NBITS ? 1 : g->field[NBITS] / UNIT_NBITS;
}

static void divide(struct geometry *g, uint64_t factor)
{
    g->field[NBITS] /= factor;
}

/* A capacity that is tried. */
static bool does_not_fit(void *context, uint64_t tried)
{
    struct geometry g = *(const struct geometry *)context;
    g.capacity = tried;
    return !fits(&g, g.field[NBITS] / UNIT_NBITS);
}

static uint64_t bloom_capacity(const struct geometry *g)
{
    struct geometry trial = *g;
    uint64_t too_many = sizing_smallest(PERHAPS_CAPACITY_MAX, does_not_fit, &trial);
    return too_many ? too_many - 1 : PERHAPS_CAPACITY_MAX;
}

static void bloom_fold(const struct geometry *g, enum cpu cpu, const uint8_t *from, uint8_t *to,
                       uint64_t nbytes, uint64_t factor)
{
    (void)g;
    fold_bits(cpu, from, to, nbytes, factor);
}

static void bloom_look(const struct geometry *g, enum cpu cpu, const uint8_t *bytes,
                       uint64_t nbytes, struct folded *folded)
{
    (void)g;
    folded->nbytes += nbytes;
    folded->picked += fold_count_bits(cpu, bytes, nbytes);
}

/* All units are whole lines, so all bits of the body belong to keys. */
static double folded_rate(const struct geometry *g, const struct folded *folded)
{
    double load = (double)folded->picked / (8.0 * (double)folded->nbytes);
    return pow(load, (double)g->field[KEY_BITS]);
}

static uint64_t unit_nbytes(const struct geometry *g)
{
    (void)g;
    return UNIT_NBITS / 8;
}

static const struct folds folds = {
    .units = units,
    .divide = divide,
    .capacity = bloom_capacity,
    .fold = bloom_fold,
    .unit_nbytes = unit_nbytes,
    .look = bloom_look,
    .rate = folded_rate,
};

const struct filter_kind kind_bloom = {
    .about = { .name = "bloom",
               .summary = "classic Bloom filter: fewest bits, a memory access for every bit",
               .abilities = PERHAPS_CAN_MERGE | PERHAPS_CAN_SHARE | PERHAPS_CAN_THREADS },
    .id = 2,
    .field_names = field_names,
    .plan = bloom_plan,
    .set_geometry = bloom_set_geometry,
    .set_limits = bloom_set_limits,
    .predict = bloom_predict,
    .measure = bloom_measure,
    .rate_with = rate_with,
    .counted = bloom_counted,
    .bind = bloom_bind,
    .writers_nbytes = bloom_writers_nbytes,
    .settle = owners_settle,
    .sorts_shared = true,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = bloom_reads,
    .answer = bloom_answer,
    .add = bloom_add,
    .merge = bloom_merge,
    .intersect = bloom_intersect,
    .folds = &folds,
    .compares = &compares,
};
