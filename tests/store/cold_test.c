/* cold_test.c - proves that a large mapped file gives the same answers when it is not in
 * memory, whatever the system does with the pages that are named; that one question reads no
 * more than it needs; and that many name their pages before they are asked. */
#define _GNU_SOURCE 1
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <perhaps.h>
#include <perhaps_build.h>
#include <perhaps_fast.h>
#include <perhaps_live.h>

#include "failing_calls.h"
#include "filter/filter.h"

enum { KEYS = 40000, HALF = KEYS / 2, LARGE_KEYS = 20000000, ASKED = 400, PAGE = 4096 };

static const struct perhaps_kind *blocked(void)
{
    size_t i = 0;
    while (strcmp(kind_to_test(i)->name, "blocked") != 0)
        i++;
    return kind_to_test(i);
}

/* ---- Answers ----------------------------------------------------------------------------- */

/* A file with half of the keys, and what a filter in memory answers. */
struct subject {
    const struct perhaps_kind *kind;
    struct perhaps_keys keys;
    struct path path;
    bool answer[KEYS];
};

static void subject_begin(struct subject *s, const struct perhaps_kind *kind)
{
    *s = (struct subject){ .kind = kind,
                           .keys = make_keys(SEQUENTIAL_KEYS, 1, 0, KEYS),
                           .path = temp_path("cold") };
    const struct perhaps_keys half = some_keys(&s->keys, 0, HALF);
    struct perhaps_options options = options_for(kind, HALF, 0.01, 7);
    ask_for_copies(&options, true);
    remove(s->path.text);
    remove(journal_of(s->path).text);
    scoped_filter *f = built_filter(&options, &half);
    expect_success(perhaps_save(f, s->path.text));
    perhaps_contains_many(f, &s->keys, s->answer);
}

static void subject_end(struct subject *s)
{
    free_keys(&s->keys);
}

/* Takes the file from memory, as far as the system does that. */
static void drop(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    expect(fd >= 0);
    syscall(SYS_fsync, fd); /* fsync() does nothing in these tests */
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/* Opens a file as if it were large.  It has not been asked for anything yet. */
static perhaps_filter *open_cold(const struct subject *s,
                                 const struct perhaps_open_options *how)
{
    drop(s->path.text);
    perhaps_filter *f = open_file(s->path.text, how);
    f->mapping->large = f->mapping->file != NULL;
    return f;
}

/* Asks as many keys at a time as the caller says, and compares all answers. */
static void expect_answers(const struct subject *s, const perhaps_filter *f, size_t at_once)
{
    bool answer[KEYS];
    memset(answer, 2, sizeof answer);
    for (size_t at = 0; at < KEYS; at += at_once) {
        size_t n = KEYS - at < at_once ? KEYS - at : at_once, present = 0;
        const struct perhaps_keys some = some_keys(&s->keys, at, n);
        size_t found = perhaps_contains_many(f, &some, answer + at);
        for (size_t i = 0; i < n; i++)
            present += answer[at + i];
        expect(found == present);
        expect(perhaps_contains_many(f, &some, NULL) == present);
    }
    expect(memcmp(answer, s->answer, sizeof answer) == 0);
}

/* Sets whether the batches that follow take the file for cold: those of a warm one are tried
 * again after a while. */
static void forget_warmth(perhaps_filter *f)
{
    f->mapping->warm_steps = 0;
}

static void try_all_sizes(const struct subject *s, const struct perhaps_open_options *how)
{
    static const size_t sizes[] = { 1, 2, 15, 127, 4000, KEYS };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        scoped_filter *f = open_cold(s, how);
        expect_answers(s, f, sizes[i]);
        forget_warmth(f);
        expect_answers(s, f, sizes[i]);
    }
}

TEST_EACH(answers_are_the_same, every_kind)
{
    struct subject s;
    subject_begin(&s, kind);
    try_all_sizes(&s, &map_it);
    try_all_sizes(&s, &checking);
    if (shares(kind))
        try_all_sizes(&s, &in_place);
    subject_end(&s);
}

TEST_EACH(counts_are_the_same, every_kind)
{
    struct subject s;
    uint64_t *cold = calloc(KEYS, sizeof *cold), *warm = calloc(KEYS, sizeof *warm);
    subject_begin(&s, kind);
    scoped_filter *loaded = open_file(s.path.text, &load_it);
    scoped_filter *f = open_cold(&s, &map_it);
    int error = perhaps_count_many(loaded, &s.keys, warm);
    expect_error(perhaps_count_many(f, &s.keys, cold), error);
    expect(memcmp(cold, warm, KEYS * sizeof *cold) == 0);
    free(cold);
    free(warm);
    subject_end(&s);
}

/* What a mapped file in place takes and gives away. */
TEST_EACH(changes_are_the_same, shares)
{
    struct subject s;
    subject_begin(&s, kind);
    scoped_filter *f = open_cold(&s, &in_place);
    const struct perhaps_keys more = some_keys(&s.keys, HALF, 2);
    size_t done;
    int error = perhaps_add_many(f, &more, &done);
    expect(error == 0 || error == PERHAPS_ERR_FULL);
    for (size_t i = 0; i < HALF + done; i++)
        expect(perhaps_contains(f, key_at(&s.keys, i), sizeof(uint64_t)));
    subject_end(&s);
}

/* A live file is mapped twice, and may have been changed in memory. */
TEST_EACH(live_files_answer, any_kind)
{
    struct subject s;
    subject_begin(&s, kind);
    const struct perhaps_open_options live = { .mode = PERHAPS_MODE_JOURNAL };
    const struct perhaps_keys half = some_keys(&s.keys, 0, HALF);
    perhaps_filter *f = open_file(s.path.text, &live);
    const size_t added = 10;
    for (size_t i = HALF; i < HALF + added; i++) {
        int error = perhaps_add(f, key_at(&s.keys, i), sizeof(uint64_t));
        expect(error == 0 || error == PERHAPS_ERR_FULL);
    }
    bool there[KEYS];
    size_t found = perhaps_contains_many(f, &s.keys, there);
    expect_success(perhaps_sync(f));
    perhaps_free(f);
    scoped_filter *read = open_cold(&s, &map_it);
    memcpy(s.answer, there, sizeof there);
    expect_answers(&s, read, KEYS);
    expect(found >= HALF - HALF / 2 && perhaps_contains_many(read, &half, NULL) <= HALF);
    subject_end(&s);
}

/* ---- Systems that do not help ------------------------------------------------------------ */

TEST_EACH(failing_calls_change_nothing, every_kind)
{
    static const char *const calls[] = { "madvise", "getrusage", "mmap" };
    static const int errors[] = { EIO, ENOMEM, EINVAL, ENOSYS, EBADF };
    struct subject s;
    subject_begin(&s, kind);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
            scoped_filter *f = open_cold(&s, &map_it);
            let_fail(calls[c], errors[e], 0);
            errno = ERANGE;
            expect_answers(&s, f, KEYS);
            expect(errno == ERANGE);
            let_all_work();
        }
    subject_end(&s);
}

TEST(a_large_file_opens_where_advice_fails)
{
    struct path path = temp_path("advice");
    scoped_filter *f = make_filter(blocked(), LARGE_KEYS, 0.01, 7);
    expect_success(perhaps_add(f, "key", 3));
    expect_success(perhaps_save(f, path.text));
    let_fail("madvise", ENOSYS, 0);
    errno = ERANGE;
    scoped_filter *mapped = open_file(path.text, &map_it);
    expect(has_failed() && errno == ERANGE && mapped->mapping->large);
    expect(perhaps_contains(mapped, "key", 3) && !perhaps_contains(mapped, "other", 5));
    let_all_work();
}

/* Exits with 0 if all keys of a file that is cut meanwhile are perhaps there. */
static int ask_a_cut_file(void *context)
{
    struct subject *s = context;
    perhaps_filter *f = open_cold(s, &map_it);
    const struct perhaps_keys half = some_keys(&s->keys, 0, HALF);
    signal(SIGBUS, SIG_DFL);
    return truncate(s->path.text, PAGE) || perhaps_contains_many(f, &half, NULL) < HALF;
}

/* Never "no": the process ends with SIGBUS, as doc of perhaps_open() says. */
TEST_EACH(a_cut_file_denies_no_key, every_kind)
{
    struct subject s;
    subject_begin(&s, kind);
    int status = -1;
    pid_t child = forgets(kind) ? -1 : fork(); /* a window has forgotten some keys */
    if (child == 0)
        _exit(ask_a_cut_file(&s));
    if (child > 0) {
        expect(waitpid(child, &status, 0) == child);
        expect((WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) ||
               (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
    subject_end(&s);
}

/* ---- What is read ------------------------------------------------------------------------ */

/* Returns how many pages of a mapped file are in memory. */
static size_t pages_there(const perhaps_filter *f)
{
    const size_t pages = (f->mapping->file_nbytes + PAGE - 1) / PAGE;
    scoped_memory *there = calloc(pages, 1);
    size_t n = 0;
    expect(!mincore(f->mapping->file, f->mapping->file_nbytes, there));
    for (size_t i = 0; i < pages; i++)
        n += there[i] & 1;
    return n;
}

/* Opens a large file that is not in memory; NULL where the system does not let go of it. */
static perhaps_filter *open_large(const struct perhaps_open_options *how)
{
    static bool made;
    struct path path = temp_path("large");
    if (!made) {
        struct perhaps_options options = options_for(blocked(), LARGE_KEYS, 0.01, 7);
        options.hashing.hash = PERHAPS_HASH_XXH3_64; /* which a view takes */
        scoped_filter *f = make_with(&options);
        expect_success(perhaps_add(f, "key", 3));
        expect_success(perhaps_save(f, path.text));
        made = true;
    }
    drop(path.text);
    perhaps_filter *f = open_file(path.text, how);
    expect(f->mapping->large);
    if (sysconf(_SC_PAGESIZE) == PAGE && pages_there(f) < f->mapping->file_nbytes / PAGE / 4)
        return f;
    print_message("this file system keeps files in memory: not tried\n");
    perhaps_free(f);
    return NULL;
}

TEST(one_question_reads_one_page)
{
    scoped_filter *f = open_large(&map_it);
    if (!f)
        return;
    for (unsigned i = 0; i < 5; i++) {
        const size_t before = pages_there(f);
        perhaps_contains(f, &i, sizeof i);
        expect(pages_there(f) <= before + 16);
    }
    expect(perhaps_contains(f, "key", 3));
}

TEST(one_question_reads_one_page_to_check)
{
    scoped_filter *f = open_large(&checking);
    if (!f)
        return;
    const size_t before = pages_there(f);
    perhaps_contains(f, "other", 5);
    expect(pages_there(f) <= before + PERHAPS_PAGE_NBYTES / PAGE + 16);
    expect(perhaps_contains(f, "key", 3));
}

/* A page that was not named would be a page fault that reads the disk. */
TEST(many_questions_name_their_pages)
{
    scoped_filter *f = open_large(&map_it);
    struct perhaps_keys keys = make_keys(SEQUENTIAL_KEYS, 3, 0, ASKED);
    if (f) {
        expect(perhaps_is_cold(f));
        const size_t there = pages_there(f);
        const long before = disk_faults();
        perhaps_contains_many(f, &keys, NULL);
        expect(disk_faults() - before <= ASKED / 4);
        expect(pages_there(f) - there <= 5 * ASKED); /* with the gaps between them */
    }
    free_keys(&keys);
}

/* The sample has some hundred pages, in 64 places.  The numbers are those of a file that is
 * read into memory. */
TEST(statistics_name_their_pages)
{
    scoped_filter *f = open_large(&map_it);
    struct perhaps_stats stats, of_copy;
    if (!f)
        return;
    const long before = disk_faults();
    perhaps_stats_of(f, &stats);
    expect(disk_faults() - before <= 16);
    scoped_filter *copy;
    expect_success(perhaps_clone(f, &copy));
    perhaps_stats_of(copy, &of_copy);
    expect(stats.load == of_copy.load && stats.fpr_now == of_copy.fpr_now);
}

TEST(a_warm_file_is_not_cold)
{
    scoped_filter *f = open_large(&map_it);
    struct perhaps_verdict verdict;
    struct perhaps_keys keys = make_keys(SEQUENTIAL_KEYS, 4, 0, ASKED);
    if (f) {
        expect_success(perhaps_verify(f, &verdict));
        perhaps_contains_many(f, &keys, NULL);
        expect(!perhaps_is_cold(f) && f->mapping->warm_steps);
    }
    free_keys(&keys);
}

/* The system reads around page faults again, and the calls are the usual ones. */
TEST(after_many_single_questions_all_is_as_usual)
{
    scoped_filter *f = open_large(&map_it), *loaded = NULL;
    if (!f)
        return;
    const uint32_t singles = f->mapping->singles_left;
    expect(singles == f->mapping->file_nbytes / PAGE / 32);
    for (uint32_t i = 0; i <= singles; i++)
        expect(perhaps_contains(f, "key", 3));
    expect(!f->mapping->singles_left);
    loaded = open_file(temp_path("large").text, &load_it);
    expect(f->calls.contains == loaded->calls.contains);
    expect(f->calls.prepare == loaded->calls.prepare);
}

TEST(a_view_reads_as_usual)
{
    scoped_filter *f = open_large(&map_it);
    if (!f)
        return;
    struct perhaps_view view = perhaps_view_of(f);
    (void)view;
    expect(!f->mapping->singles_left);
}

static void *ask_singly(void *context)
{
    const perhaps_filter *f = *(perhaps_filter **)context;
    for (uint32_t i = 0; i < 4 * f->mapping->file_nbytes / PAGE / 32; i++)
        expect(perhaps_contains(f, "key", 3));
    return NULL;
}

TEST(threads_may_all_be_the_last_single)
{
    scoped_filter *f = open_large(&map_it);
    perhaps_filter *each[] = { f, f, f, f };
    if (f)
        run_threads(4, ask_singly, each, sizeof *each);
}

/* Bytes in memory are nobody's file. */
TEST(bytes_in_memory_are_never_cold)
{
    scoped_filter *f = make_filter(blocked(), LARGE_KEYS, 0.01, 7);
    scoped_bytes bytes = saved_bytes(f);
    void *aligned = aligned_alloc(PERHAPS_ALIGNMENT, bytes.nbytes / 64 * 64 + 64);
    memcpy(aligned, bytes.at, bytes.nbytes);
    perhaps_filter *there;
    expect_success(perhaps_from_bytes(aligned, bytes.nbytes, &map_it, &there));
    expect(!there->mapping->large && !perhaps_is_cold(there) && !perhaps_is_cold(f));
    perhaps_free(there);
    free(aligned);
}
