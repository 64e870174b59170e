/* keys.c - asks all layers for a batch of keys, and adds a batch to the newest layer.
 *
 * How keys are added to the newest layer, whose count is keys.I in the counts on the servers:
 *
 *     HINCRBY +n         reserves room, if the handle does not hold enough.  The reply is the
 *                        count: what it has beyond the capacity is not used, and goes back
 *     ask older layers   keys that are there need no room in this one
 *     add the others     keys that set a bit are new, and use what is held
 *
 *     0                                                              capacity
 *     | keys added by all clients | reserved by all, and not used | room |
 *     '------------------------- count --------------------------'
 *
 * What was not used stays reserved, and serves for the next call: so calls with one key reserve
 * once in AHEAD_MOST calls.  A handle holds at most a share of the room that is left, and gives
 * all back when it is closed, or with the first call after IDLE_MS without adds.
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
 * is a newer one.  If a client's lease (layers.h) is over when its keys are added, it asks.  If
 * there is a newer layer, it adds the keys that it took for new to that, too, and a key is new
 * only if it is new there.  So if two clients added one key to two layers, one of them finds
 * the other's key there.  A client that knows of the newer layer asks the older ones first. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "batch.h"
#include "layers.h"
#include "operations.h"

/* AHEAD_MOST: how many keys more than it needs a handle reserves at most.  ROOM_SHARE: it holds
 * at most one in so many of the keys for which there is room. */
enum { AHEAD_MOST = 256, ROOM_SHARE = 64, SOON_MS = 1000, IDLE_MS = 2000 };

/* ---- Asking ---------------------------------------------------------------------------- */

/* Asks the layers from number 'from' on and before number 'to'.  With few keys it asks all
 * layers at once, to save time; with many it begins with the newest, since most keys are there,
 * and asks the others only for those that were not found. */
static int ask_layers(perhaps_cluster *c, unsigned from, unsigned to, bool replicas)
{
    int error = 0;
    while (to > from && c->batch->npending) {
        bool few = c->batch->npending * (to - from) <= FEW_KEYS;
        unsigned first = few ? from : to - 1;
        int failure = batch_ask(c, first, to, replicas);
        error = error ? error : failure;
        to = first;
    }
    return error;
}

/* The keys that are still pending are in no layer, if all of these have answered. */
static void settle(perhaps_cluster *c, bool sure)
{
    struct batch *batch = c->batch;
    for (size_t i = 0; i < batch->npending && sure; i++)
        if (!batch->unsure[batch->pending[i]])
            batch->answer[batch->pending[i]] = ABSENT;
}

/* A key is answered "no" only if no layer has it, the newest included.  If the lease was over
 * at the beginning, and no server has told meanwhile that there is no newer layer, the client
 * reads the description again. */
int keys_ask(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done)
{
    const int64_t asked_ms = now_ms();
    unsigned from = 0;
    bool sure = false;
    int error = batch_begin(c, keys), failure = 0;
    *done = error ? 0 : keys->count;
    while (!error && !sure && !failure) {
        unsigned to = c->nlayers;
        error = ask_layers(c, from, to, c->replicas);
        from = to;
        sure = !c->about.factor || asked_ms < c->leased_ms || !c->batch->npending;
        if (!sure)
            failure = layers_renew(c);
        sure |= !failure && c->nlayers == to;
    }
    settle(c, sure);
    return layers_explain_loss(c, error ? error : failure);
}

/* ---- Reserving ------------------------------------------------------------------------- */

/* A change of what is reserved in a layer. */
struct reserving {
    perhaps_cluster *c;
    unsigned layer;
    long long change;
    unsigned nwritten; /* how often it was written */
    bool counted;      /* it was done */
    bool doubted;      /* it was sent, and nobody knows whether it was done */
    long long count;   /* the layer's count after it */
};

/* The requests: the change of the count; the ID of the filter; the marker of the counts. */
enum { COUNT, ID, MARKER, REQUESTS };

/* A change that takes from the count is sent only once, since it may have been done: sent twice
 * it could make the count too low, and the filter would take too many keys.  If it is written
 * again, it adds 0, and so only tells the count.  A change that adds to the count may be done
 * twice: then the count is too high, which only costs room. */
static void write_reserving(const struct request *request, struct resp *out)
{
    struct reserving *r = request->context;
    char field[FIELD_NBYTES], number[24];
    if (request->i == ID) {
        layers_write_id(r->c, out);
    } else if (request->i == MARKER) {
        resp_texts(out, (const char *const[]){ "HGET", r->c->counts, counts_marker, NULL });
    } else {
        bool repeats = r->nwritten++ && r->change < 0;
        description_field(field, "keys", r->layer);
        snprintf(number, sizeof number, "%lld", repeats ? 0 : r->change);
        resp_texts(out, (const char *const[]){ "HINCRBY", r->c->counts, field, number, NULL });
    }
}

/* Notes that nobody knows how many keys there are, and what to do. */
static int fail_counts(perhaps_cluster *c)
{
    c->about.counts_lost = true;
    return layers_check_counts(c);
}

/* The count is at least what this handle holds and has added over the same connection: a server
 * that took another's place may have lost some of it.  Half of it is enough to tell what
 * somebody did by hand from what other clients give back after such a loss. */
static int take_count(struct reserving *r, const struct request *request,
                      const struct reply *reply)
{
    struct layer *layer = &r->c->layer[r->layer];
    if (reply->type != REDIS_REPLY_INTEGER || reply->number > COUNT_MOST ||
        reply->number < -COUNT_MOST)
        return fail_counts(r->c);
    r->counted = true;
    r->count = reply->number;
    if (layer->counted_by != request->link->number)
        layer->added = 0;
    layer->counted_by = request->link->number;
    return layer->added && r->count < layer->held + r->change + layer->added / 2
               ? fail_counts(r->c)
               : 0;
}

static int take_reserving(const struct request *request, const struct reply *reply)
{
    struct reserving *r = request->context;
    if (request->i == COUNT)
        return take_count(r, request, reply);
    if (request->i == ID)
        return layers_take_id(r->c, reply);
    return reply->type == REDIS_REPLY_STRING ? 0 : fail_counts(r->c);
}

/* HINCRBY refuses what is no number, or one that would be too large. */
static int take_reserving_error(const struct request *request, const struct reply *reply)
{
    struct reserving *r = request->context;
    bool is_type = strncmp(reply->text, "WRONGTYPE", strlen("WRONGTYPE")) == 0;
    return request->i != ID && (is_type || strstr(reply->text, "overflow") ||
                                strstr(reply->text, "not an integer"))
               ? fail_counts(r->c)
               : 1;
}

static void doubt_reserving(const struct request *request)
{
    struct reserving *r = request->context;
    r->doubted |= request->i == COUNT;
}

/* Changes how much is reserved in a layer.  If nobody knows whether that was done, reserving
 * counts as not done, and giving back as done.  So the client never uses or gives back room
 * that it may not have, and the count is never too low. */
static int reserve(perhaps_cluster *c, unsigned number, long long change)
{
    struct layer *layer = &c->layer[number];
    struct reserving r = { .c = c, .layer = number, .change = change };
    struct exchange exchange = { .count = c->about.counted ? REQUESTS : MARKER,
                                 .write = write_reserving,
                                 .take = take_reserving,
                                 .take_error = take_reserving_error,
                                 .context = &r,
                                 .doubt = doubt_reserving,
                                 .acknowledged = true };
    int error = exchange_run(&c->nodes, &exchange);
    if (r.counted || (r.doubted && change < 0))
        layer->held += change;
    if (r.counted)
        layer->room = (long long)layer->plan.capacity - r.count;
    return layers_explain_loss(c, error);
}

/* Leaves nothing of a filter that was deleted meanwhile: HINCRBY has made its counts again.
 * What is held of it is worth nothing. */
static int forget_deleted(perhaps_cluster *c, int error)
{
    struct aside aside;
    if (error != PERHAPS_ERR_CHANGED && error != PERHAPS_ERR_MISSING)
        return error;
    for (unsigned i = 0; i < c->nlayers; i++)
        c->layer[i].held = 0;
    handle_begin_aside(c, &aside);
    handle_tell(c, (const char *const[]){ "UNLINK", c->counts, NULL });
    handle_end_aside(c, &aside);
    return error;
}

/* Returns how many keys a handle may hold beyond those that it needs now. */
static long long holds_most(const struct layer *layer, long long most)
{
    long long share = layer->room / ROOM_SHARE;
    return share < 0 ? 0 : share < most ? share : most;
}

/* Returns how many keys more than it needs the handle shall reserve now: the more, the sooner
 * the last ones were used. */
static long long reserve_ahead(struct layer *layer)
{
    int64_t now = now_ms();
    bool soon = layer->reserved_ms && now - layer->reserved_ms < SOON_MS;
    layer->ahead = soon ? 2 * layer->ahead + 1 : 0;
    if (layer->ahead > AHEAD_MOST)
        layer->ahead = AHEAD_MOST;
    layer->reserved_ms = now;
    return holds_most(layer, layer->ahead);
}

/* Makes the handle hold room for n keys, or for as many as there is room for.  It reserves
 * first and looks then, since room that is only seen may be taken by another client
 * meanwhile. */
static int hold(perhaps_cluster *c, unsigned number, size_t n)
{
    struct layer *layer = &c->layer[number];
    long long needed = (long long)n - layer->held;
    if (needed <= 0)
        return 0;
    needed += reserve_ahead(layer);
    int error = reserve(c, number, needed);
    if (error || layer->room >= 0)
        return error;
    return reserve(c, number, -layer->room < needed ? layer->room : -needed);
}

/* Gives back what the handle holds beyond 'most' keys. */
static int give_back(perhaps_cluster *c, unsigned number, long long most)
{
    long long held = c->layer[number].held;
    return held > most ? reserve(c, number, most - held) : 0;
}

void keys_give_back(perhaps_cluster *c)
{
    struct aside aside;
    handle_begin_aside(c, &aside);
    int error = 0;
    for (unsigned i = 0; i < c->nlayers && !error; i++)
        error = forget_deleted(c, give_back(c, i, 0));
    handle_end_aside(c, &aside);
}

void keys_give_back_idle(perhaps_cluster *c)
{
    if (c->nlayers == 0)
        return;
    const struct layer *layer = &c->layer[c->nlayers - 1];
    if (layer->held > 0 && now_ms() - c->added_ms > IDLE_MS)
        keys_give_back(c);
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
static int find_room(struct adding *a, unsigned number)
{
    perhaps_cluster *c = a->c;
    struct batch *batch = c->batch;
    struct layer *layer = &c->layer[number];
    int error = ask_layers(c, a->asked, c->nlayers, false);
    a->asked = number; /* of the newest, adding itself tells */
    if (!error)
        error = hold(c, number, batch->npending);
    if (error || layer->held >= (long long)batch->npending)
        return error;
    if (c->about.factor) {
        error = give_back(c, number, 0);
        return error ? error : create_layer(c);
    }
    a->limit = batch->pending[layer->held];
    batch->npending = (size_t)layer->held;
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

/* Makes the keys that were added UNKNOWN again: nobody knows yet whether they are new, and they
 * may have to be added to a newer layer as well. */
static void forget_added(struct batch *batch)
{
    for (size_t i = 0; i < batch->npending; i++)
        if (batch->answer[batch->pending[i]] == ADDED)
            batch->answer[batch->pending[i]] = UNKNOWN;
}

/* Waits until a layer may be used that nobody has added to: see layers.h. */
static int await_layer(perhaps_cluster *c, const struct layer *layer)
{
    int64_t left_ms = layer->usable_ms ? layer->usable_ms - now_ms() : 0;
    if (left_ms <= 0)
        return 0;
    nanosleep(&(struct timespec){ .tv_nsec = left_ms * 1000000 }, NULL);
    return round_check_stopped(&c->nodes);
}

/* Adds the pending keys, for which there is room, to a layer.  After an error those that were
 * added count as unknown if it matters whether replicas have them, or if the layer has lost
 * them. */
static int add_held(perhaps_cluster *c, unsigned number)
{
    struct batch *batch = c->batch;
    struct layer *layer = &c->layer[number];
    batch->nunknown = 0;
    int error = batch->npending ? batch_add(c, number) : 0;
    long long added = (long long)count_added(batch);
    layer->held -= added;
    layer->added += added;
    if (error && (c->nodes.acknowledge || error == PERHAPS_ERR_LOST))
        forget_added(batch);
    return error;
}

/* Goes on to the newer layers, which there are: adds the keys there, too.  The old layer needs
 * no room any more. */
static int go_to_newer(struct adding *a, unsigned number)
{
    perhaps_cluster *c = a->c;
    batch_sift(c->batch);
    a->asked = number + 1;
    int error = give_back(c, number, 0);
    if (!error)
        error = layers_renew(c);
    if (!error && c->nlayers <= number + 1)
        error = nodes_fail(&c->nodes, PERHAPS_ERR_PROTOCOL,
                           "a server tells of a newer layer, of which the description says "
                           "nothing");
    return error;
}

/* Tries once to add the pending keys to the newest layer that is open.  Returns 0 with a->done
 * unset if that must be tried again, in a newer layer. */
static int add_pending(struct adding *a)
{
    perhaps_cluster *c = a->c;
    struct batch *batch = c->batch;
    unsigned number = c->nlayers - 1;
    struct layer *layer = &c->layer[number];
    bool changed = false;
    int error = await_layer(c, layer);
    if (!error)
        error = hold(c, number, batch->npending);
    if (!error && layer->held < (long long)batch->npending)
        error = find_room(a, number);
    if (error || c->nlayers > number + 1)
        return error;
    error = ask_layers(c, a->asked, number, false);
    if (!error)
        error = add_held(c, number);
    if (!error && layers_lease_is_over(c)) {
        error = layers_ask_newer(c, &changed);
        if (error || changed)
            forget_added(batch);
    }
    a->done = error || !changed;
    return error || a->done ? error : go_to_newer(a, number);
}

/* Returns how many keys at the beginning of the batch have an answer. */
static size_t count_done(const struct batch *batch, size_t limit)
{
    size_t n = 0;
    while (n < batch->count && n < limit && batch->answer[n] != UNKNOWN)
        n++;
    return n;
}

int keys_add(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done)
{
    struct batch *batch = c->batch;
    struct adding a = { .c = c, .limit = SIZE_MAX };
    int error = batch_begin(c, keys);
    if (!error && c->about.counts_lost && !(error = layers_renew(c)))
        error = layers_check_counts(c);
    while (!error && !a.done && batch->npending)
        error = add_pending(&a);
    c->added_ms = now_ms();
    *done = count_done(batch, a.limit);
    if (!error)
        error = give_back(c, c->nlayers - 1, holds_most(&c->layer[c->nlayers - 1], BATCH_KEYS));
    if (error)
        return forget_deleted(c, layers_explain_loss(c, error));
    return a.limit == SIZE_MAX
               ? 0
               : nodes_fail(&c->nodes, PERHAPS_ERR_FULL,
                            "is full: with one key more its rate would be higher than was "
                            "asked; make a larger one, or one that grows (--grow)");
}
