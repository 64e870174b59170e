/* ribbon_loops.c - the loops of ribbon filters, for each instruction set. */
#include "ribbon.h"

/* gcc would put the members of a small struct together as a vector, and a load of the vector
 * waits until the stores of the members are done: HACKING.md ("Loops"). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/* A layer of slots.  The last one bumps no key. */
struct layer {
    const uint8_t *blocks;
    const uint8_t *thresholds;
    uint64_t slots;
    uint64_t last_block;
    unsigned stripe;
    unsigned number; /* from 0 on */
    bool bumps;
};

/* Completes a layer that begins at these addresses. */
static ALWAYS_INLINE struct layer layer_at(const struct body *b, unsigned number,
                                           const uint8_t *blocks, const uint8_t *thresholds)
{
    uint64_t slots = number < RIBBON_LAYERS_MOST ? b->field[SLOTS + number] : 0;
    bool bumps = slots > 0;
    if (!bumps)
        slots = b->field[LAST_SLOTS];
    return (struct layer){ .blocks = blocks,
                           .thresholds = thresholds,
                           .slots = slots,
                           .last_block = slots / RIBBON_WINDOW - 1,
                           .stripe = ribbon_stripe(slots),
                           .number = number,
                           .bumps = bumps };
}

static ALWAYS_INLINE struct layer first_layer(const struct body *b)
{
    return layer_at(b, 0, b->bytes, b->bytes + b->field[THRESHOLDS_AT]);
}

static ALWAYS_INLINE struct layer next_layer(const struct body *b, const struct layer *layer)
{
    return layer_at(b, layer->number + 1, layer->blocks + layer->slots / 8 * b->field[ROW_BITS],
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

static ALWAYS_INLINE unsigned fingerprint_bits(const struct body *b)
{
    return (unsigned)(b->field[ROW_BITS] - b->field[VALUE_BITS]);
}

/* Which slots of a layer a key touches, and what they should add up to. */
struct spot {
    uint64_t block;
    uint64_t low, high; /* of this block, and of the next one */
    uint32_t row;
};

static ALWAYS_INLINE struct spot spot_of(const struct body *b, uint64_t start, uint64_t mark)
{
    struct equation e = ribbon_equation(mark, fingerprint_bits(b));
    unsigned shift = start % RIBBON_WINDOW;
    return (struct spot){ .block = start / RIBBON_WINDOW,
                          .low = e.coefficients << shift,
                          .high = e.coefficients >> 1 >> (63 - shift),
                          .row = e.row };
}

/* Return the words of a group of columns: of a block, and of the one behind it.  Rows that are
 * not 'wide' have one group.  In a file that an enemy wrote a key may begin in the last block;
 * behind it are the bytes of another layer, or zeros. */
static ALWAYS_INLINE const uint64_t *words_of(const struct body *b, const struct layer *layer,
                                              uint64_t block, unsigned first, bool wide)
{
    uint64_t row_bits = b->field[ROW_BITS];
    return (const void *)(layer->blocks +
                          (wide ? ribbon_words_at(block, first, layer->stripe, row_bits)
                                : block * row_bits * sizeof(uint64_t)));
}

static ALWAYS_INLINE const uint64_t *next_words(const struct body *b, const struct layer *layer,
                                                uint64_t block, unsigned first, bool wide)
{
    block += !wide || block < layer->last_block;
    return words_of(b, layer, block, first, wide);
}

/* Prefetches a group of columns where a key begins. */
static ALWAYS_INLINE void prefetch_start(const struct body *b, const struct layer *layer,
                                         uint64_t start, unsigned first, bool wide)
{
    const uint64_t *next = next_words(b, layer, start / RIBBON_WINDOW, first, wide);
    PREFETCH(words_of(b, layer, start / RIBBON_WINDOW, first, wide));
    PREFETCH(next);
    if (!wide || first) /* these do not begin with a line, and a loop reads a whole group */
        PREFETCH(next + RIBBON_GROUP - 1);
}

/* Prefetches what is asked first: a threshold, and the first group. */
static ALWAYS_INLINE void prefetch_key(const struct body *b, const struct layer *layer,
                                       struct keyhash key, bool wide)
{
    uint64_t start = start_of(b, layer, &key);
    if (layer->bumps)
        PREFETCH(layer->thresholds + start / RIBBON_BUCKET / 4);
    prefetch_start(b, layer, start, 0, wide);
}

static void ribbon_prefetch_narrow(const struct body *b, const struct keyhash *keys, size_t n)
{
    const struct layer layer = first_layer(b);
    for (size_t i = 0; i < n; i++)
        prefetch_key(b, &layer, keys[i], false);
}

static void ribbon_prefetch_wide(const struct body *b, const struct keyhash *keys, size_t n)
{
    const struct layer layer = first_layer(b);
    for (size_t i = 0; i < n; i++)
        prefetch_key(b, &layer, keys[i], true);
}

#define NO_AVX512 1
#define LOOPS     "../kinds/ribbon_loops.h"
#include "../base/each_cpu.h"

#define ROW(cpu, width)                                                                        \
    {                                                                                          \
        .prefetch = ribbon_prefetch_##width, .contains = ribbon_contains_##width##_##cpu,      \
        .contains_one = ribbon_contains_one_##width##_##cpu,                                   \
        .contains_integer = ribbon_contains_integer_##width##_##cpu,                           \
    }
#define NARROW(cpu) ROW(cpu, narrow)
#define WIDE(cpu)   ROW(cpu, wide)
const struct loops ribbon_loops_narrow[CPU_COUNT] = { EACH_CPU(NARROW) };
const struct loops ribbon_loops_wide[CPU_COUNT] = { EACH_CPU(WIDE) };

#define ROWS_OF(cpu) ribbon_rows_##cpu
ribbon_look_up *const ribbon_look_ups[CPU_COUNT] = { EACH_CPU(ROWS_OF) };
