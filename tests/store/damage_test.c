/* damage_test.c - proves that a file that was cut, changed by accident or made by an enemy is
 * either refused or safe to use.  Accidents must be found, since a flipped bit can deny a key.
 * An enemy can compute the checksums, so his files may be opened; but no query, add or merge on
 * them may crash or read outside the body.
 *
 * The zeros that fill up a header are cut and flipped at some places, which the seed of the
 * test chooses, and at every place if PERHAPS_TEST_EVERY is set; and so are more bits of large
 * files. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"
#include "kinds/kinds.h"

/* Returns a file of few keys in the form of large files: small_test.c has the other one. */
static struct bytes file_of_few(const struct perhaps_kind *kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 30);
    scoped_filter *f = full_filter(kind, keys.count, 0.01, &keys);
    return large_bytes(f);
}

static int open_and_close(const uint8_t *bytes, size_t nbytes,
                          const struct perhaps_open_options *options)
{
    perhaps_filter *f;
    int error = open_bytes(bytes, nbytes, options, &f);
    perhaps_free(f);
    return error;
}

static void expect_refused(const uint8_t *bytes, size_t nbytes)
{
    expect(is_refusal(open_and_close(bytes, nbytes, &map_it)));
    expect(is_refusal(open_and_close(bytes, nbytes, &load_it)));
}

/* ---- Cut and flipped --------------------------------------------------------------------- */

/* Returns where the zeros begin that fill up the header, behind its fields. */
static size_t end_of_fields(const uint8_t *bytes)
{
    return at_section(FIELDS_END, get_number(bytes + AT_SECTIONS, 4) - 1);
}

/* Returns how far the next byte is that a test tries: the next but some within the zeros of the
 * header. */
static size_t step_from(const struct bytes *file, size_t at, struct rng *rng)
{
    const size_t end = header_size(file->at, file->nbytes) - 1, most = 100;
    if (every_case() || at <= end_of_fields(file->at) || at >= end)
        return 1;
    size_t step = 1 + (size_t)rng_below(rng, most);
    return step < end - at ? step : end - at;
}

/* Every length but the right one is refused: all near the fields of the header, its end and
 * the end of the file, some between. */
TEST_EACH(test_every_length, every_kind)
{
    struct rng rng = rng_for(__func__);
    scoped_bytes file = file_of_few(kind);
    file.at = realloc(file.at, file.nbytes + 64);
    expect(file.at);
    memset(file.at + file.nbytes, 0, 64);
    for (size_t nbytes = 0; nbytes <= file.nbytes + 64;) {
        scene("%s, %zu bytes of %zu", kind->name, nbytes, file.nbytes);
        if (nbytes != file.nbytes && is_tried(nbytes, FILES_APART))
            expect_refused(file.at, nbytes);
        if (nbytes > BODY_OFFSET && nbytes + 1000 < file.nbytes)
            nbytes += file.nbytes / many(every_case() ? 10000 : 1000);
        nbytes += step_from(&file, nbytes, &rng);
    }
    expect_success(open_and_close(file.at, file.nbytes, &map_it));
}

/* Checks that a flipped bit in a page of the body is found.  Loading finds it.  Mapping does
 * not read the page, so only perhaps_verify() finds it; except for a filter that grows in
 * place, which reads its directories when it is mapped and may refuse them. */
static void expect_found_by_verify(const uint8_t *bytes, size_t nbytes, size_t at)
{
    scoped_filter *f;
    struct perhaps_verdict verdict;
    int error = open_bytes(bytes, nbytes, &map_it, &f);
    expect_error(open_and_close(bytes, nbytes, &load_it), PERHAPS_ERR_DAMAGED);
    if (error) {
        expect_error(error, PERHAPS_ERR_DAMAGED);
        return;
    }
    expect_error(perhaps_verify(f, &verdict), PERHAPS_ERR_DAMAGED);
    size_t first = header_size(bytes, nbytes), page = (at - first) / PERHAPS_PAGE_NBYTES;
    expect(verdict.damaged == 1);
    expect(verdict.first_damaged == first + page * PERHAPS_PAGE_NBYTES);
}

static void flip_and_check(const struct bytes *file, size_t bit)
{
    size_t at = bit / 8, first = header_size(file->at, file->nbytes);
    uint64_t end = get64(file->at + AT_TABLE_OFFSET);
    file->at[at] = (uint8_t)(file->at[at] ^ 1U << bit % 8);
    if (at >= first && at < end)
        expect_found_by_verify(file->at, file->nbytes, at);
    else
        expect_refused(file->at, file->nbytes);
    file->at[at] = (uint8_t)(file->at[at] ^ 1U << bit % 8);
}

TEST_EACH(test_every_bit, every_kind)
{
    struct rng rng = rng_for(__func__);
    scoped_bytes file = file_of_few(kind);
    /* The step is odd, so that every bit of a byte has its turn. */
    size_t step = file.nbytes / 6000 * 16 + (SANITIZED ? 23 : 3);
    for (size_t bit = (size_t)rng_below(&rng, step); bit < file.nbytes * 8; bit += step) {
        scene("%s, bit %zu", kind->name, bit);
        if (is_tried(bit / 8, FILES_APART))
            flip_and_check(&file, bit);
        bit += 8 * (step_from(&file, bit / 8, &rng) - 1);
    }
}

/* Checks that reseal(), which was written after doc/FORMAT.md, computes the same checksums. */
static void check_seals(const struct bytes *file)
{
    scoped_bytes copy = copy_bytes(file);
    reseal(copy.at, copy.nbytes);
    expect_same_bytes(&copy, file);
}

/* Flipped bits in large files, and two pages that were exchanged: the checksum of a page
 * depends on its number, so that this is found, too. */
TEST(test_many_pages)
{
    struct rng rng = rng_for(__func__);
    EACH_KIND(kind, any_kind) {
        scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 100 * 1000);
        scoped_filter *f = full_filter(kind, 300 * 1000, 0.001, &keys);
        scoped_bytes file = saved_bytes(f);
        check_seals(&file);
        for (unsigned flip = 0; flip < (every_case() ? 200 : 50); flip++) {
            size_t bit = (size_t)rng_below(&rng, file.nbytes * 8);
            scene("%s, bit %zu of a large filter", kind->name, bit);
            flip_and_check(&file, bit);
        }
        uint8_t page[PERHAPS_PAGE_NBYTES];
        uint64_t pages = (get64(file.at + AT_TABLE_OFFSET) - BODY_OFFSET) / sizeof page;
        uint64_t at = BODY_OFFSET + (pages - 2) * sizeof page; /* the first ones may be zeros */
        uint8_t *first = file.at + at;
        memcpy(page, first, sizeof page);
        memcpy(first, first + sizeof page, sizeof page);
        memcpy(first + sizeof page, page, sizeof page);
        expect_error(open_and_close(file.at, file.nbytes, &load_it), PERHAPS_ERR_DAMAGED);
        scoped_filter *exchanged;
        struct perhaps_verdict verdict;
        expect_success(open_bytes(file.at, file.nbytes, &map_it, &exchanged));
        expect_error(perhaps_verify(exchanged, &verdict), PERHAPS_ERR_DAMAGED);
        expect(verdict.damaged == 2 && verdict.first_damaged == at);
    }
}

/* ---- Headers whose checksum is right ----------------------------------------------------- */

/* Changes one field of a small file and makes the header's checksum right again.  Returns the
 * error of opening it, which must be the same for both ways to open. */
static int open_with_field(const struct perhaps_kind *kind, size_t at, uint64_t value,
                           size_t nbytes)
{
    scoped_bytes file = file_of_few(kind);
    put_number(file.at + at, value, nbytes);
    reseal_header(file.at, file.nbytes);
    scene("%s, %llu at offset %zu", kind->name, (unsigned long long)value, at);
    int error = open_and_close(file.at, file.nbytes, &map_it);
    expect_error(open_and_close(file.at, file.nbytes, &load_it), error);
    return error;
}

/* What a later version may write - another version number, an unknown feature, bytes that are 0
 * today - is told as such, and not as damage. */
TEST_EACH(test_later_versions, every_kind)
{
    expect_error(open_with_field(kind, AT_VERSION, 2, 4), PERHAPS_ERR_VERSION);
    expect_error(open_with_field(kind, AT_VERSION, UINT32_MAX, 4), PERHAPS_ERR_VERSION);
    expect_error(open_with_field(kind, AT_VERSION, 0, 4), PERHAPS_ERR_DAMAGED);
    expect_error(open_with_field(kind, AT_FEATURES, 2, 8), PERHAPS_ERR_DAMAGED); /* no id */
    for (unsigned bit = 5; bit < 64; bit++) /* the lower ones are in use */
        expect_error(open_with_field(kind, AT_FEATURES, UINT64_C(1) << bit, 8),
                     PERHAPS_ERR_VERSION);
    for (size_t at = AT_RESERVED; at < AT_KIND; at += 8)
        expect_error(open_with_field(kind, at, 1, 8), PERHAPS_ERR_VERSION);
    scoped_bytes file = file_of_few(kind);
    size_t sections = get_number(file.at + AT_SECTIONS, 4);
    for (size_t at = at_section(AT_KIND, sections); at < BODY_OFFSET; at += 509)
        expect_error(open_with_field(kind, at, 1, 1), PERHAPS_ERR_VERSION);
    expect_error(open_with_field(kind, AT_KIND, 0, 4), PERHAPS_ERR_VERSION);
    expect_error(open_with_field(kind, AT_KIND, 9, 4), PERHAPS_ERR_VERSION); /* fuse */
    expect_error(open_with_field(kind, AT_KIND, 4711, 4), PERHAPS_ERR_VERSION);
    expect_error(open_with_field(kind, AT_HASH, PERHAPS_HASH_COUNT, 4), PERHAPS_ERR_VERSION);
    expect_error(open_with_field(kind, AT_HASH, UINT32_MAX, 4), PERHAPS_ERR_VERSION);
    expect_error(open_with_field(kind, AT_SECTIONS, sections + 1, 4), PERHAPS_ERR_VERSION);
    expect_error(open_with_field(kind, AT_PARENT, 0, 4), PERHAPS_ERR_VERSION);
    size_t last = AT_FIELDS + (PERHAPS_FIELDS_MAX - 1) * 8;
    expect_error(open_with_field(kind, last, 1, 8), PERHAPS_ERR_VERSION);
}

/* Each row puts one field just outside the bounds of doc/FORMAT.md. */
TEST(test_fields_out_of_bounds)
{
    static const struct {
        const char *kind;
        unsigned field;
        uint64_t value;
    } bad[] = {
        { "blocked", 0, 0 }, { "blocked", 0, UINT64_MAX }, { "blocked", 1, 0 },
        { "blocked", 1, 9 }, { "blocked", 2, 0 },          { "blocked", 2, 17 },
        { "bloom", 0, 0 },   { "bloom", 0, UINT64_MAX },   { "bloom", 1, 0 },
        { "bloom", 1, 65 },  { "cuckoo", 0, 0 },           { "cuckoo", 0, 3 },
        { "cuckoo", 1, 3 },  { "cuckoo", 1, 33 },          { "cuckoo", 0, UINT64_MAX - 1 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct filter_kind *kind = kind_by_name(bad[i].kind);
        struct perhaps_options options = { .capacity = 30, .fpr = 0.01, .kind = bad[i].kind };
        struct perhaps_plan plan;
        struct geometry g = { .capacity = 30, .fpr = 0.01 };
        scene("%s, field %u is %llu", bad[i].kind, bad[i].field,
              (unsigned long long)bad[i].value);
        expect_success(perhaps_plan_for(&options, &plan));
        memcpy(g.field, plan.field, sizeof g.field);
        expect_success(kind->set_geometry(&g));
        g.field[bad[i].field] = bad[i].value;
        expect_error(kind->set_geometry(&g), PERHAPS_ERR_LIMIT);
        size_t at = AT_FIELDS + 8 * bad[i].field;
        expect_error(open_with_field(&kind->about, at, bad[i].value, 8), PERHAPS_ERR_DAMAGED);
    }
}

/* A small file that claims a body of 2^44 keys or of 2^60 bytes is refused before anything but
 * its header is allocated. */
TEST_EACH(test_huge_claims, any_kind)
{
    for (unsigned claim = 0; claim < 2; claim++) {
        struct perhaps_options options =
            options_for(kind, PERHAPS_CAPACITY_MAX >> 4, low_rate(kind), 1);
        struct perhaps_plan plan;
        scoped_bytes file = file_of_few(kind);
        expect_success(perhaps_plan_for(&options, &plan));
        uint64_t body = claim ? UINT64_C(1) << 60 : plan.body_nbytes;
        uint64_t pages = body / PERHAPS_PAGE_NBYTES + 1;
        put64(file.at + AT_CAPACITY, plan.capacity);
        for (unsigned f = 0; f < plan.nfields; f++)
            put64(file.at + AT_FIELDS + f * 8, plan.field[f]);
        put64(file.at + AT_BODY_NBYTES, body);
        put64(file.at + AT_TABLE_OFFSET, BODY_OFFSET + body);
        put64(file.at + AT_FILE_NBYTES, BODY_OFFSET + body + (pages + 1) * 8);
        reseal_header(file.at, file.nbytes);

        struct ledger ledger = { 0 };
        struct perhaps_allocator allocator = ledger_allocator(&ledger);
        struct perhaps_open_options open = { .mode = PERHAPS_MODE_LOAD,
                                             .allocator = &allocator };
        expect_error(open_and_close(file.at, file.nbytes, &open), PERHAPS_ERR_DAMAGED);
        expect_error(open_and_close(file.at, file.nbytes, &map_it), PERHAPS_ERR_DAMAGED);
        expect(ledger.largest_nbytes <= 2 * BODY_OFFSET); /* the header */
    }
}

/* Opens a file in both ways: it is refused, or exercise() finds it safe to use. */
static void use_or_refuse(const uint8_t *bytes, size_t nbytes, uint64_t seed)
{
    for (unsigned way = 0; way < 2; way++) {
        scoped_filter *f;
        int error = open_bytes(bytes, nbytes, ways_to_open[way], &f);
        if (!error)
            exercise(f, seed);
        else
            expect(is_refusal(error) || error == PERHAPS_ERR_SECRET);
    }
}

/* Returns a number at which code may fail: the bits of an odd double, a power of two or a
 * number beside it, a number beside the usual one, or a small one. */
static uint64_t extreme_number(struct rng *rng, uint64_t usual)
{
    const double reals[] = { NAN, INFINITY, -1, -0.0, 1, 1e-320, 1e-15, 0.5, 0.9999999999 };
    double real = reals[rng_below(rng, sizeof reals / sizeof *reals)];
    uint64_t bits, power = UINT64_C(1) << rng_below(rng, 64);
    switch (rng_below(rng, 6)) {
    case 0:
        memcpy(&bits, &real, sizeof bits);
        return bits;
    case 1:
        return power;
    case 2:
        return power - 1;
    case 3:
        return -power;
    case 4:
        return usual + rng_below(rng, 5) - 2;
    default:
        return rng_below(rng, 70);
    }
}

/* Headers in which up to three numbers are extreme, with the right checksum. */
TEST(test_hostile_headers)
{
    struct rng rng = rng_for(__func__);
    EACH_KIND(kind, every_kind) {
        scoped_bytes file = file_of_few(kind);
        size_t end = at_section(AT_KIND, get_number(file.at + AT_SECTIONS, 4));
        size_t numbers = (end - AT_FILE_NBYTES) / 8;
        scoped_bytes intact = copy_bytes(&file);
        unsigned rounds =
            has_parts(kind) || grows(kind) ? 100 : 3000; /* those take a hundred times longer */
        for (unsigned round = 0; round < rounds; round++) {
            scene("%s, hostile header %u", kind->name, round);
            for (uint64_t changes = 1 + rng_below(&rng, 3); changes > 0; changes--) {
                size_t at = AT_FILE_NBYTES + 8 * rng_below(&rng, numbers);
                put64(file.at + at, extreme_number(&rng, get64(intact.at + at)));
            }
            reseal_header(file.at, file.nbytes);
            if (is_tried(round, FILES_APART))
                use_or_refuse(file.at, file.nbytes, round);
            memcpy(file.at, intact.at, file.nbytes);
        }
    }
}

/* Makes a filter with a geometry that no plan makes, random bytes and impossible counters.
 * Returns false if set_geometry() refuses the geometry. */
static bool noise_filter(const struct filter_kind *kind, struct rng *rng, perhaps_filter **f)
{
    struct geometry g = { .capacity = 1 + rng_below(rng, 1000) * rng_below(rng, 1000),
                          .fpr = 0.999 / (double)(1 + rng_below(rng, 1 << 20)) };
    struct hasher hasher;
    struct perhaps_hashing hashing = { .seed = 1 + rng_next(rng) };
    for (unsigned i = 0; i < kind_field_count(kind); i++) {
        g.field[i] = rng_below(rng, UINT64_C(1) << rng_below(rng, 14));
        if (rng_below(rng, 2)) /* some kinds have whole buckets only */
            g.field[i] &= ~UINT64_C(127);
    }
    if (kind_set_geometry(kind, &g) || geometry_limit(kind, &g) || g.body_nbytes > 1 << 18)
        return false;
    expect_success(hasher_create(&hasher, &hashing));
    expect_success(filter_make(kind, &g, &hasher, NULL, true, false, f));
    bool dense = rng_below(rng, 2);
    for (uint64_t at = 0; at < g.body_nbytes; at += 8) {
        uint64_t word = rng_next(rng);
        for (unsigned i = 0; i < 2 && dense; i++)
            word |= rng_next(rng);
        memcpy((*f)->body.bytes + at, &word, sizeof word);
    }
    (*f)->counters->keys = rng_below(rng, 2 * g.key_limit);
    (*f)->counters->failed_adds = rng_next(rng);
    (*f)->counters->unmatched_removals = rng_next(rng);
    return true;
}

/* Such filters are safe to use, and their files open.  Kinds that grow in place and composites
 * are left out, since they also check bytes of the body: test_noisy_pages tries them.  A bitmap
 * has a range that agrees with its capacity: bitmap_test.c. */
TEST(test_noise)
{
    struct rng rng = rng_for(__func__);
    const struct filter_kind *kind;
    for (size_t i = 0; (kind = kind_by_index(i)); i++)
        for (unsigned done = 0; !kind->grows && !kind->composite && !kind->exact &&
                                done < (SANITIZED ? 30 : 100);) {
            scoped_filter *f = NULL;
            scene("%s, noise %u", kind->about.name, done);
            if (!noise_filter(kind, &rng, &f))
                continue;
            exercise(f, done);
            scoped_bytes file = saved_bytes(f);
            expect_success(open_and_close(file.at, file.nbytes, &map_it));
            use_or_refuse(file.at, file.nbytes, done++);
        }
}

/* Random bytes in the body, with the right checksums: the file is refused, or it is safe to
 * use, also for kinds that read directories or counters there. */
TEST(test_noisy_pages)
{
    struct rng rng = rng_for(__func__);
    EACH_KIND(kind, any_kind) {
        scoped_bytes file = file_of_few(kind);
        scoped_bytes noisy = copy_bytes(&file);
        uint64_t end = get64(file.at + AT_TABLE_OFFSET);
        for (unsigned round = 0; round < 5; round++) {
            scene("%s, noisy pages %u", kind->name, round);
            memcpy(noisy.at, file.at, file.nbytes);
            size_t at = (size_t)(end - 1 - rng_below(&rng, end - BODY_OFFSET));
            for (size_t n = 1 + rng_next(&rng) % (end - at); n > 0; n--)
                noisy.at[at++] = (uint8_t)(rng_next(&rng) | (round % 2 ? rng_next(&rng) : 0));
            reseal(noisy.at, file.nbytes);
            use_or_refuse(noisy.at, file.nbytes, round);
        }
    }
}
