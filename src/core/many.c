/* many.c - the public calls for many keys: they check their arguments, hash the keys into a
 * ring, and call the kind.  HACKING.md ("Batches: the ring") explains why. */
#include "../filter/filter.h"
#include <perhaps_build.h>
#include <perhaps_window.h>

#include "../base/compiler.h"
#include "../filter/counters.h"
#include "plan.h"

/* ---- Hash ------------------------------------------------------------------------------ */

int perhaps_hash_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                      struct perhaps_hashed *hashed)
{
    return hasher_run_all(&f->hasher, keys, hashed);
}

/* ---- Batches --------------------------------------------------------------------------- */

/* Many keys on their way to the kind.  They are hashed into a ring, 'step' keys at a time, and
 * are handed to the kind 'ahead' keys later.  For a kind that sorts keys, and so prefetches in
 * an order of its own, 'step' is BATCH_MOST and 'ahead' is 0.
 * Invariant: done <= hashed <= count, and hashed - done <= ring_size. */
struct batch {
    const struct hasher *hasher;
    const struct perhaps_keys *keys;
    size_t step, ahead, ring_size;
    size_t count;  /* how many of the keys the hash accepts */
    size_t hashed; /* how many keys have been hashed */
    size_t done;   /* how many keys were dealt with */
    struct keyhash ring[BATCH_MOST];
};

_Static_assert(BATCH_RING <= BATCH_MOST, "one ring serves both");

/* Deals with n hashed keys, of which the first is number 'at'.  Sets *done to with how many; it
 * is n unless there is an error, with which the batch ends. */
typedef int batch_step(void *context, const struct keyhash *keys, const struct keyhash *ahead,
                       size_t n, size_t at, size_t *done);

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Hashes up to 'most' more keys into the ring.  Steps divide the ring, so that none wraps. */
static void batch_hash(struct batch *b, size_t most)
{
    size_t n = smaller(most, b->count - b->hashed);
    hasher_run(b->hasher, b->keys, b->hashed, n, &b->ring[b->hashed % b->ring_size]);
    b->hashed += n;
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

/* Hashes the first 'count' keys and has step() deal with all of them in order.  What the first
 * 'fetched' ones need was fetched.  Returns 0, or the error of step().  *done is with how many
 * keys it dealt. */
static int batch_run(const perhaps_filter *f, const struct perhaps_keys *keys, size_t count,
                     size_t fetched, bool sorted, batch_step *step, void *context, size_t *done)
{
    struct batch b;
    int error = 0;
    b.hasher = &f->hasher;
    b.keys = keys;
    b.step = sorted ? BATCH_MOST : BATCH_STEP;
    b.ahead = sorted ? 0 : BATCH_AHEAD;
    b.ring_size = sorted ? BATCH_MOST : BATCH_RING;
    b.count = count;
    b.hashed = b.done = 0;
    batch_hash(&b, b.ahead);
    if (b.hashed && filter_may_look(f))
        f->kind->prefetch(f, b.ring, b.hashed);
    while (b.done < count && !error) {
        const struct keyhash *now, *ahead;
        if (b.done >= fetched) /* not of a filter that may not be looked at: all are fetched */
            fetched = b.done + filter_fetch(f, keys, b.done, count - b.done);
        size_t n = batch_next(&b, &now, &ahead), some = n;
        error = step(context, now, ahead, n, b.done, &some);
        *done = b.done += some;
    }
    return error;
}

/* The same for keys that may have to be read from a file first. */
static int batch_each(const perhaps_filter *f, const struct perhaps_keys *keys, size_t count,
                      bool sorted, batch_step *step, void *context, size_t *done)
{
    const size_t fetched =
        count && filter_may_look(f) ? filter_fetch(f, keys, 0, count) : count;
    return batch_run(f, keys, count, fetched, sorted, step, context, done);
}

/* Prefetches for later keys, where the kind takes one key at a time and does not. */
static void prefetch_ahead(const perhaps_filter *f, const struct keyhash *keys,
                           const struct keyhash *ahead, size_t n)
{
    if (ahead != keys)
        f->kind->prefetch(f, ahead, n);
}

/* ---- Add ------------------------------------------------------------------------------- */

struct adding {
    perhaps_filter *f;
    bool unless_present;
    bool *was_present; /* NULL: nobody asks */
};

static int add_step(void *context, const struct keyhash *keys, const struct keyhash *ahead,
                    size_t n, size_t at, size_t *done)
{
    const struct adding *a = context;
    bool scratch[BATCH_MOST];
    return a->f->changer->add(a->f, keys, ahead, n, a->unless_present,
                              a->was_present ? a->was_present + at : scratch, done);
}

/* Adds keys up to the first that fails, or that the hash refuses. */
static int add_many(perhaps_filter *f, const struct perhaps_keys *keys, bool unless_present,
                    bool *was_present, size_t *done)
{
    struct adding a = { f, unless_present, was_present };
    size_t none;
    done = done ? done : &none;
    *done = 0;
    int error = filter_may_add(f);
    if (error)
        return error;
    size_t count = filter_count_hashable(f, keys);
    error = batch_each(f, keys, count, f->body.writers && f->kind->sorts_shared, add_step, &a,
                       done);
    return error ? error : count < keys->count ? PERHAPS_ERR_ARGUMENT : 0;
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

struct asking {
    const perhaps_filter *f;
    size_t gone;   /* so many generations of a window are not asked */
    bool *present; /* NULL: nobody asks which */
    size_t found;
};

static size_t ask(const struct asking *a, const struct keyhash *keys,
                  const struct keyhash *ahead, size_t n, bool *answer)
{
    return a->gone ? contains_newer(a->f, a->gone, keys, ahead, n, answer)
                   : filter_contains_hashed(a->f, keys, ahead, n, answer);
}

static int ask_step(void *context, const struct keyhash *keys, const struct keyhash *ahead,
                    size_t n, size_t at, size_t *done)
{
    struct asking *a = context;
    bool scratch[BATCH_STEP], *answer = a->present ? a->present + at : scratch;
    (void)done;
    a->found += ask(a, keys, ahead, n, answer);
    return 0;
}

/* Returns the number of key 'at' of sorted keys. */
static size_t number_of(const struct fetched *sorted, size_t at)
{
    return sorted->order[at] & ((1 << FETCHED_NBITS) - 1);
}

/* Takes the hashes of a step, which begins at key 'at' of sorted keys.  Returns how many. */
static size_t take_sorted(const struct fetched *sorted, size_t at, struct keyhash *hash)
{
    size_t n = at < sorted->count ? smaller(BATCH_STEP, sorted->count - at) : 0;
    for (size_t i = 0; i < n; i++)
        hash[i] = sorted->hash[number_of(sorted, at + i)];
    return n;
}

/* Asks for keys in the order of the file; 'first' is the number of the first one. */
static void ask_sorted(struct asking *a, const struct fetched *sorted, size_t first)
{
    struct keyhash ring[2][BATCH_STEP];
    size_t n = take_sorted(sorted, 0, ring[0]), next;
    for (size_t at = 0; n; at += BATCH_STEP, n = next) {
        struct keyhash *now = ring[at / BATCH_STEP % 2], *ahead = ring[at / BATCH_STEP % 2 ^ 1];
        bool answer[BATCH_STEP];
        next = take_sorted(sorted, at + BATCH_STEP, ahead);
        a->found += ask(a, now, next < n ? now : ahead, n, answer);
        for (size_t i = 0; i < n && a->present; i++)
            a->present[first + number_of(sorted, at + i)] = answer[i];
    }
}

/* Asks for keys first .. first+n-1, as they come. */
static void ask_in_order(struct asking *a, const struct perhaps_keys *keys, size_t first,
                         size_t n)
{
    const struct perhaps_keys some = perhaps_keys_slice(keys, first, n);
    struct asking part = *a;
    size_t done;
    part.present = a->present ? a->present + first : NULL;
    batch_run(a->f, &some, n, n, false, ask_step, &part, &done);
    a->found = part.found;
}

/* Asks for keys that may have to be read from a large file first. */
static void ask_large(struct asking *a, const struct perhaps_keys *keys)
{
    const struct mapping_calls *calls = a->f->mapping->calls;
    for (size_t first = 0, n; first < keys->count; first += n) {
        struct fetched sorted = { 0 };
        n = calls->fetch(a->f, keys, first, keys->count - first, &sorted);
        if (sorted.memory)
            ask_sorted(a, &sorted, first);
        else
            ask_in_order(a, keys, first, n);
        calls->forget(&sorted);
    }
}

/* Asks for keys that the hash takes. */
static size_t contains_batches(const perhaps_filter *f, const struct perhaps_keys *keys,
                               size_t gone, bool *present)
{
    struct asking a = { f, gone, present, 0 };
    size_t done;
    if (f->mapping->large)
        ask_large(&a, keys);
    else
        batch_run(f, keys, keys->count, keys->count, false, ask_step, &a, &done);
    return a.found;
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

struct counting {
    const perhaps_filter *f;
    uint64_t *counts;
};

static int count_step(void *context, const struct keyhash *keys, const struct keyhash *ahead,
                      size_t n, size_t at, size_t *done)
{
    const struct counting *c = context;
    int error = 0;
    (void)done;
    prefetch_ahead(c->f, keys, ahead, n);
    for (size_t i = 0; i < n && !error; i++)
        error = filter_count_hashed(c->f, &keys[i], &c->counts[at + i]);
    return error;
}

/* Returns 0 if the hash takes all keys. */
static int all_hashable(const perhaps_filter *f, const struct perhaps_keys *keys)
{
    return hasher_accepts(&f->hasher, keys) < keys->count ? PERHAPS_ERR_ARGUMENT : 0;
}

int perhaps_count_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                       uint64_t *counts)
{
    struct counting c = { f, counts };
    size_t done;
    int error = filter_may_count(f);
    if (!error)
        error = all_hashable(f, keys);
    if (!error)
        error = batch_each(f, keys, keys->count, false, count_step, &c, &done);
    for (size_t i = 0; error && i < keys->count; i++)
        counts[i] = 0;
    return error;
}

/* ---- Look up --------------------------------------------------------------------------- */

/* Returns 0 if this filter has values, or the error of a call that asks for one. */
static int may_look_up(const perhaps_filter *f)
{
    if (!f->kind->builds || !f->kind->builds->has_values ||
        !f->kind->builds->has_values(&f->body.geometry))
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
    filter_count_singles(f, 1);
    if (!error)
        error = look_up_hashed(f, &hash, 1, value, &present);
    return error ? error : present ? 0 : PERHAPS_ERR_NOT_FOUND;
}

struct looking {
    const perhaps_filter *f;
    uint32_t *value;
    bool *present;
};

static int look_up_step(void *context, const struct keyhash *keys, const struct keyhash *ahead,
                        size_t n, size_t at, size_t *done)
{
    const struct looking *l = context;
    (void)done;
    prefetch_ahead(l->f, keys, ahead, n);
    return look_up_hashed(l->f, keys, n, l->value + at, l->present + at);
}

int perhaps_lookup_many(const perhaps_filter *f, const struct perhaps_keys *keys,
                        uint32_t *value, bool *present)
{
    struct looking l = { f, value, present };
    size_t done;
    int error = may_look_up(f);
    if (!error)
        error = all_hashable(f, keys);
    if (!error)
        error = batch_each(f, keys, keys->count, false, look_up_step, &l, &done);
    for (size_t i = 0; error && i < keys->count; i++) {
        value[i] = 0;
        present[i] = false;
    }
    return error;
}

/* ---- Remove ---------------------------------------------------------------------------- */

struct removing {
    perhaps_filter *f;
    bool *removed; /* NULL: nobody asks which */
    size_t *nremoved;
};

static int remove_step(void *context, const struct keyhash *keys, const struct keyhash *ahead,
                       size_t n, size_t at, size_t *done)
{
    const struct removing *r = context;
    bool scratch[BATCH_STEP];
    size_t some = 0;
    int error = r->f->changer->remove(r->f, keys, ahead, n,
                                      r->removed ? r->removed + at : scratch, &some);
    *done = error ? 0 : n;
    *r->nremoved += some;
    return error;
}

int perhaps_remove_many(perhaps_filter *f, const struct perhaps_keys *keys, bool *removed,
                        size_t *nremoved, size_t *done)
{
    size_t unused_count, unused_done;
    struct removing r = { f, removed, nremoved ? nremoved : &unused_count };
    done = done ? done : &unused_done;
    *r.nremoved = *done = 0;
    int error = filter_may_remove(f);
    if (error)
        return error;
    size_t count = hasher_accepts(&f->hasher, keys);
    error = batch_each(f, keys, count, false, remove_step, &r, done);
    return error ? error : count < keys->count ? PERHAPS_ERR_ARGUMENT : 0;
}
