/* api_whole.c - the calls of api_fuzz.c that change or compare whole filters. */
#include <math.h>

#include "api_fuzz.h"
#include <perhaps_window.h>

/* ---- The whole filter -------------------------------------------------------------------- */

void op_clear(struct play *p)
{
    must(!perhaps_clear(p->side[0].f));
    subject_empty(&p->side[0]);
    subject_check(&p->side[0], false);
}

/* Makes the other filter a copy of this one. */
void op_clone(struct play *p)
{
    perhaps_filter *copy;
    int error = perhaps_clone(p->side[0].f, &copy);
    must_work(&p->side[0], error);
    must(!error == !!copy);
    if (error)
        return;
    must(perhaps_memory_nbytes(copy) <= perhaps_memory_nbytes(p->side[0].f));
    perhaps_free(p->side[1].f);
    subject_take(&p->side[1], &p->side[0], copy);
    must(perhaps_equal(p->side[0].f, copy));
    subject_check(&p->side[1], false);
}

void op_swap(struct play *p)
{
    static struct subject first;
    first = p->side[0];
    p->side[0] = p->side[1];
    p->side[1] = first;
}

void op_relocate(struct play *p)
{
    struct subject *s = &p->side[0];
    struct digest before = digest_of(s->f);
    perhaps_relocate(&s->f, ledger_move, &p->ledger);
    must(same_digest(before, digest_of(s->f)));
    subject_check(s, false);
}

static void check_estimate(const struct perhaps_estimate *e)
{
    must(e->value >= 0 && e->error >= 0);
}

void op_stats(struct play *p)
{
    const struct subject *s = &p->side[0];
    struct perhaps_stats stats, part;
    size_t parts = 0;
    perhaps_stats_of(s->f, &stats);
    must(stats.keys == s->f->counters->keys ||
         (stats.keys_estimated && stats.keys < s->f->counters->keys));
    must(stats.load >= 0 && stats.load <= 1 && stats.fpr_now >= 0 && stats.fpr_now <= 1);
    must(stats.plan.fpr_predicted <= stats.plan.fpr * (1 + 1e-9) || s->is_foreign);
    must(!s->is_new || stats.fpr_now == 0);
    must(stats.fpr_now <= stats.plan.fpr * (1 + 1e-9) || s->is_crafted || s->f->kind->grows);
    must(!stats.mapped && !strcmp(stats.plan.kind, perhaps_kind_of(s->f)->name));
    while (perhaps_part(s->f, parts, &part))
        parts++;
    must(parts == stats.parts);
    double fpr = perhaps_predict_fpr(s->f, take(p));
    must(fpr >= 0 && fpr <= 1);
}

/* ---- Two filters ------------------------------------------------------------------------- */

/* Returns whether two filters of the plan may differ in their geometry. */
static bool may_mismatch(const struct play *p)
{
    return p->side[0].is_foreign || p->side[1].is_foreign || p->side[0].f->kind->grows;
}

/* Takes the longer crowd of two: what else is in is not asked for any more. */
static void unite_models(struct subject *s, const struct subject *other)
{
    bool copies = stores_copies(s->f);
    for (unsigned i = 0; i < MODEL_KEYS; i++)
        s->copies[i] =
            copies ? s->copies[i] + other->copies[i] : s->copies[i] | other->copies[i];
    if (other->crowd_to - other->crowd_from > s->crowd_to - s->crowd_from) {
        s->crowd_from = other->crowd_from;
        s->crowd_to = other->crowd_to;
    }
    s->stored = copies ? s->stored + other->stored : s->f->counters->keys;
    s->is_new &= other->is_new;
    s->is_estimate |= other->is_estimate;
    s->is_foreign |= other->is_foreign;
    s->is_loose = true;
}

void op_merge(struct play *p)
{
    struct subject *s = &p->side[0], *other = &p->side[1];
    struct digest before = digest_of(s->f), others = digest_of(other->f);
    if (s->stored + other->stored > UINT32_MAX) /* copies of copies */
        return;
    int error = perhaps_merge(s->f, other->f);
    must(same_digest(others, digest_of(other->f)));
    if (!error) {
        must(s->f->kind->merge);
        unite_models(s, other);
    } else {
        must(same_digest(before, digest_of(s->f)));
        must((error == PERHAPS_ERR_UNSUPPORTED) == !s->f->kind->merge);
        must(error != PERHAPS_ERR_MISMATCH || may_mismatch(p));
        must(error != PERHAPS_ERR_MEMORY || p->ledger.failed);
        must(error == PERHAPS_ERR_UNSUPPORTED || error == PERHAPS_ERR_MISMATCH ||
             error == PERHAPS_ERR_MEMORY || error == PERHAPS_ERR_FULL ||
             (error == PERHAPS_ERR_COPIES && stores_copies(s->f)));
    }
    subject_check(s, false);
}

static void intersect_models(struct subject *s, const struct subject *other)
{
    for (unsigned i = 0; i < MODEL_KEYS; i++)
        if (s->copies[i] > other->copies[i])
            s->copies[i] = other->copies[i];
    if (s->crowd_from < other->crowd_from)
        s->crowd_from = other->crowd_from;
    if (s->crowd_to > other->crowd_to)
        s->crowd_to = other->crowd_to;
    if (s->crowd_from > s->crowd_to)
        s->crowd_from = s->crowd_to = 0;
    s->stored = s->f->counters->keys;
    s->is_new |= other->is_new;
    s->is_estimate = s->is_loose = true;
}

void op_intersect(struct play *p)
{
    struct subject *s = &p->side[0], *other = &p->side[1];
    struct digest before = digest_of(s->f), others = digest_of(other->f);
    uint64_t keys = s->f->counters->keys, other_keys = other->f->counters->keys;
    int error = perhaps_intersect(s->f, other->f);
    must(same_digest(others, digest_of(other->f)));
    if (!error) {
        intersect_models(s, other);
        must(s->stored <= (keys < other_keys ? keys : other_keys) || s->is_crafted);
    } else {
        must(same_digest(before, digest_of(s->f)));
        must(error == (s->f->kind->intersect ? PERHAPS_ERR_MISMATCH : PERHAPS_ERR_UNSUPPORTED));
        must(error != PERHAPS_ERR_MISMATCH || may_mismatch(p));
    }
    subject_check(s, false);
}

static void check_exact(const struct play *p, const struct perhaps_comparison *result)
{
    uint64_t a = 0, b = 0, both = 0;
    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        a += p->side[0].copies[i];
        b += p->side[1].copies[i];
        both += p->side[0].copies[i] & p->side[1].copies[i];
    }
    must(result->a.value == (double)a && result->b.value == (double)b);
    must(result->both.value == (double)both && result->both.error == 0);
    must(result->either.value == (double)(a + b - both));
}

void op_compare(struct play *p)
{
    const perhaps_filter *f = p->side[0].f, *other = p->side[1].f;
    struct perhaps_comparison result;
    int error = perhaps_compare(f, other, &result);
    if (error) {
        must(error == (f->kind->compares ? PERHAPS_ERR_MISMATCH : PERHAPS_ERR_UNSUPPORTED));
        must(error != PERHAPS_ERR_MISMATCH || may_mismatch(p));
        return;
    }
    check_estimate(&result.a);
    check_estimate(&result.b);
    check_estimate(&result.either);
    check_estimate(&result.both);
    check_estimate(&result.a_in_b);
    check_estimate(&result.b_in_a);
    check_estimate(&result.jaccard);
    must(result.both.value <= fmin(result.a.value, result.b.value) * (1 + 1e-9));
    must(perhaps_equal(f, other) == same_digest(digest_of(f), digest_of(other)));
    if (f->kind->exact)
        check_exact(p, &result);
}

/* ---- Windows ----------------------------------------------------------------------------- */

void op_rotate(struct play *p)
{
    struct subject *s = &p->side[0];
    int error = perhaps_rotate(s->f);
    must(error == (s->f->kind->forgets ? 0 : PERHAPS_ERR_UNSUPPORTED));
    if (!error)
        subject_rotated(s, 1);
    subject_check(s, false);
}

/* Returns a time: later than the last one, at the end of all times, or earlier. */
static uint64_t take_time(struct play *p)
{
    unsigned byte = take(p);
    if (byte == 255)
        return UINT64_MAX;
    return byte == 254 ? p->now / 2 : (p->now += byte);
}

/* Notes how many generations must have begun, by the promise of perhaps_advance(). */
static void note_time(struct subject *s, uint64_t now, uint64_t period)
{
    uint64_t most = s->f->parts->count;
    if (!s->knows_time)
        s->began = now;
    s->knows_time = true;
    uint64_t periods = now > s->began ? (now - s->began) / period : 0;
    s->began += periods * period;
    subject_rotated(s, periods < most ? periods : most);
}

/* Brings the time back, or finds that a time is too far ahead of a clock. */
void op_set_back(struct play *p)
{
    enum { GENERATIONS, PERIOD_TIME = 3 }; /* the numbers of the fields */
    struct subject *s = &p->side[0];
    uint64_t now = take_time(p), period = s->f->body.geometry.field[PERIOD_TIME];
    bool by_time = s->f->kind->forgets && period;
    must(perhaps_set_back(s->f, now) == (by_time ? 0 : PERHAPS_ERR_UNSUPPORTED));
    if (by_time && s->knows_time && now < s->began)
        s->began = now;
    uint64_t whole = by_time ? period * (s->f->body.geometry.field[GENERATIONS] - 1) : 0;
    if (by_time && whole < UINT64_MAX - s->began)
        must(perhaps_advance_unless_ahead(s->f, s->began + whole + 1, s->began) ==
             PERHAPS_ERR_AHEAD);
    subject_check(s, false);
}

void op_advance(struct play *p)
{
    enum { PERIOD_TIME = 3 }; /* the number of the field */
    struct subject *s = &p->side[0];
    static bool at[MODEL_KEYS], then[MODEL_KEYS];
    struct perhaps_keys keys = perhaps_keys_each(s->universe->key, MODEL_KEYS);
    uint64_t now = take_time(p), period = s->f->body.geometry.field[PERIOD_TIME];
    bool by_time = s->f->kind->forgets && period;
    size_t found = perhaps_contains_many_at(s->f, &keys, now, at);
    must(perhaps_advance(s->f, now) == (by_time ? 0 : PERHAPS_ERR_UNSUPPORTED));
    must(perhaps_contains_many(s->f, &keys, then) == found);
    must(!memcmp(at, then, sizeof at));
    if (by_time)
        note_time(s, now, period);
    subject_check(s, false);
}
