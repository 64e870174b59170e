/* perhaps-instructions - does operations with 65,536 keys each, for instructions.sh, which
 * counts the instructions.  Every run does the same, so their number is the same, too, however
 * busy the machine is.
 *
 *     perhaps-instructions [TEXT]   does those with TEXT in their names, such as
 *                                   blocked-1%/ask-one; prints their names and how many keys
 *     perhaps-instructions --build  prints what the counts depend on beside the sources */
#include <err.h>
#include <perhaps_build.h>
#include <perhaps_fast.h>
#include <perhaps_plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "instructions.h"

enum { KEYS = 65536 };

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void stop_on(int error)
{
    if (error)
        errx(2, "%s", perhaps_strerror(error));
}

/* ---- What is counted --------------------------------------------------------------------- */

/* A function whose instructions are counted: the loop of a caller, and all that it calls.
 * instructions.sh knows these by the beginning of their names, and that perhaps_free() is
 * called once after each.  They return the sum of what the calls return: how many keys are
 * found, or 0 after adds without errors. */
#define COUNTED static __attribute__((noinline)) int

/* A function that becomes a part of the loop, as if a caller had written it there. */
#define INLINED static inline __attribute__((always_inline))

INLINED int each_key(const struct work *work,
                     int (*call)(perhaps_filter *filter, const void *key, size_t key_nbytes))
{
    const struct work w = *work;
    const char *key = w.keys.packed, *end = key + KEYS * w.keys.key_nbytes;
    int sum = 0;
    for (; key < end; key += w.keys.key_nbytes)
        sum += call(w.filter, key, w.keys.key_nbytes);
    return sum;
}

INLINED int each_prepared(const struct work *work,
                          int (*call)(perhaps_filter *filter,
                                      const struct perhaps_prepared *prepared))
{
    enum { AHEAD = 16 };
    const struct work w = *work;
    const char *key = w.keys.packed, *end = key + KEYS * w.keys.key_nbytes;
    struct perhaps_prepared ring[AHEAD];
    int sum = 0;
    for (size_t i = 0; i < AHEAD; i++, key += w.keys.key_nbytes)
        perhaps_prepare(w.filter, key, w.keys.key_nbytes, &ring[i]);
    for (size_t i = 0; key < end; i++, key += w.keys.key_nbytes) {
        sum += call(w.filter, &ring[i % AHEAD]);
        perhaps_prepare(w.filter, key, w.keys.key_nbytes, &ring[i % AHEAD]);
    }
    for (size_t i = 0; i < AHEAD; i++)
        sum += call(w.filter, &ring[i]);
    return sum;
}

/* The compiler must believe that this uses its arguments, and may answer anything. */
static __attribute__((noinline)) int do_nothing(perhaps_filter *filter, const void *key,
                                                size_t key_nbytes)
{
    int sum = 0;
    __asm__ volatile("" : "+r"(sum) : "r"(filter), "r"(key), "r"(key_nbytes));
    return sum;
}

INLINED int ask(perhaps_filter *filter, const void *key, size_t key_nbytes)
{
    return perhaps_contains(filter, key, key_nbytes);
}

INLINED int ask_prepared(perhaps_filter *filter, const struct perhaps_prepared *prepared)
{
    return perhaps_contains_prepared(filter, prepared);
}

INLINED int add_unless_present(perhaps_filter *filter, const void *key, size_t key_nbytes)
{
    bool was_present;
    return perhaps_add_unless_present(filter, key, key_nbytes, &was_present);
}

INLINED int count(perhaps_filter *filter, const void *key, size_t key_nbytes)
{
    uint64_t copies;
    return perhaps_count(filter, key, key_nbytes, &copies) ? 0 : (int)copies;
}

COUNTED counted_nothing(const struct work *work)
{
    return each_key(work, do_nothing);
}

COUNTED counted_ask_one(const struct work *work)
{
    return each_key(work, ask);
}

COUNTED counted_add_one(const struct work *work)
{
    return each_key(work, perhaps_add);
}

COUNTED counted_ask_many(const struct work *work)
{
    return (int)perhaps_contains_many(work->filter, &work->keys, work->answers);
}

COUNTED counted_add_many(const struct work *work)
{
    return perhaps_add_many(work->filter, &work->keys, NULL);
}

COUNTED counted_ask_prepared(const struct work *work)
{
    return each_prepared(work, ask_prepared);
}

COUNTED counted_add_prepared(const struct work *work)
{
    return each_prepared(work, perhaps_add_prepared);
}

COUNTED counted_add_unless_present_one(const struct work *work)
{
    return each_key(work, add_unless_present);
}

COUNTED counted_remove_one(const struct work *work)
{
    return each_key(work, perhaps_remove);
}

COUNTED counted_remove_many(const struct work *work)
{
    size_t removed;
    int error = perhaps_remove_many(work->filter, &work->keys, NULL, &removed, NULL);
    return error + (int)(KEYS - removed);
}

COUNTED counted_count_one(const struct work *work)
{
    return each_key(work, count);
}

/* Adds up nothing, which would be counted. */
COUNTED counted_count_many(const struct work *work)
{
    return perhaps_count_many(work->filter, &work->keys, work->copies) ? 0 : KEYS;
}

/* ---- The tables -------------------------------------------------------------------------- */

/* Which operations a filter has.  PRESENT: the keys that it is asked for are in, not absent;
 * BUILT: a builder makes it of its keys; INTEGERS: they are those of a range, as text; SHARED:
 * several threads might add.  The keys that are removed or counted are in. */
enum {
    NOTHING = 1,
    ASK_ONE = 2,
    ASK_MANY = 4,
    ADD_ONE = 8,
    ADD_MANY = 16,
    ASK_PREPARED = 32,
    ADD_PREPARED = 64,
    PRESENT = 128,
    ASK_INLINE = 256,
    ADD_INLINE = 512,
    ASK_INLINE_HASHED = 1024,
    ADD_INLINE_HASHED = 2048,
    BUILT = 4096,
    INTEGERS = 8192,
    SHARED = 1 << 14,
    ADD_NEW = 1 << 15,
    REMOVE_ONE = 1 << 16,
    REMOVE_MANY = 1 << 17,
    COUNT_ONE = 1 << 18,
    COUNT_MANY = 1 << 19,
    ASK_INLINE_CUCKOO = 1 << 20,
    ASK_INLINE_RIBBON = 1 << 21,
    ASKS = ASK_ONE | ASK_MANY,
    ADDS = ADD_ONE | ADD_MANY,
    BOTH_PREPARED = ASK_PREPARED | ADD_PREPARED,
    INLINE = ASK_INLINE | ADD_INLINE,
    INLINE_HASHED = ASK_INLINE_HASHED | ADD_INLINE_HASHED,
    REMOVES = REMOVE_ONE | REMOVE_MANY,
    COUNTS = COUNT_ONE | COUNT_MANY,
    COPIES = ADD_NEW | REMOVES | COUNTS,
    ADDING = ADDS | ADD_PREPARED | ADD_INLINE | ADD_INLINE_HASHED | ADD_NEW,
};

static const struct counted {
    const char *name;
    unsigned bit;
    int (*run)(const struct work *work);
} counted[] = {
    { "ask-one", NOTHING, counted_nothing },
    { "ask-one", ASK_ONE, counted_ask_one },
    { "ask-many", ASK_MANY, counted_ask_many },
    { "add-one", ADD_ONE, counted_add_one },
    { "add-many", ADD_MANY, counted_add_many },
    { "ask-one", ASK_PREPARED, counted_ask_prepared },
    { "add-one", ADD_PREPARED, counted_add_prepared },
    { "ask-one", ASK_INLINE, counted_inline_ask },
    { "add-one", ADD_INLINE, counted_inline_add },
    { "ask-one", ASK_INLINE_HASHED, counted_inline_ask_hashed },
    { "add-one", ADD_INLINE_HASHED, counted_inline_add_hashed },
    { "ask-one", ASK_INLINE_CUCKOO, counted_inline_ask_cuckoo },
    { "ask-one", ASK_INLINE_RIBBON, counted_inline_ask_ribbon },
    { "add-unless-present-one", ADD_NEW, counted_add_unless_present_one },
    { "remove-one", REMOVE_ONE, counted_remove_one },
    { "remove-many", REMOVE_MANY, counted_remove_many },
    { "count-one", COUNT_ONE, counted_count_one },
    { "count-many", COUNT_MANY, counted_count_many },
};

/* What perhaps_create() takes for these filters, unless it is told a seed; and the others. */
#define XXH3    PERHAPS_HASH_XXH3_64
#define WIDE    PERHAPS_HASH_XXH3
#define NONE    PERHAPS_HASH_NONE
#define NONE64  PERHAPS_HASH_NONE_64
#define INTEGER PERHAPS_HASH_INTEGER
#define SIP     PERHAPS_HASH_SIP

/* A filter holds KEYS keys when it is asked, and after adds, which begin with an empty one: so
 * it is full, unless its capacity is larger.  The library chooses the geometry; 'field' of it
 * must have this value, or the row would not be what its name says. */
static const struct row {
    const char *name;
    unsigned operations;
    size_t key_nbytes;
    const char *kind;
    uint64_t capacity;
    double fpr;
    enum perhaps_hash hash;
    const char *field;
    uint64_t value;
} rows[] = {
    { "empty-function", NOTHING, 8, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "blocked-1%", ASKS | ADDS | ADD_NEW, 8, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "blocked-1e-6", ASKS | ADDS, 8, "blocked", KEYS, 1e-6, XXH3, "bands", 2 },
    { "prepared", BOTH_PREPARED, 8, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "inline", INLINE, 8, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "inline-hashed-64-bits", INLINE_HASHED, 8, "blocked", KEYS, 0.01, NONE64, "bands", 1 },
    { "inline-cuckoo", ASK_INLINE_CUCKOO, 8, "cuckoo", 2 * KEYS, 1.5e-4, XXH3,
      "fingerprint_bits", 16 },
    { "inline-cuckoo-12-bits", ASK_INLINE_CUCKOO, 8, "cuckoo", 2 * KEYS, 2e-3, XXH3,
      "fingerprint_bits", 12 },
    { "inline-ribbon", ASK_INLINE_RIBBON | BUILT, 8, "ribbon", KEYS, 0.004, XXH3, "row_bits",
      8 },
    { "hash-of-128-bits", ASKS | ADDS, 8, "blocked", KEYS, 0.01, WIDE, "bands", 1 },
    { "hashed-128-bits", ASKS | ADDS, 16, "blocked", KEYS, 0.01, NONE, "bands", 1 },
    { "hashed-64-bits", ASKS | ADDS, 8, "blocked", KEYS, 0.01, NONE64, "bands", 1 },
    { "counting-1%", ASKS | ADDS, 8, "counting", KEYS, 0.01, XXH3, "bands", 1 },
    { "counting-half-full", ASKS | ADDS | COPIES, 8, "counting", 2 * KEYS, 0.01, XXH3, "bands",
      1 },
    { "counting-1e-4", ASKS | ADDS | COPIES, 8, "counting", 2 * KEYS, 1e-4, XXH3, "bands", 2 },
    { "counting-shared", SHARED | ADDS | COPIES, 8, "counting", 2 * KEYS, 0.01, XXH3, "bands",
      1 },
    { "cuckoo-half-full", ASKS | ADDS | COPIES, 8, "cuckoo", 2 * KEYS, 1.5e-4, XXH3,
      "fingerprint_bits", 16 },
    { "cuckoo-12-bits", ASKS | ADDS | COPIES, 8, "cuckoo", 2 * KEYS, 2e-3, XXH3,
      "fingerprint_bits", 12 },
    { "cuckoo-shared", SHARED | ASKS | ADDS | COPIES, 8, "cuckoo", 2 * KEYS, 1.5e-4, XXH3,
      "fingerprint_bits", 16 },
    { "cuckoo-full", ASKS, 8, "cuckoo", KEYS, 1.5e-4, XXH3, "fingerprint_bits", 16 },
    { "bloom-1%", ASKS | ADDS | ADD_NEW, 8, "bloom", KEYS, 0.01, XXH3, "key_bits", 7 },
    { "bloom-1%-present", ASKS | PRESENT, 8, "bloom", KEYS, 0.01, XXH3, "key_bits", 7 },
    { "elastic-0.3%", ASKS | ADDS | COPIES, 8, "elastic", 1000, 0.003, XXH3, "slot_bits", 16 },
    { "ribbon-0.4%", ASKS | BUILT, 8, "ribbon", KEYS, 0.004, XXH3, "row_bits", 8 },
    { "ribbon-0.1%-present", ASKS | BUILT | PRESENT, 8, "ribbon", KEYS, 0.001, XXH3, "row_bits",
      10 },
    { "bitmap", ASKS | ADDS | INTEGERS, INTEGER_NBYTES, "bitmap", 0, 0, INTEGER, "low",
      INTEGER_LOW },
    { "1-byte", ASK_ONE, 1, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "4-bytes", ASK_ONE, 4, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "12-bytes", ASK_ONE, 12, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "16-bytes", ASK_ONE, 16, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "20-bytes", ASK_ONE, 20, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "32-bytes", ASK_ONE, 32, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "64-bytes", ASK_ONE, 64, "blocked", KEYS, 0.01, XXH3, "bands", 1 },
    { "secret-20-bytes", ASKS, 20, "blocked", KEYS, 0.01, SIP, "bands", 1 },
};

/* ---- One of them ------------------------------------------------------------------------- */

/* Makes room for the keys of a row. */
static struct key_buffer buffer_of(const struct row *row, size_t key_nbytes)
{
    return row->operations & INTEGERS ? key_buffer_of_integers(integers_for(KEYS), KEYS)
                                      : key_buffer_open(key_nbytes, KEYS);
}

static perhaps_filter *build(const struct row *row, const struct perhaps_options *options)
{
    const struct perhaps_build_options how = { .threads = 1 };
    struct key_buffer buffer = buffer_of(row, row->key_nbytes);
    struct perhaps_keys keys = keys_added(&buffer, 0, KEYS);
    perhaps_builder *builder;
    perhaps_filter *filter;
    stop_on(perhaps_builder_create(options, &how, &builder));
    stop_on(perhaps_builder_add_many(builder, &keys));
    stop_on(perhaps_builder_finish(builder, &filter));
    perhaps_builder_free(builder);
    key_buffer_close(&buffer);
    return filter;
}

/* Returns what a kind needs to store copies of keys, if it can. */
static unsigned copies_of(const char *name)
{
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (!strcmp(kind->name, name))
            return kind->abilities & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT);
    return 0;
}

/* Makes a filter without keys, or builds one with all. */
static perhaps_filter *create(const struct row *row)
{
    static const uint8_t secret[] = "perhaps, or not.";
    perhaps_filter *filter;
    struct perhaps_stats stats;
    struct perhaps_options options = { .kind = row->kind,
                                       .capacity = row->capacity,
                                       .fpr = row->fpr,
                                       .needs = copies_of(row->kind),
                                       .shared = row->operations & SHARED,
                                       .hashing = {
                                           .hash = row->hash, .seed = 1, .secret = secret } };
    if (row->operations & INTEGERS)
        options.bitmap =
            (struct perhaps_bitmap_options){ INTEGER_LOW,
                                             INTEGER_LOW + integers_for(KEYS) - 1 };
    if (row->operations & BUILT)
        filter = build(row, &options);
    else
        stop_on(perhaps_create(&options, &filter));
    perhaps_stats_of(filter, &stats);
    for (unsigned i = 0; i < stats.plan.nfields; i++)
        if (!strcmp(stats.plan.field_name[i], row->field) && stats.plan.field[i] == row->value)
            return filter;
    errx(2, "%s: its %s is not %d", row->name, row->field, (int)row->value);
}

/* Keys of less than 8 bytes are too few to fill a filter: longer ones fill it. */
static void fill(const struct row *row, perhaps_filter *filter)
{
    struct key_buffer buffer = buffer_of(row, row->key_nbytes < 8 ? 8 : row->key_nbytes);
    struct perhaps_keys keys = keys_added(&buffer, 0, KEYS);
    stop_on(perhaps_add_many(filter, &keys, NULL));
    key_buffer_close(&buffer);
}

/* Ends the program if the operation did not do what its name says: a wrong one may be quick. */
static void run(const struct row *row, const struct counted *operation, const char *name)
{
    struct key_buffer buffer = buffer_of(row, row->key_nbytes);
    struct work work = { .filter = create(row),
                         .answers = allocate_zeroed(KEYS, sizeof(bool)),
                         .copies = allocate_zeroed(KEYS, sizeof(uint64_t)) };
    bool adds = operation->bit & ADDING, removes = operation->bit & REMOVES;
    bool present = row->operations & PRESENT || operation->bit & COUNTS;
    if (!adds && !(row->operations & BUILT))
        fill(row, work.filter);
    work.keys = adds || removes || present ? keys_added(&buffer, 0, KEYS)
                                           : keys_absent(&buffer, 0, KEYS);
    int found = operation->run(&work), least = present ? KEYS : 0;
    double wrong = 5 * row->fpr * (double)KEYS + 5;
    double most = adds || removes ? 0 : present ? (double)KEYS + wrong : wrong;
    if (found < least || (double)found > most)
        errx(2, "%s: %d", name, found);
    printf("%s %d\n", name, KEYS);
    perhaps_free(work.filter);
    free(work.answers);
    free(work.copies);
    key_buffer_close(&buffer);
}

/* ---- All of them ------------------------------------------------------------------------- */

static void print_build(void)
{
    struct perhaps_stats stats;
    perhaps_filter *filter = create(rows);
    perhaps_stats_of(filter, &stats);
    printf("%s, %s\n", BUILD, stats.cpu);
    perhaps_free(filter);
}

/* Runs the operations whose names contain the text. */
static void run_all(const char *text)
{
    bool any = false;
    for (size_t i = 0; i < LENGTH(rows) * LENGTH(counted); i++) {
        const struct row *row = &rows[i / LENGTH(counted)];
        const struct counted *operation = &counted[i % LENGTH(counted)];
        char name[64];
        snprintf(name, sizeof name, "%s/%s", row->name, operation->name);
        if (row->operations & operation->bit && strstr(name, text)) {
            run(row, operation, name);
            any = true;
        }
    }
    if (!any)
        errx(2, "%s: not in the name of any operation", text);
}

int main(int argc, char **argv)
{
    if (argc > 2)
        errx(2, "usage: perhaps-instructions [--build | TEXT]");
    if (argc == 2 && !strcmp(argv[1], "--build"))
        print_build();
    else
        run_all(argc == 2 ? argv[1] : "");
    return 0;
}
