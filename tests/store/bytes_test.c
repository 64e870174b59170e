/* bytes_test.c - proves that filters in memory are those of files, and keys between offsets
 * those of any other form: perhaps_to_bytes() writes the bytes of the file;
 * perhaps_from_bytes() makes the filter again, by a copy or where the bytes are, and refuses
 * what is cut, changed or not aligned; and a batch of keys gives the same filter and the same
 * answers, however its keys lie in memory. */
#include "support.h"
#include <perhaps_fast.h>
#include <perhaps_sets.h>

#include <string.h>

#include "hostile.h"

/* ---- Bytes in memory --------------------------------------------------------------------- */

/* Returns the bytes of a filter, at an address that is 'beside' a multiple of
 * PERHAPS_ALIGNMENT; 'memory' is to be released. */
static uint8_t *bytes_of(const perhaps_filter *f, size_t beside, size_t *nbytes,
                         uint8_t **memory)
{
    *nbytes = (size_t)perhaps_write_nbytes(f);
    *memory = aligned_alloc(PERHAPS_ALIGNMENT, *nbytes / PERHAPS_ALIGNMENT * PERHAPS_ALIGNMENT +
                                                   2 * PERHAPS_ALIGNMENT);
    expect(*memory);
    expect_success(perhaps_to_bytes(f, *memory + beside, *nbytes));
    return *memory + beside;
}

static int try_bytes(const void *bytes, size_t nbytes,
                     const struct perhaps_open_options *options, perhaps_filter **f)
{
    *f = (perhaps_filter *)&nbytes; /* a failed call must set it to NULL */
    int error = perhaps_from_bytes(bytes, nbytes, options, f);
    expect(!error || !*f);
    return error;
}

static perhaps_filter *filter_of(const struct perhaps_kind *kind,
                                 const struct perhaps_keys *keys)
{
    return full_filter(kind, keys->count, 0.01, keys);
}

/* Both ways give the filter of the file.  The one in place writes nowhere. */
TEST_EACH(test_same_as_the_file, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 3000);
    scoped_filter *f = filter_of(kind, &keys), *mapped, *loaded;
    scoped_memory *memory, *before;
    size_t nbytes;
    const uint8_t *bytes = bytes_of(f, 0, &nbytes, &memory);
    expect_saves_as(f, &(struct bytes){ memory, nbytes });
    expect_error(perhaps_to_bytes(f, memory, nbytes - 1), PERHAPS_ERR_ARGUMENT);
    expect_error(perhaps_to_bytes(f, memory, nbytes + 1), PERHAPS_ERR_ARGUMENT);
    before = malloc(nbytes);
    expect(before);
    memcpy(before, bytes, nbytes);

    expect_success(try_bytes(bytes, nbytes, &map_it, &mapped));
    expect_success(try_bytes(bytes, nbytes, NULL, &loaded));
    expect(perhaps_equal(mapped, f) && perhaps_equal(loaded, f));
    expect_same_counters(mapped, f);
    expect_all_found(mapped, &keys);
    expect_success(perhaps_verify(mapped, &(struct perhaps_verdict){ 0 }));
    expect(stats_of(mapped).mapped && !stats_of(loaded).mapped);
    expect_error(perhaps_add(mapped, "x", 1),
                 is_built(kind) ? PERHAPS_ERR_UNSUPPORTED : PERHAPS_ERR_READ_ONLY);
    expect_error(perhaps_clear(mapped), PERHAPS_ERR_READ_ONLY);
    scoped_filter *copy = clone_of(mapped);
    expect(!memcmp(before, bytes, nbytes));
    if (!is_built(kind) && !stats_of(copy).failed_adds)
        expect(perhaps_add(copy, "x", 1) != PERHAPS_ERR_READ_ONLY);
    memset(memory, 0xa5, nbytes); /* which a copy does not see */
    expect_all_found(loaded, &keys);
    expect_all_found(copy, &keys);
}

/* Bytes at any address can be copied, but only aligned ones used in place. */
TEST(test_alignment)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 100);
    scoped_filter *f = filter_of(perhaps_kind_at(0), &keys);
    for (size_t beside = 0; beside < PERHAPS_ALIGNMENT; beside++) {
        scoped_memory *memory;
        scoped_filter *read, *used;
        size_t nbytes;
        const uint8_t *bytes = bytes_of(f, beside, &nbytes, &memory);
        expect_success(try_bytes(bytes, nbytes, &load_it, &read));
        expect(perhaps_equal(read, f));
        expect_error(try_bytes(bytes, nbytes, &map_it, &used),
                     beside ? PERHAPS_ERR_ARGUMENT : 0);
    }
}

TEST(test_options)
{
    const struct perhaps_options secretive = { .capacity = 10,
                                               .fpr = 0.01,
                                               .hashing = { .hash = PERHAPS_HASH_SIP } };
    scoped_filter *f = make_with(&secretive), *with;
    scoped_memory *memory;
    struct perhaps_open_options reserved = { .reserved = { 1 } }, secret = { 0 };
    uint8_t key[16];
    perhaps_filter *none;
    size_t nbytes;
    const uint8_t *bytes = bytes_of(f, 0, &nbytes, &memory);
    expect_error(try_bytes(bytes, nbytes, &in_place, &none), PERHAPS_ERR_ARGUMENT);
    expect_error(try_bytes(bytes, nbytes, &checking, &none), PERHAPS_ERR_UNSUPPORTED);
    expect_error(try_bytes(bytes, nbytes, &reserved, &none), PERHAPS_ERR_ARGUMENT);
    expect_error(try_bytes(bytes, nbytes, &map_it, &none), PERHAPS_ERR_SECRET);
    expect_error(try_bytes(NULL, 0, NULL, &none), PERHAPS_ERR_FORMAT);
    expect_success(perhaps_secret(f, key));
    secret.hashing.secret = key;
    expect_success(try_bytes(bytes, nbytes, &secret, &with));
}

/* What is cut or too long is refused either way; a flipped bit in the header or the table, too,
 * and one in a body by a copy, and in place by perhaps_verify(). */
TEST_EACH(test_damage, every_kind)
{
    enum { STEP = 997 };
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 300);
    scoped_filter *f = filter_of(kind, &keys);
    scoped_memory *memory;
    size_t nbytes;
    uint8_t *bytes = bytes_of(f, 0, &nbytes, &memory);
    perhaps_filter *g;
    for (size_t end = 0; end < nbytes; end += end < 200 ? 1 : STEP) {
        scene("%s ends at %zu", kind->name, end);
        expect(is_refusal(try_bytes(bytes, end, &map_it, &g)));
        expect(is_refusal(try_bytes(bytes, end, &load_it, &g)));
    }
    expect_error(try_bytes(bytes, nbytes + 1, &map_it, &g), PERHAPS_ERR_DAMAGED);
    expect_error(try_bytes(bytes, nbytes + 1, &load_it, &g), PERHAPS_ERR_DAMAGED);
    for (size_t at = 0; at < nbytes; at += at < 400 ? 1 : STEP) {
        scene("%s, byte %zu", kind->name, at);
        bytes[at] ^= (uint8_t)(1 << at % 8);
        expect(is_refusal(try_bytes(bytes, nbytes, &load_it, &g)));
        int error = try_bytes(bytes, nbytes, &map_it, &g);
        expect(error
                   ? is_refusal(error)
                   : perhaps_verify(g, &(struct perhaps_verdict){ 0 }) == PERHAPS_ERR_DAMAGED);
        perhaps_free(g);
        bytes[at] ^= (uint8_t)(1 << at % 8);
    }
}

/* Bodies of any bytes, whose checksums agree, can be asked and copied, and nothing else is
 * read: the memory ends behind the last byte. */
TEST_EACH(test_any_body, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 300);
    scoped_filter *f = filter_of(kind, &keys);
    scoped_memory *memory;
    size_t nbytes;
    uint8_t *bytes = bytes_of(f, 0, &nbytes, &memory);
    struct rng rng = rng_for("test_any_body");
    unsigned opened = 0;
    for (unsigned round = 0; round < many(20); round++) {
        perhaps_filter *g;
        scene("%s, round %u", kind->name, round);
        const size_t end = is_small_file(bytes, nbytes) ? nbytes - COUNTERS_NBYTES
                                                        : get64(bytes + AT_TABLE_OFFSET);
        for (size_t at = header_size(bytes, nbytes); at < end; at++)
            bytes[at] = (uint8_t)rng_next(&rng);
        reseal(bytes, nbytes);
        if (try_bytes(bytes, nbytes, &map_it, &g))
            continue; /* a kind may check some of its bytes */
        opened++;
        expect(perhaps_contains_many(g, &keys, NULL) <= keys.count);
        expect(stats_of(g).load <= 1);
        perhaps_free(g);
    }
    expect(opened || strcmp(kind->name, "blocked") != 0);
}

/* ---- Keys between offsets ---------------------------------------------------------------- */

enum { NKEYS = 1000, LONGEST = 40 };

/* Keys of 0 to LONGEST bytes, in three forms. */
struct forms {
    uint8_t bytes[NKEYS * LONGEST];
    uint32_t narrow[NKEYS + 1];
    uint64_t wide[NKEYS + 1];
    struct perhaps_key each[NKEYS];
};

static void make_forms(struct forms *forms, size_t least, size_t most, uint64_t first)
{
    struct rng rng = rng_for("make_forms");
    uint64_t at = first; /* as in a slice of a longer array */
    for (size_t i = 0; i < NKEYS; i++) {
        size_t nbytes = least + rng_below(&rng, most - least + 1);
        forms->narrow[i] = (uint32_t)at;
        forms->wide[i] = at;
        forms->each[i] = (struct perhaps_key){ forms->bytes + at, nbytes };
        for (size_t b = 0; b < nbytes; b++)
            forms->bytes[at++] = (uint8_t)rng_next(&rng);
    }
    forms->narrow[NKEYS] = (uint32_t)at;
    forms->wide[NKEYS] = at;
}

/* Adding and asking the three forms, as a whole and in slices, gives the same. */
TEST_EACH(test_offsets, any_kind)
{
    static struct forms forms;
    make_forms(&forms, 4, LONGEST - 1, 7);
    const struct perhaps_keys form[] = {
        perhaps_keys_each(forms.each, NKEYS),
        perhaps_keys_offsets32(forms.bytes, forms.narrow, NKEYS),
        perhaps_keys_offsets64(forms.bytes, forms.wide, NKEYS)
    };
    scoped_filter *first = make_filter(kind, NKEYS, 0.1, test_seed());
    fill(first, &form[0]);
    for (size_t i = 1; i < sizeof form / sizeof *form; i++) {
        scoped_filter *whole = make_filter(kind, NKEYS, 0.1, test_seed());
        scoped_filter *sliced = make_filter(kind, NKEYS, 0.1, test_seed());
        bool present[2][NKEYS];
        fill(whole, &form[i]);
        for (size_t at = 0, n = 1; at < NKEYS; at += n, n = n * 2 + 1) {
            n = n < NKEYS - at ? n : NKEYS - at;
            struct perhaps_keys slice = perhaps_keys_slice(&form[i], at, n);
            fill(sliced, &slice);
        }
        expect(perhaps_equal(whole, first) && perhaps_equal(sliced, first));
        for (size_t k = 0; k < NKEYS; k++) {
            struct perhaps_key key = perhaps_keys_at(&form[i], k);
            expect(key.bytes == forms.each[k].bytes && key.nbytes == forms.each[k].nbytes);
        }
        scoped_filter *half = make_filter(kind, NKEYS, 0.1, test_seed());
        struct perhaps_keys some = perhaps_keys_slice(&form[i], 0, NKEYS / 2);
        fill(half, &some);
        size_t found = perhaps_contains_many(half, &form[i], present[0]);
        expect(found == perhaps_contains_many(half, &form[0], present[1]));
        expect(found < NKEYS && !memcmp(present[0], present[1], NKEYS));
    }
}

/* Each hash takes keys between offsets, and refuses the first one of a wrong length. */
TEST(test_offsets_of_hashes)
{
    static struct forms forms;
    for (unsigned hash = PERHAPS_HASH_XXH3; hash < PERHAPS_HASH_INTEGER; hash++) {
        const struct perhaps_options options = { .capacity = NKEYS,
                                                 .fpr = 0.01,
                                                 .hashing = { .hash = hash } };
        size_t only = perhaps_hash_takes(hash), done;
        if (hash == PERHAPS_HASH_CUSTOM)
            continue;
        scene("%s", perhaps_hash_name(hash));
        make_forms(&forms, only ? only : 0, only ? only : LONGEST, 0);
        struct perhaps_keys keys = perhaps_keys_offsets32(forms.bytes, forms.narrow, NKEYS);
        struct perhaps_keys each = perhaps_keys_each(forms.each, NKEYS);
        scoped_filter *f = make_with(&options);
        fill(f, &keys);
        expect(perhaps_contains_many(f, &each, NULL) == NKEYS);
        expect(perhaps_hash_of(f) ==
               (hash == PERHAPS_HASH_XXH3 ? PERHAPS_HASH_XXH3_64 : hash)); /* they are few */
        if (!only)
            continue;
        forms.narrow[NKEYS]--; /* the last key is too short */
        expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_ARGUMENT);
        expect(done == NKEYS - 1);
    }
}

TEST(test_integers_between_offsets)
{
    const char text[] = "7"
                        "42"
                        "99"
                        "x1";
    const uint32_t offset[] = { 0, 1, 3, 5, 7 };
    const struct perhaps_options options = { .bitmap = { .low = 0, .high = 100 } };
    struct perhaps_keys keys = perhaps_keys_offsets32(text, offset, 4);
    scoped_filter *f = make_with(&options);
    size_t done;
    expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_ARGUMENT);
    expect(done == 3 && perhaps_contains(f, "42", 2) && !perhaps_contains(f, "1", 1));
}

/* No keys, and empty ones at a NULL address, which Arrow allows. */
TEST(test_no_bytes)
{
    const uint32_t offset[] = { 0, 0, 0 };
    const struct perhaps_options options = { .capacity = 10, .fpr = 0.01 };
    struct perhaps_keys empty = perhaps_keys_offsets32(NULL, offset, 2);
    struct perhaps_keys none = perhaps_keys_offsets32(NULL, offset, 0);
    scoped_filter *f = make_with(&options);
    expect_success(perhaps_add_many(f, &none, NULL));
    expect(perhaps_contains_many(f, &empty, NULL) == 0);
    expect_success(perhaps_add_many(f, &empty, NULL));
    expect(perhaps_contains(f, "", 0) && perhaps_contains_many(f, &empty, NULL) == 2);
}
