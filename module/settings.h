/* settings.h - what CONFIG SET and the arguments of the module set. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "server.h"

/* Limits of what can be asked for. */
#define CAPACITY_MOST   (1LL << 40)
#define EXPANSION_MOST  32768
#define BUCKET_MOST     255
#define ITERATIONS_MOST 65535

struct settings {
    double bf_error_rate;
    long long bf_initial_size;
    long long bf_expansion_factor;
    long long cf_bucket_size;
    long long cf_initial_size;
    long long cf_max_iterations;
    long long cf_expansion_factor;
    long long cf_max_expansions; /* of RedisBloom's own filters; ours need no limit */
};
extern struct settings settings;

/* Registers all settings with the server and reads the arguments that the module was loaded
 * with: pairs of a name and a value.  Returns SERVER_OK; or SERVER_ERR, having logged what is
 * wrong. */
int settings_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
