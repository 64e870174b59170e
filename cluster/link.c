/* link.c - sends the bytes of commands, receives those of replies, and lets hiredis's reader
 * parse them.
 *
 * hiredis only parses the replies.  It takes memory by what a server announces, so that is
 * checked first.
 *
 * Invariant: a link that is closed has nothing in 'out' and 'in'.  Its queue may have entries,
 * until the round that wrote them has taken them back by link_forget(). */
#include "link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool link_is_open(const struct link *link)
{
    return link->number != 0;
}

bool link_has_more(const struct link *link)
{
    return link->stream.more;
}

static const char too_long[] = "its answer is longer than what was asked for";

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
            reply->problem = "no memory";
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

/* Refuses an array that is longer than any reply to our commands.  A count below zero is one
 * as well. */
static void *take_array(const redisReadTask *task, element_count count)
{
    struct reply *reply = reply_of(task);
    if (!task->parent)
        reply->count = (size_t)count;
    if ((size_t)count <= NUMBERS_MOST)
        return reply;
    reply->problem = too_long;
    return NULL;
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

/* hiredis allocates as many elements as a server announces.  This limit, of all arrays of a
 * reply together, keeps a server from making it take gigabytes.  CLUSTER SLOTS has the most: a
 * few dozen for each range of slots. */
enum { ELEMENTS_MOST = 1 << 20 };

static void *take_tree_array(const redisReadTask *task, element_count count)
{
    struct reply *reply = task->privdata;
    reply->elements = task->parent ? reply->elements : 0;
    if ((size_t)count > ELEMENTS_MOST - reply->elements) {
        reply->problem = too_long;
        return NULL;
    }
    reply->elements += (size_t)count;
    return reply->new_array(task, count);
}

/* ---- Opening and closing --------------------------------------------------------------- */

/* Closes the connection and drops what was to be sent and what was received; not the queue. */
static void close_link(struct link *link)
{
    if (link->reader) {
        freeReplyObject((void *)link->reply.tree);
        redisReaderFree(link->reader); /* frees half a reply by the functions that made it */
    }
    stream_close(&link->stream);
    link->reader = NULL;
    link->reply.tree = NULL;
    link->number = 0;
    link->out_sent = link->out_tried = 0;
    link->in_at = link->in_nbytes = link->reply_nbytes = 0;
    resp_clear(&link->out);
}

void link_fail(struct link *link, const char *format, ...)
{
    va_list arguments;
    char what[sizeof link->trouble];
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(link->trouble, sizeof link->trouble, "%.240s%.70s", what,
             stream_hint(&link->stream));
    close_link(link);
    link->rest_ms = now_ms() + REST_MS;
}

/* Closes the link because its stream has failed.  Returns false. */
static bool fail_stream(struct link *link)
{
    link->closed = link->stream.failure.closed;
    link->mute = link->stream.failure.mute;
    link_fail(link, "%s", link->stream.failure.text);
    return false;
}

void link_release(struct link *link)
{
    close_link(link);
    resp_release(&link->out);
    free(link->queue);
    free(link->reply.room);
    *link = (struct link){ 0 };
}

/* Writes a command of the greeting; NULL stands behind its last argument. */
static bool greet_by(struct link *link, const char *const *command)
{
    resp_texts(&link->out, command);
    return link_queue(link, QUEUE_GREETING);
}

static bool log_in(struct link *link, const struct greeting *greeting)
{
    const char *with_user[] = { "AUTH", greeting->user, greeting->password, NULL };
    const char *without[] = { "AUTH", greeting->password, NULL };
    return !greeting->password || greet_by(link, greeting->user ? with_user : without);
}

/* Writes what must come before all other commands.  A replica would redirect all questions to
 * its master if it had not been sent READONLY. */
static bool greet(struct link *link, const struct greeting *greeting)
{
    char database[12];
    snprintf(database, sizeof database, "%u", greeting->database);
    const char *name[] = { "CLIENT", "SETNAME", greeting->client, NULL };
    const char *select[] = { "SELECT", database, NULL };
    const char *readonly[] = { "READONLY", NULL };
    return log_in(link, greeting) && (!greeting->client || greet_by(link, name)) &&
           (!greeting->database || greet_by(link, select)) &&
           (!link->replica || greet_by(link, readonly));
}

/* Makes the parser of replies.  Its functions take memory for a tree; link_receive() gives it
 * others for other replies. */
static bool make_reader(struct link *link)
{
    redisReader *reader = link->reader = redisReaderCreate();
    if (!reader)
        return false;
    link->tree_functions = *reader->fn;
    link->reply.new_array = link->tree_functions.createArray;
    link->reply.problem = NULL;
    link->tree_functions.createArray = take_tree_array;
    reader->privdata = &link->reply;
    reader->maxbuf = 0; /* it keeps its buffer between replies, however large */
    return true;
}

bool link_open(struct link *link, const struct greeting *greeting, uint32_t number,
               struct tls *tls)
{
    close_link(link);
    link->trouble[0] = '\0';
    link->closed = link->mute = link->sent = false;
    link->plain_until_ms = 0;
    if (!stream_open(&link->stream, &link->reached_at, tls))
        return fail_stream(link);
    link->number = number;
    link->heard_ms = now_ms();
    if (make_reader(link))
        return greet(link, greeting);
    link_fail(link, "no memory");
    return false;
}

/* ---- The queue ------------------------------------------------------------------------- */

/* Doubles the ring, and moves its first entry to the front. */
static bool make_room_in_queue(struct link *link)
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
    if (link->out.failed || (link->waiting == link->room && !make_room_in_queue(link))) {
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

/* 'out_tried' is noted first.  So if a server takes nothing now, round.c does not try again for
 * each request, but only when another SEND_NBYTES have piled up.  It is called with nothing to
 * send, too, since a connection that is being made may have failed. */
bool link_send(struct link *link)
{
    struct resp *out = &link->out;
    ssize_t sent;
    link->out_tried = out->nbytes;
    do {
        sent = stream_send(&link->stream, out->bytes + link->out_sent,
                           out->nbytes - link->out_sent);
        if (sent < 0)
            return fail_stream(link);
        if (sent > 0) {
            link->out_sent += (size_t)sent;
            link->sent = true;
            link->heard_ms = now_ms();
        }
    } while (sent > 0 && link->out_sent < out->nbytes);
    if (link->out_sent < out->nbytes)
        return true;
    resp_clear(out);
    link->out_sent = link->out_tried = 0;
    return true;
}

static const char unasked[] = "it answered what was not asked";

/* The two kinds of exchanges need two sets of functions in hiredis's reader.  They change only
 * between replies: half a reply must be finished by the functions that began it. */
bool link_receive(struct link *link, bool tree)
{
    redisReader *reader = link->reader;
    redisReplyObjectFunctions *functions =
        tree ? &link->tree_functions : (redisReplyObjectFunctions *)&plain_functions;
    if (reader->reply && reader->fn != functions) {
        link_fail(link, "%s", unasked); /* half a reply was there before its question */
        return false;
    }
    reader->fn = functions;
    ssize_t got = stream_receive(&link->stream, link->in, sizeof link->in);
    if (got < 0)
        return fail_stream(link);
    if (got == 0)
        return true;
    link->heard_ms = now_ms();
    link->answered = true;
    link->in_at = 0;
    link->in_nbytes = (size_t)got;
    return true;
}

/* No text that this client asks for is longer than TEXT_NBYTES_MOST, and no reply, with all its
 * arrays, longer than REPLY_NBYTES_MOST: so no server can make it take more memory.  (hiredis
 * looks for the end of a line from its beginning each time that it gets more, which takes time
 * by the square of the length.) */
enum { TEXT_NBYTES_MOST = 2 << 20, REPLY_NBYTES_MOST = 17 << 20 };

static bool is_tree(const struct link *link)
{
    return link->reader->fn == &link->tree_functions;
}

/* Gives hiredis more of what was received.  Returns false if the reply is too long, or if there
 * is no memory. */
static bool feed(struct link *link, size_t nbytes)
{
    const redisReader *reader = link->reader;
    if (nbytes > FEED_NBYTES)
        nbytes = FEED_NBYTES;
    if (reader->len - reader->pos > TEXT_NBYTES_MOST || link->reply_nbytes > REPLY_NBYTES_MOST)
        link->reply.problem = too_long;
    else if (redisReaderFeed(link->reader, link->in + link->in_at, nbytes) != REDIS_OK)
        link->reply.problem = "no memory";
    link->in_at += nbytes;
    link->reply_nbytes += nbytes;
    return !link->reply.problem;
}

/* Parses the next reply from what was received, and sets *object to it, or to NULL if some of
 * it is still missing.  Returns false if it is no reply. */
static bool read_reply(struct link *link, void **object)
{
    while (redisReaderGetReply(link->reader, object) == REDIS_OK) {
        size_t left = link->in_nbytes - link->in_at;
        if (*object)
            link->reply_nbytes = 0;
        if (*object || !left)
            return true;
        if (!feed(link, left))
            return false;
    }
    return false;
}

/* Returns what is wrong with a reply that could not be read.  A server that speaks TLS answers
 * a plain command by an alert, whose first bytes are these. */
static const char *problem_of(const struct link *link)
{
    if (link->reply.problem)
        return link->reply.problem;
    if (link->in_nbytes >= 2 && link->in[0] == 0x15 && link->in[1] == 3)
        return "it speaks TLS: write rediss:// instead of redis://";
    return "it does not speak Redis's protocol";
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
        link_fail(link, "%s", problem_of(link));
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

/* ---- Many links ------------------------------------------------------------------------ */

/* Returns what poll() shall wait for on an open link.  On POLLOUT, and if the connection has
 * failed, link_send() must be called, even if nothing is to be sent. */
static struct pollfd link_wants(const struct link *link)
{
    return stream_wants(&link->stream, link->out_sent < link->out.nbytes);
}

bool waiting_find(struct waiting *waiting, struct link **links, size_t nlinks)
{
    const bool few = nlinks <= FEW_LINKS;
    waiting->n = 0;
    waiting->more = false;
    waiting->events = few ? waiting->few_events : calloc(nlinks, sizeof *waiting->events);
    waiting->links = few ? waiting->few_links : calloc(nlinks, sizeof(struct link *));
    if (!waiting->events || !waiting->links)
        return false;
    for (size_t i = 0; i < nlinks; i++) {
        struct link *link = links[i];
        if (!link_is_open(link) || !link->waiting)
            continue;
        waiting->more |= link_has_more(link);
        waiting->events[waiting->n] = link_wants(link);
        waiting->links[waiting->n++] = link;
    }
    return true;
}

void waiting_release(struct waiting *waiting)
{
    if (waiting->events != waiting->few_events)
        free(waiting->events);
    if (waiting->links != waiting->few_links)
        free(waiting->links);
}
