/* against.c - exact where the other side is known: no false positive among the keys that were
 * known not to be listed (Larisch, Choffnes, Levin, Maggs, Mislove, Wilson: CRLite, S&P 2017;
 * here with two layers of retrieval).
 *
 *   parts = a ribbon filter of r bits a key over the listed keys; and one of 1 bit over those
 *           and the others that the first takes for listed: there the others have the wrong bit
 *   body  = one line, of zeros
 *
 * A key is listed if both parts say so.  For a key of neither side the rate is 2^-(r+1).
 *
 * Keys may have groups, of which some are listed more often than others (Schanck: Clubcards for
 * the WebPKI, S&P 2025; Hamburg, RWC 2022).  Then there is a first part for each r that pays,
 * and in the body a table tells of each group in which part its keys are: those that are
 * listed, or, if these are more, those that are not.  The last part, of 1 bit, is over these
 * keys, and the other side's that the group's first part has by mistake.
 *
 *   body  = one line, of zeros | numbers of groups, sorted, of 4 bytes | their codes, of 1 byte
 *
 * Limits: those of ribbon.
 * Invariant: the last part is right about each key of both lists for which it is asked, and so
 * are the first parts, or the codes, about all others. */
#include "against.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../composite/parts.h"
#include "../kinds.h"

static const char *const field_names[] = { "base",   "others",       "row_bits",
                                           "groups", "other_groups", NULL };

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

static bool has_groups(const struct geometry *g)
{
    return g->field[AGAINST_OTHER_GROUPS] > 0;
}

static int against_set_geometry(struct geometry *g)
{
    const uint64_t groups = g->field[AGAINST_GROUPS];
    if (g->base != &kind_ribbon || g->field[AGAINST_ROW_BITS] > 32 ||
        g->field[AGAINST_OTHER_GROUPS] > UINT8_MAX || groups > UINT32_MAX ||
        (groups && !has_groups(g)))
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = round_up(against_code_at(g, groups), LINE_NBYTES);
    g->key_limit = g->capacity;
    return 0;
}

/* Where no promise was made for keys of neither side, what was asked stands for their rate. */
static double against_predict(const struct geometry *g, double keys)
{
    (void)keys;
    return has_groups(g) && g->fpr > 0.5 ? g->fpr
                                         : exp2(-(double)g->field[AGAINST_ROW_BITS] - 1);
}

static struct fill against_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    const perhaps_filter *first = f->parts->part[0],
                         *last = f->parts->part[f->parts->count - 1];
    struct fill fill = first->kind->measure(first, most_nbytes);
    fill.fpr = has_groups(&f->body.geometry)
                   ? against_predict(&f->body.geometry, 0)
                   : fill.fpr * last->kind->measure(last, most_nbytes).fpr;
    return fill;
}

static int against_attach(perhaps_filter *f)
{
    const size_t count = f->parts->count;
    return parts_attach(f, &kind_ribbon) && (count == 2 || has_groups(&f->body.geometry))
               ? 0
               : PERHAPS_ERR_DAMAGED;
}

static void against_clear(perhaps_filter *f)
{
    struct geometry *g = &f->body.geometry;
    for (size_t i = 0; i < f->parts->count; i++)
        perhaps_clear(f->parts->part[i]);
    memset(f->body.bytes + against_code_at(g, 0), GROUP_NONE, g->field[AGAINST_GROUPS]);
    if (has_groups(g))
        g->field[AGAINST_OTHER_GROUPS] = GROUP_NONE;
}

/* ---- Without groups ---------------------------------------------------------------------- */

/* Which part a key with a group asks first is not known before it is asked. */
static void prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    const perhaps_filter *first = f->parts->part[0];
    if (!has_groups(&f->body.geometry))
        first->kind->prefetch(first, keys, n);
}

/* Asks the second part for the keys that the first one has. */
static size_t contains_plain(const perhaps_filter *f, const struct keyhash *keys,
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

/* ---- With groups ------------------------------------------------------------------------- */

/* Looks for the group by halves, without a branch that its number would mislead. */
unsigned against_code(const perhaps_filter *f, uint32_t group)
{
    const struct geometry *g = &f->body.geometry;
    const uint8_t *bytes = f->body.bytes;
    uint64_t at = 0, n = g->field[AGAINST_GROUPS];
    if (!n)
        return (unsigned)g->field[AGAINST_OTHER_GROUPS];
    while (n > 1) {
        const uint64_t half = n / 2;
        at += load32(bytes + against_number_at(at + half)) <= group ? half : 0;
        n -= half;
    }
    return load32(bytes + against_number_at(at)) == group
               ? bytes[against_code_at(g, at)]
               : (unsigned)g->field[AGAINST_OTHER_GROUPS];
}

/* Asks a part for those of n keys whose 'which' is its number.  Says to each what it says. */
static void ask_some(const perhaps_filter *part, const struct keyhash *keys, size_t n,
                     const uint8_t *which, unsigned number, bool *says)
{
    struct keyhash some[BATCH_STEP];
    uint16_t index[BATCH_STEP];
    bool found[BATCH_STEP];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        some[count] = keys[i];
        index[count] = (uint16_t)i;
        count += which[i] == number;
    }
    if (!count)
        return;
    part->kind->prefetch(part, some, count);
    part->kind->contains(part, some, some, count, found);
    for (size_t i = 0; i < count; i++)
        says[index[i]] = found[i];
}

/* In a file that an enemy wrote a code may be 0, or name a part that is not there. */
void against_ask_first(const perhaps_filter *f, size_t nfirst, const struct keyhash *keys,
                       size_t n, struct against_asked *asked)
{
    uint8_t code[BATCH_STEP], part[BATCH_STEP];
    bool says[BATCH_STEP];
    for (size_t i = 0; i < n; i++) {
        code[i] = (uint8_t)against_code(f, against_group(keys[i]));
        part[i] = (uint8_t)(code[i] / 2); /* from GROUP_PARTS / 2 on */
        asked->mixed[i] = against_mixed(keys[i]);
    }
    memset(says, false, n);
    for (unsigned p = 0; p < nfirst; p++)
        ask_some(f->parts->part[p], asked->mixed, n, part, p + GROUP_PARTS / 2, says);
    for (size_t i = 0; i < n; i++) {
        const bool in_part = code[i] >= GROUP_PARTS;
        asked->open[i] = in_part ? says[i] : code[i] == GROUP_EXACT;
        asked->answer[i] = in_part ? code[i] % 2 : code[i] == GROUP_ALL;
    }
}

/* Asks for up to BATCH_STEP keys. */
static size_t contains_step(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                            bool *answer)
{
    const size_t nfirst = f->parts->count - 1;
    struct against_asked asked;
    struct keyhash last[BATCH_STEP] = { { 0 } };
    uint8_t open[BATCH_STEP];
    size_t found = 0;
    against_ask_first(f, nfirst, keys, n, &asked);
    for (size_t i = 0; i < n; i++) {
        last[i] = against_second(asked.mixed[i]);
        open[i] = asked.open[i];
        answer[i] = asked.answer[i];
    }
    ask_some(f->parts->part[nfirst], last, n, open, true, answer);
    for (size_t i = 0; i < n; i++)
        found += answer[i];
    return found;
}

static size_t contains_grouped(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                               bool *answer)
{
    size_t found = 0;
    for (size_t at = 0; at < n; at += BATCH_STEP)
        found +=
            contains_step(f, keys + at, n - at < BATCH_STEP ? n - at : BATCH_STEP, answer + at);
    return found;
}

static size_t against_contains(const perhaps_filter *f, const struct keyhash *keys,
                               const struct keyhash *ahead, size_t n, bool *answer)
{
    return has_groups(&f->body.geometry) ? contains_grouped(f, keys, n, answer)
                                         : contains_plain(f, keys, ahead, n, answer);
}

/* ---- What is read ------------------------------------------------------------------------ */

/* The table, which is small. */
static void against_reads(const perhaps_filter *f, struct keyhash key, struct reads *r)
{
    const struct geometry *g = &f->body.geometry;
    (void)key;
    if (g->field[AGAINST_GROUPS])
        reads_add(r, LINE_NBYTES, g->body_nbytes - LINE_NBYTES);
}

static bool asks_part(const perhaps_filter *f, size_t i, struct keyhash *key)
{
    const bool groups = has_groups(&f->body.geometry), is_last = i + 1 == f->parts->count;
    const unsigned code = groups ? against_code(f, against_group(*key)) : GROUP_PARTS;
    if (groups)
        *key = against_mixed(*key);
    if (is_last)
        *key = against_second(*key);
    return is_last ? code >= GROUP_EXACT : code / 2 == i + GROUP_PARTS / 2;
}

/* As against_ask_first() and the last part have it. */
static bool joins(const perhaps_filter *f, struct keyhash key, const bool *says)
{
    const size_t nfirst = f->parts->count - 1;
    if (!has_groups(&f->body.geometry))
        return says[0] && says[nfirst];
    const unsigned code = against_code(f, against_group(key));
    const unsigned part = code / 2 - GROUP_PARTS / 2;
    if (code < GROUP_PARTS)
        return code == GROUP_EXACT ? says[nfirst] : code == GROUP_ALL;
    return part < nfirst && says[part] ? says[nfirst] : code % 2;
}

static const struct composite composite = {
    .base_field = AGAINST_BASE, .attach = against_attach, .asks_part = asks_part, .joins = joins
};
static const struct builds builds = { 0 }; /* the builder makes the parts */

const struct filter_kind kind_against = {
    .about = { .name = "against",
               .summary =
                   "built once: no error on the keys of a second list, which are not in it",
               .abilities = PERHAPS_CAN_BUILD },
    .id = 11,
    .composite = &composite,
    .field_names = field_names,
    .packed_fields = AGAINST_GROUPS,
    .plan = against_plan,
    .set_geometry = against_set_geometry,
    .clear = against_clear,
    .predict = against_predict,
    .measure = against_measure,
    .prefetch = prefetch,
    .contains = against_contains,
    .reads = against_reads,
    .builds = &builds,
};
