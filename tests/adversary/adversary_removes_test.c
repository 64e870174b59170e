/* adversary_removes_test.c - proves what perhaps.h says about the removal of keys that were
 * never added.  One that is certainly not there changes nothing but a count.  One that is
 * perhaps there takes away the entry of another key, or of several in a counting filter; but
 * who does not know the secret finds such keys only by chance. */
#include "support.h"
#include <perhaps.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chance.h"
#include "filter/filter.h"
#include "kinds/lines/lines.h"

enum { ADDED = 10 * 1000, TRIES = 1000 * 1000, STRANGERS = 20 * 1000 };

/* ---- Filters ----------------------------------------------------------------------------- */

/* Calls check() with a filter of each kind that removes and takes keys as they come, and of
 * each composite that does so over a base that does. */
static void for_all(void (*check)(perhaps_filter *f, const struct perhaps_kind *kind,
                                  const struct perhaps_keys *added),
                    bool low, enum perhaps_hash hash)
{
    scoped_keys added = make_keys(TEXT_KEYS, test_seed(), 0, ADDED);
    EACH_KIND(kind, in_registry) {
        double fpr = low ? 1e-7 : 0.001;
        struct perhaps_options options =
            options_for(kind, grows(kind) ? ADDED / 5 : ADDED, fpr, 0);
        options.hashing.hash = hash;
        options.hashing.seed = hash == PERHAPS_HASH_XXH3 ? test_seed() : 0;
        for (size_t i = 0; base_to_test(kind, i, &options.base); i++) {
            perhaps_filter *f;
            if (perhaps_create(&options, &f)) /* a base cannot reach this fpr */
                continue;
            scene("%s over %s", kind->name, options.base ? options.base : "none");
            if (f->removes) {
                fill(f, &added);
                check(f, kind, &added);
            }
            perhaps_free(f);
        }
    }
}

static size_t lost(const perhaps_filter *f, const struct perhaps_keys *added)
{
    return added->count - perhaps_contains_many(f, added, NULL);
}

/* Returns how many keys can be lost by one removal: in a counting filter as many as a key has
 * counters, which is most in the newest layer of a chain. */
static uint64_t lost_at_most(const perhaps_filter *f)
{
    const perhaps_filter *part = f->parts->count ? f->parts->part[f->parts->count - 1] : f;
    const uint64_t *field = part->body.geometry.field;
    return strcmp(part->kind->about.name, "counting") ? 1 : field[BANDS] * field[LINE_BITS];
}

/* ---- Keys that are certainly not there --------------------------------------------------- */

/* Removes strangers that are certainly not there, one by one and all at once. */
static void check_absent(perhaps_filter *f, const struct perhaps_kind *kind,
                         const struct perhaps_keys *added)
{
    scoped_keys strangers = make_keys(RANDOM_KEYS, test_seed(), 0, STRANGERS);
    scoped_filter *before = clone_of(f);
    static uint8_t packed[STRANGERS][8];
    static bool removed[STRANGERS];
    size_t absent = 0, n = 1;
    for (size_t i = 0; i < strangers.count; i++) {
        const void *key = key_at(&strangers, i);
        if (perhaps_contains(f, key, strangers.key_nbytes))
            continue;
        memcpy(packed[absent++], key, sizeof *packed);
        expect_error(perhaps_remove(f, key, strangers.key_nbytes), PERHAPS_ERR_NOT_FOUND);
    }
    const struct perhaps_keys all = perhaps_keys_packed(packed, sizeof *packed, absent);
    expect_success(perhaps_remove_many(f, &all, removed, &n, NULL));
    expect(n == 0 && !memchr(removed, true, absent));
    struct perhaps_stats stats = stats_of(f), old = stats_of(before);
    expect(absent > STRANGERS / 2 && perhaps_equal(f, before));
    expect(stats.unmatched_removals == old.unmatched_removals + 2 * absent);
    expect(stats.keys == old.keys && stats.stale == old.stale);
    expect(lost(f, added) == 0 && kind);
}

TEST(test_absent_keys_change_nothing)
{
    for_all(check_absent, false, PERHAPS_HASH_XXH3);
    for_all(check_absent, false, PERHAPS_HASH_SIP);
}

TEST_EACH(test_kinds_that_cannot_remove, any_kind)
{
    if (removes(kind))
        return;
    scoped_filter *f = make_filter(kind, 100, 0.01, test_seed()), *before;
    expect_success(perhaps_add(f, "key", 3));
    before = clone_of(f);
    expect_error(perhaps_remove(f, "key", 3), PERHAPS_ERR_UNSUPPORTED);
    expect(perhaps_equal(f, before) && perhaps_contains(f, "key", 3));
    expect_same_counters(f, before);
}

/* ---- Keys that are perhaps there --------------------------------------------------------- */

/* Writes a key that was never tried: a new one, or one like the last that was found. */
static void next_try(uint8_t key[16], const uint8_t found[16], struct rng *rng, uint64_t number)
{
    uint64_t words[2] = { rng_next(rng), number };
    memcpy(key, words, sizeof words);
    if (number % 2)
        memcpy(key, found, sizeof *words); /* the last half is the number of the try */
    if (number % 4 == 3)
        key[rng_below(rng, sizeof *words)] ^= (uint8_t)(1 + rng_below(rng, 255));
}

/* Tries to remove keys that were never added, and goes on beside those that were removed.
 * Returns how many were. */
static uint64_t remove_by_trying(perhaps_filter *f, uint64_t tries)
{
    struct rng rng = rng_for("removes");
    uint8_t key[16], found[16] = { 0 };
    uint64_t removed = 0;
    for (uint64_t i = 0; i < tries; i++) {
        next_try(key, found, &rng, i);
        int error = perhaps_remove(f, key, sizeof key);
        if (error) {
            expect_error(error, PERHAPS_ERR_NOT_FOUND);
            continue;
        }
        memcpy(found, key, sizeof key);
        removed++;
    }
    return removed;
}

static void check_secret(perhaps_filter *f, const struct perhaps_kind *kind,
                         const struct perhaps_keys *added)
{
    uint64_t tries = many(TRIES);
    struct perhaps_stats before = stats_of(f);
    double mean = before.fpr_now * (double)tries, most = most_by_chance(mean);
    uint64_t removed = remove_by_trying(f, tries);
    struct perhaps_stats after = stats_of(f);
    size_t gone = lost(f, added);
    print_message("%s at %g: %zu tries remove %zu, by chance less than %.3g, at most %.0f; %zu "
                  "keys lost, %zu stale\n",
                  scene_text(), before.plan.fpr, (size_t)tries, (size_t)removed, mean, most,
                  gone, (size_t)(after.stale - before.stale));
    expect((double)removed <= most && kind);
    expect(gone <= removed * lost_at_most(f));
    expect(after.unmatched_removals == before.unmatched_removals + tries - removed);
    expect(after.keys + removed == before.keys);
}

/* A removal takes an entry away, so the fpr only falls: what it is at first bounds the mean. */
TEST(test_nobody_finds_removals_without_the_secret)
{
    for_all(check_secret, false, PERHAPS_HASH_SIP);
}

/* What perhaps.h advises where removals cannot be trusted: a million tries remove nothing, or
 * by chance a few keys. */
TEST(test_low_rates_protect_from_removals)
{
    for_all(check_secret, true, PERHAPS_HASH_SIP);
}

/* ---- Where the seed is known ------------------------------------------------------------- */

/* Finds keys in a copy of his own that are perhaps there, and asks the victim only to remove
 * these: each of them is removed, and takes an entry with it. */
static void check_known(perhaps_filter *f, const struct perhaps_kind *kind,
                        const struct perhaps_keys *added)
{
    enum { WANTED = 100 };
    scoped_filter *own = clone_of(f);
    struct rng rng = rng_for("known");
    const uint8_t nothing[16] = { 0 };
    uint8_t key[16];
    uint64_t tries = 0, removed = 0;
    while (removed < WANTED) {
        next_try(key, nothing, &rng, tries++);
        if (perhaps_remove(own, key, sizeof key))
            continue;
        expect_success(perhaps_remove(f, key, sizeof key));
        removed++;
    }
    size_t gone = lost(f, added);
    print_message(
        "%s: %zu tries at home, %zu removals, all succeed: %zu keys lost, %zu stale\n",
        scene_text(), (size_t)tries, (size_t)removed, gone, (size_t)stats_of(f).stale);
    expect(stats_of(f).unmatched_removals == 0 && kind);
    expect(gone >= WANTED / 2 && gone <= WANTED * lost_at_most(f));
}

TEST(test_a_known_seed_tells_what_to_remove)
{
    for_all(check_known, false, PERHAPS_HASH_XXH3);
}
