/* lines.h - what kinds share whose keys have one cache line in each of a few parts of the body,
 * and mark there one cell in each of several of its 16 words: rate, plan and fill.
 *
 * A word has 'cells' cells: bits, or counters that take several bits each.  The fields are
 * those of blocked: PART_LINES, PARTS, and LINE_BITS, the marks of a key in
 * a line.
 *
 * With field TOGETHER the lines of a key are one block instead, that of number 'place' of
 * part_lines blocks of 'parts' lines: read at once, and a little more often wrong, since a
 * block that many keys have is full in all its lines.  Kinds that have no such field have 0
 * there. */
#ifndef LINES_H
#define LINES_H

#include "../base/bytes.h"
#include "../filter/filter.h"

/* ---- Where the marks of a key lie: part of the file format (doc/FORMAT.md) --------------- */

enum { PART_LINES, PARTS, LINE_BITS, TOGETHER }; /* its fields */

/* The key's line in each part: the n-th from the hash multiplied n times. */
static inline struct keyhash blocked_next_part(struct keyhash key)
{
    return (struct keyhash){ .place = key.place * ODD_GOLDEN, .mark = key.mark * ODD_PI };
}

static inline uint64_t blocked_line_offset(struct keyhash key, uint64_t part_lines)
{
    return scale64(key.place, part_lines) * LINE_NBYTES;
}

/* The first of its lines if they lie together, one behind the other: in a block of as many as a
 * key has.  Their marks are those of the parts. */
static inline uint64_t blocked_block_offset(struct keyhash key, uint64_t blocks,
                                            uint64_t block_lines)
{
    return scale64(key.place, blocks) * block_lines * LINE_NBYTES;
}

/* The bits of a key in a line: an odd stride walks through the 16 words without meeting one
 * twice; one bit in each, by multiplying with a constant of its own. */
struct blocked_walk {
    uint32_t factor;
    unsigned word;
    unsigned stride;
};

static inline struct blocked_walk blocked_walk_start(uint64_t mark)
{
    return (struct blocked_walk){
        .factor = (uint32_t)(mark >> 32),
        .word = (unsigned)(mark >> 28) & 15,
        .stride = ((unsigned)(mark >> 24) & 14) | 1,
    };
}

/* The fractional parts of the square roots of the first 16 primes, made odd. */
static const uint32_t blocked_factors[LINE_WORDS] = {
    0x6A09E667, 0xBB67AE85, 0x3C6EF373, 0xA54FF53B, 0x510E527F, 0x9B05688D,
    0x1F83D9AB, 0x5BE0CD19, 0xCBBB9D5D, 0x629A292B, 0x9159015B, 0x152FECD9,
    0x67332667, 0x8EB44A87, 0xDB0C2E0D, 0x47B5481D,
};

static inline unsigned blocked_bit(uint32_t factor, unsigned i)
{
    return (factor * blocked_factors[i]) >> 27;
}

/* A blocked filter's lines and walks, the fields the same; but a word is 8 counters of 4 bits,
 * and a key has one of them where it would have one of 32 bits. */
enum { COUNTER_NBITS = 4, COUNTER_MAX = 15, WORD_COUNTERS = WORD_NBITS / COUNTER_NBITS };

/* Behind the last line of the last part: how many counters are not zero, how many are at
 * COUNTER_MAX; two of the numbers of one more line. */
enum { COUNTERS_USED, COUNTERS_FULL };

/* Shifts up to 31 that are shifts to a counter. */
enum { COUNTER_SHIFTS = WORD_NBITS - COUNTER_NBITS };

static inline unsigned counting_shift(uint32_t factor, unsigned i)
{
    return blocked_bit(factor, i) & COUNTER_SHIFTS;
}

/* ---- The loops -------------------------------------------------------------------------- */

/* What is done to the counters of a key. */
enum count_change {
    COUNT_UP,
    COUNT_UP_ABSENT, /* unless none of them is zero */
    COUNT_DOWN,      /* unless one of them is zero; those at their end stay there */
};

/* What came of it. */
struct count_tally {
    uint64_t turned; /* counters that were zero and are not, or that have become zero */
    uint64_t filled; /* counters that have come to their end */
};

/* Counts the counters of keys up or down.  answer[i]: whether the key was there; of keys that
 * are counted up anyway, false.  Adds to *tally.  Returns how many answers are true. */
typedef size_t counting_changer(uint8_t *body, const uint64_t *field,
                                const struct keyhash *keys, const struct keyhash *ahead,
                                size_t n, enum count_change change, bool *answer,
                                struct count_tally *tally);

extern const struct loops blocked_loops[CPU_COUNT];
extern const struct loops counting_loops[CPU_COUNT]; /* its adds and removals: */
extern counting_changer *const counting_change[CPU_COUNT];

/* The adds of blocked for bodies that others write at the same moment: each word is set
 * atomically, and only if a bit in it is missing, since an atomic operation costs as much as
 * ten others.  Of two who add one key at once at least one is told that it was not there. */
extern const struct loops blocked_atomic;

/* ---- Rate, plan and fill ---------------------------------------------------------------- */

enum { LINES_PARTS_MAX = 8, WORDS = LINE_WORDS };

/* The words that keys choose: 16 starts by 4 strides (a stride and its negative give the same
 * sets). */
enum { WALKS = WORDS * 4 };

/* How many lines of a key, one behind the other, are shared by the same keys; and how often it
 * has so many. */
static inline unsigned lines_of_block(const struct geometry *g)
{
    return g->field[TOGETHER] ? (unsigned)g->field[PARTS] : 1;
}

static inline unsigned lines_separate_parts(const struct geometry *g)
{
    return g->field[TOGETHER] ? 1 : (unsigned)g->field[PARTS];
}

/* Whether the fields, which may be anybody's, are in their ranges. */
bool lines_in_range(const struct geometry *g);

/* Of all parts, of a geometry that is in range. */
uint64_t lines_nbytes(const struct geometry *g);

/* The rate when 'keys' different keys are in. */
double lines_predict(const struct geometry *g, unsigned cells, double keys);

/* Chooses the fewest lines, in this number of parts as the preference changes it, or in the
 * next that will do, with which g->fpr is kept when keys(g) keys are in; if they lie together,
 * 3 % more for fewer marks.  Returns 0 or PERHAPS_ERR_LIMIT. */
int lines_plan(struct geometry *g, unsigned cells, unsigned parts,
               enum perhaps_preference preference, double (*keys)(const struct geometry *g));

/* sizing_key_limit(), where a key that finds all its cells marked is not counted. */
uint64_t lines_key_limit(const struct geometry *g, unsigned cells);

/* The most keys, of 'most' at most, with which the rate is expected to be kept. */
double lines_keys_within(const struct geometry *g, unsigned cells, double most);

/* Load and fpr, as measure() of a kind. */
struct fill lines_measure(const perhaps_filter *f, unsigned cells, uint64_t most_nbytes);

/* As rate_with() of a kind; the cells are bits. */
double lines_rate_with(const perhaps_filter *f, struct keyhash key);

/* As reads() of a kind. */
void lines_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads);

#endif
