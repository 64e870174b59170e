/* replies.h - replies that differ between RESP2 and RESP3, and texts of errors. */
#ifndef REPLIES_H
#define REPLIES_H

#include "form.h"

#define WRONGTYPE "WRONGTYPE Operation against a key holding the wrong kind of value"
#define NOT_FOUND "ERR not found"
#define EXISTS    "ERR item exists"
#define INCOMPLETE                                                                             \
    "ERR the filter is not complete: load the rest of its chunks, or all from its header"
#define NO_MEMORY  "ERR Insufficient memory to create filter"
#define RATE_RANGE "ERR error rate must be in the range (0.000000, 1.000000)"

/* true and false of RESP3, 1 and 0 of RESP2. */
void reply_bool(RedisModuleCtx *ctx, bool value);

/* Begins a map of 'count' pairs: in RESP2 an array of names and values. */
void reply_map(RedisModuleCtx *ctx, long count);

/* Begins the reply that consists of this one field: in RESP2 an array without its name. */
void reply_one(RedisModuleCtx *ctx, const char *name);

/* The name of a field: a simple string, as RedisBloom has it. */
void reply_name(RedisModuleCtx *ctx, const char *name);

/* Appends the fields that come behind those that RedisBloom has, and tells how many pairs. */
long more_fields(const struct info *info);
void reply_more(RedisModuleCtx *ctx, const struct info *info);

void reply_text(RedisModuleCtx *ctx, const char *text);
void reply_number(RedisModuleCtx *ctx, uint64_t number);

#endif
