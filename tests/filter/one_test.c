/* one_test.c - proves that the ways to deal with one key agree: calls, prepared keys, views
 * (perhaps_fast.h), and batches of one key.  They give the same answers and errors, count the
 * same, and leave the same bytes, whatever the kind, the hash and the length of the key, until
 * the filter refuses.
 * On x86-64 it is compiled for AVX2, so that views make no calls where they need not. */
#include "support.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "perhaps_fast.h"
#include "perhaps_live.h"
#include "perhaps_sets.h"

#include "kinds/kinds.h"

enum { CAPACITY = 300, TRIED = 500, ASKED = 2000 };

static void custom_hash(void *context, const void *key, size_t nbytes,
                        uint8_t hash[PERHAPS_HASH_NBYTES])
{
    uint64_t halves[2] = { nbytes + 1, nbytes * 3 };
    (void)context;
    for (size_t i = 0; i < nbytes; i++)
        for (unsigned half = 0; half < 2; half++)
            halves[half] = (halves[half] ^ ((const uint8_t *)key)[i] ^ half) *
                               UINT64_C(0x9E3779B97F4A7C15) +
                           (halves[half] >> 29);
    memcpy(hash, halves, sizeof halves);
}

/* Writes key number i, and returns its length: what the hash takes, or else 8 bytes if it is to
 * be an integer and 0 to 40 if not. */
static size_t make_key(uint64_t i, enum perhaps_hash hash, bool integers, uint8_t key[48])
{
    size_t only = perhaps_hash_takes(hash);
    for (unsigned at = 0; at < 48; at += 8) {
        uint64_t word = (i + 1) * (at + 1) * UINT64_C(0xBF58476D1CE4E5B9);
        word ^= word >> 31;
        word *= UINT64_C(0x94D049BB133111EB);
        word ^= word >> 30;
        memcpy(key + at, &word, sizeof word);
    }
    return only ? only : integers ? 8 : i % 41;
}

/* Adds and asks by the function of the view for these keys. */
static int add_by_view(const struct perhaps_view *view, enum perhaps_hash hash,
                       const uint8_t *key)
{
    uint64_t word[2];
    memcpy(word, key, sizeof word);
    return hash == PERHAPS_HASH_NONE      ? perhaps_view_add_hash128(view, word[0], word[1])
           : hash == PERHAPS_HASH_NONE_64 ? perhaps_view_add_hash64(view, word[0])
                                          : perhaps_view_add_integer(view, word[0]);
}

static bool ask_by_view(const struct perhaps_view *view, enum perhaps_hash hash,
                        const uint8_t *key)
{
    uint64_t word[2];
    memcpy(word, key, sizeof word);
    return hash == PERHAPS_HASH_NONE ? perhaps_view_contains_hash128(view, word[0], word[1])
           : hash == PERHAPS_HASH_NONE_64 ? perhaps_view_contains_hash64(view, word[0])
                                          : perhaps_view_contains_integer(view, word[0]);
}

/* The views that only ask. */
struct questions {
    struct perhaps_cuckoo_view cuckoo;
    struct perhaps_ribbon_view ribbon;
};

static struct questions questions_of(const perhaps_filter *f)
{
    return (struct questions){ perhaps_cuckoo_view_of(f), perhaps_ribbon_view_of(f) };
}

/* Asks by both views, which must agree. */
static bool ask_by_views(const struct questions *view, enum perhaps_hash hash,
                         const uint8_t *key)
{
    uint64_t word[2];
    memcpy(word, key, sizeof word);
    const bool by_cuckoo =
        hash == PERHAPS_HASH_NONE
            ? perhaps_cuckoo_view_contains_hash128(&view->cuckoo, word[0], word[1])
        : hash == PERHAPS_HASH_NONE_64
            ? perhaps_cuckoo_view_contains_hash64(&view->cuckoo, word[0])
            : perhaps_cuckoo_view_contains_integer(&view->cuckoo, word[0]);
    const bool by_ribbon =
        hash == PERHAPS_HASH_NONE
            ? perhaps_ribbon_view_contains_hash128(&view->ribbon, word[0], word[1])
        : hash == PERHAPS_HASH_NONE_64
            ? perhaps_ribbon_view_contains_hash64(&view->ribbon, word[0])
            : perhaps_ribbon_view_contains_integer(&view->ribbon, word[0]);
    expect(by_cuckoo == by_ribbon);
    return by_cuckoo;
}

static void expect_same(const perhaps_filter *a, const perhaps_filter *b)
{
    struct perhaps_stats of_a = stats_of(a), of_b = stats_of(b);
    expect(perhaps_equal(a, b));
    expect(of_a.keys == of_b.keys && of_a.failed_adds == of_b.failed_adds);
    expect(of_a.unmatched_removals == of_b.unmatched_removals);
    expect(of_a.counting.saturated == of_b.counting.saturated);
}

/* Adds more keys than the filter takes in each way, and asks for them and for others. */
static void check_ways(const struct perhaps_options *options, bool integers)
{
    scoped_filter *called = make_with(options), *prepared = clone_of(called);
    scoped_filter *viewed = clone_of(called), *batched = clone_of(called);
    enum perhaps_hash hash = options->hashing.hash;
    struct perhaps_view view = perhaps_view_of(viewed);
    struct perhaps_prepared p;
    uint8_t key[48];
    for (uint64_t i = 0; i < TRIED; i++) {
        size_t nbytes = make_key(i * i % TRIED, hash, integers, key);
        struct perhaps_key each = { key, nbytes };
        struct perhaps_keys keys = perhaps_keys_each(&each, 1);
        int error = perhaps_add(called, key, nbytes);
        perhaps_prepare(prepared, key, nbytes, &p);
        expect_error(perhaps_add_prepared(prepared, &p), error);
        expect_error(perhaps_add_many(batched, &keys, NULL), error);
        if (integers)
            expect_error(add_by_view(&view, hash, key), error);
    }
    const struct questions questions = questions_of(called);
    expect_same(called, prepared);
    expect_same(called, batched);
    if (integers)
        expect_same(called, viewed);
    for (uint64_t i = 0; i < ASKED; i++) {
        size_t nbytes = make_key(i, hash, integers, key);
        bool there = perhaps_contains(called, key, nbytes);
        perhaps_prepare(called, key, nbytes, &p);
        expect(perhaps_contains_prepared(called, &p) == there);
        expect(!integers || ask_by_view(&view, hash, key) == there);
        expect(!integers || ask_by_views(&questions, hash, key) == there);
    }
}

#if defined(__AVX2__)
/* Before main(), which may already use the instructions. */
__attribute__((constructor(101))) static void skip_without_avx2(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
        _exit(CANNOT_TRY);
}
#endif

TEST_EACH(test_ways_agree, any_kind)
{
    for (unsigned hash = 0; hash < PERHAPS_HASH_INTEGER; hash++)
        for (unsigned way = 0; way < 4; way++) {
            struct perhaps_options options = { .kind = kind->name,
                                               .capacity = CAPACITY,
                                               .fpr = way & 1 ? 1e-5 : 0.01,
                                               .hashing = { .hash = (enum perhaps_hash)hash,
                                                            .function = custom_hash } };
            options.shared = way & 2 && kind->abilities & PERHAPS_CAN_THREADS;
            scene("%s, %s, way %u", kind->name, perhaps_hash_name((enum perhaps_hash)hash),
                  way);
            check_ways(&options, true);
            check_ways(&options, false);
            if (!is_built(kind) && ask_for_copies(&options, true)) {
                check_ways(&options, true);
                check_ways(&options, false);
            }
        }
}

/* Drops repeats in each way. */
TEST_EACH(test_unless_present, any_kind)
{
    struct perhaps_options options = { .kind = kind->name, .capacity = CAPACITY, .fpr = 0.01 };
    scoped_filter *called = make_with(&options), *prepared = clone_of(called);
    for (uint64_t i = 0; i < TRIED; i++) {
        uint64_t key = i * i % CAPACITY * UINT64_C(0x9E3779B97F4A7C15);
        struct perhaps_prepared p;
        bool was = false, was_too = true;
        int error = perhaps_add_unless_present(called, &key, sizeof key, &was);
        perhaps_prepare(prepared, &key, sizeof key, &p);
        expect_error(perhaps_add_unless_present_prepared(prepared, &p, &was_too), error);
        expect(was == was_too);
        expect_error(perhaps_add_unless_present_prepared(prepared, &p, NULL), error);
    }
    expect_same(called, prepared);
}

/* ---- Views of every geometry ------------------------------------------------------------- */

/* Asks for the keys that are in and for others. */
static void check_questions(const perhaps_filter *f, enum perhaps_hash hash, uint64_t keys)
{
    const struct questions questions = questions_of(f);
    uint8_t key[48];
    for (uint64_t i = 0; i < 3 * keys + 300; i++) {
        size_t nbytes = make_key(i, hash, true, key);
        bool there = perhaps_contains(f, key, nbytes);
        expect(i >= keys || there);
        expect(ask_by_views(&questions, hash, key) == there);
    }
}

/* Returns whether a view of this hash and geometry makes no calls, as perhaps_fast.h says. */
static bool is_viewed(const perhaps_filter *f)
{
    const enum perhaps_hash hash = f->hasher.id;
    const uint64_t *field = f->body.geometry.field;
    if (f->shared || (hash != PERHAPS_HASH_XXH3_64 && hash != PERHAPS_HASH_NONE &&
                      hash != PERHAPS_HASH_NONE_64))
        return false;
    if (!strcmp(f->kind->about.name, "cuckoo"))
        return field[1] <= 16; /* bits a fingerprint */
    return !strcmp(f->kind->about.name, "ribbon") && field[0] >= 5 && field[0] <= 8 &&
           !field[1] && field[4]; /* bits a row and a value, slots of the first layer */
}

static perhaps_filter *with_keys(const struct perhaps_options *options, bool is_built,
                                 enum perhaps_hash hash, uint64_t count)
{
    enum { MOST = 3000 };
    static struct perhaps_key each[MOST];
    static uint8_t key[MOST][48];
    expect(count <= MOST);
    for (uint64_t i = 0; i < count; i++)
        each[i] = (struct perhaps_key){ key[i], make_key(i, hash, true, key[i]) };
    struct perhaps_keys keys = perhaps_keys_each(each, count);
    if (is_built)
        return built_filter(options, &keys);
    perhaps_filter *f = make_with(options);
    fill(f, &keys);
    return f;
}

TEST_EACH(test_questions, every_kind)
{
    static const uint64_t sizes[] = { 3, 300, 3000 };
    static const enum perhaps_hash hashes[] = { PERHAPS_HASH_XXH3_64, PERHAPS_HASH_NONE,
                                                PERHAPS_HASH_NONE_64, PERHAPS_HASH_SIP };
    const bool may = !strcmp(kind->name, "cuckoo") || !strcmp(kind->name, "ribbon");
    unsigned viewed = 0, refused = 0;
    for (unsigned i = 0; i < 12; i++)
        for (int step = 0; step < 26; step += may ? 1 : 8) {
            const double fpr = ldexp(0.3, -step);
            enum perhaps_hash hash = hashes[i % 4];
            struct perhaps_options options = options_for(kind, sizes[i / 4], fpr, test_seed());
            struct perhaps_plan plan;
            options.hashing.hash = hash;
            options.shared = takes_threads(kind) && fpr > 0.001 && fpr < 0.003;
            scene("%s, %llu keys at %g, hash %s", kind->name,
                  (unsigned long long)options.capacity, fpr, perhaps_hash_name(hash));
            if (perhaps_plan_for(&options, &plan))
                continue; /* a rate that the kind cannot reach */
            scoped_filter *f = with_keys(&options, is_built(kind), hash, options.capacity);
            const struct questions views = questions_of(f);
            bool by_cuckoo = false, by_ribbon = false;
            for (unsigned input = 0; input < PERHAPS_INPUT_COUNT; input++) {
                by_cuckoo |= views.cuckoo.nbuckets[input] != 0;
                by_ribbon |= views.ribbon.nslots[input] != 0;
            }
            expect((by_cuckoo || by_ribbon) == is_viewed(f));
            viewed += by_cuckoo || by_ribbon;
            refused += !by_cuckoo && !by_ribbon;
            check_questions(f, hash, options.capacity);
        }
    expect(refused && may == (viewed > 0));
}

/* ---- Single keys beside batches of one key ----------------------------------------------- */

enum doing { ADD, ADD_NEW, ADD_NEW_PREPARED, REMOVE, COUNT, ASK, DEEDS };

/* Does something with a key.  Returns the error, and sets *told to what else the call tells. */
static int do_single(perhaps_filter *f, enum doing doing, struct perhaps_key key,
                     uint64_t *told)
{
    struct perhaps_prepared p;
    bool was = false;
    int error = 0;
    *told = 0;
    if (doing == ADD)
        return perhaps_add(f, key.bytes, key.nbytes);
    if (doing == REMOVE)
        return perhaps_remove(f, key.bytes, key.nbytes);
    if (doing == COUNT)
        return perhaps_count(f, key.bytes, key.nbytes, told);
    if (doing == ADD_NEW)
        error = perhaps_add_unless_present(f, key.bytes, key.nbytes, &was);
    else if (doing == ADD_NEW_PREPARED) {
        perhaps_prepare(f, key.bytes, key.nbytes, &p);
        error = perhaps_add_unless_present_prepared(f, &p, &was);
    } else
        was = perhaps_contains(f, key.bytes, key.nbytes);
    *told = was;
    return error;
}

/* The same by a batch. */
static int do_batch(perhaps_filter *f, enum doing doing, struct perhaps_key key, uint64_t *told)
{
    const struct perhaps_keys keys = perhaps_keys_each(&key, 1);
    bool was = false;
    int error = 0;
    *told = 0;
    if (doing == COUNT)
        return perhaps_count_many(f, &keys, told);
    if (doing == REMOVE) {
        error = perhaps_remove_many(f, &keys, &was, NULL, NULL);
        return error ? error : was ? 0 : PERHAPS_ERR_NOT_FOUND;
    }
    if (doing == ADD)
        return perhaps_add_many(f, &keys, NULL);
    if (doing == ASK)
        *told = perhaps_contains_many(f, &keys, NULL);
    else {
        error = perhaps_add_unless_present_many(f, &keys, &was, NULL);
        *told = was;
    }
    return error;
}

/* Does the same with both filters, which must agree at every step: 'steps' deeds with so few
 * keys that each comes often, in three rounds.  In every second one most keys are removed. */
static void check_singles(perhaps_filter *single, perhaps_filter *batch, unsigned steps,
                          enum perhaps_hash hash, bool integers, struct rng rng)
{
    uint8_t key[48];
    for (unsigned i = 0; i < steps; i++) {
        size_t nbytes = make_key(rng_below(&rng, 2 * CAPACITY), hash, integers, key);
        enum doing doing = (enum doing)rng_below(&rng, DEEDS);
        if (doing < REMOVE && 3 * i / steps == 1)
            doing = REMOVE;
        if (nbytes && rng_below(&rng, 50) == 0)
            nbytes--; /* which some hashes do not take */
        struct perhaps_key each = { key, nbytes };
        uint64_t told, told_too;
        int error = do_single(single, doing, each, &told);
        expect_error(do_batch(batch, doing, each, &told_too), error);
        expect(told == told_too);
        if (i % (steps / 8) == 0)
            expect(perhaps_equal(single, batch));
    }
    expect_same(single, batch);
}

/* Of every kind, over each base, with each hash, shared or not, with copies or without. */
static void check_singles_of(struct perhaps_options *options, struct rng *rng)
{
    for (unsigned hash = 0; hash < PERHAPS_HASH_INTEGER; hash++)
        for (unsigned way = 0; way < 4; way++) {
            perhaps_filter *filter;
            options->hashing.hash = (enum perhaps_hash)hash;
            if (!ask_for_copies(options, way & 1) && way & 1)
                continue;
            scene("%s, base %s, %s, way %u%s", options->kind,
                  options->base ? options->base : "none",
                  perhaps_hash_name((enum perhaps_hash)hash), way,
                  options->shared ? ", shared" : "");
            if (perhaps_create(options, &filter) == PERHAPS_ERR_UNSUPPORTED)
                continue; /* no copies over this base */
            expect(filter);
            scoped_filter *single = filter, *batch = clone_of(single);
            rng_next(rng);
            check_singles(single, batch, many(2000), (enum perhaps_hash)hash, way & 2, *rng);
        }
}

TEST_EACH(test_singles, any_kind)
{
    struct rng rng = rng_for(__func__);
    for (unsigned way = 0; way < 4; way++) {
        struct perhaps_options options =
            options_for(kind, CAPACITY, way & 1 ? 1e-5 : 0.01, test_seed());
        options.hashing.function = custom_hash;
        options.shared = way & 2;
        if (options.shared && !takes_threads(kind))
            continue;
        for (size_t i = 0; base_to_test(kind, i, &options.base); i++)
            check_singles_of(&options, &rng);
    }
}

/* Of every width of slots that there is. */
TEST_EACH(test_singles_of_rates, removes)
{
    struct rng rng = rng_for(__func__);
    for (int step = 0; step < 30; step++) {
        const double fpr = ldexp(0.2, -step);
        struct perhaps_options options = options_for(kind, CAPACITY, fpr, test_seed());
        scene("%s, fpr %g", kind->name, fpr);
        options.hashing.hash = PERHAPS_HASH_XXH3_64;
        perhaps_filter *filter;
        ask_for_copies(&options, true);
        if (perhaps_create(&options, &filter))
            continue; /* a rate that the kind cannot reach */
        scoped_filter *single = filter, *batch = clone_of(single);
        rng_next(&rng);
        check_singles(single, batch, many(6000), PERHAPS_HASH_XXH3_64, true, rng);
    }
}

/* Of files: mapped, checked, without their secret, and live. */
TEST_EACH(test_singles_of_files, any_kind)
{
    static const struct perhaps_open_options live = { .mode = PERHAPS_MODE_JOURNAL };
    static const struct perhaps_open_options *const ways[] = { &map_it, &load_it, &checking,
                                                               &without_secret, &live };
    struct rng rng = rng_for(__func__);
    for (unsigned way = 0; way < 2 * sizeof ways / sizeof *ways; way++) {
        const struct perhaps_open_options *how = ways[way / 2];
        struct perhaps_options options = options_for(kind, CAPACITY, 0.01, test_seed());
        if (how == &without_secret)
            options.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_SIP };
        if (!ask_for_copies(&options, way & 1) && way & 1)
            continue;
        scene("%s, way %u", kind->name, way);
        struct path one = temp_path("one"), two = temp_path("two");
        scoped_filter *full = make_with(&options);
        scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, CAPACITY / 2);
        fill(full, &keys);
        expect_success(perhaps_save(full, one.text));
        expect_success(perhaps_save(full, two.text));
        scoped_filter *single = open_file(one.text, how), *batch = open_file(two.text, how);
        check_singles(single, batch, many(1000), options.hashing.hash, way % 3 == 0, rng);
        unlink(one.text);
        unlink(two.text);
        unlink(journal_of(one).text);
        unlink(journal_of(two).text);
    }
}

/* A key of a length that the hash refuses gives the answer and error of the plain calls, and so
 * does a filter without its secret. */
TEST(test_unhashed)
{
    struct perhaps_options options = { .capacity = 10,
                                       .fpr = 0.01,
                                       .hashing.hash = PERHAPS_HASH_NONE_64 };
    scoped_filter *f = make_with(&options);
    struct perhaps_prepared p;
    perhaps_prepare(f, "seven..", 7, &p);
    expect(!perhaps_contains_prepared(f, &p) && !perhaps_contains(f, "seven..", 7));
    expect_error(perhaps_add_prepared(f, &p), PERHAPS_ERR_ARGUMENT);
    expect_error(perhaps_add(f, "seven..", 7), PERHAPS_ERR_ARGUMENT);
    expect(stats_of(f).keys == 0);
}

/* A library that knows another view leaves it as it is, and everything is done by calls. */
TEST(test_other_view)
{
    struct perhaps_options of_cuckoo = { .kind = "cuckoo", .capacity = 1000, .fpr = 0.01 };
    scoped_filter *cuckoo = make_with(&of_cuckoo);
    struct perhaps_cuckoo_view other = { .filter = cuckoo };
    perhaps_cuckoo_view_fill(cuckoo, PERHAPS_VIEW_VERSION + 1, &other);
    expect(!other.nbuckets[PERHAPS_INPUT_INTEGER] && !other.buckets);
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01 };
    scoped_filter *f = make_with(&options), *same = clone_of(f);
    struct perhaps_view fast = perhaps_view_of(f), view = fast;
    view.nlines[PERHAPS_INPUT_INTEGER] = 0;
    perhaps_view_fill(f, PERHAPS_VIEW_VERSION + 1, &view);
    expect(view.nlines[PERHAPS_INPUT_INTEGER] == 0);
    expect(fast.nlines[PERHAPS_INPUT_INTEGER] > 0 && fast.nlines[PERHAPS_INPUT_HASH64] == 0);
    view = perhaps_view_of(same);
    view.nlines[PERHAPS_INPUT_INTEGER] = 0;
    view.keys_until[PERHAPS_INPUT_INTEGER] = view.keys_until[PERHAPS_INPUT_HASH64];
    for (uint64_t i = 0; i < 1000; i++) {
        expect_success(perhaps_view_add_integer(&fast, i));
        expect_success(perhaps_view_add_integer(&view, i));
        expect(perhaps_view_contains_integer(&view, i));
    }
    expect_same(f, same);
}
