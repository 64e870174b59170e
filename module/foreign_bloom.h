/* foreign_bloom.h - what the Bloom filters of RedisBloom and of valkey-bloom do alike.
 *
 *     filter = layers, the oldest first, each a Bloom filter for a number of items
 *     a, b   = two hashes of an item, the same in all layers
 *     bit i  = a + i * b, as the form has it, mod the bits of the layer
 *     a byte = eight bits, the lowest first
 *
 * An item is there if some layer has all its bits.  Items are added to the newest layer.  When
 * that has as many as it is for, the form appends a larger one. */
#ifndef FOREIGN_BLOOM_H
#define FOREIGN_BLOOM_H

#include "blocks.h"

struct foreign_layer {
    uint64_t bits;
    uint64_t mask; /* power of two - 1, or 0: take the remainder by 'bits' */
    uint64_t capacity, items;
    double fpr; /* asked for */
    uint32_t hashes;

    /* of RedisBloom */
    double bpe; /* bits for each entry by the fpr */
    uint8_t n2; /* log2 of the bits, or 0 */
};

struct foreign_hashes {
    uint64_t a, b;
};

struct foreign_bloom;

/* What a form has of its own. */
struct foreign_own {
    void (*hash)(const struct foreign_bloom *bloom, const struct perhaps_key *items, size_t n,
                 struct foreign_hashes *hashes);

    /* Appends a layer behind one that is full.  Returns 0; or PERHAPS_ERR_FULL, _LAYERS or
     * _MEMORY, having changed nothing. */
    int (*grow)(struct foreign_bloom *bloom);

    size_t nbytes;        /* of a filter without its memory */
    size_t header_nbytes; /* of a block, before the bits */
    bool by_prime;        /* bit 0 is a and bit 1 is b; the others go mod a prime, too */
};

/* The filters of both forms begin with this, and this with a body. */
struct foreign_bloom {
    struct body body; /* with a block for each layer */
    struct foreign_layer *layers;
    size_t room; /* of the array */
    uint64_t items;
    const struct foreign_own *own;
};

#define FOREIGN_NBYTES_MOST (UINT64_C(1) << 50) /* of a layer: those of all can be counted */
enum { FOREIGN_HASHES_MOST = 1100 }; /* for the smallest fpr that a double can have: 1075 */

extern const char foreign_bad_data[], foreign_no_memory[];

static inline struct foreign_layer *foreign_newest(const struct foreign_bloom *bloom)
{
    return &bloom->layers[bloom->body.nblocks - 1];
}

/* Makes a filter without layers.  Returns NULL and sets *why if there is too little memory. */
void *foreign_make(const struct foreign_own *own, const char **why);

/* Returns a filter if 'why' is NULL: nothing is wrong with it; else releases it and returns
 * NULL.  The filter may be NULL. */
void *foreign_kept(void *filter, const char *why);

/* Appends a layer: with a block of zeros, or with one that LOADCHUNKs fill.  Return 0 or
 * PERHAPS_ERR_MEMORY. */
int foreign_append(struct foreign_bloom *bloom, struct foreign_layer layer, uint64_t nbytes);
int foreign_expect(struct foreign_bloom *bloom, struct foreign_layer layer, uint64_t nbytes);

/* Reads a block from an RDB and appends it, with an empty layer.  Returns whether it could. */
bool foreign_read_block(struct foreign_bloom *bloom, RedisModuleIO *rdb, uint64_t *nbytes);

/* Reads a layer of an RDB and appends it.  Returns NULL, or why it is refused. */
typedef const char *foreign_read_layer(struct foreign_bloom *bloom, RedisModuleIO *rdb,
                                       bool is_last);

/* Makes a filter with these numbers, and reads its layers.  Returns NULL and sets *why if one
 * is refused. */
void *foreign_read(RedisModuleIO *rdb, const struct foreign_bloom *numbers, uint64_t nlayers,
                   foreign_read_layer *read_layer, const char **why);

/* Tells what both forms have. */
void foreign_info(const struct foreign_bloom *bloom, struct info *info);

/* Members of a form (form.h). */
int foreign_add(void *filter, const struct perhaps_key *items, size_t n, bool unless_present,
                bool *was_present, size_t *done);
void foreign_contains(const void *filter, const struct perhaps_key *items, size_t n,
                      uint64_t now_ms, bool *present);
bool foreign_layer(const void *filter, size_t index, struct layer *layer);
uint64_t foreign_items(const void *filter);
size_t foreign_memory_nbytes(const void *filter);
void foreign_release(void *filter);
void *foreign_copy(const void *filter);
void foreign_defrag(RedisModuleDefragCtx *ctx, void **filter);

#endif
