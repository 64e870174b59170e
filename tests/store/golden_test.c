/* golden_test.c - proves that the file format has not changed: files that were written once,
 * when it was fixed, still open, hold their keys, and are written again byte for byte.  It
 * fails when a change of the code changes a hash, the place of a bit, or a field of the
 * header. */
#include "support.h"
#include <perhaps.h>

#include <string.h>
#include <unistd.h>

#include "golden.h"
#include "kinds/kinds.h"

#ifndef GOLDEN_FOLDER
#error "GOLDEN_FOLDER is where the golden files are"
#endif

/* A golden file, and how its filter was made. */
struct golden {
    struct perhaps_options made;
    const char *name;
    bool is_small;
    struct path path;
};

/* Sets *golden to the file of this number.  Each filter has one file or two: those that are
 * large are not small, and those of later kinds were never large.  Returns false behind the
 * last. */
static bool golden_at(size_t *number, struct golden *golden)
{
    for (;; ++*number) {
        if (!golden_options(*number / GOLDEN_FORMS, &golden->made, &golden->name))
            return false;
        golden->is_small = *number % GOLDEN_FORMS;
        snprintf(golden->path.text, sizeof golden->path.text, "%s/%s%s.perhaps", GOLDEN_FOLDER,
                 golden_forms[golden->is_small], golden->name);
        if (!access(golden->path.text, F_OK))
            break;
    }
    scene("golden file %s%s", golden_forms[golden->is_small], golden->name);
    return true;
}

/* Each filter has a file, and none is forgotten. */
TEST(test_all_are_there)
{
    struct golden golden;
    struct perhaps_options made;
    const char *name;
    size_t nfiles = 0, nfilters = 0;
    for (size_t i = 0; golden_at(&i, &golden); i++)
        nfiles++;
    while (golden_options(nfilters, &made, &name))
        nfilters++;
    scene("%zu files of %zu filters", nfiles, nfilters);
    expect(nfiles > nfilters && nfiles <= GOLDEN_FORMS * nfilters);
}

/* All keys are found, and of 9,900 others hardly any. */
static void check_keys(const perhaps_filter *f, const struct perhaps_options *made)
{
    char key[GOLDEN_KEY_NBYTES];
    const unsigned keys = golden_count(made);
    unsigned strangers = 0;
    for (unsigned i = 0; i < keys + 99 * GOLDEN_KEYS; i++) {
        golden_key(made, i, key);
        bool found = perhaps_contains(f, key, GOLDEN_KEY_NBYTES - 1);
        expect(found || i >= keys);
        strangers += found && i >= keys;
    }
    expect(strangers <= (made->fpr > 0 ? 20 : 0)); /* of 0.1 %; most filters are half full */
    expect(stats_of(f).keys == keys);
}

/* A chain has three layers.  A window has five generations, of which three have been used. */
static void check_parts(const perhaps_filter *f, const struct perhaps_options *made)
{
    const struct filter_kind *kind = kind_by_name(made->kind);
    struct perhaps_stats part;
    size_t used = 0, n = 0;
    for (; perhaps_part(f, n, &part); n++)
        used += part.keys > 0;
    expect(stats_of(f).parts == n && (n > 0) == (kind->composite != NULL));
    bool two = is_built(&kind->about); /* against: both are used */
    expect(!n || used == (two ? 2 : 3));
    expect(n == (forgets(&kind->about) ? 5U : !kind->composite ? 0U : two ? 2U : 3U));
}

TEST(test_open)
{
    struct golden golden;
    for (size_t i = 0; golden_at(&i, &golden); i++)
        for (unsigned way = 0; way < 2; way++) {
            const struct perhaps_options *made = &golden.made;
            struct perhaps_verdict verdict;
            scoped_filter *f = open_file(golden.path.text, ways_to_open[way]);
            expect(!strcmp(stats_of(f).plan.kind, made->kind));
            expect(stats_of(f).plan.capacity == made->capacity);
            expect(stats_of(f).plan.fpr == made->fpr);
            expect_error(perhaps_verify(f, &verdict), way ? PERHAPS_ERR_UNSUPPORTED : 0);
            check_keys(f, made);
            check_parts(f, made);
        }
}

/* Returns whether the filter plans parts while it grows, as a chain does: a later plan may be
 * better than that of the file. */
static bool plans_as_it_grows(const struct perhaps_options *made)
{
    const struct filter_kind *kind = kind_by_name(made->kind);
    return kind->composite && (grows(&kind->about) || made->window.time);
}

/* Checks that the filter gives this file, in the same form. */
static void expect_gives(const perhaps_filter *f, const struct bytes *file, bool is_small)
{
    scoped_bytes bytes = is_small ? saved_bytes(f) : large_bytes(f);
    expect_same_bytes(&bytes, file);
}

/* The same geometry, hash and keys give the same bits, and the same bits give the same file.
 * (Plans may change: they are no part of the format.) */
TEST(test_reproduced)
{
    struct golden golden;
    for (size_t i = 0; golden_at(&i, &golden); i++) {
        const struct perhaps_options *made = &golden.made;
        scoped_bytes file = read_file(golden.path.text);
        scoped_filter *opened = open_file(golden.path.text, NULL);
        expect_gives(opened, &file, golden.is_small);
        scoped_filter *again = clone_of(opened);
        if (made->needs & PERHAPS_CAN_BUILD) {
            perhaps_free(again);
            expect_success(golden_build(made, &again));
        } else if (!plans_as_it_grows(made) && !made->shared) { /* the copy counts exactly */
            expect_success(perhaps_clear(again));
            expect_success(golden_fill(made, again));
        }
        expect(perhaps_equal(again, opened));
        expect_gives(again, &file, golden.is_small);
    }
}
