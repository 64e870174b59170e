/* check_test.c - proves that a filter that was opened with 'check' never denies a key that was
 * added, even if another process overwrites the file meanwhile: it checks each page before it
 * first reads it, answers "perhaps" for keys on a damaged page, and tells of the damage. */
#include "support.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <perhaps.h>

#include "store/container.h"

enum { KEYS = 40000 };

/* A filter in a file, with keys that are in and keys that are not. */
struct subject {
    const struct perhaps_kind *kind;
    struct perhaps_keys keys, absent;
    struct path path;
    struct bytes file;
};

/* Makes a file of several pages, so that not all keys lie on a damaged one. */
static struct subject subject_of(const struct perhaps_kind *kind)
{
    struct subject s = { .kind = kind,
                         .keys = make_keys(SEQUENTIAL_KEYS, 1, 0, KEYS),
                         .absent = make_keys(SEQUENTIAL_KEYS, 2, 0, KEYS),
                         .path = temp_path("checked") };
    struct perhaps_options options = options_for(kind, 2 * KEYS, low_rate(kind), 7);
    scoped_filter *f = built_filter(&options, &s.keys);
    s.file = saved_bytes(f);
    return s;
}

#define scoped_subject __attribute__((cleanup(release_subject))) struct subject

static void release_subject(struct subject *s)
{
    free_keys(&s->keys);
    free_keys(&s->absent);
    free(s->file.at);
}

static perhaps_filter *open_subject(const struct subject *s,
                                    const struct perhaps_open_options *how)
{
    write_file(s->path.text, s->file.at, s->file.nbytes);
    return open_file(s->path.text, how);
}

/* Overwrites bytes of the file itself.  perhaps_save() would make a new file, which the mapping
 * would not see. */
static void overwrite(const struct subject *s, uint64_t offset, const void *bytes,
                      size_t nbytes)
{
    int fd = open(s->path.text, O_WRONLY | O_CLOEXEC);
    expect(fd >= 0 && pwrite(fd, bytes, nbytes, (off_t)offset) == (ssize_t)nbytes);
    close(fd);
}

/* Overwrites everything with zeros from the first body to the checksums. */
static void overwrite_bodies(const struct subject *s, const perhaps_filter *f)
{
    uint64_t from = f->mapping->pages_offset, nbytes = f->mapping->table_offset - from;
    scoped_memory *zeros = calloc(1, nbytes);
    overwrite(s, from, zeros, nbytes);
}

/* ---- What leaves a file ------------------------------------------------------------------ */

/* Ways in which bytes of a filter get new checksums. */
enum way {
    CLONE,
    SAVE,
    SAVE_NEW,
    SAVE_TO,
    WRITE_RANGE,
    TO_BYTES,
    SHRINK,
    READ,
    COMPARE,
    MERGE,
    INTERSECT
};

static bool can_go(const perhaps_filter *f, enum way way)
{
    perhaps_layout *layout = NULL;
    if (way == READ && perhaps_layout_of(f, &layout) == 0) {
        perhaps_layout_free(layout);
        return true;
    }
    return way == COMPARE     ? f->kind->compares != NULL
           : way == MERGE     ? f->kind->merge != NULL
           : way == INTERSECT ? f->kind->intersect != NULL
                              : way != READ;
}

/* Takes bytes of 'f' that way; 'whole' is the same filter in memory, and 'copy' no file. */
static int take_out(const perhaps_filter *f, enum way way, perhaps_filter *whole,
                    const char *copy, size_t nbytes)
{
    scoped_memory *bytes = malloc(nbytes);
    const struct perhaps_sink nowhere = { 0 }; /* which would crash */
    struct perhaps_comparison comparison;
    scoped_filter *made = NULL;
    switch (way) {
    case CLONE:
        return perhaps_clone(f, &made);
    case SAVE:
        return perhaps_save(f, copy);
    case SAVE_NEW:
        return perhaps_save_new(f, copy);
    case SAVE_TO:
        return perhaps_save_to(f, -1);
    case WRITE_RANGE:
        return perhaps_write_range(f, 5000, 100, &nowhere);
    case TO_BYTES:
        return perhaps_to_bytes(f, bytes, nbytes);
    case SHRINK:
        return perhaps_shrink(f, 0, &made);
    case READ:
        return perhaps_body_read(f, 0, bytes, 1);
    case COMPARE:
        return perhaps_compare(whole, f, &comparison);
    case MERGE:
        return perhaps_merge(whole, f);
    default:
        return perhaps_intersect(whole, f);
    }
}

/* One wrong byte, and nothing of the file gets new checksums: neither in a copy nor in another
 * filter. */
TEST_EACH(test_nothing_leaves, every_kind)
{
    const struct perhaps_open_options load = { .mode = PERHAPS_MODE_LOAD };
    scoped_subject s = subject_of(kind);
    struct path copy = temp_path("copy");
    for (enum way way = CLONE; way <= INTERSECT; way++) {
        scoped_filter *f = open_subject(&s, NULL);
        if (!can_go(f, way))
            continue;
        scoped_filter *whole = open_file(s.path.text, &load), *before = clone_of(whole);
        const uint64_t at = f->mapping->pages_offset + 777;
        const uint8_t wrong = s.file.at[at] ^ 1;
        overwrite(&s, at, &wrong, 1);
        scene("%s, way %d", kind->name, (int)way);
        expect_error(take_out(f, way, whole, copy.text, s.file.nbytes), PERHAPS_ERR_DAMAGED);
        expect(access(copy.text, F_OK) != 0 && perhaps_equal(whole, before));
        overwrite(&s, at, &s.file.at[at], 1);
        if (way == CLONE) { /* what was found damaged is looked at again */
            scoped_filter *made = clone_of(f);
            expect(perhaps_equal(made, whole));
        }
    }
}

/* ---- While it is asked ------------------------------------------------------------------- */

/* On a sound file 'check' changes no answer, and counts the pages that it has checked. */
TEST_EACH(test_intact, every_kind)
{
    scoped_subject s = subject_of(kind);
    struct perhaps_verdict verdict, all;
    scoped_filter *f = open_subject(&s, &checking), *g = open_subject(&s, NULL);
    bool present[KEYS], wanted[KEYS];
    expect_success(perhaps_checked(f, &verdict));
    expect(verdict.pages == 0);
    expect_error(perhaps_checked(g, &verdict), PERHAPS_ERR_UNSUPPORTED);
    expect_all_found(f, &s.keys);
    expect(perhaps_contains_many(f, &s.absent, present) ==
           perhaps_contains_many(g, &s.absent, wanted));
    expect(!memcmp(present, wanted, sizeof present));
    expect_success(perhaps_checked(f, &verdict));
    expect_success(perhaps_verify(f, &all));
    expect(verdict.pages > 1 && verdict.pages <= all.pages && !verdict.damaged);
}

/* All pages become zeros.  Without 'check' every key is denied; with it every key is found. */
TEST_EACH(test_zeros, every_kind)
{
    scoped_subject s = subject_of(kind);
    struct perhaps_verdict verdict;
    uint64_t count;
    scoped_filter *plain = open_subject(&s, NULL);
    overwrite_bodies(&s, plain);
    expect(perhaps_contains_many(plain, &s.keys, NULL) == 0);
    scoped_filter *f = open_subject(&s, &checking);
    overwrite_bodies(&s, f);
    expect_all_found(f, &s.keys);
    expect_error(perhaps_checked(f, &verdict), PERHAPS_ERR_DAMAGED);
    expect(verdict.damaged > 0 && verdict.pages > 1); /* pages of zeros are still sound */
    expect(verdict.first_damaged >= f->mapping->pages_offset &&
           verdict.first_damaged < f->mapping->table_offset);
    if (f->counts)
        expect_error(perhaps_count(f, "key", 3, &count), PERHAPS_ERR_DAMAGED);
}

/* Every byte that a query reads is checked: wherever a few bytes are overwritten, no key is
 * denied, and if an answer differs, the damage is told. */
TEST(test_a_few_bytes)
{
    struct rng rng = rng_for(__func__);
    EACH_KIND(kind, every_kind) {
        scoped_subject s = subject_of(kind);
        bool wanted[KEYS], present[KEYS];
        scoped_filter *plain = open_subject(&s, NULL);
        uint64_t from = plain->mapping->pages_offset;
        uint64_t nbytes = plain->mapping->table_offset - from;
        perhaps_contains_many(plain, &s.absent, wanted);
        for (unsigned round = 0; round < many(40); round++) {
            struct perhaps_verdict verdict;
            uint8_t noise[64];
            uint64_t at = from + rng_below(&rng, nbytes - sizeof noise);
            scene("%s, noise at %llu", kind->name, (unsigned long long)at);
            for (size_t n = 0; n < sizeof noise; n++)
                noise[n] = (uint8_t)rng_next(&rng);
            scoped_filter *f = open_subject(&s, &checking);
            overwrite(&s, at, noise, sizeof noise);
            expect_all_found(f, &s.keys);
            perhaps_contains_many(f, &s.absent, present);
            for (size_t key = 0; key < KEYS; key++)
                expect(present[key] >= wanted[key]);
            if (memcmp(present, wanted, sizeof present) != 0)
                expect_error(perhaps_checked(f, &verdict), PERHAPS_ERR_DAMAGED);
        }
    }
}

/* A file that is written in place has no checksums of its pages.  It cannot be opened with
 * 'check'; and if it was, the checks end when the first writer opens it. */
TEST(test_written_in_place)
{
    const struct perhaps_open_options both = { .mode = PERHAPS_MODE_IN_PLACE, .check = true };
    scoped_subject s = subject_of(perhaps_kind_at(0));
    struct perhaps_verdict verdict;
    perhaps_filter *f = open_subject(&s, &checking);
    expect_error(try_open(s.path.text, &both), PERHAPS_ERR_UNSUPPORTED);
    perhaps_filter *writer = open_file(s.path.text, &in_place);
    expect_error(try_open(s.path.text, &checking), PERHAPS_ERR_UNSUPPORTED);
    fill(writer, &s.absent);
    expect_all_found(f, &s.keys);
    expect_all_found(f, &s.absent);
    expect_error(perhaps_checked(f, &verdict), PERHAPS_ERR_UNSUPPORTED);
    perhaps_free(f);
    perhaps_free(writer);
    scoped_filter *whole = open_file(s.path.text, &checking);
    expect_all_found(whole, &s.keys);
    expect_success(perhaps_checked(whole, &verdict));
}
