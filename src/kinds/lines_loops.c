/* lines_loops.c - the loops of blocked and counting filters, for each instruction set. */
#include "lines.h"

/* 16 starts by 8 odd strides. */
enum { WALK_COUNT = 128 };

/* At which step a walk comes to a word: (word - start) / stride modulo 16.  The inverse of an
 * odd number modulo 16 is its cube. */
#define STEP(start, stride, word)                                                              \
    (((word) + 16U - (start)) * (stride) * (stride) * (stride) % LINE_WORDS)

/* clang-format off */
#define STEPS(start, stride) { \
    STEP(start, stride, 0),  STEP(start, stride, 1),  STEP(start, stride, 2),  \
    STEP(start, stride, 3),  STEP(start, stride, 4),  STEP(start, stride, 5),  \
    STEP(start, stride, 6),  STEP(start, stride, 7),  STEP(start, stride, 8),  \
    STEP(start, stride, 9),  STEP(start, stride, 10), STEP(start, stride, 11), \
    STEP(start, stride, 12), STEP(start, stride, 13), STEP(start, stride, 14), \
    STEP(start, stride, 15) }

#define STRIDES(start) \
    STEPS(start, 1), STEPS(start, 3),  STEPS(start, 5),  STEPS(start, 7), \
    STEPS(start, 9), STEPS(start, 11), STEPS(start, 13), STEPS(start, 15)

/* All walks through a line, inverted: for each walk and each word of the line, at which step
 * the walk comes to that word.  The vector loops deal with all words at once and need this. */
static const uint8_t blocked_steps[WALK_COUNT][LINE_WORDS] __attribute__((aligned(64))) = {
    STRIDES(0),  STRIDES(1),  STRIDES(2),  STRIDES(3),
    STRIDES(4),  STRIDES(5),  STRIDES(6),  STRIDES(7),
    STRIDES(8),  STRIDES(9),  STRIDES(10), STRIDES(11),
    STRIDES(12), STRIDES(13), STRIDES(14), STRIDES(15),
};
/* clang-format on */

/* Returns the steps of a key's walk.  Start and stride are adjacent bits of the mark, so they
 * give the row of the table at once. */
static inline const uint8_t *blocked_steps_of(uint64_t mark)
{
    return blocked_steps[(mark >> 25) & (WALK_COUNT - 1)];
}

/* ---- Where the lines are ----------------------------------------------------------------- */

/* Where the lines of a key lie: one in each part, or together in a block.  Each caller of the
 * inlined loops makes this from what it knows, so that no loop checks it again for each key. */
struct line_places {
    uint64_t part_lines;
    uint64_t parts;
    bool together;
};

static ALWAYS_INLINE struct line_places places_in_one(const uint64_t *field)
{
    return (struct line_places){ .part_lines = field[PART_LINES], .parts = 1 };
}

static ALWAYS_INLINE struct line_places places_in_parts(const uint64_t *field)
{
    return (struct line_places){ .part_lines = field[PART_LINES], .parts = field[PARTS] };
}

static ALWAYS_INLINE struct line_places places_together(const uint64_t *field)
{
    return (struct line_places){ .part_lines = field[PART_LINES],
                                 .parts = field[PARTS],
                                 .together = true };
}

static ALWAYS_INLINE struct line_places places_of(const uint64_t *field)
{
    return (struct line_places){ .part_lines = field[PART_LINES],
                                 .parts = field[PARTS],
                                 .together = field[TOGETHER] != 0 };
}

/* Returns where in the body the first line of a key begins, in bytes. */
static ALWAYS_INLINE uint64_t first_line_offset(struct keyhash key, struct line_places at)
{
    return at.together ? blocked_block_offset(key, at.part_lines, at.parts)
                       : blocked_line_offset(key, at.part_lines);
}

/* Returns where line number 'part' of a key begins.  'offset' is where the line before begins;
 * 'key' has gone on to this part by blocked_next_part(). */
static ALWAYS_INLINE uint64_t next_line_offset(uint64_t offset, struct keyhash key,
                                               struct line_places at, uint64_t part)
{
    return at.together
               ? offset + LINE_NBYTES
               : part * at.part_lines * LINE_NBYTES + blocked_line_offset(key, at.part_lines);
}

static ALWAYS_INLINE void prefetch_lines(const uint8_t *body, struct line_places at,
                                         struct keyhash key)
{
    uint64_t offset = first_line_offset(key, at);
    PREFETCH(body + offset);
    for (uint64_t part = 1; part < at.parts; part++) {
        key = blocked_next_part(key);
        offset = next_line_offset(offset, key, at, part);
        PREFETCH(body + offset);
    }
}

static void blocked_prefetch(const uint8_t *body, const uint64_t *field,
                             const struct keyhash *keys, size_t n)
{
    struct line_places at = places_of(field);
    for (size_t i = 0; i < n; i++)
        prefetch_lines(body, at, keys[i]);
}

/* ---- For each instruction set ------------------------------------------------------------ */

#define LOOPS "lines_loops.h"
#include "each_cpu.h"

#define BLOCKED_ROW(cpu)                                                                       \
    {                                                                                          \
        .prefetch = blocked_prefetch, .contains = blocked_contains_##cpu,                      \
        .add = blocked_add_##cpu, .contains_one = blocked_contains_one_##cpu,                  \
        .add_one = blocked_add_one_##cpu,                                                      \
    }
const struct loops blocked_loops[CPU_COUNT] = { EACH_CPU(BLOCKED_ROW) };

#define COUNTING_ROW(cpu)                                                                      \
    {                                                                                          \
        .prefetch = blocked_prefetch, .contains = counting_contains_##cpu,                     \
        .contains_one = counting_contains_one_##cpu,                                           \
    }
const struct loops counting_loops[CPU_COUNT] = { EACH_CPU(COUNTING_ROW) };

#define CHANGE_ROW(cpu) counting_changes_##cpu
counting_changer *const counting_change[CPU_COUNT] = { EACH_CPU(CHANGE_ROW) };

/* ---- Adds while others write ------------------------------------------------------------- */

/* Sets the bits of a key in a line.  Returns whether all of them were set before. */
static ALWAYS_INLINE bool add_atomically(uint8_t *line, uint64_t mark, uint64_t bits)
{
    uint32_t *words = (void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    bool all = true;
    for (unsigned i = 0; i < bits; i++) {
        uint32_t *at = &words[walk.word];
        uint32_t bit = UINT32_C(1) << blocked_bit(walk.factor, i);
        if (!(__atomic_load_n(at, __ATOMIC_RELAXED) & bit))
            all &= (__atomic_fetch_or(at, bit, __ATOMIC_RELEASE) & bit) != 0;
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return all;
}

static bool blocked_add_one_atomic(uint8_t *body, const uint64_t *field, struct keyhash key)
{
    struct line_places at = places_of(field);
    uint64_t offset = first_line_offset(key, at);
    bool all = add_atomically(body + offset, key.mark, field[LINE_BITS]);
    for (uint64_t part = 1; part < at.parts; part++) {
        key = blocked_next_part(key);
        offset = next_line_offset(offset, key, at, part);
        all &= add_atomically(body + offset, key.mark, field[LINE_BITS]);
    }
    return all;
}

static size_t blocked_add_atomic(uint8_t *body, const uint64_t *field,
                                 const struct keyhash *keys, const struct keyhash *ahead,
                                 size_t n, bool *answer)
{
    struct line_places at = places_of(field);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, at, ahead[i]);
        answer[i] = blocked_add_one_atomic(body, field, keys[i]);
        found += answer[i];
    }
    return found;
}

const struct loops blocked_atomic = { .add = blocked_add_atomic,
                                      .add_one = blocked_add_one_atomic };
