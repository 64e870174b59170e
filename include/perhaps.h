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
 * bits, not of filters on average, as long as the filter accepts keys (doc/THEORY.md).
 *
 * This page is enough for most programs.  Behind it, each by itself:
 *     perhaps_plan.h    what a filter will take, which kinds there are, what one can do
 *     perhaps_file.h    modes of opening, pipes, bytes in memory, checks of damaged files
 *     perhaps_remote.h  files that are far away, asked without loading them
 *     perhaps_live.h    files that survive a crash of the system, by a journal
 *     perhaps_sets.h    two filters: union, intersection, estimates; a smaller filter
 *     perhaps_window.h  filters that forget
 *     perhaps_build.h   keys that are all known; values; a great many keys
 *     perhaps_fast.h    keys hashed ahead, or without a call
 *     perhaps_embed.h   allocators, secrets, filters by the thousand
 *
 * Errors.  A function that can fail returns 0 or a negative enum perhaps_error; on failure the
 * filter is as it was (the _many forms tell how far they came).  The library never prints,
 * exits, logs or keeps global state, and needs no initialisation.
 *
 * Threads.  Different filters are independent.  On one filter, functions that take a
 * 'const perhaps_filter *' may run in any number of threads at once.  One that takes a plain
 * 'perhaps_filter *' needs the filter for itself.  But a filter that was made 'shared', or
 * opened in place, takes adds and removals of any number of threads at once, while any number
 * ask (contains, count, stats_of, predict_fpr), also while it grows:
 * - Readers never wait.  Once the add of a key has returned, every thread finds the key.
 * - N different keys fit into a filter for N, whoever adds them, how often, in which order.  If
 *   two threads add one new key at the same moment, Bloom kinds may tell both that it is new.
 * - No thread may add or remove while any other function (save, clone, merge, ...) runs.
 * - An add takes up to half as long again; filters that are not shared pay nothing.
 * A window cannot be shared.  A filter with a journal may be changed by several threads in any
 * case, and asked meanwhile if it is shared. */
#ifndef PERHAPS_H
#define PERHAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERHAPS_VERSION_MAJOR 0
#define PERHAPS_VERSION_MINOR 3
#define PERHAPS_VERSION_PATCH 0
#define PERHAPS_VERSION       "0.3.0"

#define PERHAPS_HASH_NBYTES 16
#define PERHAPS_NOTE_MAX    95 /* bytes of a note */

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

/* ---- Create ------------------------------------------------------------------------ */

/* What a filter can do; 'needs' of the options is a set of these. */
enum perhaps_ability {
    PERHAPS_CAN_REMOVE = 1,    /* keys can be removed; as a need: each add stores a copy */
    PERHAPS_CAN_COUNT = 2,     /* tells how often a key was added; the same as a need */
    PERHAPS_CAN_GROW = 4,      /* takes more keys than 'capacity', which need not be known */
    PERHAPS_CAN_BUILD = 8,     /* all keys are known at once, and none comes later */
    PERHAPS_CAN_MERGE = 16,    /* two filters can become their union */
    PERHAPS_CAN_SHARE = 32,    /* several processes can add to one file in place */
    PERHAPS_CAN_FORGET = 64,   /* forgets the oldest keys: a window */
    PERHAPS_CAN_THREADS = 128, /* several threads can add at once: 'shared' */
};

/* What to prefer where the needs leave a choice between memory and speed. */
enum perhaps_preference {
    PERHAPS_PREFER_BALANCED = 0,
    PERHAPS_PREFER_FAST,    /* one memory access a key where possible */
    PERHAPS_PREFER_COMPACT, /* fewer bits, for one more memory access a key */
};

enum perhaps_hash {
    PERHAPS_HASH_XXH3 = 0, /* XXH3 with a random seed: for keys that nobody crafts */
    PERHAPS_HASH_SIP,      /* SipHash-2-4-128, a secret: where strangers choose the keys */
    PERHAPS_HASH_NONE,     /* keys are 16 bytes and are already uniform hashes */
    PERHAPS_HASH_CUSTOM,   /* the caller's function */
    PERHAPS_HASH_XXH3_64,  /* XXH3 of 64 bits */
    PERHAPS_HASH_NONE_64,  /* keys are 8 bytes and are already uniform hashes */
    PERHAPS_HASH_INTEGER,  /* keys are decimal text: of the kind bitmap, which has no other */
    PERHAPS_HASH_GROUPED,  /* XXH3 that tells the group of a key: of the kind against alone */
    PERHAPS_HASH_COUNT,
};

/* The hash of a filter, and what that hash needs: perhaps_plan.h tells more.  All zero: xxh3
 * with a random seed. */
struct perhaps_hashing {
    enum perhaps_hash hash;
    uint64_t seed;         /* xxh3: 0 takes a random one */
    const uint8_t *secret; /* sip: 16 bytes; NULL generates them (perhaps_secret()) */

    /* custom: writes 16 uniformly distributed bytes, which depend on the key and the context
     * alone. */
    void (*function)(void *context, const void *key, size_t key_nbytes,
                     uint8_t hash[PERHAPS_HASH_NBYTES]);
    void *context;

    /* What was done to keys before they came here, such as making letters small, for those who
     * ask later: see perhaps_note(). */
    const char *note;
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
    const char *base;                   /* chain, window: the kind of their parts; or NULL */
    bool shared; /* several threads may add or remove at once: see Threads above */
    struct perhaps_hashing hashing;
    const struct perhaps_allocator *allocator; /* perhaps_embed.h; NULL: the system's; copied */

    /* Of one kind each, which the others ignore: perhaps_plan.h tells more. */
    struct {
        bool together; /* the cache lines of a key lie side by side */
    } blocked;
    struct {
        unsigned factor; /* how many times the capacity of the one before a layer has; 0: 2 */
    } chain;
    struct {
        uint64_t fpr_until; /* up to so many keys the fpr is kept; 0: 2^20 times 'capacity' */
    } elastic;
    struct perhaps_window_options {
        unsigned generations; /* 2 to 64; 0: 5 */
        uint64_t keys, time;  /* it remembers so many keys, or for so long */
    } window;
    struct {
        unsigned value_bits; /* of a value that is stored with each key: 0 to 16 */
    } ribbon;
    struct {
        uint64_t others; /* about how many keys the other side has; 0: 100 to each key */
        unsigned
            group_nbytes; /* a key begins with its group, of 1 to 255 bytes; 0: no groups */
    } against;
    struct perhaps_bitmap_options {
        uint64_t low, high; /* the range of its integers, of which each takes a bit */
    } bitmap;
    uint64_t reserved[PERHAPS_RESERVED];
};

typedef struct perhaps_filter perhaps_filter;

/* Makes an empty filter as perhaps_plan_for() plans it.  Returns 0 and sets *filter, to be
 * released with perhaps_free(); or sets it to NULL and returns PERHAPS_ERR_ARGUMENT for a
 * number out of range or an unknown kind; PERHAPS_ERR_UNSUPPORTED if no kind, or not the named
 * one, meets the needs; PERHAPS_ERR_LIMIT for an fpr or size that the kind cannot reach;
 * PERHAPS_ERR_MEMORY; PERHAPS_ERR_SECRET (custom without a function); or PERHAPS_ERR_IO (the
 * system has no random bytes). */
PERHAPS_API int perhaps_create(const struct perhaps_options *options, perhaps_filter **filter);

/* Releases the filter and unmaps its file.  NULL is allowed. */
PERHAPS_API void perhaps_free(perhaps_filter *filter);

/* Makes a copy in memory, which can be written even if the filter is mapped.  Returns 0; or
 * PERHAPS_ERR_MEMORY, or PERHAPS_ERR_DAMAGED for a damaged file that is mapped, and sets *copy
 * to NULL. */
PERHAPS_API int perhaps_clone(const perhaps_filter *filter, perhaps_filter **copy);

/* Forgets every key and sets all counts to 0; geometry and hash stay.  Returns 0 or
 * PERHAPS_ERR_READ_ONLY. */
PERHAPS_API int perhaps_clear(perhaps_filter *filter);

/* ---- Add and ask, one key at a time ------------------------------------------------ */

/* Adds a key.  A filter is a set, whatever its kind: to add a key that is perhaps there changes
 * nothing.  Only if it was made with PERHAPS_CAN_REMOVE or PERHAPS_CAN_COUNT among the needs,
 * every add stores one copy, which one removal takes away; many copies of few keys crowd their
 * slots, and may be refused before 'capacity' copies are in.  (A bitmap can always remove.)
 *
 * Returns 0; PERHAPS_ERR_FULL; _COPIES; _READ_ONLY; _UNSUPPORTED for kinds that take no single
 * keys; _ARGUMENT for a key of a length that the hash does not take (perhaps_hash_takes()), or
 * one that is no integer or outside of the range of a bitmap; _SECRET; or _IO if a live file's
 * journal has no room.  A failed add changes nothing but the count of failed adds: every key
 * that was in is still found.  (Segments of an elastic filter may have been split for it.) */
PERHAPS_API int perhaps_add(perhaps_filter *filter, const void *key, size_t key_nbytes);

/* Adds a key unless it is perhaps there already, and tells in *was_present (may be NULL)
 * whether it was: one pass of this drops repeats.  Errors as perhaps_add(); *was_present is
 * then false.  Do not mix it with removals: a key that was "perhaps there" may share the entry
 * of another key, and is lost when that key is removed. */
PERHAPS_API int perhaps_add_unless_present(perhaps_filter *filter, const void *key,
                                           size_t key_nbytes, bool *was_present);

/* Returns false if the key was certainly not added (or was removed), true if perhaps it was.
 * False for a key that could not be added (PERHAPS_ERR_ARGUMENT).  Always true for a filter
 * that was opened without its secret. */
PERHAPS_API bool perhaps_contains(const perhaps_filter *filter, const void *key,
                                  size_t key_nbytes);

/* Removes one copy of a key that was added.  If its entry cannot be told from another key's (a
 * chain finds it in several layers; a counter is saturated) the entry stays, so that no key is
 * lost, and counts as stale.  Returns 0; PERHAPS_ERR_NOT_FOUND, having changed nothing but the
 * count of unmatched removals, also for an integer outside of the range of a bitmap;
 * PERHAPS_ERR_UNSUPPORTED; _READ_ONLY; _ARGUMENT or _SECRET as in perhaps_add().
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

/* ---- Add and ask, many keys at once: several times faster on large filters ---------- */

struct perhaps_key {
    const void *bytes;
    size_t nbytes;
};

/* Many keys: made by one of the functions below, or of perhaps_fast.h. */
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

/* ---- Inspect ----------------------------------------------------------------------- */

#define PERHAPS_FIELDS_MAX 12

/* What a filter is made of: perhaps_plan_for() tells it before. */
struct perhaps_plan {
    const char *kind;
    const char *base; /* chain, window, against: the kind of their parts; else NULL */
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

struct perhaps_stats {
    struct perhaps_plan plan; /* kind, geometry, capacity, fpr asked and predicted; no 'why' */
    const char *hash;         /* perhaps_hash_name() */
    uint64_t keys;            /* Bloom kinds: keys that set a bit; others: copies stored */
    bool keys_estimated;      /* that is an estimate: see below */
    double load;              /* share of bits or slots in use, 0 to 1 */
    uint64_t memory_nbytes;   /* of the body, with its directories and those of all parts */
    double bits_per_key;      /* of this memory, for each key that is in; 0 if none is */
    double fpr_now;           /* from the actual fill */
    uint64_t parts;       /* layers of a chain, generations of a window, 2 of against; else 0 */
    uint64_t stale;       /* entries of removed keys that had to stay; elastic: at most */
    uint64_t failed_adds; /* that met PERHAPS_ERR_FULL, _COPIES or _MEMORY */
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

/* Fills in *stats, in about a millisecond, of a chain in two.  'load' and 'fpr_now' are exact
 * for a body of up to 64 KiB, true to half a percent for one of 1 MiB, and estimated from an
 * even sample of a larger one.  perhaps_plan.h tells how exact the counts of keys are. */
PERHAPS_API void perhaps_stats_of(const perhaps_filter *filter, struct perhaps_stats *stats);

/* ---- Files ------------------------------------------------------------------------- */

/* Writes the filter to 'path', so that at every moment the old or the new file is there as a
 * whole: to a temporary file beside it, which is synced and renamed.  Keeps the mode of an
 * existing file, and a symbolic link.  Writes straight to a device or pipe.  A live file stays
 * one (perhaps_live.h).  If two save to one path at once, the later one stays.  Returns 0; or
 * PERHAPS_ERR_IO (errno), _MEMORY, or _DAMAGED for a damaged file that is mapped: then the old
 * file is as it was, unless all was done but syncing the folder. */
PERHAPS_API int perhaps_save(const perhaps_filter *filter, const char *path);

/* Opens a saved filter, however large, at once: it is mapped, and read only, unless the options
 * (perhaps_file.h) say otherwise; NULL are the defaults.  If somebody else writes into a mapped
 * file, its answers change; if somebody truncates it, the process ends with SIGBUS.
 * (perhaps_save() does neither: it replaces the file.)
 *
 * Returns 0 and sets *filter; or sets it to NULL and returns PERHAPS_ERR_IO (errno), _FORMAT,
 * _VERSION, _DAMAGED, _SECRET, _MEMORY, _JOURNAL, _UNSUPPORTED or _ARGUMENT: perhaps_file.h
 * tells when. */
struct perhaps_open_options;
PERHAPS_API int perhaps_open(const char *path, const struct perhaps_open_options *options,
                             perhaps_filter **filter);

#ifdef __cplusplus
}
#endif
#endif
