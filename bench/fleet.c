/* fleet.c - a loop over connections that do not block. */
#include "fleet.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Once so much is waiting it is sent, while more commands are written. */
enum { SEND_NBYTES = 32 << 10 };

/* ---- Commands ---------------------------------------------------------------------------- */

char *put_text(char *at, const char *text, size_t nbytes)
{
    memcpy(at, text, nbytes);
    return at + nbytes;
}

static unsigned digits_of(uint64_t number)
{
    unsigned digits = 1;
    for (; number >= 10; number /= 10)
        digits++;
    return digits;
}

char *put_number(char *at, uint64_t number)
{
    unsigned digits = digits_of(number);
    for (unsigned i = digits; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    return at + digits;
}

static char *put_line_end(char *at)
{
    return put_text(at, "\r\n", 2);
}

char *put_bulk(char *at, const char *text, size_t nbytes)
{
    *at++ = '$';
    at = put_line_end(put_number(at, nbytes));
    return put_line_end(put_text(at, text, nbytes));
}

char *put_bulk_number(char *at, uint64_t number)
{
    *at++ = '$';
    at = put_line_end(put_number(at, digits_of(number)));
    return put_line_end(put_number(at, number));
}

/* Twice the room, so that it is seldom called. */
static void *grow(void *memory, size_t *room, size_t least, size_t unit)
{
    while (*room < least)
        *room = *room ? 2 * *room : 1024;
    memory = realloc(memory, *room * unit);
    if (!memory)
        errx(2, "out of memory");
    return memory;
}

/* Sends what the server takes now. */
static void send_some(struct node *node)
{
    size_t left = node->out_nbytes - node->out_sent;
    ssize_t sent =
        send(node->context->fd, node->out + node->out_sent, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        err(2, "%s: send", node->at);
    node->out_sent += sent > 0 ? (size_t)sent : 0;
}

char *fleet_place(struct node *node, size_t most)
{
    if (node->out_nbytes + most > node->out_room)
        node->out = grow(node->out, &node->out_room, node->out_nbytes + most, 1);
    return node->out + node->out_nbytes;
}

void fleet_put(struct node *node, const char *end, uint32_t tag)
{
    if (node->ntags == node->tag_room)
        node->tags = grow(node->tags, &node->tag_room, node->ntags + 1, sizeof *node->tags);
    node->tags[node->ntags++] = tag;
    size_t before = node->out_nbytes;
    node->out_nbytes = (size_t)(end - node->out);
    if (before / SEND_NBYTES != node->out_nbytes / SEND_NBYTES)
        send_some(node);
}

/* ---- Answers ----------------------------------------------------------------------------- */

/* Replies are told as they are parsed, and are nothing else: any address that is not NULL. */
static void *take(const redisReadTask *task, long long number, const char *bytes, size_t nbytes)
{
    struct node *node = task->privdata;
    if (node->answered == node->ntags)
        errx(2, "%s: an answer to nothing", node->at);
    node->fleet->take(node->fleet->context, node->tags[node->answered++], number, bytes,
                      nbytes);
    return node;
}

static void *take_string(const redisReadTask *task, char *bytes, size_t nbytes)
{
    const struct node *node = task->privdata;
    if (task->type == REDIS_REPLY_ERROR)
        errx(2, "%s: %.*s", node->at, (int)nbytes, bytes);
    return take(task, 0, bytes, nbytes);
}

static void *take_integer(const redisReadTask *task, long long number)
{
    return take(task, number, NULL, 0);
}

static void *take_nil(const redisReadTask *task)
{
    return take(task, 0, NULL, 0);
}

static void forget(void *reply)
{
    (void)reply;
}

/* No command that is sent here is answered by an array. */
static redisReplyObjectFunctions takers = { .createString = take_string,
                                            .createInteger = take_integer,
                                            .createNil = take_nil,
                                            .freeObject = forget };

static void receive(struct node *node)
{
    void *reply;
    if (redisBufferRead(node->context) != REDIS_OK)
        errx(2, "%s: %s", node->at, node->context->errstr);
    do {
        if (redisReaderGetReply(node->context->reader, &reply) != REDIS_OK)
            errx(2, "%s: %s", node->at, node->context->reader->errstr);
    } while (reply);
}

/* Of the nodes that still have to send or to answer; returns how many. */
static nfds_t watch(struct fleet *fleet, struct pollfd *events, struct node **watched)
{
    nfds_t count = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        struct node *node = &fleet->nodes[i];
        bool sends = node->out_sent < node->out_nbytes;
        if (!sends && node->answered == node->ntags)
            continue;
        events[count] = (struct pollfd){ .fd = node->context->fd,
                                         .events = (short)(POLLIN | (sends ? POLLOUT : 0)) };
        watched[count++] = node;
    }
    return count;
}

void fleet_run(struct fleet *fleet)
{
    enum { PATIENCE_MS = 30000 };
    struct pollfd events[NODES_MAX];
    struct node *watched[NODES_MAX];
    nfds_t count;
    while ((count = watch(fleet, events, watched))) {
        int ready = poll(events, count, PATIENCE_MS);
        if (ready == 0)
            errx(2, "%s: no answer for %d s", watched[0]->at, PATIENCE_MS / 1000);
        if (ready < 0 && errno != EINTR)
            err(2, "poll");
        for (nfds_t i = 0; i < count && ready > 0; i++) {
            if (events[i].revents & POLLOUT)
                send_some(watched[i]);
            if (events[i].revents & ~POLLOUT)
                receive(watched[i]);
        }
    }
    for (size_t i = 0; i < fleet->count; i++) {
        struct node *node = &fleet->nodes[i];
        node->out_nbytes = node->out_sent = node->ntags = node->answered = 0;
    }
}

/* ---- Connections ------------------------------------------------------------------------- */

static redisContext *check(redisContext *context, const char *host, int port)
{
    if (!context || context->err)
        errx(2, "%s:%d: %s", host, port, context ? context->errstr : "out of memory");
    return context;
}

static void add_node(struct fleet *fleet, const char *host, int port)
{
    if (fleet->count == NODES_MAX)
        errx(2, "more than %d masters", NODES_MAX);
    struct node *node = &fleet->nodes[fleet->count++];
    *node = (struct node){ .fleet = fleet };
    snprintf(node->at, sizeof node->at, "%.50s:%d", host, port);
    node->control = check(redisConnect(host, port), host, port);
    node->context = check(redisConnectNonBlock(host, port), host, port);
    node->context->reader->fn = &takers;
    node->context->reader->privdata = node;
}

static redisReply *ask(redisContext *context, const char *command)
{
    redisReply *reply = redisCommand(context, command);
    if (!reply)
        errx(2, "%s: %s", command, context->errstr);
    return reply;
}

/* One row of CLUSTER SLOTS: from, to, (host, port, ...), ... */
static void add_slots(struct fleet *fleet, const redisReply *row)
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements < 3 || row->element[2]->elements < 2)
        errx(2, "CLUSTER SLOTS: an answer that is none");
    const redisReply *master = row->element[2];
    char at[64];
    snprintf(at, sizeof at, "%.50s:%lld", master->element[0]->str, master->element[1]->integer);
    size_t i = 0;
    while (i < fleet->count && strcmp(fleet->nodes[i].at, at) != 0)
        i++;
    if (i == fleet->count)
        add_node(fleet, master->element[0]->str, (int)master->element[1]->integer);
    for (long long slot = row->element[0]->integer;
         slot <= row->element[1]->integer && slot < SLOTS; slot++)
        fleet->node_of[slot] = (uint8_t)i;
}

void fleet_open(struct fleet *fleet, const char *url)
{
    char host[64];
    int port;
    if (sscanf(url, "redis://%63[^:/]:%d", host, &port) != 2)
        errx(2, "%s: not redis://host:port", url);
    *fleet = (struct fleet){ 0 };
    redisContext *seed = check(redisConnect(host, port), host, port);
    redisReply *rows = ask(seed, "CLUSTER SLOTS");
    if (rows->type == REDIS_REPLY_ERROR)
        add_node(fleet, host, port); /* it is no cluster */
    for (size_t i = 0; rows->type == REDIS_REPLY_ARRAY && i < (size_t)rows->elements; i++)
        add_slots(fleet, rows->element[i]);
    freeReplyObject(rows);
    redisFree(seed);
}

void fleet_close(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        redisFree(fleet->nodes[i].context);
        redisFree(fleet->nodes[i].control);
        free(fleet->nodes[i].out);
        free(fleet->nodes[i].tags);
    }
}

/* ---- What they did ----------------------------------------------------------------------- */

static double info_number(const redisReply *info, const char *name)
{
    const char *line = info->type == REDIS_REPLY_STRING ? strstr(info->str, name) : NULL;
    if (!line)
        errx(2, "INFO does not tell %s", name);
    return strtod(line + strlen(name), NULL);
}

struct gauge fleet_gauge(struct fleet *fleet)
{
    struct gauge gauge = { 0 };
    for (size_t i = 0; i < fleet->count; i++) {
        redisReply *stats = ask(fleet->nodes[i].control, "INFO stats");
        redisReply *cpu = ask(fleet->nodes[i].control, "INFO cpu");
        gauge.commands += info_number(stats, "total_commands_processed:");
        gauge.in_nbytes += info_number(stats, "total_net_input_bytes:");
        gauge.out_nbytes += info_number(stats, "total_net_output_bytes:");
        gauge.seconds += info_number(cpu, "used_cpu_sys:") + info_number(cpu, "used_cpu_user:");
        freeReplyObject(stats);
        freeReplyObject(cpu);
    }
    return gauge;
}
