/* life.c - makes, copies, clears and releases filters. */
#include <string.h>

#include "counters.h"

const struct mapping nothing_mapped;
const struct parts no_parts;

/* ---- Making ---------------------------------------------------------------------------- */

/* Returns how many bytes the writers of a filter have, with its holding before them; 0 if there
 * are none. */
static size_t filter_writers_nbytes(const perhaps_filter *f)
{
    size_t nbytes =
        f->shared && f->kind->writers_nbytes ? f->kind->writers_nbytes(&f->body.geometry) : 0;
    return nbytes ? HOLDING_NBYTES + nbytes : 0;
}

/* Sets the writers to what lies behind the holding in their bytes. */
static void place_writers(perhaps_filter *f, uint8_t *bytes)
{
    f->body.writers = bytes ? bytes + HOLDING_NBYTES : NULL;
}

static size_t parts_nbytes(size_t room)
{
    return sizeof(struct parts) + room * sizeof(perhaps_filter *);
}

static void release_parts(perhaps_filter *f)
{
    if (f->parts != &no_parts)
        release(&f->allocator, f->parts, parts_nbytes(f->parts->room));
}

/* Makes room for so many parts.  Returns false if there is not enough memory. */
static bool parts_reserve(perhaps_filter *f, size_t room)
{
    struct parts *parts = allocate(&f->allocator, parts_nbytes(room));
    if (!parts)
        return false;
    memcpy(parts, f->parts, parts_nbytes(f->parts->count));
    parts->room = room;
    release_parts(f);
    f->parts = parts;
    return true;
}

/* Allocates the body, and what writers of a shared filter need.  Returns false if there is not
 * enough memory; perhaps_free() then releases the rest. */
static bool allocate_body(perhaps_filter *f)
{
    uint64_t nbytes = f->body.geometry.body_nbytes;
    if (nbytes && !(f->body.bytes = allocate(&f->allocator, nbytes)))
        return false;
    f->body_nbytes = nbytes;
    size_t writers_nbytes = filter_writers_nbytes(f);
    if (!writers_nbytes)
        return true;
    place_writers(f, allocate(&f->allocator, writers_nbytes));
    return f->body.writers;
}

/* Copies the note of the hasher, for as long as the filter is there, unless it is empty.
 * Returns false if there is not enough memory. */
static bool keep_note(perhaps_filter *f)
{
    const char *note = f->hasher.note;
    const size_t nbytes = strlen(note) + 1;
    char *own = *note ? allocate(&f->allocator, nbytes) : NULL;
    f->hasher.note = own ? memcpy(own, note, nbytes) : "";
    return own || !*note;
}

/* Returns how much memory the filter's own copy of the note has. */
static size_t note_nbytes(const perhaps_filter *f)
{
    const size_t nbytes = strlen(f->hasher.note);
    return nbytes ? nbytes + 1 : 0;
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
    f->body.geometry = *g;
    f->hasher = *hasher;
    f->cpu = cpu_choose();
    f->hasher.cpu = f->cpu;
    f->allocator = a;
    f->shared = shared;
    f->counters = &f->own_counters;
    f->changer = &filter_plain;
    f->mapping = (struct mapping *)&nothing_mapped;
    f->parts = (struct parts *)&no_parts;
    if (!keep_note(f) || (shared && kind->composite && !parts_reserve(f, PARTS_MOST)) ||
        (with_body && !allocate_body(f))) {
        perhaps_free(f);
        return PERHAPS_ERR_MEMORY;
    }
    if (with_body)
        filter_bind(f);
    filter_reset_room(f);
    *filter = f;
    return 0;
}

void filter_become_set(perhaps_filter *f)
{
    if (f->kind->exact || !(f->removes || f->counts))
        return;
    f->is_set = true;
    f->removes = f->counts = false;
    filter_bind(f); /* to the loops of a set */
    for (size_t i = 0; i < f->parts->count; i++)
        filter_become_set(f->parts->part[i]);
}

void filter_become_estimated(perhaps_filter *f)
{
    f->keys_estimated = f->kind->rate_with != NULL;
    filter_reset_room(f);
    for (size_t i = 0; i < f->parts->count; i++)
        filter_become_estimated(f->parts->part[i]);
}

void filter_count_once(perhaps_filter *f)
{
    f->counts_once = true;
    for (size_t i = 0; i < f->parts->count; i++)
        filter_count_once(f->parts->part[i]);
}

void filter_be_like(perhaps_filter *f, const perhaps_filter *model)
{
    filter_settle(model);
    *f->counters = *model->counters;
    f->preference = model->preference;
    if (model->is_set)
        filter_become_set(f);
    f->keys_estimated = __atomic_load_n(&model->keys_estimated, __ATOMIC_RELAXED);
    filter_reset_room(f);
}

int filter_attach(perhaps_filter *f)
{
    const struct filter_kind *kind = f->kind;
    return kind->grows       ? kind->grows->attach(f)
           : kind->composite ? kind->composite->attach(f)
                             : 0;
}

/* A shared filter has room for all parts from the beginning: its readers may be anywhere in the
 * array. */
int filter_adopt(perhaps_filter *f, perhaps_filter *part)
{
    const size_t count = f->parts->count, room = f->parts->room,
                 more = room ? 4 * room : PARTS_FEW;
    if (count == room && !parts_reserve(f, more < PARTS_MOST ? more : PARTS_MOST))
        return PERHAPS_ERR_MEMORY;
    f->parts->part[count] = part;
    __atomic_store_n(&f->parts->count, count + 1, __ATOMIC_RELEASE);
    return 0;
}

void filter_exchange_parts(perhaps_filter *f, perhaps_filter *other)
{
    struct parts *parts = f->parts;
    f->parts = other->parts;
    other->parts = parts;
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
    if (!error) {
        (*filter)->body.geometry.first = NULL;
        error = filter_attach(*filter);
    }
    return abandon(filter, error);
}

/* Makes the first parts of a composite like those of the model, and sets what they take. */
static int begin_parts_like(perhaps_filter *f, const perhaps_filter *model)
{
    size_t count = f->kind->composite->begins_with;
    int error = 0;
    count = count && count < model->parts->count ? count : model->parts->count;
    f->body.geometry.extra_nbytes = 0;
    for (size_t i = 0; i < count && !error; i++) {
        perhaps_filter *part;
        error =
            filter_new_like(model->parts->part[i], &f->hasher, &f->allocator, f->shared, &part);
        if (error)
            break;
        f->body.geometry.extra_nbytes +=
            part->body.geometry.body_nbytes + part->body.geometry.extra_nbytes;
        error = abandon(&part, filter_adopt(f, part));
    }
    return error;
}

/* The geometry of a filter that grows in place is the one that it has now if it was copied or
 * comes from a file. */
int filter_new_like(const perhaps_filter *model, const struct hasher *hasher,
                    const struct perhaps_allocator *allocator, bool shared,
                    perhaps_filter **filter)
{
    const struct filter_kind *kind = model->kind;
    const struct perhaps_options none = { 0 };
    struct geometry g = model->body.geometry;
    int error = 0;
    *filter = NULL;
    if (kind->grows) {
        kind->grows->first(&g);
        error = geometry_check(kind, &g);
    }
    if (!error)
        error = geometry_limit(kind, &g);
    if (!error)
        error = filter_make(kind, &g, hasher, allocator, true, shared, filter);
    if (error)
        return error;
    (*filter)->preference = model->preference;
    __atomic_load(&model->fpr_predicted, &(*filter)->fpr_predicted, __ATOMIC_RELAXED);
    if (kind->grows)
        error = kind->grows->begin(*filter, &none);
    if (!error && kind->composite)
        error = begin_parts_like(*filter, model);
    return abandon(filter, error ? error : filter_attach(*filter));
}

/* ---- Releasing ------------------------------------------------------------------------- */

/* The order matters: parts and state may use bytes of the mapping, so they go before it. */
void perhaps_free(perhaps_filter *f)
{
    if (!f)
        return;
    if (f->changer->close)
        f->changer->close(f);
    for (size_t i = 0; i < f->parts->count; i++)
        perhaps_free(f->parts->part[i]);
    release_parts(f);
    if (f->state)
        f->kind->grows->detach(f);
    if (f->mapping->file)
        f->mapping->calls->release(f);
    if (f->mapping != &nothing_mapped)
        release(&f->allocator, f->mapping, sizeof *f->mapping);
    if (f->body_nbytes)
        release(&f->allocator, f->body.bytes, f->body_nbytes);
    if (f->body.writers)
        release(&f->allocator, holding_of(f), filter_writers_nbytes(f));
    if (note_nbytes(f))
        release(&f->allocator, (char *)f->hasher.note, note_nbytes(f));
    wipe(f->hasher.secret, sizeof f->hasher.secret);
    struct perhaps_allocator allocator = f->allocator;
    release(&allocator, f, sizeof *f);
}

/* ---- Copying and clearing -------------------------------------------------------------- */

const uint8_t *filter_next_piece(const perhaps_filter *f, struct body_cursor *cursor,
                                 uint64_t *nbytes)
{
    if (f->kind->grows)
        return f->kind->grows->next_piece(f, cursor, nbytes);
    if (cursor->offset)
        return NULL;
    *nbytes = cursor->offset = f->body.geometry.body_nbytes;
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
    for (size_t i = 0; i < filter->parts->count && !error; i++) {
        perhaps_filter *part;
        error = filter_copy(filter->parts->part[i], &copy->hasher, &copy->allocator,
                            copy->shared, &part);
        if (!error)
            error = abandon(&part, filter_adopt(copy, part));
    }
    return error;
}

int filter_copy(const perhaps_filter *filter, const struct hasher *hasher,
                const struct perhaps_allocator *allocator, bool shared, perhaps_filter **copy)
{
    struct geometry g = filter_geometry(filter);
    geometry_limit(filter->kind, &g); /* which takes no key if a file says so */
    int error = filter_make(filter->kind, &g, hasher, allocator, true, shared, copy);
    if (error)
        return error;
    copy_body(filter, (*copy)->body.bytes);
    error = clone_parts(filter, *copy);
    if (!error)
        error = filter_attach(*copy);
    if (!error)
        filter_be_like(*copy, filter);
    return abandon(copy, error);
}

int perhaps_clone(const perhaps_filter *filter, perhaps_filter **copy)
{
    int error = filter_check(filter);
    if (error) {
        *copy = NULL;
        return error;
    }
    return filter_copy(filter, &filter->hasher, &filter->allocator, filter->shared, copy);
}

/* ---- Memory ---------------------------------------------------------------------------- */

uint64_t perhaps_memory_nbytes(const perhaps_filter *f)
{
    const struct perhaps_allocator *a = &f->allocator;
    uint64_t nbytes = taken_nbytes(a, sizeof *f);
    nbytes += f->body_nbytes ? taken_nbytes(a, f->body_nbytes) : f->body.geometry.body_nbytes;
    if (f->state)
        nbytes += f->kind->grows->state_nbytes(f);
    if (f->body.writers)
        nbytes += taken_nbytes(a, filter_writers_nbytes(f));
    if (note_nbytes(f))
        nbytes += taken_nbytes(a, note_nbytes(f));
    if (f->mapping != &nothing_mapped)
        nbytes += taken_nbytes(a, sizeof *f->mapping);
    if (f->checked)
        nbytes += taken_nbytes(a, f->checked->guard->checked_nbytes(f));
    if (f->parts != &no_parts)
        nbytes += taken_nbytes(a, parts_nbytes(f->parts->room));
    for (size_t i = 0; i < parts_count(f); i++)
        nbytes += perhaps_memory_nbytes(f->parts->part[i]);
    return nbytes;
}

/* Moves the struct itself.  The secret is no content for memory that the mover releases. */
static perhaps_filter *relocate_struct(perhaps_filter *f, const struct mover *mover)
{
    const struct perhaps_allocator allocator = f->allocator;
    bool counts_here = f->counters == &f->own_counters;
    uint8_t secret[sizeof f->hasher.secret];
    memcpy(secret, f->hasher.secret, sizeof secret);
    wipe(f->hasher.secret, sizeof secret);
    f = relocate(&allocator, mover, f, sizeof *f);
    memcpy(f->hasher.secret, secret, sizeof secret);
    wipe(secret, sizeof secret);
    if (counts_here)
        f->counters = &f->own_counters;
    return f;
}

/* Everything that holds an address of moved memory is set again: f->state by its kind, which
 * also sets body.table; a table that lies in the body by bind(); and the others here. */
static perhaps_filter *relocate_filter(perhaps_filter *f, const struct mover *mover)
{
    const struct perhaps_allocator *a = &f->allocator;
    const uint8_t *body = f->body.bytes;
    for (size_t i = 0; i < f->parts->count; i++)
        f->parts->part[i] = relocate_filter(f->parts->part[i], mover);
    if (f->parts != &no_parts)
        f->parts = relocate(a, mover, f->parts, parts_nbytes(f->parts->room));
    if (f->body_nbytes)
        f->body.bytes = relocate(a, mover, f->body.bytes, f->body_nbytes);
    if (f->body.writers)
        place_writers(f, relocate(a, mover, holding_of(f), filter_writers_nbytes(f)));
    if (f->mapping != &nothing_mapped)
        f->mapping = relocate(a, mover, f->mapping, sizeof *f->mapping);
    if (f->checked)
        f->checked = relocate(a, mover, f->checked, f->checked->guard->checked_nbytes(f));
    if (note_nbytes(f))
        f->hasher.note = relocate(a, mover, (char *)f->hasher.note, note_nbytes(f));
    if (f->state)
        f->kind->grows->relocate(f, body, mover);
    filter_bind(f);
    return relocate_struct(f, mover);
}

void perhaps_relocate(perhaps_filter **filter,
                      void *(*move)(void *context, void *memory, size_t nbytes), void *context)
{
    const struct mover mover = { .move = move, .context = context };
    if ((*filter)->changer->locked) /* its thread may be at work */
        return;
    *filter = relocate_filter(*filter, &mover);
}

/* ---- The secret ----------------------------------------------------------- */

int perhaps_secret(const perhaps_filter *f, uint8_t secret[16])
{
    if (hash_row_of(&f->hasher)->needs != HASH_NEEDS_SECRET)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!f->hasher.ready)
        return PERHAPS_ERR_SECRET;
    memcpy(secret, f->hasher.secret, sizeof f->hasher.secret);
    return 0;
}
