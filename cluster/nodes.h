/* nodes.h - the servers of a cluster, or the one there is, and the connections to them.
 *
 * The map tells which node owns a slot.  There is a link to each server that was ever needed,
 * two to one that is asked both as a master and as a replica.  Links stay until the end, so
 * pointers to them may be kept. */
#ifndef NODES_H
#define NODES_H

#include <perhaps_cluster.h>

#include "link.h"

struct nodes {
    struct endpoint seed; /* the address that was given */
    const char *user, *password;
    unsigned timeout_ms, patience_ms;
    unsigned acknowledge; /* replicas that must have what is added */
    unsigned home;        /* the slot of requests that name none */
    bool (*stopped)(void *context);
    void *context;
    struct slot_map map;
    bool known;   /* the map was read */
    bool stale;   /* and is to be read again */
    bool cluster; /* it is one */
    bool passing; /* when the map was last asked for, at least one server was there */
    struct link **links;
    size_t nlinks;
    unsigned turn; /* of replicas */
    uint64_t commands, retries, redirections;
    char problem[900];
};

/* Notes the problem and returns the error. */
int nodes_fail(struct nodes *nodes, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for an error whose text is perhaps_strerror()'s. */
int nodes_fail_plainly(struct nodes *nodes, int error);

/* The link to the master of a slot; or to it and its replicas in turn.  NULL: no node is known
 * to hold it, or no memory. */
struct link *nodes_master(struct nodes *nodes, unsigned slot);
struct link *nodes_any(struct nodes *nodes, unsigned slot);

/* The link to a server, made if there is none yet, and not opened.  NULL: no memory. */
struct link *nodes_link(struct nodes *nodes, const struct endpoint *at, bool replica);

/* Opens a link that is closed, unless it rests.  false: it cannot be reached now. */
bool nodes_open(struct nodes *nodes, struct link *link);

void nodes_release(struct nodes *nodes);

#endif
