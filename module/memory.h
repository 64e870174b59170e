/* memory.h - memory from the server, which counts it. */
#ifndef MODULE_MEMORY_H
#define MODULE_MEMORY_H

#include "server.h"
#include <perhaps.h>
#include <perhaps_embed.h>

/* Returns 'nbytes' bytes that are zero; or NULL if there is too little memory.  For the command
 * of a client that is more than perhaps_host_memory_nbytes(), or than maxmemory leaves.  Blocks
 * of less than MEMORY_LOOK_NBYTES are not looked at so closely, since the server refuses
 * commands that take memory when it is full (deny-oom).  Else there is no limit; and what must
 * not fail (running.h) does not: the server ends itself if the system has no memory. */
enum { MEMORY_LOOK_NBYTES = 16 << 20 };
void *memory_take(size_t nbytes);

/* The same with any content: for what is written at once. */
void *memory_take_any(size_t nbytes);

/* Releases what these returned, in any thread.  NULL is allowed. */
void memory_give(void *memory);

/* The same for filters of the library. */
extern const struct perhaps_allocator memory_of_server;

/* Returns how many bytes are taken now. */
unsigned long long memory_taken(void);

#endif
