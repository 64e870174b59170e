/* count_test.c - perhaps_count_many() is perhaps_count() of one key after the other; and the
 * names of hashes. */
#include "support.h"

#include <string.h>

enum { KEYS = 3000, CAPACITY = 4 * KEYS };

/* Key i comes i % 4 times. */
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

static void expect_counts(const perhaps_filter *f, const struct perhaps_keys *keys)
{
    uint64_t got[KEYS], wanted;
    for (size_t count = 0; count <= keys->count; count = 2 * count + 1) {
        struct perhaps_keys some = some_keys(keys, 0, count);
        memset(got, 0xff, sizeof got);
        expect_success(perhaps_count_many(f, &some, got));
        for (size_t i = 0; i < count; i++) {
            expect_success(perhaps_count(f, key_at(keys, i), keys->key_nbytes, &wanted));
            expect(got[i] == wanted && got[i] >= i % 4);
        }
        expect(count == KEYS || got[count] == UINT64_MAX);
    }
}

TEST_EACH(test_as_one_by_one, counts)
{
    struct perhaps_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct perhaps_hashed hashed[KEYS];
    uint64_t got[KEYS], again[KEYS];
    perhaps_filter *f = filter_of_copies(kind, &keys), *mapped;
    struct path path = temp_path("counts");
    const struct perhaps_open_options check = { .check = true };
    scene("%s", kind->name);
    expect_counts(f, &keys);
    expect_success(perhaps_save(f, path.text));
    expect_success(perhaps_open(path.text, &check, &mapped));
    expect_counts(mapped, &keys);
    expect_success(perhaps_hash_many(f, &keys, hashed));
    struct perhaps_keys ready = perhaps_keys_hashed(hashed, KEYS);
    expect_success(perhaps_count_many(f, &keys, got));
    expect_success(perhaps_count_many(f, &ready, again));
    expect(!memcmp(got, again, sizeof got));
    perhaps_free(mapped);
    perhaps_free(f);
    free_keys(&keys);
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
    struct perhaps_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    perhaps_filter *f = make_filter(perhaps_kind_at(0), 100, 0.01, 1);
    expect_count_error(f, &keys, PERHAPS_ERR_UNSUPPORTED);
    perhaps_free(f);
    struct perhaps_options options = { .capacity = 100,
                                       .fpr = 0.01,
                                       .needs = PERHAPS_CAN_COUNT,
                                       .hashing = { .hash = PERHAPS_HASH_NONE } };
    f = make_with(&options);
    expect_count_error(f, &keys, PERHAPS_ERR_ARGUMENT);
    perhaps_free(f);
    struct path path = temp_path("secret");
    const struct perhaps_open_options without = { .without_secret = true };
    options.hashing.hash = PERHAPS_HASH_SIP;
    f = make_with(&options);
    expect_success(perhaps_save(f, path.text));
    perhaps_free(f);
    expect_success(perhaps_open(path.text, &without, &f));
    expect_count_error(f, &keys, PERHAPS_ERR_SECRET);
    perhaps_free(f);
    free_keys(&keys);
}

/* Where a key is read from a damaged page no count is given. */
TEST_EACH(test_damage, counts)
{
    struct perhaps_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    struct path path = temp_path("damaged");
    const struct perhaps_open_options check = { .check = true };
    perhaps_filter *f = filter_of_copies(kind, &keys);
    struct bytes file = saved_bytes(f);
    perhaps_free(f);
    scene("%s", kind->name);
    for (size_t at = 3 * 4096 + 99; at < file.nbytes - 4096; at += 4096)
        file.at[at] ^= 1;
    write_file(path.text, file.at, file.nbytes);
    expect_success(perhaps_open(path.text, &check, &f));
    expect_count_error(f, &keys, PERHAPS_ERR_DAMAGED);
    perhaps_free(f);
    free(file.at);
    free_keys(&keys);
}

TEST(test_hash_names)
{
    const char *const names[] = { "xxh3", "sip", "none", "custom" };
    for (unsigned hash = PERHAPS_HASH_XXH3; hash <= PERHAPS_HASH_CUSTOM; hash++)
        expect(!strcmp(perhaps_hash_name((enum perhaps_hash)hash), names[hash]));
    expect(!perhaps_hash_name((enum perhaps_hash)(PERHAPS_HASH_CUSTOM + 1)));
    expect(!perhaps_hash_name((enum perhaps_hash) - 1));
}
