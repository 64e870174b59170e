/* file_test.c - proves that perhaps_open() gives the filter that perhaps_save() wrote, for
 * every kind and hash and both ways to open; that a secret never lies in a file and is needed
 * to use it; and that a path without a filter file gives the right error.
 *
 * It fails when a byte of the body or a counter is lost on the way, or when a filter can be
 * changed that should be read-only. */
#include "support.h"
#include <perhaps_sets.h>
#include <perhaps_window.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile.h"

static const uint8_t secret[16] = "secret of ours";

/* A caller's hash function.  It depends on the salt behind 'context', so another salt makes
 * another function. */
static void own_hash(void *context, const void *key, size_t nbytes, uint8_t hash[16])
{
    uint64_t words[2] = { *(const uint64_t *)context, nbytes };
    for (size_t i = 0; i < nbytes; i++)
        words[0] = mix64(words[0] + ((const uint8_t *)key)[i]);
    words[1] = mix64(~words[0]);
    memcpy(hash, words, sizeof words);
}

static struct perhaps_hashing hashing_of(enum perhaps_hash hash)
{
    static uint64_t salt = 5;
    return (struct perhaps_hashing){ .hash = hash,
                                     .secret = hash == PERHAPS_HASH_SIP ? secret : NULL,
                                     .function = hash == PERHAPS_HASH_CUSTOM ? own_hash : NULL,
                                     .context = &salt };
}

static perhaps_filter *filter_with(const struct perhaps_kind *kind, enum perhaps_hash hash,
                                   const struct perhaps_keys *keys)
{
    struct perhaps_options options = options_for(kind, keys->count + 10, 0.001, 0);
    options.hashing = hashing_of(hash);
    scene("%s, hash %d, %zu keys", kind->name, (int)hash, keys->count);
    perhaps_filter *f = make_with(&options);
    fill(f, keys);
    if (!perhaps_contains(f, "one that is not!", 16))
        perhaps_remove(f, "one that is not!", 16); /* so that this count is not 0, either */
    return f;
}

/* ---- Round trips ------------------------------------------------------------------------ */

/* Checks that a mapped filter refuses every change and stays as it was. */
static void check_mapped(const struct perhaps_kind *kind, perhaps_filter *f,
                         const perhaps_filter *original, const struct perhaps_keys *keys)
{
    struct perhaps_verdict verdict;
    size_t done;
    expect(stats_of(f).mapped);
    expect_success(perhaps_verify(f, &verdict));
    expect(verdict.pages > 0 && !verdict.damaged);
    expect_error(perhaps_add(f, key_at(keys, 0), keys->key_nbytes), PERHAPS_ERR_READ_ONLY);
    expect_error(perhaps_add_many(f, keys, &done), PERHAPS_ERR_READ_ONLY);
    expect_error(perhaps_remove(f, key_at(keys, 0), keys->key_nbytes),
                 removes(kind) ? PERHAPS_ERR_READ_ONLY : PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_rotate(f),
                 forgets(kind) ? PERHAPS_ERR_READ_ONLY : PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_clear(f), PERHAPS_ERR_READ_ONLY);
    expect_error(perhaps_merge(f, original), PERHAPS_ERR_READ_ONLY);
    expect(perhaps_equal(f, original));
    expect_same_counters(f, original);
}

static void check_writable(perhaps_filter *f, const struct perhaps_keys *keys)
{
    const uint8_t key[16] = "one key more";
    expect(!stats_of(f).mapped);
    expect_success(perhaps_add(f, key, sizeof key));
    expect(perhaps_contains(f, key, sizeof key));
    expect_all_found(f, keys);
}

static void round_trip(const struct perhaps_kind *kind, enum perhaps_hash hash,
                       const struct perhaps_keys *keys)
{
    struct perhaps_open_options options = { .hashing = hashing_of(hash) };
    scoped_filter *f = filter_with(kind, hash, keys), *mapped, *loaded, *copy;
    struct path path = temp_path("round_trip");
    expect_success(perhaps_save(f, path.text));
    expect_success(perhaps_open(path.text, &options, &mapped));
    options.mode = PERHAPS_MODE_LOAD;
    expect_success(perhaps_open(path.text, &options, &loaded));
    copy = clone_of(mapped);

    scoped_bytes bytes = saved_bytes(f);
    const perhaps_filter *same[] = { mapped, loaded, copy };
    for (unsigned i = 0; i < 3; i++) {
        expect(perhaps_equal(f, same[i]));
        expect_same_counters(f, same[i]);
        expect_all_found(same[i], keys);
        expect_saves_as(same[i], &bytes);
    }
    check_mapped(kind, mapped, f, keys);
    check_writable(loaded, keys);
    check_writable(copy, keys);
}

TEST(test_round_trips)
{
    /* a body shorter than a page, and one of many pages, the last of them not whole */
    const size_t counts[] = { 10, 200 * 1000 };
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, counts[c]);
        EACH_KIND(kind, any_kind)
            for (unsigned hash = PERHAPS_HASH_XXH3; hash <= PERHAPS_HASH_CUSTOM; hash++)
                round_trip(kind, hash, &keys);
    }
}

/* A save replaces the file by a rename, so a process that has the old file mapped keeps the old
 * bytes. */
TEST(test_replaced_under_a_mapping)
{
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, 100);
    struct path path = temp_path("replaced");
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = filter_with(kind, PERHAPS_HASH_XXH3, &keys);
        expect_success(perhaps_save(f, path.text));
        scoped_filter *old = open_file(path.text, NULL);
        expect_success(perhaps_clear(f));
        expect_success(perhaps_save(f, path.text));
        scoped_filter *fresh = open_file(path.text, NULL);
        expect_all_found(old, &keys);
        expect(perhaps_contains_many(fresh, &keys, NULL) == 0);
    }
}

/* ---- Secrets ---------------------------------------------------------------------------- */

static int open_with(const struct bytes *file, const struct perhaps_open_options *options)
{
    perhaps_filter *f;
    int error = open_bytes(file->at, file->nbytes, options, &f);
    perhaps_free(f);
    return error;
}

/* A filter of a secret hash opens only with its own secret or function: a wrong one would deny
 * keys that are in. */
TEST(test_wrong_keys)
{
    uint8_t wrong[16] = "secret of ourz";
    uint64_t other_salt = 6;
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, 10);
    for (unsigned way = 0; way < 2; way++) {
        struct perhaps_open_options none = *ways_to_open[way], bad = none;
        scoped_filter *sip = filter_with(perhaps_kind_at(0), PERHAPS_HASH_SIP, &keys);
        scoped_filter *custom = filter_with(perhaps_kind_at(0), PERHAPS_HASH_CUSTOM, &keys);
        scoped_bytes sip_file = saved_bytes(sip), custom_file = saved_bytes(custom);
        bad.hashing.secret = wrong;
        bad.hashing.function = own_hash;
        bad.hashing.context = &other_salt;
        expect_error(open_with(&sip_file, &none), PERHAPS_ERR_SECRET);
        expect_error(open_with(&sip_file, &bad), PERHAPS_ERR_SECRET);
        expect_error(open_with(&custom_file, &none), PERHAPS_ERR_SECRET);
        expect_error(open_with(&custom_file, &bad), PERHAPS_ERR_SECRET);
        bad.without_secret = true; /* allows no secret at all, but not a wrong one */
        expect_error(open_with(&sip_file, &bad), PERHAPS_ERR_SECRET);
    }
}

static bool holds(const struct bytes *file, const void *what, size_t nbytes)
{
    for (size_t at = 0; at + nbytes <= file->nbytes; at++)
        if (!memcmp(file->at + at, what, nbytes))
            return true;
    return false;
}

TEST(test_secret_is_not_in_the_file)
{
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, 10);
    scoped_filter *f = filter_with(perhaps_kind_at(0), PERHAPS_HASH_SIP, &keys);
    scoped_bytes file = saved_bytes(f);
    expect(!holds(&file, secret, 8) && !holds(&file, secret + 8, 8)); /* nor half of it */
}

static void check_without_secret(const struct perhaps_kind *kind, perhaps_filter *f,
                                 const perhaps_filter *original)
{
    const uint8_t key[16] = "key of 16 bytes";
    struct perhaps_keys keys = perhaps_keys_packed(key, sizeof key, 1);
    uint8_t out[16];
    uint64_t count;
    bool present = false;
    size_t done = 9;
    expect(perhaps_contains(f, key, sizeof key));
    expect(perhaps_contains_many(f, &keys, &present) == 1 && present);
    expect_error(perhaps_add(f, key, sizeof key), PERHAPS_ERR_SECRET);
    expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_SECRET);
    expect(done == 0);
    expect_error(perhaps_remove(f, key, sizeof key),
                 removes(kind) ? PERHAPS_ERR_SECRET : PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_count(f, key, sizeof key, &count), kind->abilities & PERHAPS_CAN_COUNT
                                                                ? PERHAPS_ERR_SECRET
                                                                : PERHAPS_ERR_UNSUPPORTED);
    if (!strcmp(stats_of(f).hash, "sip"))
        expect_error(perhaps_secret(f, out), PERHAPS_ERR_SECRET);
    expect(perhaps_equal(f, original));
    expect_same_counters(f, original);
}

/* Without the secret a filter can be inspected, copied, merged and saved, since no key has to
 * be hashed.  Adds fail, and queries answer "perhaps": the filter must not deny what it cannot
 * look up. */
TEST(test_without_secret)
{
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, 100);
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                  .without_secret = true };
    EACH_KIND(kind, any_kind)
        for (unsigned hash = PERHAPS_HASH_SIP; hash <= PERHAPS_HASH_CUSTOM; hash++) {
            if (hash == PERHAPS_HASH_NONE)
                continue;
            scoped_filter *original = filter_with(kind, hash, &keys), *f;
            scoped_bytes file = saved_bytes(original);
            expect_success(open_bytes(file.at, file.nbytes, &options, &f));
            check_without_secret(kind, f, original);
            expect_saves_as(f, &file);
            scoped_filter *copy = clone_of(f), *empty = clone_of(f);
            check_without_secret(kind, copy, original);
            expect_success(perhaps_clear(empty));
            int merged = merges(kind) ? 0 : PERHAPS_ERR_UNSUPPORTED;
            expect_error(perhaps_merge(empty, f), merged);
            expect(merged || perhaps_contains_many(empty, &keys, NULL) == keys.count);
        }
}

/* ---- What is no filter file -------------------------------------------------------------- */

/* Paths of other things.  Opening must return at once also for a FIFO and for /dev/zero. */
TEST(test_no_files)
{
    struct path missing = temp_path("missing"), empty = temp_path("empty");
    struct path text = temp_path("text"), fifo = temp_path("fifo"), folder = temp_path("");
    write_file(empty.text, "", 0);
    write_file(text.text, "This is no filter, but a text.", 30);
    expect(!mkfifo(fifo.text, 0600));
    for (unsigned way = 0; way < 2; way++) {
        const struct perhaps_open_options *how = ways_to_open[way];
        expect_error(try_open(missing.text, how), PERHAPS_ERR_IO);
        expect(errno == ENOENT);
        expect_error(try_open(folder.text, how), PERHAPS_ERR_IO);
        expect(errno == EISDIR);
        expect_error(try_open("", how), PERHAPS_ERR_IO);
        expect_error(try_open(empty.text, how), PERHAPS_ERR_FORMAT);
        expect_error(try_open(text.text, how), PERHAPS_ERR_FORMAT);
        expect_error(try_open(fifo.text, how), PERHAPS_ERR_FORMAT);
        expect_error(try_open("/dev/null", how), PERHAPS_ERR_FORMAT);
        expect_error(try_open("/dev/zero", how), PERHAPS_ERR_FORMAT);
    }
}

static int open_unreadable(void *path)
{
    return try_open(path, NULL) == PERHAPS_ERR_IO && errno == EACCES ? 0 : 1;
}

TEST(test_unreadable_file)
{
    struct path path = temp_path("unreadable");
    write_file(path.text, "", 0);
    expect(!chmod(path.text, 0));
    int result = run_in_child(open_unreadable, path.text, true);
    if (result == CANNOT_TRY)
        skip();
    expect(!result);
}
