/* transfer.c - copies filters from files to servers and back, piece by piece.
 *
 * The bytes are the same on both sides: the partitions without their footers, one behind the
 * other, are the body of a file.  A piece that is sent twice is written twice to the same
 * place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "operations.h"
#include "partitions.h"

/* How many pieces are under way at once, and how large they are.  Together they bound the
 * memory that a transfer takes, and keep several servers busy. */
enum { PIECE_NBYTES = 1 << 20, PIECES = 16 };

/* Some bytes of a partition. */
struct piece {
    uint64_t partition;
    size_t offset, nbytes; /* where they lie in it */
    char *bytes;           /* where they come from or go to; belongs to the caller */
};

/* The copying of one filter, and the context of its exchanges. */
struct transfer {
    perhaps_cluster *c;
    const struct layer *layer;
    const perhaps_filter *filter; /* the filter in memory; NULL: it goes down */
    uint64_t keys;                /* how many that filter has */
    struct piece piece[PIECES];   /* the pieces that are under way */
};

/* Returns the piece that begins at 'at' in the body, and ends at the end of its partition or at
 * 'end' at the latest. */
static struct piece piece_at(const struct transfer *t, uint64_t at, uint64_t end)
{
    const struct layer *layer = t->layer;
    uint64_t whole = layer->partition_blocks * layer->block_nbytes;
    struct piece piece = { .partition = at / whole, .offset = (size_t)(at % whole) };
    uint64_t left = partition_nbytes(layer, piece.partition) - piece.offset;
    piece.nbytes = left < PIECE_NBYTES ? left : PIECE_NBYTES;
    if (piece.nbytes > end - at)
        piece.nbytes = (size_t)(end - at);
    return piece;
}

/* Fills in the next pieces of the body, from 'at' on.  Their bytes stand one behind the other,
 * from 'bytes' on.  Sets *n to how many there are, at most PIECES.  Returns where the last one
 * ends in the body. */
static uint64_t next_pieces(struct transfer *t, uint64_t at, uint64_t end, char *bytes,
                            size_t *n)
{
    for (*n = 0; *n < PIECES && at < end; ++*n) {
        struct piece *piece = &t->piece[*n];
        *piece = piece_at(t, at, end);
        piece->bytes = bytes;
        bytes += piece->nbytes;
        at += piece->nbytes;
    }
    return at;
}

/* Tells the caller how many bytes of the body are done. */
static void tell_progress(const struct transfer *t, uint64_t at)
{
    perhaps_cluster *c = t->c;
    if (c->progress)
        c->progress(c->context, at, t->layer->plan.body_nbytes);
}

static unsigned piece_slot(const struct request *request)
{
    const struct transfer *t = request->context;
    return partition_slot(t->c, t->piece[request->i].partition);
}

/* ---- Up -------------------------------------------------------------------------------- */

static void write_piece(const struct request *request, struct resp *out)
{
    const struct transfer *t = request->context;
    const struct piece *piece = &t->piece[request->i];
    partition_command(t->c, t->layer, piece->partition, "SETRANGE", 3, piece->nbytes + 160,
                      out);
    resp_number(out, piece->offset);
    resp_bytes(out, piece->bytes, piece->nbytes);
}

static int take_written(const struct request *request, const struct reply *reply)
{
    const struct transfer *t = request->context;
    return handle_take_number(t->c, reply, "SETRANGE");
}

/* Sets the count of the first layer.  HSET may be sent twice; HINCRBY would count twice. */
static int set_count(perhaps_cluster *c, uint64_t keys)
{
    char counts[sizeof c->counts], number[24];
    handle_name_counts(c, c->about.id, counts);
    snprintf(number, sizeof number, "%ju", (uintmax_t)keys);
    return handle_tell(c, (const char *const[]){ "HSET", counts, "keys.0", number, NULL });
}

/* Copies the body to the partitions.  'room' has space for all pieces under way. */
static int send_body(struct transfer *t, char *room)
{
    struct exchange exchange = { .slot = piece_slot,
                                 .write = write_piece,
                                 .take = take_written,
                                 .context = t,
                                 .acknowledged = true };
    for (uint64_t at = 0, end = t->layer->plan.body_nbytes; at < end;) {
        uint64_t next = next_pieces(t, at, end, room, &exchange.count);
        int error = perhaps_body_read(t->filter, at, room, (size_t)(next - at));
        error = error ? nodes_fail_plainly(&t->c->nodes, error)
                      : exchange_run(&t->c->nodes, &exchange);
        if (error)
            return error;
        at = next;
        tell_progress(t, at);
    }
    return 0;
}

/* Fills the partitions of a filter that others cannot open yet: see create_from(). */
static int fill_partitions(perhaps_cluster *c, void *context)
{
    struct transfer *t = context;
    char *room = malloc((size_t)PIECES * PIECE_NBYTES);
    t->layer = &c->layer[0];
    int error = room ? send_body(t, room) : nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
    free(room);
    return error ? error : set_count(c, t->keys);
}

/* The filter on servers has the options of the one in memory, and its layout. */
int transfer_up(perhaps_cluster *c, const perhaps_filter *filter, uint64_t partitions)
{
    struct perhaps_stats stats;
    perhaps_layout *layout;
    perhaps_stats_of(filter, &stats);
    int error = perhaps_layout_of(filter, &layout);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return nodes_fail(&c->nodes, error,
                          "a filter of kind %s, or with several lines a key apart, cannot be "
                          "put on servers: build it with --kind blocked --together",
                          stats.plan.kind);
    if (error)
        return nodes_fail_plainly(&c->nodes, error);
    struct transfer t = { .c = c, .filter = filter, .keys = stats.keys };
    struct perhaps_options options = { .capacity = stats.plan.capacity, .fpr = stats.plan.fpr };
    return create_from(c, layout, &options, partitions, fill_partitions, &t);
}

/* ---- Down ------------------------------------------------------------------------------ */

static void write_getrange(const struct request *request, struct resp *out)
{
    const struct transfer *t = request->context;
    const struct piece *piece = &t->piece[request->i];
    partition_getrange(t->c, t->layer, piece->partition, piece->offset, piece->nbytes, out);
}

/* A piece that is too short shows that the partition was lost. */
static int take_piece(const struct request *request, const struct reply *reply)
{
    const struct transfer *t = request->context;
    const struct piece *piece = &t->piece[request->i];
    if (reply->type != REDIS_REPLY_STRING || reply->text_nbytes != piece->nbytes)
        return partitions_fail_lost(t->c, t->layer, piece->partition);
    memcpy(piece->bytes, reply->text, piece->nbytes);
    return 0;
}

/* Looks at the partitions of the pieces that were read: one that was lost and made anew could
 * be long enough. */
static int check_pieces(struct transfer *t, size_t n)
{
    uint32_t partition[PIECES];
    uint8_t sight[PIECES];
    for (size_t i = 0; i < n; i++)
        partition[i] = (uint32_t)t->piece[i].partition;
    n = partitions_sort(partition, n);
    return partitions_look(t->c, &t->c->layer[0], partition, n, sight);
}

/* Reads some bytes of the body: the perhaps_reader for perhaps_layout_save(). */
static int download(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    struct transfer *t = context;
    char *bytes = buffer;
    struct exchange exchange = {
        .slot = piece_slot, .write = write_getrange, .take = take_piece, .context = t
    };
    for (uint64_t at = offset, end = offset + nbytes; at < end;) {
        at = next_pieces(t, at, end, bytes + (at - offset), &exchange.count);
        int error = exchange_run(&t->c->nodes, &exchange);
        if (!error)
            error = check_pieces(t, exchange.count);
        if (error)
            return error;
    }
    tell_progress(t, offset + nbytes);
    return 0;
}

/* perhaps_layout_save() returns an error of download(), which has noted its problem, or one of
 * its own, which has none: so the problem is emptied first. */
int transfer_down(perhaps_cluster *c, const char *path)
{
    struct transfer t = { .c = c, .layer = &c->layer[0] };
    int error = layers_renew(c, true);
    if (!error)
        error = handle_check_counts(c);
    if (error)
        return error;
    if (c->about.factor)
        return nodes_fail(&c->nodes, PERHAPS_ERR_UNSUPPORTED,
                          "is one that grows, which has no file: only filters made without "
                          "--grow have");
    c->nodes.problem[0] = '\0';
    error = perhaps_layout_save(c->layer[0].layout, layer_keys(&c->about.layer[0]), download,
                                &t, path);
    if (error && !c->nodes.problem[0])
        nodes_fail(&c->nodes, error, "%s: %s", path,
                   error == PERHAPS_ERR_IO ? strerror(errno) : perhaps_strerror(error));
    return error;
}
