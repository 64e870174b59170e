/* partitions.c - names partitions, knows their lengths, makes and removes them, and checks
 * whether they are whole.
 *
 * All exchanges here may be sent twice: making, removing and measuring a string again gives the
 * same. */
#include "partitions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

/* How many requests are under way at once.  Those that make partitions may be fewer: a large
 * one takes a server some milliseconds, since it zeroes memory, and other clients wait
 * meanwhile. */
enum { CHECKED_AT_ONCE = 16384, MADE_NBYTES_AT_ONCE = 64 << 20 };

/* ---- Names ----------------------------------------------------------------------------- */

/* Writes "perhaps:{NAME/P".  Returns its end. */
static char *put_tag(const perhaps_cluster *c, uint64_t partition, char *name)
{
    memcpy(name, c->prefix, c->prefix_nbytes);
    return put_digits(name + c->prefix_nbytes, partition);
}

void partition_command(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                       const char *command, unsigned nargs, size_t nbytes, struct resp *out)
{
    char name[sizeof c->prefix + sizeof layer->suffix + 20];
    char *end = put_tag(c, partition, name);
    memcpy(end, layer->suffix, layer->suffix_nbytes);
    resp_command(out, 1 + nargs, 96 + nbytes);
    resp_text(out, command);
    resp_bytes(out, name, (size_t)(end - name) + layer->suffix_nbytes);
}

void partition_getrange(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                        size_t offset, size_t nbytes, struct resp *out)
{
    partition_command(c, layer, partition, "GETRANGE", 3, 32, out);
    resp_number(out, offset);
    resp_number(out, offset + nbytes - 1);
}

/* Returns room for 'count' elements, of which the first 'before' are kept and the others are
 * zero; NULL: there is no memory, and 'old' stays.  Memory that is never used costs nothing. */
static void *more_room(void *old, size_t before, size_t count, size_t size)
{
    void *room = calloc(count, size);
    if (!room)
        return NULL;
    if (before)
        memcpy(room, old, before * size);
    free(old);
    return room;
}

int partitions_make_room(perhaps_cluster *c, struct layer *layer, uint64_t partitions)
{
    if (partitions > c->nslots) {
        uint16_t *slot = more_room(c->slot, c->nslots, partitions, sizeof *slot);
        if (!slot)
            return PERHAPS_ERR_MEMORY;
        c->slot = slot;
        c->nslots = partitions;
    }
    if (layer && !layer->seen)
        layer->seen = calloc(partitions, sizeof *layer->seen);
    if (layer && !layer->marked)
        layer->marked = calloc(partitions, sizeof *layer->marked);
    return layer && (!layer->seen || !layer->marked) ? PERHAPS_ERR_MEMORY : 0;
}

/* 0 means that a slot is not computed yet, so each is noted as one more. */
unsigned partition_slot(perhaps_cluster *c, uint64_t partition)
{
    if (!c->slot[partition]) {
        char name[sizeof c->prefix + 24];
        char *end = put_tag(c, partition, name);
        *end++ = '}';
        c->slot[partition] = (uint16_t)(1 + slot_of(name, (size_t)(end - name)));
    }
    return c->slot[partition] - 1U;
}

/* ---- Lengths --------------------------------------------------------------------------- */

/* All partitions have partition_blocks blocks, but the last one has what is left. */
size_t partition_nbytes(const struct layer *layer, uint64_t partition)
{
    uint64_t left = layer->blocks - partition * layer->partition_blocks;
    uint64_t blocks = left < layer->partition_blocks ? left : layer->partition_blocks;
    return blocks * layer->block_nbytes;
}

bool partition_is_whole(const struct layer *layer, uint64_t partition,
                        const struct reply *reply)
{
    size_t nbytes = partition_nbytes(layer, partition) + FOOTER_NBYTES;
    return reply->type == REDIS_REPLY_INTEGER && reply->number == (long long)nbytes;
}

void partition_put_proof(const struct layer *layer, uint64_t partition, struct resp *out)
{
    resp_text(out, "GET");
    resp_text(out, "u8");
    resp_number(out, 8 * (uint64_t)partition_nbytes(layer, partition));
}

bool partition_is_proven(long long number)
{
    return number == 'p'; /* of "perhaps": see write_footer() */
}

void partitions_share_out(perhaps_cluster *c, uint64_t held[NODES_MOST])
{
    memset(held, 0, NODES_MOST * sizeof *held);
    for (unsigned i = 0; i < c->nlayers; i++)
        for (uint64_t p = 0; p < c->layer[i].partitions; p++) {
            uint16_t node = c->nodes.map.master[partition_slot(c, p)];
            if (node != NOBODY)
                held[node] += partition_nbytes(&c->layer[i], p) + FOOTER_NBYTES;
        }
}

/* ---- One request for each of some partitions ------------------------------------------- */

/* The context of an exchange that sends one request to each of some partitions of a layer. */
struct visit {
    perhaps_cluster *c;
    const struct layer *layer;
    uint32_t *seen;            /* layer->seen, if what is seen is noted there; else NULL */
    uint8_t *sight;            /* of each request: enum sight; NULL: not wanted */
    const uint32_t *partition; /* the partition of each request that is under way */
    struct census *census;
};

static unsigned visit_slot(const struct request *request)
{
    const struct visit *visit = request->context;
    return partition_slot(visit->c, visit->partition[request->i]);
}

/* Runs the exchange over all partitions of a layer, 'at_once' at a time.  'tell': shows
 * progress. */
static int visit_all(struct visit *visit, struct exchange *exchange, size_t at_once, bool tell)
{
    perhaps_cluster *c = visit->c;
    const struct layer *layer = visit->layer;
    uint32_t *partition = malloc(at_once * sizeof *partition);
    uint64_t at = 0;
    int error = 0;
    if (!partition)
        return nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
    exchange->slot = visit_slot;
    exchange->context = visit;
    visit->partition = partition;
    while (!error && at < layer->partitions) {
        for (exchange->count = 0; exchange->count < at_once && at < layer->partitions; at++)
            partition[exchange->count++] = (uint32_t)at;
        error = exchange_run(&c->nodes, exchange);
        if (!error && tell && c->progress)
            c->progress(c->context, at * partition_nbytes(layer, 0),
                        layer->partitions * partition_nbytes(layer, 0));
    }
    free(partition);
    return error;
}

/* ---- Making and removing --------------------------------------------------------------- */

/* Writing the footer behind the end of a string that is not there makes the string and fills it
 * with zeros.  If it is there already, the same footer is written again, and its bits stay. */
static void write_footer(const struct request *request, struct resp *out)
{
    const struct visit *visit = request->context;
    const perhaps_cluster *c = visit->c;
    uint64_t partition = visit->partition[request->i];
    char footer[FOOTER_NBYTES] = { 0 };
    snprintf(footer, FOOTER_NBYTES, "perhaps %s.%u partition %ju\n", c->about.id,
             (unsigned)(visit->layer - c->layer), (uintmax_t)partition);
    partition_command(c, visit->layer, partition, "SETRANGE", 3, 160, out);
    resp_number(out, partition_nbytes(visit->layer, partition));
    resp_bytes(out, footer, sizeof footer);
}

static int take_made(const struct request *request, const struct reply *reply)
{
    const struct visit *visit = request->context;
    return handle_take_number(visit->c, reply, "SETRANGE");
}

int partitions_make(perhaps_cluster *c, const struct layer *layer)
{
    struct visit visit = { .c = c, .layer = layer };
    struct exchange exchange = { .write = write_footer,
                                 .take = take_made,
                                 .acknowledged = true };
    size_t at_once = MADE_NBYTES_AT_ONCE / (partition_nbytes(layer, 0) + FOOTER_NBYTES) + 1;
    return visit_all(&visit, &exchange, at_once < CHECKED_AT_ONCE ? at_once : CHECKED_AT_ONCE,
                     true);
}

static void write_unlink(const struct request *request, struct resp *out)
{
    const struct visit *visit = request->context;
    uint64_t partition = visit->partition[request->i];
    partition_command(visit->c, visit->layer, partition, "UNLINK", 1, 0, out);
}

static int take_removed(const struct request *request, const struct reply *reply)
{
    const struct visit *visit = request->context;
    return handle_take_number(visit->c, reply, "UNLINK");
}

int partitions_remove(perhaps_cluster *c, const struct layer *layer)
{
    struct visit visit = { .c = c, .layer = layer };
    struct exchange exchange = { .write = write_unlink, .take = take_removed };
    return visit_all(&visit, &exchange, CHECKED_AT_ONCE, true);
}

/* ---- Looking at lengths ---------------------------------------------------------------- */

static void write_strlen(const struct request *request, struct resp *out)
{
    const struct visit *visit = request->context;
    uint64_t partition = visit->partition[request->i];
    partition_command(visit->c, visit->layer, partition, "STRLEN", 1, 0, out);
}

/* Counts the partition, and notes if it is lost. */
static int take_strlen(const struct request *request, const struct reply *reply)
{
    const struct visit *visit = request->context;
    struct census *census = visit->census;
    uint32_t partition = visit->partition[request->i];
    census->looked_at++;
    bool whole = partition_is_whole(visit->layer, partition, reply);
    if (visit->sight)
        visit->sight[request->i] = whole ? SEEN_WHOLE : SEEN_LOST;
    if (visit->seen)
        visit->seen[partition] = whole ? request->link->number : 0;
    if (whole)
        return 0;
    if (!census->lost++ || partition < census->first_lost) {
        census->first_lost = partition;
        census->first_layer = (unsigned)(visit->layer - visit->c->layer);
    }
    return 0;
}

/* The server is the one that owns the slot now; it need not be the one that lost the data. */
int partitions_fail_lost(perhaps_cluster *c, const struct layer *layer, uint64_t partition)
{
    const struct link *link = nodes_master(&c->nodes, partition_slot(c, partition));
    return nodes_fail(&c->nodes, PERHAPS_ERR_LOST,
                      "%s has lost partition %ju of layer %u: restore the server's data, or "
                      "'perhaps delete' the filter and make it anew",
                      link ? link->name : "the cluster", (uintmax_t)partition,
                      (unsigned)(layer - c->layer));
}

/* Returns 0, or PERHAPS_ERR_LOST with the first partition that is lost. */
static int fail_if_lost(perhaps_cluster *c, const struct census *census)
{
    return census->lost
               ? partitions_fail_lost(c, &c->layer[census->first_layer], census->first_lost)
               : 0;
}

int partitions_check(perhaps_cluster *c, struct census *census)
{
    int error = 0;
    *census = (struct census){ 0 };
    for (unsigned i = 0; i < c->nlayers && !error; i++) {
        struct visit visit = { .c = c, .layer = &c->layer[i], .census = census };
        struct exchange exchange = { .write = write_strlen, .take = take_strlen };
        error = visit_all(&visit, &exchange, CHECKED_AT_ONCE, false);
    }
    return error ? error : fail_if_lost(c, census);
}

int partitions_look(perhaps_cluster *c, struct layer *layer, const uint32_t *partition,
                    size_t n, uint8_t *sight)
{
    struct census census = { 0 };
    struct visit visit = { .c = c,
                           .layer = layer,
                           .seen = layer->seen,
                           .sight = sight,
                           .partition = partition,
                           .census = &census };
    struct exchange exchange = { .count = n,
                                 .slot = visit_slot,
                                 .write = write_strlen,
                                 .take = take_strlen,
                                 .context = &visit,
                                 .partial = true };
    memset(sight, SEEN_NOT, n);
    int error = exchange_run(&c->nodes, &exchange);
    return error ? error : fail_if_lost(c, &census);
}

int partitions_remove_lost(perhaps_cluster *c, const struct layer *layer,
                           const uint32_t *partition, size_t n, const uint8_t *sight)
{
    uint32_t *lost = malloc((n + 1) * sizeof *lost);
    struct visit visit = { .c = c, .layer = layer, .partition = lost };
    struct exchange exchange = { .slot = visit_slot, .write = write_unlink, .context = &visit };
    if (!lost)
        return nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
    for (size_t i = 0; i < n; i++)
        if (sight[i] == SEEN_LOST)
            lost[exchange.count++] = partition[i];
    int error = exchange_run(&c->nodes, &exchange);
    free(lost);
    return error;
}

static int compare_partitions(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

size_t partitions_sort(uint32_t *partition, size_t count)
{
    size_t n = 0;
    if (count > 1)
        qsort(partition, count, sizeof *partition, compare_partitions);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || partition[i] != partition[i - 1])
            partition[n++] = partition[i];
    return n;
}
