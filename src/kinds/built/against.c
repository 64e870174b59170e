/* against.c - exact where the other side is known: no false positive among the keys that were
 * known not to be listed (Larisch, Choffnes, Levin, Maggs, Mislove, Wilson: CRLite, S&P 2017;
 * here with two layers of retrieval).
 *
 *   parts = a ribbon filter of r bits a key over the listed keys; and one of 1 bit over those
 *           and the others that the first takes for listed: there the others have the wrong bit
 *   body  = one line, of zeros
 *
 * A key is listed if both parts say so.  For a key of neither side the rate is 2^-(r+1).
 * Limits: those of ribbon.
 * Invariant: both parts say so of each listed key, and not both of any of the others. */
#include "against.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../composite/parts.h"
#include "../kinds.h"

static const char *const field_names[] = { "base", "others", "row_bits", NULL };

/* With r bits the first part takes others / 2^r of the others for listed, and each of them
 * takes a bit of the second one.  A bit more halves their number: it is worth its room as long
 * as they are more than twice as many as the listed keys. */
unsigned against_row_bits(uint64_t listed, uint64_t others, double fpr)
{
    const uint64_t usual = 100; /* to each key */
    double ratio = others ? (double)others / (double)listed : (double)usual;
    double least = ceil(log2(ratio)) - 1;
    double asked = ceil(-log2(fpr)) - 1; /* the second part halves the rate */
    return (unsigned)fmin(fmax(fmax(asked, least), 1), 31);
}

static int against_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    uint64_t others = options->against.others;
    if (g->base && g->base != &kind_ribbon)
        return PERHAPS_ERR_ARGUMENT;
    g->base = &kind_ribbon;
    g->field[AGAINST_BASE] = kind_ribbon.id;
    g->field[AGAINST_OTHERS] = others;
    unsigned bits = against_row_bits(g->capacity, others, g->fpr);
    g->field[AGAINST_ROW_BITS] = bits;
    double listed = (double)g->capacity, wrong = (double)others * exp2(-(double)bits);
    if (exp2(-(double)bits) / 2 > g->fpr || g->capacity > UINT64_C(1) << 40)
        return PERHAPS_ERR_LIMIT;
    g->extra_nbytes = (uint64_t)((listed * (bits + 1) + wrong) * 1.005 / 8);
    snprintf(
        why, WHY_NBYTES,
        "no error on both sides: %u bits a key, and 1 bit for each key and each of the others "
        "that look like one",
        bits);
    return 0;
}

static int against_set_geometry(struct geometry *g)
{
    if (g->base != &kind_ribbon || g->field[AGAINST_ROW_BITS] > 32)
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = LINE_NBYTES;
    g->key_limit = g->capacity;
    return 0;
}

static double against_predict(const struct geometry *g, double keys)
{
    (void)keys;
    return exp2(-(double)g->field[AGAINST_ROW_BITS] - 1);
}

static struct fill against_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    const perhaps_filter *first = f->parts->part[0], *second = f->parts->part[1];
    struct fill fill = first->kind->measure(first, most_nbytes);
    fill.fpr *= second->kind->measure(second, most_nbytes).fpr;
    return fill;
}

static int against_attach(perhaps_filter *f)
{
    return parts_attach(f, &kind_ribbon) && f->parts->count == 2 ? 0 : PERHAPS_ERR_DAMAGED;
}

static void against_clear(perhaps_filter *f)
{
    perhaps_clear(f->parts->part[0]);
    perhaps_clear(f->parts->part[1]);
}

static void prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    const perhaps_filter *first = f->parts->part[0];
    first->kind->prefetch(first, keys, n);
}

/* Asks the second part for the keys that the first one has. */
static size_t against_contains(const perhaps_filter *f, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer)
{
    const perhaps_filter *first = f->parts->part[0], *second = f->parts->part[1];
    struct keyhash left[BATCH_MOST];
    bool listed[BATCH_MOST];
    size_t nleft = 0;
    if (!first->kind->contains(first, keys, ahead, n, answer))
        return 0;
    for (size_t i = 0; i < n; i++) {
        left[nleft] = against_second(keys[i]);
        nleft += answer[i];
    }
    second->kind->prefetch(second, left, nleft);
    size_t found = second->kind->contains(second, left, left, nleft, listed);
    for (size_t i = 0, at = 0; i < n; i++)
        answer[i] = answer[i] && listed[at++];
    return found;
}

static struct keyhash hash_for_part(struct keyhash key, size_t i)
{
    return i ? against_second(key) : key;
}

static const struct composite composite = { .base_field = AGAINST_BASE,
                                            .attach = against_attach,
                                            .hash_for_part = hash_for_part };
static const struct builds builds = { 0 }; /* the builder makes the parts */

const struct filter_kind kind_against = {
    .about = { .name = "against",
               .summary =
                   "built once: no error on the keys of a second list, which are not in it",
               .abilities = PERHAPS_CAN_BUILD },
    .id = 11,
    .composite = &composite,
    .field_names = field_names,
    .plan = against_plan,
    .set_geometry = against_set_geometry,
    .clear = against_clear,
    .predict = against_predict,
    .measure = against_measure,
    .prefetch = prefetch,
    .contains = against_contains,
    .builds = &builds,
};
