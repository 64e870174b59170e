/* live.c - files that several processes write in place. */
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int lock(int fd, int how)
{
    while (flock(fd, how))
        if (errno != EINTR)
            return PERHAPS_ERR_IO;
    return 0;
}

/* The header is smaller than a disk's sector that is written at once, and is on the disk before
 * a bit of the body changes. */
static int write_header(int fd, const struct header *header)
{
    uint8_t bytes[HEADER_NBYTES];
    container_encode(header, bytes);
    if (pwrite(fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes || fdatasync(fd))
        return PERHAPS_ERR_IO;
    return 0;
}

static int mark(int fd, uint64_t file_nbytes)
{
    struct header header;
    int error = file_read_header(fd, file_nbytes, &header);
    if (error || header.live)
        return error;
    header.live = true;
    return write_header(fd, &header);
}

static int wait_a_moment(void)
{
    const struct timespec millisecond = { .tv_nsec = 1000000 };
    nanosleep(&millisecond, NULL);
    return 0;
}

/* A lock cannot be widened at once: it is given up and taken again, and between the two another
 * may do the same.  So the header is looked at again each time. */
static int lock_and_mark(int fd, uint64_t file_nbytes)
{
    for (;;) {
        struct header header;
        int error = lock(fd, LOCK_SH);
        if (!error)
            error = file_read_header(fd, file_nbytes, &header);
        if (error || header.live)
            return error;
        error = lock(fd, LOCK_EX | LOCK_NB);
        if (!error)
            error = mark(fd, file_nbytes);
        else if (errno == EWOULDBLOCK)
            error = wait_a_moment();
        if (error)
            return error;
    }
}

int live_begin(perhaps_filter *f, int fd)
{
    struct mapping *m = &f->mapping;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the lock is of both */
    if (own < 0)
        return PERHAPS_ERR_IO;
    int error = lock_and_mark(own, m->file_nbytes);
    if (error) {
        int saved = errno;
        close(own);
        errno = saved;
        return error;
    }
    m->fd = own;
    m->process = getpid();
    return 0;
}

static bool on_disk(const struct mapping *m)
{
    return !msync(m->file, m->file_nbytes, MS_SYNC);
}

static void write_checksums(perhaps_filter *f)
{
    struct header header;
    struct mapping *m = &f->mapping;
    container_fill_table(f->body, f->geometry.body_nbytes, m->file + m->table_offset);
    if (!on_disk(m)) /* then the mark may stay: nothing is lost */
        return;
    container_plan(f, &header);
    write_header(m->fd, &header);
}

void live_end(perhaps_filter *f)
{
    if (!lock(f->mapping.fd, LOCK_EX | LOCK_NB))
        write_checksums(f);       /* nobody else has it open */
    lock(f->mapping.fd, LOCK_UN); /* a child that was forked may have it open for ever */
}

int perhaps_sync(perhaps_filter *f)
{
    if (!f->mapping.file || !f->shared)
        return PERHAPS_ERR_UNSUPPORTED;
    return on_disk(&f->mapping) ? 0 : PERHAPS_ERR_IO;
}
