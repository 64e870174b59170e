/* partitions.h - filters on servers that are plain strings (doc/CLUSTER.md), by commands. */
#ifndef PARTITIONS_H
#define PARTITIONS_H

#include "server.h"

/* Registers PERHAPS.TEST and PERHAPS.SET.  Returns SERVER_OK or SERVER_ERR. */
int partitions_register(RedisModuleCtx *ctx);

#endif
