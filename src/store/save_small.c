/* save_small.c - makes a smaller filter of one that may be mapped, and saves or writes it.
 *
 * Each page of a mapped file is compared with its checksum when it is first read.  So damage is
 * found before anything is written. */
#include <errno.h>

#include "../core/downsize.h"
#include "store.h"
#include <perhaps_sets.h>

/* How far the large filter was read. */
struct walk {
    const perhaps_filter *f;
    const struct perhaps_shrink_options *options;
    bool checks;
    uint64_t pages_checked;
    uint64_t done, total; /* bytes that were read, and that will be */
};

static uint64_t pages_nbytes(const perhaps_filter *f)
{
    return f->mapping->table_offset - f->mapping->pages_offset;
}

/* Tells the system in which order the file will be read. */
static void advise(const perhaps_filter *f, enum map_order order)
{
    if (is_mapped_file(f))
        map_advise(f->mapping->file, f->mapping->file_nbytes, order);
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
    const struct mapping *m = w->f->mapping;
    if (o->stopped && o->stopped(o->context))
        return PERHAPS_ERR_STOPPED;
    if (w->total < w->done + nbytes)
        w->total = w->done + nbytes;
    if (o->progress)
        o->progress(o->context, w->done, w->total);
    w->done += nbytes;
    if (!w->checks)
        return 0;
    /* At once: the first use of a mapped page costs an exception, in virtual machines more than
     * all that is computed from the page. */
    uint64_t at = (uint64_t)(bytes - m->file);
    int error = map_read(m->file, at, nbytes);
    return error ? error : check_until(w, at - m->pages_offset + nbytes);
}

/* Begins to read the filter.  Returns 0, PERHAPS_ERR_ARGUMENT, PERHAPS_ERR_IO (EBUSY), or
 * PERHAPS_ERR_DAMAGED. */
static int walk_begin(struct walk *w, const perhaps_filter *f,
                      const struct perhaps_shrink_options *options)
{
    static const struct perhaps_shrink_options none = { 0 };
    *w = (struct walk){ .f = f,
                        .options = options ? options : &none,
                        .checks = f->mapping->file && f->mapping->how == MAPPED_AS_SAVED,
                        .total = perhaps_write_nbytes(f) };
    if (!is_unused(w->options->reserved))
        return PERHAPS_ERR_ARGUMENT;
    if (!w->checks)
        return filter_check(f);
    if (container_is_in_place(f->mapping->file))
        return is_busy();
    advise(f, MAP_IN_ORDER);
    return 0;
}

/* Checks the pages that are left, and that nobody has begun to write the file.  'error' is how
 * the walk has ended: if nothing smaller was found, this may be due to damage. */
static int walk_end(struct walk *w, int error)
{
    if (!w->checks)
        return error;
    advise(w->f, MAP_AS_USUAL);
    if (error && error != PERHAPS_ERR_LIMIT)
        return error;
    int flaw = check_until(w, pages_nbytes(w->f));
    if (!flaw && container_is_in_place(w->f->mapping->file))
        flaw = is_busy();
    return flaw ? flaw : error;
}

static int make_small(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                      perhaps_filter **small)
{
    struct walk w;
    *small = NULL;
    int error = walk_begin(&w, f, options);
    if (!error)
        error =
            walk_end(&w, downsize(f, w.options->fpr, &(struct watcher){ enter, &w }, small));
    return error;
}

int perhaps_shrink_save(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                        const char *path)
{
    perhaps_filter *small;
    int error = make_small(f, options, &small);
    if (!error)
        error = perhaps_save(small, path);
    perhaps_free(small);
    return error;
}

int perhaps_shrink_save_new(const perhaps_filter *f,
                            const struct perhaps_shrink_options *options, const char *path)
{
    perhaps_filter *small;
    int error = make_small(f, options, &small);
    if (!error)
        error = perhaps_save_new(small, path);
    perhaps_free(small);
    return error;
}

int perhaps_shrink_write(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                         const struct perhaps_sink *sink)
{
    perhaps_filter *small;
    int error = make_small(f, options, &small);
    if (!error)
        error = perhaps_write(small, sink);
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
        error = walk_end(&w, downsize_least_fpr(f, &(struct watcher){ enter, &w }, fpr));
    return error;
}
