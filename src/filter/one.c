/* one.c - the calls for one key.
 *
 * A call waits for memory, and meanwhile the CPU executes later calls, as far as it can look
 * ahead: a few hundred instructions.  So the fewer instructions a call takes, the more calls
 * overlap.  A call is two jumps: perhaps_contains() jumps to the function for the filter's
 * hash, which hashes the key and jumps to the kind's loop for one key.  Nobody saves a register
 * on the way.  Whatever else there may be to do (another length, a guard, other writers, no
 * room) is done by a function of its own that is not inlined. */
#include <perhaps.h>

#include "../base/compiler.h"
#include "counters.h"

/* ---- The long way ------------------------------------------------------------------------ */

static int may_change(const perhaps_filter *f)
{
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    return f->hasher.ready ? 0 : PERHAPS_ERR_SECRET;
}

int filter_may_add(const perhaps_filter *f)
{
    return f->kind->add ? may_change(f) : PERHAPS_ERR_UNSUPPORTED;
}

/* The error of a filter that cannot do what a set does not do. */
static int unable(const perhaps_filter *f)
{
    return f->is_set ? PERHAPS_ERR_SET : PERHAPS_ERR_UNSUPPORTED;
}

int filter_may_remove(const perhaps_filter *f)
{
    return f->removes ? may_change(f) : unable(f);
}

int filter_may_count(const perhaps_filter *f)
{
    return !f->counts ? unable(f) : f->hasher.ready ? 0 : PERHAPS_ERR_SECRET;
}

int filter_count_hashed(const perhaps_filter *f, const struct keyhash *key, uint64_t *count)
{
    if (f->checked && !f->checked->guard->is_sound(f, key))
        return PERHAPS_ERR_DAMAGED;
    *count = f->kind->count(f, key);
    return 0;
}

size_t filter_count_hashable(const perhaps_filter *f, const struct perhaps_keys *keys)
{
    return f->kind->exact ? keys->count : hasher_accepts(&f->hasher, keys);
}

/* Hashes a key.  Returns 0, or why it cannot be hashed. */
static int hash_any(const perhaps_filter *f, const void *key, size_t key_nbytes,
                    struct keyhash *hash)
{
    if (hasher_one(&f->hasher, key, key_nbytes, hash))
        return 0;
    return f->hasher.ready ? PERHAPS_ERR_ARGUMENT : PERHAPS_ERR_SECRET;
}

/* A key on the long way.  The answer lies behind the hash: memset() of an answer may be a
 * masked vector store, and reads of what it spans wait for it (HACKING.md, "Loops"). */
struct single {
    struct keyhash hash;
    bool answer;
};

static bool contains_hash(const perhaps_filter *f, const struct keyhash *hash, bool *answer)
{
    if (f->asks_at_once)
        return f->loops->contains_one(&f->body, *hash);
    return filter_contains_hashed(f, hash, hash, 1, answer) != 0;
}

/* Answers for a key that could not be hashed.  Without the secret: perhaps.  A key that the
 * hash refuses, for its length or because it is no integer, was never added. */
static bool contains_unhashed(int error)
{
    return error == PERHAPS_ERR_SECRET;
}

/* Adds a key, if 'error' does not say that it could not be hashed. */
static int add_hash(perhaps_filter *f, const struct keyhash *hash, int error,
                    bool unless_present, bool *was_present)
{
    size_t done;
    int may = filter_may_add(f);
    *was_present = false;
    if (may || error)
        return may ? may : error;
    return f->changer->add(f, hash, hash, 1, unless_present, was_present, &done);
}

static NOINLINE bool contains_any(const perhaps_filter *f, const void *key, size_t key_nbytes)
{
    struct single one;
    int error = hash_any(f, key, key_nbytes, &one.hash);
    return error ? contains_unhashed(error) : contains_hash(f, &one.hash, &one.answer);
}

static NOINLINE int add_any(perhaps_filter *f, const void *key, size_t key_nbytes)
{
    struct single one;
    int error = hash_any(f, key, key_nbytes, &one.hash);
    return add_hash(f, &one.hash, error, false, &one.answer);
}

static NOINLINE int remove_any(perhaps_filter *f, const void *key, size_t key_nbytes)
{
    struct single one;
    size_t removed;
    int error = filter_may_remove(f);
    if (!error)
        error = hash_any(f, key, key_nbytes, &one.hash);
    if (error)
        return error;
    if (f->removes_at_once)
        return f->loops->remove_one(&f->body, one.hash, f->counters);
    error = f->changer->remove(f, &one.hash, &one.hash, 1, &one.answer, &removed);
    return error ? error : removed ? 0 : PERHAPS_ERR_NOT_FOUND;
}

static NOINLINE int count_any(const perhaps_filter *f, const void *key, size_t key_nbytes,
                              uint64_t *count)
{
    struct keyhash hash;
    int error = filter_may_count(f);
    *count = 0;
    filter_count_singles(f, 1);
    if (!error)
        error = hash_any(f, key, key_nbytes, &hash);
    return error ? error : filter_count_hashed(f, &hash, count);
}

static ALWAYS_INLINE void store_prepared(struct perhaps_prepared *prepared, struct keyhash hash)
{
    *prepared = (struct perhaps_prepared){ .place = hash.place, .mark = hash.mark };
}

/* Loads the halves as atomics, since gcc would load both as a vector and take it apart in
 * memory. */
static ALWAYS_INLINE struct keyhash keyhash_of(const struct perhaps_prepared *prepared)
{
    return (struct keyhash){ .place = __atomic_load_n(&prepared->place, __ATOMIC_RELAXED),
                             .mark = __atomic_load_n(&prepared->mark, __ATOMIC_RELAXED) };
}

static NOINLINE bool contains_prepared(const perhaps_filter *f,
                                       const struct perhaps_prepared *prepared)
{
    struct single one = { .hash = keyhash_of(prepared) };
    if (prepared->error)
        return contains_unhashed(prepared->error);
    return contains_hash(f, &one.hash, &one.answer);
}

static NOINLINE int add_prepared(perhaps_filter *f, const struct perhaps_prepared *prepared,
                                 bool unless_present, bool *was_present)
{
    struct single one = { .hash = keyhash_of(prepared) };
    return add_hash(f, &one.hash, prepared->error, unless_present,
                    was_present ? was_present : &one.answer);
}

static NOINLINE void prepare_any(const perhaps_filter *f, const void *key, size_t key_nbytes,
                                 struct perhaps_prepared *prepared)
{
    struct keyhash hash = { 0 };
    int error = hash_any(f, key, key_nbytes, &hash);
    if (!error && filter_may_look(f))
        f->kind->prefetch(f, &hash, 1);
    store_prepared(prepared, hash);
    prepared->error = error;
}

/* Adds a key for which the loop has no room. */
static NOINLINE int add_hash_shared(perhaps_filter *f, struct keyhash hash, bool *was_present)
{
    return add_hash(f, &hash, 0, true, was_present);
}

/* The name that the macros below give it for shared filters. */
static int add_any_shared(perhaps_filter *f, const void *key, size_t key_nbytes)
{
    return add_any(f, key, key_nbytes);
}

/* ---- The short way ----------------------------------------------------------------------- */

/* Stores a hash and prefetches; without a call if the key has one line. */
static ALWAYS_INLINE void prepare_hash(const perhaps_filter *f, struct keyhash hash,
                                       struct perhaps_prepared *prepared)
{
    store_prepared(prepared, hash);
    if (f->loops->one_line)
        PREFETCH(f->body.bytes + scale64(hash.place, f->body.geometry.field[0]) * LINE_NBYTES);
    else
        f->loops->prefetch(&f->body, (const void *)prepared, 1);
}

/* Adds a hashed key to a shared filter by the loop for one key; near the limit, on the long
 * way. */
static ALWAYS_INLINE int add_shared(perhaps_filter *f, struct keyhash hash, bool *was_present)
{
    enum shared_add done =
        f->loops->add_one_shared(&f->body, hash, &f->counters->keys, shared_room_until(f));
    if (done > SHARED_PRESENT)
        return add_hash_shared(f, hash, was_present);
    *was_present = done == SHARED_PRESENT;
    if (!f->loops->one_line && !*was_present)
        note_count(f);
    return 0;
}

/* Defines add_NAME_shared.  It hashes a key if it 'fits'. */
#define ADD_SHARED(name, hash, fits, otherwise)                                                \
    static NOINLINE int add_##name##_shared(perhaps_filter *f, const void *key, size_t nbytes) \
    {                                                                                          \
        bool was_present;                                                                      \
        if (!(fits))                                                                           \
            return add_##otherwise##_shared(f, key, nbytes);                                   \
        return add_shared(f, hash(&f->hasher, key, nbytes), &was_present);                     \
    }

/* Defines contains_NAME, add_NAME, add_NAME_shared and prepare_NAME.  They hash a key by hash()
 * if it 'fits', and otherwise jump to the functions of another name. */
#define CALLS(name, hash, fits, otherwise)                                                     \
    static NOINLINE bool contains_##name(const perhaps_filter *f, const void *key,             \
                                         size_t nbytes)                                        \
    {                                                                                          \
        if (!(fits))                                                                           \
            return contains_##otherwise(f, key, nbytes);                                       \
        return f->loops->contains_one(&f->body, hash(&f->hasher, key, nbytes));                \
    }                                                                                          \
    static NOINLINE int add_##name(perhaps_filter *f, const void *key, size_t nbytes)          \
    {                                                                                          \
        if (!(fits))                                                                           \
            return add_##otherwise(f, key, nbytes);                                            \
        if (f->counters->keys >= f->room_until)                                                \
            return add_any(f, key, nbytes);                                                    \
        return f->loops->add_one(&f->body, hash(&f->hasher, key, nbytes), f->counters);        \
    }                                                                                          \
    ADD_SHARED(name, hash, fits, otherwise)                                                    \
    static NOINLINE void prepare_##name(const perhaps_filter *f, const void *key,              \
                                        size_t nbytes, struct perhaps_prepared *prepared)      \
    {                                                                                          \
        if (!(fits)) {                                                                         \
            prepare_##otherwise(f, key, nbytes, prepared);                                     \
            return;                                                                            \
        }                                                                                      \
        prepare_hash(f, hash(&f->hasher, key, nbytes), prepared);                              \
    }

/* Longer strings take a function call and a stack frame. */
CALLS(strings, hash_xxh3, true, any)
CALLS(short_strings, hash_xxh3_short, nbytes <= 16, strings)
CALLS(integers, hash_xxh3_short, nbytes == 8, short_strings)
CALLS(strings_64, hash_xxh3_64, true, any)
CALLS(short_strings_64, hash_xxh3_short_64, nbytes <= 16, strings_64)
CALLS(hashes, hash_none, nbytes == PERHAPS_HASH_NBYTES, any)
CALLS(hashes_64, hash_none_64, nbytes == sizeof(uint64_t), any)
CALLS(decimals, hash_decimal, true, any)

/* Integers under xxh3-64, the usual case: the loops hash them. */

static bool contains_integers_64(const perhaps_filter *f, const void *key, size_t nbytes)
{
    if (nbytes != sizeof(uint64_t))
        return contains_short_strings_64(f, key, nbytes);
    return f->loops->contains_integer(&f->body, load64(key));
}

static int add_integers_64(perhaps_filter *f, const void *key, size_t nbytes)
{
    struct counters *counters = f->counters;
    if (nbytes != sizeof(uint64_t) || counters->keys >= f->room_until)
        return add_short_strings_64(f, key, nbytes);
    return f->loops->add_integer(&f->body, load64(key), counters);
}

ADD_SHARED(integers_64, hash_integer_64, nbytes == sizeof(uint64_t), short_strings_64)

static void prepare_integers_64(const perhaps_filter *f, const void *key, size_t nbytes,
                                struct perhaps_prepared *prepared)
{
    if (nbytes != sizeof(uint64_t)) {
        prepare_short_strings_64(f, key, nbytes, prepared);
        return;
    }
    prepare_hash(f, hash_integer_64(&f->hasher, key, nbytes), prepared);
}

/* [0] is for filters of one writer, [1] for shared ones. */
#define CALLS_ROW(name)                                                                        \
    {                                                                                          \
        { contains_##name, add_##name, prepare_##name },                                       \
            { contains_##name, add_##name##_shared, prepare_##name },                          \
    }
static const struct calls short_calls[PERHAPS_HASH_COUNT][2] = {
    [PERHAPS_HASH_XXH3] = CALLS_ROW(integers),
    [PERHAPS_HASH_XXH3_64] = CALLS_ROW(integers_64),
    [PERHAPS_HASH_NONE] = CALLS_ROW(hashes),
    [PERHAPS_HASH_NONE_64] = CALLS_ROW(hashes_64),
    [PERHAPS_HASH_INTEGER] = CALLS_ROW(decimals),
};

/* Returns the calls for all that the filter is. */
static struct calls calls_of(const perhaps_filter *f)
{
    const struct calls *calls = &short_calls[f->hasher.id][f->shared];
    struct calls own = { contains_any, add_any, prepare_any };
    if (!calls->contains)
        return own;
    if (f->loops->prefetch)
        own.prepare = calls->prepare;
    if (f->asks_at_once)
        own.contains = calls->contains;
    if (f->adds_at_once)
        own.add = calls->add;
    return own;
}

/* The calls while the mapping wants to be told of each key.  The last one of them puts the
 * usual ones there; so may several threads at once. */

static void tell_mapping(const perhaps_filter *f, const struct calls *usual)
{
    struct calls *calls = (struct calls *)&f->calls; /* not a change of what they answer */
    if (filter_count_singles(f, 1))
        return;
    __atomic_store_n(&calls->contains, usual->contains, __ATOMIC_RELAXED);
    __atomic_store_n(&calls->prepare, usual->prepare, __ATOMIC_RELAXED);
}

static bool contains_and_tell(const perhaps_filter *f, const void *key, size_t key_nbytes)
{
    const struct calls usual = calls_of(f);
    tell_mapping(f, &usual);
    return usual.contains(f, key, key_nbytes);
}

static void prepare_and_tell(const perhaps_filter *f, const void *key, size_t key_nbytes,
                             struct perhaps_prepared *prepared)
{
    const struct calls usual = calls_of(f);
    tell_mapping(f, &usual);
    usual.prepare(f, key, key_nbytes, prepared);
}

void filter_bind(perhaps_filter *f)
{
    static const struct loops none;
    f->body.flip = f->hasher.flip;
    f->loops = &none;
    f->asks_at_once = f->adds_at_once = true;
    if (f->kind->bind)
        f->kind->bind(f);
    const bool adds = f->shared ? f->loops->add_one_shared != NULL : f->loops->add_one != NULL;
    f->asks_at_once &= f->loops->contains_one && !f->checked;
    const bool alone = !f->read_only && !f->changer->locked;
    f->adds_at_once &= adds && alone;
    f->removes_at_once = f->removes && f->loops->remove_one && alone && !f->shared;
    f->counts_at_once =
        f->counts && f->loops->count_one && f->asks_at_once && !f->mapping->singles_left;
    f->calls = calls_of(f);
    if (!f->mapping->singles_left)
        return;
    f->calls.contains = contains_and_tell;
    f->calls.prepare = prepare_and_tell;
}

/* ---- The public calls -------------------------------------------------------------------- */

/* Another thread may change these calls: tell_mapping().  An atomic load would take the jump an
 * instruction more, and no CPU loads half of a pointer. */
#if THREAD_SANITIZED
#define CALL(f, name) __atomic_load_n(&(f)->calls.name, __ATOMIC_RELAXED)
#else
#define CALL(f, name) (f)->calls.name
#endif

bool perhaps_contains(const perhaps_filter *f, const void *key, size_t key_nbytes)
{
    return CALL(f, contains)(f, key, key_nbytes);
}

int perhaps_add(perhaps_filter *f, const void *key, size_t key_nbytes)
{
    return f->calls.add(f, key, key_nbytes);
}

void perhaps_prepare(const perhaps_filter *f, const void *key, size_t key_nbytes,
                     struct perhaps_prepared *prepared)
{
    CALL(f, prepare)(f, key, key_nbytes, prepared);
}

bool perhaps_contains_prepared(const perhaps_filter *f, const struct perhaps_prepared *prepared)
{
    if (!f->asks_at_once || prepared->error)
        return contains_prepared(f, prepared);
    return f->loops->contains_one(&f->body, keyhash_of(prepared));
}

/* Returns whether the loop for one key may add now: nobody else writes, and there is room
 * without a look at the fpr. */
static inline bool may_add_at_once(const perhaps_filter *f)
{
    return f->adds_at_once && !f->shared && f->counters->keys < f->room_until;
}

/* The same of a shared filter, where add_shared() looks for room. */
static inline bool may_add_shared(const perhaps_filter *f)
{
    return f->adds_at_once && f->shared;
}

static NOINLINE int add_prepared_slowly(perhaps_filter *f,
                                        const struct perhaps_prepared *prepared)
{
    bool was_present;
    if (may_add_shared(f) && !prepared->error)
        return add_shared(f, keyhash_of(prepared), &was_present);
    return add_prepared(f, prepared, false, NULL);
}

int perhaps_add_prepared(perhaps_filter *f, const struct perhaps_prepared *prepared)
{
    if (may_add_at_once(f) && !prepared->error)
        return f->loops->add_one(&f->body, keyhash_of(prepared), f->counters);
    return add_prepared_slowly(f, prepared);
}

/* Adds a hashed key to any filter unless it is there.  A shared filter has a loop for that if
 * its kind stores no copies. */
static ALWAYS_INLINE int add_new(perhaps_filter *f, struct keyhash hash, bool *was_present)
{
    struct single one;
    was_present = was_present ? was_present : &one.answer;
    if (may_add_at_once(f))
        return f->loops->add_new_one(&f->body, hash, f->counters, was_present);
    if (may_add_shared(f) && !f->removes)
        return add_shared(f, hash, was_present);
    one.hash = hash;
    return add_hash(f, &one.hash, 0, true, was_present);
}

static NOINLINE int add_new_any(perhaps_filter *f, const void *key, size_t key_nbytes,
                                bool *was_present)
{
    struct single one;
    int error = hash_any(f, key, key_nbytes, &one.hash);
    if (error)
        return add_hash(f, &one.hash, error, true, was_present ? was_present : &one.answer);
    return add_new(f, one.hash, was_present);
}

int perhaps_add_unless_present_prepared(perhaps_filter *f,
                                        const struct perhaps_prepared *prepared,
                                        bool *was_present)
{
    if (prepared->error)
        return add_prepared(f, prepared, true, was_present);
    return add_new(f, keyhash_of(prepared), was_present);
}

/* Returns whether a key is an integer under xxh3-64: the usual case, which is hashed where the
 * call begins. */
static ALWAYS_INLINE bool is_usual(const perhaps_filter *f, size_t key_nbytes)
{
    return f->hasher.id == PERHAPS_HASH_XXH3_64 && key_nbytes == sizeof(uint64_t);
}

int perhaps_add_unless_present(perhaps_filter *f, const void *key, size_t key_nbytes,
                               bool *was_present)
{
    if (!is_usual(f, key_nbytes) || !may_add_at_once(f) || !was_present)
        return add_new_any(f, key, key_nbytes, was_present);
    const struct keyhash hash = hash_integer_64(&f->hasher, key, key_nbytes);
    return f->loops->add_new_one(&f->body, hash, f->counters, was_present);
}

int perhaps_remove(perhaps_filter *f, const void *key, size_t key_nbytes)
{
    if (!is_usual(f, key_nbytes) || !f->removes_at_once)
        return remove_any(f, key, key_nbytes);
    const struct keyhash hash = hash_integer_64(&f->hasher, key, key_nbytes);
    return f->loops->remove_one(&f->body, hash, f->counters);
}

int perhaps_count(const perhaps_filter *f, const void *key, size_t key_nbytes, uint64_t *count)
{
    if (!is_usual(f, key_nbytes) || !f->counts_at_once)
        return count_any(f, key, key_nbytes, count);
    const struct keyhash hash = hash_integer_64(&f->hasher, key, key_nbytes);
    *count = f->loops->count_one(&f->body, hash);
    return 0;
}

bool filter_has_view(const perhaps_filter *f, unsigned version, enum perhaps_input *input)
{
    static const enum perhaps_input inputs[PERHAPS_HASH_COUNT] = {
        [PERHAPS_HASH_XXH3_64] = PERHAPS_INPUT_INTEGER,
        [PERHAPS_HASH_NONE_64] = PERHAPS_INPUT_HASH64,
        [PERHAPS_HASH_NONE] = PERHAPS_INPUT_HASH128,
    };
    enum perhaps_hash hash = f->hasher.id;
    bool by_64 = hash == PERHAPS_HASH_XXH3_64 || hash == PERHAPS_HASH_NONE_64;
    if (version != PERHAPS_VIEW_VERSION || !f->asks_at_once ||
        (!by_64 && hash != PERHAPS_HASH_NONE))
        return false;
    *input = inputs[hash];
    filter_count_singles(f, UINT32_MAX); /* nobody will tell of keys that a view is asked for */
    return true;
}

void perhaps_view_fill(perhaps_filter *f, unsigned version, struct perhaps_view *view)
{
    enum perhaps_input input;
    if (!f->loops->one_line || !filter_has_view(f, version, &input))
        return;
    view->nlines[input] = f->body.geometry.field[0];
    view->lines = f->body.bytes;
    view->rows = f->body.table;
    view->flip = f->body.flip;
    if (f->adds_at_once && !f->shared) {
        view->keys = &f->counters->keys;
        view->keys_until[input] = &f->room_until;
    }
}
