/* rivals.c - pipelined GETs, and Bloom filters that send a command for each bit. */
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

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

/* ---- Bits -------------------------------------------------------------------------------- */

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

/* A number below the limit, by multiplication, which unlike the remainder takes no time. */
static uint64_t below(uint64_t hash, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)hash * limit >> 64);
}

/* The k places of a key by double hashing. */
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

/* The last bit of each string is set to 0 at first, which makes the string. */
void bits_open(struct bits *bits, struct fleet *fleet, const struct plan *plan, double fpr,
               uint64_t nstrings)
{
    struct perhaps_options options = { .capacity = 1, .fpr = 0.1, .hashing.seed = 1 };
    *bits = (struct bits){ .k = (unsigned)ceil(-log2(fpr)) };
    bits->nbits = (uint64_t)(plan->keys.at[0] * bits->k / log(2));
    bits->string_shift = (unsigned)log2((double)(bits->nbits / nstrings + 1));
    bits->strings =
        strings_open(fleet, "perhaps-bits::", (bits->nbits >> bits->string_shift) + 1);
    bits->hashed = allocate_zeroed(plan->batch, sizeof *bits->hashed);
    bits->all = allocate_zeroed(plan->batch, sizeof *bits->all);
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
