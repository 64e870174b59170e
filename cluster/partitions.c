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

/* How many requests are under way at once.  Those that make a partition are fewer: each takes a
 * server some milliseconds, since it zeroes memory, and other clients wait meanwhile. */
enum { CHECKED_AT_ONCE = 16384, MADE_AT_ONCE = 64 };

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

/* Slots are computed once for each partition, and not for each key of each batch. */
int partitions_find_slots(perhaps_cluster *c, uint64_t partitions)
{
    if (partitions <= c->nslots)
        return 0;
    uint16_t *slots = realloc(c->partition_slot, partitions * sizeof *slots);
    if (!slots)
        return PERHAPS_ERR_MEMORY;
    c->partition_slot = slots;
    for (; c->nslots < partitions; c->nslots++) {
        char name[sizeof c->prefix + 24];
        char *end = put_tag(c, c->nslots, name);
        *end++ = '}';
        slots[c->nslots] = (uint16_t)slot_of(name, (size_t)(end - name));
    }
    return 0;
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

void partitions_share_out(const perhaps_cluster *c, uint64_t held[NODES_MOST])
{
    memset(held, 0, NODES_MOST * sizeof *held);
    for (unsigned i = 0; i < c->nlayers; i++)
        for (uint64_t p = 0; p < c->layer[i].partitions; p++) {
            uint16_t node = c->nodes.map.master[c->partition_slot[p]];
            if (node != NOBODY)
                held[node] += partition_nbytes(&c->layer[i], p) + FOOTER_NBYTES;
        }
}

/* ---- One request for each of some partitions ------------------------------------------- */

/* The context of an exchange that sends one request to each of some partitions of a layer. */
struct visit {
    perhaps_cluster *c;
    const struct layer *layer;
    bool fresh;                /* only partitions behind links that are fresh: see below */
    bool optional;             /* requests may stay unanswered */
    const uint32_t *partition; /* the partition of each request that is under way */
    struct census *census;
    uint32_t *lost; /* room for a list of the lost ones; NULL: no list is wanted */
};

static unsigned visit_slot(const struct request *request)
{
    const struct visit *visit = request->context;
    return visit->c->partition_slot[visit->partition[request->i]];
}

/* Returns whether the partition is to be visited. */
static bool is_wanted(const struct visit *visit, uint64_t partition)
{
    perhaps_cluster *c = visit->c;
    if (!visit->fresh)
        return true;
    const struct link *link = nodes_master(&c->nodes, c->partition_slot[partition]);
    return link && link->fresh;
}

/* Lists the next partitions to visit, from *at on, and moves *at behind them.  Returns how many
 * there are, at most 'most'. */
static size_t choose_next(const struct visit *visit, uint64_t *at, uint32_t *partition,
                          size_t most)
{
    size_t n = 0;
    for (; n < most && *at < visit->layer->partitions; ++*at)
        if (is_wanted(visit, *at))
            partition[n++] = (uint32_t)*at;
    return n;
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
    while (!error && (exchange->count = choose_next(visit, &at, partition, at_once))) {
        exchange->noptional = visit->optional ? exchange->count : 0;
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

int partitions_make(perhaps_cluster *c, const struct layer *layer)
{
    struct visit visit = { .c = c, .layer = layer };
    struct exchange exchange = { .write = write_footer, .acknowledged = true };
    return visit_all(&visit, &exchange, MADE_AT_ONCE, true);
}

static void write_unlink(const struct request *request, struct resp *out)
{
    const struct visit *visit = request->context;
    uint64_t partition = visit->partition[request->i];
    partition_command(visit->c, visit->layer, partition, "UNLINK", 1, 0, out);
}

int partitions_remove(perhaps_cluster *c, const struct layer *layer)
{
    struct visit visit = { .c = c, .layer = layer };
    struct exchange exchange = { .write = write_unlink };
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
    if (partition_is_whole(visit->layer, partition, reply))
        return 0;
    if (visit->lost)
        visit->lost[census->lost] = partition;
    if (!census->lost++ || partition < census->first_lost) {
        census->first_lost = partition;
        census->first_layer = (unsigned)(visit->layer - visit->c->layer);
    }
    return 0;
}

/* The server is the one that owns the slot now; it need not be the one that lost the data. */
int partitions_fail_lost(perhaps_cluster *c, const struct layer *layer, uint64_t partition)
{
    const struct link *link = nodes_master(&c->nodes, c->partition_slot[partition]);
    return nodes_fail(&c->nodes, PERHAPS_ERR_LOST,
                      "%s:%u has lost partition %ju of layer %u: restore the server's data, or "
                      "'perhaps delete' the filter and make it anew",
                      link ? link->at.host : c->address.host, link ? link->at.port : 0,
                      (uintmax_t)partition, (unsigned)(layer - c->layer));
}

/* Returns 0, or PERHAPS_ERR_LOST with the first partition that is lost. */
static int fail_if_lost(perhaps_cluster *c, const struct census *census)
{
    return census->lost
               ? partitions_fail_lost(c, &c->layer[census->first_layer], census->first_lost)
               : 0;
}

/* Looks at all layers.  'fresh' and 'optional' are those of struct visit. */
static int check_layers(perhaps_cluster *c, bool fresh, bool optional, struct census *census)
{
    int error = 0;
    *census = (struct census){ 0 };
    for (unsigned i = 0; i < c->nlayers && !error; i++) {
        struct visit visit = { .c = c,
                               .layer = &c->layer[i],
                               .fresh = fresh,
                               .optional = optional,
                               .census = census };
        struct exchange exchange = { .write = write_strlen, .take = take_strlen };
        error = visit_all(&visit, &exchange, CHECKED_AT_ONCE, false);
    }
    return error ? error : fail_if_lost(c, census);
}

int partitions_check(perhaps_cluster *c, struct census *census)
{
    return check_layers(c, false, false, census);
}

/* Makes the connections first, and marks them as checked before it looks.  If one breaks
 * meanwhile, opening it again marks it as not checked.  So what was seen over the broken one
 * does not count. */
int partitions_check_reachable(perhaps_cluster *c)
{
    struct nodes *nodes = &c->nodes;
    struct census census;
    for (size_t n = 0; n < nodes->map.nnodes; n++) {
        const struct node *node = &nodes->map.nodes[n];
        struct link *link = node->master == n ? nodes_link(nodes, &node->at, false) : NULL;
        if (link)
            link->checked = nodes_open(nodes, link);
    }
    return check_layers(c, false, true, &census);
}

/* ---- Looking at what is behind new connections ------------------------------------------ */

/*     link->used      it has answered in the last exchange
 *     link->checked   what is behind it was looked at since it was opened
 *     link->fresh     it is one of those that are being looked at: used, but not checked
 *
 * Looking needs exchanges of its own, in which connections may break again.  A link is marked
 * as checked before the look, and opening it anew takes the mark back.  So looks are repeated
 * until none of the fresh links was opened anew during a look. */

/* Returns the link to the master of a link's server, which may be the same.  Lengths are asked
 * of masters, so a new connection to a replica makes the link to its master fresh, too. */
static struct link *master_of(struct nodes *nodes, struct link *link)
{
    uint16_t node = link->replica ? slot_map_find(&nodes->map, &link->at) : NOBODY;
    if (node == NOBODY)
        return link;
    return nodes_link(nodes, &nodes->map.nodes[nodes->map.nodes[node].master].at, false);
}

/* Marks the links that are to be looked at as fresh.  Returns whether there are any. */
static bool choose_fresh(struct nodes *nodes)
{
    bool any = false;
    for (size_t i = 0; i < nodes->nlinks; i++)
        nodes->links[i]->fresh = false;
    for (size_t i = 0; i < nodes->nlinks; i++) {
        struct link *link = nodes->links[i];
        if (!link->used || link->checked)
            continue;
        struct link *master = master_of(nodes, link);
        link->fresh = any = true;
        if (master)
            master->fresh = true;
    }
    return any;
}

/* Marks all fresh links as checked or not.  Returns whether that changed any of them. */
static bool mark_fresh(struct nodes *nodes, bool checked)
{
    bool any = false;
    for (size_t i = 0; i < nodes->nlinks; i++) {
        struct link *link = nodes->links[i];
        if (!link->fresh || link->checked == checked)
            continue;
        link->checked = checked;
        any = true;
    }
    return any;
}

/* After an error the fresh links count as not checked, so that the next call looks again. */
int partitions_check_new(perhaps_cluster *c)
{
    struct census census;
    int error = 0;
    if (!choose_fresh(&c->nodes))
        return 0;
    while (!error && mark_fresh(&c->nodes, true))
        error = check_layers(c, true, false, &census);
    if (error)
        mark_fresh(&c->nodes, false);
    return error;
}

/* Removes by a second exchange: first all lengths, then what is lost, if anything is. */
int partitions_look(perhaps_cluster *c, const struct layer *layer, const uint32_t *partition,
                    size_t n, bool remove)
{
    struct census census = { 0 };
    struct visit visit = { .c = c,
                           .layer = layer,
                           .partition = partition,
                           .census = &census,
                           .lost = malloc(n * sizeof *partition) };
    struct exchange look = { .count = n,
                             .slot = visit_slot,
                             .write = write_strlen,
                             .take = take_strlen,
                             .context = &visit };
    struct exchange unlink = { .slot = visit_slot, .write = write_unlink, .context = &visit };
    int error = visit.lost ? exchange_run(&c->nodes, &look)
                           : nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
    if (!error && remove) {
        visit.partition = visit.lost;
        unlink.count = census.lost;
        error = exchange_run(&c->nodes, &unlink);
    }
    free(visit.lost);
    return error ? error : fail_if_lost(c, &census);
}
