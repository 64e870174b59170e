/* recover.c - opens live files: finds the journal, and does what it records. */
#include <errno.h>
#include <string.h>

#include "../base/memory.h"
#include "record.h"

/* Reads the journal of a file with this point, and does what it records. */
static int redo(struct journal_reader *r, int fd, const struct journal_point *point,
                perhaps_filter *f)
{
    int error = journal_begin(r, fd, &f->allocator);
    if (error)
        return error;
    if (r->next > point->sequence + 1)
        return PERHAPS_ERR_JOURNAL; /* the file is older than the journal's first record */
    struct file_info file;
    if (!look_at_fd(fd, &file) && pays_in_memory(f, file.nbytes / record_nbytes(f)))
        map_to_pages(f->mapping->file, f->mapping->file_nbytes);
    return journal_redo(r, f, point);
}

/* ---- To read ----------------------------------------------------------------------------- */

/* A journal that another process may be writing. */
struct follower {
    struct recorder recorder;
    struct journal_reader reader; /* owns its descriptor */
    struct journal_point point;   /* the last record that the file has */
};

static void set_read_only(perhaps_filter *f, bool read_only)
{
    f->read_only = read_only;
    filter_bind(f);
    for (size_t i = 0; i < f->parts->count; i++)
        set_read_only(f->parts->part[i], read_only);
}

static void follower_free(struct follower *follower, const struct perhaps_allocator *allocator)
{
    journal_end(&follower->reader);
    if (follower->reader.fd >= 0)
        close_file(follower->reader.fd);
    release(allocator, follower, sizeof *follower);
}

static struct follower *follower_of(const perhaps_filter *f)
{
    return (struct follower *)f->changer;
}

static void follow_close(perhaps_filter *f)
{
    follower_free(follower_of(f), &f->allocator);
}

static void follow_tell(const perhaps_filter *f, struct perhaps_journal *journal)
{
    const struct follower *follower = follower_of(f);
    const uint64_t last = follower->reader.next - 1;
    *journal = (struct perhaps_journal){ .nbytes = follower->reader.at,
                                         .records = last - follower->point.sequence,
                                         .last = last,
                                         .synced = last };
}

/* Who reads changes nothing: perhaps_add() and the others see that the filter is read-only. */
static const struct recorder following = { .changer = { .close = follow_close },
                                           .tell = follow_tell };

/* Returns whether there is a folder, a pipe or the like, which is not even opened. */
static bool is_something_else(const char *path)
{
    struct file_info file;
    return !look_at_path(path, &file) && file.type != FILE_REGULAR;
}

/* Opens the journal and reads it. */
static int follow(struct follower *follower, const char *path,
                  const struct journal_point *point, perhaps_filter *f)
{
    char file[PATH_NBYTES_MOST], beside[BESIDE_MAX];
    int error = find_journal(path, file, beside);
    if (error)
        return error;
    if (is_something_else(beside))
        return PERHAPS_ERR_JOURNAL;
    int fd = open_at_once(beside, false);
    if (fd < 0)
        return errno == ENOENT ? PERHAPS_ERR_JOURNAL : PERHAPS_ERR_IO;
    follower->reader.fd = fd;
    follower->point = *point;
    error = redo(&follower->reader, fd, point, f);
    journal_end(&follower->reader);
    return error;
}

int journal_follow(perhaps_filter *f, const char *path, const struct journal_point *point)
{
    const bool reads = f->mapping->file;
    struct follower *follower = allocate(&f->allocator, sizeof *follower);
    if (!follower)
        return PERHAPS_ERR_MEMORY;
    follower->reader.fd = -1;
    int error = follow(follower, path, point, f);
    if (error || !reads) {
        follower_free(follower, &f->allocator);
        return error;
    }
    follower->recorder = following;
    f->changer = &follower->recorder.changer;
    set_read_only(f, true);
    return 0;
}

bool journal_is_followed(const perhaps_filter *f)
{
    return f->changer->close == follow_close;
}

bool journal_is_current(const perhaps_filter *f, const char *path)
{
    const struct follower *follower = follower_of(f);
    char file[PATH_NBYTES_MOST], beside[BESIDE_MAX];
    struct file_info here, there;
    return !find_journal(path, file, beside) && !look_at_fd(follower->reader.fd, &here) &&
           !look_at_path(beside, &there) && is_same_file(&here, &there);
}

int journal_catch_up(perhaps_filter *f)
{
    struct follower *follower = follower_of(f);
    set_read_only(f, false);
    int error = journal_redo(&follower->reader, f, &follower->point);
    journal_end(&follower->reader);
    set_read_only(f, true);
    return error;
}

/* ---- To write ---------------------------------------------------------------------------- */

static struct journal *journal_new(const struct perhaps_open_options *options)
{
    const struct perhaps_allocator a = allocator_or_system(options->allocator);
    struct journal *j = allocate(&a, sizeof *j);
    if (!j)
        return NULL;
    j->allocator = a;
    j->fd = -1;
    j->process = process_self();
    mutex_begin(&j->lock);
    condition_begin(&j->moved);
    const uint64_t usual = 1 << 18, asked = options->journal_records, most = 1 << 25;
    const uint64_t records = !asked ? usual : asked < most ? asked : most;
    bool complete = true;
    j->holds = asked != 0;
    for (int i = 0; i < 2; i++) {
        j->frames[i].room =
            round_up(FRAME_HEADER_NBYTES +
                         (records + BATCH_MOST) * (RECORD_NBYTES_MOST + RUN_HEADER_NBYTES),
                     SECTOR_NBYTES); /* frame_seal() pads it */
        j->frames[i].bytes = allocate(&a, j->frames[i].room);
        complete &= j->frames[i].bytes != NULL;
        frame_begin(&j->frames[i]);
    }
    if (complete)
        return j;
    journal_release(j);
    return NULL;
}

/* Sets errno to EEXIST and returns PERHAPS_ERR_IO: what lies at the place of the journal is
 * somebody's. */
static int is_taken(void)
{
    errno = EEXIST;
    return PERHAPS_ERR_IO;
}

/* Opens the journal, if there is one or 'create' is true, and locks it.  Another process may
 * put a new one in its place meanwhile. */
static int lock_journal(struct journal *j, bool create, unsigned mode)
{
    struct file_info here, there;
    for (;;) {
        if (is_something_else(j->beside))
            return perhaps_is_live(j->path) ? PERHAPS_ERR_JOURNAL : is_taken();
        j->fd = create ? open_or_create(j->beside, mode) : open_at_once(j->beside, true);
        if (j->fd < 0)
            return create && errno == ELOOP ? is_taken() : PERHAPS_ERR_IO;
        if (lock_alone(j->fd)) {
            const int reason = errno;
            if (create && reason == ENOLCK) /* nobody can have one here */
                remove_file(j->beside);
            return reason == EWOULDBLOCK ? journal_is_busy() : PERHAPS_ERR_IO;
        }
        if (look_at_fd(j->fd, &here))
            return PERHAPS_ERR_IO;
        if (!look_at_path(j->beside, &there) && is_same_file(&here, &there))
            return 0;
        close_file(j->fd);
    }
}

/* Looks at what lies at the place of the journal of a file that has none.  It may be empty, or
 * what make_live() left when it was cut short.  Anything else stays (EEXIST): if it is a
 * journal, its file was perhaps renamed. */
static int may_replace(int fd, const struct perhaps_allocator *allocator)
{
    const uint8_t *frame = NULL;
    struct journal_reader r;
    struct file_info file;
    size_t nbytes;
    uint64_t first;
    if (look_at_fd(fd, &file))
        return PERHAPS_ERR_IO;
    if (!file.nbytes)
        return 0;
    int error = journal_begin(&r, fd, allocator);
    if (!error)
        error = journal_next(&r, &frame, &nbytes, &first);
    journal_end(&r);
    if (error == PERHAPS_ERR_IO || error == PERHAPS_ERR_MEMORY)
        return error;
    return error || frame || r.header.branch ? is_taken() : 0;
}

bool perhaps_may_become_live(const char *path)
{
    const struct perhaps_allocator allocator = allocator_or_system(NULL);
    char file[PATH_NBYTES_MOST], beside[BESIDE_MAX];
    const int saved = errno;
    bool may = perhaps_is_live(path) || find_place(path, file, beside);
    if (!may && !is_something_else(beside)) {
        int fd = open_at_once(beside, false);
        may = fd < 0 ? is_free(beside) : !may_replace(fd, &allocator);
        if (fd >= 0)
            close_file(fd);
    }
    errno = saved;
    return may;
}

/* Draws a number that nobody else has.  Returns 0 or PERHAPS_ERR_IO. */
static int draw(uint64_t *number)
{
    *number = 0;
    while (!*number)
        if (random_bytes(number, sizeof *number))
            return PERHAPS_ERR_IO;
    return 0;
}

/* Makes a file live: first its journal is there and on the disk, then the file says so.  Until
 * then the journal tells that it is perhaps no file's.  If this fails, there is none. */
static int make_live(struct journal *j, const perhaps_filter *f)
{
    const struct content content = { .f = f, .point = &j->point };
    struct journal_begin begin = { .first = 1 };
    int error = may_replace(j->fd, &j->allocator);
    if (error)
        return error;
    error = check_all_pages(f, true);
    if (!error)
        error = draw(&begin.id);
    j->id = j->point.branch = begin.id;
    j->end = JOURNAL_HEADER_NBYTES;
    if (!error)
        error = journal_copy(j, &begin); /* of no records */
    if (!error)
        error = content_put(&content, j->path);
    int reason = errno;
    if (error && !file_has_point(j->path, &j->point, &j->point))
        remove_file(j->beside);
    errno = reason;
    return error;
}

/* Gives the journal the owner and the mode of the file, which may have changed.  Returns 0,
 * also if that is not permitted; or PERHAPS_ERR_IO. */
static int keep_secret(const struct journal *j)
{
    struct file_info file, own;
    if (look_at_path(j->path, &file) || look_at_fd(j->fd, &own))
        return PERHAPS_ERR_IO;
    const bool same = file.mode == own.mode && file.user == own.user && file.group == own.group;
    return same || !give_owner(j->fd, &file) || errno == EPERM ? 0 : PERHAPS_ERR_IO;
}

/* Continues the journal behind its last record.
 *
 * What no frame says to be on the disk may be in the memory of the system alone: if a sync has
 * failed, the system takes it for written, and never writes it (Rebello et al.: Can
 * Applications Recover from fsync Failures?, ATC 2020).  It would then be missing in front of
 * what is written next.  So the journal is copied, without a last frame that is not whole,
 * unless it is as it was left by perhaps_free(). */
static int resume(struct journal *j, perhaps_filter *f, const struct journal_point *point)
{
    struct journal_reader r;
    struct file_info file;
    int error = redo(&r, j->fd, point, f);
    journal_end(&r);
    if (!error)
        error = draw(&j->own);
    if (!error)
        error = keep_secret(j);
    if (error)
        return error;
    if (look_at_fd(j->fd, &file) || /* of the last frame, zeros may be missing */
        (file.nbytes < r.at && cut_file(j->fd, r.at)))
        return PERHAPS_ERR_IO;
    struct journal_begin begin = r.header;
    begin.branch = journal_first_branch(&begin); /* from now on it is known to be the file's */
    j->point = j->copied = *point;
    j->id = begin.id;
    j->branch = r.branch;
    j->sequence = j->written = j->synced = r.next - 1;
    j->told = r.told > begin.first - 1 ? r.told : begin.first - 1;
    j->mapped_from = j->sequence;
    for (int i = 0; i < 2; i++)
        j->frames[i].record_nbytes = record_nbytes(f);
    j->end = j->reserved = r.at;
    const bool is_closed = j->told == j->sequence && file.nbytes == r.at;
    if (is_closed && r.header.branch && !sync_data(j->fd))
        return 0;
    /* With a zero more it is none that was closed.  If the copy fails, too, the next one to
     * open it must not trust a sync, which succeeds then. */
    if (is_closed)
        cut_file(j->fd, r.at + 1);
    return journal_copy(j, &begin);
}

static void set_limit(struct journal *j, uint64_t asked)
{
    const uint64_t least = 64 << 20;
    struct file_info file;
    j->limit = asked ? asked : least;
    if (!asked && !look_at_path(j->path, &file) && file.nbytes > least)
        j->limit = file.nbytes;
    j->try_at = j->limit;
}

/* Opens the file under the lock of its journal.  Sets *f to NULL, and returns 0, if the file
 * was not live: then it is now. */
static int open_locked(struct journal *j, const struct perhaps_open_options *options,
                       perhaps_filter **f)
{
    struct journal_point point;
    int error = open_to_record(j->path, options, &point, f);
    if (!error && point.branch)
        error = resume(j, *f, &point);
    else if (!error && !(error = make_live(j, *f))) {
        perhaps_free(*f);
        *f = NULL;
    }
    if (error) {
        perhaps_free(*f);
        *f = NULL;
    }
    return error;
}

/* Returns 0, PERHAPS_ERR_JOURNAL if the file is live but has lost its journal, or another error
 * of opening it. */
static int may_become_live(const struct perhaps_open_options *options, const char *path,
                           unsigned *mode)
{
    struct journal_point point;
    perhaps_filter *f;
    struct file_info file;
    int error = open_to_record(path, options, &point, &f);
    if (error)
        return error;
    perhaps_free(f);
    if (look_at_path(path, &file))
        return PERHAPS_ERR_IO;
    *mode = file.mode & 0777;
    return point.branch ? PERHAPS_ERR_JOURNAL : 0;
}

static int open_journaled(struct journal *j, const char *path,
                          const struct perhaps_open_options *options, perhaps_filter **f)
{
    unsigned mode = 0;
    struct file_info file;
    bool create = false;
    int error = find_journal(path, j->path, j->beside);
    if (!error && !may_write(j->path))
        error = PERHAPS_ERR_IO;
    if (!error && look_at_path(j->beside, &file)) {
        create = true;
        error = may_become_live(options, j->path, &mode);
    }
    if (!error)
        error = lock_journal(j, create, mode);
    for (int i = 0; i < 2 && !error && !*f; i++)
        error = open_locked(j, options, f);
    if (!error && !*f) { /* somebody replaces it again and again */
        errno = EBUSY;
        return PERHAPS_ERR_IO;
    }
    if (!error)
        set_limit(j, options->journal_nbytes);
    return error;
}

int journal_open(const char *path, const struct perhaps_open_options *options,
                 perhaps_filter **filter)
{
    struct journal *j = journal_new(options);
    perhaps_filter *f = NULL;
    if (!j)
        return PERHAPS_ERR_MEMORY;
    int error = open_journaled(j, path, options, &f);
    if (error) {
        journal_release(j);
        return error;
    }
    j->filter = f;
    j->recorder = recorder;
    f->changer = &j->recorder.changer;
    filter_bind(f);
    *filter = f;
    return 0;
}
