/* replies_fuzz.c - fuzzes the reading of replies, which a server may make up.  The input is
 * read as the text of an error (a redirection, for example); as a reply, which is taken for the
 * slots of a cluster and for the description of a filter; and as the config of a filter of
 * Redisson, in lines. */
#include <hiredis.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../cluster/numbers.h" /* cli/ has one of that name, too */
#include "description.h"
#include "link.h"
#include "redisson.h"
#include "slots.h"
#include <perhaps_fast.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_host(const char *host)
{
    check(strnlen(host, HOST_NBYTES_MOST + 1) <= HOST_NBYTES_MOST);
    for (; *host; host++)
        check(*host > 32 && *host < 127);
}

/* A redirection has a slot and a server; all other errors have neither. */
static void read_error(const char *bytes, size_t nbytes)
{
    struct redirection r;
    char *text = strndup(bytes, nbytes);
    check(text);
    redirection_read(text, &r);
    free(text);
    check_host(r.to.host);
    if (r.verdict == REPLY_MOVED || r.verdict == REPLY_ASK)
        check(r.slot < SLOTS && r.to.port >= 1 && r.to.port <= 65535);
    else
        check(r.slot == 0 && r.to.port == 0 && !*r.to.host);
}

/* ---- The description of a filter ------------------------------------------------------ */

/* Checks a layer that the description gives: the library refuses its layout, or the bits of a
 * key lie within the body. */
static void check_layer(const struct layer_description *layer)
{
    struct perhaps_hashed key = { { 1, 2, 3, 4, 5, 6, 7, 8 } };
    struct perhaps_plan plan;
    struct perhaps_bits bits;
    perhaps_layout *layout;
    if (!layer->planned || perhaps_layout_restore(&layer->layout, NULL, &layout))
        return;
    perhaps_layout_plan(layout, &plan);
    perhaps_layout_locate(layout, &key, &bits);
    check((bits.block + 1) * bits.nlines * PERHAPS_LINE_NBYTES <= plan.body_nbytes);
    perhaps_layout_free(layout);
}

static void read_description(const redisReply *reply)
{
    struct description description;
    if (!description_read(reply, &description)) {
        check(strlen(description.id) == ID_DIGITS && description.state < STATES);
        for (unsigned i = 0; i < PERHAPS_LAYERS_MAX; i++)
            check_layer(&description.layer[i]);
    }
    counts_read(reply, &description);
}

/* ---- The slots of a cluster ------------------------------------------------------------- */

/* Checks that all numbers in a map lead to nodes that exist, and that each node is a master or
 * the replica of one. */
static void check_map(const struct slot_map *map)
{
    size_t masters = 0, replicas = 0;
    check(map->nnodes <= NODES_MOST);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        uint16_t master = map->master[slot];
        check(master == NOBODY ||
              (master < map->nnodes && map->nodes[master].master == master));
    }
    for (size_t n = 0; n < map->nnodes; n++) {
        uint16_t i = (uint16_t)n;
        const struct node *node = &map->nodes[i];
        check_host(node->at.host);
        check(*node->at.host && node->at.port >= 1 && node->at.port <= 65535);
        check(slot_map_find(map, &node->at) == i);
        masters += node->master == i;
        replicas += node->nreplicas;
        for (unsigned r = 0; r < node->nreplicas; r++)
            check(map->nodes[slot_map_replica(map, i, r)].master == i);
        check(slot_map_replica(map, i, node->nreplicas) == NOBODY);
    }
    check(masters + replicas == map->nnodes);
}

/* Reads a map of slots, and then moves slots one by one, as redirections do; the map must stay
 * consistent.  'asked' stands for the server that gave the reply. */
static void read_slots(const redisReply *reply)
{
    const struct endpoint asked = { "asked", 7000 };
    struct slot_map map;
    slot_map_init(&map);
    check(!slot_map_single(&map, &asked));
    if (slot_map_read(&map, reply, &asked))
        check(map.nnodes == 1 && map.master[0] == 0 && map.master[SLOTS - 1] == 0);
    for (size_t i = 0; i < map.nnodes; i++) {
        struct endpoint to = map.nodes[i].at;
        check(!slot_map_move(&map, (unsigned)i, &to) && map.master[i] == i);
    }
    check_map(&map);
    slot_map_release(&map);
}

static redisReplyObjectFunctions functions;
static void *(*create_array)(const redisReadTask *task, element_count elements);

/* hiredis allocates as many elements as a reply announces, which may be billions.  Returning
 * NULL makes it refuse the reply. */
static void *create_small_array(const redisReadTask *task, element_count elements)
{
    return elements > 20000 ? NULL : create_array(task, elements);
}

/* Reads the input as a reply, through the parser of hiredis. */
static void read_reply(const char *bytes, size_t nbytes)
{
    redisReader *reader = redisReaderCreate();
    void *reply;
    check(reader);
    functions = *reader->fn;
    create_array = functions.createArray;
    functions.createArray = create_small_array;
    reader->fn = &functions;
    redisReaderFeed(reader, bytes, nbytes);
    if (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        const redisReply *r = reply;
        if (r->type == REDIS_REPLY_ERROR)
            read_error(r->str, r->len);
        else
            read_slots(r);
        read_description(r);
        freeReplyObject(reply);
    }
    redisReaderFree(reader);
}

/* ---- The config of Redisson's filter ----------------------------------------------------- */

static void check_config(const struct redisson *config)
{
    char fpr[SHARE_NBYTES];
    uint64_t bits[REDISSON_HASHES_MOST];
    double again;
    check(config->nbits >= 1 && config->nbits <= REDISSON_BITS_MOST);
    check(config->nhashes >= 1 && config->nhashes <= REDISSON_HASHES_MOST);
    check(config->fpr >= 0 && config->fpr <= 1);
    share_write(config->fpr, fpr);
    check(share_read(fpr, strlen(fpr), &again) && again == config->fpr);
    redisson_bits(config, fpr, strlen(fpr), bits);
    for (unsigned i = 0; i < config->nhashes; i++)
        check(bits[i] < config->nbits);
}

/* Reads the input as the values of the config, one a line. */
static void read_config(const char *bytes, size_t nbytes)
{
    struct redisson_value values[REDISSON_FIELDS] = { { 0 } };
    struct redisson config = { .nbits = 4711 };
    for (unsigned i = 0; i < REDISSON_FIELDS && nbytes; i++) {
        const char *end = memchr(bytes, '\n', nbytes);
        size_t n = end ? (size_t)(end - bytes) : nbytes, cut = end ? n + 1 : n;
        values[i] = (struct redisson_value){ bytes, n };
        bytes += cut;
        nbytes -= cut;
    }
    if (redisson_read(values, &config))
        check(config.nbits == 4711);
    else
        check_config(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *bytes = (const char *)data;
    read_error(bytes, nbytes);
    read_reply(bytes, nbytes);
    read_config(bytes, nbytes);
    return 0;
}
