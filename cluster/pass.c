/* pass.c - the requests of a pass, and their replies. */
#include "pass.h"

#include <string.h>

#include "layers.h"
#include "partitions.h"

/* For every KEYS_A_WATCH keys the client also looks at the length of one partition, in turn.
 * So it finds out that a partition is gone, even if no key needs it.  These requests, and the
 * question whether there is a newer layer, only go to servers that are connected, and may stay
 * unanswered. */
enum { KEYS_A_WATCH = 256 };

/* ---- Keys, layers, partitions ------------------------------------------------------------ */

/* Requests are numbered key by key, and those of a key layer by layer. */
size_t pass_key(const struct pass *pass, size_t i)
{
    return pass->c->batch->pending[i / (pass->to - pass->from)];
}

unsigned pass_layer(const struct pass *pass, size_t i)
{
    return pass->from + (unsigned)(i % (pass->to - pass->from));
}

static struct layer *layer_of(const struct pass *pass, size_t i)
{
    return &pass->c->layer[pass_layer(pass, i)];
}

bool pass_is_add(const struct pass *pass, size_t i)
{
    return pass->adds && i < pass->nkeys && pass_layer(pass, i) == pass->to - 1;
}

/* Finds the bits of a request.  They are not kept: they would take most of the memory. */
static void locate_bits(const struct pass *pass, size_t i, struct perhaps_bits *bits)
{
    perhaps_layout_locate(layer_of(pass, i)->layout, &pass->c->batch->hash[pass_key(pass, i)],
                          bits);
}

void pass_locate(struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    struct perhaps_bits bits;
    pass->nkeys = batch->npending * (pass->to - pass->from);
    for (size_t i = 0; i < pass->nkeys; i++) {
        locate_bits(pass, i, &bits);
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

uint32_t pass_connection(const struct pass *pass, uint32_t partition)
{
    perhaps_cluster *c = pass->c;
    const struct link *link = nodes_master(&c->nodes, partition_slot(c, partition));
    return link && link_is_open(link) ? link->number : 0;
}

bool pass_was_seen(const struct pass *pass, size_t i, uint32_t connection)
{
    return connection && layer_of(pass, i)->seen[pass->c->batch->partition[i]] == connection;
}

static void watch(struct pass *pass, unsigned layer, uint32_t partition)
{
    struct batch *batch = pass->c->batch;
    batch->watch[pass->nwatches] = partition;
    batch->watch_layer[pass->nwatches++] = (uint8_t)layer;
}

/* Chooses the partitions that are looked at because questions need it: in layers whose blocks
 * are doubted all, in others those that were not seen yet. */
static void choose_watches(struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    for (unsigned number = pass->from; number < pass->to - pass->adds; number++) {
        size_t before = pass->nwatches;
        bool all = pass->c->layer[number].sparse;
        pass->watched |= (uint64_t)all << number;
        for (size_t i = number - pass->from; i < pass->nkeys; i += pass->to - pass->from)
            if (!(batch->before[i] & BEFORE_DONE) &&
                (all || !pass_was_seen(pass, i, pass_connection(pass, batch->partition[i]))))
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
        if (pass->nwatches < BATCH_KEYS && pass_connection(pass, partition))
            watch(pass, pass->to - 1, partition);
    }
    pass->nturns = pass->nwatches - before;
    pass->nwatches = before;
}

unsigned pass_slot(const struct request *request)
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

/* Chooses the adds that ask for the footer, too: with few keys all, with many the last one to
 * each partition.  A server does them in this order; so if the footer is there, the partition
 * was whole when the others came. */
static void choose_proofs(const struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    uint32_t *marked = pass->c->layer[pass->to - 1].marked;
    for (size_t i = pass->nkeys; i-- > 0;) {
        batch->proves[i] = false;
        if (!pass_is_add(pass, i) || batch->before[i] & BEFORE_DONE)
            continue;
        batch->proves[i] = !marked[batch->partition[i]] || pass->nkeys <= FEW_KEYS;
        marked[batch->partition[i]] = 1;
    }
    for (size_t i = 0; i < pass->nkeys; i++)
        if (batch->proves[i])
            marked[batch->partition[i]] = 0;
}

void pass_choose(struct pass *pass)
{
    const perhaps_cluster *c = pass->c;
    const struct link *home = nodes_master(&pass->c->nodes, c->nodes.home);
    if (pass_asks(pass))
        choose_watches(pass);
    choose_turns(pass);
    if (pass->adds)
        choose_proofs(pass);
    pass->asked_ms = now_ms();
    pass->nasks = pass_asks(pass) && layers_lease_is_over(c) && home && link_is_open(home);
}

/* ---- Questions --------------------------------------------------------------------------- */

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
    locate_bits(pass, i, &bits);
    if (reply->type != REDIS_REPLY_STRING || reply->text_nbytes != layer->block_nbytes) {
        note_lost(pass, pass_layer(pass, i), batch->partition[i]);
    } else if (has_all(reply->text, &bits)) {
        uint8_t *answer = &batch->answer[pass_key(pass, i)];
        *answer = *answer == ADDED ? ADDED_TOO : PRESENT;
    } else {
        batch->no_from[i] = request->link->number;
        batch->sparse[i] = layer->sparse = is_sparse(reply->text, layer);
    }
}

/* ---- Adds -------------------------------------------------------------------------------- */

/* Returns the number that Redis gives to a bit of a block: it counts the bits of each byte from
 * the highest one on, and this library from the lowest. */
static uint64_t redis_bit(size_t offset, unsigned bit)
{
    return 8 * (uint64_t)offset + (bit / 8 * 8 + (7 - bit % 8));
}

/* One BITFIELD sets all bits of a key at once and tells what they were.  Commands are atomic,
 * so of several clients that add one key, exactly one finds a bit that was 0.  It may also tell
 * the first byte of the footer, which proves that the partition is whole. */
static void write_add(const struct pass *pass, size_t i, struct resp *out)
{
    const struct batch *batch = pass->c->batch;
    const size_t offset = block_offset(pass, i);
    struct perhaps_bits bits;
    uint64_t bit[PERHAPS_BITS_MAX];
    locate_bits(pass, i, &bits);
    partition_command(pass->c, layer_of(pass, i), batch->partition[i], "BITFIELD",
                      1 + 4 * bits.nbits + 3 * batch->proves[i], 96 + 48 * (size_t)bits.nbits,
                      out);
    for (unsigned k = 0; k < bits.nbits; k++)
        bit[k] = redis_bit(offset, bits.bit[k]);
    batch_put_bits(out, true, bit, bits.nbits);
    if (batch->proves[i])
        partition_put_proof(layer_of(pass, i), batch->partition[i], out);
}

/* Takes the reply to an add.  Its partition is lost if the footer is not there. */
static int take_added(struct pass *pass, const struct request *request,
                      const struct reply *reply)
{
    struct batch *batch = pass->c->batch;
    const size_t i = request->i;
    size_t nbits = layer_of(pass, i)->key_nbits;
    bool proves = batch->proves[i];
    int nset = batch_take_bits(pass->c, &batch->answer[pass_key(pass, i)], reply, nbits, proves,
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
    note_lost(pass, pass->to - 1, batch->partition[i]);
    return 0;
}

/* Counts a key whose add was sent and never answered. */
void pass_doubt(const struct request *request)
{
    const struct pass *pass = request->context;
    struct batch *batch = pass->c->batch;
    const size_t i = request->i;
    batch->nunknown += pass_is_add(pass, i) &&
                       (pass_asks(pass) || batch->answer[pass_key(pass, i)] == UNKNOWN);
}

/* ---- All of them ------------------------------------------------------------------------- */

void pass_write(const struct request *request, struct resp *out)
{
    const struct pass *pass = request->context;
    const struct batch *batch = pass->c->batch;
    size_t i = request->i, behind = i - pass->nkeys;
    if (pass_is_add(pass, i))
        write_add(pass, i, out);
    else if (i < pass->nkeys)
        partition_getrange(pass->c, layer_of(pass, i), batch->partition[i],
                           block_offset(pass, i), layer_of(pass, i)->block_nbytes, out);
    else if (behind < pass->nwatches + pass->nturns)
        partition_command(pass->c, &pass->c->layer[batch->watch_layer[behind]],
                          batch->watch[behind], "STRLEN", 1, 0, out);
    else
        layers_write_newer(pass->c, out);
}

int pass_take(const struct request *request, const struct reply *reply)
{
    struct pass *pass = request->context;
    size_t i = request->i, behind = i - pass->nkeys;
    if (pass_is_add(pass, i))
        return take_added(pass, request, reply);
    if (i < pass->nkeys)
        take_block(pass, request, reply);
    else if (behind < pass->nwatches + pass->nturns)
        take_length(pass, behind, request, reply);
    else
        return layers_take_newer(pass->c, reply, pass->asked_ms);
    return 0;
}
