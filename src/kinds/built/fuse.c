/* fuse.c - binary fuse filter (Graf and Lemire: Binary Fuse Filters: Fast and Smaller Than Xor
 * Filters, JEA 2022), in shards (Vigna: epsilon-cost sharding, arXiv 2503.18397).
 *
 *   body  = shard | shard | ... | a salt for each shard | zeros
 *   shard = segments of 2^segment_bits slots;  a key has a slot in three segments in a row:
 *
 *           |   x   | x     |     x |       |       |       |
 *
 * The XOR of the three slots of a key is its fingerprint.  The slots are found when all keys
 * are known: a slot that only one key has is left to that key, and what the key must find there
 * follows from its two other slots; so the key is set aside, and the same is done with the
 * rest.  The segments let this go through the keys as a wave, from both ends, and so with fewer
 * slots than keys that lie anywhere would need.
 *
 * Shards are solved one by one, so that a thread needs memory for few keys only.  A shard whose
 * keys cannot all be set aside tries the next salt.
 * Limits: fingerprints of 8, 12, 16 and 32 bits; no values; hashes of 64 bits, so an fpr above
 * n / 2^64.
 * Invariant: the three slots of each key add up to its fingerprint. */
#include "fuse.h"
#include "../../pile/pile.h"

#include <math.h>
#include <stdio.h>

#include "../kinds.h"

static const char *const field_names[] = { "slot_bits", "shard_bits", "segment_bits",
                                           "segments", NULL };

/* A shard has at most so many keys, and where there are several more than half of it.  With
 * fewer the two segments at its ends, which have fewer keys, would cost more than a hundredth.
 * */
#define SHARD_KEYS_MOST 14e6

/* So many keys a slot can be set aside in a shard without ends and of segments without end
 * (Walzer: Peeling Close to the Orientability Threshold, SODA 2021). */
#define LOAD_MOST 0.9179

/* Returns the fpr with so many keys: an absent key meets a fingerprint that is not its own, or
 * the hash of a key. */
static double rate(double slot_bits, double keys)
{
    return fmin(exp2(-slot_bits) + keys * 0x1p-64, 1);
}

static double predict(const struct geometry *g, double keys)
{
    return rate((double)g->field[SLOT_BITS], keys);
}

/* Chooses the segments for the keys of a shard.  Sizes of segments and sets are those of Graf
 * and Lemire, up to a million keys.  For more keys they leave more room than is needed: the
 * keys of a segment must not exceed LOAD_MOST by chance, and this is 1.9 deviations of their
 * number. (With 1.6 most shards of eight million keys cannot be solved.) */
static void plan_shards(struct geometry *g, unsigned shard_bits)
{
    double keys = fmax(ldexp((double)g->capacity, -(int)shard_bits), 2);
    if (shard_bits)
        keys += 3 * sqrt(keys); /* the largest shard has hardly more */
    double bits = floor(log(keys) / log(3.33) + 2.25);
    bits = fmin(fmax(bits, FUSE_SEGMENT_BITS_LEAST), FUSE_SEGMENT_BITS_MOST);
    double slots = exp2(bits), factor = 0.875 + 0.25 * log(1e6) / log(keys);
    double usual = ceil(keys * fmax(factor, 1.125) / slots) - 2;
    double dense = ceil(keys / (slots * LOAD_MOST * (1 - 1.9 / sqrt(slots))));
    g->field[SHARD_BITS] = shard_bits;
    g->field[SEGMENT_BITS] = (uint64_t)bits;
    g->field[SEGMENTS] = (uint64_t)fmax(fmin(usual, dense), 1);
}

static int plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    static const unsigned widths[] = { 8, 12, 16, 32 };
    unsigned bits = 0, shard_bits = 0;
    if (options->ribbon.value_bits)
        return PERHAPS_ERR_UNSUPPORTED;
    for (size_t i = 0; i < sizeof widths / sizeof *widths && !bits; i++)
        if (rate(widths[i], (double)g->capacity) <= g->fpr)
            bits = widths[i];
    if (!bits)
        return PERHAPS_ERR_LIMIT;
    while (ldexp((double)g->capacity, -(int)shard_bits) > SHARD_KEYS_MOST &&
           shard_bits < PILE_BITS)
        shard_bits++;
    g->field[SLOT_BITS] = bits;
    plan_shards(g, shard_bits);
    snprintf(why, WHY_NBYTES,
             "built once: three loads a key and little else, fingerprints of %u bits", bits);
    return 0;
}

static uint64_t shard_slots(const uint64_t *field)
{
    return (field[SEGMENTS] + 2) << field[SEGMENT_BITS];
}

static int set_geometry(struct geometry *g)
{
    const uint64_t *field = g->field, bits = field[SLOT_BITS];
    if ((bits != 8 && bits != 12 && bits != 16 && bits != 32) ||
        field[SHARD_BITS] > PILE_BITS || field[SEGMENT_BITS] < FUSE_SEGMENT_BITS_LEAST ||
        field[SEGMENT_BITS] > FUSE_SEGMENT_BITS_MOST || field[SEGMENTS] < 1 ||
        field[SEGMENTS] > UINT32_MAX || shard_slots(field) > UINT32_MAX)
        return PERHAPS_ERR_LIMIT;
    uint64_t nbytes = (shard_slots(field) << field[SHARD_BITS]) / 8 * bits;
    g->body_nbytes = round_up(nbytes + (UINT64_C(1) << field[SHARD_BITS]), LINE_NBYTES);
    g->key_limit = g->capacity;
    return 0;
}

static struct fill measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    const uint64_t *field = f->geometry.field;
    double keys = (double)f->counters->keys;
    (void)most_nbytes;
    return (struct fill){
        .load = fmin(ldexp(keys / (double)shard_slots(field), -(int)field[SHARD_BITS]), 1),
        .fpr = predict(&f->geometry, keys)
    };
}

static void bind(perhaps_filter *f)
{
    uint64_t *field = f->body.field;
    field[SHARDS] = UINT64_C(1) << field[SHARD_BITS];
    field[SEGMENT_MASK] = (UINT64_C(1) << field[SEGMENT_BITS]) - 1;
    field[FIRST_SLOTS] = field[SEGMENTS] << field[SEGMENT_BITS];
    field[SHARD_SLOTS] = shard_slots(field);
    field[SALTS_AT] = (shard_slots(field) << field[SHARD_BITS]) / 8 * field[SLOT_BITS];
    f->loops = fuse_loops(f->cpu, (unsigned)field[SLOT_BITS]);
}

static void reads(const perhaps_filter *f, struct keyhash key, struct reads *r)
{
    const uint64_t *field = f->body.field, bits = field[SLOT_BITS];
    const uint8_t *slots = f->body.bytes;
    uint64_t shard = scale64(key.place, field[SHARDS]);
    const uint8_t *salt = slots + field[SALTS_AT] + shard;
    struct fuse_spot spot = fuse_spot(fuse_mix(key.place, *salt), shard * field[SHARD_SLOTS],
                                      field[FIRST_SLOTS], field[SEGMENT_MASK]);
    reads_add(r, salt, 1);
    reads_add(r, slots + spot.first * bits / 8, (bits + 7) / 8);
    reads_add(r, slots + spot.second * bits / 8, (bits + 7) / 8);
    reads_add(r, slots + spot.third * bits / 8, (bits + 7) / 8);
}

/* Shards that cannot be solved have more keys than others, as keys have that somebody chose:
 * half as many shards even that out.  Then there are more segments. */
static int enlarge(struct geometry *g)
{
    uint64_t *field = g->field;
    if (field[SHARD_BITS])
        plan_shards(g, (unsigned)field[SHARD_BITS] - 1);
    else
        field[SEGMENTS] += field[SEGMENTS] / 2 + 1;
    return set_geometry(g);
}

static const struct builds builds = { .build = fuse_build, .enlarge = enlarge };

const struct filter_kind kind_fuse = {
    .about = { .name = "fuse",
               .summary = "built once from all keys: three loads a key, fewest instructions",
               .abilities = PERHAPS_CAN_BUILD },
    .id = 9,
    .field_names = field_names,
    .plan = plan,
    .set_geometry = set_geometry,
    .predict = predict,
    .measure = measure,
    .bind = bind,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = reads,
    .builds = &builds,
};
