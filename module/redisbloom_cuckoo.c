/* redisbloom_cuckoo.c - cuckoo filters of RedisBloom, served as they are.
 *
 *     filter      = filters, the oldest first; filter j has buckets * expansion^j buckets,
 *                   which is a power of two
 *     bucket      = 'bucket size' slots of one byte: a fingerprint, or 0
 *     fingerprint = h mod 255 + 1, of the hash h of an item
 *     its buckets = h and h ^ (fingerprint * 0x5bd1e995), each mod the number of buckets
 *
 * An item goes to a free slot, in the newest filter that has one in either of its buckets.
 * If there is none, fingerprints are moved within the newest filter; if that does not help
 * within so many steps, they are moved back and a filter is appended.
 *
 * Invariant: each fingerprint lies in one of its two buckets.  Since both are known from
 * either one, it can move without its item; and to an older filter too, which has no more
 * buckets.
 *
 * RedisBloom counts slots in 32 bits: filters with more slots are refused, and none grows so
 * far.  In an RDB of an encoding below 4 are filters with another hash: they are refused,
 * too. */
#include <math.h>
#include <string.h>

#include "blocks.h"
#include "memory.h"
#include "redisbloom.h"
#include "running.h"
#include "settings.h"
#include <perhaps_plan.h>

enum {
    ENCODING = 4,
    FILTERS_MOST = 65535,
    FINGERPRINTS = 255,
};
#define SLOTS_MOST    UINT32_MAX /* of a filter */
#define MULTIPLIER    UINT64_C(0x5bd1e995)
#define SAMPLE_NBYTES (UINT64_C(1) << 20) /* what info() counts the free slots of */

static const char bad_data[] = "ERR received bad data";
static const char no_memory[] = "ERR Insufficient memory to create filter";
static const char other_hash[] =
    "this cuckoo filter was made before RedisBloom 2.0, with another "
    "hash: with this one it would deny its items";
static const char later[] = "this filter is of a later version of RedisBloom";

struct cuckoo {
    struct body body;  /* with a block for each filter; it comes first */
    uint64_t nbuckets; /* of the oldest filter */
    uint64_t items, deleted;
    uint16_t bucket_size, max_iterations, expansion;
};

/* ---- Places ----------------------------------------------------------------------------- */

/* Where an item may be: the two buckets are taken mod the number of buckets. */
struct place {
    uint64_t first, second;
    uint8_t fingerprint;
};

static inline uint64_t other_bucket(uint64_t bucket, uint8_t fingerprint)
{
    return bucket ^ fingerprint * MULTIPLIER;
}

static struct place place_of_item(const struct perhaps_key *item)
{
    const uint64_t hash = redisbloom_hash(item->bytes, item->nbytes, 0);
    const uint8_t fingerprint = (uint8_t)(hash % FINGERPRINTS + 1);
    return (struct place){ hash, other_bucket(hash, fingerprint), fingerprint };
}

/* Returns the number of buckets of filter j, less 1. */
static inline uint64_t mask_of(const struct cuckoo *c, size_t j)
{
    const unsigned log2_expansion = c->expansion ? (unsigned)__builtin_ctz(c->expansion) : 0;
    return (c->nbuckets << log2_expansion * j) - 1;
}

static inline uint8_t *bucket_at(const struct cuckoo *c, size_t j, uint64_t bucket)
{
    return c->body.blocks[j].bytes + (bucket & mask_of(c, j)) * c->bucket_size;
}

/* Returns a slot in filter j that has this fingerprint, or is free if it is 0; or NULL. */
static uint8_t *find_slot(const struct cuckoo *c, size_t j, const struct place *p,
                          uint8_t fingerprint)
{
    uint8_t *slot = memchr(bucket_at(c, j, p->first), fingerprint, c->bucket_size);
    return slot ? slot : memchr(bucket_at(c, j, p->second), fingerprint, c->bucket_size);
}

/* Returns a slot with this fingerprint, in the newest filter that has one; or NULL. */
static uint8_t *find_newest(const struct cuckoo *c, const struct place *p, uint8_t fingerprint)
{
    uint8_t *slot = NULL;
    for (size_t j = c->body.nblocks; !slot && j-- > 0;)
        slot = find_slot(c, j, p, fingerprint);
    return slot;
}

/* ---- Add -------------------------------------------------------------------------------- */

static void swap(uint8_t *a, uint8_t *b)
{
    const uint8_t was = *a;
    *a = *b;
    *b = was;
}

/* Puts a fingerprint into the newest filter, moving others.  Returns false, having changed
 * nothing, if that takes too many steps. */
static bool kick(struct cuckoo *c, const struct place *p)
{
    const size_t newest = c->body.nblocks - 1;
    uint64_t bucket = p->first;
    uint8_t fingerprint = p->fingerprint, *slot;
    unsigned step;
    for (step = 0; step < c->max_iterations; step++) {
        swap(&fingerprint, bucket_at(c, newest, bucket) + step % c->bucket_size);
        bucket = other_bucket(bucket, fingerprint);
        slot = memchr(bucket_at(c, newest, bucket), 0, c->bucket_size);
        if (slot) {
            *slot = fingerprint;
            return true;
        }
    }
    while (step-- > 0) {
        bucket = other_bucket(bucket, fingerprint);
        swap(&fingerprint, bucket_at(c, newest, bucket) + step % c->bucket_size);
    }
    return false;
}

static int cuckoo_grow(struct cuckoo *c)
{
    const size_t n = c->body.nblocks;
    if (!c->expansion)
        return PERHAPS_ERR_FULL;
    const bool is_command = running_now() == RUNNING_COMMAND;
    if (n >= FILTERS_MOST || (is_command && (long long)n >= settings.cf_max_expansions) ||
        c->body.blocks[n - 1].nbytes > SLOTS_MOST / c->expansion)
        return PERHAPS_ERR_LAYERS;
    return body_append_block(&c->body, c->body.blocks[n - 1].nbytes * c->expansion);
}

static int cuckoo_add_one(struct cuckoo *c, const struct place *p)
{
    uint8_t *slot = find_newest(c, p, 0);
    if (!slot && !kick(c, p)) {
        int error = cuckoo_grow(c);
        if (error)
            return error;
        slot = find_newest(c, p, 0);
    }
    if (slot)
        *slot = p->fingerprint;
    c->items++;
    return 0;
}

/* Computes the places of a batch of items, and prefetches their buckets in the newest
 * filters. */
static void place_batch(const struct cuckoo *c, const struct perhaps_key *items, size_t n,
                        struct place places[FOREIGN_BATCH])
{
    const size_t filters = c->body.nblocks, ahead = filters < 4 ? filters : 4;
    for (size_t i = 0; i < n; i++)
        places[i] = place_of_item(&items[i]);
    for (size_t i = 0; n > 1 && i < n; i++)
        for (size_t j = filters - ahead; j < filters; j++) {
            __builtin_prefetch(bucket_at(c, j, places[i].first));
            __builtin_prefetch(bucket_at(c, j, places[i].second));
        }
}

static int cuckoo_add(void *filter, const struct perhaps_key *items, size_t n,
                      bool unless_present, bool *was_present, size_t *done)
{
    struct cuckoo *c = filter;
    struct place places[FOREIGN_BATCH];
    int error = body_is_whole(&c->body) ? 0 : PERHAPS_ERR_UNSUPPORTED;
    for (*done = 0; !error && *done < n;) {
        const size_t left = n - *done, some = left < FOREIGN_BATCH ? left : FOREIGN_BATCH;
        place_batch(c, items + *done, some, places);
        for (size_t i = 0; !error && i < some; i++) {
            const struct place *p = &places[i];
            was_present[*done] = unless_present && find_newest(c, p, p->fingerprint);
            error = was_present[*done] ? 0 : cuckoo_add_one(c, p);
            *done += !error;
        }
    }
    return error;
}

/* ---- Ask and remove --------------------------------------------------------------------- */

/* Of an incomplete filter it says "perhaps". */
static void cuckoo_contains(const void *filter, const struct perhaps_key *items, size_t n,
                            uint64_t now_ms, bool *present)
{
    const struct cuckoo *c = filter;
    const bool is_whole = body_is_whole(&c->body);
    struct place places[FOREIGN_BATCH];
    (void)now_ms;
    for (size_t some; n > 0; items += some, present += some, n -= some) {
        some = n < FOREIGN_BATCH ? n : FOREIGN_BATCH;
        if (is_whole)
            place_batch(c, items, some, places);
        for (size_t i = 0; i < some; i++)
            present[i] = !is_whole || find_newest(c, &places[i], places[i].fingerprint);
    }
}

static unsigned count_in(const uint8_t *bucket, unsigned bucket_size, uint8_t fingerprint)
{
    unsigned n = 0;
    for (unsigned i = 0; i < bucket_size; i++)
        n += bucket[i] == fingerprint;
    return n;
}

static uint64_t cuckoo_count(const void *filter, const struct perhaps_key *item)
{
    const struct cuckoo *c = filter;
    const struct place p = place_of_item(item);
    uint64_t n = 0;
    if (!body_is_whole(&c->body))
        return PERHAPS_COUNT_MAX;
    for (size_t j = 0; j < c->body.nblocks; j++) {
        const uint8_t *first = bucket_at(c, j, p.first), *second = bucket_at(c, j, p.second);
        n += count_in(first, c->bucket_size, p.fingerprint);
        if (second != first)
            n += count_in(second, c->bucket_size, p.fingerprint);
    }
    return n;
}

static bool cuckoo_remove(void *filter, const struct perhaps_key *item)
{
    struct cuckoo *c = filter;
    const struct place p = place_of_item(item);
    uint8_t *slot = body_is_whole(&c->body) ? find_newest(c, &p, p.fingerprint) : NULL;
    if (!slot)
        return false;
    *slot = 0;
    c->items -= c->items > 0;
    c->deleted++;
    return true;
}

/* Moves what it can from filter j to older ones.  Returns whether filter j is empty then. */
static bool empty_filter(struct cuckoo *c, size_t j)
{
    bool is_empty = true;
    for (uint64_t bucket = 0; bucket <= mask_of(c, j); bucket++)
        for (unsigned i = 0; i < c->bucket_size; i++) {
            uint8_t *from = bucket_at(c, j, bucket) + i, *to = NULL;
            const struct place p = { bucket, other_bucket(bucket, *from), *from };
            for (size_t older = 0; *from && !to && older < j; older++)
                to = find_slot(c, older, &p, 0);
            if (to)
                swap(from, to);
            is_empty = is_empty && !*from;
        }
    return is_empty;
}

static void compact(void *filter)
{
    struct cuckoo *c = filter;
    if (!body_is_whole(&c->body))
        return;
    for (size_t j = c->body.nblocks - 1; j > 0; j--)
        if (empty_filter(c, j) && j == c->body.nblocks - 1)
            body_drop_block(&c->body);
    c->deleted = 0; /* as RedisBloom: how many since it was compacted */
}

/* ---- Tell ------------------------------------------------------------------------------- */

static uint64_t items(const void *filter)
{
    return ((const struct cuckoo *)filter)->items;
}

static size_t cuckoo_memory_nbytes(const void *filter)
{
    const struct cuckoo *c = filter;
    return sizeof *c + c->body.memory_nbytes;
}

/* Returns how many fingerprints a bucket has on average, by the first 'most_nbytes' of a
 * filter. */
static double load_of(const struct cuckoo *c, const struct block *block, uint64_t most_nbytes)
{
    const uint64_t nbytes = block->nbytes < most_nbytes ? block->nbytes : most_nbytes;
    uint64_t used = 0;
    for (uint64_t i = 0; i < nbytes; i++)
        used += block->bytes[i] != 0;
    return (double)used / (double)nbytes * c->bucket_size;
}

static void info(const void *filter, struct info *info)
{
    const struct cuckoo *c = filter;
    const size_t n = c->body.nblocks;
    double fingerprints = 0;
    *info = (struct info){ .capacity = c->body.nbytes,
                           .size_nbytes = cuckoo_memory_nbytes(c),
                           .filters = n,
                           .items = c->items,
                           .deleted = c->deleted,
                           .buckets = c->nbuckets,
                           .bucket_size = c->bucket_size,
                           .max_iterations = c->max_iterations,
                           .expansion = c->expansion ? c->expansion : -1,
                           .hash = REDISBLOOM_HASH };
    for (size_t j = 0; j < n && c->body.blocks[j].bytes; j++)
        fingerprints += 2 * load_of(c, &c->body.blocks[j], SAMPLE_NBYTES / n + 1);
    info->fpr_now = 1 - pow(1 - 1 / (double)FINGERPRINTS, fingerprints);
    if (c->items)
        info->bits_per_item = 8 * (double)c->body.nbytes / (double)c->items;
}

/* ---- Make and release ------------------------------------------------------------------- */

static void cuckoo_release(void *filter)
{
    struct cuckoo *c = filter;
    body_release(&c->body);
    memory_give(c);
}

static void *cuckoo_copy(const void *filter)
{
    const struct cuckoo *from = filter;
    struct cuckoo *c = memory_take(sizeof *c);
    if (!c)
        return NULL;
    *c = *from;
    if (!body_copy(&c->body, &from->body))
        return c;
    cuckoo_release(c);
    return NULL;
}

static void defrag(RedisModuleDefragCtx *ctx, void **filter)
{
    object_defrag(ctx, filter);
    body_defrag(ctx, &((struct cuckoo *)*filter)->body);
}

/* What a header says, and an RDB. */
struct numbers {
    uint64_t items, nbuckets, deleted, nfilters, bucket_size, max_iterations, expansion;
};

/* Returns whether RedisBloom makes such filters. */
static bool are_sound_numbers(const struct numbers *n)
{
    if (n->bucket_size < 1 || n->bucket_size > BUCKET_MOST || n->max_iterations < 1 ||
        n->max_iterations > ITERATIONS_MOST || n->expansion > EXPANSION_MOST ||
        n->expansion & (n->expansion - 1) || n->items > INT64_MAX || n->deleted > INT64_MAX)
        return false;
    if (n->nfilters < 1 || n->nfilters > (n->expansion ? FILTERS_MOST : 1) || !n->nbuckets ||
        n->nbuckets & (n->nbuckets - 1))
        return false;
    uint64_t slots_most = SLOTS_MOST;
    for (uint64_t j = 1; slots_most && n->expansion > 1 && j < n->nfilters; j++)
        slots_most /= n->expansion;
    return n->nbuckets <= slots_most / n->bucket_size;
}

/* Makes a filter without its filters. */
static struct cuckoo *make_empty(const struct numbers *n)
{
    struct cuckoo *c = memory_take(sizeof *c);
    if (!c)
        return NULL;
    c->nbuckets = n->nbuckets;
    c->items = n->items;
    c->deleted = n->deleted;
    c->bucket_size = (uint16_t)n->bucket_size;
    c->max_iterations = (uint16_t)n->max_iterations;
    c->expansion = (uint16_t)n->expansion;
    return c;
}

/* ---- SCANDUMP and LOADCHUNK ------------------------------------------------------------- */

struct __attribute__((packed)) wire {
    uint64_t items, nbuckets, deleted, nfilters;
    uint16_t bucket_size, max_iterations, expansion;
};

_Static_assert(sizeof(struct wire) == 38, "these are the bytes of RedisBloom");

static int cuckoo_dump(const void *filter, uint64_t position, struct dump *piece)
{
    const struct cuckoo *c = filter;
    if (position)
        return body_dump(&c->body, position, piece);
    const struct wire wire = { c->items,       c->nbuckets,       c->deleted,  c->body.nblocks,
                               c->bucket_size, c->max_iterations, c->expansion };
    *piece = (struct dump){ .next = 1, .nbytes = sizeof wire };
    piece->memory = memory_take(sizeof wire);
    if (!piece->memory)
        return PERHAPS_ERR_MEMORY;
    memcpy(piece->memory, &wire, sizeof wire);
    piece->bytes = piece->memory;
    return 0;
}

/* In RedisBloom 2.0 the header ended with the 8 bytes of a pointer, which mean nothing.  In
 * a later version a seed stands there, and the highest bit of 'nfilters' is set: those are
 * refused. */
static bool cuckoo_is_header(const char *bytes, size_t nbytes)
{
    (void)bytes;
    return nbytes == sizeof(struct wire) || nbytes == sizeof(struct wire) + sizeof(void *);
}

static void *cuckoo_begin_load(const char *bytes, size_t nbytes, const char **why)
{
    struct wire wire;
    *why = bad_data;
    if (!cuckoo_is_header(bytes, nbytes))
        return NULL;
    memcpy(&wire, bytes, sizeof wire);
    const struct numbers n = { wire.items,    wire.nbuckets,    wire.deleted,
                               wire.nfilters, wire.bucket_size, wire.max_iterations,
                               wire.expansion };
    if (!are_sound_numbers(&n))
        return NULL;
    *why = no_memory;
    struct cuckoo *c = make_empty(&n);
    for (size_t j = 0; c && j < n.nfilters; j++)
        if (body_expect_block(&c->body, (mask_of(c, j) + 1) * c->bucket_size)) {
            cuckoo_release(c);
            return NULL;
        }
    return c;
}

static void cuckoo_digest(RedisModuleDigest *digest, const void *filter)
{
    blocks_digest(digest, &redis_cuckoo, filter);
}

/* ---- RDB -------------------------------------------------------------------------------- */

static void cuckoo_save(RedisModuleIO *rdb, const void *filter)
{
    const struct cuckoo *c = filter;
    const bool is_whole = body_is_whole(&c->body);
    server.SaveUnsigned(rdb, is_whole ? c->body.nblocks : 0);
    server.SaveUnsigned(rdb, c->nbuckets);
    server.SaveUnsigned(rdb, c->items);
    server.SaveUnsigned(rdb, c->deleted);
    server.SaveUnsigned(rdb, c->bucket_size);
    server.SaveUnsigned(rdb, c->max_iterations);
    server.SaveUnsigned(rdb, c->expansion);
    if (!is_whole) {
        part_save(rdb, &redis_cuckoo, filter);
        return;
    }
    for (size_t j = 0; j < c->body.nblocks; j++) {
        server.SaveUnsigned(rdb, mask_of(c, j) + 1);
        body_save_block(rdb, &c->body.blocks[j]);
    }
}

static struct cuckoo *read_filters(RedisModuleIO *rdb, const struct numbers *n)
{
    struct cuckoo *c = make_empty(n);
    for (size_t j = 0; c && j < n->nfilters; j++) {
        const uint64_t nbuckets = server.LoadUnsigned(rdb);
        uint64_t nbytes;
        if (!server.IsIOError(rdb) && nbuckets == mask_of(c, j) + 1 &&
            body_read_block(&c->body, rdb, &nbytes) && nbytes == nbuckets * c->bucket_size)
            continue;
        cuckoo_release(c);
        return NULL;
    }
    return c;
}

static void *cuckoo_read(RedisModuleIO *rdb, int encoding)
{
    if (encoding != ENCODING) {
        rdb_refuse(rdb, encoding < ENCODING ? other_hash : later);
        return NULL;
    }
    struct numbers n = { .nfilters = server.LoadUnsigned(rdb) };
    n.nbuckets = server.LoadUnsigned(rdb);
    n.items = server.LoadUnsigned(rdb);
    n.deleted = server.LoadUnsigned(rdb);
    n.bucket_size = server.LoadUnsigned(rdb);
    n.max_iterations = server.LoadUnsigned(rdb);
    n.expansion = server.LoadUnsigned(rdb);
    const char *why = bad_data;
    struct cuckoo *c = NULL;
    if (server.IsIOError(rdb))
        ;
    else if (!n.nfilters)
        c = part_read(rdb, &redis_cuckoo, &why);
    else if (are_sound_numbers(&n))
        c = read_filters(rdb, &n);
    if (!c)
        rdb_refuse(rdb, why);
    return c;
}

struct form redis_cuckoo = {
    .type_name = "MBbloomCF",
    .encoding = ENCODING,
    .family = FAMILY_CUCKOO,
    .add = cuckoo_add,
    .contains = cuckoo_contains,
    .count = cuckoo_count,
    .remove = cuckoo_remove,
    .compact = compact,
    .info = info,
    .items = items,
    .is_complete = blocks_are_complete,
    .dump = cuckoo_dump,
    .is_header = cuckoo_is_header,
    .begin_load = cuckoo_begin_load,
    .load = blocks_load,
    .read = cuckoo_read,
    .save = cuckoo_save,
    .memory_nbytes = cuckoo_memory_nbytes,
    .digest = cuckoo_digest,
    .release = cuckoo_release,
    .copy = cuckoo_copy,
    .defrag = defrag,
};
