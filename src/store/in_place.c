/* in_place.c - files that several processes write in place.
 *
 * Each process holds a shared lock (flock) on the file as long as it has the file open.  The
 * first process flags the file 'in place' in its header: the flag says that the checksums of
 * the pages are void, and that all processes count in the counters of the file.  The last
 * process to close the file is the only one that can get an exclusive lock: it writes the
 * checksums and removes the flag.  After a crash the flag stays until a process has done
 * that. */
#include <errno.h>

#include "store.h"

/* Writes the header and waits until it is on the disk.  It is no larger than what a disk writes
 * at once, so a crash leaves the old or the new one. */
static int write_header(int fd, const uint8_t *bytes, uint64_t nbytes)
{
    return write_at(fd, bytes, nbytes, 0) || sync_data(fd) ? PERHAPS_ERR_IO : 0;
}

/* Sets *is_flagged to whether the header has the flag 'in place', and sets the flag if it has
 * none and 'flag' is true.  Returns 0 or an error of perhaps_open(). */
static int look(const perhaps_filter *f, int fd, bool flag, bool *is_flagged)
{
    struct head head = { 0 };
    struct perhaps_source source = file_source(&fd, f->mapping->file_nbytes);
    if (rewind_file(fd))
        return PERHAPS_ERR_IO;
    int error = head_read(&source, &f->allocator, &head);
    *is_flagged = !error && head.header.in_place;
    if (!error && flag && !*is_flagged) {
        container_mark_in_place(head.bytes, head.header.nbytes);
        error = write_header(fd, head.bytes, head.header.nbytes);
    }
    head_release(&head, &f->allocator);
    return error;
}

/* Waits a millisecond.  Returns 0, so that the caller tries again. */
static int wait_a_moment(void)
{
    thread_pause();
    return 0;
}

/* Takes the shared lock on a file that has the flag, and sets the flag if it is missing.  Only
 * the holder of the exclusive lock may set it.  flock() cannot turn one lock into the other in
 * one step: it releases the first and takes the second, and another process may come between.
 * So this loop reads the header again under each lock. */
static int lock_and_flag(const perhaps_filter *f, int fd)
{
    for (;;) {
        bool is_flagged = false;
        int error = lock_shared(fd);
        if (!error)
            error = look(f, fd, false, &is_flagged);
        if (error || is_flagged)
            return error;
        error = lock_alone(fd);
        if (!error)
            error = look(f, fd, true, &is_flagged);
        else if (errno == EWOULDBLOCK)
            error = wait_a_moment();
        if (error)
            return error;
    }
}

int in_place_begin(perhaps_filter *f, int fd)
{
    struct mapping *m = f->mapping;
    int own = duplicate(fd); /* 'fd' and 'own' share one lock */
    if (own < 0)
        return PERHAPS_ERR_IO;
    int error = lock_and_flag(f, own);
    if (error) {
        close_file(own);
        return error;
    }
    m->how = MAPPED_IN_PLACE;
    m->fd = own;
    m->process = process_self();
    return 0;
}

/* Writes all changes of the mapped file to the disk.  Returns whether that worked. */
static bool on_disk(const struct mapping *m)
{
    return !sync_map(m->fd, m->file, m->file_nbytes);
}

/* Writes the checksum table, and then a header without the flag.  The order matters: after a
 * crash between the two the flag is still there, and says that the table is void. */
static void write_checksums(perhaps_filter *f)
{
    struct header header;
    uint8_t bytes[HEADER_NBYTES];
    struct mapping *m = f->mapping;
    uint8_t *pages = m->file + m->pages_offset, *table = m->file + m->table_offset;
    uint64_t nbytes = f->body.geometry.body_nbytes;
    for (uint64_t at = 0, number = 0; at < nbytes && !m->small; at += PAGE_NBYTES, number++)
        container_fill_entry(table, number, pages + at, page_nbytes(nbytes, at));
    if (!m->small)
        container_seal_table(table, nbytes);
    if (!on_disk(m)) /* the flag stays, and nothing is lost: the next process tries again */
        return;
    if (m->small)
        container_plan(f, &header);
    else
        container_plan_large(f, NULL, &header);
    container_encode(f, &header, bytes);
    if (m->small)
        small_seal(bytes, header.nbytes, pages, m->file_nbytes - header.nbytes);
    write_header(m->fd, bytes, header.nbytes);
}

void in_place_end(perhaps_filter *f)
{
    if (!lock_alone(f->mapping->fd))
        write_checksums(f);      /* no other process has the file open in this mode */
    unlock_file(f->mapping->fd); /* closing would not: a forked child may keep it open */
}

int in_place_sync(const perhaps_filter *f)
{
    if (!f->mapping->file || !f->shared)
        return PERHAPS_ERR_UNSUPPORTED;
    return on_disk(f->mapping) ? 0 : PERHAPS_ERR_IO;
}
