/* running.h - what the module works for at this moment, and so whether it may refuse.
 *
 * What a master did, or an AOF tells, is done as it stands.  A server that refused it would
 * have another filter than the master, and deny its items.  So whatever depends on the place,
 * such as memory, limits, settings and the clock, decides about the commands of clients
 * only. */
#ifndef RUNNING_H
#define RUNNING_H

#include "server.h"

enum running {
    RUNNING_COMMAND, /* of a client: it may be refused, which changes nothing */
    RUNNING_REPLAY,  /* what the master did, or the AOF tells: must be done */
    RUNNING_LOAD,    /* a filter is read from an RDB: no limit counts, but it may be damaged */
    RUNNING_SAVE     /* a filter is written: must be done, since half of one is no backup */
};

/* A command begins, or one that the server does itself, such as COPY: then 'ctx' is NULL. */
void running_command(RedisModuleCtx *ctx);

/* A filter is read from an RDB or by RESTORE, which is a command where no master sends it. */
void running_load(void);

/* A filter is written. */
void running_save(void);

/* What was begun is done: as many times as something began. */
void running_end(void);

/* Tells what runs.  Where nothing was begun, as when memory is given back, that is a
 * command. */
enum running running_now(void);

/* Returns the context of the command that runs, or NULL. */
RedisModuleCtx *running_context(void);

#endif
