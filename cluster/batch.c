/* batch.c - a chunk of keys and one layer: a request for each key. */
#include <stdlib.h>
#include <string.h>

#include "work.h"

/* Beside the keys each chunk looks at a few partitions, all in turn, so that one that somebody
 * deletes by hand is missed even if nobody asks for it: one for each server, since a server may
 * have been emptied as a whole, and some more.  These, and what is asked of the description, go
 * to servers that are connected, and may stay without an answer: one that is down is none of
 * the others' business. */
enum { KEYS_A_WATCH = 256 };

int work_begin(perhaps_cluster *c, const struct perhaps_keys *keys, size_t first, size_t count)
{
    struct work *w = c->work;
    struct perhaps_keys some = perhaps_keys_slice(keys, first, count);
    int error = perhaps_layout_hash_many(c->layer[0].layout, &some, w->hash);
    if (error)
        return cluster_fail_plainly(c, error);
    memset(w->answer, UNKNOWN, count);
    for (uint32_t i = 0; i < count; i++)
        w->pending[i] = i;
    w->count = w->npending = count;
    return 0;
}

void work_sift(struct work *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->npending; i++)
        if (w->answer[w->pending[i]] == UNKNOWN)
            w->pending[n++] = w->pending[i];
    w->npending = n;
}

/* ---- The requests of a chunk ----------------------------------------------------------- */

struct batch {
    perhaps_cluster *c;
    const struct layer *layer;
    uint32_t *watch; /* of the work */
    size_t nwatches;
    bool asks;    /* whether there are newer layers, and the filter is the same */
    bool changed; /* the answer; or there is none, and they may have changed */
    bool lost;    /* a partition that was asked is not what it should be */
    uint32_t lost_partition;
};

static struct batch make_batch(perhaps_cluster *c, const struct layer *layer, bool asks)
{
    return (struct batch){ .c = c, .layer = layer, .watch = c->work->watch, .asks = asks };
}

/* Behind the keys: the watches, then two questions to the description. */
enum { ASK_ID, ASK_READY, ASKS };

static void locate_all(struct batch *b)
{
    struct work *w = b->c->work;
    const struct layer *layer = b->layer;
    struct perhaps_bits bits;
    for (size_t i = 0; i < w->npending; i++) {
        perhaps_layout_locate(layer->layout, &w->hash[w->pending[i]], &bits);
        uint64_t partition = bits.block / layer->partition_blocks;
        uint64_t block = bits.block - partition * layer->partition_blocks;
        w->partition[i] = (uint32_t)partition;
        w->offset[i] = (uint32_t)(block * layer->block_nbytes);
    }
}

/* A partition's length is looked at behind the questions to it, on the same connection.
 *
 * Adding to a partition that is lost makes a new one, short and empty, whose blocks answer "no"
 * until whoever added has looked at it, and removed it.  In a small filter one chunk puts
 * several keys into each block, so that those look as good as any: there all partitions that
 * are asked are looked at.  In a large one it is those whose block has the bits of a few keys
 * at most (see is_sparse()): when it is a third full, one block in some hundreds. */
enum { CHUNKS_AT_ONCE = 16, KEYS_BELIEVED = 3 };

static bool is_small(const struct layer *layer)
{
    return layer->blocks < (uint64_t)CHUNKS_AT_ONCE * CHUNK_KEYS;
}

static int compare_partitions(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts, and drops repeats.  Returns how many are left. */
static size_t make_unique(uint32_t *partition, size_t count)
{
    size_t n = 0;
    qsort(partition, count, sizeof *partition, compare_partitions);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || partition[i] != partition[i - 1])
            partition[n++] = partition[i];
    return n;
}

static bool is_connected(perhaps_cluster *c, unsigned slot)
{
    const struct link *link = nodes_master(&c->nodes, slot);
    return link && link->context;
}

/* The next partitions in turn, until each server has one, and some more. */
static void choose_in_turn(struct batch *b)
{
    perhaps_cluster *c = b->c;
    bool seen[NODES_MOST] = { false };
    size_t more = c->work->npending / KEYS_A_WATCH;
    for (uint64_t i = 0; i < b->layer->partitions && i < CHUNK_KEYS; i++) {
        uint32_t partition = (uint32_t)(c->turn % b->layer->partitions);
        unsigned slot = c->partition_slot[partition];
        uint16_t node = c->nodes.map.master[slot];
        bool is_new = node < NODES_MOST && !seen[node];
        if (!is_new && !more)
            break;
        c->turn++;
        if (!is_connected(c, slot))
            continue;
        more -= !is_new;
        seen[node] = true;
        b->watch[b->nwatches++] = partition;
    }
}

static void choose_watches(struct batch *b)
{
    const struct work *w = b->c->work;
    if (b->asks && is_small(b->layer)) {
        memcpy(b->watch, w->partition, w->npending * sizeof *b->watch);
        b->nwatches = make_unique(b->watch, w->npending);
    } else {
        choose_in_turn(b);
    }
}

static unsigned slot_of_request(void *context, size_t i)
{
    const struct batch *b = context;
    const struct work *w = b->c->work;
    if (i < w->npending)
        return b->c->partition_slot[w->partition[i]];
    i -= w->npending;
    return i < b->nwatches ? b->c->partition_slot[b->watch[i]] : b->c->slot;
}

static void write_description_question(const struct batch *b, size_t i, struct resp *out)
{
    char field[FIELD_NBYTES] = "id";
    if (i == ASK_READY)
        description_field(field, "ready", b->c->nlayers);
    resp_command(out, 3, 96);
    resp_text(out, i == ASK_READY ? "HEXISTS" : "HGET");
    resp_text(out, b->c->key);
    resp_text(out, field);
}

static void write_other(const struct batch *b, size_t i, struct resp *out)
{
    if (i < b->nwatches)
        partition_strlen(b->c, b->layer, b->watch[i], out);
    else
        write_description_question(b, i - b->nwatches, out);
}

static void note_lost(struct batch *b, uint32_t partition)
{
    b->lost = true;
    b->lost_partition = partition;
}

static int take_other(struct batch *b, size_t i, const struct reply *reply)
{
    perhaps_cluster *c = b->c;
    if (i < b->nwatches) {
        size_t nbytes = partition_nbytes(b->layer, b->watch[i]) + FOOTER_NBYTES;
        if (reply->type != REDIS_REPLY_INTEGER || reply->number != (long long)nbytes)
            note_lost(b, b->watch[i]);
        return 0;
    }
    if (i - b->nwatches == ASK_READY) {
        b->changed = reply->number != 0;
        return 0;
    }
    if (reply->type == REDIS_REPLY_STRING && reply->text_nbytes == ID_DIGITS &&
        memcmp(reply->text, c->about.id, ID_DIGITS) == 0)
        return 0;
    return cluster_fail(
        c, reply->type == REDIS_REPLY_NIL ? PERHAPS_ERR_MISSING : PERHAPS_ERR_CHANGED,
        "was deleted%s since it was opened",
        reply->type == REDIS_REPLY_NIL ? "" : " and made anew");
}

static int run_batch(struct batch *b, struct exchange *exchange)
{
    perhaps_cluster *c = b->c;
    bool small = b->asks && is_small(b->layer);
    size_t nasks = b->asks && is_connected(c, c->slot) ? ASKS : 0;
    c->work->nsuspects = 0;
    b->changed = b->asks && c->about.factor;
    locate_all(b);
    choose_watches(b);
    exchange->count = c->work->npending + b->nwatches + nasks;
    exchange->noptional = (small ? 0 : b->nwatches) + nasks;
    exchange->slot = slot_of_request;
    exchange->context = b;
    int error = exchange_run(&c->nodes, exchange);
    if (!error && b->lost)
        error = partitions_fail_lost(c, (unsigned)(b->layer - c->layer), b->lost_partition);
    return error ? error : partitions_check_new(c);
}

/* ---- Suspects -------------------------------------------------------------------------- */

/* What was made by adding to a lost partition is removed by who adds, so that nobody takes it
 * for the real one. */
static int look_at_suspects(perhaps_cluster *c, const struct layer *layer, bool adds)
{
    struct work *w = c->work;
    size_t n = make_unique(w->suspect, w->nsuspects);
    return n ? partitions_look(c, layer, w->suspect, n, adds) : 0;
}

/* ---- Asking ---------------------------------------------------------------------------- */

static void write_getrange(void *context, size_t i, struct resp *out)
{
    const struct batch *b = context;
    const struct work *w = b->c->work;
    if (i >= w->npending) {
        write_other(b, i - w->npending, out);
        return;
    }
    resp_command(out, 4, 128);
    resp_text(out, "GETRANGE");
    partition_name(b->c, b->layer, w->partition[i], out);
    resp_number(out, w->offset[i]);
    resp_number(out, w->offset[i] + b->layer->block_nbytes - 1);
}

static bool has_all(const char *block, const struct perhaps_bits *bits)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < bits->nbits; i++)
        missing |= ~(unsigned)block[bits->bit[i] / 8] & (1U << bits->bit[i] % 8);
    return !missing;
}

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

static int take_block(void *context, size_t i, const struct reply *reply, bool again)
{
    struct batch *b = context;
    struct work *w = b->c->work;
    struct perhaps_bits bits;
    (void)again;
    if (i >= w->npending)
        return take_other(b, i - w->npending, reply);
    if (reply->type != REDIS_REPLY_STRING || reply->text_nbytes != b->layer->block_nbytes) {
        note_lost(b, w->partition[i]);
        return 0;
    }
    perhaps_layout_locate(b->layer->layout, &w->hash[w->pending[i]], &bits);
    if (has_all(reply->text, &bits))
        w->answer[w->pending[i]] = PRESENT;
    else if (!is_small(b->layer) && is_sparse(reply->text, b->layer, bits.nbits))
        w->suspect[w->nsuspects++] = w->partition[i];
    return 0;
}

/* A replica that has not got a partition yet says nothing about the master.  Whoever adds asks
 * masters, and what these answer counts when their replicas have it, too. */
int work_ask(perhaps_cluster *c, const struct layer *layer, bool *changed)
{
    struct batch b = make_batch(c, layer, true);
    struct exchange exchange = { .write = write_getrange,
                                 .take = take_block,
                                 .replicas = c->replicas };
    int error = run_batch(&b, &exchange);
    if (error == PERHAPS_ERR_LOST && c->replicas) {
        b = make_batch(c, layer, true);
        exchange.replicas = false;
        error = run_batch(&b, &exchange);
    }
    *changed = b.changed;
    if (!error)
        error = look_at_suspects(c, layer, false);
    if (!error)
        work_sift(c->work);
    return error;
}

/* ---- Adding ---------------------------------------------------------------------------- */

/* Redis counts bits from the highest of each byte on. */
static uint64_t redis_bit(uint32_t offset, unsigned bit)
{
    return 8 * (uint64_t)offset + (bit / 8 * 8 + (7 - bit % 8));
}

static void write_bitfield(void *context, size_t i, struct resp *out)
{
    const struct batch *b = context;
    const struct work *w = b->c->work;
    struct perhaps_bits bits;
    if (i >= w->npending) {
        write_other(b, i - w->npending, out);
        return;
    }
    perhaps_layout_locate(b->layer->layout, &w->hash[w->pending[i]], &bits);
    resp_command(out, 2 + 4 * bits.nbits, 128 + 48 * (size_t)bits.nbits);
    resp_text(out, "BITFIELD");
    partition_name(b->c, b->layer, w->partition[i], out);
    for (unsigned k = 0; k < bits.nbits; k++) {
        resp_text(out, "SET");
        resp_text(out, "u1");
        resp_number(out, redis_bit(w->offset[i], bits.bit[k]));
        resp_text(out, "1");
    }
}

/* The old bits: were all set, the key was there.  Sent for the second time, that does not tell
 * whether it was the first time that set them. */
static int take_old_bits(void *context, size_t i, const struct reply *reply, bool again)
{
    struct batch *b = context;
    perhaps_cluster *c = b->c;
    struct work *w = c->work;
    size_t nset = 0;
    if (i >= w->npending)
        return take_other(b, i - w->npending, reply);
    if (reply->type != REDIS_REPLY_ARRAY || reply->count == 0 || reply->count > NUMBERS_MOST)
        return cluster_fail(c, PERHAPS_ERR_PROTOCOL, "a server answered strangely to BITFIELD");
    for (size_t k = 0; k < reply->count; k++)
        nset += reply->numbers[k] == 1;
    uint8_t *answer = &w->answer[w->pending[i]];
    bool all = nset == reply->count;
    if (nset == 0 && w->nsuspects < CHUNK_KEYS) /* a request may be taken twice */
        w->suspect[w->nsuspects++] = w->partition[i];
    if (*answer != UNKNOWN)
        return 0;
    *answer = all && !again ? PRESENT : ADDED;
    c->doubtful += all && again;
    return 0;
}

static void doubt_key(void *context, size_t i)
{
    const struct batch *b = context;
    struct work *w = b->c->work;
    w->nunknown += i < w->npending && w->answer[w->pending[i]] == UNKNOWN;
}

int work_add(perhaps_cluster *c, const struct layer *layer)
{
    struct batch b = make_batch(c, layer, false);
    struct exchange exchange = { .write = write_bitfield,
                                 .take = take_old_bits,
                                 .doubt = doubt_key,
                                 .acknowledge = c->acknowledge };
    int error = run_batch(&b, &exchange);
    return error ? error : look_at_suspects(c, layer, true);
}
