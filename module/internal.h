/* internal.h - what goes to replicas and into the AOF beside the commands of users: filters that
 * are made, and the time of windows. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include "commands.h"

/* Replicates that the filter of an open key was made, as PERHAPS.CREATE: with all its parameters
 * and its secret, so that a replica makes the same whatever its settings are. */
void create_replicate(RedisModuleCtx *ctx, const struct opened *o);

/* Returns the time at which a question is asked to a window; 0 for other filters. */
uint64_t window_present(const struct opened *o);

/* Moves a window on to the present, before something is added to it, and replicates that if it
 * changed anything.  A command that is replayed does not: that was replicated before it.  Returns
 * whether the filter is a window. */
bool window_to_present(RedisModuleCtx *ctx, const struct opened *o);

#endif
