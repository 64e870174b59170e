/* check_test.c - files that are overwritten behind our back: opened with 'check', a filter
 * never answers "no" for a key that was added, and tells of the damage. */
#include "support.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/container.h"

enum { KEYS = 40000 };

static const struct perhaps_open_options plain = { .check = false },
                                         checking = { .check = true };

struct subject {
    const struct perhaps_kind *kind;
    struct perhaps_keys keys, absent;
    struct path path;
    struct bytes file;
};

/* Of several pages, so that not all keys lie on a damaged one. */
static struct subject subject_of(const struct perhaps_kind *kind)
{
    struct perhaps_options options = options_for(kind, 2 * KEYS, low_rate(kind), 7);
    struct subject s = { .kind = kind,
                         .keys = make_keys(SEQUENTIAL_KEYS, 1, 0, KEYS),
                         .absent = make_keys(SEQUENTIAL_KEYS, 2, 0, KEYS),
                         .path = temp_path("checked") };
    perhaps_filter *f = make_with(&options);
    fill(f, &s.keys);
    expect_success(perhaps_save(f, s.path.text));
    perhaps_free(f);
    s.file = read_file(s.path.text);
    return s;
}

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
    perhaps_filter *f = open_file(s->path.text, how);
    return f;
}

/* Without a new file, as perhaps_save() would make one. */
static void overwrite(const struct subject *s, uint64_t offset, const void *bytes,
                      size_t nbytes)
{
    int fd = open(s->path.text, O_WRONLY | O_CLOEXEC);
    expect(fd >= 0 && pwrite(fd, bytes, nbytes, (off_t)offset) == (ssize_t)nbytes);
    close(fd);
}

/* With zeros, from the first body on to the checksums. */
static void overwrite_bodies(const struct subject *s, const perhaps_filter *f)
{
    uint64_t from = f->mapping.pages_offset, nbytes = f->mapping.table_offset - from;
    uint8_t *zeros = calloc(1, nbytes);
    overwrite(s, from, zeros, nbytes);
    free(zeros);
}

TEST_EACH(test_intact, any_kind)
{
    struct subject s = subject_of(kind);
    struct perhaps_verdict verdict, all;
    perhaps_filter *f = open_subject(&s, &checking), *g = open_subject(&s, &plain);
    bool present[KEYS], wanted[KEYS];
    scene("%s", kind->name);
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
    perhaps_free(f);
    perhaps_free(g);
    release_subject(&s);
}

/* All at once: what was "perhaps" would be "no". */
TEST_EACH(test_zeros, any_kind)
{
    struct subject s = subject_of(kind);
    struct perhaps_verdict verdict;
    uint64_t count;
    perhaps_filter *f = open_subject(&s, &plain);
    scene("%s", kind->name);
    overwrite_bodies(&s, f);
    expect(perhaps_contains_many(f, &s.keys, NULL) == 0);
    perhaps_free(f);
    f = open_subject(&s, &checking);
    overwrite_bodies(&s, f);
    expect_all_found(f, &s.keys);
    expect_error(perhaps_checked(f, &verdict), PERHAPS_ERR_DAMAGED);
    expect(verdict.damaged > 0 && verdict.pages > 1); /* what was zeros is sound */
    expect(verdict.first_damaged >= f->mapping.pages_offset &&
           verdict.first_damaged < f->mapping.table_offset);
    if (f->counts)
        expect_error(perhaps_count(f, "key", 3, &count), PERHAPS_ERR_DAMAGED);
    perhaps_free(f);
    release_subject(&s);
}

/* All that a question reads is checked: wherever a few bytes are overwritten, no key is missed,
 * and where an answer differs that is said. */
TEST(test_a_few_bytes)
{
    struct rng rng = rng_for(__func__);
    EACH_KIND(kind, any_kind) {
        struct subject s = subject_of(kind);
        bool wanted[KEYS], present[KEYS];
        perhaps_filter *f = open_subject(&s, &plain);
        uint64_t from = f->mapping.pages_offset, nbytes = f->mapping.table_offset - from;
        perhaps_contains_many(f, &s.absent, wanted);
        perhaps_free(f);
        for (unsigned round = 0; round < many(40); round++) {
            struct perhaps_verdict verdict;
            uint8_t noise[64];
            uint64_t at = from + rng_below(&rng, nbytes - sizeof noise);
            scene("%s, noise at %llu", kind->name, (unsigned long long)at);
            for (size_t n = 0; n < sizeof noise; n++)
                noise[n] = (uint8_t)rng_next(&rng);
            f = open_subject(&s, &checking);
            overwrite(&s, at, noise, sizeof noise);
            expect_all_found(f, &s.keys);
            perhaps_contains_many(f, &s.absent, present);
            for (size_t key = 0; key < KEYS; key++)
                expect(present[key] >= wanted[key]);
            if (memcmp(present, wanted, sizeof present) != 0)
                expect_error(perhaps_checked(f, &verdict), PERHAPS_ERR_DAMAGED);
            perhaps_free(f);
        }
        release_subject(&s);
    }
}

/* Has no checksums: before it is opened, and from some moment on. */
TEST(test_written_in_place)
{
    const struct perhaps_open_options shared = { .mode = PERHAPS_MODE_LIVE };
    const struct perhaps_open_options both = { .mode = PERHAPS_MODE_LIVE, .check = true };
    struct subject s = subject_of(perhaps_kind_at(0));
    struct perhaps_verdict verdict;
    perhaps_filter *f = open_subject(&s, &checking), *writer, *other;
    expect_error(perhaps_open(s.path.text, &both, &other), PERHAPS_ERR_UNSUPPORTED);
    expect_success(perhaps_open(s.path.text, &shared, &writer));
    expect_error(perhaps_open(s.path.text, &checking, &other), PERHAPS_ERR_UNSUPPORTED);
    fill(writer, &s.absent);
    expect_all_found(f, &s.keys);
    expect_all_found(f, &s.absent);
    expect_error(perhaps_checked(f, &verdict), PERHAPS_ERR_UNSUPPORTED);
    perhaps_free(f);
    perhaps_free(writer);
    expect_success(perhaps_open(s.path.text, &checking, &f));
    expect_all_found(f, &s.keys);
    expect_success(perhaps_checked(f, &verdict));
    perhaps_free(f);
    release_subject(&s);
}
