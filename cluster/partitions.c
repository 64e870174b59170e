/* partitions.c - the Redis strings that hold the blocks of a filter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

/* Requests that are under way at once: of small commands, and of those that take a server
 * some milliseconds each, since memory is zeroed. */
enum { CHECKED_AT_ONCE = 16384, MADE_AT_ONCE = 64 };

/* ---- Names ----------------------------------------------------------------------------- */

static size_t put_number(char *to, uint64_t number)
{
    char digits[20];
    size_t n = 0, length;
    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10));
    for (length = 0; n > 0;)
        to[length++] = digits[--n];
    return length;
}

void partition_name(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                    struct resp *out)
{
    char name[sizeof c->prefix + sizeof layer->suffix + 20];
    size_t n = c->prefix_nbytes;
    memcpy(name, c->prefix, n);
    n += put_number(name + n, partition);
    memcpy(name + n, layer->suffix, layer->suffix_nbytes);
    resp_bytes(out, name, n + layer->suffix_nbytes);
}

void partition_strlen(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                      struct resp *out)
{
    resp_command(out, 2, 96);
    resp_text(out, "STRLEN");
    partition_name(c, layer, partition, out);
}

void partition_footer(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                      char footer[FOOTER_NBYTES])
{
    memset(footer, 0, FOOTER_NBYTES);
    snprintf(footer, FOOTER_NBYTES, "perhaps %s.%u partition %ju\n", c->about.id,
             (unsigned)(layer - c->layer), (uintmax_t)partition);
}

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
        memcpy(name, c->prefix, c->prefix_nbytes);
        size_t n = c->prefix_nbytes + put_number(name + c->prefix_nbytes, c->nslots);
        name[n++] = '}';
        slots[c->nslots] = (uint16_t)slot_of(name, n);
    }
    return 0;
}

/* ---- One request for each of some partitions ------------------------------------------- */

struct visit {
    perhaps_cluster *c;
    const struct layer *layer;
    uint64_t first;            /* of those that are under way */
    const uint32_t *partition; /* or which; NULL: all from 'first' on */
    struct census *census;
};

static uint64_t partition_at(const struct visit *visit, size_t i)
{
    return visit->partition ? visit->partition[i] : visit->first + i;
}

static unsigned visit_slot(void *context, size_t i)
{
    const struct visit *visit = context;
    return visit->c->partition_slot[partition_at(visit, i)];
}

/* Goes over all partitions of a layer, so many at once. */
static int visit_all(struct visit *visit, struct exchange *exchange, size_t at_once, bool tell)
{
    perhaps_cluster *c = visit->c;
    const struct layer *layer = visit->layer;
    exchange->slot = visit_slot;
    exchange->context = visit;
    for (uint64_t first = 0; first < layer->partitions; first += exchange->count) {
        uint64_t left = layer->partitions - first;
        exchange->count = left < at_once ? left : at_once;
        visit->first = first;
        int error = exchange_run(&c->nodes, exchange);
        if (error)
            return error;
        if (tell && c->progress)
            c->progress(c->context, (first + exchange->count) * partition_nbytes(layer, 0),
                        layer->partitions * partition_nbytes(layer, 0));
    }
    return 0;
}

/* ---- Making and removing --------------------------------------------------------------- */

/* Writing behind the end of a string fills it with zeros; where it is there already, the same
 * is written again. */
static void write_footer(void *context, size_t i, struct resp *out)
{
    const struct visit *visit = context;
    uint64_t partition = partition_at(visit, i);
    char footer[FOOTER_NBYTES];
    partition_footer(visit->c, visit->layer, partition, footer);
    resp_command(out, 4, 256);
    resp_text(out, "SETRANGE");
    partition_name(visit->c, visit->layer, partition, out);
    resp_number(out, partition_nbytes(visit->layer, partition));
    resp_bytes(out, footer, sizeof footer);
}

int partitions_make(perhaps_cluster *c, const struct layer *layer)
{
    struct visit visit = { .c = c, .layer = layer };
    struct exchange exchange = { .write = write_footer, .acknowledge = c->acknowledge };
    return visit_all(&visit, &exchange, MADE_AT_ONCE, true);
}

static void write_unlink(void *context, size_t i, struct resp *out)
{
    const struct visit *visit = context;
    resp_command(out, 2, 96);
    resp_text(out, "UNLINK");
    partition_name(visit->c, visit->layer, partition_at(visit, i), out);
}

int partitions_remove(perhaps_cluster *c, const struct layer *layer)
{
    struct visit visit = { .c = c, .layer = layer };
    struct exchange exchange = { .write = write_unlink };
    return visit_all(&visit, &exchange, CHECKED_AT_ONCE, true);
}

/* ---- Looking whether they are there ---------------------------------------------------- */

static void write_strlen(void *context, size_t i, struct resp *out)
{
    const struct visit *visit = context;
    partition_strlen(visit->c, visit->layer, partition_at(visit, i), out);
}

static int take_strlen(void *context, size_t i, const struct reply *reply, bool again)
{
    const struct visit *visit = context;
    struct census *census = visit->census;
    uint64_t partition = partition_at(visit, i);
    size_t nbytes = partition_nbytes(visit->layer, partition) + FOOTER_NBYTES;
    (void)again;
    census->looked_at++;
    if (reply->type == REDIS_REPLY_INTEGER && reply->number == (long long)nbytes)
        return 0;
    if (!census->lost++ || partition < census->first_lost) {
        census->first_lost = partition;
        census->first_layer = (unsigned)(visit->layer - visit->c->layer);
    }
    return 0;
}

int partitions_fail_lost(perhaps_cluster *c, unsigned layer, uint64_t partition)
{
    const struct link *link = nodes_master(&c->nodes, c->partition_slot[partition]);
    return cluster_fail(c, PERHAPS_ERR_LOST,
                        "%s:%u has lost partition %ju of layer %u: restore the server's data, "
                        "or 'perhaps delete' the filter and make it anew",
                        link ? link->at.host : c->address.host, link ? link->at.port : 0,
                        (uintmax_t)partition, layer);
}

static int check_once(perhaps_cluster *c, struct census *census)
{
    int error = 0;
    *census = (struct census){ 0 };
    for (unsigned i = 0; i < c->nlayers && !error; i++) {
        struct visit visit = { .c = c, .layer = &c->layer[i], .census = census };
        struct exchange exchange = { .write = write_strlen, .take = take_strlen };
        error = visit_all(&visit, &exchange, CHECKED_AT_ONCE, false);
    }
    return error;
}

/* Until no connection is made while it looks. */
int partitions_check(perhaps_cluster *c, struct census *census)
{
    int error;
    do {
        c->checked = c->nodes.opened;
        error = check_once(c, census);
    } while (!error && c->checked != c->nodes.opened);
    if (!error && census->lost)
        error = partitions_fail_lost(c, census->first_layer, census->first_lost);
    if (error)
        c->checked = 0;
    return error;
}

int partitions_check_new(perhaps_cluster *c)
{
    struct census census;
    return c->checked == c->nodes.opened ? 0 : partitions_check(c, &census);
}

/* ---- Looking at some ------------------------------------------------------------------- */

static int remove_some(perhaps_cluster *c, struct visit *visit, size_t n)
{
    struct exchange exchange = {
        .count = n, .slot = visit_slot, .write = write_unlink, .context = visit
    };
    return exchange_run(&c->nodes, &exchange);
}

struct looking {
    struct visit visit; /* first: the functions of visits take it for one */
    uint32_t *lost;
    size_t nlost;
};

static int take_look(void *context, size_t i, const struct reply *reply, bool again)
{
    struct looking *looking = context;
    uint64_t lost = looking->visit.census->lost;
    int error = take_strlen(&looking->visit, i, reply, again);
    if (looking->visit.census->lost > lost)
        looking->lost[looking->nlost++] = looking->visit.partition[i];
    return error;
}

int partitions_look(perhaps_cluster *c, const struct layer *layer, const uint32_t *partition,
                    size_t n, bool remove)
{
    struct census census = { 0 };
    struct looking looking = {
        .visit = { .c = c, .layer = layer, .partition = partition, .census = &census },
        .lost = malloc(n * sizeof *partition),
    };
    struct exchange exchange = { .count = n,
                                 .slot = visit_slot,
                                 .write = write_strlen,
                                 .take = take_look,
                                 .context = &looking };
    int error = looking.lost ? exchange_run(&c->nodes, &exchange)
                             : cluster_fail_plainly(c, PERHAPS_ERR_MEMORY);
    if (!error && looking.nlost && remove) {
        looking.visit.partition = looking.lost;
        error = remove_some(c, &looking.visit, looking.nlost);
    }
    free(looking.lost);
    if (!error && census.lost)
        error = partitions_fail_lost(c, census.first_layer, census.first_lost);
    return error;
}
