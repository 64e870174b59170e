/* redisbloom_bloom.c - Bloom filters of RedisBloom, served as they are (foreign_bloom.h).
 *
 *     bit i = (a + i * b) mod 2^64 mod the bits of the link, for i from 0 on
 *
 * Its layers are called links.  The one that follows a full one is for 'growth' times as many
 * items, with half the fpr.
 *
 * The hashes are MurmurHash64A (the option FORCE64).  Filters made before RedisBloom 2.0
 * have MurmurHash2 of 32 bits.  All versions agree on their bits if the link has a power of
 * two of them; else versions differ in whether a + i * b wraps at 2^32, and such filters are
 * refused.
 *
 * An RDB of encoding 4 has all fields below.  Up to 3 there is no growth (it is 2), up to 1
 * there are no options (they are 0).  0 has no number of bits: it is refused, as those
 * filters have no power of two. */
#include <math.h>
#include <string.h>

#include "foreign_bloom.h"
#include "memory.h"
#include "redisbloom.h"

/* options */
enum { NOROUND = 1, FORCE64 = 4, NONSCALING = 8, OPTIONS_KNOWN = 15 };

enum {
    ENCODING = 4,
    ENCODING_OF_GROWTH = 4,
    ENCODING_OF_OPTIONS = 2,
    ENCODING_LEAST = 1,
    GROWTH_BEFORE = 2,
    LINKS_MOST = 999, /* RedisBloom refuses an RDB with more */
    BITS_OF_32 = 31,  /* most log2(bits) of a link with the 32-bit hash */
};
#define LN2          0.693147180559945
#define LN2_SQUARED  0.480453013918201
#define TIGHTENING   0.5
#define HASH_SEED    UINT64_C(0xc6a4a7935bd1e995)
#define HASH_SEED_32 0x9747b28cU

static const char unclear[] = "ERR this filter has 32-bit hashes and no power of two of bits: "
                              "versions of RedisBloom differ in where its items are";
static const char later[] = "ERR this filter is of a later version of RedisBloom";

struct redisbloom {
    struct foreign_bloom bloom;
    uint32_t options, growth;
};

/* ---- Links ------------------------------------------------------------------------------ */

static double bits_per_entry(double error)
{
    return -log(error) / LN2_SQUARED;
}

static uint32_t hashes_for(double bpe)
{
    return (uint32_t)ceil(LN2 * bpe);
}

/* Completes a link from its other fields.  Returns NULL, or why it is refused. */
static const char *link_problem(struct foreign_layer *link, uint64_t nbytes, uint32_t options)
{
    if (!nbytes || nbytes > FOREIGN_NBYTES_MOST || !link->capacity || link->items > INT64_MAX)
        return foreign_bad_data;
    if (!(link->fpr > 0 && link->fpr < 1))
        return foreign_bad_data;
    const double bpe = bits_per_entry(link->fpr);
    if (!(fabs(link->bpe - bpe) <= bpe * 1e-9) || hashes_for(link->bpe) != link->hashes ||
        !link->hashes || link->hashes > FOREIGN_HASHES_MOST)
        return foreign_bad_data;
    if (!(options & FORCE64) && (!link->n2 || link->n2 > BITS_OF_32))
        return unclear;
    if (link->n2 > 63 || (UINT64_C(1) << link->n2) > nbytes * 8)
        return foreign_bad_data;
    link->mask = link->n2 ? (UINT64_C(1) << link->n2) - 1 : 0;
    if (link->n2)
        link->bits = nbytes * 8; /* early versions did not set it */
    return link->bits && link->bits <= nbytes * 8 ? NULL : foreign_bad_data;
}

/* Computes the link that follows the newest one.  Returns 0; or PERHAPS_ERR_FULL or _LAYERS. */
static int plan_next(const struct redisbloom *bloom, struct foreign_layer *link,
                     uint64_t *nbytes)
{
    const struct foreign_layer *last = foreign_newest(&bloom->bloom);
    if (bloom->options & NONSCALING || !bloom->growth)
        return PERHAPS_ERR_FULL;
    if (bloom->bloom.body.nblocks >= LINKS_MOST || last->capacity > UINT64_MAX / bloom->growth)
        return PERHAPS_ERR_LAYERS;
    const uint64_t entries = last->capacity * bloom->growth;
    const double error = last->fpr * TIGHTENING, bpe = bits_per_entry(error);
    const double wanted = (double)entries * bpe;
    if (!(error > 0) || !(wanted < (double)FOREIGN_NBYTES_MOST))
        return PERHAPS_ERR_LAYERS;
    *link = (struct foreign_layer){ .capacity = entries, .fpr = error, .bpe = bpe };
    link->hashes = hashes_for(bpe);
    uint64_t bits = wanted < 1 ? 1 : (uint64_t)wanted;
    if (!(bloom->options & NOROUND)) { /* and takes more items for the bits above */
        link->n2 = (uint8_t)(64 - __builtin_clzll(bits));
        bits = UINT64_C(1) << link->n2;
        link->capacity += (uint64_t)(floor((double)bits - wanted) / bpe);
    }
    *nbytes = (bits + 63) / 64 * 8;
    link->bits = *nbytes * 8;
    return link_problem(link, *nbytes, bloom->options) ? PERHAPS_ERR_LAYERS : 0;
}

static int redisbloom_grow(struct foreign_bloom *bloom)
{
    struct foreign_layer link;
    uint64_t nbytes;
    int error = plan_next((const struct redisbloom *)bloom, &link, &nbytes);
    return error ? error : foreign_append(bloom, link, nbytes);
}

static struct foreign_hashes hash_item(const struct foreign_bloom *bloom,
                                       const struct perhaps_key *item)
{
    struct foreign_hashes h;
    if (((const struct redisbloom *)bloom)->options & FORCE64) {
        h.a = redisbloom_hash(item->bytes, item->nbytes, HASH_SEED);
        h.b = redisbloom_hash(item->bytes, item->nbytes, h.a);
    } else {
        h.a = redisbloom_hash_32(item->bytes, item->nbytes, HASH_SEED_32);
        h.b = redisbloom_hash_32(item->bytes, item->nbytes, (uint32_t)h.a);
    }
    return h;
}

static void hash_items(const struct foreign_bloom *bloom, const struct perhaps_key *items,
                       size_t n, struct foreign_hashes *hashes)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = hash_item(bloom, &items[i]);
}

static const struct foreign_own own = { .hash = hash_items,
                                        .grow = redisbloom_grow,
                                        .nbytes = sizeof(struct redisbloom) };

static void redisbloom_info(const void *filter, struct info *info)
{
    const struct redisbloom *bloom = filter;
    const bool grows = !(bloom->options & NONSCALING);
    foreign_info(&bloom->bloom, info);
    info->expansion = grows ? (long long)bloom->growth : -1;
    info->fpr_asked = bloom->bloom.layers[0].fpr / (grows ? TIGHTENING : 1);
    info->hash = REDISBLOOM_HASH;
}

/* ---- SCANDUMP and LOADCHUNK ------------------------------------------------------------- */

struct __attribute__((packed)) wire_head {
    uint64_t items;
    uint32_t nlinks, options, growth;
};

struct __attribute__((packed)) wire_link {
    uint64_t nbytes, bits, items;
    double error, bpe;
    uint32_t hashes;
    uint64_t entries;
    uint8_t n2;
};

_Static_assert(sizeof(struct wire_head) == 20 && sizeof(struct wire_link) == 53,
               "these are the bytes of RedisBloom");

static void encode(const struct redisbloom *filter, char *bytes)
{
    const struct foreign_bloom *bloom = &filter->bloom;
    const size_t n = bloom->body.nblocks;
    const struct wire_head head = { bloom->items, (uint32_t)n, filter->options,
                                    filter->growth };
    memcpy(bytes, &head, sizeof head);
    bytes += sizeof head;
    for (size_t i = 0; i < n; i++, bytes += sizeof(struct wire_link)) {
        const struct foreign_layer *l = &bloom->layers[i];
        const struct wire_link link = { bloom->body.blocks[i].nbytes,
                                        l->bits,
                                        l->items,
                                        l->fpr,
                                        l->bpe,
                                        l->hashes,
                                        l->capacity,
                                        l->n2 };
        memcpy(bytes, &link, sizeof link);
    }
}

static int bloom_dump(const void *filter, uint64_t position, struct dump *piece)
{
    const struct body *body = filter;
    if (position)
        return body_dump(body, position, piece);
    const size_t links_nbytes = body->nblocks * sizeof(struct wire_link);
    *piece = (struct dump){ .next = 1, .nbytes = sizeof(struct wire_head) + links_nbytes };
    piece->memory = memory_take(piece->nbytes);
    if (!piece->memory)
        return PERHAPS_ERR_MEMORY;
    encode(filter, piece->memory);
    piece->bytes = piece->memory;
    return 0;
}

static bool bloom_is_header(const char *bytes, size_t nbytes)
{
    struct wire_head head;
    if (nbytes <= sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    return nbytes - sizeof head == head.nlinks * sizeof(struct wire_link);
}

/* Returns whether the links hold as many items as the whole is said to. */
static bool adds_up(const struct foreign_bloom *bloom)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < bloom->body.nblocks; i++)
        if (__builtin_add_overflow(sum, bloom->layers[i].items, &sum))
            return false;
    return sum == bloom->items && sum <= INT64_MAX;
}

/* Adds the links of a header, whose bits will come.  Returns NULL, or why it is refused. */
static const char *decode_links(struct redisbloom *bloom, const char *bytes, size_t nlinks)
{
    for (size_t i = 0; i < nlinks; i++, bytes += sizeof(struct wire_link)) {
        struct wire_link l;
        memcpy(&l, bytes, sizeof l);
        struct foreign_layer link = { .bits = l.bits,
                                      .items = l.items,
                                      .capacity = l.entries,
                                      .fpr = l.error,
                                      .bpe = l.bpe,
                                      .hashes = l.hashes,
                                      .n2 = l.n2 };
        const char *problem = link_problem(&link, l.nbytes, bloom->options);
        if (problem)
            return problem;
        if (foreign_expect(&bloom->bloom, link, l.nbytes))
            return foreign_no_memory;
    }
    return adds_up(&bloom->bloom) ? NULL : foreign_bad_data;
}

static void *bloom_begin_load(const char *bytes, size_t nbytes, const char **why)
{
    struct wire_head head;
    *why = foreign_bad_data;
    if (!bloom_is_header(bytes, nbytes))
        return NULL;
    memcpy(&head, bytes, sizeof head);
    if (head.nlinks > LINKS_MOST)
        return NULL;
    *why = later;
    if (head.options & ~(uint32_t)OPTIONS_KNOWN)
        return NULL;
    struct redisbloom *bloom = foreign_make(&own, why);
    if (!bloom)
        return NULL;
    bloom->bloom.items = head.items;
    bloom->options = head.options;
    bloom->growth = head.growth;
    *why = decode_links(bloom, bytes + sizeof head, head.nlinks);
    return foreign_kept(bloom, *why);
}

static void bloom_digest(RedisModuleDigest *digest, const void *filter)
{
    blocks_digest(digest, &redis_bloom, filter);
}

/* ---- RDB -------------------------------------------------------------------------------- */

static void bloom_save(RedisModuleIO *rdb, const void *filter)
{
    const struct redisbloom *own_part = filter;
    const struct foreign_bloom *bloom = filter;
    const bool is_whole = body_is_whole(&bloom->body);
    server.SaveUnsigned(rdb, is_whole ? bloom->items : 0);
    server.SaveUnsigned(rdb, is_whole ? bloom->body.nblocks : 0);
    server.SaveUnsigned(rdb, is_whole ? own_part->options : 0);
    server.SaveUnsigned(rdb, is_whole ? own_part->growth : 0);
    if (!is_whole) {
        part_save(rdb, &redis_bloom, filter);
        return;
    }
    for (size_t i = 0; i < bloom->body.nblocks; i++) {
        const struct foreign_layer *link = &bloom->layers[i];
        server.SaveUnsigned(rdb, link->capacity);
        server.SaveDouble(rdb, link->fpr);
        server.SaveUnsigned(rdb, link->hashes);
        server.SaveDouble(rdb, link->bpe);
        server.SaveUnsigned(rdb, link->bits);
        server.SaveUnsigned(rdb, link->n2);
        body_save_block(rdb, &bloom->body.blocks[i]);
        server.SaveUnsigned(rdb, link->items);
    }
}

static const char *read_link(struct foreign_bloom *bloom, RedisModuleIO *rdb, bool is_last)
{
    struct foreign_layer link = { .capacity = server.LoadUnsigned(rdb) };
    link.fpr = server.LoadDouble(rdb);
    const uint64_t hashes = server.LoadUnsigned(rdb);
    link.bpe = server.LoadDouble(rdb);
    link.bits = server.LoadUnsigned(rdb);
    const uint64_t n2 = server.LoadUnsigned(rdb);
    uint64_t nbytes;
    (void)is_last;
    if (server.IsIOError(rdb) || hashes > UINT32_MAX || n2 > UINT8_MAX ||
        !foreign_read_block(bloom, rdb, &nbytes))
        return foreign_bad_data;
    link.hashes = (uint32_t)hashes;
    link.n2 = (uint8_t)n2;
    link.items = server.LoadUnsigned(rdb);
    const uint32_t options = ((const struct redisbloom *)bloom)->options;
    const char *problem = link_problem(&link, nbytes, options);
    *foreign_newest(bloom) = link;
    return server.IsIOError(rdb) ? foreign_bad_data : problem;
}

static void *bloom_read(RedisModuleIO *rdb, int encoding)
{
    struct redisbloom numbers = { .bloom = { .own = &own, .items = server.LoadUnsigned(rdb) } };
    const uint64_t nlinks = server.LoadUnsigned(rdb);
    uint64_t options = 0, growth = GROWTH_BEFORE;
    const char *why = foreign_bad_data;
    void *bloom = NULL;
    if (encoding >= ENCODING_OF_OPTIONS)
        options = server.LoadUnsigned(rdb);
    if (encoding >= ENCODING_OF_GROWTH)
        growth = server.LoadUnsigned(rdb);
    numbers.options = (uint32_t)options;
    numbers.growth = (uint32_t)growth;
    if (encoding < ENCODING_LEAST)
        why = unclear;
    else if (encoding > ENCODING || options > OPTIONS_KNOWN)
        why = later;
    else if (server.IsIOError(rdb) || nlinks > LINKS_MOST || growth > UINT32_MAX)
        ;
    else if (nlinks)
        bloom = foreign_read(rdb, &numbers.bloom, nlinks, read_link, &why);
    else if (encoding == ENCODING)
        bloom = part_read(rdb, &redis_bloom, &why);
    if (bloom && !adds_up(bloom))
        bloom = foreign_kept(bloom, why = foreign_bad_data);
    if (!bloom)
        rdb_refuse(rdb, why);
    return bloom;
}

struct form redis_bloom = {
    .type_name = "MBbloom--",
    .encoding = ENCODING,
    .family = FAMILY_BLOOM,
    .add = foreign_add,
    .contains = foreign_contains,
    .info = redisbloom_info,
    .layer = foreign_layer,
    .items = foreign_items,
    .is_complete = blocks_are_complete,
    .dump = bloom_dump,
    .is_header = bloom_is_header,
    .begin_load = bloom_begin_load,
    .load = blocks_load,
    .read = bloom_read,
    .save = bloom_save,
    .memory_nbytes = foreign_memory_nbytes,
    .digest = bloom_digest,
    .release = foreign_release,
    .copy = foreign_copy,
    .defrag = foreign_defrag,
};
