/* remote_test.c - proves that a file of which only some ranges are read answers as the file
 * that is opened; that with checks a wrong byte is found; and what is refused. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include <perhaps.h>
#include <perhaps_fast.h>
#include <perhaps_live.h>
#include <perhaps_remote.h>

enum { KEYS = 30000, HALF = KEYS / 2, FEW = 100 };

/* ---- A file that is served from memory --------------------------------------------------- */

struct server {
    uint8_t *file;
    size_t nbytes;
    uint64_t ranges, served; /* how many ranges were asked for, and bytes */
    size_t piece;            /* so many bytes are brought at once; 0: whole ranges */
};

static struct server serve(const perhaps_filter *f)
{
    struct server s = { .nbytes = (size_t)perhaps_write_nbytes(f) };
    s.file = malloc(s.nbytes);
    expect(s.file);
    expect_success(perhaps_to_bytes(f, s.file, s.nbytes));
    return s;
}

static void bring_range(struct server *s, perhaps_remote *r, size_t number,
                        struct perhaps_range range)
{
    expect(range.nbytes && range.at <= s->nbytes && range.nbytes <= s->nbytes - range.at);
    for (uint64_t done = 0; done < range.nbytes;) {
        const uint64_t left = range.nbytes - done;
        const size_t n = s->piece && s->piece < left ? s->piece : (size_t)left;
        expect_success(perhaps_remote_take(r, number, s->file + range.at + done, n));
        done += n;
    }
    expect_error(perhaps_remote_take(r, number, "x", 1), PERHAPS_ERR_ARGUMENT);
    s->ranges++;
    s->served += range.nbytes;
}

/* Brings what is needed until nothing is.  Returns the error of perhaps_remote_next(). */
static int bring(struct server *s, perhaps_remote *r)
{
    size_t count;
    int error = perhaps_remote_size(r, s->nbytes);
    while (!error) {
        const struct perhaps_range *needs = perhaps_remote_needs(r, &count);
        if (!count)
            break;
        for (size_t i = 0; i + 1 < count; i++)
            expect(needs[i].at + needs[i].nbytes < needs[i + 1].at);
        expect_error(perhaps_remote_next(r), PERHAPS_ERR_ARGUMENT);
        for (size_t i = count; i-- > 0;)
            bring_range(s, r, i, needs[i]);
        error = perhaps_remote_next(r);
    }
    return error;
}

static int open_remote(struct server *s, bool check, perhaps_remote **r)
{
    const struct perhaps_remote_options options = { .check = check };
    expect_success(perhaps_remote_new(&options, r));
    return bring(s, *r);
}

/* Asks for all keys, so many at once.  Returns the first error. */
static int ask_all(struct server *s, perhaps_remote *r, const struct perhaps_keys *keys,
                   size_t at_once, bool *present)
{
    int error = 0;
    for (size_t at = 0, asked; at < keys->count && !error; at += asked) {
        const size_t left = keys->count - at;
        error = perhaps_remote_ask(r, keys, at, left < at_once ? left : at_once, &asked);
        if (!error)
            error = bring(s, r);
        if (!error)
            error = perhaps_remote_answers(r, present + at);
    }
    return error;
}

/* Compares what is answered with what the filter answers. */
static void expect_same(struct server *s, bool check, const perhaps_filter *f,
                        const struct perhaps_keys *keys, size_t at_once)
{
    perhaps_remote *r;
    bool *there = calloc(keys->count, 1), *far = calloc(keys->count, 1);
    expect_success(open_remote(s, check, &r));
    perhaps_contains_many(f, keys, there);
    expect_success(ask_all(s, r, keys, at_once, far));
    expect(!memcmp(there, far, keys->count));
    perhaps_remote_free(r);
    free(there);
    free(far);
}

/* ---- Answers ----------------------------------------------------------------------------- */

/* Kinds whose body must be there as a whole: alone, or as the base of another. */
static bool is_whole(const struct perhaps_options *options)
{
    const char *name = options->base ? options->base : options->kind;
    return !strcmp(name, "elastic");
}

static void try_filter(const perhaps_filter *f, const struct perhaps_options *options,
                       const struct perhaps_keys *keys)
{
    struct server s = serve(f);
    perhaps_remote *r;
    if (is_whole(options) && s.nbytes > PERHAPS_PAGE_NBYTES) {
        expect_error(open_remote(&s, false, &r), PERHAPS_ERR_UNSUPPORTED);
        perhaps_remote_free(r);
    } else {
        const size_t n = keys->count < KEYS / 3 ? keys->count : KEYS / 3;
        const struct perhaps_keys more = some_keys(keys, (keys->count - n) / 2, n);
        expect_same(&s, false, f, &more, n);
        expect_same(&s, true, f, &more, n);
        s.piece = 33;
        const struct perhaps_keys some = some_keys(keys, keys->count / 2 - FEW, 2 * FEW);
        expect_same(&s, false, f, &some, 1);
        expect_same(&s, true, f, &some, 7);
    }
    free(s.file);
}

static void try_kind(const struct perhaps_kind *kind, size_t nkeys, double fpr)
{
    const char *base;
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, nkeys);
    const struct perhaps_keys half = some_keys(&keys, 0, nkeys / 2);
    for (size_t i = 0; base_to_test(kind, i, &base); i++) {
        struct perhaps_options options = options_for(kind, nkeys / 2, fpr, 7);
        options.base = base;
        scene("%s of %s, %zu keys, rate %g", kind->name, base ? base : "no base", nkeys, fpr);
        scoped_filter *f = built_filter(&options, &half);
        try_filter(f, &options, &keys);
    }
}

TEST_EACH(large_files_answer_alike, every_kind)
{
    try_kind(kind, KEYS * 4, 0.001);
}

TEST_EACH(small_files_answer_alike, every_kind)
{
    try_kind(kind, 2 * FEW, 0.01);
}

/* The kind whose keys are integers. */
TEST(a_bitmap_answers_alike)
{
    struct perhaps_options options = { .kind = "bitmap", .bitmap = { 1000, 3000000 } };
    options.hashing.hash = PERHAPS_HASH_INTEGER;
    scoped_filter *f = make_with(&options);
    struct perhaps_key key[FEW];
    char text[FEW][24];
    for (unsigned i = 0; i < FEW; i++) {
        int length = snprintf(text[i], sizeof text[i], "%s%u", i % 10 ? "" : "x", i * 39999);
        key[i] = (struct perhaps_key){ text[i], (size_t)length };
        if (i % 3 && i % 10)
            perhaps_add(f, text[i], (size_t)length);
    }
    const struct perhaps_keys keys = perhaps_keys_each(key, FEW);
    struct server s = serve(f);
    expect_same(&s, false, f, &keys, FEW);
    expect_same(&s, true, f, &keys, 3);
    free(s.file);
}

/* Groups, in which keys of both sides are many or few. */
TEST(groups_answer_alike)
{
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, KEYS * 4);
    struct perhaps_options options = { .kind = "against", .capacity = KEYS * 2, .fpr = 0.01 };
    options.against.group_nbytes = 4;
    perhaps_builder *builder = builder_of(&options, NULL);
    uint8_t text[12] = { 0 };
    const struct perhaps_keys one = perhaps_keys_packed(text, sizeof text, 1);
    for (size_t n = 0; n < 2 * keys.count; n++) {
        const size_t i = n % keys.count;
        const uint32_t group = (uint32_t)(i % 1000 / 10 * 7);
        memcpy(text, &group, sizeof group);
        memcpy(text + 4, key_at(&keys, i), 8);
        const bool listed = i % 10 < (group % 3 ? 1 : 9);
        if (i % 5 == 4 || listed != (n < keys.count))
            continue;
        expect_success(
            (listed ? perhaps_builder_add_many : perhaps_builder_add_others)(builder, &one));
    }
    scoped_filter *f = filter_built(builder);
    struct server s = serve(f);
    uint8_t *all = malloc(keys.count * sizeof text);
    for (size_t i = 0; i < keys.count; i++) {
        const uint32_t group = (uint32_t)(i % 1300 / 10 * 7);
        memcpy(all + i * sizeof text, &group, sizeof group);
        memcpy(all + i * sizeof text + 4, key_at(&keys, i), 8);
    }
    const struct perhaps_keys asked = perhaps_keys_packed(all, sizeof text, keys.count);
    expect_same(&s, false, f, &asked, asked.count);
    expect_same(&s, true, f, &asked, asked.count);
    perhaps_builder_free(builder);
    free(all);
    free(s.file);
}

/* ---- How much is read -------------------------------------------------------------------- */

static perhaps_filter *large_blocked(const struct perhaps_keys *keys)
{
    const struct perhaps_options options = { .kind = "blocked",
                                             .capacity = keys->count,
                                             .fpr = 0.01 };
    return built_filter(&options, keys);
}

TEST(a_key_of_a_blocked_filter_takes_a_line)
{
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, KEYS * 4);
    scoped_filter *f = large_blocked(&keys);
    struct server s = serve(f);
    perhaps_remote *r;
    size_t asked;
    expect_success(open_remote(&s, false, &r));
    expect(s.ranges == 1 && s.served == 4096);
    expect_success(perhaps_remote_ask(r, &keys, 5, 1, &asked));
    expect(asked == 1);
    expect_success(bring(&s, r));
    expect(s.ranges == 2 && s.served == 4096 + 64);
    perhaps_remote_free(r);
    free(s.file);
}

/* Near ranges become one; the more keys, the fewer ranges a key. */
TEST(near_ranges_are_joined)
{
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, KEYS * 4);
    scoped_filter *f = large_blocked(&keys);
    struct server s = serve(f);
    perhaps_remote *r;
    bool *present = calloc(keys.count, 1);
    expect_success(open_remote(&s, false, &r));
    expect_success(ask_all(&s, r, &keys, keys.count, present));
    expect(s.ranges < 10 && s.served <= s.nbytes);
    perhaps_remote_free(r);
    free(present);
    free(s.file);
}

/* ---- Damage ------------------------------------------------------------------------------ */

TEST_EACH(a_wrong_byte_is_found, every_kind)
{
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, KEYS * 4);
    const struct perhaps_keys half = some_keys(&keys, 0, KEYS * 2);
    const struct perhaps_keys few = some_keys(&keys, 0, FEW);
    const struct perhaps_options options = options_for(kind, KEYS * 2, 0.01, 7);
    scoped_filter *f = built_filter(&options, &half);
    struct server s = serve(f);
    bool *present = calloc(keys.count, 1);
    perhaps_remote *r;
    if (open_remote(&s, true, &r) == 0)
        for (size_t at = 4096 + 70; at < s.nbytes - 1000; at += 1 + s.nbytes / 5) {
            scene("%s, byte %zu", kind->name, at);
            s.file[at] ^= 16;
            perhaps_remote *damaged;
            int error = open_remote(&s, true, &damaged);
            if (!error)
                error = ask_all(&s, damaged, &keys, keys.count, present);
            expect_error(error, PERHAPS_ERR_DAMAGED);
            s.file[at] ^= 16;
            if (perhaps_remote_stats_of(damaged, &(struct perhaps_stats){ 0 }) == 0)
                expect_success(ask_all(&s, damaged, &few, 7, present));
            perhaps_remote_free(damaged);
        }
    perhaps_remote_free(r);
    free(present);
    free(s.file);
}

/* Any byte of the header that is wrong; and a file that is cut. */
TEST(a_wrong_header_is_refused)
{
    for (size_t nkeys = FEW; nkeys <= KEYS; nkeys *= KEYS / FEW) {
        scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, nkeys);
        scoped_filter *f = large_blocked(&keys);
        struct server s = serve(f);
        perhaps_remote *r;
        for (size_t at = 0; at < s.nbytes && at < 4096; at++) {
            s.file[at] ^= 1;
            expect(open_remote(&s, false, &r) < 0);
            size_t count;
            perhaps_remote_needs(r, &count);
            expect(!count && perhaps_remote_next(r) == PERHAPS_ERR_ARGUMENT);
            perhaps_remote_free(r);
            s.file[at] ^= 1;
        }
        for (size_t less = 1; less <= s.nbytes; less = 3 * less + 1) {
            struct server cut = { .file = s.file, .nbytes = s.nbytes - less };
            if (!cut.nbytes)
                continue;
            expect(open_remote(&cut, false, &r) < 0);
            perhaps_remote_free(r);
        }
        free(s.file);
    }
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* An allocator of which one call fails, and which counts what is not released. */
struct purse {
    unsigned left; /* so many calls succeed; then one fails, and others succeed again */
    size_t nbytes;
};

static void *purse_allocate(void *context, size_t nbytes)
{
    struct purse *p = context;
    if (p->left-- == 0)
        return NULL;
    p->nbytes += nbytes;
    return calloc(1, nbytes);
}

static void purse_release(void *context, void *memory, size_t nbytes)
{
    struct purse *p = context;
    p->nbytes -= nbytes;
    free(memory);
}

static int open_and_ask(struct server *s, const struct perhaps_keys *keys, struct purse *p,
                        bool *present)
{
    const struct perhaps_allocator allocator = { .allocate = purse_allocate,
                                                 .release = purse_release,
                                                 .context = p };
    const struct perhaps_remote_options options = { .check = true, .allocator = &allocator };
    perhaps_remote *r;
    int error = perhaps_remote_new(&options, &r);
    if (!error)
        error = bring(s, r);
    if (!error)
        error = ask_all(s, r, keys, FEW, present);
    perhaps_remote_free(r);
    expect(!p->nbytes);
    return error;
}

TEST_EACH(without_memory_nothing_is_lost, every_kind)
{
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, KEYS * 2);
    const struct perhaps_options options = options_for(kind, KEYS * 2, 0.001, 7);
    scoped_filter *f = built_filter(&options, &keys);
    struct server s = serve(f);
    const struct perhaps_keys few = some_keys(&keys, 0, FEW);
    bool present[FEW];
    int error = PERHAPS_ERR_MEMORY;
    for (unsigned left = 0; error == PERHAPS_ERR_MEMORY; left++) {
        struct purse p = { .left = left };
        error = open_and_ask(&s, &few, &p, present);
        expect(left < 1000);
    }
    expect(!error || error == PERHAPS_ERR_UNSUPPORTED);
    free(s.file);
}

/* ---- What is refused --------------------------------------------------------------------- */

TEST(calls_out_of_order_are_refused)
{
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, KEYS * 4);
    scoped_filter *f = large_blocked(&keys);
    struct server s = serve(f);
    perhaps_remote *r;
    bool present[1];
    size_t asked;
    struct perhaps_stats stats;
    expect_success(perhaps_remote_new(NULL, &r));
    expect_error(perhaps_remote_ask(r, &keys, 0, 1, &asked), PERHAPS_ERR_ARGUMENT);
    expect_error(perhaps_remote_stats_of(r, &stats), PERHAPS_ERR_ARGUMENT);
    expect_error(perhaps_remote_answers(r, present), PERHAPS_ERR_ARGUMENT);
    expect_error(perhaps_remote_take(r, 1, "x", 1), PERHAPS_ERR_ARGUMENT);
    expect(!*perhaps_remote_note(r) && perhaps_remote_nbytes(r) == 0);
    expect_success(bring(&s, r));
    expect_error(perhaps_remote_size(r, 5), PERHAPS_ERR_DAMAGED);
    expect_success(perhaps_remote_stats_of(r, &stats));
    expect(stats.keys == stats_of(f).keys && !strcmp(stats.plan.kind, "blocked"));
    expect_error(perhaps_remote_ask(r, &keys, keys.count, 1, &asked), PERHAPS_ERR_ARGUMENT);
    expect_error(perhaps_remote_ask(r, &keys, 0, 0, &asked), PERHAPS_ERR_ARGUMENT);
    expect_success(perhaps_remote_ask(r, &keys, 0, 1, &asked));
    expect_error(perhaps_remote_answers(r, present), PERHAPS_ERR_ARGUMENT);
    expect_success(perhaps_remote_ask(r, &keys, 0, 1, &asked));
    expect_success(bring(&s, r));
    expect_success(perhaps_remote_answers(r, present));
    expect(*present);
    perhaps_remote_free(r);
    perhaps_remote_free(NULL);
    const struct perhaps_remote_options odd = { .reserved = { 1 } };
    expect_error(perhaps_remote_new(&odd, &r), PERHAPS_ERR_ARGUMENT);
    expect(!r);
    free(s.file);
}

TEST(a_live_file_is_refused)
{
    const struct path path = temp_path("remote-live");
    const struct perhaps_options options = { .kind = "blocked", .capacity = KEYS, .fpr = 0.01 };
    const struct perhaps_open_options journal = { .mode = PERHAPS_MODE_JOURNAL };
    scoped_filter *f = make_with(&options);
    remove(path.text);
    remove(journal_of(path).text);
    expect_success(perhaps_save(f, path.text));
    scoped_filter *live = open_file(path.text, &journal);
    scoped_bytes bytes = read_file(path.text);
    struct server s = { .file = bytes.at, .nbytes = bytes.nbytes };
    perhaps_remote *r;
    expect_error(open_remote(&s, false, &r), PERHAPS_ERR_JOURNAL);
    perhaps_remote_free(r);
}

TEST(a_secret_is_needed)
{
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, KEYS);
    uint8_t secret[16] = { 7 };
    struct perhaps_options options = { .kind = "blocked", .capacity = KEYS, .fpr = 0.01 };
    options.hashing.hash = PERHAPS_HASH_SIP;
    options.hashing.secret = secret;
    scoped_filter *f = built_filter(&options, &keys);
    struct server s = serve(f);
    struct perhaps_remote_options how = { 0 };
    perhaps_remote *r;
    bool present[KEYS];
    size_t asked;
    expect_error(open_remote(&s, false, &r), PERHAPS_ERR_SECRET);
    perhaps_remote_free(r);
    how.without_secret = true;
    expect_success(perhaps_remote_new(&how, &r));
    expect_success(bring(&s, r));
    expect_error(perhaps_remote_ask(r, &keys, 0, 1, &asked), PERHAPS_ERR_SECRET);
    perhaps_remote_free(r);
    how = (struct perhaps_remote_options){ .hashing = options.hashing };
    expect_success(perhaps_remote_new(&how, &r));
    expect_success(bring(&s, r));
    expect_success(ask_all(&s, r, &keys, KEYS, present));
    for (size_t i = 0; i < KEYS; i++)
        expect(present[i]);
    perhaps_remote_free(r);
    free(s.file);
}
