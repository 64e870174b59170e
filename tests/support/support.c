/* support.c - what the tests share: see support.h.  All that looks random follows from
 * the seed, so that a failing test fails again in the next run. */
#include "support.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "filter/filter.h"

/* ---- Expectations ---------------------------------------------------------------------- */

static char current_scene[256];

void scene(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(current_scene, sizeof current_scene, format, arguments);
    va_end(arguments);
}

const char *scene_text(void)
{
    return current_scene;
}

/* ---- Tests ----------------------------------------------------------------------------- */

/* The tests of this program.  cmocka skips entries without a name, so the whole array can be
 * passed.  The size is a limit with room to spare: add_test() aborts beyond it. */
static struct CMUnitTest tests[64];

void add_test(const char *name, CMUnitTestFunction function)
{
    static size_t ntests;
    if (ntests == sizeof tests / sizeof *tests)
        abort();
    tests[ntests++] = (struct CMUnitTest){ .name = name, .test_func = function };
}

/* Returns the best instruction set of this CPU, which filters take by default. */
static const char *usual_cpu(void)
{
    const char *name = NULL;
    for (unsigned i = 0; i < CPU_COUNT; i++)
        if (cpu_has((enum cpu)i))
            name = cpu_name((enum cpu)i);
    return name;
}

bool has_cpu(void)
{
    const char *wanted = getenv("PERHAPS_CPU");
    if (!wanted)
        return true;
    perhaps_filter *f = make_filter(perhaps_kind_at(0), 1, 0.5, 1);
    bool has = !strcmp(stats_of(f).cpu, wanted);
    perhaps_free(f);
    return has && strcmp(wanted, usual_cpu()) != 0;
}

int run_all_tests(void)
{
    cmocka_set_test_filter(getenv("PERHAPS_TEST"));
    return has_cpu() ? cmocka_run_group_tests(tests, NULL, NULL) : CANNOT_TRY;
}

void release_filter(perhaps_filter **f)
{
    perhaps_free(*f);
}

void release_builder(perhaps_builder **builder)
{
    perhaps_builder_free(*builder);
}

void release_layout(perhaps_layout **layout)
{
    perhaps_layout_free(*layout);
}

void free_memory(uint8_t **memory)
{
    free(*memory);
}

/* ---- Numbers --------------------------------------------------------------------------- */

unsigned many(unsigned number)
{
    return SANITIZED || getenv("PERHAPS_CPU") ? number / 10 : number;
}

bool every_case(void)
{
    return getenv("PERHAPS_TEST_EVERY") != NULL;
}

void run_threads(unsigned count, void *run(void *), void *elements, size_t element_nbytes)
{
    enum { THREADS_MOST = 64 };
    pthread_t thread[THREADS_MOST];
    expect(count <= THREADS_MOST);
    for (unsigned i = 0; i < count; i++)
        expect(!pthread_create(&thread[i], NULL, run, (char *)elements + i * element_nbytes));
    for (unsigned i = 0; i < count; i++)
        expect(!pthread_join(thread[i], NULL));
}

bool is_tried(size_t number, unsigned of)
{
    return every_case() || (number + test_seed()) % of == 0;
}

/* Runs that begin in the same nanosecond would have the same. */
static uint64_t seed_of_now(void)
{
    struct timespec now = { 0 };
    clock_gettime(CLOCK_REALTIME, &now);
    return mix64((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}

uint64_t test_seed(void)
{
    static uint64_t seed;
    if (seed)
        return seed;
    const char *given = getenv("PERHAPS_TEST_SEED");
    if (!given)
        seed = 1;
    else if (strcmp(given, "fresh") != 0)
        seed = strtoull(given, NULL, 0);
    else
        seed = seed_of_now();
    seed += !seed; /* 0 means that there is no seed yet */
    printf("PERHAPS_TEST_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    return seed;
}

/* The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators, OOPSLA 2014), and its step. */
uint64_t mix64(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

uint64_t rng_next(struct rng *rng)
{
    return mix64(rng->state += UINT64_C(0x9E3779B97F4A7C15));
}

/* Multiplies instead of dividing.  The bias is at most limit / 2^64. */
uint64_t rng_below(struct rng *rng, uint64_t limit)
{
    return (uint64_t)(((unsigned __int128)rng_next(rng) * limit) >> 64);
}

struct rng rng_for(const char *test)
{
    struct rng rng = { .state = test_seed() };
    for (; *test; test++)
        rng.state = mix64(rng.state + (unsigned char)*test);
    return rng;
}

/* ---- Keys ------------------------------------------------------------------------------ */

static const size_t shape_nbytes[] = {
    [SEQUENTIAL_KEYS] = 8,
    [RANDOM_KEYS] = 8,
    [TEXT_KEYS] = 20,
    [HASH_KEYS] = PERHAPS_HASH_NBYTES,
};

/* Writes "mail/" and 15 decimal digits: text keys have a common prefix, as real ones have. */
static void write_text(uint8_t *at, uint64_t number)
{
    static const char prefix[] = { 'm', 'a', 'i', 'l', '/' };
    memcpy(at, prefix, sizeof prefix);
    for (unsigned i = 19; i >= 5; i--, number /= 10)
        at[i] = (uint8_t)('0' + number % 10);
}

/* Writes one key of a set.  Different indexes give different keys, since mix64() is a
 * bijection; hash keys have both halves random. */
static void write_key(uint8_t *at, enum key_shape shape, uint64_t seed, uint64_t index)
{
    uint64_t words[2] = { index, 0 };
    switch (shape) {
    case SEQUENTIAL_KEYS:
        words[0] += seed >> 1;
        break;
    case RANDOM_KEYS:
        words[0] = mix64(index + mix64(seed));
        break;
    case TEXT_KEYS:
        write_text(at, index + seed % UINT64_C(100000000000000));
        return;
    case HASH_KEYS:
        words[0] = mix64(index + mix64(seed));
        words[1] = mix64(words[0] + seed);
        break;
    }
    memcpy(at, words, shape_nbytes[shape]);
}

struct perhaps_keys make_keys(enum key_shape shape, uint64_t seed, uint64_t first, size_t count)
{
    size_t nbytes = shape_nbytes[shape];
    uint8_t *packed = malloc(count * nbytes + 1); /* never 0 bytes, which may give NULL */
    expect(packed);
    for (size_t i = 0; i < count; i++)
        write_key(packed + i * nbytes, shape, seed, first + i);
    return perhaps_keys_packed(packed, nbytes, count);
}

void free_keys(struct perhaps_keys *keys)
{
    free((void *)keys->packed);
    keys->packed = NULL;
}

const void *key_at(const struct perhaps_keys *keys, size_t index)
{
    return (const uint8_t *)keys->packed + index * keys->key_nbytes;
}

struct perhaps_keys some_keys(const struct perhaps_keys *keys, size_t first, size_t count)
{
    return perhaps_keys_slice(keys, first, count);
}

/* ---- Filters --------------------------------------------------------------------------- */

perhaps_filter *make_with(const struct perhaps_options *options)
{
    perhaps_filter *f;
    expect_success(perhaps_create(options, &f));
    return f;
}

perhaps_filter *make_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                            uint64_t seed)
{
    struct perhaps_options options = options_for(kind, capacity, fpr, seed);
    return make_with(&options);
}

perhaps_filter *shared_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                              uint64_t seed)
{
    struct perhaps_options options = options_for(kind, capacity, fpr, seed);
    options.shared = true;
    return make_with(&options);
}

perhaps_builder *builder_of(const struct perhaps_options *options,
                            const struct perhaps_build_options *how)
{
    perhaps_builder *builder;
    expect_success(perhaps_builder_create(options, how, &builder));
    return builder;
}

perhaps_filter *filter_built(perhaps_builder *builder)
{
    perhaps_filter *f;
    expect_success(perhaps_builder_finish(builder, &f));
    return f;
}

perhaps_filter *built_filter(const struct perhaps_options *options,
                             const struct perhaps_keys *keys)
{
    scoped_builder *builder = builder_of(options, NULL);
    expect_success(perhaps_builder_add_many(builder, keys));
    return filter_built(builder);
}

perhaps_filter *full_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                            const struct perhaps_keys *keys)
{
    struct perhaps_options options = options_for(kind, capacity, fpr, test_seed());
    if (is_built(kind))
        return built_filter(&options, keys);
    perhaps_filter *f = make_with(&options);
    fill(f, keys);
    return f;
}

perhaps_layout *layout_of(const perhaps_filter *f)
{
    perhaps_layout *layout;
    expect_success(perhaps_layout_of(f, &layout));
    return layout;
}

perhaps_filter *clone_of(const perhaps_filter *f)
{
    perhaps_filter *copy;
    expect_success(perhaps_clone(f, &copy));
    return copy;
}

const struct perhaps_open_options map_it = { .mode = PERHAPS_MODE_READ },
                                  load_it = { .mode = PERHAPS_MODE_LOAD },
                                  in_place = { .mode = PERHAPS_MODE_IN_PLACE },
                                  without_secret = { .without_secret = true },
                                  checking = { .check = true };
const struct perhaps_open_options *const ways_to_open[] = { &map_it, &load_it };

perhaps_filter *open_file(const char *path, const struct perhaps_open_options *options)
{
    perhaps_filter *f;
    expect_success(perhaps_open(path, options, &f));
    return f;
}

int try_open(const char *path, const struct perhaps_open_options *options)
{
    perhaps_filter *f = (perhaps_filter *)&path; /* any pointer but NULL */
    int error = perhaps_open(path, options, &f), reason = errno;
    expect(!error || !f);
    perhaps_free(f);
    errno = reason;
    return error;
}

void fill(perhaps_filter *f, const struct perhaps_keys *keys)
{
    size_t done;
    expect_success(perhaps_add_many(f, keys, &done));
    expect(done == keys->count);
}

void expect_all_found(const perhaps_filter *f, const struct perhaps_keys *keys)
{
    expect(perhaps_contains_many(f, keys, NULL) == keys->count);
}

size_t overfill(perhaps_filter *f, const struct perhaps_keys *keys, size_t failures,
                size_t *before_first)
{
    perhaps_filter *mirror = clone_of(f);
    size_t failed = 0, at = 0;
    for (; at < keys->count && failed < failures; at++) {
        const void *key = key_at(keys, at);
        int error = perhaps_add(f, key, keys->key_nbytes);
        if (!error) {
            expect_success(perhaps_add(mirror, key, keys->key_nbytes));
            expect(perhaps_contains(f, key, keys->key_nbytes));
            continue;
        }
        if (error != PERHAPS_ERR_COPIES) /* rare, but an add may return it */
            expect_error(error, PERHAPS_ERR_FULL);
        if (!failed++)
            *before_first = at;
    }
    expect(failed == failures);
    expect(stats_of(f).failed_adds == stats_of(mirror).failed_adds + failures);
    expect(perhaps_equal(f, mirror));
    perhaps_free(mirror);
    return at;
}

bool saturates(const struct perhaps_kind *kind)
{
    return !strcmp(kind->name, "counting");
}

unsigned copies_most(const struct perhaps_kind *kind)
{
    return strcmp(kind->name, "strided") ? PERHAPS_COPIES_MAX : 4;
}

uint64_t count_of(const perhaps_filter *f, const void *key, size_t key_nbytes)
{
    uint64_t count;
    expect_success(perhaps_count(f, key, key_nbytes, &count));
    return count;
}

void expect_count(const perhaps_filter *f, const char *key, uint64_t wanted)
{
    expect(count_of(f, key, strlen(key)) == wanted);
}

struct perhaps_stats stats_of(const perhaps_filter *f)
{
    struct perhaps_stats stats;
    perhaps_stats_of(f, &stats);
    return stats;
}

double exact_rate(const perhaps_filter *f)
{
    return f->kind->measure(f, UINT64_MAX).fpr;
}

void add_number(perhaps_filter *f, uint64_t number)
{
    expect_success(perhaps_add(f, &number, sizeof number));
}

bool has_number(const perhaps_filter *f, uint64_t number)
{
    return perhaps_contains(f, &number, sizeof number);
}

void expect_same_counters(const perhaps_filter *a, const perhaps_filter *b)
{
    const struct counters *x = a->counters, *y = b->counters; /* no rates */
    expect(x->keys == y->keys);
    expect(x->failed_adds == y->failed_adds);
    expect(x->unmatched_removals == y->unmatched_removals);
}

/* ---- Allocator ------------------------------------------------------------------------- */

/* Counts also the sizes of requests that it refuses: a test can see what was asked for. */
static void *ledger_allocate(void *context, size_t nbytes)
{
    struct ledger *ledger = context;
    if (nbytes > ledger->largest_nbytes)
        ledger->largest_nbytes = nbytes;
    if (++ledger->calls == ledger->fail_at || ledger->failing ||
        (ledger->most_nbytes && nbytes > ledger->most_nbytes))
        return NULL;
    void *memory = calloc(nbytes, 1);
    if (!memory)
        return NULL;
    ledger->live++;
    ledger->live_nbytes += nbytes;
    return memory;
}

static void ledger_release(void *context, void *memory, size_t nbytes)
{
    struct ledger *ledger = context;
    ledger->live--;
    ledger->live_nbytes -= nbytes; /* not 0 at the end, if a size was wrong */
    free(memory);
}

struct perhaps_allocator ledger_allocator(struct ledger *ledger)
{
    return (struct perhaps_allocator){ ledger_allocate, ledger_release, ledger, false };
}

perhaps_filter *build_in_want(struct perhaps_options options,
                              const struct perhaps_build_options *how, struct ledger *ledger,
                              const struct perhaps_keys *listed,
                              const struct perhaps_keys *others)
{
    const struct perhaps_allocator allocator = ledger_allocator(ledger);
    perhaps_filter *f = NULL;
    options.allocator = &allocator;
    for (uint64_t number = 1; !f; number++) {
        perhaps_builder *builder = NULL;
        scene("allocation %d fails", (int)number);
        ledger->fail_at = ledger->calls + number;
        int error = perhaps_builder_create(&options, how, &builder);
        if (!error)
            error = perhaps_builder_add_many(builder, listed);
        if (!error && others)
            error = perhaps_builder_add_others(builder, others);
        if (!error)
            error = perhaps_builder_finish(builder, &f);
        ledger->fail_at = 0;
        perhaps_builder_free(builder);
        expect(error == (f ? 0 : PERHAPS_ERR_MEMORY));
        expect(f || (!ledger->live && !ledger->live_nbytes));
    }
    return f;
}
