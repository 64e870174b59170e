/* handle.c - what several operations on a handle need: taking its hashing, sending a command to
 * the description, and clearing up after an error. */
#include "handle.h"

#include <stdio.h>
#include <string.h>

void handle_take_hashing(perhaps_cluster *c, const struct perhaps_hashing *hashing)
{
    c->hashing = *hashing;
    if (!hashing->secret)
        return;
    memcpy(c->secret, hashing->secret, sizeof c->secret);
    c->hashing.secret = c->secret;
}

int handle_take_number(perhaps_cluster *c, const struct reply *reply, const char *command)
{
    return reply->type == REDIS_REPLY_INTEGER
               ? 0
               : nodes_fail(&c->nodes, PERHAPS_ERR_PROTOCOL,
                            "a server answered strangely to %s", command);
}

int handle_check_counts(perhaps_cluster *c)
{
    return c->about.counts_lost ? nodes_fail(&c->nodes, PERHAPS_ERR_LOST, "%s", counts_problem)
                                : 0;
}

bool handle_is_gone(int error)
{
    return error == PERHAPS_ERR_MISSING || error == PERHAPS_ERR_CHANGED ||
           error == PERHAPS_ERR_UNFINISHED;
}

void handle_name_counts(const perhaps_cluster *c, const char *id, char counts[sizeof c->counts])
{
    snprintf(counts, sizeof c->counts, "%s:%s", c->key, id);
}

/* The context of a command that is told. */
struct telling {
    perhaps_cluster *c;
    const char *command;
};

static int take_told(const struct request *request, const struct reply *reply)
{
    const struct telling *telling = request->context;
    return handle_take_number(telling->c, reply, telling->command);
}

int handle_tell(perhaps_cluster *c, const char *const *command)
{
    struct telling telling = { c, *command };
    struct exchange exchange = { .count = 1,
                                 .command = command,
                                 .take = take_told,
                                 .context = &telling,
                                 .acknowledged = true };
    return exchange_run(&c->nodes, &exchange);
}

void handle_begin_aside(perhaps_cluster *c, struct aside *aside)
{
    struct nodes *nodes = &c->nodes;
    memcpy(aside->problem, nodes->problem, sizeof aside->problem);
    aside->stopped = nodes->stopped;
    aside->patience_ms = nodes->patience_ms;
    aside->ends_ms = nodes->ends_ms;
    aside->impatient = nodes->impatient;
    nodes->stopped = NULL;
    nodes->patience_ms = nodes->timeout_ms;
    nodes->ends_ms = 0;
    nodes->impatient = false;
}

void handle_end_aside(perhaps_cluster *c, const struct aside *aside)
{
    struct nodes *nodes = &c->nodes;
    memcpy(nodes->problem, aside->problem, sizeof nodes->problem);
    nodes->stopped = aside->stopped;
    nodes->patience_ms = aside->patience_ms;
    nodes->ends_ms = aside->ends_ms;
    nodes->impatient = aside->impatient;
}
