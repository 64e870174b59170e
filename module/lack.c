/* TEMPORARY */
#include "form.h"
#include "partitions.h"
static bool no_header(const char *b, size_t n)
{
    (void)b;
    (void)n;
    return false;
}
struct form redis_bloom = {
    .type_name = "MBbloom--", .encoding = 4, .family = FAMILY_BLOOM, .is_header = no_header
};
struct form redis_cuckoo = {
    .type_name = "MBbloomCF", .encoding = 4, .family = FAMILY_CUCKOO, .is_header = no_header
};
int partitions_register(RedisModuleCtx *ctx)
{
    (void)ctx;
    return 0;
}
