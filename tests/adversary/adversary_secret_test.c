/* adversary_secret_test.c - proves that the secret of a sip filter is in no memory that was
 * released, and not on the stack below a call that has returned: on every path, also if an
 * allocation fails. */
#include "secretive.h"
#include <perhaps_build.h>
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "store/journal.h"

/* ---- Calls ------------------------------------------------------------------------------- */

/* What calls work on, and what they make: it is released later, so that what a call leaves on
 * the stack is not written over. */
struct stage {
    const struct perhaps_kind *kind;
    struct perhaps_keys keys;
    struct watch watch;
    struct perhaps_allocator allocator;
    struct path path;      /* where the filter was saved */
    struct path journaled; /* where it was saved once more, to be made live */
    struct bytes bytes;    /* the same, at an address that is aligned */
    perhaps_filter *f;
    perhaps_filter *made;
    perhaps_layout *layout, *restored;
    perhaps_builder *builder;
};

static struct perhaps_options watched_options(struct stage *s)
{
    struct perhaps_options options = secretive_options(s->kind);
    options.allocator = &s->allocator;
    return options;
}

static struct perhaps_open_options watched_open(struct stage *s, enum perhaps_mode mode)
{
    return (struct perhaps_open_options){ .mode = mode,
                                          .hashing = secretive_hashing(),
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
    struct perhaps_hashing own = secretive_hashing();
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
    return error ? error : perhaps_remove_many(s->made, &s->keys, NULL, NULL, NULL);
}

static int call_merge(struct stage *s)
{
    int error = perhaps_clone(s->f, &s->made);
    return error ? error : perhaps_merge(s->made, s->f);
}

static int call_shrink(struct stage *s)
{
    return perhaps_shrink(s->f, 0.02, &s->made);
}

/* Without memory nothing moves, and that is no error. */
static int call_relocate(struct stage *s)
{
    int error = perhaps_clone(s->f, &s->made);
    if (!error)
        perhaps_relocate(&s->made, watch_move, &s->watch);
    return error;
}

static int call_open(struct stage *s, struct path path, enum perhaps_mode mode)
{
    struct perhaps_open_options options = watched_open(s, mode);
    return perhaps_open(path.text, &options, &s->made);
}

static int call_map(struct stage *s)
{
    return call_open(s, s->path, PERHAPS_MODE_READ);
}

static int call_load(struct stage *s)
{
    return call_open(s, s->path, PERHAPS_MODE_LOAD);
}

static int call_live(struct stage *s)
{
    return call_open(s, s->path, PERHAPS_MODE_IN_PLACE);
}

/* Only kinds that take keys as they come have a journal. */
static int call_journal(struct stage *s)
{
    int error = is_built(s->kind) ? 0 : call_open(s, s->journaled, PERHAPS_MODE_JOURNAL);
    if (!error && s->made)
        error = perhaps_add_many(s->made, &s->keys, NULL);
    if (error != PERHAPS_ERR_MEMORY && s->made)
        error = perhaps_sync(s->made);
    return error;
}

static int call_from_bytes(struct stage *s)
{
    struct perhaps_open_options options = watched_open(s, PERHAPS_MODE_READ);
    return perhaps_from_bytes(s->bytes.at, s->bytes.nbytes, &options, &s->made);
}

/* One bit is wrong, so a half of what is given is that of the secret. */
static int call_with_wrong_secret(struct stage *s)
{
    static uint8_t wrong[sizeof known_secret];
    struct perhaps_open_options options = watched_open(s, PERHAPS_MODE_LOAD);
    memcpy(wrong, known_secret, sizeof wrong);
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
    struct perhaps_hashing own = secretive_hashing();
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
    int error = build(s, 4 * SECRETIVE_KEYS);
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
    { "perhaps_open, with a journal", call_journal },
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

static struct path path_of_journal(const struct stage *s)
{
    return journal_of(s->journaled);
}

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
    *s = (struct stage){ .kind = kind,
                         .keys = make_keys(TEXT_KEYS, test_seed(), 0, 3 * SECRETIVE_KEYS) };
    watch_begin(&s->watch);
    s->allocator = watch_allocator(&s->watch);
    struct perhaps_keys some = some_keys(&s->keys, 0, SECRETIVE_KEYS / 3);
    scoped_filter *original = secretive_filter(kind, &some);
    s->path = temp_path("secretive");
    s->journaled = temp_path("journaled");
    remove(path_of_journal(s).text);
    remove(s->journaled.text);
    expect_success(perhaps_save(original, s->path.text));
    expect_success(perhaps_save(original, s->journaled.text));
    s->bytes = aligned_bytes(original);
    struct perhaps_open_options load = watched_open(s, PERHAPS_MODE_LOAD);
    expect_success(perhaps_from_bytes(s->bytes.at, s->bytes.nbytes, &load, &s->f));
}

static void end_stage(struct stage *s)
{
    perhaps_free(s->f);
    expect(watch_is_clean(&s->watch, 0));
    free_bytes(&s->bytes);
    free_keys(&s->keys);
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
        expect(watch_is_clean(&s->watch, before) && number < 500);
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

struct own_stack {
    const struct call *call;
    struct stage *stage;
};

/* Goes down the stack first, below what a thread that ends writes over. */
static void *run_call(void *context)
{
    const struct own_stack *own = context;
    uint8_t above[16 << 10];
    __asm__ volatile("" : : "r"(above) : "memory"); /* so that it is there */
    own->call->run(own->stage);
    __asm__ volatile("" : : "r"(above) : "memory");
    return NULL;
}

/* Makes a call in a thread of its own.  Returns whether the secret is on the stack of that
 * thread when it has ended. */
static bool stack_holds(struct stage *s, const struct call *call)
{
    enum { STACK_NBYTES = 192 << 10 };
    struct own_stack own = { .call = call, .stage = s };
    pthread_attr_t attributes;
    pthread_t thread;
    uint8_t *stack = mmap(NULL, STACK_NBYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    expect(stack != MAP_FAILED);
    expect(!pthread_attr_init(&attributes));
    expect(!pthread_attr_setstack(&attributes, stack, STACK_NBYTES));
    expect(!pthread_create(&thread, &attributes, run_call, &own));
    expect(!pthread_join(thread, NULL));
    pthread_attr_destroy(&attributes);
    size_t untouched = 0;
    while (untouched < STACK_NBYTES && !stack[untouched])
        untouched++;
    bool held = holds_secret(stack + untouched, STACK_NBYTES - untouched);
    end_call(s);
    munmap(stack, STACK_NBYTES);
    return held;
}

/* A call that leaves it on purpose: this shows that the test would see it. */
static int call_and_leave(struct stage *s)
{
    uint8_t copy[16];
    memcpy(copy, known_secret, sizeof copy);
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
    s.watch.blind = true;
    expect(stack_holds(&s, &leaving));
    for (size_t i = 0; i < ncalls; i++) {
        size_t used = strlen(names), number = 0, before = s.watch.nblocks;
        bool held = false;
        do {
            s.watch.fail_at = s.watch.calls + ++number;
            held |= stack_holds(&s, &call[i]);
            watch_is_clean(&s.watch, before);
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
