/* adversary_secret_test.c - proves that the secret of a sip filter is nowhere but in the
 * filter: in no file, in nothing that the library tells, in no memory that was released, and
 * not on the stack below a call that has returned; on every path, also if an allocation fails.
 * And that a file opens with its own secret, or expressly without, and in no other way.
 *
 * What is searched for is each half of the secret, and the same as SipHash begins with it. */
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"
#include "perhaps_inline.h"

static const uint8_t secret[16] = { 0x9d, 0x42, 0xe7, 0x1b, 0xc8, 0x35, 0x76, 0xaf,
                                    0x5e, 0xd3, 0x08, 0xb1, 0x6c, 0xf4, 0x2a, 0x97 };

enum { KEYS = 300, HALF = sizeof secret / 2 };
static const double usual_fpr = 0.01;

/* ---- What is searched for ---------------------------------------------------------------- */

/* The words that SipHash adds to the halves, bit by bit, before it begins; those of the second
 * half also with the mark of hashes of 128 bits. */
enum { FORMS = 7 };
static const struct {
    size_t half;
    uint64_t word;
} forms[FORMS] = {
    { 0, 0 },
    { 0, UINT64_C(0x736f6d6570736575) },
    { 0, UINT64_C(0x6c7967656e657261) },
    { HALF, 0 },
    { HALF, UINT64_C(0x646f72616e646f6d) },
    { HALF, UINT64_C(0x7465646279746573) },
    { HALF, UINT64_C(0x646f72616e646f6d) ^ 0xee },
};

/* Is computed before anything is searched, since a search may run on a stack that is searched
 * later. */
static uint8_t wanted[FORMS][HALF];

__attribute__((constructor)) static void begin_search(void)
{
    for (unsigned i = 0; i < FORMS; i++)
        put64(wanted[i], get64(secret + forms[i].half) ^ forms[i].word);
}

static bool holds(const void *memory, size_t nbytes)
{
    bool found = false;
    for (unsigned i = 0; i < FORMS; i++)
        found |= memmem(memory, nbytes, wanted[i], HALF) != NULL;
    return found;
}

static struct perhaps_hashing hashing(void)
{
    return (struct perhaps_hashing){ .hash = PERHAPS_HASH_SIP, .secret = secret };
}

static struct perhaps_options options_of(const struct perhaps_kind *kind)
{
    struct perhaps_options options = options_for(kind, KEYS, usual_fpr, 0);
    options.hashing = hashing();
    return options;
}

static perhaps_filter *secretive(const struct perhaps_kind *kind,
                                 const struct perhaps_keys *keys)
{
    struct perhaps_options options = options_of(kind);
    if (is_built(kind))
        return built_filter(&options, keys);
    perhaps_filter *f = make_with(&options);
    fill(f, keys);
    return f;
}

/* ---- An allocator that looks at what is released ----------------------------------------- */

enum { BLOCKS_MOST = 4096 };

/* Keeps what is released, so that it can be looked at once more when all is over. */
struct watch {
    pthread_mutex_t lock; /* a builder calls from several threads */
    struct {
        uint8_t *memory;
        size_t nbytes;
        bool released;
    } block[BLOCKS_MOST];
    size_t nblocks, calls, fail_at; /* which call returns NULL, from 1 on; 0: none */
    bool leaked;                    /* something that was released held the secret */
};

static void *watched_allocate(void *context, size_t nbytes)
{
    struct watch *w = context;
    uint8_t *memory = NULL;
    pthread_mutex_lock(&w->lock);
    if (++w->calls != w->fail_at && w->nblocks < BLOCKS_MOST)
        memory = calloc(1, nbytes);
    if (memory) {
        w->block[w->nblocks].memory = memory;
        w->block[w->nblocks].nbytes = nbytes;
        w->block[w->nblocks++].released = false;
    }
    pthread_mutex_unlock(&w->lock);
    return memory;
}

static void watched_release(void *context, void *memory, size_t nbytes)
{
    struct watch *w = context;
    pthread_mutex_lock(&w->lock);
    w->leaked |= holds(memory, nbytes);
    for (size_t i = 0; i < w->nblocks; i++)
        if (w->block[i].memory == memory)
            w->block[i].released = true;
    pthread_mutex_unlock(&w->lock);
}

/* Releases all that was released since there were 'first' blocks.  Returns whether nothing else
 * is left, and whether none of it holds the secret or ever did. */
static bool is_clean(struct watch *w, size_t first)
{
    bool clean = !w->leaked;
    for (size_t i = first; i < w->nblocks; i++) {
        clean = clean && w->block[i].released && !holds(w->block[i].memory, w->block[i].nbytes);
        free(w->block[i].memory);
    }
    w->nblocks = first;
    return clean;
}

/* ---- Calls ------------------------------------------------------------------------------- */

/* What calls work on, and what they make: it is released later, so that what a call leaves on
 * the stack is not written over. */
struct stage {
    const struct perhaps_kind *kind;
    struct perhaps_keys keys;
    struct watch watch;
    struct perhaps_allocator allocator;
    struct path path;   /* where the filter was saved */
    struct bytes bytes; /* the same, at an address that is aligned */
    perhaps_filter *f;
    perhaps_filter *made;
    perhaps_layout *layout, *restored;
    perhaps_builder *builder;
};

static struct perhaps_options watched_options(struct stage *s)
{
    struct perhaps_options options = options_of(s->kind);
    options.allocator = &s->allocator;
    return options;
}

static struct perhaps_open_options watched_open(struct stage *s, enum perhaps_mode mode)
{
    return (struct perhaps_open_options){ .mode = mode,
                                          .hashing = hashing(),
                                          .allocator = &s->allocator };
}

/* Releases what a call made. */
static void end_call(struct stage *s)
{
    perhaps_free(s->made);
    perhaps_layout_free(s->layout);
    perhaps_layout_free(s->restored);
    perhaps_builder_free(s->builder);
    s->made = NULL;
    s->layout = s->restored = NULL;
    s->builder = NULL;
}

static int call_create(struct stage *s)
{
    struct perhaps_options options = watched_options(s);
    return perhaps_create(&options, &s->made);
}

static int call_create_shared(struct stage *s)
{
    struct perhaps_options options = watched_options(s);
    options.shared = true;
    return perhaps_create(&options, &s->made);
}

static int call_create_like(struct stage *s)
{
    return perhaps_create_like(s->f, NULL, &s->allocator, &s->made);
}

static int call_create_like_other(struct stage *s)
{
    struct perhaps_hashing own = hashing();
    return perhaps_create_like(s->f, &own, &s->allocator, &s->made);
}

static int call_clone(struct stage *s)
{
    return perhaps_clone(s->f, &s->made);
}

static int call_free(struct stage *s)
{
    int error = perhaps_clone(s->f, &s->made);
    perhaps_free(s->made);
    s->made = NULL;
    return error;
}

/* Adds more keys than there is room for, so that filters grow. */
static int call_add(struct stage *s)
{
    int error = perhaps_clone(s->f, &s->made);
    if (!error)
        error = perhaps_add_many(s->made, &s->keys, NULL);
    return error == PERHAPS_ERR_MEMORY ? error : perhaps_add(s->made, "key", 3);
}

static int call_ask(struct stage *s)
{
    uint64_t count;
    perhaps_contains_many(s->f, &s->keys, NULL);
    perhaps_contains(s->f, "key", 3);
    return perhaps_count(s->f, "key", 3, &count);
}

static int call_remove(struct stage *s)
{
    int error = perhaps_clone(s->f, &s->made);
    return error ? error : perhaps_remove_many(s->made, &s->keys, NULL, NULL);
}

static int call_merge(struct stage *s)
{
    int error = perhaps_clone(s->f, &s->made);
    return error ? error : perhaps_merge(s->made, s->f);
}

static int call_shrink(struct stage *s)
{
    return perhaps_shrink(s->f, 2 * usual_fpr, &s->made);
}

/* Gives the old block back, as realloc() does. */
static void *move(void *context, void *memory, size_t nbytes)
{
    void *moved = watched_allocate(context, nbytes);
    if (!moved)
        return NULL;
    memcpy(moved, memory, nbytes);
    watched_release(context, memory, nbytes);
    return moved;
}

/* Without memory nothing moves, and that is no error. */
static int call_relocate(struct stage *s)
{
    int error = perhaps_clone(s->f, &s->made);
    if (!error)
        perhaps_relocate(&s->made, move, &s->watch);
    return error;
}

static int call_open(struct stage *s, enum perhaps_mode mode)
{
    struct perhaps_open_options options = watched_open(s, mode);
    return perhaps_open(s->path.text, &options, &s->made);
}

static int call_map(struct stage *s)
{
    return call_open(s, PERHAPS_MODE_READ);
}

static int call_load(struct stage *s)
{
    return call_open(s, PERHAPS_MODE_LOAD);
}

static int call_live(struct stage *s)
{
    return call_open(s, PERHAPS_MODE_LIVE);
}

static int call_from_bytes(struct stage *s)
{
    struct perhaps_open_options options = watched_open(s, PERHAPS_MODE_READ);
    return perhaps_from_bytes(s->bytes.at, s->bytes.nbytes, &options, &s->made);
}

/* One bit is wrong, so a half of what is given is that of the secret. */
static int call_with_wrong_secret(struct stage *s)
{
    static uint8_t wrong[sizeof secret];
    struct perhaps_open_options options = watched_open(s, PERHAPS_MODE_LOAD);
    memcpy(wrong, secret, sizeof wrong);
    wrong[0] ^= 1;
    options.hashing.secret = wrong;
    return perhaps_open(s->path.text, &options, &s->made);
}

static int call_save(struct stage *s)
{
    return perhaps_save(s->f, s->path.text);
}

static int call_layout_create(struct stage *s)
{
    struct perhaps_options options = watched_options(s);
    return perhaps_layout_create(&options, &s->layout);
}

static int call_layout_of(struct stage *s)
{
    return perhaps_layout_of(s->f, &s->layout);
}

static int call_layout_restore(struct stage *s)
{
    struct perhaps_description description;
    struct perhaps_hashing own = hashing();
    int error = perhaps_layout_of(s->f, &s->layout);
    if (error)
        return error;
    perhaps_layout_describe(s->layout, &description);
    return perhaps_layout_restore(&description, &own, &s->restored);
}

static int read_zeros(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    (void)context;
    (void)offset;
    memset(buffer, 0, nbytes);
    return 0;
}

static int call_layout_save(struct stage *s)
{
    struct path path = temp_path("layout");
    int error = perhaps_layout_of(s->f, &s->layout);
    return error ? error : perhaps_layout_save(s->layout, 1, read_zeros, NULL, path.text);
}

/* Without a capacity the keys of every kind wait until the end. */
static int build(struct stage *s, uint64_t capacity)
{
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 20, .threads = 1 };
    struct perhaps_options options = watched_options(s);
    options.capacity = capacity;
    int error = perhaps_builder_create(&options, &how, &s->builder);
    return error ? error : perhaps_builder_add_many(s->builder, &s->keys);
}

static int call_build(struct stage *s)
{
    int error = build(s, 4 * KEYS);
    return error ? error : perhaps_builder_finish(s->builder, &s->made);
}

static int call_build_unsized(struct stage *s)
{
    int error = build(s, 0);
    return error ? error : perhaps_builder_finish(s->builder, &s->made);
}

static int call_build_and_save(struct stage *s)
{
    struct path path = temp_path("built");
    int error = build(s, 0);
    return error ? error : perhaps_builder_save(s->builder, path.text);
}

static int call_build_and_drop(struct stage *s)
{
    return build(s, 0);
}

struct call {
    const char *name;
    int (*run)(struct stage *s);
};

static const struct call calls[] = {
    { "perhaps_create", call_create },
    { "perhaps_create, shared", call_create_shared },
    { "perhaps_create_like", call_create_like },
    { "perhaps_create_like, own hash", call_create_like_other },
    { "perhaps_clone", call_clone },
    { "perhaps_free", call_free },
    { "perhaps_add", call_add },
    { "perhaps_contains", call_ask },
    { "perhaps_remove", call_remove },
    { "perhaps_merge", call_merge },
    { "perhaps_shrink", call_shrink },
    { "perhaps_relocate", call_relocate },
    { "perhaps_open, mapped", call_map },
    { "perhaps_open, loaded", call_load },
    { "perhaps_open, in place", call_live },
    { "perhaps_from_bytes", call_from_bytes },
    { "perhaps_open, wrong secret", call_with_wrong_secret },
    { "perhaps_save", call_save },
    { "perhaps_layout_create", call_layout_create },
    { "perhaps_layout_of", call_layout_of },
    { "perhaps_layout_restore", call_layout_restore },
    { "perhaps_layout_save", call_layout_save },
};
static const struct call builder_calls[] = {
    { "perhaps_builder_finish", call_build },
    { "perhaps_builder_finish, no capacity", call_build_unsized },
    { "perhaps_builder_save", call_build_and_save },
    { "perhaps_builder_free, not finished", call_build_and_drop },
};
enum { CALLS = sizeof calls / sizeof *calls };
enum { BUILDER_CALLS = sizeof builder_calls / sizeof *builder_calls };

static struct bytes aligned_bytes(const perhaps_filter *f)
{
    struct bytes bytes = { .nbytes = perhaps_write_nbytes(f) };
    expect(!posix_memalign((void **)&bytes.at, PERHAPS_ALIGNMENT, bytes.nbytes));
    expect_success(perhaps_to_bytes(f, bytes.at, bytes.nbytes));
    return bytes;
}

/* Makes a filter and saves it; the stage gets a copy of it that comes from its allocator. */
static void begin_stage(struct stage *s, const struct perhaps_kind *kind)
{
    *s = (struct stage){ .kind = kind, .keys = make_keys(TEXT_KEYS, test_seed(), 0, 3 * KEYS) };
    pthread_mutex_init(&s->watch.lock, NULL);
    s->allocator = (struct perhaps_allocator){ watched_allocate, watched_release, &s->watch,
                                               .zeroes = true };
    struct perhaps_keys some = some_keys(&s->keys, 0, KEYS / 3);
    scoped_filter *original = secretive(kind, &some);
    s->path = temp_path("secretive");
    expect_success(perhaps_save(original, s->path.text));
    s->bytes = aligned_bytes(original);
    struct perhaps_open_options load = watched_open(s, PERHAPS_MODE_LOAD);
    expect_success(perhaps_from_bytes(s->bytes.at, s->bytes.nbytes, &load, &s->f));
}

static void end_stage(struct stage *s)
{
    perhaps_free(s->f);
    expect(is_clean(&s->watch, 0));
    free_bytes(&s->bytes);
    free_keys(&s->keys);
    pthread_mutex_destroy(&s->watch.lock);
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* Makes a call whose first allocation fails, then the second, and so on until it succeeds. */
static void check_releases(struct stage *s, const struct call *call)
{
    size_t before = s->watch.nblocks, number = 0;
    int error;
    do {
        s->watch.fail_at = s->watch.calls + ++number;
        error = call->run(s);
        end_call(s);
        scene("%s of %s, allocation %zu fails", call->name, s->kind->name, number);
        expect(is_clean(&s->watch, before) && number < 500);
    } while (s->watch.calls >= s->watch.fail_at);
    s->watch.fail_at = 0;
    expect(error != PERHAPS_ERR_MEMORY);
}

TEST_EACH(test_no_released_memory_holds_it, every_kind)
{
    static struct stage s;
    begin_stage(&s, kind);
    for (size_t i = 0; i < CALLS; i++)
        check_releases(&s, &calls[i]);
    end_stage(&s);
}

TEST_EACH(test_no_released_memory_of_builders_holds_it, every_kind)
{
    static struct stage s;
    begin_stage(&s, kind);
    for (size_t i = 0; i < BUILDER_CALLS; i++)
        check_releases(&s, &builder_calls[i]);
    end_stage(&s);
}

/* ---- The stack --------------------------------------------------------------------------- */

struct run {
    const struct call *call;
    struct stage *stage;
};

/* Goes down the stack first, below what a thread that ends writes over. */
static void *run_call(void *context)
{
    const struct run *run = context;
    uint8_t above[64 << 10];
    __asm__ volatile("" : : "r"(above) : "memory"); /* so that it is there */
    run->call->run(run->stage);
    __asm__ volatile("" : : "r"(above) : "memory");
    return NULL;
}

/* Makes a call in a thread of its own.  Returns whether the secret is on the stack of that
 * thread when it has ended. */
static bool stack_holds(struct stage *s, const struct call *call)
{
    enum { STACK_NBYTES = 256 << 10 };
    struct run run = { .call = call, .stage = s };
    pthread_attr_t attributes;
    pthread_t thread;
    uint8_t *stack = mmap(NULL, STACK_NBYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    expect(stack != MAP_FAILED);
    expect(!pthread_attr_init(&attributes));
    expect(!pthread_attr_setstack(&attributes, stack, STACK_NBYTES));
    expect(!pthread_create(&thread, &attributes, run_call, &run));
    expect(!pthread_join(thread, NULL));
    pthread_attr_destroy(&attributes);
    bool held = holds(stack, STACK_NBYTES);
    end_call(s);
    munmap(stack, STACK_NBYTES);
    return held;
}

/* A call that leaves it on purpose: this shows that the test would see it. */
static int call_and_leave(struct stage *s)
{
    uint8_t copy[16];
    memcpy(copy, secret, sizeof copy);
    __asm__ volatile("" : : "r"(copy), "r"(s) : "memory"); /* so that it is there */
    return 0;
}

/* Names all calls that leave the secret on the stack, whether they succeed or one of their
 * allocations fails.  Sanitizers keep local variables
 * elsewhere. */
static void check_stacks(const struct perhaps_kind *kind, const struct call *call,
                         size_t ncalls)
{
    static struct stage s;
    const struct call leaving = { "one that leaves it", call_and_leave };
    char names[1000] = "";
    if (SANITIZED)
        skip();
    begin_stage(&s, kind);
    expect(stack_holds(&s, &leaving));
    for (size_t i = 0; i < ncalls; i++) {
        size_t used = strlen(names), number = 0;
        bool held = false;
        do {
            s.watch.fail_at = s.watch.calls + ++number;
            held |= stack_holds(&s, &call[i]);
        } while (s.watch.calls >= s.watch.fail_at);
        s.watch.fail_at = 0;
        if (held)
            snprintf(names + used, sizeof names - used, "%s; ", call[i].name);
    }
    scene("%s: left on the stack by %s", kind->name, names);
    expect(!*names);
    end_stage(&s);
}

TEST_EACH(test_no_stack_holds_it, every_kind)
{
    check_stacks(kind, calls, CALLS);
}

TEST_EACH(test_no_stack_of_builders_holds_it, every_kind)
{
    check_stacks(kind, builder_calls, BUILDER_CALLS);
}

/* ---- What is told ------------------------------------------------------------------------ */

static void expect_untold(const char *what, const void *bytes, size_t nbytes)
{
    scene("%s in %s", scene_text(), what);
    expect(!holds(bytes, nbytes));
}

/* Every byte of what the library fills in, whatever it means. */
TEST_EACH(test_nothing_tells_it, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    scoped_filter *f = secretive(kind, &keys);
    struct {
        struct perhaps_stats stats, part;
        struct perhaps_plan plan;
        uint8_t digest[16];
        struct perhaps_hashed hashed[KEYS];
        struct perhaps_prepared prepared;
        struct perhaps_view view;
        struct perhaps_description description;
        struct perhaps_comparison comparison;
    } told;
    memset(&told, 0, sizeof told);
    const struct perhaps_options options = options_of(kind);
    perhaps_stats_of(f, &told.stats);
    perhaps_part(f, 0, &told.part);
    expect_success(perhaps_plan_for(&options, &told.plan));
    perhaps_digest(f, told.digest);
    expect_success(perhaps_hash_many(f, &keys, told.hashed));
    perhaps_prepare(f, "key", 3, &told.prepared);
    told.view = perhaps_view_of(f);
    perhaps_compare(f, f, &told.comparison);
    scoped_layout *layout = NULL;
    if (!perhaps_layout_of(f, &layout))
        perhaps_layout_describe(layout, &told.description);
    expect_untold("what the library tells", &told, sizeof told);
}

TEST(test_no_error_tells_it)
{
    for (int error = -200; error < 10; error++)
        expect_untold("an error", perhaps_strerror(error), strlen(perhaps_strerror(error)) + 1);
}

static void expect_not_in(const char *path)
{
    scoped_bytes bytes = read_file(path);
    expect(bytes.nbytes > 0);
    expect_untold(path, bytes.at, bytes.nbytes);
}

/* A file that was saved, written in place, built, or made smaller. */
TEST_EACH(test_no_file_holds_it, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, KEYS);
    scoped_filter *f = secretive(kind, &keys);
    struct path path = temp_path("file");
    expect_success(perhaps_save(f, path.text));
    expect_not_in(path.text);
    const struct perhaps_open_options live = { .mode = PERHAPS_MODE_LIVE,
                                               .hashing = hashing() };
    perhaps_filter *living;
    if (!perhaps_open(path.text, &live, &living)) {
        expect_success(perhaps_add(living, key_at(&keys, 0), keys.key_nbytes));
        expect_not_in(path.text); /* while it is open */
    }
    perhaps_free(living);
    expect_not_in(path.text);
    const struct perhaps_shrink_options coarse = { .fpr = 0.9 };
    if (!perhaps_shrink_save(f, &coarse, path.text))
        expect_not_in(path.text);
    struct perhaps_options options = options_of(kind);
    perhaps_builder *builder;
    expect_success(perhaps_builder_create(&options, NULL, &builder));
    expect_success(perhaps_builder_add_many(builder, &keys));
    expect_success(perhaps_builder_save(builder, path.text));
    perhaps_builder_free(builder);
    expect_not_in(path.text);
}

/* ---- Wrong secrets, and none ------------------------------------------------------------- */

static const enum perhaps_mode modes[] = { PERHAPS_MODE_READ, PERHAPS_MODE_LOAD };

/* Opens the file of a stage from its bytes and from its path.  Returns the error, which is the
 * same for both. */
static int try_both(struct stage *s, const struct perhaps_open_options *options)
{
    perhaps_filter *f;
    int error = perhaps_from_bytes(s->bytes.at, s->bytes.nbytes, options, &f);
    expect(!error || !f);
    perhaps_free(f);
    expect(try_open(s->path.text, options) == error);
    return error;
}

/* A secret that is wrong in one bit only is refused; 'without_secret' does not excuse it.  What
 * the attempts took is released, the files are closed, and the file is as it was. */
TEST_EACH(test_wrong_secrets, every_kind)
{
    static struct stage s;
    begin_stage(&s, kind);
    size_t before = s.watch.nblocks;
    unsigned files = count_beside("/proc/self/fd/0");
    for (unsigned way = 0; way < 4; way++)
        for (unsigned bit = 0; bit < 8 * sizeof secret; bit++) {
            struct perhaps_open_options options = watched_open(&s, modes[way % 2]);
            uint8_t wrong[sizeof secret];
            memcpy(wrong, secret, sizeof wrong);
            wrong[bit / 8] ^= (uint8_t)(1U << bit % 8);
            options.hashing.secret = wrong;
            options.without_secret = way / 2;
            expect_error(try_both(&s, &options), PERHAPS_ERR_SECRET);
        }
    for (unsigned way = 0; way < 2; way++) {
        struct perhaps_open_options options = watched_open(&s, modes[way]);
        expect_success(try_both(&s, &options));
        options.hashing.secret = NULL;
        expect_error(try_both(&s, &options), PERHAPS_ERR_SECRET);
        options.without_secret = true;
        expect_success(try_both(&s, &options));
    }
    expect(is_clean(&s.watch, before) && count_beside("/proc/self/fd/0") == files);
    scoped_bytes after = read_file(s.path.text);
    expect_same_bytes(&after, &s.bytes);
    end_stage(&s);
}

/* Without the secret every key is perhaps there, nothing can be changed, and the filter does
 * not tell what it does not know. */
TEST_EACH(test_without_the_secret, every_kind)
{
    static struct stage s;
    begin_stage(&s, kind);
    size_t before = s.watch.nblocks;
    scoped_keys strangers = make_keys(RANDOM_KEYS, test_seed(), 0, 10 * 1000);
    for (unsigned way = 0; way < 2; way++) {
        struct perhaps_open_options options = watched_open(&s, modes[way]);
        perhaps_filter *f;
        uint8_t out[sizeof secret] = { 0 };
        struct perhaps_hashed hashed;
        const struct perhaps_keys one = some_keys(&strangers, 0, 1);
        options.hashing.secret = NULL;
        options.without_secret = true;
        expect_success(perhaps_from_bytes(s.bytes.at, s.bytes.nbytes, &options, &f));
        expect_all_found(f, &strangers);
        for (size_t i = 0; i < strangers.count; i++)
            expect(perhaps_contains(f, key_at(&strangers, i), strangers.key_nbytes));
        expect_error(perhaps_secret(f, out), PERHAPS_ERR_SECRET);
        expect_error(perhaps_hash_many(f, &one, &hashed), PERHAPS_ERR_SECRET);
        expect(perhaps_add_many(f, &one, NULL) != 0 && perhaps_equal(f, s.f));
        expect(!holds(out, sizeof out));
        perhaps_free(f);
    }
    expect(is_clean(&s.watch, before));
    end_stage(&s);
}
