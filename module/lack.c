/* TEMPORARY */
#include "form.h"
#include "partitions.h"
int partitions_register(RedisModuleCtx *ctx)
{
    (void)ctx;
    return 0;
}
