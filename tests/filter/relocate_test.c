/* relocate_test.c - proves that perhaps_relocate() leaves no address of memory that has moved:
 * random histories run on a filter that is moved again and again, and on a twin that is not,
 * and both must stay equal.  A block that has moved is filled with other bytes and released,
 * and the new one begins at another offset from a multiple of 64.
 *
 * It also proves that perhaps_memory_nbytes() tells all memory of a filter to the byte. */
#include "support.h"
#include <perhaps_window.h>

#include <string.h>

#include "kinds/kinds.h"
#include "kinds/slots/segments.h"

/* ---- An allocator whose blocks can move ------------------------------------------------- */

struct yard {
    struct rng rng;
    uint64_t live_nbytes;
    uint64_t moved;      /* how many blocks have moved */
    uint64_t stays_of_8; /* how many of 8 blocks stay */
    bool failing;        /* there is no memory but for moves */
};

/* What lies before a block, at any address. */
struct tag {
    void *whole;
    size_t nbytes;
};

static uint8_t *take(struct yard *yard, size_t nbytes)
{
    const size_t shift = (size_t)rng_below(&yard->rng, 64);
    struct tag tag = { malloc(sizeof tag + shift + nbytes), nbytes };
    expect(tag.whole);
    uint8_t *block = (uint8_t *)tag.whole + shift + sizeof tag;
    memcpy(block - sizeof tag, &tag, sizeof tag);
    yard->live_nbytes += nbytes;
    return memset(block, 0xa5, nbytes);
}

static void give_back(struct yard *yard, uint8_t *block, size_t nbytes)
{
    struct tag tag;
    memcpy(&tag, block - sizeof tag, sizeof tag);
    expect(tag.nbytes == nbytes);
    yard->live_nbytes -= nbytes;
    memset(block, 0xdd, nbytes);
    free(tag.whole);
}

static void *yard_allocate(void *context, size_t nbytes)
{
    struct yard *yard = context;
    return yard->failing ? NULL : take(yard, nbytes);
}

static void yard_release(void *context, void *memory, size_t nbytes)
{
    give_back(context, memory, nbytes);
}

static void *yard_move(void *context, void *memory, size_t nbytes)
{
    struct yard *yard = context;
    if (rng_below(&yard->rng, 8) < yard->stays_of_8)
        return NULL;
    uint8_t *block = take(yard, nbytes);
    memcpy(block, memory, nbytes);
    give_back(yard, memory, nbytes);
    yard->moved++;
    return block;
}

static struct perhaps_allocator yard_allocator(struct yard *yard)
{
    return (struct perhaps_allocator){ .allocate = yard_allocate,
                                       .release = yard_release,
                                       .context = yard };
}

/* ---- Histories --------------------------------------------------------------------------- */

struct twins {
    const struct perhaps_kind *kind;
    struct perhaps_options options;
    struct perhaps_allocator allocator;
    struct yard yard;
    struct rng rng;
    perhaps_filter *f, *twin;
    struct perhaps_keys keys;
    uint64_t time;
};

/* Returns up to a tenth of the keys, one behind the other. */
static struct perhaps_keys any_keys(struct twins *p)
{
    size_t first = (size_t)rng_below(&p->rng, p->keys.count);
    size_t left = p->keys.count - first, most = p->keys.count / 10;
    return some_keys(&p->keys, first,
                     (size_t)rng_below(&p->rng, 1 + (left < most ? left : most)));
}

static void do_add(struct twins *p)
{
    struct perhaps_keys some = any_keys(p);
    size_t done, twin_done;
    int error = perhaps_add_many(p->f, &some, &done);
    expect_error(perhaps_add_many(p->twin, &some, &twin_done), error);
    expect(done == twin_done);
}

static void do_single(struct twins *p)
{
    struct perhaps_keys some = any_keys(p);
    for (size_t i = 0; i < some.count && i < 20; i++) {
        const void *key = key_at(&some, i);
        int error = perhaps_add(p->f, key, some.key_nbytes);
        expect_error(perhaps_add(p->twin, key, some.key_nbytes), error);
        expect(perhaps_contains(p->f, key, some.key_nbytes) ==
               perhaps_contains(p->twin, key, some.key_nbytes));
    }
}

static void do_remove(struct twins *p)
{
    struct perhaps_keys some = any_keys(p);
    size_t removed = 0, twin_removed = 0;
    some.count /= 2;
    int error = perhaps_remove_many(p->f, &some, NULL, &removed, NULL);
    expect_error(perhaps_remove_many(p->twin, &some, NULL, &twin_removed, NULL), error);
    expect(removed == twin_removed);
}

static void do_forget(struct twins *p)
{
    p->time += rng_below(&p->rng, 100);
    int error = p->time % 2 ? perhaps_rotate(p->f) : perhaps_advance(p->f, p->time);
    expect_error(p->time % 2 ? perhaps_rotate(p->twin) : perhaps_advance(p->twin, p->time),
                 error);
}

static void do_merge(struct twins *p)
{
    struct perhaps_keys some = any_keys(p);
    scoped_filter *other = make_with(&p->options);
    perhaps_add_many(other, &some, NULL);
    int error = perhaps_merge(p->twin, other);
    expect_error(perhaps_merge(p->f, other), error);
}

static void do_clone(struct twins *p)
{
    perhaps_filter *f = clone_of(p->f), *twin = clone_of(p->twin);
    perhaps_free(p->f);
    perhaps_free(p->twin);
    p->f = f;
    p->twin = twin;
}

static void do_clear(struct twins *p)
{
    expect_success(perhaps_clear(p->f));
    expect_success(perhaps_clear(p->twin));
}

static void relocate_with(struct twins *p, uint64_t stays_of_8)
{
    p->yard.stays_of_8 = stays_of_8;
    p->yard.failing = rng_below(&p->rng, 4) == 0;
    perhaps_relocate(&p->f, yard_move, &p->yard);
    p->yard.failing = false;
}

static void expect_twins(struct twins *p)
{
    static bool present[20 * 1000], twin_present[20 * 1000];
    struct perhaps_keys some = any_keys(p);
    expect(some.count <= sizeof present);
    expect(perhaps_contains_many(p->f, &some, present) ==
           perhaps_contains_many(p->twin, &some, twin_present));
    expect(!memcmp(present, twin_present, some.count));
    expect(perhaps_equal(p->f, p->twin));
    expect_same_counters(p->f, p->twin);
    expect(perhaps_memory_nbytes(p->f) == p->yard.live_nbytes);
}

static void step(struct twins *p)
{
    uint64_t die = rng_below(&p->rng, 100);
    if (die < 30)
        do_add(p);
    else if (die < 45)
        do_single(p);
    else if (die < 55)
        do_remove(p);
    else if (die < 60)
        do_forget(p);
    else if (die < 62)
        do_merge(p);
    else if (die < 64)
        do_clone(p);
    else if (die < 65)
        do_clear(p);
    else
        relocate_with(p, die % 9);
}

/* Makes both filters and the keys that they may get. */
static void begin(struct twins *p, const struct perhaps_options *options, struct rng rng)
{
    struct perhaps_options own = *options;
    *p = (struct twins){ .kind = &kind_by_name(options->kind)->about, .rng = rng };
    p->options = *options;
    p->yard.rng = rng;
    p->allocator = yard_allocator(&p->yard);
    own.allocator = &p->allocator;
    p->f = make_with(&own);
    p->twin = make_with(options);
    /* an elastic filter begins with room for about 30,000 keys */
    p->keys = make_keys(RANDOM_KEYS, options->hashing.seed, 0,
                        grows_in_place(p->kind) ? 200 * 1000 : 20 * options->capacity);
}

/* Returns whether an elastic filter has segments outside of its body. */
static bool has_blocks(const perhaps_filter *f)
{
    const struct state *state = f->state;
    return state->nblocks > 0;
}

static void run_history(const struct perhaps_options *options, struct rng rng)
{
    static struct twins p;
    unsigned with_blocks = 0;
    begin(&p, options, rng);
    for (unsigned number = 0; number < 300; number++) {
        scene("%s over %s, shared: %d, %d keys, step %u", options->kind,
              options->base ? options->base : "none", options->shared, (int)options->capacity,
              number);
        step(&p);
        expect_twins(&p);
        with_blocks += grows_in_place(p.kind) && has_blocks(p.f);
    }
    expect(p.yard.moved > 20 && (!grows_in_place(p.kind) || with_blocks > 20));
    perhaps_free(p.f);
    perhaps_free(p.twin);
    free_keys(&p.keys);
    expect(p.yard.live_nbytes == 0);
}

static void run_histories(const struct perhaps_kind *kind, const char *base, bool by_time)
{
    const uint64_t capacities[] = { 1, 100, 2000 };
    struct rng rng = rng_for(kind->name);
    for (unsigned i = 0; i < 6; i++) {
        struct perhaps_options options =
            options_for(kind, capacities[i / 2], 0.01, 1 + rng_next(&rng));
        options.base = base;
        options.shared = i % 2;
        if (by_time)
            options.window = (struct perhaps_window_options){ .time = 1000 };
        if (!options.shared || takes_threads_over(kind, base))
            run_history(&options, rng);
    }
}

TEST_EACH(test_histories, any_kind)
{
    const char *base;
    for (size_t i = 0; base_to_test(kind, i, &base); i++)
        run_histories(kind, base, false);
}

TEST_EACH(test_histories_by_time, forgets)
{
    run_histories(kind, "chain", true);
    run_histories(kind, "elastic", true);
}

/* ---- Other filters ----------------------------------------------------------------------- */

/* Of every kind, also those that are built once: loaded; and mapped, where the body stays. */
TEST_EACH(test_opened, every_kind)
{
    const struct perhaps_open_options *const ways[] = { &load_it, &map_it, &checking };
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 3000);
    struct path path = temp_path("opened");
    scoped_filter *f = full_filter(kind, 3000, 0.001, &keys);
    expect_success(perhaps_save(f, path.text));
    for (unsigned i = 0; i < 3; i++) {
        struct yard yard = { .rng = rng_for(kind->name) };
        struct perhaps_allocator allocator = yard_allocator(&yard);
        struct perhaps_open_options options = *ways[i];
        struct perhaps_verdict verdict;
        options.allocator = &allocator;
        perhaps_filter *opened = open_file(path.text, &options);
        for (unsigned times = 0; times < 10; times++) {
            perhaps_relocate(&opened, yard_move, &yard);
            expect_all_found(opened, &keys);
            expect(perhaps_equal(opened, f));
            uint64_t mapped =
                options.mode == PERHAPS_MODE_READ ? stats_of(f).plan.body_nbytes : 0;
            expect(grows_in_place(kind) ||
                   perhaps_memory_nbytes(opened) == yard.live_nbytes + mapped);
        }
        expect(!options.check || !perhaps_checked(opened, &verdict));
        expect(yard.moved >= 10);
        perhaps_free(opened);
        expect(yard.live_nbytes == 0);
    }
}

static void *move_without_secret(void *context, void *memory, size_t nbytes)
{
    struct yard *yard = context;
    expect(!memmem(memory, nbytes, "sixteen  letters", 16));
    return yard_move(yard, memory, nbytes);
}

/* The secret of a filter must not stay in memory that was released. */
TEST(test_secret)
{
    struct yard yard = { .rng = rng_for("secret") };
    struct perhaps_allocator allocator = yard_allocator(&yard);
    const struct perhaps_options options = {
        .capacity = 100,
        .fpr = 1e-6,
        .kind = "chain",
        .hashing = { .hash = PERHAPS_HASH_SIP, .secret = (const uint8_t *)"sixteen  letters" },
        .allocator = &allocator,
    };
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 2000);
    perhaps_filter *f = make_with(&options);
    fill(f, &keys);
    for (unsigned times = 0; times < 10; times++) {
        perhaps_relocate(&f, move_without_secret, &yard);
        expect_all_found(f, &keys);
    }
    perhaps_free(f);
    expect(yard.live_nbytes == 0 && yard.moved > 20);
}

static void *must_not_move(void *context, void *memory, size_t nbytes)
{
    (void)context;
    (void)memory;
    (void)nbytes;
    expect(false);
    return NULL;
}

TEST_EACH(test_memory_of_the_system, any_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 100);
    scoped_filter *f = full_filter(kind, 100, 0.01, &keys);
    perhaps_filter *before = f;
    perhaps_relocate(&f, must_not_move, NULL);
    expect(f == before);
}
