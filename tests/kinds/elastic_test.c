/* elastic_test.c - proves what is special about the kind 'elastic', whose segments split: its
 * loops against plain code written after doc/FORMAT.md, lists of depths that an enemy may
 * write, that no key and no entry is lost while it grows, and how much memory it takes. */
#include "support.h"
#include <perhaps.h>

#include <math.h>
#include <string.h>

#include "kinds/cpu/cpu_loops.h"
#include "kinds/kinds.h"
#include "kinds/slots/segments.h"

/* ---- As the format says ------------------------------------------------------------------ */

enum { OFFSET_DEPTHS = 64, BUCKETS = 512, SLOTS = 4, ALL_BASES = 16, DEEPEST = 31 };

static const uint32_t begins[ALL_BASES] = {
    0x00000000, 0x0b5586cf, 0x172b83c7, 0x2387a6e7, 0x306fe0a3, 0x3dea64c1,
    0x4bfdad53, 0x5ab07dd4, 0x6a09e667, 0x7a11473e, 0x8ace5422, 0x9c49182a,
    0xae89f995, 0xc199bdd8, 0xd5818dcf, 0xea4afa2a,
};

struct flat {
    const uint8_t *bytes;
    uint64_t segments;
    unsigned w;
};

static uint64_t first_segment(const struct flat *b)
{
    return (OFFSET_DEPTHS + b->segments + 4095) / 4096 * 4096;
}

/* Returns the number of the key's segment and sets *depth to its depth.  Reads the list of
 * depths from its beginning, so it is slow and needs no directory. */
static uint64_t segment_of(const struct flat *b, struct keyhash key, unsigned *depth)
{
    const uint8_t *depths = b->bytes + OFFSET_DEPTHS;
    uint64_t number = 0;
    unsigned base = 0;
    while (base + 1 < ALL_BASES && key.place >> 32 >= begins[base + 1])
        base++;
    for (unsigned b_ = 0;; b_++) {
        unsigned __int128 at = 0, one = 1;
        while (at < one << 64) {
            unsigned __int128 end = at + (one << (64 - depths[number]));
            if (b_ == base && key.mark < end) {
                *depth = depths[number];
                return number;
            }
            at = end;
            number++;
        }
    }
}

static uint32_t slot_at(const struct flat *b, uint64_t segment, uint64_t slot)
{
    const uint8_t *bytes = b->bytes + first_segment(b) + segment * 256 * b->w;
    uint32_t value = 0;
    for (unsigned i = 0; i < b->w; i++) {
        uint64_t bit = slot * b->w + i;
        value |= (uint32_t)(bytes[bit / 8] >> (bit % 8) & 1) << i;
    }
    return value;
}

static uint64_t other_bucket(uint64_t bucket, uint32_t tail)
{
    uint64_t x = tail * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 32)) * UINT64_C(0x243f6a8885a308d3);
    uint64_t c = 2 * (uint64_t)(((unsigned __int128)x * (BUCKETS / 2)) >> 64) + 1;
    return (c + BUCKETS - bucket) % BUCKETS;
}

/* Returns how many entries of the key's two buckets match it. */
static unsigned matches_in(const struct flat *b, struct keyhash key)
{
    unsigned depth, f = b->w - 6, n = 0;
    uint64_t segment = segment_of(b, key, &depth), bucket = key.place % BUCKETS;
    uint32_t tail = (uint32_t)(key.place / BUCKETS) % 64, q = tail << f | 1;
    for (unsigned i = 0; i + 1 < f; i++)
        q |= (uint32_t)(key.mark >> (63 - depth - i) & 1) << (f - 1 - i);
    const uint64_t pair[] = { bucket, other_bucket(bucket, tail) };
    for (unsigned i = 0; i < 2 * SLOTS; i++) {
        uint32_t e = slot_at(b, segment, pair[i / SLOTS] * SLOTS + i % SLOTS);
        n += e && (e ^ q) < 2 * (e & (0 - e));
    }
    return n;
}

/* ---- Bodies of all kinds ----------------------------------------------------------------- */

/* Appends random depths that tile one base completely. */
static void add_depths(struct rng *rng, uint8_t *depths, uint64_t *segments, unsigned depth)
{
    if (depth < 5 && rng_below(rng, 2)) {
        add_depths(rng, depths, segments, depth + 1);
        add_depths(rng, depths, segments, depth + 1);
    } else {
        depths[(*segments)++] = (uint8_t)depth;
    }
}

/* Makes a filter with this list of depths and empty segments; attaching it must return
 * 'wanted'. */
static perhaps_filter *from_depths(const uint8_t *depths, uint64_t segments, unsigned w,
                                   int wanted)
{
    struct geometry g = { .capacity = 1000, .fpr = 0.01, .field = { w, 1 << 20, segments } };
    struct hasher hasher = { .id = PERHAPS_HASH_NONE, .ready = true, .note = "" };
    perhaps_filter *f;
    expect_success(kind_elastic.set_geometry(&g));
    expect_success(filter_make(&kind_elastic, &g, &hasher, NULL, true, false, &f));
    memcpy(f->body.bytes + OFFSET_DEPTHS, depths, segments);
    expect_error(filter_attach(f), wanted);
    return f;
}

/* Returns a key whose place ends in 15 zero bits, so that keys share buckets and tails, and
 * some match slots that are filled at random. */
static struct keyhash some_key(struct rng *rng)
{
    uint64_t place = rng_next(rng), mark = rng_next(rng);
    return (struct keyhash){ place & ~UINT64_C(0x7fff), rng_below(rng, 2) ? mark : mark << 1 };
}

/* Fills the slots at random.  No slot has a tail without a fingerprint, which no add makes. */
static void fill_segments(const struct flat *b, uint8_t *bytes, struct rng *rng)
{
    uint8_t *at = bytes + first_segment(b);
    uint32_t field = (UINT32_C(1) << (b->w - 6)) - 1;
    for (uint64_t slot = 0; slot < b->segments * BUCKETS * SLOTS; slot++) {
        uint64_t some = rng_next(rng), others = rng_next(rng);
        uint32_t entry = (uint32_t)(some & some >> 32 & others);
        if (others >> 63)
            entry &= field; /* tail 0, which the keys of some_key() often have */
        for (unsigned i = 0; i < b->w && (entry & field); i++) {
            uint64_t bit = slot * b->w + i;
            at[bit / 8] = (uint8_t)(at[bit / 8] | (entry >> i & 1) << (bit % 8));
        }
    }
}

/* Compares the loops of every instruction set, with and without versions, with matches_in(). */
static void check_kernels(const perhaps_filter *f, const struct flat *b, struct rng *rng)
{
    enum { KEYS = 500 };
    struct keyhash keys[KEYS];
    bool wanted[KEYS], answer[KEYS];
    size_t present = 0;
    for (size_t i = 0; i < KEYS; i++) {
        keys[i] = some_key(rng);
        wanted[i] = matches_in(b, keys[i]) > 0;
        present += wanted[i];
        expect(f->kind->count(f, &keys[i]) == matches_in(b, keys[i]));
    }
    for (unsigned i = 0; i < CPU_COUNT; i++) {
        if (!cpu_has((enum cpu)i))
            continue;
        scene("%s, %u bits a slot", cpu_name((enum cpu)i), b->w);
        uint32_t versions[TABLE_VERSIONS] = { 0 };
        struct body body = f->body;
        void *const beside[] = { NULL, versions };
        for (unsigned v = 0; v < 2; v++) {
            memset(answer, 2, sizeof answer);
            body.writers = beside[v];
            size_t found = cpu_loops[i].elastic->contains(&body, keys, keys, KEYS, answer);
            expect(found == present && !memcmp(answer, wanted, sizeof wanted));
        }
    }
}

TEST(test_kernels)
{
    struct rng rng = rng_for(__func__);
    for (unsigned w = SLOT_MIN; w <= SLOT_MAX; w++)
        for (unsigned round = 0; round < 4; round++) {
            uint8_t depths[1024];
            struct flat b = { .w = w };
            for (unsigned base = 0; base < ALL_BASES; base++)
                add_depths(&rng, depths, &b.segments, 0);
            scoped_filter *f = from_depths(depths, b.segments, w, 0);
            fill_segments(&b, f->body.bytes, &rng);
            b.bytes = f->body.bytes;
            check_kernels(f, &b, &rng);
        }
}

/* Lists of depths that do not tile the bases, or that need a directory much larger than their
 * segments, are refused. */
TEST(test_depths_that_lie)
{
    static const uint8_t lies[][24] = {
        { 1, 0 },        /* a half, then a whole */
        { 2, 1, 2 },     /* a half in the middle */
        { DEEPEST + 1 }, /* too deep */
        { 255 },
        { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, /* as deep as long, and not complete */
        { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15 }, /* directory of 2^15 */
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint8_t depths[40] = { 0 };
        scene("list %zu", i);
        memcpy(depths, lies[i], sizeof lies[i]);
        perhaps_free(from_depths(depths, 31, 16, PERHAPS_ERR_DAMAGED));
    }
    const uint8_t too_long[17] = { 0 };
    struct geometry g = { .capacity = 1, .fpr = 0.01, .field = { 16, 1, 15 } };
    expect_error(kind_elastic.set_geometry(&g), PERHAPS_ERR_LIMIT);
    perhaps_free(from_depths(too_long, 17, 16, PERHAPS_ERR_DAMAGED));
}

/* ---- Growth ------------------------------------------------------------------------------ */

/* Returns a copy of the body as one array, as a file has it. */
static uint8_t *flat_body(const perhaps_filter *f)
{
    struct body_cursor cursor = { 0 };
    const uint8_t *piece;
    uint8_t *flat = malloc(filter_geometry(f).body_nbytes), *to = flat;
    for (uint64_t n; (piece = filter_next_piece(f, &cursor, &n)); to += n)
        memcpy(to, piece, n);
    expect(to == flat + filter_geometry(f).body_nbytes);
    return flat;
}

/* Checks that each entry belongs to a key or is a copy that a split made: the body tells the
 * number of these. */
static void check_entries(const perhaps_filter *f)
{
    struct geometry g = filter_geometry(f);
    struct flat b = { flat_body(f), g.field[SEGMENTS], (unsigned)g.field[SLOT_BITS] };
    uint64_t entries = 0, duplicates;
    for (uint64_t segment = 0; segment < b.segments; segment++)
        for (uint64_t slot = 0; slot < BUCKETS * SLOTS; slot++)
            entries += slot_at(&b, segment, slot) != 0;
    memcpy(&duplicates, b.bytes, sizeof duplicates);
    expect(entries == stats_of(f).keys + duplicates);
    free((void *)b.bytes);
}

static perhaps_filter *grown(uint64_t capacity, double fpr, const struct perhaps_keys *keys)
{
    perhaps_filter *f = make_filter(&kind_elastic.about, capacity, fpr, test_seed());
    fill(f, keys);
    return f;
}

TEST(test_growth)
{
    const double rates[] = { 0.3, 0.01, 0.003, 1e-4, 1e-7 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, SANITIZED ? 100000 : 400000);
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        scene("fpr %g", rates[r]);
        scoped_filter *f = grown(1, rates[r], &keys);
        expect_all_found(f, &keys);
        check_entries(f);
        size_t nremoved;
        expect_success(perhaps_remove_many(f, &keys, NULL, &nremoved, NULL));
        expect(nremoved == keys.count && stats_of(f).keys == 0);
        check_entries(f); /* only copies made by splits are left */
    }
}

/* From a million keys on a filter with slots of 16 bits takes at most 25.5 bits for each key,
 * at every step of its growth: 3 % more than the 24.7 that doc/THEORY.md tells. */
TEST(test_memory)
{
    enum { STEP = 1 << 15, STEPS = SANITIZED ? 34 : 160 };
    scoped_filter *f = make_filter(&kind_elastic.about, 1000, 0.003, test_seed());
    expect(stats_of(f).plan.field[SLOT_BITS] == 16);
    double worst = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        struct perhaps_keys keys = make_keys(RANDOM_KEYS, test_seed(), step * STEP, STEP);
        fill(f, &keys);
        free_keys(&keys);
        struct perhaps_stats stats = stats_of(f);
        if (stats.keys >= 1000000)
            worst = fmax(worst, stats.bits_per_key);
        scene("%llu keys, worst %g", (unsigned long long)stats.keys, worst);
        expect(worst <= 25.5);
    }
    expect(worst > 20);
}

/* A cleared filter equals a new one, whatever it had grown to, and grows again in the same
 * way. */
TEST(test_clear)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 200000);
    const uint64_t capacities[] = { 1, 1000, 70000 };
    for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
        scoped_filter *f = grown(capacities[c], 0.01, &keys), *copy = clone_of(f);
        scoped_filter *fresh =
            make_filter(&kind_elastic.about, capacities[c], 0.01, test_seed());
        expect(perhaps_equal(f, copy));
        expect_success(perhaps_clear(f));
        expect_success(perhaps_clear(copy)); /* a clone has all segments in one body */
        expect(perhaps_equal(f, fresh) && perhaps_equal(copy, fresh));
        expect(perhaps_contains_many(copy, &keys, NULL) == 0);
        fill(f, &keys);
        fill(copy, &keys);
        fill(fresh, &keys);
        expect(perhaps_equal(f, fresh) && perhaps_equal(copy, fresh));
        expect_all_found(copy, &keys);
    }
}
