/* keys.c - a batch of keys, and all layers.
 *
 * Room is reserved before keys are added, and what was not needed is given back after, also
 * after an error: so many clients at once never put more keys into a layer than it was planned
 * for, and one that dies leaves a layer that is full a little early.
 *
 * A layer that is full stays as it is, but for clients that do not know yet that there is a
 * newer one.  They find out when they give back.  What they took for new is then added to the
 * newer layer, too, and is new only if it is new there: of two clients that added one key to
 * two layers, one meets the other's there.  A client that knows of the newer layer asks the
 * older ones first. */
#include <stdio.h>
#include <string.h>

#include "batch.h"
#include "layers.h"
#include "operations.h"

/* ---- Asking ---------------------------------------------------------------------------- */

/* Asks the layers from number 'from' up to and without 'to', the newest first, and those that
 * have become ready since if it is the newest that 'to' stands behind. */
static int ask_layers(perhaps_cluster *c, unsigned from, unsigned to, bool *changed)
{
    struct batch *batch = c->batch;
    int error = 0;
    *changed = false;
    for (unsigned i = to; i > from && batch->npending && !error; i--) {
        bool newer;
        error = batch_ask(c, &c->layer[i - 1], &newer);
        *changed |= newer;
    }
    return error;
}

int keys_ask(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done)
{
    unsigned from = 0;
    bool changed = true;
    int error = batch_begin(c, keys);
    while (changed && !error) {
        unsigned to = c->nlayers;
        error = ask_layers(c, from, to, &changed);
        changed &= c->batch->npending > 0;
        if (!error && changed)
            error = layers_renew(c);
        changed &= c->nlayers > to;
        from = to;
    }
    *done = error ? 0 : keys->count;
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

/* Behind the counting: the questions to the description. */
enum { COUNT, QUESTIONS };

/* Giving back is not repeated where it may have been done: better too few than too many. */
static void write_reserving(const struct request *request, struct resp *out)
{
    struct reserving *r = request->context;
    char field[FIELD_NBYTES], number[24];
    if (request->i >= QUESTIONS) {
        layers_write_question(r->c, (enum question)(request->i - QUESTIONS), r->layer + 1, out);
        return;
    }
    bool repeats = r->nwritten++ && r->change < 0;
    description_field(field, "keys", r->layer);
    snprintf(number, sizeof number, "%lld", repeats ? 0 : r->change);
    resp_texts(out, (const char *const[]){ "HINCRBY", r->c->counts, field, number, NULL });
}

static int take_reserving(const struct request *request, const struct reply *reply)
{
    struct reserving *r = request->context;
    if (request->i >= QUESTIONS)
        return layers_take_answer(r->c, (enum question)(request->i - QUESTIONS), reply,
                                  &r->changed);
    r->counted = true;
    r->keys = reply->number;
    return 0;
}

static void doubt_reserving(const struct request *request)
{
    struct reserving *r = request->context;
    r->doubted |= request->i == COUNT;
}

/* Counting for a filter that was deleted makes its counts again: they are removed. */
static void remove_counts(perhaps_cluster *c)
{
    struct aside aside;
    handle_begin_aside(c, &aside);
    handle_tell(c, (const char *const[]){ "UNLINK", c->counts, NULL });
    handle_end_aside(c, &aside);
}

/* Where nobody knows whether it was done, the layer may count too many, and never too few. */
static int reserve(struct reserving *r, long long change)
{
    struct layer *layer = &r->c->layer[r->layer];
    struct exchange exchange = { .count = QUESTIONS + ASKS,
                                 .write = write_reserving,
                                 .take = take_reserving,
                                 .context = r,
                                 .doubt = doubt_reserving,
                                 .acknowledged = true };
    r->change = change - layer->owed;
    r->nwritten = 0;
    r->counted = r->doubted = false;
    int error = exchange_run(&r->c->nodes, &exchange);
    if (r->counted || r->doubted)
        layer->owed = 0;
    if (r->counted || (r->doubted && r->change < 0))
        r->held += change;
    if (error == PERHAPS_ERR_CHANGED || error == PERHAPS_ERR_MISSING)
        remove_counts(r->c);
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
    handle_begin_aside(r->c, &aside);
    reserve(r, 0);
    handle_end_aside(r->c, &aside);
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
    struct batch *batch = a->c->batch;
    bool changed;
    int error = reserve(r, -(long long)*granted);
    *granted = 0;
    if (!error)
        error = ask_layers(a->c, a->asked, a->c->nlayers, &changed);
    if (error || batch->npending == 0 || (error = reserve_up_to(r, batch->npending, granted)) ||
        *granted == batch->npending)
        return error;
    if (a->c->about.factor) {
        error = reserve(r, -(long long)*granted);
        *granted = 0;
        return error ? error : create_layer(a->c);
    }
    a->limit = batch->pending[*granted];
    batch->npending = *granted;
    a->done = *granted == 0;
    return 0;
}

/* Keys that were added just now, or may have been. */
static size_t count_added(const struct batch *batch)
{
    size_t n = batch->nunknown;
    for (size_t i = 0; i < batch->npending; i++)
        n += batch->answer[batch->pending[i]] == ADDED;
    return n;
}

/* They are to be added again, in a newer layer. */
static void forget_added(struct batch *batch)
{
    for (size_t i = 0; i < batch->npending; i++)
        if (batch->answer[batch->pending[i]] == ADDED)
            batch->answer[batch->pending[i]] = UNKNOWN;
}

/* Adds the pending keys, for which there is room, to the newest layer. */
static int add_reserved(struct adding *a, struct reserving *r)
{
    perhaps_cluster *c = a->c;
    bool changed;
    c->batch->nunknown = 0;
    int error = ask_layers(c, a->asked, r->layer, &changed);
    if (!error && c->batch->npending)
        error = batch_add(c, &c->layer[r->layer]);
    return error ? error : reserve(r, (long long)count_added(c->batch) - r->held);
}

/* One go at the pending keys. */
static int add_pending(struct adding *a)
{
    perhaps_cluster *c = a->c;
    struct batch *batch = c->batch;
    struct reserving r = { .c = c, .layer = c->nlayers - 1 };
    size_t granted;
    int error = reserve_up_to(&r, batch->npending, &granted);
    if (!error && granted < batch->npending)
        error = find_room(a, &r, &granted);
    if (!error && (granted == 0 || c->nlayers > r.layer + 1))
        return 0;
    bool added = !error;
    if (!error)
        error = add_reserved(a, &r);
    if (error)
        give_back(&r, added ? count_added(batch) : 0, error);
    a->done = error || !r.changed;
    if (a->done)
        return error;
    forget_added(batch);
    batch_sift(batch);
    a->asked = r.layer + 1;
    return layers_renew(c);
}

int keys_add(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done)
{
    struct batch *batch = c->batch;
    struct adding a = { .c = c, .limit = SIZE_MAX };
    int error = batch_begin(c, keys);
    *done = 0;
    c->adding = true;
    while (!error && !a.done && batch->npending)
        error = add_pending(&a);
    c->adding = false;
    if (error)
        return error;
    *done = a.limit < batch->count ? a.limit : batch->count;
    return *done == batch->count
               ? 0
               : nodes_fail(&c->nodes, PERHAPS_ERR_FULL,
                            "is full: with one key more its rate would be higher than was "
                            "asked; make a larger one, or one that grows (--grow)");
}
