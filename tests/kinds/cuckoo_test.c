/* cuckoo_test.c - proves what only src/kinds/slots/cuckoo.c promises: that each of two buckets
 * leads to the other, that slots of any width do not disturb each other, that a key has at most
 * eight copies, and that a table takes keys up to a load of 95 %. */
#include "support.h"
#include <perhaps.h>

#include <math.h>
#include <string.h>

#include "filter/filter.h"
#include "kinds/kinds.h"
#include "kinds/slots/table.h"

/* Makes a filter of a geometry that no plan makes.  Its fpr is nearly 1, so it takes keys until
 * there is no room. */
static perhaps_filter *table_filter(uint64_t nbuckets, unsigned width, enum perhaps_hash hash)
{
    struct geometry g = { .capacity = nbuckets * BUCKET_SLOTS,
                          .fpr = 0.999999,
                          .field = { nbuckets, width } };
    struct perhaps_hashing hashing = { .hash = hash, .seed = test_seed() };
    struct hasher hasher;
    perhaps_filter *f;
    scene("%llu buckets, %u bits", (unsigned long long)nbuckets, width);
    expect_success(kind_cuckoo.set_geometry(&g));
    expect(g.key_limit == nbuckets * BUCKET_SLOTS);
    expect_success(hasher_create(&hasher, &hashing));
    expect_success(filter_make(&kind_cuckoo, &g, &hasher, NULL, true, false, &f));
    expect_success(filter_attach(f));
    return f;
}

static const struct perhaps_kind *cuckoo(void)
{
    return &kind_cuckoo.about;
}

/* ---- Places ------------------------------------------------------------------------------ */

/* Checks that the other bucket is in the table, is another one, and leads back. */
static void check_pair(uint64_t bucket, uint32_t fingerprint, uint64_t nbuckets)
{
    uint64_t other = cuckoo_other_bucket(bucket, fingerprint, nbuckets);
    expect(other < nbuckets && other != bucket);
    expect(cuckoo_other_bucket(other, fingerprint, nbuckets) == bucket);
}

/* Numbers of buckets up to 2^56: chosen ones around powers of two, then random ones. */
TEST(test_other_bucket)
{
    struct rng rng = rng_for(__func__);
    const uint64_t big = UINT64_C(1) << 32,
                   counts[] = { 2,       4,       6,   10,      98,
                                1000002, big - 2, big, big + 2, UINT64_C(1) << 56 };
    for (unsigned width = WIDTH_MIN; width <= WIDTH_MAX; width++)
        for (unsigned i = 0; i < 3000; i++) {
            uint64_t nbuckets = i < 1000
                                    ? counts[i % (sizeof counts / sizeof *counts)]
                                    : 2 + 2 * (rng_next(&rng) >> (9 + rng_below(&rng, 50)));
            uint32_t fingerprint = (uint32_t)cuckoo_fingerprint(rng_next(&rng), width);
            scene("%llu buckets, fingerprint %u", (unsigned long long)nbuckets, fingerprint);
            check_pair(rng_below(&rng, nbuckets), fingerprint, nbuckets);
            check_pair(0, fingerprint, nbuckets);
            check_pair(nbuckets - 1, fingerprint, nbuckets);
        }
}

/* Every pair of a small table, so that no corner is left out. */
TEST(test_every_pair)
{
    for (uint64_t nbuckets = 2; nbuckets <= 64; nbuckets += 2)
        for (uint32_t fingerprint = 1; fingerprint < 1 << 8; fingerprint++)
            for (uint64_t bucket = 0; bucket < nbuckets; bucket++)
                check_pair(bucket, fingerprint, nbuckets);
}

/* A fingerprint is 1 to 2^width - 1, spread evenly; 0 is an empty slot. */
TEST(test_fingerprints)
{
    for (unsigned width = WIDTH_MIN; width <= WIDTH_MAX; width++) {
        uint32_t most = (uint32_t)((UINT64_C(1) << width) - 1);
        scene("%u bits", width);
        expect(cuckoo_fingerprint(0, width) == 1);
        expect(cuckoo_fingerprint(UINT64_MAX, width) == most);
        expect(cuckoo_fingerprint(UINT64_MAX / 2, width) == most / 2 + 1);
    }
}

/* Compares a table with a plain array: setting a slot changes no other slot, and no byte behind
 * the table. */
TEST(test_slots)
{
    enum { BUCKETS = 32, SLOTS = BUCKETS * BUCKET_SLOTS };
    struct rng rng = rng_for(__func__);
    for (unsigned width = WIDTH_MIN; width <= WIDTH_MAX; width++) {
        uint8_t body[BUCKETS * BUCKET_SLOTS * WIDTH_MAX / 8 + 8];
        uint32_t plain[SLOTS], most = (uint32_t)((UINT64_C(1) << width) - 1);
        size_t used = BUCKETS * BUCKET_SLOTS * width / 8;
        memset(body, 0xA5, sizeof body);
        for (unsigned i = 0; i < SLOTS; i++)
            plain[i] = slot_get(body, i / BUCKET_SLOTS, i % BUCKET_SLOTS, width);
        for (unsigned step = 0; step < 2000; step++) {
            unsigned at = (unsigned)rng_below(&rng, SLOTS);
            plain[at] = step % 3 ? (uint32_t)rng_next(&rng) & most : step % 2 ? most : 0;
            slot_set(body, at / BUCKET_SLOTS, at % BUCKET_SLOTS, width, plain[at]);
            for (unsigned i = 0; i < SLOTS; i++)
                expect(plain[i] == slot_get(body, i / BUCKET_SLOTS, i % BUCKET_SLOTS, width));
        }
        for (size_t i = used; i < sizeof body; i++)
            expect(body[i] == 0xA5);
    }
}

/* ---- Two halves of the hash -------------------------------------------------------------- */

static void add_hash(perhaps_filter *f, uint64_t place, uint64_t mark)
{
    const uint64_t key[] = { place, mark };
    expect_success(perhaps_add(f, key, sizeof key));
}

/* Returns the only entry of a filter and sets *bucket to where it lies. */
static uint32_t find_entry(const perhaps_filter *f, uint64_t *bucket)
{
    uint32_t found = 0;
    unsigned width = (unsigned)f->body.geometry.field[1];
    for (uint64_t b = 0; b < f->body.geometry.field[0]; b++)
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            uint32_t entry = slot_get(f->body.bytes, b, slot, width);
            expect(!entry || !found);
            if (entry) {
                *bucket = b;
                found = entry;
            }
        }
    return found;
}

/* The first half of the hash chooses the bucket and the second half the fingerprint. */
TEST(test_place_and_mark)
{
    enum { BUCKETS = 50 };
    struct rng rng = rng_for(__func__);
    for (unsigned width = WIDTH_MIN; width <= WIDTH_MAX; width++) {
        scoped_filter *f = table_filter(BUCKETS, width, PERHAPS_HASH_NONE);
        for (unsigned i = 0; i < 50; i++) {
            uint64_t place = rng_next(&rng), mark = rng_next(&rng), bucket = BUCKETS;
            add_hash(f, place, mark);
            uint32_t entry = find_entry(f, &bucket);
            uint64_t first = (uint64_t)(((unsigned __int128)place * BUCKETS) >> 64);
            expect(entry == cuckoo_fingerprint(mark, width));
            expect(bucket == first || bucket == cuckoo_other_bucket(first, entry, BUCKETS));
            expect_success(perhaps_clear(f));
        }
    }
}

/* The bucket tells nothing of the fingerprint: each of the four pairs of halves has a quarter
 * of the keys. */
TEST(test_independence)
{
    enum { KEYS = 100000 };
    scoped_filter *f = make_filter(cuckoo(), 1000, 0.001, test_seed());
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, test_seed(), 0, KEYS);
    double quarters[2][2] = { { 0 } };
    for (size_t i = 0; i < KEYS; i++) {
        struct keyhash h;
        hasher_run(&f->hasher, &keys, i, 1, &h);
        quarters[h.place >> 63][cuckoo_fingerprint(h.mark, 13) >> 12]++;
    }
    const double sd = sqrt((double)KEYS * 0.25 * 0.75);
    for (unsigned q = 0; q < 4; q++)
        expect(fabs(quarters[q / 2][q % 2] - (double)KEYS / 4) < DEVIATIONS * sd);
}

/* ---- Copies ------------------------------------------------------------------------------ */

/* Eight copies fit into the two buckets of a key; the ninth is refused and changes nothing. */
TEST(test_ninth_copy)
{
    for (unsigned width = WIDTH_MIN; width <= WIDTH_MAX; width++) {
        scoped_filter *f = table_filter(500, width, PERHAPS_HASH_XXH3);
        for (unsigned copies = 0; copies < PERHAPS_COPIES_MAX; copies++) {
            expect_count(f, "twin", copies);
            expect_success(perhaps_add(f, "twin", 4));
        }
        scoped_filter *before = clone_of(f);
        expect_error(perhaps_add(f, "twin", 4), PERHAPS_ERR_COPIES);
        bool was_present = false;
        expect_success(perhaps_add_unless_present(f, "twin", 4, &was_present));
        expect(was_present && perhaps_equal(f, before) && stats_of(f).failed_adds == 1);
        expect_success(perhaps_remove(f, "twin", 4));
        expect_success(perhaps_add(f, "twin", 4));
        expect_error(perhaps_add(f, "twin", 4), PERHAPS_ERR_COPIES);
        for (unsigned copies = PERHAPS_COPIES_MAX; copies > 0; copies--) {
            expect_count(f, "twin", copies);
            expect_success(perhaps_remove(f, "twin", 4));
        }
        expect_error(perhaps_remove(f, "twin", 4), PERHAPS_ERR_NOT_FOUND);
        expect(stats_of(f).keys == 0 && stats_of(f).load == 0);
    }
}

/* In a filter that is filled to 8/9 of its capacity, entries of other keys move to make room
 * for eight copies.  (In a full one the eighth may be refused: the search goes in circles.) */
TEST(test_copies_in_a_crowd)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 20000);
    scoped_filter *f = full_filter(cuckoo(), keys.count * 9 / 8, 1e-8, &keys);
    for (unsigned copies = 0; copies < PERHAPS_COPIES_MAX; copies++)
        expect_success(perhaps_add(f, "twin", 4));
    expect_error(perhaps_add(f, "twin", 4), PERHAPS_ERR_COPIES);
    expect_count(f, "twin", PERHAPS_COPIES_MAX);
    expect_all_found(f, &keys);
}

/* A merge adds up copies, and is refused if a key would have more than eight. */
TEST(test_merged_copies)
{
    scoped_filter *f = make_filter(cuckoo(), 100, 1e-6, test_seed());
    scoped_filter *other = clone_of(f);
    for (unsigned copies = 0; copies < PERHAPS_COPIES_MAX; copies++)
        expect_success(perhaps_add(copies < 5 ? f : other, "twin", 4));
    expect_success(perhaps_add(other, "single", 6));
    scoped_filter *sum = clone_of(f);
    expect_success(perhaps_merge(sum, other));
    expect_count(sum, "twin", PERHAPS_COPIES_MAX);
    expect_count(sum, "single", 1);
    scoped_filter *before = clone_of(sum);
    expect_error(perhaps_merge(sum, f), PERHAPS_ERR_COPIES);
    expect(perhaps_equal(sum, before));
}

/* ---- Load -------------------------------------------------------------------------------- */

/* Fills a table until ten thousand adds were refused for lack of room, and checks the load at
 * the first of them. */
static void check_load(uint64_t nbuckets, unsigned width, double least)
{
    uint64_t slots = nbuckets * BUCKET_SLOTS;
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), width, slots + 20000);
    scoped_filter *f = table_filter(nbuckets, width, PERHAPS_HASH_XXH3);
    size_t before_first = 0;
    overfill(f, &keys, SANITIZED ? 1000 : 10000, &before_first);
    double load = (double)before_first / (double)slots;
    scene("%llu buckets, %u bits: first failure at load %g", (unsigned long long)nbuckets,
          width, load);
    expect(load >= least);
    struct perhaps_keys first = some_keys(&keys, 0, before_first);
    expect_all_found(f, &first);
}

TEST(test_load)
{
    const unsigned widths[] = { 5, 6, 8, 11, 13, 16, 17, 32 };
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        check_load(1000, widths[w], 0.95);
        check_load(4098, widths[w], 0.95);
        check_load(30002, widths[w], 0.95);
    }
}

/* Nine of ten keys are made to share their first bucket.  Four find room there, the others in
 * their second buckets or not at all.  No key that was accepted is lost. */
TEST(test_crafted_keys)
{
    enum { KEYS = 3000 };
    struct rng rng = rng_for(__func__);
    for (unsigned width = WIDTH_MIN; width <= WIDTH_MAX; width += 4) {
        scoped_filter *f = table_filter(200, width, PERHAPS_HASH_NONE);
        static uint64_t key[KEYS][2];
        unsigned stored = 0;
        for (unsigned i = 0; i < KEYS; i++) {
            key[stored][0] = rng_below(&rng, 10) ? UINT64_MAX / 3 : rng_next(&rng);
            key[stored][1] = rng_next(&rng);
            int error = perhaps_add(f, key[stored], sizeof *key);
            expect(!error || error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES);
            stored += !error;
        }
        expect(stored < KEYS && stats_of(f).keys == stored);
        struct perhaps_keys all = perhaps_keys_packed(key, sizeof *key, stored);
        expect_all_found(f, &all);
    }
}

/* ---- Four cells ---------------------------------------------------------------------- */

/* Of a strided filter with few cells, some keys have two cells in one.  They hold three copies,
 * others four; the next one is refused as a copy, whichever it is. */
TEST(test_cells_in_one)
{
    struct perhaps_options options = { .capacity = 20,
                                       .fpr = 0.001,
                                       .needs = PERHAPS_CAN_REMOVE,
                                       .kind = "strided",
                                       .hashing = { .seed = test_seed() } };
    scoped_filter *f = make_with(&options);
    unsigned with[STRIDED_CELLS + 1] = { 0 };
    scene("strided");
    for (uint64_t key = 0; key < 2000; key++) {
        unsigned copies = 0;
        int error;
        perhaps_clear(f);
        while (!(error = perhaps_add(f, &key, sizeof key)) && copies < STRIDED_CELLS)
            copies++;
        expect_error(error, PERHAPS_ERR_COPIES);
        with[copies]++;
    }
    expect(with[3] > 0 && with[4] > with[3] && with[3] + with[4] == 2000);
}

/* Fills a strided filter and goes on until ten adds were refused.  Its capacity finds room, and
 * random walks find it far beyond. */
static void check_cells(uint64_t capacity, enum perhaps_preference preference, double least)
{
    struct perhaps_options options = { .capacity = capacity,
                                       .fpr = 0.00099, /* which the keys never reach */
                                       .preference = preference,
                                       .kind = "strided",
                                       .hashing = { .seed = test_seed() } };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), (unsigned)preference,
                                 capacity + capacity / 10 + 1000);
    scoped_filter *f = make_with(&options);
    size_t before_first = 0;
    overfill(f, &keys, 10, &before_first);
    double load = (double)before_first / (double)f->body.geometry.field[0];
    scene("%llu keys: first failure at load %g", (unsigned long long)capacity, load);
    expect(before_first >= capacity && load >= least);
    struct perhaps_keys first = some_keys(&keys, 0, before_first);
    expect_all_found(f, &first);
}

TEST(test_cells_that_are_full)
{
    for (unsigned p = PERHAPS_PREFER_BALANCED; p <= PERHAPS_PREFER_COMPACT; p++) {
        check_cells(1, (enum perhaps_preference)p, 0);
        check_cells(100, (enum perhaps_preference)p, 0.7);
        check_cells(3000, (enum perhaps_preference)p, 0.93);
        check_cells(SANITIZED ? 10000 : 100000, (enum perhaps_preference)p, 0.96);
    }
}
