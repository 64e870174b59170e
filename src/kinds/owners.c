/* owners.c - adds for many writers: sorts a batch of keys by region, and adds them region by
 * region. */
#include "owners.h"

#include <sched.h>

#include "../base/locks.h"
#include "bloom.h"
#include "lines.h"

/* A place is the number of a line (blocked) or of a bit (bloom).  A batch has at most this many
 * places. */
enum { PLACES_MAX = 1024 };

/* In which order the places of a batch are dealt with: turn by turn, where a turn has all
 * places of one region. */
struct order {
    unsigned shift;              /* place >> shift is the region */
    unsigned first;              /* the region whose turn comes first */
    uint16_t start[REGIONS + 1]; /* turn t has at[start[t]] to at[start[t + 1] - 1] */

    /* The indices of the places, sorted by turn.  The last one is repeated, for prefetching
     * ahead of the end. */
    uint16_t at[PLACES_MAX + BATCH_AHEAD];
};

/* Returns the smallest shift that gives at most REGIONS regions, each of whole places. */
static unsigned region_shift(uint64_t range)
{
    unsigned shift = 0;
    while ((range - 1) >> shift >= REGIONS)
        shift++;
    return shift;
}

/* Fills in the order of n places, by a counting sort. */
static void sort_places(struct order *o, const uint64_t *place, size_t n, uint64_t range)
{
    uint8_t turn[PLACES_MAX];
    uint16_t next[REGIONS] = { 0 };
    o->shift = region_shift(range);
    /* Threads should begin with different regions.  The address of 'o' differs from thread to
     * thread, since it lies on their stacks. */
    o->first = (unsigned)((uint64_t)(uintptr_t)o * ODD_GOLDEN >> 32) % REGIONS;
    for (size_t i = 0; i < n; i++) {
        turn[i] = (uint8_t)(((place[i] >> o->shift) + REGIONS - o->first) % REGIONS);
        next[turn[i]]++;
    }
    o->start[0] = 0;
    for (unsigned t = 0; t < REGIONS; t++) {
        o->start[t + 1] = (uint16_t)(o->start[t] + next[t]);
        next[t] = o->start[t];
    }
    for (size_t i = 0; i < n; i++)
        o->at[next[turn[i]]++] = (uint16_t)i;
    for (size_t i = 0; i < BATCH_AHEAD; i++)
        o->at[n + i] = o->at[n - 1];
}

/* Adds what the order has at the numbers from .. to-1.  The lock of its region is held. */
typedef void add_turn(void *context, size_t from, size_t to);

static uint8_t *lock_of(struct owners *owners, const struct order *o, unsigned turn)
{
    return &owners->region[(turn + o->first) % REGIONS].lock;
}

/* Calls add() for each turn with the lock of its region.  If another writer holds a lock, the
 * turn is left for later: writers wait only when all regions that are left are taken. */
static void take_turns(struct owners *owners, const struct order *o, add_turn *add,
                       void *context)
{
    uint32_t pending = 0;
    for (unsigned t = 0; t < REGIONS; t++)
        pending |= (uint32_t)(o->start[t + 1] > o->start[t]) << t;
    while (pending) {
        uint32_t before = pending;
        for (uint32_t left = pending; left; left &= left - 1) {
            unsigned t = (unsigned)__builtin_ctz(left);
            uint8_t *lock = lock_of(owners, o, t);
            uint32_t behind = left & (left - 1);
            if (behind) /* the next lock probably lies in another core's cache */
                __builtin_prefetch(lock_of(owners, o, (unsigned)__builtin_ctz(behind)), 1, 3);
            if (!lock_try(lock))
                continue;
            add(context, o->start[t], o->start[t + 1]);
            lock_release(lock);
            pending &= ~(UINT32_C(1) << t);
        }
        if (pending == before)
            sched_yield();
    }
}

/* ---- Lines ------------------------------------------------------------------------------- */

/* The keys of a batch and their answers, in the order of the turns. */
struct lines {
    const struct owned_lines *of;
    struct keyhash keys[BATCH_MOST + BATCH_AHEAD];
    bool answer[BATCH_MOST];
};

/* Returns the hash of a key for this body. */
static struct keyhash key_of(const struct owned_lines *lines, struct keyhash key)
{
    return (struct keyhash){ .place = key.place * lines->times.place,
                             .mark = key.mark * lines->times.mark };
}

/* Returns the number of a key's line. */
static uint64_t line_of(const struct owned_lines *lines, struct keyhash key)
{
    return scale64(key_of(lines, key).place, lines->body.field[PART_LINES]);
}

static void add_lines(void *context, size_t from, size_t to)
{
    struct lines *l = context;
    const struct keyhash *keys = l->keys + from;
    l->of->loops->add(&l->of->body, keys, keys + BATCH_AHEAD, to - from, l->answer + from);
}

/* Adds a single key: no need to sort. */
static void add_one_line(struct owners *owners, const struct owned_lines *lines,
                         struct keyhash key, bool *answer)
{
    unsigned shift = region_shift(lines->body.field[PART_LINES]);
    uint8_t *lock = &owners->region[line_of(lines, key) >> shift].lock;
    key = key_of(lines, key);
    lock_take(lock);
    lines->loops->add(&lines->body, &key, &key, 1, answer);
    lock_release(lock);
}

static void sort_keys(struct order *o, const struct owned_lines *lines,
                      const struct keyhash *keys, size_t n)
{
    uint64_t place[BATCH_MOST];
    for (size_t i = 0; i < n; i++)
        place[i] = line_of(lines, keys[i]);
    sort_places(o, place, n, lines->body.field[PART_LINES]);
}

/* Adds the keys in their order.  Not inlined, so that its arrays and those of the sorting are
 * not on the stack at the same time. */
static __attribute__((noinline)) void add_in_order(struct owners *owners, const struct order *o,
                                                   const struct owned_lines *lines,
                                                   const struct keyhash *keys, size_t n,
                                                   bool *answer)
{
    struct lines l;
    l.of = lines;
    size_t i = 0;
    do /* at least once, or gcc warns that l.keys may have no content */
        l.keys[i] = key_of(lines, keys[o->at[i]]);
    while (++i < n + BATCH_AHEAD);
    lines->loops->prefetch(&lines->body, l.keys, n < BATCH_AHEAD ? n : BATCH_AHEAD);
    take_turns(owners, o, add_lines, &l);
    for (i = 0; i < n; i++)
        answer[o->at[i]] = l.answer[i];
}

void owners_add_lines(struct owners *owners, const struct owned_lines *lines,
                      const struct keyhash *keys, size_t n, bool *answer)
{
    struct order o;
    if (n == 1)
        add_one_line(owners, lines, *keys, answer);
    if (n <= 1)
        return;
    sort_keys(&o, lines, keys, n);
    add_in_order(owners, &o, lines, keys, n, answer);
}

/* ---- Bits -------------------------------------------------------------------------------- */

/* The bits of a batch of keys. */
struct bits {
    const struct order *order;
    uint8_t *body;
    bool *answer;
    uint64_t place[PLACES_MAX];
    uint16_t key[PLACES_MAX]; /* the index of the key that has this bit */
};

static ALWAYS_INLINE void prefetch_bit(const struct bits *b, size_t number)
{
    PREFETCH(b->body + (b->place[b->order->at[number]] >> 3));
}

static void add_bits(void *context, size_t from, size_t to)
{
    struct bits *b = context;
    for (size_t i = from; i < to; i++) {
        unsigned at = b->order->at[i];
        uint8_t *byte = b->body + (b->place[at] >> 3);
        unsigned mask = 1U << (b->place[at] & 7);
        unsigned before = __atomic_load_n(byte, __ATOMIC_RELAXED);
        prefetch_bit(b, i + BATCH_AHEAD);
        __atomic_store_n(byte, (uint8_t)(before | mask), __ATOMIC_RELAXED);
        b->answer[b->key[at]] &= (before & mask) != 0;
    }
}

/* Adds as many keys as have at most PLACES_MAX bits. */
static void add_some(struct owners *owners, uint8_t *body, const uint64_t *field,
                     const struct keyhash *keys, size_t n, bool *answer)
{
    struct order o;
    struct bits b;
    size_t count = 0;
    if (n == 0)
        return;
    b.order = &o;
    b.body = body;
    b.answer = answer;
    for (size_t i = 0; i < n; i++) {
        uint64_t place = keys[i].place;
        answer[i] = true;
        for (uint64_t k = 0; k < field[KEY_BITS]; k++) {
            b.place[count] = scale64(place, field[NBITS]);
            b.key[count++] = (uint16_t)i;
            place = bloom_next_place(place, keys[i].mark);
        }
    }
    /* regions begin at whole bytes, since two threads must not write one byte */
    sort_places(&o, b.place, count, round_up(field[NBITS], 8 * REGIONS));
    for (size_t i = 0; i < BATCH_AHEAD && i < count; i++)
        prefetch_bit(&b, i);
    take_turns(owners, &o, add_bits, &b);
}

void owners_add_bits(struct owners *owners, uint8_t *body, const uint64_t *field,
                     const struct keyhash *keys, size_t n, bool *answer)
{
    size_t most = PLACES_MAX / (size_t)field[KEY_BITS];
    for (size_t at = 0; at < n; at += most)
        add_some(owners, body, field, keys + at, n - at < most ? n - at : most, answer + at);
}
