/* target.h - the filter that a verb works on: where it is, its secret, its lock.  It is where
 * it is: in a file, or on servers. */
#ifndef TARGET_H
#define TARGET_H

#include <perhaps.h>

#include "remote.h"
#include "request.h"

struct target {
    perhaps_filter *filter; /* NULL: it lies on servers */
    struct remote *remote;  /* NULL: it does not */
    const char *path;       /* or address, for messages */
    bool in_place;          /* what changes 'filter' changes the file */
    bool streams;           /* is saved to standard output */
    bool fresh;             /* nothing was at 'path': saving replaces nothing */
    int lock;               /* descriptor whose file is locked; -1: none */
    char *lock_path;        /* of a file of its own, as long as there is none at 'path' */
    struct hashing hashing; /* of one that is made: its secret is written when it is saved */
    uint64_t wait_ms;       /* for a lock that another process has */
    int error;              /* the perhaps_error for which it could not be opened */
    char *outcome;          /* "; F is unchanged": what an error leaves, to end its message */
};

/* A target that target_close() may be called on. */
#define TARGET_NONE                                                                            \
    {                                                                                          \
        .lock = -1                                                                             \
    }

enum secrecy { WITH_SECRET, WITHOUT_SECRET };

/* All below return 0, or the exit status, having complained. */

/* Opens the filter at 'path' read-only; one on servers, to be added to as well. */
int target_open(struct target *target, const char *path, const struct settings *settings,
                enum secrecy secrecy);

/* Tells of damage that --check has found. */
int target_complain_damage(const struct target *target);

/* Prepares to save at 'path' (NULL: nowhere): refuses what would fail in the end, as far as it
 * can be told, and keeps other processes from changing the filter there until
 * target_close(), so that none of two changes is lost.  Then create or load. */
int target_reserve(struct target *target, const char *path, const struct settings *settings);

/* The same for -o; "-" is standard output. */
int target_reserve_output(struct target *target, const struct settings *settings);

/* Refuses to replace a file that is no filter, unless --force is given. */
int target_check_replaced(const struct target *target, const struct settings *settings);

/* Makes an empty filter, and a secret if one is wanted and there is none. */
int target_create(struct target *target, const struct settings *settings, struct size size);

/* Loads the filter at 'from', to be changed. */
int target_load(struct target *target, const char *from, const struct settings *settings,
                enum secrecy secrecy);

/* Whether there is a filter at 'path' of a kind that can be changed where it is, by us. */
bool target_takes_in_place(const char *path);

/* Maps the filter at 'path' to be changed where it is, by others too that do so, but by none
 * that reserves it. */
int target_open_in_place(struct target *target, const char *path,
                         const struct settings *settings);

/* Saves it where it was reserved, and its secret if that is new. */
int target_save(const struct target *target, const struct settings *settings);

/* As perhaps_stats_of().  0, or the exit status, having complained, for one on servers. */
int target_stats(const struct target *target, struct perhaps_stats *stats);

/* Sees to it that what was changed in place is on the disk, after a failure too, and returns
 * then its 'status'. */
int target_sync(const struct target *target, int status);

void target_close(struct target *target);

#endif
