/* swift.c - sends the hashes of all keys of a node by one command, where the server has our
 * module: PERHAPS.TEST and PERHAPS.SET (doc/CLUSTER.md, "With the module").
 *
 *     order[]   | requests of one node | of another | ... |     batch->order
 *               start[0]               start[1]
 *
 * This is one try, which saves time if it succeeds.  What the server cannot do now, and all
 * that fails, is left to plain commands (batch.c).  They know how to follow redirections, when
 * to try again, and what to say in the end.
 *
 * Invariant: a request is BEFORE_DONE only if the server has looked, with the same command,
 * whether the partition is whole.  So a "no" needs no other proof. */
#include "swift.h"

#include <endian.h>

#include "partitions.h"

/* GROUP_MOST: so many keys go with one command, since others wait meanwhile.  LEAST: with fewer
 * keys plain commands take no longer, since each key then has a partition for itself (measured
 * with 1236 partitions on three masters).  PAUSE_MS: how long a server that could do nothing is
 * not tried again. */
enum { GROUP_MOST = 8192, LEAST_ASKED = 128, LEAST_ADDED = 16, PAUSE_MS = 1000 };

/* What the server answers for a key. */
enum { SOME_CLEAR = '0', ALL_SET = '1', NOT_HERE = '-' };

/* The geometry of a layer: capacity, rate, partitions, fields. */
enum { GEOMETRY_NUMBERS = 3 + PERHAPS_FIELDS_MAX };

/* One try.  Group g has the requests order[start[g] .. start[g + 1] - 1]. */
struct swift {
    perhaps_cluster *c;
    unsigned layer;
    bool adds;
    uint64_t geometry[GEOMETRY_NUMBERS];
    size_t ngroups;
    uint32_t start[NODES_MOST + BATCH_KEYS / GROUP_MOST + 1];
};

/* ---- Groups ---------------------------------------------------------------------------- */

static unsigned slot_of_key(perhaps_cluster *c, size_t i)
{
    return partition_slot(c, c->batch->partition[i]);
}

/* Returns whether a server is worth the try.  One whose connection has failed is not: plain
 * commands find out whether it is back, and have the time for that. */
static bool is_worth(const struct link *link)
{
    return link && (link_is_open(link) || link->rest_ms == 0) &&
           (!link->plain_until_ms || now_ms() >= link->plain_until_ms);
}

/* Sorts the requests by node.  Those of servers that are not worth the try are left out. */
static void make_groups(struct swift *swift)
{
    enum { UNKNOWN_YET, WORTH, NOT_WORTH };
    perhaps_cluster *c = swift->c;
    struct batch *batch = c->batch;
    uint8_t worth[NODES_MOST] = { 0 };
    uint32_t end[NODES_MOST] = { 0 }, n = 0;
    for (size_t i = 0; i < batch->npending; i++) {
        unsigned slot = slot_of_key(c, i);
        uint16_t node = c->nodes.map.master[slot];
        if (node == NOBODY)
            continue;
        if (worth[node] == UNKNOWN_YET)
            worth[node] = is_worth(nodes_master(&c->nodes, slot)) ? WORTH : NOT_WORTH;
        end[node] += worth[node] == WORTH;
    }
    for (size_t node = 0; node < c->nodes.map.nnodes; node++) {
        uint32_t count = end[node];
        end[node] = n;
        for (uint32_t at = 0; at < count; at += GROUP_MOST)
            swift->start[swift->ngroups++] = n + at;
        n += count;
    }
    swift->start[swift->ngroups] = n;
    for (size_t i = 0; i < batch->npending; i++) {
        uint16_t node = c->nodes.map.master[slot_of_key(c, i)];
        if (node != NOBODY && worth[node] == WORTH)
            batch->order[end[node]++] = (uint32_t)i;
    }
}

/* ---- The command ----------------------------------------------------------------------- */

static unsigned slot_of_group(const struct request *request)
{
    const struct swift *swift = request->context;
    return slot_of_key(swift->c, swift->c->batch->order[swift->start[request->i]]);
}

static void write_group(const struct request *request, struct resp *out)
{
    const struct swift *swift = request->context;
    perhaps_cluster *c = swift->c;
    const struct batch *batch = c->batch;
    uint32_t from = swift->start[request->i], to = swift->start[request->i + 1];
    const size_t hash_nbytes = sizeof batch->hash->bytes;
    resp_command(out, 6, 512 + (to - from) * hash_nbytes);
    resp_text(out, swift->adds ? "PERHAPS.SET" : "PERHAPS.TEST");
    resp_text(out, c->address.name);
    resp_text(out, c->about.id);
    resp_number(out, swift->layer);
    resp_bytes(out, swift->geometry, sizeof swift->geometry);
    char *at = resp_room(out, (to - from) * hash_nbytes);
    for (uint32_t k = from; at && k < to; k++, at += hash_nbytes)
        memcpy(at, batch->hash[batch->pending[batch->order[k]]].bytes, hash_nbytes);
}

/* ---- The reply ------------------------------------------------------------------------- */

/* Lets the server that has answered, and the master of the group, get only plain commands. */
static void go_plain(const struct request *request, int64_t until_ms)
{
    struct swift *swift = request->context;
    struct nodes *nodes = &swift->c->nodes;
    struct link *link = nodes_link(nodes, &request->link->at, request->link->replica);
    struct link *master = nodes_master(nodes, slot_of_group(request));
    if (link)
        link->plain_until_ms = until_ms;
    if (master)
        master->plain_until_ms = until_ms;
}

/* Notes that nobody knows whether a group was added. */
static void doubt_group(const struct request *request)
{
    const struct swift *swift = request->context;
    struct batch *batch = swift->c->batch;
    for (uint32_t k = swift->start[request->i]; k < swift->start[request->i + 1]; k++)
        if (swift->adds && !batch->before[batch->order[k]])
            batch->before[batch->order[k]] = BEFORE_SENT;
}

/* Takes the answer to one request. */
static void take_one(const struct swift *swift, const struct link *link, uint32_t i,
                     char answer)
{
    struct batch *batch = swift->c->batch;
    struct layer *layer = &swift->c->layer[swift->layer];
    uint8_t *of_key = &batch->answer[batch->pending[i]];
    if (answer == NOT_HERE)
        return;
    if (answer == ALL_SET)
        *of_key = PRESENT;
    else if (swift->adds)
        *of_key = ADDED;
    else
        batch->no_from[i] = link->number;
    batch->before[i] = BEFORE_DONE;
    if (!link->replica)
        layer->seen[batch->partition[i]] = link->number;
}

/* Returns whether the reply has one answer for each of n keys. */
static bool is_sound_reply(const struct reply *reply, size_t n)
{
    static const char answers[] = { SOME_CLEAR, ALL_SET, NOT_HERE, '\0' };
    return reply->type == REDIS_REPLY_STRING && reply->text_nbytes == n &&
           strspn(reply->text, answers) == n;
}

/* A server that gives another answer is not asked this way again; what it has done, nobody
 * knows. */
static int take_group(const struct request *request, const struct reply *reply)
{
    const struct swift *swift = request->context;
    uint32_t from = swift->start[request->i], to = swift->start[request->i + 1];
    if (!is_sound_reply(reply, to - from)) {
        doubt_group(request);
        go_plain(request, INT64_MAX);
        return 0;
    }
    for (uint32_t k = from; k < to; k++)
        take_one(swift, request->link, swift->c->batch->order[k], reply->text[k - from]);
    if (strspn(reply->text, (const char[]){ NOT_HERE, '\0' }) == to - from)
        go_plain(request, now_ms() + PAUSE_MS);
    return 0;
}

/* An error means that nothing was done, and plain commands find out what is wrong.  A server
 * that does not know the command, or does not let this client use it, will not either the next
 * time; one that is loading, say, may. */
static int take_refusal(const struct request *request, const struct reply *reply)
{
    if (strncmp(reply->text, "ERR ", 4) == 0 || strncmp(reply->text, "NOPERM", 6) == 0)
        go_plain(request, INT64_MAX);
    return 0;
}

/* ---- One try ----------------------------------------------------------------------------- */

/* Describes the layer.  Returns false if it is none that the module knows. */
static bool describe(struct swift *swift)
{
    const struct layer *layer = &swift->c->layer[swift->layer];
    struct perhaps_description d;
    uint64_t fpr;
    perhaps_layout_describe(layer->layout, &d);
    memcpy(&fpr, &d.fpr, sizeof fpr);
    swift->geometry[0] = htole64(d.capacity);
    swift->geometry[1] = htole64(fpr);
    swift->geometry[2] = htole64(layer->partitions);
    for (unsigned i = 0; i < PERHAPS_FIELDS_MAX; i++)
        swift->geometry[3 + i] = htole64(d.field[i]);
    return strcmp(d.kind, "blocked") == 0;
}

/* Returns whether plain commands would fail in the same way.  If not, they try, and tell what
 * is wrong. */
static bool ends_call(int error)
{
    return error == PERHAPS_ERR_STOPPED || error == PERHAPS_ERR_DEADLINE ||
           error == PERHAPS_ERR_MEMORY;
}

static int run_groups(struct swift *swift, bool replicas)
{
    perhaps_cluster *c = swift->c;
    if (c->address.plain || c->nodes.impatient ||
        c->batch->npending < (swift->adds ? LEAST_ADDED : LEAST_ASKED) || !describe(swift))
        return 0;
    make_groups(swift);
    c->batch->tried = swift->ngroups > 0;
    struct exchange exchange = { .count = swift->ngroups,
                                 .noptional = swift->ngroups,
                                 .nreplicas = replicas ? swift->ngroups : 0,
                                 .slot = slot_of_group,
                                 .write = write_group,
                                 .take = take_group,
                                 .take_error = take_refusal,
                                 .doubt = swift->adds ? doubt_group : NULL,
                                 .context = swift,
                                 .partial = true };
    int error = exchange_run(&c->nodes, &exchange);
    return ends_call(error) ? error : 0;
}

int swift_ask(perhaps_cluster *c, unsigned layer, bool replicas)
{
    struct swift swift = { .c = c, .layer = layer };
    return run_groups(&swift, replicas);
}

/* After an error, keys that may have been added count as such. */
int swift_add(perhaps_cluster *c, unsigned layer)
{
    struct batch *batch = c->batch;
    struct swift swift = { .c = c, .layer = layer, .adds = true };
    int error = run_groups(&swift, false);
    for (size_t i = 0; error && i < batch->npending; i++)
        batch->nunknown += batch->before[i] == BEFORE_SENT;
    return error;
}
