/* shrink_test.c - proves that a filter that is made smaller is, byte for byte, the one that
 * would have been there if it had been small from the beginning; that it keeps its keys and its
 * promise; and that what cannot be made smaller is refused. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "core/downsize.h"
#include "filter/counted.h"
#include "filter/counters.h"
#include "kinds/kinds.h"
#include "kinds/lines/fold.h"
#include "kinds/lines/lines.h"

/* ---- The bytes ------------------------------------------------------------------------- */

/* Makes an empty filter with these fields, which limit neither keys nor counters. */
static perhaps_filter *filter_with(const struct filter_kind *kind, const uint64_t field[4])
{
    static const struct perhaps_hashing hashing = { .seed = 1 };
    struct geometry g = { .capacity = 1000000, .fpr = 0.999 };
    struct hasher hasher;
    perhaps_filter *f;
    memcpy(g.field, field, 4 * sizeof *field);
    expect_success(geometry_check(kind, &g));
    expect_success(hasher_create(&hasher, &hashing));
    g.key_limit = g.cell_limit = UINT64_MAX / 4;
    expect_success(filter_make(kind, &g, &hasher, NULL, true, false, &f));
    return f;
}

static void add_to_both(perhaps_filter *a, perhaps_filter *b, const struct keyhash *key,
                        unsigned copies)
{
    bool answer;
    size_t done;
    for (unsigned copy = 0; copy < copies; copy++) {
        expect_success(a->kind->add(a, key, key, 1, false, &answer, &done));
        expect_success(b->kind->add(b, key, key, 1, false, &answer, &done));
    }
}

/* Adds random keys to both filters: many, some of them often; or so few that no counter reaches
 * its end, and then removes some of them again.  (A counter that has reached its end in the
 * small filter, but not in the large one, no longer counts down.) */
static void change_both(perhaps_filter *a, perhaps_filter *b, struct rng *rng)
{
    bool few = a->removes && rng_below(rng, 2), answer;
    unsigned nkeys = (unsigned)rng_below(rng, few ? COUNTER_MAX : 300);
    for (unsigned i = 0; i < nkeys; i++) {
        struct keyhash key = { .place = rng_next(rng), .mark = rng_next(rng) };
        add_to_both(a, b, &key, few || rng_below(rng, 50) ? 1 : (unsigned)rng_below(rng, 40));
        if (few && !rng_below(rng, 3)) {
            a->kind->remove(a, &key, &key, 1, &answer);
            b->kind->remove(b, &key, &key, 1, &answer);
        }
    }
}

/* Folds the body in pieces that the seed chooses. */
static void fold_in_pieces(const perhaps_filter *large, perhaps_filter *small, uint64_t factor,
                           struct rng *rng)
{
    const struct folds *ops = large->kind->folds;
    const struct geometry *g = &small->body.geometry;
    uint64_t unit = ops->unit_nbytes(g), nbytes = g->body_nbytes - ops->tail_nbytes;
    struct folded folded = { 0 };
    memset(small->body.bytes, 0xff, g->body_nbytes);
    for (uint64_t at = 0, piece; at < nbytes; at += piece) {
        piece = (1 + rng_below(rng, (nbytes - at) / unit)) * unit;
        ops->fold(g, small->cpu, large->body.bytes + at * factor, small->body.bytes + at, piece,
                  factor);
        ops->look(g, small->cpu, small->body.bytes + at, piece, &folded);
        if (ops->tail)
            ops->tail(small->cpu, small->body.bytes + at, piece, folded.tail);
    }
    memcpy(small->body.bytes + nbytes, folded.tail, ops->tail_nbytes);
    double rate = exact_rate(small), looked = ops->rate(g, &folded);
    expect(fabs(rate - looked) <= 1e-12 * rate);
}

/* Compares a folded filter with one that was small from the beginning. */
static void expect_exact(const struct filter_kind *kind, const uint64_t small_field[4],
                         uint64_t factor, struct rng *rng)
{
    uint64_t field[4];
    memcpy(field, small_field, sizeof field);
    field[0] *= factor;
    scoped_filter *large = filter_with(kind, field), *small = filter_with(kind, small_field);
    scoped_filter *folded = filter_with(kind, small_field);
    scene("%s %u x %u, %u, %u, %u", kind->about.name, (unsigned)small_field[0],
          (unsigned)factor, (unsigned)field[1], (unsigned)field[2], (unsigned)field[3]);
    change_both(large, small, rng);
    fold_in_pieces(large, folded, factor, rng);
    expect(perhaps_equal(folded, small));
    struct geometry divided = large->body.geometry;
    kind->folds->divide(&divided, factor);
    expect(!memcmp(divided.field, small->body.geometry.field, sizeof divided.field));
    expect(kind->folds->units(&large->body.geometry) % factor == 0);
}

TEST(test_exact_lines)
{
    struct rng rng = rng_for(__func__);
    for (unsigned i = 0; i < many(5000); i++) {
        bool counts = rng_below(&rng, 2);
        uint64_t parts = 1 + rng_below(&rng, LINES_BANDS_MAX);
        uint64_t field[] = { 1 + rng_below(&rng, 40), parts, 1 + rng_below(&rng, WORDS),
                             !counts && parts > 1 && rng_below(&rng, 2) };
        expect_exact(kind_by_name(counts ? "counting" : "blocked"), field,
                     1 + rng_below(&rng, 20), &rng);
    }
}

TEST(test_exact_bits)
{
    struct rng rng = rng_for(__func__);
    for (unsigned i = 0; i < many(5000); i++) {
        uint64_t field[4] = { 512 * (1 + rng_below(&rng, 12)), 1 + rng_below(&rng, 64) };
        expect_exact(kind_by_name("bloom"), field,
                     1 + rng_below(&rng, rng_below(&rng, 4) ? 40 : 200), &rng);
    }
}

/* ---- Plans ------------------------------------------------------------------------------- */

TEST(test_round_up)
{
    for (uint64_t units = 1; units < 200000; units++) {
        uint64_t rounded = fold_round_up(units);
        scene("%u to %u", (unsigned)units, (unsigned)rounded);
        expect(rounded >= units && (rounded - units) * 200 < units);
        expect(units <= 200 ? rounded == units : rounded % 2 == 0);
        expect(rounded % 720 == 0 || units <= UINT64_C(720) * 200);
    }
}

/* The capacity that follows from a planned geometry is the one that it was planned for. */
TEST_EACH(test_capacity, folds)
{
    struct rng rng = rng_for(__func__);
    const double rates[] = { 0.4, 0.03, 1e-3, 1e-5 };
    for (unsigned i = 0; i < many(40); i++) {
        uint64_t wanted = 1 + rng_below(&rng, i % 2 ? 100 : 1000000);
        scoped_filter *f = make_filter(kind, wanted, rates[i % 4], 1);
        struct geometry g = f->body.geometry;
        uint64_t most = f->kind->folds->capacity(&g);
        scene("%s %u, most %u, fpr %g", kind->name, (unsigned)wanted, (unsigned)most, g.fpr);
        expect((double)most >= 0.8 * (double)wanted); /* a bound is sometimes too weak */
        expect(wanted < 100000 || (double)most < 1.01 * (double)wanted);
    }
}

/* ---- The promise ------------------------------------------------------------------------- */

/* Adds keys until one is refused, and looks at the rate meanwhile. */
static void expect_promise_kept(perhaps_filter *f, struct rng *rng)
{
    double asked = f->body.geometry.fpr;
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t key = rng_next(rng);
        if (perhaps_add(f, &key, sizeof key))
            break;
        if (i % 100 == 0)
            expect(exact_rate(f) <= asked);
    }
    expect(exact_rate(f) <= asked);
}

/* Makes a filter that was small from the beginning, with these keys, and expects the same. */
static void expect_same_as_planned(const perhaps_filter *small, const struct perhaps_keys *keys)
{
    perhaps_filter *made;
    expect_success(filter_make(small->kind, &small->body.geometry, &small->hasher, NULL, true,
                               false, &made));
    scoped_filter *f = made;
    f->body.geometry.key_limit = f->body.geometry.cell_limit = UINT64_MAX / 4;
    filter_reset_room(f);
    f->kind = small->kind;
    for (size_t i = 0; i < keys->count; i++) {
        struct perhaps_keys one = some_keys(keys, i, 1);
        struct perhaps_hashed hashed;
        struct keyhash key;
        bool answer;
        size_t done;
        expect_success(perhaps_hash_many(f, &one, &hashed));
        memcpy(&key, hashed.bytes, sizeof key);
        expect_success(f->kind->add(f, &key, &key, 1, false, &answer, &done));
    }
    filter_be_like(f, small);
    expect(perhaps_equal(f, small));
    scoped_bytes bytes = saved_bytes(small);
    expect_saves_as(f, &bytes);
}

/* Returns the rate of a filter with the geometry g that f is folded to, or 1 if its file could
 * not hold that many keys. */
static double folded_rate(const perhaps_filter *f, struct geometry g, uint64_t factor)
{
    perhaps_filter *made;
    g.capacity = 1 + f->counters->keys;
    expect_success(geometry_check(f->kind, &g));
    if (!geometry_may_hold(&g, f->counters->keys))
        return 1;
    expect_success(filter_make(f->kind, &g, &f->hasher, NULL, true, false, &made));
    scoped_filter *folded = made;
    f->kind->folds->fold(&g, f->cpu, f->body.bytes, folded->body.bytes,
                         g.body_nbytes - f->kind->folds->tail_nbytes, factor);
    return exact_rate(folded);
}

/* Expects that no larger factor keeps the rate, of the few that are tried.  In small filters
 * the rates of neighbours differ by so much that a promise can fail, too. */
static void expect_smallest(const perhaps_filter *f, const perhaps_filter *small)
{
    unsigned failed = 0;
    const struct folds *ops = f->kind->folds;
    double fpr = small->body.geometry.fpr;
    double keys = ops->keys ? (double)ops->keys(f) : filter_different(f);
    uint64_t units = ops->units(&f->body.geometry), left = ops->units(&small->body.geometry);
    for (uint64_t fewer = 1; fewer < left && keys > 100 && failed < FOLD_TRIES; fewer++) {
        struct geometry g = f->body.geometry;
        if (units % fewer)
            continue;
        ops->divide(&g, units / fewer);
        g.fpr = fpr;
        if (f->kind->predict(&g, keys) > fpr)
            continue;
        expect(folded_rate(f, g, units / fewer) > fpr);
        failed++;
    }
}

/* A key sets a bit in the large filter if it does in the small one, where more are set already;
 * so the small one counts fewer, but tells of as many.  (What the number is beside the true one
 * is tried by counts_test.c.) */
static void expect_same_number(const perhaps_filter *f, const perhaps_filter *small)
{
    const struct perhaps_stats before = stats_of(f), after = stats_of(small);
    const double keys = (double)before.keys_different, rate = fmin(after.fpr_now, 0.99);
    expect(after.keys <= before.keys + 1);
    expect(fabs((double)after.keys_different - keys) <=
           1 + DEVIATIONS * sqrt(keys * rate + 1) / (1 - rate));
}

static void expect_shrinks(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                           double asked, size_t nkeys, struct rng *rng)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, rng_next(rng), 0, nkeys);
    scoped_filter *f = make_filter(kind, capacity, fpr, 1 + rng_next(rng) / 2);
    scene("%s %u keys of %u, fpr %g, asked %g", kind->name, (unsigned)nkeys, (unsigned)capacity,
          fpr, asked);
    fill(f, &keys);
    scoped_filter *before = clone_of(f), *small = NULL;
    int error = perhaps_shrink(f, asked, &small);
    expect(perhaps_equal(f, before));
    expect_same_counters(f, before);
    if (error) {
        expect(error == PERHAPS_ERR_LIMIT && !small);
        return;
    }
    expect(f->body_nbytes / 2 + LINE_NBYTES >= small->body_nbytes);
    expect(small->body.geometry.fpr == (asked > 0 ? asked : fpr));
    expect(exact_rate(small) <= small->body.geometry.fpr);
    expect_same_number(f, small);
    expect_all_found(small, &keys);
    expect_same_as_planned(small, &keys);
    expect_smallest(f, small);
    expect_promise_kept(small, rng);
    expect_all_found(small, &keys);
}

TEST_EACH(test_random, folds)
{
    struct rng rng = rng_for(__func__);
    const double rates[] = { 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6 };
    for (unsigned i = 0; i < many(250); i++) {
        double fpr = rates[rng_below(&rng, sizeof rates / sizeof *rates)];
        double asked =
            rng_below(&rng, 3) ? 0 : fmin(fpr * pow(2, (double)rng_below(&rng, 7) - 3), 0.9);
        uint64_t capacity = 1 + rng_below(&rng, i % 2 ? 1000 : 20000);
        uint64_t share = 1 + rng_below(&rng, 30);
        expect_shrinks(kind, capacity, fpr, asked, rng_below(&rng, capacity + 1) / share, &rng);
    }
}

/* Planned for a hundred times too many, a filter becomes nearly as small as if it had been
 * planned for its keys. */
TEST_EACH(test_saving, folds_rounded)
{
    for (size_t nkeys = 5000; nkeys < 500000; nkeys = nkeys * 7 / 3) {
        scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, nkeys);
        scoped_filter *f = make_filter(kind, 1000000, 0.01, 1), *small = NULL;
        scoped_filter *planned = make_filter(kind, nkeys, 0.01, 1);
        fill(f, &keys);
        expect_success(perhaps_shrink(f, 0, &small));
        scene("%s %u keys: %u bytes, planned %u", kind->name, (unsigned)nkeys,
              (unsigned)small->body_nbytes, (unsigned)planned->body_nbytes);
        expect((double)small->body_nbytes < 1.5 * (double)planned->body_nbytes);
        expect_all_found(small, &keys);
    }
}

/* Without a key, the smallest filter is the one that can take any. */
TEST_EACH(test_empty, folds)
{
    struct rng rng = rng_for(__func__);
    scoped_filter *f = make_filter(kind, 100000, 1e-3, 1), *small = NULL;
    expect_success(perhaps_shrink(f, 0, &small));
    expect(small->body_nbytes <= 16384);
    expect_success(perhaps_add(small, "a", 1));
    expect_promise_kept(small, &rng);
}

/* A count that says too little deceives nobody: the bits decide. */
TEST_EACH(test_wrong_count, folds)
{
    struct rng rng = rng_for(__func__);
    for (unsigned i = 0; i < many(20); i++) {
        scoped_keys keys = make_keys(RANDOM_KEYS, rng_next(&rng), 0, 10000);
        scoped_filter *f = make_filter(kind, 20000 + rng_below(&rng, 100000), 0.01, 1);
        scoped_filter *small = NULL;
        fill(f, &keys);
        f->counters->keys = rng_below(&rng, 100);
        if (!strcmp(kind->name, "counting"))
            store64(f->body.bytes + f->body.geometry.body_nbytes - LINE_NBYTES, 0);
        if (perhaps_shrink(f, 0, &small))
            continue;
        expect(exact_rate(small) <= 0.01);
        expect_all_found(small, &keys);
    }
}

/* ---- Where the filter lies --------------------------------------------------------------- */

TEST_EACH(test_files, folds)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 3000);
    scoped_filter *f = make_filter(kind, 50000, 0.01, 1), *wanted = NULL;
    struct path path = temp_path("large"), small_path = temp_path("small");
    fill(f, &keys);
    expect_success(perhaps_shrink(f, 0, &wanted));
    expect_success(perhaps_save(f, path.text));
    for (unsigned i = 0; i < 2; i++) {
        scoped_filter *opened = open_file(path.text, ways_to_open[i]), *small = NULL;
        expect_success(perhaps_shrink(opened, 0, &small));
        expect(perhaps_equal(small, wanted));
        expect_success(perhaps_save(small, small_path.text));
        scoped_filter *again = open_file(small_path.text, ways_to_open[i]);
        expect(perhaps_equal(again, wanted) &&
               again->body.geometry.capacity == wanted->body.geometry.capacity);
        expect_same_counters(again, wanted);
        expect_all_found(again, &keys);
    }
}

/* A full file of more keys than capacity can be opened again, too. */
TEST_EACH(test_halves, folds)
{
    for (uint64_t capacity = 2; capacity < 200000; capacity = capacity * 5 / 2) {
        scoped_keys keys = make_keys(RANDOM_KEYS, test_seed() + capacity, 0, capacity / 2);
        scoped_filter *f = make_filter(kind, capacity, 0.01, 1), *small = NULL;
        struct path path = temp_path("half");
        scene("%s %u", kind->name, (unsigned)capacity);
        fill(f, &keys);
        if (perhaps_shrink(f, 0, &small))
            continue;
        expect_success(perhaps_save(small, path.text));
        scoped_filter *again = open_file(path.text, &load_it);
        expect_all_found(again, &keys);
        expect(exact_rate(again) <= 0.01);
    }
}

TEST_EACH(test_shared, folds)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 3000);
    scoped_filter *f = shared_filter(kind, 50000, 0.01, 1), *small = NULL;
    fill(f, &keys);
    expect_success(perhaps_shrink(f, 0, &small));
    expect(small->shared);
    expect_all_found(small, &keys);
    expect_success(perhaps_add(small, "another", 7));
    expect(perhaps_contains(small, "another", 7));
}

/* ---- Chains ------------------------------------------------------------------------------ */

static perhaps_filter *chain_of(const char *base, uint64_t capacity, double fpr,
                                const struct perhaps_keys *keys)
{
    struct perhaps_options options = { .capacity = capacity,
                                       .fpr = fpr,
                                       .kind = "chain",
                                       .base = base,
                                       .hashing = { .seed = 1 } };
    perhaps_filter *f = make_with(&options);
    fill(f, keys);
    return f;
}

static void expect_chain_shrinks(const char *base, uint64_t capacity, size_t nkeys,
                                 double asked)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, nkeys);
    scoped_keys more = make_keys(RANDOM_KEYS, test_seed(), nkeys, 2 * nkeys);
    scoped_filter *f = chain_of(base, capacity, 0.01, &keys), *small = NULL;
    scene("%s %u of %u, asked %g", base, (unsigned)nkeys, (unsigned)capacity, asked);
    expect_success(perhaps_shrink(f, asked, &small));
    expect(perhaps_memory_nbytes(small) < perhaps_memory_nbytes(f));
    expect(small->parts->count == f->parts->count);
    expect_same_number(f, small);
    expect_all_found(small, &keys);
    expect(exact_rate(small) <= small->body.geometry.fpr);
    scoped_bytes bytes = saved_bytes(small);
    struct path path = temp_path("chain");
    write_file(path.text, bytes.at, bytes.nbytes);
    scoped_filter *again = open_file(path.text, &load_it);
    expect(perhaps_equal(again, small));
    fill(again, &more);
    expect_all_found(again, &keys);
    expect_all_found(again, &more);
    expect(exact_rate(again) <= again->body.geometry.fpr);
}

TEST(test_chains)
{
    const char *const bases[] = { "blocked", "bloom", "counting" };
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        expect_chain_shrinks(bases[i], 100000, 1000, 0);
        expect_chain_shrinks(bases[i], 10000, 35000, 0.03);
        expect_chain_shrinks(bases[i], 50000, 3000, 0.003);
    }
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 30000);
    scoped_filter *full = chain_of("blocked", 10000, 0.01, &keys), *small = NULL;
    expect_error(perhaps_shrink(full, 1e-5, &small), PERHAPS_ERR_LIMIT);
    scoped_filter *cuckoo = chain_of("cuckoo", 10000, 0.01, &keys);
    expect_error(perhaps_shrink(cuckoo, 0, &small), PERHAPS_ERR_UNSUPPORTED);
    expect(!small);
}

/* ---- Refusals ---------------------------------------------------------------------------- */

TEST_EACH(test_unsupported, folds_not)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 10);
    scoped_filter *f = full_filter(kind, 100, 0.01, &keys);
    perhaps_filter *small = f;
    expect_error(perhaps_shrink(f, 0, &small), PERHAPS_ERR_UNSUPPORTED);
    expect(!small);
}

TEST_EACH(test_refused, folds)
{
    const double wrong[] = { -1, 1, 2, 1e-16, NAN, INFINITY };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 9000);
    scoped_filter *f = full_filter(kind, 10000, 0.01, &keys);
    perhaps_filter *small = f;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_error(perhaps_shrink(f, wrong[i], &small), PERHAPS_ERR_ARGUMENT);
    expect_error(perhaps_shrink(f, 0, &small), PERHAPS_ERR_LIMIT);
    expect(!small);
    expect_error(perhaps_shrink(f, 1e-9, &small), PERHAPS_ERR_LIMIT);
}

/* Lets each allocation fail, then the next one, until the call succeeds. */
TEST(test_no_memory)
{
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_options options = {
        .capacity = 20000, .fpr = 0.01, .kind = "chain", .allocator = &allocator
    };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 70000);
    perhaps_filter *f = make_with(&options), *small = NULL;
    fill(f, &keys);
    uint64_t live = ledger.live;
    int error = PERHAPS_ERR_MEMORY;
    for (unsigned i = 1; error; i++) {
        ledger.fail_at = ledger.calls + i;
        error = perhaps_shrink(f, 0.05, &small);
        scene("allocation %u: %d, %u blocks", i, error, (unsigned)(ledger.live - live));
        expect(!error || (error == PERHAPS_ERR_MEMORY && !small && ledger.live == live));
    }
    expect_all_found(small, &keys);
    perhaps_free(small);
    perhaps_free(f);
    expect(ledger.live == 0);
}
