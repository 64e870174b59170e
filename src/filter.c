/* filter.c - the public calls: check, hash, forward. */
#include "filter.h"

#include <string.h>

#include "check.h"
#include "counters.h"
#include "locks.h"

/* Keeps what is rare, and needs the stack, out of the callers' way. */
#define NOINLINE __attribute__((noinline))

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
    return hasher_run_all(&f->hasher, keys, hashed);
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
    struct keyhash *ring;
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

static struct batch batch_begin(const perhaps_filter *f, const struct perhaps_keys *keys,
                                size_t count, struct keyhash ring[BATCH_RING])
{
    struct batch b = { .f = f,
                       .keys = keys,
                       .step = BATCH_STEP,
                       .ahead = BATCH_AHEAD,
                       .ring_size = BATCH_RING,
                       .count = count,
                       .ring = ring };
    batch_hash(&b, b.ahead);
    f->kind->prefetch(f, ring, b.hashed);
    return b;
}

static struct batch batch_begin_sorted(const perhaps_filter *f, const struct perhaps_keys *keys,
                                       size_t count, struct keyhash ring[BATCH_MOST])
{
    return (struct batch){ .f = f,
                           .keys = keys,
                           .step = BATCH_MOST,
                           .ring_size = BATCH_MOST,
                           .count = count,
                           .ring = ring };
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
    return f->hasher.ready ? 0 : PERHAPS_ERR_SECRET;
}

/* Adds one key.  What is there already is added where that changes nothing, also at the limit;
 * only what is not is counted before. */
static int add_counted(perhaps_filter *f, const struct keyhash *key, bool unless_present,
                       bool *answer)
{
    bool stores_copies = f->removes && !unless_present;
    size_t added;
    if (!stores_copies && f->kind->contains(f, key, key, 1, answer))
        return 0;
    do /* other processes count, too */
        if (!filter_has_room(f, key))
            return PERHAPS_ERR_FULL;
    while (!reserve_keys(f, 1, 0));
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

int filter_add_hashed(perhaps_filter *f, const struct keyhash *keys,
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
    return error;
}

static int add_hashed(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done)
{
    int error = filter_add_hashed(f, keys, ahead, n, unless_present, answer, done);
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
    struct keyhash ring[BATCH_MOST];
    size_t none;
    done = done ? done : &none;
    *done = 0;
    int error = may_change(f);
    if (error)
        return error;
    size_t count = hasher_accepts(&f->hasher, keys);
    struct batch b = f->sync && f->kind->sorts_shared ? batch_begin_sorted(f, keys, count, ring)
                                                      : batch_begin(f, keys, count, ring);
    while (b.done < b.count) {
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
    if (f->shared || !f->loops.add_one || f->counters->keys >= f->room_until)
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
    if (f->hasher.id != PERHAPS_HASH_XXH3 || key_nbytes != sizeof(uint64_t) || f->read_only)
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

static size_t ask(const perhaps_filter *f, const struct keyhash *keys,
                  const struct keyhash *ahead, size_t n, bool *answer)
{
    if (f->checked)
        return check_contains(f, keys, ahead, n, answer);
    return f->kind->contains(f, keys, ahead, n, answer);
}

static NOINLINE bool contains_through_kind(const perhaps_filter *f, struct keyhash hash)
{
    bool answer;
    return ask(f, &hash, &hash, 1, &answer) != 0;
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
    if (f->hasher.id != PERHAPS_HASH_XXH3 || key_nbytes != sizeof(uint64_t))
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
    struct keyhash ring[BATCH_RING];
    size_t found = 0;
    if (!f->hasher.ready || hasher_accepts(&f->hasher, keys) < keys->count)
        return contains_one_by_one(f, keys, present);
    struct batch b = batch_begin(f, keys, keys->count, ring);
    while (b.done < b.count) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead);
        found += ask(f, now, ahead, n, present ? present + b.done : scratch);
        b.done += n;
    }
    return found;
}

int perhaps_count(const perhaps_filter *f, const void *key, size_t key_nbytes, uint64_t *count)
{
    *count = 0;
    if (!f->counts)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!f->hasher.ready)
        return PERHAPS_ERR_SECRET;
    struct keyhash hash;
    if (!hasher_one(&f->hasher, key, key_nbytes, &hash))
        return PERHAPS_ERR_ARGUMENT;
    if (f->checked && !check_key(f, &hash))
        return PERHAPS_ERR_DAMAGED;
    *count = f->kind->count(f, &hash);
    return 0;
}

/* ---- Remove ---------------------------------------------------------------------------- */

size_t filter_remove_hashed(perhaps_filter *f, const struct keyhash *keys,
                            const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t removed = f->kind->remove(f, keys, ahead, n, answer);
    counter_take(f, &f->counters->keys, removed);
    return removed;
}

int perhaps_remove_many(perhaps_filter *f, const struct perhaps_keys *keys, bool *removed,
                        size_t *nremoved)
{
    bool scratch[BATCH_STEP];
    struct keyhash ring[BATCH_RING];
    size_t none;
    nremoved = nremoved ? nremoved : &none;
    *nremoved = 0;
    int error = f->removes ? may_change(f) : PERHAPS_ERR_UNSUPPORTED;
    if (error)
        return error;
    if (hasher_accepts(&f->hasher, keys) < keys->count)
        return PERHAPS_ERR_ARGUMENT;
    struct batch b = batch_begin(f, keys, keys->count, ring);
    while (b.done < b.count) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead);
        *nremoved +=
            filter_remove_hashed(f, now, ahead, n, removed ? removed + b.done : scratch);
        b.done += n;
    }
    counter_add(f, &f->counters->unmatched_removals, keys->count - *nremoved);
    return 0;
}

int perhaps_remove(perhaps_filter *filter, const void *key, size_t key_nbytes)
{
    struct perhaps_key each = { .bytes = key, .nbytes = key_nbytes };
    struct perhaps_keys keys = perhaps_keys_each(&each, 1);
    size_t removed;
    int error = perhaps_remove_many(filter, &keys, NULL, &removed);
    return error ? error : removed ? 0 : PERHAPS_ERR_NOT_FOUND;
}

/* ---- Windows --------------------------------------------------------------------------- */

int perhaps_rotate(perhaps_filter *f)
{
    if (!f->kind->rotate)
        return PERHAPS_ERR_UNSUPPORTED;
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    f->kind->rotate(f);
    return 0;
}

int perhaps_advance(perhaps_filter *f, uint64_t now)
{
    if (!f->kind->advance)
        return PERHAPS_ERR_UNSUPPORTED;
    return f->read_only ? PERHAPS_ERR_READ_ONLY : f->kind->advance(f, now);
}
