/* add.c - adds hashed keys to a filter and counts them, never beyond its key limit.
 *
 * Invariant: as long as a filter accepts keys, its fpr is at most what was asked.  The key
 * limit keeps this for all hash seeds but one in 10^9, provided that the keys are different and
 * that nobody has crafted them to meet in few lines.  A small filter, where it costs little,
 * also computes its fpr from its bits at certain numbers of keys, and from the fpr how many
 * keys it can take before it must compute it again ('room_until').
 *
 * N different keys fit into a filter for N, whoever adds them and how often.  Where the count
 * of keys may be wrong (several writers added one key at the same moment, and each counted it;
 * or the filter was merged, or made smaller), the bits alone decide: recount().
 *
 * Parts of a composite do not compute their fpr.  Crafted keys would fill a layer that holds
 * hardly any keys, and the chain would then have to refuse all keys, or to grow for a few. */
#include <math.h>

#include "../base/compiler.h"
#include "../base/locks.h"
#include "../base/sample.h"
#include "../base/sizing.h"
#include "counted.h"
#include "counters.h"

/* ---- Room ------------------------------------------------------------------------------ */

/* A filter is small up to this size.  These are 256 lines, whose fpr takes some microseconds to
 * guess, and ten times as long to compute: less than a tenth of a millisecond in all while the
 * filter is filled. */
enum { LOOKED_AT_NBYTES = 16 << 10 };

/* So is a filter looked at whose count may be too low; a shared one counts too many at most. */
static bool is_looked_at(const perhaps_filter *f)
{
    return f->kind->rate_with && !f->is_part &&
           (f->body.geometry.body_nbytes <= LOOKED_AT_NBYTES ||
            (!f->shared && f->keys_estimated));
}

void filter_reset_room(perhaps_filter *f)
{
    uint64_t limit = f->body.geometry.key_limit;
    f->full_at = UINT64_MAX;
    f->room_until = !is_looked_at(f) ? limit : f->keys_estimated ? 0 : limit / 2;
}

/* Returns how many keys may be added to 'keys', when the fpr is 'rate', before it must be
 * computed again: a third of the way (on a logarithmic scale) to where it may come to the asked
 * one.  With k bits a key the fpr of a Bloom filter rises at most with the k-th power of the
 * number of keys.  Not more than a third, since the fpr may rise by more than its mean where
 * one line causes much of it. */
static double third_of_growth(const perhaps_filter *f, double keys, double rate)
{
    struct picking m;
    f->kind->compares->picking(&f->body.geometry, &m);
    const double k = m.cells * m.chance;
    return fmax(1, keys * (pow(f->body.geometry.fpr / rate, 1 / (3 * k)) - 1)); /* or inf */
}

/* Returns at how many keys the fpr must be computed again, when it is 'rate' with 'keys' keys:
 * after a third of the growth; the key limit, if that is nearer; but half of the way to the
 * limit at most before. */
static uint64_t next_look(const perhaps_filter *f, uint64_t keys, double rate)
{
    const double left = (double)(f->body.geometry.key_limit - keys);
    const double third = third_of_growth(f, (double)keys, rate);
    if (third >= left)
        return f->body.geometry.key_limit;
    return keys + (uint64_t)fmax(1, fmin(left / 2, third));
}

bool filter_counts_twice(const perhaps_filter *f)
{
    return f->shared && f->kind->rate_with && !f->counts_once &&
           !(f->body.writers && f->loops->one_line);
}

bool filter_has_room(perhaps_filter *f, const struct keyhash *key)
{
    uint64_t keys = counter_get(&f->counters->keys), limit = f->body.geometry.key_limit;
    if (keys == counter_get(&f->full_at))
        return false;
    if (keys >= limit)
        return false;
    if (keys < counter_get(&f->room_until) || !is_looked_at(f))
        return true;
    double rate = f->kind->rate_with(f, key);
    bool room = rate <= f->body.geometry.fpr;
    uint64_t next = room ? next_look(f, keys, rate) : keys;
    __atomic_store_n(&f->room_until, next, __ATOMIC_RELAXED);
    if (!room)
        __atomic_store_n(&f->full_at, keys, __ATOMIC_RELAXED);
    return room;
}

/* Returns whether the bits show, beyond the error of chance, that a filter has all the keys
 * that it was planned for. */
static bool holds_capacity(struct perhaps_estimate keys, const perhaps_filter *f)
{
    return keys.value - SIZING_DEVIATIONS * keys.error > (double)f->body.geometry.capacity;
}

/* To be called where a count that is an estimate has come to the key limit.  The bits decide:
 * if they show neither that all keys are there nor that the fpr is not kept with this one,
 * takes the count down to what they tell, and at least by as many keys as may be added before
 * the next look.  Returns whether it is lower now. */
static bool recount(perhaps_filter *f, const struct keyhash *key)
{
    const double limit = (double)f->body.geometry.key_limit;
    uint64_t keys = counter_get(&f->counters->keys);
    const bool estimated = __atomic_load_n(&f->keys_estimated, __ATOMIC_RELAXED) ||
                           filter_counts_twice(f); /* as other processes may have done */
    if (!estimated || keys == counter_get(&f->full_at))
        return false;
    if (keys < f->body.geometry.key_limit)
        return true; /* another process did */
    const struct perhaps_estimate there = filter_estimate(f, UINT64_MAX);
    const double rate = f->kind->rate_with(f, key);
    if (rate > f->body.geometry.fpr || holds_capacity(there, f)) {
        __atomic_store_n(&f->full_at, keys, __ATOMIC_RELAXED);
        return false;
    }
    const double room = fmin(third_of_growth(f, limit, rate), limit);
    uint64_t fewer =
        (uint64_t)fmin(f->kind->counted(&f->body.geometry, there.value), limit - room);
    if (fewer < keys) /* unless other processes have counted since */
        __atomic_compare_exchange_n(&f->counters->keys, &keys, fewer, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    if (is_looked_at(f))
        __atomic_store_n(&f->room_until, fewer, __ATOMIC_RELAXED);
    return true;
}

/* ---- Add and remove --------------------------------------------------------------------- */

/* Counts and adds one key.  A key that is there already, in a kind that stores no copies,
 * changes nothing: adding it succeeds even at the limit, and is not counted. */
static int add_counted(perhaps_filter *f, const struct keyhash *key, bool unless_present,
                       bool *answer)
{
    bool stores_copies = f->removes && !unless_present;
    size_t added;
    if (!stores_copies && f->kind->contains(f, key, key, 1, answer))
        return 0;
    do /* until it is counted: other processes may take the room meanwhile */
        if (!filter_has_room(f, key))
            return PERHAPS_ERR_FULL;
    while (!reserve_keys(f, 1, 0));
    int error = f->kind->add(f, key, key, 1, unless_present, answer, &added);
    if (error || *answer)
        counter_take(f, &f->counters->keys, 1);
    else
        note_count(f);
    return error;
}

/* Counts and adds one key near the limit; in a shared filter one thread at a time.  Otherwise,
 * if several threads add the same key, one could take the last room and another be refused.
 * Other threads may hold room that they will give back: so a key is refused, or the keys are
 * counted again, only if none did during the try. */
static int add_near_limit(perhaps_filter *f, const struct keyhash *key, bool unless_present,
                          bool *answer)
{
    for (;;) {
        const struct holding before = holding_look(f);
        if (f->shared)
            lock_take(&f->limit_lock);
        filter_settle(f);
        int error = add_counted(f, key, unless_present, answer);
        const bool sure = holding_is_over(f, before);
        const bool again = error == PERHAPS_ERR_FULL && (!sure || recount(f, key));
        if (f->shared)
            lock_release(&f->limit_lock);
        if (!again)
            return error;
        if (!sure)
            thread_yield();
    }
}

static size_t count_true(const bool *answer, size_t n)
{
    size_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) /* the highest byte of the product is the sum of 8 bytes */
        count += (load64(answer + i) * UINT64_C(0x0101010101010101)) >> 56;
    for (; i < n; i++)
        count += answer[i];
    return count;
}

/* Counts keys before it adds them, so that no two threads pass the limit together, and then
 * takes back the count of those that were there already.  Sets *added to how many it added:
 * none near the limit. */
static int add_reserved(perhaps_filter *f, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool unless_present,
                        bool *answer, size_t *added)
{
    int error = 0;
    const bool holds = f->shared && f->body.geometry.key_limit < KEYS_UNLIMITED;
    *added = 0;
    if (holds)
        holding_begin(f);
    const size_t reserved = reserve_keys(f, n, SHARED_MARGIN);
    if (reserved) {
        error = f->kind->add(f, keys, ahead, reserved, unless_present, answer, added);
        size_t stored = *added - count_true(answer, *added);
        if (stored)
            note_count(f);
        counter_take(f, &f->counters->keys, reserved - stored);
    }
    if (holds)
        holding_end(f);
    return error;
}

/* Threads near the limit begin nothing that others would wait for. */
static bool may_reserve(const perhaps_filter *f)
{
    return !f->shared || counter_get(&f->counters->keys) < shared_room_until(f);
}

/* A set has no copies to refuse: crafted keys crowd it then. */
static ALWAYS_INLINE int add_hashed(perhaps_filter *f, const struct keyhash *keys,
                                    const struct keyhash *ahead, size_t n, bool unless_present,
                                    bool *answer, size_t *done)
{
    int error = 0;
    unless_present |= f->is_set;
    *done = 0;
    while (*done < n && !error) {
        size_t at = *done, added = 0;
        if (may_reserve(f))
            error = add_reserved(f, keys + at, ahead + at, n - at, unless_present, answer + at,
                                 &added);
        if (!error && !added) {
            error = add_near_limit(f, keys + at, unless_present, answer + at);
            added = !error;
        }
        *done += added;
    }
    return error == PERHAPS_ERR_COPIES && f->is_set ? PERHAPS_ERR_FULL : error;
}

int filter_add_hashed(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done)
{
    return add_hashed(f, keys, ahead, n, unless_present, answer, done);
}

int filter_add_keys(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                    size_t n, bool unless_present, bool *answer, size_t *done)
{
    int error = add_hashed(f, keys, ahead, n, unless_present, answer, done);
    if (error) {
        answer[*done] = false;
        if (error != PERHAPS_ERR_ARGUMENT) /* such a key is refused, as one that has no hash */
            counter_add(f, &f->counters->failed_adds, 1);
    }
    return error;
}

size_t filter_remove_hashed(perhaps_filter *f, const struct keyhash *keys,
                            const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t removed = f->kind->remove(f, keys, ahead, n, answer);
    counter_take(f, &f->counters->keys, removed);
    return removed;
}

size_t filter_remove_keys(perhaps_filter *f, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t removed = filter_remove_hashed(f, keys, ahead, n, answer);
    counter_add(f, &f->counters->unmatched_removals, n - removed);
    return removed;
}

/* ---- Unite ------------------------------------------------------------------------------ */

/* A large body is sampled first, which is true to a few percent.  Only if the asked fpr is
 * nearer than that, all of the body is read. */
bool filter_keeps_rate(const perhaps_filter *f)
{
    const double near = 0.1;
    double asked = f->body.geometry.fpr, rate = f->kind->measure(f, SAMPLE_NBYTES).fpr;
    if (fabs(rate - asked) <= near * asked)
        rate = f->kind->measure(f, UINT64_MAX).fpr;
    return rate <= asked;
}

int filter_unite(perhaps_filter *f, const perhaps_filter *other)
{
    int error = f->kind->merge(f, other);
    f->keys_estimated = f->kind->rate_with != NULL;
    if (!error && !f->kind->composite && !filter_keeps_rate(f))
        error = PERHAPS_ERR_FULL;
    return error;
}

/* ---- Operations in which the loops of a kind do all the work ---------------------------- */

void loops_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    f->loops->prefetch(&f->body, keys, n);
}

size_t loops_contain(const perhaps_filter *f, const struct keyhash *keys,
                     const struct keyhash *ahead, size_t n, bool *answer)
{
    return f->loops->contains(&f->body, keys, ahead, n, answer);
}

uint64_t loops_count(const perhaps_filter *f, const struct keyhash *key)
{
    return f->loops->count_one(&f->body, *key);
}

size_t loops_add_in_steps(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                          bool *answer)
{
    enum { STEP = 64 };
    size_t present = 0;
    f->loops->prefetch(&f->body, keys, n < STEP ? n : STEP);
    for (size_t at = 0; at < n; at += STEP) {
        size_t left = n - at, now = left < STEP ? left : STEP;
        const struct keyhash *ahead = keys + at + now;
        if (left < now + STEP) { /* too few for the loop */
            f->loops->prefetch(&f->body, ahead, left - now);
            ahead = keys + at;
        }
        present += f->loops->add(&f->body, keys + at, ahead, now, answer + at);
    }
    return present;
}
