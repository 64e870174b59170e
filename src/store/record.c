/* record.c - what is done to the filter of a live file goes to its journal. */
#include "record.h"

#include <errno.h>

#include "../base/bytes.h"
#include "../base/memory.h"

/* ---- Room ------------------------------------------------------------------------------- */

/* Reserves room on the disk up to there.  Returns 0, also where the file system cannot do that;
 * or PERHAPS_ERR_IO. */
static int reserve(struct journal *j, uint64_t end)
{
    const uint64_t least = 64 << 10, most = 16 << 20;
    uint64_t ahead = end / 4 < least ? least : end / 4 > most ? most : end / 4;
    for (uint64_t more = ahead; end > j->reserved;) {
        uint64_t to = round_up(end + more, HEADER_NBYTES);
        int error = reserve_file(j->fd, j->reserved, to - j->reserved);
        if (!error)
            j->reserved = to;
        else if (error == PERHAPS_ERR_UNSUPPORTED)
            j->reserved = UINT64_MAX;
        else if (errno == ENOSPC && more)
            more = 0;
        else
            return error;
    }
    return 0;
}

/* Makes room for n records more, in memory and on the disk.  Saves the file anew where the
 * journal has become too large.  Returns 0; or an error, and then the filter may not change. */
static int room_for_deeds(struct journal *j, size_t n)
{
    const size_t of_branch =
        j->branch == j->own ? 0 : 2; /* its run takes less than two records */
    const struct mapping *m = j->filter->mapping;
    if (j->mapped_from < UINT64_MAX &&
        pays_in_memory(j->filter, j->sequence - j->mapped_from)) {
        map_to_pages(m->file, m->file_nbytes);
        j->mapped_from = UINT64_MAX;
    }
    int error = j->holds ? 0 : checkpoint_if_due(j);
    while (!error && !frame_has_room(&j->frames[j->active], n + of_branch))
        error = journal_write_frame(j, false);
    if (!error && j->failed)
        error = journal_broken(j);
    if (!error && n > RECORD_NUMBER_MOST - j->sequence) {
        errno = EFBIG;
        error = PERHAPS_ERR_IO;
    }
    if (error)
        return error;
    uint64_t more =
        j->frames[j->active].nbytes + 2 * RUN_HEADER_NBYTES + (n + 1) * RECORD_NBYTES_MOST;
    return reserve(j, j->end + round_up(more, SECTOR_NBYTES));
}

/* ---- What is done to the filter ---------------------------------------------------------- */

/* Appends records to the active frame, as frame_append() does. */
static size_t append(struct journal *j, enum deed deed, const struct keyhash *keys, size_t n,
                     const bool *skip)
{
    struct frame *frame = &j->frames[j->active];
    const struct frame before = *frame;
    const uint64_t branch = j->branch;
    journal_begin_branch(j);
    size_t appended = frame_append(frame, deed, keys, n, skip);
    if (!appended && branch != j->branch) { /* then it begins with a later record */
        *frame = before;
        j->branch = branch;
    }
    return appended;
}

static int record_add(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done)
{
    struct journal *j = recording_of(f);
    const enum deed deed = unless_present ? DEED_ADD_ABSENT : DEED_ADD;
    *done = 0;
    mutex_take(&j->lock);
    int error = room_for_deeds(j, n);
    if (!error) {
        error = filter_add_keys(f, keys, ahead, n, unless_present, answer, done);
        /* a window may have rotated for a key that was there, or that was refused */
        bool all = f->kind->forgets;
        j->sequence +=
            append(j, deed, keys, all ? *done + (error != 0) : *done, all ? NULL : answer);
    }
    mutex_release(&j->lock);
    return error;
}

/* A key that was not found is recorded like one that was added before: it is skipped where the
 * answer is true, so the answers are turned round meanwhile. */
static int record_remove(perhaps_filter *f, const struct keyhash *keys,
                         const struct keyhash *ahead, size_t n, bool *answer, size_t *removed)
{
    struct journal *j = recording_of(f);
    *removed = 0;
    mutex_take(&j->lock);
    int error = room_for_deeds(j, n);
    if (!error) {
        *removed = filter_remove_keys(f, keys, ahead, n, answer);
        for (size_t i = 0; i < n; i++)
            answer[i] = !answer[i];
        j->sequence += append(j, DEED_REMOVE, keys, n, answer);
        for (size_t i = 0; i < n; i++)
            answer[i] = !answer[i];
    }
    mutex_release(&j->lock);
    return error;
}

/* A window that knows the time changes only when it must forget something. */
static int record_change(perhaps_filter *f, enum deed deed, uint64_t time)
{
    struct journal *j = recording_of(f);
    const struct keyhash record = { .place = time };
    mutex_take(&j->lock);
    int error = room_for_deeds(j, 1);
    const bool moves = deed != DEED_ADVANCE || !j->has_time || f->kind->forgets->gone(f, time);
    if (!error)
        error = filter_change(f, deed, time);
    if (!error)
        j->has_time = deed == DEED_ADVANCE || (j->has_time && deed != DEED_CLEAR);
    if (!error && moves)
        j->sequence += append(j, deed, &record, 1, NULL);
    mutex_release(&j->lock);
    return error;
}

static int record_sync(perhaps_filter *f)
{
    struct journal *j = recording_of(f);
    mutex_take(&j->lock);
    int error = journal_sync_to(j, j->sequence);
    if (!error && j->holds)
        error = checkpoint_if_due(j);
    int reason = errno;
    mutex_release(&j->lock);
    errno = reason;
    return error;
}

static int record_checkpoint(perhaps_filter *f)
{
    struct journal *j = recording_of(f);
    mutex_take(&j->lock);
    int error = checkpoint_now(j), reason = errno;
    mutex_release(&j->lock);
    errno = reason;
    return error;
}

static void record_tell(const perhaps_filter *f, struct perhaps_journal *told)
{
    struct journal *j = recording_of(f);
    mutex_take(&j->lock);
    const struct frame *frame = &j->frames[j->active];
    const size_t each = frame->record_nbytes + RUN_HEADER_NBYTES;
    *told = (struct perhaps_journal){ .nbytes = j->end,
                                      .room = (frame->room - frame->nbytes) / each -
                                              (j->branch != j->own),
                                      .records = j->sequence - j->point.sequence,
                                      .last = j->sequence,
                                      .synced = j->synced };
    mutex_release(&j->lock);
}

/* ---- The end ----------------------------------------------------------------------------- */

/* Writes and syncs all, and then a frame without records, which tells that this was done: if
 * the last records are damaged later, that cannot be taken for a crash.  Gives back the room
 * that was reserved. */
static void finish(struct journal *j)
{
    mutex_take(&j->lock);
    checkpoint_wait(j);
    if (j->holds) { /* what perhaps_sync() was not asked for is not to be remembered */
        frame_begin(&j->frames[j->active]);
        j->sequence = j->written;
    }
    if (!journal_sync_to(j, j->sequence) && j->told < j->sequence) {
        j->closes = true;
        journal_write_frame(j, true);
    }
    if (!j->failed && j->reserved > j->end && j->reserved < UINT64_MAX &&
        cut_file(j->fd, j->end))
        journal_broke(j);
    mutex_release(&j->lock);
}

void journal_release(struct journal *j)
{
    const struct perhaps_allocator allocator = j->allocator;
    for (int i = 0; i < 2; i++)
        release(&allocator, j->frames[i].bytes, j->frames[i].room);
    if (j->fd >= 0)
        close_file(j->fd);
    /* Else threads that a forked child does not have may be waiting. */
    if (j->process == process_self()) {
        mutex_end(&j->lock);
        condition_end(&j->moved);
    }
    release(&allocator, j, sizeof *j);
}

/* A child that was forked may not write: its parent does.  Its copy of the lock may be held by
 * a thread that it does not have. */
static void record_close(perhaps_filter *f)
{
    struct journal *j = recording_of(f);
    int saved = errno;
    if (j->process == process_self()) {
        finish(j);
        unlock_file(j->fd); /* closing would not: a child may keep the file open */
    }
    journal_release(j);
    errno = saved;
}

const struct recorder recorder = { .changer = { .add = record_add,
                                                .remove = record_remove,
                                                .change = record_change,
                                                .close = record_close,
                                                .locked = true },
                                   .sync = record_sync,
                                   .checkpoint = record_checkpoint,
                                   .tell = record_tell };

/* ---- The public calls -------------------------------------------------------------------- */

int perhaps_sync(perhaps_filter *f)
{
    const struct recorder *r = recorder_of(f);
    return r && r->sync ? r->sync(f) : in_place_sync(f);
}

int perhaps_checkpoint(perhaps_filter *f)
{
    const struct recorder *r = recorder_of(f);
    return r && r->checkpoint ? r->checkpoint(f) : PERHAPS_ERR_UNSUPPORTED;
}

int perhaps_journal_of(const perhaps_filter *f, struct perhaps_journal *journal)
{
    *journal = (struct perhaps_journal){ 0 };
    if (!recorder_of(f))
        return PERHAPS_ERR_UNSUPPORTED;
    recorder_of(f)->tell(f, journal);
    return 0;
}
