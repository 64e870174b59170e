/* bitmap_test.c - a bit for each integer of a range, beside an array that says the same. */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"
#include "perhaps_build.h"
#include "perhaps_fast.h"
#include "perhaps_live.h"
#include "perhaps_sets.h"

static struct perhaps_options options_of(uint64_t low, uint64_t high)
{
    return (struct perhaps_options){ .bitmap = { .low = low, .high = high } };
}

static perhaps_filter *make_range(uint64_t low, uint64_t high, bool shared)
{
    struct perhaps_options options = options_of(low, high);
    options.shared = shared;
    return make_with(&options);
}

/* A key as text. */
struct text {
    char at[24];
    size_t nbytes;
};

static struct text text_of(uint64_t n)
{
    struct text text;
    text.nbytes = (size_t)snprintf(text.at, sizeof text.at, "%" PRIu64, n);
    return text;
}

static bool has(const perhaps_filter *f, uint64_t n)
{
    struct text text = text_of(n);
    return perhaps_contains(f, text.at, text.nbytes);
}

static int add(perhaps_filter *f, uint64_t n)
{
    struct text text = text_of(n);
    return perhaps_add(f, text.at, text.nbytes);
}

static int take(perhaps_filter *f, uint64_t n)
{
    struct text text = text_of(n);
    return perhaps_remove(f, text.at, text.nbytes);
}

static struct perhaps_hashed hashed_of(uint64_t n)
{
    struct perhaps_hashed hashed = { { 0 } };
    memcpy(hashed.bytes, &n, sizeof n);
    return hashed;
}

static uint64_t keys_of(const perhaps_filter *f)
{
    return stats_of(f).keys;
}

/* ---- Keys ------------------------------------------------------------------------------ */

/* What is no key was never added, and cannot be. */
TEST(test_no_keys)
{
    static const char *const none[] = { "", "-1", "1 ", "00", "x", "99999999999999999999" };
    scoped_filter *f = make_range(0, 1000, false);
    expect_success(add(f, 1));
    scoped_filter *before = clone_of(f);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct perhaps_key each[] = { { "5", 1 }, { none[i], strlen(none[i]) }, { "6", 1 } };
        struct perhaps_keys keys = perhaps_keys_each(each, 3);
        struct perhaps_hashed hashed[3];
        struct perhaps_prepared prepared;
        bool present[3], was_present;
        size_t done;
        scene("'%s'", none[i]);
        expect(!perhaps_contains(f, none[i], strlen(none[i])));
        expect_error(perhaps_add(f, none[i], strlen(none[i])), PERHAPS_ERR_ARGUMENT);
        expect_error(perhaps_remove(f, none[i], strlen(none[i])), PERHAPS_ERR_ARGUMENT);
        expect_error(perhaps_hash_many(f, &keys, hashed), PERHAPS_ERR_ARGUMENT);
        expect_error(perhaps_add_unless_present(f, none[i], strlen(none[i]), &was_present),
                     PERHAPS_ERR_ARGUMENT);
        perhaps_prepare(f, none[i], strlen(none[i]), &prepared);
        expect(!perhaps_contains_prepared(f, &prepared));
        expect_error(perhaps_add_prepared(f, &prepared), PERHAPS_ERR_ARGUMENT);
        expect(perhaps_equal(f, before));
        expect_same_counters(f, before);
        expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_ARGUMENT);
        expect(done == 1 && has(f, 5) && !has(f, 6));
        expect(perhaps_contains_many(f, &keys, present) == 1 && present[0] && !present[1]);
        expect_success(take(f, 5));
    }
    expect(stats_of(f).failed_adds == 0);
}

/* ---- Beside a model -------------------------------------------------------------------- */

enum { SPAN = 700 };

struct model {
    uint64_t low, high;
    bool in[SPAN];
    uint64_t keys;
};

static bool is_inside(const struct model *m, uint64_t n)
{
    return n >= m->low && n <= m->high;
}

/* Returns a number of the range, at its ends, just outside, or anywhere. */
static uint64_t some_number(struct rng *rng, const struct model *m)
{
    const uint64_t ends[] = { m->low, m->high,    m->low - 1,  m->high + 1,
                              0,      UINT64_MAX, m->low + 64, m->low ^ UINT64_C(1) << 63 };
    if (rng_below(rng, 8) == 0)
        return ends[rng_below(rng, sizeof ends / sizeof *ends)];
    return m->low + rng_below(rng, m->high - m->low + 1);
}

static void model_add(struct model *m, perhaps_filter *f, uint64_t n, unsigned way)
{
    struct text text = text_of(n);
    struct perhaps_hashed hashed = hashed_of(n);
    struct perhaps_keys keys = perhaps_keys_hashed(&hashed, 1);
    struct perhaps_prepared prepared;
    bool inside = is_inside(m, n), was = inside && m->in[n - m->low], told = false;
    size_t done = 0;
    int error = 0;
    if (way == 0) {
        error = perhaps_add(f, text.at, text.nbytes);
    } else if (way == 1) {
        error = perhaps_add_unless_present(f, text.at, text.nbytes, &told);
        expect(told == was);
    } else if (way == 2) {
        error = perhaps_add_unless_present_many(f, &keys, &told, &done);
        expect(told == was && done == inside);
    } else {
        perhaps_prepare(f, text.at, text.nbytes, &prepared);
        expect(perhaps_contains_prepared(f, &prepared) == was);
        error = perhaps_add_prepared(f, &prepared);
    }
    expect_error(error, inside ? 0 : PERHAPS_ERR_ARGUMENT);
    if (inside) {
        m->keys += !was;
        m->in[n - m->low] = true;
    }
}

static void model_remove(struct model *m, perhaps_filter *f, uint64_t n)
{
    bool was = is_inside(m, n) && m->in[n - m->low];
    expect_error(take(f, n), was ? 0 : PERHAPS_ERR_NOT_FOUND);
    if (was) {
        m->in[n - m->low] = false;
        m->keys--;
    }
}

/* Asks for all of the range and some more around it, one by one and in a batch. */
static void expect_as_model(const struct model *m, const perhaps_filter *f)
{
    enum { AROUND = 200, ALL = SPAN + 2 * AROUND };
    static struct perhaps_hashed hashed[ALL];
    static bool present[ALL];
    uint64_t first = m->low - AROUND, found = 0;
    for (size_t i = 0; i < ALL; i++)
        hashed[i] = hashed_of(first + i);
    struct perhaps_keys keys = perhaps_keys_hashed(hashed, ALL);
    size_t told = perhaps_contains_many(f, &keys, present);
    for (size_t i = 0; i < ALL; i++) {
        uint64_t n = first + i;
        bool wanted = is_inside(m, n) && m->in[n - m->low];
        expect(has(f, n) == wanted && present[i] == wanted);
        found += wanted;
    }
    expect(told == found && found == m->keys && keys_of(f) == m->keys);
    expect(stats_of(f).load == (double)m->keys / (double)(m->high - m->low + 1));
    expect(stats_of(f).fpr_now == 0 && stats_of(f).plan.fpr_predicted == 0);
}

TEST(test_model)
{
    const struct {
        uint64_t low, high;
    } ranges[] = { { 0, 1 },
                   { 0, SPAN - 1 },
                   { 13000000000, 13000000000 + SPAN - 1 },
                   { 7, 7 },
                   { 63, 128 },
                   { UINT64_MAX - SPAN + 1, UINT64_MAX },
                   { UINT64_MAX, UINT64_MAX },
                   { (UINT64_C(1) << 63) - 300, (UINT64_C(1) << 63) + 300 } };
    struct rng rng = rng_for("model");
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        for (unsigned shared = 0; shared < 2; shared++) {
            struct model m = { .low = ranges[r].low, .high = ranges[r].high };
            scoped_filter *f = make_range(m.low, m.high, shared);
            scene("%" PRIu64 "-%" PRIu64 "%s", m.low, m.high, shared ? ", shared" : "");
            for (unsigned step = 0; step < many(6000); step++) {
                uint64_t n = some_number(&rng, &m);
                if (rng_below(&rng, 3))
                    model_add(&m, f, n, (unsigned)rng_below(&rng, 4));
                else
                    model_remove(&m, f, n);
            }
            expect_as_model(&m, f);
            for (uint64_t n = m.low; n - m.low <= m.high - m.low && n >= m.low; n++)
                model_add(&m, f, n, n % 4);
            expect_as_model(&m, f); /* every integer is in: never full */
            model_add(&m, f, m.low, 0);
            expect_success(perhaps_clear(f));
            expect(keys_of(f) == 0 && !has(f, m.low));
        }
}

/* Batches longer than the ring, with a key in them that is refused at each place. */
TEST(test_batches)
{
    enum { COUNT = 1500 };
    static struct perhaps_key each[COUNT];
    static struct text texts[COUNT];
    static bool answer[COUNT];
    for (size_t bad = 0; bad <= COUNT; bad += bad % 10 == 9 ? 119 : 1) {
        for (size_t i = 0; i < COUNT; i++) {
            texts[i] = text_of(i == bad ? 5 : 1000 + i * 37);
            each[i] = (struct perhaps_key){ texts[i].at, texts[i].nbytes };
        }
        scoped_filter *f = make_range(1000, 100000, bad % 2);
        struct perhaps_keys keys = perhaps_keys_each(each, COUNT);
        size_t done, removed, least = bad < COUNT ? bad : COUNT;
        expect_error(perhaps_add_many(f, &keys, &done), bad < COUNT ? PERHAPS_ERR_ARGUMENT : 0);
        expect(done == least && keys_of(f) == least);
        expect(perhaps_contains_many(f, &keys, answer) == least);
        for (size_t i = 0; i < COUNT; i++)
            expect(answer[i] == (i < least));
        expect_success(perhaps_remove_many(f, &keys, answer, &removed, NULL));
        expect(removed == least && keys_of(f) == 0);
        expect(stats_of(f).unmatched_removals == COUNT - least);
    }
}

/* Keys are removed up to the first that is none, and the call tells which that is. */
TEST(test_remove_until_error)
{
    struct perhaps_key each[] = { { "5", 1 }, { "6", 1 }, { "x", 1 }, { "7", 1 } };
    const struct perhaps_keys keys = perhaps_keys_each(each, 4);
    scoped_filter *f = make_range(0, 1000, false);
    bool removed[4];
    size_t nremoved, done;
    for (uint64_t i = 6; i < 8; i++)
        expect_success(add(f, i));
    expect_error(perhaps_remove_many(f, &keys, removed, &nremoved, &done),
                 PERHAPS_ERR_ARGUMENT);
    expect(done == 2 && nremoved == 1 && !removed[0] && removed[1]);
    expect(!perhaps_contains(f, "6", 1) && perhaps_contains(f, "7", 1) && keys_of(f) == 1);
}

/* Of all integers of a range, those that were added are there, and no other. */
TEST(test_exact)
{
    const uint64_t low = 13000000000, span = many(1000000);
    scoped_filter *f = make_range(low, low + span - 1, false);
    struct perhaps_hashed *hashed = malloc(span * sizeof *hashed);
    bool *present = malloc(span);
    uint64_t nin = 0, n = 0;
    for (uint64_t i = 0; i < span; i++)
        if (mix64(i) % 7 < 5)
            hashed[nin++] = hashed_of(low + i);
    struct perhaps_keys keys = perhaps_keys_hashed(hashed, nin);
    fill(f, &keys);
    expect(keys_of(f) == nin);
    for (uint64_t i = 0; i < span; i++)
        hashed[i] = hashed_of(low + i);
    keys = perhaps_keys_hashed(hashed, span);
    expect(perhaps_contains_many(f, &keys, present) == nin);
    for (uint64_t i = 0; i < span; i++) {
        bool wanted = mix64(i) % 7 < 5;
        expect(present[i] == wanted && has(f, low + i) == wanted);
        n += wanted;
    }
    expect(n == nin);
    free(hashed);
    free(present);
}

/* Hashes whose second half is not zero are no integers. */
TEST(test_strange_hashes)
{
    scoped_filter *f = make_range(0, 99, false);
    struct perhaps_hashed hashed[2] = { hashed_of(1), hashed_of(2) };
    struct perhaps_keys keys = perhaps_keys_hashed(hashed, 2);
    size_t done;
    hashed[1].bytes[15] = 1;
    expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_ARGUMENT);
    expect(done == 1 && perhaps_contains_many(f, &keys, NULL) == 1 && keys_of(f) == 1);
    struct perhaps_key text = { "+42", 3 };
    struct perhaps_keys one = perhaps_keys_each(&text, 1);
    expect_success(perhaps_hash_many(f, &one, hashed));
    struct perhaps_hashed wanted = hashed_of(42);
    expect(!memcmp(hashed, &wanted, sizeof wanted));
}

/* ---- Making one ------------------------------------------------------------------------ */

static int create_with(struct perhaps_options options, enum perhaps_hash hash)
{
    perhaps_filter *f;
    options.hashing.hash = hash;
    int error = perhaps_create(&options, &f);
    perhaps_free(f);
    return error;
}

/* The kind and the hash belong together, and neither is in a composite. */
TEST(test_hash_of_its_own)
{
    struct perhaps_options o = options_of(1, 10);
    struct perhaps_options other = { .capacity = 10, .fpr = 0.1 };
    perhaps_layout *layout;
    scoped_filter *f = make_with(&o);
    expect(!strcmp(stats_of(f).hash, "integer") &&
           perhaps_hash_takes(PERHAPS_HASH_INTEGER) == 0);
    expect_error(perhaps_layout_of(f, &layout), PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_layout_create(&o, &layout), PERHAPS_ERR_UNSUPPORTED);
    for (unsigned hash = 0; hash < PERHAPS_HASH_COUNT; hash++) {
        bool fits = hash == PERHAPS_HASH_XXH3 || hash == PERHAPS_HASH_INTEGER;
        expect_error(create_with(o, (enum perhaps_hash)hash), fits ? 0 : PERHAPS_ERR_ARGUMENT);
    }
    EACH_KIND(kind, any_kind) {
        other = options_for(kind, 10, 0.1, 0);
        expect_error(create_with(other, PERHAPS_HASH_INTEGER), PERHAPS_ERR_ARGUMENT);
        other.base = "bitmap";
        other.bitmap = o.bitmap;
        expect_error(create_with(other, PERHAPS_HASH_XXH3),
                     has_parts(kind) ? PERHAPS_ERR_ARGUMENT : 0);
    }
    other = (struct perhaps_options){ .capacity = 10, .fpr = 0.1 };
    other.hashing.hash = PERHAPS_HASH_INTEGER;
    expect_error(perhaps_layout_create(&other, &layout), PERHAPS_ERR_ARGUMENT);
}

TEST(test_builder)
{
    struct perhaps_options o = options_of(100, 199);
    struct perhaps_key each[] = { { "100", 3 }, { "150", 3 }, { "150", 3 } };
    struct perhaps_keys keys = perhaps_keys_each(each, 3);
    scoped_filter *built = built_filter(&o, &keys);
    expect(keys_of(built) == 2 && has(built, 150) && !has(built, 151));
}

/* ---- Two filters ----------------------------------------------------------------------- */

TEST(test_merge)
{
    enum { N = 1000 };
    scoped_filter *a = make_range(50, 50 + N - 1, false), *b = make_range(50, 50 + N - 1, true),
                  *c = make_range(50, 50 + N, false);
    uint64_t keys = 0;
    for (uint64_t i = 0; i < N; i++) {
        if (i % 2 == 0)
            expect_success(add(a, 50 + i));
        if (i % 3 == 0)
            expect_success(add(b, 50 + i));
        keys += i % 2 == 0 || i % 3 == 0;
    }
    expect_error(perhaps_merge(a, c), PERHAPS_ERR_MISMATCH);
    expect_success(perhaps_merge(a, b));
    expect(keys_of(a) == keys);
    for (uint64_t i = 0; i < N; i++)
        expect(has(a, 50 + i) == (i % 2 == 0 || i % 3 == 0));
    expect_success(take(a, 50));
    expect(keys_of(a) == keys - 1 && !perhaps_equal(a, b));
}

/* ---- Threads --------------------------------------------------------------------------- */

struct worker {
    perhaps_filter *f;
    unsigned number;
    uint64_t added, removed;
};

enum { WORKERS = 4, NUMBERS = 20000 };

/* Adds all numbers, of which each is told to be new once over all threads, then removes its
 * share. */
static void *work(void *context)
{
    struct worker *w = context;
    struct rng rng = { .state = w->number };
    uint64_t begin = rng_below(&rng, NUMBERS);
    for (uint64_t i = 0; i < NUMBERS; i++) {
        struct text text = text_of(1000 + (begin + i) % NUMBERS);
        bool was;
        expect_success(perhaps_add_unless_present(w->f, text.at, text.nbytes, &was));
        w->added += !was;
        expect(perhaps_contains(w->f, text.at, text.nbytes));
        expect_error(perhaps_add(w->f, "5", 1), PERHAPS_ERR_ARGUMENT);
    }
    return NULL;
}

static void *undo(void *context)
{
    struct worker *w = context;
    for (uint64_t i = 0; i < NUMBERS; i += 2)
        w->removed += take(w->f, 1000 + i) == 0;
    return NULL;
}

static void check_threads(perhaps_filter *f)
{
    struct worker workers[WORKERS];
    uint64_t added = 0, removed = 0;
    for (unsigned i = 0; i < WORKERS; i++)
        workers[i] = (struct worker){ .f = f, .number = i };
    run_threads(WORKERS, work, workers, sizeof *workers);
    expect(keys_of(f) == NUMBERS);
    run_threads(WORKERS, undo, workers, sizeof *workers);
    for (unsigned i = 0; i < WORKERS; i++) {
        added += workers[i].added;
        removed += workers[i].removed;
    }
    expect(added == NUMBERS && removed == NUMBERS / 2 && keys_of(f) == NUMBERS / 2);
    for (uint64_t i = 0; i < NUMBERS; i++)
        expect(has(f, 1000 + i) == (i % 2 != 0));
}

TEST(test_threads)
{
    scoped_filter *f = make_range(1000, 1000 + NUMBERS - 1, true);
    check_threads(f);
}

/* ---- Files ----------------------------------------------------------------------------- */

static perhaps_filter *some_filter(uint64_t low, uint64_t high)
{
    perhaps_filter *f = make_range(low, high, false);
    for (uint64_t n = low; n < high; n += 3)
        expect_success(add(f, n));
    return f;
}

TEST(test_files)
{
    struct path path = temp_path("bitmap");
    scoped_filter *f = some_filter(13000000000, 13000009999);
    expect_success(perhaps_save(f, path.text));
    for (unsigned way = 0; way < 2; way++) {
        scoped_filter *again = open_file(path.text, ways_to_open[way]);
        expect(perhaps_equal(again, f) && keys_of(again) == keys_of(f));
        expect(has(again, 13000000003) && !has(again, 13000000004) && !has(again, 4));
        expect(stats_of(again).plan.fpr == 0 && stats_of(again).plan.field[0] == 13000000000);
        expect_error(add(again, 13000000001), way ? 0 : PERHAPS_ERR_READ_ONLY);
    }
    scoped_filter *checked = open_file(path.text, &checking);
    expect(has(checked, 13000000003) && !has(checked, 13000000004) && !has(checked, 4));
    expect(!perhaps_contains(checked, "x", 1));
}

TEST(test_in_place)
{
    struct path path = temp_path("in_place");
    scoped_filter *f = make_range(1000, 1000 + NUMBERS - 1, false);
    struct perhaps_verdict verdict;
    expect_success(perhaps_save(f, path.text));
    scoped_filter *shared = open_file(path.text, &in_place);
    check_threads(shared);
    expect_success(perhaps_sync(shared));
    perhaps_free(shared);
    shared = open_file(path.text, &map_it);
    expect_success(perhaps_verify(shared, &verdict));
    expect(keys_of(shared) == NUMBERS / 2 && has(shared, 1001) && !has(shared, 1000));
}

/* ---- Hostile files --------------------------------------------------------------------- */

/* Opens a copy of a file with two other fields, capacity and size of the body. */
static int open_range(const struct bytes *file, uint64_t low, uint64_t high, uint64_t capacity)
{
    scoped_bytes copy = copy_bytes(file);
    perhaps_filter *f;
    put64(copy.at + AT_FIELDS, low);
    put64(copy.at + AT_FIELDS + 8, high);
    put64(copy.at + AT_CAPACITY, capacity);
    reseal(copy.at, copy.nbytes);
    int error = open_bytes(copy.at, copy.nbytes, &load_it, &f);
    if (!error)
        exercise(f, 1);
    perhaps_free(f);
    return error;
}

TEST(test_hostile_fields)
{
    scoped_filter *f = some_filter(1000, 1511); /* one line of bits */
    scoped_bytes file = large_bytes(f);
    expect_success(open_range(&file, 1000, 1511, 512));
    expect_success(open_range(&file, 0, 511, 512)); /* other keys, but safe */
    expect_success(open_range(&file, UINT64_MAX - 511, UINT64_MAX, 512));
    expect_success(open_range(&file, 5, 5, 1));
    const struct {
        uint64_t low, high, capacity;
    } bad[] = { { 1511, 1000, 512 },
                { 1000, 1511, 511 },
                { 1000, 1511, 0 },
                { 1000, 1512, 513 },
                { 0, UINT64_MAX, 512 },
                { 0, UINT64_MAX, 0 },
                { 0, 0, 1 },
                { 0, UINT64_C(1) << 48, 512 },
                { 1, 0, 0 },
                { 1, UINT64_C(1) << 48, UINT64_C(1) << 48 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(open_range(&file, bad[i].low, bad[i].high, bad[i].capacity),
                     PERHAPS_ERR_DAMAGED);
}

/* Bits behind the range belong to no key, and a wrong count of keys does no harm. */
TEST(test_hostile_body)
{
    scoped_filter *f = make_range(1000, 1099, false);
    scoped_bytes file = large_bytes(f);
    perhaps_filter *opened;
    memset(file.at + BODY_OFFSET, 0xff, 64);
    reseal(file.at, file.nbytes);
    expect_success(open_bytes(file.at, file.nbytes, &load_it, &opened));
    expect(!has(opened, 999) && has(opened, 1000) && has(opened, 1099) && !has(opened, 1100));
    expect_success(take(opened, 1000));
    expect(keys_of(opened) == 0);
    expect_success(perhaps_merge(opened, f));
    expect(keys_of(opened) == 99 && stats_of(opened).load == 0.99);
    perhaps_free(opened);
}

/* A rate of 0, or the hash of integers, in a file of another kind. */
TEST(test_hostile_others)
{
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = make_filter(kind, 100, 0.01, 1);
        scoped_bytes file = large_bytes(f), other = copy_bytes(&file);
        perhaps_filter *opened;
        memset(file.at + AT_FPR, 0, 8);
        reseal(file.at, file.nbytes);
        expect_error(open_bytes(file.at, file.nbytes, &load_it, &opened), PERHAPS_ERR_DAMAGED);
        other.at[AT_HASH] = PERHAPS_HASH_INTEGER;
        reseal(other.at, other.nbytes);
        expect_error(open_bytes(other.at, other.nbytes, &load_it, &opened),
                     PERHAPS_ERR_DAMAGED);
    }
    scoped_filter *f = make_range(1, 9, false);
    scoped_bytes file = large_bytes(f);
    perhaps_filter *opened;
    file.at[AT_HASH] = PERHAPS_HASH_NONE;
    reseal(file.at, file.nbytes);
    expect_error(open_bytes(file.at, file.nbytes, &load_it, &opened), PERHAPS_ERR_DAMAGED);
}
