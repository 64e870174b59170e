/* cluster_rivals.c - pipelined GETs, and Bloom filters that send a command for each bit. */
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

/* ---- Values ------------------------------------------------------------------------------ */

#define VALUE_PREFIX "perhaps-bench:"
enum { VALUE_NAME_NBYTES = sizeof VALUE_PREFIX - 1 + 6, COMMAND_NBYTES = 192 };

/* Six digits: VALUES is below a million. */
static void name_value(char name[VALUE_NAME_NBYTES], uint64_t number)
{
    memcpy(name, VALUE_PREFIX, sizeof VALUE_PREFIX - 1);
    for (char *digit = name + VALUE_NAME_NBYTES; digit-- > name + sizeof VALUE_PREFIX - 1;
         number /= 10)
        *digit = (char)('0' + number % 10);
}

static void take_value(void *context, uint32_t tag, long long number, const char *bytes,
                       size_t nbytes)
{
    (void)context;
    (void)tag;
    (void)number;
    if (!bytes || nbytes != VALUE_NBYTES)
        errx(2, "GET: a value is lost");
}

static void take_anything(void *context, uint32_t tag, long long number, const char *bytes,
                          size_t nbytes)
{
    (void)context;
    (void)tag;
    (void)number;
    (void)bytes;
    (void)nbytes;
}

/* 'head' is "*2\r\n$3\r\nGET\r\n" or alike; the value's name and, if there is one, its content
 * follow. */
static void put_value(struct fleet *fleet, const char *head, uint64_t number,
                      const char *content)
{
    char name[VALUE_NAME_NBYTES];
    name_value(name, number);
    struct node *node = &fleet->nodes[fleet->node_of[plain_name_slot(name, sizeof name)]];
    char *at = fleet_place(node, COMMAND_NBYTES);
    at = put_bulk(put_text(at, head, strlen(head)), name, sizeof name);
    if (content)
        at = put_bulk(at, content, VALUE_NBYTES);
    fleet_put(node, at, 0);
}

static void all_values(struct fleet *fleet, const char *head, const char *content)
{
    enum { AT_ONCE = 4096 };
    fleet->take = take_anything;
    for (uint64_t i = 0; i < VALUES; i++) {
        put_value(fleet, head, i, content);
        if ((i + 1) % AT_ONCE == 0)
            fleet_run(fleet);
    }
}

void values_set(struct fleet *fleet)
{
    char content[VALUE_NBYTES];
    memset(content, 'x', sizeof content);
    all_values(fleet, "*3\r\n$3\r\nSET\r\n", content);
}

void values_drop(struct fleet *fleet)
{
    all_values(fleet, "*2\r\n$3\r\nDEL\r\n", NULL);
}

void values_get(struct fleet *fleet, uint64_t values, uint64_t first, size_t count)
{
    fleet->take = take_value;
    for (size_t i = 0; i < count; i++)
        put_value(fleet, "*2\r\n$3\r\nGET\r\n", random64(first + i) % values, NULL);
    fleet_run(fleet);
}

/* ---- Bits -------------------------------------------------------------------------------- */

#define BITS_PREFIX "perhaps-bench:bits:"
enum { BITS_NAME_NBYTES = 40 };

static size_t name_string(char name[BITS_NAME_NBYTES], uint64_t number)
{
    char *end = put_number(put_text(name, BITS_PREFIX, sizeof BITS_PREFIX - 1), number);
    return (size_t)(end - name);
}

/* Head, name of the string, offset and, for SETBIT, the bit. */
static void put_bit(const struct bits *bits, const char *head, uint64_t bit, const char *value,
                    uint32_t tag)
{
    char name[BITS_NAME_NBYTES];
    uint64_t string = bit >> bits->string_shift;
    size_t nbytes = name_string(name, string);
    struct node *node = &bits->fleet->nodes[bits->node_of[string]];
    char *at = fleet_place(node, COMMAND_NBYTES);
    at = put_bulk(put_text(at, head, strlen(head)), name, nbytes);
    at = put_bulk_number(at, bit & ((UINT64_C(1) << bits->string_shift) - 1));
    if (value)
        at = put_bulk(at, value, 1);
    fleet_put(node, at, tag);
}

static void take_bit(void *context, uint32_t tag, long long number, const char *bytes,
                     size_t nbytes)
{
    struct bits *bits = context;
    (void)bytes;
    (void)nbytes;
    bits->all[tag] &= number == 1;
}

/* A number below the limit, by multiplication, which unlike the remainder takes no time. */
static uint64_t below(uint64_t hash, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)hash * limit >> 64);
}

/* The k places of a key by double hashing. */
static void every_bit(struct bits *bits, const struct perhaps_keys *keys, const char *head,
                      const char *value)
{
    bits->fleet->take = take_bit;
    bits->fleet->context = bits;
    perhaps_hash_many(bits->hash, keys, bits->hashed);
    for (size_t i = 0; i < keys->count; i++) {
        uint64_t half[2];
        memcpy(half, bits->hashed[i].bytes, sizeof half);
        bits->all[i] = true;
        for (unsigned j = 0; j < bits->k; j++)
            put_bit(bits, head, below(half[0] + j * half[1], bits->nbits), value, (uint32_t)i);
    }
    fleet_run(bits->fleet);
}

void bits_add(struct bits *bits, const struct perhaps_keys *keys)
{
    every_bit(bits, keys, "*4\r\n$6\r\nSETBIT\r\n", "1");
}

void bits_ask(struct bits *bits, const struct perhaps_keys *keys)
{
    every_bit(bits, keys, "*3\r\n$6\r\nGETBIT\r\n", NULL);
}

/* The last bit of each string, which makes the string. */
static void make_strings(struct bits *bits)
{
    bits->fleet->take = take_anything;
    for (uint64_t i = 1; i <= bits->nstrings; i++)
        put_bit(bits, "*4\r\n$6\r\nSETBIT\r\n", (i << bits->string_shift) - 1, "0", 0);
    fleet_run(bits->fleet);
}

static unsigned log2_of(uint64_t number)
{
    unsigned bits = 0;
    while (number >> (bits + 1))
        bits++;
    return bits;
}

static void set_nodes(struct bits *bits)
{
    for (uint64_t i = 0; i < bits->nstrings; i++) {
        char name[BITS_NAME_NBYTES];
        bits->node_of[i] = bits->fleet->node_of[plain_name_slot(name, name_string(name, i))];
    }
}

void bits_open(struct bits *bits, struct fleet *fleet, const struct plan *plan, double fpr,
               uint64_t nstrings)
{
    struct perhaps_options options = { .capacity = 1, .fpr = 0.1, .hashing.seed = 1 };
    *bits = (struct bits){ .fleet = fleet, .k = (unsigned)ceil(-log2(fpr)) };
    bits->nbits = (uint64_t)((double)plan->keys * bits->k / log(2));
    bits->string_shift = log2_of(bits->nbits / nstrings + 1);
    bits->nstrings = (bits->nbits >> bits->string_shift) + 1;
    bits->node_of = malloc(bits->nstrings);
    bits->hashed = malloc(plan->batch * sizeof *bits->hashed);
    bits->all = malloc(plan->batch);
    if (!bits->node_of || !bits->hashed || !bits->all || perhaps_create(&options, &bits->hash))
        errx(2, "out of memory");
    set_nodes(bits);
    make_strings(bits);
}

void bits_close(struct bits *bits)
{
    bits->fleet->take = take_anything;
    for (uint64_t i = 0; i < bits->nstrings; i++) {
        char name[BITS_NAME_NBYTES];
        struct node *node = &bits->fleet->nodes[bits->node_of[i]];
        char *at = fleet_place(node, COMMAND_NBYTES);
        at = put_text(at, "*2\r\n$3\r\nDEL\r\n", 13);
        fleet_put(node, put_bulk(at, name, name_string(name, i)), 0);
    }
    fleet_run(bits->fleet);
    perhaps_free(bits->hash);
    free(bits->node_of);
    free(bits->hashed);
    free(bits->all);
}
