/* docs.h - what COMMAND INFO, COMMAND DOCS and COMMAND GETKEYS tell of our commands. */
#ifndef DOCS_H
#define DOCS_H

#include "server.h"

/* Returns what SetCommandInfo() takes for a command of this name, or NULL. */
const RedisModuleCommandInfo *docs_of(const char *command);

#endif
