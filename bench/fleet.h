/* fleet.h - the servers, as a client sees them that keeps all of them busy: commands are
 * written into one buffer for each, sent while more are written, and answered in their order.
 *
 * It speaks through hiredis, as the library that is measured does, without a call of malloc()
 * for a reply. */
#ifndef FLEET_H
#define FLEET_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

enum { NODES_MAX = 64 };

struct fleet;

/* What a server answered to the command with this tag: an integer, or bytes.  Errors end the
 * program before. */
typedef void fleet_taker(void *context, uint32_t tag, long long number, const char *bytes,
                         size_t nbytes);

struct node {
    struct fleet *fleet;
    char at[64];
    redisContext *context; /* does not block */
    redisContext *control; /* blocks: for INFO and the like */
    char *out;
    size_t out_nbytes, out_sent, out_room;
    uint32_t *tags; /* of the commands, in their order */
    size_t ntags, tag_room, answered;
};

struct fleet {
    struct node nodes[NODES_MAX];
    size_t count;
    uint8_t node_of[SLOTS];
    fleet_taker *take;
    void *context;
};

/* Connects to the servers of "redis://host:port", or ends the program with what is wrong. */
void fleet_open(struct fleet *fleet, const char *url);
void fleet_close(struct fleet *fleet);

/* A place for a command of 'most' bytes at most; what was written up to 'end' is a command.
 * Some of what was written before may be sent. */
char *fleet_place(struct node *node, size_t most);
void fleet_put(struct node *node, const char *end, uint32_t tag);

/* Sends all that was put, and takes all answers. */
void fleet_run(struct fleet *fleet);

/* Pieces of a command; they return where the next one goes. */
char *put_text(char *at, const char *text, size_t nbytes);
char *put_number(char *at, uint64_t number);               /* digits */
char *put_bulk(char *at, const char *text, size_t nbytes); /* an argument */
char *put_bulk_number(char *at, uint64_t number);          /* an argument */

/* What the masters say that they did, all together. */
struct gauge {
    double commands, in_nbytes, out_nbytes, seconds; /* of CPU time */
};
struct gauge fleet_gauge(struct fleet *fleet);

#endif
