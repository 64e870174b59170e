/* round.h - sends many requests at once, each to the node that owns its slot, so that all
 * nodes work at the same time.
 *
 * An exchange is a set of requests, and tells how to write each and how to take its reply.  A
 * round is one exchange under way.  Each run of it sends every request that is not answered
 * yet once, follows redirections, and puts off the requests that failed.  exchange.h runs it
 * again until no request is put off. */
#ifndef ROUND_H
#define ROUND_H

#include "nodes.h"

/* One request, as the functions of its exchange get it. */
struct request {
    void *context;           /* that of the exchange */
    size_t i;                /* its number, from 0 on */
    const struct link *link; /* over which its reply came, or an error reply; NULL before */

    /* It was sent before, over a connection that broke.  Nobody knows whether it was done. */
    bool again;
};

/* What is known of a request. */
enum before {
    BEFORE_SENT = 1, /* it was sent over a connection that broke */
    BEFORE_DONE = 2, /* its reply was taken */
};

/* A set of requests.  It belongs to the caller, and stays as it is while it runs.
 *
 * A request may be sent several times, so doing it twice must do no harm; write() may see to
 * that, by 'again' or by what it knows itself.  Each reply is taken once (twice, if replicas
 * did not acknowledge the request), in any order. */
struct exchange {
    size_t count; /* less than QUEUE_ASKING */

    /* Returns the slot of a request.  NULL: nodes->home is the slot of all. */
    unsigned (*slot)(const struct request *request);

    /* The command that all requests send, with NULL behind its last argument.  NULL: write()
     * writes the command of each. */
    const char *const *command;
    void (*write)(const struct request *request, struct resp *out);

    /* Takes a reply that is no error.  Returns 0; or an error that ends the exchange, after
     * calling nodes_fail().  NULL: any such reply will do. */
    int (*take)(const struct request *request, const struct reply *reply);

    /* Takes an error reply.  Returns 0 if it answers the request; an error that ends the
     * exchange; or 1 to leave it to the round.  NULL: all are left to the round. */
    int (*take_error)(const struct request *request, const struct reply *reply);

    /* Is called for each request whose reply was not taken although it may have been done:
     * after an error of the exchange, and for an optional one in any case; perhaps twice.  To
     * keep these few after an error, the round still waits for replies that are on their way.
     * NULL: the caller need not know, and the round does not wait. */
    void (*doubt)(const struct request *request);

    /* What is known of the first requests, if an exchange just before this one tried them in
     * another way: enum before.  Those that are done are only sent if it turns out that
     * replicas did not acknowledge them.  NULL: this is the first try of all. */
    const uint8_t *before;
    size_t nbefore;

    void *context;
    size_t noptional;  /* so many of the last requests are sent once, and may stay unanswered */
    size_t nreplicas;  /* so many of the first requests may go to replicas, too */
    bool tree;         /* replies are trees */
    bool acknowledged; /* it ends when nodes->acknowledge replicas have what was done */

    /* It is one question about 'home', by 'command', to be asked as early as it can be: if no
     * map is known yet, it goes along with the question for the map. */
    bool early;

    /* It is sent once, and its replies are not awaited: the connections are closed behind
     * it. */
    bool parting;

    /* An error reply, or an error of take(), leaves only its own request unanswered.  The
     * first such error is that of the exchange, when all others are answered. */
    bool partial;

    /* For round_alone(): the link to which it sends all requests; or that of each request. */
    struct link *only, *const *each;
};

/* An exchange under way.  round_begin() makes it, and round_end() releases what it owns:
 * 'state' and 'later'. */
enum { FEW_REQUESTS = 64 };
struct round {
    struct nodes *nodes;
    const struct exchange *exchange;
    uint8_t *state;  /* of each request: enum before */
    uint32_t *later; /* the requests that were put off; behind them room for a copy */
    size_t nlater;
    uint8_t few_state[FEW_REQUESTS]; /* these two are used if there are few requests */
    uint32_t few_later[2 * FEW_REQUESTS];
    uint64_t hops;     /* how many redirections were followed */
    int64_t failed_ms; /* when something failed first; 0: nothing has failed */
    int error;
    int failure;       /* the first error of a request, if the exchange is 'partial' */
    bool ending;       /* after an error: replies are taken, but nothing is sent again */
    char trouble[600]; /* what failed last: the message if patience ends */
    char why[600];     /* the problem of 'failure' */
};

/* Begins a round, with all requests put off.  Returns 0, or PERHAPS_ERR_MEMORY; round_end() is
 * needed in both cases. */
int round_begin(struct round *round, struct nodes *nodes, const struct exchange *exchange);

/* Sends the requests that were put off, and returns when each was answered or put off again. */
void round_run(struct round *round);

/* Notes that the only request was answered, with this result of take(). */
void round_answered(struct round *round, int error);

/* Puts off all requests that were answered, as if nobody knew whether they were done. */
void round_repeat(struct round *round);

/* Ends the round and releases what it owns.  Returns its error. */
int round_end(struct round *round);

/* Marks the links that the requests which were put off need now: link->needed. */
void round_mark_needed(struct round *round);

/* Sends all requests to exchange->only or ->each, and none of them twice.  Returns 0 or an
 * error; PERHAPS_ERR_UNREACHABLE if a request was put off. */
int round_alone(struct nodes *nodes, const struct exchange *exchange);

/* Returns PERHAPS_ERR_STOPPED if the caller of the library wants to stop,
 * PERHAPS_ERR_DEADLINE if the deadline of the call is over, else 0. */
int round_check_stopped(struct nodes *nodes);

#endif
