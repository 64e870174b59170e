/* proxy.h - a proxy between clients and some servers of this machine, which breaks one reply at
 * a chosen byte.  After 'at' bytes of replies, of all servers and connections together, it
 * makes one fault; everything after that goes through.
 *
 * The servers listen on 127.0.0.1.  The proxy listens on the same ports of 127.0.0.HOST, so any
 * number of proxies can stand before the same servers at once.  If the servers are a cluster
 * that tells no addresses (cluster-preferred-endpoint-type unknown-endpoint), a client believes
 * that all nodes have the address at which it asked, and so goes through its own proxy only. */
#ifndef PROXY_H
#define PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "support.h"

enum fault {
    FAULT_NONE,
    FAULT_CUT,   /* the connection ends */
    FAULT_STALL, /* the connection stays open, and no further byte comes */
};

enum { CONNECTIONS_MOST = 64, SERVERS_MOST = 4 };

/* A connection of a client, and the one to the server that belongs to it.  If the client is
 * gone (-1), what the server still says is dropped until it hangs up, too. */
struct connection {
    int client, server; /* sockets, or -1 */
    bool stalls;
};

struct proxy {
    /* Set by the caller. */
    uint64_t at;
    enum fault fault;       /* FAULT_NONE when it has happened */
    const char *last_words; /* sent to the client behind those bytes; NULL: nothing */
    bool in_pieces;         /* replies are handed on in pieces of 1 to 7 bytes */
    struct rng rng;         /* for the lengths of the pieces */

    /* How many bytes of replies have come from each server so far; 'nreplied': from all. */
    uint64_t nreplied_by[SERVERS_MOST], nreplied;

    unsigned nservers, server_port[SERVERS_MOST];
    int listening[SERVERS_MOST], stopping[2]; /* the latter a pipe */
    struct connection connection[SERVERS_MOST][CONNECTIONS_MOST];
    pthread_t thread;
};

/* Starts the thread of a proxy at 127.0.0.HOST.  Returns false if it cannot listen there. */
bool proxy_start(struct proxy *proxy, unsigned host, const unsigned *server_port,
                 unsigned nservers);

/* Ends all connections, and returns when the servers have done all that was sent to them. */
void proxy_stop(struct proxy *proxy);

#endif
