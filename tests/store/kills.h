/* kills.h - what a child does to a live file until it is killed, and how its parent does the
 * same to a model.
 *
 * All that is done is a list of steps that follows from a seed: step number n is the same in
 * child and parent.  Before each step the child notes on a board in shared memory that it has
 * begun, and after each perhaps_sync() that returned 0 how many steps that has acknowledged. */
#ifndef KILLS_H
#define KILLS_H

#include <stdatomic.h>

#include "support.h"
#include <perhaps_plan.h>

enum { UNIVERSE = 4000, ADDERS_MOST = 4, SHARE = UNIVERSE / ADDERS_MOST };

/* A file: which filter it has, and the keys that are added to it and removed from it. */
struct work {
    struct path path;
    const struct perhaps_kind *kind;
    struct perhaps_options options;
    struct perhaps_keys keys; /* UNIVERSE of them */
    uint64_t seed;
};

/* What one child does. */
enum job {
    STEPS,   /* one step after the other */
    THREADS, /* several threads add their shares and sync, all at once */
    OPENS,   /* opens the file and closes it, over and over */
};

struct task {
    enum job job;
    uint64_t first, count; /* steps, or how often the file is opened */
    uint64_t offset;       /* where the share of the first thread begins */
    unsigned threads;
    uint64_t sync_once_in; /* steps, on average */
    uint64_t journal_nbytes;
    uint64_t seed;

    /* The child kills itself at this system call that changes files, counted from 1 on.  0:
     * its parent kills it at some moment. */
    unsigned call;
    enum moment { BEFORE, HALFWAY, AFTER } moment;
    bool when_open; /* only then the calls, or the time, are counted */
    bool waits;     /* for a disk, which is slower than memory */
};

/* What the child tells. */
struct board {
    atomic_bool started, opened;
    atomic_ullong begun, acknowledged; /* all steps before this one */
    atomic_ullong records;             /* the last record that was acknowledged */
    atomic_uint renewed;               /* how often it was seen that a new journal had begun */
    struct {
        atomic_ullong begun, acknowledged; /* keys of its share */
    } thread[ADDERS_MOST];
    atomic_int error; /* of a call that should have succeeded */
};

/* Does the task and ends the process: with 0, or with 1 and an error on the board. */
_Noreturn void be_child(const struct work *work, const struct task *task, struct board *board);

/* Returns how many keys step 'number' has, at least 1. */
size_t step_size(const struct work *work, uint64_t number);

/* Does what step 'number' does with its key 'i'.  Returns whether the step goes on behind it:
 * a key that is refused ends it. */
bool redo_key(const struct work *work, uint64_t number, size_t i, perhaps_filter *f);

/* Returns key 'i' of a thread's share, as one key. */
struct perhaps_keys share_key(const struct work *work, const struct task *task, unsigned thread,
                              uint64_t i);

#endif
