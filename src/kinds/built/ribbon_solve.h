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

/* How many equations of a lane are on their way at once: as many as fit into registers. */
enum { FLIGHT = 4 };

/* A region of fewer buckets has one lane.  Lanes gain nothing by now, but with others the bytes
 * of a filter would be others. */
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
    uint64_t slots_end;
    uint64_t from, to; /* the numbers of the bucket's keys */
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
        lane->to = to;
        lane->nentered = 0;
        r->threshold[lane->bucket] = to - lane->from > BUCKET_KEYS_MOST ? ALL_BUMPED : 0;
        if (to > lane->from && !r->threshold[lane->bucket])
            return true;
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

/* An equation on its way. */
struct flight {
    uint64_t slot; /* where it begins now; that behind the last one, which is empty: it ended */
    struct equation equation; /* if it ended, what became of it is the row */
};

static LOOP_INLINE struct flight ended(const struct region *r, uint32_t fate)
{
    return (struct flight){ r->matrix->slots, { 1, fate } };
}

static LOOP_INLINE struct flight flight_of(const struct region *r, uint64_t key)
{
    struct keyhash hash = ribbon_hash_of(r->keys, key);
    return (struct flight){ scale64(hash.place, r->slots) - r->first,
                            ribbon_equation_of(r->keys, key, hash.mark) };
}

/* Adds to an equation the one that begins where it begins.  Without one it stays as it is, and
 * waits for its turn. */
static LOOP_INLINE void step(const struct region *r, const struct lane *lane,
                             struct flight *flight)
{
    const struct ribbon_matrix *m = r->matrix;
    uint64_t there = m->coefficients[flight->slot];
    uint64_t left = flight->equation.coefficients ^ there;
    flight->equation.row ^= there ? m->row[flight->slot] : 0;
    if (!left) {
        *flight = ended(r, flight->equation.row ? CONTRADICTORY : REDUNDANT);
        return;
    }
    unsigned gone = (unsigned)__builtin_ctzll(left);
    flight->slot += gone;
    flight->equation.coefficients = left >> gone;
    if (flight->slot >= lane->slots_end && there)
        *flight = ended(r, OUTSIDE);
}

/* Enters the keys of a bucket.  Several are on their way at once, so that the CPU does the
 * steps of one while those of another wait for each other; but they are entered in their order:
 * the first one at the first empty slot that it comes to, while the others wait where they are.
 * So they meet the equations that they would meet one by one.  Returns the number of the key
 * that could not be entered, and sets *fate to what became of it; or returns lane->to. */
static LOOP_INLINE uint64_t enter_bucket(const struct region *r, struct lane *lane,
                                         uint32_t *fate)
{
    const struct ribbon_matrix *m = r->matrix;
    struct flight flight[FLIGHT];
    uint64_t next = lane->to; /* the key before it is the next one to begin */
    for (size_t i = 0; i < FLIGHT; i++)
        flight[i] = next > lane->from ? flight_of(r, --next) : ended(r, OUTSIDE);
    for (uint64_t key = lane->to; key > lane->from;) {
        for (size_t i = 0; i < FLIGHT; i++)
            step(r, lane, &flight[i]);
        uint64_t at = flight[0].slot;
        if (m->coefficients[at])
            continue;
        key--;
        if (at < m->slots) {
            m->coefficients[at] = flight[0].equation.coefficients;
            m->row[at] = flight[0].equation.row;
        } else {
            at = flight[0].equation.row;
            if (at != REDUNDANT) {
                *fate = (uint32_t)at;
                return key;
            }
        }
        lane->entered[lane->nentered++] = (uint32_t)at;
        for (size_t i = 0; i + 1 < FLIGHT; i++)
            flight[i] = flight[i + 1];
        flight[FLIGHT - 1] = next > lane->from ? flight_of(r, --next) : ended(r, OUTSIDE);
    }
    return lane->to;
}

/* Enters the buckets of a lane, until one has to go further. */
static void run_lane(const struct region *r, struct lane *lane)
{
    while (begin_bucket(r, lane)) {
        unsigned threshold = 0;
        uint32_t fate = 0;
        uint64_t key = enter_bucket(r, lane, &fate);
        if (key < lane->to && fate == OUTSIDE) { /* the whole bucket comes later */
            take_out(r, lane, RIBBON_BUCKET);
            lane->to = lane->from;
            return;
        }
        if (key < lane->to) {
            uint64_t slot = flight_of(r, key).slot;
            while (slot % RIBBON_BUCKET >= ribbon_threshold(threshold))
                threshold++;
            take_out(r, lane, ribbon_threshold(threshold));
        }
        r->threshold[lane->bucket++] = (uint8_t)threshold;
    }
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
    m->coefficients[m->slots] = 0;
    for (uint32_t i = 0; i < nlanes; i++) {
        uint64_t from = (nbuckets - 1) * i / nlanes, end = (nbuckets - 1) * (i + 1) / nlanes;
        lanes[i].bucket = from;
        lanes[i].buckets_end = end;
        lanes[i].slots_end = i + 1 < nlanes ? end * RIBBON_BUCKET : m->slots;
        lanes[i].to = keys_below(keys, first + from * RIBBON_BUCKET, slots);
        run_lane(&r, &lanes[i]);
    }
    for (uint32_t i = 0; i < nlanes; i++) {
        lanes[i].slots_end = m->slots;
        run_lane(&r, &lanes[i]);
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
