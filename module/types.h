/* types.h - the data types of the forms. */
#ifndef TYPES_H
#define TYPES_H

#include "form.h"

/* Registers a data type for each form.  Returns SERVER_OK or SERVER_ERR. */
int types_register(RedisModuleCtx *ctx);

#endif
