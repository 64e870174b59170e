/* room.c - whether a filter may take one key more.
 *
 * At every moment at which a filter takes keys its rate is at most what was asked.  The key
 * limit sees to it for all seeds but one in 10^9, if keys are what they seem: different, and
 * not crafted to meet in few lines.  For filters that are small, so that it costs little, it is
 * looked at as well: at a number of keys the rate is computed from the bits, and how many keys
 * can be added before it has to be again.
 *
 * Parts of a composite are not looked at.  Crafted keys would make a layer full that has hardly
 * any, and the chain would have to refuse all keys, or to grow for a few. */
#include <math.h>

#include "counters.h"

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
