/* memory.h - memory from the server, which counts it. */
#ifndef MODULE_MEMORY_H
#define MODULE_MEMORY_H

#include "server.h"
#include <perhaps.h>

/* Returns 'nbytes' bytes that are zero; or NULL if there is too little memory: more than the
 * machine has, or than maxmemory allows.  Blocks of less than 64 MiB are not looked at so closely;
 * the server refuses commands that take memory when it is full (deny-oom).  While a command of the
 * master or an AOF is replayed, only what the machine has counts: a replica must not refuse what
 * its master did.  Release with server.Free(). */
void *memory_take(size_t nbytes);

/* The same for filters of the library. */
extern const struct perhaps_allocator memory_of_server;

/* To be called when a command begins: 'ctx' tells whether it must be obeyed. */
void memory_begin(RedisModuleCtx *ctx);

#endif
