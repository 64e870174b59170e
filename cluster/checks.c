/* checks.c - looks before a filter is made whether it will work: whether the servers can hold
 * it, and whether the user has all the rights that it will need. */
#include <stdio.h>
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

static int take_info(const struct request *request, const struct reply *reply)
{
    struct memory *memory = request->context;
    if (reply->type == REDIS_REPLY_STRING) {
        memory->limit = info_number(reply->text, "\nmaxmemory:");
        memory->machine = info_number(reply->text, "\ntotal_system_memory:");
        memory->evicts = strstr(reply->text, "maxmemory_policy:allkeys") != NULL;
    }
    return 0;
}

/* A client without the right to ask learns nothing, and makes the filter. */
static int take_info_error(const struct request *request, const struct reply *reply)
{
    (void)request, (void)reply;
    return 0;
}

/* A filter on a server that evicts keys would lose partitions without a fault of anything, so
 * none is made there.  Nor is one that is larger than all the memory of a server, whatever else
 * lies there: making it would take long before it fails, and a server without a limit would be
 * killed. */
static int check_server(perhaps_cluster *c, struct link *link, uint64_t needed)
{
    struct memory memory = { 0 };
    struct exchange exchange = { .count = 1,
                                 .command = (const char *const[]){ "INFO", "memory", NULL },
                                 .take = take_info,
                                 .take_error = take_info_error,
                                 .context = &memory,
                                 .only = link };
    int error = round_alone(&c->nodes, &exchange);
    uint64_t most = memory.limit ? memory.limit : memory.machine;
    if (error)
        return error;
    if (most && needed > most)
        return nodes_fail(&c->nodes, PERHAPS_ERR_SERVER_FULL,
                          "%s: %ju MiB of the filter would lie there, and %s %ju: %sadd "
                          "servers to the cluster",
                          link->name, (uintmax_t)(needed >> 20),
                          memory.limit ? "its maxmemory is" : "its machine has",
                          (uintmax_t)(most >> 20),
                          memory.limit ? "raise its maxmemory or " : "");
    if (memory.limit && memory.evicts)
        return nodes_fail(&c->nodes, PERHAPS_ERR_REFUSED,
                          "%s: would throw parts of a filter away when its memory is full: "
                          "set its maxmemory-policy to noeviction, or to one of volatile-*",
                          link->name);
    return 0;
}

/* Checks all masters. */
static int check_servers(perhaps_cluster *c)
{
    const struct slot_map *map = &c->nodes.map;
    uint64_t held[NODES_MOST];
    int error = discover(&c->nodes);
    if (!error)
        partitions_share_out(c, held);
    for (uint16_t n = 0; n < map->nnodes && !error; n++) {
        if (map->nodes[n].master != n)
            continue;
        struct link *link = nodes_link(&c->nodes, &map->nodes[n].at, false);
        error = link ? check_server(c, link, held[n])
                     : nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
        if (error == PERHAPS_ERR_UNREACHABLE)
            error = 0; /* it may come back; if not, making its partitions will tell */
    }
    return error;
}

/* ---- Rights ---------------------------------------------------------------------------- */

/* The commands that later work needs are tried on two scratch Redis keys, in the slot of the
 * description.  So a user who lacks a right learns it now, and not when a filter has been
 * filled. */
struct trial {
    perhaps_cluster *c;
    char hash[REDIS_KEY_NBYTES + ID_DIGITS + 8], string[REDIS_KEY_NBYTES + ID_DIGITS + 8];
    size_t nwritten;     /* how many commands were written */
    const char *refused; /* the first command that the user may not use; NULL: none */
    char reply[200];     /* what the server says about it */
};

/* These stand for the scratch keys. */
static const char a_hash[] = "(hash)", a_string[] = "(string)";

/* HGETALL finds nothing, and RENAMENX does nothing, since the new name is taken.  UNLINK comes
 * behind all others on the same connection, so what was sent is also removed if this client
 * dies.  PING is for clusters only. */
enum { ARGUMENTS_MOST = 6 };
static const char *const tried[][ARGUMENTS_MOST] = {
    { "HGETALL", a_hash },
    { "HSETNX", a_hash, "n", "1" },
    { "HSET", a_hash, "n", "1" },
    { "HINCRBY", a_hash, "n", "1" },
    { "HGET", a_hash, "n" },
    { "HEXISTS", a_hash, "n" },
    { "SETRANGE", a_string, "0", "x" },
    { "BITFIELD", a_string, "SET", "u1", "0", "1" },
    { "GETRANGE", a_string, "0", "0" },
    { "STRLEN", a_string },
    { "RENAMENX", a_string, a_hash },
    { "UNLINK", a_string, a_hash },
    { "PING" },
};
enum { TRIED = sizeof tried / sizeof *tried };

static void write_tried(const struct request *request, struct resp *out)
{
    struct trial *trial = request->context;
    const char *command[ARGUMENTS_MOST + 1] = { NULL };
    for (size_t i = 0; i < ARGUMENTS_MOST; i++) {
        const char *argument = tried[request->i][i];
        command[i] = argument == a_hash     ? trial->hash
                     : argument == a_string ? trial->string
                                            : argument;
    }
    trial->nwritten++;
    resp_texts(out, command);
}

/* Notes the command that is refused, and lets the others be tried: UNLINK clears up.  What is
 * sent again after a lost reply may come behind UNLINK, and then there is nothing to rename. */
static int take_tried_error(const struct request *request, const struct reply *error)
{
    struct trial *trial = request->context;
    if (strcmp(error->text, NO_SUCH_KEY) == 0)
        return 0;
    if (strncmp(error->text, "NOPERM", 6) != 0)
        return 1;
    if (!trial->refused) {
        trial->refused = tried[request->i][0];
        snprintf(trial->reply, sizeof trial->reply, "%s", error->text);
    }
    return 0;
}

static int remove_scratch(const struct trial *trial)
{
    return handle_tell(trial->c,
                       (const char *const[]){ "UNLINK", trial->hash, trial->string, NULL });
}

/* Removes the scratch keys after an error; and if commands were sent again, since then one may
 * have come behind UNLINK. */
static int clear_up(const struct trial *trial, size_t count, int error)
{
    struct aside aside;
    if (!error)
        return trial->nwritten > count ? remove_scratch(trial) : 0;
    handle_begin_aside(trial->c, &aside);
    remove_scratch(trial);
    handle_end_aside(trial->c, &aside);
    return error;
}

/* UNLINK is tried first, and alone: without it the others would leave something. */
static int check_rights(perhaps_cluster *c)
{
    struct trial trial = { .c = c };
    struct exchange exchange = { .count = c->nodes.cluster ? TRIED : TRIED - 1,
                                 .write = write_tried,
                                 .take_error = take_tried_error,
                                 .context = &trial,
                                 .acknowledged = true };
    snprintf(trial.hash, sizeof trial.hash, "%s:%s.try", c->key, c->about.id);
    snprintf(trial.string, sizeof trial.string, "%s:%s.trial", c->key, c->about.id);
    int error = remove_scratch(&trial);
    if (error)
        return error;
    error = clear_up(&trial, exchange.count, exchange_run(&c->nodes, &exchange));
    if (error || !trial.refused)
        return error;
    const struct link *link = nodes_master(&c->nodes, c->nodes.home);
    return nodes_fail(&c->nodes, PERHAPS_ERR_REFUSED,
                      "%s: %s: whoever makes a filter needs %s (doc/CLUSTER.md, Rights)",
                      link ? link->name : c->shown, trial.reply, trial.refused);
}

int checks_before_create(perhaps_cluster *c)
{
    int error = check_servers(c);
    return error ? error : check_rights(c);
}
