/* file.c - save, open and verify. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "bytes.h"
#include "container.h"
#include "live.h"

/* One call writes or reads at most this; Linux itself stops at 2 GiB. */
#define CHUNK_NBYTES ((size_t)1 << 30)

static int write_all(int fd, const uint8_t *bytes, uint64_t nbytes)
{
    while (nbytes) {
        ssize_t n = write(fd, bytes, nbytes < CHUNK_NBYTES ? (size_t)nbytes : CHUNK_NBYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        bytes += n;
        nbytes -= (uint64_t)n;
    }
    return 0;
}

/* A file that ends too early is damaged: it had the right length when it was opened. */
static int read_all(int fd, uint8_t *bytes, uint64_t nbytes)
{
    while (nbytes) {
        ssize_t n = read(fd, bytes, nbytes < CHUNK_NBYTES ? (size_t)nbytes : CHUNK_NBYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        if (n == 0)
            return PERHAPS_ERR_DAMAGED;
        bytes += n;
        nbytes -= (uint64_t)n;
    }
    return 0;
}

static void close_keeping_errno(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
}

/* ---- Save ------------------------------------------------------------------------------- */

static int write_filter(const perhaps_filter *f, int fd)
{
    struct header header;
    uint8_t head[HEADER_NBYTES];
    container_plan(f, &header);
    container_encode(&header, head);

    uint64_t nbytes = f->geometry.body_nbytes;
    uint64_t table_nbytes = container_table_nbytes(nbytes);
    uint8_t *table = allocate(&f->allocator, table_nbytes);
    if (!table)
        return PERHAPS_ERR_MEMORY;
    container_fill_table(f->body, nbytes, table);
    int error = write_all(fd, head, sizeof head);
    if (!error)
        error = write_all(fd, f->body, nbytes);
    if (!error)
        error = write_all(fd, table, table_nbytes);
    int saved = errno;
    release(&f->allocator, table, table_nbytes);
    errno = saved;
    return error;
}

/* A file that does not have its name yet. */
struct draft {
    int fd;
    char folder[PATH_MAX];
    char name[PATH_MAX]; /* "": nameless (O_TMPFILE), gone if we die */
};

static int draft_failed(struct draft *draft)
{
    int saved = errno;
    if (draft->fd >= 0)
        close(draft->fd);
    if (*draft->name)
        unlink(draft->name);
    errno = saved;
    return PERHAPS_ERR_IO;
}

/* Writes a name beside the target that hardly anything has. */
static int draft_invent_name(struct draft *draft, const char *target)
{
    uint32_t random;
    const char *base = strrchr(target, '/');
    base = base ? base + 1 : target;
    if (getentropy(&random, sizeof random))
        return PERHAPS_ERR_IO;
    /* a name may have 255 bytes: a long one keeps room for the suffix */
    int n = snprintf(draft->name, sizeof draft->name, "%s/.%.200s.%08x", draft->folder, base,
                     (unsigned)random);
    if (n >= 0 && (size_t)n < sizeof draft->name)
        return 0;
    errno = ENAMETOOLONG;
    return PERHAPS_ERR_IO;
}

enum { PROC_PATH_NBYTES = 64 };

static void write_proc_path(char path[PROC_PATH_NBYTES], int fd)
{
    snprintf(path, PROC_PATH_NBYTES, "/proc/self/fd/%d", fd);
}

/* Links a nameless draft to a name, or creates a file of that name. */
static int draft_take_name(struct draft *draft, const char *target)
{
    char self[PROC_PATH_NBYTES];
    write_proc_path(self, draft->fd);
    for (int tries = 0; tries < 100; tries++) {
        if (draft_invent_name(draft, target))
            break;
        if (draft->fd >= 0) {
            if (!linkat(AT_FDCWD, self, AT_FDCWD, draft->name, AT_SYMLINK_FOLLOW))
                return 0;
        } else {
            draft->fd = open(draft->name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
            if (draft->fd >= 0)
                return 0;
        }
        if (errno != EEXIST)
            break;
    }
    draft->name[0] = '\0'; /* not ours to remove */
    return PERHAPS_ERR_IO;
}

/* A file without a name gets one through /proc, which a container may lack: better to know
 * before the filter is written. */
static int open_nameless(const char *folder)
{
    char self[PROC_PATH_NBYTES];
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    write_proc_path(self, fd);
    if (!access(self, F_OK))
        return fd;
    close(fd);
    errno = EOPNOTSUPP;
    return -1;
}

static int draft_open(struct draft *draft, const char *target)
{
    *draft = (struct draft){ .fd = -1 };
    const char *slash = strrchr(target, '/');
    size_t length = slash ? (size_t)(slash - target) : 0;
    if (length >= sizeof draft->folder) {
        errno = ENAMETOOLONG;
        return PERHAPS_ERR_IO;
    }
    memcpy(draft->folder, slash ? target : ".", slash ? length : 1);
    if (slash && length == 0)
        draft->folder[0] = '/';
    draft->fd = open_nameless(draft->folder);
    if (draft->fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return PERHAPS_ERR_IO;
    return draft_take_name(draft, target); /* there are no nameless files here */
}

static int sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = fsync(fd) && errno != EINVAL ? PERHAPS_ERR_IO : 0;
    close_keeping_errno(fd);
    return error;
}

/* Writes, syncs, renames, syncs the folder.  'old' is what is replaced, or NULL. */
static int save_beside(const perhaps_filter *f, const char *target, const struct stat *old)
{
    struct draft draft;
    if (draft_open(&draft, target))
        return draft_failed(&draft);
    if (old) {
        /* the owner is kept where we may; the mode last, since chown clears bits of it */
        if (fchown(draft.fd, old->st_uid, old->st_gid) && errno != EPERM)
            return draft_failed(&draft);
        if (fchmod(draft.fd, old->st_mode & 07777))
            return draft_failed(&draft);
    }
    int error = write_filter(f, draft.fd);
    if (error) {
        draft_failed(&draft);
        return error;
    }
    if (fsync(draft.fd) || (!*draft.name && draft_take_name(&draft, target)) ||
        rename(draft.name, target))
        return draft_failed(&draft);
    close(draft.fd);
    return sync_folder(draft.folder);
}

/* Devices and pipes are written to, never replaced. */
static int save_into(const perhaps_filter *f, const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = write_filter(f, fd);
    if (!error && fsync(fd) && errno != EINVAL && errno != EROFS)
        error = PERHAPS_ERR_IO;
    close_keeping_errno(fd);
    return error;
}

int perhaps_save(const perhaps_filter *f, const char *path)
{
    struct stat old;
    char target[PATH_MAX];
    if (stat(path, &old)) {
        if (errno != ENOENT)
            return PERHAPS_ERR_IO;
        return save_beside(f, path, NULL);
    }
    if (S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return PERHAPS_ERR_IO;
    }
    if (!S_ISREG(old.st_mode))
        return save_into(f, path);
    if (access(path, W_OK)) /* a rename would need the folder's permission only */
        return PERHAPS_ERR_IO;
    if (!realpath(path, target)) /* what a symbolic link names, not the link */
        return PERHAPS_ERR_IO;
    return save_beside(f, target, &old);
}

/* ---- Open ------------------------------------------------------------------------------- */

static int open_regular(const char *path, bool in_place, int *fd, uint64_t *nbytes)
{
    struct stat st;
    /* without O_NONBLOCK a pipe that has no writer would hang us */
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
    return S_ISREG(st.st_mode) ? 0 : PERHAPS_ERR_FORMAT;
}

int file_read_header(int fd, uint64_t file_nbytes, struct header *header)
{
    uint8_t head[HEADER_NBYTES] = { 0 };
    uint64_t nbytes = file_nbytes < sizeof head ? file_nbytes : sizeof head;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return PERHAPS_ERR_IO;
    int error = read_all(fd, head, nbytes);
    return error ? error : container_decode(head, file_nbytes, header);
}

static int map_body(perhaps_filter *f, int fd, const struct header *header)
{
    int protection = f->read_only ? PROT_READ : PROT_READ | PROT_WRITE;
    void *map = mmap(NULL, header->file_nbytes, protection, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return errno == ENOMEM ? PERHAPS_ERR_MEMORY : PERHAPS_ERR_IO;
    f->mapping = (struct mapping){ .file = map,
                                   .file_nbytes = header->file_nbytes,
                                   .pages_offset = header->pages_offset,
                                   .table_offset = header->table_offset,
                                   .fd = -1 };
    f->body = f->mapping.file + header->body_offset;
    f->counters = (struct counters *)(void *)(f->mapping.file + COUNTERS_OFFSET);
    bool sound = header->live || container_table_intact(f->mapping.file + header->table_offset,
                                                        f->geometry.body_nbytes);
    return sound ? 0 : PERHAPS_ERR_DAMAGED;
}

static int check_pages(const uint8_t *pages, uint64_t nbytes, const uint8_t *table,
                       uint64_t pages_offset, struct perhaps_verdict *verdict)
{
    *verdict = (struct perhaps_verdict){ .pages = container_page_count(nbytes) };
    for (uint64_t page = 0; page < verdict->pages; page++) {
        if (container_page_checksum(pages, nbytes, page) ==
            load64(table + page * sizeof(uint64_t)))
            continue;
        if (!verdict->damaged++)
            verdict->first_damaged = pages_offset + page * PAGE_NBYTES;
    }
    return verdict->damaged ? PERHAPS_ERR_DAMAGED : 0;
}

static int load_body(perhaps_filter *f, int fd, const struct header *header)
{
    struct perhaps_verdict verdict;
    uint64_t nbytes = f->geometry.body_nbytes;
    uint64_t table_nbytes = container_table_nbytes(nbytes);
    uint8_t *table = allocate(&f->allocator, table_nbytes);
    if (!table)
        return PERHAPS_ERR_MEMORY;
    int error = read_all(fd, f->body, nbytes);
    if (!error)
        error = read_all(fd, table, table_nbytes);
    if (!error && !header->live && !container_table_intact(table, nbytes))
        error = PERHAPS_ERR_DAMAGED;
    if (!error && !header->live)
        error = check_pages(f->body, nbytes, table, header->pages_offset, &verdict);
    int saved = errno;
    release(&f->allocator, table, table_nbytes);
    errno = saved;
    return error;
}

static bool is_in_place(const struct perhaps_open_options *options)
{
    return options->writable && options->shared;
}

/* Once it is written in place, its checksums tell nothing: they are looked at before. */
static int map_in_place(perhaps_filter *f, int fd, const struct header *header)
{
    struct perhaps_verdict verdict;
    int error = map_body(f, fd, header);
    if (!error && !header->live)
        error =
            check_pages(f->body, f->geometry.body_nbytes,
                        f->mapping.file + header->table_offset, header->pages_offset, &verdict);
    return error ? error : live_begin(f, fd);
}

static int fill_filter(perhaps_filter *f, int fd, const struct header *header,
                       const struct perhaps_open_options *options)
{
    f->own_counters = header->counters;
    f->read_only = !options->writable;
    if (f->read_only)
        return map_body(f, fd, header);
    return options->shared ? map_in_place(f, fd, header) : load_body(f, fd, header);
}

static int open_fd(int fd, uint64_t file_nbytes, const struct perhaps_open_options *options,
                   perhaps_filter **filter)
{
    struct header header;
    struct hasher hasher;
    int error = file_read_header(fd, file_nbytes, &header);
    if (!error && is_in_place(options) && !(header.kind->about.abilities & PERHAPS_SHARE))
        error = PERHAPS_ERR_UNSUPPORTED;
    if (!error)
        error = hasher_restore(&hasher, header.hash_id, header.hash_seed, header.hash_check,
                               &options->hashing, options->without_secret);
    if (!error)
        error =
            filter_make(header.kind, &header.geometry, &hasher, options->allocator,
                        options->writable && !options->shared, is_in_place(options), filter);
    if (error)
        return error;
    error = fill_filter(*filter, fd, &header, options);
    if (error) {
        int saved = errno;
        perhaps_free(*filter);
        *filter = NULL;
        errno = saved;
    }
    return error;
}

static int try_to_open(const char *path, const struct perhaps_open_options *options,
                       perhaps_filter **filter)
{
    uint64_t file_nbytes;
    int fd;
    int error = open_regular(path, is_in_place(options), &fd, &file_nbytes);
    if (!error)
        error = open_fd(fd, file_nbytes, options, filter);
    if (fd >= 0)
        close_keeping_errno(fd);
    return error;
}

/* A file whose mark 'live' is set or taken away at this very moment looks damaged: a second
 * look tells. */
int perhaps_open(const char *path, const struct perhaps_open_options *options,
                 perhaps_filter **filter)
{
    const struct perhaps_open_options read_only = { 0 };
    *filter = NULL;
    int error = try_to_open(path, options ? options : &read_only, filter);
    if (error != PERHAPS_ERR_DAMAGED)
        return error;
    return try_to_open(path, options ? options : &read_only, filter);
}

void mapping_release(perhaps_filter *f)
{
    struct mapping *m = &f->mapping;
    bool in_place = m->fd >= 0;
    if (in_place && m->process == getpid()) /* a child that was forked has not opened it */
        live_end(f);
    munmap(m->file, m->file_nbytes);
    if (in_place)
        close(m->fd);
}

int perhaps_verify(const perhaps_filter *f, struct perhaps_verdict *verdict)
{
    const struct mapping *m = &f->mapping;
    *verdict = (struct perhaps_verdict){ 0 };
    if (!m->file)
        return PERHAPS_ERR_UNSUPPORTED;
    int error = check_pages(f->body, f->geometry.body_nbytes, m->file + m->table_offset,
                            m->pages_offset, verdict);
    if (!container_is_live(m->file))
        return error;
    *verdict = (struct perhaps_verdict){ 0 };
    return PERHAPS_ERR_UNSUPPORTED;
}
