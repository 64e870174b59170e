/* support.h - what the tests share: checks, a seed that is printed, keys, filters, a folder.
 *
 * A test fails through expect(), which prints the condition and the scene.  The scene is the
 * text that the test gave to scene() last, so one line tells which kind, capacity and rate
 * failed. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "perhaps_build.h"
#include "perhaps_embed.h"
#include "perhaps_file.h"
#include "perhaps_layout.h"
#include "perhaps_plan.h"

/* ---- Expectations ---------------------------------------------------------------------- */

/* Sets the text that later failures print. */
void scene(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *scene_text(void);

/* Fails the test unless the condition holds.  abort() is never reached: it only tells the
 * compiler that fail_msg() does not return, which its declaration does not say. */
#define expect(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fail_msg("not so: %s [%s]", #condition, scene_text());                             \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

/* Fails the test unless the call returns this enum perhaps_error. */
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

/* The exit status of a test that cannot run on this machine; ctest counts it as skipped. */
enum { CANNOT_TRY = 77 };

/* ---- Tests ----------------------------------------------------------------------------- */

/* TEST(name) {...} defines a test and registers it, by a constructor that runs before main().
 * The tests of a file run in the order in which they stand there.
 * TEST_EACH(name, which) {...} runs its body once for each 'kind' with which(kind). */
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

/* Iterates over the kinds with which(kind).  'kind' is the name of the variable that the loop
 * declares, and so it cannot stand in parentheses. */
#define EACH_KIND(kind, which)                                                                 \
    /* NOLINTNEXTLINE(bugprone-macro-parentheses) */                                           \
    for (const struct perhaps_kind *kind = NULL; (kind = next_kind(kind, which));)

void add_test(const char *name, CMUnitTestFunction function);

/* Returns whether it is worth running the tests with the loops that PERHAPS_CPU names: this
 * CPU has them, and they are not its usual ones.  Returns true if PERHAPS_CPU is not set. */
bool has_cpu(void);

/* Runs all tests, or those that PERHAPS_TEST names (a pattern with * and ?).  Returns the exit
 * status of the program. */
int run_all_tests(void);

/* ---- What is released at the end of its block ------------------------------------------- */

/* Types of variables that the compiler releases at the end of their block.  A failed expect()
 * jumps out of the test and releases nothing. */
#define scoped_filter  __attribute__((cleanup(release_filter))) perhaps_filter
#define scoped_layout  __attribute__((cleanup(release_layout))) perhaps_layout
#define scoped_builder __attribute__((cleanup(release_builder))) perhaps_builder
#define scoped_keys    __attribute__((cleanup(free_keys))) struct perhaps_keys
#define scoped_bytes   __attribute__((cleanup(free_bytes))) struct bytes
#define scoped_memory  __attribute__((cleanup(free_memory))) uint8_t

void release_filter(perhaps_filter **f);
void release_layout(perhaps_layout **layout);
void release_builder(perhaps_builder **builder);
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

/* Returns 'number'; or a tenth of it under sanitizers and where PERHAPS_CPU is set, since these
 * runs repeat what an ordinary run has tried already. */
unsigned many(unsigned number);

/* Returns whether PERHAPS_TEST_EVERY is set: whether a test that otherwise tries a sample of
 * its cases, which the seed chooses, is to try them all. */
bool every_case(void);

/* Returns whether the case of this number is one of that sample: one of so many that follow
 * each other. */
bool is_tried(size_t number, unsigned of);

/* Of so many files one is tried by tests that open them by the ten thousand.  Wine takes
 * milliseconds for each. */
#ifdef _WIN32
enum { FILES_APART = 11 };
#else
enum { FILES_APART = 1 };
#endif

/* Returns 1, or the value of PERHAPS_TEST_SEED; "fresh" draws a random one.  Prints the seed at
 * the first call, so that a failure can be repeated. */
uint64_t test_seed(void);

/* How many standard deviations a count may differ from its mean.  A normal variable exceeds
 * this about once in 10^12 times, so no test fails by chance in 10^9 runs. */
#define DEVIATIONS 7.0

struct rng {
    uint64_t state;
};

/* Returns a stream that depends only on the seed and this name, so that one test can be
 * repeated without the tests before it. */
struct rng rng_for(const char *test);
uint64_t rng_next(struct rng *rng);

/* Returns a number below 'limit'. */
uint64_t rng_below(struct rng *rng, uint64_t limit);

/* Returns x after a bijective mixing of its 64 bits: different numbers stay different. */
uint64_t mix64(uint64_t x);

/* ---- Keys ------------------------------------------------------------------------------ */

enum key_shape {
    SEQUENTIAL_KEYS, /* 8-byte integers, one after the other */
    RANDOM_KEYS,     /* 8 random bytes */
    TEXT_KEYS,       /* 20 characters */
    HASH_KEYS,       /* 16 random bytes, for the hash 'none' */
};

/* Returns the keys first .. first+count-1 of a set of different keys.  'seed' chooses the set.
 * All keys have the same length and are packed.  Release them with free_keys(). */
struct perhaps_keys make_keys(enum key_shape shape, uint64_t seed, uint64_t first,
                              size_t count);
void free_keys(struct perhaps_keys *keys);

const void *key_at(const struct perhaps_keys *keys, size_t index);
struct perhaps_keys some_keys(const struct perhaps_keys *keys, size_t first, size_t count);

/* ---- Kinds: what a test has to know of one, here and nowhere else ------------------------ */

/* Returns the kind of this index, or NULL behind the last.  These are the kinds of the
 * registry, and behind them 'blocked' a second time, as another pointer: options_for()
 * recognises it and asks for several lines together, so every test tries this layout, too. */
const struct perhaps_kind *kind_to_test(size_t index);

/* Returns whether keys may be any bytes: not those of a bitmap, which has a test of its own. */
bool takes_any_key(const struct perhaps_kind *kind);

/* Returns the next kind behind this one, or behind NULL the first, that takes any key and with
 * which(kind); NULL if there is none.  Sets the scene to its name. */
const struct perhaps_kind *next_kind(const struct perhaps_kind *kind,
                                     bool (*which)(const struct perhaps_kind *kind));

bool every_kind(const struct perhaps_kind *kind);
bool is_built(const struct perhaps_kind *kind);    /* by a builder, from all keys at once */
bool any_kind(const struct perhaps_kind *kind);    /* that takes keys as they come */
bool in_registry(const struct perhaps_kind *kind); /* the same, but not the second 'blocked' */
bool removes(const struct perhaps_kind *kind);
bool merges(const struct perhaps_kind *kind);
bool grows(const struct perhaps_kind *kind);          /* takes more keys than 'capacity' */
bool grows_in_place(const struct perhaps_kind *kind); /* without appending parts */
bool forgets(const struct perhaps_kind *kind); /* windows; options_for() makes them by keys */
bool takes_threads(const struct perhaps_kind *kind);

/* Returns whether a filter of this kind, over this base if it has one, may be shared. */
bool takes_threads_over(const struct perhaps_kind *kind, const char *base);
bool shares(const struct perhaps_kind *kind); /* several processes can add to one mapped file */
bool folds(const struct perhaps_kind *kind);  /* a half of its bytes is laid over the other */
bool folds_not(const struct perhaps_kind *kind); /* nor do its parts */

/* Returns the same but for lines that lie together: those are not rounded, so that their number
 * may have few divisors. */
bool folds_rounded(const struct perhaps_kind *kind);
bool has_parts(const struct perhaps_kind *kind); /* its parts are filters of other kinds */

/* Returns whether such a filter refuses keys soon after its capacity, so that a test can fill
 * it until it does. */
bool gets_full(const struct perhaps_kind *kind);

/* Returns whether a filter of this kind can meet the need: by itself or with the right base. */
bool is_able(const struct perhaps_kind *kind, unsigned need);

/* Sets *base to the i-th kind that the parts of a composite can have, and returns true; returns
 * false behind the last.  A kind without parts has one base, NULL. */
bool base_to_test(const struct perhaps_kind *kind, size_t index, const char **base);

/* Returns an fpr that this kind can reach and that is so low that a test with few keys sees no
 * false positives. */
double low_rate(const struct perhaps_kind *kind);

/* Returns what perhaps_add_many() returns for three times as many keys as the capacity. */
int too_many(const struct perhaps_kind *kind);

/* ---- Filters --------------------------------------------------------------------------- */

/* Returns options with the hash xxh3 and this seed.  A window remembers the last 'capacity'
 * keys. */
struct perhaps_options options_for(const struct perhaps_kind *kind, uint64_t capacity,
                                   double fpr, uint64_t seed);
perhaps_filter *make_with(const struct perhaps_options *options); /* fails the test on errors */

/* Changes the needs of options that name a kind, or a base, to a filter that stores copies of
 * its keys, or to a set.  Returns whether the two differ. */
bool ask_for_copies(struct perhaps_options *options, bool copies);

/* Makes an empty filter of options_for(); fails the test on errors. */
perhaps_filter *make_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                            uint64_t seed);
perhaps_filter *shared_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                              uint64_t seed);

/* Begin a builder, and finish one, which stays the caller's; fail the test on errors. */
perhaps_builder *builder_of(const struct perhaps_options *options,
                            const struct perhaps_build_options *how);
perhaps_filter *filter_built(perhaps_builder *builder);

/* Makes a filter of these keys by a builder. */
perhaps_filter *built_filter(const struct perhaps_options *options,
                             const struct perhaps_keys *keys);

/* Makes a filter and adds these keys; or builds one of them. */
perhaps_filter *full_filter(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                            const struct perhaps_keys *keys);
perhaps_filter *clone_of(const perhaps_filter *f);
perhaps_layout *layout_of(const perhaps_filter *f);
extern const struct perhaps_open_options map_it, load_it, in_place, without_secret, checking;
extern const struct perhaps_open_options *const ways_to_open[2]; /* mapped, loaded */
perhaps_filter *open_file(const char *path, const struct perhaps_open_options *options);

/* Opens and frees a filter.  Returns the error of perhaps_open() and leaves its errno.  Fails
 * the test if a failed perhaps_open() leaves a filter. */
int try_open(const char *path, const struct perhaps_open_options *options);
void fill(perhaps_filter *f, const struct perhaps_keys *keys);
void expect_all_found(const perhaps_filter *f, const struct perhaps_keys *keys);

/* Adds one key after the other until 'failures' of them were refused.  A refused key must
 * change nothing: a copy that gets only the accepted keys must end with the same bytes.
 * Returns how many keys it tried; sets *before_first to how many of them came before the first
 * failure. */
size_t overfill(perhaps_filter *f, const struct perhaps_keys *keys, size_t failures,
                size_t *before_first);

/* Returns whether the kind counts copies up to PERHAPS_COUNT_MAX and stops there: it refuses no
 * copy, and removals do not change a counter that has stopped.  Other kinds that store copies
 * refuse more than copies_most(). */
bool saturates(const struct perhaps_kind *kind);
unsigned copies_most(const struct perhaps_kind *kind);

uint64_t count_of(const perhaps_filter *f, const void *key, size_t key_nbytes);
void expect_count(const perhaps_filter *f, const char *key, uint64_t wanted);
struct perhaps_stats stats_of(const perhaps_filter *f);
double exact_rate(const perhaps_filter *f); /* the fpr that follows from all bits */
void add_number(perhaps_filter *f, uint64_t number);
bool has_number(const perhaps_filter *f, uint64_t number);
void expect_same_counters(const perhaps_filter *a, const perhaps_filter *b);

/* An allocator that counts what it gives, and fails when it is told to. */
struct ledger {
    uint64_t calls;
    uint64_t fail_at;        /* number of the call that returns NULL, from 1 on; 0: none */
    bool failing;            /* all calls return NULL */
    uint64_t live;           /* blocks that were not released yet */
    uint64_t live_nbytes;    /* their bytes */
    uint64_t largest_nbytes; /* the largest size that a call asked for */
    uint64_t most_nbytes;    /* larger calls return NULL; 0: no such limit */
};
struct perhaps_allocator ledger_allocator(struct ledger *ledger);

/* Builds a filter of 'listed' keys, against 'others' unless that is NULL, again and again, with
 * the allocator of a ledger.  One allocation after the other fails, and PERHAPS_ERR_MEMORY and
 * no memory in use are expected.  Returns the filter of the first try in which none does. */
perhaps_filter *build_in_want(struct perhaps_options options,
                              const struct perhaps_build_options *how, struct ledger *ledger,
                              const struct perhaps_keys *listed,
                              const struct perhaps_keys *others);

#ifdef _WIN32
void *aligned_alloc(size_t alignment, size_t nbytes);
#endif

/* ---- Files and processes ----------------------------------------------------------------- */

struct path {
    char text[PATH_MAX];
};

/* Returns a path in a folder of this process, which is removed when the process ends. */
struct path temp_path(const char *name);

struct path path_below(struct path folder, const char *name);
struct path journal_of(struct path file); /* of a live file */

struct bytes {
    uint8_t *at;
    size_t nbytes;
};

struct bytes read_file(const char *path); /* release with free_bytes() */
void free_bytes(struct bytes *bytes);
void write_file(const char *path, const void *bytes, size_t nbytes);
struct bytes copy_bytes(const struct bytes *bytes);
struct bytes saved_bytes(const perhaps_filter *f);
struct bytes large_bytes(const perhaps_filter *f); /* in the form of large files */
void expect_same_bytes(const struct bytes *a, const struct bytes *b);
void expect_saves_as(const perhaps_filter *f, const struct bytes *wanted);

/* Returns whether a file takes the name of one that is open, which live files need.  Wine 8 and
 * old Windows refuse that: then it prints, once, that live files are not tried. */
bool replaces_open_files(void);

/* Returns whether this error of perhaps_open() means that the file's bytes were refused. */
bool is_refusal(int error);

/* Changes to a locale whose numbers have a decimal comma; setlocale(LC_ALL, "C") ends that.
 * Skips the test where there is no such locale. */
void use_decimal_comma(void);

/* Calls run() in a forked child, and returns what run() returns.  'as_nobody' makes the child
 * drop the rights of root, if the test has them.  Returns CANNOT_TRY if that fails; the caller
 * then skips the test. */
int run_in_child(int (*run)(void *context), void *context, bool as_nobody);

/* Calls run() in 'count' threads at once, each with its own element of an array, and waits for
 * all of them. */
void run_threads(unsigned count, void *run(void *), void *elements, size_t element_nbytes);

/* Returns how many entries the folder of this file has, without . and .. */
unsigned count_beside(const char *path);

#endif
