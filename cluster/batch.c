/* batch.c - sends a request for each pending key and layer, and behind these the requests that
 * find out whether a partition is lost.
 *
 * Invariant: no key is answered "no" from a partition that may have been lost.  Such a "no"
 * counts only if
 *
 * - the partition was seen to be whole over the very connection by which the "no" came.  A
 *   server that restarts without its data breaks all its connections, and so does one whose
 *   place another takes; so behind a connection that has not broken the data are still there.
 *   What was seen is noted (layer->seen), so each partition is looked at once a connection.
 * - and the block has the bits of more keys than clients may have added just now to a partition
 *   that somebody had deleted (find_doubts() in layers.c), or the partition was seen to be
 *   whole after the "no": a partition that was lost never becomes whole again.
 *
 * Adding twice sets the same bits, so requests may be sent again; only the answer to an add
 * then says less (batch_take_bits()). */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "partitions.h"
#include "pass.h"
#include "swift.h"

/* ---- Asking ------------------------------------------------------------------------------ */

/* Returns the error of a pass: that of its exchange, or that a partition is lost. */
static int error_of(const struct pass *pass, int error)
{
    perhaps_cluster *c = pass->c;
    return !error && pass->lost
               ? partitions_fail_lost(c, &c->layer[pass->lost_layer], pass->lost_partition)
               : error;
}

/* Returns whether a "no" counts without a further look.  'in_order': see send_pass(); then the
 * lengths were told after the blocks. */
static bool is_proven(const struct pass *pass, size_t i, bool in_order)
{
    const struct batch *batch = pass->c->batch;
    if (batch->before[i] & BEFORE_DONE) /* the server has looked at the partition itself */
        return true;
    uint32_t from =
        pass->replicas ? pass_connection(pass, batch->partition[i]) : batch->no_from[i];
    if (!pass_was_seen(pass, i, from))
        return false;
    return !batch->sparse[i] || (in_order && pass->watched >> pass_layer(pass, i) & 1);
}

/* Returns the index of a partition in the sorted list of suspects. */
static size_t find_suspect(const struct batch *batch, uint32_t partition)
{
    size_t low = 0, high = batch->nsuspects;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (batch->suspect[middle] < partition)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Looks at the partitions of one layer from which a "no" came that is not proven.  A "no" from
 * one that is not seen to be whole now does not count. */
static int look_again(const struct pass *pass, unsigned number, bool in_order)
{
    struct batch *batch = pass->c->batch;
    const size_t step = pass->to - pass->from;
    batch->nsuspects = 0;
    for (size_t i = number - pass->from; i < pass->nkeys; i += step)
        if (batch->no_from[i] && !is_proven(pass, i, in_order))
            batch->suspect[batch->nsuspects++] = batch->partition[i];
    if (!batch->nsuspects)
        return 0;
    batch->nsuspects = partitions_sort(batch->suspect, batch->nsuspects);
    int error = partitions_look(pass->c, &pass->c->layer[number], batch->suspect,
                                batch->nsuspects, batch->sight);
    for (size_t i = number - pass->from; i < pass->nkeys; i += step) {
        size_t k = find_suspect(batch, batch->partition[i]);
        if (k < batch->nsuspects && batch->suspect[k] == batch->partition[i] &&
            batch->sight[k] != SEEN_WHOLE)
            batch->no_from[i] = 0;
    }
    return error;
}

/* Marks the keys as unsure of which a layer has not answered.  Those that another layer has are
 * PRESENT all the same. */
static void note_unsure(const struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    for (size_t i = 0; i < pass->nkeys; i++)
        batch->unsure[pass_key(pass, i)] |= !pass_is_add(pass, i) && !batch->no_from[i];
}

/* Sends the requests of a pass and takes the replies.  Sets *in_order to whether each was sent
 * once only, to masters, and answered. */
static int send_pass(struct pass *pass, bool *in_order)
{
    perhaps_cluster *c = pass->c;
    const uint64_t retries = c->nodes.retries, redirections = c->nodes.redirections;
    pass_choose(pass);
    struct exchange exchange = {
        .count = pass->nkeys + pass->nwatches + pass->nturns + pass->nasks,
        .noptional = pass->nturns + pass->nasks,
        .nreplicas = pass->replicas ? pass->nkeys : 0,
        .slot = pass_slot,
        .write = pass_write,
        .take = pass_take,
        .doubt = pass->adds ? pass_doubt : NULL,
        .context = pass,
        .partial = pass_asks(pass),
        .acknowledged = pass->adds,
        .before = c->batch->before,
        .nbefore = c->batch->tried ? pass->nkeys : 0,
    };
    int error = exchange_run(&c->nodes, &exchange);
    *in_order = !error && !pass->replicas && retries == c->nodes.retries &&
                redirections == c->nodes.redirections;
    return error;
}

/* Finds out which "no" counts of the layers that were asked.  After an error such as no memory,
 * or at the end of the deadline, it looks no further, and what is not proven does not count. */
static int prove(const struct pass *pass, bool in_order)
{
    int error = 0;
    for (unsigned number = pass->from; number < pass->to - pass->adds; number++) {
        int failure = look_again(pass, number, in_order);
        error = error ? error : failure;
    }
    note_unsure(pass);
    return error;
}

/* Runs one pass of questions. */
static int ask_pass(struct pass *pass)
{
    perhaps_cluster *c = pass->c;
    bool in_order;
    pass_locate(pass);
    int error = pass->to - pass->from == 1 ? swift_ask(c, pass->from, pass->replicas) : 0;
    if (error) {
        note_unsure(pass);
        return error;
    }
    error = send_pass(pass, &in_order);
    c->nodes.impatient |= error == PERHAPS_ERR_UNREACHABLE;
    error = error_of(pass, error);
    int failure = prove(pass, in_order);
    return error ? error : failure;
}

/* A replica may not have a partition yet that its master has.  So if a replica seems to have
 * lost one, all is asked again, of masters alone. */
int batch_ask(perhaps_cluster *c, unsigned from, unsigned to, bool replicas)
{
    struct batch *batch = c->batch;
    struct pass pass = { .c = c, .from = from, .to = to, .replicas = replicas };
    int error = ask_pass(&pass);
    if (error == PERHAPS_ERR_LOST && replicas) {
        memset(batch->unsure, 0, batch->count);
        pass = (struct pass){ .c = c, .from = from, .to = to };
        error = ask_pass(&pass);
    }
    batch_sift(batch);
    return error;
}

/* ---- Adding ------------------------------------------------------------------------------ */

/* If adds were sent again or elsewhere, their order is not known, and all are under
 * suspicion. */
static void suspect_all(const struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    batch->nsuspects = 0;
    for (size_t i = 0; i < pass->nkeys; i++)
        if (pass_is_add(pass, i))
            batch->suspect[batch->nsuspects++] = batch->partition[i];
}

/* Looks at the partitions that are under suspicion, and removes those that are lost: this
 * client may have made them by adding.  What was added to them is gone. */
static int look_at_suspects(perhaps_cluster *c, struct layer *layer)
{
    struct batch *batch = c->batch;
    size_t n = partitions_sort(batch->suspect, batch->nsuspects);
    if (!n)
        return 0;
    int error = partitions_look(c, layer, batch->suspect, n, batch->sight);
    if (error != PERHAPS_ERR_LOST)
        return error;
    struct aside aside;
    handle_begin_aside(c, &aside);
    partitions_remove_lost(c, layer, batch->suspect, n, batch->sight);
    handle_end_aside(c, &aside);
    return error;
}

int batch_add(perhaps_cluster *c, unsigned from, unsigned layer)
{
    struct pass pass = { .c = c, .from = from, .to = layer + 1, .adds = true };
    const uint64_t retries = c->nodes.retries, redirections = c->nodes.redirections;
    bool in_order;
    pass_locate(&pass);
    int error = pass_asks(&pass) ? 0 : swift_add(c, layer);
    if (error)
        return error;
    c->batch->nsuspects = 0;
    error = send_pass(&pass, &in_order);
    if (retries != c->nodes.retries || redirections != c->nodes.redirections)
        suspect_all(&pass);
    if (!error)
        error = look_at_suspects(c, &c->layer[layer]);
    error = error_of(&pass, error);
    int failure = pass_asks(&pass) ? prove(&pass, in_order) : 0;
    return error ? error : failure;
}
