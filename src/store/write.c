/* write.c - writes filters as bytes that go out one after the other. */

#include <string.h>

#include "../base/bytes.h"
#include "store.h"

/* The pages on their way out.  A page goes to the sink, and its checksum into the table,
 * when it is full. */
struct writer {
    const struct perhaps_sink *sink;
    uint64_t npage;  /* how many bytes are in 'page' */
    uint64_t number; /* the number of the next page that goes out */
    uint8_t *table;  /* the checksum table, filled so far */
    uint8_t *page;   /* room for a page that is not full yet */
};

static int put(const struct perhaps_sink *sink, const uint8_t *bytes, uint64_t nbytes)
{
    return sink->write(sink->context, bytes, (size_t)nbytes);
}

/* Writes pages that lie side by side, of which the last may be short, and enters their
 * checksums. */
static int write_run(struct writer *w, const uint8_t *pages, uint64_t nbytes)
{
    for (uint64_t at = 0; at < nbytes; at += PAGE_NBYTES, w->number++)
        container_fill_entry(w->table, w->number, pages + at, page_nbytes(nbytes, at));
    return put(w->sink, pages, nbytes);
}

/* As many bytes of a body go out at once: few pieces for the sink, which are still in the cache
 * after their checksums were computed. */
enum { RUN_NBYTES = 16 * PAGE_NBYTES };

/* Writes bytes of bodies.  Whole pages go out from where they lie; the rest is collected. */
static int write_pages(struct writer *w, const uint8_t *bytes, uint64_t nbytes)
{
    int error = 0;
    while (nbytes && !error) {
        uint64_t n = PAGE_NBYTES - w->npage;
        if (!w->npage && nbytes >= PAGE_NBYTES) {
            n = nbytes < RUN_NBYTES ? nbytes - nbytes % PAGE_NBYTES : RUN_NBYTES;
            error = write_run(w, bytes, n);
        } else {
            n = n < nbytes ? n : nbytes;
            memcpy(w->page + w->npage, bytes, n);
            w->npage += n;
            if (w->npage == PAGE_NBYTES) {
                w->npage = 0;
                error = write_run(w, w->page, PAGE_NBYTES);
            }
        }
        bytes += n;
        nbytes -= n;
    }
    return error;
}

/* Writes a body whose bytes a reader gives.  Such a filter has no parts, so its body begins
 * with the first page. */
static int write_read(struct writer *w, const struct content *c)
{
    uint64_t nbytes = c->f->geometry.body_nbytes;
    int error = 0;
    for (uint64_t at = 0; at < nbytes && !error; at += PAGE_NBYTES) {
        uint64_t n = page_nbytes(nbytes, at);
        error = c->reader(c->context, at, w->page, (size_t)n);
        if (!error)
            error = write_run(w, w->page, n);
    }
    return error;
}

static int take_pages(void *writer, const void *bytes, size_t nbytes)
{
    return write_pages(writer, bytes, nbytes);
}

/* Gives the bodies of a filter and its parts to a sink, each from a multiple of HEADER_NBYTES
 * on.  *at is how many bytes the sink got before. */
static int give_bodies(const perhaps_filter *f, const struct perhaps_sink *sink, uint64_t *at)
{
    static uint8_t zeros[HEADER_NBYTES]; /* not const: takes no room in the library */
    uint64_t nbytes = filter_geometry(f).body_nbytes, past = *at % HEADER_NBYTES;
    uint64_t gap = nbytes && past ? HEADER_NBYTES - past : 0;
    int error = gap ? put(sink, zeros, gap) : 0;
    struct body_cursor cursor = { 0 };
    const uint8_t *piece;
    for (uint64_t n; !error && (piece = filter_next_piece(f, &cursor, &n));)
        error = put(sink, piece, n);
    *at += gap + nbytes;
    for (size_t i = 0; i < f->parts.count && !error; i++)
        error = give_bodies(f->parts.part[i], sink, at);
    return error;
}

/* Writes the pages, and fills the checksum table. */
static int write_all_pages(struct writer *w, const struct content *c, uint64_t nbytes)
{
    const struct perhaps_sink sink = { .write = take_pages, .context = w };
    int error = c->reader    ? write_read(w, c)
                : c->produce ? c->produce(c->context, &sink)
                             : give_bodies(c->f, &sink, &(uint64_t){ 0 });
    if (!error && w->npage)
        error = write_run(w, w->page, w->npage);
    if (!error)
        container_seal_table(w->table, nbytes);
    return error;
}

int content_write(const struct content *c, const struct perhaps_sink *sink)
{
    const perhaps_filter *f = c->f;
    struct header h;
    struct writer w = { .sink = sink };
    int error = filter_check(f);
    if (error)
        return error;
    container_plan(f, &h);
    if (c->point)
        h.journal = *c->point;
    uint64_t pages_nbytes = header_pages_nbytes(&h);
    uint64_t table_nbytes = container_table_nbytes(pages_nbytes);
    uint64_t room = round_up(page_nbytes(pages_nbytes, 0), 64);
    uint64_t nbytes = h.nbytes + room + table_nbytes;
    uint8_t *head = allocate(&f->allocator, nbytes);
    if (!head)
        return PERHAPS_ERR_MEMORY;
    w.page = head + h.nbytes;
    w.table = w.page + room;
    container_encode(f, &h, head);
    error = put(sink, head, h.nbytes);
    if (!error)
        error = write_all_pages(&w, c, pages_nbytes);
    if (!error)
        error = put(sink, w.table, table_nbytes);
    release(&f->allocator, head, nbytes);
    return error;
}

int perhaps_write(const perhaps_filter *f, const struct perhaps_sink *sink)
{
    return content_write(&(struct content){ .f = f }, sink);
}

/* ---- Some of the bytes ------------------------------------------------------------------- */

/* Passes on the bytes from number 'first' to before 'end', of all that it is given. */
struct range {
    const struct perhaps_sink *sink;
    uint64_t first, end;
    uint64_t at; /* how many bytes it was given so far */
};

/* Does not look at bytes that it does not pass on. */
static int take_range(void *context, const void *bytes, size_t nbytes)
{
    struct range *r = context;
    uint64_t begin = r->at, end = begin + nbytes;
    uint64_t from = r->first > begin ? r->first : begin, to = r->end < end ? r->end : end;
    r->at = end;
    return from < to ? put(r->sink, (const uint8_t *)bytes + (from - begin), to - from) : 0;
}

static int take_nothing(void *context, const void *bytes, size_t nbytes)
{
    (void)context;
    (void)bytes;
    (void)nbytes;
    return 0;
}

static int range_header(const perhaps_filter *f, const struct header *h,
                        const struct perhaps_sink *range)
{
    uint8_t *head = allocate(&f->allocator, h->nbytes);
    if (!head)
        return PERHAPS_ERR_MEMORY;
    container_encode(f, h, head);
    int error = put(range, head, h->nbytes);
    release(&f->allocator, head, h->nbytes);
    return error;
}

/* Writes all pages to nowhere, for their checksums. */
static int range_table(const perhaps_filter *f, const struct header *h,
                       const struct perhaps_sink *range)
{
    const struct perhaps_sink nowhere = { .write = take_nothing };
    struct writer w = { .sink = &nowhere };
    uint64_t pages_nbytes = header_pages_nbytes(h);
    uint64_t table_nbytes = container_table_nbytes(pages_nbytes);
    uint64_t nbytes = PAGE_NBYTES + table_nbytes;
    w.page = allocate(&f->allocator, nbytes);
    if (!w.page)
        return PERHAPS_ERR_MEMORY;
    w.table = w.page + PAGE_NBYTES;
    int error = write_all_pages(&w, &(struct content){ .f = f }, pages_nbytes);
    if (!error)
        error = put(range, w.table, table_nbytes);
    release(&f->allocator, w.page, nbytes);
    return error;
}

int perhaps_write_range(const perhaps_filter *f, uint64_t first, uint64_t nbytes,
                        const struct perhaps_sink *sink)
{
    struct header h;
    container_plan(f, &h);
    if (first >= h.file_nbytes || !nbytes)
        return 0;
    uint64_t left = h.file_nbytes - first, end = first + (nbytes < left ? nbytes : left);
    struct range r = { .sink = sink, .first = first, .end = end };
    const struct perhaps_sink range = { .write = take_range, .context = &r };
    int error = filter_check_once(f);
    if (!error && first < h.nbytes)
        error = range_header(f, &h, &range);
    r.at = h.nbytes;
    if (!error && first < h.table_offset && end > h.nbytes)
        error = give_bodies(f, &range, &(uint64_t){ 0 });
    r.at = h.table_offset;
    return error || end <= r.at ? error : range_table(f, &h, &range);
}

uint64_t perhaps_write_nbytes(const perhaps_filter *f)
{
    struct header h;
    container_plan(f, &h);
    return h.file_nbytes;
}

/* ---- Memory ----------------------------------------------------------------------------- */

static int append(void *context, const void *bytes, size_t nbytes)
{
    uint8_t **end = context;
    memcpy(*end, bytes, nbytes);
    *end += nbytes;
    return 0;
}

int perhaps_to_bytes(const perhaps_filter *filter, void *bytes, size_t nbytes)
{
    uint8_t *end = bytes;
    const struct perhaps_sink sink = { append, &end };
    if (nbytes != perhaps_write_nbytes(filter))
        return PERHAPS_ERR_ARGUMENT;
    return perhaps_write(filter, &sink);
}
