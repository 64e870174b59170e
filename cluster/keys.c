/* keys.c - asks all layers for a batch of keys, and adds a batch to the newest layer.
 *
 * How n keys are added to the newest layer, whose count is keys.I in the counts on the servers:
 *
 *     HINCRBY +n         reserves room.  The reply is the count: what it has beyond the
 *                        capacity is not used, and goes back at once
 *     ask older layers   keys that are there need no room in this one
 *     add the others     keys that set a bit are new
 *     HINCRBY -(n - new) gives back what was not needed, also after an error
 *
 *     0                                                            capacity
 *     | keys added by all clients | reserved by all, under way | room |
 *     '------------------------ count ------------------------'
 *
 * Invariant: the count of a layer is never less than the keys that were added to it, unless a
 * failover loses it.  So however many clients add at once, a layer never gets more keys than it
 * was planned for.  If a client dies, what it had reserved stays reserved, and the layer is
 * full a little too early.
 *
 * If there is not room for all, the keys that are there already are sifted out first, since
 * they need none.  If there is not room for the rest either, the filter grows.  If it cannot
 * grow, the keys before the first one without room are added, and PERHAPS_ERR_FULL is
 * returned.
 *
 * A layer that is full gets no more keys, except from clients that do not know yet that there
 * is a newer one.  They learn it when they give back room.  Then they add the keys that they
 * took for new to the newer layer, too, and a key is new only if it is new there.  So if two
 * clients added one key to two layers, one of them finds the other's key there.  A client that
 * knows of the newer layer asks the older ones first. */
#include <stdio.h>
#include <string.h>

#include "batch.h"
#include "layers.h"
#include "operations.h"

/* ---- Asking ---------------------------------------------------------------------------- */

/* Asks the layers from number 'from' on and before number 'to', the newest first, since most
 * keys are there.  Sets *changed to whether there may be newer layers. */
static int ask_layers(perhaps_cluster *c, unsigned from, unsigned to, bool replicas,
                      bool *changed)
{
    struct batch *batch = c->batch;
    int error = 0;
    *changed = false;
    for (unsigned i = to; i > from && batch->npending && !error; i--) {
        bool newer;
        error = batch_ask(c, &c->layer[i - 1], replicas, &newer);
        *changed |= newer;
    }
    return error;
}

/* A key is answered "no" only if no layer has it, the newest included.  So the client reads the
 * description again if there may be newer layers, and asks these for the keys still pending. */
int keys_ask(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done)
{
    unsigned from = 0;
    bool changed = true;
    int error = batch_begin(c, keys);
    while (changed && !error) {
        unsigned to = c->nlayers;
        error = ask_layers(c, from, to, c->replicas, &changed);
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

/* What this client has reserved in one layer, for one batch. */
struct reserving {
    perhaps_cluster *c;
    unsigned layer;
    long long held;    /* how many keys of the layer's count are reserved by this batch */
    long long change;  /* the change of the count that is under way */
    unsigned nwritten; /* how often that was written */
    bool counted;      /* it was done */
    bool doubted;      /* it was sent, and nobody knows whether it was done */
    long long count;   /* the layer's count after it */
    bool changed;      /* there is a newer layer */
};

/* The requests: the change of the count, and behind it the questions to the description. */
enum { COUNT, QUESTIONS };

/* A change that takes from the count is sent only once, since it may have been done: sent twice
 * it could make the count too low, and the filter would take too many keys.  If it is written
 * again, it adds 0, and so only tells the count.  A change that adds to the count may be done
 * twice: then the count is too high, which only costs room. */
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
    r->count = reply->number;
    return 0;
}

static void doubt_reserving(const struct request *request)
{
    struct reserving *r = request->context;
    r->doubted |= request->i == COUNT;
}

/* Removes the counts of a filter that was deleted: HINCRBY has just made them again. */
static void remove_counts(perhaps_cluster *c)
{
    struct aside aside;
    handle_begin_aside(c, &aside);
    handle_tell(c, (const char *const[]){ "UNLINK", c->counts, NULL });
    handle_end_aside(c, &aside);
}

/* Changes how much is reserved, and gives back what is owed with it.  If nobody knows whether
 * that was done, reserving counts as not done, and giving back as done.  So the client never
 * uses or gives back room that it may not have, and the count is never too low. */
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

/* After an error, gives back what was not used: now, or, if that fails, with the next
 * reservation in this layer.  Where the filter is gone there is nothing to give back to. */
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

/* Reserves room for up to n keys, and sets *granted to how many found room.  It reserves first
 * and looks then, since room that is only seen may be taken by another client meanwhile. */
static int reserve_up_to(struct reserving *r, size_t n, size_t *granted)
{
    long long capacity = (long long)r->c->layer[r->layer].plan.capacity;
    *granted = 0;
    int error = reserve(r, (long long)n);
    if (error)
        return error;
    long long over = r->count - capacity;
    if (over <= 0) {
        *granted = n;
        return 0;
    }
    long long back = over < (long long)n ? over : (long long)n;
    *granted = n - (size_t)back;
    return reserve(r, -back);
}

/* ---- Adding ---------------------------------------------------------------------------- */

/* The adding of one batch. */
struct adding {
    perhaps_cluster *c;
    unsigned asked; /* layers before this one were asked for all pending keys */
    size_t limit;   /* the first key of the batch that found no room; SIZE_MAX: none yet */
    bool done;
};

/* Is called when there is no room for all pending keys.  Sifts out those that are there already
 * and need none.  If there is no room for the rest, makes the next layer; or, in a filter that
 * does not grow, drops the keys from the first one without room on. */
static int find_room(struct adding *a, struct reserving *r, size_t *granted)
{
    struct batch *batch = a->c->batch;
    bool changed;
    int error = reserve(r, -(long long)*granted);
    *granted = 0;
    if (!error)
        error = ask_layers(a->c, a->asked, a->c->nlayers, false, &changed);
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

/* Returns how many of the pending keys were added just now, or may have been. */
static size_t count_added(const struct batch *batch)
{
    size_t n = batch->nunknown;
    for (size_t i = 0; i < batch->npending; i++)
        n += batch->answer[batch->pending[i]] == ADDED;
    return n;
}

/* Makes the keys that were added UNKNOWN again, so that they are added to a newer layer as
 * well. */
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
    int error = ask_layers(c, a->asked, r->layer, false, &changed);
    if (!error && c->batch->npending)
        error = batch_add(c, &c->layer[r->layer]);
    return error ? error : reserve(r, (long long)count_added(c->batch) - r->held);
}

/* Tries once to add the pending keys to the newest layer that is open.  Returns 0 with a->done
 * unset if that must be tried again, in a newer layer. */
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
    while (!error && !a.done && batch->npending)
        error = add_pending(&a);
    if (error)
        return error;
    *done = a.limit < batch->count ? a.limit : batch->count;
    return *done == batch->count
               ? 0
               : nodes_fail(&c->nodes, PERHAPS_ERR_FULL,
                            "is full: with one key more its rate would be higher than was "
                            "asked; make a larger one, or one that grows (--grow)");
}
