/* adversary_files_test.c - proves that the secret of a sip filter is in no file and in nothing
 * that the library tells; and that a file opens with its own secret, or expressly without, and
 * in no other way. */
#include "secretive.h"

#include <string.h>
#include <unistd.h>

#include "perhaps_build.h"
#include "perhaps_live.h"
#include "store/journal.h"

/* ---- What is told ------------------------------------------------------------------------ */

static void expect_untold(const char *what, const void *bytes, size_t nbytes)
{
    scene("%s in %s", scene_text(), what);
    expect(!holds_secret(bytes, nbytes));
}

/* Every byte of what the library fills in, whatever it means. */
TEST_EACH(test_nothing_tells_it, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, SECRETIVE_KEYS);
    scoped_filter *f = secretive_filter(kind, &keys);
    struct {
        struct perhaps_stats stats, part;
        struct perhaps_plan plan;
        uint8_t digest[16];
        struct perhaps_hashed hashed[SECRETIVE_KEYS];
        struct perhaps_prepared prepared;
        struct perhaps_view view;
        struct perhaps_description description;
        struct perhaps_comparison comparison;
    } told;
    memset(&told, 0, sizeof told);
    const struct perhaps_options options = secretive_options(kind);
    perhaps_stats_of(f, &told.stats);
    perhaps_part(f, 0, &told.part);
    expect_success(perhaps_plan_for(&options, &told.plan));
    perhaps_digest(f, told.digest);
    expect_success(perhaps_hash_many(f, &keys, told.hashed));
    perhaps_prepare(f, "key", 3, &told.prepared);
    told.view = perhaps_view_of(f);
    perhaps_compare(f, f, &told.comparison);
    scoped_layout *layout = NULL;
    if (!perhaps_layout_of(f, &layout))
        perhaps_layout_describe(layout, &told.description);
    expect_untold("what the library tells", &told, sizeof told);
}

TEST(test_no_error_tells_it)
{
    for (int error = -200; error < 10; error++)
        expect_untold("an error", perhaps_strerror(error), strlen(perhaps_strerror(error)) + 1);
}

/* Searches a file, and its journal if it has one.  Returns whether it has. */
static bool expect_not_in(struct path path)
{
    scoped_bytes bytes = read_file(path.text);
    expect(bytes.nbytes > 0);
    expect_untold(path.text, bytes.at, bytes.nbytes);
    path = journal_of(path);
    if (access(path.text, F_OK))
        return false;
    scoped_bytes journal = read_file(path.text);
    expect(journal.nbytes > 0);
    expect_untold(path.text, journal.at, journal.nbytes);
    return true;
}

/* Opens a file to add to it, and searches it while it is open and afterwards. */
static void add_to(struct path path, enum perhaps_mode mode, const struct perhaps_keys *keys)
{
    const struct perhaps_open_options options = { .mode = mode,
                                                  .hashing = secretive_hashing() };
    perhaps_filter *f;
    int error = perhaps_open(path.text, &options, &f);
    expect(!error || error == PERHAPS_ERR_UNSUPPORTED);
    if (error)
        return;
    perhaps_add_many(f, keys, NULL);
    expect_success(perhaps_sync(f));
    expect(expect_not_in(path) == (mode == PERHAPS_MODE_JOURNAL));
    perhaps_free(f);
    expect_not_in(path);
}

/* A file that was saved, written in place, made smaller, built, or that has a journal. */
TEST_EACH(test_no_file_holds_it, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, SECRETIVE_KEYS);
    scoped_filter *f = secretive_filter(kind, &keys);
    struct path path = temp_path("file"), live = temp_path(kind->name);
    expect_success(perhaps_save(f, path.text));
    expect_not_in(path);
    add_to(path, PERHAPS_MODE_IN_PLACE, &keys);
    const struct perhaps_shrink_options coarse = { .fpr = 0.9 };
    if (!perhaps_shrink_save(f, &coarse, path.text))
        expect_not_in(path);
    struct perhaps_options options = secretive_options(kind);
    scoped_builder *builder = builder_of(&options, NULL);
    expect_success(perhaps_builder_add_many(builder, &keys));
    expect_success(perhaps_builder_save(builder, path.text));
    expect_not_in(path);
    expect_success(perhaps_save(f, live.text));
    add_to(live, PERHAPS_MODE_JOURNAL, &keys);
}

/* ---- Wrong secrets, and none ------------------------------------------------------------- */

/* A saved filter, and what opens it. */
struct stage {
    struct watch watch;
    struct perhaps_allocator allocator;
    struct path path;
    struct bytes bytes; /* those of the file, as they were at first */
    perhaps_filter *f;
};

static void begin_stage(struct stage *s, const struct perhaps_kind *kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, SECRETIVE_KEYS);
    *s = (struct stage){ .path = temp_path("secretive"), .f = secretive_filter(kind, &keys) };
    watch_begin(&s->watch);
    s->allocator = watch_allocator(&s->watch);
    expect_success(perhaps_save(s->f, s->path.text));
    s->bytes = read_file(s->path.text);
}

/* All that was taken to open it was released and is clean, and the file is as it was. */
static void end_stage(struct stage *s)
{
    scoped_bytes after = read_file(s->path.text);
    expect_same_bytes(&after, &s->bytes);
    expect(watch_is_clean(&s->watch, 0));
    free_bytes(&s->bytes);
    perhaps_free(s->f);
}

static const enum perhaps_mode modes[] = { PERHAPS_MODE_READ, PERHAPS_MODE_LOAD };

static struct perhaps_open_options opening(struct stage *s, enum perhaps_mode mode,
                                           const uint8_t *given)
{
    return (struct perhaps_open_options){ .mode = mode,
                                          .hashing.secret = given,
                                          .allocator = &s->allocator };
}

/* A secret that is wrong in one bit only is refused; 'without_secret' does not excuse it. */
TEST_EACH(test_wrong_secrets, every_kind)
{
    static struct stage s;
    begin_stage(&s, kind);
    unsigned files = count_beside("/proc/self/fd/0");
    for (unsigned way = 0; way < 4; way++)
        for (unsigned bit = 0; bit < 8 * SECRET_NBYTES; bit++) {
            uint8_t wrong[SECRET_NBYTES];
            memcpy(wrong, known_secret, sizeof wrong);
            wrong[bit / 8] ^= (uint8_t)(1U << bit % 8);
            struct perhaps_open_options options = opening(&s, modes[way % 2], wrong);
            options.without_secret = way / 2;
            expect_error(try_open(s.path.text, &options), PERHAPS_ERR_SECRET);
        }
    for (unsigned way = 0; way < 2; way++) {
        struct perhaps_open_options options = opening(&s, modes[way], known_secret);
        expect_success(try_open(s.path.text, &options));
        options.hashing.secret = NULL;
        expect_error(try_open(s.path.text, &options), PERHAPS_ERR_SECRET);
        options.without_secret = true;
        expect_success(try_open(s.path.text, &options));
    }
    expect(count_beside("/proc/self/fd/0") == files);
    end_stage(&s);
}

/* Without the secret every key is perhaps there, nothing can be changed, and the filter does
 * not tell what it does not know. */
TEST_EACH(test_without_the_secret, every_kind)
{
    static struct stage s;
    begin_stage(&s, kind);
    scoped_keys strangers = make_keys(RANDOM_KEYS, test_seed(), 0, 10 * 1000);
    const struct perhaps_keys one = some_keys(&strangers, 0, 1);
    for (unsigned way = 0; way < 2; way++) {
        struct perhaps_open_options options = opening(&s, modes[way], NULL);
        uint8_t out[SECRET_NBYTES] = { 0 };
        struct perhaps_hashed hashed;
        options.without_secret = true;
        scoped_filter *f = open_file(s.path.text, &options);
        expect_all_found(f, &strangers);
        for (size_t i = 0; i < strangers.count; i++)
            expect(perhaps_contains(f, key_at(&strangers, i), strangers.key_nbytes));
        expect_error(perhaps_secret(f, out), PERHAPS_ERR_SECRET);
        expect_error(perhaps_hash_many(f, &one, &hashed), PERHAPS_ERR_SECRET);
        expect(perhaps_add_many(f, &one, NULL) != 0 && perhaps_equal(f, s.f));
        expect(!holds_secret(out, sizeof out));
    }
    end_stage(&s);
}
