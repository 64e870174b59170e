/* link.h - a connection to one server: what was sent over it, what was answered. */
#ifndef LINK_H
#define LINK_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp.h"
#include "slots.h"

/* Numbers in an array that a reply can be: the bits of a key, and some more. */
enum { NUMBERS_MOST = 192 };

/* What hiredis counts the elements of an array in. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* A reply.  Of most only what our commands answer with is kept, without a call of malloc() for
 * each; or 'tree', which has all of it. */
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
    int64_t heard_ms; /* when it last sent or took something, or had nothing to do */
    int64_t rest_ms;  /* not to be opened before, since it failed */
    /* These four are for those above, who set them and look at them. */
    bool unacknowledged; /* what it took in this exchange its replicas may not have */
    bool used;           /* in the last exchange it answered what had to be answered */
    bool fresh, checked; /* partitions.c: is being looked at, was looked at */
    bool sent;           /* something, since it was opened */
    bool closed;         /* it failed since the server has closed it: it is there */
    char trouble[256];
};

int64_t now_ms(void);

/* Begins to connect, and puts AUTH and READONLY first where they are needed.  false: 'trouble'
 * says why; it is closed. */
bool link_open(struct link *link, const char *user, const char *password);

/* Puts what was just written to link->out into the queue.  false: no memory; it is closed. */
bool link_queue(struct link *link, uint32_t entry);

/* Sends and receives what is possible at once.  false: it failed; 'trouble' says why. */
bool link_send(struct link *link);
bool link_receive(struct link *link, bool tree);

/* Takes the next reply that has come, and its entry of the queue.  Returns NULL if none has,
 * or the server sends nonsense (*failed).  It stays until the next call. */
const struct reply *link_next(struct link *link, uint32_t *entry, bool *failed);

/* Closes it and remembers why, for a while in which it is not opened again.  What waits for an
 * answer is taken from it by link_forget(). */
void link_fail(struct link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The next entry that will never be answered; false: there is none. */
bool link_forget(struct link *link, uint32_t *entry);

void link_release(struct link *link);

#endif
