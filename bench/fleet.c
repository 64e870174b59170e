/* fleet.c - sends commands to all servers at once: pipelined GETs, and those of a Bloom filter
 * that sends a command for each bit.  It uses no code of the library that is measured, so that
 * a slow client there cannot make the yardstick slow, too. */
#include <err.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cluster.h"

/* Commands are sent whenever another SEND_NBYTES of them are written, so that the servers work
 * while more are written.  No command has more than COMMAND_NBYTES. */
enum { SEND_NBYTES = 32 << 10, COMMAND_NBYTES = 256 };

/* ---- Commands ---------------------------------------------------------------------------- */

/* Returns 'memory' with room for at least 'least' units.  Doubles the room, so that it seldom
 * has to. */
static void *grow(void *memory, size_t *room, size_t least, size_t unit)
{
    if (*room >= least)
        return memory;
    while (*room < least)
        *room = *room ? 2 * *room : 1024;
    memory = realloc(memory, *room * unit);
    if (!memory)
        errx(2, "out of memory");
    return memory;
}

/* Sends all that is written, or only what the server takes now. */
static void send_some(struct node *node, bool all)
{
    do {
        size_t left = node->out_nbytes - node->out_sent;
        ssize_t sent = send(node->context->fd, node->out + node->out_sent, left,
                            MSG_NOSIGNAL | (all ? 0 : MSG_DONTWAIT));
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            err(2, "%s: send", node->at);
        node->out_sent += sent > 0 ? (size_t)sent : 0;
    } while (all && node->out_sent < node->out_nbytes);
}

/* Writes the last 'digits' digits of a number.  Returns the end. */
static char *put_number(char *at, uint64_t number, unsigned digits)
{
    for (unsigned i = digits; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    return at + digits;
}

static unsigned digits_of(uint64_t number)
{
    unsigned digits = 1;
    for (; number >= 10; number /= 10)
        digits++;
    return digits;
}

/* Writes a command for one of the strings: 'verb' as it is sent, such as "*2\r\n$3\r\nGET"; the
 * string's name, which has 20 characters; 'offset' unless it is UINT64_MAX; and 'rest', further
 * arguments as they are sent.  It does without printf(), which would slow all clients down. */
static void strings_send(const struct strings *strings, const char *verb, uint64_t number,
                         uint64_t offset, const char *rest, uint32_t tag)
{
    struct node *node = &strings->fleet->nodes[strings->node_of[number]];
    size_t before = node->out_nbytes;
    node->out = grow(node->out, &node->out_room, before + COMMAND_NBYTES, 1);
    node->tags = grow(node->tags, &node->tag_room, node->ntags + 1, sizeof *node->tags);
    node->tags[node->ntags++] = tag;
    char *at = stpcpy(node->out + before, verb);
    at = stpcpy(stpcpy(at, "\r\n$20\r\n"), strings->prefix);
    at = stpcpy(put_number(at, number, 6), "\r\n");
    if (offset != UINT64_MAX) {
        unsigned digits = digits_of(offset);
        at = put_number(stpcpy(at, "$"), digits, digits_of(digits));
        at = stpcpy(put_number(stpcpy(at, "\r\n"), offset, digits), "\r\n");
    }
    node->out_nbytes = (size_t)(stpcpy(at, rest) - node->out);
    if (before / SEND_NBYTES != node->out_nbytes / SEND_NBYTES)
        send_some(node, false);
}

/* ---- Answers ----------------------------------------------------------------------------- */

/* hiredis calls these as it parses a reply, and takes what they return for the reply.  They
 * hand the value on at once and keep nothing; so they return any address that is not NULL. */
static void *take(const redisReadTask *task, long long number, const char *bytes, size_t nbytes)
{
    struct node *node = task->privdata;
    struct fleet *fleet = node->fleet;
    uint32_t tag = node->tags[node->answered++];
    if (fleet->take)
        fleet->take(fleet->context, tag, number, bytes, nbytes);
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

/* There is nothing to free. */
static void forget(void *reply)
{
    (void)reply;
}

/* Arrays are missing: no command that is sent here is answered by one. */
static redisReplyObjectFunctions takers = { .createString = take_string,
                                            .createInteger = take_integer,
                                            .createNil = take_nil,
                                            .freeObject = forget };

/* Sends what is left to all servers, and then reads all answers, server by server.  The order
 * keeps no server from working: a server goes on taking commands while its answers wait. */
static void fleet_run(struct fleet *fleet)
{
    void *reply;
    for (struct node *node = fleet->nodes; node < fleet->nodes + fleet->count; node++)
        if (node->ntags)
            send_some(node, true);
    for (struct node *node = fleet->nodes; node < fleet->nodes + fleet->count; node++) {
        while (node->answered < node->ntags)
            if (redisGetReply(node->context, &reply) != REDIS_OK)
                errx(2, "%s: %s", node->at, node->context->errstr);
        node->out_nbytes = node->out_sent = node->ntags = node->answered = 0;
    }
    fleet->take = NULL;
}

/* ---- Strings ----------------------------------------------------------------------------- */

/* Returns the cluster slot of a name without braces, by CRC16 (XMODEM). */
static unsigned slot_of(const char *name)
{
    unsigned crc = 0;
    for (; *name; name++) {
        crc ^= (unsigned)(uint8_t)*name << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xFFFF;
    }
    return crc % SLOTS;
}

/* Finds out where each string lies; writes nothing to the servers. */
static struct strings strings_open(struct fleet *fleet, const char *prefix, uint64_t count)
{
    struct strings strings = { fleet, prefix, count, allocate_zeroed(count, 1) };
    for (uint64_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%06u", prefix, (unsigned)i);
        strings.node_of[i] = fleet->node_of[slot_of(name)];
    }
    return strings;
}

void strings_close(struct strings *strings)
{
    for (uint64_t i = 0; i < strings->count; i++)
        strings_send(strings, "*2\r\n$3\r\nDEL", i, UINT64_MAX, "", 0);
    fleet_run(strings->fleet);
    free(strings->node_of);
}

/* ---- Connections ------------------------------------------------------------------------- */

/* Connects, or ends the program. */
static redisContext *reach(const char *host, int port)
{
    redisContext *context = redisConnect(host, port);
    if (!context || context->err)
        errx(2, "%s:%d: %s", host, port, context ? context->errstr : "out of memory");
    redisSetTimeout(context, (struct timeval){ .tv_sec = 30 });
    return context;
}

/* The reader of 'control' stays as hiredis made it, so that replies come as a whole. */
static void add_node(struct fleet *fleet, const char *host, int port)
{
    if (fleet->count == NODES_MAX)
        errx(2, "more than %d masters", NODES_MAX);
    struct node *node = &fleet->nodes[fleet->count++];
    *node = (struct node){ .fleet = fleet };
    snprintf(node->at, sizeof node->at, "%.50s:%d", host, port);
    node->control = reach(host, port);
    node->context = reach(host, port);
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

/* Takes one row of CLUSTER SLOTS: from, to, master (host, port, ...), replicas.  A master may
 * have several rows. */
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

/* A server that is no cluster refuses CLUSTER SLOTS.  It then owns all slots, since 'node_of'
 * is all zero. */
void fleet_open(struct fleet *fleet, const char *url)
{
    char host[64];
    int port;
    if (sscanf(url, "redis://%63[^:/]:%d", host, &port) != 2)
        errx(2, "%s: not redis://host:port", url);
    *fleet = (struct fleet){ .url = url };
    redisContext *seed = reach(host, port);
    redisReply *rows = ask(seed, "CLUSTER SLOTS");
    if (rows->type == REDIS_REPLY_ERROR)
        add_node(fleet, host, port);
    for (size_t i = 0; rows->type == REDIS_REPLY_ARRAY && i < (size_t)rows->elements; i++)
        add_slots(fleet, rows->element[i]);
    freeReplyObject(rows);
    redisFree(seed);
}

void fleet_close(struct fleet *fleet)
{
    for (struct node *node = fleet->nodes; node < fleet->nodes + fleet->count; node++) {
        redisFree(node->context);
        redisFree(node->control);
        free(node->out);
        free(node->tags);
    }
}

void fleet_reconnect(struct fleet *fleet)
{
    for (struct node *node = fleet->nodes; node < fleet->nodes + fleet->count; node++)
        if (redisReconnect(node->control) != REDIS_OK)
            errx(2, "%s: %s", node->at, node->control->errstr);
}

size_t fleet_find(const struct fleet *fleet, const char *tag)
{
    return fleet->node_of[slot_of(tag)];
}

/* ---- What the servers did ---------------------------------------------------------------- */

/* Adds a number of INFO to *sum.  'name' ends with a colon. */
static void add_number(const redisReply *info, const char *name, double factor, double *sum)
{
    const char *line = info->type == REDIS_REPLY_STRING ? strstr(info->str, name) : NULL;
    if (!line)
        errx(2, "INFO does not tell %s", name);
    *sum += factor * strtod(line + strlen(name), NULL);
}

/* Each line is "cmdstat_NAME:calls=N,...". */
void fleet_count_commands(struct fleet *fleet, double factor, double commands[NODES_MAX])
{
    static const char begin[] = "cmdstat_", own[] = "cmdstat_info:", calls[] = ":calls=";
    for (size_t i = 0; i < fleet->count; i++) {
        redisReply *info = ask(fleet->nodes[i].control, "INFO commandstats");
        const char *line = info->type == REDIS_REPLY_STRING ? info->str : "";
        while ((line = strstr(line, begin))) {
            const char *number = strstr(line, calls);
            if (number && strncmp(line, own, strlen(own)) != 0)
                commands[i] += factor * strtod(number + strlen(calls), NULL);
            line += strlen(begin);
        }
        freeReplyObject(info);
    }
}

void fleet_count(struct fleet *fleet, double factor, double cost[COSTS])
{
    double commands[NODES_MAX] = { 0 };
    fleet_count_commands(fleet, factor, commands);
    for (size_t i = 0; i < fleet->count; i++) {
        cost[COMMANDS] += commands[i];
        redisReply *stats = ask(fleet->nodes[i].control, "INFO stats");
        redisReply *cpu = ask(fleet->nodes[i].control, "INFO cpu");
        add_number(stats, "total_net_input_bytes:", factor, &cost[BYTES_TO]);
        add_number(stats, "total_net_output_bytes:", factor, &cost[BYTES_FROM]);
        add_number(cpu, "used_cpu_sys:", 1e6 * factor, &cost[SERVER_US]);
        add_number(cpu, "used_cpu_user:", 1e6 * factor, &cost[SERVER_US]);
        freeReplyObject(stats);
        freeReplyObject(cpu);
    }
}

/* ---- Values ------------------------------------------------------------------------------ */

enum { AT_ONCE = 4096 }; /* commands on their way, where the time does not matter */

struct strings values_open(struct fleet *fleet)
{
    struct strings values = strings_open(fleet, "perhaps-bench:", VALUES);
    char content[VALUE_NBYTES + 16];
    int head = snprintf(content, sizeof content, "$%d\r\n", VALUE_NBYTES);
    memset(content + head, 'x', VALUE_NBYTES);
    memcpy(content + head + VALUE_NBYTES, "\r\n", 3);
    for (uint64_t i = 0; i < VALUES; i++) {
        strings_send(&values, "*3\r\n$3\r\nSET", i, UINT64_MAX, content, 0);
        if ((i + 1) % AT_ONCE == 0)
            fleet_run(fleet);
    }
    return values;
}

/* Ends the program if a value is missing: a GET that finds nothing is faster than one that
 * does. */
static void take_value(void *context, uint32_t tag, long long number, const char *bytes,
                       size_t nbytes)
{
    (void)context;
    (void)tag;
    (void)number;
    if (!bytes || nbytes != VALUE_NBYTES)
        errx(2, "GET: a value is lost");
}

void values_get(const struct strings *values, uint64_t count, uint64_t first, size_t gets)
{
    values->fleet->take = take_value;
    for (size_t i = 0; i < gets; i++)
        strings_send(values, "*2\r\n$3\r\nGET", random64(first + i) % count, UINT64_MAX, "", 0);
    fleet_run(values->fleet);
}

/* Sends a GET and waits for its value. */
static void get_and_wait(redisContext *context, const struct strings *values, uint64_t number)
{
    redisReply *reply = redisCommand(context, "GET %s%06u", values->prefix, (unsigned)number);
    if (!reply)
        errx(2, "GET: %s", context->errstr);
    take_value(NULL, 0, 0, reply->type == REDIS_REPLY_STRING ? reply->str : NULL, reply->len);
    freeReplyObject(reply);
}

void values_get_one(const struct strings *values, uint64_t first)
{
    uint64_t number = random64(first) % values->count;
    get_and_wait(values->fleet->nodes[values->node_of[number]].control, values, number);
}

void values_get_afresh(const struct strings *values, uint64_t first)
{
    uint64_t number = random64(first) % values->count;
    const struct node *seed = values->fleet->nodes, *node = seed + values->node_of[number];
    redisContext *context = reach(seed->control->tcp.host, seed->control->tcp.port);
    freeReplyObject(ask(context, "CLUSTER SLOTS"));
    if (node != seed) {
        redisFree(context);
        context = reach(node->control->tcp.host, node->control->tcp.port);
    }
    get_and_wait(context, values, number);
    redisFree(context);
}

/* ---- Bits -------------------------------------------------------------------------------- */

/* The tag is the number of the key in its batch. */
static void take_bit(void *context, uint32_t tag, long long number, const char *bytes,
                     size_t nbytes)
{
    struct bits *bits = context;
    (void)bytes;
    (void)nbytes;
    bits->all[tag] &= number == 1;
}

static void send_bit(const struct bits *bits, const char *verb, uint64_t bit, const char *value,
                     uint32_t tag)
{
    strings_send(&bits->strings, verb, bit >> bits->string_shift,
                 bit & ((UINT64_C(1) << bits->string_shift) - 1), value, tag);
}

/* Maps a hash to a number below the limit by a multiplication, which is faster than a
 * remainder. */
static uint64_t below(uint64_t hash, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)hash * limit >> 64);
}

/* Sends a command for each bit of each key; double hashing gives the k places of a key.
 * Returns how many keys had all their bits set before. */
static size_t every_bit(struct bits *bits, const struct perhaps_keys *keys, const char *verb,
                        const char *value)
{
    size_t found = 0;
    bits->strings.fleet->take = take_bit;
    bits->strings.fleet->context = bits;
    perhaps_hash_many(bits->hash, keys, bits->hashed);
    for (size_t i = 0; i < keys->count; i++) {
        uint64_t half[2];
        memcpy(half, bits->hashed[i].bytes, sizeof half);
        bits->all[i] = true;
        for (unsigned j = 0; j < bits->k; j++)
            send_bit(bits, verb, below(half[0] + j * half[1], bits->nbits), value, (uint32_t)i);
    }
    fleet_run(bits->strings.fleet);
    for (size_t i = 0; i < keys->count; i++)
        found += bits->all[i];
    return found;
}

size_t bits_add(struct bits *bits, const struct perhaps_keys *keys)
{
    return every_bit(bits, keys, "*4\r\n$6\r\nSETBIT", "$1\r\n1\r\n");
}

size_t bits_ask(struct bits *bits, const struct perhaps_keys *keys)
{
    return every_bit(bits, keys, "*3\r\n$6\r\nGETBIT", "");
}

/* Setting the last bit of each string to 0 makes the string in its full size, so that no server
 * has to enlarge it while times are taken. */
void bits_open(struct bits *bits, struct fleet *fleet, const struct setup *setup, double fpr,
               uint64_t nstrings)
{
    struct perhaps_options options = { .capacity = 1, .fpr = 0.1, .hashing.seed = 1 };
    *bits = (struct bits){ .k = (unsigned)ceil(-log2(fpr)) };
    bits->nbits = (uint64_t)(setup->keys.at[0] * bits->k / log(2));
    while ((bits->nbits / nstrings + 1) >> (bits->string_shift + 1))
        bits->string_shift++;
    bits->strings =
        strings_open(fleet, "perhaps-bits::", (bits->nbits >> bits->string_shift) + 1);
    bits->hashed = allocate_zeroed(setup->batch, sizeof *bits->hashed);
    bits->all = allocate_zeroed(setup->batch, sizeof *bits->all);
    if (perhaps_create(&options, &bits->hash))
        errx(2, "out of memory");
    for (uint64_t i = 1; i <= bits->strings.count; i++)
        send_bit(bits, "*4\r\n$6\r\nSETBIT", (i << bits->string_shift) - 1, "$1\r\n0\r\n", 0);
    fleet_run(fleet);
}

void bits_close(struct bits *bits)
{
    strings_close(&bits->strings);
    perhaps_free(bits->hash);
    free(bits->hashed);
    free(bits->all);
}
