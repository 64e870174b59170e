/* merge_test.c - proves that after perhaps_merge() a filter has the keys of both, and that a
 * merge that is refused changes neither of them. */
#include "support.h"
#include <perhaps.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "filter/filter.h"

enum { CAPACITY = 2000 };

/* Kinds without removals hold a set, so their union is that of the bits.  Kinds with removals
 * hold copies, and those of both filters add up. */
static bool holds_a_set(const struct perhaps_kind *kind)
{
    return !removes(kind);
}

static bool merges_sets(const struct perhaps_kind *kind)
{
    return merges(kind) && holds_a_set(kind);
}

static bool merges_copies(const struct perhaps_kind *kind)
{
    return merges(kind) && !holds_a_set(kind);
}

static perhaps_filter *filter_of(const struct perhaps_kind *kind,
                                 const struct perhaps_keys *keys, size_t first, size_t count)
{
    struct perhaps_keys part = some_keys(keys, first, count);
    perhaps_filter *f = full_filter(kind, CAPACITY, 0.01, &part);
    return f;
}

static void expect_merge_refused(perhaps_filter *f, const perhaps_filter *other, int wanted)
{
    scoped_filter *before = clone_of(f), *other_before = clone_of(other);
    expect_error(perhaps_merge(f, other), wanted);
    expect(perhaps_equal(f, before) && perhaps_equal(other, other_before));
    expect_same_counters(f, before);
}

/* Two halves make a whole.  Bloom kinds estimate the number of keys from the bits; other kinds
 * know it exactly. */
TEST(test_halves)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY);
    EACH_KIND(kind, merges) {
        scoped_filter *all = filter_of(kind, &keys, 0, CAPACITY);
        scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY / 2);
        scoped_filter *rest = filter_of(kind, &keys, CAPACITY / 2, CAPACITY / 2);
        scoped_filter *rest_before = clone_of(rest);
        expect_success(perhaps_merge(f, rest));
        expect_all_found(f, &keys);
        expect(perhaps_equal(rest, rest_before));
        expect(!holds_a_set(kind) || perhaps_equal(f, all));
        double estimate = (double)stats_of(f).keys;
        expect(fabs(estimate / (double)CAPACITY - 1) < (holds_a_set(kind) ? 0.05 : 1e-9));
    }
}

/* Bloom kinds count a key once that was in both. */
TEST(test_overlap)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY / 2);
    EACH_KIND(kind, merges_sets) {
        scoped_filter *f = filter_of(kind, &keys, 0, keys.count * 3 / 4);
        scoped_filter *other = filter_of(kind, &keys, keys.count / 4, keys.count * 3 / 4);
        expect_success(perhaps_merge(f, other));
        expect_all_found(f, &keys);
        expect(fabs((double)stats_of(f).keys / (double)keys.count - 1) < 0.05);
    }
}

/* An empty filter changes nothing, and takes all keys of another one. */
TEST(test_with_nothing)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY);
    EACH_KIND(kind, merges) {
        scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY), *before = clone_of(f);
        scoped_filter *empty = filter_of(kind, &keys, 0, 0);
        expect_success(perhaps_merge(f, empty));
        expect(perhaps_equal(f, before));
        expect_same_counters(f, before);
        expect_success(perhaps_merge(empty, f));
        expect_all_found(empty, &keys);
    }
}

/* The copies of both filters add up: each key can be removed twice, and is gone then. */
TEST(test_copies)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY / 4);
    EACH_KIND(kind, merges_copies) {
        scoped_filter *f = filter_of(kind, &keys, 0, keys.count);
        scoped_filter *other = filter_of(kind, &keys, 0, keys.count);
        size_t nremoved;
        expect_success(perhaps_merge(f, other));
        for (unsigned copies = 2; copies > 0; copies--) {
            expect(stats_of(f).keys == copies * keys.count);
            expect_all_found(f, &keys);
            expect_success(perhaps_remove_many(f, &keys, NULL, &nremoved, NULL));
            expect(nremoved == keys.count);
        }
        expect(perhaps_contains_many(f, &keys, NULL) == 0);
    }
}

/* Filters of another seed, capacity, rate or kind, and a filter with itself. */
TEST(test_refusals)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 10);
    const struct perhaps_kind *first = perhaps_kind_at(0);
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = filter_of(kind, &keys, 0, keys.count);
        perhaps_filter *others[] = {
            make_filter(kind, CAPACITY, 0.01, test_seed() ^ 1),
            make_filter(kind, CAPACITY * 2, 0.01, test_seed()),
            make_filter(kind, CAPACITY, 0.0001, test_seed()),
            make_filter(kind != first ? first : perhaps_kind_at(1), CAPACITY, 0.01,
                        test_seed()),
        };
        for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
            expect_merge_refused(f, others[o],
                                 merges(kind) ? PERHAPS_ERR_MISMATCH : PERHAPS_ERR_UNSUPPORTED);
            perhaps_free(others[o]);
        }
        expect_merge_refused(f, f, PERHAPS_ERR_ARGUMENT);
        if (!merges(kind)) {
            scoped_filter *twin = clone_of(f);
            expect_merge_refused(f, twin, PERHAPS_ERR_UNSUPPORTED);
        }
    }
}

/* Each of the two filters keeps the fpr, but their union would not. */
TEST(test_too_much)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2 * CAPACITY);
    EACH_KIND(kind, merges) {
        scoped_filter *f = filter_of(kind, &keys, 0, CAPACITY);
        scoped_filter *other = filter_of(kind, &keys, CAPACITY, CAPACITY);
        expect_merge_refused(f, other, PERHAPS_ERR_FULL);
    }
}

/* ---- What differs ------------------------------------------------------------------------ */

static void expect_difference(const perhaps_filter *a, const perhaps_filter *b,
                              const char *wanted)
{
    char text[PERHAPS_DIFFERENCE_NBYTES] = "x";
    expect(perhaps_difference(a, b, text) == (*wanted != '\0'));
    if (strcmp(text, wanted) != 0)
        printf("told: %s\n", text);
    expect(!strcmp(text, wanted));
    expect(perhaps_difference(a, b, NULL) == (*wanted != '\0'));
}

static perhaps_filter *with_options(const char *kind, uint64_t capacity, double fpr,
                                    uint64_t seed)
{
    struct perhaps_options options = {
        .capacity = capacity, .fpr = fpr, .kind = kind, .hashing = { .seed = seed }
    };
    return make_with(&options);
}

/* The options that differ are told, with both values; a secret is not. */
TEST(test_differences)
{
    static const uint8_t one[16] = { 1 }, other[16] = { 2 };
    struct perhaps_options sip = { .capacity = 1000,
                                   .fpr = 0.01,
                                   .hashing = { .hash = PERHAPS_HASH_SIP, .secret = one } };
    scoped_filter *f = with_options("blocked", 1000, 0.01, 5);
    scoped_filter *twin = with_options("blocked", 1000, 0.01, 5);
    scoped_filter *seed = with_options("blocked", 1000, 0.01, 7);
    scoped_filter *size = with_options("blocked", 2000, 0.0001, 5);
    scoped_filter *kind = with_options("cuckoo", 1000, 0.01, UINT64_MAX);
    scoped_filter *secret = make_with(&sip);
    sip.hashing.secret = other;
    scoped_filter *stranger = make_with(&sip);
    expect_difference(f, f, "");
    expect_difference(f, twin, "");
    expect_difference(f, seed, "seed 5 and 7");
    expect_difference(seed, f, "seed 7 and 5");
    expect_difference(f, size, "capacity 1000 and 2000, fpr 0.01 and 0.0001");
    expect_difference(f, kind, "kind blocked and cuckoo, seed 5 and 18446744073709551615");
    expect_difference(f, secret, "hash xxh3 and sip");
    expect_difference(secret, stranger, "secret");
    struct perhaps_options other_hash = {
        .capacity = 1000, .fpr = 0.01, .hashing = { .hash = PERHAPS_HASH_XXH3_64, .seed = 7 }
    };
    scoped_filter *short_hash = make_with(&other_hash);
    expect_difference(f, short_hash, "hash xxh3 and xxh3-64, seed 5 and 7");
}

/* Options that follow from none of these are told by the geometry: a chain's parts, too. */
TEST(test_differences_of_geometry)
{
    struct perhaps_options options = { .capacity = 1000,
                                       .fpr = 1e-6,
                                       .hashing = { .seed = 5 } };
    scoped_filter *apart = make_with(&options);
    options.blocked.together = true;
    scoped_filter *together = make_with(&options);
    char text[PERHAPS_DIFFERENCE_NBYTES];
    expect(perhaps_difference(apart, together, text) && strstr(text, "together 0 and 1"));
    struct perhaps_options grows = { .capacity = 100,
                                     .fpr = 0.01,
                                     .kind = "chain",
                                     .base = "blocked",
                                     .hashing = { .seed = 5 } };
    scoped_filter *chain = make_with(&grows);
    grows.base = "cuckoo";
    scoped_filter *other = make_with(&grows);
    expect_difference(chain, other, "base blocked and cuckoo");
    grows.base = "blocked";
    grows.chain.factor = 4;
    scoped_filter *steep = make_with(&grows);
    expect(perhaps_difference(chain, steep, text) && strstr(text, "factor 2 and 4"));
}

/* Of any two filters it tells a difference just if they cannot be merged. */
TEST(test_differences_of_all_kinds)
{
    const double fprs[] = { 0.01, 0.0001 };
    EACH_KIND(kind, merges) {
        for (unsigned way = 0; way < 16; way++) {
            scoped_filter *f = make_filter(kind, CAPACITY, 0.01, test_seed());
            scoped_filter *other = make_filter(kind, CAPACITY + (way & 3) * 400,
                                               fprs[way >> 2 & 1], test_seed() ^ (way >> 3));
            bool differs = perhaps_merge(f, other) == PERHAPS_ERR_MISMATCH;
            char text[PERHAPS_DIFFERENCE_NBYTES];
            expect(perhaps_difference(f, other, text) == differs && !*text == !differs);
        }
    }
}

/* Nothing is written behind the text, however many options differ. */
TEST(test_differences_are_short)
{
    struct perhaps_options options = { .capacity = UINT64_C(1) << 20,
                                       .fpr = 1.23456789e-5,
                                       .kind = "chain",
                                       .base = "counting",
                                       .hashing = { .seed = UINT64_MAX } };
    scoped_filter *f = make_with(&options);
    options.capacity++;
    options.base = "strided";
    options.fpr = 1.23456788e-6;
    options.hashing.seed--;
    scoped_filter *other = make_with(&options);
    char text[PERHAPS_DIFFERENCE_NBYTES + 1];
    text[PERHAPS_DIFFERENCE_NBYTES] = 'x';
    expect(perhaps_difference(f, other, text));
    expect(text[PERHAPS_DIFFERENCE_NBYTES] == 'x' && strlen(text) < PERHAPS_DIFFERENCE_NBYTES);
    expect(strstr(text, "seed 18446744073709551615 and 18446744073709551614"));
}

/* ---- Chains ----------------------------------------------------------------------------- */

static struct perhaps_options chain_options(const char *base, unsigned factor)
{
    return (struct perhaps_options){ .kind = "chain",
                                     .base = base,
                                     .capacity = CAPACITY / 8,
                                     .fpr = 0.01,
                                     .chain.factor = factor,
                                     .hashing = { .seed = test_seed() } };
}

/* Makes a chain of keys first .. first+count-1. */
static perhaps_filter *chain_with(const char *base, unsigned factor,
                                  const struct perhaps_keys *keys, size_t first, size_t count)
{
    struct perhaps_options options = chain_options(base, factor);
    struct perhaps_keys part = some_keys(keys, first, count);
    perhaps_filter *f = make_with(&options);
    fill(f, &part);
    return f;
}

/* Checks what is true of every chain: each layer keeps its share of the fpr, and the counts of
 * the layers add up. */
static void expect_sound_chain(const perhaps_filter *f)
{
    struct perhaps_stats part;
    uint64_t keys = 0;
    for (size_t i = 0; perhaps_part(f, i, &part); i++) {
        const perhaps_filter *layer = f->parts->part[f->parts->count - 1 - i];
        expect(part.fpr_now <= part.plan.fpr && layer->is_part);
        expect(part.keys <= layer->body.geometry.key_limit);
        keys += part.keys;
    }
    expect(stats_of(f).fpr_now <= 0.01 && stats_of(f).keys == keys - stats_of(f).stale);
}

/* Merges, and then adds as many keys again: the union grows as any chain does.  The merge may
 * be refused; 'must' says that it may not. */
static bool merge_chains(perhaps_filter *f, const perhaps_filter *other,
                         const struct perhaps_keys *keys, bool must)
{
    scoped_filter *before = clone_of(f), *other_before = clone_of(other);
    scoped_keys more = make_keys(RANDOM_KEYS, test_seed() + 1, 0, CAPACITY);
    size_t parts =
        f->parts->count > other->parts->count ? f->parts->count : other->parts->count;
    int error = perhaps_merge(f, other);
    expect(!must || !error);
    expect(perhaps_equal(other, other_before));
    if (error) {
        expect(error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES);
        expect(perhaps_equal(f, before));
        expect_same_counters(f, before);
        return false;
    }
    expect(f->parts->count == parts);
    expect_sound_chain(f);
    expect_all_found(f, keys);
    fill(f, &more);
    expect_all_found(f, keys);
    expect_all_found(f, &more);
    expect_sound_chain(f);
    scoped_bytes saved = saved_bytes(f);
    scoped_filter *copy = clone_of(f);
    expect_saves_as(copy, &saved);
    return true;
}

/* Iterates over the bases of a chain and over factors. */
static void each_chain(void (*check)(const char *base, unsigned factor))
{
    const struct perhaps_kind *chain = NULL;
    const unsigned factors[] = { 1, 2, 100 };
    const char *base;
    while (strcmp((chain = next_kind(chain, any_kind))->name, "chain") != 0)
        continue;
    for (size_t i = 0; base_to_test(chain, i, &base); i++)
        for (size_t n = 0; n < sizeof factors / sizeof *factors; n++) {
            scene("chain of %s, factor %u", base, factors[n]);
            check(base, factors[n]);
        }
}

/* Two small ones; one that has layers which the other has not, and the other way round; and two
 * whose first layers are full of different keys. */
static void check_chains(const char *base, unsigned factor)
{
    enum { LAYER = CAPACITY / 8 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY);
    struct perhaps_keys small = some_keys(&keys, 0, LAYER);
    scoped_filter *a = chain_with(base, factor, &keys, 0, LAYER / 2);
    scoped_filter *b = chain_with(base, factor, &keys, LAYER / 2, LAYER - LAYER / 2);
    scoped_filter *large = chain_with(base, factor, &keys, 0, CAPACITY);
    scoped_filter *other = chain_with(base, factor, &keys, LAYER, CAPACITY - LAYER);
    scoped_filter *none = chain_with(base, factor, &keys, 0, 0), *copy = clone_of(large);
    expect(large->parts->count > 1 && other->parts->count > 1);
    merge_chains(a, b, &small, true);
    expect(!merge_chains(large, other, &keys, false));
    expect_success(perhaps_merge(copy, none));
    expect(perhaps_equal(copy, large));
    expect_same_counters(copy, large);
    merge_chains(none, large, &keys, true);
}

TEST(test_chains)
{
    each_chain(check_chains);
}

/* Chains that began as copies of one chain and went on by themselves.  If they hold sets, the
 * common layers are hardly fuller than before. */
static void check_copies_of_chains(const char *base, unsigned factor)
{
    struct rng rng = rng_for(__func__);
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY);
    for (unsigned round = 0; round < many(20); round++) {
        size_t common = (size_t)rng_below(&rng, CAPACITY * 3 / 4);
        size_t own = (size_t)rng_below(&rng, CAPACITY / 4), last = keys.count - common - own;
        scoped_filter *f = chain_with(base, factor, &keys, 0, common), *other = clone_of(f);
        struct perhaps_keys mine = some_keys(&keys, common, own);
        struct perhaps_keys others = some_keys(&keys, common + own, last / (1 + round % 9));
        struct perhaps_keys all = some_keys(&keys, 0, common + own + others.count);
        fill(f, &mine);
        fill(other, &others);
        merge_chains(f, other, &all, false);
        struct perhaps_keys nothing = some_keys(&keys, 0, 0);
        scoped_filter *same = clone_of(f);
        merge_chains(f, same, &nothing, !f->removes);
    }
}

TEST(test_copies_of_chains)
{
    each_chain(check_copies_of_chains);
}

/* Copies of keys add up, wherever they lie, and removals of them lose no other key. */
static void check_copies_in_chains(const char *base, unsigned factor)
{
    enum { KEYS = 100, COPIES = 3, GONE = 200 };
    struct rng rng = rng_for(__func__);
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY);
    struct perhaps_keys some = some_keys(&keys, 0, KEYS), rest = some_keys(&keys, KEYS, 900);
    scoped_filter *f = chain_with(base, factor, &keys, 0, 0), *other = clone_of(f);
    unsigned copies[KEYS] = { 0 };
    if (!f->removes)
        return;
    for (unsigned n = 0; n < KEYS; n++) {
        size_t key = (size_t)rng_below(&rng, KEYS);
        if (copies[key] >= COPIES)
            continue;
        copies[key]++;
        expect_success(perhaps_add(n % 2 ? f : other, key_at(&keys, key), keys.key_nbytes));
    }
    fill(other, &rest);
    expect(other->parts->count > 1);
    struct perhaps_keys first = some_keys(&rest, 0, GONE);
    expect_success(
        perhaps_remove_many(other, &first, NULL, NULL, NULL)); /* the first layer has room */
    rest = some_keys(&rest, GONE, rest.count - GONE);
    int error = perhaps_merge(f, other); /* may have no room: copies share few places */
    expect(!error || (error == PERHAPS_ERR_FULL && !strcmp(base, "strided")));
    if (error)
        return;
    expect_sound_chain(f);
    for (unsigned n = 0; n < 10 * KEYS; n++) {
        size_t key = (size_t)rng_below(&rng, KEYS);
        if (!copies[key])
            continue;
        expect(!f->counts || count_of(f, key_at(&keys, key), keys.key_nbytes) >= copies[key]);
        expect_success(perhaps_remove(f, key_at(&keys, key), keys.key_nbytes));
        copies[key]--;
        expect_all_found(f, &rest);
    }
    for (size_t key = 0; key < some.count; key++)
        expect(!copies[key] || perhaps_contains(f, key_at(&some, key), some.key_nbytes));
    expect_sound_chain(f);
}

TEST(test_copies_in_chains)
{
    each_chain(check_copies_in_chains);
}

/* Chains of another factor, base, capacity or fpr; and one whose first layer is the same but
 * whose fpr says otherwise, as a file could. */
TEST(test_chains_that_differ)
{
    struct perhaps_options options = chain_options("blocked", 2);
    scoped_filter *f = make_with(&options);
    struct perhaps_options others[] = { options, options, options, options };
    others[0].chain.factor = 3;
    others[1].base = "bloom";
    others[2].capacity++;
    others[3].fpr = 0.0099999;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        scene("other %zu", i);
        scoped_filter *other = make_with(&others[i]);
        expect_merge_refused(f, other, PERHAPS_ERR_MISMATCH);
    }
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY);
    scoped_filter *lax = chain_with("blocked", 2, &keys, 0, CAPACITY);
    lax->parts->part[1]->body.geometry.fpr = 0.5;
    expect_merge_refused(f, lax, PERHAPS_ERR_MISMATCH);
}

/* The union takes its memory from the allocator of the filter, whatever gave that of the other
 * one; and without memory it changes nothing. */
TEST(test_memory_of_chains)
{
    struct perhaps_options options = chain_options("blocked", 2);
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY);
    scoped_filter *other = chain_with("blocked", 2, &keys, 0, CAPACITY);
    options.allocator = &allocator;
    options.shared = true;
    perhaps_filter *f = make_with(&options), *before = clone_of(f);
    int error = PERHAPS_ERR_MEMORY;
    for (uint64_t k = 1; error; k++) {
        uint64_t live = ledger.live;
        ledger.fail_at = ledger.calls + k;
        error = perhaps_merge(f, other);
        ledger.fail_at = 0;
        expect(!error || error == PERHAPS_ERR_MEMORY);
        expect(!error || (perhaps_equal(f, before) && ledger.live == live));
    }
    expect_all_found(f, &keys);
    for (size_t i = 0; i < f->parts->count; i++)
        expect(f->parts->part[i]->shared && f->parts->part[i]->body.writers);
    perhaps_free(f);
    perhaps_free(before);
    expect(!ledger.live);
}
