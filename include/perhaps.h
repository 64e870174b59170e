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
 * A filter answers from a few bits a key.  A key that was added is always answered
 * "perhaps" (true); a key that was not is answered "perhaps" with a probability of at
 * most the false-positive rate (fpr) that was asked: at every moment at which the filter
 * accepts keys, computed from its actual bits.  Filters are sized for that whatever their hash
 * seed (all but one in 10^9), and small ones compute the rate as they fill (doc/KINDS.md).
 *
 * Errors.  Functions that can fail return 0 or a negative enum perhaps_error, and leave
 * the filter as it was (the _many forms say how far they came).  The library never prints,
 * exits, logs or keeps global state, and needs no initialisation.
 *
 * Sets that grow, count and age.  Kinds with PERHAPS_CAN_GROW begin with 'capacity' keys and
 * take more as they come; counting kinds tell how often a key was added; a window forgets the
 * oldest keys: 'chain', 'elastic', 'base' and 'window' of the options.
 *
 * Threads.  Different filters are independent.  On one filter, functions that take a
 * 'const perhaps_filter *' may run in any number of threads at once.  A function that takes a
 * plain 'perhaps_filter *' needs the filter for itself, unless the filter is shared:
 * - To a filter made 'shared', or opened in PERHAPS_MODE_LIVE, any number of threads may add at
 *   once, and remove from it (perhaps_add*(), perhaps_remove*()), beside any number that ask
 *   (perhaps_contains*(), perhaps_count*(), perhaps_stats_of(), perhaps_predict_fpr()).
 *   Readers never wait.  A key whose add has returned is found by every thread that asks
 *   after it.  If two threads add one new key at the same moment, Bloom kinds may tell both
 *   that it was not there, and may count it twice; other kinds tell only one.
 * - A filter that grows does so beside those who ask and add.
 * - All other functions (save, clone, merge, clear, equal, verify, part, free) need that nobody
 *   adds or removes meanwhile.
 * - A window cannot be shared.
 * - Sharing costs writers up to a half more time; a filter that is not shared pays nothing.
 *
 * Processes.  A saved filter of a kind with PERHAPS_CAN_SHARE can be opened in
 * PERHAPS_MODE_LIVE by several processes at once, which then all add to the same mapped file,
 * beside any number that have it open read-only (see perhaps_open()).
 *
 * Keys are any bytes, of any length from 0 on. */
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
    PERHAPS_ERR_FULL = -4,   /* one key more would break the promised fpr, or finds no room */
    PERHAPS_ERR_COPIES = -5, /* the key (or its twin) fills all its slots: PERHAPS_COPIES_MAX */
    PERHAPS_ERR_NOT_FOUND = -6, /* removal of a key that is certainly not there */
    PERHAPS_ERR_READ_ONLY = -7, /* the filter is mapped from a file */
    PERHAPS_ERR_MISMATCH = -8,  /* two filters differ in kind, geometry, hash or seed */
    PERHAPS_ERR_SECRET = -9,    /* secret or hash function missing, or not the filter's */
    PERHAPS_ERR_IO = -10,       /* the system refused; errno says why */
    PERHAPS_ERR_FORMAT = -11,   /* not a filter file */
    PERHAPS_ERR_VERSION = -12,  /* a filter file of a later version, kind or feature */
    PERHAPS_ERR_DAMAGED = -13,  /* truncated, or a checksum is wrong */
    PERHAPS_ERR_LIMIT = -14,    /* this kind cannot reach that fpr or that size */
    PERHAPS_ERR_LAYERS = -15,   /* a chain has PERHAPS_LAYERS_MAX layers, and all are full */
};

/* One line in English, what and what to do; never NULL, for unknown numbers too.  Knows those
 * of perhaps_cluster.h, which tells more itself. */
PERHAPS_API const char *perhaps_strerror(int error);

/* PERHAPS_VERSION of the library that runs, which may differ from this header's. */
PERHAPS_API const char *perhaps_version(void);

/* ---- Plan -------------------------------------------------------------------------- */

/* What a kind can do; 'needs' of the options is a set of these. */
enum perhaps_ability {
    PERHAPS_CAN_REMOVE = 1,    /* keys can be removed */
    PERHAPS_CAN_COUNT = 2,     /* tells how often a key was added */
    PERHAPS_CAN_GROW = 4,      /* takes more keys than 'capacity', which need not be known */
    PERHAPS_CAN_BUILD = 8,     /* as a need: all keys are known at once, and none comes later */
    PERHAPS_CAN_MERGE = 16,    /* two filters can become their union */
    PERHAPS_CAN_SHARE = 32,    /* several processes can add to one mapped file */
    PERHAPS_CAN_FORGET = 64,   /* forgets the oldest keys: a window */
    PERHAPS_CAN_THREADS = 128, /* several threads can add at once: 'shared' */
};

/* What to prefer where the need leaves a choice between memory and speed. */
enum perhaps_preference {
    PERHAPS_PREFER_BALANCED = 0,

    /* One memory access a key where it can be had.  elastic: huge pages early. */
    PERHAPS_PREFER_FAST,

    /* Fewer bits for one more access a key.  elastic: avoids huge pages (with them one add in
     * 700,000 waits a fraction of a millisecond). */
    PERHAPS_PREFER_COMPACT,
};

enum perhaps_hash {
    PERHAPS_HASH_XXH3 = 0, /* XXH3-128 with a random seed: for keys that nobody crafts */
    PERHAPS_HASH_SIP,      /* SipHash-2-4-128 with a secret: where strangers choose the keys */
    PERHAPS_HASH_NONE,     /* keys are 16 bytes and are already uniform hashes */
    PERHAPS_HASH_CUSTOM,   /* the caller's function */
};

/* "xxh3", "sip", "none" or "custom"; NULL for a number that is no hash. */
PERHAPS_API const char *perhaps_hash_name(enum perhaps_hash hash);

#define PERHAPS_HASH_NBYTES  16
#define PERHAPS_CAPACITY_MAX (UINT64_C(1) << 48)
#define PERHAPS_FPR_MIN      1e-15
#define PERHAPS_COPIES_MAX   8
#define PERHAPS_COUNT_MAX    15 /* a count of 'counting' that says: so often or more */
#define PERHAPS_FIELDS_MAX   12
#define PERHAPS_LAYERS_MAX   64 /* of a chain */

/* Writes 16 uniformly distributed bytes that depend on nothing but the key and the context. */
typedef void perhaps_hash_function(void *context, const void *key, size_t key_nbytes,
                                   uint8_t hash[PERHAPS_HASH_NBYTES]);

/* Where a filter's memory comes from; used for everything that it owns.  The system's own takes
 * pages that are zero already, and huge ones where there are any. */
struct perhaps_allocator {
    /* Returns NULL, or 'nbytes' bytes with any content at any address: the library asks for 64
     * more than it needs, aligns them itself and sets them to zero. */
    void *(*allocate)(void *context, size_t nbytes);

    /* Gets exactly what allocate() returned, and the size that it was asked for. */
    void (*release)(void *context, void *memory, size_t nbytes);
    void *context;
};

/* The hash of a filter, and what it must be given.  All zero: xxh3 with a random seed. */
struct perhaps_hashing {
    enum perhaps_hash hash;
    uint64_t seed;                   /* xxh3: 0 takes a random one */
    const uint8_t *secret;           /* sip: 16 bytes; NULL generates them (perhaps_secret()) */
    perhaps_hash_function *function; /* custom */
    void *context;                   /* custom: passed to 'function' */
};

/* Options of one kind each, which the others ignore.  All zero: the defaults. */
struct perhaps_blocked_options {
    /* The lines of a key lie side by side, so that one read fetches them, and a key sets fewer
     * bits: for bodies on a disk or a server, where each costs much.  It takes 3 % more memory,
     * a tenth or more where a key has several lines. */
    bool together;
};

struct perhaps_chain_options {
    /* Capacity of a layer to that of the layer before it, 1 to 8; 0: 2.  A smaller factor takes
     * less memory and makes more layers, all of which are asked. */
    unsigned factor;
};

struct perhaps_elastic_options {
    /* The fpr is kept up to so many keys; 0: 2^20 times 'capacity'.  The filter takes more, and
     * perhaps_stats_of() tells what the fpr becomes. */
    uint64_t fpr_until;
};

/* What a window remembers.  At least the last 'keys' keys, or what came in the last 'time'
 * units of perhaps_advance(); both 0: until perhaps_rotate() was called generations - 1 times.
 * It remembers at most 1/(generations - 1) more: it has so many generations, and forgets the
 * oldest as a whole when a new one begins. */
struct perhaps_window_options {
    unsigned generations; /* 2 to 64; 0: 5 */
    uint64_t keys;        /* different ones */
    uint64_t time;
};

/* Room at the end of a struct for members to come: zero today, and refused if it is not. */
enum { PERHAPS_RESERVED = 8 };

/* Zero is the default in every member but 'capacity' and 'fpr'. */
struct perhaps_options {
    /* Different keys to hold: 1 to PERHAPS_CAPACITY_MAX.  Kinds that grow: to begin with;
     * window: all that it remembers. */
    uint64_t capacity;

    double fpr;                         /* not to exceed: PERHAPS_FPR_MIN <= fpr < 1 */
    unsigned needs;                     /* set of enum perhaps_ability */
    enum perhaps_preference preference; /* memory or speed */
    const char *kind;                   /* by name; NULL: the first that has what is needed */

    /* chain, window: the kind that they are made of.  NULL: blocked, or cuckoo where 'needs'
     * asks for more; for a window by time, which must grow, chain. */
    const char *base;

    bool shared; /* several threads add or remove at once: see Threads above */
    struct perhaps_hashing hashing;
    const struct perhaps_allocator *allocator; /* NULL: the system's; copied */
    struct perhaps_blocked_options blocked;
    struct perhaps_chain_options chain;
    struct perhaps_elastic_options elastic;
    struct perhaps_window_options window;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* What perhaps_create() would make of the options. */
struct perhaps_plan {
    const char *kind;
    const char *base; /* chain, window: the kind of their parts; else NULL */
    uint64_t capacity;
    double fpr;           /* asked */
    double fpr_predicted; /* when 'capacity' keys are in: exact mixture, <= fpr */
    uint64_t body_nbytes; /* memory, and file but for its header and checksums */
    double bits_per_key;  /* at capacity */
    uint64_t fpr_until;   /* keys up to which 'fpr' is kept; UINT64_MAX: however many come */
    unsigned nfields;     /* the geometry: what the kind keeps beside the body */
    const char *field_name[PERHAPS_FIELDS_MAX];
    uint64_t field[PERHAPS_FIELDS_MAX];
    char why[160]; /* one line: why this kind and geometry */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Chooses kind and geometry without allocating.  Returns 0; PERHAPS_ERR_ARGUMENT for numbers
 * out of range or an unknown kind; PERHAPS_ERR_UNSUPPORTED where no kind (or not the named
 * one) has what 'needs' asks; PERHAPS_ERR_LIMIT for a rate or size that it cannot reach. */
PERHAPS_API int perhaps_plan_for(const struct perhaps_options *options,
                                 struct perhaps_plan *plan);

/* The kinds there are, in order of preference; NULL from the first index that is none. */
struct perhaps_kind {
    const char *name;
    const char *summary; /* one line: what it is for */
    unsigned abilities;  /* set of enum perhaps_ability */
};
PERHAPS_API const struct perhaps_kind *perhaps_kind_at(size_t index);

/* ---- Create ------------------------------------------------------------------------ */

typedef struct perhaps_filter perhaps_filter;

/* Makes an empty filter as perhaps_plan_for() says.  Returns 0 and sets *filter (to be released
 * with perhaps_free()); or an error of perhaps_plan_for(), PERHAPS_ERR_MEMORY,
 * PERHAPS_ERR_SECRET (custom without a function) or PERHAPS_ERR_IO (the system has no random
 * bytes), and sets it to NULL. */
PERHAPS_API int perhaps_create(const struct perhaps_options *options, perhaps_filter **filter);

/* Releases the filter and unmaps its file.  NULL is allowed. */
PERHAPS_API void perhaps_free(perhaps_filter *filter);

/* Makes a writable copy in memory, of a mapped filter too.  Returns 0, or
 * PERHAPS_ERR_MEMORY and sets *copy to NULL. */
PERHAPS_API int perhaps_clone(const perhaps_filter *filter, perhaps_filter **copy);

/* Forgets every key and sets all counts to 0; geometry and hash stay.
 * Returns 0 or PERHAPS_ERR_READ_ONLY. */
PERHAPS_API int perhaps_clear(perhaps_filter *filter);

/* Writes the 16 bytes of a sip filter's secret: keep them apart from the filter, which never
 * stores them; it cannot be asked without.  Returns 0, or PERHAPS_ERR_UNSUPPORTED for other
 * hashes, or PERHAPS_ERR_SECRET where the filter was opened without it. */
PERHAPS_API int perhaps_secret(const perhaps_filter *filter, uint8_t secret[16]);

/* ---- Add and ask, one key at a time ------------------------------------------------ */

/* Adds a key.  In kinds that can remove, every add stores a copy, to be removed again once;
 * many copies of few keys crowd their slots, and may find no room before 'capacity' copies.
 * Returns 0; PERHAPS_ERR_FULL when the filter holds what it can without breaking its fpr;
 * PERHAPS_ERR_COPIES; PERHAPS_ERR_READ_ONLY; PERHAPS_ERR_ARGUMENT under the hash 'none' for
 * a key that is not 16 bytes; PERHAPS_ERR_SECRET.  A failed add has changed nothing but
 * the count of failed adds, and every key that was in is still found. */
PERHAPS_API int perhaps_add(perhaps_filter *filter, const void *key, size_t key_nbytes);

/* Adds a key unless it is perhaps there already, and tells which in *was_present (NULL is
 * allowed): dropping repeats is one pass of this.  Errors as perhaps_add(); *was_present is
 * then false.  Do not mix it with removals: what was "perhaps there" may have been another
 * key's entry, and is gone when that is removed. */
PERHAPS_API int perhaps_add_unless_present(perhaps_filter *filter, const void *key,
                                           size_t key_nbytes, bool *was_present);

/* false: the key was certainly not added (or was removed).  true: perhaps it was.
 * Always true for a filter that was opened without its secret. */
PERHAPS_API bool perhaps_contains(const perhaps_filter *filter, const void *key,
                                  size_t key_nbytes);

/* Removes one copy of a key that was added.  Where its entry cannot be told from another key's
 * (a chain that finds it in several layers; a saturated counter) it stays, so that no key is
 * lost, and counts as stale (perhaps_stats_of()).  Returns 0; PERHAPS_ERR_NOT_FOUND, having
 * changed nothing but the count of unmatched removals; PERHAPS_ERR_UNSUPPORTED;
 * PERHAPS_ERR_READ_ONLY; PERHAPS_ERR_ARGUMENT or PERHAPS_ERR_SECRET as in perhaps_add().
 * Remove only what was added: a key that was not has, with the probability fpr, the same entry
 * as another key, which is then lost.  Where removals cannot be trusted ask for a low fpr (1e-8
 * gives fingerprints of 32 bits). */
PERHAPS_API int perhaps_remove(perhaps_filter *filter, const void *key, size_t key_nbytes);

/* Sets *count to the number of copies that are perhaps stored: never fewer than were added
 * and not removed, up to PERHAPS_COUNT_MAX, from which on kind 'counting', and layers of it,
 * say: so many or more.  Returns 0, or an error of perhaps_remove() and sets it to 0. */
PERHAPS_API int perhaps_count(const perhaps_filter *filter, const void *key, size_t key_nbytes,
                              uint64_t *count);

/* ---- Add and ask, many keys at once: several times faster on large filters ---------- */

struct perhaps_key {
    const void *bytes;
    size_t nbytes;
};

/* What a filter's hash makes of a key: the same in all filters of one hash and seed or
 * secret. */
struct perhaps_hashed {
    uint8_t bytes[PERHAPS_HASH_NBYTES];
};

/* Many keys, as one of the functions below gives them. */
struct perhaps_keys {
    size_t count;
    const struct perhaps_key *each;
    const struct perhaps_hashed *hashed;
    const void *packed;
    size_t key_nbytes;
};

/* Keys that each have their own length. */
static inline struct perhaps_keys perhaps_keys_each(const struct perhaps_key *each,
                                                    size_t count)
{
    struct perhaps_keys keys = { count, each, NULL, NULL, 0 };
    return keys;
}

/* Keys of 'key_nbytes' bytes each, one behind the other. */
static inline struct perhaps_keys perhaps_keys_packed(const void *packed, size_t key_nbytes,
                                                      size_t count)
{
    struct perhaps_keys keys = { count, NULL, NULL, packed, key_nbytes };
    return keys;
}

/* Keys that perhaps_hash_many() has hashed. */
static inline struct perhaps_keys perhaps_keys_hashed(const struct perhaps_hashed *hashed,
                                                      size_t count)
{
    struct perhaps_keys keys = { count, NULL, hashed, NULL, 0 };
    return keys;
}

/* 'count' of them, from number 'first' on. */
static inline struct perhaps_keys perhaps_keys_slice(const struct perhaps_keys *keys,
                                                     size_t first, size_t count)
{
    if (keys->each)
        return perhaps_keys_each(keys->each + first, count);
    if (keys->hashed)
        return perhaps_keys_hashed(keys->hashed + first, count);
    return perhaps_keys_packed(
        keys->key_nbytes ? (const char *)keys->packed + first * keys->key_nbytes : keys->packed,
        keys->key_nbytes, count);
}

/* Hashes keys, so that other threads may do that before one adds them, or that one hash serves
 * for several filters.  Returns 0, or PERHAPS_ERR_SECRET, or PERHAPS_ERR_ARGUMENT for a length
 * that the hash does not take, having hashed nothing. */
PERHAPS_API int perhaps_hash_many(const perhaps_filter *filter, const struct perhaps_keys *keys,
                                  struct perhaps_hashed *hashed);

/* Each is the same as its single form, called for one key after the other in order.  On an
 * error it stops: the first *done keys have been dealt with, the next one met the error and
 * changed nothing.  'done' and the answers (one for each key) may be NULL. */
PERHAPS_API int perhaps_add_many(perhaps_filter *filter, const struct perhaps_keys *keys,
                                 size_t *done);
PERHAPS_API int perhaps_add_unless_present_many(perhaps_filter *filter,
                                                const struct perhaps_keys *keys,
                                                bool *was_present, size_t *done);
/* A key that is not found does not stop it: removed[i] tells.  *nremoved, how many were.  Other
 * errors are met before anything is removed. */
PERHAPS_API int perhaps_remove_many(perhaps_filter *filter, const struct perhaps_keys *keys,
                                    bool *removed, size_t *nremoved);
/* Returns how many keys are perhaps present; present[i] tells which. */
PERHAPS_API size_t perhaps_contains_many(const perhaps_filter *filter,
                                         const struct perhaps_keys *keys, bool *present);

/* Sets counts[i] as perhaps_count() does for each key in order.  Returns 0, or an error of
 * perhaps_count() for one of them and sets all counts to 0. */
PERHAPS_API int perhaps_count_many(const perhaps_filter *filter,
                                   const struct perhaps_keys *keys, uint64_t *counts);

/* ---- Build: all keys first ----------------------------------------------------------- */

typedef struct perhaps_builder perhaps_builder;

/* Begins a filter that gets all its keys before it is asked, as perhaps_create() with the need
 * PERHAPS_CAN_BUILD: today any kind that can add.  Errors as perhaps_create(), and *builder is
 * NULL then.  One thread at a time may use a builder. */
PERHAPS_API int perhaps_builder_create(const struct perhaps_options *options,
                                       perhaps_builder **builder);

/* Gives the builder keys, in as many calls as one likes.  A key that comes again is added once;
 * where 'needs' has PERHAPS_CAN_REMOVE or PERHAPS_CAN_COUNT every time stores a copy, as
 * perhaps_add() does.  Returns 0, or an error of perhaps_add(): keys are missing then, and all
 * later calls return the same error; or PERHAPS_ERR_ARGUMENT once the builder is finished. */
PERHAPS_API int perhaps_builder_add_many(perhaps_builder *builder,
                                         const struct perhaps_keys *keys);

/* Returns 0 and sets *filter to the filter of all keys, after which the builder can only be
 * freed; or sets it to NULL and returns PERHAPS_ERR_ARGUMENT if the builder is finished, or the
 * error because of which keys are missing. */
PERHAPS_API int perhaps_builder_finish(perhaps_builder *builder, perhaps_filter **filter);

/* Releases the builder, and its keys if it was not finished.  NULL is allowed. */
PERHAPS_API void perhaps_builder_free(perhaps_builder *builder);

/* ---- Windows: forgetting --------------------------------------------------------------- */

/* Tells a window the time, in any unit and from any beginning: it forgets what is older than
 * its 'time'.  The first call sets when its first generation began; a time before the newest
 * generation's changes nothing.  Returns 0, PERHAPS_ERR_UNSUPPORTED for other filters and
 * windows that do not go by time, or PERHAPS_ERR_READ_ONLY. */
PERHAPS_API int perhaps_advance(perhaps_filter *filter, uint64_t now);

/* Begins a new generation of a window and forgets the oldest, whatever it goes by.  Returns 0,
 * PERHAPS_ERR_UNSUPPORTED for other kinds, or PERHAPS_ERR_READ_ONLY. */
PERHAPS_API int perhaps_rotate(perhaps_filter *filter);

/* ---- Two filters ------------------------------------------------------------------- */

/* Adds all that 'other' holds to 'filter'.  Returns 0; PERHAPS_ERR_MISMATCH unless kind,
 * geometry and hash, seed or secret are the same; PERHAPS_ERR_FULL where the union would break
 * the fpr or finds no room, or PERHAPS_ERR_COPIES; PERHAPS_ERR_MEMORY, since a copy is made on
 * the way; PERHAPS_ERR_READ_ONLY.  On failure 'filter' is unchanged.  'other' may not be
 * 'filter'.  The number of keys of the union is an estimate for Bloom kinds: the keys that both
 * held are counted once.
 *
 * There is no call that compacts, that makes one layer of a chain's layers or a small filter of
 * a large one: a bit or a fingerprint does not tell where its key would lie there.  Build a new
 * one from the keys. */
PERHAPS_API int perhaps_merge(perhaps_filter *filter, const perhaps_filter *other);

/* Whether both are one kind with one geometry and hash, and every byte of their bodies is
 * the same.  Cuckoo filters of the same keys differ if those came in another order. */
PERHAPS_API bool perhaps_equal(const perhaps_filter *a, const perhaps_filter *b);

/* ---- Files ------------------------------------------------------------------------- */

/* Writes the filter to 'path' (doc/FORMAT.md): to a temporary file beside it, which is synced
 * and renamed, so that at every moment the old or the new filter is there whole; the mode of an
 * existing file and a symbolic link, also one to nothing yet, are kept.  A device or pipe is
 * written to.
 * Returns 0; PERHAPS_ERR_IO (errno) or PERHAPS_ERR_MEMORY: the old file is as it was, unless
 * all but the last step was done and only the folder could not be synced.  Two that save to one
 * path at once each save whole; the later one stays. */
PERHAPS_API int perhaps_save(const perhaps_filter *filter, const char *path);

/* The same where nothing is at 'path'.  If something is by then, it stays as it is, and the
 * error is PERHAPS_ERR_IO with errno EEXIST: of two that do this at once, one succeeds. */
PERHAPS_API int perhaps_save_new(const perhaps_filter *filter, const char *path);

/* Writes the bytes of the file to a descriptor, such as a pipe or socket, and does not sync it.
 * Returns 0; PERHAPS_ERR_IO (errno), when a part may be written, or PERHAPS_ERR_MEMORY. */
PERHAPS_API int perhaps_save_to(const perhaps_filter *filter, int fd);

/* Where the bytes of a filter go to: a file, a pipe, a blob in a database. */
struct perhaps_sink {
    /* Takes all of them, or returns a negative error (of enum perhaps_error, or the caller's
     * own), which ends the writing. */
    int (*write)(void *context, const void *bytes, size_t nbytes);
    void *context;
};

/* Writes the bytes of the file to a sink, in their order.  Returns 0, PERHAPS_ERR_MEMORY, or
 * the error of the sink, which may have taken a part of them then. */
PERHAPS_API int perhaps_write(const perhaps_filter *filter, const struct perhaps_sink *sink);

enum perhaps_mode {
    PERHAPS_MODE_READ = 0, /* mapped, and read only: nothing is copied */
    PERHAPS_MODE_LOAD,     /* copied to memory, and may be changed there */
    PERHAPS_MODE_LIVE,     /* mapped and written in place, with other processes: see below */
};

struct perhaps_open_options {
    enum perhaps_mode mode;
    bool check;          /* read: each page of the file before it is first read, see below */
    bool without_secret; /* to inspect, verify or merge: perhaps_contains() is always true */
    struct perhaps_hashing
        hashing; /* secret, or function and context; the rest is in the file */
    const struct perhaps_allocator *allocator;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Opens a saved filter.  'options' NULL: read-only.  A mapped one has its header and checksum
 * table checked, a loaded one every byte; perhaps_verify() checks the bytes of a mapped one.
 * A file that is changed in place (not by perhaps_save(), which never does) under a mapping
 * changes its answers; one that is truncated ends the process with SIGBUS.
 *
 * PERHAPS_MODE_LIVE maps the file to be written in place, by any number of threads and
 * processes at once: a key that one has added is found by all, also by those that have it open
 * read-only, at once.  The first to open it checks every byte.  While it is open like this, and
 * after a crash until it was opened and closed like this again, the file has no checksums of
 * its body: perhaps_verify() returns PERHAPS_ERR_UNSUPPORTED.  The last of them to close it
 * writes them.  A process that dies loses nothing that it had added; a system that dies loses
 * what came after the last perhaps_sync().  perhaps_save() to the path of a file that is open
 * like this replaces it: those who have it open go on with the old one.  Holes, and blocks that
 * a copy shares (cp --sparse, --reflink), get their room on the disk first, and where there is
 * none it is PERHAPS_ERR_IO (ENOSPC).  Where the file system cannot reserve room, or takes it
 * for each write as btrfs does, a disk that is full ends the process with SIGBUS.
 *
 * 'check', for files that somebody may overwrite, or disks that are not to be trusted: each
 * page is compared with its checksum before perhaps_contains*() or perhaps_count() first read
 * from it.  A key that lies on a damaged page is perhaps there; its count is
 * PERHAPS_ERR_DAMAGED; and perhaps_checked() tells that there was one.  All else (clone, save,
 * merge) takes the bytes as they are.  A page takes about 10 microseconds, once, and each
 * question a little more.
 *
 * Returns 0 and sets *filter; or PERHAPS_ERR_IO (errno), _FORMAT, _VERSION, _DAMAGED,
 * _SECRET, _MEMORY, _UNSUPPORTED (live, and its kind has not PERHAPS_CAN_SHARE; or 'check', of
 * a file that is written in place and has no checksums meanwhile), or _ARGUMENT for a mode that
 * there is not, and sets *filter to NULL. */
PERHAPS_API int perhaps_open(const char *path, const struct perhaps_open_options *options,
                             perhaps_filter **filter);

/* Where the bytes of a filter come from. */
struct perhaps_source {
    /* Gives the next 'nbytes' bytes, all of them, or returns a negative error:
     * PERHAPS_ERR_DAMAGED where there are fewer, or another one, which ends the reading. */
    int (*read)(void *context, void *bytes, size_t nbytes);
    void *context;
    uint64_t nbytes; /* how many bytes there are in all; 0: not known */
};

/* Reads what perhaps_write() or perhaps_save() wrote, in its order, and checks every byte.  The
 * filter lies in memory.  No byte behind its last one is read, so that others may follow.
 * 'options' NULL: PERHAPS_MODE_LOAD, which is the only mode.
 *
 * The header tells how much memory the filter takes.  If the source knows how many bytes there
 * are, a header that claims more is refused before anything is allocated.  If it does not, an
 * enemy's header may claim a huge body: the allocator of the options can refuse it.
 *
 * Returns 0 and sets *filter; or returns the error of the source or one of perhaps_open(), and
 * sets *filter to NULL. */
PERHAPS_API int perhaps_read(const struct perhaps_source *source,
                             const struct perhaps_open_options *options,
                             perhaps_filter **filter);

/* Makes sure that all keys whose adds have returned are on the disk.  For filters that are open
 * in PERHAPS_MODE_LIVE; beside adds of any thread or process.  Returns 0, PERHAPS_ERR_IO
 * (errno), or PERHAPS_ERR_UNSUPPORTED for other filters. */
PERHAPS_API int perhaps_sync(perhaps_filter *filter);

struct perhaps_verdict {
    uint64_t pages;         /* of PERHAPS_PAGE_NBYTES, checked */
    uint64_t damaged;       /* of these: checksum wrong */
    uint64_t first_damaged; /* byte offset of the first in the file */
    uint64_t reserved[PERHAPS_RESERVED];
};
#define PERHAPS_PAGE_NBYTES 65536

/* Compares every page of a mapped filter with its checksum.  Returns 0; PERHAPS_ERR_DAMAGED;
 * or PERHAPS_ERR_UNSUPPORTED for a filter that is not mapped from a file, or is written in
 * place. */
PERHAPS_API int perhaps_verify(const perhaps_filter *filter, struct perhaps_verdict *verdict);

/* What came of 'check' so far: how many pages were read, and which of them are damaged.
 * Returns 0; PERHAPS_ERR_DAMAGED, where answers "perhaps" may have come of that; or
 * PERHAPS_ERR_UNSUPPORTED for a filter that is not mapped and opened with 'check', or that was
 * written in place meanwhile, so that nothing is certain. */
PERHAPS_API int perhaps_checked(const perhaps_filter *filter, struct perhaps_verdict *verdict);

/* ---- Inspect ----------------------------------------------------------------------- */

struct perhaps_stats {
    struct perhaps_plan plan; /* kind, geometry, capacity, fpr asked and predicted; no 'why' */
    const char *hash;
    uint64_t keys;          /* Bloom kinds: those that set a bit; else copies stored */
    double load;            /* share of bits or slots in use, 0 to 1 */
    uint64_t memory_nbytes; /* of all bodies, directories included */
    double bits_per_key;    /* of memory, for the keys that are in; 0 for none */
    double fpr_now;         /* from the actual fill */
    uint64_t parts;         /* layers of a chain, generations of a window; else 0 */
    uint64_t stale;         /* entries of keys that were removed, which had to stay; elastic:
                               at most so many */
    uint64_t failed_adds;   /* PERHAPS_ERR_FULL and PERHAPS_ERR_COPIES */
    uint64_t unmatched_removals; /* PERHAPS_ERR_NOT_FOUND */
    bool mapped;                 /* from a file */
    bool shared;                 /* several threads may write; and mapped: processes, too */
    const char *cpu;             /* whose instructions are used: "avx512", "scalar", ... */

    /* Of one kind each, and of chains and windows of it; else 0. */
    struct perhaps_counting_stats {
        uint64_t saturated; /* counters that are at their end and stay there */
    } counting;
    struct perhaps_elastic_stats {
        uint64_t segments; /* pages of slots */
    } elastic;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Fills in *stats, in less than a millisecond; the first call on a chain or window plans a part
 * again, which takes two more.  Reads about 1 MiB of the body: 'load' and 'fpr_now' are exact
 * for a body of up to 64 KiB, true to half a percent for one of 1 MiB, and estimated from an
 * even sample of a larger one (measured: to 1 % at a rate of 1 %, to 4 % at 1e-6). */
PERHAPS_API void perhaps_stats_of(const perhaps_filter *filter, struct perhaps_stats *stats);

/* Returns the bytes of memory of all bodies, directories included: memory_nbytes of the stats,
 * at once. */
PERHAPS_API uint64_t perhaps_memory_nbytes(const perhaps_filter *filter);

/* Returns how many bytes of the bodies lie on huge pages, which halve the time of a query.
 * Asks the system, which takes milliseconds in a large process. */
PERHAPS_API uint64_t perhaps_huge_nbytes(const perhaps_filter *filter);

/* The same for a part of a filter: the layers of a chain, the generations of a window, the
 * newest being 0.  Returns false, and leaves *stats alone, if there is no such part. */
PERHAPS_API bool perhaps_part(const perhaps_filter *filter, size_t index,
                              struct perhaps_stats *stats);

/* The fpr that the filter has, in expectation, when it holds 'keys' keys. */
PERHAPS_API double perhaps_predict_fpr(const perhaps_filter *filter, uint64_t keys);

#ifdef __cplusplus
}
#endif
#endif
