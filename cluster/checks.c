/* checks.c - looks before a filter is made whether it will work: whether the servers can hold
 * it, and whether the user has all the rights that it will need; and claims its name.  All that
 * takes one way to the servers and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discover.h"
#include "numbers.h"
#include "operations.h"
#include "partitions.h"

/* ---- Servers that cannot hold it -------------------------------------------------------- */

/* What a server tells about its memory, in bytes. */
struct memory {
    uint64_t limit, machine; /* maxmemory and the memory of the machine; 0: none, not told */
    bool evicts;             /* when its memory is full, it throws any key away */
};

/* Returns a number that a reply to INFO has; 0 if it has none of this name. */
static uint64_t info_number(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    uint64_t number = 0;
    if (at) {
        at += strlen(name);
        read_digits(at, strspn(at, "0123456789"), UINT64_MAX, &number);
    }
    return number;
}

/* The context of the exchange that looks at all masters and claims the name. */
struct checking {
    perhaps_cluster *c;
    uint16_t master[NODES_MOST]; /* the node of each question */
    uint16_t slot[NODES_MOST];   /* one that it owns */
    size_t nmasters;
    struct memory memory[NODES_MOST];
    bool taken; /* there is a description already */
};

static void take_info(struct memory *memory, const struct reply *reply)
{
    if (reply->type != REDIS_REPLY_STRING)
        return;
    memory->limit = info_number(reply->text, "\nmaxmemory:");
    memory->machine = info_number(reply->text, "\ntotal_system_memory:");
    memory->evicts = strstr(reply->text, "maxmemory_policy:allkeys") != NULL;
}

/* A filter on a server that evicts keys would lose partitions without a fault of anything, so
 * none is made there.  Nor is one that is larger than all the memory of a server, whatever else
 * lies there: making it would take long before it fails, and a server without a limit would be
 * killed. */
static int check_memory(perhaps_cluster *c, const struct memory *memory,
                        const struct endpoint *at, uint64_t needed)
{
    char name[ENDPOINT_NBYTES];
    uint64_t most = memory->limit ? memory->limit : memory->machine;
    endpoint_show(at, name);
    if (most && needed > most)
        return nodes_fail(&c->nodes, PERHAPS_ERR_SERVER_FULL,
                          "%s: %ju MiB of the filter would lie there, and %s %ju: %sadd "
                          "servers to the cluster",
                          name, (uintmax_t)(needed >> 20),
                          memory->limit ? "its maxmemory is" : "its machine has",
                          (uintmax_t)(most >> 20),
                          memory->limit ? "raise its maxmemory or " : "");
    if (memory->limit && memory->evicts)
        return nodes_fail(&c->nodes, PERHAPS_ERR_REFUSED,
                          "%s: would throw parts of a filter away when its memory is full: "
                          "set its maxmemory-policy to noeviction, or to one of volatile-*",
                          name);
    return 0;
}

/* Checks what the masters have told. */
static int check_servers(const struct checking *checking)
{
    perhaps_cluster *c = checking->c;
    uint64_t held[NODES_MOST];
    int error = 0;
    partitions_share_out(c, held);
    for (size_t i = 0; i < checking->nmasters && !error; i++) {
        uint16_t node = checking->master[i];
        if (node < c->nodes.map.nnodes)
            error =
                check_memory(c, &checking->memory[i], &c->nodes.map.nodes[node].at, held[node]);
    }
    return error;
}

/* ---- The name, and rights ---------------------------------------------------------------- */

/* It takes the description's fields and values from ARGV[2] on, and has a Redis key that is
 * never made as the third.
 *
 * First it tries all commands that later work needs, in a form that changes nothing: so a user
 * who lacks a right learns it now, and not when a filter has been filled.  Then it writes the
 * description and the counts, if there is no description yet: they are there whole or not at
 * all, and of several clients that want the name exactly one gets it.  If it was done and its
 * reply was lost, it finds what it has written itself. */
static const char claim_text[] =
    "local about, counts, none, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]\n"
    "if redis.replicate_commands then redis.replicate_commands() end\n"
    "local tried = {\n"
    "  { 'HGETALL', none }, { 'HGET', none, 'n' }, { 'HEXISTS', none, 'n' }, { 'HDEL', none, "
    "'n' },\n"
    "  { 'HINCRBY', none, 'n', 'none' }, { 'HSET', none, 'n', '1', 'odd' }, { 'TIME' },\n"
    "  { 'GETRANGE', none, '0', '0' }, { 'STRLEN', none }, { 'SETRANGE', none, '0', '' },\n"
    "  { 'BITFIELD', none, 'GET', 'u1', '0' }, { 'BITCOUNT', none }, { 'UNLINK', none },\n"
    "  { 'PING' } }\n"
    "for i = 1, #tried do\n"
    "  local told = tried[i][1] == 'PING' and ARGV[2] == '0' or redis.pcall(unpack(tried[i]))\n"
    "  local err = type(told) == 'table' and told.err or ''\n"
    "  if string.find(err, 'NOPERM') or string.find(err, \"can't run this command\") or\n"
    "     string.find(err, 'ACL failure') or string.find(err, 'no permissions') then\n"
    "    return redis.error_reply('NEEDS ' .. tried[i][1])\n"
    "  end\n"
    "end\n"
    "local there = redis.pcall('HGETALL', about)\n"
    "if there.err then return there end\n"
    "if #there > 0 then return redis.call('HGET', about, 'id') == id and 1 or 0 end\n"
    "local set = { 'HSET', about }\n"
    "for i = 3, #ARGV do set[i] = ARGV[i] end\n"
    "local done = redis.pcall(unpack(set))\n"
    "if type(done) == 'table' and done.err then return done end\n"
    "redis.call('HSET', counts, 'of', id)\n"
    "return 1\n";

static void write_claim(const perhaps_cluster *c, struct resp *out)
{
    char counts[sizeof c->counts], none[sizeof c->counts + 8];
    handle_name_counts(c, c->about.id, counts);
    snprintf(none, sizeof none, "%s.try", counts);
    resp_command(out, 8 + description_nargs(&c->about), sizeof claim_text + 2048);
    const char *const texts[] = {
        "EVAL", claim_text, "3", c->key, counts, none, c->about.id, c->nodes.cluster ? "1" : "0"
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        resp_text(out, texts[i]);
    description_write(&c->about, out);
}

/* ---- All of it at once ------------------------------------------------------------------- */

/* The requests: the claim, and behind it a question to each master, which may stay unanswered:
 * if one is down, making its partitions will tell. */
static void write_check(const struct request *request, struct resp *out)
{
    const struct checking *checking = request->context;
    if (request->i)
        resp_texts(out, (const char *const[]){ "INFO", "memory", NULL });
    else
        write_claim(checking->c, out);
}

static unsigned slot_of_check(const struct request *request)
{
    const struct checking *checking = request->context;
    return request->i ? checking->slot[request->i - 1] : checking->c->nodes.home;
}

static int take_check(const struct request *request, const struct reply *reply)
{
    struct checking *checking = request->context;
    if (request->i) {
        take_info(&checking->memory[request->i - 1], reply);
        return 0;
    }
    checking->taken = reply->number != 1;
    return handle_take_number(checking->c, reply, "EVAL");
}

/* A client without the right to ask for memory learns nothing, and makes the filter. */
static int take_check_error(const struct request *request, const struct reply *reply)
{
    static const char needs[] = "NEEDS ";
    struct checking *checking = request->context;
    if (request->i)
        return 0;
    const char *at = strstr(reply->text, needs);
    return at ? nodes_fail(
                    &checking->c->nodes, PERHAPS_ERR_REFUSED,
                    "%s: NOPERM: whoever makes a filter needs %.16s (doc/CLUSTER.md, Rights)",
                    request->link->name, at + strlen(needs))
              : 1;
}

/* Finds the masters, and a slot of each. */
static void find_masters(struct checking *checking)
{
    const struct slot_map *map = &checking->c->nodes.map;
    bool found[NODES_MOST] = { false };
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        uint16_t node = map->master[slot];
        if (node == NOBODY || found[node])
            continue;
        found[node] = true;
        checking->master[checking->nmasters] = node;
        checking->slot[checking->nmasters++] = (uint16_t)slot;
    }
}

int checks_and_claim(perhaps_cluster *c, bool *taken)
{
    struct checking *checking = calloc(1, sizeof *checking);
    if (!checking)
        return nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
    checking->c = c;
    int error = discover(&c->nodes);
    if (!error)
        find_masters(checking);
    struct exchange exchange = { .count = 1 + checking->nmasters,
                                 .noptional = checking->nmasters,
                                 .slot = slot_of_check,
                                 .write = write_check,
                                 .take = take_check,
                                 .take_error = take_check_error,
                                 .context = checking,
                                 .acknowledged = true };
    if (!error)
        error = exchange_run(&c->nodes, &exchange);
    *taken = !error && checking->taken;
    if (!error && !*taken)
        error = check_servers(checking);
    free(checking);
    return error;
}
