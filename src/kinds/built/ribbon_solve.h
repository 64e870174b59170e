/* ribbon_solve.h - the loops that solve the equations of ribbon filters.  Some instruction sets
 * count and shift bits faster. */
#include "ribbon.h"

/* A bucket with more keys than this is bumped as a whole: it has about 133. */
enum { BUCKET_KEYS_MOST = 512 };

enum { ALL_BUMPED = 3 };

/* What becomes of an equation that no slot takes: nothing is left of it; nothing but its row;
 * or it goes further than its lane.  Slots are lower numbers. */
#define REDUNDANT     (UINT32_MAX - 2)
#define CONTRADICTORY (UINT32_MAX - 1)
#define OUTSIDE       UINT32_MAX

/* A region of fewer buckets has one lane. */
enum { LANES = 4, LANES_BUCKETS_LEAST = 256 };

/* The region that is solved. */
struct region {
    const struct ribbon_matrix *matrix;
    const struct ribbon_keys *keys;
    uint64_t first, slots; /* the number of its first slot, and the slots of the layer */
    uint8_t *threshold;    /* of each bucket: its number */
};

/* Enters the keys of some buckets: one bucket after the other, from the left to the right, and
 * its keys from the right to the left.  The first key that contradicts the others is bumped,
 * and with it all keys of the bucket that begin below the least threshold beyond it. */
struct lane {
    uint64_t slot; /* where the equation begins now */
    struct equation equation;
    uint64_t slots_end;
    uint64_t key, from, to; /* the number of this key, and those of the bucket's keys */
    uint64_t bucket, buckets_end;
    size_t nentered;
    uint32_t entered[BUCKET_KEYS_MOST]; /* the slots of the keys before it */
};

/* Returns how many keys begin below a slot. */
static uint64_t keys_below(const struct ribbon_keys *keys, uint64_t slot, uint64_t slots)
{
    uint64_t low = 0, high = keys->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (scale64(keys->records[middle * keys->words], slots) < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Begins with the key before the present one. */
static LOOP_INLINE void begin_key(const struct region *r, struct lane *lane)
{
    struct keyhash key = ribbon_hash_of(r->keys, --lane->key);
    lane->slot = scale64(key.place, r->slots) - r->first;
    lane->equation = ribbon_equation_of(r->keys, lane->key, key.mark);
}

/* Begins with the next bucket that has keys, but not too many.  Returns false if the lane has
 * no further one. */
static bool begin_bucket(const struct region *r, struct lane *lane)
{
    for (; lane->bucket < lane->buckets_end; lane->bucket++) {
        uint64_t end = r->first + (lane->bucket + 1) * RIBBON_BUCKET, to = lane->to;
        while (to < r->keys->n &&
               scale64(r->keys->records[to * r->keys->words], r->slots) < end)
            to++;
        lane->from = lane->to;
        lane->key = lane->to = to;
        lane->nentered = 0;
        r->threshold[lane->bucket] = to - lane->from > BUCKET_KEYS_MOST ? ALL_BUMPED : 0;
        if (to > lane->from && !r->threshold[lane->bucket]) {
            begin_key(r, lane);
            return true;
        }
    }
    return false;
}

/* Takes the keys that were entered last out again: those that begin below the threshold.  None
 * that came later has met them. */
static void take_out(const struct region *r, const struct lane *lane, unsigned threshold)
{
    for (size_t n = lane->nentered; n-- > 0;) {
        uint64_t number = lane->to - 1 - n; /* of the key */
        uint64_t slot = scale64(r->keys->records[number * r->keys->words], r->slots) - r->first;
        if (slot % RIBBON_BUCKET < threshold && lane->entered[n] != REDUNDANT)
            r->matrix->coefficients[lane->entered[n]] = 0;
    }
}

/* Deals with what became of a key: 'at' is its slot, or REDUNDANT, CONTRADICTORY or OUTSIDE.
 * Begins with the next one.  Returns false if the lane has none. */
static bool end_key(const struct region *r, struct lane *lane, uint32_t at)
{
    unsigned threshold = 0;
    if (at < CONTRADICTORY) {
        lane->entered[lane->nentered++] = at;
        if (lane->key > lane->from) {
            begin_key(r, lane);
            return true;
        }
    } else if (at == OUTSIDE) { /* the whole bucket comes later */
        take_out(r, lane, RIBBON_BUCKET);
        lane->to = lane->from;
        return false;
    } else {
        struct keyhash key = ribbon_hash_of(r->keys, lane->key);
        uint64_t slot = scale64(key.place, r->slots) - r->first;
        while (slot % RIBBON_BUCKET >= ribbon_threshold(threshold))
            threshold++;
        take_out(r, lane, ribbon_threshold(threshold));
    }
    r->threshold[lane->bucket++] = (uint8_t)threshold;
    return begin_bucket(r, lane);
}

/* Adds to the equation of a lane the one that begins where it begins, if there is one;
 * otherwise it is entered there.  Returns false if the lane has no further key. */
static LOOP_INLINE bool step(const struct region *r, struct lane *lane)
{
    const struct ribbon_matrix *m = r->matrix;
    uint64_t there = m->coefficients[lane->slot];
    if (there) {
        uint64_t left = lane->equation.coefficients ^ there;
        lane->equation.row ^= m->row[lane->slot];
        if (!left)
            return end_key(r, lane, lane->equation.row ? CONTRADICTORY : REDUNDANT);
        unsigned gone = (unsigned)__builtin_ctzll(left);
        lane->slot += gone;
        lane->equation.coefficients = left >> gone;
        return lane->slot < lane->slots_end || end_key(r, lane, OUTSIDE);
    }
    m->coefficients[lane->slot] = lane->equation.coefficients;
    m->row[lane->slot] = lane->equation.row;
    return end_key(r, lane, (uint32_t)lane->slot);
}

/* Runs lanes until none has a further key: one step of each in turn, so that the CPU does the
 * steps of one while those of another wait for each other. */
static void run_lanes(const struct region *r, struct lane *lanes, size_t n)
{
    struct lane *active[LANES];
    size_t nactive = 0;
    for (size_t i = 0; i < n; i++)
        if (begin_bucket(r, &lanes[i]))
            active[nactive++] = &lanes[i];
    while (nactive == LANES)
        for (size_t i = 0; i < LANES; i++)
            if (!step(r, active[i])) {
                active[i] = active[--nactive];
                break;
            }
    for (size_t i = 0; i < nactive; i++)
        while (step(r, active[i]))
            ;
}

/* Enters the keys of a region.  Lanes have an equal share of the buckets each, and touch only
 * the slots of these.  A lane that would have to go further stops; when all have stopped, what
 * is left of each is entered, one after the other.  The last bucket bumps all its keys. */
static void ribbon_enter(const struct ribbon_matrix *m, const struct ribbon_keys *keys,
                         uint64_t first, uint64_t slots, uint8_t *threshold)
{
    const struct region r = { m, keys, first, slots, threshold };
    uint64_t nbuckets = m->slots / RIBBON_BUCKET;
    uint32_t nlanes = nbuckets > LANES_BUCKETS_LEAST ? LANES : 1;
    struct lane lanes[LANES];
    threshold[nbuckets - 1] = ALL_BUMPED;
    for (uint32_t i = 0; i < nlanes; i++) {
        uint64_t from = (nbuckets - 1) * i / nlanes, end = (nbuckets - 1) * (i + 1) / nlanes;
        lanes[i].bucket = from;
        lanes[i].buckets_end = end;
        lanes[i].slots_end = i + 1 < nlanes ? end * RIBBON_BUCKET : m->slots;
        lanes[i].to = keys_below(keys, first + from * RIBBON_BUCKET, slots);
    }
    run_lanes(&r, lanes, nlanes);
    for (uint32_t i = 0; i < nlanes; i++) {
        lanes[i].slots_end = m->slots;
        run_lanes(&r, &lanes[i], 1);
    }
}

static bool ribbon_enter_one(const struct ribbon_matrix *m, uint64_t slot, struct equation e)
{
    for (uint64_t there; (there = m->coefficients[slot]);) {
        e.coefficients ^= there;
        e.row ^= m->row[slot];
        if (!e.coefficients)
            return !e.row;
        unsigned gone = (unsigned)__builtin_ctzll(e.coefficients);
        slot += gone;
        e.coefficients >>= gone;
    }
    m->coefficients[slot] = e.coefficients;
    m->row[slot] = e.row;
    return true;
}

/* Solves a group of columns.  Goes through the slots from the last one to the first; 'column'
 * holds those 64 slots that an equation at the present one touches.  A slot at which no
 * equation begins is 0. */
static LOOP_INLINE void solve_columns(const struct ribbon_matrix *m, unsigned first, unsigned n,
                                      unsigned row_bits, uint8_t *blocks)
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

/* The table. */
#define RIBBON_SOLVER                                                                          \
    {                                                                                          \
        .enter = ribbon_enter, .enter_one = ribbon_enter_one, .solve = ribbon_solve            \
    }
