/* redisbloom_bloom.c - Bloom filters of RedisBloom, served as they are.
 *
 *     filter = links, the oldest first, each a Bloom filter for a number of items
 *     a, b   = two hashes of an item
 *     bit i  = (a + i * b) mod 2^64 mod the bits of the link, for i from 0 on
 *     a byte = eight bits, the lowest first
 *
 * An item is there if some link has all its bits.  Items are added to the newest link.  When
 * that has as many as it is for, a link with 'growth' times as many and half the fpr is
 * appended.
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

#include "blocks.h"
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
    LINKS_MOST = 999,   /* RedisBloom refuses an RDB with more */
    HASHES_MOST = 1100, /* for the smallest fpr that a double can have: 1075 */
    BITS_OF_32 = 31,    /* most log2(bits) of a link with the 32-bit hash */
};
#define NBYTES_MOST   (UINT64_C(1) << 50) /* of a link: the bytes of all links can be counted */
#define LN2           0.693147180559945
#define LN2_SQUARED   0.480453013918201
#define TIGHTENING    0.5
#define HASH_SEED     UINT64_C(0xc6a4a7935bd1e995)
#define HASH_SEED_32  0x9747b28cU
#define SAMPLE_NBYTES (UINT64_C(1) << 20) /* what info() counts the bits of */

static const char bad_data[] = "ERR received bad data";
static const char no_memory[] = "ERR Insufficient memory to create filter";
static const char unclear[] = "ERR this filter has 32-bit hashes and no power of two of bits: "
                              "versions of RedisBloom differ in where its items are";
static const char later[] = "ERR this filter is of a later version of RedisBloom";

struct link {
    uint64_t bits;
    uint64_t mask; /* power of two - 1, or 0: take the remainder by 'bits' */
    uint64_t items, entries;
    double error, bpe; /* fpr asked for, and bits for each entry by that */
    uint32_t hashes;
    uint8_t n2; /* log2 of the bits, or 0 */
};

struct bloom {
    struct body body; /* with a block for each link */
    struct link *links;
    size_t room; /* of the array */
    uint64_t items;
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
static const char *link_problem(struct link *link, uint64_t nbytes, uint32_t options)
{
    if (!nbytes || nbytes > NBYTES_MOST || !link->entries || link->items > INT64_MAX)
        return bad_data;
    if (!(link->error > 0 && link->error < 1))
        return bad_data;
    const double bpe = bits_per_entry(link->error);
    if (!(fabs(link->bpe - bpe) <= bpe * 1e-9) || hashes_for(link->bpe) != link->hashes ||
        !link->hashes || link->hashes > HASHES_MOST)
        return bad_data;
    if (!(options & FORCE64) && (!link->n2 || link->n2 > BITS_OF_32))
        return unclear;
    if (link->n2 > 63 || (UINT64_C(1) << link->n2) > nbytes * 8)
        return bad_data;
    link->mask = link->n2 ? (UINT64_C(1) << link->n2) - 1 : 0;
    if (link->n2)
        link->bits = nbytes * 8; /* early versions did not set it */
    return link->bits && link->bits <= nbytes * 8 ? NULL : bad_data;
}

/* Computes the link that follows the newest one.  Returns 0; or PERHAPS_ERR_FULL or _LAYERS. */
static int plan_next(const struct bloom *bloom, struct link *link, uint64_t *nbytes)
{
    const struct link *last = &bloom->links[bloom->body.nblocks - 1];
    if (bloom->options & NONSCALING || !bloom->growth)
        return PERHAPS_ERR_FULL;
    if (bloom->body.nblocks >= LINKS_MOST || last->entries > UINT64_MAX / bloom->growth)
        return PERHAPS_ERR_LAYERS;
    const uint64_t entries = last->entries * bloom->growth;
    const double error = last->error * TIGHTENING, bpe = bits_per_entry(error);
    const double wanted = (double)entries * bpe;
    if (!(error > 0) || !(wanted < (double)NBYTES_MOST))
        return PERHAPS_ERR_LAYERS;
    *link = (struct link){ .entries = entries, .error = error, .bpe = bpe };
    link->hashes = hashes_for(bpe);
    uint64_t bits = wanted < 1 ? 1 : (uint64_t)wanted;
    if (!(bloom->options & NOROUND)) { /* and takes more items for the bits above */
        link->n2 = (uint8_t)(64 - __builtin_clzll(bits));
        bits = UINT64_C(1) << link->n2;
        link->entries += (uint64_t)(floor((double)bits - wanted) / bpe);
    }
    *nbytes = (bits + 63) / 64 * 8;
    link->bits = *nbytes * 8;
    return link_problem(link, *nbytes, bloom->options) ? PERHAPS_ERR_LAYERS : 0;
}

static int make_room_for_link(struct bloom *bloom)
{
    void *links = bloom->links;
    int error =
        array_make_room(&links, bloom->body.nblocks, &bloom->room, sizeof *bloom->links);
    bloom->links = links;
    return error;
}

static int bloom_grow(struct bloom *bloom)
{
    struct link link;
    uint64_t nbytes;
    int error = plan_next(bloom, &link, &nbytes);
    if (!error)
        error = make_room_for_link(bloom);
    if (!error)
        error = body_append_block(&bloom->body, nbytes);
    if (!error)
        bloom->links[bloom->body.nblocks - 1] = link;
    return error;
}

/* ---- Add and ask ------------------------------------------------------------------------ */

struct hashed {
    uint64_t a, b;
};

static struct hashed hash_item(const struct bloom *bloom, const struct perhaps_key *item)
{
    struct hashed h;
    if (bloom->options & FORCE64) {
        h.a = redisbloom_hash(item->bytes, item->nbytes, HASH_SEED);
        h.b = redisbloom_hash(item->bytes, item->nbytes, h.a);
    } else {
        h.a = redisbloom_hash_32(item->bytes, item->nbytes, HASH_SEED_32);
        h.b = redisbloom_hash_32(item->bytes, item->nbytes, (uint32_t)h.a);
    }
    return h;
}

static inline uint64_t bit_of(const struct link *link, uint64_t hash)
{
    return link->mask ? hash & link->mask : hash % link->bits;
}

/* Prefetches what the first bits of an item need in a link. */
static void prefetch_in_link(const struct bloom *bloom, size_t i, const struct hashed *h,
                             uint32_t bits)
{
    const struct link *link = &bloom->links[i];
    const uint8_t *bytes = bloom->body.blocks[i].bytes;
    uint64_t hash = h->a;
    for (uint32_t n = bits < link->hashes ? bits : link->hashes; n > 0; n--, hash += h->b)
        __builtin_prefetch(bytes + bit_of(link, hash) / 8);
}

/* Hashes a batch of items.  A bit in two is set in a full link, so that an item which is not
 * there is tested by two bits on average; the newest link is less full, and gets the new
 * items. */
static void hash_batch(const struct bloom *bloom, const struct perhaps_key *items, size_t n,
                       struct hashed hashed[FOREIGN_BATCH])
{
    const size_t links = bloom->body.nblocks, ahead = links < 4 ? links : 4;
    for (size_t i = 0; i < n; i++)
        hashed[i] = hash_item(bloom, &items[i]);
    for (size_t i = 0; n > 1 && i < n; i++)
        for (size_t j = 0; j < ahead; j++)
            prefetch_in_link(bloom, links - 1 - j, &hashed[i], j ? 2 : 8);
}

static bool is_in_link(const struct bloom *bloom, size_t i, const struct hashed *h)
{
    const struct link *link = &bloom->links[i];
    const uint8_t *bytes = bloom->body.blocks[i].bytes;
    uint64_t hash = h->a;
    for (uint32_t n = link->hashes; n > 0; n--, hash += h->b) {
        const uint64_t bit = bit_of(link, hash);
        if (!(bytes[bit / 8] >> bit % 8 & 1))
            return false;
    }
    return true;
}

static bool is_in(const struct bloom *bloom, const struct hashed *h)
{
    for (size_t i = bloom->body.nblocks; i-- > 0;)
        if (is_in_link(bloom, i, h))
            return true;
    return false;
}

static void set_bits(struct bloom *bloom, const struct hashed *h)
{
    const size_t newest = bloom->body.nblocks - 1;
    const struct link *link = &bloom->links[newest];
    uint8_t *bytes = bloom->body.blocks[newest].bytes;
    uint64_t hash = h->a;
    for (uint32_t n = link->hashes; n > 0; n--, hash += h->b) {
        const uint64_t bit = bit_of(link, hash);
        bytes[bit / 8] |= (uint8_t)(1U << bit % 8);
    }
}

static int bloom_add_one(struct bloom *bloom, const struct hashed *h, bool *was_present)
{
    *was_present = is_in(bloom, h);
    if (*was_present)
        return 0;
    const struct link *newest = &bloom->links[bloom->body.nblocks - 1];
    int error = newest->items >= newest->entries ? bloom_grow(bloom) : 0;
    if (error)
        return error;
    set_bits(bloom, h);
    bloom->links[bloom->body.nblocks - 1].items++;
    bloom->items++;
    return 0;
}

static int redisbloom_add(void *filter, const struct perhaps_key *items, size_t n,
                          bool unless_present, bool *was_present, size_t *done)
{
    struct bloom *bloom = filter;
    struct hashed hashed[FOREIGN_BATCH];
    int error = body_is_whole(&bloom->body) ? 0 : PERHAPS_ERR_UNSUPPORTED;
    (void)unless_present; /* a Bloom filter has no copies */
    for (*done = 0; !error && *done < n;) {
        const size_t left = n - *done, some = left < FOREIGN_BATCH ? left : FOREIGN_BATCH;
        hash_batch(bloom, items + *done, some, hashed);
        for (size_t i = 0; !error && i < some; i++) {
            error = bloom_add_one(bloom, &hashed[i], &was_present[*done]);
            *done += !error;
        }
    }
    return error;
}

/* Of an incomplete filter it says "perhaps". */
static void bloom_contains(const void *filter, const struct perhaps_key *items, size_t n,
                           uint64_t now_ms, bool *present)
{
    const struct bloom *bloom = filter;
    const bool is_whole = body_is_whole(&bloom->body);
    struct hashed hashed[FOREIGN_BATCH];
    (void)now_ms;
    for (size_t some; n > 0; items += some, present += some, n -= some) {
        some = n < FOREIGN_BATCH ? n : FOREIGN_BATCH;
        if (is_whole)
            hash_batch(bloom, items, some, hashed);
        for (size_t i = 0; i < some; i++)
            present[i] = !is_whole || is_in(bloom, &hashed[i]);
    }
}

/* ---- Tell ------------------------------------------------------------------------------- */

static uint64_t items(const void *filter)
{
    return ((const struct bloom *)filter)->items;
}

static bool is_complete(const void *filter)
{
    return body_is_whole(&((const struct bloom *)filter)->body);
}

static size_t bloom_memory_nbytes(const void *filter)
{
    const struct bloom *bloom = filter;
    return sizeof *bloom + bloom->room * sizeof *bloom->links + bloom->body.memory_nbytes;
}

/* Returns the share of the bits of a link that are set, by counting the first 'most_nbytes'. */
static double fill_of(const struct link *link, const struct block *block, uint64_t most_nbytes)
{
    const uint64_t nbytes = block->nbytes < most_nbytes ? block->nbytes : most_nbytes;
    return share_of_ones(block->bytes, nbytes, link->mask ? link->mask + 1 : link->bits);
}

static void info(const void *filter, struct info *info)
{
    const struct bloom *bloom = filter;
    const size_t n = bloom->body.nblocks;
    double no = 1;
    *info = (struct info){ .size_nbytes = bloom_memory_nbytes(bloom),
                           .filters = n,
                           .items = bloom->items,
                           .expansion = bloom->growth,
                           .fpr_asked = bloom->links[0].error,
                           .hash = REDISBLOOM_HASH };
    if (bloom->options & NONSCALING)
        info->expansion = -1;
    else
        info->fpr_asked /= TIGHTENING;
    for (size_t i = 0; i < n; i++) {
        const struct link *link = &bloom->links[i];
        info->capacity += link->entries;
        if (bloom->body.blocks[i].bytes)
            no *= 1 - pow(fill_of(link, &bloom->body.blocks[i], SAMPLE_NBYTES / n + 1),
                          link->hashes);
    }
    info->fpr_now = 1 - no;
    if (bloom->items)
        info->bits_per_item = 8 * (double)bloom->body.nbytes / (double)bloom->items;
}

static bool layer(const void *filter, size_t index, struct layer *layer)
{
    const struct bloom *bloom = filter;
    if (index >= bloom->body.nblocks)
        return false;
    const struct link *link = &bloom->links[index];
    *layer = (struct layer){ .nbytes = bloom->body.blocks[index].nbytes,
                             .bits = link->bits,
                             .capacity = link->entries,
                             .items = link->items,
                             .hashes = link->hashes,
                             .ratio = link->error };
    return true;
}

/* ---- Make and release ------------------------------------------------------------------- */

static void bloom_release(void *filter)
{
    struct bloom *bloom = filter;
    body_release(&bloom->body);
    memory_give(bloom->links);
    memory_give(bloom);
}

static void *bloom_copy(const void *filter)
{
    const struct bloom *from = filter;
    struct bloom *bloom = memory_take(sizeof *bloom);
    if (!bloom)
        return NULL;
    *bloom = *from;
    bloom->body = (struct body){ 0 };
    bloom->links = memory_take(from->room * sizeof *from->links);
    if (!bloom->links || body_copy(&bloom->body, &from->body)) {
        bloom_release(bloom);
        return NULL;
    }
    memcpy(bloom->links, from->links, from->body.nblocks * sizeof *from->links);
    return bloom;
}

static void defrag(RedisModuleDefragCtx *ctx, void **filter)
{
    object_defrag(ctx, filter);
    struct bloom *bloom = *filter;
    void *links = bloom->links;
    object_defrag(ctx, &links);
    bloom->links = links;
    body_defrag(ctx, &bloom->body);
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

static void encode(const struct bloom *bloom, char *bytes)
{
    const size_t n = bloom->body.nblocks;
    const struct wire_head head = { bloom->items, (uint32_t)n, bloom->options, bloom->growth };
    memcpy(bytes, &head, sizeof head);
    bytes += sizeof head;
    for (size_t i = 0; i < n; i++, bytes += sizeof(struct wire_link)) {
        const struct link *l = &bloom->links[i];
        const struct wire_link link = { bloom->body.blocks[i].nbytes,
                                        l->bits,
                                        l->items,
                                        l->error,
                                        l->bpe,
                                        l->hashes,
                                        l->entries,
                                        l->n2 };
        memcpy(bytes, &link, sizeof link);
    }
}

static int bloom_dump(const void *filter, uint64_t position, struct dump *piece)
{
    const struct bloom *bloom = filter;
    if (position)
        return body_dump(&bloom->body, position, piece);
    const size_t links_nbytes = bloom->body.nblocks * sizeof(struct wire_link);
    *piece = (struct dump){ .next = 1, .nbytes = sizeof(struct wire_head) + links_nbytes };
    piece->memory = memory_take(piece->nbytes);
    if (!piece->memory)
        return PERHAPS_ERR_MEMORY;
    encode(bloom, piece->memory);
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
static bool adds_up(const struct bloom *bloom)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < bloom->body.nblocks; i++)
        if (__builtin_add_overflow(sum, bloom->links[i].items, &sum))
            return false;
    return sum == bloom->items && sum <= INT64_MAX;
}

/* Adds the links of a header, whose bits will come.  Returns NULL, or why it is refused. */
static const char *decode_links(struct bloom *bloom, const char *bytes, size_t nlinks)
{
    for (size_t i = 0; i < nlinks; i++, bytes += sizeof(struct wire_link)) {
        struct wire_link l;
        memcpy(&l, bytes, sizeof l);
        struct link link = { .bits = l.bits,
                             .items = l.items,
                             .entries = l.entries,
                             .error = l.error,
                             .bpe = l.bpe,
                             .hashes = l.hashes,
                             .n2 = l.n2 };
        const char *problem = link_problem(&link, l.nbytes, bloom->options);
        if (problem)
            return problem;
        if (make_room_for_link(bloom) || body_expect_block(&bloom->body, l.nbytes))
            return no_memory;
        bloom->links[i] = link;
    }
    return adds_up(bloom) ? NULL : bad_data;
}

static void *bloom_begin_load(const char *bytes, size_t nbytes, const char **why)
{
    struct wire_head head;
    *why = bad_data;
    if (!bloom_is_header(bytes, nbytes))
        return NULL;
    memcpy(&head, bytes, sizeof head);
    if (head.nlinks > LINKS_MOST)
        return NULL;
    *why = later;
    if (head.options & ~(uint32_t)OPTIONS_KNOWN)
        return NULL;
    *why = no_memory;
    struct bloom *bloom = memory_take(sizeof *bloom);
    if (!bloom)
        return NULL;
    bloom->items = head.items;
    bloom->options = head.options;
    bloom->growth = head.growth;
    *why = decode_links(bloom, bytes + sizeof head, head.nlinks);
    if (!*why)
        return bloom;
    bloom_release(bloom);
    return NULL;
}

static int bloom_load(void *filter, uint64_t position, const char *bytes, size_t nbytes,
                      const char **why)
{
    return body_load(&((struct bloom *)filter)->body, position, bytes, nbytes, why);
}

static void bloom_digest(RedisModuleDigest *digest, const void *filter)
{
    struct dump piece;
    if (!bloom_dump(filter, 0, &piece))
        server.DigestAddStringBuffer(digest, piece.bytes, piece.nbytes);
    memory_give(piece.memory);
    body_digest(digest, &((const struct bloom *)filter)->body);
}

/* ---- RDB -------------------------------------------------------------------------------- */

static void bloom_save(RedisModuleIO *rdb, const void *filter)
{
    const struct bloom *bloom = filter;
    const bool is_whole = body_is_whole(&bloom->body);
    server.SaveUnsigned(rdb, is_whole ? bloom->items : 0);
    server.SaveUnsigned(rdb, is_whole ? bloom->body.nblocks : 0);
    server.SaveUnsigned(rdb, is_whole ? bloom->options : 0);
    server.SaveUnsigned(rdb, is_whole ? bloom->growth : 0);
    if (!is_whole) {
        part_save(rdb, &redis_bloom, filter);
        return;
    }
    for (size_t i = 0; i < bloom->body.nblocks; i++) {
        const struct link *link = &bloom->links[i];
        server.SaveUnsigned(rdb, link->entries);
        server.SaveDouble(rdb, link->error);
        server.SaveUnsigned(rdb, link->hashes);
        server.SaveDouble(rdb, link->bpe);
        server.SaveUnsigned(rdb, link->bits);
        server.SaveUnsigned(rdb, link->n2);
        body_save_block(rdb, &bloom->body.blocks[i]);
        server.SaveUnsigned(rdb, link->items);
    }
}

/* Reads a link and appends it.  Returns NULL, or why it is refused. */
static const char *read_link(struct bloom *bloom, RedisModuleIO *rdb)
{
    struct link link = { .entries = server.LoadUnsigned(rdb) };
    link.error = server.LoadDouble(rdb);
    const uint64_t hashes = server.LoadUnsigned(rdb);
    link.bpe = server.LoadDouble(rdb);
    link.bits = server.LoadUnsigned(rdb);
    const uint64_t n2 = server.LoadUnsigned(rdb);
    uint64_t nbytes;
    if (server.IsIOError(rdb) || hashes > UINT32_MAX || n2 > UINT8_MAX ||
        make_room_for_link(bloom) || !body_read_block(&bloom->body, rdb, &nbytes))
        return bad_data;
    link.hashes = (uint32_t)hashes;
    link.n2 = (uint8_t)n2;
    link.items = server.LoadUnsigned(rdb);
    const char *problem = link_problem(&link, nbytes, bloom->options);
    bloom->links[bloom->body.nblocks - 1] = link;
    return server.IsIOError(rdb) ? bad_data : problem;
}

/* Reads the links of a filter.  Returns NULL and sets *why if one is refused. */
static struct bloom *read_links(RedisModuleIO *rdb, const struct bloom *head, uint64_t nlinks,
                                const char **why)
{
    struct bloom *bloom = memory_take(sizeof *bloom);
    *why = no_memory;
    if (!bloom)
        return NULL;
    *bloom = *head;
    *why = NULL;
    while (!*why && bloom->body.nblocks < nlinks)
        *why = read_link(bloom, rdb);
    if (!*why && !adds_up(bloom))
        *why = bad_data;
    if (!*why)
        return bloom;
    bloom_release(bloom);
    return NULL;
}

static void *bloom_read(RedisModuleIO *rdb, int encoding)
{
    struct bloom head = { .items = server.LoadUnsigned(rdb) }, *bloom = NULL;
    const uint64_t nlinks = server.LoadUnsigned(rdb);
    uint64_t options = 0, growth = GROWTH_BEFORE;
    const char *why = bad_data;
    if (encoding >= ENCODING_OF_OPTIONS)
        options = server.LoadUnsigned(rdb);
    if (encoding >= ENCODING_OF_GROWTH)
        growth = server.LoadUnsigned(rdb);
    head.options = (uint32_t)options;
    head.growth = (uint32_t)growth;
    if (encoding < ENCODING_LEAST)
        why = unclear;
    else if (encoding > ENCODING || options > OPTIONS_KNOWN)
        why = later;
    else if (server.IsIOError(rdb) || nlinks > LINKS_MOST || growth > UINT32_MAX)
        ;
    else if (nlinks)
        bloom = read_links(rdb, &head, nlinks, &why);
    else if (encoding == ENCODING)
        bloom = part_read(rdb, &redis_bloom, &why);
    if (!bloom)
        rdb_refuse(rdb, why);
    return bloom;
}

struct form redis_bloom = {
    .type_name = "MBbloom--",
    .encoding = ENCODING,
    .family = FAMILY_BLOOM,
    .add = redisbloom_add,
    .contains = bloom_contains,
    .info = info,
    .layer = layer,
    .items = items,
    .is_complete = is_complete,
    .dump = bloom_dump,
    .is_header = bloom_is_header,
    .begin_load = bloom_begin_load,
    .load = bloom_load,
    .read = bloom_read,
    .save = bloom_save,
    .memory_nbytes = bloom_memory_nbytes,
    .digest = bloom_digest,
    .release = bloom_release,
    .copy = bloom_copy,
    .defrag = defrag,
};
