/* abuse_test.c - proves that keys which an enemy chose do no lasting harm: one key over and
 * over, or 300,000 keys that share one bucket.  They are refused with a clear error, the memory
 * stays in proportion to the keys that were accepted, and honest keys still find room. */
#include "support.h"

#include <string.h>

#include "filter/filter.h"
#include "kinds/lines/lines.h"

/* Calls check() with a filter of each kind; for a composite, over each base. */
static void for_all(void (*check)(perhaps_filter *f, const struct perhaps_kind *kind),
                    uint64_t capacity, enum perhaps_hash hash)
{
    EACH_KIND(kind, in_registry) {
        struct perhaps_options options = options_for(kind, capacity, 0.001, 0);
        options.hashing.hash = hash;
        options.hashing.seed = hash == PERHAPS_HASH_XXH3 ? test_seed() : 0;
        for (size_t i = 0; base_to_test(kind, i, &options.base); i++) {
            scoped_filter *f = make_with(&options);
            scene("%s over %s", kind->name, options.base ? options.base : "none");
            check(f, kind);
        }
    }
}

/* ---- One key ----------------------------------------------------------------------------- */

/* Adds one key a thousand times: no memory is taken, and it is refused as PERHAPS_ERR_COPIES
 * or, by kinds that hold a set, counted once. */
static void check_one_key(perhaps_filter *f, const struct perhaps_kind *kind)
{
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, 2);
    uint64_t before = stats_of(f).memory_nbytes, accepted = 0;
    for (unsigned n = 1; n <= 1000; n++) {
        int error = perhaps_add(f, key_at(&keys, 0), keys.key_nbytes);
        accepted += !error;
        if (error)
            expect_error(error, PERHAPS_ERR_COPIES);
    }
    struct perhaps_stats stats = stats_of(f);
    expect(stats.memory_nbytes == before);
    expect(f->removes ? stats.keys == accepted : stats.keys == 1 && accepted == 1000);
    expect(stats.failed_adds == 1000 - accepted);
    expect(perhaps_contains(f, key_at(&keys, 0), keys.key_nbytes));
    int error = perhaps_add(f, key_at(&keys, 1), keys.key_nbytes);
    if (!f->removes) /* else the copies may take all slots of a small filter */
        expect_success(error);
    expect(!error || stats_of(f).failed_adds == 1001 - accepted);
    if (f->removes && !has_parts(kind) && !saturates(kind))
        expect(accepted == copies_most(kind) ||
               (copies_most(kind) < PERHAPS_COPIES_MAX && accepted == copies_most(kind) - 1));
}

TEST(test_one_key)
{
    for_all(check_one_key, 1000, PERHAPS_HASH_XXH3);
    for_all(check_one_key, 20, PERHAPS_HASH_XXH3);
}

/* ---- One pair of buckets ----------------------------------------------------------------- */

enum { CRAFTED = SANITIZED ? 100 * 1000 : 300 * 1000, HONEST = 20 * 1000 };

/* Writes a key for the hash 'none': its first half is the place, its second half the mark.  All
 * keys have the same place, and so the same first bucket.  With 'fixed' they also have the same
 * mark, except in low bits that neither choose a segment nor go into a fingerprint: such keys
 * are twins, which no filter can tell apart. */
static void craft_key(uint64_t key[2], struct rng *rng, bool fixed)
{
    key[0] = UINT64_MAX / 3;
    key[1] = fixed ? UINT64_MAX / 5 + rng_below(rng, 1 << 16) : rng_next(rng);
}

/* Adds keys one by one.  Those that share buckets with the crafted keys may be refused.
 * Returns how many were accepted; each of these must be found. */
static size_t add_honest(perhaps_filter *f, const struct perhaps_keys *keys)
{
    size_t taken = 0;
    for (size_t i = 0; i < keys->count; i++) {
        if (perhaps_add(f, key_at(keys, i), keys->key_nbytes))
            continue;
        expect(perhaps_contains(f, key_at(keys, i), keys->key_nbytes));
        taken++;
    }
    return taken;
}

/* Fills a filter with crafted keys and then with honest ones, and compares it with a filter
 * that gets only the honest ones: it must take nearly as many of them. */
static void attack(perhaps_filter *f, const struct perhaps_kind *kind, bool fixed)
{
    static uint64_t accepted[CRAFTED][2];
    struct rng rng = rng_for(fixed ? "twins" : "place");
    scoped_keys honest = make_keys(HASH_KEYS, test_seed(), 0, HONEST);
    scoped_filter *peaceful = clone_of(f);
    size_t stored = 0, refused = 0;
    /* Other kinds refuse all crafted keys after the first few, so a tenth is enough for
     * them. */
    size_t crafted = grows_in_place(kind) && !fixed ? CRAFTED : CRAFTED / 10;
    for (size_t i = 0; i < crafted; i++) {
        craft_key(accepted[stored], &rng, fixed);
        int error = perhaps_add(f, accepted[stored], sizeof *accepted);
        expect(!error || error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES ||
               error == PERHAPS_ERR_LAYERS);
        stored += !error;
        refused += error != 0;
    }
    expect(stats_of(f).failed_adds == refused);
    struct perhaps_keys in = perhaps_keys_packed(accepted, sizeof *accepted, stored);
    if (!forgets(kind))
        expect_all_found(f, &in);
    size_t taken = add_honest(f, &honest), taken_in_peace = add_honest(peaceful, &honest);
    expect(taken_in_peace >= (gets_full(kind) ? 1000 : HONEST));
    expect(taken + taken_in_peace / 100 + (gets_full(kind) ? stored : 0) >= taken_in_peace);
    /* Crafted keys may take 16 bytes each, and the filter four times its usual memory. */
    uint64_t most = 4 * stats_of(peaceful).memory_nbytes + 16 * stored;
    scene("%s, %zu crafted keys accepted: %llu bytes, at most %llu", kind->name, stored,
          (unsigned long long)stats_of(f).memory_nbytes, (unsigned long long)most);
    expect(stats_of(f).memory_nbytes <= most);
}

static void attack_place(perhaps_filter *f, const struct perhaps_kind *kind)
{
    attack(f, kind, false);
}

static void attack_with_twins(perhaps_filter *f, const struct perhaps_kind *kind)
{
    attack(f, kind, true);
}

TEST(test_one_place)
{
    for_all(attack_place, 1000, PERHAPS_HASH_NONE);
}

TEST(test_twins)
{
    for_all(attack_with_twins, 1000, PERHAPS_HASH_NONE);
}

/* ---- Stale entries ----------------------------------------------------------------------- */

/* Keys come and go for a long time, never more than a hundred at once.  A removal in a filter
 * with several layers can leave a stale entry; these must be counted and stay few. */
static void check_stale(perhaps_filter *f, const struct perhaps_kind *kind)
{
    enum { ROUNDS = SANITIZED ? 200 : 2000, EACH = 100 };
    if (!f->removes)
        return;
    uint64_t removed = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), round * EACH, EACH);
        size_t n;
        fill(f, &keys);
        expect_all_found(f, &keys);
        expect_success(perhaps_remove_many(f, &keys, NULL, &n, NULL));
        expect(n == EACH);
        removed += n;
    }
    struct perhaps_stats stats = stats_of(f);
    scene("%s: %llu stale of %llu removed", kind->name, (unsigned long long)stats.stale,
          (unsigned long long)removed);
    expect(stats.keys == 0 && stats.stale <= removed / 100); /* 0.1 % for each of few layers */
    expect(stats.load == 0 || stats.stale > 0);
    expect(stats.memory_nbytes < 1 << 20);
}

TEST(test_stale)
{
    for_all(check_stale, 200, PERHAPS_HASH_XXH3);
}
