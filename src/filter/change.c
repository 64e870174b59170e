/* change.c - the calls that change a filter as a whole, the changer of filters without a
 * journal, and what a journal tells to do once more. */
#include "counters.h"
#include <perhaps_window.h>

void filter_clear(perhaps_filter *f)
{
    filter_settle(f);
    if (f->kind->clear)
        f->kind->clear(f);
    else
        memset(f->body.bytes, 0, f->body.geometry.body_nbytes);
    *f->counters = (struct counters){ 0 };
    f->keys_estimated = false;
    filter_reset_room(f);
}

int filter_change(perhaps_filter *f, enum deed deed, uint64_t time)
{
    if (deed == DEED_CLEAR) {
        filter_clear(f);
        return 0;
    }
    if (!f->kind->forgets)
        return PERHAPS_ERR_UNSUPPORTED;
    if (deed == DEED_ADVANCE)
        return f->kind->forgets->advance(f, time);
    if (deed == DEED_SET_BACK)
        return f->kind->forgets->set_back(f, time);
    f->kind->forgets->rotate(f);
    return 0;
}

static int remove_plainly(perhaps_filter *f, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer, size_t *removed)
{
    *removed = filter_remove_keys(f, keys, ahead, n, answer);
    return 0;
}

const struct changer filter_plain = { .add = filter_add_keys,
                                      .remove = remove_plainly,
                                      .change = filter_change };

int perhaps_clear(perhaps_filter *f)
{
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    return f->changer->change(f, DEED_CLEAR, 0);
}

/* ---- Windows --------------------------------------------------------------------------- */

static int forget(perhaps_filter *f, enum deed deed, uint64_t now)
{
    if (!f->kind->forgets)
        return PERHAPS_ERR_UNSUPPORTED;
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    return f->changer->change(f, deed, now);
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

/* ---- Done once more, as a journal tells ------------------------------------------------- */

/* Counts keys, adds them, and takes back the count of those that were there, as
 * filter_add_hashed() does: a window that forgets keys which this call has added takes them off
 * the count, too.  What a window refused may have rotated it,
 * so its journal has that key, too, and it is refused again. */
static int add_again(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                     size_t n, bool unless_present)
{
    bool answer[BATCH_MOST];
    for (size_t at = 0, done; at < n; at += done) {
        counter_add(f, &f->counters->keys, n - at);
        int error =
            f->kind->add(f, keys + at, ahead + at, n - at, unless_present, answer, &done);
        uint64_t stored = done;
        for (size_t i = 0; i < done; i++)
            stored -= answer[i];
        counter_take(f, &f->counters->keys, n - at - stored);
        if (error && !f->kind->forgets)
            return error;
        done += error != 0;
    }
    return 0;
}

/* As in the public calls, the keys of a batch are prefetched while the one before is added. */
static int add_all_again(perhaps_filter *f, const struct keyhash *keys, size_t n,
                         bool unless_present)
{
    const size_t step = f->body.writers && f->kind->sorts_shared ? BATCH_MOST : BATCH_STEP;
    int error = 0;
    for (size_t at = 0, now; at < n && !error; at += now) {
        now = n - at < step ? n - at : step;
        const struct keyhash *next = keys + at + now;
        if (at == 0)
            f->kind->prefetch(f, keys, now);
        error =
            add_again(f, keys + at, n - at - now < now ? keys + at : next, now, unless_present);
    }
    return error == PERHAPS_ERR_MEMORY || !error ? error : PERHAPS_ERR_DAMAGED;
}

static void remove_again(perhaps_filter *f, const struct keyhash *keys, size_t n)
{
    bool answer[BATCH_STEP];
    for (size_t at = 0, now; at < n; at += now) {
        now = n - at < BATCH_STEP ? n - at : BATCH_STEP;
        filter_remove_hashed(f, keys + at, keys + at, now, answer);
    }
}

int filter_redo(perhaps_filter *f, enum deed deed, const struct keyhash *keys, size_t n)
{
    int error = 0;
    switch (deed) {
    case DEED_ADD:
    case DEED_ADD_ABSENT:
        return f->kind->add ? add_all_again(f, keys, n, f->is_set || deed == DEED_ADD_ABSENT)
                            : PERHAPS_ERR_DAMAGED;
    case DEED_REMOVE:
        if (!f->removes)
            return PERHAPS_ERR_DAMAGED;
        remove_again(f, keys, n);
        return 0;
    case DEED_CLEAR:
    case DEED_ROTATE:
    case DEED_ADVANCE:
    case DEED_SET_BACK:
        for (size_t i = 0; i < n && !error; i++)
            error = filter_change(f, deed, keys[i].place);
        return error ? PERHAPS_ERR_DAMAGED : 0;
    case DEED_BRANCH:
        break;
    }
    return PERHAPS_ERR_DAMAGED;
}
