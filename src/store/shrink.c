/* shrink.c - writes a smaller filter, piece by piece.
 *
 * The large filter is read twice: to find the smallest one that keeps the fpr, and to write it.
 * If it is mapped, each of its pages is compared with its checksum in the first pass, and no
 * pages stay in memory behind the place that is read. */
#define _GNU_SOURCE 1

#include <errno.h>
#include <sys/mman.h>

#include "../base/bytes.h"
#include "store.h"

/* How far the large filter was read. */
struct walk {
    const perhaps_filter *f;
    const struct perhaps_shrink_options *options;
    struct shrinking how;
    bool checks, maps;
    uint64_t pages_checked;
    uint64_t released;    /* up to where in the file the pages were given back in this pass */
    uint64_t done, total; /* bytes that were read, and that will be */
};

/* Pages are given back when they are so many bytes. */
static const uint64_t release_nbytes = 4 << 20;

static uint64_t pages_nbytes(const perhaps_filter *f)
{
    return f->mapping.table_offset - f->mapping.pages_offset;
}

/* Gives back the mapped pages in which only bytes before 'at' lie. */
static void release_before(struct walk *w, uint64_t at)
{
    if (at < w->released)
        w->released = 0; /* the next pass */
    if (at - w->released < release_nbytes)
        return;
    uint64_t end = at & ~(uint64_t)(HEADER_NBYTES - 1);
    madvise(w->f->mapping.file + w->released, (size_t)(end - w->released), MADV_DONTNEED);
    w->released = end;
}

/* Has the system read pages, and map them at once.  Returns 0, also if it cannot do that; or
 * PERHAPS_ERR_IO if reading them would end the process with SIGBUS. */
static int populate(struct walk *w, uint64_t at, uint64_t nbytes)
{
    enum { POPULATE_READ = 22 }; /* MADV_POPULATE_READ, which old headers do not have */
    uint64_t begin = at & ~(uint64_t)(HEADER_NBYTES - 1);
    int saved = errno;
    int failed =
        madvise(w->f->mapping.file + begin, (size_t)(at + nbytes - begin), POPULATE_READ);
    if (!failed || (errno != EFAULT && errno != EHWPOISON)) {
        errno = saved;
        return 0;
    }
    errno = EIO;
    return PERHAPS_ERR_IO;
}

/* Returns the error for a file that somebody writes in place. */
static int is_busy(void)
{
    errno = EBUSY;
    return PERHAPS_ERR_IO;
}

/* Checks pages that were not checked before, up to the one that ends at 'end' or behind it. */
static int check_until(struct walk *w, uint64_t end)
{
    uint64_t first = w->pages_checked, last = container_page_count(end);
    if (last <= first)
        return 0;
    w->pages_checked = last;
    int error = check_pages(w->f, first, last);
    return error == PERHAPS_ERR_UNSUPPORTED ? is_busy() : error;
}

static int enter(void *context, const uint8_t *bytes, uint64_t nbytes)
{
    struct walk *w = context;
    const struct perhaps_shrink_options *o = w->options;
    const struct mapping *m = &w->f->mapping;
    if (o->stopped && o->stopped(o->context))
        return PERHAPS_ERR_STOPPED;
    if (w->total < w->done + nbytes)
        w->total = w->done + nbytes;
    if (o->progress)
        o->progress(o->context, w->done, w->total);
    w->done += nbytes;
    int error = 0;
    if (w->maps) {
        uint64_t at = (uint64_t)(bytes - m->file);
        release_before(w, at);
        error = populate(w, at, nbytes);
    }
    if (!error && w->checks)
        error = check_until(w, (uint64_t)(bytes - m->file) - m->pages_offset + nbytes);
    return error;
}

/* Begins to read the filter.  Returns 0, PERHAPS_ERR_ARGUMENT, or PERHAPS_ERR_IO (EBUSY). */
static int walk_begin(struct walk *w, const perhaps_filter *f,
                      const struct perhaps_shrink_options *options)
{
    static const struct perhaps_shrink_options none = { 0 };
    *w = (struct walk){ .f = f,
                        .options = options ? options : &none,
                        .checks = f->mapping.file && f->mapping.fd < 0,
                        .maps = f->mapping.fd < 0 && is_mapped_file(f) };
    w->how = (struct shrinking){ .fpr = w->options->fpr, .enter = enter, .context = w };
    if (!is_unused(w->options->reserved))
        return PERHAPS_ERR_ARGUMENT;
    if (w->checks)
        w->total = 2 * pages_nbytes(f);
    return w->checks && container_is_live(f->mapping.file) ? is_busy() : 0;
}

/* Checks the pages that are left, and that nobody has begun to write the file. */
static int walk_end(struct walk *w)
{
    if (!w->checks)
        return 0;
    int error = check_until(w, pages_nbytes(w->f));
    return !error && container_is_live(w->f->mapping.file) ? is_busy() : error;
}

/* Finds the small filter.  If there is none, this may be due to damage. */
static int find(struct walk *w, const perhaps_filter *f,
                const struct perhaps_shrink_options *options, perhaps_filter **small)
{
    *small = NULL;
    int error = walk_begin(w, f, options);
    if (!error)
        error = shrink_plan(f, &w->how, small);
    if (error && error != PERHAPS_ERR_LIMIT)
        return error;
    int flaw = walk_end(w);
    return flaw ? flaw : error;
}

static int save(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                const char *path,
                int (*content_saver)(const struct content *content, const char *path))
{
    struct walk w;
    perhaps_filter *small;
    int error = find(&w, f, options, &small);
    if (!error) {
        const struct content content = { .f = small, .large = f, .how = &w.how };
        error = content_saver(&content, path);
    }
    perhaps_free(small);
    return error;
}

int perhaps_shrink_save(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                        const char *path)
{
    return save(f, options, path, content_save);
}

int perhaps_shrink_save_new(const perhaps_filter *f,
                            const struct perhaps_shrink_options *options, const char *path)
{
    return save(f, options, path, content_save_new);
}

int perhaps_shrink_write(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                         const struct perhaps_sink *sink)
{
    struct walk w;
    perhaps_filter *small;
    int error = find(&w, f, options, &small);
    if (!error)
        error = content_write(&(struct content){ .f = small, .large = f, .how = &w.how }, sink);
    perhaps_free(small);
    return error;
}

int perhaps_shrink_least_fpr(const perhaps_filter *f,
                             const struct perhaps_shrink_options *options, double *fpr)
{
    struct walk w;
    *fpr = 0;
    if (!f->kind->folds)
        return PERHAPS_ERR_UNSUPPORTED;
    int error = walk_begin(&w, f, options);
    if (!error)
        error = shrink_least_fpr(f, &w.how, fpr);
    return error ? error : walk_end(&w);
}
