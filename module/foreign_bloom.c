/* foreign_bloom.c - what the Bloom filters of RedisBloom and of valkey-bloom do alike. */
#include "foreign_bloom.h"

#include <math.h>
#include <string.h>

#include "memory.h"

#define PRIME         UINT64_C(0xFFFFFFFFFFFFFFC5) /* the largest below 2^64 */
#define SAMPLE_NBYTES (UINT64_C(1) << 20)          /* what info() counts the bits of */

const char foreign_bad_data[] = "ERR received bad data";
const char foreign_no_memory[] = "ERR Insufficient memory to create filter";

/* ---- Bits ------------------------------------------------------------------------------- */

/* What is done at a bit, and how it follows from a + i * b.  Both are constants wherever the
 * loop below is inlined, so that they are not asked for at each bit.  And a function that only
 * prefetches must be inlined: gcc drops the call of one that does nothing else. */
enum deed { PREFETCH, TEST, SET };
enum rule { BY_MASK, BY_REMAINDER, BY_PRIME };

#define INLINED static inline __attribute__((always_inline))

INLINED uint64_t bit_of(const struct foreign_layer *layer, const struct foreign_hashes *h,
                        uint32_t i, uint64_t sum, enum rule rule)
{
    if (rule == BY_MASK)
        return sum & layer->mask;
    if (rule == BY_PRIME)
        sum = i == 0 ? h->a : i == 1 ? h->b : sum % PRIME;
    return sum % layer->bits;
}

/* Does it at the first n bits of an item.  Returns false where a tested bit is clear. */
INLINED bool walk(const struct foreign_layer *layer, uint8_t *bytes,
                  const struct foreign_hashes *h, uint32_t n, enum deed deed, enum rule rule)
{
    uint64_t sum = h->a;
    for (uint32_t i = 0; i < n; i++, sum += h->b) {
        const uint64_t bit = bit_of(layer, h, i, sum, rule);
        if (deed == PREFETCH)
            __builtin_prefetch(bytes + bit / 8);
        else if (deed == SET)
            bytes[bit / 8] |= (uint8_t)(1U << bit % 8);
        else if (!(bytes[bit / 8] >> bit % 8 & 1))
            return false;
    }
    return true;
}

/* Does it at no more than 'most' bits of an item in a layer. */
INLINED bool walk_in_layer(const struct foreign_bloom *bloom, size_t index,
                           const struct foreign_hashes *h, uint32_t most, enum deed deed)
{
    const struct foreign_layer *layer = &bloom->layers[index];
    const uint32_t n = layer->hashes < most ? layer->hashes : most;
    uint8_t *bytes = bloom->body.blocks[index].bytes; /* only those by a prime have a header */
    if (layer->mask)
        return walk(layer, bytes, h, n, deed, BY_MASK);
    if (!bloom->own->by_prime)
        return walk(layer, bytes, h, n, deed, BY_REMAINDER);
    return walk(layer, bytes + bloom->own->header_nbytes, h, n, deed, BY_PRIME);
}

/* ---- Add and ask ------------------------------------------------------------------------ */

/* Hashes a batch of items, and prefetches what they need: in a full layer a bit in two is set,
 * so that an item which is not there is tested by two bits on average; the newest layer is less
 * full, and gets the new items. */
static void hash_batch(const struct foreign_bloom *bloom, const struct perhaps_key *items,
                       size_t n, struct foreign_hashes hashes[FOREIGN_BATCH])
{
    const size_t layers = bloom->body.nblocks, ahead = layers < 4 ? layers : 4;
    bloom->own->hash(bloom, items, n, hashes);
    for (size_t i = 0; n > 1 && i < n; i++)
        for (size_t j = 0; j < ahead; j++)
            walk_in_layer(bloom, layers - 1 - j, &hashes[i], j ? 2 : 8, PREFETCH);
}

INLINED bool is_in(const struct foreign_bloom *bloom, const struct foreign_hashes *h)
{
    for (size_t i = bloom->body.nblocks; i-- > 0;)
        if (walk_in_layer(bloom, i, h, UINT32_MAX, TEST))
            return true;
    return false;
}

static int add_hashed(struct foreign_bloom *bloom, const struct foreign_hashes *h,
                      bool *was_present)
{
    *was_present = is_in(bloom, h);
    if (*was_present)
        return 0;
    const struct foreign_layer *newest = foreign_newest(bloom);
    int error = newest->items >= newest->capacity ? bloom->own->grow(bloom) : 0;
    if (error)
        return error;
    walk_in_layer(bloom, bloom->body.nblocks - 1, h, UINT32_MAX, SET);
    foreign_newest(bloom)->items++;
    bloom->items++;
    return 0;
}

int foreign_add(void *filter, const struct perhaps_key *items, size_t n, bool unless_present,
                bool *was_present, size_t *done)
{
    struct foreign_bloom *bloom = filter;
    struct foreign_hashes hashes[FOREIGN_BATCH];
    int error = body_is_whole(&bloom->body) ? 0 : PERHAPS_ERR_UNSUPPORTED;
    (void)unless_present; /* a Bloom filter has no copies */
    for (*done = 0; !error && *done < n;) {
        const size_t left = n - *done, some = left < FOREIGN_BATCH ? left : FOREIGN_BATCH;
        hash_batch(bloom, items + *done, some, hashes);
        for (size_t i = 0; !error && i < some; i++) {
            error = add_hashed(bloom, &hashes[i], &was_present[*done]);
            *done += !error;
        }
    }
    return error;
}

/* Of an incomplete filter it says "perhaps". */
void foreign_contains(const void *filter, const struct perhaps_key *items, size_t n,
                      uint64_t now_ms, bool *present)
{
    const struct foreign_bloom *bloom = filter;
    const bool is_whole = body_is_whole(&bloom->body);
    struct foreign_hashes hashes[FOREIGN_BATCH];
    (void)now_ms;
    for (size_t some; n > 0; items += some, present += some, n -= some) {
        some = n < FOREIGN_BATCH ? n : FOREIGN_BATCH;
        if (is_whole)
            hash_batch(bloom, items, some, hashes);
        for (size_t i = 0; i < some; i++)
            present[i] = !is_whole || is_in(bloom, &hashes[i]);
    }
}

/* ---- Tell ------------------------------------------------------------------------------- */

uint64_t foreign_items(const void *filter)
{
    return ((const struct foreign_bloom *)filter)->items;
}

size_t foreign_memory_nbytes(const void *filter)
{
    const struct foreign_bloom *bloom = filter;
    return bloom->own->nbytes + bloom->room * sizeof *bloom->layers + bloom->body.memory_nbytes;
}

/* Returns the share of set bits in a layer, by counting its first 'most_nbytes'. */
static double fill_of(const struct foreign_bloom *bloom, size_t i, uint64_t most_nbytes)
{
    const struct foreign_layer *layer = &bloom->layers[i];
    const size_t header_nbytes = bloom->own->header_nbytes;
    const uint64_t nbytes = bloom->body.blocks[i].nbytes - header_nbytes;
    return share_of_ones(bloom->body.blocks[i].bytes + header_nbytes,
                         nbytes < most_nbytes ? nbytes : most_nbytes,
                         layer->mask ? layer->mask + 1 : layer->bits);
}

void foreign_info(const struct foreign_bloom *bloom, struct info *info)
{
    const size_t n = bloom->body.nblocks;
    double no = 1;
    *info = (struct info){ .size_nbytes = foreign_memory_nbytes(bloom),
                           .filters = n,
                           .items = bloom->items };
    for (size_t i = 0; i < n; i++) {
        info->capacity += bloom->layers[i].capacity;
        if (bloom->body.blocks[i].bytes)
            no *= 1 - pow(fill_of(bloom, i, SAMPLE_NBYTES / n + 1), bloom->layers[i].hashes);
    }
    info->fpr_now = 1 - no;
    if (bloom->items)
        info->bits_per_item = 8 * (double)bloom->body.nbytes / (double)bloom->items;
}

bool foreign_layer(const void *filter, size_t index, struct layer *layer)
{
    const struct foreign_bloom *bloom = filter;
    if (index >= bloom->body.nblocks)
        return false;
    const struct foreign_layer *one = &bloom->layers[index];
    *layer =
        (struct layer){ .nbytes = bloom->body.blocks[index].nbytes - bloom->own->header_nbytes,
                        .bits = one->bits,
                        .capacity = one->capacity,
                        .items = one->items,
                        .hashes = one->hashes,
                        .ratio = one->fpr };
    return true;
}

/* ---- Make and release ------------------------------------------------------------------- */

void *foreign_make(const struct foreign_own *own, const char **why)
{
    struct foreign_bloom *bloom = memory_take(own->nbytes);
    *why = bloom ? NULL : foreign_no_memory;
    if (bloom)
        bloom->own = own;
    return bloom;
}

/* Some have a seed, which is nobody else's. */
void foreign_release(void *filter)
{
    struct foreign_bloom *bloom = filter;
    body_release(&bloom->body);
    memory_give(bloom->layers);
    explicit_bzero(bloom, bloom->own->nbytes);
    memory_give(bloom);
}

void *foreign_kept(void *filter, const char *why)
{
    if (!why)
        return filter;
    if (filter)
        foreign_release(filter);
    return NULL;
}

void *foreign_copy(const void *filter)
{
    const struct foreign_bloom *from = filter;
    struct foreign_bloom *bloom = memory_take(from->own->nbytes);
    if (!bloom)
        return NULL;
    memcpy(bloom, from, from->own->nbytes);
    bloom->body = (struct body){ 0 };
    bloom->layers = memory_take(from->room * sizeof *from->layers);
    if (!bloom->layers || body_copy(&bloom->body, &from->body)) {
        foreign_release(bloom);
        return NULL;
    }
    memcpy(bloom->layers, from->layers, from->body.nblocks * sizeof *from->layers);
    return bloom;
}

void foreign_defrag(RedisModuleDefragCtx *ctx, void **filter)
{
    object_defrag(ctx, filter);
    struct foreign_bloom *bloom = *filter;
    void *layers = bloom->layers;
    object_defrag(ctx, &layers);
    bloom->layers = layers;
    body_defrag(ctx, &bloom->body);
}

/* ---- Layers ----------------------------------------------------------------------------- */

static int make_room(struct foreign_bloom *bloom)
{
    void *layers = bloom->layers;
    int error =
        array_make_room(&layers, bloom->body.nblocks, &bloom->room, sizeof *bloom->layers);
    bloom->layers = layers;
    return error;
}

int foreign_append(struct foreign_bloom *bloom, struct foreign_layer layer, uint64_t nbytes)
{
    if (make_room(bloom) || body_append_block(&bloom->body, nbytes))
        return PERHAPS_ERR_MEMORY;
    *foreign_newest(bloom) = layer;
    return 0;
}

int foreign_expect(struct foreign_bloom *bloom, struct foreign_layer layer, uint64_t nbytes)
{
    if (make_room(bloom) || body_expect_block(&bloom->body, nbytes))
        return PERHAPS_ERR_MEMORY;
    *foreign_newest(bloom) = layer;
    return 0;
}

bool foreign_read_block(struct foreign_bloom *bloom, RedisModuleIO *rdb, uint64_t *nbytes)
{
    if (make_room(bloom) || !body_read_block(&bloom->body, rdb, nbytes))
        return false;
    *foreign_newest(bloom) = (struct foreign_layer){ 0 };
    return true;
}

void *foreign_read(RedisModuleIO *rdb, const struct foreign_bloom *numbers, uint64_t nlayers,
                   foreign_read_layer *read_layer, const char **why)
{
    struct foreign_bloom *bloom = foreign_make(numbers->own, why);
    if (bloom)
        memcpy(bloom, numbers, numbers->own->nbytes);
    while (!*why && bloom->body.nblocks < nlayers)
        *why = read_layer(bloom, rdb, bloom->body.nblocks == nlayers - 1);
    return foreign_kept(bloom, *why);
}
