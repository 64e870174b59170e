/* check.c - compares the pages of a mapped file with their checksums: all of them at once, or
 * each before the first answer is read from it. */
#include <string.h>

#include "store.h"

enum { UNREAD, SOUND, DAMAGED, UNSURE };

static uint64_t nbytes_for(uint64_t count)
{
    return sizeof(struct checked) + count;
}

static uint64_t checked_nbytes(const perhaps_filter *f)
{
    return nbytes_for(f->checked->count);
}

/* ---- Pages ------------------------------------------------------------------------------ */

/* Returns the bytes that have the checksums. */
static const uint8_t *saved_bytes(const struct mapping *m)
{
    return m->how == MAPPED_IN_MEMORY ? m->file + saved_distance(m->file_nbytes) : m->file;
}

static bool is_intact(const struct mapping *m, uint64_t page)
{
    const uint8_t *file = saved_bytes(m);
    uint64_t at = page * PAGE_NBYTES;
    if (m->small)
        return !container_is_in_place(file) &&
               small_intact(file, m->pages_offset, m->file_nbytes);
    return container_page_intact(file + m->table_offset, page, file + m->pages_offset + at,
                                 page_nbytes(m->table_offset - m->pages_offset, at));
}

/* Compares a page with its checksum, and returns SOUND, DAMAGED or UNSURE.  If they differ
 * while a process writes the file in place, nothing is certain.  If none does, one may have
 * done so until a moment ago.  So the page is compared once more, and is damaged only if nobody
 * has written the file meanwhile: then the header, which holds the flag and the number of keys,
 * is the same before and after.  (That of a small file holds the checksum, which changes with
 * all that does.) */
static uint8_t look_at(const struct mapping *m, uint64_t page)
{
    const uint8_t *file = saved_bytes(m);
    uint8_t before[HEADER_NBYTES];
    const size_t nbytes = m->file_nbytes < sizeof before ? m->file_nbytes : sizeof before;
    if (is_intact(m, page))
        return SOUND;
    do {
        memcpy(before, file, nbytes);
        if (is_intact(m, page))
            return SOUND;
        if (container_is_in_place(file))
            return UNSURE;
    } while (memcmp(before, file, nbytes) != 0);
    return DAMAGED;
}

int check_pages(const perhaps_filter *f, uint64_t first, uint64_t end)
{
    uint8_t state = SOUND;
    for (uint64_t page = first; page < end && state == SOUND; page++)
        state = look_at(f->mapping, page);
    return state == SOUND     ? 0
           : state == DAMAGED ? PERHAPS_ERR_DAMAGED
                              : PERHAPS_ERR_UNSUPPORTED;
}

int check_all_pages(const perhaps_filter *f, bool once)
{
    const struct mapping *m = f->mapping;
    uint8_t *sound = (uint8_t *)&m->sound; /* what was found is no change of the filter */
    if (!m->file || (once && __atomic_load_n(sound, __ATOMIC_RELAXED)))
        return 0;
    cold_read_through(f);
    int error = check_pages(f, 0, container_page_count(m->table_offset - m->pages_offset));
    __atomic_store_n(sound, !error, __ATOMIC_RELAXED);
    return error;
}

/* Of a file that is written in place nobody can tell. */
int check_saved_pages(const perhaps_filter *f, bool once)
{
    int error = f->mapping->how == MAPPED_IN_PLACE ? 0 : check_all_pages(f, once);
    return error == PERHAPS_ERR_UNSUPPORTED ? 0 : error;
}

/* Looks for the flag 'in place' once more after the last page: if a process has set it, the
 * checksums are void. */
int perhaps_verify(const perhaps_filter *f, struct perhaps_verdict *verdict)
{
    const struct mapping *m = f->mapping;
    *verdict = (struct perhaps_verdict){ 0 };
    if (!m->file)
        return PERHAPS_ERR_UNSUPPORTED;
    struct perhaps_verdict v = { .pages =
                                     container_page_count(m->table_offset - m->pages_offset) };
    uint8_t state = SOUND;
    cold_read_through(f);
    for (uint64_t page = 0; page < v.pages && state != UNSURE; page++) {
        state = look_at(m, page);
        if (state == DAMAGED && !v.damaged++)
            v.first_damaged = m->pages_offset + page * PAGE_NBYTES;
    }
    if (state == UNSURE || container_is_in_place(m->file))
        return PERHAPS_ERR_UNSUPPORTED;
    *verdict = v;
    return v.damaged ? PERHAPS_ERR_DAMAGED : 0;
}

/* Returns whether a page is sound, and looks at it if nobody has yet.  Two threads may look at
 * one page at once: both find the same. */
static bool page_is_sound(const perhaps_filter *f, uint64_t page)
{
    struct checked *checked = f->checked;
    uint8_t state = __atomic_load_n(&checked->state[page], __ATOMIC_RELAXED);
    if (state != UNREAD)
        return state == SOUND;
    cold_fetch_bytes(f, f->mapping->file + f->mapping->pages_offset + page * PAGE_NBYTES,
                     PAGE_NBYTES);
    state = look_at(f->mapping, page);
    if (state == UNSURE)
        __atomic_store_n(&checked->unsure, 1, __ATOMIC_RELAXED);
    else
        __atomic_store_n(&checked->state[page], state, __ATOMIC_RELAXED);
    return state == SOUND;
}

/* ---- Keys ------------------------------------------------------------------------------- */

/* A filter whose pages are looked at, and whether all were sound. */
struct looking {
    const perhaps_filter *f;
    bool sound;
};

static void look_at_bytes(void *context, const uint8_t *bytes, uint64_t nbytes)
{
    struct looking *looking = context;
    const struct mapping *m = looking->f->mapping;
    const uint8_t *pages = m->file + m->pages_offset, *end = m->file + m->table_offset;
    if (bytes < pages || bytes >= end)
        return; /* memory that the filter took when it grew */
    uint64_t at = (uint64_t)(bytes - pages), last = (at + nbytes - 1) / PAGE_NBYTES;
    for (uint64_t page = at / PAGE_NBYTES; page <= last; page++)
        looking->sound &= page_is_sound(looking->f, page);
}

static bool is_sound(const perhaps_filter *f, const struct keyhash *key)
{
    struct looking looking = { f, true };
    reads_each(f, key, look_at_bytes, &looking);
    return looking.sound;
}

static void widen(const perhaps_filter *f, uint64_t *at, uint64_t *end)
{
    const uint64_t pages = f->mapping->pages_offset, first = (*at - pages) / PAGE_NBYTES;
    if (*at < pages || first >= f->checked->count)
        return;
    const uint8_t *state = &f->checked->state[first];
    if (__atomic_load_n(state, __ATOMIC_RELAXED) != UNREAD)
        return;
    *at = pages + first * PAGE_NBYTES;
    *end = pages + ((*end - 1 - pages) / PAGE_NBYTES + 1) * PAGE_NBYTES;
}

/* Asks the kind for all keys at once, and then corrects the answers of keys on damaged pages,
 * since these are rare. */
static size_t contains(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer)
{
    bool sound = true;
    for (size_t i = 0; i < n; i++)
        sound &= is_sound(f, &keys[i]);
    size_t found = f->kind->contains(f, keys, ahead, n, answer);
    for (size_t i = 0; i < n && !sound; i++) {
        if (answer[i] || is_sound(f, &keys[i]))
            continue;
        answer[i] = true;
        found++;
    }
    return found;
}

static const struct guard guard = {
    .is_sound = is_sound, .contains = contains, .widen = widen, .checked_nbytes = checked_nbytes
};

int check_begin(perhaps_filter *f)
{
    uint64_t count = container_page_count(f->mapping->table_offset - f->mapping->pages_offset);
    f->checked = allocate(&f->allocator, nbytes_for(count));
    if (!f->checked)
        return PERHAPS_ERR_MEMORY;
    f->checked->count = count;
    f->checked->guard = &guard;
    filter_bind(f);
    return 0;
}

void check_end(perhaps_filter *f)
{
    if (f->checked)
        release(&f->allocator, f->checked, checked_nbytes(f));
}

int perhaps_checked(const perhaps_filter *f, struct perhaps_verdict *verdict)
{
    const struct checked *checked = f->checked;
    *verdict = (struct perhaps_verdict){ 0 };
    if (!checked || __atomic_load_n(&checked->unsure, __ATOMIC_RELAXED))
        return PERHAPS_ERR_UNSUPPORTED;
    for (uint64_t page = 0; page < checked->count; page++) {
        uint8_t state = __atomic_load_n(&checked->state[page], __ATOMIC_RELAXED);
        verdict->pages += state != UNREAD;
        if (state == DAMAGED && !verdict->damaged++)
            verdict->first_damaged = f->mapping->pages_offset + page * PAGE_NBYTES;
    }
    return verdict->damaged ? PERHAPS_ERR_DAMAGED : 0;
}
