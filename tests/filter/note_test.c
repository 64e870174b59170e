/* note_test.c - proves that the note of a filter goes into every file and copy that is made of
 * it, for every kind, and that a file with an impossible note is refused. */
#include "support.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

static const char note[] = "keys: field=2 delimiter=, ignore-case";

enum { NKEYS = 300, AT_NOTE_NBYTES = 96 };

static void expect_note(perhaps_filter *f, const char *wanted)
{
    expect(strcmp(perhaps_note(f), wanted) == 0);
    perhaps_free(f);
}

static perhaps_filter *with_note(const struct perhaps_kind *kind, const char *text)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, NKEYS);
    struct perhaps_options options = options_for(kind, 2 * NKEYS, 0.01, test_seed());
    options.hashing.note = text;
    if (is_built(kind))
        return built_filter(&options, &keys);
    perhaps_filter *f = make_with(&options);
    fill(f, &keys);
    return f;
}

/* Makes a live file of it, and what is saved when the journal ends. */
static void check_live(const char *path)
{
    const struct perhaps_open_options journal = { .mode = PERHAPS_MODE_JOURNAL };
    perhaps_filter *f = open_file(path, &journal);
    expect_success(perhaps_add(f, "one more", 8));
    expect_success(perhaps_checkpoint(f));
    expect_note(f, note);
    expect_note(open_file(path, &map_it), note);
}

TEST_EACH(test_copies, every_kind)
{
    scoped_filter *f = with_note(kind, note);
    struct path path = temp_path("F");
    perhaps_filter *copy;
    expect_success(perhaps_save(f, path.text));
    for (unsigned way = 0; way < 2; way++)
        expect_note(open_file(path.text, ways_to_open[way]), note);
    if (shares(kind))
        expect_note(open_file(path.text, &in_place), note);
    expect_note(clone_of(f), note);
    if (!is_built(kind)) {
        const struct perhaps_hashing other = { .seed = 5 }, without = { .note = "" };
        expect_success(perhaps_create_like(f, NULL, NULL, &copy));
        expect_note(copy, note);
        expect_success(perhaps_create_like(f, &other, NULL, &copy));
        expect_note(copy, note);
        expect_success(perhaps_create_like(f, &without, NULL, &copy));
        expect_note(copy, "");
    }
    if (!perhaps_shrink(f, 0.2, &copy))
        expect_note(copy, note);
    struct bytes bytes = saved_bytes(f);
    expect_success(perhaps_from_bytes(bytes.at, bytes.nbytes, NULL, &copy));
    expect_note(copy, note);
    free_bytes(&bytes);
    const bool lives = !is_built(kind) && replaces_open_files();
    if (lives)
        check_live(path.text);
    expect(!unlink(path.text) && (!lives || !unlink(journal_of(path).text)));
}

/* A filter that gets its size when all keys are there, from a builder. */
TEST(test_sized)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, NKEYS);
    struct perhaps_options options = { .kind = "blocked",
                                       .fpr = 0.01,
                                       .hashing = { .note = note } };
    expect_note(built_filter(&options, &keys), note);
}

/* Notes of every length, also where the header has more than 4096 bytes with it. */
TEST(test_lengths)
{
    char text[PERHAPS_NOTE_MAX + 2];
    const struct perhaps_kind *blocked = kind_to_test(0);
    memset(text, 'x', sizeof text);
    for (size_t n = 0; n <= PERHAPS_NOTE_MAX; n++) {
        text[n] = '\0';
        perhaps_filter *copy, *f = with_note(blocked, text);
        struct bytes bytes = saved_bytes(f);
        expect_success(perhaps_from_bytes(bytes.at, bytes.nbytes, NULL, &copy));
        expect_note(copy, text);
        expect_note(f, text);
        free_bytes(&bytes);
        text[n] = 'x';
    }
    struct perhaps_options options = options_for(blocked, 100, 0.01, 1);
    perhaps_filter *f;
    text[sizeof text - 1] = '\0';
    options.hashing.note = text;
    expect_error(perhaps_create(&options, &f), PERHAPS_ERR_ARGUMENT);
    options.hashing.note = "two\nlines";
    expect_error(perhaps_create(&options, &f), PERHAPS_ERR_ARGUMENT);
    options.hashing.note = "\x7f";
    expect_error(perhaps_create(&options, &f), PERHAPS_ERR_ARGUMENT);
}

/* 25 sections fill the first 4096 bytes of the header: the note lies behind them. */
TEST(test_many_sections)
{
    struct perhaps_options options = { .kind = "window",
                                       .capacity = 1000,
                                       .fpr = 0.01,
                                       .window = { .keys = 1000 },
                                       .hashing = { .note = note } };
    for (unsigned n = 20; n < 30; n++) {
        options.window.generations = n;
        scene("%u generations", n);
        perhaps_filter *copy, *f = make_with(&options);
        struct bytes bytes = saved_bytes(f);
        expect_success(perhaps_from_bytes(bytes.at, bytes.nbytes, NULL, &copy));
        expect_note(copy, note);
        perhaps_free(f);
        free_bytes(&bytes);
    }
}

TEST(test_forged)
{
    scoped_filter *f = with_note(kind_to_test(0), note);
    struct bytes bytes = large_bytes(f);
    const size_t at = 120 + 160;
    perhaps_filter *copy;
    expect(!memcmp(bytes.at + at, note, strlen(note)));
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t sizes[] = { PERHAPS_NOTE_MAX + 1, UINT64_MAX, strlen(note) - 1 };
        struct bytes forged = copy_bytes(&bytes);
        scene("a note of %ju bytes", (uintmax_t)sizes[i]);
        put64(forged.at + AT_NOTE_NBYTES, sizes[i]);
        reseal(forged.at, forged.nbytes);
        expect(is_refusal(perhaps_from_bytes(forged.at, forged.nbytes, NULL, &copy)));
        free_bytes(&forged);
    }
    bytes.at[at + 3] = '\n';
    reseal(bytes.at, bytes.nbytes);
    expect_error(perhaps_from_bytes(bytes.at, bytes.nbytes, NULL, &copy), PERHAPS_ERR_VERSION);
    free_bytes(&bytes);
}
