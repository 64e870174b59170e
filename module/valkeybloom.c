/* valkeybloom.c - Bloom filters of valkey-bloom, served as they are (foreign_bloom.h).
 *
 *     a, b  = SipHash-1-3 of an item under the two halves of the seed
 *     bit i = a, b, and then (a + i * b) mod 2^64 mod the largest prime below 2^64, for i from
 *             2 on; each mod the bits of the layer
 *
 * The layer that follows a full one is for 'expansion' times as many items, with 'tightening'
 * times the fpr.
 *
 * A block is what the Rust crate bloomfilter 3.0 makes of a layer: a header and the bits.
 *
 *     offset  bytes  what
 *          0      1  version: 1
 *          1      8  how many bytes of bits
 *          9      4  how many bits an item has
 *         13     32  the seed
 *         45         the bits
 *
 * The RDB has, in this order: how many layers; expansion; fpr; tightening; 1, or 0 if the seed
 * is that which valkey-bloom has built in; and of each layer the block and the capacity, and of
 * the last the number of its items.  All others are full. */
#include "valkeybloom.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "foreign_bloom.h"
#include "memory.h"
#include "siphash13.h"

enum {
    ENCODING = 1,
    BLOCK_VERSION = 1,
    BLOCK_HEADER_NBYTES = 45,
    SEED_NBYTES = VALKEYBLOOM_SEED_NBYTES,
};
#define LN2 0.693147180559945309417

/* With bloom-use-random-seed no. */
static const uint8_t public_seed[SEED_NBYTES] = {
    89, 15,  245, 34,  234, 120, 17,  218, 167, 20,  216, 9,   59, 62, 123, 217,
    29, 137, 138, 115, 62,  152, 136, 135, 48,  127, 151, 205, 40, 7,  51,  131,
};

static const char bad_dump[] = "ERR bloom object decoding failed";
static const char later[] = "ERR this filter is of another version of valkey-bloom";

struct valkeybloom {
    struct foreign_bloom bloom;
    double fpr, tightening;
    uint32_t expansion;
    uint8_t seed[SEED_NBYTES];
};

/* ---- Layers ------------------------------------------------------------------------------ */

/* Returns how many bits each item has. */
static double hashes_for(uint64_t bits, uint64_t capacity)
{
    const double hashes = round((double)bits / (double)capacity * LN2);
    return hashes > 1 ? hashes : 1;
}

/* Returns the fpr of a layer, by repeated squares, as the other module computes it. */
static double fpr_of(const struct valkeybloom *bloom, size_t layer)
{
    double power = 1, square = bloom->tightening;
    for (; layer > 0; layer >>= 1) {
        if (layer & 1)
            power *= square;
        square *= square;
    }
    return bloom->fpr * power;
}

/* Returns whether there are such filters at all. */
static bool is_sound(const struct valkeybloom *bloom)
{
    return bloom->fpr > 0 && bloom->fpr < 1 && bloom->tightening > 0 && bloom->tightening < 1;
}

/* Completes layer i from its capacity, its items and the length of its block.  Returns whether
 * the other module makes such layers.  All layers before it are full, so that their items are
 * their capacity; the sum of all is replied as a number with a sign. */
static bool complete_layer(const struct valkeybloom *filter, size_t i,
                           struct foreign_layer *layer, uint64_t block_nbytes)
{
    if (block_nbytes <= BLOCK_HEADER_NBYTES || block_nbytes > FOREIGN_NBYTES_MOST)
        return false;
    if (!layer->capacity || layer->capacity > INT64_MAX - filter->bloom.items ||
        layer->items > layer->capacity)
        return false;
    layer->bits = 8 * (block_nbytes - BLOCK_HEADER_NBYTES);
    const double hashes = hashes_for(layer->bits, layer->capacity);
    layer->hashes = hashes <= FOREIGN_HASHES_MOST ? (uint32_t)hashes : 0;
    layer->fpr = fpr_of(filter, i);
    return layer->hashes > 0;
}

/* Writes the header of a block that has all its bytes. */
static void write_header(const struct valkeybloom *filter, size_t i)
{
    const struct foreign_layer *layer = &filter->bloom.layers[i];
    const uint64_t nbytes = layer->bits / 8;
    uint8_t *header = filter->bloom.body.blocks[i].bytes;
    header[0] = BLOCK_VERSION;
    memcpy(header + 1, &nbytes, sizeof nbytes);
    memcpy(header + 9, &layer->hashes, sizeof layer->hashes);
    memcpy(header + 13, filter->seed, SEED_NBYTES);
}

/* Returns whether a block has the header that it should have; the first one says the seed. */
static bool has_header(struct valkeybloom *filter, size_t i)
{
    const uint8_t *block = filter->bloom.body.blocks[i].bytes;
    uint8_t header[BLOCK_HEADER_NBYTES];
    memcpy(header, block, sizeof header);
    if (i == 0)
        memcpy(filter->seed, header + 13, SEED_NBYTES);
    write_header(filter, i);
    return !memcmp(header, block, sizeof header);
}

/* Appends an empty layer.  Returns 0, PERHAPS_ERR_LAYERS or _MEMORY. */
static int append_layer(struct valkeybloom *filter, uint64_t capacity)
{
    struct foreign_bloom *bloom = &filter->bloom;
    const double fpr = fpr_of(filter, bloom->body.nblocks);
    if (!(fpr > DBL_MIN))
        return PERHAPS_ERR_LAYERS;
    const double nbytes = ceil((double)capacity * log(fpr) / (-8 * LN2 * LN2));
    if (!(nbytes < (double)(FOREIGN_NBYTES_MOST - BLOCK_HEADER_NBYTES)))
        return PERHAPS_ERR_LAYERS;
    const uint64_t block_nbytes = BLOCK_HEADER_NBYTES + (uint64_t)nbytes;
    struct foreign_layer layer = { .capacity = capacity };
    if (!complete_layer(filter, bloom->body.nblocks, &layer, block_nbytes))
        return PERHAPS_ERR_LAYERS;
    int error = foreign_append(bloom, layer, block_nbytes);
    if (!error)
        write_header(filter, bloom->body.nblocks - 1);
    return error;
}

static int valkeybloom_grow(struct foreign_bloom *bloom)
{
    struct valkeybloom *filter = (struct valkeybloom *)bloom;
    uint64_t capacity;
    if (!filter->expansion)
        return PERHAPS_ERR_FULL;
    if (__builtin_mul_overflow(foreign_newest(bloom)->capacity, filter->expansion, &capacity))
        return PERHAPS_ERR_LAYERS;
    return append_layer(filter, capacity);
}

/* Appends a layer whose bytes will come, and counts its items; the last one must be full.
 * Returns 0, PERHAPS_ERR_DAMAGED or PERHAPS_ERR_MEMORY. */
static int expect_layer(struct valkeybloom *filter, struct foreign_layer layer,
                        uint64_t block_nbytes)
{
    struct foreign_bloom *bloom = &filter->bloom;
    const size_t n = bloom->body.nblocks;
    if (n && foreign_newest(bloom)->items < foreign_newest(bloom)->capacity)
        return PERHAPS_ERR_DAMAGED; /* an RDB has the items of the last layer only */
    if (!complete_layer(filter, n, &layer, block_nbytes))
        return PERHAPS_ERR_DAMAGED;
    int error = foreign_expect(bloom, layer, block_nbytes);
    bloom->items += error ? 0 : layer.items;
    return error;
}

/* ---- What the form has of its own -------------------------------------------------------- */

static void hash_items(const struct foreign_bloom *bloom, const struct perhaps_key *items,
                       size_t n, struct foreign_hashes *hashes)
{
    uint64_t keys[4];
    memcpy(keys, ((const struct valkeybloom *)bloom)->seed, sizeof keys);
    for (size_t i = 0; i < n; i++) {
        hashes[i].a = siphash13_slice(items[i].bytes, items[i].nbytes, keys);
        hashes[i].b = siphash13_slice(items[i].bytes, items[i].nbytes, keys + 2);
    }
}

static const struct foreign_own own = { .hash = hash_items,
                                        .grow = valkeybloom_grow,
                                        .nbytes = sizeof(struct valkeybloom),
                                        .header_nbytes = BLOCK_HEADER_NBYTES,
                                        .by_prime = true };

/* Returns whether the seed is that which valkey-bloom has built in. */
static bool has_public_seed(const struct valkeybloom *filter)
{
    return !memcmp(filter->seed, public_seed, SEED_NBYTES);
}

static void valkeybloom_info(const void *filter, struct info *info)
{
    const struct valkeybloom *bloom = filter;
    foreign_info(filter, info);
    info->expansion = bloom->expansion ? (long long)bloom->expansion : -1;
    info->fpr_asked = bloom->fpr;
    info->hash = has_public_seed(bloom) ? "siphash 1-3 (public seed: anybody can craft items)"
                                        : "siphash 1-3 (its own seed)";
}

void *valkeybloom_create(const struct valkeybloom_wish *wish, const char **why)
{
    struct valkeybloom *bloom = foreign_make(&own, why);
    if (!bloom)
        return NULL;
    bloom->fpr = wish->fpr;
    bloom->tightening = wish->tightening;
    bloom->expansion = wish->expansion;
    memcpy(bloom->seed, wish->seed, SEED_NBYTES);
    int error = is_sound(bloom) ? append_layer(bloom, wish->capacity) : PERHAPS_ERR_LAYERS;
    if (error)
        *why = error == PERHAPS_ERR_MEMORY ? foreign_no_memory : "ERR could not create filter";
    return foreign_kept(bloom, *why);
}

/* ---- BF.LOAD ----------------------------------------------------------------------------- */

/* A version, and then what Rust's bincode 1 makes of the filter: numbers of 4 and 8 bytes, and
 * strings behind their length. */
struct reader {
    const char *at;
    size_t left;
};

static bool take_from_reader(struct reader *r, void *to, size_t nbytes)
{
    if (r->left < nbytes)
        return false;
    memcpy(to, r->at, nbytes);
    r->at += nbytes;
    r->left -= nbytes;
    return true;
}

/* Takes a layer and its bytes. */
static const char *decode_layer(struct valkeybloom *bloom, struct reader *r)
{
    uint64_t nbytes;
    struct foreign_layer layer = { 0 };
    if (!take_from_reader(r, &nbytes, sizeof nbytes) || nbytes > r->left)
        return bad_dump;
    const char *block = r->at;
    r->at += nbytes;
    r->left -= nbytes;
    if (!take_from_reader(r, &layer.items, sizeof layer.items) ||
        !take_from_reader(r, &layer.capacity, sizeof layer.capacity))
        return bad_dump;
    const char *why;
    int error = expect_layer(bloom, layer, nbytes);
    if (error)
        return error == PERHAPS_ERR_MEMORY ? foreign_no_memory : bad_dump;
    const size_t i = bloom->bloom.body.nblocks - 1;
    const uint64_t end = bloom->bloom.body.blocks[i].begin + nbytes;
    if (body_load(&bloom->bloom.body, end + 1, block, nbytes, &why))
        return foreign_no_memory;
    return has_header(bloom, i) ? NULL : bad_dump;
}

static const char *decode(struct valkeybloom *bloom, struct reader *r)
{
    uint64_t nlayers;
    uint8_t is_random;
    const char *problem = NULL;
    if (!take_from_reader(r, &bloom->expansion, sizeof bloom->expansion) ||
        !take_from_reader(r, &bloom->fpr, sizeof bloom->fpr) ||
        !take_from_reader(r, &bloom->tightening, sizeof bloom->tightening) ||
        !take_from_reader(r, &is_random, sizeof is_random) ||
        !take_from_reader(r, &nlayers, sizeof nlayers) || is_random > 1 || !nlayers ||
        !is_sound(bloom))
        return bad_dump;
    while (!problem && bloom->bloom.body.nblocks < nlayers)
        problem = decode_layer(bloom, r);
    if (!problem && (r->left || is_random == has_public_seed(bloom)))
        problem = bad_dump;
    return problem;
}

void *valkeybloom_decode(const char *bytes, size_t nbytes, const char **why)
{
    struct reader r = { bytes, nbytes };
    uint8_t version;
    *why = bad_dump;
    if (!take_from_reader(&r, &version, sizeof version))
        return NULL;
    *why = "ERR bloom object decoding failed. Unsupported version";
    if (version != ENCODING)
        return NULL;
    struct valkeybloom *bloom = foreign_make(&own, why);
    if (bloom)
        *why = decode(bloom, &r);
    return foreign_kept(bloom, *why);
}

/* ---- SCANDUMP and LOADCHUNK -------------------------------------------------------------- */

/* The other module has no such commands: the header is ours. */
static const char magic[8] = { 'v', 'a', 'l', 'k', 'e', 'y', 'B', 'F' };

struct __attribute__((packed)) wire_head {
    char magic[8];
    uint32_t version, expansion, nlayers;
    double fpr, tightening;
    uint8_t seed[SEED_NBYTES];
};

struct __attribute__((packed)) wire_layer {
    uint64_t nbytes, capacity, items;
};

static int valkey_dump(const void *filter, uint64_t position, struct dump *piece)
{
    const struct valkeybloom *bloom = filter;
    const size_t n = bloom->bloom.body.nblocks;
    if (position)
        return body_dump(&bloom->bloom.body, position, piece);
    struct wire_head head = { .version = ENCODING,
                              .expansion = bloom->expansion,
                              .nlayers = (uint32_t)n,
                              .fpr = bloom->fpr,
                              .tightening = bloom->tightening };
    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.seed, bloom->seed, SEED_NBYTES);
    *piece = (struct dump){ .next = 1, .nbytes = sizeof head + n * sizeof(struct wire_layer) };
    char *bytes = piece->memory = memory_take(piece->nbytes);
    if (!bytes)
        return PERHAPS_ERR_MEMORY;
    piece->bytes = bytes;
    memcpy(bytes, &head, sizeof head);
    for (size_t i = 0; i < n; i++) {
        const struct wire_layer layer = { bloom->bloom.body.blocks[i].nbytes,
                                          bloom->bloom.layers[i].capacity,
                                          bloom->bloom.layers[i].items };
        memcpy(bytes + sizeof head + i * sizeof layer, &layer, sizeof layer);
    }
    return 0;
}

static bool valkey_is_header(const char *bytes, size_t nbytes)
{
    struct wire_head head;
    if (nbytes <= sizeof head || memcmp(bytes, magic, sizeof magic) != 0)
        return false;
    memcpy(&head, bytes, sizeof head);
    return nbytes - sizeof head == head.nlayers * sizeof(struct wire_layer);
}

static const char *decode_header(struct valkeybloom *bloom, const char *bytes)
{
    struct wire_head head;
    int error = 0;
    memcpy(&head, bytes, sizeof head);
    bloom->expansion = head.expansion;
    bloom->fpr = head.fpr;
    bloom->tightening = head.tightening;
    memcpy(bloom->seed, head.seed, SEED_NBYTES);
    if (head.version != ENCODING)
        return later;
    if (!is_sound(bloom))
        return foreign_bad_data;
    for (size_t i = 0; !error && i < head.nlayers; i++) {
        struct wire_layer wire;
        memcpy(&wire, bytes + sizeof head + i * sizeof wire, sizeof wire);
        const struct foreign_layer layer = { .capacity = wire.capacity, .items = wire.items };
        error = expect_layer(bloom, layer, wire.nbytes);
    }
    return !error ? NULL : error == PERHAPS_ERR_MEMORY ? foreign_no_memory : foreign_bad_data;
}

static void *valkey_begin_load(const char *bytes, size_t nbytes, const char **why)
{
    *why = foreign_bad_data;
    if (!valkey_is_header(bytes, nbytes))
        return NULL;
    struct valkeybloom *bloom = foreign_make(&own, why);
    if (bloom)
        *why = decode_header(bloom, bytes);
    return foreign_kept(bloom, *why);
}

/* The headers of blocks say nothing that the first piece does not; whatever came in their place
 * is written over. */
static int valkey_load(void *filter, uint64_t position, const char *bytes, size_t nbytes,
                       const char **why)
{
    struct valkeybloom *bloom = filter;
    int error = body_load(&bloom->bloom.body, position, bytes, nbytes, why);
    for (size_t i = 0;
         !error && body_is_whole(&bloom->bloom.body) && i < bloom->bloom.body.nblocks; i++)
        write_header(bloom, i);
    return error;
}

static void valkey_digest(RedisModuleDigest *digest, const void *filter)
{
    blocks_digest(digest, &valkey_bloom, filter);
}

/* ---- RDB --------------------------------------------------------------------------------- */

static void valkey_save(RedisModuleIO *rdb, const void *filter)
{
    const struct valkeybloom *bloom = filter;
    const bool is_whole = body_is_whole(&bloom->bloom.body);
    const size_t n = bloom->bloom.body.nblocks;
    server.SaveUnsigned(rdb, is_whole ? n : 0);
    server.SaveUnsigned(rdb, bloom->expansion);
    server.SaveDouble(rdb, bloom->fpr);
    server.SaveDouble(rdb, bloom->tightening);
    server.SaveUnsigned(rdb, !has_public_seed(bloom));
    if (!is_whole) {
        part_save(rdb, &valkey_bloom, filter);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        body_save_block(rdb, &bloom->bloom.body.blocks[i]);
        server.SaveUnsigned(rdb, bloom->bloom.layers[i].capacity);
    }
    server.SaveUnsigned(rdb, bloom->bloom.layers[n - 1].items);
}

static const char *read_layer(struct foreign_bloom *bloom, RedisModuleIO *rdb, bool is_last)
{
    struct valkeybloom *filter = (struct valkeybloom *)bloom;
    uint64_t nbytes;
    if (!foreign_read_block(bloom, rdb, &nbytes))
        return foreign_bad_data;
    const size_t i = bloom->body.nblocks - 1;
    struct foreign_layer *layer = &bloom->layers[i];
    layer->capacity = server.LoadUnsigned(rdb);
    layer->items = is_last ? server.LoadUnsigned(rdb) : layer->capacity;
    if (server.IsIOError(rdb) || !complete_layer(filter, i, layer, nbytes) ||
        !has_header(filter, i))
        return foreign_bad_data;
    bloom->items += layer->items;
    return NULL;
}

static void *valkey_read(RedisModuleIO *rdb, int encoding)
{
    if (encoding != ENCODING) {
        rdb_refuse(rdb, later);
        return NULL;
    }
    struct valkeybloom numbers = { .bloom = { .own = &own } }, *bloom = NULL;
    const char *why = foreign_bad_data;
    const uint64_t nlayers = server.LoadUnsigned(rdb), expansion = server.LoadUnsigned(rdb);
    numbers.fpr = server.LoadDouble(rdb);
    numbers.tightening = server.LoadDouble(rdb);
    const uint64_t is_random = server.LoadUnsigned(rdb);
    numbers.expansion = (uint32_t)expansion;
    if (server.IsIOError(rdb) || expansion > UINT32_MAX || is_random > 1)
        ;
    else if (!nlayers)
        bloom = part_read(rdb, &valkey_bloom, &why);
    else if (is_sound(&numbers))
        bloom = foreign_read(rdb, &numbers.bloom, nlayers, read_layer, &why);
    if (bloom && nlayers && is_random == has_public_seed(bloom))
        bloom = foreign_kept(bloom, why = foreign_bad_data);
    if (!bloom)
        rdb_refuse(rdb, why);
    return bloom;
}

struct form valkey_bloom = {
    .type_name = "bloomfltr",
    .encoding = ENCODING,
    .family = FAMILY_BLOOM,
    .add = foreign_add,
    .contains = foreign_contains,
    .info = valkeybloom_info,
    .layer = foreign_layer,
    .items = foreign_items,
    .is_complete = blocks_are_complete,
    .dump = valkey_dump,
    .is_header = valkey_is_header,
    .begin_load = valkey_begin_load,
    .load = valkey_load,
    .read = valkey_read,
    .save = valkey_save,
    .memory_nbytes = foreign_memory_nbytes,
    .digest = valkey_digest,
    .release = foreign_release,
    .copy = foreign_copy,
    .defrag = foreign_defrag,
};
