/* add.c - keys, a chunk at a time, and all layers.
 *
 * Room is reserved before keys are added, and what was not needed is given back after, also
 * after an error: so many clients at once never put more keys into a layer than it was planned
 * for, and one that dies leaves a layer that is full a little early.
 *
 * A layer that is full stays as it is, but for those who do not know yet that there is a newer
 * one.  They find out when they give back.  What they took for new is then added to the newer
 * layer, too, and is new only if it is there: of two clients that added one key to two layers,
 * one meets the other's there.  Whoever knows of the newer layer asks the older ones first. */
#include <string.h>

#include "layers.h"
#include "work.h"

/* ---- Asking ---------------------------------------------------------------------------- */

/* Asks the layers from number 'from' up to and without 'to', the newest first, and those that
 * have become ready since if it is the newest that 'to' stands behind. */
static int ask_layers(perhaps_cluster *c, unsigned from, unsigned to, bool *changed)
{
    struct work *w = c->work;
    int error = 0;
    *changed = false;
    for (unsigned i = to; i > from && w->npending && !error; i--) {
        bool newer;
        error = work_ask(c, &c->layer[i - 1], &newer);
        *changed |= newer;
    }
    return error;
}

static int ask_chunk(perhaps_cluster *c)
{
    unsigned from = 0;
    bool changed = true;
    int error = 0;
    while (changed && !error) {
        unsigned to = c->nlayers;
        error = ask_layers(c, from, to, &changed);
        changed &= c->work->npending > 0;
        if (!error && changed)
            error = layers_renew(c);
        changed &= c->nlayers > to;
        from = to;
    }
    return error;
}

static int check_open(perhaps_cluster *c)
{
    return c->open || c->address.redisson
               ? 0
               : cluster_fail(c, PERHAPS_ERR_ARGUMENT, "is not open");
}

/* Up to and without a key that the hash does not take, unless it is the first. */
static size_t chunk_size(const perhaps_cluster *c, const struct perhaps_keys *keys, size_t at)
{
    size_t left = keys->count - at, n = 1;
    if (left > CHUNK_KEYS)
        left = CHUNK_KEYS;
    if (c->about.hash != PERHAPS_HASH_NONE || !keys->each)
        return left;
    while (n < left && keys->each[at + n].nbytes == PERHAPS_HASH_NBYTES)
        n++;
    return n;
}

int perhaps_cluster_contains_many(perhaps_cluster *c, const struct perhaps_keys *keys,
                                  bool *present, size_t *npresent)
{
    size_t found = 0, n;
    int error = check_open(c);
    if (!error && c->address.redisson)
        return foreign_contains(c, keys, present, npresent);
    for (size_t at = 0; at < keys->count && !error; at += n) {
        n = chunk_size(c, keys, at);
        error = work_begin(c, keys, at, n);
        if (!error)
            error = ask_chunk(c);
        for (size_t i = 0; i < n && !error; i++) {
            present[at + i] = c->work->answer[i] == PRESENT;
            found += present[at + i];
        }
    }
    if (npresent)
        *npresent = error ? 0 : found;
    return error;
}

/* ---- Reserving ------------------------------------------------------------------------- */

struct reserving {
    perhaps_cluster *c;
    unsigned layer;
    long long held;   /* of what the layer counts, so much is ours */
    long long change; /* that is under way */
    unsigned nwritten;
    bool counted, doubted; /* it was done; nobody knows whether it was */
    long long keys;        /* after it */
    bool changed;          /* there is a newer layer */
};

/* Giving back is not repeated where it may have been done: better too few than too many. */
static void write_reserving(void *context, size_t i, struct resp *out)
{
    struct reserving *r = context;
    char field[FIELD_NBYTES], number[24];
    if (i == 0) {
        bool repeats = r->nwritten++ && r->change < 0;
        description_field(field, "keys", r->layer);
        snprintf(number, sizeof number, "%lld", repeats ? 0 : r->change);
        resp_command(out, 4, 128);
        resp_text(out, "HINCRBY");
        resp_text(out, r->c->counts);
        resp_text(out, field);
        resp_text(out, number);
        return;
    }
    description_field(field, i == 1 ? "ready" : "id", r->layer + 1);
    resp_command(out, 3, 128);
    resp_text(out, i == 1 ? "HEXISTS" : "HGET");
    resp_text(out, r->c->key);
    resp_text(out, i == 1 ? field : "id");
}

static int take_reserving(void *context, size_t i, const redisReply *reply, bool again)
{
    struct reserving *r = context;
    (void)again;
    if (i == 0) {
        r->counted = true;
        r->keys = reply->integer;
    } else if (i == 1)
        r->changed = reply->integer != 0;
    else if (reply->type != REDIS_REPLY_STRING)
        return cluster_fail(r->c, PERHAPS_ERR_MISSING, "was deleted since it was opened");
    else if (strcmp(reply->str, r->c->about.id) != 0)
        return cluster_fail(r->c, PERHAPS_ERR_CHANGED,
                            "was deleted and made anew since it was opened");
    return 0;
}

static void doubt_reserving(void *context, size_t i)
{
    struct reserving *r = context;
    r->doubted |= i == 0;
}

static void write_unlink(void *context, size_t i, struct resp *out)
{
    const struct reserving *r = context;
    (void)i;
    resp_command(out, 2, 64);
    resp_text(out, "UNLINK");
    resp_text(out, r->c->counts);
}

/* Counting for a filter that was deleted makes its counts again: they are removed. */
static void remove_counts(struct reserving *r)
{
    struct talk unlink = { .count = 1, .write = write_unlink, .context = r };
    struct aside aside;
    cluster_begin_aside(r->c, &aside);
    cluster_talk(r->c, &unlink);
    cluster_end_aside(r->c, &aside);
}

/* Where nobody knows whether it was done, the layer may count too many, and never too few. */
static int reserve(struct reserving *r, long long change)
{
    struct layer *layer = &r->c->layer[r->layer];
    struct talk talk = { .count = 3,
                         .write = write_reserving,
                         .take = take_reserving,
                         .context = r,
                         .doubt = doubt_reserving };
    r->change = change - layer->owed;
    r->nwritten = 0;
    r->counted = r->doubted = false;
    int error = cluster_talk(r->c, &talk);
    if (r->counted || r->doubted)
        layer->owed = 0;
    if (r->counted || (r->doubted && r->change < 0))
        r->held += change;
    if (error == PERHAPS_ERR_CHANGED || error == PERHAPS_ERR_MISSING)
        remove_counts(r);
    return error;
}

/* After an error: what was not used goes back now, or later. */
static void give_back(struct reserving *r, size_t used, int error)
{
    struct layer *layer = &r->c->layer[r->layer];
    struct aside aside;
    layer->owed += r->held - (long long)used;
    if (!layer->owed || error == PERHAPS_ERR_CHANGED || error == PERHAPS_ERR_MISSING)
        return;
    cluster_begin_aside(r->c, &aside);
    reserve(r, 0);
    cluster_end_aside(r->c, &aside);
}

/* Reserves room for up to n keys: *granted. */
static int reserve_up_to(struct reserving *r, size_t n, size_t *granted)
{
    long long capacity = (long long)r->c->layer[r->layer].plan.capacity;
    *granted = 0;
    int error = reserve(r, (long long)n);
    if (error)
        return error;
    long long over = r->keys - capacity;
    if (over <= 0) {
        *granted = n;
        return 0;
    }
    long long back = over < (long long)n ? over : (long long)n;
    *granted = n - (size_t)back;
    return reserve(r, -back);
}

/* ---- Adding ---------------------------------------------------------------------------- */

struct adding {
    perhaps_cluster *c;
    unsigned asked; /* older layers than this one have been asked for the pending keys */
    size_t limit;   /* keys from this one on have found no room */
    bool done;
};

/* There is no room for all: those that are there need none.  Grows, if it may, or leaves the
 * rest aside. */
static int find_room(struct adding *a, struct reserving *r, size_t *granted)
{
    struct work *w = a->c->work;
    bool changed;
    int error = reserve(r, -(long long)*granted);
    *granted = 0;
    if (!error)
        error = ask_layers(a->c, a->asked, a->c->nlayers, &changed);
    if (error || w->npending == 0 || (error = reserve_up_to(r, w->npending, granted)) ||
        *granted == w->npending)
        return error;
    if (a->c->about.factor) {
        error = reserve(r, -(long long)*granted);
        *granted = 0;
        return error ? error : layers_grow(a->c);
    }
    a->limit = w->pending[*granted];
    w->npending = *granted;
    a->done = *granted == 0;
    return 0;
}

/* Keys that were added just now, or may have been. */
static size_t count_added(const struct work *w)
{
    size_t n = w->nunknown;
    for (size_t i = 0; i < w->npending; i++)
        n += w->answer[w->pending[i]] == ADDED;
    return n;
}

/* They are to be added again, in a newer layer. */
static void forget_added(struct work *w)
{
    for (size_t i = 0; i < w->npending; i++)
        if (w->answer[w->pending[i]] == ADDED)
            w->answer[w->pending[i]] = UNKNOWN;
}

/* Adds the pending keys, for which there is room, to the newest layer. */
static int add_reserved(struct adding *a, struct reserving *r)
{
    perhaps_cluster *c = a->c;
    bool changed;
    c->work->nunknown = 0;
    int error = ask_layers(c, a->asked, r->layer, &changed);
    if (!error && c->work->npending)
        error = work_add(c, &c->layer[r->layer]);
    return error ? error : reserve(r, (long long)count_added(c->work) - r->held);
}

/* One go at the pending keys. */
static int add_pending(struct adding *a)
{
    perhaps_cluster *c = a->c;
    struct work *w = c->work;
    struct reserving r = { .c = c, .layer = c->nlayers - 1 };
    size_t granted;
    int error = reserve_up_to(&r, w->npending, &granted);
    if (!error && granted < w->npending)
        error = find_room(a, &r, &granted);
    if (!error && (granted == 0 || c->nlayers > r.layer + 1))
        return 0;
    bool added = !error;
    if (!error)
        error = add_reserved(a, &r);
    if (error)
        give_back(&r, added ? count_added(w) : 0, error);
    a->done = error || !r.changed;
    if (a->done)
        return error;
    forget_added(w);
    work_sift(w);
    a->asked = r.layer + 1;
    return layers_renew(c);
}

/* *done: the keys before it have been dealt with. */
static int add_chunk(perhaps_cluster *c, size_t *done)
{
    struct work *w = c->work;
    struct adding a = { .c = c, .limit = SIZE_MAX };
    int error = 0;
    *done = 0;
    while (!error && !a.done && w->npending)
        error = add_pending(&a);
    if (error)
        return error;
    *done = a.limit < w->count ? a.limit : w->count;
    return *done == w->count
               ? 0
               : cluster_fail(c, PERHAPS_ERR_FULL,
                              "is full: with one key more its rate would be higher than was "
                              "asked; make a larger one, or one that grows (--grow)");
}

int perhaps_cluster_add_many(perhaps_cluster *c, const struct perhaps_keys *keys,
                             bool *was_present, size_t *done)
{
    size_t at = 0, n = 0;
    int error = check_open(c);
    if (!error && c->address.redisson)
        return foreign_add(c, keys, was_present, done);
    c->adding = true;
    while (at < keys->count && !error) {
        n = 0;
        error = work_begin(c, keys, at, chunk_size(c, keys, at));
        if (!error)
            error = add_chunk(c, &n);
        for (size_t i = 0; i < n && was_present; i++)
            was_present[at + i] = c->work->answer[i] == PRESENT;
        at += n;
    }
    c->adding = false;
    if (done)
        *done = at;
    return error;
}
