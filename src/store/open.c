/* open.c - opens filter files: maps them, or reads them into memory. */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/bytes.h"
#include "../base/memory.h"
#include "store.h"

/* ---- Open ------------------------------------------------------------------------------- */

/* Opens a regular file that is not empty.  The caller closes *fd, also on an error, unless
 * it is negative. */
static int open_regular(const char *path, bool in_place, int *fd, uint64_t *nbytes)
{
    struct stat st;
    /* without O_NONBLOCK this call would wait for ever on a pipe that has no writer */
    *fd = open(path, (in_place ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return PERHAPS_ERR_IO;
    if (fstat(*fd, &st))
        return PERHAPS_ERR_IO;
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return PERHAPS_ERR_IO;
    }
    *nbytes = (uint64_t)st.st_size;
    return S_ISREG(st.st_mode) && *nbytes ? 0 : PERHAPS_ERR_FORMAT;
}

/* ---- Map -------------------------------------------------------------------------------- */

/* Releases a mapping: the 'release' of struct mapping. */
static void release_mapping(perhaps_filter *f)
{
    struct mapping *m = &f->mapping;
    bool in_place = m->fd >= 0;
    int saved = errno;
    if (in_place && m->process == getpid()) /* a forked child has not opened the file */
        live_end(f);
    check_end(f);
    munmap(m->file, m->file_nbytes);
    if (in_place)
        close(m->fd);
    errno = saved;
}

bool is_mapped_file(const perhaps_filter *f)
{
    return f->mapping.file && f->mapping.release == release_mapping;
}

static int fd_of(const struct reading *r)
{
    return *(const int *)r->source->context;
}

/* Takes the bytes of a file for the filter.  The bodies of the filter and its parts are used
 * where they lie in them. */
static int use_bodies(struct reading *r, uint8_t *file, void (*release_file)(perhaps_filter *f))
{
    const struct header *h = &r->head.header;
    perhaps_filter *f = r->made[0];
    f->mapping = (struct mapping){ .file = file,
                                   .file_nbytes = h->file_nbytes,
                                   .pages_offset = h->nbytes,
                                   .table_offset = h->table_offset,
                                   .fd = -1,
                                   .release = release_file };
    f->counters = (struct counters *)(void *)(f->mapping.file + COUNTERS_OFFSET);
    for (uint32_t i = 0; i < h->sections; i++)
        r->made[i]->body.bytes = f->mapping.file + r->sections[i].body_offset;
    const uint8_t *table = f->mapping.file + h->table_offset;
    bool sound = h->live || container_table_intact(table, header_pages_nbytes(h));
    return sound ? 0 : PERHAPS_ERR_DAMAGED;
}

/* Maps the file.  The mapping belongs to the filter from the moment it is there, and so does
 * its release. */
static int map_bodies(struct reading *r)
{
    int protection = r->made[0]->read_only ? PROT_READ : PROT_READ | PROT_WRITE;
    void *map = mmap(NULL, r->head.header.file_nbytes, protection, MAP_SHARED, fd_of(r), 0);
    if (map == MAP_FAILED)
        return errno == ENOMEM ? PERHAPS_ERR_MEMORY : PERHAPS_ERR_IO;
    return use_bodies(r, map, release_mapping);
}

/* Reserves room on the disk for the whole file.  A hole in the file, or a block that it shares
 * with a copy, takes new room when it is first written to; if the disk is full by then, the
 * process dies of SIGBUS.  Returns 0, also if the file system cannot reserve room; or
 * PERHAPS_ERR_IO (errno). */
static int reserve_blocks(int fd, uint64_t nbytes)
{
    enum { UNSHARE_RANGE = 0x40 }; /* FALLOC_FL_UNSHARE_RANGE, which musl does not have */
    const int modes[] = { FALLOC_FL_KEEP_SIZE | UNSHARE_RANGE, FALLOC_FL_KEEP_SIZE };
    for (size_t i = 0; i < sizeof modes / sizeof *modes;) {
        if (!fallocate(fd, modes[i], 0, (off_t)nbytes))
            return 0;
        if (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS)
            i++;
        else if (errno != EINTR)
            return PERHAPS_ERR_IO;
    }
    return 0;
}

/* Maps a file to write it in place.  Checks all pages before that, if no other process is
 * writing them: from then on their checksums are void. */
static int map_in_place(struct reading *r)
{
    const struct header *h = &r->head.header;
    struct perhaps_verdict verdict;
    int error = reserve_blocks(fd_of(r), h->file_nbytes);
    if (!error)
        error = map_bodies(r);
    if (!error && !h->live)
        error = perhaps_verify(r->made[0], &verdict);
    if (error == PERHAPS_ERR_UNSUPPORTED) /* live by now: another process has checked it */
        error = 0;
    return error ? error : live_begin(r->made[0], fd_of(r));
}

/* Reads the header from an open file, and fills the bodies as the mode says. */
static int open_fd(int fd, uint64_t file_nbytes, const struct perhaps_open_options *options,
                   perhaps_filter **filter)
{
    static int (*const fill[])(struct reading * r) = {
        [PERHAPS_MODE_READ] = map_bodies,
        [PERHAPS_MODE_LOAD] = read_bodies,
        [PERHAPS_MODE_LIVE] = map_in_place,
    };
    struct perhaps_source source = file_source(&fd, file_nbytes);
    int error = filter_read(&source, options, fill[options->mode], filter);
    if (error || !options->check || !(*filter)->read_only)
        return error;
    error = check_begin(*filter);
    if (error) {
        perhaps_free(*filter);
        *filter = NULL;
    }
    return error;
}

static int try_to_open(const char *path, const struct perhaps_open_options *options,
                       perhaps_filter **filter)
{
    uint64_t file_nbytes;
    int fd;
    int error = open_regular(path, options->mode == PERHAPS_MODE_LIVE, &fd, &file_nbytes);
    if (!error)
        error = open_fd(fd, file_nbytes, options, filter);
    if (fd >= 0)
        close_keeping_errno(fd);
    return error;
}

/* Reads the first bytes of a file, without any checks; they are zeros where there are none. */
static void glance(const char *path, uint8_t bytes[HEADER_NBYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    memset(bytes, 0, HEADER_NBYTES);
    if (fd < 0)
        return;
    if (pread(fd, bytes, HEADER_NBYTES, 0) < 0)
        memset(bytes, 0, HEADER_NBYTES);
    close(fd);
}

/* A file looks damaged if another process sets or removes its mark 'live' at this very moment.
 * So a file that looks damaged is opened again.  If it looks damaged once more while its header
 * did not change, it is damaged. */
int perhaps_open(const char *path, const struct perhaps_open_options *options,
                 perhaps_filter **filter)
{
    enum { TRIES_MOST = 100 };
    const struct perhaps_open_options read_only = { 0 };
    uint8_t before[HEADER_NBYTES], after[HEADER_NBYTES];
    *filter = NULL;
    if (options &&
        ((unsigned)options->mode > PERHAPS_MODE_LIVE || !is_unused(options->reserved)))
        return PERHAPS_ERR_ARGUMENT;
    int error = try_to_open(path, options ? options : &read_only, filter);
    bool moves = true;
    for (int i = 0; error == PERHAPS_ERR_DAMAGED && moves && i < TRIES_MOST; i++) {
        glance(path, before);
        error = try_to_open(path, options ? options : &read_only, filter);
        glance(path, after);
        moves = memcmp(before, after, sizeof before) != 0;
    }
    return error;
}

/* ---- Bytes in memory -------------------------------------------------------------------- */

/* Bytes as a source: how many were read. */
struct memory {
    const uint8_t *bytes;
    uint64_t nbytes, at;
};

static int memory_read(void *context, void *bytes, size_t nbytes)
{
    struct memory *m = context;
    if (nbytes > m->nbytes - m->at)
        return PERHAPS_ERR_DAMAGED;
    memcpy(bytes, m->bytes + m->at, nbytes);
    m->at += nbytes;
    return 0;
}

static void release_nothing(perhaps_filter *f)
{
    check_end(f);
}

/* Uses the bodies where they lie in memory, which nobody writes to: the filter is read only. */
static int use_memory(struct reading *r)
{
    const struct memory *m = r->source->context;
    return use_bodies(r, (uint8_t *)m->bytes, release_nothing);
}

int perhaps_from_bytes(const void *bytes, size_t nbytes,
                       const struct perhaps_open_options *options, perhaps_filter **filter)
{
    const struct perhaps_open_options load = { .mode = PERHAPS_MODE_LOAD };
    struct memory memory = { .bytes = bytes, .nbytes = nbytes };
    const struct perhaps_source source = { memory_read, &memory, nbytes };
    options = options ? options : &load;
    bool in_place = options->mode == PERHAPS_MODE_READ;
    *filter = NULL;
    if (!is_unused(options->reserved) || (!in_place && options->mode != PERHAPS_MODE_LOAD) ||
        (in_place && (uintptr_t)bytes % PERHAPS_ALIGNMENT))
        return PERHAPS_ERR_ARGUMENT;
    if (options->check)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!nbytes)
        return PERHAPS_ERR_FORMAT;
    return filter_read(&source, options, in_place ? use_memory : read_bodies, filter);
}
