/* valkeybloom_bytes.c - Bloom filters of valkey-bloom as bytes: BF.LOAD, SCANDUMP and
 * LOADCHUNK, and the RDB. */
#include <string.h>

#include "memory.h"
#include "valkeybloom.h"

enum { ENCODING = VALKEYBLOOM_ENCODING, SEED_NBYTES = VALKEYBLOOM_SEED_NBYTES };

static const char bad_data[] = "ERR received bad data";
static const char bad_dump[] = "ERR bloom object decoding failed";
static const char no_memory[] = "ERR Insufficient memory to create filter";
static const char later[] = "ERR this filter is of another version of valkey-bloom";

/* Returns a filter if nothing is wrong with it; else releases it and returns NULL. */
static void *kept(struct valkeybloom *bloom, const char *why)
{
    if (!why)
        return bloom;
    if (bloom)
        valkeybloom_release(bloom);
    return NULL;
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
    struct valkeybloom_layer layer;
    if (!take_from_reader(r, &nbytes, sizeof nbytes) || nbytes > r->left)
        return bad_dump;
    const char *block = r->at;
    r->at += nbytes;
    r->left -= nbytes;
    if (!take_from_reader(r, &layer.items, sizeof layer.items) ||
        !take_from_reader(r, &layer.capacity, sizeof layer.capacity))
        return bad_dump;
    const char *why;
    int error = valkeybloom_expect_layer(bloom, layer, nbytes);
    if (error)
        return error == PERHAPS_ERR_MEMORY ? no_memory : bad_dump;
    const size_t i = bloom->body.nblocks - 1;
    const uint64_t end = bloom->body.blocks[i].begin + nbytes;
    if (body_load(&bloom->body, end + 1, block, nbytes, &why))
        return no_memory;
    return valkeybloom_has_header(bloom, i) ? NULL : bad_dump;
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
        !valkeybloom_is_sound(bloom))
        return bad_dump;
    while (!problem && bloom->body.nblocks < nlayers)
        problem = decode_layer(bloom, r);
    if (!problem && (r->left || is_random == valkeybloom_has_public_seed(bloom)))
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
    struct valkeybloom *bloom = memory_take(sizeof *bloom);
    *why = bloom ? decode(bloom, &r) : no_memory;
    return kept(bloom, *why);
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
    const size_t n = bloom->body.nblocks;
    if (position)
        return body_dump(&bloom->body, position, piece);
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
        const struct wire_layer layer = { bloom->body.blocks[i].nbytes,
                                          bloom->layers[i].capacity, bloom->layers[i].items };
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
    if (!valkeybloom_is_sound(bloom))
        return bad_data;
    for (size_t i = 0; !error && i < head.nlayers; i++) {
        struct wire_layer wire;
        memcpy(&wire, bytes + sizeof head + i * sizeof wire, sizeof wire);
        const struct valkeybloom_layer layer = { .capacity = wire.capacity,
                                                 .items = wire.items };
        error = valkeybloom_expect_layer(bloom, layer, wire.nbytes);
    }
    return !error ? NULL : error == PERHAPS_ERR_MEMORY ? no_memory : bad_data;
}

static void *valkey_begin_load(const char *bytes, size_t nbytes, const char **why)
{
    *why = bad_data;
    if (!valkey_is_header(bytes, nbytes))
        return NULL;
    struct valkeybloom *bloom = memory_take(sizeof *bloom);
    *why = bloom ? decode_header(bloom, bytes) : no_memory;
    return kept(bloom, *why);
}

/* The headers of blocks say nothing that the first piece does not; whatever came in their place
 * is written over. */
static int valkey_load(void *filter, uint64_t position, const char *bytes, size_t nbytes,
                       const char **why)
{
    struct valkeybloom *bloom = filter;
    int error = body_load(&bloom->body, position, bytes, nbytes, why);
    for (size_t i = 0; !error && body_is_whole(&bloom->body) && i < bloom->body.nblocks; i++)
        valkeybloom_write_header(bloom, i);
    return error;
}

static void valkey_digest(RedisModuleDigest *digest, const void *filter)
{
    struct dump piece;
    if (!valkey_dump(filter, 0, &piece))
        server.DigestAddStringBuffer(digest, piece.bytes, piece.nbytes);
    memory_give(piece.memory);
    body_digest(digest, &((const struct valkeybloom *)filter)->body);
}

/* ---- RDB --------------------------------------------------------------------------------- */

static void valkey_save(RedisModuleIO *rdb, const void *filter)
{
    const struct valkeybloom *bloom = filter;
    const bool is_whole = body_is_whole(&bloom->body);
    const size_t n = bloom->body.nblocks;
    server.SaveUnsigned(rdb, is_whole ? n : 0);
    server.SaveUnsigned(rdb, bloom->expansion);
    server.SaveDouble(rdb, bloom->fpr);
    server.SaveDouble(rdb, bloom->tightening);
    server.SaveUnsigned(rdb, !valkeybloom_has_public_seed(bloom));
    if (!is_whole) {
        part_save(rdb, &valkey_bloom, filter);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        body_save_block(rdb, &bloom->body.blocks[i]);
        server.SaveUnsigned(rdb, bloom->layers[i].capacity);
    }
    server.SaveUnsigned(rdb, bloom->layers[n - 1].items);
}

/* Reads a layer and appends it.  Returns NULL, or why it is refused. */
static const char *read_layer(struct valkeybloom *bloom, RedisModuleIO *rdb, bool is_last)
{
    uint64_t nbytes;
    if (valkeybloom_make_room(bloom) || !body_read_block(&bloom->body, rdb, &nbytes))
        return bad_data;
    struct valkeybloom_layer *layer = &bloom->layers[bloom->body.nblocks - 1];
    *layer = (struct valkeybloom_layer){ .capacity = server.LoadUnsigned(rdb) };
    layer->items = is_last ? server.LoadUnsigned(rdb) : layer->capacity;
    if (server.IsIOError(rdb) || !valkeybloom_complete_layer(bloom, layer, nbytes) ||
        !valkeybloom_has_header(bloom, bloom->body.nblocks - 1))
        return bad_data;
    bloom->items += layer->items;
    return NULL;
}

/* Reads the layers of a filter.  Returns NULL and sets *why if one is refused. */
static struct valkeybloom *read_layers(RedisModuleIO *rdb, const struct valkeybloom *head,
                                       uint64_t nlayers, bool is_random, const char **why)
{
    struct valkeybloom *bloom = memory_take(sizeof *bloom);
    *why = no_memory;
    if (!bloom)
        return NULL;
    *bloom = *head;
    *why = valkeybloom_is_sound(bloom) ? NULL : bad_data;
    while (!*why && bloom->body.nblocks < nlayers)
        *why = read_layer(bloom, rdb, bloom->body.nblocks == nlayers - 1);
    if (!*why && is_random == valkeybloom_has_public_seed(bloom))
        *why = bad_data;
    if (!*why)
        return bloom;
    valkeybloom_release(bloom);
    return NULL;
}

static void *valkey_read(RedisModuleIO *rdb, int encoding)
{
    if (encoding != ENCODING) {
        rdb_refuse(rdb, later);
        return NULL;
    }
    struct valkeybloom head = { 0 }, *bloom = NULL;
    const char *why = bad_data;
    const uint64_t nlayers = server.LoadUnsigned(rdb), expansion = server.LoadUnsigned(rdb);
    head.fpr = server.LoadDouble(rdb);
    head.tightening = server.LoadDouble(rdb);
    const uint64_t is_random = server.LoadUnsigned(rdb);
    head.expansion = (uint32_t)expansion;
    if (server.IsIOError(rdb) || expansion > UINT32_MAX || is_random > 1)
        ;
    else if (nlayers)
        bloom = read_layers(rdb, &head, nlayers, is_random, &why);
    else
        bloom = part_read(rdb, &valkey_bloom, &why);
    if (!bloom)
        rdb_refuse(rdb, why);
    return bloom;
}

struct form valkey_bloom = {
    .type_name = "bloomfltr",
    .encoding = VALKEYBLOOM_ENCODING,
    .family = FAMILY_BLOOM,
    .add = valkeybloom_add,
    .contains = valkeybloom_contains,
    .info = valkeybloom_info,
    .layer = valkeybloom_layer,
    .items = valkeybloom_items,
    .is_complete = valkeybloom_is_complete,
    .dump = valkey_dump,
    .is_header = valkey_is_header,
    .begin_load = valkey_begin_load,
    .load = valkey_load,
    .read = valkey_read,
    .save = valkey_save,
    .memory_nbytes = valkeybloom_memory_nbytes,
    .digest = valkey_digest,
    .release = valkeybloom_release,
    .copy = valkeybloom_copy,
    .defrag = valkeybloom_defrag,
};
