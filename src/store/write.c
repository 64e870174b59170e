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
    uint64_t nbytes = c->f->body.geometry.body_nbytes;
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

/* Gives the bodies of a filter and its parts to a sink, each from a multiple of 'unit' on.  *at
 * is how many bytes the sink got before. */
static int give_bodies(const perhaps_filter *f, const struct perhaps_sink *sink, uint64_t unit,
                       uint64_t *at)
{
    static uint8_t zeros[HEADER_NBYTES]; /* not const: takes no room in the library */
    uint64_t nbytes = filter_geometry(f).body_nbytes, past = *at % unit;
    uint64_t gap = nbytes && past ? unit - past : 0;
    int error = gap ? put(sink, zeros, gap) : 0;
    struct body_cursor cursor = { 0 };
    const uint8_t *piece;
    for (uint64_t n; !error && (piece = filter_next_piece(f, &cursor, &n));)
        error = put(sink, piece, n);
    *at += gap + nbytes;
    for (size_t i = 0; i < f->parts->count && !error; i++)
        error = give_bodies(f->parts->part[i], sink, unit, at);
    return error;
}

/* Writes the pages, and fills the checksum table. */
static int write_all_pages(struct writer *w, const struct content *c, uint64_t nbytes)
{
    const struct perhaps_sink sink = { .write = take_pages, .context = w };
    int error = c->reader    ? write_read(w, c)
                : c->produce ? c->produce(c->context, &sink)
                             : give_bodies(c->f, &sink, HEADER_NBYTES, &(uint64_t){ 0 });
    if (!error && w->npage)
        error = write_run(w, w->page, w->npage);
    if (!error)
        container_seal_table(w->table, nbytes);
    return error;
}

/* Writes a file that is not small. */
static int write_large(const struct content *c, const struct header *h,
                       const struct perhaps_sink *sink)
{
    const perhaps_filter *f = c->f;
    struct writer w = { .sink = sink };
    uint64_t pages_nbytes = header_pages_nbytes(h);
    uint64_t table_nbytes = container_table_nbytes(pages_nbytes);
    uint64_t room = round_up(page_nbytes(pages_nbytes, 0), 64);
    uint64_t nbytes = h->nbytes + room + table_nbytes;
    uint8_t *head = allocate(&f->allocator, nbytes);
    if (!head)
        return PERHAPS_ERR_MEMORY;
    w.page = head + h->nbytes;
    w.table = w.page + room;
    container_encode(f, h, head);
    int error = put(sink, head, h->nbytes);
    if (!error)
        error = write_all_pages(&w, c, pages_nbytes);
    if (!error)
        error = put(sink, w.table, table_nbytes);
    release(&f->allocator, head, nbytes);
    return error;
}

/* ---- Small files ------------------------------------------------------------------------- */

static int append(void *context, const void *bytes, size_t nbytes)
{
    uint8_t **end = context;
    memcpy(*end, bytes, nbytes);
    *end += nbytes;
    return 0;
}

/* Makes all bytes of a small file. */
static int put_small(const struct content *c, const struct header *h, uint8_t *bytes)
{
    uint8_t *rest = bytes + h->nbytes, *end = rest;
    const struct perhaps_sink bodies = { append, &end };
    int error = c->reader ? c->reader(c->context, 0, rest, (size_t)header_pages_nbytes(h))
                          : give_bodies(c->f, &bodies, SMALL_UNIT, &(uint64_t){ 0 });
    container_encode(c->f, h, bytes);
    container_encode_counters(c->f, h, bytes);
    small_seal(bytes, h->nbytes, rest, h->file_nbytes - h->nbytes);
    return error;
}

static int write_small(const struct content *c, const struct header *h,
                       const struct perhaps_sink *sink)
{
    const struct perhaps_allocator *a = &c->f->allocator;
    uint8_t *bytes = allocate(a, h->file_nbytes);
    if (!bytes)
        return PERHAPS_ERR_MEMORY;
    int error = put_small(c, h, bytes);
    if (!error)
        error = put(sink, bytes, h->file_nbytes);
    release(a, bytes, h->file_nbytes);
    return error;
}

static int read_produced(void *body, uint64_t offset, void *buffer, size_t nbytes)
{
    memcpy(buffer, (const uint8_t *)body + offset, nbytes);
    return 0;
}

/* Has the body produced before all else: then its filter is complete, and so is the header,
 * whose size depends on the fields. */
static int write_produced(const struct content *c, uint64_t nbytes,
                          const struct perhaps_sink *sink)
{
    const struct perhaps_allocator *a = &c->f->allocator;
    uint8_t *body = allocate(a, nbytes), *end = body;
    if (!body)
        return PERHAPS_ERR_MEMORY;
    int error = c->produce(c->context, &(struct perhaps_sink){ append, &end });
    if (!error)
        error = content_write(
            &(struct content){ .f = c->f, .reader = read_produced, .context = body }, sink);
    release(a, body, nbytes);
    return error;
}

/* ---- All files --------------------------------------------------------------------------- */

void content_plan(const struct content *c, struct header *h)
{
    if (c->point)
        container_plan_large(c->f, c->point, h);
    else
        container_plan(c->f, h);
}

int content_write(const struct content *c, const struct perhaps_sink *sink)
{
    struct header h;
    int error = filter_check(c->f);
    if (error)
        return error;
    content_plan(c, &h);
    return !h.small     ? write_large(c, &h, sink)
           : c->produce ? write_produced(c, header_pages_nbytes(&h), sink)
                        : write_small(c, &h, sink);
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
    if (h.small)
        return error ? error : write_small(&(struct content){ .f = f }, &h, &range);
    if (!error && first < h.nbytes)
        error = range_header(f, &h, &range);
    r.at = h.nbytes;
    if (!error && first < h.table_offset && end > h.nbytes)
        error = give_bodies(f, &range, HEADER_NBYTES, &(uint64_t){ 0 });
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

int perhaps_to_bytes(const perhaps_filter *f, void *bytes, size_t nbytes)
{
    const struct content content = { .f = f };
    struct header h;
    uint8_t *end = bytes;
    container_plan(f, &h);
    if (nbytes != h.file_nbytes)
        return PERHAPS_ERR_ARGUMENT;
    if (!h.small)
        return perhaps_write(f, &(struct perhaps_sink){ append, &end });
    int error = filter_check(f);
    return error ? error : put_small(&content, &h, bytes);
}
