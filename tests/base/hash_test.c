/* hash_test.c - proves that each hash gives the published values, since filters in files and on
 * servers depend on them; that every kind works with every hash, and with keys of any length;
 * and that a secret leaves no trace in released memory. */
#include "support.h"
#include <perhaps_sets.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const uint8_t secret_of_vectors[16] = { 0, 1, 2,  3,  4,  5,  6,  7,
                                               8, 9, 10, 11, 12, 13, 14, 15 };

/* Returns the hash of one key: 'place' is its low half, 'mark' its high half. */
static struct keyhash hash_of(const struct hasher *hasher, const void *key, size_t nbytes)
{
    struct keyhash h;
    struct perhaps_keys keys = perhaps_keys_packed(key, nbytes, 1);
    hasher_run(hasher, &keys, 0, 1, &h);
    return h;
}

/* ---- What the hashes are ---------------------------------------------------------------- */

/* XXH3-128 of no byte and of the byte 0x61, as the program xxhsum prints them. */
TEST(test_xxh3_vectors)
{
    struct hasher hasher = { .id = PERHAPS_HASH_XXH3, .ready = true };
    struct keyhash empty = hash_of(&hasher, "", 0), a = hash_of(&hasher, "a", 1);
    expect(empty.mark == 0x99aa06d3014798d8 && empty.place == 0x6001c324468d497f);
    expect(a.mark == 0xa96faf705af16834 && a.place == 0xe6c632b61e964e1f);
}

/* Keys of 8 bytes are hashed by vector instructions.  For any number of keys and any seed these
 * give what libxxhash gives, and write nothing behind the last key. */
TEST(test_integers)
{
    enum { MOST = 40, TRIALS = 2000 };
    struct rng rng = rng_for(__func__);
    for (unsigned cpu = 0; cpu < CPU_COUNT; cpu++)
        for (unsigned trial = 0; cpu_has((enum cpu)cpu) && trial < TRIALS; trial++) {
            uint64_t ints[MOST], seed = rng_next(&rng) >> rng_below(&rng, 64);
            struct keyhash out[MOST + 1] = { 0 };
            struct hasher hasher = { .id = PERHAPS_HASH_XXH3,
                                     .seed = seed,
                                     .cpu = (enum cpu)cpu };
            struct perhaps_keys keys = perhaps_keys_packed(ints, sizeof *ints, MOST);
            size_t n = (size_t)rng_below(&rng, MOST + 1);
            for (size_t k = 0; k < MOST; k++)
                ints[k] = rng_next(&rng) >> rng_below(&rng, 64);
            scene("%s, %zu keys, seed %llu", cpu_name((enum cpu)cpu), n,
                  (unsigned long long)seed);
            hasher_run(&hasher, &keys, 0, n, out);
            for (size_t k = 0; k < n; k++) {
                struct keyhash right = xxh3_short(&ints[k], sizeof ints[k], seed);
                expect(out[k].place == right.place && out[k].mark == right.mark);
            }
            expect(out[n].place == 0 && out[n].mark == 0);
        }
}

/* The empty message and the bytes 0 1 2, from vectors_128 of the authors of SipHash. */
TEST(test_sip_vectors)
{
    struct hasher hasher = { .id = PERHAPS_HASH_SIP, .ready = true };
    memcpy(hasher.secret, secret_of_vectors, sizeof hasher.secret);
    struct keyhash empty = hash_of(&hasher, "", 0);
    struct keyhash three = hash_of(&hasher, "\0\1\2", 3);
    expect(empty.place == 0xe6a825ba047f81a3 && empty.mark == 0x930255c71472f66d);
    expect(three.place == 0x4ea967520cb6709c && three.mark == 0x51ed8529b0b6335f);
}

/* The hash 'none' is the key itself, in little-endian order. */
TEST(test_none_is_the_key)
{
    struct hasher hasher = { .id = PERHAPS_HASH_NONE, .ready = true };
    struct keyhash h = hash_of(&hasher, "\1\2\3\4\5\6\7\10\21\22\23\24\25\26\27\30", 16);
    expect(h.place == 0x0807060504030201 && h.mark == 0x1817161514131211);
}

/* ---- A caller's own --------------------------------------------------------------------- */

struct own {
    size_t calls;
    size_t key_nbytes; /* of the last call */
    uint64_t salt;     /* another salt makes another function */
};

static void own_hash(void *context, const void *key, size_t nbytes, uint8_t hash[16])
{
    struct own *own = context;
    uint64_t words[2] = { own->salt, nbytes };
    for (size_t i = 0; i < nbytes; i++)
        words[0] = mix64(words[0] + ((const uint8_t *)key)[i]);
    words[1] = mix64(words[0] + words[1]);
    own->calls++;
    own->key_nbytes = nbytes;
    memcpy(hash, words, sizeof words);
}

/* The caller's function is called once for each key, and two filters whose functions differ
 * cannot be merged. */
TEST_EACH(test_custom, in_registry)
{
    struct own own = { .salt = test_seed() }, other = { .salt = ~test_seed() };
    struct perhaps_options options = {
        .capacity = 100,
        .fpr = low_rate(kind),
        .kind = kind->name,
        .hashing = { .hash = PERHAPS_HASH_CUSTOM, .function = own_hash, .context = &own },
    };
    perhaps_filter *f = make_with(&options);
    expect(!strcmp(stats_of(f).hash, "custom"));
    size_t calls = own.calls;
    expect_success(perhaps_add(f, "a key", 5));
    expect(own.calls == calls + 1 && own.key_nbytes == 5);
    expect(perhaps_contains(f, "a key", 5) && !perhaps_contains(f, "no key", 6));

    options.hashing.context = &other; /* so the function gives other hashes */
    perhaps_filter *g = make_with(&options);
    expect_error(perhaps_merge(g, f),
                 merges(kind) ? PERHAPS_ERR_MISMATCH : PERHAPS_ERR_UNSUPPORTED);
    perhaps_free(f);
    perhaps_free(g);
    options.hashing.function = NULL;
    expect_error(perhaps_create(&options, &f), PERHAPS_ERR_SECRET);
    expect(!f);
}

/* ---- Every hash, every kind -------------------------------------------------------------- */

static perhaps_filter *filter_with(const struct perhaps_kind *kind, enum perhaps_hash hash)
{
    static struct own own;
    struct perhaps_options options = options_for(kind, 600, low_rate(kind), 0);
    options.hashing =
        (struct perhaps_hashing){ .hash = hash, .function = own_hash, .context = &own };
    scene("%s, hash %d", kind->name, (int)hash);
    return make_with(&options);
}

TEST(test_every_hash)
{
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, 600);
    scoped_keys absent = make_keys(HASH_KEYS, test_seed(), 600, 600);
    EACH_KIND(kind, in_registry)
        for (unsigned hash = PERHAPS_HASH_XXH3; hash <= PERHAPS_HASH_CUSTOM; hash++) {
            scoped_filter *f = filter_with(kind, hash);
            fill(f, &keys);
            expect_all_found(f, &keys);
            expect(perhaps_contains_many(f, &absent, NULL) <= 2); /* at low_rate() */
        }
}

/* Each filter has a seed or secret of its own, unless one is given. */
TEST(test_seeds)
{
    for (unsigned hash = PERHAPS_HASH_XXH3; hash <= PERHAPS_HASH_SIP; hash++) {
        scoped_filter *a = filter_with(perhaps_kind_at(0), hash);
        scoped_filter *b = filter_with(perhaps_kind_at(0), hash);
        expect(!perhaps_equal(a, b));
    }
}

/* A given secret is used; without one a random secret is made, and makes the same filter when
 * it is given. */
TEST(test_secret)
{
    struct perhaps_options options = { .capacity = 10,
                                       .fpr = 0.01,
                                       .hashing = { .hash = PERHAPS_HASH_SIP,
                                                    .secret = secret_of_vectors } };
    uint8_t secret[16];
    scoped_filter *given = make_with(&options);
    expect_success(perhaps_secret(given, secret));
    expect(!memcmp(secret, secret_of_vectors, sizeof secret));

    options.hashing.secret = NULL;
    scoped_filter *generated = make_with(&options);
    expect_success(perhaps_secret(generated, secret));
    expect(memcmp(secret, secret_of_vectors, sizeof secret) != 0);
    options.hashing.secret = secret;
    scoped_filter *twin = make_with(&options);
    expect(perhaps_equal(generated, twin) && !perhaps_equal(generated, given));
}

/* An allocator that notices when released memory still holds the secret. */
static void *watched_allocate(void *context, size_t nbytes)
{
    (void)context;
    void *memory = aligned_alloc(64, (nbytes + 63) / 64 * 64);
    return memory ? memset(memory, 0, nbytes) : NULL;
}

static void watched_release(void *context, void *memory, size_t nbytes)
{
    if (memmem(memory, nbytes, secret_of_vectors, sizeof secret_of_vectors))
        *(bool *)context = true;
    free(memory);
}

/* Freed memory must not hold the secret: somebody may read it later in a core dump. */
TEST(test_secret_is_wiped)
{
    bool leaked = false;
    struct perhaps_allocator watched = { watched_allocate, watched_release, &leaked, false };
    struct perhaps_options options = {
        .capacity = 10,
        .fpr = 0.01,
        .hashing = { .hash = PERHAPS_HASH_SIP, .secret = secret_of_vectors },
        .allocator = &watched,
    };
    perhaps_filter *f = make_with(&options);
    perhaps_filter *copy = clone_of(f);
    expect_success(perhaps_add(f, "key", 3));
    expect_success(perhaps_merge(f, copy));
    perhaps_free(f);
    perhaps_free(copy);
    expect(!leaked);
}

TEST(test_unknown_hash)
{
    struct perhaps_options options = { .capacity = 10, .fpr = 0.1 };
    perhaps_filter *f;
    options.hashing.hash = PERHAPS_HASH_COUNT;
    expect_error(perhaps_create(&options, &f), PERHAPS_ERR_ARGUMENT);
    expect(!f);
}

/* ---- Lengths ----------------------------------------------------------------------------- */

/* The hash 'none' takes keys of 16 bytes only; others are an error and change nothing. */
TEST(test_wrong_lengths)
{
    uint8_t bytes[64] = { 1, 2, 3 };
    EACH_KIND(kind, in_registry) {
        scoped_filter *f = filter_with(kind, PERHAPS_HASH_NONE), *empty = clone_of(f);
        uint64_t count;
        for (size_t nbytes = 0; nbytes <= sizeof bytes; nbytes += nbytes == 15 ? 2 : 1) {
            bool was_present = true;
            expect_error(perhaps_add(f, bytes, nbytes), PERHAPS_ERR_ARGUMENT);
            expect_error(perhaps_add_unless_present(f, bytes, nbytes, &was_present),
                         PERHAPS_ERR_ARGUMENT);
            expect(!was_present && !perhaps_contains(f, bytes, nbytes));
            int refused = removes(kind) ? PERHAPS_ERR_ARGUMENT : PERHAPS_ERR_UNSUPPORTED;
            expect_error(perhaps_remove(f, bytes, nbytes), refused);
            refused = kind->abilities & PERHAPS_CAN_COUNT ? PERHAPS_ERR_ARGUMENT
                                                          : PERHAPS_ERR_UNSUPPORTED;
            expect_error(perhaps_count(f, bytes, nbytes, &count), refused);
        }
        expect(perhaps_equal(f, empty));
        expect_same_counters(f, empty);
    }
}

/* A batch with one key of a wrong length adds the keys before it and none behind it. */
TEST(test_wrong_length_in_batch)
{
    enum { COUNT = 300, WRONG = 170 };
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, COUNT);
    struct perhaps_key each[COUNT];
    for (size_t k = 0; k < COUNT; k++)
        each[k] = (struct perhaps_key){ key_at(&keys, k), k == WRONG ? 15 : 16 };
    struct perhaps_keys mixed = perhaps_keys_each(each, COUNT);
    EACH_KIND(kind, in_registry) {
        scoped_filter *f = filter_with(kind, PERHAPS_HASH_NONE);
        bool present[COUNT];
        size_t done;
        expect_error(perhaps_add_many(f, &mixed, &done), PERHAPS_ERR_ARGUMENT);
        expect(done == WRONG && perhaps_contains_many(f, &mixed, present) == WRONG);
        for (size_t k = 0; k < COUNT; k++)
            expect(present[k] == (k < WRONG));
        struct perhaps_keys odd = perhaps_keys_packed(keys.packed, 20, 7);
        expect_error(perhaps_add_many(f, &odd, &done), PERHAPS_ERR_ARGUMENT);
        expect(done == 0 && perhaps_contains_many(f, &odd, present) == 0 && !present[6]);
    }
}

/* The empty key is a key, whatever its pointer is, also NULL. */
TEST(test_empty_key)
{
    const struct perhaps_key nothing[] = { { NULL, 0 }, { "x", 0 } };
    const struct perhaps_keys each = perhaps_keys_each(nothing, 2);
    const struct perhaps_keys packed = { .count = 40 };
    EACH_KIND(kind, in_registry)
        for (unsigned hash = PERHAPS_HASH_XXH3; hash <= PERHAPS_HASH_CUSTOM; hash++) {
            if (hash == PERHAPS_HASH_NONE)
                continue;
            scoped_filter *f = filter_with(kind, hash);
            expect(!perhaps_contains(f, NULL, 0) && !perhaps_contains(f, "x", 0));
            expect_success(perhaps_add(f, NULL, 0));
            expect(perhaps_contains(f, NULL, 0) && perhaps_contains(f, "x", 0));
            expect(perhaps_contains_many(f, &each, NULL) == 2);
            expect(perhaps_contains_many(f, &packed, NULL) == 40);
            expect(!perhaps_contains(f, "x", 1) && !perhaps_contains(f, "", 1));
        }
}

/* A key of 1 MiB differs from one that is a byte shorter, longer, or has one other byte. */
TEST(test_long_key)
{
    enum { LONG = 1 << 20 };
    char *key = calloc(1, LONG + 1);
    expect(key);
    EACH_KIND(kind, in_registry)
        for (unsigned hash = PERHAPS_HASH_XXH3; hash <= PERHAPS_HASH_CUSTOM; hash++) {
            if (hash == PERHAPS_HASH_NONE)
                continue;
            scoped_filter *f = filter_with(kind, hash);
            expect_success(perhaps_add(f, key, LONG));
            expect(perhaps_contains(f, key, LONG));
            expect(!perhaps_contains(f, key, LONG - 1) && !perhaps_contains(f, key, LONG + 1));
            key[LONG / 2] = 1;
            expect(!perhaps_contains(f, key, LONG));
            key[LONG / 2] = 0;
        }
    free(key);
}

/* Keys that were hashed ahead act as the keys themselves, for every filter of the same hash. */
TEST(test_hashed_ahead)
{
    enum { COUNT = 1000 };
    static struct perhaps_hashed hashed[COUNT];
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, COUNT);
    struct perhaps_keys ahead = perhaps_keys_hashed(hashed, COUNT);
    EACH_KIND(kind, in_registry) {
        scoped_filter *f = make_filter(kind, COUNT, 0.001, 7), *same;
        expect_success(perhaps_clone(f, &same));
        expect_success(perhaps_hash_many(f, &keys, hashed));
        expect_success(perhaps_add_many(f, &keys, NULL));
        expect_success(perhaps_add_many(same, &ahead, NULL));
        expect(perhaps_equal(f, same) && stats_of(f).keys == stats_of(same).keys);
        expect(perhaps_contains_many(f, &ahead, NULL) == COUNT);
        expect_all_found(same, &keys);
        if (removes(kind))
            expect_success(perhaps_remove_many(same, &ahead, NULL, NULL, NULL));
    }
}

/* Keys of a wrong length and a missing secret are errors; no hash is written. */
TEST(test_hashing_refused)
{
    struct path path = temp_path("secret");
    struct perhaps_key wrong[] = { { "sixteen bytes ..", 16 }, { "fifteen bytes .", 15 } };
    struct perhaps_keys keys = perhaps_keys_each(wrong, 2);
    struct perhaps_hashed hashed[2] = { 0 }, nothing[2] = { 0 };
    scoped_filter *f = filter_with(perhaps_kind_at(0), PERHAPS_HASH_NONE);
    scoped_filter *sip = filter_with(perhaps_kind_at(0), PERHAPS_HASH_SIP);
    expect_error(perhaps_hash_many(f, &keys, hashed), PERHAPS_ERR_ARGUMENT);
    expect_success(perhaps_save(sip, path.text));
    scoped_filter *blind = open_file(path.text, &without_secret);
    expect_error(perhaps_hash_many(blind, &keys, hashed), PERHAPS_ERR_SECRET);
    expect(!memcmp(hashed, nothing, sizeof hashed));
}

/* ---- The quality of 64 bits ------------------------------------------------------------- */

/* Returns key number i of a family of structured keys, and its length. */
static size_t structured_key(unsigned family, uint64_t i, char key[32])
{
    uint64_t number = family == 0   ? i
                      : family == 1 ? i << 20
                      : family == 2 ? i << 44
                      : family == 3 ? i * UINT64_C(0x0101010101010101)
                                    : i * 4096 + UINT64_C(0x7f0000000000);
    if (family < 5) {
        memcpy(key, &number, sizeof number);
        return sizeof number;
    }
    return (size_t)(family == 5   ? snprintf(key, 32, "%llu", (unsigned long long)i)
                    : family == 6 ? snprintf(key, 32, "user%08llu", (unsigned long long)i)
                                  : snprintf(key, 32, "http://a.example/page/%llu",
                                             (unsigned long long)i));
}

/* Keys that differ in few bits give no more false positives than random ones: eight
 * standard deviations above the rate that follows from the bits do not happen by chance. */
TEST_EACH(test_structured_keys, any_kind)
{
    enum { FAMILIES = 8, ADDED = 20000, STRANGERS = 200000 };
    for (unsigned family = 0; family < FAMILIES; family++) {
        char key[32];
        struct perhaps_options options = { .kind = kind->name,
                                           .capacity = ADDED,
                                           .fpr = 0.01,
                                           .window.keys = ADDED,
                                           .hashing = { .hash = PERHAPS_HASH_XXH3_64,
                                                        .seed = test_seed() + family } };
        scoped_filter *f = make_with(&options);
        scene("%s, family %u", kind->name, family);
        for (uint64_t i = 0; i < ADDED; i++) {
            size_t nbytes = structured_key(family, i, key);
            expect_success(perhaps_add(f, key, nbytes));
        }
        double found = 0, expected = (double)STRANGERS * stats_of(f).fpr_now;
        for (uint64_t i = ADDED; i < ADDED + STRANGERS; i++) {
            size_t nbytes = structured_key(family, i, key);
            found += perhaps_contains(f, key, nbytes);
        }
        expect(found <= expected + 8 * sqrt(expected) + 8);
    }
}

/* Each bit of a key changes each bit of place and mark that the kinds use, with a chance of a
 * half: of N keys N/2 times, give or take eight standard deviations. */
TEST(test_avalanche)
{
    enum { KEYS = 16384, DEVIATION = 64, NBYTES = 20, USED_FROM = 25 };
    struct hasher hasher;
    struct perhaps_hashing hashing = { .hash = PERHAPS_HASH_XXH3_64, .seed = test_seed() };
    struct rng rng = rng_for("avalanche");
    expect_success(hasher_create(&hasher, &hashing));
    for (unsigned nbytes = 4; nbytes <= NBYTES; nbytes += 4)
        for (unsigned bit = 0; bit < 8 * nbytes; bit += 5) {
            unsigned changed[2][64] = { { 0 } };
            for (unsigned i = 0; i < KEYS; i++) {
                uint8_t key[24];
                for (unsigned at = 0; at < sizeof key; at += 8)
                    store64(key + at, rng_next(&rng));
                struct keyhash a = hash_of(&hasher, key, nbytes);
                key[bit / 8] = (uint8_t)(key[bit / 8] ^ 1U << bit % 8);
                struct keyhash b = hash_of(&hasher, key, nbytes);
                for (unsigned out = USED_FROM; out < 64; out++) {
                    changed[0][out] += (a.place ^ b.place) >> out & 1;
                    changed[1][out] += (a.mark ^ b.mark) >> out & 1;
                }
            }
            scene("bit %u of %u bytes", bit, nbytes);
            for (unsigned out = USED_FROM; out < 64; out++)
                for (unsigned half = 0; half < 2; half++)
                    expect(abs((int)changed[half][out] - KEYS / 2) <= 8 * DEVIATION);
        }
}
