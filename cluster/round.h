/* round.h - many requests at once: each is sent to the node that owns its slot, and all nodes
 * work at the same time.
 *
 * An exchange is a set of requests, whoever sends them.  A round is one exchange under way: it
 * sends every request once, follows redirections, and puts off what came to nothing.  Running
 * rounds again until nothing is put off is exchange.h's. */
#ifndef ROUND_H
#define ROUND_H

#include "nodes.h"

/* One request, as the functions of its exchange get it. */
struct request {
    void *context; /* of the exchange */
    size_t i;      /* its number, from 0 on */
    bool again;    /* it was sent before, over a connection that broke: nobody knows whether it
                      was done */
};

/* Requests may be written several times, so each must do no harm when it is done twice.  Each
 * is taken once (twice, if replicas did not acknowledge it), in any order. */
struct exchange {
    size_t count; /* less than QUEUE_ASKING */

    /* The slot of a request.  NULL: nodes->home is that of all. */
    unsigned (*slot)(const struct request *request);

    /* The command that all send, NULL behind its last argument; or what writes it. */
    const char *const *command;
    void (*write)(const struct request *request, struct resp *out);

    /* Takes a reply that is no error.  Returns 0, or an error that ends the exchange, for which
     * it has called nodes_fail().  NULL: all are welcome. */
    int (*take)(const struct request *request, const struct reply *reply);

    /* Takes an error reply.  Returns 0 if it answers the request, an error that ends the
     * exchange, or 1 to have the round deal with it.  NULL: the round deals with all. */
    int (*take_error)(const struct request *request, const struct reply *reply);

    /* After an error of the exchange, is called for each request that was not taken and yet may
     * have been done.  To keep these few, what is on its way is still waited for.  NULL: nobody
     * wants to know, and nothing is waited for. */
    void (*doubt)(const struct request *request);

    void *context;
    size_t noptional;  /* the last ones that may stay without an answer: each is tried once */
    bool tree;         /* replies are trees */
    bool replicas;     /* may be asked too */
    bool acknowledged; /* nodes->acknowledge replicas must have it when the exchange ends */
    struct link *only; /* for round_alone() */
};

struct round {
    struct nodes *nodes;
    const struct exchange *exchange;
    uint8_t *state;  /* of each request: SENT, TAKEN (round.c) */
    uint32_t *later; /* the requests that were put off */
    size_t nlater;
    uint64_t hops;     /* redirections that were followed */
    int64_t failed_ms; /* when something failed first; 0: nothing has */
    int error;
    bool ending;       /* after an error: only what is on its way is taken */
    char trouble[600]; /* what failed last, for the message when patience ends */
};

/* Puts off all requests.  Returns an error if there is no memory. */
int round_begin(struct round *round, struct nodes *nodes, const struct exchange *exchange);

/* Sends those that were put off, until each was answered, or put off again. */
void round_run(struct round *round);

/* Puts off again what was taken, as if nobody knew whether it was done. */
void round_repeat(struct round *round);

/* Clears up; returns the error of the round. */
int round_end(struct round *round);

/* Sends all requests to exchange->only, and tries nothing again.  PERHAPS_ERR_UNREACHABLE: some
 * were put off. */
int round_alone(struct nodes *nodes, const struct exchange *exchange);

/* PERHAPS_ERR_STOPPED if the caller wants to stop. */
int round_check_stopped(struct nodes *nodes);

#endif
