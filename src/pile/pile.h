/* pile.h - the hashed keys of a filter that is built from all of them at once.
 *
 * A pile takes records from any number of threads, in any order, and later gives them back
 * sorted: the records of one range of the hash space at a time.  What does not fit in its
 * memory goes to a temporary file, which has no name and so is gone when the process is.
 *
 *     records -> stage -> run: sorted by range       in memory, or in the file
 *                         run
 *                         run ...      -> a range: its pieces of all runs, sorted
 *
 * Few records never become a run: they stay in the stage, which is sorted as a whole.  Then no
 * thread is worth its start, and the system is not asked how much memory there is.
 */
#ifndef PILE_H
#define PILE_H

#include <perhaps_build.h>
#include <perhaps_embed.h>

#include "../system/system.h"

/* Returns how much memory to use if the caller does not say. */
static inline uint64_t memory_by_default(void)
{
    return perhaps_host_memory_nbytes() / 4;
}

/* Returns how many threads to use: those that were asked for, or if that is 0 as many as this
 * process may. */
static inline unsigned threads_or_all(unsigned asked)
{
    return asked ? asked : perhaps_host_threads();
}

/* A range is the records whose places have the same PILE_BITS highest bits. */
enum { PILE_BITS = 12, PILE_RANGES = 1 << PILE_BITS };

/* A record consists of words of 64 bits: a place, by which the records are sorted; of hashes of
 * 128 bits also the mark; and, if keys have values, a value. */
enum { RECORD_WORDS_MOST = 3 };

enum { PILE_SPARES = 8 };

/* The least memory that a builder uses. */
#define MEMORY_NBYTES_LEAST ((uint64_t)1 << 20)

struct pile_options {
    unsigned words;         /* of a record */
    bool valued;            /* whether the last one is a value */
    bool first_wins;        /* of records that differ in the value alone the least one stays */
    bool repeats;           /* equal records are taken as often as they came */
    uint64_t memory_nbytes; /* what a pile and those who take from it use together, about; 0: a
                             * share of the host's, which it is asked for when that matters */
    bool in_memory;         /* there is no file: all runs stay in memory, see pile_is_over() */
    unsigned threads;       /* how many may add at once; 0: as many as the host allows */
    const char *folder;     /* of the temporary file; NULL: $TMPDIR, or else /tmp */
    struct perhaps_allocator allocator; /* is called by several threads at once */
};

/* Records that were partitioned together. */
struct run {
    uint64_t *records; /* NULL: they are in the file */
    uint64_t nbytes;
    uint64_t offset; /* in the file */
    uint32_t *first; /* of each range the number of its first record; PILE_RANGES + 1 numbers */
    uint32_t *check; /* of each range, in the file: half of a checksum */
};

struct pile {
    struct pile_options options;
    uint64_t nrecords;
    uint64_t spilled_nbytes; /* how many bytes are in the file */

    struct mutex lock;      /* of all that follows, as long as records are added */
    uint64_t memory_nbytes; /* as in the options, or, once the pile is not small, of the host */
    unsigned threads;       /* likewise */
    uint64_t *stage;        /* records that are in no run yet */
    uint64_t nstage, stage_room;
    bool is_small; /* no stage was full yet; when the pile is settled, the stage is sorted, and
                    * has each record once unless there are 'repeats' */
    bool clashes;  /* and two of these differ in the value alone */
    uint64_t *spare[PILE_SPARES]; /* stages that are not in use, of 'spare_room' records */
    uint64_t spare_room;
    unsigned nspare;
    struct run *runs;
    size_t nruns, runs_room;
    uint64_t kept_nbytes; /* of runs in memory */
    int fd;               /* of the temporary file; negative: there is none */
    int error, reason;    /* the first error, and its errno */
};

/* Begins an empty pile, which takes no memory yet. */
void pile_begin(struct pile *pile, const struct pile_options *options);

/* Adds n records.  Any number of threads may do so at once.  Returns 0, PERHAPS_ERR_MEMORY, or
 * PERHAPS_ERR_IO (errno); after an error records are missing, and every call returns it. */
int pile_add(struct pile *pile, const uint64_t *records, size_t n);

/* Returns whether the runs have more of the memory than they should: only if there is no file.
 * Safe while others add. */
bool pile_is_over(struct pile *pile);

/* Returns how many bytes go to the file if one thread adds so many records; with several
 * threads it is up to a full stage for each of them more or less. */
uint64_t pile_disk_nbytes(const struct pile *pile, uint64_t nrecords);

/* Returns the folder of the file. */
const char *pile_folder(const struct pile *pile);

/* Ends the adding: from now on records may be taken.  Errors are those of pile_add(). */
int pile_settle(struct pile *pile);

/* Returns how many threads should take from a settled pile. */
unsigned pile_threads(const struct pile *pile);

/* Records that were taken: in the pile, or in memory of their own, which is used again.  Begins
 * as { 0 }. */
struct taken {
    const uint64_t *records;
    uint64_t n;
    uint64_t *room;
    uint64_t room_nbytes;
    uint64_t *scratch;
    uint64_t scratch_nbytes;
};

/* Takes the records of ranges first .. last-1, sorted by all their words, each of them once
 * unless there are 'repeats'.
 * Any number of threads may do so at once, also again and again for one range.  Returns 0,
 * PERHAPS_ERR_MEMORY, PERHAPS_ERR_IO (errno; a page of the file is damaged: EIO), or
 * PERHAPS_ERR_VALUES for records that differ in nothing but the value. */
int pile_take(const struct pile *pile, unsigned first, unsigned last, struct taken *taken);

/* Tells the system that the ranges before 'range' are not wanted again soon.  They stay in the
 * file, but give their pages back: in large pieces, as a file that is written meanwhile wants
 * them. */
void pile_forget(const struct pile *p, unsigned range);

/* Returns how many records these ranges have; of a pile that is not small, repeated ones are
 * counted as often as they came. */
uint64_t pile_size(const struct pile *pile, unsigned first, unsigned last);

/* Returns the largest number of records that 'each' ranges in a row have, from a multiple of
 * 'each' on. */
uint64_t pile_largest(const struct pile *pile, unsigned each);

void taken_release(struct taken *taken, const struct perhaps_allocator *allocator);

/* Releases the records and closes the file. */
void pile_end(struct pile *pile);

/* ---- sort.c ---------------------------------------------------------------------------- */

/* Sorts n records by all their words.  'highest' is the number of the highest bit of the first
 * word in which they may differ.  Uses scratch of the same size. */
void records_sort(uint64_t *records, uint64_t *scratch, uint64_t n, unsigned words,
                  unsigned highest);

/* Drops all but the first of equal records.  Returns how many stay.  With 'valued', records
 * that differ only in the last word are equal, too; sets *clash if two records differ only in
 * the last word. */
uint64_t records_unique(uint64_t *records, uint64_t n, unsigned words, bool valued,
                        bool *clash);

/* ---- tasks.c ---------------------------------------------------------------------------- */

enum { THREADS_MOST = 64 };

/* Tasks 0 .. ntasks-1, done by several threads, at most THREADS_MOST, each of which has a hand:
 * memory of its own. */
struct tasks {
    uint64_t ntasks;
    void *context;

    /* Does a task.  Several threads do this at once. */
    int (*work)(void *context, void *hand, uint64_t task);

    /* Takes the result of a task from the hand: in the order of the tasks, one at a time.
     * NULL: nothing is to be done. */
    int (*deliver)(void *context, void *hand, uint64_t task);
};

/* Does all tasks with one thread for each hand, of which the caller is one.  Returns 0, or the
 * first error of a task, with its errno: then some tasks have not been done. */
int tasks_run(const struct tasks *tasks, void *const *hands, unsigned nhands);

#endif
