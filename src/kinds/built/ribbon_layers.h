/* ribbon_layers.h - the layers of a ribbon filter, as its loops see them: where a key begins,
 * and where the words of its columns lie. */
#ifndef RIBBON_LAYERS_H
#define RIBBON_LAYERS_H

#include "ribbon.h"

/* A layer of slots, and what a loop computes but once.  The last layer bumps no key. */
struct layer {
    const uint8_t *blocks;
    const uint8_t *thresholds;
    uint64_t slots;
    uint64_t unit_nbytes; /* of a block, or, if rows have several groups, of a stripe */
    unsigned row_bits, fingerprint_bits;
    unsigned stripe; /* 1 << stripe slots */
    unsigned number; /* from 0 on */
    bool bumps;
};

/* Completes a layer that begins at these addresses. */
static LOOP_INLINE struct layer layer_at(const struct body *b, enum ribbon_width width,
                                         unsigned number, const uint8_t *blocks,
                                         const uint8_t *thresholds)
{
    const uint64_t row_bits = width == RIBBON_BYTE ? RIBBON_GROUP : b->geometry.field[ROW_BITS];
    const uint64_t value_bits = width == RIBBON_BYTE ? 0 : b->geometry.field[VALUE_BITS];
    uint64_t slots = number < RIBBON_LAYERS_MOST ? b->geometry.field[SLOTS + number] : 0;
    bool bumps = slots > 0;
    if (!bumps)
        slots = b->geometry.field[LAST_SLOTS];
    unsigned stripe = ribbon_stripe(slots);
    return (struct layer){ .blocks = blocks,
                           .thresholds = thresholds,
                           .slots = slots,
                           .row_bits = (unsigned)row_bits,
                           .fingerprint_bits = (unsigned)(row_bits - value_bits),
                           .stripe = stripe,
                           .unit_nbytes = row_bits << (width < RIBBON_WIDE ? 3 : stripe - 3),
                           .number = number,
                           .bumps = bumps };
}

static LOOP_INLINE struct layer first_layer(const struct body *b, enum ribbon_width width)
{
    return layer_at(b, width, 0, b->bytes, b->table);
}

static LOOP_INLINE struct layer next_layer(const struct body *b, enum ribbon_width width,
                                           const struct layer *layer)
{
    return layer_at(b, width, layer->number + 1,
                    layer->blocks + layer->slots / 8 * layer->row_bits,
                    layer->thresholds + ribbon_thresholds_nbytes(layer->slots));
}

/* Returns the first layer, as these loops take it. */
static LOOP_INLINE struct layer swift_layer(const struct body *b, enum ribbon_width width)
{
    struct layer layer = first_layer(b, width);
    layer.slots = b->geometry.field[SLOTS];
    layer.stripe = RIBBON_STRIPE_BITS;
    if (width >= RIBBON_WIDE)
        layer.unit_nbytes = b->geometry.field[ROW_BITS] << (RIBBON_STRIPE_BITS - 3);
    return layer;
}

/* Returns the slot at which a key begins.  In the last layer it has another hash, which *key
 * then is. */
static LOOP_INLINE uint64_t start_of(const struct body *b, const struct layer *layer,
                                     struct keyhash *key)
{
    if (LIKELY(layer->bumps))
        return scale64(key->place, layer->slots);
    *key = ribbon_last(*key, b->geometry.field[SALT]);
    return ribbon_last_start(*key, layer->slots);
}

/* Returns how many columns are in the group that begins with column 'first'. */
static LOOP_INLINE unsigned columns_of(const struct layer *layer, unsigned first,
                                       enum ribbon_width width)
{
    if (width < RIBBON_WIDE)
        return layer->row_bits;
    if (first == 0 || (width == RIBBON_LONG && first == RIBBON_GROUP))
        return RIBBON_GROUP;
    return ribbon_columns(layer->row_bits, first);
}

/* Where the two blocks lie that a key touches: what they are in, and by how many slots they are
 * away from its beginning.  That is their stripe, or the layer if rows have one group. */
struct blocks {
    const uint8_t *here, *next;
    uint64_t here_slot, next_slot;
    bool adjacent; /* and 'next' is not set */
};

/* Returns where the first block lies. */
static LOOP_INLINE struct blocks adjacent_blocks(const struct layer *layer, uint64_t start,
                                                 enum ribbon_width width)
{
    struct blocks blocks = { .here = layer->blocks, .here_slot = start, .adjacent = true };
    if (width >= RIBBON_WIDE) {
        blocks.here += (start >> layer->stripe) * layer->unit_nbytes;
        blocks.here_slot &= (UINT64_C(1) << layer->stripe) - RIBBON_WINDOW;
    }
    return blocks;
}

/* Returns where both lie.  In a file that an enemy wrote a key may begin in the last block;
 * behind it are the bytes of another layer, or zeros. */
static LOOP_INLINE struct blocks blocks_of(const struct layer *layer, uint64_t start,
                                           enum ribbon_width width)
{
    struct blocks blocks = adjacent_blocks(layer, start, width), next;
    if (width >= RIBBON_WIDE) {
        start += start < layer->slots - RIBBON_WINDOW ? RIBBON_WINDOW : 0;
        next = adjacent_blocks(layer, start, width);
        blocks.next = next.here;
        blocks.next_slot = next.here_slot;
        blocks.adjacent = false;
    }
    return blocks;
}

/* Where the two blocks have the words of a group of columns. */
struct words {
    const uint64_t *here, *next;
};

static LOOP_INLINE struct words words_of(const struct layer *layer, const struct blocks *blocks,
                                         unsigned first, enum ribbon_width width)
{
    const uint64_t columns = columns_of(layer, first, width);
    const uint64_t before = width < RIBBON_WIDE ? 0 : (uint64_t)first << (layer->stripe - 3);
    const uint8_t *here = blocks->here + before, *next;
    here += width < RIBBON_WIDE ? blocks->here_slot / RIBBON_WINDOW * layer->unit_nbytes
                                : blocks->here_slot * columns / 8;
    next = blocks->adjacent ? here + columns * sizeof(uint64_t)
                            : blocks->next + before + blocks->next_slot * columns / 8;
    return (struct words){ (const void *)here, (const void *)next };
}

#endif
