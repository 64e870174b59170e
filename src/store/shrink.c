/* shrink.c - writes a smaller filter, piece by piece.
 *
 * The size that the number of keys lets expect nearly always keeps the fpr with the actual
 * bits.  So a filter without parts is saved while its bits are measured; if they do not keep
 * the fpr, the file is thrown away, and the next size is tried.  Where nothing can be taken
 * back, the large filter is read twice: to find the smallest one, and to write it.
 *
 * If it is mapped, each of its pages is compared with its checksum when it is first read, and
 * no pages stay in memory behind the place that is read.  The first use of a mapped page costs
 * an exception, in virtual machines more than all that is computed from the page; so the pages
 * are read from the file instead, if the caller says where it is. */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/bytes.h"
#include "../filter/counted.h"
#include "store.h"

/* Some pages of the file, which lie between two offsets in it. */
struct window {
    int fd;         /* negative: none */
    uint8_t *bytes; /* WINDOW_NBYTES of them */
    uint64_t begin, end;
};

/* It fits into the cache of a core.  Pieces of up to half of it are read with it. */
enum { WINDOW_NBYTES = 16 * PAGE_NBYTES };

/* How a filter is saved: content_save(), or content_save_new(). */
typedef int content_saver(const struct content *content, const char *path);

/* How far the large filter was read. */
struct walk {
    const perhaps_filter *f;
    const struct perhaps_shrink_options *options;
    struct shrinking how;
    bool checks, maps;
    struct window window;
    uint64_t pages_checked;
    uint64_t released;    /* up to where in the file the pages were given back in this pass */
    uint64_t done, total; /* bytes that were read, and that will be */
    const char *path;     /* where the small filter is saved while it is made; else NULL */
    content_saver *saver;
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

/* ---- The window -------------------------------------------------------------------------- */

/* Returns whether the file is the one that is mapped: its header and its checksums agree. */
static bool is_same_file(int fd, const struct mapping *m)
{
    uint8_t bytes[HEADER_NBYTES];
    if (read_at(fd, bytes, sizeof bytes, 0) || memcmp(bytes, m->file, sizeof bytes) != 0)
        return false;
    for (uint64_t at = m->table_offset, n; at < m->file_nbytes; at += n) {
        n = m->file_nbytes - at < sizeof bytes ? m->file_nbytes - at : sizeof bytes;
        if (read_at(fd, bytes, n, at) || memcmp(bytes, m->file + at, n) != 0)
            return false;
    }
    return true;
}

/* Opens the window if the file is there and memory for it, and leaves errno alone. */
static void window_open(struct window *window, const perhaps_filter *f, const char *path)
{
    int saved = errno;
    window->fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (window->fd >= 0 && is_same_file(window->fd, &f->mapping))
        window->bytes = allocate(&f->allocator, WINDOW_NBYTES);
    if (window->fd >= 0 && !window->bytes) {
        close(window->fd);
        window->fd = -1;
    }
    errno = saved;
}

static void window_close(struct window *window, const perhaps_filter *f)
{
    release(&f->allocator, window->bytes, WINDOW_NBYTES);
    if (window->fd >= 0)
        close_keeping_errno(window->fd);
}

/* Checks the pages of the window from 'at' on, as far as they were not checked.  One that
 * differs is looked at once more where it is mapped, which also tells damage from writing. */
static int check_window(struct walk *w, uint64_t at)
{
    const struct mapping *m = &w->f->mapping;
    int error = check_until(w, at - m->pages_offset); /* pages between two bodies */
    for (; at < w->window.end && !error; at += PAGE_NBYTES) {
        uint64_t page = (at - m->pages_offset) / PAGE_NBYTES;
        if (page < w->pages_checked)
            continue;
        const uint8_t *bytes = w->window.bytes + (at - w->window.begin);
        if (container_page_intact(m->file + m->table_offset, page, bytes,
                                  page_nbytes(m->table_offset, at)))
            w->pages_checked++;
        else if (!(error = check_until(w, (page + 1) * PAGE_NBYTES)))
            error = is_busy();
    }
    return error;
}

/* Moves the window: its first bytes are those at 'at', and behind them are whole pages. */
static int window_move(struct walk *w, uint64_t at)
{
    struct window *window = &w->window;
    const struct mapping *m = &w->f->mapping;
    uint64_t kept = 0, from = at - (at - m->pages_offset) % PAGE_NBYTES;
    if (at >= window->begin && at < window->end) {
        kept = window->end - at;
        memmove(window->bytes, window->bytes + (at - window->begin), kept);
        from = window->end;
    } else {
        at = from;
    }
    uint64_t room = WINDOW_NBYTES - kept, left = m->table_offset - from;
    uint64_t n = left < room ? left : room - room % PAGE_NBYTES;
    *window = (struct window){ window->fd, window->bytes, at, from + n };
    int error = read_at(window->fd, window->bytes + kept, n, from);
    if (error)
        window->end = window->begin;
    return error || !w->checks ? error : check_window(w, from);
}

/* Sets *bytes to where the bytes lie in the window. */
static int look_through(struct walk *w, const uint8_t **bytes, uint64_t nbytes)
{
    struct window *window = &w->window;
    uint64_t at = (uint64_t)(*bytes - w->f->mapping.file);
    int error = 0;
    if (at < window->begin || at + nbytes > window->end)
        error = window_move(w, at);
    *bytes = window->bytes + (at - window->begin);
    return error;
}

/* ---- The walk ---------------------------------------------------------------------------- */

/* Gets mapped bytes ready to be read. */
static int look_at_mapped(struct walk *w, const uint8_t *bytes, uint64_t nbytes)
{
    uint64_t at = (uint64_t)(bytes - w->f->mapping.file);
    release_before(w, at);
    return populate(w, at, nbytes);
}

static int enter(void *context, const uint8_t **bytes, uint64_t nbytes)
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
    if (w->window.fd >= 0 && nbytes <= WINDOW_NBYTES / 2)
        return look_through(w, bytes, nbytes);
    int error = w->maps ? look_at_mapped(w, *bytes, nbytes) : 0;
    if (!error && w->checks)
        error = check_until(w, (uint64_t)(*bytes - m->file) - m->pages_offset + nbytes);
    return error;
}

/* Begins to read the filter.  Returns 0, PERHAPS_ERR_ARGUMENT, or PERHAPS_ERR_IO (EBUSY). */
static int walk_begin(struct walk *w, const perhaps_filter *f,
                      const struct perhaps_shrink_options *options)
{
    static const struct perhaps_shrink_options none = { 0 };
    const bool as_saved = f->mapping.file && f->mapping.how == MAPPED_AS_SAVED;
    *w = (struct walk){ .f = f,
                        .options = options ? options : &none,
                        .window = { .fd = -1 },
                        .checks = as_saved,
                        .maps = as_saved && is_mapped_file(f) };
    w->how = (struct shrinking){ .fpr = w->options->fpr, .enter = enter, .context = w };
    if (!is_unused(w->options->reserved))
        return PERHAPS_ERR_ARGUMENT;
    if (w->checks)
        w->total = 2 * pages_nbytes(f);
    if (w->checks && container_is_in_place(f->mapping.file))
        return is_busy();
    if (w->checks && w->maps)
        window_open(&w->window, f, w->options->file);
    return 0;
}

/* Checks the pages that are left, and that nobody has begun to write the file. */
static int walk_end(struct walk *w)
{
    if (!w->checks)
        return 0;
    int error = check_until(w, pages_nbytes(w->f));
    return !error && container_is_in_place(w->f->mapping.file) ? is_busy() : error;
}

/* Finds the small filter.  If there is none, this may be due to damage.  What is saved at once
 * has come to the end itself. */
static int find(struct walk *w, perhaps_filter **small)
{
    int error = shrink_plan(w->f, &w->how, small);
    if (error ? error != PERHAPS_ERR_LIMIT : w->how.write != NULL)
        return error;
    int flaw = walk_end(w);
    return flaw ? flaw : error;
}

/* Reads the large filter to find the small one, and once more to save that. */
static int save_found(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                      const char *path, content_saver *saver)
{
    struct walk w;
    perhaps_filter *small = NULL;
    int error = walk_begin(&w, f, options);
    if (!error)
        error = find(&w, &small);
    if (!error) {
        const struct content content = { .f = small, .large = f, .how = &w.how };
        error = saver(&content, path);
    }
    perhaps_free(small);
    window_close(&w.window, f);
    return error;
}

static int save_tried(void *context, const perhaps_filter *small)
{
    const struct walk *w = context;
    const struct content content = {
        .f = small, .large = w->f, .how = &w->how, .is_tried = true
    };
    return w->saver(&content, w->path);
}

static int end_reading(void *context)
{
    return walk_end(context);
}

/* Saves a filter without parts while it finds out whether that is the small one. */
static int save_at_once(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                        const char *path, content_saver *saver)
{
    struct walk w;
    perhaps_filter *small = NULL;
    int error = walk_begin(&w, f, options);
    w.total /= 2;
    w.path = path;
    w.saver = saver;
    w.how.write = save_tried;
    w.how.end = end_reading;
    if (!error)
        error = find(&w, &small);
    perhaps_free(small);
    window_close(&w.window, f);
    return error;
}

static int save(const perhaps_filter *f, const struct perhaps_shrink_options *options,
                const char *path, content_saver *saver)
{
    /* the count lies in the header, before the bits */
    const bool first = f->kind->composite || (filter_counts_bits(f) && filter_has_one_mark(f));
    int error = first ? PERHAPS_ERR_UNSUPPORTED : save_at_once(f, options, path, saver);
    return error == PERHAPS_ERR_UNSUPPORTED ? save_found(f, options, path, saver) : error;
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
    perhaps_filter *small = NULL;
    int error = walk_begin(&w, f, options);
    if (!error)
        error = find(&w, &small);
    if (!error)
        error = content_write(&(struct content){ .f = small, .large = f, .how = &w.how }, sink);
    perhaps_free(small);
    window_close(&w.window, f);
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
    if (!error)
        error = walk_end(&w);
    window_close(&w.window, f);
    return error;
}
