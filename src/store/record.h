/* record.h - a live file while it is written, for record.c and checkpoint.c. */
#ifndef RECORD_H
#define RECORD_H

#include "journal.h"
#include <perhaps_embed.h>
#include <perhaps_live.h>

/* The changer of a live file, and what else a live file can do. */
struct recorder {
    struct changer changer;

    /* Do what perhaps_sync(), perhaps_checkpoint() and perhaps_journal_of() do.  NULL: nothing
     * is written. */
    int (*sync)(perhaps_filter *f);
    int (*checkpoint)(perhaps_filter *f);
    void (*tell)(const perhaps_filter *f, struct perhaps_journal *journal);
};

struct journal {
    struct recorder recorder; /* f->changer of the filter is its changer */
    struct mutex lock;        /* of all that follows, and of changes of the filter */
    struct condition moved;   /* something was written, synced or saved, or has failed */
    perhaps_filter *filter;
    struct perhaps_allocator allocator;
    char path[PATH_NBYTES_MOST]; /* of the file, without symbolic links */
    char beside[BESIDE_MAX];
    struct journal_point point; /* as it stands in the header of the file */
    uint64_t id;                /* that the journal has */
    uint64_t branch;            /* of the last record */
    uint64_t own;               /* the branch of all records to come */
    int fd;                     /* of the journal, which is locked */
    long process;               /* which has opened it */

    struct frame frames[2];
    uint64_t sequence;     /* the number of the last record, */
    uint64_t written;      /* of the last one in the file, */
    uint64_t synced;       /* of the last one that is on the disk, */
    uint64_t mapped_from;  /* what is mapped goes to memory so many records after this one */
    uint64_t told;         /* and the last frame says so of these */
    uint64_t end;          /* where the next frame goes */
    uint64_t reserved;     /* up to where the disk has room */
    bool writing, syncing; /* a thread does, without the lock */
    bool has_time;         /* the filter is a window that was told the time */
    bool closes;           /* a frame is written even if it has no records */
    bool holds;            /* records are written by perhaps_sync(), as far as they have room */
    bool lost;             /* somebody has removed or replaced the file or its journal */
    unsigned active;       /* the frame that takes records */
    int failed;            /* errno of a write or sync that failed; 0: none */

    uint64_t limit;              /* the size at which the file is saved anew */
    uint64_t try_at;             /* after a failure: the size at which that is tried again */
    bool has_thread;             /* 'thread' was begun, and not joined */
    bool saving;                 /* the file is being saved: */
    perhaps_filter *copy;        /* of the filter, */
    struct journal_point copied; /* which has the records up to this one; */
    uint64_t tail;               /* where later ones begin in the journal */
    int error, reason;           /* of the last time that the file was saved; 0: it was */
    struct thread thread;
};

/* All functions but those of record.c are called with the lock, and return with it. */

/* ---- commit.c ---------------------------------------------------------------------------- */

/* Returns PERHAPS_ERR_IO, and sets errno: it is not known what is on the disk.  Or returns
 * PERHAPS_ERR_JOURNAL: what is written would not be found again. */
int journal_broken(const struct journal *j);

/* Notes that the system has failed (errno), which is final.  Returns PERHAPS_ERR_IO. */
int journal_broke(struct journal *j);

/* Writes the frame that was filled, if it has records, and makes the other one active.  'whole'
 * keeps the lock, but to wait for a thread that writes.  Returns 0 or an error of
 * journal_broken(), as the next two. */
int journal_write_frame(struct journal *j, bool whole);

/* Syncs what is written, too, and gives up the lock to wait for other threads only. */
int journal_sync_whole(struct journal *j);

/* Begins the writer's own branch, if it has not: to be called before its first record. */
void journal_begin_branch(struct journal *j);

/* Returns when all records up to this one are on the disk, in a journal that is still beside
 * its file. */
int journal_sync_to(struct journal *j, uint64_t sequence);

/* ---- checkpoint.c ------------------------------------------------------------------------ */

/* Begins to save the file in a thread if the journal has grown to its limit.  If it has grown
 * to twice that, waits for it, or saves the file itself.  Returns 0; or the error with which
 * that failed. */
int checkpoint_if_due(struct journal *j);

/* Saves the file anew and begins a new journal.  Returns 0 or an error of
 * perhaps_checkpoint(). */
int checkpoint_now(struct journal *j);

/* Saves something else as the file, and begins a new journal: a checkpoint_now() of another
 * filter.  The records, those to come, too, are of the file as it was: so they get a branch of
 * their own before. */
int checkpoint_other(struct journal *j, const struct content *content);

/* Puts a copy of the journal up to 'end', with this header, in its place, which is then on the
 * disk.  Before others use the journal.  Returns 0, or PERHAPS_ERR_IO or PERHAPS_ERR_MEMORY. */
int journal_copy(struct journal *j, const struct journal_begin *begin);

/* Waits until no thread saves the file. */
void checkpoint_wait(struct journal *j);

/* ---- record.c ---------------------------------------------------------------------------- */

/* Releases the memory and closes the journal. */
void journal_release(struct journal *j);

/* The recorder of those who write a live file. */
extern const struct recorder recorder;

/* Returns the recorder of a filter, or NULL. */
static inline const struct recorder *recorder_of(const perhaps_filter *f)
{
    return f->changer == &filter_plain ? NULL : (const void *)f->changer;
}

/* Returns the journal of a filter that is open to write a live file. */
static inline struct journal *recording_of(const perhaps_filter *f)
{
    return (struct journal *)f->changer;
}

#endif
