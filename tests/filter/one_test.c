/* one_test.c - proves that the ways to deal with one key agree: calls, prepared keys, and views
 * (perhaps_fast.h).  They give the same answers and errors, count the same, and leave the
 * same bytes, whatever the kind, the hash and the length of the key, until the filter refuses.
 * On x86-64 it is compiled for AVX2, so that views make no calls where they need not. */
#include "support.h"

#include <string.h>
#include <unistd.h>

#include "perhaps_fast.h"
#include "perhaps_sets.h"

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

static void expect_same(const perhaps_filter *a, const perhaps_filter *b)
{
    struct perhaps_stats of_a = stats_of(a), of_b = stats_of(b);
    expect(perhaps_equal(a, b));
    expect(of_a.keys == of_b.keys && of_a.failed_adds == of_b.failed_adds);
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
