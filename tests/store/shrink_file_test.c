/* shrink_file_test.c - proves that what is saved of a filter that becomes smaller is, byte for
 * byte, what perhaps_shrink() makes; and that damage, interruptions and a lack of memory leave
 * everything as it was. */
#include "support.h"
#include <perhaps.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/plan.h"
#include "filter/filter.h"
#include "kinds/kinds.h"
#include "store/container.h"

/* Returns a path in a folder of its own. */
static struct path path_in_folder(const char *name)
{
    struct path folder = temp_path(name);
    expect(!mkdir(folder.text, 0777) || errno == EEXIST);
    return path_below(folder, "filter");
}

/* A sink that keeps all bytes. */
static int keep(void *context, const void *bytes, size_t nbytes)
{
    struct bytes *kept = context;
    kept->at = realloc(kept->at, kept->nbytes + nbytes);
    expect(kept->at);
    memcpy(kept->at + kept->nbytes, bytes, nbytes);
    kept->nbytes += nbytes;
    return 0;
}

/* Expects that a filter is written as perhaps_shrink() makes it.  Returns whether it becomes
 * smaller. */
static bool expect_same(const perhaps_filter *f, double fpr)
{
    const struct perhaps_shrink_options options = { .fpr = fpr };
    struct path path = path_in_folder("same");
    scoped_bytes bytes = { 0 };
    const struct perhaps_sink sink = { keep, &bytes };
    scoped_filter *small = NULL;
    int error = perhaps_shrink(f, fpr, &small);
    remove(path.text);
    expect_error(perhaps_shrink_write(f, &options, &sink), error);
    expect_error(perhaps_shrink_save(f, &options, path.text), error);
    expect(!error ||
           (error == PERHAPS_ERR_LIMIT && !bytes.nbytes && count_beside(path.text) == 0));
    if (error)
        return false;
    scoped_bytes wanted = saved_bytes(small), file = read_file(path.text);
    expect_same_bytes(&bytes, &wanted);
    expect_same_bytes(&file, &wanted);
    expect(count_beside(path.text) == 1);
    return true;
}

/* Does the same with the filter in memory, loaded, and mapped, and tells where it is or not. */
static bool expect_same_everywhere(const perhaps_filter *f, double fpr)
{
    struct path path = temp_path("large");
    expect_success(perhaps_save(f, path.text));
    bool smaller = expect_same(f, fpr);
    for (unsigned i = 0; i < 2; i++) {
        scoped_filter *opened = open_file(path.text, ways_to_open[i]);
        expect(expect_same(opened, fpr) == smaller);
    }
    return smaller;
}

/* ---- The bytes ------------------------------------------------------------------------- */

TEST_EACH(test_random, folds)
{
    struct rng rng = rng_for(__func__);
    const double rates[] = { 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6 };
    unsigned smaller = 0;
    for (unsigned i = 0; i < many(40); i++) {
        double fpr = rates[rng_below(&rng, sizeof rates / sizeof *rates)];
        double asked =
            rng_below(&rng, 3) ? 0 : fmin(fpr * (double)(1 + rng_below(&rng, 3)), 0.9);
        uint64_t capacity = 1 + rng_below(&rng, i % 2 ? 1000 : 100000);
        uint64_t nkeys = rng_below(&rng, capacity + 1) / (1 + rng_below(&rng, 30));
        scoped_keys keys = make_keys(RANDOM_KEYS, rng_next(&rng), 0, nkeys);
        scoped_filter *f = make_filter(kind, capacity, fpr, 1 + i);
        fill(f, &keys);
        scene("%s %u of %u, fpr %g, asked %g", kind->name, (unsigned)nkeys, (unsigned)capacity,
              fpr, asked);
        smaller += expect_same_everywhere(f, asked);
    }
    expect(smaller);
}

/* Bodies of many pages, of which each is checked. */
TEST_EACH(test_large, folds)
{
    unsigned smaller = 0;
    for (unsigned share = 2; share < 100; share *= 3) {
        scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 800000 / share);
        scoped_filter *f = make_filter(kind, 1000000, 1e-3, 1);
        fill(f, &keys);
        scene("%s 1/%u", kind->name, share);
        smaller += expect_same_everywhere(f, 0.01);
    }
    expect(smaller > 1);
}

/* The file is the one of a filter that was built with this geometry, hash and keys. */
TEST_EACH(test_as_built, folds)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 5000);
    scoped_filter *f = make_filter(kind, 100000, 0.01, 1);
    struct path path = temp_path("built");
    perhaps_filter *made;
    fill(f, &keys);
    expect_success(perhaps_shrink_save(f, NULL, path.text));
    scoped_filter *small = open_file(path.text, &load_it);
    expect_success(filter_make(small->kind, &small->body.geometry, &small->hasher, NULL, true,
                               false, &made));
    scoped_filter *built = made;
    fill(built, &keys);
    filter_be_like(built, small); /* which tells, too, that its count is an estimate */
    scoped_bytes bytes = read_file(path.text);
    expect_saves_as(built, &bytes);
}

TEST(test_chains)
{
    const char *const bases[] = { "blocked", "bloom", "counting" };
    const double asked[] = { 0, 0.03, 0.003 };
    const size_t nkeys[] = { 1000, 35000, 120000 };
    unsigned smaller = 0;
    for (unsigned i = 0; i < 27; i++) {
        struct perhaps_options options = { .capacity = 10000,
                                           .fpr = 0.01,
                                           .kind = "chain",
                                           .base = bases[i % 3],
                                           .hashing = { .seed = 1 } };
        scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, nkeys[i / 3 % 3]);
        scoped_filter *f = make_with(&options);
        fill(f, &keys);
        scene("%s %u, asked %g", bases[i % 3], (unsigned)keys.count, asked[i / 9]);
        smaller += expect_same_everywhere(f, asked[i / 9]);
    }
    expect(smaller);
}

TEST_EACH(test_unsupported, folds_not)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 10);
    scoped_filter *f = full_filter(kind, 100, 0.01, &keys);
    struct path path = path_in_folder("unsupported");
    double fpr = 1;
    expect_error(perhaps_shrink_save(f, NULL, path.text), PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_shrink_least_fpr(f, NULL, &fpr), PERHAPS_ERR_UNSUPPORTED);
    expect(fpr == 0 && count_beside(path.text) == 0);
}

/* With the least fpr the filter becomes smaller, with less it does not. */
TEST_EACH(test_least_fpr, folds)
{
    struct rng rng = rng_for(__func__);
    unsigned found = 0;
    for (unsigned i = 0; i < many(40); i++) {
        uint64_t capacity = 5000 + rng_below(&rng, 20000);
        uint64_t nkeys = capacity / 10 + rng_below(&rng, capacity / 2);
        scoped_keys keys = make_keys(RANDOM_KEYS, rng_next(&rng), 0, nkeys);
        scoped_filter *f = make_filter(kind, capacity, 0.01, 1), *small = NULL, *none = NULL;
        double least;
        fill(f, &keys);
        expect_success(perhaps_shrink_least_fpr(f, NULL, &least));
        scene("%s %u of %u: %g", kind->name, (unsigned)keys.count, (unsigned)capacity, least);
        if (least == 0)
            continue;
        found++;
        expect_success(perhaps_shrink(f, least, &small));
        expect_error(perhaps_shrink(f, least * 0.999, &none), PERHAPS_ERR_LIMIT);
    }
    expect(found);
}

/* Has many more bits, and all in one place, than its keys let expect: an enemy's filter. */
static perhaps_filter *make_crafted(const struct perhaps_kind *kind, uint64_t capacity,
                                    struct rng *rng)
{
    struct perhaps_options options = options_for(kind, capacity, 0.01, 0);
    options.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_NONE };
    perhaps_filter *f = make_with(&options);
    for (unsigned i = 0; i < 60; i++) {
        const uint64_t key[2] = { UINT64_MAX / 3, rng_next(rng) };
        perhaps_add(f, key, sizeof key); /* it may be full of these */
    }
    if (!f->kind->folds->keys)
        f->counters->keys = 1;
    return f;
}

/* The promise is also kept where hardly any factor fits, whatever the number of lines is. */
TEST_EACH(test_least_fpr_of_crafted, folds)
{
    struct rng rng = rng_for(__func__);
    unsigned found = 0;
    for (unsigned i = 0; i < many(60); i++) {
        uint64_t capacity = 5000 + rng_below(&rng, 20000);
        scoped_filter *f = make_crafted(kind, capacity, &rng), *small = NULL;
        double least;
        expect_success(perhaps_shrink_least_fpr(f, NULL, &least));
        scene("%s %u: %g", kind->name, (unsigned)capacity, least);
        if (least == 0)
            continue;
        found++;
        expect_success(perhaps_shrink(f, least, &small));
        expect(expect_same(f, least));
    }
    expect(found);
}

/* ---- Plans ------------------------------------------------------------------------------- */

/* Plans choose numbers that many factors divide, whatever the options. */
TEST_EACH(test_plans, folds_rounded)
{
    struct rng rng = rng_for(__func__);
    const double rates[] = { 0.3, 0.01, 1e-3, 1e-6 };
    for (unsigned i = 0; i < many(120); i++) {
        struct perhaps_options options = options_for(
            kind, UINT64_C(1) << (8 + rng_below(&rng, 28)), rates[rng_below(&rng, 4)], 1);
        const struct filter_kind *chosen;
        struct geometry g = { 0 };
        char why[WHY_NBYTES];
        options.capacity += rng_below(&rng, options.capacity);
        options.preference = (enum perhaps_preference)(i % 3);
        expect_success(plan_choose(&options, &chosen, &g, why));
        uint64_t units = chosen->folds->units(&g);
        scene("%s %ju keys, fpr %g, preference %u: %ju", kind->name,
              (uintmax_t)options.capacity, options.fpr, i % 3, (uintmax_t)units);
        expect(units % 720 == 0 || units <= UINT64_C(720) * 201);
        expect(units % 2 == 0 || units <= 402);
    }
}

/* ---- Files ----------------------------------------------------------------------------- */

/* A file with few keys, and what it becomes. */
struct stage {
    struct path path;
    struct bytes large, small;
};

#define scoped_stage __attribute__((cleanup(free_stage))) struct stage

static void free_stage(struct stage *s)
{
    free_bytes(&s->large);
    free_bytes(&s->small);
}

static struct stage make_stage(const char *name)
{
    struct stage s = { .path = path_in_folder(name) };
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 20000);
    scoped_filter *f = make_filter(perhaps_kind_at(0), 300000, 0.01, 1), *small = NULL;
    fill(f, &keys);
    expect_success(perhaps_save(f, s.path.text));
    expect_success(perhaps_shrink(f, 0, &small));
    s.large = read_file(s.path.text);
    s.small = saved_bytes(small);
    return s;
}

/* Expects that the file has these bytes, and that there is no other beside it. */
static void expect_file(const struct stage *s, const struct bytes *wanted)
{
    scoped_bytes file = read_file(s->path.text);
    expect_same_bytes(&file, wanted);
    expect(count_beside(s->path.text) == 1);
}

TEST(test_replaces_itself)
{
    scoped_stage s = make_stage("itself");
    scoped_filter *f = open_file(s.path.text, &map_it);
    errno = 0;
    expect_error(perhaps_shrink_save_new(f, NULL, s.path.text), PERHAPS_ERR_IO);
    expect(errno == EEXIST);
    expect_file(&s, &s.large);
    expect_success(perhaps_shrink_save(f, NULL, s.path.text));
    expect_file(&s, &s.small);
}

/* A filter that is written in place has no checksums, and may change at any moment. */
TEST(test_being_written)
{
    scoped_stage s = make_stage("written");
    scoped_filter *writer = open_file(s.path.text, &in_place);
    scoped_filter *f = open_file(s.path.text, &map_it);
    struct path other = path_below(temp_path("written"), "small");
    errno = 0;
    expect_error(perhaps_shrink_save(f, NULL, other.text), PERHAPS_ERR_IO);
    expect(errno == EBUSY && count_beside(s.path.text) == 1);
    expect_success(perhaps_shrink_save(writer, NULL, other.text));
    scoped_bytes file = read_file(other.text);
    expect_same_bytes(&file, &s.small);
}

static int refuse(void *context, const void *bytes, size_t nbytes)
{
    (void)bytes;
    *(size_t *)context += nbytes;
    return 0;
}

/* A wrong bit in any page is found before anything is written. */
TEST(test_damage)
{
    scoped_stage s = make_stage("damage");
    size_t taken = 0;
    const struct perhaps_sink sink = { refuse, &taken };
    for (size_t at = HEADER_NBYTES + 77; at < s.large.nbytes - 600; at += PAGE_NBYTES / 2) {
        s.large.at[at] ^= 16;
        write_file(s.path.text, s.large.at, s.large.nbytes);
        scoped_filter *f = open_file(s.path.text, &map_it);
        scene("byte %u", (unsigned)at);
        expect_error(perhaps_shrink_save(f, NULL, s.path.text), PERHAPS_ERR_DAMAGED);
        expect_error(perhaps_shrink_write(f, NULL, &sink), PERHAPS_ERR_DAMAGED);
        expect(taken == 0);
        expect_file(&s, &s.large);
        s.large.at[at] ^= 16;
    }
}

/* ---- Failures -------------------------------------------------------------------------- */

struct patience {
    unsigned left;
    uint64_t done, total;
};

static bool stopped(void *context)
{
    struct patience *p = context;
    return p->left-- == 0;
}

static void watch(void *context, uint64_t done, uint64_t total)
{
    struct patience *p = context;
    expect(done >= p->done && done < total);
    p->done = done;
    p->total = total;
}

TEST(test_stopped)
{
    scoped_stage s = make_stage("stopped");
    scoped_filter *f = open_file(s.path.text, &map_it);
    int error = PERHAPS_ERR_STOPPED;
    unsigned calls = 0;
    for (; error; calls++) {
        struct patience p = { .left = calls };
        const struct perhaps_shrink_options options = { .stopped = stopped,
                                                        .progress = watch,
                                                        .context = &p };
        expect_file(&s, &s.large);
        error = perhaps_shrink_save(f, &options, s.path.text);
        expect(!error || error == PERHAPS_ERR_STOPPED);
    }
    expect(calls > 2);
    expect_file(&s, &s.small);
}

/* Lets each allocation fail, then the next one, until the call succeeds; and no block is larger
 * than the small filter: that is all that lies in memory. */
TEST(test_no_memory)
{
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_open_options options = { .allocator = &allocator };
    struct path path = temp_path("memory"), to = temp_path("small");
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 4000000);
    scoped_filter *large = make_filter(perhaps_kind_at(0), 9000000, 0.01, 1);
    fill(large, &keys);
    expect_success(perhaps_save(large, path.text));
    perhaps_filter *f = open_file(path.text, &options);
    uint64_t live = ledger.live;
    int error = PERHAPS_ERR_MEMORY;
    ledger.largest_nbytes = 0;
    for (unsigned i = 1; error; i++) {
        ledger.fail_at = ledger.calls + i;
        error = perhaps_shrink_save(f, NULL, to.text);
        scene("allocation %u: %d, %u blocks", i, error, (unsigned)(ledger.live - live));
        expect((!error || error == PERHAPS_ERR_MEMORY) && ledger.live == live);
    }
    struct stat st;
    expect(!stat(to.text, &st) && (uint64_t)st.st_size >= ledger.largest_nbytes);
    perhaps_free(f);
    expect(ledger.live == 0);
}
