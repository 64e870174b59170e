/* lines_scalar.h - a line in plain C: the reference that all other instruction sets must equal.
 * lines_loops.h tells what is defined here.  (A loop for each number of bits was at most 4 %
 * faster, and twelve times as large.) */

/* Looks at every bit, so that there is no branch to mispredict.  Thanks to the comparison gcc
 * sets the bit by one instruction (bts), where a shift by a variable takes three: a fifth
 * faster. */
static LOOP_INLINE bool line_has(const struct body *b, uint8_t *line, uint64_t mark)
{
    const uint32_t *words = (const void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    uint32_t misses = 0;
    for (unsigned i = 0; i < b->geometry.field[LINE_BITS]; i++) {
        uint32_t word = __atomic_load_n(&words[walk.word], __ATOMIC_RELAXED);
        misses += (word | UINT32_C(1) << blocked_bit(walk.factor, i)) > word;
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return !misses;
}

/* Loads and stores whole words, so that concurrent readers see each word old or new.  Only one
 * thread may write the line. */
static LOOP_INLINE bool line_add(const struct body *b, uint8_t *line, uint64_t mark)
{
    uint32_t *words = (void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    uint32_t misses = 0;
    for (unsigned i = 0; i < b->geometry.field[LINE_BITS]; i++) {
        uint32_t *at = &words[walk.word];
        uint32_t word = __atomic_load_n(at, __ATOMIC_RELAXED);
        uint32_t with = word | UINT32_C(1) << blocked_bit(walk.factor, i);
        misses += with > word;
        __atomic_store_n(at, with, __ATOMIC_RELAXED);
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return !misses;
}

static LOOP_INLINE unsigned counters_zeros(const struct body *b, uint8_t *line, uint64_t mark)
{
    const uint32_t *words = (const void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    unsigned zeros = 0;
    for (unsigned i = 0; i < b->geometry.field[LINE_BITS]; i++) {
        uint32_t word = __atomic_load_n(&words[walk.word], __ATOMIC_RELAXED);
        zeros += !(word >> counting_shift(walk.factor, i) & COUNTER_MAX);
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return zeros;
}

static LOOP_INLINE bool counters_have(const struct body *b, uint8_t *line, uint64_t mark)
{
    return !counters_zeros(b, line, mark);
}

static LOOP_INLINE unsigned counters_least(const struct body *b, uint8_t *line, uint64_t mark)
{
    const uint32_t *words = (const void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    uint32_t least = COUNTER_MAX;
    for (unsigned i = 0; i < b->geometry.field[LINE_BITS]; i++) {
        uint32_t word = __atomic_load_n(&words[walk.word], __ATOMIC_RELAXED);
        uint32_t counter = word >> counting_shift(walk.factor, i) & COUNTER_MAX;
        least = counter < least ? counter : least;
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return least;
}

/* In plain C there are no lanes to add up. */
struct line_tally {
    struct count_tally sum;
};

static LOOP_INLINE void line_tally_end(const struct line_tally *line, struct count_tally *tally)
{
    tally->turned += line->sum.turned;
    tally->filled += line->sum.filled;
}

static LOOP_INLINE void line_count(const struct body *b, uint8_t *line, uint64_t mark, bool up,
                                   bool moves, struct line_tally *tally)
{
    uint32_t *words = (void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    for (unsigned i = 0; i < b->geometry.field[LINE_BITS]; i++) {
        uint32_t *at = &words[walk.word];
        unsigned shift = counting_shift(walk.factor, i);
        uint32_t word = __atomic_load_n(at, __ATOMIC_RELAXED);
        uint32_t counter = word >> shift & COUNTER_MAX;
        uint32_t one = moves & (counter < COUNTER_MAX);
        __atomic_store_n(at, up ? word + (one << shift) : word - (one << shift),
                         __ATOMIC_RELAXED);
        tally->sum.turned += one & (counter == (up ? 0 : 1));
        tally->sum.filled += one & up & (counter == COUNTER_MAX - 1);
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
}

static LOOP_INLINE bool line_change(const struct body *b, uint8_t *line, uint64_t mark,
                                    enum count_change change, struct count_tally *tally)
{
    struct line_tally all = { 0 };
    const bool there = change != COUNT_UP && counters_have(b, line, mark);
    line_count(b, line, mark, change != COUNT_DOWN, there == (change == COUNT_DOWN), &all);
    line_tally_end(&all, tally);
    return there;
}
