/* keys.c - asks all layers for a batch of keys, and adds a batch to the newest layer.
 *
 * How keys are added to the newest layer:
 *
 *     take room          for all of them, of what the process has reserved (room.h)
 *     ask older layers   keys that are there need no room in this one
 *     add the others     keys that set a bit are new, and use the room
 *
 * Few keys that are mostly in no older layer are added at once, while older layers are asked:
 * one way to the servers and back in place of two.  A key that an older layer has then takes
 * room for nothing, once; so this is done only behind BESIDE_FROM keys of which none was there.
 *
 * If there is not room for all, the keys that are there already are sifted out, the newest
 * layer included, since they need none; and those are added for which there is room.  For the
 * others the client looks whether room comes back:
 *
 *     others hold some           waits a moment: they may use it, or give it back
 *     clients left some behind   the bits tell how much of it was used (recount.h)
 *     neither                    the layer is full: the filter grows, or PERHAPS_ERR_FULL
 *
 * A layer that is full gets no more keys, except from clients that do not know yet that there
 * is a newer one.  If a client's lease (layers.h) is over when its keys are added, it asks.  If
 * there is a newer layer, it adds the keys that it took for new to that, too, and a key is new
 * only if it is new there.  So if two clients added one key to two layers, one of them finds
 * the other's key there.  A client that knows of the newer layer asks the older ones first.
 * This costs room, and it is rare: nobody makes a newer layer while others hold room in the one
 * before, unless they do so for GROW_WAIT_MS.
 *
 * A client that adds while it asks may find in an older layer what another one is about to add
 * to the newest, too, and that one finds there what the first one added: neither would keep the
 * key.  So no client does this before it has known the newest layer for BESIDE_AFTER_MS; and
 * one that finds its own keys in newer layers when the lease under which it added them is over
 * for LATE_MS, which is less, counts them as new: keep_late(). */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "batch.h"
#include "layers.h"
#include "operations.h"
#include "recount.h"
#include "room.h"

/* WAIT_MS, WAIT_MOST_MS: the first and the longest pause before room is looked for again.
 * GROW_WAIT_MS, FULL_WAIT_MS: how long at most; nothing that a process has reserved lives
 * longer than the second.  LEFT_SHARE: a filter that grows does so rather than count its bits,
 * while what clients have left behind is less than one in so many keys of the layer.
 * BESIDE_MOST: how many keys are few. */
enum {
    WAIT_MS = 1,
    WAIT_MOST_MS = 32,
    GROW_WAIT_MS = 2000,
    FULL_WAIT_MS = 12000,
    LEFT_SHARE = 64,
    BESIDE_FROM = 512,
    BESIDE_MOST = 8,
    BESIDE_AFTER_MS = 3000,
    LATE_MS = 2000
};

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
static void settle_pending(perhaps_cluster *c, bool sure)
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
            failure = layers_renew(c, false);
        sure |= !failure && c->nlayers == to;
    }
    settle_pending(c, sure);
    batch_end(c->batch);
    return layers_explain_loss(c, error ? error : failure);
}

/* ---- Adding ---------------------------------------------------------------------------- */

/* The adding of one batch. */
struct adding {
    perhaps_cluster *c;
    unsigned asked;   /* layers before this one were asked for all pending keys */
    size_t room;      /* for so many keys the handle has room in the newest layer */
    size_t limit;     /* the first key of the batch that found no room; SIZE_MAX: none yet */
    int64_t short_ms; /* since when there was no room; 0: there was */
    int64_t wait_ms;  /* the next pause */

    /* The last keys of pending[], from 'rest' on: those for which there was no room beside the
     * others; their turn comes later.  'whole': the others are in an older layer already, and
     * are not parted again. */
    size_t rest, nrest;
    unsigned rest_asked;
    bool whole;

    int64_t leased_ms; /* the end of the lease under which keys were forgotten; 0: none were */
};

/* Waits for a while. */
static int pause_for(perhaps_cluster *c, int64_t pause_ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = pause_ms * 1000000 }, NULL);
    return round_check_stopped(&c->nodes);
}

/* Opens the layers behind this one, of which a server has told. */
static int open_newer(perhaps_cluster *c, unsigned number)
{
    int error = layers_renew(c, false);
    if (!error && c->nlayers <= number + 1)
        error = nodes_fail(&c->nodes, PERHAPS_ERR_PROTOCOL,
                           "a server tells of a newer layer, of which the description says "
                           "nothing");
    return error;
}

/* Is called when all room of a layer is used: makes the next layer; or, in a filter that does
 * not grow, ends with the first key that has no room. */
static int end_layer(struct adding *a)
{
    perhaps_cluster *c = a->c;
    if (c->about.factor)
        return create_layer(c);
    a->limit = c->batch->pending[0];
    c->batch->npending = 0;
    return 0;
}

/* Looks for room for the pending keys, none of which has any. */
static int find_room(struct adding *a, unsigned number, const struct room_told *told)
{
    perhaps_cluster *c = a->c;
    const bool grows = c->about.factor;
    const int64_t now = now_ms();
    if (!a->short_ms) {
        a->short_ms = now;
        a->wait_ms = WAIT_MS;
    }
    if ((told->others || told->siblings) &&
        now - a->short_ms < (grows ? GROW_WAIT_MS : FULL_WAIT_MS)) {
        int64_t pause_ms = a->wait_ms;
        a->wait_ms = pause_ms < WAIT_MOST_MS ? 2 * pause_ms : pause_ms;
        return pause_for(c, pause_ms);
    }
    if (told->abandoned > (grows ? (long long)(c->layer[number].key_limit / LEFT_SHARE) : 0))
        return recount_abandoned(c, number);
    a->short_ms = 0;
    return end_layer(a);
}

/* To be called when newer layers have answered: keys that were forgotten, and are there, count
 * as new if the answer came late.  Another client may have found them in the older layer, and
 * have set their bits in the newer one all the same. */
static void keep_late(struct adding *a)
{
    struct batch *batch = a->c->batch;
    if (!a->leased_ms)
        return;
    const bool late = now_ms() - a->leased_ms > LATE_MS;
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->forgotten[i] || batch->answer[i] != PRESENT)
            continue;
        batch->forgotten[i] = false;
        batch->answer[i] = late ? ADDED : PRESENT;
        a->c->doubtful += late;
    }
}

/* Lets only as many keys be pending as there is room for. */
static void set_rest_aside(struct adding *a, unsigned number)
{
    struct batch *batch = a->c->batch;
    if (a->room >= batch->npending)
        return;
    a->rest = a->room;
    a->nrest = batch->npending - a->room;
    a->rest_asked = number;
    batch->npending = a->room;
}

static void give_back_room(struct adding *a, unsigned number)
{
    if (a->room)
        room_use(a->c, number, a->room, 0, 0);
    a->room = 0;
}

/* Sifts out the keys that are there already.  Those for which there is room stay pending; if
 * there is none, looks for some. */
static int sift_and_part(struct adding *a, unsigned number, const struct room_told *told)
{
    perhaps_cluster *c = a->c;
    struct batch *batch = c->batch;
    int error = ask_layers(c, a->asked, c->nlayers, false);
    a->asked = number; /* of the newest, adding itself tells */
    keep_late(a);
    if (error)
        return error;
    if (a->whole && a->room < batch->npending)
        give_back_room(a, number);
    if (a->room || !batch->npending)
        set_rest_aside(a, number);
    else
        error = find_room(a, number, told);
    return error;
}

/* Takes room for the pending keys; a->room stays 0 if there is none at the moment. */
static int take_room(struct adding *a, unsigned number)
{
    perhaps_cluster *c = a->c;
    struct room_told told;
    const int64_t asked_ms = now_ms();
    int error = room_take(c, number, c->batch->npending, &told);
    a->room = told.taken;
    if (error)
        return error;
    if (told.newer)
        return open_newer(c, number);
    if (told.asked)
        c->leased_ms = asked_ms + LEASE_MS;
    if (a->room)
        a->short_ms = 0;
    return a->room < c->batch->npending ? sift_and_part(a, number, &told) : 0;
}

/* Notes that so many keys were added, and that an older layer had so many others. */
static void note_newcomers(perhaps_cluster *c, size_t added, size_t older)
{
    c->newcomers = older ? 0 : c->newcomers + added;
}

/* Returns how many of the pending keys were added just now, or may have been, in room for
 * 'most'.  Sets *too to how many of these an older layer has. */
static size_t count_added(struct batch *batch, size_t most, size_t *too)
{
    size_t n = batch->nunknown;
    *too = 0;
    for (size_t i = 0; i < batch->npending; i++) {
        uint8_t *answer = &batch->answer[batch->pending[i]];
        n += *answer == ADDED || *answer == ADDED_TOO;
        *too += *answer == ADDED_TOO;
        *answer = *answer == ADDED_TOO ? PRESENT : *answer;
    }
    return n < most ? n : most;
}

/* Makes the keys that were added, or those of them that are unsure, UNKNOWN again: nobody knows
 * yet whether they are new, and they may have to be added to a newer layer as well. */
static void forget_added(struct batch *batch, bool all)
{
    for (size_t i = 0; i < batch->npending; i++) {
        const uint32_t key = batch->pending[i];
        if (batch->answer[key] == ADDED && (all || batch->unsure[key])) {
            batch->answer[key] = UNKNOWN;
            batch->forgotten[key] = true;
        }
    }
}

/* Waits until a layer may be used that nobody has added to: see layers.h. */
static int await_layer(perhaps_cluster *c, const struct layer *layer)
{
    int64_t left_ms = layer->usable_ms ? layer->usable_ms - now_ms() : 0;
    return left_ms > 0 ? pause_for(c, left_ms) : 0;
}

/* Adds the pending keys, for which there is room, to a layer, and asks the older ones from
 * 'from' on.  After an error those that were added count as unknown if it matters whether
 * replicas have them, or if the layer has lost them. */
static int add_with_room(struct adding *a, unsigned from, unsigned number)
{
    perhaps_cluster *c = a->c;
    struct batch *batch = c->batch;
    size_t too;
    batch->nunknown = 0;
    int error = batch->npending ? batch_add(c, from, number) : 0;
    size_t used = count_added(batch, a->room, &too);
    room_use(c, number, a->room, used, batch->nunknown < used ? batch->nunknown : used);
    a->room = 0;
    note_newcomers(c, batch->npending, too);
    if (error)
        forget_added(batch, c->nodes.acknowledge || error == PERHAPS_ERR_LOST);
    return error;
}

/* Returns whether older layers are to be asked while the pending keys are added. */
static bool adds_beside(const struct adding *a, unsigned number)
{
    const perhaps_cluster *c = a->c;
    const int64_t known_ms = now_ms() - c->layer[number].opened_ms;
    return a->asked < number && known_ms >= BESIDE_AFTER_MS && !a->nrest &&
           c->batch->npending <= BESIDE_MOST && c->newcomers >= BESIDE_FROM &&
           !c->nodes.acknowledge;
}

/* Asks the older layers for the pending keys, and drops those that are there. */
static int ask_older(struct adding *a, unsigned number)
{
    struct batch *batch = a->c->batch;
    const size_t before = batch->npending;
    int error = ask_layers(a->c, a->asked, number, false);
    if (batch->npending < before)
        note_newcomers(a->c, 0, before - batch->npending);
    keep_late(a);
    return error;
}

/* Goes on to the newer layers, which there are: adds the keys there, too. */
static int go_to_newer(struct adding *a, unsigned number, int64_t leased_ms)
{
    perhaps_cluster *c = a->c;
    a->leased_ms = a->leased_ms ? a->leased_ms : leased_ms;
    a->asked = number + 1;
    a->whole = a->nrest > 0;
    return open_newer(c, number);
}

/* Adds the pending keys to the newest layer, in which they have room. */
static int add_to_newest(struct adding *a, unsigned number)
{
    perhaps_cluster *c = a->c;
    bool changed = false;
    const bool beside = adds_beside(a, number);
    int64_t leased_ms;
    int error = beside ? 0 : ask_older(a, number);
    if (!error)
        error = add_with_room(a, beside ? a->asked : number, number);
    keep_late(a);
    leased_ms = c->leased_ms;
    if (!error && layers_lease_is_over(c)) {
        error = layers_ask_newer(c, &changed);
        if (error || changed)
            forget_added(c->batch, true);
    }
    batch_sift(c->batch);
    return error || !changed ? error : go_to_newer(a, number, leased_ms);
}

/* Takes up the keys whose turn comes later. */
static void take_rest(struct adding *a)
{
    struct batch *batch = a->c->batch;
    memmove(batch->pending, batch->pending + a->rest, a->nrest * sizeof *batch->pending);
    batch->npending = a->nrest;
    a->asked = a->rest_asked;
    a->nrest = 0;
    a->whole = false;
}

/* Tries once to add the pending keys to the newest layer that is open.  Those that are still
 * pending then must be tried again. */
static int add_pending(struct adding *a)
{
    perhaps_cluster *c = a->c;
    if (!c->batch->npending)
        take_rest(a);
    if (room_layers(c, 0) > c->nlayers) { /* another handle of this process knows more */
        int error = layers_renew(c, false);
        if (error)
            return error;
    }
    const unsigned number = c->nlayers - 1;
    int error = await_layer(c, &c->layer[number]);
    if (!error)
        error = take_room(a, number);
    if (!error && a->room && c->batch->npending && c->nlayers == number + 1)
        error = add_to_newest(a, number);
    give_back_room(a, number);
    return error;
}

/* Returns how many keys at the beginning of the batch have an answer. */
static size_t count_done(const struct batch *batch, size_t limit)
{
    size_t n = 0;
    while (n < batch->count && n < limit && batch->answer[n] != UNKNOWN)
        n++;
    return n;
}

int keys_settle(perhaps_cluster *c)
{
    return room_settle(c, c->nlayers - 1, false);
}

int keys_add(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done)
{
    struct batch *batch = c->batch;
    struct adding a = { .c = c, .limit = SIZE_MAX };
    int error = batch_begin(c, keys);
    if (!error && c->about.counts_lost && !(error = layers_renew(c, true)))
        error = handle_check_counts(c);
    while (!error && (batch->npending || a.nrest))
        error = add_pending(&a);
    batch_end(batch);
    *done = count_done(batch, a.limit);
    if (error)
        return layers_explain_loss(c, error);
    return a.limit == SIZE_MAX
               ? 0
               : nodes_fail(&c->nodes, PERHAPS_ERR_FULL,
                            "is full: with one key more its rate would be higher than was "
                            "asked; make a larger one, or one that grows (--grow)");
}
