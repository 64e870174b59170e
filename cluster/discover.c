/* discover.c - asks servers which node owns which slot. */
#include "discover.h"

#include <string.h>

#include "round.h"

/* The context of a question to one server. */
struct inquiry {
    struct nodes *nodes;
    struct link *link;
};

/* Takes the reply to CLUSTER SLOTS.  The map stays as it is if the reply is wrong. */
static int take_map(const struct request *request, const struct reply *reply)
{
    const struct inquiry *inquiry = request->context;
    struct nodes *nodes = inquiry->nodes;
    const struct endpoint *at = &inquiry->link->at;
    const char *problem = slot_map_read(&nodes->map, reply->tree, at);
    if (problem)
        return nodes_fail(nodes, PERHAPS_ERR_PROTOCOL, "%s:%u: %s", at->host, at->port,
                          problem);
    nodes->cluster = true;
    return 0;
}

/* A server that belongs to no cluster says so.  It then owns all slots. */
static int take_map_error(const struct request *request, const struct reply *reply)
{
    static const char alone[] = "ERR This instance has cluster support disabled";
    const struct inquiry *inquiry = request->context;
    struct nodes *nodes = inquiry->nodes;
    if (strncmp(reply->text, alone, strlen(alone)) != 0)
        return 1;
    nodes->cluster = false;
    if (slot_map_single(&nodes->map, &inquiry->link->at))
        return nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    return 0;
}

/* Reads the map from one server. */
static int ask_map(struct nodes *nodes, struct link *link)
{
    struct inquiry inquiry = { .nodes = nodes, .link = link };
    struct exchange exchange = { .count = 1,
                                 .command = (const char *const[]){ "CLUSTER", "SLOTS", NULL },
                                 .take = take_map,
                                 .take_error = take_map_error,
                                 .context = &inquiry,
                                 .tree = true,
                                 .only = link };
    return round_alone(nodes, &exchange);
}

/* Asks one server after the other, those that are connected first, since they answer at once.
 * The first reply will do, although in a cluster that has lost a slot one server may know more
 * than another: a request whose slot has no owner is put off, and the map is read again. */
int discover(struct nodes *nodes)
{
    if (nodes->known && !nodes->stale)
        return 0;
    int error = PERHAPS_ERR_UNREACHABLE;
    bool tried = false, passing = false;
    if (!nodes->known && !nodes_link(nodes, &nodes->seed, false))
        return nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    for (int open = 1; open >= 0; open--)
        for (size_t i = 0; i < nodes->nlinks && error; i++) {
            struct link *link = nodes->links[i];
            if (link_is_open(link) != open || (!open && now_ms() < link->rest_ms))
                continue;
            error = ask_map(nodes, link);
            tried = true;
            passing |= link_is_open(link) || link->closed;
            if (error == PERHAPS_ERR_STOPPED || error == PERHAPS_ERR_MEMORY)
                return error;
        }
    if (tried) /* otherwise all failed a moment ago, and what is known of them stays */
        nodes->passing = passing;
    if (error)
        return error;
    nodes->known = true;
    nodes->stale = false;
    return 0;
}
