/* in_place_test.c - proves which files can be opened to be written in place, and that an open which
 * fails, or adds nothing, does not change the file. */
#include "support.h"
#include <perhaps_live.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Saves an empty filter of several pages, and returns its path. */
static struct path new_file(const struct perhaps_kind *kind)
{
    struct path path = temp_path("in_place");
    scoped_filter *f = make_filter(kind, 100000, 0.01, test_seed());
    expect_success(perhaps_save(f, path.text));
    return path;
}

static int verify(const struct path *path)
{
    struct perhaps_verdict verdict;
    scoped_filter *f = open_file(path->text, NULL);
    return perhaps_verify(f, &verdict);
}

static void expect_unchanged(const struct path *path, struct bytes *before)
{
    scoped_bytes after = read_file(path->text);
    expect_same_bytes(before, &after);
    free(before->at);
}

/* Kinds that can share open in place, and an open without an add does not change the file. */
TEST_EACH(test_open, any_kind)
{
    struct path path = new_file(kind);
    struct bytes before = read_file(path.text);
    perhaps_filter *f;
    int error = perhaps_open(path.text, &in_place, &f);
    if (shares(kind)) {
        struct perhaps_verdict verdict;
        expect_success(error);
        expect(stats_of(f).mapped && stats_of(f).shared && stats_of(f).keys == 0);
        expect_error(perhaps_verify(f, &verdict), PERHAPS_ERR_UNSUPPORTED);
        expect_success(perhaps_sync(f));
        perhaps_free(f);
        expect_success(verify(&path));
    } else {
        expect_error(error, PERHAPS_ERR_UNSUPPORTED);
        expect(!f);
    }
    expect_unchanged(&path, &before); /* nothing was added */
}

/* Opens the file in place.  Returns 0 or the errno. */
static int open_in_place(void *context)
{
    const struct path *path = context;
    return try_open(path->text, &in_place) ? errno : 0;
}

TEST(test_not_writable)
{
    struct path path = { { 0 } };
    EACH_KIND(kind, shares)
        path = new_file(kind);
    if (!*path.text || chmod(path.text, 0444))
        skip();
    int result = run_in_child(open_in_place, &path, true);
    unlink(path.text);
    if (result == CANNOT_TRY)
        skip();
    expect(result == EACCES);
}

TEST(test_not_a_file)
{
    struct path folder = temp_path("folder"), other = temp_path("other"),
                none = temp_path("no");
    expect(!mkdir(folder.text, 0777));
    expect_error(try_open(folder.text, &in_place), PERHAPS_ERR_IO);
    expect(errno == EISDIR);
    expect_error(try_open(none.text, &in_place), PERHAPS_ERR_IO);
    expect(errno == ENOENT);
    write_file(other.text, "no filter", 9);
    expect(try_open(other.text, &in_place) < 0);
    scoped_bytes left = read_file(other.text);
    expect(left.nbytes == 9 && !memcmp(left.at, "no filter", 9));
}

/* An open with a wrong secret or none fails and does not change the file. */
TEST_EACH(test_wrong_secret, shares)
{
    struct path path = temp_path("secret");
    struct perhaps_options options = { .capacity = 100,
                                       .fpr = 0.01,
                                       .kind = kind->name,
                                       .hashing = { .hash = PERHAPS_HASH_SIP } };
    const uint8_t wrong[16] = { 1, 2, 3 };
    perhaps_filter *f = make_with(&options);
    expect_success(perhaps_save(f, path.text));
    perhaps_free(f);
    for (unsigned with = 0; with < 2; with++) {
        struct perhaps_open_options opening = in_place;
        opening.hashing.secret = with ? wrong : NULL;
        struct bytes before = read_file(path.text);
        expect_error(try_open(path.text, &opening), PERHAPS_ERR_SECRET);
        expect_unchanged(&path, &before);
    }
}

/* Damage of the header or of the table of checksums is found, as when the file is only mapped
 * to be read, and the file is not changed. */
TEST_EACH(test_damaged, shares)
{
    struct path path = new_file(kind);
    scoped_bytes sound = read_file(path.text);
    const size_t places[] = {
        20, 130, 170, 200, 300, 4000, sound.nbytes - 8, sound.nbytes - 16
    };
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        struct bytes damaged = read_file(path.text);
        scene("%s, damaged at %zu of %zu", kind->name, places[p], damaged.nbytes);
        damaged.at[places[p]] ^= 16;
        write_file(path.text, damaged.at, damaged.nbytes);
        int error = try_open(path.text, NULL);
        expect(error == PERHAPS_ERR_DAMAGED || error == PERHAPS_ERR_VERSION);
        expect_error(try_open(path.text, &in_place), error);
        expect_unchanged(&path, &damaged);
        write_file(path.text, sound.at, sound.nbytes);
    }
}

/* Only a file that is open in place can be synced. */
TEST_EACH(test_sync_of_others, any_kind)
{
    struct path path = new_file(kind);
    for (int writable = 0; writable < 2; writable++) {
        scoped_filter *f = open_file(path.text, ways_to_open[writable]);
        expect_error(perhaps_sync(f), PERHAPS_ERR_UNSUPPORTED);
    }
}
