/* reach.h - how far a verb has come with a live file, by what is on the disk.
 *
 * What was changed in memory is no promise: after an error the user has to know which keys a
 * later run would find.  So the file is opened with its records held back, and those of some
 * blocks go to the disk at once, as one frame: it is there as a whole, or not at all. */
#ifndef REACH_H
#define REACH_H

#include "../input/input.h"
#include "target.h"

/* A place between two keys of the inputs. */
struct position {
    uint64_t nkeys;    /* how many keys of the inputs are before it */
    uint64_t nchanged; /* how many of these were added or removed */
    uint64_t record;   /* the number of the last record of the journal */
    size_t source;     /* where the next key is: the number of the path, */
    uint64_t line;     /* and of the line */
};

/* Moves a position behind what was done of the next block.  '*nlines' is how many lines its
 * source has up to the end of the last block, 0 at first. */
void position_pass(struct position *position, uint64_t *nlines, const struct block *block);

struct reach {
    struct target *target;
    struct position synced; /* all before it is on the disk */
    struct position now;    /* all before it was done */
    uint64_t nlines;        /* of its source, up to the end of the last block */
    int error, reason;      /* of syncing, with errno; 0: none */
    int refused;            /* errno with which the journal took no more records; 0: none */
};

/* How many records there is room for in memory: more than keys in a block. */
enum { REACH_RECORDS = 1 << 18 };

/* Begins with a live file that was opened with REACH_RECORDS. */
void reach_begin(struct reach *reach, struct target *target);

/* Makes room for the records of a block of records, by syncing those before.  Returns false,
 * and sets reach->error, if that fails: nothing may be changed then. */
bool reach_enter(struct reach *reach, const struct block *block);

/* Notes that the first 'ndone' keys of the block were dealt with, and 'nchanged' of all keys so
 * far were added or removed. */
void reach_leave(struct reach *reach, const struct block *block, uint64_t nchanged);

/* Syncs the rest. */
void reach_settle(struct reach *reach);

/* Writes, after an error, how far the file has come, as the end of a message: who goes on as it
 * says has done with each key of the inputs what an undisturbed run does.  Closes the filter if
 * it has to look at the disk for that.  'removes': the verb removes keys.  'again': keys that
 * are dealt with twice do no harm. */
void reach_tell(struct reach *reach, const struct settings *settings, bool removes, bool again,
                char *text, size_t nbytes);

#endif
