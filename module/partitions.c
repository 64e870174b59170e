/* partitions.c - PERHAPS.TEST and PERHAPS.SET: many keys of a filter that lies in partitions.
 *
 *     PERHAPS.TEST name id layer geometry hashes   ->  a character for each hash
 *     PERHAPS.SET  name id layer geometry hashes
 *
 * The partitions are strings, and stay what plain commands make of them (doc/CLUSTER.md):
 * clients with and without these commands use one filter at once.  Nothing is made, and no
 * string changes its length.
 *
 *     '1'   all bits of the key are set
 *     '0'   some bit was not; after SET all are
 *     '-'   nothing is known and nothing was done: the partition is not here, or is not whole,
 *           or its slot is another node's, or the user may not reach it
 *
 * Invariant: only whole partitions are read or written: strings of exactly the length that the
 * geometry tells, with the footer of this very partition.  So each offset lies within its
 * string whatever the arguments are, and "0" of TEST is proof that the key is not there.
 *
 * The commands declare no keys, since the partitions of one node lie in many slots.  Before a
 * partition is touched, the server itself is asked by a plain command that changes nothing
 * whether this client could reach the partition by plain commands, here and now: GETRANGE for
 * TEST and BITFIELD for SET.  That looks at slot, migration, role, and the user's rights.
 *
 * Replicas and the AOF get a SETRANGE of each block that has changed: they need no module. */

#include <endian.h>
#include <perhaps_fast.h>
#include <perhaps_layout.h>
#include <perhaps_plan.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "words.h"

/* Limits, as the client has them (doc/CLUSTER.md). */
enum {
    NAME_NBYTES_MOST = 200,
    ID_NBYTES = 12,
    FOOTER_NBYTES = 64,
    PARTITIONS_MOST = 1 << 24,
    PARTITION_NBYTES_MOST = (16 << 20) - 80,
    KEYS_MOST = 8192, /* of a command, which no other one interrupts */
};

/* ---- The geometry ---------------------------------------------------------------------- */

/* The geometry of a layer as it comes: numbers of 8 bytes, little-endian; the rate is a
 * double. */
enum { CAPACITY, FPR, PARTITIONS, FIELDS, NUMBERS = FIELDS + PERHAPS_FIELDS_MAX };

/* A layer of which the geometry was checked.  It does not depend on name and ID. */
struct geometry {
    uint64_t numbers[NUMBERS];
    perhaps_layout *layout; /* NULL: this one is empty */
    uint64_t blocks;        /* in all partitions together */
    uint64_t partition_blocks;
    size_t block_nbytes;
};

/* Those that were used last, so that they are not made again with each command. */
enum { GEOMETRIES = 8 };
static struct geometry geometries[GEOMETRIES];

/* Returns the layout that the numbers describe; NULL if no layer has them.  Keys come hashed,
 * so it need not be able to hash any: it is one whose secret is not known. */
static perhaps_layout *restore_layout(const uint64_t numbers[NUMBERS])
{
    perhaps_layout *layout;
    struct perhaps_description d = { .kind = "blocked",
                                     .capacity = le64toh(numbers[CAPACITY]),
                                     .hash = PERHAPS_HASH_SIP };
    uint64_t fpr = le64toh(numbers[FPR]);
    memcpy(&d.fpr, &fpr, sizeof d.fpr);
    for (unsigned i = 0; i < PERHAPS_FIELDS_MAX; i++)
        d.field[i] = le64toh(numbers[FIELDS + i]);
    return perhaps_layout_restore(&d, NULL, &layout) ? NULL : layout;
}

/* Fills in the sizes.  Returns whether there can be so many partitions, or so few. */
static bool measure(struct geometry *g)
{
    struct perhaps_hashed any = { { 0 } };
    struct perhaps_bits bits;
    struct perhaps_plan plan;
    uint64_t partitions = le64toh(g->numbers[PARTITIONS]);
    perhaps_layout_locate(g->layout, &any, &bits);
    perhaps_layout_plan(g->layout, &plan);
    g->block_nbytes = (size_t)bits.nlines * PERHAPS_LINE_NBYTES;
    g->blocks = plan.body_nbytes / g->block_nbytes;
    if (partitions < 1 || partitions > PARTITIONS_MOST || partitions > g->blocks)
        return false;
    g->partition_blocks = (g->blocks + partitions - 1) / partitions;
    return g->partition_blocks <= PARTITION_NBYTES_MOST / g->block_nbytes;
}

/* Finds the geometry, or makes it in the place of another one.  Returns NULL if the bytes are
 * no geometry of a layer. */
static const struct geometry *find_geometry(const char *bytes, size_t nbytes)
{
    static unsigned next;
    struct geometry made = { .layout = NULL };
    if (nbytes != sizeof made.numbers)
        return NULL;
    for (unsigned i = 0; i < GEOMETRIES; i++)
        if (geometries[i].layout && !memcmp(geometries[i].numbers, bytes, nbytes))
            return &geometries[i];
    memcpy(made.numbers, bytes, nbytes);
    made.layout = restore_layout(made.numbers);
    if (!made.layout || !measure(&made)) {
        perhaps_layout_free(made.layout);
        return NULL;
    }
    struct geometry *g = &geometries[next++ % GEOMETRIES];
    perhaps_layout_free(g->layout);
    *g = made;
    return g;
}

/* ---- The arguments --------------------------------------------------------------------- */

/* A command, and the work on it.  The server runs one command at a time, so there is one. */
struct work {
    RedisModuleCtx *ctx;
    bool sets;
    const char *name, *id; /* a zero byte stands behind them */
    size_t name_nbytes;
    long long layer;
    char suffix[ID_NBYTES + 8]; /* of the names of partitions: "ID" or "ID.LAYER" */
    const struct geometry *g;
    const struct perhaps_hashed *hashed;
    size_t count;
};

static bool is_name(const char *name, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || strchr("/{}", name[i]))
            return false;
    return nbytes >= 1 && nbytes <= NAME_NBYTES_MOST;
}

static bool is_id(const char *id, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        if (!strchr("0123456789abcdef", id[i]) || !id[i])
            return false;
    return nbytes == ID_NBYTES;
}

/* Reads the arguments.  Returns NULL, or what is wrong with them. */
static const char *read_arguments(struct work *work, RedisModuleString **argv)
{
    size_t nbytes;
    work->name = server.StringPtrLen(argv[1], &work->name_nbytes);
    if (!is_name(work->name, work->name_nbytes))
        return "ERR that is no name of a filter";
    work->id = server.StringPtrLen(argv[2], &nbytes);
    if (!is_id(work->id, nbytes))
        return "ERR an ID has 12 hexadecimal digits in lower case";
    if (!word_number(argv[3], 0, PERHAPS_LAYERS_MAX - 1, &work->layer))
        return "ERR a layer is a number from 0 to 63";
    snprintf(work->suffix, sizeof work->suffix, work->layer ? "%s.%lld" : "%s", work->id,
             work->layer);
    const char *bytes = server.StringPtrLen(argv[4], &nbytes);
    work->g = find_geometry(bytes, nbytes);
    if (!work->g)
        return "ERR that is no geometry of a layer";
    bytes = server.StringPtrLen(argv[5], &nbytes);
    if (nbytes % sizeof *work->hashed || nbytes / sizeof *work->hashed > KEYS_MOST)
        return "ERR hashes have 16 bytes each, and at most 8192 come at once";
    work->hashed = (const struct perhaps_hashed *)(const void *)bytes;
    work->count = nbytes / sizeof *work->hashed;
    return NULL;
}

/* ---- Keys by partition ------------------------------------------------------------------ */

/* Keys of one partition are done together, in their order, since it takes time to reach it:
 *
 *     table[]  --->  groups[]: partition, first, last
 *                                           |
 *     keys[]:  block, next  <---------------'  a chain of indexes */
enum { NONE = UINT16_MAX, TABLE_BITS = 15, TABLE = 1 << TABLE_BITS };
_Static_assert(TABLE == 4 * KEYS_MOST, "the table is never full");

static struct {
    uint16_t table[TABLE]; /* by a hash of the partition: 1 + its group; 0: none */
    struct group {
        uint32_t partition;
        uint16_t at; /* in the table */
        uint16_t first, last;
    } groups[KEYS_MOST];
    struct {
        uint32_t block; /* in its partition */
        uint16_t next;
    } keys[KEYS_MOST];
    size_t ngroups;
    char answers[KEYS_MOST];
} desk;

/* Returns the group of a partition, which it makes if there is none. */
static struct group *find_group(uint32_t partition)
{
    uint32_t at = partition * UINT32_C(2654435769) >> (32 - TABLE_BITS);
    for (; desk.table[at]; at = (at + 1) % TABLE)
        if (desk.groups[desk.table[at] - 1].partition == partition)
            return &desk.groups[desk.table[at] - 1];
    desk.groups[desk.ngroups] = (struct group){ partition, (uint16_t)at, NONE, NONE };
    desk.table[at] = (uint16_t)++desk.ngroups;
    return &desk.groups[desk.ngroups - 1];
}

static void clear_desk(void)
{
    for (size_t i = 0; i < desk.ngroups; i++)
        desk.table[desk.groups[i].at] = 0;
    desk.ngroups = 0;
}

static void sort_keys(const struct work *work)
{
    struct perhaps_bits bits;
    for (size_t i = 0; i < work->count; i++) {
        perhaps_layout_locate(work->g->layout, &work->hashed[i], &bits);
        uint64_t partition = bits.block / work->g->partition_blocks;
        struct group *group = find_group((uint32_t)partition);
        desk.keys[i].block = (uint32_t)(bits.block - partition * work->g->partition_blocks);
        desk.keys[i].next = NONE;
        if (group->first == NONE)
            group->first = (uint16_t)i;
        else
            desk.keys[group->last].next = (uint16_t)i;
        group->last = (uint16_t)i;
    }
}

/* ---- A partition ------------------------------------------------------------------------- */

/* A partition that is being worked on. */
struct partition {
    RedisModuleString *key;
    RedisModuleKey *open;
    char *bytes;
    size_t nbytes; /* of its blocks */
    char footer[FOOTER_NBYTES];
    bool changed;
};

/* Names the string, and writes the footer that it must have. */
static void begin_partition(const struct work *work, uint32_t number, struct partition *p)
{
    const struct geometry *g = work->g;
    char key[NAME_NBYTES_MOST + 64];
    uint64_t left = g->blocks - number * g->partition_blocks;
    int n = snprintf(key, sizeof key, "perhaps:{%.*s/%u}:%s", (int)work->name_nbytes,
                     work->name, number, work->suffix);
    *p = (struct partition){
        .key = server.CreateString(work->ctx, key, (size_t)n),
        .nbytes = (left < g->partition_blocks ? left : g->partition_blocks) * g->block_nbytes,
    };
    snprintf(p->footer, sizeof p->footer, "perhaps %s.%lld partition %u\n", work->id,
             work->layer, number);
}

static void close_partition(struct partition *p)
{
    if (p->open)
        server.CloseKey(p->open);
    p->open = NULL;
}

/* Opens the string, and returns whether it is whole. */
static bool open_whole(const struct work *work, struct partition *p, int mode)
{
    size_t nbytes;
    p->open = server.OpenKey(work->ctx, p->key, mode);
    if (!p->open || server.KeyType(p->open) != KEYTYPE_STRING ||
        server.ValueLength(p->open) != p->nbytes + sizeof p->footer)
        return false;
    p->bytes = server.StringDMA(p->open, &nbytes, mode);
    return p->bytes && nbytes == p->nbytes + sizeof p->footer &&
           !memcmp(p->bytes + p->nbytes, p->footer, sizeof p->footer);
}

/* Ends a call of the server.  Returns whether it went well. */
static bool went_well(RedisModuleCallReply *reply)
{
    bool well = reply && server.CallReplyType(reply) != REPLY_ERROR;
    if (reply)
        server.FreeCallReply(reply);
    return well;
}

/* Opens the partition, if it is whole and the client may read it by plain commands. */
static bool reach_to_test(const struct work *work, struct partition *p)
{
    return open_whole(work, p, MODE_READ) &&
           went_well(server.Call(work->ctx, "GETRANGE", "Csll", p->key, 0LL, 0LL));
}

/* The same for writing.  BITFIELD must find the string, since else it would make it.  That
 * adds 2 to a bit, which fails, and so changes nothing; but the server may move the string
 * then, so it must not be open. */
static bool reach_to_set(const struct work *work, struct partition *p)
{
    bool whole = open_whole(work, p, MODE_READ);
    close_partition(p);
    return whole &&
           went_well(server.Call(work->ctx, "BITFIELD", "Cscccclc", p->key, "OVERFLOW", "FAIL",
                                 "INCRBY", "u1", 0LL, "2")) &&
           open_whole(work, p, MODE_READ | MODE_WRITE);
}

static bool has_all(const char *block, const struct perhaps_bits *bits)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < bits->nbits; i++)
        missing |= ~(unsigned)block[bits->bit[i] / 8] & (1U << bits->bit[i] % 8);
    return !missing;
}

/* Sets the bits of a key, and lets replicas and the AOF do the same. */
static void set_all(const struct work *work, struct partition *p, size_t offset,
                    const struct perhaps_bits *bits)
{
    char *block = p->bytes + offset;
    for (unsigned i = 0; i < bits->nbits; i++)
        block[bits->bit[i] / 8] |= (char)(1U << bits->bit[i] % 8);
    server.Replicate(work->ctx, "SETRANGE", "slb", p->key, (long long)offset, block,
                     work->g->block_nbytes);
    p->changed = true;
}

static char do_key(const struct work *work, struct partition *p, size_t i)
{
    struct perhaps_bits bits;
    size_t offset = desk.keys[i].block * work->g->block_nbytes;
    perhaps_layout_locate(work->g->layout, &work->hashed[i], &bits);
    bool all = has_all(p->bytes + offset, &bits);
    if (!all && work->sets)
        set_all(work, p, offset, &bits);
    return all ? '1' : '0';
}

/* Does all keys of a partition that is open.  Their blocks are on the way from memory before
 * the first is needed. */
static void do_keys(const struct work *work, struct partition *p, const struct group *group)
{
    for (uint16_t i = group->first; i != NONE; i = desk.keys[i].next)
        __builtin_prefetch(p->bytes + desk.keys[i].block * work->g->block_nbytes);
    for (uint16_t i = group->first; i != NONE; i = desk.keys[i].next)
        desk.answers[i] = do_key(work, p, i);
    if (p->changed) {
        server.SignalModifiedKey(work->ctx, p->key);
        server.NotifyKeyspaceEvent(work->ctx, NOTIFY_STRING, "setbit", p->key);
    }
}

static void do_group(const struct work *work, const struct group *group)
{
    struct partition p;
    begin_partition(work, group->partition, &p);
    if (work->sets ? reach_to_set(work, &p) : reach_to_test(work, &p))
        do_keys(work, &p, group);
    close_partition(&p);
    server.FreeString(work->ctx, p.key);
}

/* ---- The commands ------------------------------------------------------------------------ */

static int run(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, bool sets)
{
    static bool busy;
    struct work work = { .ctx = ctx, .sets = sets };
    if (argc != 6)
        return server.WrongArity(ctx);
    const char *problem =
        busy ? "ERR the command is under way already" : read_arguments(&work, argv);
    if (problem)
        return server.ReplyWithError(ctx, problem);
    busy = true; /* another module may hear of the change, and run commands itself */
    memset(desk.answers, '-', work.count);
    sort_keys(&work);
    for (size_t i = 0; i < desk.ngroups; i++)
        do_group(&work, &desk.groups[i]);
    clear_desk();
    busy = false;
    return server.ReplyWithStringBuffer(ctx, desk.answers, work.count);
}

int perhaps_test_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return run(ctx, argv, argc, false);
}

int perhaps_set_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return run(ctx, argv, argc, true);
}
