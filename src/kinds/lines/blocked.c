/* blocked.c - blocked Bloom filter (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient
 * Bloom Filters, WEA 2007): all bits of a key lie in one cache line, or in a few.
 *
 *   body = 'bands' bands of 'band_lines' lines of 64 bytes; a key has one line in each band,
 *          so that its lines always differ.  With the field 'together' set: 'band_lines' blocks
 *          of 'bands' lines; a key has one block, so that one read fetches all its lines.
 *   line = 16 words of 32 bits; a key sets one bit in each of 'line_bits' words:
 *
 *          word  0 1 2 3 4 5 6 7 8 9 a b c d e f     start 2, stride 5, line_bits 4:
 *                . . x . . . . x . . . . x . . .     words 2, 7, 12 and 17 mod 16 = 1
 *                . x . . . . . . . . . . . . . .
 *
 * Limits: 8 bands, 16 bits a line.  The union of two filters is the OR of their bodies.
 * Invariant: all bits of every key that is in are set.  Bits are cleared by perhaps_clear(),
 * and by an intersection, which takes keys out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../base/compiler.h"
#include "../../base/sizing.h"
#include "../cpu/cpu_loops.h"
#include "../kinds.h"
#include "bloom.h"
#include "cells.h"
#include "fold.h"
#include "lines_places.h"
#include "owners.h"
#include <perhaps.h>

static const char *const field_names[] = { "band_lines", "bands", "line_bits", "together",
                                           NULL };

/* ---- Rate and plan --------------------------------------------------------------------- */

static double blocked_predict(const struct geometry *g, double keys)
{
    return lines_predict(g, WORD_NBITS, keys);
}

/* From this fpr on a key has one line: another one saves little, and a filter whose keys have
 * one line has a layout (perhaps_layout.h). */
static const double one_line = 1e-3;

/* Returns how many different keys may be in before the key limit refuses more: the plan keeps
 * the fpr for that many. */
static double keys_held(const struct geometry *g)
{
    return sizing_keys_at_limit(g->capacity, g->fpr);
}

static int blocked_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    g->field[TOGETHER] = options->blocked.together;
    int error = lines_plan(g, WORD_NBITS, one_line, options->preference, keys_held);
    if (error)
        return error;
    unsigned bands = (unsigned)g->field[BANDS];
    g->field[TOGETHER] = options->blocked.together && bands > 1;
    const char *lines = bands == 1           ? "one cache line"
                        : g->field[TOGETHER] ? "cache lines side by side"
                                             : "a few cache lines";
    snprintf(why, WHY_NBYTES, "keys are added and asked, none removed: %u bits in %s, %s",
             (unsigned)g->field[LINE_BITS] * bands, lines,
             options->blocked.together ? "for one read and few bits to set"
                                       : "the fewest memory accesses");
    return 0;
}

static int blocked_set_geometry(struct geometry *g)
{
    if (!lines_in_range(g))
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = lines_nbytes(g);
    return 0;
}

static void blocked_set_limits(struct geometry *g)
{
    g->key_limit = lines_key_limit(g, WORD_NBITS);
}

static struct fill blocked_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    return lines_measure(f, WORD_NBITS, most_nbytes);
}

static double rate_with(const perhaps_filter *f, const struct keyhash *key)
{
    return lines_rate_with(f, *key);
}

static double blocked_counted(const struct geometry *g, double keys)
{
    return lines_counted(g, WORD_NBITS, keys);
}

/* ---- Operations ------------------------------------------------------------------------ */

/* ---- Adds while others write ------------------------------------------------------------- */

/* Sets the bits of a key in a line.  Returns whether all of them were set before. */
static ALWAYS_INLINE bool line_add_atomic(const struct body *b, uint8_t *line, uint64_t mark)
{
    uint32_t *words = (void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    bool all = true;
    for (unsigned i = 0; i < b->geometry.field[LINE_BITS]; i++) {
        uint32_t *at = &words[walk.word];
        uint32_t bit = UINT32_C(1) << blocked_bit(walk.factor, i);
        if (!(__atomic_load_n(at, __ATOMIC_RELAXED) & bit))
            all &= (__atomic_fetch_or(at, bit, __ATOMIC_RELEASE) & bit) != 0;
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return all;
}

size_t blocked_add_atomic(const struct body *b, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer)
{
    return keys_pass(b, keys, ahead, n, answer, line_add_atomic);
}

/* Without writers single keys of a shared filter are added by add(), too: by atomics. */
static void blocked_bind(perhaps_filter *f)
{
    const struct line_loops *lines = cpu_loops[f->cpu].lines;
    f->loops = f->body.geometry.field[BANDS] > 1 ? &lines->several : &lines->one;
    f->adds_at_once = !f->shared || f->body.writers;
    f->body.table = lines_table(f->body.geometry.field[LINE_BITS]);
    if (f->body.writers)
        owners_divide(f->body.writers, f->body.geometry.field[BAND_LINES]);
}

static size_t blocked_writers_nbytes(const struct geometry *g)
{
    return g->field[TOGETHER] ? 0 : sizeof(struct owners); /* atomic adds need no owners */
}

/* Lets all lines of n keys wait.  Lines of different bands may have the same lock. */
static ALWAYS_INLINE void put_lines(struct waiting *w, uint64_t lines, uint64_t bands,
                                    const struct keyhash *keys, size_t n)
{
    const struct owners *owners = w->owners;
    for (size_t i = 0; i < n; i++) {
        struct keyhash key = keys[i];
        for (uint64_t band = 0; band < bands; band++) {
            uint64_t line = scale64(key.place, lines);
            struct found found = { .offset = (band * lines + line) * LINE_NBYTES,
                                   .mark = (key.mark & ~(uint64_t)FOUND_INDEX) | i };
            waiting_put(w, owners_region(owners, line), found);
            key = blocked_next_band(key);
        }
    }
}

/* Adds a key, which needs no sorting and was counted, in several threads. */
static void blocked_add_one(perhaps_filter *f, struct keyhash key, bool *answer)
{
    *answer = f->loops->add_one_shared(&f->body, key, NULL, 0) == SHARED_PRESENT;
}

/* Adds keys in several threads. */
static void add_sorted(perhaps_filter *f, const struct keyhash *keys, size_t n, bool *answer)
{
    const uint64_t *field = f->body.geometry.field;
    struct waiting w;
    waiting_begin(&w, f, cpu_loops[f->cpu].lines->add_found, n, answer);
    if (field[BANDS] == 1)
        put_lines(&w, field[BAND_LINES], 1, keys, n);
    else
        put_lines(&w, field[BAND_LINES], field[BANDS], keys, n);
    waiting_end(&w);
}

static int blocked_add(perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                       size_t *done)
{
    (void)unless_present; /* adding a key that is there changes nothing */
    if (!f->body.writers)
        (f->shared ? blocked_add_atomic : f->loops->add)(&f->body, keys, ahead, n, answer);
    else if (n == 1)
        blocked_add_one(f, *keys, answer);
    else if (!owners_add_alone(f, keys, n, answer))
        add_sorted(f, keys, n, answer);
    *done = n;
    return 0;
}

/* perhaps_layout.h promises these to users. */
_Static_assert(LINE_NBYTES == PERHAPS_LINE_NBYTES, "as the header says");
_Static_assert(LINES_BANDS_MAX *LINE_WORDS <= PERHAPS_BITS_MAX, "as the header says");

/* ---- Layouts ----------------------------------------------------------------------------- */

/* The operations of struct places, for filters whose bytes lie elsewhere (perhaps_layout.h). */

static bool in_blocks(const struct geometry *g)
{
    return g->field[BANDS] == 1 || g->field[TOGETHER];
}

/* Finds the same bits as the loops, by the same walk. */
static void locate(const struct geometry *g, struct keyhash key, struct perhaps_bits *bits)
{
    unsigned line_bits = (unsigned)g->field[LINE_BITS], line_nbits = LINE_WORDS * WORD_NBITS;
    uint16_t *bit = bits->bit;
    bits->block = scale64(key.place, g->field[BAND_LINES]);
    bits->nlines = (unsigned)g->field[BANDS];
    bits->nbits = bits->nlines * line_bits;
    for (unsigned line = 0; line < bits->nlines; line++) {
        struct blocked_walk walk = blocked_walk_start(key.mark);
        for (unsigned i = 0; i < line_bits; i++) {
            unsigned in_line = walk.word * WORD_NBITS + blocked_bit(walk.factor, i);
            *bit++ = (uint16_t)(line * line_nbits + in_line);
            walk.word = (walk.word + walk.stride) % LINE_WORDS;
        }
        key = blocked_next_band(key);
    }
}

/* Each bit of the body is one of a key's bits with the same chance, since a walk begins at any
 * word, and keys are independent.  So the share of clear bits after n keys is (1 - chance)^n,
 * which is solved for n here. */
static double keys_from_load(const struct geometry *g, double load)
{
    double line_nbits = LINE_WORDS * WORD_NBITS;
    double chance = (double)g->field[LINE_BITS] / line_nbits / (double)g->field[BAND_LINES];
    return log1p(-load) / log1p(-chance);
}

static const struct places places = {
    .in_blocks = in_blocks,
    .locate = locate,
    .keys_from_load = keys_from_load,
};

/* ---- Two filters, and a smaller one ------------------------------------------------------ */

static uint64_t blocked_capacity(const struct geometry *g)
{
    return lines_capacity(g, WORD_NBITS, keys_held);
}

static void blocked_fold(const struct geometry *g, enum cpu cpu, const uint8_t *from,
                         uint8_t *to, uint64_t nbytes, uint64_t factor)
{
    uint64_t unit_nbytes = lines_unit_nbytes(g);
    fold_units(cpu, from, to, nbytes / unit_nbytes, unit_nbytes, factor);
}

static void blocked_look(const struct geometry *g, enum cpu cpu, const uint8_t *bytes,
                         uint64_t nbytes, struct folded *folded)
{
    lines_look(g, WORD_NBITS, cpu, bytes, nbytes, folded);
}

static const struct folds folds = {
    .units = lines_units,
    .divide = lines_divide,
    .capacity = blocked_capacity,
    .fold = blocked_fold,
    .unit_nbytes = lines_unit_nbytes,
    .look = blocked_look,
    .rate = lines_folded_rate,
};

static int blocked_merge(perhaps_filter *f, const perhaps_filter *other)
{
    bloom_unite(f, other);
    return 0;
}

static void blocked_picking(const struct geometry *g, struct picking *m)
{
    lines_picking(g, WORD_NBITS, m);
}

static void blocked_count_picked(const perhaps_filter *a, uint64_t a_factor,
                                 const perhaps_filter *b, uint64_t b_factor,
                                 struct picked *picked)
{
    cells_count_smaller(a, a_factor, b, b_factor, 1, picked);
}

static const struct compares compares = { .picking = blocked_picking,
                                          .count = blocked_count_picked };

const struct filter_kind kind_blocked = {
    .about = { .name = "blocked",
               .summary = "blocked Bloom filter: the fastest to add and ask; keys stay",
               .abilities = PERHAPS_CAN_MERGE | PERHAPS_CAN_SHARE | PERHAPS_CAN_THREADS },
    .id = 1,
    .field_names = field_names,
    .plan = blocked_plan,
    .set_geometry = blocked_set_geometry,
    .set_limits = blocked_set_limits,
    .predict = blocked_predict,
    .measure = blocked_measure,
    .rate_with = rate_with,
    .counted = blocked_counted,
    .bind = blocked_bind,
    .writers_nbytes = blocked_writers_nbytes,
    .settle = owners_settle,
    .sorts_shared = true,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = lines_reads,
    .answer = lines_answer,
    .add = blocked_add,
    .merge = blocked_merge,
    .intersect = bloom_intersect,
    .places = &places,
    .folds = &folds,
    .compares = &compares,
};
