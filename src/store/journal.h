/* journal.h - the journal of a live file: what was done to the filter since the file was saved.
 * doc/FORMAT.md is the specification.
 *
 *     F            a filter file, the snapshot: its header tells which records it has already
 *     F.journal    a header, then frames, each at a multiple of 512 bytes
 *
 *     frame   = what was written at once: its header, then runs
 *     run     = deed, number of records, and the records: hashed keys of 16 bytes, or of 8
 *               where the place of a key tells its mark
 *
 * Records are numbered from 1 on, in the order in which their deeds were done.  A frame tells
 * the number of its first one, and up to which number all were on the disk when it was written.
 * So where frames are missing or broken, those behind them tell whether the system had written
 * them (then the journal is damaged) or not (then nobody was told that they are safe, and the
 * journal ends there).
 *
 * Bytes that are on the disk are never written again: a frame does not share a sector with the
 * one before it.
 *
 * Each writer that opens the file begins a branch: it draws a number, which is the first run
 * of its first frame.  Two copies of F and F.journal that go on separately have other branches
 * from there on.  F has the branch of its last record, and the journal must have that, too,
 * behind the same record: F of one copy is never taken for that of the other one's journal. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "store.h"
#include <perhaps_embed.h>
#include <perhaps_file.h>

enum {
    JOURNAL_HEADER_NBYTES = 512,
    SECTOR_NBYTES = 512,
    FRAME_HEADER_NBYTES = 40,
    RUN_HEADER_NBYTES = 8,
    RECORD_NBYTES_MOST = sizeof(struct keyhash),
    FRAME_NBYTES_MOST = 1 << 30,
};

/* No record has a larger number, so that numbers do not overflow, whatever a file says. */
#define RECORD_NUMBER_MOST (UINT64_MAX / 2 - 1)

#define JOURNAL_SUFFIX ".journal"
enum { BESIDE_MAX = PATH_NBYTES_MOST + sizeof JOURNAL_SUFFIX };

/* Returns the size of a record of this filter. */
size_t record_nbytes(const perhaps_filter *f);

/* ---- Writing --------------------------------------------------------------------------- */

/* A frame that is being filled. */
struct frame {
    uint8_t *bytes;
    size_t room; /* how many bytes there can be */
    size_t record_nbytes;
    size_t nbytes;    /* with its header */
    size_t run;       /* where the last run begins; 0: there is none */
    uint64_t records; /* how many it has */
};

void frame_begin(struct frame *frame);

/* Returns whether so many records more have room, in whatever runs. */
bool frame_has_room(const struct frame *frame, size_t n);

/* Appends records for which there is room: of n keys, those for which skip[i] is false, or with
 * skip NULL all.  Returns how many these are. */
size_t frame_append(struct frame *frame, enum deed deed, const struct keyhash *keys, size_t n,
                    const bool *skip);

/* Appends the begin of a branch, which is no record; the frame has nothing yet. */
void frame_append_branch(struct frame *frame, uint64_t branch);

/* Completes the frame for the journal 'id': its first record has this number, and all up to
 * 'synced' are on the disk.  Returns how many bytes are to be written, a multiple of
 * SECTOR_NBYTES. */
size_t frame_seal(struct frame *frame, uint64_t id, uint64_t first, uint64_t synced);

/* What the header of a journal says. */
struct journal_begin {
    uint64_t id;     /* not that of another journal: the seed of the checksums of its frames */
    uint64_t first;  /* the number that its first record will have */
    uint64_t branch; /* of the record before; 0: no file is known to have this journal yet */
};

void journal_header(uint8_t bytes[JOURNAL_HEADER_NBYTES], const struct journal_begin *begin);

/* Returns the branch of the record before the first one: the id, if the journal has none. */
static inline uint64_t journal_first_branch(const struct journal_begin *begin)
{
    return begin->branch ? begin->branch : begin->id;
}

/* ---- Reading --------------------------------------------------------------------------- */

/* A journal that is read from its begin to its end, and later on from there. */
struct journal_reader {
    const struct perhaps_allocator *allocator;
    int fd;
    struct journal_begin header;
    uint64_t next;   /* the number of the next record to be read */
    uint64_t branch; /* of the one before */
    bool has_point;  /* the record of the file's point was met, in the branch of the point */
    uint64_t told;   /* frames that were read say that all up to this one were on the disk */
    uint64_t at;     /* where the next frame begins, or would begin */
    uint64_t futile_nbytes; /* of what had the header of a frame, and not its checksum */

    uint8_t *bytes; /* those from 'begin' to before 'end' of the journal */
    size_t room;
    uint64_t begin, end;
};

/* Reads the header; the reader does not own 'fd'.  Returns 0; PERHAPS_ERR_IO;
 * PERHAPS_ERR_VERSION; PERHAPS_ERR_MEMORY; or PERHAPS_ERR_JOURNAL if it is no journal.  The
 * caller calls journal_end() either way. */
int journal_begin(struct journal_reader *r, int fd, const struct perhaps_allocator *allocator);
void journal_end(struct journal_reader *r);

/* Reads the next frame, and sets *frame to its runs and *nbytes to their size, and *first to
 * the number of its first record.  At the end *frame is NULL: there the file ends, or what is
 * there was never said to be on the disk.  Returns 0, PERHAPS_ERR_DAMAGED, PERHAPS_ERR_IO or
 * PERHAPS_ERR_MEMORY. */
int journal_next(struct journal_reader *r, const uint8_t **frame, size_t *nbytes,
                 uint64_t *first);

/* Does to the filter what the rest of the journal records, but for the records that it has
 * already: those up to that of its point.  Returns 0; an error of journal_next() or
 * filter_redo(); or PERHAPS_ERR_JOURNAL if the journal does not have the point.  Before the
 * filter is used by others. */
int journal_redo(struct journal_reader *r, perhaps_filter *f,
                 const struct journal_point *point);

/* ---- beside.c ---------------------------------------------------------------------------- */

/* Finds the file, behind symbolic links, and its journal, which lies beside it.  Returns 0 or
 * PERHAPS_ERR_IO. */
int find_journal(const char *path, char file[PATH_NBYTES_MOST], char beside[BESIDE_MAX]);

/* The same for a file that need not be there. */
int find_place(const char *path, char file[PATH_NBYTES_MOST], char beside[BESIDE_MAX]);

/* Sets errno to EBUSY and returns PERHAPS_ERR_IO: another process has the journal. */
int journal_is_busy(void);

/* Returns whether the file at a path has one of two points, or cannot be read.  The point tells
 * more than the number of F's inode, which some systems give to the next file. */
bool file_has_point(const char *file, const struct journal_point *one,
                    const struct journal_point *other);

/* Returns whether F, which has one of two points, and the journal beside it are still what they
 * were: nobody has removed, renamed or replaced one.  'fd' is that of the journal. */
bool journal_is_beside(const char *file, const char *beside, int fd,
                       const struct journal_point *one, const struct journal_point *other);

/* ---- recover.c --------------------------------------------------------------------------- */

/* Opens the journal beside the file of a filter that was opened to be read or loaded, and does
 * what it records.  Returns 0 or an error of perhaps_open(). */
int journal_follow(perhaps_filter *f, const char *path, const struct journal_point *point);

/* Returns whether a filter was opened so to be read. */
bool journal_is_followed(const perhaps_filter *f);

/* Returns whether the journal beside the file is still the one that was read. */
bool journal_is_current(const perhaps_filter *f, const char *path);

/* Does what the journal records since.  Returns 0 or an error of journal_redo(). */
int journal_catch_up(perhaps_filter *f);

/* Opens a live file as PERHAPS_MODE_JOURNAL does. */
int journal_open(const char *path, const struct perhaps_open_options *options,
                 perhaps_filter **filter);

#endif
