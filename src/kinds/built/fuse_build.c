/* fuse_build.c - makes the body of a binary fuse filter from a pile of keys.
 *
 * Shard after shard: a thread takes the keys of a shard from the pile, sets them aside one by
 * one, and then, beginning with the last, gives each the value of its slot.  The slots go to
 * the body in the order of the shards, and behind them the salts.
 *
 * A shard is larger than the cache.  So its keys are entered in the order of their first
 * segments, and set aside as they are found by a look at slot after slot: then all memory that
 * is in use lies near these. */
#include <string.h>

#include "../../base/memory.h"
#include "../../pile/pile.h"
#include "built.h"
#include "fuse.h"

/* A shard of more keys tries fewer salts: each takes long, and a set that fails again and again
 * was chosen to do so. */
enum { MANY_KEYS = 1 << 20, FEW_SALTS = 8 };

/* The keys are sorted into so many groups, by their first slot. */
enum { GROUPS = 256 };

/* So many slots are looked at at once for keys that have one of them alone. */
enum { STRIDE = 512 };

/* Memory is prefetched so many keys before it is used. */
enum { AHEAD = 16 };

/* More keys than this do not share a slot: about 2.7 do. */
enum { DEGREE_MOST = 127 };

/* The body while it is built. */
struct fuse {
    struct building *b;
    unsigned slot_bits;
    uint64_t shards;
    uint64_t shard_slots, first_slots, segment_mask;
    unsigned parts_each; /* how many parts of the pile a shard has */
    uint64_t largest;    /* how many records it has at most, with repeated ones */
    uint8_t *salts;
};

/* What a thread needs to solve a shard.  The memory of the records has room for more than they
 * take, since it becomes 'sums': of each slot the XOR of the keys that share it.  That of the
 * keys becomes 'order': the slots that were left to a single key, the first one first. */
struct hand {
    struct taken taken;
    uint64_t *keys; /* mixed; sorted into groups */
    uint64_t keys_nbytes;
    uint8_t *degree; /* of each slot: how many keys share it */
    uint8_t *slots;
    uint8_t salt;
};

/* ---- Memory ---------------------------------------------------------------------------- */

static uint64_t slots_nbytes(const struct fuse *fuse)
{
    return fuse->shard_slots / 8 * fuse->slot_bits;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t records_nbytes(const struct fuse *fuse)
{
    unsigned words = fuse->b->pile->options.words;
    return larger(fuse->largest * words, fuse->shard_slots) * sizeof(uint64_t);
}

static uint64_t keys_nbytes(const struct fuse *fuse)
{
    return larger(fuse->largest * sizeof(uint64_t),
                  (fuse->shard_slots + STRIDE) * sizeof(uint32_t));
}

/* Returns how many bytes a thread takes to solve a shard. */
static uint64_t hand_nbytes(const struct fuse *fuse)
{
    uint64_t records = records_nbytes(fuse);
    return records + records / fuse->parts_each + keys_nbytes(fuse) + fuse->shard_slots +
           slots_nbytes(fuse);
}

static bool hand_begin(const void *context, void *argument,
                       const struct perhaps_allocator *allocator)
{
    const struct fuse *fuse = context;
    struct hand *hand = argument;
    hand->taken.room_nbytes = records_nbytes(fuse);
    hand->taken.records = allocate(allocator, hand->taken.room_nbytes);
    hand->keys_nbytes = keys_nbytes(fuse);
    hand->keys = allocate(allocator, hand->keys_nbytes);
    hand->degree = allocate(allocator, fuse->shard_slots);
    hand->slots = allocate(allocator, slots_nbytes(fuse));
    return hand->taken.records && hand->keys && hand->degree && hand->slots;
}

static void hand_end(const void *context, void *argument,
                     const struct perhaps_allocator *allocator)
{
    const struct fuse *fuse = context;
    struct hand *hand = argument;
    taken_release(&hand->taken, allocator);
    release(allocator, hand->keys, hand->keys_nbytes);
    release(allocator, hand->degree, fuse->shard_slots);
    release(allocator, hand->slots, slots_nbytes(fuse));
}

/* ---- Keys to equations ------------------------------------------------------------------- */

static ALWAYS_INLINE struct fuse_spot spot_of(const struct fuse *fuse, uint64_t key)
{
    return fuse_spot(key, 0, fuse->first_slots, fuse->segment_mask);
}

/* Prefetches the sums of a key's slots. */
static ALWAYS_INLINE void prefetch_sums(const struct fuse *fuse, const uint64_t *sums,
                                        uint64_t key)
{
    const struct fuse_spot spot = spot_of(fuse, key);
    PREFETCH(&sums[spot.first]);
    PREFETCH(&sums[spot.second]);
    PREFETCH(&sums[spot.third]);
}

/* Mixes the records to keys, and sorts these into groups. */
static void group_keys(const struct fuse *fuse, struct hand *hand)
{
    const unsigned words = fuse->b->pile->options.words;
    uint64_t *mixed = hand->taken.records, next[GROUPS + 1] = { 0 };
    for (uint64_t i = 0; i < hand->taken.n; i++) {
        mixed[i] = fuse_mix(mixed[i * words], hand->salt);
        next[scale64(mixed[i] * ODD_GOLDEN, GROUPS) + 1]++;
    }
    for (unsigned group = 0; group < GROUPS; group++)
        next[group + 1] += next[group];
    for (uint64_t i = 0; i < hand->taken.n; i++)
        hand->keys[next[scale64(mixed[i] * ODD_GOLDEN, GROUPS)]++] = mixed[i];
}

/* Drops keys that are mixed to the same bits: they have the same slots and fingerprint, and
 * would stand in each other's way.  Returns how many stay. */
static uint64_t drop_equal(struct hand *hand)
{
    bool clash = false; /* no use: there are no values */
    records_sort(hand->keys, hand->taken.records, hand->taken.n, 1, 63);
    return records_unique(hand->keys, hand->taken.n, 1, false, &clash);
}

/* Enters n keys into their slots.  Returns whether no slot has too many. */
static bool enter_keys(const struct fuse *fuse, const struct hand *hand, uint64_t n)
{
    uint64_t *sums = hand->taken.records;
    uint8_t *degree = hand->degree, any = 0;
    memset(sums, 0, fuse->shard_slots * sizeof *sums);
    memset(degree, 0, fuse->shard_slots);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = hand->keys[i];
        prefetch_sums(fuse, sums, hand->keys[i + AHEAD < n ? i + AHEAD : i]);
        const struct fuse_spot spot = spot_of(fuse, key);
        sums[spot.first] ^= key;
        sums[spot.second] ^= key;
        sums[spot.third] ^= key;
        any |= ++degree[spot.first];
        any |= ++degree[spot.second];
        any |= ++degree[spot.third];
    }
    return any <= DEGREE_MOST;
}

/* Takes a key out of a slot.  Returns whether that leaves the slot to a single key; then it
 * waits in 'order'. */
static ALWAYS_INLINE bool leave(const struct hand *hand, uint64_t slot, uint64_t key,
                                uint32_t *order)
{
    hand->taken.records[slot] ^= key;
    *order = (uint32_t)slot;
    return --hand->degree[slot] == 1;
}

/* Sets keys aside that have a slot alone.  Writes the slots to the beginning of 'order'; behind
 * them wait slots that had one key when they were found.  Returns how many keys there were. */
static uint64_t set_keys_aside(const struct fuse *fuse, const struct hand *hand)
{
    uint64_t *sums = hand->taken.records;
    uint32_t *order = (void *)hand->keys;
    uint8_t *degree = hand->degree;
    uint64_t done = 0, head = 0, tail = 0;
    for (uint64_t at = 0; at < fuse->shard_slots; at += STRIDE) {
        uint64_t left = fuse->shard_slots - at;
        for (uint64_t slot = at; slot < at + (left < STRIDE ? left : STRIDE); slot++) {
            order[tail] = (uint32_t)slot;
            tail += degree[slot] == 1;
        }
        for (; head < tail; head++) {
            uint32_t slot = order[head];
            if (head + AHEAD < tail)
                prefetch_sums(fuse, sums, sums[order[head + AHEAD]]);
            if (degree[slot] != 1)
                continue;
            uint64_t key = sums[slot];
            const struct fuse_spot spot = spot_of(fuse, key);
            order[done++] = slot;
            tail += leave(hand, spot.first, key, order + tail);
            tail += leave(hand, spot.second, key, order + tail);
            tail += leave(hand, spot.third, key, order + tail);
            sums[slot] = key;
        }
    }
    return done;
}

/* ---- Slots ------------------------------------------------------------------------------- */

/* Gives each slot that was left to a key, the last one first, what its key lacks.  Slots are 0
 * before. */
static ALWAYS_INLINE void fill_slots(const struct fuse *fuse, const struct hand *hand,
                                     uint64_t n, unsigned bits)
{
    const uint64_t *sums = hand->taken.records;
    const uint32_t *order = (const void *)hand->keys;
    uint8_t *slots = hand->slots;
    while (n--) {
        uint64_t slot = order[n];
        PREFETCH(&sums[order[n > 2 * AHEAD ? n - 2 * AHEAD : 0]]);
        const struct fuse_spot spot = spot_of(fuse, sums[slot]);
        uint32_t sum = fuse_sum(slots, &spot, bits);
        uint8_t *at = slots + slot * bits / 8;
        if (bits == 12)
            sum <<= slot % 2 * 4;
        if (bits == 8)
            *at = (uint8_t)sum;
        else if (bits == 32)
            store32(at, sum);
        else {
            at[0] |= (uint8_t)sum;
            at[1] |= (uint8_t)(sum >> 8);
        }
    }
}

/* A task: a shard. */
static int solve_shard(void *context, void *argument, uint64_t task)
{
    const struct fuse *fuse = context;
    struct hand *hand = argument;
    unsigned part = (unsigned)task * fuse->parts_each;
    uint64_t n = 0;
    for (unsigned i = 0;; i++) {
        int error = pile_take(fuse->b->pile, part, part + fuse->parts_each, &hand->taken);
        if (error)
            return error;
        n = hand->taken.n;
        if (n > fuse->shard_slots || i == (n < MANY_KEYS ? FUSE_SALTS : FEW_SALTS))
            return PERHAPS_ERR_FULL;
        hand->salt = (FUSE_SALTS / 2 + i) % FUSE_SALTS;
        group_keys(fuse, hand);
        if (i)
            n = drop_equal(hand);
        if (enter_keys(fuse, hand, n) && set_keys_aside(fuse, hand) == n)
            break;
    }
    memset(hand->slots, 0, slots_nbytes(fuse));
    switch (fuse->slot_bits) {
    case 8:
        fill_slots(fuse, hand, n, 8);
        break;
    case 12:
        fill_slots(fuse, hand, n, 12);
        break;
    case 16:
        fill_slots(fuse, hand, n, 16);
        break;
    default:
        fill_slots(fuse, hand, n, 32);
    }
    return 0;
}

/* Writes the slots of a shard to the body, and keeps its salt. */
static int deliver_shard(void *context, void *argument, uint64_t task)
{
    const struct fuse *fuse = context;
    const struct hand *hand = argument;
    struct building *b = fuse->b;
    fuse->salts[task] = hand->salt;
    b->keys += hand->taken.n;
    int error = b->write(b->context, hand->slots, slots_nbytes(fuse));
    pile_forget(b->pile, (unsigned)(task + 1) * fuse->parts_each);
    return error ? error : b->progress(b->context, hand->taken.n);
}

int fuse_build(struct building *b)
{
    const struct perhaps_allocator *allocator = &b->pile->options.allocator;
    const uint64_t *field = b->g->field;
    struct fuse fuse = { .b = b,
                         .slot_bits = (unsigned)field[SLOT_BITS],
                         .shards = UINT64_C(1) << field[SHARD_BITS],
                         .parts_each = PILE_PARTS >> field[SHARD_BITS],
                         .segment_mask = (UINT64_C(1) << field[SEGMENT_BITS]) - 1,
                         .first_slots = field[SEGMENTS] << field[SEGMENT_BITS],
                         .shard_slots = (field[SEGMENTS] + 2) << field[SEGMENT_BITS] };
    uint64_t salts_nbytes = b->g->body_nbytes - fuse.shards * slots_nbytes(&fuse);
    fuse.largest = pile_largest(b->pile, fuse.parts_each);
    const struct tasks tasks = {
        .ntasks = fuse.shards, .context = &fuse, .work = solve_shard, .deliver = deliver_shard
    };
    const struct built_hands hands = { .hand_nbytes = sizeof(struct hand),
                                       .solve_nbytes = hand_nbytes(&fuse),
                                       .begin = hand_begin,
                                       .end = hand_end };
    fuse.salts = allocate(allocator, salts_nbytes);
    int error =
        fuse.salts ? built_run(&tasks, &hands, b->pile, b->threads) : PERHAPS_ERR_MEMORY;
    if (!error)
        error = b->write(b->context, fuse.salts, salts_nbytes);
    release(allocator, fuse.salts, salts_nbytes);
    return error;
}
