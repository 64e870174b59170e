/* valkeybloom.c - Bloom filters of valkey-bloom, served as they are.
 *
 *     filter = layers, the oldest first, each a Bloom filter for a number of items
 *     a, b   = SipHash-1-3 of an item under the two halves of the seed, the same in all layers
 *     bit i  = a, b, and then (a + i * b) mod 2^64 mod the largest prime below 2^64, for i from
 *              2 on; each mod the bits of the layer
 *     a byte = eight bits, the lowest first
 *
 * An item is there if some layer has all its bits.  Items are added to the newest layer.  When
 * that is full, one for 'expansion' times as many items is appended, with 'tightening' times
 * the fpr.
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

#include "blocks.h"
#include "memory.h"
#include "siphash13.h"

enum {
    BLOCK_VERSION = 1,
    BLOCK_HEADER_NBYTES = 45,
    SEED_NBYTES = VALKEYBLOOM_SEED_NBYTES,
    HASHES_MOST = 1100, /* for the smallest fpr that a double can have: 1075 */
};
#define NBYTES_MOST   (UINT64_C(1) << 50) /* of a layer: they, and the bits, can be counted */
#define LN2           0.693147180559945309417
#define PRIME         UINT64_C(0xFFFFFFFFFFFFFFC5)
#define SAMPLE_NBYTES (UINT64_C(1) << 20) /* what info() counts the bits of */

/* With bloom-use-random-seed no. */
static const uint8_t public_seed[SEED_NBYTES] = {
    89, 15,  245, 34,  234, 120, 17,  218, 167, 20,  216, 9,   59, 62, 123, 217,
    29, 137, 138, 115, 62,  152, 136, 135, 48,  127, 151, 205, 40, 7,  51,  131,
};

static const char no_memory[] = "ERR Insufficient memory to create filter";

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
bool valkeybloom_is_sound(const struct valkeybloom *bloom)
{
    return bloom->fpr > 0 && bloom->fpr < 1 && bloom->tightening > 0 && bloom->tightening < 1;
}

/* All layers before it are full, so that their items are their capacity; the sum of all is
 * replied as a number with a sign. */
bool valkeybloom_complete_layer(const struct valkeybloom *bloom,
                                struct valkeybloom_layer *layer, uint64_t block_nbytes)
{
    if (block_nbytes <= BLOCK_HEADER_NBYTES || block_nbytes > NBYTES_MOST)
        return false;
    if (!layer->capacity || layer->capacity > INT64_MAX - bloom->items ||
        layer->items > layer->capacity)
        return false;
    layer->bits = 8 * (block_nbytes - BLOCK_HEADER_NBYTES);
    const double hashes = hashes_for(layer->bits, layer->capacity);
    layer->hashes = hashes <= HASHES_MOST ? (uint32_t)hashes : 0;
    return layer->hashes > 0;
}

/* Writes the header of a block that has all its bytes. */
void valkeybloom_write_header(const struct valkeybloom *bloom, size_t i)
{
    const uint64_t nbytes = bloom->layers[i].bits / 8;
    uint8_t *header = bloom->body.blocks[i].bytes;
    header[0] = BLOCK_VERSION;
    memcpy(header + 1, &nbytes, sizeof nbytes);
    memcpy(header + 9, &bloom->layers[i].hashes, sizeof bloom->layers[i].hashes);
    memcpy(header + 13, bloom->seed, SEED_NBYTES);
}

/* Returns whether a block has the header that it should have; the first one says the seed. */
bool valkeybloom_has_header(struct valkeybloom *bloom, size_t i)
{
    uint8_t header[BLOCK_HEADER_NBYTES];
    memcpy(header, bloom->body.blocks[i].bytes, sizeof header);
    if (i == 0)
        memcpy(bloom->seed, header + 13, SEED_NBYTES);
    valkeybloom_write_header(bloom, i);
    return !memcmp(header, bloom->body.blocks[i].bytes, sizeof header);
}

int valkeybloom_make_room(struct valkeybloom *bloom)
{
    void *layers = bloom->layers;
    int error =
        array_make_room(&layers, bloom->body.nblocks, &bloom->room, sizeof *bloom->layers);
    bloom->layers = layers;
    return error;
}

/* Appends an empty layer.  Returns 0, PERHAPS_ERR_LAYERS or _MEMORY. */
static int append_layer(struct valkeybloom *bloom, uint64_t capacity)
{
    const double fpr = fpr_of(bloom, bloom->body.nblocks);
    if (!(fpr > DBL_MIN))
        return PERHAPS_ERR_LAYERS;
    const double nbytes = ceil((double)capacity * log(fpr) / (-8 * LN2 * LN2));
    if (!(nbytes < (double)(NBYTES_MOST - BLOCK_HEADER_NBYTES)))
        return PERHAPS_ERR_LAYERS;
    const uint64_t block_nbytes = BLOCK_HEADER_NBYTES + (uint64_t)nbytes;
    struct valkeybloom_layer layer = { .capacity = capacity };
    if (!valkeybloom_complete_layer(bloom, &layer, block_nbytes))
        return PERHAPS_ERR_LAYERS;
    if (valkeybloom_make_room(bloom) || body_append_block(&bloom->body, block_nbytes))
        return PERHAPS_ERR_MEMORY;
    bloom->layers[bloom->body.nblocks - 1] = layer;
    valkeybloom_write_header(bloom, bloom->body.nblocks - 1);
    return 0;
}

static int grow_layers(struct valkeybloom *bloom)
{
    uint64_t capacity;
    if (!bloom->expansion)
        return PERHAPS_ERR_FULL;
    if (__builtin_mul_overflow(bloom->layers[bloom->body.nblocks - 1].capacity,
                               bloom->expansion, &capacity))
        return PERHAPS_ERR_LAYERS;
    return append_layer(bloom, capacity);
}

/* ---- Add and ask ------------------------------------------------------------------------- */

struct hashed {
    uint64_t a, b;
};

static struct hashed hash_item(const struct valkeybloom *bloom, const struct perhaps_key *item)
{
    uint64_t keys[4];
    memcpy(keys, bloom->seed, sizeof keys);
    return (struct hashed){ siphash13_slice(item->bytes, item->nbytes, keys),
                            siphash13_slice(item->bytes, item->nbytes, keys + 2) };
}

static inline uint64_t bit_of(const struct valkeybloom_layer *layer, const struct hashed *h,
                              uint32_t i)
{
    const uint64_t hash = i == 0 ? h->a : i == 1 ? h->b : (h->a + i * h->b) % PRIME;
    return hash % layer->bits;
}

static const uint8_t *bits_at(const struct valkeybloom *bloom, size_t i)
{
    return bloom->body.blocks[i].bytes + BLOCK_HEADER_NBYTES;
}

/* Hashes a batch of items, and prefetches what they need: in a full layer an item that is not
 * there is tested by two bits on average; the newest one is less full, and gets the new
 * items. */
static void hash_batch(const struct valkeybloom *bloom, const struct perhaps_key *items,
                       size_t n, struct hashed hashed[FOREIGN_BATCH])
{
    const size_t layers = bloom->body.nblocks, ahead = layers < 4 ? layers : 4;
    for (size_t i = 0; i < n; i++)
        hashed[i] = hash_item(bloom, &items[i]);
    for (size_t i = 0; n > 1 && i < n; i++)
        for (size_t j = 0; j < ahead; j++) {
            const struct valkeybloom_layer *layer = &bloom->layers[layers - 1 - j];
            const uint32_t most = j ? 2 : 8, bits = layer->hashes < most ? layer->hashes : most;
            for (uint32_t bit = 0; bit < bits; bit++)
                __builtin_prefetch(bits_at(bloom, layers - 1 - j) +
                                   bit_of(layer, &hashed[i], bit) / 8);
        }
}

static bool is_in_layer(const struct valkeybloom *bloom, size_t i, const struct hashed *h)
{
    const struct valkeybloom_layer *layer = &bloom->layers[i];
    const uint8_t *bytes = bits_at(bloom, i);
    for (uint32_t n = 0; n < layer->hashes; n++) {
        const uint64_t bit = bit_of(layer, h, n);
        if (!(bytes[bit / 8] >> bit % 8 & 1))
            return false;
    }
    return true;
}

static bool is_in(const struct valkeybloom *bloom, const struct hashed *h)
{
    for (size_t i = bloom->body.nblocks; i-- > 0;)
        if (is_in_layer(bloom, i, h))
            return true;
    return false;
}

static int valkey_add_one(struct valkeybloom *bloom, const struct hashed *h, bool *was_present)
{
    const struct valkeybloom_layer *full = &bloom->layers[bloom->body.nblocks - 1];
    *was_present = is_in(bloom, h);
    if (*was_present)
        return 0;
    int error = full->items >= full->capacity ? grow_layers(bloom) : 0;
    if (error)
        return error;
    const size_t newest = bloom->body.nblocks - 1;
    struct valkeybloom_layer *layer = &bloom->layers[newest];
    uint8_t *bytes = bloom->body.blocks[newest].bytes + BLOCK_HEADER_NBYTES;
    for (uint32_t n = 0; n < layer->hashes; n++) {
        const uint64_t bit = bit_of(layer, h, n);
        bytes[bit / 8] |= (uint8_t)(1U << bit % 8);
    }
    layer->items++;
    bloom->items++;
    return 0;
}

int valkeybloom_add(void *filter, const struct perhaps_key *items, size_t n,
                    bool unless_present, bool *was_present, size_t *done)
{
    struct valkeybloom *bloom = filter;
    struct hashed hashed[FOREIGN_BATCH];
    int error = body_is_whole(&bloom->body) ? 0 : PERHAPS_ERR_UNSUPPORTED;
    (void)unless_present; /* a Bloom filter has no copies */
    for (*done = 0; !error && *done < n;) {
        const size_t left = n - *done, some = left < FOREIGN_BATCH ? left : FOREIGN_BATCH;
        hash_batch(bloom, items + *done, some, hashed);
        for (size_t i = 0; !error && i < some; i++) {
            error = valkey_add_one(bloom, &hashed[i], &was_present[*done]);
            *done += !error;
        }
    }
    return error;
}

/* Of an incomplete filter it says "perhaps". */
void valkeybloom_contains(const void *filter, const struct perhaps_key *items, size_t n,
                          uint64_t now_ms, bool *present)
{
    const struct valkeybloom *bloom = filter;
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

/* ---- Tell -------------------------------------------------------------------------------- */

bool valkeybloom_has_public_seed(const struct valkeybloom *bloom)
{
    return !memcmp(bloom->seed, public_seed, SEED_NBYTES);
}

uint64_t valkeybloom_items(const void *filter)
{
    return ((const struct valkeybloom *)filter)->items;
}

bool valkeybloom_is_complete(const void *filter)
{
    return body_is_whole(&((const struct valkeybloom *)filter)->body);
}

size_t valkeybloom_memory_nbytes(const void *filter)
{
    const struct valkeybloom *bloom = filter;
    return sizeof *bloom + bloom->room * sizeof *bloom->layers + bloom->body.memory_nbytes;
}

void valkeybloom_info(const void *filter, struct info *info)
{
    const struct valkeybloom *bloom = filter;
    const size_t n = bloom->body.nblocks;
    double no = 1;
    *info = (struct info){ .size_nbytes = valkeybloom_memory_nbytes(bloom),
                           .filters = n,
                           .items = bloom->items,
                           .expansion = bloom->expansion ? (long long)bloom->expansion : -1,
                           .fpr_asked = bloom->fpr,
                           .hash = valkeybloom_has_public_seed(bloom)
                                       ? "siphash 1-3 (public seed: anybody can craft items)"
                                       : "siphash 1-3 (its own seed)" };
    for (size_t i = 0; i < n; i++) {
        const struct valkeybloom_layer *layer = &bloom->layers[i];
        const uint64_t nbytes = layer->bits / 8, most = SAMPLE_NBYTES / n + 1;
        info->capacity += layer->capacity;
        if (bloom->body.blocks[i].bytes)
            no *= 1 - pow(share_of_ones(bits_at(bloom, i), nbytes < most ? nbytes : most,
                                        layer->bits),
                          layer->hashes);
    }
    info->fpr_now = 1 - no;
    if (bloom->items)
        info->bits_per_item = 8 * (double)bloom->body.nbytes / (double)bloom->items;
}

bool valkeybloom_layer(const void *filter, size_t index, struct layer *layer)
{
    const struct valkeybloom *bloom = filter;
    if (index >= bloom->body.nblocks)
        return false;
    const struct valkeybloom_layer *one = &bloom->layers[index];
    *layer = (struct layer){ .nbytes = one->bits / 8,
                             .bits = one->bits,
                             .capacity = one->capacity,
                             .items = one->items,
                             .hashes = one->hashes,
                             .ratio = fpr_of(bloom, index) };
    return true;
}

/* ---- Make and release -------------------------------------------------------------------- */

void valkeybloom_release(void *filter)
{
    struct valkeybloom *bloom = filter;
    body_release(&bloom->body);
    memory_give(bloom->layers);
    explicit_bzero(bloom->seed, sizeof bloom->seed);
    memory_give(bloom);
}

void *valkeybloom_create(const struct valkeybloom_wish *wish, const char **why)
{
    struct valkeybloom *bloom = memory_take(sizeof *bloom);
    *why = no_memory;
    if (!bloom)
        return NULL;
    bloom->fpr = wish->fpr;
    bloom->tightening = wish->tightening;
    bloom->expansion = wish->expansion;
    memcpy(bloom->seed, wish->seed, SEED_NBYTES);
    int error =
        valkeybloom_is_sound(bloom) ? append_layer(bloom, wish->capacity) : PERHAPS_ERR_LAYERS;
    if (!error)
        return bloom;
    if (error != PERHAPS_ERR_MEMORY)
        *why = "ERR could not create filter";
    valkeybloom_release(bloom);
    return NULL;
}

void *valkeybloom_copy(const void *filter)
{
    const struct valkeybloom *from = filter;
    struct valkeybloom *bloom = memory_take(sizeof *bloom);
    if (!bloom)
        return NULL;
    *bloom = *from;
    bloom->body = (struct body){ 0 };
    bloom->layers = memory_take(from->room * sizeof *from->layers);
    if (!bloom->layers || body_copy(&bloom->body, &from->body)) {
        valkeybloom_release(bloom);
        return NULL;
    }
    memcpy(bloom->layers, from->layers, from->body.nblocks * sizeof *from->layers);
    return bloom;
}

void valkeybloom_defrag(RedisModuleDefragCtx *ctx, void **filter)
{
    object_defrag(ctx, filter);
    struct valkeybloom *bloom = *filter;
    void *layers = bloom->layers;
    object_defrag(ctx, &layers);
    bloom->layers = layers;
    body_defrag(ctx, &bloom->body);
}

int valkeybloom_expect_layer(struct valkeybloom *bloom, struct valkeybloom_layer layer,
                             uint64_t block_nbytes)
{
    const size_t n = bloom->body.nblocks;
    if (n && bloom->layers[n - 1].items < bloom->layers[n - 1].capacity)
        return PERHAPS_ERR_DAMAGED; /* an RDB has the items of the last layer only */
    if (!valkeybloom_complete_layer(bloom, &layer, block_nbytes))
        return PERHAPS_ERR_DAMAGED;
    if (valkeybloom_make_room(bloom) || body_expect_block(&bloom->body, block_nbytes))
        return PERHAPS_ERR_MEMORY;
    bloom->layers[n] = layer;
    bloom->items += layer.items;
    return 0;
}
