/* checkpoint.c - saves a live file anew, and begins a new journal.
 *
 *     1  all records up to number S are written; the filter is copied as it is then
 *     2  the journal is synced, the copy is saved beside F and renamed to F: it has S
 *     3  what was recorded meanwhile is copied from the old journal to a new one, which begins
 *        with S + 1, is synced, and renamed to F.journal
 *
 * After a crash between 2 and 3 the old journal tells of records that F has: their numbers say
 * so, and they are not done again.  At every moment F.journal has all records that F lacks. */
#include <errno.h>
#include <string.h>

#include "../base/memory.h"
#include "record.h"

/* ---- The new journal --------------------------------------------------------------------- */

/* Copies the bytes of a journal from 'at' to before 'end', to 'to' in the other one. */
static int copy_frames(const struct journal *j, int fd, uint64_t at, uint64_t end, uint64_t to)
{
    const uint64_t piece = 1 << 20;
    uint8_t *bytes = allocate(&j->allocator, piece);
    int error = bytes ? 0 : PERHAPS_ERR_MEMORY;
    for (uint64_t n; at < end && !error; at += n, to += n) {
        n = end - at < piece ? end - at : piece;
        error = read_at(j->fd, bytes, n, at);
        if (!error)
            error = write_at(fd, bytes, n, to);
    }
    release(&j->allocator, bytes, piece);
    return error;
}

/* Opens the new journal, for those who may read and write the file, locks it, and writes its
 * header. */
static int begin_journal(const struct journal *j, struct draft *draft,
                         const struct journal_begin *begin)
{
    uint8_t header[JOURNAL_HEADER_NBYTES];
    struct file_info file;
    if (draft_open(draft, j->beside) || look_at_path(j->path, &file) ||
        give_owner(draft->fd, &file) || lock_alone(draft->fd))
        return PERHAPS_ERR_IO;
    journal_header(header, begin);
    return write_at(draft->fd, header, sizeof header, 0);
}

/* Puts the new journal, which has the old one's bytes from 'tail' to before 'copied', in place
 * of the old one. */
static int exchange(struct journal *j, struct draft *draft, uint64_t tail, uint64_t copied)
{
    while (j->writing || j->syncing)
        condition_wait(&j->moved, &j->lock);
    if (j->failed)
        return journal_broken(j);
    uint64_t shift = tail - JOURNAL_HEADER_NBYTES;
    int error = copy_frames(j, draft->fd, copied, j->end, copied - shift);
    if (!error)
        error = draft_finish(draft, j->beside, false);
    if (error)
        return error;
    close_file(j->fd); /* and with it the lock of a file that has no name any more */
    j->fd = draft->fd;
    j->end = j->reserved = j->end - shift;
    j->synced = j->written;
    /* otherwise the old journal may be found again after a crash, without later records */
    return sync_folder(draft->folder) ? journal_broke(j) : 0;
}

/* Begins a journal with this header, whose first record is where 'tail' is in the old one. */
static int renew(struct journal *j, const struct journal_begin *begin, uint64_t tail,
                 bool whole)
{
    struct draft draft;
    int error = begin_journal(j, &draft, begin), old = j->fd;
    uint64_t copied = tail;
    for (int i = 0; i < 8 && !whole && !error; i++) { /* most of it while others record */
        uint64_t end = j->writing ? copied : j->end;
        mutex_release(&j->lock);
        error = copy_frames(j, draft.fd, copied, end, JOURNAL_HEADER_NBYTES + copied - tail);
        mutex_take(&j->lock);
        copied = end;
    }
    if (!error)
        error = exchange(j, &draft, tail, copied);
    if (error && j->fd == old)
        draft_failed(&draft);
    return error;
}

int journal_copy(struct journal *j, const struct journal_begin *begin)
{
    return renew(j, begin, JOURNAL_HEADER_NBYTES, true);
}

/* ---- The file ---------------------------------------------------------------------------- */

/* Saves the filter or its copy, which has the records up to j->copied.  Damaged pages must not
 * get new checksums. */
static int save(struct journal *j, const perhaps_filter *f)
{
    const struct content content = { .f = f, .point = &j->copied };
    int error = check_all_pages(j->filter, true);
    return error ? error : content_put(&content, j->path);
}

/* Syncs the records up to j->copied without the lock, and saves the copy.  Otherwise a crash
 * could leave a journal that lacks some of them, and has later ones. */
static int save_copy(struct journal *j, const perhaps_filter *copy)
{
    int error = journal_sync_to(j, j->copied.sequence);
    mutex_release(&j->lock);
    if (!error)
        error = save(j, copy);
    int reason = errno;
    mutex_take(&j->lock);
    errno = reason;
    return error;
}

/* Notes how it ended. */
static int ended(struct journal *j, int error)
{
    j->reason = errno;
    j->error = error;
    j->try_at = j->error ? j->end + j->limit / 4 : j->limit;
    j->saving = false;
    condition_wake(&j->moved);
    errno = j->reason;
    return j->error;
}

/* Begins a new journal behind the file that was saved as j->copied, unless that failed; the
 * file may have its name all the same.  'tail' is where later records begin in the old one. */
static int renew_behind(struct journal *j, int error, uint64_t tail, bool whole)
{
    const struct journal_begin begin = { .id = j->id,
                                         .first = j->copied.sequence + 1,
                                         .branch = j->copied.branch };
    if (!error || file_has_point(j->path, &j->copied, &j->copied))
        j->point = j->copied; /* whatever becomes of the journal */
    return error ? error : renew(j, &begin, tail, whole);
}

/* Notes what the file will have that is saved next. */
static void note_point(struct journal *j)
{
    j->copied = (struct journal_point){ .branch = j->branch, .sequence = j->sequence };
}

/* Saves the filter itself, and keeps the lock all the time. */
static int save_whole(struct journal *j)
{
    int error = journal_sync_whole(j);
    if (error)
        return ended(j, error);
    note_point(j);
    return ended(j, renew_behind(j, save(j, j->filter), j->end, true));
}

int checkpoint_other(struct journal *j, const struct content *content)
{
    struct content live = *content;
    live.point = &j->copied;
    mutex_take(&j->lock);
    journal_begin_branch(j);
    j->closes = true;
    int error = journal_sync_whole(j);
    j->closes = false;
    if (!error) {
        note_point(j);
        error = renew_behind(j, content_put(&live, j->path), j->end, true);
    }
    int reason = errno;
    mutex_release(&j->lock);
    errno = reason;
    return error;
}

/* ---- When -------------------------------------------------------------------------------- */

static void *save_in_thread(void *journal)
{
    struct journal *j = journal;
    mutex_take(&j->lock);
    int error = renew_behind(j, save_copy(j, j->copy), j->tail, false);
    perhaps_filter *copy = j->copy;
    j->copy = NULL;
    ended(j, error);
    mutex_release(&j->lock);
    perhaps_free(copy);
    return NULL;
}

/* Joins a thread that has come to its end, or soon will. */
static void join(struct journal *j)
{
    if (!j->has_thread)
        return;
    j->has_thread = false;
    struct thread thread = j->thread;
    mutex_release(&j->lock);
    thread_join(&thread);
    mutex_take(&j->lock);
}

void checkpoint_wait(struct journal *j)
{
    while (j->saving)
        condition_wait(&j->moved, &j->lock);
    join(j);
}

int checkpoint_now(struct journal *j)
{
    checkpoint_wait(j);
    while (j->saving) /* another one was waiting, too */
        condition_wait(&j->moved, &j->lock);
    if (j->failed)
        return journal_broken(j);
    j->saving = true;
    return save_whole(j);
}

/* Writes all records, copies the filter as it is now, and saves the copy in a thread: later
 * records are not in it, even if they come before the thread does anything. */
static void begin_to_save(struct journal *j)
{
    const perhaps_filter *f = j->filter; /* save() checks its pages */
    j->saving = true;
    int error = journal_write_frame(j, true);
    if (!error)
        error = filter_copy(f, &f->hasher, &f->allocator, false, &j->copy);
    note_point(j);
    j->tail = j->end;
    j->has_thread = !error && thread_start(&j->thread, save_in_thread, j);
    if (j->has_thread)
        return;
    perhaps_free(j->copy);
    j->copy = NULL;
    if (error && error != PERHAPS_ERR_MEMORY)
        ended(j, error);
    else
        save_whole(j);
}

static bool is_due(const struct journal *j)
{
    return j->end >= j->try_at && !j->saving && !j->failed;
}

int checkpoint_if_due(struct journal *j)
{
    while (is_due(j) && j->has_thread) /* meanwhile another one may begin and end */
        join(j);
    if (is_due(j))
        begin_to_save(j);
    if (j->end / 2 < j->limit)
        return 0;
    while (j->saving)
        condition_wait(&j->moved, &j->lock);
    return j->end / 2 < j->limit ? 0 : checkpoint_now(j);
}
