/* memory_test.c - proves that a call whose allocation fails returns PERHAPS_ERR_MEMORY, leaks
 * nothing and changes nothing.  The first allocation of the call fails, then the second, and so
 * on until the call succeeds, so every path to an error is taken.
 *
 * It also proves that a caller's allocator may return any address and any content, and that the
 * system's allocator gives zeros at the right alignment. */
#include "support.h"
#include <perhaps.h>

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "filter/filter.h"

/* ---- Calls that allocate ----------------------------------------------------------------- */

struct stage {
    const struct perhaps_kind *kind;
    struct ledger ledger;
    struct perhaps_allocator allocator;
    perhaps_filter *f;
    perhaps_filter *other; /* holds the other half of the keys */
    perhaps_filter *out;   /* what a call makes */
    struct path path;      /* where f was saved */
};

static int call_create(struct stage *s)
{
    struct perhaps_options options = options_for(s->kind, 1000, 0.01, 0);
    options.allocator = &s->allocator;
    return perhaps_create(&options, &s->out);
}

static int call_clone(struct stage *s)
{
    return perhaps_clone(s->f, &s->out);
}

static int call_merge(struct stage *s)
{
    return merges(s->kind) ? perhaps_merge(s->f, s->other) : 0;
}

static int call_save(struct stage *s)
{
    return perhaps_save(s->f, s->path.text);
}

static int call_open(struct stage *s, enum perhaps_mode mode)
{
    struct perhaps_open_options options = { .mode = mode, .allocator = &s->allocator };
    return perhaps_open(s->path.text, &options, &s->out);
}

static int call_map(struct stage *s)
{
    return call_open(s, PERHAPS_MODE_READ);
}

static int call_load(struct stage *s)
{
    return call_open(s, PERHAPS_MODE_LOAD);
}

static const struct {
    const char *name;
    int (*call)(struct stage *s);
    bool makes_one; /* sets s->out to a filter */
} calls[] = {
    { "create", call_create, true }, { "clone", call_clone, true },
    { "merge", call_merge, false },  { "save", call_save, false },
    { "map", call_map, true },       { "load", call_load, true },
};

/* ---- Failing one after the other --------------------------------------------------------- */

static perhaps_filter *half_filter(struct stage *s, uint64_t first)
{
    struct perhaps_options options = options_for(s->kind, 1000, 0.01, test_seed());
    scoped_keys keys = make_keys(TEXT_KEYS, 1, first, 400);
    options.allocator = &s->allocator;
    perhaps_filter *f = make_with(&options);
    fill(f, &keys);
    return f;
}

/* Makes two filters, each with half of the keys, and saves the first one. */
static void make_stage(struct stage *s, const struct perhaps_kind *kind, const char *name)
{
    *s = (struct stage){ .kind = kind, .path = temp_path(name) };
    s->allocator = ledger_allocator(&s->ledger);
    s->f = half_filter(s, 0);
    s->other = half_filter(s, 400);
    expect_success(perhaps_save(s->f, s->path.text));
}

static void free_stage(struct stage *s)
{
    perhaps_free(s->f);
    perhaps_free(s->other);
    expect(s->ledger.live == 0 && s->ledger.live_nbytes == 0);
}

/* Fails the first allocation of a call, then the second, and so on until the call succeeds. */
static void fail_each_allocation(struct stage *s, size_t c)
{
    scoped_filter *before = clone_of(s->f);
    struct ledger start = s->ledger;
    for (uint64_t number = 1;; number++) {
        scene("%s of %s, allocation %d fails", calls[c].name, s->kind->name, (int)number);
        s->ledger.fail_at = s->ledger.calls + number;
        s->out = s->f; /* a failed call must set it to NULL */
        int error = calls[c].call(s);
        s->ledger.fail_at = 0;
        if (!error)
            break;
        expect_error(error, PERHAPS_ERR_MEMORY);
        expect(!calls[c].makes_one || !s->out);
        expect(s->ledger.live == start.live && s->ledger.live_nbytes == start.live_nbytes);
        expect(perhaps_equal(s->f, before));
        expect_same_counters(s->f, before);
        expect(number < 100); /* no call allocates so often: it would never succeed */
    }
    if (calls[c].makes_one)
        perhaps_free(s->out);
    expect(s->ledger.live == start.live && s->ledger.live_nbytes == start.live_nbytes);
}

TEST_EACH(test_failing_allocations, any_kind)
{
    struct stage s;
    make_stage(&s, kind, "memory");
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        fail_each_allocation(&s, c);
    free_stage(&s);
}

/* A filter that grows allocates in some adds.  Each of these allocations fails once: the filter
 * must be as it was, except for the count of failed adds, and must take the same key when there
 * is memory again. */
static void grow_in_want(const struct perhaps_kind *kind, const char *base, bool shared)
{
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_options options = options_for(kind, 50, 0.01, test_seed());
    struct perhaps_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 60 * 1000);
    unsigned starved = 0;
    options.base = base;
    options.shared = shared;
    options.allocator = &allocator;
    perhaps_filter *f = make_with(&options), *mirror = make_with(&options);
    for (size_t k = 0; k < keys.count; k++) {
        const void *key = key_at(&keys, k);
        uint64_t number = 1;
        int error;
        do {
            scene("%s over %s, key %zu, allocation %u fails", kind->name, base ? base : "none",
                  k, (unsigned)number);
            uint64_t live = ledger.live, failed = f->counters->failed_adds;
            ledger.fail_at = ledger.calls + number++;
            error = perhaps_add(f, key, keys.key_nbytes);
            ledger.fail_at = 0;
            if (!error)
                break;
            expect_error(error, PERHAPS_ERR_MEMORY);
            expect(f->counters->failed_adds == failed + 1 &&
                   f->counters->keys == mirror->counters->keys);
            /* Up to two blocks may stay for the next try. */
            expect(perhaps_equal(f, mirror) && ledger.live <= live + 2);
            starved++;
        } while (true);
        expect_success(perhaps_add(mirror, key, keys.key_nbytes));
    }
    expect_all_found(f, &keys);
    expect(starved > 5 && perhaps_equal(f, mirror)); /* so it has grown several times */
    perhaps_free(f);
    perhaps_free(mirror);
    free_keys(&keys);
    expect(ledger.live == 0 && ledger.live_nbytes == 0);
}

TEST_EACH(test_failing_growth, grows)
{
    const char *base;
    for (int shared = 0; shared < 2; shared++)
        for (size_t i = 0; base_to_test(kind, i, &base); i++)
            if (!shared || takes_threads_over(kind, base))
                grow_in_want(kind, base, shared);
}

/* A save without memory leaves the old file, and no other beside it. */
TEST(test_failing_save)
{
    struct stage s;
    make_stage(&s, perhaps_kind_at(0), "only one");
    unsigned files = count_beside(s.path.text);
    for (uint64_t number = 1;; number++) {
        s.ledger.fail_at = s.ledger.calls + number;
        int error = perhaps_save(s.other, s.path.text);
        s.ledger.fail_at = 0;
        expect_success(call_map(&s));
        expect(perhaps_equal(s.out, error ? s.f : s.other));
        perhaps_free(s.out);
        expect(count_beside(s.path.text) == files);
        if (!error)
            break;
    }
    free_stage(&s);
}

/* Queries allocate nothing: they have no way to report an error. */
TEST(test_asking_allocates_nothing)
{
    scoped_keys keys = make_keys(TEXT_KEYS, 1, 0, 500);
    EACH_KIND(kind, any_kind) {
        struct stage s;
        uint64_t count;
        bool present[500];
        make_stage(&s, kind, "asking");
        uint64_t before = s.ledger.calls;
        perhaps_contains(s.f, "key", 3);
        perhaps_contains_many(s.f, &keys, present);
        perhaps_count(s.f, "key", 3, &count);
        perhaps_predict_fpr(s.f, stats_of(s.f).keys);
        expect(perhaps_equal(s.f, s.f) && s.ledger.calls == before);
        free_stage(&s);
    }
}

/* More memory than a machine has is an error, and no crash: 2^44 keys. */
TEST_EACH(test_more_than_there_is, any_kind)
{
    struct perhaps_options options =
        options_for(kind, PERHAPS_CAPACITY_MAX >> 4, low_rate(kind), 1);
    perhaps_filter *f = (perhaps_filter *)&options;
    expect_error(perhaps_create(&options, &f), PERHAPS_ERR_MEMORY);
    expect(!f);
}

/* ---- Addresses and bytes as a caller's allocator may return them ------------------------ */

/* What such a block begins with: its size, and then bytes that make the address odd.  The block
 * is filled with 0xa5, so that memory which is taken for zeros is noticed. */
enum { ODD_NBYTES = 3 };

static void *allocate_odd(void *context, size_t nbytes)
{
    uint64_t *live_nbytes = context;
    uint8_t *block = malloc(nbytes + sizeof nbytes + ODD_NBYTES);
    if (!block)
        return NULL;
    *live_nbytes += nbytes;
    memcpy(block, &nbytes, sizeof nbytes);
    return memset(block + sizeof nbytes + ODD_NBYTES, 0xa5, nbytes);
}

static void release_odd(void *context, void *memory, size_t nbytes)
{
    uint64_t *live_nbytes = context;
    size_t asked;
    uint8_t *block = (uint8_t *)memory - sizeof asked - ODD_NBYTES;
    memcpy(&asked, block, sizeof asked);
    expect(asked == nbytes);
    *live_nbytes -= nbytes;
    free(block);
}

/* Checks that a filter from the odd allocator equals one from the system's, byte for byte, also
 * after adds, save, load and clone. */
static void expect_same_with(const struct perhaps_options *options,
                             const struct perhaps_allocator *allocator)
{
    struct perhaps_options odd = *options;
    struct perhaps_open_options load = { .mode = PERHAPS_MODE_LOAD, .allocator = allocator };
    size_t count = options->capacity / 2;
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, count);
    struct path path = temp_path("odd");
    scoped_filter *loaded, *copy, *f = make_with(options);
    odd.allocator = allocator;
    scoped_filter *g = make_with(&odd);
    expect(perhaps_equal(f, g));
    fill(f, &keys);
    fill(g, &keys);
    expect(perhaps_equal(f, g) && stats_of(f).memory_nbytes == stats_of(g).memory_nbytes);
    expect_success(perhaps_save(g, path.text));
    expect_success(perhaps_open(path.text, &load, &loaded));
    expect_success(perhaps_clone(loaded, &copy));
    expect(perhaps_equal(loaded, f) && perhaps_equal(copy, f));
    expect_all_found(copy, &keys);
}

/* Bodies of one line, of a few lines, and of many pages. */
TEST(test_odd_addresses)
{
    uint64_t live_nbytes = 0;
    const struct perhaps_allocator allocator = { allocate_odd, release_odd, &live_nbytes,
                                                 false };
    const uint64_t capacities[] = { 1, 100, 200 * 1000 };
    EACH_KIND(kind, any_kind)
        for (size_t i = 0; i < 6; i++) {
            uint64_t capacity = capacities[i / 2];
            struct perhaps_options options = options_for(kind, capacity, 0.01, test_seed());
            options.shared = i % 2 && takes_threads(kind);
            scene("%s for %d keys, shared: %d", kind->name, (int)capacity, options.shared);
            expect_same_with(&options, &allocator);
            expect(live_nbytes == 0);
        }
}

TEST(test_odd_addresses_of_layouts)
{
    uint64_t live_nbytes = 0;
    const struct perhaps_allocator allocator = { allocate_odd, release_odd, &live_nbytes,
                                                 false };
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01, .hashing.seed = 1 };
    struct perhaps_description description, odd_description;
    perhaps_layout *layout, *odd;
    expect_success(perhaps_layout_create(&options, &layout));
    options.allocator = &allocator;
    expect_success(perhaps_layout_create(&options, &odd));
    perhaps_layout_describe(layout, &description);
    perhaps_layout_describe(odd, &odd_description);
    expect(description.check == odd_description.check && live_nbytes > 0);
    expect(!memcmp(description.field, odd_description.field, sizeof description.field));
    perhaps_layout_free(layout);
    perhaps_layout_free(odd);
    expect(live_nbytes == 0);
}

static void *allocate_marked(void *context, size_t nbytes)
{
    uint8_t *first = context;
    return memset(malloc(nbytes), *first, nbytes);
}

static void release_marked(void *context, void *memory, size_t nbytes)
{
    (void)context;
    (void)nbytes;
    free(memory);
}

/* An allocator that promises zeros is believed: the library does not write them again. */
TEST(test_allocator_of_zeros)
{
    uint8_t fill = 0x5a;
    struct perhaps_allocator marked = { allocate_marked, release_marked, &fill, true };
    uint8_t *memory = allocate(&marked, 1000);
    for (unsigned i = 0; i < 1000; i++)
        expect(memory[i] == 0x5a);
    release(&marked, memory, 1000);
    fill = 0;
    EACH_KIND(kind, any_kind) {
        struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
        expect_same_with(&options, &marked);
    }
}

/* ---- The system's allocator -------------------------------------------------------------- */

/* Returns the size of this process's address space in pages. */
static long mapped_pages(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    expect(file && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    return pages;
}

static void check_block(const struct perhaps_allocator *system, size_t nbytes)
{
    uint8_t *memory = allocate(system, nbytes);
    scene("%zu bytes", nbytes);
    expect(memory && (uintptr_t)memory % 64 == 0);
    expect(nbytes < 2 << 20 || (uintptr_t)memory % (2 << 20) == 0);
    for (size_t i = 0; i < nbytes; i += 61)
        expect(!memory[i]);
    expect(!memory[nbytes - 1]);
    memset(memory, 0xff, nbytes); /* the next block must not see it */
    release(system, memory, nbytes);
}

/* Sizes around a cache line and around a huge page of 2 MiB, from which on memory is mapped and
 * aligned for huge pages.  Everything must be unmapped again. */
TEST(test_system_allocator)
{
    const struct perhaps_allocator system = allocator_or_system(NULL);
    const size_t huge = 2 << 20;
    const size_t sizes[] = { 1, 63, 64, 65, 4096, huge - 1, huge, huge + 1, 3 * huge - 64 };
    long before = 0;
    for (unsigned round = 0; round < 20; round++) {
        if (round == 10) /* by then malloc() has taken what it keeps for later */
            before = mapped_pages();
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            check_block(&system, sizes[s]);
    }
    expect(SANITIZED || mapped_pages() - before < (long)(huge / 4096));
    expect(!allocate(&system, UINT64_MAX) && !allocate(&system, UINT64_MAX - huge));
    expect(!allocate(&system, UINT64_C(1) << 60));
    release(&system, NULL, 64);
}
