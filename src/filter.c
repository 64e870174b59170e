/* filter.c - the public calls: check, hash, forward. */
#include "filter.h"

#include <sodium/utils.h>
#include <string.h>

#include "alloc.h"
#include "counters.h"
#include "file.h"
#include "locks.h"
#include "plan.h"

/* Keeps what is rare, and needs the stack, out of the callers' way. */
#define NOINLINE __attribute__((noinline))

/* ---- Life ------------------------------------------------------------------------------ */

static size_t filter_sync_nbytes(const perhaps_filter *f)
{
    return f->shared && f->kind->sync_nbytes ? f->kind->sync_nbytes(&f->geometry) : 0;
}

int filter_make(const struct filter_kind *kind, const struct geometry *g,
                const struct hasher *hasher, const struct perhaps_allocator *allocator,
                bool with_body, bool shared, perhaps_filter **filter)
{
    *filter = NULL;
    struct perhaps_allocator a = allocator_or_system(allocator);
    perhaps_filter *f = allocate(&a, sizeof *f);
    if (!f)
        return PERHAPS_ERR_MEMORY;
    *f = (perhaps_filter){ .kind = kind,
                           .geometry = *g,
                           .hasher = *hasher,
                           .kernels = kernels_choose(),
                           .allocator = a,
                           .shared = shared,
                           .counters = &f->own_counters };
    f->hasher.kernels = f->kernels;
    size_t sync_nbytes = filter_sync_nbytes(f);
    if ((with_body && !(f->body = allocate(&a, g->body_nbytes))) ||
        (with_body && sync_nbytes && !(f->sync = allocate(&a, sync_nbytes)))) {
        perhaps_free(f);
        return PERHAPS_ERR_MEMORY;
    }
    kind->bind(f);
    *filter = f;
    return 0;
}

int perhaps_create(const struct perhaps_options *options, perhaps_filter **filter)
{
    const struct filter_kind *kind;
    struct geometry g;
    struct hasher hasher;
    char why[WHY_NBYTES];
    *filter = NULL;
    int error = plan_choose(options, &kind, &g, why);
    if (!error)
        error = hasher_create(&hasher, &options->hashing);
    return error ? error
                 : filter_make(kind, &g, &hasher, options->allocator, true, options->shared,
                               filter);
}

void perhaps_free(perhaps_filter *f)
{
    if (!f)
        return;
    if (f->mapping.file)
        mapping_release(f);
    else
        release(&f->allocator, f->body, f->geometry.body_nbytes);
    if (f->sync)
        release(&f->allocator, f->sync, filter_sync_nbytes(f));
    sodium_memzero(f->hasher.secret, sizeof f->hasher.secret);
    struct perhaps_allocator allocator = f->allocator;
    release(&allocator, f, sizeof *f);
}

int perhaps_clone(const perhaps_filter *filter, perhaps_filter **copy)
{
    int error = filter_make(filter->kind, &filter->geometry, &filter->hasher,
                            &filter->allocator, true, filter->shared, copy);
    if (error)
        return error;
    *(*copy)->counters = *filter->counters;
    memcpy((*copy)->body, filter->body, filter->geometry.body_nbytes);
    return 0;
}

int perhaps_clear(perhaps_filter *f)
{
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    memset(f->body, 0, f->geometry.body_nbytes);
    *f->counters = (struct counters){ 0 };
    return 0;
}

int perhaps_secret(const perhaps_filter *f, uint8_t secret[16])
{
    if (f->hasher.id != PERHAPS_SIP)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!f->hasher.ready)
        return PERHAPS_ERR_KEY;
    memcpy(secret, f->hasher.secret, sizeof f->hasher.secret);
    return 0;
}

/* ---- What kinds share ------------------------------------------------------------------ */

void filter_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    f->loops.prefetch(f->body, f->geometry.field, keys, n);
}

size_t filter_contains(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer)
{
    return f->loops.contains(f->body, f->geometry.field, keys, ahead, n, answer);
}

int filter_add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done)
{
    (void)unless_present; /* adding what is there changes nothing */
    f->loops.add(f->body, f->geometry.field, keys, ahead, n, answer);
    *done = n;
    return 0;
}

/* ---- Hashing ahead --------------------------------------------------------------------- */

int perhaps_hash_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                      struct perhaps_hashed *hashed)
{
    if (!f->hasher.ready)
        return PERHAPS_ERR_KEY;
    if (hasher_accepts(&f->hasher, keys) < keys->count)
        return PERHAPS_ERR_ARGUMENT;
    for (size_t at = 0; at < keys->count; at += BATCH_STEP) {
        struct keyhash step[BATCH_STEP];
        size_t n = keys->count - at < BATCH_STEP ? keys->count - at : BATCH_STEP;
        hasher_run(&f->hasher, keys, at, n, step);
        memcpy(hashed + at, step, n * sizeof *step);
    }
    return 0;
}

/* ---- Batches --------------------------------------------------------------------------- */

/* Hashes keys into a ring, BATCH_AHEAD before they are dealt with; or, to be sorted, BATCH_MOST
 * at once and none ahead. */
struct batch {
    const perhaps_filter *f;
    const struct perhaps_keys *keys;
    size_t step, ahead, ring_size;
    size_t count;  /* of the keys, how many the hash accepts */
    size_t hashed; /* of these, how many are in the ring or were */
    size_t done;   /* and have been dealt with */
    struct keyhash ring[BATCH_MOST];
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void batch_hash(struct batch *b, size_t most)
{
    size_t n = smaller(most, b->count - b->hashed);
    hasher_run(&b->f->hasher, b->keys, b->hashed, n, &b->ring[b->hashed % b->ring_size]);
    b->hashed += n;
}

static void batch_begin(struct batch *b, const perhaps_filter *f,
                        const struct perhaps_keys *keys, size_t count, bool sorted)
{
    b->f = f;
    b->keys = keys;
    b->step = sorted ? BATCH_MOST : BATCH_STEP;
    b->ahead = sorted ? 0 : BATCH_AHEAD;
    b->ring_size = sorted ? BATCH_MOST : BATCH_RING;
    b->count = count;
    b->hashed = b->done = 0;
    batch_hash(b, b->ahead);
    f->kind->prefetch(f, b->ring, b->hashed);
}

/* The next step's keys, and the same number ahead.  Returns how many. */
static size_t batch_next(struct batch *b, const struct keyhash **keys,
                         const struct keyhash **ahead)
{
    size_t n = smaller(b->step, b->count - b->done);
    batch_hash(b, b->step);
    *keys = &b->ring[b->done % b->ring_size];
    bool filled = b->done + b->ahead + n <= b->hashed;
    *ahead = filled ? &b->ring[(b->done + b->ahead) % b->ring_size] : *keys;
    return n;
}

/* ---- Add ------------------------------------------------------------------------------- */

static int may_change(const perhaps_filter *f)
{
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    return f->hasher.ready ? 0 : PERHAPS_ERR_KEY;
}

/* Adds one key.  What is there already is added where that changes nothing, also at the limit;
 * only what is not is counted before. */
static int add_counted(perhaps_filter *f, const struct keyhash *key, bool unless_present,
                       bool *answer)
{
    bool stores_copies = f->kind->remove && !unless_present;
    size_t added;
    if (!stores_copies && f->kind->contains(f, key, key, 1, answer))
        return 0;
    if (!reserve_keys(f, 1, 0))
        return PERHAPS_ERR_FULL;
    int error = f->kind->add(f, key, key, 1, unless_present, answer, &added);
    if (error || *answer)
        counter_take(f, &f->counters->keys, 1);
    return error;
}

/* One thread at a time: of several that add one key none shall take the last place and another
 * be refused. */
static int add_near_limit(perhaps_filter *f, const struct keyhash *key, bool unless_present,
                          bool *answer)
{
    if (!f->shared)
        return add_counted(f, key, unless_present, answer);
    lock_take(&f->limit_lock);
    int error = add_counted(f, key, unless_present, answer);
    lock_release(&f->limit_lock);
    return error;
}

static size_t count_true(const bool *answer, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += answer[i];
    return count;
}

/* Near the limit of a shared filter keys are added one by one, so that none is refused because
 * of room that others have reserved and will not need. */
enum { SHARED_MARGIN = 4 * BATCH_MOST };

/* Adds n hashed keys, never beyond the key limit. */
static int add_hashed(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done)
{
    int error = 0;
    *done = 0;
    while (*done < n && !error) {
        size_t at = *done, reserved = reserve_keys(f, n - at, SHARED_MARGIN), added = 0;
        if (reserved) {
            error = f->kind->add(f, keys + at, ahead + at, reserved, unless_present,
                                 answer + at, &added);
            size_t stored = added - count_true(answer + at, added);
            counter_take(f, &f->counters->keys, reserved - stored);
        } else if (!(error = add_near_limit(f, keys + at, unless_present, answer + at))) {
            added = 1;
        }
        *done += added;
    }
    if (error) {
        answer[*done] = false;
        counter_add(f, &f->counters->failed_adds, 1);
    }
    return error;
}

static int add_many(perhaps_filter *f, const struct perhaps_keys *keys, bool unless_present,
                    bool *was_present, size_t *done)
{
    bool scratch[BATCH_MOST];
    struct batch b;
    size_t none;
    done = done ? done : &none;
    *done = 0;
    int error = may_change(f);
    if (error)
        return error;
    size_t count = hasher_accepts(&f->hasher, keys);
    for (batch_begin(&b, f, keys, count, f->sync && f->kind->sorts_shared); b.done < b.count;) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead), added;
        error = add_hashed(f, now, ahead, n, unless_present,
                           was_present ? was_present + b.done : scratch, &added);
        *done = b.done += added;
        if (error)
            return error;
    }
    return b.count < keys->count ? PERHAPS_ERR_ARGUMENT : 0;
}

int perhaps_add_many(perhaps_filter *filter, const struct perhaps_keys *keys, size_t *done)
{
    return add_many(filter, keys, false, NULL, done);
}

int perhaps_add_unless_present_many(perhaps_filter *filter, const struct perhaps_keys *keys,
                                    bool *was_present, size_t *done)
{
    return add_many(filter, keys, true, was_present, done);
}

static NOINLINE int add_through_kind(perhaps_filter *f, struct keyhash hash,
                                     bool unless_present, bool *answer)
{
    size_t done;
    return add_hashed(f, &hash, &hash, 1, unless_present, answer, &done);
}

static inline int add_one_hashed(perhaps_filter *f, struct keyhash hash, bool unless_present,
                                 bool *answer)
{
    if (f->shared || !f->loops.add_one || f->counters->keys >= f->geometry.key_limit)
        return add_through_kind(f, hash, unless_present, answer);
    *answer = f->loops.add_one(f->body, f->geometry.field, hash);
    f->counters->keys += !*answer;
    return 0;
}

static NOINLINE int add_any_key(perhaps_filter *f, const void *key, size_t key_nbytes,
                                bool unless_present, bool *answer)
{
    struct keyhash hash;
    int error = may_change(f);
    *answer = false;
    if (!error && !hasher_one(&f->hasher, key, key_nbytes, &hash))
        error = PERHAPS_ERR_ARGUMENT;
    return error ? error : add_one_hashed(f, hash, unless_present, answer);
}

/* As perhaps_contains(). */
static inline int add_one(perhaps_filter *f, const void *key, size_t key_nbytes,
                          bool unless_present, bool *answer)
{
    if (f->hasher.id != PERHAPS_XXH3 || key_nbytes != sizeof(uint64_t) || f->read_only)
        return add_any_key(f, key, key_nbytes, unless_present, answer);
    return add_one_hashed(f, xxh3_keyhash(key, sizeof(uint64_t), f->hasher.seed),
                          unless_present, answer);
}

int perhaps_add(perhaps_filter *filter, const void *key, size_t key_nbytes)
{
    bool answer;
    return add_one(filter, key, key_nbytes, false, &answer);
}

int perhaps_add_unless_present(perhaps_filter *filter, const void *key, size_t key_nbytes,
                               bool *was_present)
{
    bool answer;
    return add_one(filter, key, key_nbytes, true, was_present ? was_present : &answer);
}

/* ---- Ask ------------------------------------------------------------------------------- */

static NOINLINE bool contains_through_kind(const perhaps_filter *f, struct keyhash hash)
{
    bool answer;
    return f->kind->contains(f, &hash, &hash, 1, &answer) != 0;
}

static inline bool contains_hashed(const perhaps_filter *f, struct keyhash hash)
{
    if (!f->loops.contains_one)
        return contains_through_kind(f, hash);
    return f->loops.contains_one(f->body, f->geometry.field, hash);
}

static NOINLINE bool contains_any_key(const perhaps_filter *f, const void *key,
                                      size_t key_nbytes)
{
    struct keyhash hash;
    if (!hasher_one(&f->hasher, key, key_nbytes, &hash))
        return !f->hasher.ready; /* nothing is certain; or it could not have been added */
    return contains_hashed(f, hash);
}

/* The fewer instructions the more calls overlap, each of which waits for memory: a CPU looks a
 * few hundred of them ahead.  So the most frequent keys, integers, have a path of their own, on
 * which nothing is kept on the stack. */
bool perhaps_contains(const perhaps_filter *f, const void *key, size_t key_nbytes)
{
    if (f->hasher.id != PERHAPS_XXH3 || key_nbytes != sizeof(uint64_t))
        return contains_any_key(f, key, key_nbytes);
    return contains_hashed(f, xxh3_keyhash(key, sizeof(uint64_t), f->hasher.seed));
}

/* For what a batch cannot hash: no secret, or keys of a length that the hash refuses. */
static size_t contains_one_by_one(const perhaps_filter *f, const struct perhaps_keys *keys,
                                  bool *present)
{
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++) {
        bool here = keys->each ? perhaps_contains(f, keys->each[i].bytes, keys->each[i].nbytes)
                               : perhaps_contains(f, keys_packed_at(keys, i), keys->key_nbytes);
        if (present)
            present[i] = here;
        found += here;
    }
    return found;
}

size_t perhaps_contains_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                             bool *present)
{
    bool scratch[BATCH_STEP];
    struct batch b;
    size_t found = 0;
    if (!f->hasher.ready || hasher_accepts(&f->hasher, keys) < keys->count)
        return contains_one_by_one(f, keys, present);
    for (batch_begin(&b, f, keys, keys->count, false); b.done < b.count;) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead);
        found += f->kind->contains(f, now, ahead, n, present ? present + b.done : scratch);
        b.done += n;
    }
    return found;
}

int perhaps_count(const perhaps_filter *f, const void *key, size_t key_nbytes, uint64_t *count)
{
    *count = 0;
    if (!f->kind->count)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!f->hasher.ready)
        return PERHAPS_ERR_KEY;
    struct keyhash hash;
    if (!hasher_one(&f->hasher, key, key_nbytes, &hash))
        return PERHAPS_ERR_ARGUMENT;
    *count = f->kind->count(f, &hash);
    return 0;
}

/* ---- Remove ---------------------------------------------------------------------------- */

int perhaps_remove_many(perhaps_filter *f, const struct perhaps_keys *keys, bool *removed,
                        size_t *nremoved)
{
    bool scratch[BATCH_STEP];
    struct batch b;
    size_t none;
    nremoved = nremoved ? nremoved : &none;
    *nremoved = 0;
    int error = f->kind->remove ? may_change(f) : PERHAPS_ERR_UNSUPPORTED;
    if (error)
        return error;
    if (hasher_accepts(&f->hasher, keys) < keys->count)
        return PERHAPS_ERR_ARGUMENT;
    for (batch_begin(&b, f, keys, keys->count, false); b.done < b.count;) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead);
        *nremoved += f->kind->remove(f, now, ahead, n, removed ? removed + b.done : scratch);
        b.done += n;
    }
    counter_take(f, &f->counters->keys, *nremoved);
    counter_add(f, &f->counters->unmatched_removals, keys->count - *nremoved);
    return 0;
}

int perhaps_remove(perhaps_filter *filter, const void *key, size_t key_nbytes)
{
    struct perhaps_key each = { .bytes = key, .nbytes = key_nbytes };
    struct perhaps_keys keys = { .count = 1, .each = &each };
    size_t removed;
    int error = perhaps_remove_many(filter, &keys, NULL, &removed);
    return error ? error : removed ? 0 : PERHAPS_ERR_NOT_FOUND;
}

/* ---- Two filters ----------------------------------------------------------------------- */

static bool same_shape(const perhaps_filter *a, const perhaps_filter *b)
{
    return a->kind == b->kind && hasher_equal(&a->hasher, &b->hasher) &&
           a->geometry.body_nbytes == b->geometry.body_nbytes &&
           !memcmp(a->geometry.field, b->geometry.field, sizeof a->geometry.field);
}

/* By exchange; or by a copy into a file, which is where it is. */
static void take_body(perhaps_filter *f, perhaps_filter *from)
{
    if (f->mapping.file) {
        memcpy(f->body, from->body, f->geometry.body_nbytes);
        return;
    }
    uint8_t *old = f->body;
    f->body = from->body;
    from->body = old;
}

int perhaps_merge(perhaps_filter *f, const perhaps_filter *other)
{
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    if (f == other)
        return PERHAPS_ERR_ARGUMENT;
    if (!same_shape(f, other))
        return PERHAPS_ERR_MISMATCH;
    if (!f->kind->merge)
        return PERHAPS_ERR_UNSUPPORTED;
    perhaps_filter *both; /* a copy, so that a failure leaves no trace */
    int error = perhaps_clone(f, &both);
    if (error)
        return error;
    error = f->kind->merge(both, other);
    if (!error && f->kind->measure(both).fpr > f->geometry.fpr)
        error = PERHAPS_ERR_FULL;
    if (!error) {
        take_body(f, both);
        f->counters->keys = both->counters->keys;
    }
    perhaps_free(both);
    return error;
}

bool perhaps_equal(const perhaps_filter *a, const perhaps_filter *b)
{
    return same_shape(a, b) && !memcmp(a->body, b->body, a->geometry.body_nbytes);
}

/* ---- Inspect --------------------------------------------------------------------------- */

void perhaps_stats(const perhaps_filter *f, struct perhaps_stats *stats)
{
    struct fill fill = f->kind->measure(f);
    *stats = (struct perhaps_stats){
        .hash = hasher_name(&f->hasher),
        .keys = counter_get(&f->counters->keys),
        .load = fill.load,
        .fpr_now = fill.fpr,
        .failed_adds = counter_get(&f->counters->failed_adds),
        .unmatched_removals = counter_get(&f->counters->unmatched_removals),
        .mapped = f->mapping.file != NULL,
        .shared = f->shared,
        .huge_nbytes = huge_nbytes(f->body, f->geometry.body_nbytes),
        .cpu = f->kernels->name,
    };
    plan_describe(f->kind, &f->geometry, &stats->plan);
    if (stats->keys)
        stats->bits_per_key = 8.0 * (double)f->geometry.body_nbytes / (double)stats->keys;
}

double perhaps_predict_fpr(const perhaps_filter *f, uint64_t keys)
{
    return f->kind->predict(&f->geometry, (double)keys).mean;
}
