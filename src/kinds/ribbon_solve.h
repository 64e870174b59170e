/* ribbon_solve.h - solves the equations of ribbon filters, for one instruction set; each_cpu.h
 * includes it.  The text is the same for all, but some count and shift bits faster. */
#ifndef RIBBON_SOLVE_NAMES
#define RIBBON_SOLVE_NAMES
#define reduce           FOR_CPU(reduce)
#define enter_bucket     FOR_CPU(enter_bucket)
#define ribbon_enter     FOR_CPU(ribbon_enter)
#define ribbon_enter_one FOR_CPU(ribbon_enter_one)
#define solve_columns    FOR_CPU(solve_columns)
#define ribbon_solve     FOR_CPU(ribbon_solve)
#endif

/* Adds to an equation those that begin where it begins, until it begins at a slot of its own.
 * Returns that slot; REDUNDANT if nothing is left of it; or CONTRADICTORY. */
static ALWAYS_INLINE uint64_t reduce(const struct ribbon_matrix *m, uint64_t slot,
                                     struct equation e)
{
    for (uint64_t there; (there = m->coefficients[slot]);) {
        e.coefficients ^= there;
        e.row ^= m->row[slot];
        if (!e.coefficients)
            return e.row ? CONTRADICTORY : REDUNDANT;
        unsigned gone = (unsigned)__builtin_ctzll(e.coefficients);
        slot += gone;
        e.coefficients >>= gone;
    }
    m->coefficients[slot] = e.coefficients;
    m->row[slot] = e.row;
    return slot;
}

/* Enters the keys from..to-1 of one bucket, the last one first.  The first key that contradicts
 * the others is bumped, and with it all keys of the bucket that begin below the least threshold
 * beyond it: those that were entered already come out again.  Returns the number of the
 * threshold. */
static ALWAYS_INLINE uint8_t enter_bucket(const struct ribbon_matrix *m,
                                          const struct ribbon_keys *keys, uint64_t from,
                                          uint64_t to, uint64_t first, uint64_t slots)
{
    uint64_t entered[BUCKET_KEYS_MOST];
    size_t n = 0;
    uint8_t threshold = 0;
    if (to - from > BUCKET_KEYS_MOST)
        return ALL_BUMPED;
    for (uint64_t i = to; i-- > from && !threshold;) {
        struct keyhash key = ribbon_hash_of(keys, i);
        uint64_t slot = scale64(key.place, slots) - first;
        entered[n++] = reduce(m, slot, ribbon_equation_of(keys, i, key.mark));
        if (entered[n - 1] == CONTRADICTORY)
            while (slot % RIBBON_BUCKET >= ribbon_threshold(threshold))
                threshold++;
    }
    for (uint64_t i = to - n; threshold && i < to; i++) {
        uint64_t slot = scale64(keys->records[i * keys->words], slots) - first;
        if (slot % RIBBON_BUCKET >= ribbon_threshold(threshold))
            break;
        uint64_t at = entered[to - 1 - i];
        if (at < REDUNDANT)
            m->coefficients[at] = 0;
    }
    return threshold;
}

static void ribbon_enter(const struct ribbon_matrix *m, const struct ribbon_keys *keys,
                         uint64_t first, uint64_t slots, uint8_t *threshold)
{
    uint64_t to = 0, nbuckets = m->slots / RIBBON_BUCKET;
    for (uint64_t bucket = 0; bucket + 1 < nbuckets; bucket++) {
        uint64_t from = to, end = first + (bucket + 1) * RIBBON_BUCKET;
        while (to < keys->n && scale64(keys->records[to * keys->words], slots) < end)
            to++;
        threshold[bucket] = enter_bucket(m, keys, from, to, first, slots);
    }
    threshold[nbuckets - 1] = ALL_BUMPED;
}

static bool ribbon_enter_one(const struct ribbon_matrix *m, uint64_t slot, struct equation e)
{
    return reduce(m, slot, e) != CONTRADICTORY;
}

/* Solves a group of columns.  Goes through the slots from the last one to the first; 'column'
 * holds those 64 slots that an equation at the present one touches.  A slot at which no equation
 * begins is 0. */
static ALWAYS_INLINE void solve_columns(const struct ribbon_matrix *m, unsigned first,
                                        unsigned n, unsigned row_bits, uint8_t *blocks)
{
    uint64_t column[RIBBON_GROUP] = { 0 };
    for (uint64_t block = m->slots / RIBBON_WINDOW; block-- > 0;) {
        for (uint64_t slot = (block + 1) * RIBBON_WINDOW; slot-- > block * RIBBON_WINDOW;) {
            uint64_t coefficients = m->coefficients[slot];
            uint32_t row = coefficients ? m->row[slot] >> first : 0;
            for (unsigned c = 0; c < n; c++) {
                column[c] <<= 1;
                column[c] |=
                    ((uint64_t)__builtin_parityll(column[c] & coefficients) ^ row >> c) & 1;
            }
        }
        memcpy(blocks + ribbon_words_at(block, first, m->stripe, row_bits), column,
               n * sizeof *column);
    }
}

static void ribbon_solve(const struct ribbon_matrix *m, unsigned row_bits, uint8_t *blocks)
{
    unsigned done = 0;
    for (; done + RIBBON_GROUP <= row_bits; done += RIBBON_GROUP)
        solve_columns(m, done, RIBBON_GROUP, row_bits, blocks);
    if (done < row_bits)
        solve_columns(m, done, row_bits - done, row_bits, blocks);
}
