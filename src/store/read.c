/* read.c - makes filters from bytes that come in one after the other.
 *
 * The bytes may come from a pipe, and others may follow.  So no byte is read twice, and none
 * behind the last byte of the filter.  The checksum table comes after the pages: so the
 * checksums of the pages are computed while they come in, and are compared at the end. */

#include <string.h>

#include "../base/bytes.h"
#include "store.h"

static int take(const struct perhaps_source *source, uint8_t *bytes, uint64_t nbytes)
{
    return source->read(source->context, bytes, (size_t)nbytes);
}

/* ---- Headers ---------------------------------------------------------------------------- */

/* Reads what tells how to read on.  Returns 0; PERHAPS_ERR_FORMAT if it does not begin as a
 * filter file does, and so is something else; PERHAPS_ERR_DAMAGED if it does, but is too short;
 * or an error of the source. */
static int read_begin(const struct perhaps_source *source, uint64_t source_nbytes,
                      uint8_t bytes[BEGIN_NBYTES])
{
    if (source_nbytes < MAGIC_NBYTES)
        return PERHAPS_ERR_FORMAT;
    int error = take(source, bytes, MAGIC_NBYTES);
    if (error)
        return error;
    if (!container_has_magic(bytes))
        return PERHAPS_ERR_FORMAT;
    if (source_nbytes < BEGIN_NBYTES)
        return PERHAPS_ERR_DAMAGED;
    return take(source, bytes + MAGIC_NBYTES, BEGIN_NBYTES - MAGIC_NBYTES);
}

/* Reads as many bytes as are to follow those that were read, which are 'before'. */
static int head_grow(const struct perhaps_source *source,
                     const struct perhaps_allocator *allocator, struct head *head,
                     const uint8_t *before, uint64_t before_nbytes, uint64_t nbytes)
{
    uint8_t *bytes = allocate(allocator, nbytes);
    if (!bytes)
        return PERHAPS_ERR_MEMORY;
    memcpy(bytes, before, before_nbytes);
    head_release(head, allocator);
    head->bytes = bytes;
    head->nbytes = nbytes;
    return take(source, bytes + before_nbytes, nbytes - before_nbytes);
}

int head_read(const struct perhaps_source *source, const struct perhaps_allocator *allocator,
              struct head *head)
{
    uint64_t source_nbytes = source->nbytes ? source->nbytes : NBYTES_UNKNOWN, nbytes;
    uint8_t begin[BEGIN_NBYTES];
    int error = read_begin(source, source_nbytes, begin);
    if (!error)
        error = container_begin(begin, source_nbytes, &nbytes);
    if (!error)
        error = head_grow(source, allocator, head, begin, sizeof begin, nbytes);
    if (!error)
        error = container_measure(head->bytes, source_nbytes, &nbytes);
    if (!error && nbytes > head->nbytes)
        error = head_grow(source, allocator, head, head->bytes, head->nbytes, nbytes);
    return error ? error : container_decode(head->bytes, source_nbytes, &head->header);
}

/* Reads the header of bytes that lie in memory, which need not be copied if they are those of a
 * small file. */
static int head_lying(const struct perhaps_source *source,
                      const struct perhaps_allocator *allocator, const uint8_t *bytes,
                      struct head *head)
{
    if (source->nbytes < BEGIN_NBYTES || !container_has_magic(bytes) ||
        !container_is_small(bytes))
        return head_read(source, allocator, head);
    head->bytes = (uint8_t *)bytes;
    return container_decode(bytes, source->nbytes, &head->header);
}

void head_release(struct head *head, const struct perhaps_allocator *allocator)
{
    if (head->nbytes)
        release(allocator, head->bytes, head->nbytes);
    head->nbytes = 0;
}

/* ---- Bodies ----------------------------------------------------------------------------- */

/* Copies to the body of 'f', which lies at 'offset' in the file, its share of these bytes,
 * which lie at 'at' in the file.  They may share none. */
static void take_bytes(perhaps_filter *f, uint64_t offset, const uint8_t *bytes, uint64_t at,
                       uint64_t nbytes)
{
    uint64_t from = offset > at ? offset : at;
    uint64_t end = offset + f->body.geometry.body_nbytes;
    end = end < at + nbytes ? end : at + nbytes;
    if (from < end)
        memcpy(f->body.bytes + (from - offset), bytes + (from - at), end - from);
}

/* Returns whether these bytes of the file are all bytes of the body of this section. */
static bool is_in_body(const struct reading *r, uint32_t number, uint64_t at, uint64_t nbytes)
{
    if (number == r->head.header.sections)
        return false;
    const struct section *s = &r->sections[number];
    return s->body_offset <= at && at + nbytes <= s->body_offset + s->geometry.body_nbytes;
}

/* Reads the pages to the bodies, and computes their checksum table.  A page that has bytes of
 * several bodies is read to 'page' first. */
static int read_pages(struct reading *r, uint8_t *table, uint8_t page[PAGE_NBYTES])
{
    const struct header *h = &r->head.header;
    uint64_t number = 0, n;
    uint32_t first = 0; /* the first section whose body is not complete */
    for (uint64_t at = h->nbytes; at < h->table_offset; at += n, number++) {
        n = page_nbytes(h->table_offset, at);
        bool in_body = is_in_body(r, first, at, n);
        uint8_t *to = page;
        if (in_body)
            to = r->made[first]->body.bytes + (at - r->sections[first].body_offset);
        int error = take(r->source, to, n);
        if (error)
            return error;
        container_fill_entry(table, number, to, n);
        for (uint32_t i = first; i < h->sections; i++) {
            uint64_t offset = r->sections[i].body_offset;
            if (offset >= at + n)
                break;
            if (!in_body)
                take_bytes(r->made[i], offset, page, at, n);
            if (offset + r->made[i]->body.geometry.body_nbytes <= at + n)
                first = i + 1;
        }
    }
    container_seal_table(table, header_pages_nbytes(h));
    return 0;
}

/* Reads the checksum table and compares it with that of the pages that came in.  The table of a
 * live file is void, so a difference is no damage there. */
static int read_table(struct reading *r, const uint8_t *table, uint8_t page[PAGE_NBYTES])
{
    uint64_t nbytes = container_table_nbytes(header_pages_nbytes(&r->head.header)), n;
    bool same = true;
    for (uint64_t at = 0; at < nbytes; at += n) {
        n = page_nbytes(nbytes, at);
        int error = take(r->source, page, n);
        if (error)
            return error;
        same &= !memcmp(page, table + at, n);
    }
    return same || r->head.header.in_place ? 0 : PERHAPS_ERR_DAMAGED;
}

/* Copies the bodies of a small file, all of whose bytes are there. */
static void copy_bodies(struct reading *r)
{
    for (uint32_t i = 0; i < r->head.header.sections; i++)
        memcpy(r->made[i]->body.bytes, r->head.bytes + r->sections[i].body_offset,
               r->made[i]->body.geometry.body_nbytes);
}

int read_bodies(struct reading *r)
{
    if (r->head.header.small) {
        copy_bodies(r);
        return 0;
    }
    uint64_t pages_nbytes = header_pages_nbytes(&r->head.header);
    uint64_t table_nbytes = container_table_nbytes(pages_nbytes);
    uint64_t longest = pages_nbytes > table_nbytes ? pages_nbytes : table_nbytes;
    uint64_t room = round_up(page_nbytes(longest, 0), 64);
    uint64_t nbytes = room + table_nbytes;
    uint8_t *page = allocate(&r->allocator, nbytes);
    if (!page)
        return PERHAPS_ERR_MEMORY;
    uint8_t *table = page + room;
    int error = read_pages(r, table, page);
    if (!error)
        error = read_table(r, table, page);
    release(&r->allocator, page, nbytes);
    return error;
}

/* ---- Filters ---------------------------------------------------------------------------- */

/* Makes the filter of a section, and gives it to its parent, which was made before. */
static int make_section(struct reading *r, uint32_t number)
{
    const struct section *s = &r->sections[number];
    perhaps_filter *f;
    int error = filter_make(s->kind, &s->geometry, &r->hasher, &r->allocator, r->way->with_body,
                            r->way->shared, &f);
    if (error)
        return error;
    f->own_counters = s->counters;
    f->read_only = r->way->read_only;
    r->made[number] = f;
    if (number == 0)
        return 0;
    perhaps_filter *parent = r->made[s->parent];
    error = parent->parts->count == PARTS_MOST ? PERHAPS_ERR_DAMAGED : filter_adopt(parent, f);
    if (error)
        perhaps_free(f);
    return error;
}

/* Makes all filters, fills their bodies, and completes them, the last first: parts come behind
 * their composite in the file, and must be complete before it. */
static int make_all(struct reading *r)
{
    uint32_t count = r->head.header.sections;
    int error = 0;
    for (uint32_t i = 0; i < count && !error; i++)
        error = make_section(r, i);
    if (!error)
        error = r->way->fill(r);
    for (uint32_t i = count; i > 0 && !error; i--) {
        filter_bind(r->made[i - 1]);
        error = filter_attach(r->made[i - 1]);
    }
    return error;
}

/* Returns whether all parts of the filter may be shared by threads. */
static bool takes_threads(const struct reading *r)
{
    for (uint32_t i = 0; i < r->head.header.sections; i++)
        if (!(r->sections[i].kind->about.abilities & PERHAPS_CAN_THREADS))
            return false;
    return true;
}

/* Checks whether the filter can be opened as the options ask.  Returns 0 or
 * PERHAPS_ERR_UNSUPPORTED. */
static int check_options(const struct reading *r)
{
    const unsigned abilities = r->sections->kind->about.abilities;
    const bool in_place = r->way->in_place;
    if ((in_place && !(abilities & PERHAPS_CAN_SHARE)) ||
        (r->way->shared && !takes_threads(r)) ||
        (r->way->to_record && (r->head.header.in_place || !r->sections->kind->add)))
        return PERHAPS_ERR_UNSUPPORTED;
    if (r->options->check && (r->head.header.in_place || in_place || r->way->to_record))
        return PERHAPS_ERR_UNSUPPORTED; /* the checksums are void, or soon will be */
    return 0;
}

/* Checks the sections, sets up the hash, and makes the filter. */
static int read_sections(struct reading *r, perhaps_filter **filter)
{
    const struct header *h = &r->head.header;
    bool to_write = !r->way->read_only || h->journal.branch;
    int error = container_sections(r->head.bytes, h, to_write, r->sections);
    if (!error)
        error = check_options(r);
    if (!error)
        error = hasher_restore(&r->hasher, h->hash_id, h->hash_seed,
                               h->hash_checks ? &h->hash_check : NULL, &r->options->hashing,
                               r->options->without_secret);
    r->hasher.note = h->note;
    if (!error)
        error = make_all(r);
    if (!error && h->set)
        filter_become_set(r->made[0]);
    if (!error && h->estimated)
        filter_become_estimated(r->made[0]);
    if (!error && r->way->to_record)
        filter_count_once(r->made[0]);
    if (!error && h->set != r->made[0]->is_set)
        error = PERHAPS_ERR_DAMAGED; /* a kind that is always one */
    if (error)
        perhaps_free(r->made[0]);
    else
        *filter = r->made[0];
    return error;
}

/* Makes room for the sections while the filter is made: a file may have thousands, but most
 * have one. */
static int read_behind_header(struct reading *r, perhaps_filter **filter)
{
    uint32_t count = r->head.header.sections;
    struct section only;
    perhaps_filter *only_made = NULL;
    r->sections = &only;
    r->made = &only_made;
    if (count == 1) {
        int error = read_sections(r, filter);
        r->sections = NULL;
        r->made = NULL;
        return error;
    }
    uint64_t nbytes = count * (sizeof *r->sections + sizeof *r->made);
    r->sections = allocate(&r->allocator, nbytes);
    if (!r->sections)
        return PERHAPS_ERR_MEMORY;
    r->made = (perhaps_filter **)(void *)(r->sections + count);
    int error = read_sections(r, filter);
    release(&r->allocator, r->sections, nbytes);
    return error;
}

int filter_read(const struct perhaps_source *source, const struct perhaps_open_options *options,
                const struct way *way, struct journal_point *point, perhaps_filter **filter)
{
    struct reading r = { .source = source,
                         .options = options,
                         .way = way,
                         .allocator = allocator_or_system(options->allocator) };
    int error = way->lying ? head_lying(source, &r.allocator, way->lying, &r.head)
                           : head_read(source, &r.allocator, &r.head);
    if (!error && r.head.header.journal.branch && !point)
        error = PERHAPS_ERR_JOURNAL; /* which is not here: keys may be missing */
    if (!error && point)
        *point = r.head.header.journal;
    if (!error)
        error = read_behind_header(&r, filter);
    head_release(&r.head, &r.allocator);
    wipe(r.hasher.secret, sizeof r.hasher.secret);
    return error;
}

int perhaps_read(const struct perhaps_source *source,
                 const struct perhaps_open_options *options, perhaps_filter **filter)
{
    const struct perhaps_open_options load = { .mode = PERHAPS_MODE_LOAD };
    options = options ? options : &load;
    *filter = NULL;
    if (options->mode != PERHAPS_MODE_LOAD || !is_unused(options->reserved))
        return PERHAPS_ERR_ARGUMENT;
    const struct way way = { .fill = read_bodies,
                             .with_body = true,
                             .shared = options->shared };
    return filter_read(source, options, &way, NULL, filter);
}
