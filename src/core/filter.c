/* filter.c - the public calls for many keys: they check their arguments, hash the keys into a
 * ring, and call the kind.  HACKING.md ("Batches: the ring") explains why. */
#include "../filter/filter.h"
#include <perhaps_build.h>
#include <perhaps_window.h>

#include <sodium/utils.h>

#include "../base/compiler.h"
#include "../filter/counters.h"
#include "plan.h"

/* ---- Create ---------------------------------------------------------------------------- */

int perhaps_create(const struct perhaps_options *options, perhaps_filter **filter)
{
    struct perhaps_hashing hashing = options->hashing;
    const struct filter_kind *kind;
    struct geometry of_part = { 0 }, part = { .first = &of_part }, g = { .first = &part };
    struct hasher hasher;
    char why[WHY_NBYTES];
    *filter = NULL;
    int error = plan_choose(options, &kind, &g, why);
    if (!error && kind->builds)
        error = PERHAPS_ERR_UNSUPPORTED; /* by a builder */
    if (!error)
        error = plan_hash(kind, &g, &hashing);
    if (error)
        return error;
    error = hasher_create(&hasher, &hashing);
    if (!error)
        error = filter_new(kind, &g, &hasher, options, filter);
    if (!error && !(options->needs & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT)))
        filter_become_set(*filter);
    sodium_memzero(hasher.secret, sizeof hasher.secret);
    return error;
}

unsigned perhaps_abilities_of(const perhaps_filter *f)
{
    const unsigned copies = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT;
    return (f->kind->about.abilities & ~copies) | (f->removes ? PERHAPS_CAN_REMOVE : 0U) |
           (f->counts ? PERHAPS_CAN_COUNT : 0U);
}

/* Returns the hash of a filter like the model: the model's own, or a new one. */
static int hash_like(const perhaps_filter *model, const struct perhaps_hashing *own,
                     struct hasher *hasher)
{
    if (!own) {
        *hasher = model->hasher;
        return hasher->ready ? 0 : PERHAPS_ERR_SECRET;
    }
    struct perhaps_hashing hashing = *own;
    if (!hashing.note)
        hashing.note = model->hasher.note;
    int error = plan_hash(model->kind, &model->geometry, &hashing);
    return error ? error : hasher_create(hasher, &hashing);
}

int perhaps_create_like(const perhaps_filter *model, const struct perhaps_hashing *hashing,
                        const struct perhaps_allocator *allocator, perhaps_filter **filter)
{
    struct hasher hasher;
    *filter = NULL;
    if (model->kind->builds)
        return PERHAPS_ERR_UNSUPPORTED;
    int error = hash_like(model, hashing, &hasher);
    if (!error)
        error = filter_new_like(model, &hasher, allocator, model->shared, filter);
    if (!error && model->is_set)
        filter_become_set(*filter);
    sodium_memzero(hasher.secret, sizeof hasher.secret);
    return error;
}

/* ---- Hash ------------------------------------------------------------------------------ */

int perhaps_hash_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                      struct perhaps_hashed *hashed)
{
    return hasher_run_all(&f->hasher, keys, hashed);
}

/* ---- Batches --------------------------------------------------------------------------- */

/* Many keys on their way to the kind.  They are hashed into a ring, 'step' keys at a time, and
 * are handed to the kind 'ahead' keys later.  For a kind that sorts keys 'step' is BATCH_MOST
 * and 'ahead' is 0.
 * Invariant: done <= hashed <= count, and hashed - done <= ring_size. */
struct batch {
    const perhaps_filter *f;
    const struct perhaps_keys *keys;
    size_t step, ahead, ring_size;
    size_t count;  /* how many of the keys the hash accepts */
    size_t hashed; /* how many keys have been hashed */
    size_t done;   /* how many keys the kind has worked on; the caller advances it */
    struct keyhash *ring;
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Hashes up to 'most' more keys into the ring.  Steps divide the ring, so that none wraps. */
static void batch_hash(struct batch *b, size_t most)
{
    size_t n = smaller(most, b->count - b->hashed);
    hasher_run(&b->f->hasher, b->keys, b->hashed, n, &b->ring[b->hashed % b->ring_size]);
    b->hashed += n;
}

/* Begins a batch: hashes the first BATCH_AHEAD keys and prefetches what they will need. */
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
    if (filter_may_look(f))
        f->kind->prefetch(f, ring, b.hashed);
    return b;
}

/* Begins a batch for a kind that sorts keys, and so prefetches in an order of its own. */
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

/* Sets *keys to the hashes of the next step, and *ahead to as many hashes of later keys; or to
 * the same hashes near the end, where their lines have been prefetched.  Returns how many. */
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

/* Adds keys up to the first that fails, or that the hash refuses. */
static int add_many(perhaps_filter *f, const struct perhaps_keys *keys, bool unless_present,
                    bool *was_present, size_t *done)
{
    bool scratch[BATCH_MOST];
    struct keyhash ring[BATCH_MOST];
    size_t none;
    done = done ? done : &none;
    *done = 0;
    int error = filter_may_add(f);
    if (error)
        return error;
    size_t count = filter_count_hashable(f, keys);
    struct batch b = f->writers && f->kind->sorts_shared
                         ? batch_begin_sorted(f, keys, count, ring)
                         : batch_begin(f, keys, count, ring);
    while (b.done < b.count) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead), added;
        error = filter_add_recorded(f, now, ahead, n, unless_present,
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

/* ---- Ask ------------------------------------------------------------------------------- */

/* Asks for each key alone, where a batch cannot hash the keys: the secret is missing, or the
 * hash refuses a key. */
static size_t contains_one_by_one(const perhaps_filter *f, const struct perhaps_keys *keys,
                                  bool *present)
{
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++) {
        struct perhaps_key key = perhaps_keys_at(keys, i);
        bool here = perhaps_contains(f, key.bytes, key.nbytes);
        if (present)
            present[i] = here;
        found += here;
    }
    return found;
}

/* Asks a window without its 'gone' oldest generations.  As always, "perhaps" is the answer for
 * a key that may lie on a damaged page; here even if that page is gone. */
static size_t contains_newer(const perhaps_filter *f, size_t gone, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t found = f->kind->forgets->contains_newer(f, gone, keys, ahead, n, answer);
    for (size_t i = 0; f->checked && i < n; i++) {
        if (answer[i] || f->checked->guard->is_sound(f, &keys[i]))
            continue;
        answer[i] = true;
        found++;
    }
    return found;
}

/* Asks for keys that the hash takes.  'gone' generations of a window are not asked. */
static size_t contains_batches(const perhaps_filter *f, const struct perhaps_keys *keys,
                               size_t gone, bool *present)
{
    bool scratch[BATCH_STEP];
    struct keyhash ring[BATCH_RING];
    size_t found = 0;
    struct batch b = batch_begin(f, keys, keys->count, ring);
    while (b.done < b.count) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead);
        bool *answer = present ? present + b.done : scratch;
        found += gone ? contains_newer(f, gone, now, ahead, n, answer)
                      : filter_contains_hashed(f, now, ahead, n, answer);
        b.done += n;
    }
    return found;
}

size_t perhaps_contains_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                             bool *present)
{
    if (!f->hasher.ready || filter_count_hashable(f, keys) < keys->count)
        return contains_one_by_one(f, keys, present);
    return contains_batches(f, keys, 0, present);
}

/* Keys of which the hash refuses some are asked for one at a time. */
size_t perhaps_contains_many_at(const perhaps_filter *f, const struct perhaps_keys *keys,
                                uint64_t now, bool *present)
{
    const struct forgets *forgets = f->kind->forgets;
    size_t gone = forgets ? forgets->gone(f, now) : 0, found = 0;
    if (!gone || !f->hasher.ready)
        return perhaps_contains_many(f, keys, present);
    if (filter_count_hashable(f, keys) == keys->count)
        return contains_batches(f, keys, gone, present);
    for (size_t i = 0; i < keys->count; i++) {
        struct perhaps_keys one = perhaps_keys_slice(keys, i, 1);
        bool here = filter_count_hashable(f, &one) && contains_batches(f, &one, gone, NULL);
        if (present)
            present[i] = here;
        found += here;
    }
    return found;
}

/* Returns 0 if this filter can tell counts, or the error of a call that asks for one. */
static int may_count(const perhaps_filter *f)
{
    if (!f->counts)
        return f->is_set ? PERHAPS_ERR_SET : PERHAPS_ERR_UNSUPPORTED;
    return f->hasher.ready ? 0 : PERHAPS_ERR_SECRET;
}

/* Counts one hashed key.  Returns PERHAPS_ERR_DAMAGED if it lies on a damaged page: unlike
 * "perhaps", no number would be a safe answer. */
static int count_hashed(const perhaps_filter *f, const struct keyhash *key, uint64_t *count)
{
    if (f->checked && !f->checked->guard->is_sound(f, key))
        return PERHAPS_ERR_DAMAGED;
    *count = f->kind->count(f, key);
    return 0;
}

int perhaps_count(const perhaps_filter *f, const void *key, size_t key_nbytes, uint64_t *count)
{
    struct keyhash hash;
    int error = may_count(f);
    *count = 0;
    if (!error && !hasher_one(&f->hasher, key, key_nbytes, &hash))
        error = PERHAPS_ERR_ARGUMENT;
    return error ? error : count_hashed(f, &hash, count);
}

/* Sets the counts of keys until there is an error.  count() of a kind takes one key and does
 * not prefetch, so this loop prefetches the keys ahead. */
static int count_all(const perhaps_filter *f, const struct perhaps_keys *keys, uint64_t *counts)
{
    struct keyhash ring[BATCH_RING];
    int error = may_count(f);
    if (!error && hasher_accepts(&f->hasher, keys) < keys->count)
        error = PERHAPS_ERR_ARGUMENT;
    if (error)
        return error;
    struct batch b = batch_begin(f, keys, keys->count, ring);
    while (b.done < b.count) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead);
        if (ahead != now)
            f->kind->prefetch(f, ahead, n);
        for (size_t i = 0; i < n && !error; i++)
            error = count_hashed(f, &now[i], &counts[b.done + i]);
        if (error)
            return error;
        b.done += n;
    }
    return 0;
}

int perhaps_count_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                       uint64_t *counts)
{
    int error = count_all(f, keys, counts);
    for (size_t i = 0; error && i < keys->count; i++)
        counts[i] = 0;
    return error;
}

/* ---- Look up --------------------------------------------------------------------------- */

/* Returns 0 if this filter has values, or the error of a call that asks for one. */
static int may_look_up(const perhaps_filter *f)
{
    if (!f->kind->builds || !f->kind->builds->has_values ||
        !f->kind->builds->has_values(&f->geometry))
        return PERHAPS_ERR_UNSUPPORTED;
    return f->hasher.ready ? 0 : PERHAPS_ERR_SECRET;
}

/* Looks up hashed keys.  Returns PERHAPS_ERR_DAMAGED if one lies on a damaged page. */
static int look_up_hashed(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                          uint32_t *value, bool *present)
{
    for (size_t i = 0; f->checked && i < n; i++)
        if (!f->checked->guard->is_sound(f, &keys[i]))
            return PERHAPS_ERR_DAMAGED;
    f->kind->builds->look_up(f, keys, n, value, present);
    for (size_t i = 0; i < n; i++)
        value[i] = present[i] ? value[i] : 0;
    return 0;
}

int perhaps_lookup(const perhaps_filter *f, const void *key, size_t key_nbytes, uint32_t *value)
{
    struct keyhash hash;
    bool present;
    int error = may_look_up(f);
    *value = 0;
    if (!error && !hasher_one(&f->hasher, key, key_nbytes, &hash))
        error = PERHAPS_ERR_ARGUMENT;
    if (!error)
        error = look_up_hashed(f, &hash, 1, value, &present);
    return error ? error : present ? 0 : PERHAPS_ERR_NOT_FOUND;
}

static int look_up_all(const perhaps_filter *f, const struct perhaps_keys *keys,
                       uint32_t *value, bool *present)
{
    struct keyhash ring[BATCH_RING];
    int error = may_look_up(f);
    if (!error && hasher_accepts(&f->hasher, keys) < keys->count)
        error = PERHAPS_ERR_ARGUMENT;
    if (error)
        return error;
    struct batch b = batch_begin(f, keys, keys->count, ring);
    while (b.done < b.count && !error) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead);
        if (ahead != now)
            f->kind->prefetch(f, ahead, n);
        error = look_up_hashed(f, now, n, value + b.done, present + b.done);
        b.done += n;
    }
    return error;
}

int perhaps_lookup_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                        uint32_t *value, bool *present)
{
    int error = look_up_all(f, keys, value, present);
    for (size_t i = 0; error && i < keys->count; i++) {
        value[i] = 0;
        present[i] = false;
    }
    return error;
}

/* ---- Remove ---------------------------------------------------------------------------- */

int perhaps_remove_many(perhaps_filter *f, const struct perhaps_keys *keys, bool *removed,
                        size_t *nremoved, size_t *done)
{
    bool scratch[BATCH_STEP];
    struct keyhash ring[BATCH_RING];
    size_t unused_count, unused_done;
    nremoved = nremoved ? nremoved : &unused_count;
    done = done ? done : &unused_done;
    *nremoved = *done = 0;
    int error = f->removes  ? filter_may_change(f)
                : f->is_set ? PERHAPS_ERR_SET
                            : PERHAPS_ERR_UNSUPPORTED;
    if (error)
        return error;
    struct batch b = batch_begin(f, keys, hasher_accepts(&f->hasher, keys), ring);
    while (b.done < b.count) {
        const struct keyhash *now, *ahead;
        size_t n = batch_next(&b, &now, &ahead), some = 0;
        bool *answer = removed ? removed + b.done : scratch;
        if (f->recording)
            error = f->recording->recorder->remove(f, now, ahead, n, answer, &some);
        else
            some = filter_remove_keys(f, now, ahead, n, answer);
        if (error)
            return error;
        *nremoved += some;
        *done = b.done += n;
    }
    return b.count < keys->count ? PERHAPS_ERR_ARGUMENT : 0;
}

int perhaps_remove(perhaps_filter *filter, const void *key, size_t key_nbytes)
{
    struct perhaps_key each = { .bytes = key, .nbytes = key_nbytes };
    struct perhaps_keys keys = perhaps_keys_each(&each, 1);
    size_t removed;
    int error = perhaps_remove_many(filter, &keys, NULL, &removed, NULL);
    return error ? error : removed ? 0 : PERHAPS_ERR_NOT_FOUND;
}

/* ---- Windows --------------------------------------------------------------------------- */

static int forget(perhaps_filter *f, enum deed deed, uint64_t now)
{
    if (!f->kind->forgets)
        return PERHAPS_ERR_UNSUPPORTED;
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    return f->recording ? f->recording->recorder->change(f, deed, now)
                        : filter_change(f, deed, now);
}

int perhaps_rotate(perhaps_filter *f)
{
    return forget(f, DEED_ROTATE, 0);
}

int perhaps_advance(perhaps_filter *f, uint64_t now)
{
    return forget(f, DEED_ADVANCE, now);
}

/* Looks only at what never changes, so a live filter needs no lock for it. */
int perhaps_advance_unless_ahead(perhaps_filter *f, uint64_t now, uint64_t clock)
{
    uint64_t time = f->kind->forgets ? f->kind->forgets->time(f) : 0;
    if (time && now > clock && now - clock > time)
        return PERHAPS_ERR_AHEAD;
    return perhaps_advance(f, now);
}

int perhaps_set_back(perhaps_filter *f, uint64_t now)
{
    return forget(f, DEED_SET_BACK, now);
}
