/* proxy.h - a way to a server of this machine, on which replies break off at a byte that is
 * chosen: after 'at' bytes of replies, of all connections together, comes one fault, and from
 * then on everything goes through. */
#ifndef PROXY_H
#define PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum fault {
    FAULT_NONE,
    FAULT_CUT,   /* the connection ends */
    FAULT_STALL, /* it stays, and nothing comes any more */
};

enum { CONNECTIONS_MOST = 64 };

struct connection {
    int client, server; /* sockets, or -1 */
    bool stalls;
};

struct proxy {
    uint64_t at;
    enum fault fault;
    const char *last_words; /* sent behind those bytes; NULL: nothing */
    unsigned port;          /* for clients to connect to */
    uint64_t nreplied;      /* bytes of replies so far */

    unsigned server_port;
    int listening, stopping[2]; /* the latter a pipe */
    struct connection connection[CONNECTIONS_MOST];
    pthread_t thread;
};

/* 'at', 'fault' and 'last_words' are the caller's. */
void proxy_start(struct proxy *proxy, unsigned server_port);
void proxy_stop(struct proxy *proxy);

#endif
