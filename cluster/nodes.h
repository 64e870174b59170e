/* nodes.h - the servers of a cluster, or a single server, and the links to them.
 *
 * The map tells which node owns a slot.  There is a link to each server that was ever needed;
 * two if it was asked both as a master and as a replica, since READONLY changes a connection.
 * Links stay until nodes_release(), so callers may keep pointers to them. */
#ifndef NODES_H
#define NODES_H

#include <perhaps_cluster.h>

#include "link.h"

struct exchange;

/* How connections are made.  The texts belong to the address or the caller; NULL: none. */
struct access {
    const char *user, *password, *password_file, *sentinel_password_file;

    /* The caller's, as perhaps_cluster.h says; NULL: there is none. */
    bool (*login)(void *context, char *user, size_t user_size, char *password,
                  size_t password_size);
    const char *client;
    unsigned database;
    bool secure; /* by TLS, as the settings say */
    struct tls_settings settings;
};

/* All that a handle knows of its servers.  It owns the map, the links, 'seen' and 'tls'. */
struct nodes {
    const struct endpoint *seeds; /* those of the address: servers or sentinels */
    size_t nseeds;

    /* The name of the master that the sentinels at the seeds watch over; NULL: the seeds are
     * servers. */
    const char *master;

    /* Where announced servers are reached: map= of the address; and the caller's function. */
    const struct address_map *maps;
    size_t nmaps;
    bool (*reach)(void *context, const char *host, unsigned port, char *to_host, size_t to_size,
                  unsigned *to_port);
    struct access access;
    struct tls *tls; /* made with the first connection; NULL: not yet */

    /* How long to wait for a reply; how long an exchange goes on after its first failure. */
    unsigned timeout_ms, patience_ms;
    bool impatient;       /* patience has ended once in this call, and does not begin again */
    unsigned deadline_ms; /* how long a call may take; 0: as long as it needs */
    int64_t ends_ms;      /* when the call that is under way must end; 0: no such time */
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
    struct endpoint *seen; /* all that were ever in the map: places to ask for another one */
    size_t nseen;
    uint32_t connections; /* how many were made, so that each has a number of its own */
    unsigned turn;        /* counts up, so that a master and its replicas are asked in turn */
    uint64_t commands, retries, redirections, trips; /* counted for statistics */

    /* A question that goes along with that for the map (round.h, 'early'); NULL: none.
     * 'answered': it was, with the result 'answer'. */
    const struct exchange *early;
    bool answered;
    int answer;
    char problem[900]; /* the last problem, in one line */
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

/* Notes all servers of the map among those that were seen.  Those for which there is no memory
 * are left out. */
void nodes_see(struct nodes *nodes);

/* Opens a link, unless it is open already or has failed a moment ago.  Returns whether it is
 * open now. */
bool nodes_open(struct nodes *nodes, struct link *link);

/* Returns the link to a server of a cluster that has told the map, if none of the map has ever
 * answered: it seems to tell addresses that are known only elsewhere.  Else NULL.  HIDDEN_MS:
 * how long these are waited for then. */
enum { HIDDEN_MS = 700 };
const struct link *nodes_hide(const struct nodes *nodes);

/* Returns whether this is the link to a sentinel. */
bool nodes_is_sentinel(const struct nodes *nodes, const struct link *link);

void nodes_release(struct nodes *nodes);

#endif
