/* batch.c - sends a request for each pending key, and behind these the requests that find out
 * whether a partition is lost.
 *
 * Invariant: no key is answered "no" from a partition that may have been lost.  Adding twice
 * sets the same bits, so requests may be sent again; only the answer to an add then says less
 * (batch_take_bits()). */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "partitions.h"

/* Each batch also watches some partitions, in turn: it looks at their lengths.  So the client
 * finds out in time that a partition is gone, even if no key needs it.  It watches one on each
 * server, since a server may have been emptied as a whole, and one more for every KEYS_A_WATCH
 * keys.  These requests, and the questions to the description, only go to servers that are
 * connected, and may stay unanswered: if one server is down, keys on the others are answered as
 * before. */
enum { KEYS_A_WATCH = 256 };

int batch_begin(perhaps_cluster *c, const struct perhaps_keys *keys)
{
    struct batch *batch = c->batch;
    int error = perhaps_layout_hash_many(c->layer[0].layout, keys, batch->hash);
    if (error)
        return nodes_fail_plainly(&c->nodes, error);
    memset(batch->answer, UNKNOWN, keys->count);
    for (uint32_t i = 0; i < keys->count; i++)
        batch->pending[i] = i;
    batch->count = batch->npending = keys->count;
    return 0;
}

void batch_sift(struct batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->npending; i++)
        if (batch->answer[batch->pending[i]] == UNKNOWN)
            batch->pending[n++] = batch->pending[i];
    batch->npending = n;
}

/* ---- The requests of a batch ----------------------------------------------------------- */

/* The context of one exchange, in which the pending keys are asked for or added. */
struct pass {
    perhaps_cluster *c;
    const struct layer *layer;
    bool adds;
    size_t nwatches;
    bool changed; /* there are newer layers; or no server has told, and there may be some */
    bool lost;    /* a partition is not what it should be */
    uint32_t lost_partition;
};

/* Finds bits and partition of each pending key. */
static void locate_all(struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    for (size_t i = 0; i < batch->npending; i++) {
        perhaps_layout_locate(pass->layer->layout, &batch->hash[batch->pending[i]],
                              &batch->bits[i]);
        batch->partition[i] = (uint32_t)(batch->bits[i].block / pass->layer->partition_blocks);
    }
}

/* Returns where the block of a pending key begins, in bytes from the beginning of its
 * partition. */
static size_t block_offset(const struct pass *pass, size_t i)
{
    const struct batch *batch = pass->c->batch;
    uint64_t first = batch->partition[i] * pass->layer->partition_blocks;
    return (size_t)(batch->bits[i].block - first) * pass->layer->block_nbytes;
}

/* Adding to a partition that is lost makes a new one, which is short and empty.  Its blocks
 * answer "no" until the client that added finds that it is too short, and removes it.  Other
 * clients must not believe such a "no" meanwhile:
 *
 * - In a large filter the blocks of a new partition are nearly empty.  So the client looks at
 *   the length of a partition if a block of it answers "no" and has the bits of at most
 *   KEYS_BELIEVED keys (is_sparse()).  That is one block in some hundreds when the filter is a
 *   third full.
 * - In a small filter one batch, or a few batches at once, put several keys into each block, so
 *   the block of a new partition looks as good as any.  So the client looks at the length of
 *   each partition that it asks.  It does so behind its questions, over the same connection.  A
 *   lost partition never becomes whole again, so one that is whole then was whole when the
 *   questions were answered. */
enum { BATCHES_AT_ONCE = 16, KEYS_BELIEVED = 3 };

static bool is_small(const struct layer *layer)
{
    return layer->blocks < (uint64_t)BATCHES_AT_ONCE * BATCH_KEYS;
}

/* Returns whether the length of each partition that is asked is looked at.  An add suspects
 * lost partitions by the bits that it finds (take_old_bits()). */
static bool watches_all(const struct pass *pass)
{
    return !pass->adds && is_small(pass->layer);
}

static int compare_partitions(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts a list of partitions, and drops repeated ones.  Returns how many are left. */
static size_t make_unique(uint32_t *partition, size_t count)
{
    size_t n = 0;
    qsort(partition, count, sizeof *partition, compare_partitions);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || partition[i] != partition[i - 1])
            partition[n++] = partition[i];
    return n;
}

/* Returns whether the link to the node that owns the slot is open. */
static bool is_connected(perhaps_cluster *c, unsigned slot)
{
    const struct link *link = nodes_master(&c->nodes, slot);
    return link && link_is_open(link);
}

/* Chooses the next partitions in turn.  The first one on a server that has none yet is always
 * taken; others are taken as long as the number of keys allows. */
static void choose_in_turn(struct pass *pass)
{
    perhaps_cluster *c = pass->c;
    struct batch *batch = c->batch;
    bool seen[NODES_MOST] = { false };
    size_t more = batch->npending / KEYS_A_WATCH;
    for (uint64_t i = 0; i < pass->layer->partitions && i < BATCH_KEYS; i++) {
        uint32_t partition = (uint32_t)(c->next_watch % pass->layer->partitions);
        unsigned slot = c->partition_slot[partition];
        uint16_t node = c->nodes.map.master[slot];
        bool is_new = node < NODES_MOST && !seen[node];
        if (!is_new && !more)
            break;
        c->next_watch++;
        if (!is_connected(c, slot))
            continue;
        more -= !is_new;
        seen[node] = true;
        batch->watch[pass->nwatches++] = partition;
    }
}

/* Chooses the partitions whose lengths are looked at in this pass. */
static void choose_watches(struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    if (watches_all(pass)) {
        memcpy(batch->watch, batch->partition, batch->npending * sizeof *batch->watch);
        pass->nwatches = make_unique(batch->watch, batch->npending);
    } else {
        choose_in_turn(pass);
    }
}

/* Notes that a partition is lost; run_pass() fails when the exchange has ended. */
static void note_lost(struct pass *pass, uint32_t partition)
{
    pass->lost = true;
    pass->lost_partition = partition;
}

/* ---- Asking ---------------------------------------------------------------------------- */

static void write_getrange(const struct pass *pass, size_t i, struct resp *out)
{
    partition_getrange(pass->c, pass->layer, pass->c->batch->partition[i],
                       block_offset(pass, i), pass->layer->block_nbytes, out);
}

/* Returns whether all bits of a key are set.  No branch depends on a bit, since the CPU would
 * mispredict it half of the time. */
static bool has_all(const char *block, const struct perhaps_bits *bits)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < bits->nbits; i++)
        missing |= ~(unsigned)block[bits->bit[i] / 8] & (1U << bits->bit[i] % 8);
    return !missing;
}

/* Returns whether a block has the bits of at most KEYS_BELIEVED keys. */
static bool is_sparse(const char *block, const struct layer *layer, unsigned nbits)
{
    const unsigned most = KEYS_BELIEVED * nbits;
    unsigned nset = 0;
    for (size_t i = 0; i < layer->block_nbytes && nset <= most; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, block + i, sizeof word);
        nset += (unsigned)__builtin_popcountll(word);
    }
    return nset <= most;
}

/* Takes the block of a key.  A block that is too short is proof that its partition is lost; a
 * "no" from one that is nearly empty is a suspicion. */
static int take_block(struct pass *pass, size_t i, const struct reply *reply)
{
    struct batch *batch = pass->c->batch;
    if (reply->type != REDIS_REPLY_STRING || reply->text_nbytes != pass->layer->block_nbytes)
        note_lost(pass, batch->partition[i]);
    else if (has_all(reply->text, &batch->bits[i]))
        batch->answer[batch->pending[i]] = PRESENT;
    else if (!is_small(pass->layer) &&
             is_sparse(reply->text, pass->layer, batch->bits[i].nbits))
        batch->suspect[batch->nsuspects++] = batch->partition[i];
    return 0;
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
 * so of several clients that add one key, exactly one finds a bit that was 0. */
static void write_bitfield(const struct pass *pass, size_t i, struct resp *out)
{
    const struct perhaps_bits *bits = &pass->c->batch->bits[i];
    const size_t offset = block_offset(pass, i);
    uint64_t bit[PERHAPS_BITS_MAX];
    partition_command(pass->c, pass->layer, pass->c->batch->partition[i], "BITFIELD",
                      1 + 4 * bits->nbits, 32 + 48 * (size_t)bits->nbits, out);
    for (unsigned k = 0; k < bits->nbits; k++)
        bit[k] = redis_bit(offset, bits->bit[k]);
    batch_put_bits(out, true, bit, bits->nbits);
}

int batch_take_bits(perhaps_cluster *c, uint8_t *answer, const struct reply *reply,
                    size_t nbits, bool again)
{
    int nset = 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != nbits)
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

/* A key none of whose bits were set may have been added to a partition that was lost. */
static int take_old_bits(struct pass *pass, size_t i, const struct reply *reply, bool again)
{
    struct batch *batch = pass->c->batch;
    int nset = batch_take_bits(pass->c, &batch->answer[batch->pending[i]], reply,
                               batch->bits[i].nbits, again);
    if (nset == 0 && batch->nsuspects < BATCH_KEYS) /* a request may be taken twice */
        batch->suspect[batch->nsuspects++] = batch->partition[i];
    return nset < 0 ? nset : 0;
}

/* ---- The requests of a pass ------------------------------------------------------------ */

/*     0                 npending          + nwatches           + ASKS
 *     | one for each key | STRLEN of some   | questions to the
 *     | that is pending  | partitions       | description, if it asks */

/* Which of the three a request is follows from its number. */
static unsigned slot_of_request(const struct request *request)
{
    const struct pass *pass = request->context;
    const perhaps_cluster *c = pass->c;
    const struct batch *batch = c->batch;
    size_t i = request->i;
    if (i < batch->npending)
        return c->partition_slot[batch->partition[i]];
    i -= batch->npending;
    return i < pass->nwatches ? c->partition_slot[batch->watch[i]] : c->nodes.home;
}

static void write_request(const struct request *request, struct resp *out)
{
    const struct pass *pass = request->context;
    const struct batch *batch = pass->c->batch;
    size_t i = request->i, behind = i - batch->npending;
    if (i < batch->npending && pass->adds)
        write_bitfield(pass, i, out);
    else if (i < batch->npending)
        write_getrange(pass, i, out);
    else if (behind < pass->nwatches)
        partition_command(pass->c, pass->layer, batch->watch[behind], "STRLEN", 1, 0, out);
    else
        layers_write_question(pass->c, (enum question)(behind - pass->nwatches),
                              pass->c->nlayers, out);
}

static int take_reply(const struct request *request, const struct reply *reply)
{
    struct pass *pass = request->context;
    const struct batch *batch = pass->c->batch;
    size_t i = request->i, behind = i - batch->npending;
    if (i < batch->npending)
        return pass->adds ? take_old_bits(pass, i, reply, request->again)
                          : take_block(pass, i, reply);
    if (behind >= pass->nwatches)
        return layers_take_answer(pass->c, (enum question)(behind - pass->nwatches), reply,
                                  &pass->changed);
    if (!partition_is_whole(pass->layer, batch->watch[behind], reply))
        note_lost(pass, batch->watch[behind]);
    return 0;
}

/* Counts a key whose add was sent and never answered. */
static void doubt_key(const struct request *request)
{
    const struct pass *pass = request->context;
    struct batch *batch = pass->c->batch;
    size_t i = request->i;
    batch->nunknown += i < batch->npending && batch->answer[batch->pending[i]] == UNKNOWN;
}

/* Runs one pass.  'changed' begins as true for a filter that grows: if no server tells that
 * there is no newer layer, there may be one.  Adding asks no question, since keys_add() asks
 * when it reserves room and when it gives back. */
static int run_pass(struct pass *pass, bool replicas)
{
    perhaps_cluster *c = pass->c;
    struct batch *batch = c->batch;
    size_t nasks = !pass->adds && is_connected(c, c->nodes.home) ? ASKS : 0;
    batch->nsuspects = 0;
    pass->changed = !pass->adds && c->about.factor;
    locate_all(pass);
    choose_watches(pass);
    struct exchange exchange = {
        .count = batch->npending + pass->nwatches + nasks,
        .noptional = (watches_all(pass) ? 0 : pass->nwatches) + nasks,
        .slot = slot_of_request,
        .write = write_request,
        .take = take_reply,
        .doubt = pass->adds ? doubt_key : NULL,
        .context = pass,
        .replicas = replicas,
        .acknowledged = pass->adds,
    };
    int error = exchange_run(&c->nodes, &exchange);
    if (!error && pass->lost)
        error = partitions_fail_lost(c, pass->layer, pass->lost_partition);
    return error ? error : partitions_check_new(c);
}

/* Looks at the partitions that are under suspicion.  After adding, removes those that are lost:
 * this client may have made them by adding. */
static int look_at_suspects(const struct pass *pass)
{
    struct batch *batch = pass->c->batch;
    size_t n = make_unique(batch->suspect, batch->nsuspects);
    return n ? partitions_look(pass->c, pass->layer, batch->suspect, n, pass->adds) : 0;
}

/* A replica may not have a partition yet that its master has.  So if a replica seems to have
 * lost one, all is asked again, of masters alone. */
int batch_ask(perhaps_cluster *c, const struct layer *layer, bool replicas, bool *changed)
{
    struct pass pass = { .c = c, .layer = layer };
    int error = run_pass(&pass, replicas);
    if (error == PERHAPS_ERR_LOST && replicas) {
        pass = (struct pass){ .c = c, .layer = layer };
        error = run_pass(&pass, false);
    }
    *changed = pass.changed;
    if (!error)
        error = look_at_suspects(&pass);
    if (!error)
        batch_sift(c->batch);
    return error;
}

int batch_add(perhaps_cluster *c, const struct layer *layer)
{
    struct pass pass = { .c = c, .layer = layer, .adds = true };
    int error = run_pass(&pass, false);
    return error ? error : look_at_suspects(&pass);
}
