/* commit.c - the records of a live file, to the disk.
 *
 * Records gather in a frame in memory.  The frame is written when it is full, or by the thread
 * that syncs; meanwhile others fill a second one.  A thread that finds another one syncing
 * waits for it, and often finds that its records went along (group commit).
 *
 * One lock keeps all in order: records are numbered in the order in which the filter was
 * changed.  It is not held while the system writes a frame or syncs.
 *
 * Invariants: synced <= written <= sequence; the records written+1 .. sequence are in the
 * active frame, or in the one that is being written; the disk has room for the active frame. */
#include <errno.h>

#include "record.h"

int journal_broken(const struct journal *j)
{
    errno = j->failed;
    return j->lost ? PERHAPS_ERR_JOURNAL : PERHAPS_ERR_IO;
}

int journal_broke(struct journal *j)
{
    if (!j->failed)
        j->failed = errno;
    condition_wake(&j->moved);
    return journal_broken(j);
}

/* Looks whether what is on the disk will be found again. */
static int look_beside(struct journal *j)
{
    if (journal_is_beside(j->path, j->beside, j->fd, &j->point, &j->copied))
        return 0;
    j->lost = true;
    errno = ENOENT;
    return journal_broke(j);
}

void journal_begin_branch(struct journal *j)
{
    if (j->branch != j->own)
        frame_append_branch(&j->frames[j->active], j->own);
    j->branch = j->own;
}

int journal_write_frame(struct journal *j, bool whole)
{
    while (j->writing)
        condition_wait(&j->moved, &j->lock);
    struct frame *frame = &j->frames[j->active];
    if (j->failed)
        return journal_broken(j);
    if (!frame->records && !j->closes)
        return 0;
    const uint64_t last = j->sequence, at = j->end;
    const size_t nbytes = frame_seal(frame, j->id, last - frame->records + 1, j->synced);
    j->told = j->synced;
    j->active ^= 1;
    frame_begin(&j->frames[j->active]);
    j->end += nbytes;
    j->writing = true;
    if (!whole)
        mutex_release(&j->lock);
    int error = write_at(j->fd, frame->bytes, nbytes, at), reason = errno;
    if (!whole)
        mutex_take(&j->lock);
    j->writing = false;
    if (!error)
        j->written = last;
    condition_wake(&j->moved);
    errno = reason;
    return error ? journal_broke(j) : 0;
}

int journal_sync_to(struct journal *j, uint64_t sequence)
{
    if (!j->failed && j->synced >= sequence)
        return look_beside(j);
    while (!j->failed && j->synced < sequence) {
        if (j->syncing) {
            condition_wait(&j->moved, &j->lock);
            continue;
        }
        j->syncing = true;
        int failed = 0, reason = 0;
        if (j->written < sequence)
            failed = journal_write_frame(j, false);
        uint64_t written = j->written;
        if (!failed) {
            mutex_release(&j->lock);
            failed = sync_data(j->fd);
            reason = errno;
            mutex_take(&j->lock);
            errno = reason;
            if (failed)
                journal_broke(j);
            else if (!look_beside(j) && j->synced < written)
                j->synced = written;
        }
        j->syncing = false;
        condition_wake(&j->moved);
    }
    return j->failed ? journal_broken(j) : 0;
}

int journal_sync_whole(struct journal *j)
{
    while (j->writing || j->syncing)
        condition_wait(&j->moved, &j->lock);
    int error = journal_write_frame(j, true);
    if (!error && sync_data(j->fd))
        error = journal_broke(j);
    if (!error)
        error = look_beside(j);
    if (!error)
        j->synced = j->written;
    return error;
}
