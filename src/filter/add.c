/* add.c - hashed keys into a filter, never beyond its key limit, and counted.
 *
 * At every moment at which a filter takes keys its rate is at most what was asked.  The key
 * limit sees to it for all seeds but one in 10^9, if keys are what they seem: different, and
 * not crafted to meet in few lines.  In small filters, where it costs little, the rate is
 * looked at as well: at a number of keys it is computed from the bits, and how many keys can be
 * added before it has to be again.
 *
 * Parts of a composite are not looked at.  Crafted keys would make a layer full that has hardly
 * any, and the chain would have to refuse all keys, or to grow for a few. */
#include <math.h>

#include "../base/locks.h"
#include "counters.h"

/* ---- Room ------------------------------------------------------------------------------ */

/* At most 256 lines, which are computed in 50 us: a millisecond while a filter is filled. */
enum { LOOKED_AT_NBYTES = 16 << 10 };

static bool is_looked_at(const perhaps_filter *f)
{
    return f->kind->rate_with && !f->is_part && f->geometry.body_nbytes <= LOOKED_AT_NBYTES;
}

void filter_reset_room(perhaps_filter *f)
{
    uint64_t limit = f->geometry.key_limit;
    f->full_at = UINT64_MAX;
    f->room_until = is_looked_at(f) ? limit / 2 : limit;
}

/* A rate of Bloom filters rises at most as the power of the keys that is the number of a key's
 * bits, of which no plan takes more than 'steps'.  So it may be known to be kept up to the
 * limit.  If not, half of the way to that is taken, or a third of the way to the asked rate:
 * where one line has much of the rate it may rise by more than the mean. */
static uint64_t next_look(const perhaps_filter *f, uint64_t keys, double rate)
{
    const double share = 1.0 / 3, steps = -1.25 * log2(f->geometry.fpr) + 1;
    double left = (double)(f->geometry.key_limit - keys), now = (double)keys;
    double room = pow(f->geometry.fpr / rate, 1 / steps) - 1; /* inf at a rate of 0 */
    if (now * room >= left)
        return f->geometry.key_limit;
    double third = now * (pow(1 + room, share) - 1);
    return keys + (uint64_t)fmax(1, fmin(left / 2, third));
}

bool filter_has_room(perhaps_filter *f, const struct keyhash *key)
{
    uint64_t keys = counter_get(&f->counters->keys), limit = f->geometry.key_limit;
    if (keys >= limit || keys == counter_get(&f->full_at))
        return false;
    if (keys < counter_get(&f->room_until) || !is_looked_at(f))
        return true;
    double rate = f->kind->rate_with(f, key);
    bool room = rate <= f->geometry.fpr;
    uint64_t next = room ? next_look(f, keys, rate) : keys;
    __atomic_store_n(&f->room_until, next, __ATOMIC_RELAXED);
    if (!room)
        __atomic_store_n(&f->full_at, keys, __ATOMIC_RELAXED);
    return room;
}

/* ---- Add and remove --------------------------------------------------------------------- */

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

size_t filter_remove_hashed(perhaps_filter *f, const struct keyhash *keys,
                            const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t removed = f->kind->remove(f, keys, ahead, n, answer);
    counter_take(f, &f->counters->keys, removed);
    return removed;
}

/* ---- What the loops of a kind do alone -------------------------------------------------- */

void loops_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    f->loops.prefetch(f->body, f->geometry.field, keys, n);
}

size_t loops_contain(const perhaps_filter *f, const struct keyhash *keys,
                     const struct keyhash *ahead, size_t n, bool *answer)
{
    return f->loops.contains(f->body, f->geometry.field, keys, ahead, n, answer);
}

int loops_add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
              size_t n, bool unless_present, bool *answer, size_t *done)
{
    (void)unless_present; /* adding what is there changes nothing */
    f->loops.add(f->body, f->geometry.field, keys, ahead, n, answer);
    *done = n;
    return 0;
}
