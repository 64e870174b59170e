/* slots.c - finds the slot of a key, reads error replies, and keeps the map of slots.
 *
 * Invariant of a map: each node is its own master, or it stands once in the list of its
 * master's replicas.  The list begins at 'replica' of the master and goes on by 'next'. */
#include "slots.h"

#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

/* ---- Slots ------------------------------------------------------------------------------ */

/* Takes a byte at a time, without a table.  The polynomial 0x1021 is x^12 + x^5 + 1, so the
 * byte that leaves the register comes back at three places; its upper half leaves twice. */
static uint16_t crc16(const unsigned char *bytes, size_t nbytes)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < nbytes; i++) {
        unsigned leaves = (crc >> 8) ^ bytes[i];
        leaves ^= leaves >> 4;
        crc = (uint16_t)((unsigned)crc << 8 ^ leaves << 12 ^ leaves << 5 ^ leaves);
    }
    return crc;
}

/* The hash tag is what stands between the first { and the next }, if that is not empty. */
unsigned slot_of(const void *key, size_t nbytes)
{
    const char *open = memchr(key, '{', nbytes);
    if (open) {
        const char *tag = open + 1;
        const char *close = memchr(tag, '}', nbytes - (size_t)(tag - (const char *)key));
        if (close && close > tag)
            return crc16((const unsigned char *)tag, (size_t)(close - tag)) % SLOTS;
    }
    return crc16(key, nbytes) % SLOTS;
}

/* ---- Endpoints -------------------------------------------------------------------------- */

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

void endpoint_show(const struct endpoint *at, char text[ENDPOINT_NBYTES])
{
    bool is_ipv6 = strchr(at->host, ':');
    if (at->port)
        snprintf(text, ENDPOINT_NBYTES, "%s%s%s:%u", is_ipv6 ? "[" : "", at->host,
                 is_ipv6 ? "]" : "", at->port);
    else
        snprintf(text, ENDPOINT_NBYTES, "%s", at->host);
}

bool endpoint_set_host(struct endpoint *at, const char *host, size_t nbytes)
{
    if (nbytes > HOST_NBYTES_MOST)
        return false;
    for (size_t i = 0; i < nbytes; i++)
        if (host[i] <= ' ' || host[i] > '~')
            return false;
    memcpy(at->host, host, nbytes);
    at->host[nbytes] = '\0';
    return true;
}

/* A server tells "?" for a host that it does not know itself. */
static bool is_unknown(const struct endpoint *at)
{
    return strcmp(at->host, "?") == 0;
}

/* ---- Error replies ---------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *words)
{
    size_t nbytes = strlen(words);
    return strncmp(text, words, nbytes) == 0 && (!text[nbytes] || text[nbytes] == ' ');
}

/* Reads " 3999 127.0.0.1:6381".  An IPv6 address has no brackets here, so the last colon is the
 * one before the port.  Returns false for anything else. */
static bool read_target(const char *text, struct redirection *redirection)
{
    text += *text == ' ';
    const char *blank = strchr(text, ' '), *colon = strrchr(text, ':');
    uint64_t slot = 0, port = 0;
    if (!blank || !colon || colon < blank ||
        !read_digits(text, (size_t)(blank - text), SLOTS - 1, &slot) ||
        !read_digits(colon + 1, strlen(colon + 1), UINT16_MAX, &port) || port == 0 ||
        !endpoint_set_host(&redirection->to, blank + 1, (size_t)(colon - blank - 1)))
        return false;
    redirection->slot = (unsigned)slot;
    redirection->to.port = (unsigned)port;
    return true;
}

/* Fills in a redirection.  One that does not say where to go is strange; one to a host that the
 * server does not know means to try later, with a new map. */
static void redirect(const char *target, enum verdict verdict, struct redirection *redirection)
{
    redirection->verdict = verdict;
    redirection->refresh = verdict == REPLY_MOVED;
    if (!read_target(target, redirection))
        *redirection = (struct redirection){ .verdict = REPLY_STRANGE };
    else if (is_unknown(&redirection->to))
        *redirection = (struct redirection){ .verdict = REPLY_AGAIN, .refresh = true };
}

void redirection_read(const char *text, struct redirection *redirection)
{
    static const struct {
        const char *words;
        enum verdict verdict;
        bool refresh;
    } known[] = {
        { "TRYAGAIN", REPLY_AGAIN, false },
        { "CLUSTERDOWN", REPLY_AGAIN, true },
        { "LOADING", REPLY_AGAIN, false },
        { "MASTERDOWN", REPLY_AGAIN, true },
        { "BUSY", REPLY_AGAIN, false },
        { "READONLY", REPLY_AGAIN, true }, /* a failover has made it a replica */
        { "ERR max number of clients", REPLY_AGAIN, false },
        { "OOM", REPLY_FULL, false },
        { "WRONGTYPE", REPLY_WRONGTYPE, false },
        { "NOAUTH", REPLY_REFUSED, false },
        { "WRONGPASS", REPLY_REFUSED, false },
        { "NOPERM", REPLY_REFUSED, false },
        { "DENIED", REPLY_REFUSED, false },     /* protected mode */
        { "MISCONF", REPLY_REFUSED, false },    /* it cannot write its disk */
        { "NOREPLICAS", REPLY_REFUSED, false }, /* fewer than min-replicas-to-write */
        { "ERR unknown command", REPLY_REFUSED, false },
        { "ERR unknown subcommand", REPLY_REFUSED, false },
        { "ERR Unknown subcommand", REPLY_REFUSED, false },
        { "ERR invalid password", REPLY_REFUSED, false },
        { "ERR AUTH", REPLY_REFUSED, false }, /* it has no password */
        { "ERR Client sent AUTH", REPLY_REFUSED, false },
        { "ERR This instance has cluster support disabled", REPLY_REFUSED, false },
    };
    *redirection = (struct redirection){ .verdict = REPLY_STRANGE };
    if (begins_with(text, "MOVED"))
        redirect(text + strlen("MOVED"), REPLY_MOVED, redirection);
    else if (begins_with(text, "ASK"))
        redirect(text + strlen("ASK"), REPLY_ASK, redirection);
    else
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (begins_with(text, known[i].words)) {
                redirection->verdict = known[i].verdict;
                redirection->refresh = known[i].refresh;
            }
}

/* ---- The map ---------------------------------------------------------------------------- */

void slot_map_init(struct slot_map *map)
{
    memset(map, 0, sizeof *map);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        map->master[slot] = NOBODY;
}

void slot_map_release(struct slot_map *map)
{
    free(map->nodes);
    slot_map_init(map);
}

uint16_t slot_map_find(const struct slot_map *map, const struct endpoint *at)
{
    for (size_t i = 0; i < map->nnodes; i++)
        if (endpoint_equal(&map->nodes[i].at, at))
            return (uint16_t)i;
    return NOBODY;
}

uint16_t slot_map_replica(const struct slot_map *map, uint16_t master, unsigned i)
{
    uint16_t replica = map->nodes[master].replica;
    while (i-- > 0 && replica != NOBODY)
        replica = map->nodes[replica].next;
    return replica;
}

/* Adds a node, which is a master at first, and sets *index to its place. */
static const char *add_node(struct slot_map *map, const struct endpoint *at, uint16_t *index)
{
    if (map->nnodes == NODES_MOST)
        return "there are more than 1024 nodes: that is no cluster";
    if (map->nnodes == map->room) {
        size_t room = map->room ? 2 * map->room : 16;
        struct node *nodes = realloc(map->nodes, room * sizeof *nodes);
        if (!nodes)
            return no_memory;
        map->nodes = nodes;
        map->room = room;
    }
    *index = (uint16_t)map->nnodes++;
    map->nodes[*index] =
        (struct node){ .at = *at, .master = *index, .replica = NOBODY, .next = NOBODY };
    return NULL;
}

static const char *find_or_add(struct slot_map *map, const struct endpoint *at, uint16_t *index)
{
    *index = slot_map_find(map, at);
    return *index == NOBODY ? add_node(map, at, index) : NULL;
}

/* Makes a master without slots and replicas, such as a node that was just added, a replica. */
static void make_replica(struct slot_map *map, uint16_t index, uint16_t master)
{
    struct node *node = &map->nodes[index], *of = &map->nodes[master];
    node->master = master;
    node->next = of->replica;
    of->replica = index;
    of->nreplicas++;
}

/* Makes a node a master: takes it out of the list of its former master. */
static void make_master(struct slot_map *map, uint16_t index)
{
    struct node *node = &map->nodes[index], *of = &map->nodes[node->master];
    if (node->master == index)
        return;
    uint16_t *link = &of->replica;
    while (*link != index)
        link = &map->nodes[*link].next;
    *link = node->next;
    of->nreplicas--;
    node->master = index;
    node->next = NOBODY;
}

/* Returns a new map, or NULL if there is no memory.  It would take 32 KiB of the stack. */
static struct slot_map *make_map(void)
{
    struct slot_map *made = malloc(sizeof *made);
    if (made)
        slot_map_init(made);
    return made;
}

/* Puts 'made' in the place of the map, unless there is a problem.  Returns the problem. */
static const char *replace(struct slot_map *map, struct slot_map *made, const char *problem)
{
    if (problem) {
        free(made->nodes);
    } else {
        free(map->nodes);
        *map = *made;
    }
    free(made);
    return problem;
}

const char *slot_map_single(struct slot_map *map, const struct endpoint *server)
{
    struct slot_map *made = make_map();
    uint16_t index;
    if (!made)
        return no_memory;
    const char *problem = add_node(made, server, &index);
    for (unsigned slot = 0; slot < SLOTS && !problem; slot++)
        made->master[slot] = index;
    return replace(map, made, problem);
}

/* A replica that is named as the owner has taken over, so it is a master now.  The other
 * replicas of the former master stay where they are, until the map is read again. */
const char *slot_map_move(struct slot_map *map, unsigned slot, const struct endpoint *to)
{
    uint16_t index;
    if (slot >= SLOTS)
        return "there is no slot of that number";
    const char *problem = find_or_add(map, to, &index);
    if (problem)
        return problem;
    make_master(map, index);
    map->master[slot] = index;
    return NULL;
}

/* ---- The answer to CLUSTER SLOTS -------------------------------------------------------- */

/*     ranges: range, ...
 *     range:  first slot, last slot, its master, its replicas...
 *     node:   host or nil, port, id, from Redis 7 on pairs of texts, "ip" among them perhaps */

/* Every element is checked before it is used: a reply may have any form. */

static bool is(const redisReply *reply, int type)
{
    return reply && reply->type == type;
}

static bool has(const redisReply *reply, size_t elements)
{
    return is(reply, REDIS_REPLY_ARRAY) && reply->elements >= elements;
}

/* Returns the "ip" of a node, which may be known where its host is not; NULL if there is
 * none. */
static const redisReply *find_ip(const redisReply *node)
{
    const redisReply *pairs = node->elements > 3 ? node->element[3] : NULL;
    size_t n = pairs && pairs->type == REDIS_REPLY_ARRAY ? pairs->elements : 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        const redisReply *name = pairs->element[i];
        if (is(name, REDIS_REPLY_STRING) && strcmp(name->str, "ip") == 0)
            return pairs->element[i + 1];
    }
    return NULL;
}

/* Sets the host to the one that is told.  A server that does not know its own address tells
 * none; it is the one that was asked.  Returns false if the host is unusable. */
static bool set_told(struct endpoint *at, const redisReply *host, const struct endpoint *asked)
{
    const char *near = asked->port ? asked->host : "127.0.0.1"; /* by a unix socket: here */
    if (is(host, REDIS_REPLY_NIL) || (is(host, REDIS_REPLY_STRING) && host->len == 0))
        return endpoint_set_host(at, near, strlen(near));
    return is(host, REDIS_REPLY_STRING) && endpoint_set_host(at, host->str, host->len);
}

/* Sets the host of a node, by its "ip" if the host itself is not known. */
static bool read_host(const redisReply *node, const struct endpoint *asked, struct endpoint *at)
{
    const redisReply *ip;
    if (!set_told(at, node->element[0], asked))
        return false;
    return !is_unknown(at) || !(ip = find_ip(node)) || set_told(at, ip, asked);
}

/* Finds or adds a node, and sets *index to its place, or to NOBODY if its host is not known.  A
 * node that speaks only TLS tells the port 0. */
static const char *read_node(struct slot_map *map, const redisReply *node,
                             const struct endpoint *asked, uint16_t *index)
{
    struct endpoint at;
    *index = NOBODY;
    if (!has(node, 2) || !read_host(node, asked, &at))
        return "the answer to CLUSTER SLOTS has a node without a usable host";
    const redisReply *port = node->element[1];
    if (!is(port, REDIS_REPLY_INTEGER) || port->integer < 1 || port->integer > UINT16_MAX)
        return "the answer to CLUSTER SLOTS has a node without a port: if the nodes speak only "
               "TLS, write rediss:// instead of redis://";
    at.port = (unsigned)port->integer;
    return is_unknown(&at) ? NULL : find_or_add(map, &at, index);
}

/* Reads a range of slots and its master. */
static const char *read_master(struct slot_map *map, const redisReply *range,
                               const struct endpoint *asked)
{
    uint16_t index;
    if (!has(range, 3) || !is(range->element[0], REDIS_REPLY_INTEGER) ||
        !is(range->element[1], REDIS_REPLY_INTEGER))
        return "the answer to CLUSTER SLOTS is not a list of ranges of slots";
    long long first = range->element[0]->integer, last = range->element[1]->integer;
    if (first < 0 || last < first || last >= SLOTS)
        return "the answer to CLUSTER SLOTS has a range that is not within 0 to 16383";
    const char *problem = read_node(map, range->element[2], asked, &index);
    for (long long slot = first; !problem && slot <= last; slot++) {
        if (map->master[slot] != NOBODY)
            problem = "the answer to CLUSTER SLOTS has one slot in two ranges";
        map->master[slot] = index;
    }
    return problem;
}

/* Adds the replicas of a range.  All masters were added before, so that a node which is a
 * master of one range and is told as a replica of another stays a master.  A master has the
 * same replicas in all its ranges; each is added once. */
static const char *read_replicas(struct slot_map *map, const redisReply *range,
                                 const struct endpoint *asked)
{
    uint16_t master = map->master[range->element[0]->integer];
    const char *problem = NULL;
    for (size_t i = 3; !problem && master != NOBODY && i < range->elements; i++) {
        uint16_t index;
        size_t known = map->nnodes;
        problem = read_node(map, range->element[i], asked, &index);
        if (!problem && map->nnodes > known)
            make_replica(map, index, master);
    }
    return problem;
}

const char *slot_map_read(struct slot_map *map, const struct redisReply *reply,
                          const struct endpoint *asked)
{
    const char *problem = NULL;
    if (!has(reply, 0))
        return "the answer to CLUSTER SLOTS is no list";
    struct slot_map *made = make_map();
    if (!made)
        return no_memory;
    for (size_t i = 0; !problem && i < reply->elements; i++)
        problem = read_master(made, reply->element[i], asked);
    for (size_t i = 0; !problem && i < reply->elements; i++)
        problem = read_replicas(made, reply->element[i], asked);
    return replace(map, made, problem);
}
