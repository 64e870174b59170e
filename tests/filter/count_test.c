/* count_test.c - proves that perhaps_count_many() gives the answers of perhaps_count(), one key
 * after the other; that it sets all counts to 0 on an error; and that each hash has its
 * name. */
#include "support.h"
#include <perhaps_fast.h>

#include <string.h>

enum { KEYS = 3000, CAPACITY = 4 * KEYS };

/* Makes a filter in which key i was added i % 4 times. */
static perhaps_filter *filter_of_copies(const struct perhaps_kind *kind,
                                        const struct perhaps_keys *keys)
{
    struct perhaps_options options = options_for(kind, CAPACITY, 0.001, test_seed());
    options.needs = PERHAPS_CAN_COUNT;
    perhaps_filter *f = make_with(&options);
    for (size_t i = 0; i < keys->count; i++)
        for (size_t copy = 0; copy < i % 4; copy++)
            expect_success(perhaps_add(f, key_at(keys, i), keys->key_nbytes));
    return f;
}

static bool counts(const struct perhaps_kind *kind)
{
    return is_able(kind, PERHAPS_CAN_COUNT);
}

/* Asks with batches of 0, 1, 3, 7, ... keys, and checks that nothing behind them is written. */
static void expect_counts(const perhaps_filter *f, const struct perhaps_keys *keys)
{
    uint64_t got[KEYS];
    for (size_t count = 0; count <= keys->count; count = 2 * count + 1) {
        struct perhaps_keys some = some_keys(keys, 0, count);
        memset(got, 0xff, sizeof got);
        expect_success(perhaps_count_many(f, &some, got));
        for (size_t i = 0; i < count; i++) {
            expect(got[i] == count_of(f, key_at(keys, i), keys->key_nbytes));
            expect(got[i] >= i % 4);
        }
        expect(count == KEYS || got[count] == UINT64_MAX);
    }
}

/* Counts of a filter in memory, of a mapped one with 'check', and of keys that were hashed. */
TEST_EACH(test_as_one_by_one, counts)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct perhaps_hashed hashed[KEYS];
    uint64_t got[KEYS], again[KEYS];
    scoped_filter *f = filter_of_copies(kind, &keys);
    struct path path = temp_path("counts");
    expect_counts(f, &keys);
    expect_success(perhaps_save(f, path.text));
    scoped_filter *mapped = open_file(path.text, &checking);
    expect_counts(mapped, &keys);
    expect_success(perhaps_hash_many(f, &keys, hashed));
    struct perhaps_keys ready = perhaps_keys_hashed(hashed, KEYS);
    expect_success(perhaps_count_many(f, &keys, got));
    expect_success(perhaps_count_many(f, &ready, again));
    expect(!memcmp(got, again, sizeof got));
}

static void expect_count_error(const perhaps_filter *f, const struct perhaps_keys *keys,
                               int wanted)
{
    uint64_t got[KEYS];
    memset(got, 0xff, sizeof got);
    expect_error(perhaps_count_many(f, keys, got), wanted);
    for (size_t i = 0; i < keys->count; i++)
        expect(!got[i]);
}

TEST(test_errors)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct path path = temp_path("secret");
    struct perhaps_options none = { .capacity = 100,
                                    .fpr = 0.01,
                                    .needs = PERHAPS_CAN_COUNT,
                                    .hashing = { .hash = PERHAPS_HASH_NONE } };
    struct perhaps_options sip = none;
    sip.hashing.hash = PERHAPS_HASH_SIP;
    scoped_filter *unable = make_filter(perhaps_kind_at(0), 100, 0.01, 1);
    scoped_filter *of_hashes = make_with(&none), *secret = make_with(&sip);
    expect_count_error(unable, &keys, PERHAPS_ERR_UNSUPPORTED);
    expect_count_error(of_hashes, &keys, PERHAPS_ERR_ARGUMENT);
    expect_success(perhaps_save(secret, path.text));
    scoped_filter *blind = open_file(path.text, &without_secret);
    expect_count_error(blind, &keys, PERHAPS_ERR_SECRET);
}

/* No count is given for a key that lies in a damaged page.  One byte is changed in each page
 * behind the first few and before the checksums. */
TEST_EACH(test_damage, counts)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct path path = temp_path("damaged");
    scoped_filter *f = filter_of_copies(kind, &keys);
    scoped_bytes file = large_bytes(f);
    for (size_t at = 3 * 4096 + 99; at < file.nbytes - 4096; at += 4096)
        file.at[at] ^= 1;
    write_file(path.text, file.at, file.nbytes);
    scoped_filter *damaged = open_file(path.text, &checking);
    expect_count_error(damaged, &keys, PERHAPS_ERR_DAMAGED);
}

TEST(test_hash_names)
{
    const char *const names[] = { "xxh3",    "sip",     "none",    "custom",
                                  "xxh3-64", "none-64", "integer", "xxh3-grouped" };
    for (unsigned hash = PERHAPS_HASH_XXH3; hash < PERHAPS_HASH_COUNT; hash++)
        expect(!strcmp(perhaps_hash_name((enum perhaps_hash)hash), names[hash]));
    expect(perhaps_hash_takes(PERHAPS_HASH_NONE) == 16);
    expect(perhaps_hash_takes(PERHAPS_HASH_NONE_64) == 8);
    expect(perhaps_hash_takes(PERHAPS_HASH_XXH3_64) == 0);
    expect(!perhaps_hash_name(PERHAPS_HASH_COUNT));
    expect(!perhaps_hash_name((enum perhaps_hash) - 1));
}
