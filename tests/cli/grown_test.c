/* grown_test.c - the tables of dedup of a pipe, beside an exact account. */
#include "grown.h"

#include <math.h>
#include <string.h>

#include "support.h"

/* So many shards that a shard closes its tables early. */
enum { SMALL_SHARD = 64 };

static struct perhaps_hashed hash_of(uint64_t first)
{
    struct perhaps_hashed hash = { { 0 } };
    memcpy(hash.bytes, &first, sizeof first);
    return hash;
}

/* Key i of a set: hashes of different keys differ. */
static struct perhaps_hashed key_of(uint64_t set, uint64_t i)
{
    uint64_t x = i + set;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash_of(x ^ x >> 31);
}

/* Adds one key, and returns whether it was there. */
static bool add_one(struct grown *grown, struct perhaps_hashed hash)
{
    bool present;
    size_t done;
    expect_success(grown_add(grown, &hash, 1, &present, &done));
    expect(done == 1);
    return present;
}

/* Adds keys up to number n, in calls of random sizes, each among keys that came.  Those must be
 * there.  Returns how many new ones were taken for such. */
static uint64_t add_beside(struct grown *grown, struct rng *rng, uint64_t set, uint64_t n)
{
    enum { MOST = 1000 };
    struct perhaps_hashed hash[MOST];
    bool is_new[MOST], present[MOST];
    uint64_t came = 0, nlost = 0;
    while (came < n) {
        const size_t count = 1 + (size_t)rng_below(rng, MOST);
        size_t done;
        for (size_t i = 0; i < count; i++) {
            is_new[i] = !came || rng_below(rng, 4);
            hash[i] = key_of(set, is_new[i] ? came : rng_below(rng, came));
            came += is_new[i];
        }
        expect_success(grown_add(grown, hash, count, present, &done));
        expect(done == count);
        for (size_t i = 0; i < count; i++) {
            expect(is_new[i] || present[i]);
            nlost += is_new[i] && present[i];
        }
    }
    for (uint64_t i = 0; i < came; i += 7)
        expect(add_one(grown, key_of(set, i)));
    expect(grown_facts(grown).keys == came - nlost);
    return nlost;
}

/* While tables grow, no key is lost, few new ones are, and the rate is kept. */
static void check_rate(double fpr, size_t nshards, uint64_t n)
{
    struct rng rng = rng_for("grown");
    struct grown *grown = grown_new(fpr, nshards);
    scene("%g, %zu shards, %ju keys", fpr, nshards, (uintmax_t)n);
    expect(grown);
    const uint64_t nlost = add_beside(grown, &rng, rng_below(&rng, UINT64_MAX), n);
    const struct grown_facts facts = grown_facts(grown);
    const double expected = facts.expected_losses;
    expect(facts.fpr_now > 0 && facts.fpr_now <= fpr);
    expect(expected <= fpr * (double)n);
    expect((double)nlost <= expected + 7 * sqrt(expected) + 10);
    if (n > facts.capacity)
        expect((double)facts.memory_nbytes <= 8 * (double)n + (4 << 20));
    grown_free(grown);
}

TEST(keeps_the_rate)
{
    const uint64_t n = SANITIZED ? 200000 : 2000000;
    check_rate(1e-6, 1, n);
    check_rate(1e-4, SMALL_SHARD, n);
    check_rate(3e-5, 8, n);
}

/* Tables are closed, and those that follow keep the rate. */
TEST(closed_tables)
{
    check_rate(GROWN_FPR_LEAST, SMALL_SHARD, SANITIZED ? 1000000 : 3000000);
}

/* Hashes that crowd in few lines: as many as no line near has room for. */
TEST(crowded_lines)
{
    const uint64_t ncrowd = 400, near = UINT64_C(1) << 30, nothers = 600000;
    struct rng rng = rng_for("grown crowds");
    struct grown *grown = grown_new(GROWN_FPR_LEAST, SMALL_SHARD);
    expect(grown);
    for (uint64_t at = 0; at < 3; at++)
        for (uint64_t i = 0; i < ncrowd; i++)
            expect(!add_one(grown, hash_of(at * (UINT64_MAX / 2 - ncrowd * near) + i * near)));
    for (int turn = 0; turn < 3; turn++) {
        for (uint64_t at = 0; at < 3; at++)
            for (uint64_t i = 0; i < ncrowd; i++)
                expect(
                    add_one(grown, hash_of(at * (UINT64_MAX / 2 - ncrowd * near) + i * near)));
        for (uint64_t i = 0; i < nothers; i++)
            add_one(grown, key_of(rng_below(&rng, UINT64_MAX), i));
    }
    grown_free(grown);
}

/* The first and the last of all hashes have a place. */
TEST(first_and_last)
{
    struct grown *grown = grown_new(GROWN_FPR_MOST, 1);
    expect(grown);
    for (int again = 0; again < 2; again++)
        for (uint64_t i = 0; i < 200; i++) {
            expect(add_one(grown, hash_of(i << 24)) == again);
            expect(add_one(grown, hash_of(UINT64_MAX - (i << 24))) == again);
        }
    grown_free(grown);
}
