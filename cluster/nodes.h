/* nodes.h - the servers of a cluster, or the one there is, and requests to whoever holds their
 * slots. */
#ifndef NODES_H
#define NODES_H

#include <perhaps_cluster.h>

#include "link.h"

struct nodes {
    struct endpoint seed; /* the address that was given */
    const char *user, *password;
    unsigned timeout_ms, patience_ms;
    bool (*stopped)(void *context);
    void *context;
    struct slot_map map;
    bool known;   /* the map was read */
    bool stale;   /* and is to be read again */
    bool cluster; /* it is one */
    bool passing; /* whoever did not tell the map may do so in a moment */
    struct link **links;
    size_t nlinks;
    unsigned turn; /* of replicas */
    uint64_t commands, retries, redirections;
    char problem[900];
};

/* Many requests at once, numbered from 0 on.  Each is written, perhaps several times, and taken
 * once, in any order. */
struct exchange {
    size_t count;                              /* less than QUEUE_ASKING */
    unsigned (*slot)(void *context, size_t i); /* NULL: all go to 'only' */
    void (*write)(void *context, size_t i, struct resp *out);
    /* Returns 0, or an error that ends the exchange, for which nodes_fail() was called.
     * 'again': it was sent before, over a connection that broke, and nobody knows whether it
     * was done. */
    int (*take)(void *context, size_t i, const struct reply *reply, bool again);
    /* The error to return for an error reply that is not dealt with here; or NULL. */
    int (*refuse)(void *context, size_t i, const struct reply *reply);
    /* Told at the end, after an error, of each that was not taken and yet may have been done;
     * or NULL.  If it is there, what is on its way is waited for after an error. */
    void (*doubt)(void *context, size_t i);
    void *context;
    size_t noptional; /* the last ones that may stay without an answer: each is tried once */
    bool tree;        /* replies are trees */
    bool replicas;    /* may be asked too */
    unsigned acknowledge; /* replicas that must have it when the exchange ends */
    struct link *only;    /* to this one, without trying again */
};

/* Returns 0, or an error with nodes->problem. */
int exchange_run(struct nodes *nodes, struct exchange *exchange);

/* Notes the problem and returns the error. */
int nodes_fail(struct nodes *nodes, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads the map from whoever answers, if it is stale.  Returns 0 or an error. */
int nodes_refresh(struct nodes *nodes);

/* The link to the master of a slot, or in turn to it and its replicas; NULL: nobody is known to
 * have it, or no memory. */
struct link *nodes_master(struct nodes *nodes, unsigned slot);
struct link *nodes_any(struct nodes *nodes, unsigned slot);

/* The link to a server, made if there is none yet, and not opened.  NULL: no memory. */
struct link *nodes_link(struct nodes *nodes, const struct endpoint *at, bool replica);

/* Opens a link that is closed, unless it rests.  false: it cannot be reached now. */
bool nodes_open(struct nodes *nodes, struct link *link);

/* Asks those that were silent for a while whether they are what they were. */
int nodes_fence(struct nodes *nodes);

void nodes_release(struct nodes *nodes);

#endif
