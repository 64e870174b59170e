/* slots.h - which node of a cluster owns each slot, and what an error reply asks a client to
 * do.  No sockets: the map is made from replies, and answers where to send a request. */
#ifndef SLOTS_H
#define SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

struct redisReply;

enum { SLOTS = 16384, NODES_MOST = 1024 };

/* Returns the slot of a Redis key: the CRC16 (XMODEM: polynomial 0x1021, initial value 0) of
 * its hash tag, or of the whole key if it has none, modulo SLOTS. */
unsigned slot_of(const void *key, size_t nbytes);

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* Writes host and port, or the path of a unix socket, for messages. */
enum { ENDPOINT_NBYTES = HOST_NBYTES_MOST + 16 };
void endpoint_show(const struct endpoint *at, char text[ENDPOINT_NBYTES]);

/* Sets the host, which may be empty.  Returns false, and changes nothing, if it is too long or
 * not one word of printable ASCII: hosts are printed in messages, and a server may be
 * hostile. */
bool endpoint_set_host(struct endpoint *at, const char *host, size_t nbytes);

/* ---- What an error reply asks for ------------------------------------------------------ */

/* What to do about an error reply. */
enum verdict {
    REPLY_MOVED,     /* send the request to 'to', which owns the slot from now on */
    REPLY_ASK,       /* send this request alone to 'to', after ASKING */
    REPLY_AGAIN,     /* send it later: loading, busy, failing over, a slot that is moving */
    REPLY_FULL,      /* give up: the server has reached its maxmemory */
    REPLY_REFUSED,   /* give up: password, permission, disk, replicas, unknown command */
    REPLY_WRONGTYPE, /* give up: the Redis key holds something of another type */
    REPLY_STRANGE,   /* give up: any other error */
};

/* An error reply, as it was understood. */
struct redirection {
    enum verdict verdict;
    bool refresh;       /* the map is out of date and should be read again */
    unsigned slot;      /* MOVED, ASK */
    struct endpoint to; /* MOVED, ASK; an empty host means the host that was asked */
};

/* Reads the text of an error reply, without its '-'.  Any text will do. */
void redirection_read(const char *text, struct redirection *redirection);

/* ---- The map --------------------------------------------------------------------------- */

/* The index of no node. */
#define NOBODY UINT16_MAX

/* A server of the cluster.  Other nodes are told by their index in the map. */
struct node {
    struct endpoint at;
    uint16_t master; /* its master; its own index if it is a master */
    uint16_t nreplicas;
    uint16_t replica; /* its first replica, or NOBODY */
    uint16_t next;    /* the next replica of the same master, or NOBODY */
};

/* Which node owns which slot, as far as this client knows: the cluster may have changed. */
struct slot_map {
    uint16_t master[SLOTS]; /* the node that owns the slot, or NOBODY */
    struct node *nodes;
    size_t nnodes; /* NODES_MOST at most */
    size_t room;
};

/* Makes an empty map, in which no slot has an owner.  Must be called before all others. */
void slot_map_init(struct slot_map *map);
void slot_map_release(struct slot_map *map);

/* The next three return NULL.  On failure they return no_memory, or one line that says what is
 * wrong, and the map is as it was. */

/* Makes the map of one server that owns all slots. */
const char *slot_map_single(struct slot_map *map, const struct endpoint *server);

/* Makes the map from the reply of 'asked' to CLUSTER SLOTS.  Nodes get new indexes.  A node
 * that is told without a host has the host of 'asked'.  The slots of a node whose host is not
 * known ("?") have no owner. */
const char *slot_map_read(struct slot_map *map, const struct redisReply *reply,
                          const struct endpoint *asked);

/* Notes that 'to' owns the slot; its host is not empty.  Adds the node if it is new.  All nodes
 * keep their indexes. */
const char *slot_map_move(struct slot_map *map, unsigned slot, const struct endpoint *to);

/* Returns the index of the node at this endpoint, or NOBODY. */
uint16_t slot_map_find(const struct slot_map *map, const struct endpoint *at);

/* Returns the index of replica i of a master; i is less than its nreplicas. */
uint16_t slot_map_replica(const struct slot_map *map, uint16_t master, unsigned i);

#endif
