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
#include "swift.h"

/* For every KEYS_A_WATCH keys the client also looks at the length of one partition, in turn.
 * So it finds out that a partition is gone, even if no key needs it.  These requests, and the
 * question whether there is a newer layer, only go to servers that are connected, and may stay
 * unanswered. */
enum { KEYS_A_WATCH = 256 };

/* ---- The requests of a pass ------------------------------------------------------------ */

/* The context of one exchange, in which the pending keys are asked for or added.
 *
 *     0                      nkeys            + nwatches       + nturns        + nasks
 *     | one for each pending | STRLEN of their | STRLEN of some | is there a    |
 *     | key and each layer   | partitions      | in turn        | newer layer?  | */
struct pass {
    perhaps_cluster *c;
    unsigned from, to; /* the layers */
    bool replicas;
    size_t nkeys, nwatches, nturns, nasks;
    uint64_t watched; /* a bit for each layer: all partitions that are asked are watched */
    int64_t asked_ms;
    bool lost; /* a partition is not what it should be: this one */
    unsigned lost_layer;
    uint32_t lost_partition;
};

/* Requests are numbered key by key, and those of a key layer by layer. */
static size_t key_of(const struct pass *pass, size_t i)
{
    return pass->c->batch->pending[i / (pass->to - pass->from)];
}

static unsigned layer_number(const struct pass *pass, size_t i)
{
    return pass->from + (unsigned)(i % (pass->to - pass->from));
}

static struct layer *layer_of(const struct pass *pass, size_t i)
{
    return &pass->c->layer[layer_number(pass, i)];
}

/* Finds the bits of a request.  They are not kept: they would take most of the memory. */
static void locate(const struct pass *pass, size_t i, struct perhaps_bits *bits)
{
    perhaps_layout_locate(layer_of(pass, i)->layout, &pass->c->batch->hash[key_of(pass, i)],
                          bits);
}

/* Finds block and partition for each request. */
static void locate_all(struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    struct perhaps_bits bits;
    pass->nkeys = batch->npending * (pass->to - pass->from);
    for (size_t i = 0; i < pass->nkeys; i++) {
        locate(pass, i, &bits);
        batch->block[i] = bits.block;
        batch->partition[i] = (uint32_t)(bits.block / layer_of(pass, i)->partition_blocks);
    }
    memset(batch->no_from, 0, pass->nkeys * sizeof *batch->no_from);
    memset(batch->before, 0, pass->nkeys * sizeof *batch->before);
    batch->tried = false;
}

/* Returns where the block of a request begins, in bytes from the beginning of its partition. */
static size_t block_offset(const struct pass *pass, size_t i)
{
    const struct batch *batch = pass->c->batch;
    const struct layer *layer = layer_of(pass, i);
    uint64_t first = batch->partition[i] * layer->partition_blocks;
    return (size_t)(batch->block[i] - first) * layer->block_nbytes;
}

/* Returns the number of the connection to the master of a partition; 0: there is none now. */
static uint32_t connection_of(const struct pass *pass, uint32_t partition)
{
    perhaps_cluster *c = pass->c;
    const struct link *link = nodes_master(&c->nodes, partition_slot(c, partition));
    return link && link_is_open(link) ? link->number : 0;
}

/* Returns whether the partition of a request was seen to be whole over this connection. */
static bool was_seen(const struct pass *pass, size_t i, uint32_t connection)
{
    return connection && layer_of(pass, i)->seen[pass->c->batch->partition[i]] == connection;
}

static void watch(struct pass *pass, unsigned layer, uint32_t partition)
{
    struct batch *batch = pass->c->batch;
    batch->watch[pass->nwatches] = partition;
    batch->watch_layer[pass->nwatches++] = (uint8_t)layer;
}

/* Chooses the partitions that are looked at because keys need it: in layers whose blocks are
 * doubted all, in others those that were not seen yet. */
static void choose_watches(struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    for (unsigned number = pass->from; number < pass->to; number++) {
        size_t before = pass->nwatches;
        bool all = pass->c->layer[number].sparse;
        pass->watched |= (uint64_t)all << number;
        for (size_t i = number - pass->from; i < pass->nkeys; i += pass->to - pass->from)
            if (!(batch->before[i] & BEFORE_DONE) &&
                (all || !was_seen(pass, i, connection_of(pass, batch->partition[i]))))
                watch(pass, number, batch->partition[i]);
        pass->nwatches =
            before + partitions_sort(batch->watch + before, pass->nwatches - before);
    }
}

/* Chooses the next partitions in turn, of the newest layer. */
static void choose_turns(struct pass *pass)
{
    perhaps_cluster *c = pass->c;
    const struct layer *layer = &c->layer[pass->to - 1];
    const size_t before = pass->nwatches;
    c->unwatched += pass->nkeys;
    for (; c->unwatched >= KEYS_A_WATCH; c->unwatched -= KEYS_A_WATCH) {
        uint32_t partition = (uint32_t)(c->next_watch++ % layer->partitions);
        if (pass->nwatches < BATCH_KEYS && connection_of(pass, partition))
            watch(pass, pass->to - 1, partition);
    }
    pass->nturns = pass->nwatches - before;
    pass->nwatches = before;
}

static unsigned slot_of_request(const struct request *request)
{
    const struct pass *pass = request->context;
    perhaps_cluster *c = pass->c;
    size_t i = request->i;
    if (i < pass->nkeys)
        return partition_slot(c, c->batch->partition[i]);
    i -= pass->nkeys;
    return i < pass->nwatches + pass->nturns ? partition_slot(c, c->batch->watch[i])
                                             : c->nodes.home;
}

/* Notes that a partition is lost; the pass fails when the exchange has ended.  What was seen of
 * the partition before proves nothing any more, whatever else is told of it in this pass. */
static void note_lost(struct pass *pass, unsigned layer, uint32_t partition)
{
    pass->c->layer[layer].seen[partition] = 0;
    pass->lost = true;
    pass->lost_layer = layer;
    pass->lost_partition = partition;
}

static void take_length(struct pass *pass, size_t i, const struct request *request,
                        const struct reply *reply)
{
    const struct batch *batch = pass->c->batch;
    unsigned number = batch->watch_layer[i];
    struct layer *layer = &pass->c->layer[number];
    if (partition_is_whole(layer, batch->watch[i], reply))
        layer->seen[batch->watch[i]] = request->link->number;
    else
        note_lost(pass, number, batch->watch[i]);
}

/* ---- Asking ---------------------------------------------------------------------------- */

/* Returns whether all bits of a key are set.  No branch depends on a bit, since the CPU would
 * mispredict it half of the time. */
static bool has_all(const char *block, const struct perhaps_bits *bits)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < bits->nbits; i++)
        missing |= ~(unsigned)block[bits->bit[i] / 8] & (1U << bits->bit[i] % 8);
    return !missing;
}

/* Returns whether a block has so few bits that a "no" from it is doubted. */
static bool is_sparse(const char *block, const struct layer *layer)
{
    unsigned nset = 0;
    for (size_t i = 0; i < layer->block_nbytes && nset <= layer->bits_doubted;
         i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, block + i, sizeof word);
        nset += (unsigned)__builtin_popcountll(word);
    }
    return nset <= layer->bits_doubted;
}

/* Takes the block of a key.  One that is too short is proof that its partition is lost. */
static void take_block(struct pass *pass, const struct request *request,
                       const struct reply *reply)
{
    struct batch *batch = pass->c->batch;
    size_t i = request->i;
    struct layer *layer = layer_of(pass, i);
    struct perhaps_bits bits;
    locate(pass, i, &bits);
    if (reply->type != REDIS_REPLY_STRING || reply->text_nbytes != layer->block_nbytes) {
        note_lost(pass, layer_number(pass, i), batch->partition[i]);
    } else if (has_all(reply->text, &bits)) {
        batch->answer[key_of(pass, i)] = PRESENT;
    } else {
        batch->no_from[i] = request->link->number;
        batch->sparse[i] = layer->sparse = is_sparse(reply->text, layer);
    }
}

static void write_question(const struct request *request, struct resp *out)
{
    const struct pass *pass = request->context;
    const struct batch *batch = pass->c->batch;
    size_t i = request->i, behind = i - pass->nkeys;
    if (i < pass->nkeys)
        partition_getrange(pass->c, layer_of(pass, i), batch->partition[i],
                           block_offset(pass, i), layer_of(pass, i)->block_nbytes, out);
    else if (behind < pass->nwatches + pass->nturns)
        partition_command(pass->c, &pass->c->layer[batch->watch_layer[behind]],
                          batch->watch[behind], "STRLEN", 1, 0, out);
    else
        layers_write_newer(pass->c, out);
}

static int take_answer(const struct request *request, const struct reply *reply)
{
    struct pass *pass = request->context;
    size_t i = request->i, behind = i - pass->nkeys;
    if (i < pass->nkeys)
        take_block(pass, request, reply);
    else if (behind < pass->nwatches + pass->nturns)
        take_length(pass, behind, request, reply);
    else
        return layers_take_newer(pass->c, reply, pass->asked_ms);
    return 0;
}

/* Returns the error of a pass: that of its exchange, or that a partition is lost. */
static int error_of(const struct pass *pass, int error)
{
    perhaps_cluster *c = pass->c;
    return !error && pass->lost
               ? partitions_fail_lost(c, &c->layer[pass->lost_layer], pass->lost_partition)
               : error;
}

/* Returns whether a "no" counts without a further look.  'in_order': each request was sent once
 * only, to masters, and answered, so the lengths were told after the blocks. */
static bool is_proven(const struct pass *pass, size_t i, bool in_order)
{
    const struct batch *batch = pass->c->batch;
    if (batch->before[i] & BEFORE_DONE) /* the server has looked at the partition itself */
        return true;
    uint32_t from =
        pass->replicas ? connection_of(pass, batch->partition[i]) : batch->no_from[i];
    if (!was_seen(pass, i, from))
        return false;
    return !batch->sparse[i] || (in_order && pass->watched >> layer_number(pass, i) & 1);
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
        batch->unsure[key_of(pass, i)] |= !batch->no_from[i];
}

/* Runs one pass of questions.  After an error such as no memory, or at the end of the deadline,
 * it looks no further, and what is not proven does not count. */
static int ask(struct pass *pass)
{
    perhaps_cluster *c = pass->c;
    const uint64_t retries = c->nodes.retries, redirections = c->nodes.redirections;
    const struct link *home = nodes_master(&c->nodes, c->nodes.home);
    locate_all(pass);
    int error = pass->to - pass->from == 1 ? swift_ask(c, pass->from, pass->replicas) : 0;
    if (error) {
        note_unsure(pass);
        return error;
    }
    choose_watches(pass);
    choose_turns(pass);
    pass->asked_ms = now_ms();
    pass->nasks = layers_lease_is_over(c) && home && link_is_open(home);
    struct exchange exchange = {
        .count = pass->nkeys + pass->nwatches + pass->nturns + pass->nasks,
        .noptional = pass->nturns + pass->nasks,
        .nreplicas = pass->replicas ? pass->nkeys : 0,
        .slot = slot_of_request,
        .write = write_question,
        .take = take_answer,
        .context = pass,
        .partial = true,
        .before = c->batch->before,
        .nbefore = c->batch->tried ? pass->nkeys : 0,
    };
    error = exchange_run(&c->nodes, &exchange);
    bool in_order = !error && !pass->replicas && retries == c->nodes.retries &&
                    redirections == c->nodes.redirections;
    c->nodes.impatient |= error == PERHAPS_ERR_UNREACHABLE;
    error = error_of(pass, error);
    for (unsigned number = pass->from; number < pass->to; number++) {
        int failure = look_again(pass, number, in_order);
        error = error ? error : failure;
    }
    note_unsure(pass);
    return error;
}

/* A replica may not have a partition yet that its master has.  So if a replica seems to have
 * lost one, all is asked again, of masters alone. */
int batch_ask(perhaps_cluster *c, unsigned from, unsigned to, bool replicas)
{
    struct batch *batch = c->batch;
    struct pass pass = { .c = c, .from = from, .to = to, .replicas = replicas };
    int error = ask(&pass);
    if (error == PERHAPS_ERR_LOST && replicas) {
        memset(batch->unsure, 0, batch->count);
        pass = (struct pass){ .c = c, .from = from, .to = to };
        error = ask(&pass);
    }
    batch_sift(batch);
    return error;
}

/* ---- Adding ---------------------------------------------------------------------------- */

void batch_put_bits(struct resp *out, bool sets, const uint64_t *bit, unsigned nbits)
{
    for (unsigned k = 0; k < nbits; k++) {
        resp_text(out, sets ? "SET" : "GET");
        resp_text(out, "u1");
        resp_number(out, bit[k]);
        if (sets)
            resp_text(out, "1");
    }
}

/* Returns the number that Redis gives to a bit of a block: it counts the bits of each byte from
 * the highest one on, and this library from the lowest. */
static uint64_t redis_bit(size_t offset, unsigned bit)
{
    return 8 * (uint64_t)offset + (bit / 8 * 8 + (7 - bit % 8));
}

/* One BITFIELD sets all bits of a key at once and tells what they were.  Commands are atomic,
 * so of several clients that add one key, exactly one finds a bit that was 0.  It may also tell
 * the first byte of the footer, which proves that the partition is whole. */
static void write_add(const struct request *request, struct resp *out)
{
    const struct pass *pass = request->context;
    const struct batch *batch = pass->c->batch;
    size_t i = request->i, offset, behind = i - pass->nkeys;
    if (i >= pass->nkeys) {
        partition_command(pass->c, &pass->c->layer[batch->watch_layer[behind]],
                          batch->watch[behind], "STRLEN", 1, 0, out);
        return;
    }
    struct perhaps_bits bits;
    uint64_t bit[PERHAPS_BITS_MAX];
    locate(pass, i, &bits);
    offset = block_offset(pass, i);
    partition_command(pass->c, layer_of(pass, i), batch->partition[i], "BITFIELD",
                      1 + 4 * bits.nbits + 3 * batch->proves[i], 96 + 48 * (size_t)bits.nbits,
                      out);
    for (unsigned k = 0; k < bits.nbits; k++)
        bit[k] = redis_bit(offset, bits.bit[k]);
    batch_put_bits(out, true, bit, bits.nbits);
    if (batch->proves[i])
        partition_put_proof(layer_of(pass, i), batch->partition[i], out);
}

int batch_take_bits(perhaps_cluster *c, uint8_t *answer, const struct reply *reply,
                    size_t nbits, size_t more, bool again)
{
    int nset = 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != nbits + more)
        return nodes_fail(&c->nodes, PERHAPS_ERR_PROTOCOL,
                          "a server answered strangely to BITFIELD");
    for (size_t k = 0; k < nbits; k++)
        nset += reply->numbers[k] == 1;
    bool all = nset == (int)nbits;
    if (*answer == UNKNOWN) {
        *answer = all && !again ? PRESENT : ADDED;
        c->doubtful += all && again;
    }
    return nset;
}

/* Takes the reply to an add.  Its partition is lost if the footer is not there. */
static int take_added(const struct request *request, const struct reply *reply)
{
    struct pass *pass = request->context;
    struct batch *batch = pass->c->batch;
    size_t i = request->i;
    if (i >= pass->nkeys) {
        take_length(pass, i - pass->nkeys, request, reply);
        return 0;
    }
    size_t nbits = layer_of(pass, i)->key_nbits;
    bool proves = batch->proves[i];
    int nset = batch_take_bits(pass->c, &batch->answer[key_of(pass, i)], reply, nbits, proves,
                               request->again);
    if (nset < 0)
        return nset;
    if (!proves)
        return 0;
    if (partition_is_proven(reply->numbers[nbits])) {
        layer_of(pass, i)->seen[batch->partition[i]] = request->link->number;
        return 0;
    }
    if (batch->nsuspects < BATCH_KEYS) /* a reply may be taken twice */
        batch->suspect[batch->nsuspects++] = batch->partition[i];
    note_lost(pass, pass->from, batch->partition[i]);
    return 0;
}

/* Counts a key whose add was sent and never answered. */
static void doubt_key(const struct request *request)
{
    const struct pass *pass = request->context;
    struct batch *batch = pass->c->batch;
    batch->nunknown +=
        request->i < pass->nkeys && batch->answer[key_of(pass, request->i)] == UNKNOWN;
}

/* Chooses the adds that ask for the footer, too: with few keys all, with many the last one to
 * each partition.  A server does them in this order; so if the footer is there, the partition
 * was whole when the others came. */
static void choose_proofs(const struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    uint32_t *marked = pass->c->layer[pass->from].marked;
    for (size_t i = pass->nkeys; i-- > 0;) {
        batch->proves[i] = false;
        if (batch->before[i] & BEFORE_DONE)
            continue;
        batch->proves[i] = !marked[batch->partition[i]] || pass->nkeys <= FEW_KEYS;
        marked[batch->partition[i]] = 1;
    }
    for (size_t i = 0; i < pass->nkeys; i++)
        marked[batch->partition[i]] = 0;
}

/* If adds were sent again or elsewhere, their order is not known, and all are under
 * suspicion. */
static void suspect_all(const struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    memcpy(batch->suspect, batch->partition, pass->nkeys * sizeof *batch->suspect);
    batch->nsuspects = pass->nkeys;
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

int batch_add(perhaps_cluster *c, unsigned layer)
{
    struct batch *batch = c->batch;
    struct pass pass = { .c = c, .from = layer, .to = layer + 1 };
    locate_all(&pass);
    int error = swift_add(c, layer);
    if (error)
        return error;
    choose_turns(&pass);
    batch->nsuspects = 0;
    choose_proofs(&pass);
    const uint64_t retries = c->nodes.retries, redirections = c->nodes.redirections;
    struct exchange exchange = {
        .count = pass.nkeys + pass.nturns,
        .noptional = pass.nturns,
        .slot = slot_of_request,
        .write = write_add,
        .take = take_added,
        .doubt = doubt_key,
        .context = &pass,
        .acknowledged = true,
        .before = batch->before,
        .nbefore = batch->tried ? pass.nkeys : 0,
    };
    error = exchange_run(&c->nodes, &exchange);
    if (retries != c->nodes.retries || redirections != c->nodes.redirections)
        suspect_all(&pass);
    if (!error)
        error = look_at_suspects(c, &c->layer[layer]);
    return error_of(&pass, error);
}
