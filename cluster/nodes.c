/* nodes.c - finds links to servers by slot or by address, and keeps the last problem. */
#include "nodes.h"

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

int nodes_fail_plainly(struct nodes *nodes, int error)
{
    return nodes_fail(nodes, error, "%s", perhaps_strerror(error));
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

/* Each link is allocated by itself, so that it stays where it is when the list grows. */
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

/* Goes through all links: a cluster has few, and a request has one look-up. */
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

/* The turn is that of all masters together, which spreads requests well enough. */
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
    struct greeting greeting = { .user = nodes->user, .password = nodes->password };
    if (link_is_open(link))
        return true;
    if (now_ms() < link->rest_ms)
        return false;
    if (++nodes->connections == 0)
        nodes->connections++; /* 0 is the number of a link that is closed */
    return link_open(link, &greeting, nodes->connections, NULL);
}
