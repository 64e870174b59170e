/* lines.h - what blocked and counting filters share: fpr, plan, fill, and loops.
 *
 * The body has a few bands, and a key has one cache line in each band.  In each of its lines a
 * key picks one cell in each of several of the 16 words.  A word has 'cells' cells: bits, or
 * counters of several bits.  Both kinds have the same fields: BAND_LINES, BANDS, and LINE_BITS,
 * which is the number of picks of a key in a line.
 *
 * With field TOGETHER the body is BAND_LINES blocks of BANDS lines instead, and the lines of a
 * key are one block.  One read fetches them all.  The fpr is a little higher, since a block
 * that got many keys is full in all its lines.  Kinds without this field have 0 there. */
#ifndef LINES_H
#define LINES_H

#include "../../base/bytes.h"
#include "../../filter/filter.h"
#include "owners.h"

/* ---- Where the picks of a key lie: part of the file format (doc/FORMAT.md) --------------- */

enum { BAND_LINES, BANDS, LINE_BITS, TOGETHER }; /* its fields */

/* Returns the hash that gives the line of a key in the next band, and its picks there. */
static inline struct keyhash blocked_next_band(struct keyhash key)
{
    return (struct keyhash){ .place = key.place * ODD_GOLDEN, .mark = key.mark * ODD_PI };
}

/* Returns where in its band the line of a key begins, in bytes. */
static inline uint64_t blocked_line_offset(struct keyhash key, uint64_t band_lines)
{
    return scale64(key.place, band_lines) * LINE_NBYTES;
}

/* With TOGETHER: returns where in the body the block of a key begins, in bytes.  The picks in
 * the n-th line of the block are those that the key would have in the n-th band. */
static inline uint64_t blocked_block_offset(struct keyhash key, uint64_t blocks,
                                            uint64_t block_lines)
{
    return scale64(key.place, blocks) * block_lines * LINE_NBYTES;
}

/* The walk of a key through a line gives its bits: it begins at a word and goes on by an odd
 * stride, which meets none of the 16 words twice.  Step i sets one bit in its word: the bit
 * comes from the key's factor times the constant of step i. */
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

/* The constants of the steps: the fractional parts of the square roots of the first 16 primes,
 * made odd. */
static const uint32_t blocked_factors[LINE_WORDS] = {
    0x6A09E667, 0xBB67AE85, 0x3C6EF373, 0xA54FF53B, 0x510E527F, 0x9B05688D,
    0x1F83D9AB, 0x5BE0CD19, 0xCBBB9D5D, 0x629A292B, 0x9159015B, 0x152FECD9,
    0x67332667, 0x8EB44A87, 0xDB0C2E0D, 0x47B5481D,
};

/* Returns which bit of its word step i sets: 0 to 31. */
static inline unsigned blocked_bit(uint32_t factor, unsigned i)
{
    return (factor * blocked_factors[i]) >> 27;
}

/* A counting filter has the lines, walks and fields of a blocked one.  But a word is 8 counters
 * of 4 bits, and a step of the walk gives one of these instead of one of 32 bits. */
enum { COUNTER_NBITS = 4, COUNTER_MAX = 15, WORD_COUNTERS = WORD_NBITS / COUNTER_NBITS };

/* A counting filter has one more line behind the last band.  The first number there is how many
 * counters are not zero, the second how many are at COUNTER_MAX. */
enum { COUNTERS_USED, COUNTERS_FULL };

/* A mask that turns the number of a bit into that of the first bit of its counter. */
enum { COUNTER_SHIFTS = WORD_NBITS - COUNTER_NBITS };

/* Words of 16 counters: the lowest bit of each counter, and the lower half of each byte. */
static const uint64_t lowest_bits = UINT64_C(0x1111111111111111);
static const uint64_t low_halves = UINT64_C(0x0f0f0f0f0f0f0f0f);

/* Return the lowest bits of the counters that are not zero, or that are at COUNTER_MAX. */
static inline uint64_t counters_used(uint64_t counters)
{
    uint64_t pairs = counters | counters >> 1;
    return (pairs | pairs >> 2) & lowest_bits;
}

static inline uint64_t counters_full(uint64_t counters)
{
    uint64_t pairs = counters & counters >> 1;
    return pairs & pairs >> 2 & lowest_bits;
}

/* Returns sums that have a byte each, where those above COUNTER_MAX have become that. */
static inline uint64_t counters_clamp(uint64_t sums)
{
    uint64_t over = ((sums >> COUNTER_NBITS & low_halves) + low_halves) >> COUNTER_NBITS;
    return (sums | (over & lowest_bits & low_halves) * COUNTER_MAX) & low_halves;
}

/* Returns by how many bits the counter of step i is shifted in its word. */
static inline unsigned counting_shift(uint32_t factor, unsigned i)
{
    return blocked_bit(factor, i) & COUNTER_SHIFTS;
}

/* ---- The loops -------------------------------------------------------------------------- */

/* How the counters of a key change.  Counters at COUNTER_MAX always stay there. */
enum count_change {
    COUNT_UP,
    COUNT_UP_ABSENT, /* up, but only if one of them is zero: the key is not there */
    COUNT_DOWN,      /* down, but only if none of them is zero */
};

/* How many counters have changed in ways that the last line of the body counts. */
struct count_tally {
    uint64_t turned; /* up: counters that are zero no more; down: that have become zero */
    uint64_t filled; /* counters that have come to COUNTER_MAX */
};

/* Changes the counters of n keys, and adds to *tally.  answer[i] tells whether key i was there;
 * with COUNT_UP it is always false.  Returns how many answers are true. */
typedef size_t counting_changer(const struct body *b, const struct keyhash *keys,
                                const struct keyhash *ahead, size_t n, enum count_change change,
                                bool *answer, struct count_tally *tally);

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

/* Returns the table that the loops need for so many picks of a key in a line: 1 to 16. */
const struct walks *lines_table(uint64_t picks);

/* The fprs of several lines, and how many of their cells are picked. */
enum { LINES_AT_ONCE = 16 };
struct line_rates {
    float rate[LINES_AT_ONCE];
    uint32_t picked[LINES_AT_ONCE];
};

/* Computes the fprs of LINES_AT_ONCE lines: the chance that all cells of a random key are
 * picked.  The words of the lines are read only once, since other threads may add. */
typedef void line_rater(const uint8_t *lines, unsigned picks, unsigned cells,
                        struct line_rates *rates);

/* Counts the picked cells of n lines.  Their words are read only once, too. */
typedef void picked_counter(const uint8_t *lines, size_t n, unsigned cells, uint32_t *picked);

/* The loops over lines, for one instruction set (../cpu/cpu_loops.h). */
struct line_loops {
    struct loops one;     /* blocked filters that have one line a key */
    struct loops several; /* those that have several */
    struct loops counting;
    struct loops counting_set; /* the same, of a filter that stores no copies */
    counting_changer *change;  /* adds and removals of counting filters */

    /* Returns how many counters of a key are zero. */
    uint64_t (*zeros)(const struct body *b, struct keyhash key);
    line_rater *rates;
    picked_counter *counts;

    /* Adds keys to the lines that were found for them.  (No walk depends on the bits of a mark
     * that are the index of a key.) */
    found_adder *add_found;
};

/* An add() of the loops (loops.h) for bodies that other threads or processes write at the same
 * moment.  A bit is set by an atomic operation, and only if it is clear, since such an
 * operation costs as much as ten others.  If two threads add one new key at once, at least one
 * of them is told that it was not there. */
size_t blocked_add_atomic(const struct body *b, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer);

/* ---- Rate, plan and fill ---------------------------------------------------------------- */

enum { LINES_BANDS_MAX = 8, WORDS = LINE_WORDS };

/* How many different sets of words keys choose: 16 starts by 4 strides.  (There are 8 strides,
 * but a stride and its negative give the same sets.) */
enum { WALKS = WORDS * 4 };

/* Lines that always have the same keys are one block here: all lines of a key with TOGETHER,
 * else a single line.  Return how many lines a block has, and how many blocks a key has. */
static inline unsigned lines_of_block(const struct geometry *g)
{
    return g->field[TOGETHER] ? (unsigned)g->field[BANDS] : 1;
}

static inline unsigned lines_separate_bands(const struct geometry *g)
{
    return g->field[TOGETHER] ? 1 : (unsigned)g->field[BANDS];
}

/* Checks whether the fields are in their ranges.  They may come from an enemy's file. */
bool lines_in_range(const struct geometry *g);

/* Returns the size of all bands in bytes.  The geometry is in range. */
static inline uint64_t lines_nbytes(const struct geometry *g)
{
    return g->field[BANDS] * g->field[BAND_LINES] * LINE_NBYTES;
}

/* Returns the numbers in the last line of a counting filter. */
static inline uint64_t *lines_totals(const struct body *b)
{
    return (uint64_t *)(void *)(b->bytes + lines_nbytes(&b->geometry));
}

/* Returns the fpr with 'keys' different keys, the mean over all seeds. */
double lines_predict(const struct geometry *g, unsigned cells, double keys);

/* Sets the fields to the fewest lines with which g->fpr is kept when keys(g) keys are in, for
 * all seeds but one in 10^9.  A key has one line if fpr >= one_line.  Else it has one line more
 * as long as its filter would take over an eighth more memory without that line.  FAST takes
 * one line where the fpr can be reached with one, and COMPACT takes one more than usual.  With
 * TOGETHER the plan takes up to 3 % more memory to set fewer picks.  Without
 * TOGETHER the number of lines is rounded by fold_round_up().  Returns 0 or
 * PERHAPS_ERR_LIMIT. */
int lines_plan(struct geometry *g, unsigned cells, double one_line,
               enum perhaps_preference preference, double (*keys)(const struct geometry *g));

/* Returns the most keys that a plan would accept with these fields: the largest g->capacity
 * with which g->fpr is kept when keys(g) keys are in, for all seeds but one in 10^9; or 0. */
uint64_t lines_capacity(const struct geometry *g, unsigned cells,
                        double (*keys)(const struct geometry *g));

/* Operations of struct folds. */
uint64_t lines_units(const struct geometry *g);
void lines_divide(struct geometry *g, uint64_t factor);
uint64_t lines_unit_nbytes(const struct geometry *g);
void lines_look(const struct geometry *g, unsigned cells, enum cpu cpu, const uint8_t *bytes,
                uint64_t nbytes, struct folded *folded);
double lines_folded_rate(const struct geometry *g, const struct folded *folded);

/* picking() of struct compares (groups.h), for cells of this size. */
void lines_picking(const struct geometry *g, unsigned cells, struct picking *m);

/* Returns sizing_key_limit() of the geometry: the limit for a kind that does not count keys
 * whose cells were all picked before. */
uint64_t lines_key_limit(const struct geometry *g, unsigned cells);

/* Returns how many of 'keys' different keys pick a cell when they are added, in expectation. */
double lines_counted(const struct geometry *g, unsigned cells, double keys);

/* Returns the most keys, 'most' at most, with which the mean fpr over all seeds is kept. */
double lines_keys_within(const struct geometry *g, unsigned cells, double most);

/* Returns load and fpr of the body: measure() of kind.h. */
struct fill lines_measure(const perhaps_filter *f, unsigned cells, uint64_t most_nbytes);

/* Returns the fpr with this key more, for cells that are bits: rate_with() of kind.h. */
double lines_rate_with(const perhaps_filter *f, struct keyhash key);

/* Lists the lines of a key: reads() of kind.h. */
void lines_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads);

/* Answers by these lines: answer() of kind.h. */
bool lines_answer(const perhaps_filter *f, struct keyhash key, const uint8_t *const *bytes);

#endif
