/* layout_bytes_test.c - proves that perhaps_body_read() gives the bytes of a filter as they
 * are, also while other threads add; and that perhaps_layout_save() turns bytes that the caller
 * keeps into the file that perhaps_save() would write.  If a byte cannot be read, no file
 * appears and an old one stays. */
#include "support.h"
#include <perhaps_sets.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "filter/filter.h"

/* ---- Read ------------------------------------------------------------------------------ */

/* Random pieces of the body equal the same part of the whole; nothing behind a piece is
 * written; a piece that ends outside the body is refused, also if its end overflows. */
TEST(test_read)
{
    struct rng rng = rng_for(__func__);
    scoped_keys keys = make_keys(RANDOM_KEYS, rng_next(&rng), 0, 3000);
    for (int shared = 0; shared < 2; shared++) {
        struct perhaps_options options = {
            .capacity = keys.count, .fpr = 1e-4, .blocked.together = true, .shared = shared
        };
        scoped_filter *f = make_with(&options);
        fill(f, &keys);
        size_t nbytes = stats_of(f).plan.body_nbytes;
        uint8_t *whole = malloc(nbytes), *piece = malloc(nbytes);
        expect(whole && piece);
        expect_success(perhaps_body_read(f, 0, whole, nbytes));
        for (unsigned round = 0; round < 1000; round++) {
            size_t from = rng_below(&rng, nbytes + 1), n = rng_below(&rng, nbytes - from + 1);
            memset(piece, 0xaa, nbytes);
            expect_success(perhaps_body_read(f, from, piece, n));
            expect(!memcmp(piece, whole + from, n));
            expect(n == nbytes || piece[n] == 0xaa);
        }
        expect_error(perhaps_body_read(f, 0, piece, nbytes + 1), PERHAPS_ERR_ARGUMENT);
        expect_error(perhaps_body_read(f, nbytes, piece, 1), PERHAPS_ERR_ARGUMENT);
        expect_error(perhaps_body_read(f, UINT64_MAX, piece, 2), PERHAPS_ERR_ARGUMENT);
        expect_error(perhaps_body_read(f, 1, piece, SIZE_MAX), PERHAPS_ERR_ARGUMENT);
        free(whole);
        free(piece);
    }
}

struct writer {
    perhaps_filter *f;
    const struct perhaps_keys *keys;
    atomic_bool done;
};

static void *write_keys(void *context)
{
    struct writer *w = context;
    fill(w->f, w->keys);
    atomic_store(&w->done, true);
    return NULL;
}

/* Reads the body again and again while a thread adds: a bit that was read once must be in every
 * later reading. */
static void read_beside(bool together, const struct perhaps_keys *keys)
{
    struct perhaps_options options = {
        .capacity = keys->count, .fpr = 0.001, .blocked.together = together, .shared = true
    };
    if (together)
        options.preference = PERHAPS_PREFER_COMPACT;
    struct writer w = { .f = make_with(&options), .keys = keys };
    size_t nbytes = stats_of(w.f).plan.body_nbytes;
    uint8_t *before = calloc(1, nbytes), *now = malloc(nbytes);
    pthread_t thread;
    expect(before && now && !pthread_create(&thread, NULL, write_keys, &w));
    bool done;
    do {
        done = atomic_load(&w.done);
        expect_success(perhaps_body_read(w.f, 0, now, nbytes));
        for (size_t i = 0; i < nbytes; i++)
            expect(!(before[i] & ~now[i]));
        memcpy(before, now, nbytes);
    } while (!done);
    expect(!pthread_join(thread, NULL));
    expect_success(perhaps_body_read(w.f, 0, now, nbytes));
    expect(!memcmp(before, now, nbytes));
    free(before);
    free(now);
    perhaps_free(w.f);
}

TEST(test_read_beside_adds)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, many(300000));
    for (int together = 0; together < 2; together++)
        read_beside(together, &keys);
}

/* ---- Save ------------------------------------------------------------------------------ */

/* The filter that supplies the bytes, and what was asked of it. */
struct elsewhere {
    const perhaps_filter *f;
    uint64_t next; /* offset that must be asked for next */
    unsigned pieces;
    unsigned fail_at; /* number of the piece whose reading fails, from 1 on; 0: none */
    int error;
};

/* Checks that pieces are asked for in order, and none larger than a page. */
static int read_piece(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    struct elsewhere *e = context;
    expect(offset == e->next && nbytes > 0 && nbytes <= PERHAPS_PAGE_NBYTES);
    e->next += nbytes;
    if (++e->pieces == e->fail_at) {
        errno = ESTALE;
        return e->error;
    }
    return perhaps_body_read(e->f, offset, buffer, nbytes);
}

/* Saves what the caller keeps: here the bytes of a filter. */
static int save_elsewhere(const perhaps_layout *layout, struct elsewhere *e, const char *path)
{
    return perhaps_layout_save(layout, e->f->counters->keys, read_piece, e, path);
}

static perhaps_filter *some_filter(uint64_t capacity, double fpr, bool together,
                                   const struct perhaps_hashing *hashing)
{
    struct perhaps_options options = {
        .capacity = capacity, .fpr = fpr, .blocked.together = together, .hashing = *hashing
    };
    struct perhaps_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, (size_t)capacity);
    perhaps_filter *f = make_with(&options);
    fill(f, &keys);
    free_keys(&keys);
    return f;
}

static void expect_same_file(const perhaps_filter *f, const char *path)
{
    scoped_bytes saved = read_file(path), wanted = saved_bytes(f);
    expect(saved.nbytes == wanted.nbytes && !memcmp(saved.at, wanted.at, wanted.nbytes));
}

/* Of one line for a key and of several, of one page and of many, with and without a secret. */
TEST(test_same_file)
{
    const uint8_t secret[16] = "sixteen secrets";
    const struct perhaps_hashing hashings[] = {
        { .seed = test_seed() },
        { .hash = PERHAPS_HASH_SIP, .secret = secret },
    };
    const struct {
        double capacity, fpr;
        bool together;
    } cases[] = {
        { 1, 0.5, false },     { 100, 0.01, false },  { 1000, 1e-4, true },
        { 50000, 1e-6, true }, { 60000, 0.01, true }, { 123456, 1e-8, true },
    };
    struct path path = temp_path("elsewhere");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t h = 0; h < sizeof hashings / sizeof *hashings; h++) {
            scene("%g keys at %g, hash %zu", cases[i].capacity, cases[i].fpr, h);
            scoped_filter *f = some_filter((uint64_t)cases[i].capacity, cases[i].fpr,
                                           cases[i].together, &hashings[h]);
            struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                    .hashing = hashings[h] };
            struct elsewhere e = { .f = f };
            scoped_layout *layout = layout_of(f);
            expect_success(save_elsewhere(layout, &e, path.text));
            expect(e.next == stats_of(f).plan.body_nbytes);
            expect_same_file(f, path.text);
            scoped_filter *opened = open_file(path.text, &options);
            expect(perhaps_equal(f, opened));
            expect_same_counters(f, opened);
        }
}

/* Bodies of one line, of a line less than a page, of whole pages, and of a line more. */
TEST(test_any_size)
{
    const uint64_t page_lines = PERHAPS_PAGE_NBYTES / PERHAPS_LINE_NBYTES;
    const uint64_t lines[] = { 1, page_lines - 1, page_lines, page_lines + 1, 3 * page_lines };
    struct path path = temp_path("any size");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct perhaps_options options = { .capacity = 1000, .fpr = 0.3 };
        struct perhaps_description d;
        perhaps_layout *layout;
        scene("%u lines", (unsigned)lines[i]);
        expect_success(perhaps_layout_create(&options, &layout));
        perhaps_layout_describe(layout, &d);
        perhaps_layout_free(layout);
        d.field[0] = lines[i];
        expect_success(perhaps_layout_restore(&d, NULL, &layout));
        scoped_filter *source;
        struct perhaps_open_options writable = { .mode = PERHAPS_MODE_LOAD };
        options.capacity = 200000;
        options.fpr = 0.001;
        source = make_with(&options); /* empty and larger: only its first bytes are read */
        struct elsewhere e = { .f = source };
        expect_success(save_elsewhere(layout, &e, path.text));
        expect(e.pieces == (lines[i] + page_lines - 1) / page_lines);
        scoped_filter *opened = open_file(path.text, &writable);
        expect(stats_of(opened).plan.field[0] == lines[i] && stats_of(opened).keys == 0);
        perhaps_layout_free(layout);
    }
}

/* The reader fails at each piece in turn: its error and errno reach the caller, the old file
 * stays as it was, and no other file is left beside it. */
TEST(test_failing_reader)
{
    const struct perhaps_hashing hashing = { .seed = 1 };
    struct path folder = temp_path("failing reader");
    expect(!mkdir(folder.text, 0777));
    struct path path = path_below(folder, "filter");
    scoped_filter *old = some_filter(100, 0.01, false, &hashing);
    scoped_filter *f = some_filter(200000, 1e-4, true, &hashing);
    scoped_layout *layout = layout_of(f);
    struct elsewhere e = { .f = f };
    expect_success(perhaps_save(old, path.text));
    expect_success(save_elsewhere(layout, &e, path_below(folder, "whole").text));
    expect(e.pieces > 3 && !remove(path_below(folder, "whole").text));
    for (unsigned piece = 1, pieces = e.pieces; piece <= pieces; piece++) {
        scene("piece %u", piece);
        e = (struct elsewhere){ .f = f, .fail_at = piece, .error = -70 - (int)piece };
        errno = 0;
        expect(save_elsewhere(layout, &e, path.text) == e.error && errno == ESTALE);
        expect(e.pieces == piece && count_beside(path.text) == 1);
        expect_same_file(old, path.text);
        e.pieces = 0;
        e.next = 0;
        expect(save_elsewhere(layout, &e, path_below(folder, "new").text) == e.error);
        expect(count_beside(path.text) == 1);
    }
}

/* The number of keys may be up to twice the key limit, as in every file (container.h); a larger
 * one is refused. */
TEST(test_too_many_keys)
{
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01 };
    struct path path = temp_path("too many");
    perhaps_filter *opened;
    scoped_filter *f = make_with(&options);
    scoped_layout *layout = layout_of(f);
    struct elsewhere e = { .f = f };
    const uint64_t sound[] = { 0, 1, 1000, 1900 };
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
        e.next = 0;
        expect_success(perhaps_layout_save(layout, sound[i], read_piece, &e, path.text));
        expect_success(perhaps_open(path.text, NULL, &opened));
        expect(stats_of(opened).keys == sound[i]);
        perhaps_free(opened);
    }
    const uint64_t wrong[] = { 3000, UINT64_MAX };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_error(perhaps_layout_save(layout, wrong[i], read_piece, &e, path.text),
                     PERHAPS_ERR_ARGUMENT);
}

/* The body is never in memory as a whole.  Only the header, one page, the table of checksums
 * and a piece of 2 MiB of the file are allocated. */
TEST(test_memory)
{
    enum { PIECE_NBYTES = 2 << 20 };
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_options options = {
        .capacity = 2000000, .fpr = 1e-4, .blocked.together = true, .allocator = &allocator
    };
    struct path path = temp_path("memory");
    perhaps_filter *f = make_with(&options);
    perhaps_layout *layout = layout_of(f);
    struct elsewhere e = { .f = f };
    uint64_t body_nbytes = stats_of(f).plan.body_nbytes, live = ledger.live;
    ledger.largest_nbytes = 0;
    expect_success(save_elsewhere(layout, &e, path.text));
    expect(body_nbytes > 5000000 && ledger.largest_nbytes < 2 * PIECE_NBYTES &&
           ledger.live == live);
    for (uint64_t number = 1; number <= 3; number++) { /* a filter; a piece; then the others */
        scene("allocation %u fails", (unsigned)number);
        ledger.fail_at = ledger.calls + number;
        e.next = 0;
        expect_error(save_elsewhere(layout, &e, path.text), PERHAPS_ERR_MEMORY);
        expect(ledger.live == live);
    }
    ledger.fail_at = 0;
    e.next = 0;
    uint64_t calls = ledger.calls;
    expect_success(save_elsewhere(layout, &e, path.text));
    expect(ledger.calls == calls + 3);
    perhaps_layout_free(layout);
    perhaps_free(f);
    expect(ledger.live == 0 && ledger.live_nbytes == 0);
}
