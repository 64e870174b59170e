/* internal.h - what goes to replicas and into the AOF beside the commands of users: filters
 * that are made, and the time of windows. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include "keys.h"
#include "own.h"

/* Makes a filter of the library in an open key that is missing.  Replicates that as
 * PERHAPS.CREATE, with all parameters and the secret, so that a replica makes the same whatever
 * its settings are.  Returns whether it succeeded; if not it has replied with an error. */
bool key_create(RedisModuleCtx *ctx, struct opened *o, const struct wish *wish);

/* Returns whether an open key holds a window, whose time must be moved on before an add. */
bool is_window(const struct opened *o);

/* Returns the time at which a question is asked to a window; 0 for other filters. */
uint64_t window_present(const struct opened *o);

/* Moves a window on to the present, before something is added to it, and replicates that if it
 * changed anything.  A command that is replayed does not: that was replicated before it.
 * Returns whether the filter is a window. */
bool window_to_present(RedisModuleCtx *ctx, const struct opened *o);

#endif
