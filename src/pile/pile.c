/* pile.c - records on their way from the keys to a kind, in memory and in a temporary file. */
#include "pile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../base/fd.h"
#include "../base/memory.h"

/* The stage begins small, so that few keys take little memory. */
#define STAGE_NBYTES_LEAST ((uint64_t)64 << 10)

/* Of the memory that a pile may use the runs that stay in memory get at most this share; where
 * there is no file, a larger one.  The stages get as much: one for all threads, and two for
 * each while it makes a run of one. */
enum { KEPT_SHARE = 4, KEPT_SHARE_ALONE = 2, STAGE_SHARE = 8 };

/* As long as runs stay in memory, the stages are no larger than this, or than a range of the
 * memory: the same few are used again and again, and the system has no new pages to clear. */
#define STAGE_NBYTES_KEPT ((uint64_t)8 << 20)
enum { STAGE_SHARE_KEPT = 2048 };

#define INDEX_NBYTES ((2 * PILE_RANGES + 1) * sizeof(uint32_t))

static uint64_t record_nbytes(const struct pile *p)
{
    return p->options.words * sizeof(uint64_t);
}

void pile_begin(struct pile *p, const struct pile_options *options)
{
    *p = (struct pile){ .options = *options, .fd = -1 };
    pthread_mutex_init(&p->lock, NULL);
}

/* Notes the first error, under the lock.  Returns it. */
static int note(struct pile *p, int error)
{
    if (error && !p->error) {
        p->error = error;
        p->reason = errno;
    }
    if (p->error)
        errno = p->reason;
    return p->error;
}

/* ---- The temporary file ---------------------------------------------------------------- */

const char *pile_folder(const struct pile *p)
{
    const char *folder = p->options.folder ? p->options.folder : getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* Opens the file, under the lock. */
static int open_file(struct pile *p)
{
    if (p->fd < 0)
        p->fd = open_temporary(pile_folder(p));
    return p->fd < 0 ? PERHAPS_ERR_IO : 0;
}

/* Returns where in a run a range begins, in bytes. */
static uint64_t range_offset(const struct pile *p, const struct run *run, unsigned range)
{
    return run->first[range] * record_nbytes(p);
}

static uint32_t checksum(const uint8_t *bytes, uint64_t nbytes)
{
    return (uint32_t)XXH3_64bits(bytes, nbytes);
}

/* Writes a run to the file. */
static int spill(const struct pile *p, const struct run *run)
{
    const uint8_t *bytes = (const uint8_t *)run->records;
    for (unsigned range = 0; range < PILE_RANGES; range++) {
        uint64_t from = range_offset(p, run, range), to = range_offset(p, run, range + 1);
        run->check[range] = checksum(bytes + from, to - from);
    }
    return write_at(p->fd, bytes, run->nbytes, run->offset);
}

/* ---- Records to runs ------------------------------------------------------------------- */

/* Moves the records of a stage to a new run, sorted by range. */
static void partition(const struct pile *p, const uint64_t *stage, uint64_t n,
                      const struct run *run)
{
    const unsigned words = p->options.words;
    uint32_t *first = run->first;
    for (uint64_t i = 0; i < n; i++)
        first[(stage[i * words] >> (64 - PILE_BITS)) + 1]++;
    for (unsigned range = 0; range < PILE_RANGES; range++)
        first[range + 1] += first[range];
    for (uint64_t i = 0; i < n; i++) { /* moves the beginning of each range to its end */
        uint64_t number = first[stage[i * words] >> (64 - PILE_BITS)]++;
        for (unsigned w = 0; w < words; w++)
            run->records[number * words + w] = stage[i * words + w];
    }
    memmove(first + 1, first, PILE_RANGES * sizeof *first);
    first[0] = 0;
}

/* Returns how many bytes of runs stay in memory, at most. */
static uint64_t kept_most(const struct pile *p)
{
    return p->options.memory_nbytes / (p->options.in_memory ? KEPT_SHARE_ALONE : KEPT_SHARE);
}

bool pile_is_over(struct pile *p)
{
    pthread_mutex_lock(&p->lock);
    bool over = p->options.in_memory && p->kept_nbytes > kept_most(p);
    pthread_mutex_unlock(&p->lock);
    return over;
}

/* Enters a run, which from then on belongs to the pile, under the lock.  Decides whether it
 * goes to the file, and where; then its records stay the caller's. */
static int enter_run(struct pile *p, struct run *run, bool *spills)
{
    if (p->nruns == p->runs_room) {
        size_t room = p->runs_room ? 2 * p->runs_room : 16;
        struct run *runs = allocate(&p->options.allocator, room * sizeof *runs);
        if (!runs)
            return PERHAPS_ERR_MEMORY;
        if (p->nruns)
            memcpy(runs, p->runs, p->nruns * sizeof *runs);
        release(&p->options.allocator, p->runs, p->runs_room * sizeof *runs);
        p->runs = runs;
        p->runs_room = room;
    }
    *spills = !p->options.in_memory && p->kept_nbytes + run->nbytes > kept_most(p);
    if (*spills && open_file(p))
        return PERHAPS_ERR_IO;
    if (*spills) {
        run->offset = p->spilled_nbytes;
        p->spilled_nbytes += run->nbytes;
    } else {
        p->kept_nbytes += run->nbytes;
    }
    p->runs[p->nruns] = *run;
    if (*spills)
        p->runs[p->nruns].records = NULL;
    p->nruns++;
    return 0;
}

/* Returns of how many records the stages are that are as large as they get. */
static uint64_t full_room(const struct pile *p)
{
    uint64_t room = p->options.memory_nbytes / (STAGE_SHARE * p->options.threads);
    room = room > STAGE_NBYTES_LEAST ? room : STAGE_NBYTES_LEAST;
    room /= record_nbytes(p);
    return room < UINT32_MAX ? room : UINT32_MAX;
}

/* Returns of how many records the stages are that are as large as they get while runs stay in
 * memory. */
static uint64_t kept_room(const struct pile *p)
{
    const uint64_t share = p->options.memory_nbytes / STAGE_SHARE_KEPT, full = full_room(p);
    uint64_t room = (share > STAGE_NBYTES_KEPT ? share : STAGE_NBYTES_KEPT) / record_nbytes(p);
    return room < full ? room : full;
}

/* Takes room for the records of a run.  What is of the size of the latest stages is used again:
 * the system has no new pages to clear then.  But a run that stays in memory takes new pages,
 * since it is better to wait for these here than in a stage, under the lock. */
static uint64_t *take_room(struct pile *p, uint64_t room)
{
    uint64_t *records = NULL;
    pthread_mutex_lock(&p->lock);
    bool stays = p->kept_nbytes + room * record_nbytes(p) <= kept_most(p);
    if (!stays && room == p->spare_room && p->nspare)
        records = p->spare[--p->nspare];
    pthread_mutex_unlock(&p->lock);
    return records ? records : allocate(&p->options.allocator, room * record_nbytes(p));
}

/* Gives back room for records, which may be used again. */
static void give_room(struct pile *p, uint64_t *records, uint64_t room)
{
    pthread_mutex_lock(&p->lock);
    bool keeps = records && room == p->spare_room && p->nspare < PILE_SPARES;
    if (keeps)
        p->spare[p->nspare++] = records;
    pthread_mutex_unlock(&p->lock);
    if (!keeps)
        release(&p->options.allocator, records, room * record_nbytes(p));
}

static void release_spares(struct pile *p)
{
    while (p->nspare)
        release(&p->options.allocator, p->spare[--p->nspare], p->spare_room * record_nbytes(p));
}

/* Notes an error, with its errno.  The lock is not taken. */
static int note_later(struct pile *p, int error)
{
    int reason = errno;
    pthread_mutex_lock(&p->lock);
    errno = reason;
    error = note(p, error);
    pthread_mutex_unlock(&p->lock);
    return error;
}

/* Makes a run of a stage with n records, and gives the stage back.  The lock is not taken. */
static int make_run(struct pile *p, uint64_t *stage, uint64_t n, uint64_t room)
{
    const struct perhaps_allocator *allocator = &p->options.allocator;
    struct run run = { .nbytes = n * record_nbytes(p) };
    bool spills = false, entered = false;
    run.records = take_room(p, n);
    run.first = allocate(allocator, INDEX_NBYTES);
    int error = run.records && run.first ? 0 : PERHAPS_ERR_MEMORY;
    if (!error) {
        run.check = run.first + PILE_RANGES + 1;
        partition(p, stage, n, &run);
    }
    give_room(p, stage, room);
    if (!error) {
        pthread_mutex_lock(&p->lock);
        error = enter_run(p, &run, &spills);
        pthread_mutex_unlock(&p->lock);
        entered = !error;
    }
    if (entered && spills)
        error = spill(p, &run);
    error = note_later(p, error);
    if (!entered || spills)
        give_room(p, run.records, n);
    if (!entered)
        release(allocator, run.first, INDEX_NBYTES);
    return error;
}

/* Returns of how many records the stage is that follows one of 'room', when runs of 'kept'
 * bytes stay in memory: twice as many, up to the size for runs in memory if one more fits
 * there, and else up to the full size. */
static uint64_t next_room(const struct pile *p, uint64_t room, uint64_t kept)
{
    const uint64_t small = kept_room(p);
    bool fits = kept + small * record_nbytes(p) <= kept_most(p);
    const uint64_t most = fits ? small : full_room(p);
    room = room ? 2 * room : STAGE_NBYTES_LEAST / record_nbytes(p);
    return room < most ? room : most;
}

/* Takes a new, empty stage. */
static int begin_stage(struct pile *p)
{
    uint64_t room = next_room(p, p->stage_room, p->kept_nbytes);
    if (room != p->spare_room)
        release_spares(p);
    p->spare_room = room;
    uint64_t *stage = p->nspare ? p->spare[--p->nspare]
                                : allocate(&p->options.allocator, room * record_nbytes(p));
    p->stage = stage;
    p->nstage = 0;
    p->stage_room = room;
    return stage ? 0 : PERHAPS_ERR_MEMORY;
}

/* Copies records to the stage, under the lock, as many as there is room for.  Returns how many
 * it copied, or 0 after an error. */
static size_t copy_to_stage(struct pile *p, const uint64_t *records, size_t n)
{
    if (p->error || (!p->stage && note(p, begin_stage(p))))
        return 0;
    uint64_t room = p->stage_room - p->nstage;
    size_t copied = n < room ? n : (size_t)room;
    memcpy(p->stage + p->nstage * p->options.words, records, copied * record_nbytes(p));
    p->nstage += copied;
    p->nrecords += copied;
    return copied;
}

int pile_add(struct pile *p, const uint64_t *records, size_t n)
{
    int error = 0;
    while (n && !error) {
        pthread_mutex_lock(&p->lock);
        size_t copied = copy_to_stage(p, records, n);
        uint64_t *full = p->stage && p->nstage == p->stage_room ? p->stage : NULL;
        uint64_t nfull = p->nstage, room = p->stage_room;
        if (full)
            p->stage = NULL;
        error = note(p, 0);
        pthread_mutex_unlock(&p->lock);
        if (full)
            error = make_run(p, full, nfull, room);
        records += copied * p->options.words;
        n -= copied;
    }
    return error;
}

int pile_settle(struct pile *p)
{
    uint64_t *stage = p->stage;
    if (p->error || !stage)
        return note(p, 0);
    p->stage = NULL;
    int error = make_run(p, stage, p->nstage, p->stage_room);
    release_spares(p);
    return error;
}

void pile_end(struct pile *p)
{
    const struct perhaps_allocator *allocator = &p->options.allocator;
    for (size_t i = 0; i < p->nruns; i++) {
        release(allocator, p->runs[i].records, p->runs[i].nbytes);
        release(allocator, p->runs[i].first, INDEX_NBYTES);
    }
    release(allocator, p->runs, p->runs_room * sizeof *p->runs);
    release(allocator, p->stage, p->stage_room * record_nbytes(p));
    release_spares(p);
    if (p->fd >= 0)
        close(p->fd);
    pthread_mutex_destroy(&p->lock);
}

/* Lays out 'nruns' runs of 'nbytes' each as enter_run() does: keeps as many as fit, and returns
 * how many bytes of the others go to the file. */
static uint64_t lay_out(const struct pile *p, uint64_t nruns, uint64_t nbytes, uint64_t *kept)
{
    uint64_t fit = nbytes ? (kept_most(p) - *kept) / nbytes : nruns;
    fit = fit < nruns ? fit : nruns;
    *kept += fit * nbytes;
    return (nruns - fit) * nbytes;
}

uint64_t pile_disk_nbytes(const struct pile *p, uint64_t nrecords)
{
    const uint64_t full = full_room(p), each = record_nbytes(p);
    uint64_t kept = 0, spilled = 0, room = next_room(p, 0, 0);
    for (; room < full && nrecords >= room; room = next_room(p, room, kept)) {
        spilled += lay_out(p, 1, room * each, &kept);
        nrecords -= room;
    }
    spilled += lay_out(p, nrecords / room, room * each, &kept);
    spilled += lay_out(p, 1, nrecords % room * each, &kept);
    return p->options.in_memory ? 0 : spilled;
}

/* ---- Runs to sorted records ------------------------------------------------------------ */

uint64_t pile_size(const struct pile *p, unsigned first, unsigned last)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->nruns; i++)
        n += p->runs[i].first[last] - p->runs[i].first[first];
    return n;
}

uint64_t pile_largest(const struct pile *p, unsigned each)
{
    uint64_t largest = 0;
    for (unsigned range = 0; range < PILE_RANGES; range += each) {
        uint64_t n = pile_size(p, range, range + each);
        largest = n > largest ? n : largest;
    }
    return largest;
}

/* Copies the records of a range from all runs to 'to'. */
static int gather(const struct pile *p, unsigned range, uint8_t *to)
{
    int error = 0;
    for (size_t i = 0; i < p->nruns && !error; i++) {
        const struct run *run = &p->runs[i];
        uint64_t from = range_offset(p, run, range), n = range_offset(p, run, range + 1) - from;
        if (run->records) {
            memcpy(to, (const uint8_t *)run->records + from, n);
        } else if (n) {
            error = read_at(p->fd, to, n, run->offset + from);
            if (!error && checksum(to, n) != run->check[range]) {
                errno = EIO;
                error = PERHAPS_ERR_IO;
            }
        }
        to += n;
    }
    return error;
}

/* Makes room for at least so many bytes, and keeps nothing of what was there. */
static bool make_room(uint64_t **room, uint64_t *room_nbytes, uint64_t nbytes,
                      const struct perhaps_allocator *allocator)
{
    if (*room_nbytes >= nbytes && *room)
        return true;
    release(allocator, *room, *room_nbytes);
    *room_nbytes = nbytes + nbytes / 64 + 64;
    *room = allocate(allocator, *room_nbytes);
    return *room;
}

int pile_take(const struct pile *p, unsigned first, unsigned last, struct taken *taken)
{
    const struct perhaps_allocator *allocator = &p->options.allocator;
    uint64_t most = 0, nbytes = pile_size(p, first, last) * record_nbytes(p);
    bool clash = false;
    int error = 0;
    for (unsigned range = first; range < last; range++) {
        uint64_t n = pile_size(p, range, range + 1);
        most = n > most ? n : most;
    }
    taken->n = 0;
    if (!make_room(&taken->records, &taken->room_nbytes, nbytes, allocator) ||
        !make_room(&taken->scratch, &taken->scratch_nbytes, most * record_nbytes(p), allocator))
        return PERHAPS_ERR_MEMORY;
    for (unsigned range = first; range < last && !error; range++) {
        uint64_t *records = taken->records + taken->n * p->options.words;
        uint64_t n = pile_size(p, range, range + 1);
        error = gather(p, range, (uint8_t *)records);
        if (error)
            break;
        records_sort(records, taken->scratch, n, p->options.words, 63 - PILE_BITS);
        taken->n += p->options.repeats ? n
                                       : records_unique(records, n, p->options.words,
                                                        p->options.valued, &clash);
    }
    return error ? error : clash && !p->options.first_wins ? PERHAPS_ERR_VALUES : 0;
}

void pile_forget(const struct pile *p, unsigned range)
{
    for (size_t i = 0; i < p->nruns; i++) {
        const struct run *run = &p->runs[i];
        uint64_t nbytes = run->records ? 0 : range_offset(p, run, range);
        if (nbytes) /* 0 would mean all of the file */
            (void)posix_fadvise(p->fd, (off_t)run->offset, (off_t)nbytes, POSIX_FADV_DONTNEED);
    }
}

void taken_release(struct taken *taken, const struct perhaps_allocator *allocator)
{
    release(allocator, taken->records, taken->room_nbytes);
    release(allocator, taken->scratch, taken->scratch_nbytes);
    *taken = (struct taken){ 0 };
}
