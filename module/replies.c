/* replies.c - replies that differ between RESP2 and RESP3. */
#include "replies.h"

#include <string.h>

void reply_bool(RedisModuleCtx *ctx, bool value)
{
    if (server.ReplyWithBool)
        server.ReplyWithBool(ctx, value);
    else
        server.ReplyWithLongLong(ctx, value);
}

void reply_map(RedisModuleCtx *ctx, long count)
{
    if (server.ReplyWithMap)
        server.ReplyWithMap(ctx, count); /* an array of twice as many in RESP2 */
    else
        server.ReplyWithArray(ctx, 2 * count);
}

void reply_one(RedisModuleCtx *ctx, const char *name)
{
    if (server.GetContextFlags(ctx) & CTX_RESP3) {
        reply_map(ctx, 1);
        reply_name(ctx, name);
    } else {
        server.ReplyWithArray(ctx, 1);
    }
}

long more_fields(const struct info *info)
{
    return 4 + (info->window_ms > 0);
}

void reply_more(RedisModuleCtx *ctx, const struct info *info)
{
    reply_name(ctx, "Bits per item");
    server.ReplyWithDouble(ctx, info->bits_per_item);
    reply_name(ctx, "Error rate asked");
    server.ReplyWithDouble(ctx, info->fpr_asked);
    reply_name(ctx, "Error rate now");
    server.ReplyWithDouble(ctx, info->fpr_now);
    reply_name(ctx, "Hash");
    reply_text(ctx, info->hash);
    if (info->window_ms) {
        reply_name(ctx, "Window");
        reply_number(ctx, info->window_ms);
    }
}

void reply_name(RedisModuleCtx *ctx, const char *name)
{
    server.ReplyWithSimpleString(ctx, name);
}

void reply_text(RedisModuleCtx *ctx, const char *text)
{
    server.ReplyWithStringBuffer(ctx, text, strlen(text));
}

void reply_number(RedisModuleCtx *ctx, uint64_t number)
{
    server.ReplyWithLongLong(ctx, (long long)number);
}
