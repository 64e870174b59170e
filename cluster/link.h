/* link.h - a connection to one server: commands that are sent, and their replies.
 *
 *     out     | sent | written, not sent |          commands
 *     queue   | entry | entry | ...                 one for each reply that is due, in order
 *     in      | given to hiredis | received |       bytes of replies
 *
 * Nothing here waits: link_send() and link_receive() do what can be done at once, and round.c
 * polls.  A link outlives its connection: when that fails, the link is closed, and can be
 * opened again. */
#ifndef LINK_H
#define LINK_H

#include <hiredis.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp.h"
#include "stream.h"

/* How many numbers a reply may have at most if it is an array: more than a key has bits. */
enum { NUMBERS_MOST = 192 };

/* The type in which hiredis counts the elements of an array. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* A reply.  The replies to most commands are a number, a text or an array of numbers; these are
 * kept here, without a call of malloc() for each.  For other commands 'tree' has the whole
 * reply, as hiredis makes it. */
struct reply {
    int type; /* REDIS_REPLY_... */
    long long number;
    size_t count; /* of an array */
    long long numbers[NUMBERS_MOST];
    const char *text; /* of a string, a status or an error; a zero byte stands behind it */
    size_t text_nbytes;
    char *room; /* holds the text, unless that belongs to the tree */
    size_t room_nbytes;
    const char *problem; /* why it was not taken; NULL: nothing is wrong */
    const redisReply *tree;
    size_t elements; /* of all arrays of the tree together */
    void *(*new_array)(const redisReadTask *task, element_count count); /* hiredis's own */
};

/* What is sent first on each new connection.  NULL: nothing. */
struct greeting {
    const char *user, *password; /* a user only beside a password */
    const char *client;          /* the name of this client */
    unsigned database;
};

/* Entries of the queue that are no requests: those of a greeting and READONLY, and ASKING. */
enum { QUEUE_GREETING = UINT32_MAX, QUEUE_ASKING = UINT32_MAX - 1 };

/* One connection, open or closed.  It belongs to struct nodes, and stays at its address. */
struct link {
    struct endpoint at;         /* as it is announced */
    struct endpoint reached_at; /* where it is reached from here: map= */
    char name[ENDPOINT_NBYTES]; /* 'at' as text, for messages */
    bool replica;               /* the server is a replica, and keys are asked for there */

    /* The number of the connection, which no other one of the handle has or had; 0: closed. */
    uint32_t number;
    struct stream stream;
    redisReader *reader;
    redisReplyObjectFunctions tree_functions;
    struct resp out;

    /* How many bytes of 'out' were sent; how many there were when sending was last tried. */
    size_t out_sent, out_tried;

    /* A ring: an entry for each command that is written or sent, and whose reply is due. */
    uint32_t *queue;
    size_t first, waiting, room;
    char in[64 << 10]; /* what was received, and not given to hiredis yet */
    size_t in_at, in_nbytes;
    size_t reply_nbytes; /* how much of the reply that is being parsed hiredis has */
    struct reply reply;
    int64_t heard_ms; /* when bytes last went through it, or its queue was last empty */
    int64_t rest_ms;  /* after a failure: it is not opened before this time */

    /* These are for the files that use links. */
    bool unacknowledged;    /* it took something in this exchange that replicas may not have */
    bool needed;            /* exchange.c: requests that were put off need it */
    int64_t plain_until_ms; /* the server gets only plain commands until this time: swift.c */

    bool answered; /* bytes ever came from it */
    bool sent;     /* at least a byte was sent since it was opened */
    bool closed;   /* it failed because the server closed it: so there is a server */
    bool mute;     /* it did so before it had sent anything */
    char trouble[320];
};

/* Returns the milliseconds of a clock that never goes back, and goes on while the machine
 * sleeps. */
int64_t now_ms(void);

/* Returns whether the link is open: connected, or about to be. */
bool link_is_open(const struct link *link);

/* Returns whether link_receive() must be called, although poll() may not say so: bytes have
 * come over TLS. */
bool link_has_more(const struct link *link);

/* Begins to connect, and writes the greeting, and READONLY for a replica.  'number' is that of
 * the connection; 'tls' stays the caller's, NULL for a plain connection.  Returns false if that
 * fails; 'trouble' says why. */
bool link_open(struct link *link, const struct greeting *greeting, uint32_t number,
               struct tls *tls);

/* Puts an entry into the queue for the command that was just written to link->out.  Returns
 * false if there is no memory for the command or the entry, and then the link is closed. */
bool link_queue(struct link *link, uint32_t entry);

/* Send and receive as much as is possible at once.  'tree': replies are to be trees.  Return
 * false if the connection has failed; 'trouble' says why. */
bool link_send(struct link *link);
bool link_receive(struct link *link, bool tree);

/* Returns the next reply that has come, and takes its entry from the queue.  Returns NULL if
 * none has come; or if the server sends nonsense, and then *failed is set and the link closed.
 * The reply stays until the next call. */
const struct reply *link_next(struct link *link, uint32_t *entry, bool *failed);

/* Closes the link, notes why, and does not let it be opened for a moment.  Entries stay in its
 * queue: the caller takes them back by link_forget(). */
void link_fail(struct link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes the next entry from the queue without a reply.  Returns false if there is none. */
bool link_forget(struct link *link, uint32_t *entry);

void link_release(struct link *link);

/* The links on which replies are due. */
enum { FEW_LINKS = 64 };
struct waiting {
    struct pollfd *events, few_events[FEW_LINKS]; /* for poll() */
    struct link **links, *few_links[FEW_LINKS];
    size_t n;
    bool more; /* bytes have come already, of which poll() does not tell */
};

/* Finds them among 'nlinks' links, and what each waits for.  Returns false if there is no
 * memory; either way the caller calls waiting_release(). */
bool waiting_find(struct waiting *waiting, struct link **links, size_t nlinks);
void waiting_release(struct waiting *waiting);

#endif
