/* place.h - the lock on the place of a target.
 *
 * Of two processes that change a filter, none loses its changes.  A verb that replaces a file
 * locks it before it reads it, and until it has saved the new file.  While there is no file at
 * the path, it locks an empty file beside it (.F.lock) instead.
 *
 * Saving puts a new file at the path, and the lock of the old file is then worth nothing.  So a
 * process that got a lock looks whether its file is still at the path, and begins again if it
 * is not. */
#ifndef PLACE_H
#define PLACE_H

#include "target.h"

/* Locks the file; or, while there is none, the lock file, which every process locks that would
 * make the file.  Sets target->fresh.  Ends the program if no file can be made there. */
void place_lock(struct target *target);

/* Returns whether the file may be written, and its file system has what processes need that
 * change a file at once: locks and shared maps. */
bool place_can_share(const char *path);

/* Waits until no process has reserved the file, and locks it beside others that change it in
 * place.  Does nothing if there is none. */
void place_share(struct target *target);

/* Gives back what the target has locked, if it has. */
void place_unlock(struct target *target);

/* Returns whether the file that was locked is still at the path. */
bool place_is_locked(const struct target *target);

#endif
