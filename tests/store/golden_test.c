/* golden_test.c - proves that the file format has not changed: files that were written once,
 * when it was fixed, still open, hold their keys, and are written again byte for byte.  It
 * fails when a change of the code changes a hash, the place of a bit, or a field of the
 * header. */
#include "support.h"
#include <perhaps_sets.h>

#include <string.h>

#include "golden.h"
#include "kinds/kinds.h"

#ifndef GOLDEN_FOLDER
#error "GOLDEN_FOLDER is where the golden files are"
#endif

static struct path golden_path(const char *name)
{
    struct path path;
    scene("golden file of %s", name);
    snprintf(path.text, sizeof path.text, "%s/%s.perhaps", GOLDEN_FOLDER, name);
    return path;
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
    struct perhaps_options made;
    const char *name;
    for (size_t i = 0; golden_options(i, &made, &name); i++)
        for (unsigned way = 0; way < 2; way++) {
            struct path path = golden_path(name);
            struct perhaps_verdict verdict;
            scoped_filter *f = open_file(path.text, ways_to_open[way]);
            expect(!strcmp(stats_of(f).plan.kind, made.kind));
            expect(stats_of(f).plan.capacity == made.capacity);
            expect(stats_of(f).plan.fpr == made.fpr);
            expect_error(perhaps_verify(f, &verdict), way ? PERHAPS_ERR_UNSUPPORTED : 0);
            check_keys(f, &made);
            check_parts(f, &made);
        }
}

/* Returns whether the filter plans parts while it grows, as a chain does: a later plan may be
 * better than that of the file. */
static bool plans_as_it_grows(const struct perhaps_options *made)
{
    const struct filter_kind *kind = kind_by_name(made->kind);
    return kind->composite && (grows(&kind->about) || made->window.time);
}

/* The same geometry, hash and keys give the same bits, and the same bits give the same file.
 * (Plans may change: they are no part of the format.) */
TEST(test_reproduced)
{
    struct perhaps_options made;
    const char *name;
    for (size_t i = 0; golden_options(i, &made, &name); i++) {
        struct path path = golden_path(name);
        scoped_bytes golden = read_file(path.text);
        scoped_filter *opened = open_file(path.text, NULL);
        expect_saves_as(opened, &golden);
        scoped_filter *again = clone_of(opened);
        if (made.needs & PERHAPS_CAN_BUILD) {
            perhaps_free(again);
            expect_success(golden_build(&made, &again));
        } else if (!plans_as_it_grows(&made) && !made.shared) { /* the copy counts exactly */
            expect_success(perhaps_clear(again));
            expect_success(golden_fill(&made, again));
        }
        expect(perhaps_equal(again, opened));
        expect_saves_as(again, &golden);
    }
}
