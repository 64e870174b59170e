/* ribbon_loops.c - the loops of ribbon filters, for each instruction set. */
#include "ribbon.h"

/* gcc would put the members of a small struct together as a vector, and a load of the vector
 * waits until the stores of the members are done: HACKING.md ("Loops"). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/* How many columns the rows have: 8, no more than that, or more.  Loops are made for each. */
enum width { BYTE, NARROW, WIDE };

static ALWAYS_INLINE enum width width_of(const struct body *b)
{
    return b->field[ROW_BITS] > RIBBON_GROUP ? WIDE : NARROW;
}

/* A layer of slots, and what a loop computes but once.  The last layer bumps no key. */
struct layer {
    const uint8_t *blocks;
    const uint8_t *thresholds;
    uint64_t slots;
    uint64_t last_block;
    unsigned row_bits, fingerprint_bits;
    unsigned stripe; /* 1 << stripe slots */
    unsigned number; /* from 0 on */
    bool bumps;
};

/* Completes a layer that begins at these addresses. */
static ALWAYS_INLINE struct layer layer_at(const struct body *b, enum width width,
                                           unsigned number, const uint8_t *blocks,
                                           const uint8_t *thresholds)
{
    const uint64_t row_bits = width == BYTE ? RIBBON_GROUP : b->field[ROW_BITS];
    const uint64_t value_bits = width == BYTE ? 0 : b->field[VALUE_BITS];
    uint64_t slots = number < RIBBON_LAYERS_MOST ? b->field[SLOTS + number] : 0;
    bool bumps = slots > 0;
    if (!bumps)
        slots = b->field[LAST_SLOTS];
    return (struct layer){ .blocks = blocks,
                           .thresholds = thresholds,
                           .slots = slots,
                           .last_block = slots / RIBBON_WINDOW - 1,
                           .row_bits = (unsigned)row_bits,
                           .fingerprint_bits = (unsigned)(row_bits - value_bits),
                           .stripe = ribbon_stripe(slots),
                           .number = number,
                           .bumps = bumps };
}

static ALWAYS_INLINE struct layer first_layer(const struct body *b, enum width width)
{
    return layer_at(b, width, 0, b->bytes, b->bytes + b->field[THRESHOLDS_AT]);
}

static ALWAYS_INLINE struct layer next_layer(const struct body *b, enum width width,
                                             const struct layer *layer)
{
    return layer_at(b, width, layer->number + 1,
                    layer->blocks + layer->slots / 8 * layer->row_bits,
                    layer->thresholds + ribbon_thresholds_nbytes(layer->slots));
}

/* Returns the slot at which a key begins.  In the last layer it has another hash, which *key
 * then is. */
static ALWAYS_INLINE uint64_t start_of(const struct body *b, const struct layer *layer,
                                       struct keyhash *key)
{
    if (LIKELY(layer->bumps))
        return scale64(key->place, layer->slots);
    *key = ribbon_last(*key, b->field[SALT]);
    return ribbon_last_start(*key, layer->slots);
}

/* Which slots of a layer a key touches, and what they should add up to. */
struct spot {
    uint64_t block;
    uint64_t low, high; /* of this block, and of the next one */
    uint32_t row;
};

static ALWAYS_INLINE struct spot spot_of(const struct layer *layer, uint64_t start,
                                         uint64_t mark)
{
    struct equation e = ribbon_equation(mark, layer->fingerprint_bits);
    unsigned shift = start % RIBBON_WINDOW;
    return (struct spot){ .block = start / RIBBON_WINDOW,
                          .low = e.coefficients << shift,
                          .high = e.coefficients >> 1 >> (63 - shift),
                          .row = e.row };
}

/* Where a block and the one behind it have the words of a group of columns. */
struct words {
    const uint64_t *here, *next;
};

/* Returns how many columns are in a group.  Rows that are not wide have one group. */
static ALWAYS_INLINE unsigned columns_of(const struct layer *layer, unsigned first,
                                         enum width width)
{
    return width != WIDE ? layer->row_bits
           : first       ? ribbon_columns(layer->row_bits, first)
                         : RIBBON_GROUP;
}

/* Returns where a group of columns lies.  In a file that an enemy wrote a key may begin in the
 * last block; behind it are the bytes of another layer, or zeros. */
static ALWAYS_INLINE struct words words_of(const struct layer *layer, uint64_t block,
                                           unsigned first, enum width width)
{
    const uint64_t columns = columns_of(layer, first, width);
    const uint8_t *here = layer->blocks, *next;
    if (width != WIDE) {
        here += block * layer->row_bits * sizeof(uint64_t);
        next = here + layer->row_bits * sizeof(uint64_t);
    } else {
        uint64_t stripe = UINT64_C(1) << layer->stripe; /* in slots */
        bool leaves = (block + 1) * RIBBON_WINDOW % stripe == 0;
        here += ribbon_group_at(block, first, layer->stripe, layer->row_bits, columns);
        next = here + columns * sizeof(uint64_t);
        next += leaves ? (layer->row_bits - columns) * (stripe / 8) : 0;
        next = block < layer->last_block ? next : here;
    }
    return (struct words){ (const void *)here, (const void *)next };
}

/* Prefetches a group of columns where a key begins. */
static ALWAYS_INLINE void prefetch_start(const struct layer *layer, uint64_t start,
                                         unsigned first, enum width width)
{
    struct words words = words_of(layer, start / RIBBON_WINDOW, first, width);
    unsigned columns = columns_of(layer, first, width);
    PREFETCH(words.here);
    PREFETCH(words.next);
    if (columns < RIBBON_GROUP) /* else they begin with a line */
        PREFETCH(words.next + columns - 1);
}

/* Prefetches what is asked first: a threshold, and the first group. */
static ALWAYS_INLINE void prefetch_key(const struct body *b, const struct layer *layer,
                                       struct keyhash key, enum width width)
{
    uint64_t start = start_of(b, layer, &key);
    if (layer->bumps)
        PREFETCH(layer->thresholds + start / RIBBON_BUCKET / 4);
    prefetch_start(layer, start, 0, width);
}

static ALWAYS_INLINE void prefetch_keys(const struct body *b, const struct keyhash *keys,
                                        size_t n, enum width width)
{
    const struct layer layer = first_layer(b, width);
    for (size_t i = 0; i < n; i++) {
        prefetch_key(b, &layer, keys[i], width);
        for (unsigned g = RIBBON_GROUP; width == WIDE && layer.bumps && g < layer.row_bits;
             g += RIBBON_GROUP)
            prefetch_start(&layer, scale64(keys[i].place, layer.slots), g, WIDE);
    }
}

static void ribbon_prefetch_narrow(const struct body *b, const struct keyhash *keys, size_t n)
{
    prefetch_keys(b, keys, n, NARROW);
}

static void ribbon_prefetch_wide(const struct body *b, const struct keyhash *keys, size_t n)
{
    prefetch_keys(b, keys, n, WIDE);
}

/* How many keys ahead are prefetched. */
enum { RIBBON_AHEAD = 32 };

/* Keys of a batch that are looked at once more, by their indices. */
struct later {
    size_t nfound, nbumped;
    uint16_t found[BATCH_MOST];  /* the first group of a wide row is right */
    uint16_t bumped[BATCH_MOST]; /* the first layer bumps them */
};

/* Defines the loops for rows of one width. */
#define LOOPS_OF(name, width)                                                                  \
    static size_t ribbon_contains_##name(const struct body *b, const struct keyhash *keys,     \
                                         const struct keyhash *ahead, size_t n, bool *answer)  \
    {                                                                                          \
        return contains_all(b, keys, ahead, n, answer, width);                                 \
    }                                                                                          \
    static bool ribbon_contains_one_##name(const struct body *b, struct keyhash key)           \
    {                                                                                          \
        return contains_key(b, key, width);                                                    \
    }                                                                                          \
    CONTAINS_INTEGER(ribbon_contains_integer_##name, ribbon_contains_one_##name)

#define NO_AVX512 1
#define LOOPS     "../kinds/built/ribbon_loops.h"
#include "../../base/each_cpu.h"

#define ROW(cpu, width, any_width)                                                             \
    {                                                                                          \
        .prefetch = ribbon_prefetch_##any_width, .contains = ribbon_contains_##width##_##cpu,  \
        .contains_one = ribbon_contains_one_##width##_##cpu,                                   \
        .contains_integer = ribbon_contains_integer_##width##_##cpu,                           \
    }
#define BYTE_ROW(cpu)   ROW(cpu, byte, narrow)
#define NARROW_ROW(cpu) ROW(cpu, narrow, narrow)
#define WIDE_ROW(cpu)   ROW(cpu, wide, wide)
const struct loops ribbon_loops_byte[CPU_COUNT] = { EACH_CPU(BYTE_ROW) };
const struct loops ribbon_loops_narrow[CPU_COUNT] = { EACH_CPU(NARROW_ROW) };
const struct loops ribbon_loops_wide[CPU_COUNT] = { EACH_CPU(WIDE_ROW) };

#define ROWS_OF(cpu) ribbon_rows_##cpu
ribbon_look_up *const ribbon_look_ups[CPU_COUNT] = { EACH_CPU(ROWS_OF) };
