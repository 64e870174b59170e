/* link.h - a connection to one server: what was sent over it, what was answered.
 *
 *     out     | sent | written, not sent |          commands
 *     queue   | entry | entry | ...                 one for each reply that is due, in order
 *     in      | given to hiredis | received |       bytes of replies
 *
 * Nothing here waits: link_send() and link_receive() do what is possible at once, and round.c
 * polls.  A link stays where it is when its connection fails; opening it connects anew. */
#ifndef LINK_H
#define LINK_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp.h"
#include "slots.h"

/* The most numbers in an array that is a reply: the bits of a key, and some more. */
enum { NUMBERS_MOST = 192 };

/* What hiredis counts the elements of an array in. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* A reply.  Only what the answers to most commands have is kept, without a call of malloc() for
 * each: a number, a text, an array of numbers.  For other commands 'tree' has all of it, as
 * hiredis makes it. */
struct reply {
    int type; /* REDIS_REPLY_... */
    long long number;
    size_t count; /* of an array */
    long long numbers[NUMBERS_MOST];
    const char *text; /* of a string, a status or an error; a zero byte stands behind it */
    size_t text_nbytes;
    char *room; /* for the text, unless it is the tree's */
    size_t room_nbytes;
    bool failed; /* no memory */
    const redisReply *tree;
    void *(*new_array)(const redisReadTask *task, element_count count); /* hiredis's own */
};

/* Entries of the queue that are no requests. */
enum { QUEUE_GREETING = UINT32_MAX, QUEUE_ASKING = UINT32_MAX - 1 };

struct link {
    struct endpoint at;
    bool replica;          /* is to be asked though it is one */
    redisContext *context; /* NULL: closed */
    redisReplyObjectFunctions tree_functions;
    struct resp out;
    size_t out_sent, out_tried; /* of it; and what there was when sending was last tried */
    uint32_t *queue;            /* what was sent, or is to be, and not answered: a ring */
    size_t first, waiting, room;
    char in[64 << 10]; /* what was received, and not given to hiredis yet */
    size_t in_at, in_nbytes;
    struct reply reply;
    int64_t heard_ms; /* when bytes last went through it, or nothing was due */
    int64_t rest_ms;  /* it has failed, and is not to be opened before */
    /* These four are for those above, who set them and look at them. */
    bool unacknowledged; /* what it took in this exchange its replicas may not have */
    bool used;           /* in the last exchange it answered what had to be answered */
    bool fresh, checked; /* partitions.c: is being looked at, was looked at */
    bool sent;           /* something, since it was opened */
    bool closed;         /* it failed since the server closed it: so there is a server */
    char trouble[256];
};

int64_t now_ms(void);

/* Begins to connect, and puts AUTH and READONLY first where they are needed.  false: it failed;
 * 'trouble' says why. */
bool link_open(struct link *link, const char *user, const char *password);

/* Puts an entry into the queue for the command that was just written to link->out.  false: no
 * memory; the link is closed. */
bool link_queue(struct link *link, uint32_t entry);

/* Sends and receives what is possible at once.  false: it failed; 'trouble' says why. */
bool link_send(struct link *link);
bool link_receive(struct link *link, bool tree);

/* Takes the next reply that has come, and its entry of the queue.  Returns NULL if none has
 * come, or if the server sends nonsense (*failed).  The reply stays until the next call. */
const struct reply *link_next(struct link *link, uint32_t *entry, bool *failed);

/* Closes it, notes why, and lets it rest for a moment.  What was in its queue stays there: take
 * it with link_forget(). */
void link_fail(struct link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes the next entry from the queue without a reply.  false: there is none. */
bool link_forget(struct link *link, uint32_t *entry);

void link_release(struct link *link);

#endif
