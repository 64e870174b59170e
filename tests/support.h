/* support.h - what the tests share: a seed that is printed, keys, filters, a folder.
 *
 * A test fails through expect(), which prints the condition and the scene: what scene() was
 * told last, so that one line says which kind, capacity and rate it was. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "perhaps_layout.h"

/* ---- Expectations ---------------------------------------------------------------------- */

void scene(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *scene_text(void);

/* abort() is never reached: fail_msg() does not return, but is not declared so. */
#define expect(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fail_msg("not so: %s [%s]", #condition, scene_text());                             \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

/* That a call returns this enum perhaps_error. */
#define expect_error(call, wanted)                                                             \
    do {                                                                                       \
        int error_ = (call);                                                                   \
        if (error_ != (wanted)) {                                                              \
            fail_msg("%s is %d (%s), not %s [%s]", #call, error_, perhaps_strerror(error_),    \
                     #wanted, scene_text());                                                   \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

#define expect_success(call) expect_error(call, 0)

/* The exit status of a test that could not be tried here. */
enum { CANNOT_TRY = 77 };

/* ---- Tests ----------------------------------------------------------------------------- */

/* TEST(name) {...} is a test because it is there; those of a file run in its order.
 * TEST_EACH(name, which) {...} is one that is run for each 'kind' with which(kind). */
#define TEST(name)                                                                             \
    static void name(void **);                                                                 \
    __attribute__((constructor)) static void add_##name(void)                                  \
    {                                                                                          \
        add_test(#name, name);                                                                 \
    }                                                                                          \
    static void name(void **unused_ __attribute__((unused)))

#define TEST_EACH(name, which)                                                                 \
    static void name##_of(const struct perhaps_kind *);                                        \
    TEST(name)                                                                                 \
    {                                                                                          \
        EACH_KIND(kind, which)                                                                 \
            name##_of(kind);                                                                   \
    }                                                                                          \
    static void name##_of(const struct perhaps_kind *kind)

/* The name of a variable cannot stand in parentheses. */
#define EACH_KIND(kind, which)                                                                 \
    /* NOLINTNEXTLINE(bugprone-macro-parentheses) */                                           \
    for (const struct perhaps_kind *kind = NULL; (kind = next_kind(kind, which));)

void add_test(const char *name, CMUnitTestFunction function);

/* Whether there are kernels as PERHAPS_CPU asks for, and they are not those that are taken
 * anyway. */
bool has_cpu(void);

/* Runs all tests, or those that PERHAPS_TEST names (with * and ?): the exit status. */
int run_all_tests(void);

/* ---- What is released at the end of its block ------------------------------------------- */

#define scoped_filter __attribute__((cleanup(release_filter))) perhaps_filter
#define scoped_layout __attribute__((cleanup(release_layout))) perhaps_layout
#define scoped_keys   __attribute__((cleanup(free_keys))) struct perhaps_keys
#define scoped_bytes  __attribute__((cleanup(free_bytes))) struct bytes
#define scoped_memory __attribute__((cleanup(free_memory))) uint8_t

void release_filter(perhaps_filter **f);
void release_layout(perhaps_layout **layout);
void free_memory(uint8_t **memory);

/* ---- Numbers --------------------------------------------------------------------------- */

/* Sanitizers make everything many times slower: large tests are scaled down. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* So many; or a tenth, under sanitizers and where one of several CPUs is tried. */
unsigned many(unsigned number);

/* 1, or PERHAPS_TEST_SEED; "fresh" draws one.  Printed when it is first asked for. */
uint64_t test_seed(void);

/* How many standard deviations a count may be off: by chance it is one time in 10^12, so that
 * of all such comparisons none fails in 10^9 runs. */
#define DEVIATIONS 7.0

struct rng {
    uint64_t state;
};

/* A stream that depends on the seed and the name only, so that one test can be repeated
 * without those before it. */
struct rng rng_for(const char *test);
uint64_t rng_next(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t limit);

/* A bijection of 64 bits without structure. */
uint64_t mix64(uint64_t x);

/* ---- Keys ------------------------------------------------------------------------------ */

enum key_shape {
    SEQUENTIAL_KEYS, /* 8-byte integers, one after the other */
    RANDOM_KEYS,     /* 8 random bytes */
    TEXT_KEYS,       /* 20 characters */
    HASH_KEYS,       /* 16 random bytes, for the hash 'none' */
};

/* Keys first .. first+count-1 of a set of different keys; 'seed' tells one set from another.
 * All have one length and are packed.  Release them with free_keys(). */
struct perhaps_keys make_keys(enum key_shape shape, uint64_t seed, uint64_t first,
                              size_t count);
void free_keys(struct perhaps_keys *keys);

const void *key_at(const struct perhaps_keys *keys, size_t index);
struct perhaps_keys some_keys(const struct perhaps_keys *keys, size_t first, size_t count);

/* ---- Kinds: what a test has to know of one, here and nowhere else ------------------------ */

/* Those that there are, and behind them a kind once more, made in another way: blocked with
 * several lines together.  options_for() knows which one it is given. */
const struct perhaps_kind *kind_to_test(size_t index);

/* Returns the next kind behind this one, or behind NULL the first, with which(kind); NULL if
 * there is none.  Sets the scene to its name. */
const struct perhaps_kind *next_kind(const struct perhaps_kind *kind,
                                     bool (*which)(const struct perhaps_kind *kind));

bool any_kind(const struct perhaps_kind *kind);
bool in_registry(const struct perhaps_kind *kind); /* not the one that is there once more */
bool removes(const struct perhaps_kind *kind);
bool merges(const struct perhaps_kind *kind);
bool grows(const struct perhaps_kind *kind);          /* 'capacity' is but a beginning */
bool grows_in_place(const struct perhaps_kind *kind); /* not by filters that are added */
bool forgets(const struct perhaps_kind *kind); /* windows: rotated as keys come, if made here */
bool takes_threads(const struct perhaps_kind *kind);
bool has_parts(const struct perhaps_kind *kind); /* which are filters of other kinds */

/* Whether it refuses keys some time, and one may wait for it. */
bool gets_full(const struct perhaps_kind *kind);

/* Whether a filter that was asked to can do it: of its own, or with the right base. */
bool is_able(const struct perhaps_kind *kind, unsigned need);

/* Sets *base to the i-th kind that its parts can be of; to NULL, once, where it has none. */
bool base_to_test(const struct perhaps_kind *kind, size_t index, const char **base);

/* That it can reach, and at which hardly a key is taken for another. */
double low_rate(const struct perhaps_kind *kind);

/* What comes of adding three times as many keys as it was planned for. */
int too_many(const struct perhaps_kind *kind);

/* ---- Filters --------------------------------------------------------------------------- */

/* With xxh3 under this seed.  A window remembers the last 'capacity' keys. */
struct perhaps_options options_for(const struct perhaps_kind *kind, uint64_t capacity,
                                   double fpr, uint64_t seed);
perhaps_filter *make_with(const struct perhaps_options *options); /* must succeed */

/* Of this kind, empty, with xxh3 under this seed; creation must succeed. */
perhaps_filter *make_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                            uint64_t seed);
perhaps_filter *shared_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                              uint64_t seed);

/* With these keys in it. */
perhaps_filter *full_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                            const struct perhaps_keys *keys);
perhaps_filter *clone_of(const perhaps_filter *f);
perhaps_layout *layout_of(const perhaps_filter *f);
extern const struct perhaps_open_options map_it, load_it, in_place, without_secret, checking;
extern const struct perhaps_open_options *const ways_to_open[2]; /* mapped, loaded */
perhaps_filter *open_file(const char *path, const struct perhaps_open_options *options);

/* Opens and closes: the error, with its errno.  No failure may leave a filter. */
int try_open(const char *path, const struct perhaps_open_options *options);
void fill(perhaps_filter *f, const struct perhaps_keys *keys);
void expect_all_found(const perhaps_filter *f, const struct perhaps_keys *keys);

/* Adds one key after the other until 'failures' of them were refused, which must have changed
 * nothing: a copy that never saw them ends up the same, byte for byte.  Returns how many keys
 * were tried; sets *before_first to how many were before the first failure. */
size_t overfill(perhaps_filter *f, const struct perhaps_keys *keys, size_t failures,
                size_t *before_first);

/* Whether a kind counts copies to PERHAPS_COUNT_MAX and no further: none is refused, and from
 * there on removals change nothing.  Others refuse more than PERHAPS_COPIES_MAX. */
bool saturates(const struct perhaps_kind *kind);

uint64_t count_of(const perhaps_filter *f, const void *key, size_t key_nbytes);
void expect_count(const perhaps_filter *f, const char *key, uint64_t wanted);
struct perhaps_stats stats_of(const perhaps_filter *f);
void expect_same_counters(const perhaps_filter *a, const perhaps_filter *b);

/* An allocator that counts, and fails when it is told to. */
struct ledger {
    uint64_t calls;
    uint64_t fail_at; /* number of the call that returns NULL, from 1 on; 0: none */
    bool failing;     /* all do */
    uint64_t live;    /* blocks */
    uint64_t live_nbytes;
    uint64_t largest_nbytes;
    uint64_t most_nbytes; /* that a call gets; 0: any number */
};
struct perhaps_allocator ledger_allocator(struct ledger *ledger);

/* ---- Files and processes ----------------------------------------------------------------- */

struct path {
    char text[PATH_MAX];
};

/* In a folder of this process that is removed when it ends. */
struct path temp_path(const char *name);

struct path path_below(struct path folder, const char *name);

struct bytes {
    uint8_t *at;
    size_t nbytes;
};

struct bytes read_file(const char *path); /* release with free_bytes() */
void free_bytes(struct bytes *bytes);
void write_file(const char *path, const void *bytes, size_t nbytes);
struct bytes copy_bytes(const struct bytes *bytes);
struct bytes saved_bytes(const perhaps_filter *f);
void expect_same_bytes(const struct bytes *a, const struct bytes *b);
void expect_saves_as(const perhaps_filter *f, const struct bytes *wanted);

/* Whether a file that is opened was refused for what it holds. */
bool is_refusal(int error);

/* From now on numbers have a comma for a point, until setlocale(LC_ALL, "C").  Where there is
 * no such locale the test is skipped. */
void use_decimal_comma(void);

/* Runs something in a child, and returns what it returns.  'as_nobody': without the rights of
 * root, if we have them.  CANNOT_TRY, also where that fails, says that the test is to be
 * skipped. */
int run_in_child(int (*run)(void *context), void *context, bool as_nobody);

/* Runs it in threads at once, each with an element of an array. */
void run_threads(unsigned count, void *run(void *), void *elements, size_t element_nbytes);

/* How many entries the folder of this file has. */
unsigned count_beside(const char *path);

#endif
