/* disk_model.h - what a disk may hold after a crash.
 *
 * The linker sends the system calls of the library here (--wrap, see CMakeLists.txt).  They do
 * what they always do, but those on the files of one folder are recorded: a trace.  For each
 * step of the trace the model tells what may be on the disk if the system crashes then:
 * - Of a file all that was written before its last sync began.  Of what was written since, any
 *   sectors, and any of the sizes that the file has had since.
 * - Of names that were made, changed and removed since the last sync of the folder, the first
 *   few, in their order; whatever the files hold.
 * - What was written before a sync that failed may never come to the disk: the system takes it
 *   for written.
 * This is what POSIX and the file systems of Linux leave open (Pillai et al.: All File Systems
 * Are Not Created Equal, OSDI 2014; Rebello et al.: Can Applications Recover from fsync
 * Failures?, ATC 2020). */
#ifndef DISK_MODEL_H
#define DISK_MODEL_H

#include "support.h"

/* ---- The trace --------------------------------------------------------------------------- */

/* Begins a trace of this folder.  All that is there now is on the disk. */
void disk_watch(const char *folder);

/* Ends it; what was recorded stays until the next disk_watch(). */
void disk_rest(void);

/* Makes each sync take a while, in which other threads make calls. */
void disk_be_slow(bool slow);

/* Makes the next sync of a file fail with EIO. */
void disk_fail_sync(void);

/* Writes into the trace what a thread of the test promises from here on: the filter is in one
 * of the states 'safe' .. 'begun'. */
struct promise {
    size_t safe, begun;
    unsigned thread;
};
void disk_promise(struct promise promise);

/* Returns the last promise of a thread before this step. */
struct promise disk_promised(size_t step, unsigned thread);

/* Returns how many steps the trace has: a crash may come behind 0 .. disk_steps() of them. */
size_t disk_steps(void);

/* ---- A crash ----------------------------------------------------------------------------- */

/* Chooses among what a disk may hold. */
enum choice {
    CHOOSE_ALL,    /* all that was done: only the process has died */
    CHOOSE_SYNCED, /* only what was synced */
    CHOOSE_RANDOM,
    CHOOSE_EACH, /* one after the other: see chooser_next() */
};

struct chooser {
    enum choice how;
    struct rng rng;
    unsigned density;       /* of CHOOSE_RANDOM: how many of 16 sectors are there */
    unsigned sector_nbytes; /* what is written as a whole or not at all */
    bool garbage;           /* bytes that were never written are garbage, and not zeros */
    unsigned depth, room;   /* of CHOOSE_EACH: how many choices this one took, and has */
    unsigned char taken[64], limit[64];
};

/* Moves to the next combination of choices; false: there is none. */
bool chooser_next(struct chooser *chooser);

/* The files of a folder. */
struct image {
    size_t count;
    struct image_file {
        char name[80];
        uint8_t *bytes;
        size_t nbytes;
    } files[8];
};

/* Returns how many sectors may be there or not after a crash behind this step. */
size_t disk_open_sectors(size_t step, unsigned sector_nbytes);

/* Makes the folder that is found after a crash behind this step; release it with
 * image_free(). */
struct image disk_image(size_t step, struct chooser *chooser);
void image_free(struct image *image);
struct image image_copy(const struct image *image);

/* Returns a hash of names and bytes. */
uint64_t image_hash(const struct image *image);

/* Makes a folder hold these files and no others; makes it first if it is not there. */
void image_write(const struct image *image, const char *folder);

#endif
