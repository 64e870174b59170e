#include "nodes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int nodes_fail(struct nodes *nodes, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(nodes->problem, sizeof nodes->problem, format, arguments);
    va_end(arguments);
    return error;
}

void nodes_release(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->nlinks; i++) {
        link_release(nodes->links[i]);
        free(nodes->links[i]);
    }
    free(nodes->links);
    slot_map_release(&nodes->map);
    nodes->links = NULL;
    nodes->nlinks = 0;
}

/* ---- Links ----------------------------------------------------------------------------- */

static struct link *new_link(struct nodes *nodes, const struct endpoint *at, bool replica)
{
    struct link **links = realloc(nodes->links, (nodes->nlinks + 1) * sizeof *links);
    struct link *link = links ? calloc(1, sizeof *link) : NULL;
    if (links)
        nodes->links = links;
    if (!link)
        return NULL;
    link->at = *at;
    link->replica = replica;
    return links[nodes->nlinks++] = link;
}

struct link *nodes_link(struct nodes *nodes, const struct endpoint *at, bool replica)
{
    for (size_t i = 0; i < nodes->nlinks; i++)
        if (endpoint_equal(&nodes->links[i]->at, at) && nodes->links[i]->replica == replica)
            return nodes->links[i];
    return new_link(nodes, at, replica);
}

struct link *nodes_master(struct nodes *nodes, unsigned slot)
{
    uint16_t master = nodes->map.master[slot];
    return master == NOBODY ? NULL : nodes_link(nodes, &nodes->map.nodes[master].at, false);
}

struct link *nodes_any(struct nodes *nodes, unsigned slot)
{
    uint16_t master = nodes->map.master[slot];
    if (master == NOBODY)
        return NULL;
    unsigned turn = nodes->turn++ % (1U + nodes->map.nodes[master].nreplicas);
    uint16_t node = turn ? slot_map_replica(&nodes->map, master, turn - 1) : master;
    if (node == NOBODY)
        node = master;
    return nodes_link(nodes, &nodes->map.nodes[node].at, node != master);
}

bool nodes_open(struct nodes *nodes, struct link *link)
{
    return link->context ||
           (now_ms() >= link->rest_ms && link_open(link, nodes->user, nodes->password));
}

/* ---- The map --------------------------------------------------------------------------- */

struct asking_map {
    struct nodes *nodes;
    struct link *link;
};

static void write_cluster_slots(void *context, size_t i, struct resp *out)
{
    (void)context;
    (void)i;
    resp_command(out, 2, 16);
    resp_text(out, "CLUSTER");
    resp_text(out, "SLOTS");
}

static int take_map(void *context, size_t i, const struct reply *reply, bool again)
{
    struct asking_map *asking = context;
    struct nodes *nodes = asking->nodes;
    (void)i;
    (void)again;
    const char *problem = slot_map_read(&nodes->map, reply->tree, &asking->link->at);
    if (problem)
        return nodes_fail(nodes, PERHAPS_ERR_PROTOCOL, "%s:%u: %s", asking->link->at.host,
                          asking->link->at.port, problem);
    nodes->cluster = true;
    return 0;
}

/* A server that is none of a cluster says so; it holds all slots. */
static int refuse_map(void *context, size_t i, const struct reply *reply)
{
    static const char alone[] = "ERR This instance has cluster support disabled";
    struct asking_map *asking = context;
    const redisReply *tree = reply->tree;
    (void)i;
    if (strncmp(tree->str, alone, strlen(alone)) != 0)
        return 1;
    asking->nodes->cluster = false;
    if (slot_map_single(&asking->nodes->map, &asking->link->at))
        return nodes_fail(asking->nodes, PERHAPS_ERR_MEMORY, "no memory");
    return 0;
}

static int ask_map(struct nodes *nodes, struct link *link)
{
    struct asking_map asking = { nodes, link };
    struct exchange exchange = { .count = 1,
                                 .write = write_cluster_slots,
                                 .take = take_map,
                                 .refuse = refuse_map,
                                 .context = &asking,
                                 .tree = true,
                                 .only = link };
    return exchange_run(nodes, &exchange);
}

/* In a cluster that has lost a slot some server may know better than another: the one with the
 * fewest gaps would be best, the first that answers will do, since it is asked again. */
int nodes_refresh(struct nodes *nodes)
{
    if (nodes->known && !nodes->stale)
        return 0;
    int error = PERHAPS_ERR_UNREACHABLE;
    bool tried = false, passing = false;
    if (!nodes->known && !nodes_link(nodes, &nodes->seed, false))
        return nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    for (int open = 1; open >= 0; open--) /* those that are connected first */
        for (size_t i = 0; i < nodes->nlinks && error; i++) {
            struct link *link = nodes->links[i];
            if ((link->context != NULL) != open || (!open && now_ms() < link->rest_ms))
                continue;
            error = ask_map(nodes, link);
            tried = true;
            passing |= link->context || link->closed;
            if (error == PERHAPS_ERR_STOPPED || error == PERHAPS_ERR_MEMORY)
                return error;
        }
    if (tried) /* else all rest, and what is known of them stays */
        nodes->passing = passing;
    if (error)
        return error;
    nodes->known = true;
    nodes->stale = false;
    return 0;
}

/* ---- Fences ---------------------------------------------------------------------------- */

/* A master that hung, and in whose place its replica was put meanwhile, answers what it finds
 * in its connections as if nothing had happened, before it learns of it: measured on Redis
 * 7.0, to one PING, and in one case of three to what came behind it; never behind two, each
 * awaited.  Replacing it takes a silence of the cluster's node timeout (15 s, if not set), so
 * whoever heard it in the last second need not ask. */
enum { SILENCE_MS = 1000, FENCE_PINGS = 2 };

static void write_ping(void *context, size_t i, struct resp *out)
{
    (void)context;
    (void)i;
    resp_command(out, 1, 16);
    resp_text(out, "PING");
}

/* One that does not answer is closed, and found out about when it is needed. */
int nodes_fence(struct nodes *nodes)
{
    int64_t now = now_ms();
    for (size_t i = 0; nodes->cluster && i < nodes->nlinks; i++) {
        struct link *link = nodes->links[i];
        struct exchange ping = { .count = 1, .write = write_ping, .only = link };
        if (!link->context || now - link->heard_ms < SILENCE_MS)
            continue;
        for (int k = 0; k < FENCE_PINGS && link->context; k++) {
            int error = exchange_run(nodes, &ping);
            if (error && error != PERHAPS_ERR_UNREACHABLE)
                return error;
        }
    }
    return 0;
}
