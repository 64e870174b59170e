/* cold.c - reads a large mapped file that is not in memory no more than must be.
 *
 * A page fault takes the time of the disk, and one comes after the other.  So what reads many
 * keys names their pages before: the system then reads many at once, each once, and what lies
 * near together as one piece.  If they are a good part of all pages, the file is read through.
 *
 * Nothing here changes an answer.  What the system does not do is done by the page fault, as if
 * nobody had named the page; and a file in memory is recognised by a few of its pages.
 *
 * Usually the system reads much around a page fault, in the hope that it will be used.  For one
 * key that is in vain, for as many as there are pages it pays.  So for a while it reads nothing
 * around; and when so many keys were asked for that the file could have been read through
 * meanwhile, it does again. */
#include <errno.h>
#include <math.h>

#include "../base/bytes.h"
#include "../base/sample.h"
#include "../pile/pile.h"
#include "store.h"

/* A file below is read as the system likes. */
enum { LARGE_NBYTES = 8 << 20 };

/* What is counted as a page, here and on systems with larger ones. */
enum { UNIT_NBYTES = 4096 };

/* To read so many bytes more takes a disk no longer than to begin anew: 10 us, of a disk that
 * reads 2 GB in a second. */
enum { GAP_NBYTES = 4 * UNIT_NBYTES };

/* The system ignores what is asked for beyond the size of its own read-ahead, which is usually
 * this. */
enum { PIECE_NBYTES = 128 << 10 };

/* So many ranges are named before the first key is asked for.  Their pages must stay in memory
 * until then: 512 MiB. */
enum { NAMED_MOST = 1 << FETCHED_NBITS };

/* Where one page in so many is read, to read all of them takes no longer. */
enum { READ_THROUGH = 8 };

/* A file is cold if two of so many keys need the disk. */
enum { TRIED = 16, TRIED_FIRST = 2, COLD_LEAST = 2 };

/* In a file that was not cold so many keys are asked for before it is tried again: to try takes
 * some microseconds.  The count is of steps of STEP_KEYS. */
enum { WARM_STEPS = 255, STEP_KEYS = 64 };

/* How many pages a disk reads one after the other while it takes the time of one page fault:
 * from 15 to 60. */
enum { PAGES_PER_FAULT = 32 };

/* ---- What is read for a key -------------------------------------------------------------- */

void reads_each(const perhaps_filter *f, const struct keyhash *key, visit_bytes *visit,
                void *context)
{
    struct reads reads = { 0 };
    if (f->kind->reads)
        f->kind->reads(f, *key, &reads);
    for (size_t i = 0; i < reads.count; i++)
        visit(context, reads_range(f, &reads, i), reads.nbytes[i]);
    for (size_t i = 0; i < parts_count(f); i++) {
        const struct composite *composite = f->kind->composite;
        struct keyhash own = *key;
        if (!composite->asks_part || composite->asks_part(f, i, &own))
            reads_each(f->parts->part[i], &own, visit, context);
    }
}

/* ---- Is it cold? ------------------------------------------------------------------------- */

static void touch(const uint8_t *const *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)*(const volatile uint8_t *)at[i];
}

/* Returns whether the disk is read to read these bytes.  Two keys show that of a file of which
 * nothing is in memory. */
static bool are_cold(const uint8_t *const *at, size_t n)
{
    const size_t first = n < TRIED_FIRST ? n : TRIED_FIRST;
    const long before = disk_faults();
    touch(at, first);
    if (disk_faults() - before >= COLD_LEAST)
        return true;
    touch(at + first, n - first);
    return disk_faults() - before >= COLD_LEAST;
}

/* Returns whether bytes lie in the file, and not in memory that the filter took to grow. */
static bool is_in_file(const struct mapping *m, const uint8_t *at)
{
    return (uintptr_t)at - (uintptr_t)m->file < m->file_nbytes;
}

/* Some keys that are tried. */
struct trial {
    const struct mapping *m;
    size_t nkeys, nranges; /* how many ranges of the file they read */
    const uint8_t
        *at[TRIED]; /* the last of each key, since the first may be that of all keys */
};

static void note_trial(void *context, const uint8_t *at, uint64_t nbytes)
{
    struct trial *trial = context;
    (void)nbytes;
    if (!is_in_file(trial->m, at))
        return;
    trial->at[trial->nkeys] = at;
    trial->nranges++;
}

static void try_keys(struct trial *trial, const perhaps_filter *f,
                     const struct perhaps_keys *keys, size_t first, size_t n)
{
    struct keyhash hashed[TRIED];
    const size_t most = n < TRIED ? n : TRIED;
    hasher_run(&f->hasher, keys, first, most, hashed);
    *trial = (struct trial){ .m = f->mapping };
    for (; trial->nkeys < most; trial->nkeys++) {
        trial->at[trial->nkeys] = f->mapping->file;
        reads_each(f, &hashed[trial->nkeys], note_trial, trial);
    }
}

bool perhaps_is_cold(const perhaps_filter *f)
{
    const struct mapping *m = f->mapping;
    const uint8_t *at[TRIED];
    if (!m->large)
        return false;
    for (size_t i = 0; i < TRIED; i++)
        at[i] = m->file + m->file_nbytes / TRIED * i + UNIT_NBYTES;
    return are_cold(at, TRIED);
}

/* ---- Name pages -------------------------------------------------------------------------- */

/* Has the system begin to read these bytes of the file.  Returns whether it does that. */
static bool name_bytes(const struct mapping *m, uint64_t at, uint64_t end)
{
    bool ok = true;
    for (at &= ~(uint64_t)(UNIT_NBYTES - 1); at < end && ok; at += PIECE_NBYTES) {
        const uint64_t left = end - at;
        ok = map_fetch(m->file, at, left < PIECE_NBYTES ? left : PIECE_NBYTES);
    }
    return ok;
}

/* Keys, and the pages that they need.  A range of pages is the number of its first one, and in
 * the low bits how many others follow. */
struct notes {
    const perhaps_filter *f;
    struct fetched keys;
    uint64_t *range, *scratch;
    size_t count;  /* of ranges */
    uint64_t last; /* of the key: the first page of its last range */
    bool full;
};

enum { LENGTH_NBITS = 16, LENGTH_MOST = (1 << LENGTH_NBITS) - 1 };

/* Notes the pages of bytes that are read for a key.  If they are checked before, the pages that
 * have a checksum are read as a whole. */
static void note_pages(void *context, const uint8_t *bytes, uint64_t nbytes)
{
    struct notes *notes = context;
    const struct mapping *m = notes->f->mapping;
    if (!is_in_file(m, bytes))
        return;
    if (notes->count == NAMED_MOST) {
        notes->full = true;
        return;
    }
    uint64_t at = (uint64_t)(bytes - m->file), end = at + nbytes;
    if (notes->f->checked)
        notes->f->checked->guard->widen(notes->f, &at, &end);
    if (end > m->file_nbytes)
        end = m->file_nbytes;
    const uint64_t first = at / UNIT_NBYTES, more = (end - 1) / UNIT_NBYTES - first;
    notes->range[notes->count++] =
        first << LENGTH_NBITS | (more < LENGTH_MOST ? more : LENGTH_MOST);
    notes->last = first;
}

/* Notes keys first .. first+n-1, as many as there is room for, but at least one. */
static void note_keys(struct notes *notes, const struct perhaps_keys *keys, size_t first,
                      size_t n)
{
    struct fetched *k = &notes->keys;
    while (k->count < n && !notes->full) {
        const size_t left = n - k->count, some = left < BATCH_STEP ? left : BATCH_STEP;
        struct keyhash *hash = k->hash + k->count;
        hasher_run(&notes->f->hasher, keys, first + k->count, some, hash);
        for (size_t i = 0; i < some && !notes->full; i++) {
            reads_each(notes->f, &hash[i], note_pages, notes);
            if (notes->full && k->count)
                break;
            k->order[k->count] = notes->last << FETCHED_NBITS | k->count;
            k->count++;
        }
    }
}

static void sort(const struct notes *notes, uint64_t *records, size_t n, unsigned low_nbits)
{
    const uint64_t pages = notes->f->mapping->file_nbytes / UNIT_NBYTES;
    records_sort(records, notes->scratch, n, 1,
                 low_nbits + 63 - (unsigned)__builtin_clzll(pages));
}

/* Names all pages that were noted, from the first to the last of the file. */
static void name_noted(const struct notes *notes)
{
    const struct mapping *m = notes->f->mapping;
    bool ok = true;
    sort(notes, notes->range, notes->count, LENGTH_NBITS);
    for (size_t i = 0; i < notes->count && ok;) {
        const uint64_t at = (notes->range[i] >> LENGTH_NBITS) * UNIT_NBYTES;
        uint64_t end = at;
        for (; i < notes->count; i++) {
            const uint64_t next = (notes->range[i] >> LENGTH_NBITS) * UNIT_NBYTES;
            const uint64_t more = notes->range[i] & LENGTH_MOST;
            if (end > at && next > end + GAP_NBYTES)
                break;
            if (end < next + (more + 1) * UNIT_NBYTES)
                end = next + (more + 1) * UNIT_NBYTES;
        }
        ok = name_bytes(m, at, end < m->file_nbytes ? end : m->file_nbytes);
    }
}

/* Takes memory for notes of up to n keys.  Returns false if there is none. */
static bool notes_begin(struct notes *notes, const perhaps_filter *f, size_t n)
{
    const size_t nkeys = n < NAMED_MOST ? n : NAMED_MOST;
    const size_t hashes = nkeys * sizeof(struct keyhash), words = nkeys * sizeof(uint64_t);
    const size_t ranges = NAMED_MOST * sizeof(uint64_t), all = hashes + words + 2 * ranges;
    const int saved = errno;
    uint8_t *memory = map_pages(all);
    errno = saved;
    if (!memory)
        return false;
    *notes = (struct notes){ .f = f };
    notes->range = (void *)memory;
    notes->scratch = notes->range + NAMED_MOST;
    notes->keys = (struct fetched){ .memory = memory,
                                    .memory_nbytes = all,
                                    .hash = (void *)(memory + 2 * ranges),
                                    .order = (void *)(memory + 2 * ranges + hashes) };
    return true;
}

void cold_forget(struct fetched *keys)
{
    if (keys->memory)
        unmap_pages(keys->memory, keys->memory_nbytes);
}

/* ---- The calls of a mapping -------------------------------------------------------------- */

/* Counts off steps of a file that is warm.  Returns how many keys may be asked for before it is
 * tried again, or 0.  Few keys are not counted: threads would write one place all the time. */
static size_t stay_warm(struct mapping *m, size_t n)
{
    const uint8_t steps = __atomic_load_n(&m->warm_steps, __ATOMIC_RELAXED);
    if (n < STEP_KEYS)
        return steps ? n : 0;
    const size_t some = n < (size_t)steps * STEP_KEYS ? n : (size_t)steps * STEP_KEYS;
    if (steps)
        __atomic_store_n(&m->warm_steps, (uint8_t)(steps - some / STEP_KEYS), __ATOMIC_RELAXED);
    return some;
}

/* What is read page by page is counted in singles: page faults for one key each.  So many of
 * them take as long as to read all of the file. */
static double all_singles(const struct mapping *m)
{
    const uint64_t singles = m->file_nbytes / (UNIT_NBYTES * PAGES_PER_FAULT);
    return fmin((double)singles, UINT32_MAX);
}

/* Returns how many singles it takes to name the ranges of n keys like those of the trial. */
static double singles_of(const struct trial *trial, size_t n)
{
    return (double)n * (double)trial->nranges / (double)trial->nkeys * READ_THROUGH /
           PAGES_PER_FAULT;
}

/* Returns how many singles may be read until the file is read through.  They begin anew when it
 * has gone from memory. */
static double singles_left(const struct mapping *m)
{
    const uint32_t left = __atomic_load_n(&m->singles_left, __ATOMIC_RELAXED);
    return left ? left : all_singles(m);
}

static bool fits_memory(const struct mapping *m)
{
    return m->file_nbytes < ram_nbytes() / 2;
}

/* Keys in the order of the file need nothing named where it is read through: the system reads
 * ahead of them. */
size_t cold_fetch(const perhaps_filter *f, const struct perhaps_keys *keys, size_t first,
                  size_t n, struct fetched *sorted)
{
    struct mapping *m = (struct mapping *)f->mapping; /* what was found is no change */
    const size_t warm = stay_warm(m, n);
    struct trial trial;
    struct notes notes;
    if (warm || n < COLD_LEAST)
        return warm ? warm : n;
    try_keys(&trial, f, keys, first, n);
    if (!are_cold(trial.at, trial.nkeys)) {
        __atomic_store_n(&m->warm_steps, WARM_STEPS, __ATOMIC_RELAXED);
        return n < WARM_STEPS * STEP_KEYS ? n : WARM_STEPS * STEP_KEYS;
    }
    const double left = singles_left(m);
    const bool through = fits_memory(m) && singles_of(&trial, n) >= left;
    if (through)
        cold_read_through(f);
    if (through && !sorted)
        (void)map_read(m->file, 0, m->file_nbytes); /* or the page faults do */
    if ((through && !sorted) || !notes_begin(&notes, f, n))
        return n;
    note_keys(&notes, keys, first, n);
    if (!through)
        name_noted(&notes);
    n = notes.keys.count;
    if (!through && fits_memory(m))
        __atomic_store_n(&m->singles_left, (uint32_t)fmax(1, left - singles_of(&trial, n)),
                         __ATOMIC_RELAXED);
    if (sorted) {
        sort(&notes, notes.keys.order, n, FETCHED_NBITS);
        *sorted = notes.keys;
    } else {
        cold_forget(&notes.keys);
    }
    return n;
}

void cold_begin(perhaps_filter *f)
{
    f->mapping->large = f->mapping->file_nbytes >= LARGE_NBYTES;
}

void cold_be_patient(perhaps_filter *f)
{
    struct mapping *m = f->mapping;
    if (!m->large)
        return;
    m->singles_left = (uint32_t)all_singles(m);
    map_advise(m->file, m->file_nbytes, MAP_AT_RANDOM);
    filter_bind(f);
}

void cold_read_through(const perhaps_filter *f)
{
    struct mapping *m = (struct mapping *)f->mapping;
    if (!__atomic_load_n(&m->singles_left, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&m->singles_left, 0, __ATOMIC_RELAXED);
    map_advise(m->file, m->file_nbytes, MAP_AS_USUAL);
}

/* Threads that count at the same moment may count one key: it does not matter. */
void cold_count_singles(const perhaps_filter *f, uint32_t n)
{
    uint32_t *left = (uint32_t *)&f->mapping->singles_left;
    const uint32_t before = __atomic_load_n(left, __ATOMIC_RELAXED);
    if (before > n)
        __atomic_store_n(left, before - n, __ATOMIC_RELAXED);
    else
        cold_read_through(f);
}

void cold_fetch_bytes(const perhaps_filter *f, const uint8_t *at, uint64_t nbytes)
{
    const struct mapping *m = f->mapping;
    if (m->large && is_in_file(m, at))
        name_bytes(m, (uint64_t)(at - m->file), (uint64_t)(at - m->file) + nbytes);
}

/* Names the sample of a filter and its parts.  Only kinds whose keys share bits look at one.
 * Some of them have other bytes behind their lines, which moves the pieces by less than a
 * page. */
static void name_sample(const struct mapping *m, const perhaps_filter *f)
{
    const uint64_t nbytes = f->body.geometry.body_nbytes;
    struct sample s = sample_begin(nbytes, SAMPLE_NBYTES);
    while (f->kind->counted && is_in_file(m, f->body.bytes) && sample_next(&s)) {
        const uint64_t at = (uint64_t)(f->body.bytes - m->file) + s.offset;
        name_bytes(m, at - UNIT_NBYTES, at + (s.end - s.offset));
    }
    for (size_t i = 0; i < parts_count(f); i++)
        name_sample(m, f->parts->part[i]);
}

void cold_fetch_sample(const perhaps_filter *f)
{
    if (perhaps_is_cold(f))
        name_sample(f->mapping, f);
}
