/* nodes.h - the servers of a cluster, or a single server, and the links to them.
 *
 * The map tells which node owns a slot.  There is a link to each server that was ever needed;
 * two if it was asked both as a master and as a replica, since READONLY changes a connection.
 * Links stay until nodes_release(), so callers may keep pointers to them. */
#ifndef NODES_H
#define NODES_H

#include <perhaps_cluster.h>

#include "link.h"

/* All that a handle knows of its servers.  It owns the map and the links. */
struct nodes {
    struct endpoint seed;        /* the address that the user gave */
    const char *user, *password; /* belong to the address or the caller; NULL: none */

    /* How long to wait for a reply; how long an exchange goes on after its first failure. */
    unsigned timeout_ms, patience_ms;
    unsigned acknowledge; /* how many replicas must have what is added */
    unsigned home;        /* the slot of the description, and of requests without one */
    bool (*stopped)(void *context); /* the caller's: whether to stop; NULL: never */
    void *context;
    struct slot_map map;
    bool known;   /* the map was read at least once */
    bool stale;   /* the map must be read again before the next round */
    bool cluster; /* false: it is a single server */
    bool passing; /* when the map was last asked for, at least one server was there */
    struct link **links;
    size_t nlinks;
    uint32_t connections; /* how many were made, so that each has a number of its own */
    unsigned turn;        /* counts up, so that a master and its replicas are asked in turn */
    uint64_t commands, retries, redirections; /* counted for statistics */
    char problem[900];                        /* the last problem, in one line */
};

/* Notes the problem and returns the error. */
int nodes_fail(struct nodes *nodes, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes the text of perhaps_strerror() as the problem and returns the error. */
int nodes_fail_plainly(struct nodes *nodes, int error);

/* Return the link to the master of a slot; nodes_any() returns those to the master and its
 * replicas in turn.  NULL: no node is known to own the slot, or there is no memory. */
struct link *nodes_master(struct nodes *nodes, unsigned slot);
struct link *nodes_any(struct nodes *nodes, unsigned slot);

/* Returns the link to a server, and makes it first if there is none; does not open it.  NULL:
 * there is no memory. */
struct link *nodes_link(struct nodes *nodes, const struct endpoint *at, bool replica);

/* Opens a link, unless it is open already or has failed a moment ago.  Returns whether it is
 * open now. */
bool nodes_open(struct nodes *nodes, struct link *link);

void nodes_release(struct nodes *nodes);

#endif
