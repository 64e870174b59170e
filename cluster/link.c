/* link.c - sends the bytes of commands, receives those of replies, and lets hiredis's reader
 * parse them.
 *
 * hiredis connects and parses replies.  Sending and receiving are done here, so that it is
 * known what was sent, and when something was last heard.
 *
 * Invariant: a link that is closed has nothing in 'out' and 'in'.  Its queue may have entries,
 * until the round that wrote them has taken them back by link_forget(). */
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

/* How much hiredis gets at a time.  With every kilobyte that it reads, it moves what it has not
 * read yet to the front of its buffer.  If it gets little at a time, it moves little. */
enum { FEED_NBYTES = 4 << 10 };

/* How long a link that failed stays closed.  Otherwise a server that refuses connections would
 * be asked thousands of times a second. */
enum { REST_MS = 100 };

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool link_is_open(const struct link *link)
{
    return link->context != NULL;
}

struct pollfd link_wants(const struct link *link)
{
    bool sends = link->out_sent < link->out.nbytes;
    return (struct pollfd){ .fd = link->context->fd,
                            .events = (short)(POLLIN | (sends ? POLLOUT : 0)) };
}

bool link_has_more(const struct link *link)
{
    (void)link;
    return false;
}

/* ---- Replies without a tree ------------------------------------------------------------ */

/* hiredis calls these functions as it parses a reply.  It only checks whether they return NULL,
 * which ends the connection.  They ignore what is nested deeper than an array of numbers:
 * commands whose replies are nested are sent by exchanges that take trees. */

/* Returns the reply that is being parsed, and empties it at its beginning. */
static struct reply *reply_of(const redisReadTask *task)
{
    struct reply *reply = task->privdata;
    if (!task->parent) {
        reply->type = task->type;
        reply->count = 0;
        reply->text = "";
        reply->text_nbytes = 0;
    }
    return reply;
}

/* Copies the text, since hiredis's buffer moves.  The copy reuses its memory for the next. */
static void *take_text(const redisReadTask *task, char *text, size_t nbytes)
{
    struct reply *reply = reply_of(task);
    if (task->parent)
        return reply;
    if (reply->room_nbytes <= nbytes) {
        char *room = realloc(reply->room, nbytes + 1);
        if (!room) {
            reply->failed = true;
            return NULL;
        }
        reply->room = room;
        reply->room_nbytes = nbytes + 1;
    }
    if (nbytes)
        memcpy(reply->room, text, nbytes);
    reply->room[nbytes] = '\0';
    reply->text = reply->room;
    reply->text_nbytes = nbytes;
    return reply;
}

/* Refuses an array that is longer than any reply to our commands. */
static void *take_array(const redisReadTask *task, element_count count)
{
    struct reply *reply = reply_of(task);
    if (!task->parent)
        reply->count = (size_t)count;
    return count <= NUMBERS_MOST ? reply : NULL;
}

static void *take_number(const redisReadTask *task, long long number)
{
    struct reply *reply = reply_of(task);
    if (!task->parent)
        reply->number = number;
    else if (task->idx >= 0 && task->idx < NUMBERS_MOST && !task->parent->parent)
        reply->numbers[task->idx] = number;
    return reply;
}

/* hiredis tells the type of what could have stood there instead. */
static void *take_nil(const redisReadTask *task)
{
    struct reply *reply = reply_of(task);
    if (!task->parent)
        reply->type = REDIS_REPLY_NIL;
    return reply;
}

#if HIREDIS_MAJOR >= 1
/* Only RESP3 has these types, and no link has asked for RESP3. */
static void *refuse_double(const redisReadTask *task, double number, char *text, size_t nbytes)
{
    (void)task, (void)number, (void)text, (void)nbytes;
    return NULL;
}

static void *refuse_bool(const redisReadTask *task, int truth)
{
    (void)task, (void)truth;
    return NULL;
}
#endif

/* These replies lie in struct reply and are not released one by one: freeObject stays NULL. */
static const redisReplyObjectFunctions plain_functions = {
    .createString = take_text,
    .createArray = take_array,
    .createInteger = take_number,
#if HIREDIS_MAJOR >= 1
    .createDouble = refuse_double,
    .createBool = refuse_bool,
#endif
    .createNil = take_nil,
};

/* hiredis allocates as many elements as a server announces.  This limit keeps a server from
 * making it take gigabytes. */
enum { ELEMENTS_MOST = 1 << 20 };

static void *take_tree_array(const redisReadTask *task, element_count count)
{
    const struct reply *reply = task->privdata;
    return count > ELEMENTS_MOST ? NULL : reply->new_array(task, count);
}

/* ---- Opening and closing --------------------------------------------------------------- */

/* Closes the connection and drops what was to be sent and what was received; not the queue. */
static void close_link(struct link *link)
{
    if (link->context) {
        freeReplyObject((void *)link->reply.tree);
        redisFree(link->context); /* frees half a reply by the functions that made it */
    }
    link->context = NULL;
    link->reply.tree = NULL;
    link->out_sent = link->out_tried = 0;
    link->in_at = link->in_nbytes = 0;
    resp_clear(&link->out);
}

void link_fail(struct link *link, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(link->trouble, sizeof link->trouble, format, arguments);
    va_end(arguments);
    close_link(link);
    link->rest_ms = now_ms() + REST_MS;
}

void link_release(struct link *link)
{
    close_link(link);
    resp_release(&link->out);
    free(link->queue);
    free(link->reply.room);
    *link = (struct link){ 0 };
}

/* Writes what must come before all other commands.  A replica would redirect all questions to
 * its master if it had not been sent READONLY. */
static bool greet(struct link *link, const char *user, const char *password)
{
    if (password) {
        resp_command(&link->out, user ? 3 : 2, 64);
        resp_text(&link->out, "AUTH");
        if (user)
            resp_text(&link->out, user);
        resp_text(&link->out, password);
        if (!link_queue(link, QUEUE_GREETING))
            return false;
    }
    if (!link->replica)
        return true;
    resp_command(&link->out, 1, 16);
    resp_text(&link->out, "READONLY");
    return link_queue(link, QUEUE_GREETING);
}

static _Atomic uint32_t last_number;

bool link_open(struct link *link, const char *user, const char *password)
{
    close_link(link);
    redisContext *context = redisConnectNonBlock(link->at.host, (int)link->at.port);
    if (!context || context->err) {
        link_fail(link, "%s", context ? context->errstr : "no memory");
        if (context)
            redisFree(context);
        return false;
    }
    link->context = context;
    link->tree_functions = *context->reader->fn;
    link->reply.new_array = link->tree_functions.createArray;
    link->tree_functions.createArray = take_tree_array;
    context->reader->privdata = &link->reply;
    context->reader->maxbuf = 0; /* it keeps its buffer between replies, however large */
    link->heard_ms = now_ms();
    link->trouble[0] = '\0';
    link->closed = link->sent = false;
    link->number = ++last_number;
    return greet(link, user, password);
}

/* ---- The queue ------------------------------------------------------------------------- */

/* Doubles the ring, and moves its first entry to the front. */
static bool make_room(struct link *link)
{
    size_t room = link->room ? 2 * link->room : 256;
    uint32_t *queue = malloc(room * sizeof *queue);
    if (!queue)
        return false;
    for (size_t i = 0; i < link->waiting; i++)
        queue[i] = link->queue[(link->first + i) % link->room];
    free(link->queue);
    link->queue = queue;
    link->room = room;
    link->first = 0;
    return true;
}

/* The silence of a server counts from the moment at which a reply is due, not from the reply
 * before: between exchanges a server has nothing to say. */
bool link_queue(struct link *link, uint32_t entry)
{
    if (link->out.failed || (link->waiting == link->room && !make_room(link))) {
        link_fail(link, "no memory");
        return false;
    }
    if (link->waiting == 0)
        link->heard_ms = now_ms();
    link->queue[(link->first + link->waiting++) % link->room] = entry;
    return true;
}

bool link_forget(struct link *link, uint32_t *entry)
{
    if (link->waiting == 0)
        return false;
    *entry = link->queue[link->first];
    link->first = (link->first + 1) % link->room;
    link->waiting--;
    return true;
}

/* ---- Sending and receiving ------------------------------------------------------------- */

/* Returns whether an error has come meanwhile, such as a connection that was refused, and then
 * closes the link. */
static bool has_failed(struct link *link)
{
    int error = 0;
    socklen_t nbytes = sizeof error;
    getsockopt(link->context->fd, SOL_SOCKET, SO_ERROR, &error, &nbytes);
    if (error) {
        link->closed = error == ECONNRESET || error == EPIPE;
        link_fail(link, "%s", strerror(error));
    }
    return error != 0;
}

/* 'out_tried' is noted first.  So if a server takes nothing now, round.c does not try again for
 * each request, but only when another SEND_NBYTES have piled up. */
bool link_send(struct link *link)
{
    struct resp *out = &link->out;
    if (has_failed(link))
        return false;
    link->out_tried = out->nbytes;
    while (link->out_sent < out->nbytes) {
        ssize_t sent = send(link->context->fd, out->bytes + link->out_sent,
                            out->nbytes - link->out_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (sent < 0) {
            link_fail(link, "%s", strerror(errno));
            return false;
        }
        link->out_sent += (size_t)sent;
        link->sent = true;
        link->heard_ms = now_ms();
    }
    resp_clear(out);
    link->out_sent = link->out_tried = 0;
    return true;
}

static const char unasked[] = "it answered what was not asked";

/* The two kinds of exchanges need two sets of functions in hiredis's reader.  They change only
 * between replies: half a reply must be finished by the functions that began it. */
bool link_receive(struct link *link, bool tree)
{
    redisReader *reader = link->context->reader;
    redisReplyObjectFunctions *functions =
        tree ? &link->tree_functions : (redisReplyObjectFunctions *)&plain_functions;
    if (reader->reply && reader->fn != functions) {
        link_fail(link, "%s", unasked); /* half a reply was there before its question */
        return false;
    }
    reader->fn = functions;
    ssize_t got = recv(link->context->fd, link->in, sizeof link->in, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return true;
    if (got <= 0) {
        link->closed = true;
        link_fail(link, "%s", got ? strerror(errno) : "it closed the connection");
        return false;
    }
    link->heard_ms = now_ms();
    link->in_at = 0;
    link->in_nbytes = (size_t)got;
    return true;
}

/* No text that this client asks for is longer, so no server can make it take more memory. */
enum { TEXT_NBYTES_MOST = 2 << 20 };

/* Parses the next reply from what was received, and sets *object to it, or to NULL if a part of
 * it is still missing.  Returns false if it is no reply. */
static bool read_reply(struct link *link, void **object)
{
    redisReader *reader = link->context->reader;
    while (redisReaderGetReply(reader, object) == REDIS_OK) {
        size_t left = link->in_nbytes - link->in_at;
        if (*object || !left)
            return true;
        size_t nbytes = left < FEED_NBYTES ? left : FEED_NBYTES;
        if (reader->len - reader->pos > TEXT_NBYTES_MOST ||
            redisReaderFeed(reader, link->in + link->in_at, nbytes) != REDIS_OK)
            return false;
        link->in_at += nbytes;
    }
    return false;
}

static bool is_tree(const struct link *link)
{
    return link->context->reader->fn == &link->tree_functions;
}

/* Keeps the tree, and what it is at its top, so that callers that need no more find that in the
 * same members as in other replies. */
static void take_tree(struct reply *reply, redisReply *tree)
{
    reply->tree = tree;
    reply->type = tree->type;
    reply->number = tree->integer;
    reply->count = tree->elements;
    reply->text = tree->str;
    reply->text_nbytes = tree->len;
}

/* A reply without an entry in the queue answers nothing that was asked, and ends the link. */
const struct reply *link_next(struct link *link, uint32_t *entry, bool *failed)
{
    void *object = NULL;
    struct reply *reply = &link->reply;
    freeReplyObject((void *)reply->tree);
    reply->tree = NULL;
    *failed = !read_reply(link, &object);
    if (*failed) {
        link_fail(link, "%s",
                  reply->failed ? "no memory" : "it does not speak Redis's protocol");
        return NULL;
    }
    if (!object)
        return NULL;
    if (is_tree(link))
        take_tree(reply, object);
    if (link_forget(link, entry))
        return reply;
    *failed = true;
    link_fail(link, "%s", unasked);
    return NULL;
}
