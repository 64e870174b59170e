/* pile.c - records on their way from the keys to a kind, in memory and in a temporary file. */
#include "pile.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../base/memory.h"

/* The stage begins small, so that few keys take little memory, and grows as long as the pile is
 * small: it is copied, to a stage so many times as large. */
#define STAGE_NBYTES_FIRST ((uint64_t)8 << 10)
enum { STAGE_GROWS = 4 };

/* A pile is small up to this size, or to its share of the memory for a stage. */
#define SMALL_NBYTES ((uint64_t)1 << 20)

/* No stage that becomes a run is smaller. */
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
    *p = (struct pile){ .options = *options,
                        .memory_nbytes = options->memory_nbytes,
                        .threads = options->threads,
                        .is_small = true,
                        .fd = -1 };
    mutex_begin(&p->lock);
}

/* Asks the host for what the options do not say.  That takes as long as some thousand keys, so
 * a small pile does without. */
static void ask_host(struct pile *p)
{
    if (!p->memory_nbytes) {
        p->memory_nbytes = memory_by_default();
        if (p->memory_nbytes < MEMORY_NBYTES_LEAST)
            p->memory_nbytes = MEMORY_NBYTES_LEAST;
    }
    p->threads = threads_or_all(p->threads);
}

unsigned pile_threads(const struct pile *p)
{
    return p->is_small ? 1 : p->threads;
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
    const char *folder = p->options.folder;
    return folder && *folder ? folder : temporary_folder();
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
    return p->memory_nbytes / (p->options.in_memory ? KEPT_SHARE_ALONE : KEPT_SHARE);
}

bool pile_is_over(struct pile *p)
{
    mutex_take(&p->lock);
    bool over = p->options.in_memory && p->kept_nbytes > kept_most(p);
    mutex_release(&p->lock);
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

/* Returns of how many records a small pile is at most. */
static uint64_t small_room(const struct pile *p)
{
    const uint64_t share = p->memory_nbytes / STAGE_SHARE;
    return (share && share < SMALL_NBYTES ? share : SMALL_NBYTES) / record_nbytes(p);
}

/* Returns of how many records the stages are that are as large as they get. */
static uint64_t full_room(const struct pile *p)
{
    uint64_t room = p->memory_nbytes / (STAGE_SHARE * p->threads);
    room = room > STAGE_NBYTES_LEAST ? room : STAGE_NBYTES_LEAST;
    room /= record_nbytes(p);
    return room < UINT32_MAX ? room : UINT32_MAX;
}

/* Returns of how many records the stages are that are as large as they get while runs stay in
 * memory. */
static uint64_t kept_room(const struct pile *p)
{
    const uint64_t share = p->memory_nbytes / STAGE_SHARE_KEPT, full = full_room(p);
    uint64_t room = (share > STAGE_NBYTES_KEPT ? share : STAGE_NBYTES_KEPT) / record_nbytes(p);
    return room < full ? room : full;
}

/* Takes room for the records of a run.  What is of the size of the latest stages is used again:
 * the system has no new pages to clear then.  But a run that stays in memory takes new pages,
 * since it is better to wait for these here than in a stage, under the lock. */
static uint64_t *take_room(struct pile *p, uint64_t room)
{
    uint64_t *records = NULL;
    mutex_take(&p->lock);
    bool stays = p->kept_nbytes + room * record_nbytes(p) <= kept_most(p);
    if (!stays && room == p->spare_room && p->nspare)
        records = p->spare[--p->nspare];
    mutex_release(&p->lock);
    return records ? records : allocate_scratch(&p->options.allocator, room * record_nbytes(p));
}

/* Gives back room for records, which may be used again. */
static void give_room(struct pile *p, uint64_t *records, uint64_t room)
{
    mutex_take(&p->lock);
    bool keeps = records && room == p->spare_room && p->nspare < PILE_SPARES;
    if (keeps)
        p->spare[p->nspare++] = records;
    mutex_release(&p->lock);
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
    mutex_take(&p->lock);
    errno = reason;
    error = note(p, error);
    mutex_release(&p->lock);
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
        mutex_take(&p->lock);
        error = enter_run(p, &run, &spills);
        mutex_release(&p->lock);
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

/* Returns of how many records the stage is that follows a full one of 'room', when runs of
 * 'kept' bytes stay in memory: twice as many, up to the size for runs in memory if one more
 * fits there, and else up to the full size. */
static uint64_t next_room(const struct pile *p, uint64_t room, uint64_t kept)
{
    const uint64_t small = kept_room(p);
    bool fits = kept + small * record_nbytes(p) <= kept_most(p);
    const uint64_t most = fits ? small : full_room(p);
    return 2 * room < most ? 2 * room : most;
}

/* Takes a new, empty stage. */
static int begin_stage(struct pile *p)
{
    uint64_t room = p->is_small ? STAGE_NBYTES_FIRST / record_nbytes(p)
                                : next_room(p, p->stage_room, p->kept_nbytes);
    if (room != p->spare_room)
        release_spares(p);
    p->spare_room = room;
    uint64_t *stage = p->nspare
                          ? p->spare[--p->nspare]
                          : allocate_scratch(&p->options.allocator, room * record_nbytes(p));
    p->stage = stage;
    p->nstage = 0;
    p->stage_room = room;
    return stage ? 0 : PERHAPS_ERR_MEMORY;
}

/* Moves the records of a small pile to a larger stage. */
static int grow_stage(struct pile *p)
{
    const struct perhaps_allocator *allocator = &p->options.allocator;
    const uint64_t most = small_room(p), more = STAGE_GROWS * p->stage_room;
    const uint64_t room = more < most ? more : most;
    uint64_t *stage = allocate_scratch(allocator, room * record_nbytes(p));
    if (!stage)
        return PERHAPS_ERR_MEMORY;
    memcpy(stage, p->stage, p->nstage * record_nbytes(p));
    release(allocator, p->stage, p->stage_room * record_nbytes(p));
    p->stage = stage;
    p->stage_room = room;
    return 0;
}

/* Makes room for more records in the stage, if that is possible, under the lock. */
static int need_stage(struct pile *p)
{
    if (!p->stage)
        return begin_stage(p);
    bool grows = p->is_small && p->nstage == p->stage_room && p->stage_room < small_room(p);
    return grows ? grow_stage(p) : 0;
}

/* Copies records to the stage, under the lock, as many as there is room for.  Returns how many
 * it copied, or 0 after an error. */
static size_t copy_to_stage(struct pile *p, const uint64_t *records, size_t n)
{
    if (p->error || note(p, need_stage(p)))
        return 0;
    uint64_t room = p->stage_room - p->nstage;
    size_t copied = n < room ? n : (size_t)room;
    memcpy(p->stage + p->nstage * p->options.words, records, copied * record_nbytes(p));
    p->nstage += copied;
    p->nrecords += copied;
    return copied;
}

/* Takes the stage away if it is full, under the lock.  Returns it, or NULL. */
static uint64_t *take_full_stage(struct pile *p)
{
    uint64_t *stage = p->stage;
    if (!stage || p->nstage < p->stage_room || (p->is_small && p->stage_room < small_room(p)))
        return NULL;
    if (p->is_small)
        ask_host(p);
    p->is_small = false;
    p->stage = NULL;
    return stage;
}

int pile_add(struct pile *p, const uint64_t *records, size_t n)
{
    int error = 0;
    while (n && !error) {
        mutex_take(&p->lock);
        size_t copied = copy_to_stage(p, records, n);
        uint64_t *full = take_full_stage(p);
        uint64_t nfull = p->nstage, room = p->stage_room;
        error = note(p, 0);
        mutex_release(&p->lock);
        if (full)
            error = make_run(p, full, nfull, room);
        records += copied * p->options.words;
        n -= copied;
    }
    return error;
}

/* Sorts the records of a small pile. */
static int settle_small(struct pile *p)
{
    const struct perhaps_allocator *allocator = &p->options.allocator;
    const uint64_t nbytes = p->nstage * record_nbytes(p);
    uint64_t *scratch = allocate_scratch(allocator, nbytes);
    if (!scratch)
        return note(p, PERHAPS_ERR_MEMORY);
    records_sort(p->stage, scratch, p->nstage, p->options.words, 63);
    release(allocator, scratch, nbytes);
    if (!p->options.repeats)
        p->nstage = records_unique(p->stage, p->nstage, p->options.words, p->options.valued,
                                   &p->clashes);
    return 0;
}

int pile_settle(struct pile *p)
{
    uint64_t *stage = p->stage;
    if (p->error || !stage)
        return note(p, 0);
    if (p->is_small)
        return settle_small(p);
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
        close_file(p->fd);
    mutex_end(&p->lock);
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

uint64_t pile_disk_nbytes(const struct pile *pile, uint64_t nrecords)
{
    struct pile like = { .options = pile->options,
                         .memory_nbytes = pile->options.memory_nbytes,
                         .threads = pile->options.threads };
    const struct pile *p = &like;
    const uint64_t first = small_room(p), each = record_nbytes(p);
    uint64_t kept = 0, spilled = 0;
    if (nrecords < first || pile->options.in_memory)
        return 0;
    ask_host(&like);
    spilled += lay_out(p, 1, first * each, &kept);
    nrecords -= first;
    const uint64_t full = full_room(p);
    uint64_t room = next_room(p, first, kept);
    for (; room < full && nrecords >= room; room = next_room(p, room, kept)) {
        spilled += lay_out(p, 1, room * each, &kept);
        nrecords -= room;
    }
    spilled += lay_out(p, nrecords / room, room * each, &kept);
    return spilled + lay_out(p, 1, nrecords % room * each, &kept);
}

/* ---- Runs to sorted records ------------------------------------------------------------ */

/* Returns how many records of a small pile lie before a range. */
static uint64_t small_before(const struct pile *p, unsigned range)
{
    uint64_t low = 0, high = p->nstage;
    if (range == PILE_RANGES || !p->stage)
        return high;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (p->stage[middle * p->options.words] >> (64 - PILE_BITS) < range)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t pile_size(const struct pile *p, unsigned first, unsigned last)
{
    uint64_t n = p->is_small ? small_before(p, last) - small_before(p, first) : 0;
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
    *room = allocate_scratch(allocator, *room_nbytes);
    return *room;
}

/* Copies ranges from all runs to the memory of 'taken', each of them sorted. */
static int take_from_runs(const struct pile *p, unsigned first, unsigned last,
                          struct taken *taken, bool *clashes)
{
    const struct perhaps_allocator *allocator = &p->options.allocator;
    uint64_t most = 0, nbytes = pile_size(p, first, last) * record_nbytes(p);
    int error = 0;
    for (unsigned range = first; range < last; range++) {
        uint64_t n = pile_size(p, range, range + 1);
        most = n > most ? n : most;
    }
    if (!make_room(&taken->room, &taken->room_nbytes, nbytes, allocator) ||
        !make_room(&taken->scratch, &taken->scratch_nbytes, most * record_nbytes(p), allocator))
        return PERHAPS_ERR_MEMORY;
    taken->records = taken->room;
    for (unsigned range = first; range < last && !error; range++) {
        uint64_t *records = taken->room + taken->n * p->options.words;
        uint64_t n = pile_size(p, range, range + 1);
        error = gather(p, range, (uint8_t *)records);
        if (error)
            break;
        records_sort(records, taken->scratch, n, p->options.words, 63 - PILE_BITS);
        taken->n += p->options.repeats ? n
                                       : records_unique(records, n, p->options.words,
                                                        p->options.valued, clashes);
    }
    return error;
}

int pile_take(const struct pile *p, unsigned first, unsigned last, struct taken *taken)
{
    static const uint64_t none[RECORD_WORDS_MOST];
    bool clashes = p->clashes;
    int error = 0;
    taken->n = 0;
    if (p->is_small) {
        const uint64_t *stage = p->stage ? p->stage : none;
        taken->n = pile_size(p, first, last);
        taken->records = stage + small_before(p, first) * p->options.words;
    } else {
        error = take_from_runs(p, first, last, taken, &clashes);
    }
    return error ? error : clashes && !p->options.first_wins ? PERHAPS_ERR_VALUES : 0;
}

void pile_forget(const struct pile *p, unsigned range)
{
    for (size_t i = 0; i < p->nruns; i++) {
        const struct run *run = &p->runs[i];
        uint64_t nbytes = run->records ? 0 : range_offset(p, run, range);
        if (nbytes) /* 0 would mean all of the file */
            forget_bytes(p->fd, run->offset, nbytes);
    }
}

void taken_release(struct taken *taken, const struct perhaps_allocator *allocator)
{
    release(allocator, taken->room, taken->room_nbytes);
    release(allocator, taken->scratch, taken->scratch_nbytes);
    *taken = (struct taken){ 0 };
}
