/* life.c - makes, copies, clears and releases filters. */
#include <sodium/utils.h>
#include <string.h>

#include "../base/memory.h"
#include "filter.h"

/* ---- Making ---------------------------------------------------------------------------- */

/* Returns the size of f->writers; 0 if there are none. */
static size_t filter_writers_nbytes(const perhaps_filter *f)
{
    return f->shared && f->kind->writers_nbytes ? f->kind->writers_nbytes(&f->geometry) : 0;
}

/* Allocates the body, and what writers of a shared filter need.  Returns false if there is not
 * enough memory; perhaps_free() then releases the rest. */
static bool allocate_body(perhaps_filter *f)
{
    uint64_t nbytes = f->geometry.body_nbytes;
    if (nbytes && !(f->body.bytes = allocate(&f->allocator, nbytes)))
        return false;
    f->body_nbytes = nbytes;
    size_t writers_nbytes = filter_writers_nbytes(f);
    return !writers_nbytes || (f->writers = allocate(&f->allocator, writers_nbytes));
}

int filter_make(const struct filter_kind *kind, const struct geometry *g,
                const struct hasher *hasher, const struct perhaps_allocator *allocator,
                bool with_body, bool shared, perhaps_filter **filter)
{
    *filter = NULL;
    struct perhaps_allocator a = allocator_or_system(allocator);
    perhaps_filter *f = allocate(&a, sizeof *f);
    if (!f)
        return PERHAPS_ERR_MEMORY;
    f->kind = kind;
    f->removes = kind->remove != NULL;
    f->counts = kind->count != NULL;
    f->geometry = *g;
    f->hasher = *hasher;
    f->cpu = cpu_choose();
    f->hasher.cpu = f->cpu;
    f->allocator = a;
    f->shared = shared;
    f->counters = &f->own_counters;
    filter_reset_room(f);
    if (with_body && !allocate_body(f)) {
        perhaps_free(f);
        return PERHAPS_ERR_MEMORY;
    }
    filter_bind(f);
    *filter = f;
    return 0;
}

int filter_attach(perhaps_filter *f)
{
    const struct filter_kind *kind = f->kind;
    return kind->grows       ? kind->grows->attach(f)
           : kind->composite ? kind->composite->attach(f)
                             : 0;
}

/* Releases the filter and sets *filter to NULL if there was an error.  Returns the error. */
static int abandon(perhaps_filter **filter, int error)
{
    if (error) {
        perhaps_free(*filter);
        *filter = NULL;
    }
    return error;
}

int filter_new(const struct filter_kind *kind, const struct geometry *g,
               const struct hasher *hasher, const struct perhaps_options *options,
               perhaps_filter **filter)
{
    int error = filter_make(kind, g, hasher, options->allocator, true, options->shared, filter);
    if (!error)
        (*filter)->preference = options->preference;
    if (!error && kind->grows)
        error = kind->grows->begin(*filter, options);
    if (!error && kind->composite)
        error = kind->composite->begin(*filter, options);
    if (!error)
        error = filter_attach(*filter);
    return abandon(filter, error);
}

/* ---- Releasing ------------------------------------------------------------------------- */

/* The order matters: parts and state may use bytes of the mapping, so they go before it. */
void perhaps_free(perhaps_filter *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->parts.count; i++)
        perhaps_free(f->parts.part[i]);
    if (f->state)
        f->kind->grows->detach(f);
    if (f->mapping.file)
        f->mapping.release(f);
    if (f->body_nbytes)
        release(&f->allocator, f->body.bytes, f->body_nbytes);
    if (f->writers)
        release(&f->allocator, f->writers, filter_writers_nbytes(f));
    sodium_memzero(f->hasher.secret, sizeof f->hasher.secret);
    struct perhaps_allocator allocator = f->allocator;
    release(&allocator, f, sizeof *f);
}

/* ---- Copying and clearing -------------------------------------------------------------- */

struct geometry filter_geometry(const perhaps_filter *f)
{
    struct geometry g = f->geometry;
    if (f->kind->grows)
        f->kind->grows->grown(f, &g);
    return g;
}

const uint8_t *filter_next_piece(const perhaps_filter *f, struct body_cursor *cursor,
                                 uint64_t *nbytes)
{
    if (f->kind->grows)
        return f->kind->grows->next_piece(f, cursor, nbytes);
    if (cursor->offset)
        return NULL;
    *nbytes = cursor->offset = f->geometry.body_nbytes;
    return f->body.bytes;
}

/* Copies the body to one array, wherever its pieces lie. */
static void copy_body(const perhaps_filter *f, uint8_t *to)
{
    struct body_cursor cursor = { 0 };
    const uint8_t *piece;
    for (uint64_t n; (piece = filter_next_piece(f, &cursor, &n)); to += n)
        memcpy(to, piece, n);
}

/* Copies the parts.  Returns 0 or an error; 'copy' owns those that were copied before it. */
static int clone_parts(const perhaps_filter *filter, perhaps_filter *copy)
{
    int error = 0;
    for (size_t i = 0; i < filter->parts.count && !error; i++) {
        error = perhaps_clone(filter->parts.part[i], &copy->parts.part[i]);
        copy->parts.count += !error;
    }
    return error;
}

int perhaps_clone(const perhaps_filter *filter, perhaps_filter **copy)
{
    struct geometry g = filter_geometry(filter);
    int error = filter_make(filter->kind, &g, &filter->hasher, &filter->allocator, true,
                            filter->shared, copy);
    if (error)
        return error;
    *(*copy)->counters = *filter->counters;
    (*copy)->preference = filter->preference;
    copy_body(filter, (*copy)->body.bytes);
    error = clone_parts(filter, *copy);
    return abandon(copy, error ? error : filter_attach(*copy));
}

int perhaps_clear(perhaps_filter *f)
{
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    if (f->kind->clear)
        f->kind->clear(f);
    else
        memset(f->body.bytes, 0, f->geometry.body_nbytes);
    *f->counters = (struct counters){ 0 };
    filter_reset_room(f);
    return 0;
}

int perhaps_secret(const perhaps_filter *f, uint8_t secret[16])
{
    if (f->hasher.id != PERHAPS_HASH_SIP)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!f->hasher.ready)
        return PERHAPS_ERR_SECRET;
    memcpy(secret, f->hasher.secret, sizeof f->hasher.secret);
    return 0;
}
