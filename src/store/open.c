/* file.c - files into filters. */
#define _GNU_SOURCE 1
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

#include "../base/bytes.h"
#include "../base/memory.h"
#include "check.h"
#include "container.h"
#include "live.h"

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

/* ---- A file on its way to a filter ------------------------------------------------------ */

/* Its sections, each a filter; all but the first belong to their parents. */
struct opening {
    int fd;
    const struct perhaps_open_options *options;
    struct perhaps_allocator allocator;
    struct head head;
    struct hasher hasher;
    struct section *sections;
    perhaps_filter **made; /* of each of them */
};

static bool is_in_place(const struct perhaps_open_options *options)
{
    return options->mode == PERHAPS_MODE_LIVE;
}

static uint64_t pages_nbytes(const struct header *h)
{
    return h->table_offset - h->nbytes;
}

static int make_section(struct opening *o, uint32_t number)
{
    const struct section *s = &o->sections[number];
    perhaps_filter *f;
    bool loads = o->options->mode == PERHAPS_MODE_LOAD;
    int error = filter_make(s->kind, &s->geometry, &o->hasher, &o->allocator, loads,
                            is_in_place(o->options), &f);
    if (error)
        return error;
    f->own_counters = s->counters;
    f->read_only = o->options->mode == PERHAPS_MODE_READ;
    f->is_fixed |= f->read_only;
    o->made[number] = f;
    if (number == 0)
        return 0;
    struct parts *parts = &o->made[s->parent]->parts;
    if (parts->count == PARTS_MOST) {
        perhaps_free(f);
        return PERHAPS_ERR_DAMAGED;
    }
    parts->part[parts->count++] = f;
    return 0;
}

/* The last who wrote it in place gives it its checksums. */
static void release_mapping(perhaps_filter *f)
{
    struct mapping *m = &f->mapping;
    bool in_place = m->fd >= 0;
    if (in_place && m->process == getpid()) /* a child that was forked has not opened it */
        live_end(f);
    check_end(f);
    munmap(m->file, m->file_nbytes);
    if (in_place)
        close(m->fd);
}

/* Maps the file; the bodies are where they lie. */
static int map_bodies(struct opening *o)
{
    const struct header *h = &o->head.header;
    perhaps_filter *f = o->made[0];
    int protection = f->read_only ? PROT_READ : PROT_READ | PROT_WRITE;
    void *map = mmap(NULL, h->file_nbytes, protection, MAP_SHARED, o->fd, 0);
    if (map == MAP_FAILED)
        return errno == ENOMEM ? PERHAPS_ERR_MEMORY : PERHAPS_ERR_IO;
    f->mapping = (struct mapping){ .file = map,
                                   .file_nbytes = h->file_nbytes,
                                   .pages_offset = h->nbytes,
                                   .table_offset = h->table_offset,
                                   .fd = -1,
                                   .release = release_mapping };
    f->counters = (struct counters *)(void *)(f->mapping.file + COUNTERS_OFFSET);
    for (uint32_t i = 0; i < h->sections; i++)
        o->made[i]->body = f->mapping.file + o->sections[i].body_offset;
    bool sound =
        h->live || container_table_intact(f->mapping.file + h->table_offset, pages_nbytes(h));
    return sound ? 0 : PERHAPS_ERR_DAMAGED;
}

static int check_pages(const struct mapping *m, struct perhaps_verdict *verdict)
{
    const uint8_t *pages = m->file + m->pages_offset, *table = m->file + m->table_offset;
    uint64_t nbytes = m->table_offset - m->pages_offset;
    *verdict = (struct perhaps_verdict){ .pages = container_page_count(nbytes) };
    for (uint64_t page = 0; page < verdict->pages; page++) {
        uint64_t at = page * PAGE_NBYTES;
        uint64_t n = nbytes - at < PAGE_NBYTES ? nbytes - at : PAGE_NBYTES;
        if (container_page_intact(table, page, pages + at, n))
            continue;
        if (!verdict->damaged++)
            verdict->first_damaged = m->pages_offset + at;
    }
    return verdict->damaged ? PERHAPS_ERR_DAMAGED : 0;
}

/* Copies what of these bytes of the file, from 'at' on, belongs to the body of a section. */
static void take_bytes(perhaps_filter *f, uint64_t offset, const uint8_t *bytes, uint64_t at,
                       uint64_t nbytes)
{
    uint64_t from = offset > at ? offset : at;
    uint64_t end = offset + f->geometry.body_nbytes;
    end = end < at + nbytes ? end : at + nbytes;
    if (from < end)
        memcpy(f->body + (from - offset), bytes + (from - at), end - from);
}

/* Reads the pages, compares each with its checksum, and hands its bytes to the bodies. */
static int load_pages(struct opening *o, const uint8_t *table, uint8_t page[PAGE_NBYTES])
{
    const struct header *h = &o->head.header;
    uint64_t number = 0, n;
    uint32_t first = 0; /* the first section whose body is not complete */
    for (uint64_t at = h->nbytes; at < h->table_offset; at += n, number++) {
        n = h->table_offset - at < PAGE_NBYTES ? h->table_offset - at : PAGE_NBYTES;
        int error = file_read_all(o->fd, page, n);
        if (error)
            return error;
        if (!h->live && !container_page_intact(table, number, page, n))
            return PERHAPS_ERR_DAMAGED;
        for (uint32_t i = first; i < h->sections; i++) {
            uint64_t offset = o->sections[i].body_offset;
            if (offset >= at + n)
                break;
            take_bytes(o->made[i], offset, page, at, n);
            if (offset + o->made[i]->geometry.body_nbytes <= at + n)
                first = i + 1;
        }
    }
    return 0;
}

static int load_bodies(struct opening *o)
{
    const struct header *h = &o->head.header;
    uint64_t table_nbytes = container_table_nbytes(pages_nbytes(h));
    uint64_t nbytes = PAGE_NBYTES + table_nbytes;
    uint8_t *page = allocate(&o->allocator, nbytes);
    if (!page)
        return PERHAPS_ERR_MEMORY;
    uint8_t *table = page + PAGE_NBYTES;
    int error = lseek(o->fd, (off_t)h->table_offset, SEEK_SET) < 0 ? PERHAPS_ERR_IO : 0;
    if (!error)
        error = file_read_all(o->fd, table, table_nbytes);
    if (!error && !h->live && !container_table_intact(table, pages_nbytes(h)))
        error = PERHAPS_ERR_DAMAGED;
    if (!error && lseek(o->fd, (off_t)h->nbytes, SEEK_SET) < 0)
        error = PERHAPS_ERR_IO;
    if (!error)
        error = load_pages(o, table, page);
    int saved = errno;
    release(&o->allocator, page, nbytes);
    errno = saved;
    return error;
}

/* A hole in the file, or a block that a copy shares with it, takes room on the disk when it is
 * first written to; where there is none then, the process dies of SIGBUS.  Not every file
 * system can reserve it. */
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

/* Once it is written in place, its checksums tell nothing: they are looked at before. */
static int map_in_place(struct opening *o)
{
    struct perhaps_verdict verdict;
    int error = reserve_blocks(o->fd, o->head.header.file_nbytes);
    if (!error)
        error = map_bodies(o);
    if (!error && !o->head.header.live)
        error = check_pages(&o->made[0]->mapping, &verdict);
    return error ? error : live_begin(o->made[0], o->fd);
}

/* Parts come behind what they are parts of, and are complete before it. */
static int attach_all(struct opening *o)
{
    int error = 0;
    for (uint32_t i = o->head.header.sections; i > 0 && !error; i--)
        error = filter_attach(o->made[i - 1]);
    return error;
}

static int make_all(struct opening *o)
{
    int error = 0;
    for (uint32_t i = 0; i < o->head.header.sections && !error; i++)
        error = make_section(o, i);
    if (!error)
        error = o->made[0]->read_only     ? map_bodies(o)
                : is_in_place(o->options) ? map_in_place(o)
                                          : load_bodies(o);
    if (!error)
        error = attach_all(o);
    if (!error && o->options->check && o->made[0]->read_only)
        error = check_begin(o->made[0]);
    return error;
}

/* With the secret or function of its hash. */
static int open_filter(struct opening *o, perhaps_filter **filter)
{
    const struct perhaps_open_options *options = o->options;
    const struct header *h = &o->head.header;
    int error = container_sections(o->head.bytes, h, o->sections);
    if (error)
        return error;
    if (is_in_place(options) && !(o->sections->kind->about.abilities & PERHAPS_CAN_SHARE))
        return PERHAPS_ERR_UNSUPPORTED;
    if (options->check && (h->live || is_in_place(options)))
        return PERHAPS_ERR_UNSUPPORTED; /* it has no checksums, or soon will not */
    error = hasher_restore(&o->hasher, h->hash_id, h->hash_seed, h->hash_check,
                           &options->hashing, options->without_secret);
    if (!error)
        error = make_all(o);
    int saved = errno;
    if (error)
        perhaps_free(o->made[0]);
    else
        *filter = o->made[0];
    errno = saved;
    return error;
}

static int open_head(struct opening *o, perhaps_filter **filter)
{
    uint64_t each = sizeof *o->sections + sizeof *o->made;
    uint64_t nbytes = o->head.header.sections * each;
    o->sections = allocate(&o->allocator, nbytes);
    if (!o->sections)
        return PERHAPS_ERR_MEMORY;
    o->made = (perhaps_filter **)(void *)(o->sections + o->head.header.sections);
    int error = open_filter(o, filter), saved = errno;
    release(&o->allocator, o->sections, nbytes);
    errno = saved;
    return error;
}

static int open_fd(int fd, uint64_t file_nbytes, const struct perhaps_open_options *options,
                   perhaps_filter **filter)
{
    struct opening o = { .fd = fd,
                         .options = options,
                         .allocator = allocator_or_system(options->allocator) };
    int error = head_read(fd, file_nbytes, &o.allocator, &o.head);
    if (!error)
        error = open_head(&o, filter);
    int saved = errno;
    head_release(&o.head, &o.allocator);
    errno = saved;
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

/* The first bytes of a file, zeros where there are none. */
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

/* A file whose mark 'live' is set or taken away at this very moment looks damaged.  One that
 * does so while its header stays as it is, is. */
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

int perhaps_verify(const perhaps_filter *f, struct perhaps_verdict *verdict)
{
    const struct mapping *m = &f->mapping;
    *verdict = (struct perhaps_verdict){ 0 };
    if (!m->file)
        return PERHAPS_ERR_UNSUPPORTED;
    int error = check_pages(m, verdict);
    if (!container_is_live(m->file))
        return error;
    *verdict = (struct perhaps_verdict){ 0 };
    return PERHAPS_ERR_UNSUPPORTED;
}
