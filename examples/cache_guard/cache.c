/* cache.c - names by e-mail address, in Redis: cache.h tells. */
#include "cache.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

enum { TIMEOUT_S = 5, EXPIRES_S = 3600 };

struct cache {
    redisContext *connection;
    char *host, *prefix;
    unsigned port;
    unsigned nunread; /* answers of cache_put() that are on their way */
};

/* ---- Commands ---------------------------------------------------------------------------- */

static void complain(const struct cache *c, const char *what)
{
    fail("cache redis://%s:%u: %s", c->host, c->port, what);
}

static void append(struct cache *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = redisvAppendCommand(c->connection, format, arguments);
    va_end(arguments);
    if (status != REDIS_OK)
        complain(c, c->connection->errstr);
}

static redisReply *next_reply(struct cache *c)
{
    void *reply;
    if (redisGetReply(c->connection, &reply) != REDIS_OK)
        complain(c, c->connection->errstr);
    redisReply *r = reply;
    if (r->type == REDIS_REPLY_ERROR)
        complain(c, r->str);
    return r;
}

/* The reply to the last command, behind those that nobody has waited for. */
static redisReply *last_reply(struct cache *c)
{
    for (; c->nunread > 0; c->nunread--)
        freeReplyObject(next_reply(c));
    return next_reply(c);
}

/* ---- Opening ----------------------------------------------------------------------------- */

/* Takes [:password@]host[:port] apart, and returns the password or NULL; each is to be
 * released. */
static char *parse(struct cache *c, const char *url)
{
    const char *rest = url + strlen("redis://");
    const char *at = strrchr(rest, '@');
    char *password = NULL;
    if (at && *rest == ':')
        password = text_of("%.*s", (int)(at - rest - 1), rest + 1);
    const char *host = at ? at + 1 : rest;
    size_t host_nbytes = strcspn(host, ":/?");
    const char *port = host + host_nbytes;
    char *end = NULL;
    c->host = text_of("%.*s", (int)host_nbytes, host);
    c->port = *port == ':' ? (unsigned)strtoul(port + 1, &end, 10) : 6379;
    if ((at && !password) || !host_nbytes || c->port == 0 || c->port > 65535 ||
        (end ? *end != '\0' : *port != '\0'))
        fail("--cache: wanted is redis://[:password@]host[:port]"); /* it may have a password */
    return password;
}

struct cache *cache_open(const char *url, const char *prefix)
{
    struct cache *c = memory_zeroed(sizeof *c);
    char *password = parse(c, url);
    const struct timeval patience = { .tv_sec = TIMEOUT_S };
    c->connection = redisConnectWithTimeout(c->host, (int)c->port, patience);
    if (!c->connection)
        fail("out of memory");
    if (c->connection->err)
        complain(c, c->connection->errstr);
    redisSetTimeout(c->connection, patience);
    c->prefix = text_of("%s", prefix);
    if (password) {
        append(c, "AUTH %s", password);
        freeReplyObject(next_reply(c));
    }
    append(c, "PING");
    freeReplyObject(next_reply(c));
    free(password);
    return c;
}

void cache_close(struct cache *c)
{
    redisFree(c->connection);
    free(c->host);
    free(c->prefix);
    free(c);
}

/* ---- Entries ----------------------------------------------------------------------------- */

/* An entry is '=' and the name, or nothing. */
bool cache_get(struct cache *c, const char *email, bool *exists, char name[NAME_NBYTES_MAX + 1])
{
    append(c, "GET %s%s", c->prefix, email);
    redisReply *reply = last_reply(c);
    bool hit = reply->type == REDIS_REPLY_STRING;
    *exists = hit && *reply->str == '=';
    if (*exists)
        snprintf(name, NAME_NBYTES_MAX + 1, "%s", reply->str + 1);
    freeReplyObject(reply);
    return hit;
}

void cache_put(struct cache *c, const char *email, const char *name)
{
    int all_written = 0;
    append(c, "SET %s%s %s%s EX %d", c->prefix, email, name ? "=" : "", name ? name : "",
           EXPIRES_S);
    c->nunread++;
    while (!all_written)
        if (redisBufferWrite(c->connection, &all_written) != REDIS_OK)
            complain(c, c->connection->errstr);
}

/* Removes what one answer of SCAN names. */
static uint64_t unlink_keys(struct cache *c, const redisReply *keys)
{
    for (size_t i = 0; i < keys->elements; i++)
        append(c, "UNLINK %b", keys->element[i]->str, (size_t)keys->element[i]->len);
    uint64_t nunlinked = 0;
    for (size_t i = 0; i < keys->elements; i++) {
        redisReply *reply = last_reply(c);
        nunlinked += (uint64_t)reply->integer;
        freeReplyObject(reply);
    }
    return nunlinked;
}

uint64_t cache_clear(struct cache *c)
{
    char cursor[32] = "0";
    uint64_t nunlinked = 0;
    do {
        append(c, "SCAN %s MATCH %s* COUNT 1000", cursor, c->prefix);
        redisReply *reply = last_reply(c);
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
            complain(c, "an answer to SCAN that is none");
        snprintf(cursor, sizeof cursor, "%s", reply->element[0]->str);
        nunlinked += unlink_keys(c, reply->element[1]);
        freeReplyObject(reply);
    } while (strcmp(cursor, "0") != 0);
    return nunlinked;
}

uint64_t cache_server_nbytes(struct cache *c)
{
    append(c, "INFO memory");
    redisReply *reply = last_reply(c);
    const char *line = reply->str ? strstr(reply->str, "used_memory:") : NULL;
    uint64_t nbytes = line ? strtoull(line + strlen("used_memory:"), NULL, 10) : 0;
    freeReplyObject(reply);
    return nbytes;
}
