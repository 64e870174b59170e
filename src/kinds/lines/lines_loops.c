/* lines_loops.c - the loops of blocked and counting filters, for each instruction set. */
#include "lines.h"

/* 16 starts by 8 odd strides. */
enum { WALK_COUNT = 128, WALK_SHIFT = 25 };

/* All walks through a line, for each number of picks: the constant of each word's step, and 0
 * for a word to which the walk does not come.  A vector loop deals with all words at once and
 * needs this; the constants are odd, so the lowest bit tells whether the walk comes.  A table
 * is filled in when the first filter needs it. */
struct walks {
    uint32_t row[WALK_COUNT][LINE_WORDS];
    uint32_t ones[LINE_WORDS];
};

static struct walks walks[LINE_WORDS] __attribute__((aligned(64)));

/* If several threads get here at once, they write the same numbers. */
const void *lines_table(uint64_t picks)
{
    static bool filled[LINE_WORDS];
    struct walks *w = &walks[picks - 1];
    if (__atomic_load_n(&filled[picks - 1], __ATOMIC_ACQUIRE))
        return w;
    for (unsigned i = 0; i < LINE_WORDS; i++)
        __atomic_store_n(&w->ones[i], 1, __ATOMIC_RELAXED);
    for (unsigned walk = 0; walk < WALK_COUNT; walk++)
        for (unsigned i = 0; i < picks; i++) {
            struct blocked_walk at = blocked_walk_start((uint64_t)walk << WALK_SHIFT);
            unsigned word = (at.word + i * at.stride) % LINE_WORDS;
            __atomic_store_n(&w->row[walk][word], blocked_factors[i], __ATOMIC_RELAXED);
        }
    __atomic_store_n(&filled[picks - 1], true, __ATOMIC_RELEASE);
    return w;
}

/* Returns the row of a key's walk.  Start and stride are adjacent bits of the mark, so they
 * give the row at once; in 32 bits they are the highest ones. */
static ALWAYS_INLINE const void *row_of(const struct body *b, uint64_t mark)
{
    const struct walks *w = b->table;
    return w->row[(uint32_t)mark >> WALK_SHIFT];
}

/* Returns a line of ones.  From here they take one instruction, as a constant three. */
static ALWAYS_INLINE const void *ones_of(const struct body *b)
{
    return ((const struct walks *)b->table)->ones;
}

/* ---- Where the lines are ----------------------------------------------------------------- */

/* Where the lines of a key lie: one in each band, or together in a block.  Each caller of the
 * inlined loops makes this from what it knows, so that no loop checks it again for each key. */
struct line_places {
    uint64_t band_lines;
    uint64_t bands;
    bool together;
};

static ALWAYS_INLINE struct line_places places_in_one(const struct body *b)
{
    return (struct line_places){ .band_lines = b->field[BAND_LINES], .bands = 1 };
}

static ALWAYS_INLINE struct line_places places_in_bands(const struct body *b)
{
    return (struct line_places){ .band_lines = b->field[BAND_LINES], .bands = b->field[BANDS] };
}

static ALWAYS_INLINE struct line_places places_together(const struct body *b)
{
    return (struct line_places){ .band_lines = b->field[BAND_LINES],
                                 .bands = b->field[BANDS],
                                 .together = true };
}

static ALWAYS_INLINE struct line_places places_of(const struct body *b)
{
    return (struct line_places){ .band_lines = b->field[BAND_LINES],
                                 .bands = b->field[BANDS],
                                 .together = b->field[TOGETHER] != 0 };
}

/* Returns where in the body the first line of a key begins, in bytes. */
static ALWAYS_INLINE uint64_t first_line_offset(struct keyhash key, struct line_places at)
{
    return at.together ? blocked_block_offset(key, at.band_lines, at.bands)
                       : blocked_line_offset(key, at.band_lines);
}

/* Returns where line number 'band' of a key begins.  'offset' is where the line before begins;
 * 'key' has gone on to this band by blocked_next_band(). */
static ALWAYS_INLINE uint64_t next_line_offset(uint64_t offset, struct keyhash key,
                                               struct line_places at, uint64_t band)
{
    return at.together
               ? offset + LINE_NBYTES
               : band * at.band_lines * LINE_NBYTES + blocked_line_offset(key, at.band_lines);
}

static ALWAYS_INLINE void prefetch_lines(const uint8_t *body, struct line_places at,
                                         struct keyhash key)
{
    uint64_t offset = first_line_offset(key, at);
    PREFETCH(body + offset);
    for (uint64_t band = 1; band < at.bands; band++) {
        key = blocked_next_band(key);
        offset = next_line_offset(offset, key, at, band);
        PREFETCH(body + offset);
    }
}

static void blocked_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    struct line_places at = places_in_one(b);
    for (size_t i = 0; i < n; i++)
        prefetch_lines(b->bytes, at, keys[i]);
}

static void several_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    struct line_places at = places_of(b);
    for (size_t i = 0; i < n; i++)
        prefetch_lines(b->bytes, at, keys[i]);
}

/* ---- For each instruction set ------------------------------------------------------------ */

#define LOOPS "../kinds/lines/lines_loops.h"
#include "../../base/each_cpu.h"

#define ONE_LINE_ROW(cpu)                                                                      \
    {                                                                                          \
        .one_line = true, .prefetch = blocked_prefetch, .contains = blocked_contains_##cpu,    \
        .add = blocked_add_##cpu, .contains_one = blocked_contains_one_##cpu,                  \
        .contains_integer = blocked_contains_integer_##cpu, .add_one = blocked_add_one_##cpu,  \
        .add_integer = blocked_add_integer_##cpu,                                              \
        .add_one_shared = blocked_add_one_shared_##cpu,                                        \
    }
#define SEVERAL_ROW(cpu)                                                                       \
    {                                                                                          \
        .prefetch = several_prefetch, .contains = several_contains_##cpu,                      \
        .add = several_add_##cpu, .contains_one = several_contains_one_##cpu,                  \
        .contains_integer = several_contains_integer_##cpu, .add_one = several_add_one_##cpu,  \
        .add_integer = several_add_integer_##cpu,                                              \
        .add_one_shared = several_add_one_shared_##cpu,                                        \
    }
const struct loops blocked_loops[2][CPU_COUNT] = { { EACH_CPU(ONE_LINE_ROW) },
                                                   { EACH_CPU(SEVERAL_ROW) } };

#define FOUND_ROW(cpu) add_found_lines_##cpu
found_adder *const blocked_add_found[CPU_COUNT] = { EACH_CPU(FOUND_ROW) };

#define COUNTING_ROW(cpu)                                                                      \
    {                                                                                          \
        .prefetch = several_prefetch, .contains = counting_contains_##cpu,                     \
        .contains_one = counting_contains_one_##cpu,                                           \
        .contains_integer = counting_contains_integer_##cpu,                                   \
    }
const struct loops counting_loops[CPU_COUNT] = { EACH_CPU(COUNTING_ROW) };

#define CHANGE_ROW(cpu) counting_changes_##cpu
counting_changer *const counting_change[CPU_COUNT] = { EACH_CPU(CHANGE_ROW) };

/* ---- Adds while others write ------------------------------------------------------------- */

/* Sets the bits of a key in a line.  Returns whether all of them were set before. */
static ALWAYS_INLINE bool line_add_atomic(const struct body *b, uint8_t *line, uint64_t mark)
{
    uint32_t *words = (void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    bool all = true;
    for (unsigned i = 0; i < b->field[LINE_BITS]; i++) {
        uint32_t *at = &words[walk.word];
        uint32_t bit = UINT32_C(1) << blocked_bit(walk.factor, i);
        if (!(__atomic_load_n(at, __ATOMIC_RELAXED) & bit))
            all &= (__atomic_fetch_or(at, bit, __ATOMIC_RELEASE) & bit) != 0;
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return all;
}

size_t blocked_add_atomic(const struct body *b, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer)
{
    return keys_pass_scalar(b, keys, ahead, n, answer, line_add_atomic);
}
