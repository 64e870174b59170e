/* round.h - many requests at once: each is sent to the node that owns its slot, and all nodes
 * work at the same time. */
#ifndef ROUND_H
#define ROUND_H

#include "nodes.h"

/* One of them, as the functions of its exchange get it. */
struct request {
    void *context; /* of the exchange */
    size_t i;      /* its number, from 0 on */
    bool again;    /* it was sent before, over a connection that broke: nobody knows whether it
                      was done */
};

/* Each request is written, perhaps several times, and taken once, in any order. */
struct exchange {
    size_t count; /* less than QUEUE_ASKING */

    /* The slot of a request.  NULL: nodes->home is that of all. */
    unsigned (*slot)(const struct request *request);

    /* The command that all send, NULL behind its last argument; or what writes it. */
    const char *const *command;
    void (*write)(const struct request *request, struct resp *out);

    /* NULL; or returns 0, or an error that ends the exchange, for which it has called
     * nodes_fail(). */
    int (*take)(const struct request *request, const struct reply *reply);

    /* NULL; or returns 0 for an error reply that is as good as any, an error that ends the
     * exchange, or 1: it is dealt with here. */
    int (*take_error)(const struct request *request, const struct reply *reply);

    /* NULL; or is told at the end, after an error, of each request that was not taken and yet
     * may have been done.  Then what is on its way is waited for after an error. */
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
    uint8_t *state;  /* of each request */
    uint32_t *later; /* those to be sent again */
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

/* Puts off what was taken already, as if nobody knew whether it was done. */
void round_repeat(struct round *round);

/* Clears up; returns the error of the round. */
int round_end(struct round *round);

/* All of it to exchange->only, without trying again. */
int round_alone(struct nodes *nodes, const struct exchange *exchange);

/* PERHAPS_ERR_STOPPED if the caller wants to stop. */
int round_check_stopped(struct nodes *nodes);

#endif
