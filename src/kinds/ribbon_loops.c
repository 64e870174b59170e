/* ribbon_loops.c - the loops of ribbon filters, for each instruction set. */
#include "ribbon.h"

/* A layer; 'slots' is 0 for the last one, which bumps no key. */
struct layer {
    const uint8_t *blocks;
    const uint8_t *thresholds;
    uint64_t slots;
    unsigned number; /* from 0 on */
};

static ALWAYS_INLINE struct layer first_layer(const struct body *b)
{
    return (struct layer){ .blocks = b->bytes,
                           .thresholds = b->bytes + b->field[THRESHOLDS_AT],
                           .slots = b->field[SLOTS] };
}

static ALWAYS_INLINE struct layer next_layer(const struct body *b, const struct layer *layer)
{
    unsigned number = layer->number + 1;
    return (struct layer){
        .blocks = layer->blocks + layer->slots / 8 * b->field[ROW_BITS],
        .thresholds = layer->thresholds + ribbon_thresholds_nbytes(layer->slots),
        .slots = number < RIBBON_LAYERS_MOST ? b->field[SLOTS + number] : 0,
        .number = number,
    };
}

static ALWAYS_INLINE uint64_t last_start(const struct body *b, struct keyhash key)
{
    return ribbon_last_start(key, b->field[SALT], b->field[LAST_SLOTS]);
}

/* The slots of a key: bits of the words of one block, and of the next one. */
struct spot {
    const uint64_t *words;
    uint64_t low, high; /* which slots of the first block, and of the next one */
    uint32_t row;       /* what they should add up to */
};

static ALWAYS_INLINE const uint8_t *block_at(const struct body *b, const struct layer *layer,
                                             uint64_t start)
{
    return layer->blocks + start / RIBBON_WINDOW * b->field[ROW_BITS] * sizeof(uint64_t);
}

static ALWAYS_INLINE struct spot spot_of(const struct body *b, const struct layer *layer,
                                         uint64_t start, uint64_t mark)
{
    unsigned bits = (unsigned)(b->field[ROW_BITS] - b->field[VALUE_BITS]);
    struct equation e = ribbon_equation(mark, bits);
    unsigned shift = start % RIBBON_WINDOW;
    return (struct spot){ .words = (const void *)block_at(b, layer, start),
                          .low = e.coefficients << shift,
                          .high = e.coefficients >> 1 >> (63 - shift),
                          .row = e.row };
}

/* Prefetches the blocks of a key: 16 to 512 bytes. */
static ALWAYS_INLINE void prefetch_start(const struct body *b, const struct layer *layer,
                                         uint64_t start)
{
    const uint8_t *at = block_at(b, layer, start);
    const uint8_t *last = at + b->field[ROW_BITS] * 2 * sizeof(uint64_t) - 1;
    PREFETCH(at);
    for (at += LINE_NBYTES; at < last; at += LINE_NBYTES)
        PREFETCH(at);
    PREFETCH(last);
}

/* And the threshold that tells whether they are asked. */
static ALWAYS_INLINE void prefetch_key(const struct body *b, const struct layer *layer,
                                       struct keyhash key)
{
    uint64_t start = scale64(key.place, layer->slots);
    PREFETCH(layer->thresholds + start / RIBBON_BUCKET / 4);
    prefetch_start(b, layer, start);
}

static void ribbon_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    const struct layer layer = first_layer(b);
    for (size_t i = 0; layer.slots && i < n; i++)
        prefetch_key(b, &layer, keys[i]);
}

#define NO_AVX512 1
#define LOOPS     "../kinds/ribbon_loops.h"
#include "../base/each_cpu.h"

#define ROW(cpu, width)                                                                        \
    {                                                                                          \
        .prefetch = ribbon_prefetch, .contains = ribbon_contains_##width##_##cpu,              \
        .contains_one = ribbon_contains_one_##width##_##cpu,                                   \
        .contains_integer = ribbon_contains_integer_##width##_##cpu,                           \
    }
#define NARROW(cpu) ROW(cpu, narrow)
#define WIDE(cpu)   ROW(cpu, wide)
const struct loops ribbon_loops_narrow[CPU_COUNT] = { EACH_CPU(NARROW) };
const struct loops ribbon_loops_wide[CPU_COUNT] = { EACH_CPU(WIDE) };

#define ROWS_OF(cpu) ribbon_rows_##cpu
ribbon_look_up *const ribbon_look_ups[CPU_COUNT] = { EACH_CPU(ROWS_OF) };
