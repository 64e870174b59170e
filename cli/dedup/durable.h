/* durable.h - dedup --durable: what was printed is remembered, whatever happens then.
 *
 * The order is: a line gets into the filter in memory; it is printed; now and then all that was
 * printed is written to the disk (if standard output is a file), and only then the journal of
 * the state.  So the state never knows a line that was not printed: after a crash no line is
 * lost, and those that were printed since the last time may be printed again.  The other way
 * round none would come twice, but some would never be seen, as if they had been false
 * positives. */
#ifndef DURABLE_H
#define DURABLE_H

#include <pthread.h>

#include "../filter/target.h"
#include "printer.h"

struct durable {
    const struct settings *settings;
    struct target *target; /* a live file, which holds its records back; NULL: not durable */
    struct durability after;
    bool prints_to_file;
    uint64_t printed_nbytes; /* since the system was asked to write them to the disk */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended;
    pthread_t timer;
    bool has_timer, ends;
    pthread_cond_t moved; /* something was acknowledged, or never will be */
    size_t on_the_way;    /* blocks that have entered, and not left: only they, or else who has
                             the lock, use the filter and standard output */
    uint64_t waiting;     /* lines that were printed, and are not acknowledged */
    bool due;             /* they are to be, as soon as no block is on its way */
    bool unprinted;       /* a line is in the filter that could not be printed */
    int error, reason;    /* of the first time that failed; nothing is remembered after it */
};

/* How many records of the journal there is room for in memory: more than lines in a block. */
enum { DURABLE_RECORDS = 1 << 20 };

/* Begins to acknowledge the lines of a state that target_load_live() has opened. */
void durable_begin(struct durable *durable, const struct settings *settings,
                   struct target *target);

/* A block enters before its keys are added, in a stage in order, and leaves when its lines are
 * printed, in the stage in order next to that one: so a thread that could print never waits to
 * enter with another block.  Other blocks may be on their way meanwhile.  They return false if
 * lines could not be acknowledged.  If the block could not be printed ('printed' is false),
 * nothing will be acknowledged from then on. */
bool durable_enter(struct durable *durable, const struct block *block);
bool durable_leave(struct durable *durable, const struct block *block, bool printed);

/* Acknowledges all that was printed.  Ends the program if that fails, now or before. */
void durable_settle(struct durable *durable);

#endif
