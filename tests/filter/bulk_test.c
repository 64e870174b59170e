/* bulk_test.c - proves that keys that wait end up as if they had been added as they came: the
 * same filter, the same counts, and the same key refused. */
#include <perhaps_build.h>
#include <perhaps_sets.h>

#include "support.h"

#include <stdio.h>

enum { EACH = 997, CAPACITY = 4000000 };

static void end_bulk(perhaps_bulk **bulk)
{
    perhaps_bulk_end(*bulk);
    *bulk = NULL;
}

static perhaps_bulk *bulk_of(perhaps_filter *f)
{
    const struct perhaps_build_options how = { .threads = 3, .memory_nbytes = 1 << 18 };
    perhaps_bulk *bulk;
    expect_success(perhaps_bulk_begin(f, &how, &bulk));
    return bulk;
}

/* Gives keys to both filters until one is refused, which must be the same. */
static int add_to_both(perhaps_filter *f, perhaps_filter *other,
                       const struct perhaps_keys *keys)
{
    perhaps_bulk *bulk = bulk_of(f);
    int error = 0;
    for (size_t at = 0; at < keys->count && !error; at += EACH) {
        size_t left = keys->count - at, done, wanted;
        struct perhaps_keys some = some_keys(keys, at, left < EACH ? left : EACH);
        error = perhaps_add_many(other, &some, &wanted);
        expect(perhaps_bulk_add(bulk, &some, &done) == error);
        expect(done == wanted);
    }
    end_bulk(&bulk);
    return error;
}

static void expect_same(const perhaps_filter *f, const perhaps_filter *other)
{
    struct perhaps_stats a = stats_of(f), b = stats_of(other);
    expect(perhaps_equal(f, other));
    expect(a.keys == b.keys);
    expect(a.failed_adds == b.failed_adds);
}

/* Keys come, and some of them come again. */
TEST_EACH(test_same, any_kind)
{
    enum { KEYS = 60000 };
    struct perhaps_options options = options_for(kind, CAPACITY, 0.01, test_seed());
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, KEYS);
    scoped_filter *f = make_with(&options), *other = make_with(&options);
    const struct perhaps_keys again = some_keys(&keys, KEYS / 3, KEYS / 3);
    expect_success(add_to_both(f, other, &keys));
    expect_success(add_to_both(f, other, &again));
    expect_same(f, other);
    expect_all_found(f, &keys);
}

/* More keys come than there is room for. */
TEST(test_limit)
{
    enum { MOST = 1200000, KEYS = 1600000 };
    struct perhaps_options options = { .kind = "blocked", .capacity = MOST, .fpr = 0.01 };
    options.hashing.seed = test_seed();
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 0, 0, KEYS);
    scoped_filter *f = make_with(&options), *other = make_with(&options);
    expect_error(add_to_both(f, other, &keys), PERHAPS_ERR_FULL);
    expect_same(f, other);
    expect_error(add_to_both(f, other, &keys), PERHAPS_ERR_FULL); /* it is full already */
    expect_same(f, other);
}

static void write_numbers(char (*text)[12], struct perhaps_key *key, size_t n, uint64_t step)
{
    for (size_t i = 0; i < n; i++) {
        int nbytes = snprintf(text[i], sizeof text[i], "%ju", (uintmax_t)(i * step));
        key[i] = (struct perhaps_key){ text[i], (size_t)nbytes };
    }
}

/* A bitmap refuses what is no integer of its range. */
TEST(test_refused)
{
    enum { KEYS = 5000, STEP = 12345, HIGH = KEYS * STEP };
    static char text[KEYS][12];
    static struct perhaps_key key[KEYS];
    struct perhaps_options options = { .bitmap = { .low = 0, .high = HIGH } };
    const struct perhaps_key wrong[] = { { "12x", 3 }, { "99999999999", 11 }, { "", 0 } };
    write_numbers(text, key, KEYS, STEP);
    const struct perhaps_keys keys = perhaps_keys_each(key, KEYS);
    scoped_filter *f = make_with(&options), *other = make_with(&options);
    expect_success(add_to_both(f, other, &keys));
    expect_same(f, other);
    expect_all_found(f, &keys);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        key[i * 1111 + 700] = wrong[i];
        expect_error(add_to_both(f, other, &keys), PERHAPS_ERR_ARGUMENT);
        expect_same(f, other);
        key[i * 1111 + 700] = key[0];
    }
}

/* Without memory for keys that wait they are added as they come. */
TEST(test_failing_memory)
{
    struct ledger ledger = { 0 };
    const struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_options options = {
        .kind = "blocked", .capacity = CAPACITY, .fpr = 0.01, .allocator = &allocator
    };
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 18 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, EACH);
    perhaps_filter *f = make_with(&options);
    perhaps_bulk *bulk = (perhaps_bulk *)&options;
    ledger.fail_at = ledger.calls + 1;
    expect_error(perhaps_bulk_begin(f, &how, &bulk), PERHAPS_ERR_MEMORY);
    expect(!bulk);
    ledger.fail_at = ledger.calls + 2;
    expect_success(perhaps_bulk_begin(f, &how, &bulk));
    ledger.fail_at = 0;
    expect_success(perhaps_bulk_add(bulk, &keys, NULL));
    expect_all_found(f, &keys);
    end_bulk(&bulk);
    perhaps_free(f);
    expect(ledger.live == 0 && ledger.live_nbytes == 0);
}

/* A shared filter gets keys as they come, and so may be used meanwhile. */
TEST(test_shared)
{
    struct perhaps_options options = {
        .kind = "blocked", .capacity = CAPACITY, .fpr = 0.01, .shared = true
    };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, EACH);
    scoped_filter *f = make_with(&options);
    perhaps_bulk *bulk = bulk_of(f);
    expect_success(perhaps_bulk_add(bulk, &keys, NULL));
    expect_all_found(f, &keys);
    end_bulk(&bulk);
    end_bulk(&bulk); /* NULL is allowed */
}
