/* ribbon_loops.c - the loops of ribbon filters, for each instruction set. */
#include "ribbon.h"

/* gcc would put the members of a small struct together as a vector, and a load of the vector
 * waits until the stores of the members are done: HACKING.md ("Loops"). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/* How long the rows are: a byte without a value, another group, two groups or so few bits of
 * fingerprint, more.  Loops are made for each. */
enum width { BYTE, NARROW, WIDE, LONG };

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
    unsigned stripe = ribbon_stripe(slots);
    return (struct layer){ .blocks = blocks,
                           .thresholds = thresholds,
                           .slots = slots,
                           .row_bits = (unsigned)row_bits,
                           .fingerprint_bits = (unsigned)(row_bits - value_bits),
                           .stripe = stripe,
                           .unit_nbytes = row_bits << (width < WIDE ? 3 : stripe - 3),
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

/* The loops for one key of wide and of long rows take for granted that the first layer has the
 * largest stripes, and that fingerprints have no more bits than this. */
enum { SWIFT_BITS = 3 * RIBBON_GROUP };

/* Returns the first layer, as these loops take it. */
static ALWAYS_INLINE struct layer swift_layer(const struct body *b, enum width width)
{
    struct layer layer = first_layer(b, width);
    layer.slots = b->field[SLOTS];
    layer.stripe = RIBBON_STRIPE_BITS;
    layer.unit_nbytes = width == BYTE ? RIBBON_WINDOW : b->field[UNIT_NBYTES];
    return layer;
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

/* Returns how many columns are in the group that begins with column 'first'. */
static ALWAYS_INLINE unsigned columns_of(const struct layer *layer, unsigned first,
                                         enum width width)
{
    if (width < WIDE)
        return layer->row_bits;
    if (first == 0 || (width == LONG && first == RIBBON_GROUP))
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
static ALWAYS_INLINE struct blocks adjacent_blocks(const struct layer *layer, uint64_t start,
                                                   enum width width)
{
    struct blocks blocks = { .here = layer->blocks, .here_slot = start, .adjacent = true };
    if (width >= WIDE) {
        blocks.here += (start >> layer->stripe) * layer->unit_nbytes;
        blocks.here_slot &= (UINT64_C(1) << layer->stripe) - RIBBON_WINDOW;
    }
    return blocks;
}

/* Returns where both lie.  In a file that an enemy wrote a key may begin in the last block;
 * behind it are the bytes of another layer, or zeros. */
static ALWAYS_INLINE struct blocks blocks_of(const struct layer *layer, uint64_t start,
                                             enum width width)
{
    struct blocks blocks = adjacent_blocks(layer, start, width), next;
    if (width >= WIDE) {
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

static ALWAYS_INLINE struct words words_of(const struct layer *layer,
                                           const struct blocks *blocks, unsigned first,
                                           enum width width)
{
    const uint64_t columns = columns_of(layer, first, width);
    const uint64_t before = width < WIDE ? 0 : (uint64_t)first << (layer->stripe - 3);
    const uint8_t *here = blocks->here + before, *next;
    here += width < WIDE ? blocks->here_slot / RIBBON_WINDOW * layer->unit_nbytes
                         : blocks->here_slot * columns / 8;
    next = blocks->adjacent ? here + columns * sizeof(uint64_t)
                            : blocks->next + before + blocks->next_slot * columns / 8;
    return (struct words){ (const void *)here, (const void *)next };
}

/* Prefetches a group of columns: all that vectors hold, which at the end of a stripe is more
 * than both blocks. */
static ALWAYS_INLINE void prefetch_group(const struct layer *layer, const struct blocks *blocks,
                                         unsigned first, enum width width)
{
    struct words words = words_of(layer, blocks, first, width);
    unsigned columns = columns_of(layer, first, width), half = RIBBON_GROUP / 2;
    unsigned vector = columns > half ? RIBBON_GROUP : half;
    PREFETCH(words.here);
    PREFETCH(words.next + columns - 1);
    if (columns == RIBBON_GROUP || columns == 1)
        return;
    if (columns > half || !blocks->adjacent)
        PREFETCH(words.here + vector - 1);
    if (!blocks->adjacent)
        PREFETCH(words.next + columns - vector);
}

/* Prefetches what is asked first: a threshold, and the first two groups. */
static ALWAYS_INLINE void prefetch_key(const struct body *b, const struct layer *layer,
                                       struct keyhash key, enum width width)
{
    uint64_t start = start_of(b, layer, &key);
    struct blocks blocks = blocks_of(layer, start, width);
    if (layer->bumps)
        PREFETCH(layer->thresholds + start / RIBBON_BUCKET / 4);
    prefetch_group(layer, &blocks, 0, width);
    if (width >= WIDE)
        prefetch_group(layer, &blocks, RIBBON_GROUP, width);
}

static ALWAYS_INLINE void prefetch_keys(const struct body *b, const struct keyhash *keys,
                                        size_t n, enum width width)
{
    const struct layer layer = first_layer(b, width);
    for (size_t i = 0; i < n; i++)
        prefetch_key(b, &layer, keys[i], width);
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
    uint16_t found[BATCH_MOST];  /* the first two groups of a long row are right */
    uint16_t bumped[BATCH_MOST]; /* the first layer bumps them */
};

/* What a key's slots add up to in all columns, and whether that begins with its fingerprint. */
struct found {
    uint32_t row;
    bool is_right;
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

#define AVX512_COUNTS 1
#define LOOPS         "../kinds/built/ribbon_loops.h"
#include "../../base/each_cpu.h"

#define ROW(cpu, width, prefetches)                                                            \
    {                                                                                          \
        .prefetch = ribbon_prefetch_##prefetches, .contains = ribbon_contains_##width##_##cpu, \
        .contains_one = ribbon_contains_one_##width##_##cpu,                                   \
        .contains_integer = ribbon_contains_integer_##width##_##cpu,                           \
    }
#define BYTE_ROW(cpu)   ROW(cpu, byte, narrow)
#define NARROW_ROW(cpu) ROW(cpu, narrow, narrow)
#define WIDE_ROW(cpu)   ROW(cpu, wide, wide)
#define LONG_ROW(cpu)   ROW(cpu, long, wide)
static const struct loops loops_of[][CPU_COUNT] = {
    [BYTE] = { EACH_CPU(BYTE_ROW) },
    [NARROW] = { EACH_CPU(NARROW_ROW) },
    [WIDE] = { EACH_CPU(WIDE_ROW) },
    [LONG] = { EACH_CPU(LONG_ROW) },
};

/* What takes nothing for granted. */
#define ANY_ROW(cpu)                                                                           \
    {                                                                                          \
        .contains_one = contains_any_##cpu,                                                    \
        .contains_integer = ribbon_contains_integer_any_##cpu                                  \
    }
static const struct loops any_loops[CPU_COUNT] = { EACH_CPU(ANY_ROW) };

struct loops ribbon_loops(const struct body *b, enum cpu cpu)
{
    const uint64_t *field = b->field, bits = field[ROW_BITS] - field[VALUE_BITS];
    bool narrow = field[ROW_BITS] <= RIBBON_GROUP, byte = bits == RIBBON_GROUP;
    enum width width = narrow ? (byte ? BYTE : NARROW) : bits <= 2 * RIBBON_GROUP ? WIDE : LONG;
    cpu = cpu_that_counts(cpu);
    struct loops loops = loops_of[width][cpu];
    if (!field[SLOTS] || (!narrow && (field[SLOTS] % RIBBON_STRIPE || bits > SWIFT_BITS))) {
        loops.contains_one = any_loops[cpu].contains_one;
        loops.contains_integer = any_loops[cpu].contains_integer;
    }
    return loops;
}

#define ROWS_OF(cpu) ribbon_rows_##cpu
ribbon_look_up *ribbon_look_up_of(enum cpu cpu)
{
    static ribbon_look_up *const look_ups[CPU_COUNT] = { EACH_CPU(ROWS_OF) };
    return look_ups[cpu_that_counts(cpu)];
}
