/* build_faults_test.c - proves that a build which spills, and whose k-th system call of some
 * sort or k-th allocation fails, either makes the right file or returns the error; that the old
 * file is then as it was, and no draft, no temporary file, no open file and no memory is left.
 * k goes through all calls that such a build makes: one by one at first, then in steps, which
 * the seed of the test chooses.  Each fault is tried with every second of the four builds
 * (three kinds, one also with values), and with all if PERHAPS_TEST_EVERY is set; the steps are
 * smaller then. */
#include "failing_calls.h"
#include "support.h"
#include <perhaps_build.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* So many that several threads work on them. */
enum { KEYS = 80000, OTHERS = 50000, VALUE_BITS = 3 };

static bool takes_values(const struct perhaps_kind *kind)
{
    return is_built(kind) && strcmp(kind->name, "ribbon") == 0;
}

static bool takes_others(const struct perhaps_kind *kind)
{
    return is_built(kind) && strcmp(kind->name, "against") == 0;
}

/* ---- A build ----------------------------------------------------------------------------- */

/* An allocator that counts blocks, and fails once; threads may call it. */
struct counter {
    atomic_long live, calls, fail_at;
};

static void *allocate_counted(void *context, size_t nbytes)
{
    struct counter *counter = context;
    if (++counter->calls == counter->fail_at)
        return NULL;
    counter->live++;
    return malloc(nbytes);
}

static void release_counted(void *context, void *memory, size_t nbytes)
{
    struct counter *counter = context;
    (void)nbytes;
    counter->live--;
    free(memory);
}

/* What is built, and the files: the old one, and the one that every build makes that goes
 * well. */
struct stage {
    struct perhaps_options options;
    struct perhaps_build_options how;
    struct perhaps_keys keys, others;
    struct perhaps_allocator allocator;
    struct counter counter;
    struct path path, spills; /* of the filter; in the folder of the temporary files */
    char folder[PATH_MAX];
    struct bytes old, wanted;
};

/* Builds the filter and saves it.  Returns the first error, with its errno. */
static int build(const struct stage *s)
{
    static const uint32_t value[KEYS] = { 1, 7, 5 };
    perhaps_builder *builder;
    int error = perhaps_builder_create(&s->options, &s->how, &builder);
    if (error)
        return error;
    for (size_t at = 0; at < KEYS && !error; at += KEYS / 8) {
        const struct perhaps_keys some = some_keys(&s->keys, at, KEYS / 8);
        error = s->options.ribbon.value_bits
                    ? perhaps_builder_add_values(builder, &some, value + at)
                    : perhaps_builder_add_many(builder, &some);
    }
    if (!error && s->options.against.others)
        error = perhaps_builder_add_others(builder, &s->others);
    if (!error)
        error = perhaps_builder_save(builder, s->path.text);
    int reason = errno;
    perhaps_builder_free(builder);
    errno = reason;
    return error;
}

static bool holds(const struct stage *s, const struct bytes *wanted)
{
    scoped_bytes file = read_file(s->path.text);
    return file.nbytes == wanted->nbytes && memcmp(file.at, wanted->at, file.nbytes) == 0;
}

/* Checks the file of a build without faults, and that it spilled. */
static void check_wanted(struct stage *s)
{
    scoped_filter *f = open_file(s->path.text, &load_it);
    scoped_builder *builder = builder_of(&s->options, &s->how);
    expect_all_found(f, &s->keys);
    expect(!s->others.count || perhaps_contains_many(f, &s->others, NULL) == 0);
    expect(perhaps_builder_disk_nbytes(builder, KEYS) > 0);
}

/* 'kind' is built once. */
static void make_stage(struct stage *s, const struct perhaps_kind *kind, bool valued)
{
    const bool others = takes_others(kind);
    struct path folder = temp_path("faults"), spills = temp_path("spills");
    expect((!mkdir(folder.text, 0777) || errno == EEXIST) &&
           (!mkdir(spills.text, 0777) || errno == EEXIST));
    *s = (struct stage){ .options = { .kind = kind->name,
                                      .fpr = 0.01,
                                      .hashing.seed = 1,
                                      .against.others = others ? OTHERS : 0,
                                      .ribbon.value_bits = valued ? VALUE_BITS : 0 },
                         .how = { .memory_nbytes = 1 << 20, .threads = 1 },
                         .keys = make_keys(SEQUENTIAL_KEYS, 9, 0, KEYS),
                         .others = make_keys(SEQUENTIAL_KEYS, 9, KEYS, others ? OTHERS : 0),
                         .path = path_below(folder, "filter"),
                         .spills = path_below(spills, "any") };
    memcpy(s->folder, spills.text, sizeof s->folder);
    s->how.folder = s->folder;
    s->allocator =
        (struct perhaps_allocator){ allocate_counted, release_counted, &s->counter, false };
    scene("%s without faults", kind->name);
    expect_success(build(s));
    check_wanted(s);
    s->wanted = read_file(s->path.text);
    s->old = (struct bytes){ malloc(100), 100 };
    memset(s->old.at, 'x', 100);
}

static void free_stage(struct stage *s)
{
    free_keys(&s->keys);
    free_keys(&s->others);
    free_bytes(&s->old);
    free_bytes(&s->wanted);
}

/* ---- The k-th call fails ----------------------------------------------------------------- */

/* A call that fails from some time on or only once, and what the build may do then: return an
 * error; nothing but go on, and make the right file; or return an error with the new file in
 * place already, because its folder could not be synced. */
struct fault {
    const char *call;
    int reason;
    enum { EVER, ONCE } how_often;
    enum { MAY_FAIL, HARMLESS, LATE } outcome;
    bool named; /* on a file system without nameless files */
};

static const struct fault faults[] = {
    { "pwrite", ENOSPC, EVER, MAY_FAIL, false },
    { "pwrite", EIO, ONCE, MAY_FAIL, false },
    { "pwrite", EINTR, ONCE, HARMLESS, false },
    { "pread", EIO, ONCE, MAY_FAIL, false },
    { "pread", EINTR, ONCE, HARMLESS, false },
    { "write", ENOSPC, EVER, MAY_FAIL, false },
    { "write", EIO, ONCE, MAY_FAIL, false },
    { "write", EINTR, ONCE, HARMLESS, false },
    { "open nameless", EMFILE, EVER, MAY_FAIL, false },
    { "open nameless", EACCES, ONCE, MAY_FAIL, false },
    { "open nameless", EOPNOTSUPP, EVER, HARMLESS, false },
    { "links", EOPNOTSUPP, EVER, MAY_FAIL, false },
    { "open", EMFILE, EVER, LATE, false },
    { "lseek", EIO, EVER, MAY_FAIL, false },
    { "fsync", EIO, ONCE, LATE, false },
    { "fchown", EIO, EVER, MAY_FAIL, false },
    { "fchmod", EPERM, EVER, MAY_FAIL, false },
    { "linkat", ENOSPC, EVER, MAY_FAIL, false },
    { "linkat", EEXIST, ONCE, HARMLESS, false },
    { "rename", EIO, EVER, MAY_FAIL, false },
    { "getentropy", EIO, EVER, MAY_FAIL, false },
    { "pthread_create", EAGAIN, EVER, HARMLESS, false },
    { "pthread_create", EAGAIN, ONCE, HARMLESS, false },
    { "mkostemp", EACCES, EVER, MAY_FAIL, true },
    { "pwrite", ENOSPC, EVER, MAY_FAIL, true },
    { "create", EMFILE, EVER, MAY_FAIL, true },
    { "create", EEXIST, ONCE, HARMLESS, true },
    { "write", ENOSPC, EVER, MAY_FAIL, true },
    { "fsync", EIO, ONCE, LATE, true },
    { "rename", EIO, EVER, MAY_FAIL, true },
};

/* Checks what a build has left. */
static void expect_tidy(const struct stage *s, int error, bool late)
{
    if (error)
        expect(holds(s, &s->old) || (late && holds(s, &s->wanted)));
    else
        expect(holds(s, &s->wanted));
    expect(count_beside(s->path.text) == 1 && count_beside(s->spills.text) == 0);
    expect(s->counter.live == 0);
}

/* Lets the call of this number fail.  Returns whether there was one. */
static bool try_fault(struct stage *s, const struct fault *fault, unsigned number)
{
    write_file(s->path.text, s->old.at, s->old.nbytes);
    s->options.allocator = &s->allocator;
    s->how.threads = fault->reason == EINTR ? 1 : 2; /* a build that goes on is faster by one */
    unsigned before = open_files();
    scene("%s, %u bits: %s fails %s after %u with %s%s", s->options.kind,
          s->options.ribbon.value_bits, fault->call,
          fault->how_often == ONCE ? "once" : "always", number, strerror(fault->reason),
          fault->named ? ", without nameless files" : "");
    (fault->how_often == ONCE ? let_fail_once : let_fail)(fault->call, fault->reason, number);
    if (fault->named)
        let_no_nameless();
    int error = build(s), reason = errno;
    bool met = has_failed();
    let_all_work();
    expect(open_files() == before);
    expect(!error || (met && fault->outcome != HARMLESS));
    expect(!error || (error == PERHAPS_ERR_IO && reason == fault->reason));
    expect_tidy(s, error, fault->outcome == LATE);
    return met;
}

/* Returns the number of the call to try next. */
static unsigned later(unsigned number, struct rng *rng)
{
    if (every_case())
        return number + (number < 8 ? 1 : number);
    return number + (number < 2 ? 1 : number + (unsigned)rng_below(rng, 2 * number));
}

/* Returns whether only Linux is asked for this. */
static bool is_of_linux(const char *call)
{
    return !strcmp(call, "open nameless") || !strcmp(call, "linkat") || !strcmp(call, "links");
}

static void fail_each_call(struct stage *s)
{
    static size_t nstages;
    struct rng rng = rng_for(__func__);
    const uint64_t turn = test_seed() + nstages++;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        unsigned number = 0;
        if ((i + turn) % 2 && !every_case())
            continue;
        if (!IS_LINUX && is_of_linux(faults[i].call))
            continue;
        while (try_fault(s, &faults[i], number))
            number = later(number, &rng);
        expect(number > 0 || s->others.count); /* not every kind makes every call */
    }
}

TEST_EACH(test_failing_calls, is_built)
{
    struct stage s;
    make_stage(&s, kind, false);
    fail_each_call(&s);
    free_stage(&s);
}

TEST(test_failing_calls_with_values)
{
    struct stage s;
    make_stage(&s, next_kind(NULL, takes_values), true);
    fail_each_call(&s);
    free_stage(&s);
}

/* ---- Less than was asked ----------------------------------------------------------------- */

TEST_EACH(test_short, is_built)
{
    const size_t sizes[] = { 777, 4096 };
    struct stage s;
    make_stage(&s, kind, false);
    for (size_t i = 0; i < 2; i++) {
        scene("%s, %zu bytes at once", kind->name, sizes[i]);
        transfer_at_once(sizes[i]);
        let_fail_once("pwrite", EINTR, 3);
        int error = build(&s);
        let_all_work();
        expect_success(error);
        expect_tidy(&s, 0, false);
    }
    free_stage(&s);
}

/* ---- The k-th allocation fails ----------------------------------------------------------- */

static void fail_each_allocation(struct stage *s)
{
    struct rng rng = rng_for(__func__);
    int error = PERHAPS_ERR_MEMORY;
    s->options.allocator = &s->allocator;
    for (unsigned number = 1; error; number = later(number, &rng)) {
        scene("%s, %u bits: allocation %u fails", s->options.kind, s->options.ribbon.value_bits,
              number);
        write_file(s->path.text, s->old.at, s->old.nbytes);
        s->counter.fail_at = s->counter.calls + number;
        error = build(s);
        bool met = s->counter.calls >= s->counter.fail_at;
        s->counter.fail_at = 0;
        expect(error == (met ? PERHAPS_ERR_MEMORY : 0));
        expect_tidy(s, error, false);
    }
}

TEST_EACH(test_failing_memory, is_built)
{
    struct stage s;
    make_stage(&s, kind, false);
    fail_each_allocation(&s);
    free_stage(&s);
}

TEST(test_failing_memory_with_values)
{
    struct stage s;
    make_stage(&s, next_kind(NULL, takes_values), true);
    fail_each_allocation(&s);
    free_stage(&s);
}

/* ---- The errno of an error that comes again ---------------------------------------------- */

/* The first part of "against" cannot be built because the disk cannot be read: each later call
 * tells the same, with the same errno. */
TEST(test_same_errno_again)
{
    const struct perhaps_kind *kind = next_kind(NULL, takes_others);
    struct stage s;
    perhaps_builder *builder;
    perhaps_filter *f;
    make_stage(&s, kind, false);
    expect_success(perhaps_builder_create(&s.options, &s.how, &builder));
    expect_success(perhaps_builder_add_many(builder, &s.keys));
    let_fail_once("pread", EIO, 0);
    for (unsigned i = 0; i < 2; i++) {
        errno = 0;
        expect_error(perhaps_builder_add_others(builder, &s.others), PERHAPS_ERR_IO);
        expect(errno == EIO);
    }
    let_all_work();
    errno = 0;
    expect_error(perhaps_builder_finish(builder, &f), PERHAPS_ERR_IO);
    expect(errno == EIO && !f);
    perhaps_builder_free(builder);
    free_stage(&s);
}
