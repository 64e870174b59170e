/* map.c - filters whose bytes lie in a file, mapped or read into memory, or in memory. */
#include <errno.h>
#include <string.h>

#include "../base/memory.h"
#include "store.h"

/* ---- Open ------------------------------------------------------------------------------- */

/* Opens a regular file that is not empty.  The caller closes *fd, also on an error, unless
 * it is negative. */
static int open_regular(const char *path, bool in_place, int *fd, uint64_t *nbytes)
{
    struct file_info file;
    *fd = open_at_once(path, in_place);
    if (*fd < 0 || look_at_fd(*fd, &file))
        return PERHAPS_ERR_IO;
    if (file.type == FILE_FOLDER) {
        errno = EISDIR;
        return PERHAPS_ERR_IO;
    }
    *nbytes = file.nbytes;
    return file.type == FILE_REGULAR && *nbytes ? 0 : PERHAPS_ERR_FORMAT;
}

/* ---- Map -------------------------------------------------------------------------------- */

/* Releases a mapping: the 'release' of struct mapping. */
static void release_mapping(perhaps_filter *f)
{
    struct mapping *m = f->mapping;
    bool in_place = m->how == MAPPED_IN_PLACE;
    int saved = errno;
    if (in_place && m->process == process_self()) /* a forked child has not opened the file */
        in_place_end(f);
    check_end(f);
    unmap(m->file, m->file_nbytes,
          m->how == MAPPED_IN_MEMORY ? saved_distance(m->file_nbytes) : 0);
    if (in_place)
        close_file(m->fd);
    errno = saved;
}

static const struct mapping_calls of_file = { .check = check_saved_pages,
                                              .release = release_mapping,
                                              .fetch = cold_fetch,
                                              .forget = cold_forget,
                                              .fetch_sample = cold_fetch_sample,
                                              .count_singles = cold_count_singles };

bool is_mapped_file(const perhaps_filter *f)
{
    return f->mapping->calls == &of_file;
}

static int fd_of(const struct reading *r)
{
    return *(const int *)r->source->context;
}

/* Makes room for what is known of a mapping, before there is one. */
static int begin_mapping(perhaps_filter *f)
{
    struct mapping *m = allocate(&f->allocator, sizeof *m);
    if (!m)
        return PERHAPS_ERR_MEMORY;
    f->mapping = m;
    return 0;
}

/* Takes the bytes of a file for the filter.  The bodies of the filter and its parts are used
 * where they lie in them. */
static int use_bodies(struct reading *r, uint8_t *file, const struct mapping_calls *calls)
{
    const struct header *h = &r->head.header;
    perhaps_filter *f = r->made[0];
    *f->mapping = (struct mapping){ .file = file,
                                    .file_nbytes = h->file_nbytes,
                                    .pages_offset = h->nbytes,
                                    .table_offset = h->table_offset,
                                    .small = h->small,
                                    .how = MAPPED_AS_SAVED,
                                    .calls = calls };
    if (is_mapped_file(f))
        cold_begin(f);
    f->counters = (struct counters *)(void *)(f->mapping->file + h->counters_offset);
    for (uint32_t i = 0; i < h->sections; i++)
        r->made[i]->body.bytes = f->mapping->file + r->sections[i].body_offset;
    const uint8_t *table = f->mapping->file + h->table_offset;
    bool sound =
        h->small || h->in_place || container_table_intact(table, header_pages_nbytes(h));
    return sound ? 0 : PERHAPS_ERR_DAMAGED;
}

/* Returns the error of a mapping that has failed (errno). */
static int failed_map(void)
{
    return errno == ENOMEM ? PERHAPS_ERR_MEMORY : PERHAPS_ERR_IO;
}

/* Maps the file.  The mapping belongs to the filter from the moment it is there, and so does
 * its release. */
static int map_bodies(struct reading *r)
{
    int error = begin_mapping(r->made[0]);
    if (error)
        return error;
    uint8_t *map = map_file(fd_of(r), r->head.header.file_nbytes, !r->made[0]->read_only);
    return map ? use_bodies(r, map, &of_file) : failed_map();
}

/* Maps the file of a journal: once to be written, in memory of this process alone, and once as
 * it is. */
static int map_in_memory(struct reading *r)
{
    const size_t nbytes = r->head.header.file_nbytes;
    int error = begin_mapping(r->made[0]);
    if (error)
        return error;
    uint8_t *map = map_twice(fd_of(r), nbytes, saved_distance(nbytes));
    if (!map)
        return failed_map();
    error = use_bodies(r, map, &of_file);
    r->made[0]->mapping->how = MAPPED_IN_MEMORY;
    return error;
}

/* Maps a file to write it in place.  Checks all pages before that, if no other process is
 * writing them: from then on their checksums are void. */
static int map_in_place(struct reading *r)
{
    const struct header *h = &r->head.header;
    struct perhaps_verdict verdict;
    int error = reserve_mapped(fd_of(r), h->file_nbytes);
    if (!error)
        error = map_bodies(r);
    if (!error && !h->in_place)
        error = perhaps_verify(r->made[0], &verdict);
    if (error ==
        PERHAPS_ERR_UNSUPPORTED) /* by now another process has it, and has checked it */
        error = 0;
    return error ? error : in_place_begin(r->made[0], fd_of(r));
}

/* Maps the file in one of two ways: if it has a journal, what that records will be done to the
 * filter in memory. */
static int map_to_read(struct reading *r)
{
    if (!r->head.header.journal.branch)
        return map_bodies(r);
    for (uint32_t i = 0; i < r->head.header.sections; i++)
        r->made[i]->read_only = false; /* until then */
    return map_in_memory(r);
}

/* Opens a file.  Sets *point to what its header says of a journal. */
static int try_one_way(const char *path, const struct perhaps_open_options *options,
                       const struct way *way, struct journal_point *point,
                       perhaps_filter **filter)
{
    uint64_t file_nbytes;
    int fd;
    int error = open_regular(path, way->in_place, &fd, &file_nbytes);
    if (!error) {
        struct perhaps_source source = file_source(&fd, file_nbytes);
        error = filter_read(&source, options, way, point, filter);
    }
    if (fd >= 0)
        close_file(fd);
    return error;
}

int open_as_saved(const char *path, const struct perhaps_open_options *options,
                  struct journal_point *point, perhaps_filter **filter)
{
    static const struct way ways[] = {
        [PERHAPS_MODE_READ] = { .fill = map_to_read, .read_only = true },
        [PERHAPS_MODE_LOAD] = { .fill = read_bodies, .with_body = true },
        [PERHAPS_MODE_IN_PLACE] = { .fill = map_in_place, .shared = true, .in_place = true },
    };
    struct way way = ways[options->mode];
    *point = (struct journal_point){ 0 };
    way.shared |= way.with_body && options->shared;
    return try_one_way(path, options, &way, way.in_place ? NULL : point, filter);
}

int open_to_record(const char *path, const struct perhaps_open_options *options,
                   struct journal_point *point, perhaps_filter **filter)
{
    const uint64_t large = 32 << 20;
    struct file_info file;
    bool maps = !options->shared && !look_at_path(path, &file) && file.nbytes > large;
    const struct way way = { .fill = maps ? map_in_memory : read_bodies,
                             .with_body = !maps,
                             .shared = options->shared,
                             .to_record = true };
    return try_one_way(path, options, &way, point, filter);
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

static const struct mapping_calls of_memory = { .check = check_saved_pages,
                                                .release = release_nothing };

/* Uses the bodies where they lie in memory, which nobody writes to: the filter is read only. */
static int use_memory(struct reading *r)
{
    const struct memory *m = r->source->context;
    int error = begin_mapping(r->made[0]);
    return error ? error : use_bodies(r, (uint8_t *)m->bytes, &of_memory);
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
    const struct way way = { .fill = in_place ? use_memory : read_bodies,
                             .with_body = !in_place,
                             .shared = options->shared,
                             .read_only = in_place,
                             .lying = bytes };
    return filter_read(&source, options, &way, NULL, filter);
}
