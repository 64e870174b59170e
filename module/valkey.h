/* valkey.h - what commands of valkey-bloom do beyond those of RedisBloom. */
#ifndef VALKEY_H
#define VALKEY_H

#include "keys.h"
#include "valkeybloom.h"

/* Makes a filter in valkey-bloom's form in an open key that is missing, and replicates that as
 * valkey-bloom does: as this command, a BF.INSERT, with all parameters and no items.  Returns
 * whether it succeeded; if not it has replied with an error. */
bool valkey_create(RedisModuleCtx *ctx, struct opened *o, const RedisModuleString *command,
                   const struct valkeybloom_wish *wish);

#endif
