/* proxy.h - a proxy between a client and a server of this machine, which breaks one reply at a
 * chosen byte.  After 'at' bytes of replies, of all connections together, it makes one fault;
 * everything after that goes through. */
#ifndef PROXY_H
#define PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum fault {
    FAULT_NONE,
    FAULT_CUT,   /* the connection ends */
    FAULT_STALL, /* the connection stays open, and no further byte comes */
};

enum { CONNECTIONS_MOST = 64 };

struct connection {
    int client, server; /* sockets, or -1 */
    bool stalls;
};

struct proxy {
    uint64_t at;
    enum fault fault;
    const char *last_words; /* sent to the client behind those bytes; NULL: nothing */
    unsigned port;          /* for clients to connect to */
    uint64_t nreplied;      /* bytes of replies so far */

    unsigned server_port;
    int listening, stopping[2]; /* the latter a pipe */
    struct connection connection[CONNECTIONS_MOST];
    pthread_t thread;
};

/* Starts the thread of a proxy to this port.  The caller has set 'at', 'fault' and
 * 'last_words'; this sets 'port'. */
void proxy_start(struct proxy *proxy, unsigned server_port);
void proxy_stop(struct proxy *proxy);

#endif
