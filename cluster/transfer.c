/* transfer.c - filters from files to servers and back: the same bytes, piece by piece. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"

/* Pieces that are under way at once, and their size. */
enum { PIECE_NBYTES = 1 << 20, PIECES = 16 };

struct piece {
    uint64_t partition;
    size_t offset, nbytes; /* in it */
    char *bytes;           /* where they come from, or go to */
};

struct transfer {
    perhaps_cluster *c;
    const struct layer *layer;
    const perhaps_filter *filter;
    struct piece piece[PIECES];
    char *room;
    uint64_t at; /* of the next byte of the body */
    uint64_t keys;
};

/* The next bytes of the body, none across the end of a partition. */
static struct piece next_piece(const struct transfer *t, uint64_t at, uint64_t end)
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

static unsigned piece_slot(void *context, size_t i)
{
    const struct transfer *t = context;
    return t->c->partition_slot[t->piece[i].partition];
}

/* ---- Up -------------------------------------------------------------------------------- */

static void write_piece(void *context, size_t i, struct resp *out)
{
    const struct transfer *t = context;
    const struct piece *piece = &t->piece[i];
    resp_command(out, 4, piece->nbytes + 256);
    resp_text(out, "SETRANGE");
    partition_name(t->c, t->layer, piece->partition, out);
    resp_number(out, piece->offset);
    resp_bytes(out, piece->bytes, piece->nbytes);
}

/* Reads the next pieces.  Returns how many; 0: none is left. */
static int read_pieces(struct transfer *t, size_t *n)
{
    uint64_t end = t->layer->plan.body_nbytes;
    for (*n = 0; *n < PIECES && t->at < end; ++*n) {
        struct piece *piece = &t->piece[*n];
        *piece = next_piece(t, t->at, end);
        piece->bytes = t->room + *n * PIECE_NBYTES;
        int error = perhaps_body_read(t->filter, t->at, piece->bytes, piece->nbytes);
        if (error)
            return cluster_fail_plainly(t->c, error);
        t->at += piece->nbytes;
    }
    return 0;
}

struct setting_keys {
    char counts[sizeof((perhaps_cluster *)NULL)->counts];
    uint64_t keys;
};

static void write_keys(void *context, size_t i, struct resp *out)
{
    const struct setting_keys *setting = context;
    (void)i;
    resp_command(out, 4, 128);
    resp_text(out, "HSET");
    resp_text(out, setting->counts);
    resp_text(out, "keys.0");
    resp_number(out, setting->keys);
}

static int fill(perhaps_cluster *c, void *context)
{
    struct transfer *t = context;
    struct setting_keys setting = { .keys = t->keys };
    struct talk talk = { .count = 1, .write = write_keys, .context = &setting };
    struct exchange exchange = {
        .slot = piece_slot, .write = write_piece, .context = t, .acknowledge = c->acknowledge
    };
    cluster_counts_key(c, c->about.id, setting.counts);
    t->layer = &c->layer[0];
    for (;;) {
        int error = read_pieces(t, &exchange.count);
        if (error || exchange.count == 0)
            return error ? error : cluster_talk(c, &talk);
        error = exchange_run(&c->nodes, &exchange);
        if (error)
            return error;
        if (c->progress)
            c->progress(c->context, t->at, t->layer->plan.body_nbytes);
    }
}

int perhaps_cluster_upload(perhaps_cluster *c, const perhaps_filter *filter,
                           uint64_t partitions)
{
    struct perhaps_stats stats;
    perhaps_layout *layout;
    if (c->address.redisson)
        return cluster_fail(c, PERHAPS_ERR_UNSUPPORTED,
                            "a filter of ours is none of "
                            "Redisson's: leave out layout=redisson");
    perhaps_stats_of(filter, &stats);
    int error = perhaps_layout_of(filter, &layout);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return cluster_fail(c, error,
                            "a filter of kind %s, or with several lines a key apart, cannot be "
                            "put on servers: build it with --kind blocked --together",
                            stats.plan.kind);
    if (error)
        return cluster_fail_plainly(c, error);
    struct transfer t = { .c = c,
                          .filter = filter,
                          .room = malloc((size_t)PIECES * PIECE_NBYTES),
                          .keys = stats.keys };
    struct perhaps_options options = { .capacity = stats.plan.capacity, .fpr = stats.plan.fpr };
    if (t.room) {
        error = layers_make_first(c, layout, &options, partitions, fill, &t);
    } else {
        perhaps_layout_free(layout);
        error = cluster_fail_plainly(c, PERHAPS_ERR_MEMORY);
    }
    free(t.room);
    return error;
}

/* ---- Down ------------------------------------------------------------------------------ */

static void write_getrange(void *context, size_t i, struct resp *out)
{
    const struct transfer *t = context;
    const struct piece *piece = &t->piece[i];
    resp_command(out, 4, 256);
    resp_text(out, "GETRANGE");
    partition_name(t->c, t->layer, piece->partition, out);
    resp_number(out, piece->offset);
    resp_number(out, piece->offset + piece->nbytes - 1);
}

static int take_piece(void *context, size_t i, const struct reply *reply, bool again)
{
    const struct transfer *t = context;
    const struct piece *piece = &t->piece[i];
    (void)again;
    if (reply->type != REDIS_REPLY_STRING || reply->text_nbytes != piece->nbytes)
        return partitions_fail_lost(t->c, (unsigned)(t->layer - t->c->layer), piece->partition);
    memcpy(piece->bytes, reply->text, piece->nbytes);
    return 0;
}

/* A perhaps_reader. */
static int download(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    struct transfer *t = context;
    perhaps_cluster *c = t->c;
    char *to = buffer;
    struct exchange exchange = {
        .slot = piece_slot, .write = write_getrange, .take = take_piece, .context = t
    };
    for (uint64_t at = offset, end = offset + nbytes; at < end;) {
        for (exchange.count = 0; exchange.count < PIECES && at < end; exchange.count++) {
            struct piece *piece = &t->piece[exchange.count];
            *piece = next_piece(t, at, end);
            piece->bytes = to + (at - offset);
            at += piece->nbytes;
        }
        int error = exchange_run(&c->nodes, &exchange);
        if (!error)
            error = partitions_check_new(c);
        if (error)
            return error;
    }
    if (c->progress)
        c->progress(c->context, offset + nbytes, t->layer->plan.body_nbytes);
    return 0;
}

int perhaps_cluster_download(perhaps_cluster *c, const char *path)
{
    struct transfer t = { .c = c, .layer = &c->layer[0] };
    struct description about;
    if (c->address.redisson)
        return cluster_fail(c, PERHAPS_ERR_UNSUPPORTED,
                            "a filter of Redisson's has no file of ours");
    if (!c->open)
        return cluster_fail(c, PERHAPS_ERR_ARGUMENT, "is not open");
    int error = cluster_describe(c, &about);
    if (!error)
        error = cluster_open_layers(c, &about);
    if (error)
        return error;
    if (about.factor)
        return cluster_fail(c, PERHAPS_ERR_UNSUPPORTED,
                            "is one that grows, which has no file: only filters made without "
                            "--grow have");
    c->nodes.problem[0] = '\0';
    error = perhaps_layout_save(c->layer[0].layout, about.layer[0].keys, download, &t, path);
    if (error && !c->nodes.problem[0])
        cluster_fail(c, error, "%s: %s", path,
                     error == PERHAPS_ERR_IO ? strerror(errno) : perhaps_strerror(error));
    return error;
}
