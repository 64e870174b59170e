/* bitmap.c - a bit for each integer of a range: a set without any error.
 *
 *   body = a bit for each integer from 'low' to 'high', in their order, bit i being bit i mod 8
 *          of byte i / 8, and zeros up to a whole line
 *
 * No key is hashed: the place of a key is the integer itself.  Hashes that are no integer have
 * a mark.  They, and integers outside of the range, are certainly not there and cannot be
 * added.
 * Limits: 2^48 integers.
 * Invariant: the bit of an integer is set if and only if it was added and not removed since.
 * The number of keys is the number of bits set. */
#include <math.h>
#include <stdio.h>

#include "../../base/bytes.h"
#include "../../filter/counters.h"
#include "../kinds.h"
#include "../lines/cells.h"

enum { LOW, HIGH }; /* its fields */

static const char *const field_names[] = { "low", "high", NULL };

enum { CELL_NBITS = 64 };

/* No count of keys comes near this limit, not even with all integers and what threads are about
 * to add: such a filter is never full. */
#define KEY_LIMIT (UINT64_C(1) << 62)

/* ---- Plan ------------------------------------------------------------------------------ */

static uint64_t range_of(const struct geometry *g)
{
    return g->field[HIGH] - g->field[LOW] + 1;
}

static int bitmap_set_geometry(struct geometry *g)
{
    uint64_t low = g->field[LOW], high = g->field[HIGH];
    if (high == 0 || low > high || high - low >= PERHAPS_CAPACITY_MAX ||
        g->capacity != range_of(g))
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = round_up((g->capacity + 7) / 8, LINE_NBYTES);
    g->key_limit = KEY_LIMIT;
    return 0;
}

static int bitmap_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    const struct perhaps_bitmap_options *range = &options->bitmap;
    const uint64_t sorted_nbits = 64; /* an integer in a sorted array, which is exact, too */
    uint64_t keys = g->capacity;
    if (range->high == 0 || range->low > range->high)
        return PERHAPS_ERR_ARGUMENT;
    g->field[LOW] = range->low;
    g->field[HIGH] = range->high;
    g->capacity = range_of(g);
    if (keys > g->capacity)
        return PERHAPS_ERR_LIMIT;
    bool sparse = keys && keys < g->capacity / sorted_nbits;
    snprintf(why, WHY_NBYTES, "exact: a bit for each integer of the range, one access a key%s",
             sparse ? "; for so few keys a sorted array of 8 bytes each takes less" : "");
    return 0;
}

static double bitmap_predict(const struct geometry *g, double keys)
{
    (void)g;
    (void)keys;
    return 0;
}

static struct fill bitmap_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    (void)most_nbytes;
    double keys = (double)counter_get(&f->counters->keys);
    return (struct fill){ .load = fmin(keys / (double)range_of(&f->body.geometry), 1) };
}

/* ---- Loops ----------------------------------------------------------------------------- */

/* Where the bit of a key is; for keys that have none, some other bit. */
struct spot {
    uint64_t *cell;
    unsigned bit;
    bool exists;
};

static ALWAYS_INLINE struct spot spot_of(const struct body *b, struct keyhash key)
{
    uint64_t low = b->geometry.field[LOW], offset = key.place - low;
    bool exists = (offset <= b->geometry.field[HIGH] - low) & !key.mark;
    offset = exists ? offset : 0;
    return (struct spot){ (uint64_t *)(void *)b->bytes + offset / CELL_NBITS,
                          (unsigned)(offset % CELL_NBITS), exists };
}

static ALWAYS_INLINE bool is_set(struct spot spot)
{
    return __atomic_load_n(spot.cell, __ATOMIC_RELAXED) >> spot.bit & spot.exists;
}

/* Set or clear the bit, which exists.  Return whether it was set before. */
typedef bool bit_changer(struct spot spot);

static ALWAYS_INLINE bool set(struct spot spot)
{
    uint64_t before = __atomic_load_n(spot.cell, __ATOMIC_RELAXED);
    __atomic_store_n(spot.cell, before | UINT64_C(1) << spot.bit, __ATOMIC_RELAXED);
    return before >> spot.bit & 1;
}

static ALWAYS_INLINE bool bitmap_clear(struct spot spot)
{
    uint64_t before = __atomic_load_n(spot.cell, __ATOMIC_RELAXED);
    __atomic_store_n(spot.cell, before & ~(UINT64_C(1) << spot.bit), __ATOMIC_RELAXED);
    return before >> spot.bit & 1;
}

/* The same while other threads or processes write.  They look first, since an atomic operation
 * is expensive and a key may often be added again. */
static ALWAYS_INLINE bool set_atomic(struct spot spot)
{
    uint64_t mask = UINT64_C(1) << spot.bit;
    return is_set(spot) || __atomic_fetch_or(spot.cell, mask, __ATOMIC_RELEASE) & mask;
}

static ALWAYS_INLINE bool clear_atomic(struct spot spot)
{
    uint64_t mask = UINT64_C(1) << spot.bit;
    return is_set(spot) && __atomic_fetch_and(spot.cell, ~mask, __ATOMIC_RELEASE) & mask;
}

static void prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        PREFETCH(spot_of(b, keys[i]).cell);
}

static size_t bitmap_contains(const struct body *b, const struct keyhash *keys,
                              const struct keyhash *ahead, size_t n, bool *answer)
{
    const struct body body = *b; /* so that answers cannot change it */
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        PREFETCH(spot_of(&body, ahead[i]).cell);
        answer[i] = is_set(spot_of(&body, keys[i]));
        found += answer[i];
    }
    return found;
}

static bool contains_one(const struct body *b, struct keyhash key)
{
    return is_set(spot_of(b, key));
}

/* Adds keys, or removes them: only those that have a bit. */
static ALWAYS_INLINE size_t change_all(const struct body *b, const struct keyhash *keys,
                                       const struct keyhash *ahead, size_t n, bool *answer,
                                       bit_changer *change)
{
    const struct body body = *b;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        struct spot spot = spot_of(&body, keys[i]);
        PREFETCH(spot_of(&body, ahead[i]).cell);
        answer[i] = spot.exists && change(spot);
        found += answer[i];
    }
    return found;
}

static size_t lines_of(const struct body *b, const struct keyhash *keys, size_t n,
                       uint64_t *line)
{
    size_t i = 0;
    for (struct spot spot; i < n && (spot = spot_of(b, keys[i])).exists; i++)
        line[i] = (uint64_t)((uint8_t *)spot.cell - b->bytes) / 64;
    return i;
}

static size_t add_all(const struct body *b, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer)
{
    return change_all(b, keys, ahead, n, answer, set);
}

static size_t add_all_atomic(const struct body *b, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer)
{
    return change_all(b, keys, ahead, n, answer, set_atomic);
}

static int bitmap_add_one(const struct body *b, struct keyhash key, struct counters *counters)
{
    struct spot spot = spot_of(b, key);
    if (!spot.exists)
        return PERHAPS_ERR_ARGUMENT;
    counters->keys += !set(spot);
    return 0;
}

ADD_NEW_ONE(bitmap_add_new_one, bitmap_add_one)

static int bitmap_remove_one(const struct body *b, struct keyhash key,
                             struct counters *counters)
{
    struct spot spot = spot_of(b, key);
    return count_removal(counters, spot.exists && bitmap_clear(spot));
}

/* Counts a new key before it is there: another thread may remove it, and take it off. */
static enum shared_add add_one_shared(const struct body *b, struct keyhash key, uint64_t *count,
                                      uint64_t most)
{
    struct spot spot = spot_of(b, key);
    if (!spot.exists)
        return SHARED_REFUSED;
    if (is_set(spot))
        return SHARED_PRESENT;
    if (!count_below(count, most))
        return SHARED_NO_ROOM;
    if (!set_atomic(spot))
        return SHARED_ADDED;
    __atomic_fetch_sub(count, 1, __ATOMIC_RELAXED);
    return SHARED_PRESENT;
}

static const struct loops loops = { .prefetch = prefetch,
                                    .contains = bitmap_contains,
                                    .add = add_all,
                                    .lines = lines_of,
                                    .contains_one = contains_one,
                                    .add_one = bitmap_add_one,
                                    .add_new_one = bitmap_add_new_one,
                                    .remove_one = bitmap_remove_one,
                                    .add_one_shared = add_one_shared };

/* ---- Operations ------------------------------------------------------------------------ */

static void bitmap_bind(perhaps_filter *f)
{
    f->loops = &loops;
}

/* Returns how many keys there are before the first one that has no bit. */
static size_t count_in_range(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    size_t i = 0;
    while (i < n && spot_of(&f->body, keys[i]).exists)
        i++;
    return i;
}

static int bitmap_add(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done)
{
    const size_t can = count_in_range(f, keys, n);
    (f->shared ? add_all_atomic : add_all)(&f->body, keys, ahead, can, answer);
    *done = can;
    (void)unless_present; /* adding a key that is there changes nothing */
    return can < n ? PERHAPS_ERR_ARGUMENT : 0;
}

static size_t remove_all(perhaps_filter *f, const struct keyhash *keys,
                         const struct keyhash *ahead, size_t n, bool *answer)
{
    return f->shared ? change_all(&f->body, keys, ahead, n, answer, clear_atomic)
                     : change_all(&f->body, keys, ahead, n, answer, bitmap_clear);
}

/* Returns the number of the bit of a key, or NO_BIT. */
#define NO_BIT UINT64_MAX
static uint64_t offset_of(const struct geometry *g, struct keyhash key)
{
    const uint64_t offset = key.place - g->field[LOW];
    return offset <= g->field[HIGH] - g->field[LOW] && !key.mark ? offset : NO_BIT;
}

static void bitmap_reads(const perhaps_filter *f, struct keyhash key, struct reads *r)
{
    const uint64_t offset = offset_of(&f->body.geometry, key);
    if (offset != NO_BIT)
        reads_add(r, offset / CELL_NBITS * sizeof(uint64_t), sizeof(uint64_t));
}

static bool bitmap_answer(const perhaps_filter *f, struct keyhash key,
                          const uint8_t *const *bytes)
{
    const uint64_t offset = offset_of(&f->body.geometry, key);
    return offset != NO_BIT && load64(bytes[0]) >> offset % CELL_NBITS & 1;
}

/* Returns how many of the first 'nbits' bits are set.  A file from an enemy may have more
 * behind them. */
static uint64_t count_bits(const uint8_t *bytes, uint64_t nbits)
{
    uint64_t set = 0, whole = nbits / CELL_NBITS, rest = nbits % CELL_NBITS;
    for (uint64_t i = 0; i < 2 * whole; i++)
        set += bits_set32(load32(bytes + i * sizeof(uint32_t)));
    if (rest)
        set += (uint64_t)__builtin_popcountll(load64(bytes + whole * sizeof(uint64_t)) &
                                              ((UINT64_C(1) << rest) - 1));
    return set;
}

static int bitmap_merge(perhaps_filter *f, const perhaps_filter *other)
{
    uint8_t *bytes = f->body.bytes;
    for (uint64_t at = 0; at < f->body.geometry.body_nbytes; at += sizeof(uint64_t))
        store64(bytes + at, load64(bytes + at) | load64(other->body.bytes + at));
    f->counters->keys = count_bits(bytes, range_of(&f->body.geometry));
    return 0;
}

static void intersect(perhaps_filter *f, const perhaps_filter *other)
{
    cells_keep_common(f, other);
    f->counters->keys = count_bits(f->body.bytes, range_of(&f->body.geometry));
}

static void bitmap_picking(const struct geometry *g, struct picking *m)
{
    *m = (struct picking){ .cells = (double)range_of(g), .exact = true };
}

/* Does not count what a file from an enemy may have behind the last bit. */
static void bitmap_count_picked(const perhaps_filter *a, uint64_t a_factor,
                                const perhaps_filter *b, uint64_t b_factor,
                                struct picked *picked)
{
    (void)a_factor;
    (void)b_factor;
    const uint8_t *in_a = a->body.bytes, *in_b = b->body.bytes;
    const uint64_t line_nbits = 8 * LINE_NBYTES, nbits = range_of(&a->body.geometry);
    uint64_t whole = nbits / line_nbits * LINE_NBYTES, left = nbits % line_nbits;
    cells_count(a, b, whole, picked);
    picked->a += count_bits(in_a + whole, left);
    picked->b += count_bits(in_b + whole, left);
    for (uint64_t i = 0; i < left; i++)
        picked->either += (in_a[whole + i / 8] | in_b[whole + i / 8]) >> i % 8 & 1;
}

static const struct compares compares = { .picking = bitmap_picking,
                                          .count = bitmap_count_picked };

const struct filter_kind kind_bitmap = {
    .about = { .name = "bitmap",
               .summary = "a bit for each integer of a range: no error, can remove",
               .abilities = PERHAPS_CAN_REMOVE | PERHAPS_CAN_MERGE | PERHAPS_CAN_SHARE |
                            PERHAPS_CAN_THREADS },
    .id = 10,
    .field_names = field_names,
    .plan = bitmap_plan,
    .set_geometry = bitmap_set_geometry,
    .predict = bitmap_predict,
    .measure = bitmap_measure,
    .bind = bitmap_bind,
    .exact = true,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = bitmap_reads,
    .answer = bitmap_answer,
    .add = bitmap_add,
    .remove = remove_all,
    .merge = bitmap_merge,
    .intersect = intersect,
    .compares = &compares,
};
