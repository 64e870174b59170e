/* perhaps.h - is this key in the set?  "Certainly not", or "perhaps".
 *
 *     struct perhaps_options options = { .capacity = 1000000, .fpr = 0.001 };
 *     perhaps_filter *seen;
 *     int error = perhaps_create(&options, &seen);
 *     if (error)
 *         errx(2, "%s", perhaps_strerror(error));
 *     perhaps_add(seen, url, strlen(url));
 *     if (!perhaps_contains(seen, other, strlen(other)))
 *         puts("certainly never added");
 *     perhaps_free(seen);
 *
 * A filter answers from a few bits a key.  For a key that was added the answer is always
 * "perhaps" (true).  For any other key it is "perhaps" with a probability of at most the
 * false-positive rate (fpr) that was asked for.  This is true of each filter and its actual
 * bits, not of filters on average, as long as the filter accepts keys (doc/KINDS.md tells how).
 *
 * Errors.  A function that can fail returns 0 or a negative enum perhaps_error; on failure the
 * filter is as it was (the _many forms tell how far they came).  The library never prints,
 * exits, logs or keeps global state, and needs no initialisation.
 *
 * Sets that grow, count and age.  Kinds with PERHAPS_CAN_GROW begin with room for 'capacity'
 * keys and take more; counting kinds tell how often a key was added; a window forgets the
 * oldest keys.  See 'chain', 'elastic', 'base' and 'window' in the options.
 *
 * Threads.  Different filters are independent.  On one filter, functions that take a
 * 'const perhaps_filter *' may run in any number of threads at once.  A function that takes a
 * plain 'perhaps_filter *' needs the filter for itself, unless the filter is shared:
 * - A filter made 'shared', or opened in PERHAPS_MODE_LIVE, may be added to and removed from
 *   (perhaps_add*(), perhaps_remove*()) by any number of threads at once, while any number ask
 *   it (perhaps_contains*(), perhaps_count*(), perhaps_stats_of(), perhaps_predict_fpr()).
 *   Readers never wait.  Once the add of a key has returned, every thread finds the key.  If
 *   two threads add one new key at the same moment, Bloom kinds may tell both that it was not
 *   there; other kinds tell only one.  N different keys fit into a filter for N, however many
 *   threads add them, how often, and in which order.
 * - A filter may grow while others ask and add.
 * - No thread may add or remove while one of the other functions (save, clone, merge,
 *   intersect, compare, shrink, clear, equal, verify, part, free) runs.
 * - A window cannot be shared.
 * - A filter that is open in PERHAPS_MODE_JOURNAL may be changed by several threads at once in
 *   any case; it is asked meanwhile only if it was opened 'shared'.
 * - An add to a shared filter takes up to half as long again; other filters pay nothing.
 *
 * Files.  perhaps_file.h, which this header includes, has the functions that save, open and
 * check filters.  Several processes can add to one mapped file at once.
 *
 * Keys are any bytes, of any length from 0 on.  Those of a bitmap, which is exact, are
 * integers: see PERHAPS_HASH_INTEGER. */
#ifndef PERHAPS_H
#define PERHAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERHAPS_VERSION_MAJOR 0
#define PERHAPS_VERSION_MINOR 2
#define PERHAPS_VERSION_PATCH 0
#define PERHAPS_VERSION       "0.2.0"

#ifdef __cplusplus
extern "C" {
#endif

#define PERHAPS_API __attribute__((visibility("default")))

/* ---- Errors ------------------------------------------------------------------------ */

enum perhaps_error {
    PERHAPS_OK = 0,
    PERHAPS_ERR_ARGUMENT = -1,    /* a number or pointer outside its stated range */
    PERHAPS_ERR_UNSUPPORTED = -2, /* this kind cannot do that */
    PERHAPS_ERR_MEMORY = -3,      /* the allocator returned NULL */
    PERHAPS_ERR_FULL = -4,      /* one more key would break the promised fpr, or has no room */
    PERHAPS_ERR_COPIES = -5,    /* no room for one more copy of the key: PERHAPS_COPIES_MAX */
    PERHAPS_ERR_NOT_FOUND = -6, /* removal of a key that is certainly not there */
    PERHAPS_ERR_READ_ONLY = -7, /* the filter is mapped from a file */
    PERHAPS_ERR_MISMATCH = -8,  /* the two filters differ: perhaps_difference() tells in what */
    PERHAPS_ERR_SECRET = -9,    /* secret or hash function missing, or not the filter's */
    PERHAPS_ERR_IO = -10,       /* the system refused; errno says why */
    PERHAPS_ERR_FORMAT = -11,   /* not a filter file */
    PERHAPS_ERR_VERSION = -12,  /* a filter file of a later version, kind or feature */
    PERHAPS_ERR_DAMAGED = -13,  /* truncated, or a checksum is wrong */
    PERHAPS_ERR_LIMIT = -14,    /* this kind cannot reach that fpr or that size */
    PERHAPS_ERR_LAYERS = -15,   /* a chain has PERHAPS_LAYERS_MAX layers, and all are full */
    PERHAPS_ERR_VALUES = -16,   /* a key was given to a builder with two different values */
    PERHAPS_ERR_JOURNAL = -17,  /* the journal of a live file is missing, or is another's */
    PERHAPS_ERR_AHEAD = -18,    /* a time further ahead of the clock than the window is long */
    PERHAPS_ERR_SET = -19,      /* made without the need to remove or to count keys */
    PERHAPS_ERR_STOPPED = -75,  /* a function of the caller's wants to stop */
};

/* Returns one line in English: what is wrong and what to do.  Never NULL, not even for unknown
 * numbers.  Knows the errors of perhaps_cluster.h, too; perhaps_cluster_problem() tells
 * more. */
PERHAPS_API const char *perhaps_strerror(int error);

/* Returns the PERHAPS_VERSION of the library that runs; this header may be of another one. */
PERHAPS_API const char *perhaps_version(void);

/* ---- Plan -------------------------------------------------------------------------- */

/* What a kind can do; 'needs' of the options is a set of these. */
enum perhaps_ability {
    PERHAPS_CAN_REMOVE = 1,    /* keys can be removed; as a need: each add stores a copy */
    PERHAPS_CAN_COUNT = 2,     /* tells how often a key was added; the same as a need */
    PERHAPS_CAN_GROW = 4,      /* takes more keys than 'capacity', which need not be known */
    PERHAPS_CAN_BUILD = 8,     /* all keys are known at once, and none comes later: see below */
    PERHAPS_CAN_MERGE = 16,    /* two filters can become their union */
    PERHAPS_CAN_SHARE = 32,    /* several processes can add to one mapped file */
    PERHAPS_CAN_FORGET = 64,   /* forgets the oldest keys: a window */
    PERHAPS_CAN_THREADS = 128, /* several threads can add at once: 'shared' */
};

/* PERHAPS_CAN_BUILD as a need is the caller's promise that no key comes later; any kind will
 * do.  Kinds that have it take no single keys: perhaps_build.h makes their filters. */

/* What to prefer where the needs leave a choice between memory and speed. */
enum perhaps_preference {
    PERHAPS_PREFER_BALANCED = 0,

    /* One memory access a key where possible.  elastic: takes huge pages early. */
    PERHAPS_PREFER_FAST,

    /* Fewer bits, for one more memory access a key.  elastic: avoids huge pages (with them one
     * add in 700,000 waits a fraction of a millisecond). */
    PERHAPS_PREFER_COMPACT,
};

enum perhaps_hash {
    /* XXH3 with a random seed: for keys that nobody crafts.  128 bits; but without a seed of
     * the caller's perhaps_create() takes PERHAPS_HASH_XXH3_64, which is faster, if the largest
     * set that the filter is planned for makes no difference. */
    PERHAPS_HASH_XXH3 = 0,

    PERHAPS_HASH_SIP,     /* SipHash-2-4-128 with a secret: where strangers choose the keys */
    PERHAPS_HASH_NONE,    /* keys are 16 bytes and are already uniform hashes */
    PERHAPS_HASH_CUSTOM,  /* the caller's function */
    PERHAPS_HASH_XXH3_64, /* XXH3 of 64 bits */
    PERHAPS_HASH_NONE_64, /* keys are 8 bytes and are already uniform hashes */

    /* Keys are integers, and none is hashed: of the kind bitmap, which has no other hash and
     * takes this one for the default, and of no other kind.  A key is decimal text: digits
     * without leading zeros, before which one '+' may stand, of a number below 2^64.  Any other
     * text, "007", " 7" or "-7", is no key.  A program that has integers makes struct
     * perhaps_hashed of them: the first 8 bytes are the integer, little-endian, and the others
     * zero. */
    PERHAPS_HASH_INTEGER,
    PERHAPS_HASH_COUNT,
};

/* With a hash of 64 bits, n keys make n / 2^64 more false positives: keys with equal hashes.
 * That is 5e-8 for 10^12 keys. */

/* "xxh3", "sip", "none", "custom", "xxh3-64", "none-64" or "integer"; NULL for a number that is
 * no hash. */
PERHAPS_API const char *perhaps_hash_name(enum perhaps_hash hash);

/* Returns the only length of keys that the hash takes, in bytes, or 0 if it takes any. */
PERHAPS_API size_t perhaps_hash_takes(enum perhaps_hash hash);

/* How many copies a key may have at most ('strided' holds 4), and how many of each key are as
 * good as sure to find room where a filter grows (over 'strided' 2).  Keys that look alike, by
 * the chance of the fpr, share them. */
#define PERHAPS_COPIES_MAX  8
#define PERHAPS_COPIES_SURE 4

#define PERHAPS_HASH_NBYTES  16
#define PERHAPS_CAPACITY_MAX (UINT64_C(1) << 48)
#define PERHAPS_FPR_MIN      1e-15
#define PERHAPS_COUNT_MAX    15 /* a count of 'counting' that says: so often or more */
#define PERHAPS_FIELDS_MAX   12
#define PERHAPS_LAYERS_MAX   64 /* of a chain */
#define PERHAPS_NOTE_MAX     95 /* bytes of a note */

/* Writes 16 uniformly distributed bytes, which depend on the key and the context alone. */
typedef void perhaps_hash_function(void *context, const void *key, size_t key_nbytes,
                                   uint8_t hash[PERHAPS_HASH_NBYTES]);

/* Where all memory of a filter comes from.  The default takes it from the system: pages that
 * are zero already, and huge pages where there are any. */
struct perhaps_allocator {
    /* Returns NULL, or 'nbytes' bytes with any content at any address.  The library asks for 64
     * bytes more than it needs, aligns them itself and, without 'zeroes', sets them to zero. */
    void *(*allocate)(void *context, size_t nbytes);

    /* Is given what allocate() returned, and the size that allocate() was asked for. */
    void (*release)(void *context, void *memory, size_t nbytes);
    void *context;

    /* All bytes that allocate() returns are zero, as those of calloc() are.  The library then
     * does not write to them, so that a large filter takes no time to make. */
    bool zeroes;
};

/* The hash of a filter, and what that hash needs.  All zero: xxh3 with a random seed. */
struct perhaps_hashing {
    enum perhaps_hash hash;
    uint64_t seed;                   /* xxh3: 0 takes a random one */
    const uint8_t *secret;           /* sip: 16 bytes; NULL generates them (perhaps_secret()) */
    perhaps_hash_function *function; /* custom */
    void *context;                   /* custom: passed to 'function' */

    /* What was done to keys before they came here, such as making letters small, for those who
     * ask later: see perhaps_note(). */
    const char *note;
};

/* Options of one kind each, which the others ignore.  All zero: the defaults. */
struct perhaps_blocked_options {
    /* The cache lines of a key lie side by side, so that one read fetches them, and a key sets
     * fewer bits.  For bodies on a disk or a server, where each read and each bit costs much.
     * Takes 3 % more memory than one line, and 5 to 20 % more than several lines apart. */
    bool together;
};

struct perhaps_chain_options {
    /* How many times the capacity of the layer before it a layer has: 1 to 32768; 0: 2.  A
     * smaller factor takes less memory and makes more layers, and every query asks all layers.
     * With the factor 1 the capacity doubles from the 33rd layer on. */
    unsigned factor;
};

struct perhaps_elastic_options {
    /* The fpr is kept up to this number of keys; 0: 2^20 times 'capacity'.  The filter takes
     * more, and perhaps_stats_of() tells what the fpr becomes. */
    uint64_t fpr_until;
};

/* What a window remembers: at least the last 'keys' keys, or the keys of the last 'time' units
 * of perhaps_advance(); if both are 0, the keys since the last generations - 1 calls of
 * perhaps_rotate().  A window consists of generations, and forgets the oldest generation as a
 * whole when a new one begins: so it remembers up to 1/(generations - 1) more. */
struct perhaps_window_options {
    unsigned generations; /* 2 to 64; 0: 5 */
    uint64_t keys;        /* different ones */
    uint64_t time;
};

struct perhaps_ribbon_options {
    /* Stores a value of so many bits with each key: 0 to 16.  See perhaps_lookup(). */
    unsigned value_bits;
};

struct perhaps_against_options {
    /* About how many keys perhaps_builder_add_others() will give: the bits of a key are chosen
     * for this number.  0: 100 to each key. */
    uint64_t others;
};

/* The integers from low to high, at most 2^48 of them, each of which takes a bit: 1.25 GB for
 * 10^10.  There is no error, so 'fpr' may be 0, and 'capacity', which may be 0, too, is taken
 * for all of the range.  If high is not 0 and the options name no kind, the kind is bitmap. */
struct perhaps_bitmap_options {
    uint64_t low, high; /* 0 <= low <= high, and 1 <= high */
};

/* Room at the end of a struct for later members.  Must be zero: anything else is refused. */
enum { PERHAPS_RESERVED = 8 };

/* Zero is the default in every member but 'capacity' and 'fpr'; for a bitmap in these, too. */
struct perhaps_options {
    /* How many different keys it must hold: 1 to PERHAPS_CAPACITY_MAX.  Kinds that grow: at the
     * beginning; window: all that it remembers. */
    uint64_t capacity;

    double fpr;                         /* not to exceed: PERHAPS_FPR_MIN <= fpr < 1 */
    unsigned needs;                     /* set of enum perhaps_ability */
    enum perhaps_preference preference; /* memory or speed */
    const char *kind;                   /* its name; NULL: the first that meets the needs */

    /* chain, window: the name of the kind of their parts.  NULL: blocked, or cuckoo if 'needs'
     * asks for more; for a window that goes by time, and so must grow, chain. */
    const char *base;

    bool shared; /* several threads may add or remove at once: see Threads above */
    struct perhaps_hashing hashing;
    const struct perhaps_allocator *allocator; /* NULL: the system's; copied */
    struct perhaps_blocked_options blocked;
    struct perhaps_chain_options chain;
    struct perhaps_elastic_options elastic;
    struct perhaps_window_options window;
    struct perhaps_ribbon_options ribbon;
    struct perhaps_against_options against;
    struct perhaps_bitmap_options bitmap;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* What perhaps_create() would make of the options. */
struct perhaps_plan {
    const char *kind;
    const char *base; /* chain, window: the kind of their parts; else NULL */
    uint64_t capacity;
    double fpr;           /* asked */
    double fpr_predicted; /* with 'capacity' keys, in expectation: <= fpr */
    uint64_t body_nbytes; /* in memory, and in a file, which has a header and checksums, too */
    double bits_per_key;  /* at capacity */
    uint64_t fpr_until;   /* 'fpr' is kept up to this number of keys; UINT64_MAX: always */
    unsigned nfields;     /* the geometry: the numbers that the kind keeps beside the body */
    const char *field_name[PERHAPS_FIELDS_MAX];
    uint64_t field[PERHAPS_FIELDS_MAX];
    char why[160]; /* one line: why this kind and geometry */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Chooses kind and geometry, and allocates nothing.  Returns 0; PERHAPS_ERR_ARGUMENT for a
 * number out of range or an unknown kind; PERHAPS_ERR_UNSUPPORTED if no kind, or not the named
 * one, meets the needs; PERHAPS_ERR_LIMIT for an fpr or size that the kind cannot reach. */
PERHAPS_API int perhaps_plan_for(const struct perhaps_options *options,
                                 struct perhaps_plan *plan);

/* Looks for a stricter fpr that takes fewer bits than that of the options: there may be one
 * just below an fpr where a kind changes its geometry, for example from one cache line a key to
 * two.  Returns whether one takes at least a hundredth less, and sets *plan to the plan with
 * the fewest bits; otherwise *plan is that of perhaps_plan_for().  As slow as 20 plans. */
PERHAPS_API bool perhaps_plan_cheaper(const struct perhaps_options *options,
                                      struct perhaps_plan *plan);

struct perhaps_kind {
    const char *name;
    const char *summary; /* one line: what it is for */
    unsigned abilities;  /* set of enum perhaps_ability */
};

/* Returns the kind of this index, from 0 on, in order of preference; NULL behind the last. */
PERHAPS_API const struct perhaps_kind *perhaps_kind_at(size_t index);

/* ---- Create ------------------------------------------------------------------------ */

typedef struct perhaps_filter perhaps_filter;

/* Makes an empty filter as perhaps_plan_for() plans it.  Returns 0 and sets *filter, to be
 * released with perhaps_free(); or sets it to NULL and returns an error of perhaps_plan_for(),
 * PERHAPS_ERR_MEMORY, PERHAPS_ERR_SECRET (custom without a function) or PERHAPS_ERR_IO (the
 * system has no random bytes). */
PERHAPS_API int perhaps_create(const struct perhaps_options *options, perhaps_filter **filter);

/* Makes an empty filter of the kind and the geometry that 'model' had when it was new, and
 * plans nothing: that takes a few microseconds for a small one, where perhaps_create() may take
 * milliseconds.  'hashing' is as in the options; NULL takes hash, seed and secret of the model,
 * and without a note it takes that of the model.
 * 'allocator' is as in the options, too.  The filter is 'shared' if the model is.  Returns 0
 * and sets *filter; or sets it to NULL and returns PERHAPS_ERR_UNSUPPORTED for kinds that a
 * builder makes; PERHAPS_ERR_MEMORY; PERHAPS_ERR_SECRET, PERHAPS_ERR_ARGUMENT or PERHAPS_ERR_IO
 * for the hash, as perhaps_create(); or PERHAPS_ERR_LIMIT for a model from a file that no plan
 * can have made. */
PERHAPS_API int perhaps_create_like(const perhaps_filter *model,
                                    const struct perhaps_hashing *hashing,
                                    const struct perhaps_allocator *allocator,
                                    perhaps_filter **filter);

/* Releases the filter and unmaps its file.  NULL is allowed. */
PERHAPS_API void perhaps_free(perhaps_filter *filter);

/* Makes a copy in memory, which can be written even if the filter is mapped.  Returns 0; or
 * PERHAPS_ERR_MEMORY, or PERHAPS_ERR_DAMAGED for a damaged file that is mapped, and sets *copy
 * to NULL. */
PERHAPS_API int perhaps_clone(const perhaps_filter *filter, perhaps_filter **copy);

/* Forgets every key and sets all counts to 0; geometry and hash stay.  Returns 0 or
 * PERHAPS_ERR_READ_ONLY. */
PERHAPS_API int perhaps_clear(perhaps_filter *filter);

/* Returns the kind of a filter.  A chain or window may be able to do what its base can, too. */
PERHAPS_API const struct perhaps_kind *perhaps_kind_of(const perhaps_filter *filter);

/* Returns what this filter can do, a set of enum perhaps_ability: what its kind can; a chain
 * what its base can, too; and one that was made without the needs PERHAPS_CAN_REMOVE and
 * PERHAPS_CAN_COUNT can neither, whatever the kind (PERHAPS_ERR_SET). */
PERHAPS_API unsigned perhaps_abilities_of(const perhaps_filter *filter);

/* Moves the memory of a filter, for allocators that know a better place for it, where memory is
 * less fragmented.  Calls move() for each block that the filter and its parts have taken from
 * their allocator, with the size that allocate() was asked for.  move() returns NULL, and the
 * block stays; or a new block of that size, at any address, to which it has copied all bytes of
 * the old one, and which is released in place of the old one from now on.  It may not use the
 * filter.  The filter itself may move: sets *filter to where it is then.  Nobody may use the
 * filter meanwhile, perhaps_bulk_begin() may not be in effect for it, and views of it
 * (perhaps_inline.h) are void afterwards.
 *
 * Takes the time to copy what is moved; of an elastic filter, if any of its segments move, also
 * the time to go through its directories, for which it allocates a table of a few bytes a block
 * (without that memory, blocks of segments stay).  A filter without an allocator of the
 * caller's stays as it is, and so does one of a live file. */
PERHAPS_API void perhaps_relocate(perhaps_filter **filter,
                                  void *(*move)(void *context, void *memory, size_t nbytes),
                                  void *context);

/* Writes the 16 bytes of a sip filter's secret.  The filter cannot be asked without them and
 * never stores them: keep them, apart from the filter.  Returns 0; PERHAPS_ERR_UNSUPPORTED for
 * other hashes; or PERHAPS_ERR_SECRET for a filter that was opened without its secret. */
PERHAPS_API int perhaps_secret(const perhaps_filter *filter, uint8_t secret[16]);

/* Returns the note of a filter, as it was given when the filter was made: a text of up to
 * PERHAPS_NOTE_MAX bytes without control characters, empty if there is none.  It goes into
 * every copy and every file.  The library does nothing with it; a filter that was made of two
 * has the note of the first.  Notes of the command line begin with "keys: ", and tell what was
 * done to lines to make keys of them (doc/FORMAT.md).  Valid as long as the filter. */
PERHAPS_API const char *perhaps_note(const perhaps_filter *filter);

/* Returns whether a note of the command line has this word.  One matters to all who take texts
 * as keys: "ignore-case".  Then the letters A to Z of all keys were made small, and a text with
 * others would never be found: do the same to it, by perhaps_fold_case().  False for notes of
 * others. */
PERHAPS_API bool perhaps_note_says(const char *note, const char *word);

/* Copies a text with its letters A to Z made small, and nothing else, as --ignore-case does.
 * 'to' may be 'from', and may else not overlap it. */
PERHAPS_API void perhaps_fold_case(void *to, const void *from, size_t nbytes);

/* ---- Add and ask, one key at a time ------------------------------------------------ */

/* Adds a key.  A filter is a set, whatever its kind: to add a key that is perhaps there changes
 * nothing.  Only if it was made with PERHAPS_CAN_REMOVE or PERHAPS_CAN_COUNT among the needs,
 * every add stores one copy, which one removal takes away; many copies of few keys crowd their
 * slots, and may be refused before 'capacity' copies are in.  (A bitmap holds a key or does
 * not, and can always remove.)  Returns 0;
 * PERHAPS_ERR_FULL; PERHAPS_ERR_COPIES; PERHAPS_ERR_READ_ONLY; PERHAPS_ERR_UNSUPPORTED for
 * kinds that take no single keys; PERHAPS_ERR_ARGUMENT for a key of a length that the hash does
 * not take (perhaps_hash_takes()), or one that is no integer or outside of the range of a
 * bitmap; PERHAPS_ERR_SECRET; PERHAPS_ERR_IO if a live file's journal has no room.  A failed
 * add changes nothing but the count of failed adds (a few segments of an elastic filter may
 * have been split for it, without a change of what they hold): every key that was in is still
 * found. */
PERHAPS_API int perhaps_add(perhaps_filter *filter, const void *key, size_t key_nbytes);

/* Adds a key unless it is perhaps there already, and tells in *was_present (may be NULL)
 * whether it was: one pass of this drops repeats.  Errors as perhaps_add(); *was_present is
 * then false.  Do not mix it with removals: a key that was "perhaps there" may share the entry
 * of another key, and is lost when that key is removed. */
PERHAPS_API int perhaps_add_unless_present(perhaps_filter *filter, const void *key,
                                           size_t key_nbytes, bool *was_present);

/* Returns false if the key was certainly not added (or was removed), true if perhaps it was.
 * False for a key that could not be added: of a length that the hash does not take, no integer,
 * or outside of the range of a bitmap.
 * Always true for a filter that was opened without its secret. */
PERHAPS_API bool perhaps_contains(const perhaps_filter *filter, const void *key,
                                  size_t key_nbytes);

/* Sets *value to the value that was stored with a key (perhaps_builder_add_values()); 'value'
 * may not be NULL.  Returns 0; PERHAPS_ERR_NOT_FOUND for a key that was certainly not given;
 * PERHAPS_ERR_UNSUPPORTED for a filter without values; PERHAPS_ERR_DAMAGED for a filter that
 * was opened with 'check', if the value lies on a damaged page; or PERHAPS_ERR_ARGUMENT or
 * PERHAPS_ERR_SECRET as perhaps_add().  Of a key that was given the value is always right; any
 * other key gets a random one with the probability fpr, and otherwise PERHAPS_ERR_NOT_FOUND. */
PERHAPS_API int perhaps_lookup(const perhaps_filter *filter, const void *key, size_t key_nbytes,
                               uint32_t *value);

/* Removes one copy of a key that was added.  If its entry cannot be told from another key's (a
 * chain finds it in several layers; a counter is saturated) the entry stays, so that no key is
 * lost, and counts as stale (perhaps_stats_of()).  Returns 0; PERHAPS_ERR_NOT_FOUND, having
 * changed nothing but the count of unmatched removals; PERHAPS_ERR_UNSUPPORTED;
 * PERHAPS_ERR_READ_ONLY; PERHAPS_ERR_ARGUMENT or PERHAPS_ERR_SECRET as in perhaps_add(), but
 * an integer outside of the range of a bitmap is not found.
 *
 * Remove only keys that were added: any other key shares, with the probability fpr, the entry
 * of a key that was, which is then lost; in counting filters its counters, of which each may be
 * another key's.  Where removals cannot be trusted ask for a low fpr: 1e-8 gives fingerprints
 * of 32 bits. */
PERHAPS_API int perhaps_remove(perhaps_filter *filter, const void *key, size_t key_nbytes);

/* Sets *count to how many copies are perhaps stored: never fewer than were added and not
 * removed.  Kind 'counting', and layers of it, count to PERHAPS_COUNT_MAX, which means: so many
 * or more.  Returns 0; or sets *count to 0 and returns an error of perhaps_remove(). */
PERHAPS_API int perhaps_count(const perhaps_filter *filter, const void *key, size_t key_nbytes,
                              uint64_t *count);

/* ---- Add and ask, one key that is known a little earlier ----------------------------- */

/* A key that was hashed.  Its members belong to the library. */
struct perhaps_prepared {
    uint64_t place;
    uint64_t mark;
    int error;
};

/* Hashes a key, and sends for the memory where it will be looked up: a program that prepares
 * each key some 16 keys before it asks for it does not wait for memory, and is faster than any
 * single call can be.  Never fails; a key that cannot be hashed gives the answer or error of
 * the plain call later.  May be used, any number of times, with this filter and with others of
 * the same hash and seed or secret, which the memory was not sent for. */
PERHAPS_API void perhaps_prepare(const perhaps_filter *filter, const void *key,
                                 size_t key_nbytes, struct perhaps_prepared *prepared);

/* Do what perhaps_contains(), perhaps_add() and perhaps_add_unless_present() do. */
PERHAPS_API bool perhaps_contains_prepared(const perhaps_filter *filter,
                                           const struct perhaps_prepared *prepared);
PERHAPS_API int perhaps_add_prepared(perhaps_filter *filter,
                                     const struct perhaps_prepared *prepared);
PERHAPS_API int perhaps_add_unless_present_prepared(perhaps_filter *filter,
                                                    const struct perhaps_prepared *prepared,
                                                    bool *was_present);

/* ---- Add and ask, many keys at once: several times faster on large filters ---------- */

struct perhaps_key {
    const void *bytes;
    size_t nbytes;
};

/* What the hash of a filter makes of a key: the same in all filters of that hash with that seed
 * or secret. */
struct perhaps_hashed {
    uint8_t bytes[PERHAPS_HASH_NBYTES];
};

/* Many keys: made by one of the functions below. */
struct perhaps_keys {
    size_t count;
    const struct perhaps_key *each;
    const struct perhaps_hashed *hashed;
    const void *packed;
    size_t key_nbytes;
    const void *offsets; /* keys lie in 'packed' between these, which have so many bytes each */
    size_t offset_nbytes;
};

/* Keys that each have their own length. */
static inline struct perhaps_keys perhaps_keys_each(const struct perhaps_key *each,
                                                    size_t count)
{
    struct perhaps_keys keys = { count, each, NULL, NULL, 0, NULL, 0 };
    return keys;
}

/* Keys of 'key_nbytes' bytes each, one after the other in memory. */
static inline struct perhaps_keys perhaps_keys_packed(const void *packed, size_t key_nbytes,
                                                      size_t count)
{
    struct perhaps_keys keys = { count, NULL, NULL, packed, key_nbytes, NULL, 0 };
    return keys;
}

/* Keys of any length that lie in one piece of memory: key i from offset[i] up to offset[i + 1],
 * where the next one begins.  So there are count + 1 offsets, and none is less than the one
 * before it.  Strings of Apache Arrow lie like this. */
static inline struct perhaps_keys perhaps_keys_offsets32(const void *bytes,
                                                         const uint32_t *offset, size_t count)
{
    struct perhaps_keys keys = { count, NULL, NULL, bytes, 0, offset, sizeof *offset };
    return keys;
}

static inline struct perhaps_keys perhaps_keys_offsets64(const void *bytes,
                                                         const uint64_t *offset, size_t count)
{
    struct perhaps_keys keys = { count, NULL, NULL, bytes, 0, offset, sizeof *offset };
    return keys;
}

/* Keys that perhaps_hash_many() has hashed; or integers for a bitmap. */
static inline struct perhaps_keys perhaps_keys_hashed(const struct perhaps_hashed *hashed,
                                                      size_t count)
{
    struct perhaps_keys keys = { count, NULL, hashed, NULL, 0, NULL, 0 };
    return keys;
}

/* Key 'index' of these keys, which are not hashed. */
static inline struct perhaps_key perhaps_keys_at(const struct perhaps_keys *keys, size_t index)
{
    struct perhaps_key key = { keys->packed, keys->key_nbytes };
    const uint32_t *narrow = (const uint32_t *)keys->offsets;
    const uint64_t *wide = (const uint64_t *)keys->offsets;
    uint64_t first = 0, end = 0;
    if (keys->each)
        return keys->each[index];
    if (!keys->offsets) {
        first = keys->key_nbytes * index;
    } else {
        bool is_narrow = keys->offset_nbytes == sizeof *narrow;
        first = is_narrow ? narrow[index] : wide[index];
        end = is_narrow ? narrow[index + 1] : wide[index + 1];
        key.nbytes = (size_t)(end - first);
    }
    if (first) /* C does not define NULL + 0 */
        key.bytes = (const char *)keys->packed + first;
    return key;
}

/* 'count' of these keys, from number 'first' on. */
static inline struct perhaps_keys perhaps_keys_slice(const struct perhaps_keys *keys,
                                                     size_t first, size_t count)
{
    struct perhaps_keys slice = *keys;
    slice.count = count;
    if (keys->each)
        slice.each = keys->each + first;
    else if (keys->hashed)
        slice.hashed = keys->hashed + first;
    else if (keys->offsets)
        slice.offsets = (const char *)keys->offsets + first * keys->offset_nbytes;
    else if (keys->key_nbytes)
        slice.packed = (const char *)keys->packed + first * keys->key_nbytes;
    return slice;
}

/* Hashes keys as the filter does: so that other threads can hash what one thread adds, or that
 * one hash serves for several filters.  Returns 0; PERHAPS_ERR_SECRET; or PERHAPS_ERR_ARGUMENT
 * for a key that the hash does not take, having hashed nothing. */
PERHAPS_API int perhaps_hash_many(const perhaps_filter *filter, const struct perhaps_keys *keys,
                                  struct perhaps_hashed *hashed);

/* These do what their single forms do, for one key after the other in order.  On an error they
 * stop: the first *done keys are added, the next one met the error and changed nothing.  'done'
 * and the answers (one for each key) may be NULL. */
PERHAPS_API int perhaps_add_many(perhaps_filter *filter, const struct perhaps_keys *keys,
                                 size_t *done);
PERHAPS_API int perhaps_add_unless_present_many(perhaps_filter *filter,
                                                const struct perhaps_keys *keys,
                                                bool *was_present, size_t *done);

/* Removes one copy of each key, in order: removed[i] tells whether key i was found, *nremoved
 * how many were.  Returns 0, also if keys were not found; or an error of perhaps_remove(): then
 * the first *done keys have been dealt with, the next one met the error, and neither it nor a
 * later one changed anything.  'removed', 'nremoved' and 'done' may be NULL. */
PERHAPS_API int perhaps_remove_many(perhaps_filter *filter, const struct perhaps_keys *keys,
                                    bool *removed, size_t *nremoved, size_t *done);

/* Returns how many keys are perhaps present; present[i] (may be NULL) tells which. */
PERHAPS_API size_t perhaps_contains_many(const perhaps_filter *filter,
                                         const struct perhaps_keys *keys, bool *present);

/* Sets counts[i] for key i as perhaps_count() does.  Returns 0; or sets all counts to 0 and
 * returns an error of perhaps_count() that one of the keys met. */
PERHAPS_API int perhaps_count_many(const perhaps_filter *filter,
                                   const struct perhaps_keys *keys, uint64_t *counts);

/* Sets value[i] and present[i] for key i: present[i] is false where perhaps_lookup() returns
 * PERHAPS_ERR_NOT_FOUND, and the value is 0 then.  Neither may be NULL.  Returns 0; or an error
 * of perhaps_lookup() that one of the keys met, and then sets all to 0 and false. */
PERHAPS_API int perhaps_lookup_many(const perhaps_filter *filter,
                                    const struct perhaps_keys *keys, uint32_t *value,
                                    bool *present);

/* ---- Windows: forgetting --------------------------------------------------------------- */

/* Tells a window the time, in any unit and from any beginning: the window forgets what is older
 * than its 'time'.  The first call sets when its first generation began; a time before the
 * beginning of the newest generation changes nothing.  Returns 0; PERHAPS_ERR_UNSUPPORTED for
 * other kinds and for windows that do not go by time; or PERHAPS_ERR_READ_ONLY.
 *
 * It trusts the time.  After one that is ten years ahead, a window has forgotten all, and then
 * forgets nothing for ten years.  So take the next function for times that nobody vouches for:
 * those of records, of clients, of other computers. */
PERHAPS_API int perhaps_advance(perhaps_filter *filter, uint64_t now);

/* Does that unless 'now' is further ahead of 'clock' than the window is long (.window.time of
 * perhaps_stats_of()): then it changes nothing and returns PERHAPS_ERR_AHEAD.  'clock' is what
 * the caller's own clock shows, in the unit of 'now': the library asks none.  Times before it,
 * however old, are taken.
 *
 * Ask it where a time comes from outside, and replicate or replay what it took by
 * perhaps_advance(), which does the same everywhere and at any time.  Journals do so. */
PERHAPS_API int perhaps_advance_unless_ahead(perhaps_filter *filter, uint64_t now,
                                             uint64_t clock);

/* Brings back the time of a window that is ahead, after a clock or a record was wrong: its
 * newest generation then began at 'now'.  It changes nothing if that began earlier, or if the
 * window does not know the time yet.  No key is lost: those of the newest generation, to which
 * all were added while the time was ahead, are remembered for the whole window from now on.  A
 * key that was forgotten is not brought back.  Returns 0; PERHAPS_ERR_UNSUPPORTED as
 * perhaps_advance(); or PERHAPS_ERR_READ_ONLY.
 *
 * .window.newest of perhaps_stats_of() tells whether a window is ahead.  Ask a person before
 * you bring it back: if the clock is the one that is wrong, the window forgets all as soon as
 * that is set right. */
PERHAPS_API int perhaps_set_back(perhaps_filter *filter, uint64_t now);

/* Answers as perhaps_contains_many() would after perhaps_advance(filter, now), and changes
 * nothing: generations that would be forgotten are not asked.  For other kinds, and for windows
 * that do not go by time, it is perhaps_contains_many(). */
PERHAPS_API size_t perhaps_contains_many_at(const perhaps_filter *filter,
                                            const struct perhaps_keys *keys, uint64_t now,
                                            bool *present);

/* Begins a new generation of a window and forgets the oldest, whatever the window goes by.
 * Returns 0, PERHAPS_ERR_UNSUPPORTED for other kinds, or PERHAPS_ERR_READ_ONLY. */
PERHAPS_API int perhaps_rotate(perhaps_filter *filter);

/* ---- Two filters ------------------------------------------------------------------- */

/* Adds all keys of 'other', which may not be 'filter', to 'filter'.  Returns 0;
 * PERHAPS_ERR_MISMATCH unless kind, geometry, hash, and seed or secret are the same, and both
 * store copies of keys or neither does: what a set has may be another key's, of which no copy
 * may be removed; PERHAPS_ERR_FULL or PERHAPS_ERR_COPIES if the union would break the fpr or
 * has no room; PERHAPS_ERR_MEMORY, since it makes a copy; PERHAPS_ERR_READ_ONLY; or
 * PERHAPS_ERR_DAMAGED if 'other' is mapped from a damaged file.  On failure 'filter' is
 * unchanged.  In Bloom kinds the number of keys of the union is an estimate, in which keys that
 * both held are counted once; so is that of two sets of the kind counting.
 *
 * Of two chains, layers of the same number are united, and a layer that only 'other' has is
 * copied.  Two layers of which each is more than half full rarely fit into one: chains can be
 * merged while they are small, or if they began as copies of each other.  A key that both held
 * in different layers is counted twice.
 *
 * No call makes one layer of a chain's layers: a bit or a fingerprint does not tell where its
 * key would lie there.  Build a new filter from the keys. */
PERHAPS_API int perhaps_merge(perhaps_filter *filter, const perhaps_filter *other);

#define PERHAPS_DIFFERENCE_NBYTES 512

/* Tells in what two filters differ that can be neither merged nor intersected, by the names of
 * the options and with the values of both: "seed 5 and 7", or "capacity 1000 and 2000, fpr 0.01
 * and 0.001"; of a set and a filter that stores copies "copies none and stored".  Where no
 * option tells it, names of perhaps_plan.field_name do.  Secrets are not shown.  Returns
 * whether they differ, and if so writes the text, with a NUL at its end, and otherwise an empty
 * one; 'text' may be NULL.  For perhaps_compare(), which takes some filters of different
 * capacity, too, it tells what to make the same. */
PERHAPS_API bool perhaps_difference(const perhaps_filter *a, const perhaps_filter *b,
                                    char text[PERHAPS_DIFFERENCE_NBYTES]);

/* Keeps of 'filter' only the keys that 'other', which may not be 'filter', has as well.  No key
 * that was added to both is lost.  The fpr, from the actual bits, is then at most the smaller
 * one of the two filters; of the keys that only one of them had, some may stay "perhaps".  A
 * kind that stores copies keeps of each key as many as the filter that had fewer.  Takes no
 * memory.
 *
 * The filter keeps its geometry, and the fpr that was asked of it holds for later adds as
 * before.  In Bloom kinds the number of keys of perhaps_stats_of() becomes the one that would
 * set as many bits as are left (counting: as many counts).  That is more than both had in
 * common, since bits meet by chance, and at most the smaller of the two numbers before.
 * perhaps_compare() estimates how many keys both have.
 *
 * For bitmap, blocked, bloom, counting, cuckoo and strided.  Returns 0; PERHAPS_ERR_UNSUPPORTED
 * for other kinds (in chains and windows a key may lie in another part of 'other' than of
 * 'filter'); PERHAPS_ERR_MISMATCH as perhaps_merge(); PERHAPS_ERR_ARGUMENT;
 * PERHAPS_ERR_READ_ONLY; PERHAPS_ERR_DAMAGED as perhaps_merge().  On failure 'filter' is
 * unchanged. */
PERHAPS_API int perhaps_intersect(perhaps_filter *filter, const perhaps_filter *other);

/* A number that chance decided about, and its standard error: the true number is within one
 * error of 'value' in two of three cases, and within two in 19 of 20. */
struct perhaps_estimate {
    double value;
    double error;
};

/* Two sets of keys, A and B. */
struct perhaps_comparison {
    struct perhaps_estimate a, b;    /* how many different keys each has */
    struct perhaps_estimate either;  /* how many their union has */
    struct perhaps_estimate both;    /* how many their intersection has */
    struct perhaps_estimate a_in_b;  /* which share of the keys of A is in B; 0 if A has none */
    struct perhaps_estimate b_in_a;  /* the same for B */
    struct perhaps_estimate jaccard; /* both / either, the similarity; 0 if there are no keys */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Estimates how many keys two filters have, and have in common, from their bits alone: not from
 * the counts of keys, which are estimates themselves after a merge.  Copies of a key count
 * once.  A bitmap is exact, and its errors are 0.  In other kinds the errors follow from the
 * fill: they are smallest for large, half full filters, and where the sets are nearly the same
 * or nearly without common keys.  (They are those of a normal distribution if a few hundred
 * keys and more are in.)  If all bits are set, the number is a lower bound and its error is
 * INFINITY.  All numbers are 0 or more, and 'both' is at most the smaller set.
 *
 * The filters need the same kind, geometry, hash, and seed or secret.  Blocked, bloom and
 * counting ones may differ in their number of lines: both are then read as if they had been
 * made smaller to a common number (see perhaps_shrink()); the errors grow with what is lost.
 *
 * For bitmap, blocked, bloom, counting, cuckoo and strided.  Reads both bodies, and takes no
 * memory.
 * Returns 0; PERHAPS_ERR_UNSUPPORTED for other kinds: in chains and windows, and where elastic
 * fingerprints became shorter, the same key lies differently in two filters; filters that are
 * built once do not hold their keys as bits; PERHAPS_ERR_MISMATCH, also if the common number
 * of lines is so small that all bits would be set; or PERHAPS_ERR_DAMAGED if one is mapped from
 * a damaged file.  On failure *result is unchanged. */
PERHAPS_API int perhaps_compare(const perhaps_filter *a, const perhaps_filter *b,
                                struct perhaps_comparison *result);

/* Returns whether both have the same kind, geometry and hash, and the same bytes in their
 * bodies.  Cuckoo filters of the same keys differ if the keys came in another order. */
PERHAPS_API bool perhaps_equal(const perhaps_filter *a, const perhaps_filter *b);

/* Writes 16 bytes that are the same for filters that are perhaps_equal(), and otherwise differ
 * (with a probability of 1 - 2^-128, for filters that nobody crafted): XXH3 over kind,
 * geometry, hash and bodies, but not over counts of keys and of failures.  Reads the whole
 * body.  Later versions of the library write the same bytes. */
PERHAPS_API void perhaps_digest(const perhaps_filter *filter, uint8_t digest[16]);

/* ---- A smaller filter -------------------------------------------------------------- */

/* Makes a filter of the same keys that takes less memory: for one that was planned for more
 * keys than it got.  blocked, bloom, counting, and chains of these, each layer on its own.
 *
 * The new filter is the one that would have been there if it had been planned smaller: its
 * body is 1/2, 1/3, ... of the old one, the smallest with which its fpr, planned for these
 * keys and computed from all its bits, is at most 'fpr'; 0 stands for the fpr of the filter.
 * This is the fpr that the new filter then keeps.  (If many more bits are set than by so many
 * keys, as crafted keys can do, not all sizes are tried.)  It has room for as many keys more
 * as its size allows, by perhaps_stats; or is full, and its capacity is the number of its keys
 * then (other keys in their place may not all fit).  Only divisors of the number of lines
 * (bloom: of whole lines of bits) can be used; plans choose numbers with many divisors.
 *
 * Returns 0; or sets *small to NULL and returns PERHAPS_ERR_LIMIT if nothing becomes smaller,
 * or if not all layers of a chain can keep their shares of this fpr; PERHAPS_ERR_UNSUPPORTED
 * for other kinds (generations of a window get keys again); PERHAPS_ERR_ARGUMENT;
 * PERHAPS_ERR_MEMORY. */
PERHAPS_API int perhaps_shrink(const perhaps_filter *filter, double fpr,
                               perhaps_filter **small);

/* ---- Inspect ----------------------------------------------------------------------- */

struct perhaps_stats {
    struct perhaps_plan plan; /* kind, geometry, capacity, fpr asked and predicted; no 'why' */
    const char *hash;         /* perhaps_hash_name() */
    uint64_t keys;            /* Bloom kinds: keys that set a bit; others: copies stored */
    bool keys_estimated;      /* that is an estimate: see below */
    double load;              /* share of bits or slots in use, 0 to 1 */
    uint64_t memory_nbytes;   /* of the body, with its directories and those of all parts */
    double bits_per_key;      /* of this memory, for each key that is in; 0 if none is */
    double fpr_now;           /* from the actual fill */
    uint64_t parts;           /* layers of a chain, generations of a window; else 0 */
    uint64_t stale;           /* entries of removed keys that had to stay; elastic: at most */
    uint64_t failed_adds;     /* that met PERHAPS_ERR_FULL, _COPIES or _MEMORY */
    uint64_t unmatched_removals; /* that met PERHAPS_ERR_NOT_FOUND */
    bool mapped;                 /* from a file */
    bool shared;                 /* several threads may write; if mapped, processes, too */
    const char *cpu;             /* whose instructions it uses: "avx512", "scalar", ... */

    /* Of one kind each, and of chains and windows of that kind; else 0. */
    struct perhaps_counting_stats {
        uint64_t saturated; /* counters that have reached their maximum, and stay there */
    } counting;
    struct perhaps_elastic_stats {
        uint64_t segments; /* pages of slots */
    } elastic;
    struct perhaps_window_stats {
        uint64_t time;   /* how long it remembers; 0: it does not go by time */
        bool knows_time; /* it was told one */
        uint64_t newest; /* when its newest generation began, by what it was told */
    } window;

    uint64_t keys_different; /* how many were added: 'keys' and those that are not counted */
    uint64_t reserved[PERHAPS_RESERVED - 1];
};

/* 'keys' is a count.  Filters that store copies, and what a builder made, count each key.  All
 * others count a key if it was not "perhaps there" when it was added: so of n different keys
 * about as many are missing as the mean fpr says, and 'keys' is the number of adds that found
 * a key to be new.  'keys_different' has the missing ones, too, in expectation.  (Of a window
 * it is 'keys', since nobody knows what it has forgotten.)
 *
 * How far off.  With s = sqrt(keys_different * fpr_now + 1) / (1 - fpr_now), 'keys_different'
 * is within 7 s + 1 of the true number, for all seeds but one in 10^9; as the filter was
 * filled, and also after it was copied, saved and opened.  After perhaps_merge() of sets, and
 * where 'keys_estimated' says so, the number comes from the bits, and is within 7 (s +
 * sqrt(keys_different) / 2) + 1; after perhaps_intersect(), too, but it may be more by the
 * keys that one of the two alone had, up to those of the smaller one.  Merged filters that
 * store copies, cleared ones, and removals are exact.  A chain is as exact as its layers are.
 *
 * Blocked and Bloom filters that several threads filled (other than blocked ones with one line
 * a key), that several processes wrote in place, or that were merged, intersected or made
 * smaller have 'keys_estimated'.  A key that several writers add at the same moment may be
 * counted by each: so the number may be above the truth by 6.5 standard deviations of what the
 * bits tell, and one percent more for bodies above 1 MiB, of which a sample is read.  (In
 * place each process may count 512 keys too few.)  Such a filter is full when its bits say so:
 * no key is refused because others were counted twice.  For that, the last adds read all of
 * the body a few times (measured: 1.3 s each for 750 MB).
 *
 * In all of them, capacity - keys_different different keys more fit into a filter that does not
 * grow.
 *
 * Fills in *stats, in about a millisecond, of a chain in two; the first call on a chain or
 * window takes two more, since it plans a part again.  Reads about 1 MiB of the body: 'load'
 * and 'fpr_now' are exact for a body of up to 64 KiB, true to half a percent for one of 1 MiB,
 * and estimated from an even sample of a larger one (measured: to 1 % at an fpr of 1 %, to 4 %
 * at 1e-6). */
PERHAPS_API void perhaps_stats_of(const perhaps_filter *filter, struct perhaps_stats *stats);

/* Returns how many bytes of memory the filter takes: all that it and its parts have taken from
 * their allocator and not released, as allocate() was asked for them, and the body if that is
 * mapped from a file.  It is quick: it adds up the parts. */
PERHAPS_API uint64_t perhaps_memory_nbytes(const perhaps_filter *filter);

/* Returns how many bytes of the bodies lie on huge pages, which halve the time of a query.
 * Asks the system, which takes milliseconds in a large process. */
PERHAPS_API uint64_t perhaps_huge_nbytes(const perhaps_filter *filter);

/* Fills in *stats for one part of a filter: a layer of a chain, a generation of a window; the
 * newest is 0.  Returns false, and leaves *stats alone, if there is no such part. */
PERHAPS_API bool perhaps_part(const perhaps_filter *filter, size_t index,
                              struct perhaps_stats *stats);

/* Returns the fpr that the filter has, in expectation, when it holds 'keys' keys. */
PERHAPS_API double perhaps_predict_fpr(const perhaps_filter *filter, uint64_t keys);

#ifdef __cplusplus
}
#endif

#include "perhaps_file.h"
#endif
