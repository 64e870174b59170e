/* slots.h - the node of each slot of a cluster, and what a server's error asks for. */
#ifndef SLOTS_H
#define SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

struct redisReply;

enum { SLOTS = 16384, NODES_MOST = 1024 };

/* The slot of a Redis key: CRC16 (XMODEM: polynomial 0x1021, from 0 on) of its hash tag, or of
 * all of it, modulo SLOTS. */
unsigned slot_of(const void *key, size_t nbytes);

struct endpoint {
    char host[HOST_NBYTES_MOST + 1];
    unsigned port;
};

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* ---- What an error reply asks for ------------------------------------------------------ */

enum verdict {
    REPLY_MOVED,     /* the slot is at 'to', for good */
    REPLY_ASK,       /* this once at 'to', after ASKING */
    REPLY_AGAIN,     /* later: loading, busy, failing over, a slot on its way */
    REPLY_FULL,      /* maxmemory */
    REPLY_REFUSED,   /* password, permission, its disk, its replicas, unknown command */
    REPLY_WRONGTYPE, /* the key holds something else */
    REPLY_STRANGE,   /* anything else */
};

struct redirection {
    enum verdict verdict;
    bool refresh;       /* the map is out of date */
    unsigned slot;      /* MOVED, ASK */
    struct endpoint to; /* MOVED, ASK; host empty: the host that was asked */
};

/* Reads the text of an error reply, without its '-'. */
void redirection_read(const char *text, struct redirection *redirection);

/* ---- The map --------------------------------------------------------------------------- */

#define NOBODY UINT16_MAX

struct node {
    struct endpoint at;
    uint16_t master; /* index; its own: it is one */
    uint16_t nreplicas;
    uint16_t replica; /* index of its first, or NOBODY */
    uint16_t next;    /* replica of the same master, or NOBODY */
};

struct slot_map {
    uint16_t master[SLOTS]; /* index of the node that holds the slot, or NOBODY */
    struct node *nodes;
    size_t nnodes; /* NODES_MOST at most */
    size_t room;
};

/* Nobody holds anything.  To be called before the others. */
void slot_map_init(struct slot_map *map);
void slot_map_release(struct slot_map *map);

/* The next three return NULL; or no_memory, or one line of what is wrong, and have changed
 * nothing. */

/* Makes the map of one server that holds all slots. */
const char *slot_map_single(struct slot_map *map, const struct endpoint *server);

/* Makes the map from the answer of 'asked' to CLUSTER SLOTS.  Indexes of nodes are new.  A node
 * whose host is not told has that of 'asked'; one whose host is not known ("?") holds
 * nothing. */
const char *slot_map_read(struct slot_map *map, const struct redisReply *reply,
                          const struct endpoint *asked);

/* Notes that the slot is at 'to' (whose host is not empty), which may be a new node.  Indexes
 * of nodes stay. */
const char *slot_map_move(struct slot_map *map, unsigned slot, const struct endpoint *to);

/* The index of a node, or NOBODY. */
uint16_t slot_map_find(const struct slot_map *map, const struct endpoint *at);

/* The index of a replica of a master: i is below its nreplicas. */
uint16_t slot_map_replica(const struct slot_map *map, uint16_t master, unsigned i);

#endif
