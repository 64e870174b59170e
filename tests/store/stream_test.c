/* stream_test.c - proves that perhaps_write() gives a sink the bytes of the file, in order,
 * that perhaps_write_range() gives any part of them, that perhaps_digest() tells filters apart,
 * and that perhaps_read() makes the filter again from a source that cannot seek.  An error at
 * any call, a source that ends at any byte, and any flipped bit must be reported, and must
 * leave neither a filter nor memory. */
#include "support.h"
#include <perhaps_window.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "filter/filter.h"
#include "hostile.h"

/* An error of the caller, which is none of enum perhaps_error. */
enum { OWN_ERROR = -1234 };

/* ---- Streams in memory ------------------------------------------------------------------- */

struct stream {
    uint8_t *bytes;
    size_t nbytes, room;
    size_t at; /* bytes that were read so far */
    unsigned calls;
    unsigned fail_at; /* the number of the call that fails, from 1 on; 0: none */
    int error;        /* what that call returns */
};

static bool stream_fails(struct stream *s)
{
    s->calls++;
    expect(!s->fail_at || s->calls <= s->fail_at); /* the library stops at the first error */
    if (s->calls != s->fail_at)
        return false;
    errno = ENOSPC;
    return true;
}

static int stream_write(void *context, const void *bytes, size_t nbytes)
{
    struct stream *s = context;
    if (stream_fails(s))
        return s->error;
    expect(nbytes > 0);
    while (s->room - s->nbytes < nbytes) {
        s->room = 2 * s->room + nbytes;
        s->bytes = realloc(s->bytes, s->room);
        expect(s->bytes);
    }
    memcpy(s->bytes + s->nbytes, bytes, nbytes);
    s->nbytes += nbytes;
    return 0;
}

static int stream_read(void *context, void *bytes, size_t nbytes)
{
    struct stream *s = context;
    if (stream_fails(s))
        return s->error;
    expect(nbytes > 0);
    if (nbytes > s->nbytes - s->at) {
        s->at = s->nbytes;
        return PERHAPS_ERR_DAMAGED;
    }
    memcpy(bytes, s->bytes + s->at, nbytes);
    s->at += nbytes;
    return 0;
}

static int write_to(struct stream *s, const perhaps_filter *f)
{
    const struct perhaps_sink sink = { .write = stream_write, .context = s };
    return perhaps_write(f, &sink);
}

#define scoped_stream __attribute__((cleanup(free_stream))) struct stream

static void free_stream(struct stream *s)
{
    free(s->bytes);
}

static struct stream stream_of(const perhaps_filter *f)
{
    struct stream s = { 0 };
    expect_success(write_to(&s, f));
    s.calls = 0;
    return s;
}

/* The same in the form of large files. */
static struct stream large_stream_of(const perhaps_filter *f)
{
    struct bytes bytes = large_bytes(f);
    return (struct stream){ .bytes = bytes.at, .nbytes = bytes.nbytes };
}

/* Reads a filter from where the stream is.  'nbytes' is the size that the source tells; 0: it
 * does not know. */
static int read_on(struct stream *s, uint64_t nbytes,
                   const struct perhaps_open_options *options, perhaps_filter **f)
{
    const struct perhaps_source source = { .read = stream_read,
                                           .context = s,
                                           .nbytes = nbytes };
    *f = (perhaps_filter *)s; /* a failed call must set it to NULL */
    int error = perhaps_read(&source, options, f);
    expect(!error || !*f);
    return error;
}

/* Does so from the begin of the stream. */
static int read_from(struct stream *s, uint64_t nbytes,
                     const struct perhaps_open_options *options, perhaps_filter **f)
{
    s->at = 0;
    s->calls = 0;
    return read_on(s, nbytes, options, f);
}

/* ---- Filters ----------------------------------------------------------------------------- */

/* Makes a filter with keys in it; one that grows gets so many that it has grown. */
static perhaps_filter *some_filter(const struct perhaps_kind *kind, uint64_t capacity)
{
    size_t count = grows(kind) ? 5 * capacity : capacity / 2;
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, count);
    return full_filter(kind, capacity, 0.01, &keys);
}

/* Options for reading with an allocator that counts, so that a leak is seen. */
struct loading {
    struct ledger ledger;
    struct perhaps_allocator allocator;
    struct perhaps_open_options options;
};

static void loading_begin(struct loading *l)
{
    *l = (struct loading){ .allocator = ledger_allocator(&l->ledger) };
    l->options =
        (struct perhaps_open_options){ .mode = PERHAPS_MODE_LOAD, .allocator = &l->allocator };
}

static void expect_nothing_left(const struct loading *l)
{
    expect(l->ledger.live == 0 && l->ledger.live_nbytes == 0);
}

/* ---- What works -------------------------------------------------------------------------- */

/* The sink gets the bytes that perhaps_save() writes; a source gives the filter again, whether
 * or not it knows its size. */
TEST_EACH(test_bytes_of_the_file, any_kind)
{
    const uint64_t capacities[] = { 1, 30, 3000, 100 * 1000 };
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        scoped_filter *f = some_filter(kind, capacities[i]);
        scoped_stream s = stream_of(f);
        scene("%s for %d keys", kind->name, (int)capacities[i]);
        expect_saves_as(f, &(struct bytes){ s.bytes, s.nbytes });
        for (unsigned known = 0; known < 2; known++) {
            scoped_filter *read;
            expect_success(read_from(&s, known ? s.nbytes : 0, NULL, &read));
            expect(s.at == s.nbytes && perhaps_equal(read, f));
            expect_same_counters(read, f);
            expect_success(perhaps_add(read, "one more", 8));
        }
    }
}

/* Filters of all kinds lie one behind the other, with other bytes between them: reading one
 * must take exactly its bytes. */
TEST(test_one_behind_the_other)
{
    scoped_stream s = { 0 };
    perhaps_filter *none;
    char text[4];
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = some_filter(kind, 300);
        expect_success(write_to(&s, f));
        expect_success(stream_write(&s, "text", 4));
    }
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = some_filter(kind, 300), *read;
        expect_success(read_on(&s, 0, NULL, &read));
        expect(perhaps_equal(read, f));
        expect(!stream_read(&s, text, 4) && !memcmp(text, "text", 4));
    }
    expect(s.at == s.nbytes);
    expect_error(read_on(&s, 0, NULL, &none), PERHAPS_ERR_DAMAGED);
}

/* ---- Some of the bytes ------------------------------------------------------------------- */

static struct stream range_of(const perhaps_filter *f, uint64_t first, uint64_t nbytes)
{
    struct stream s = { 0 };
    const struct perhaps_sink sink = { .write = stream_write, .context = &s };
    expect_success(perhaps_write_range(f, first, nbytes, &sink));
    return s;
}

/* Checks that these bytes are those of the whole. */
static void expect_range(const perhaps_filter *f, const struct stream *whole, uint64_t first,
                         uint64_t nbytes)
{
    scoped_stream range = range_of(f, first, nbytes);
    uint64_t left = first < whole->nbytes ? whole->nbytes - first : 0;
    expect(range.nbytes == (nbytes < left ? nbytes : left));
    expect(!range.nbytes || !memcmp(range.bytes, whole->bytes + first, range.nbytes));
}

/* Cuts the bytes of a filter at random into pieces of about this size. */
static void expect_pieces(const perhaps_filter *f, const struct stream *whole, uint64_t each,
                          struct rng *rng)
{
    uint64_t at = 0, n = 0;
    for (; at < whole->nbytes; at += n) {
        n = 1 + rng_below(rng, 2 * each);
        expect_range(f, whole, at, n);
    }
    expect_range(f, whole, at, n);
    expect_range(f, whole, at, UINT64_MAX);
}

static void expect_ranges(const perhaps_filter *f, struct rng *rng)
{
    scoped_stream whole = stream_of(f);
    expect(perhaps_write_nbytes(f) == whole.nbytes);
    for (uint64_t each = 1 + whole.nbytes / 50; each; each = each > 100000 ? 0 : 4 * each)
        expect_pieces(f, &whole, each, rng);
    for (unsigned i = 0; i < 50; i++) {
        expect_range(f, &whole, rng_below(rng, whole.nbytes), rng_below(rng, 100));
        expect_range(f, &whole, rng_below(rng, whole.nbytes), UINT64_MAX - rng_below(rng, 2));
        expect_range(f, &whole, whole.nbytes - rng_below(rng, 100), rng_below(rng, 100));
        expect_range(f, &whole, UINT64_MAX - rng_below(rng, 100), rng_below(rng, 200));
    }
    expect_range(f, &whole, 0, UINT64_MAX);
    expect_range(f, &whole, 0, 0);
}

TEST_EACH(test_ranges, every_kind)
{
    const uint64_t capacities[] = { 1, 30, 3000, 100 * 1000 };
    struct rng rng = rng_for(kind->name);
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        scene("%s for %d keys", kind->name, (int)capacities[i]);
        scoped_filter *f = some_filter(kind, capacities[i]);
        expect_ranges(f, &rng);
    }
}

/* Many sections: the header takes more than one page.  And an elastic filter that has grown,
 * whose body lies in many places, in a window. */
TEST(test_ranges_of_composites)
{
    const char *const bases[] = { "chain", "elastic" };
    struct rng rng = rng_for("composites");
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, SANITIZED ? 20000 : 200 * 1000);
    for (unsigned i = 0; i < 2; i++) {
        struct perhaps_options options = { .capacity = 100,
                                           .fpr = 0.01,
                                           .kind = "window",
                                           .base = bases[i],
                                           .window = { .generations = 10, .time = 10 } };
        scoped_filter *f = make_with(&options);
        for (unsigned piece = 0; piece < 10; piece++) {
            struct perhaps_keys some =
                some_keys(&keys, keys.count / 10 * piece, keys.count / 10);
            fill(f, &some);
            expect_success(perhaps_rotate(f));
        }
        expect_ranges(f, &rng);
    }
}

/* An error of the sink comes back, whichever part of the bytes it gets. */
TEST_EACH(test_failing_ranges, any_kind)
{
    scoped_filter *f = some_filter(kind, 3000);
    uint64_t nbytes = perhaps_write_nbytes(f);
    for (uint64_t first = 0; first < nbytes; first += 1 + nbytes / 100) {
        struct stream s = { .fail_at = 1, .error = OWN_ERROR };
        const struct perhaps_sink sink = { .write = stream_write, .context = &s };
        expect_error(perhaps_write_range(f, first, 1, &sink), OWN_ERROR);
        expect_success(perhaps_write_range(f, first, 0, &sink));
    }
}

/* ---- Digests ----------------------------------------------------------------------------- */

struct digest {
    uint8_t bytes[16];
};

static struct digest digest_of(const perhaps_filter *f)
{
    struct digest d;
    perhaps_digest(f, d.bytes);
    return d;
}

static bool same_digest(const perhaps_filter *a, const perhaps_filter *b)
{
    struct digest x = digest_of(a), y = digest_of(b);
    return !memcmp(&x, &y, sizeof x);
}

/* A filter, its copy and what is read from its bytes have one digest.  Filters of other keys,
 * another seed or another capacity have others.  What failed does not count. */
TEST_EACH(test_digest, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 300),
                others = make_keys(TEXT_KEYS, test_seed(), 1000, 300);
    struct perhaps_options options = options_for(kind, 300, 0.01, test_seed() + 1);
    bool built = is_built(kind);
    scoped_filter *f = full_filter(kind, 300, 0.01, &keys), *copy = clone_of(f), *read,
                  *other = full_filter(kind, 300, 0.01, &others),
                  *reseeded = built ? built_filter(&options, &keys) : make_with(&options),
                  *larger = full_filter(kind, 200 * 1000, 0.01, &keys);
    scoped_stream s = stream_of(f);
    expect_success(read_from(&s, 0, NULL, &read));
    if (!built)
        fill(reseeded, &keys);
    perhaps_remove(copy, "no such key", 11);
    expect(perhaps_equal(f, copy) && same_digest(f, copy) && same_digest(f, read));
    expect(!same_digest(f, other) && !same_digest(f, reseeded));
    expect(built || !same_digest(f, larger)); /* a builder plans for the keys that there are */
}

/* Filters whose bodies differ in one bit have different digests. */
TEST_EACH(test_digest_sees_each_bit, any_kind)
{
    scoped_filter *f = some_filter(kind, 300), *copy = clone_of(f);
    perhaps_filter *part =
        copy->parts->count ? copy->parts->part[copy->parts->count - 1] : copy;
    size_t from = part->state ? part->body.geometry.body_nbytes - 64 * LINE_NBYTES : 0;
    for (size_t at = from; at < part->body.geometry.body_nbytes - LINE_NBYTES; at += 7) {
        part->body.bytes[at] ^= 1;
        expect(perhaps_equal(f, copy) == same_digest(f, copy));
        part->body.bytes[at] ^= 1;
    }
    expect(same_digest(f, copy));
}

/* ---- Pipes and files --------------------------------------------------------------------- */

static int read_pipe(void *context, void *bytes, size_t nbytes)
{
    const int *fd = context;
    for (char *at = bytes, *end = at + nbytes; at < end;) {
        ssize_t n = read(*fd, at, (size_t)(end - at));
        if (n <= 0)
            return n ? PERHAPS_ERR_IO : PERHAPS_ERR_DAMAGED;
        at += n;
    }
    return 0;
}

TEST_EACH(test_pipe, any_kind)
{
    enum { PIPE_NBYTES = 1 << 20 }; /* what the pipe holds without a reader */
    perhaps_filter *read;
    scoped_filter *f = some_filter(kind, 30);
    int ends[2];
    expect(!pipe(ends) && fcntl(ends[1], F_SETPIPE_SZ, PIPE_NBYTES) >= PIPE_NBYTES);
    const struct perhaps_source source = { .read = read_pipe, .context = &ends[0] };
    scoped_bytes file = saved_bytes(f);
    expect(file.nbytes < PIPE_NBYTES);
    expect_success(perhaps_save_to(f, ends[1]));
    expect_success(perhaps_read(&source, NULL, &read));
    expect(perhaps_equal(read, f) && !close(ends[1]));
    perhaps_free(read);
    expect_error(perhaps_read(&source, NULL, &read), PERHAPS_ERR_DAMAGED);
    expect(!close(ends[0]));
}

/* A file that is open for writing in place has no checksums of its pages, and can be read
 * without them. */
TEST(test_live)
{
    struct path path = temp_path("live");
    scoped_filter *f = some_filter(perhaps_kind_at(0), 3000), *live, *read;
    expect_success(perhaps_save(f, path.text));
    expect_success(perhaps_open(path.text, &in_place, &live));
    expect_success(perhaps_add(live, "one more", 8));
    scoped_bytes file = read_file(path.text);
    struct stream s = { .bytes = file.at, .nbytes = file.nbytes };
    expect_success(read_from(&s, 0, NULL, &read));
    expect(perhaps_equal(read, live) && perhaps_contains(read, "one more", 8));
    expect_same_counters(read, live);
}

/* A source can only be loaded: other modes are refused before anything is read.  A filter with
 * a secret needs it here as in perhaps_open(). */
TEST(test_options)
{
    struct perhaps_options make = { .capacity = 100,
                                    .fpr = 0.01,
                                    .hashing = { .hash = PERHAPS_HASH_SIP } };
    scoped_filter *f = make_with(&make);
    perhaps_filter *read;
    struct perhaps_open_options options = { .mode = PERHAPS_MODE_READ };
    uint8_t secret[16];
    expect_success(perhaps_add(f, "key", 3));
    scoped_stream s = stream_of(f);
    expect_error(read_from(&s, 0, &options, &read), PERHAPS_ERR_ARGUMENT);
    options.mode = PERHAPS_MODE_IN_PLACE;
    expect_error(read_from(&s, 0, &options, &read), PERHAPS_ERR_ARGUMENT);
    options.mode = PERHAPS_MODE_LOAD;
    options.reserved[3] = 1;
    expect_error(read_from(&s, 0, &options, &read), PERHAPS_ERR_ARGUMENT);
    options.reserved[3] = 0;
    expect(!s.at);
    expect_error(read_from(&s, 0, NULL, &read), PERHAPS_ERR_SECRET);
    options.without_secret = true;
    expect_success(read_from(&s, 0, &options, &read));
    expect(perhaps_equal(read, f) && perhaps_contains(read, "other", 5));
    perhaps_free(read);
    expect_success(perhaps_secret(f, secret));
    options.hashing.secret = secret;
    expect_success(read_from(&s, 0, &options, &read));
    expect(perhaps_contains(read, "key", 3) && !perhaps_contains(read, "other", 5));
    perhaps_free(read);
}

/* ---- What fails -------------------------------------------------------------------------- */

/* Whichever call of the sink fails, its error comes back unchanged, with its errno. */
TEST_EACH(test_failing_sink, any_kind)
{
    const int errors[] = { OWN_ERROR, PERHAPS_ERR_IO };
    scoped_filter *f = some_filter(kind, 3000);
    const unsigned calls =
        perhaps_write_nbytes(f) < PERHAPS_PAGE_NBYTES ? 1 : 3; /* its parts */
    for (unsigned i = 0; i < 2; i++)
        for (unsigned number = 1;; number++) {
            struct stream s = { .fail_at = number, .error = errors[i] };
            scene("%s, call %u fails", kind->name, number);
            errno = 0;
            int error = write_to(&s, f);
            free(s.bytes);
            expect(number > calls - 1 || error);
            if (!error)
                break;
            expect(error == errors[i] && errno == ENOSPC && s.calls == number);
        }
}

/* The same for a source, and the memory is released. */
TEST_EACH(test_failing_source, any_kind)
{
    struct loading l;
    scoped_filter *f = some_filter(kind, 3000);
    perhaps_filter *read;
    scoped_stream s = stream_of(f);
    s.error = OWN_ERROR;
    loading_begin(&l);
    for (unsigned number = 1;; number++) {
        scene("%s, call %u fails", kind->name, number);
        s.fail_at = number;
        errno = 0;
        int error = read_from(&s, number % 2 ? s.nbytes : 0, &l.options, &read);
        expect(number > 3 || error); /* header, body, checksums */
        if (!error)
            break;
        expect(error == OWN_ERROR && errno == ENOSPC && s.calls == number);
        expect_nothing_left(&l);
    }
    expect(perhaps_equal(read, f));
    perhaps_free(read);
    expect_nothing_left(&l);
}

/* Returns the next offset to try: every byte of the header and near the end, and one in 61 of
 * the others. */
static size_t next_byte(size_t at, size_t nbytes)
{
    return at < 300 || at > nbytes - 50 ? at + 1 : at + 61 < nbytes ? at + 61 : nbytes - 1;
}

/* A source that ends too early is refused: with an unknown size, with its own size, and with
 * the size that the whole filter would have.  If the size is known and too small, nothing but a
 * long header is allocated. */
TEST_EACH(test_every_end, any_kind)
{
    struct loading l;
    scoped_filter *f = some_filter(kind, 30);
    perhaps_filter *read;
    scoped_stream s = stream_of(f);
    loading_begin(&l);
    const size_t whole = s.nbytes;
    for (size_t end = 0; end < whole; end = next_byte(end, whole))
        for (unsigned known = 0; known < 3; known++) {
            scene("%s ends at %zu, known %u", kind->name, end, known);
            s.nbytes = end;
            uint64_t told = known == 0 ? 0 : known == 1 ? end : whole, before = l.ledger.calls;
            int error = read_from(&s, told, &l.options, &read);
            bool is_short = known == 1 && end > 0 && end < 8;
            expect_error(error, is_short ? PERHAPS_ERR_FORMAT : PERHAPS_ERR_DAMAGED);
            expect(known != 1 || l.ledger.calls - before <= 1); /* for a long header */
            expect_nothing_left(&l);
        }
    s.nbytes = whole;
    expect_error(read_from(&s, whole + 1, &l.options, &read), PERHAPS_ERR_DAMAGED);
    expect_nothing_left(&l);
}

/* A flipped bit anywhere is found, since a stream is read whole. */
TEST_EACH(test_flipped_bits, any_kind)
{
    struct loading l;
    scoped_filter *f = some_filter(kind, 30);
    perhaps_filter *read;
    scoped_stream s = stream_of(f);
    loading_begin(&l);
    for (size_t at = 0; at < s.nbytes; at = next_byte(at, s.nbytes)) {
        uint8_t flip = (uint8_t)(1 << at % 8);
        scene("%s, byte %zu", kind->name, at);
        s.bytes[at] ^= flip;
        int error = read_from(&s, at % 3 ? s.nbytes : 0, &l.options, &read);
        s.bytes[at] ^= flip;
        expect(is_refusal(error));
        expect_nothing_left(&l);
    }
}

TEST_EACH(test_failing_memory, any_kind)
{
    struct loading l;
    scoped_filter *f = some_filter(kind, 300);
    perhaps_filter *read, *again;
    scoped_stream s = stream_of(f);
    loading_begin(&l);
    for (uint64_t number = 1;; number++) {
        scene("%s, allocation %d fails", kind->name, (int)number);
        l.ledger.fail_at = l.ledger.calls + number;
        int error = read_from(&s, number % 2 ? s.nbytes : 0, &l.options, &read);
        l.ledger.fail_at = 0;
        if (!error)
            break;
        expect_error(error, PERHAPS_ERR_MEMORY);
        expect_nothing_left(&l);
    }
    scoped_stream none = { 0 };
    l.ledger.failing = true;
    expect_error(write_to(&none, read), PERHAPS_ERR_MEMORY);
    expect(!none.calls);
    l.ledger.failing = false;
    expect_success(write_to(&none, read));
    expect_success(read_from(&none, 0, NULL, &again));
    expect(perhaps_equal(again, f));
    perhaps_free(again);
    perhaps_free(read);
    expect_nothing_left(&l);
}

/* ---- Headers of an enemy ----------------------------------------------------------------- */

/* A header that claims a body of 2^46 bytes and agrees with itself.  If the source tells its
 * size, the header is refused before anything else is allocated; if not, the allocator
 * refuses. */
TEST(test_huge_claims)
{
    const uint64_t lines = UINT64_C(1) << 40, body = lines * LINE_NBYTES,
                   pages = body / PERHAPS_PAGE_NBYTES;
    struct loading l;
    struct perhaps_options make = { .kind = "blocked", .capacity = 30, .fpr = 0.01 };
    scoped_filter *f = make_with(&make);
    perhaps_filter *read;
    scoped_stream s = large_stream_of(f);
    put64(s.bytes + AT_FIELDS, lines);
    put64(s.bytes + AT_BODY_NBYTES, body);
    put64(s.bytes + AT_TABLE_OFFSET, BODY_OFFSET + body);
    put64(s.bytes + AT_FILE_NBYTES, BODY_OFFSET + body + (pages + 1) * 8);
    reseal_header(s.bytes, s.nbytes);
    loading_begin(&l);
    l.ledger.most_nbytes = 1 << 20;
    expect_error(read_from(&s, s.nbytes, &l.options, &read), PERHAPS_ERR_DAMAGED);
    expect(l.ledger.calls <= 1); /* for the header */
    expect_error(read_from(&s, 0, &l.options, &read), PERHAPS_ERR_MEMORY);
    expect(l.ledger.largest_nbytes >= body && s.at == BODY_OFFSET);
}

/* Every set of sizes in the header is so large that sums of them overflow: refused. */
TEST_EACH(test_sizes_that_overflow, any_kind)
{
    const size_t places[] = { AT_FILE_NBYTES, AT_TABLE_OFFSET, AT_BODY_OFFSET, AT_BODY_NBYTES };
    enum { PLACES = sizeof places / sizeof *places };
    scoped_filter *f = some_filter(kind, 30);
    perhaps_filter *read;
    scoped_stream s = large_stream_of(f);
    scoped_bytes first = copy_bytes(&(struct bytes){ s.bytes, s.nbytes });
    for (unsigned set = 1; set < 1U << PLACES; set++)
        for (unsigned shift = 0; shift < 4; shift++) {
            scene("%s, places %x, shift %u", kind->name, set, shift);
            memcpy(s.bytes, first.at, s.nbytes);
            for (unsigned i = 0; i < PLACES; i++)
                if (set >> i & 1)
                    put64(s.bytes + places[i], UINT64_MAX >> shift & ~UINT64_C(4095));
            reseal_header(s.bytes, s.nbytes);
            expect_error(read_from(&s, 0, NULL, &read), PERHAPS_ERR_DAMAGED);
        }
}
